# SPDX-License-Identifier: Apache-2.0
"""One noisy step of Lloyd's algorithm in whole numbers, and centres to begin with.

**Guarantee.** A step is one Gaussian mechanism with its noise multiplier, whatever the centres are, as long as
they follow from what was released before (joint.proof.md, 2).

Why it holds: a row of R cells at most adds α to the size of its cluster, in units of R, and itself to the
sum: together of norm R√(1 + α²). Two rows in one cluster differ by 2R at most, in different clusters by √2
R√(1 + α²). The nearest centre is found by comparing whole numbers below 2**53, so it does not depend on where
a row stands.

The constants were chosen among some forty variants on eight synthetic sets and on iris and wine, at ε = 0.1,
0.5, 1 and 4. Seeds spread over the box, without any release, did worse at every ε, and much worse where
clusters fill a small part of it.

Clusters by noisy Lloyd steps: every step releases the size and the sum of each cluster.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from scipy.special import ndtri
from scipy.stats import qmc
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin

from discreet import check
from discreet import noise as exact
from discreet.errors import BadParameter
from discreet.exact import exactly
from discreet.learn.ball import Ball, CentredMoments
from discreet.learn.base import PrivateEstimator, check_fitted
from discreet.learn.features import blocks, truncate_rows

__all__ = ["BITS", "InnerBall", "KMeans", "first_centres", "lloyd_sensitivity", "lloyd_step"]


Reals = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]

BITS = 18  # a row in steps of 2**-18 of the ball: single precision holds it
_REACH = 1.5  # rows further from the mean than so many standard deviations are moved to that distance
_SURE = 2.0  # spreads of the noise by which the variance is raised for that
_EDGE = 0.5  # of the largest eigenvalue of the noise is taken off the variances of the first centres
_INERTIA = 8.0  # spreads of the noise: a cluster of so many rows moves half of the way
_DIRECTIONS = 1_000  # in which the first centres differ, at most
_UP = 1 + 1e-12


@dataclass(frozen=True)
class InnerBall:
    """A smaller ball inside a ball of 2**BITS cells: its middle and its radius, both in whole cells."""

    middle: Reals
    radius: int

    @classmethod
    def around(cls, found: CentredMoments) -> InnerBall:
        """The ball that holds most rows, by their released mean and covariance."""
        width = len(found.mean)
        slack = _SURE * found.spread * math.sqrt(width) / found.count
        reach = _REACH * math.sqrt(max(float(np.trace(found.covariance)), 0.0) + slack)
        middle = np.rint(found.mean * 2.0**BITS)
        return cls(middle, math.ceil(2**BITS * min(reach, 1 + float(np.linalg.norm(found.mean)))))

    def cells(self, rows: Reals) -> Floats:
        """Rows of whole numbers as seen from the middle, not longer than the radius."""
        seen = rows - self.middle
        lengths = np.sqrt(
            np.einsum("ij,ij->i", seen, seen)
        )  # of whole numbers, so it does not depend on the order
        seen *= (self.radius / np.maximum(lengths, self.radius))[:, None]
        return truncate_rows(seen, float(self.radius) ** 2).astype(np.float32)

    def units(self, centres: Reals) -> Reals:
        """Centres in cells of this ball as parts of the greater one."""
        return (self.middle + centres) / 2.0**BITS


def lloyd_sensitivity(relation: str) -> tuple[float, float]:
    """How far a row of length 1 moves (α · size, sum), and α."""
    if relation == "add-remove":
        return math.sqrt(1.25) * _UP, 0.5
    return 2.0 * _UP, 1.0  # both pairs in one cluster and pairs in two reach 2: this α is free


def lloyd_step(
    rows: Sequence[Floats], centres: Reals, space: InnerBall, *, noise: float, relation: str
) -> Reals:
    """The next centres in cells of the ball, from noisy sizes and sums; a small cluster moves little."""
    centres = np.rint(_shorten(centres, space.radius))
    sizes, sums = _cluster_sums(rows, centres)
    moved, weight = lloyd_sensitivity(relation)
    spread = noise * moved
    noisy = sizes + exact.rounded_gaussian(exactly(spread / weight * _UP), sizes.shape)
    total = sums + exact.rounded_gaussian(exactly(spread * space.radius), sums.shape)
    count = np.maximum(noisy, 0)[:, None]
    held = _INERTIA * spread
    return _shorten((np.where(count > 0, total, 0) + held * centres) / (count + held), space.radius)


def _cluster_sums(
    rows: Sequence[Floats], centres: Reals
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The size and the sum of each cluster, exactly; of equally near centres the first counts."""
    sizes, sums = np.zeros(len(centres), np.int64), np.zeros(centres.shape, np.int64)
    half = (centres * centres).sum(axis=1)
    for block in rows:
        wide = block.astype(np.float64)
        nearest = (2 * (wide @ centres.T) - half).argmax(axis=1)
        inside = np.zeros((len(wide), len(centres)))
        inside[np.arange(len(wide)), nearest] = 1.0
        sizes += inside.sum(axis=0).astype(np.int64)
        sums += (inside.T @ wide).astype(np.int64)
    return sizes, sums


