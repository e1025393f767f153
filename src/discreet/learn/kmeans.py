# SPDX-License-Identifier: Apache-2.0
"""Clusters by noisy Lloyd steps: every step releases the size and the sum of each cluster."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin

from discreet import check
from discreet.errors import BadParameter
from discreet.learn.ball import Ball
from discreet.learn.base import PrivateEstimator, check_fitted
from discreet.learn.features import blocks
from discreet.learn.lloyd import BITS, Space, lloyd_step, seeds

__all__ = ["KMeans"]

Reals = npt.NDArray[np.float64]

_SHARE = 0.2  # of the budget for the mean and the covariance, from which the first centres are made
_CONSTANT = 0.5  # the column from which that mean and the count are read, as a share of the norm of the rest


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, PrivateEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """k-means clustering whose centres reveal at most (epsilon, delta) about any one record.

    **Guarantee.** `cluster_centers_` and everything computed from them satisfy `guarantee_`. Features are clipped
    to their `bounds`, rows to a distance of `norm` from the middle of them (from zero without bounds); one of
    the two is needed. NaN counts as the middle. `max_iter` steps are made, whatever the data are. There is no
    `labels_` and no `inertia_`: which cluster a record of the data belongs to, and how far it is from its
    centre, was not released. `predict` tells you of any row, and its answer about a private row is as private
    as that row.

    Why it holds: one Gaussian mechanism for mean and covariance (a fifth of the budget) and one for each
    step: a row adds (αR, x) to the cluster that it is in, which is of norm R√(1 + α²) at most
    (joint.proof.md, 2 and 3). To which cluster a row belongs is decided in whole numbers, by that row and
    released centres alone.

    What would break it: bounds or centres that were read off the data.

    The first centres are Sobol points, which know nothing of the data, under a normal law with the released
    mean and covariance; or pass an array of public centres as `init`, and all of the budget goes to the
    steps.

    >>> import numpy as np
    >>> X = np.repeat([[-0.5, 0.0], [0.5, 0.0]], 2000, axis=0)
    >>> model = KMeans(2, epsilon=1, delta=1e-5, bounds=(-1, 1)).fit(X)
    >>> [round(abs(float(x)), 1) for x in model.cluster_centers_[:, 0]]
    [0.5, 0.5]
    """

    n_clusters: int
    init: Any
    max_iter: int
    bounds: Any
    norm: Any

    cluster_centers_: Reals
    n_iter_: int
    n_features_in_: int
    _ball_: Ball
    _given_: bool

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "sobol",
        max_iter: int = 5,
        epsilon: Any = None,
        delta: Any = None,
        bounds: Any = None,
        norm: Any = None,
        relation: str = "add-remove",
        session: Any = None,
        unit: str = "record",
        progress: Any = None,
    ) -> None:
        self.n_clusters, self.init, self.max_iter = n_clusters, init, max_iter
        self.epsilon, self.delta, self.bounds, self.norm = epsilon, delta, bounds, norm
        self.relation, self.session, self.unit, self.progress = relation, session, unit, progress

    def fit(self, X: Any, y: Any = None) -> Self:
        """Charge, then release the centres; `y` is not looked at."""
        clusters, steps = check.whole(n_clusters=self.n_clusters), check.whole(max_iter=self.max_iter)
        matrix = self._matrix(X, reset=True)
        start = _declared(self.init, clusters, matrix.shape[1])
        share, constant = (_SHARE, _CONSTANT) if start is None else (0.0, 0.0)
        ball = Ball.of(matrix.shape[1], bounds=self.bounds, norm=self.norm, constant=constant)
        budget, progress = self._budget(), self._shown()
        (each,) = budget.shares((1 - share) / steps)
        if start is None:
            (first,) = budget.shares(share)
            self._charge(budget.gaussian(first) + steps * budget.gaussian(each))
            found = ball.release(matrix, noise=first, budget=budget)
            space, centres = Space.around(found), seeds(found, clusters)
        else:
            self._charge(steps * budget.gaussian(each))
            space = Space(np.zeros(matrix.shape[1]), 1 << BITS)
            centres = (start - ball.box.middle) / ball.size * 2.0**BITS
        rows = [space.cells(ball.cells(matrix[part], BITS)[:, : matrix.shape[1]]) for part in blocks(matrix)]
        for step in range(steps):
            centres = lloyd_step(rows, centres, space, noise=each, relation=budget.relation)
            if progress is not None:
                progress(step + 1, steps)
        self.cluster_centers_ = ball.box.middle + ball.size * space.units(centres)
        self.n_iter_, self._ball_, self._given_ = steps, ball, start is not None
        return self

    def predict(self, X: Any) -> npt.NDArray[np.intp]:
        """The index of the nearest centre; rows are clipped to the bounds as in fitting."""
        return np.asarray(self.transform(X).argmin(axis=1))

    def fit_predict(self, X: Any, y: Any = None) -> npt.NDArray[np.intp]:
        """Fit, then `predict` the same rows; the answer is as private as the rows."""
        return self.fit(X).predict(X)

    def transform(self, X: Any) -> Reals:
        """The distance of each row to each centre."""
        check_fitted(self)
        rows = self._ball_.clipped(self._matrix(X, reset=False))
        return np.asarray(cdist(rows, self.cluster_centers_))

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the sum of squared distances of these rows to their centres; as private as the rows."""
        return -float((self.transform(X).min(axis=1) ** 2).sum())

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _story(self) -> list[str]:
        return [
            f"Rows further than {self._ball_.reach:.4g} from the middle were moved to that distance.",
            *(
                [
                    "A fifth of the budget released the mean and covariance that the first centres were made from."
                ]
                if not self._given_
                else ["The first centres were given."]
            ),
            f"The size and the sum of each cluster were released {self.n_iter_} times, with Gaussian noise.",
        ]


def _declared(init: Any, clusters: int, features: int) -> Reals | None:
    """Public centres, or None where they are to be made."""
    if isinstance(init, str):
        check.choice(("sobol",), init=init)
        return None
    try:
        centres = np.asarray(init, np.float64)
    except (TypeError, ValueError, OverflowError):
        centres = np.zeros(0)
    if centres.shape == (clusters, features) and np.isfinite(centres).all():
        return centres
    raise BadParameter(
        "DP104",
        f"init must be 'sobol', or an array of {clusters} centres of {features} finite numbers.",
        why="centres to begin with are public, or are made from what is released.",
        fix="init='sobol'",
    )