def _shorten(centres: Reals, radius: float) -> Reals:
    lengths = np.linalg.norm(centres, axis=1)
    return np.asarray(centres * (radius / np.maximum(lengths, radius))[:, None])


def first_centres(found: CentredMoments, count: int) -> Reals:
    """First centres in cells, as seen from the mean: Sobol points under a normal law of that covariance."""
    values, vectors = np.linalg.eigh(found.covariance)
    edge = math.sqrt(2 * len(values)) * found.spread / found.count
    likely = np.maximum(values - _EDGE * edge, 0.0)[::-1][:_DIRECTIONS]
    points = (
        qmc.Sobol(len(likely), scramble=False).fast_forward(1).random(count)
    )  # the first point is a corner
    return np.asarray((ndtri(points) * np.sqrt(likely)) @ vectors[:, ::-1][:, : len(likely)].T * 2.0**BITS)


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
    _public_start_: bool

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
        start = _public_centres(self.init, clusters, matrix.shape[1])
        share, constant = (_SHARE, _CONSTANT) if start is None else (0.0, 0.0)
        ball = Ball.of(matrix.shape[1], bounds=self.bounds, norm=self.norm, constant=constant)
        budget, progress = self._budget(), self._progress_callback()
        (each,) = budget.noise_multipliers((1 - share) / steps)
        if start is None:
            (first,) = budget.noise_multipliers(share)
            self._charge(budget.gaussian(first) + steps * budget.gaussian(each))
            found = ball.release(matrix, noise=first, budget=budget)
            space, centres = InnerBall.around(found), first_centres(found, clusters)
        else:
            self._charge(steps * budget.gaussian(each))
            space = InnerBall(np.zeros(matrix.shape[1]), 1 << BITS)
            centres = (start - ball.box.middle) / ball.size * 2.0**BITS
        rows = [space.cells(ball.cells(matrix[part], BITS)[:, : matrix.shape[1]]) for part in blocks(matrix)]
        for step in range(steps):
            centres = lloyd_step(rows, centres, space, noise=each, relation=budget.relation)
            if progress is not None:
                progress(step + 1, steps)
        self.cluster_centers_ = ball.box.middle + ball.size * space.units(centres)
        self.n_iter_, self._ball_, self._public_start_ = steps, ball, start is not None
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
        rows = self._ball_.clip(self._matrix(X, reset=False))
        return np.asarray(cdist(rows, self.cluster_centers_))

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the sum of squared distances of these rows to their centres; as private as the rows."""
        return -float((self.transform(X).min(axis=1) ** 2).sum())

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _explanation(self) -> list[str]:
        return [
            f"Rows further than {self._ball_.reach:.4g} from the middle were moved to that distance.",
            *(
                [
                    "A fifth of the budget released the mean and covariance that the first centres were made from."
                ]
                if not self._public_start_
                else ["The first centres were given."]
            ),
            f"The size and the sum of each cluster were released {self.n_iter_} times, with Gaussian noise.",
        ]


def _public_centres(init: Any, clusters: int, features: int) -> Reals | None:
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
