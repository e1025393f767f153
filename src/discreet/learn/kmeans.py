# SPDX-License-Identifier: Apache-2.0
"""k-means clustering by noisy Lloyd steps: every step releases the size and the sum of each
cluster.

**Guarantee.** A step is one Gaussian mechanism with its noise multiplier, whatever the centres are,
as long as they follow from earlier releases (joint.proof.md, 2).

Why it holds: a row of at most R cells adds α to the size of its cluster, in units of R, and itself
to the sum. Together that has a norm of at most R√(1 + α²). Two rows in one cluster differ by at
most 2R, in different clusters by at most √2 R√(1 + α²). The nearest centre is found by comparing
whole numbers below 2**53, so it does not depend on the position of a row.

What would break it: a centre, a radius or a number of steps that follows from the data and not from
a release.

The constants were chosen among some forty variants on eight synthetic sets and on iris and wine, at
ε = 0.1, 0.5, 1 and 4. First centres spread over the box without any release did worse at every ε,
and much worse where clusters fill a small part of the box.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Self

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
from discreet.learn.arrays import Floats, Ints, Reals
from discreet.learn.ball import Ball, CentredMoments
from discreet.learn.base import PrivateEstimator, check_fitted
from discreet.learn.features import blocks, truncate_rows
from discreet.learn.inputs import Matrix

__all__ = ["BITS", "InnerBall", "KMeans", "first_centres", "lloyd_sensitivity", "lloyd_step"]


# A row in steps of 2**-18 of the ball: single precision holds it.
BITS = 18
# Rows more than this many standard deviations away from the mean are moved to that distance.
_REACH = 1.5
# The variance is raised for that by this many standard deviations of the noise.
_SURE = 2.0
# This fraction of the largest eigenvalue of the noise is subtracted from the variances of the first
# centres.
_EDGE = 0.5
# A cluster with as many rows as this many standard deviations of the noise moves half of the way.
_INERTIA = 8.0
# The first centres differ in at most this many directions.
_DIRECTIONS = 1_000
_UP = 1 + 1e-12


@dataclass(frozen=True)
class InnerBall:
    """A smaller ball inside a ball of 2**BITS cells: its middle and its radius, both in whole
    cells.
    """

    middle: Reals
    radius: int

    @classmethod
    def around(cls, moments: CentredMoments) -> InnerBall:
        """The ball that holds most rows, by their released mean and covariance."""
        width = len(moments.mean)
        slack = _SURE * moments.spread * math.sqrt(width) / moments.count
        reach = _REACH * math.sqrt(max(float(np.trace(moments.covariance)), 0.0) + slack)
        middle = np.rint(moments.mean * 2.0**BITS)
        return cls(middle, math.ceil(2**BITS * min(reach, 1 + float(np.linalg.norm(moments.mean)))))

    def cells(self, rows: Reals) -> Floats:
        """Rows of whole numbers relative to the middle, no longer than the radius."""
        offsets = rows - self.middle
        # a sum of whole numbers does not depend on the order
        lengths = np.sqrt(np.einsum("ij,ij->i", offsets, offsets))
        offsets *= (self.radius / np.maximum(lengths, self.radius))[:, None]
        return truncate_rows(offsets, float(self.radius) ** 2).astype(np.float32)

    def units(self, centres: Reals) -> Reals:
        """Centres in cells of this ball as fractions of the greater ball."""
        return (self.middle + centres) / 2.0**BITS


def lloyd_sensitivity(relation: str) -> tuple[float, float]:
    """How far a row of length 1 moves (α · size, sum), and α."""
    if relation == "add-remove":
        return math.sqrt(1.25) * _UP, 0.5
    # pairs in one cluster and pairs in two both differ by up to 2, so this α costs nothing
    return 2.0 * _UP, 1.0


def lloyd_step(
    rows: Sequence[Floats], centres: Reals, space: InnerBall, *, noise: float, relation: str
) -> Reals:
    """The next centres in cells of the ball, from noisy sizes and sums. A small cluster moves
    little.
    """
    centres = np.rint(_shorten(centres, space.radius))
    sizes, sums = _cluster_sums(rows, centres)
    sensitivity, weight = lloyd_sensitivity(relation)
    spread = noise * sensitivity
    noisy = sizes + exact.rounded_gaussian(exactly(spread / weight * _UP), sizes.shape)
    total = sums + exact.rounded_gaussian(exactly(spread * space.radius), sums.shape)
    count = np.maximum(noisy, 0)[:, None]
    inertia = _INERTIA * spread
    return _shorten((np.where(count > 0, total, 0) + inertia * centres) / (count + inertia), space.radius)


def _cluster_sums(rows: Sequence[Floats], centres: Reals) -> tuple[Ints, Ints]:
    """The exact size and sum of each cluster. Of equally near centres the first counts."""
    sizes, sums = np.zeros(len(centres), np.int64), np.zeros(centres.shape, np.int64)
    # ‖x - c‖² = ‖x‖² - (2 x·c - ‖c‖²), so the nearest centre has the largest 2 x·c - ‖c‖².
    squares = (centres * centres).sum(axis=1)
    for block in rows:
        doubles = block.astype(np.float64)
        nearest = (2 * (doubles @ centres.T) - squares).argmax(axis=1)
        inside = np.zeros((len(doubles), len(centres)))
        inside[np.arange(len(doubles)), nearest] = 1.0
        sizes += inside.sum(axis=0).astype(np.int64)
        sums += (inside.T @ doubles).astype(np.int64)
    return sizes, sums


def _shorten(centres: Reals, radius: float) -> Reals:
    lengths = np.linalg.norm(centres, axis=1)
    return np.asarray(centres * (radius / np.maximum(lengths, radius))[:, None])


def first_centres(moments: CentredMoments, count: int) -> Reals:
    """First centres in cells relative to the mean: Sobol points under a normal distribution of that
    covariance.
    """
    values, vectors = np.linalg.eigh(moments.covariance)
    edge = math.sqrt(2 * len(values)) * moments.spread / moments.count
    likely = np.maximum(values - _EDGE * edge, 0.0)[::-1][:_DIRECTIONS]
    # the first point is a corner
    points = qmc.Sobol(len(likely), scramble=False).fast_forward(1).random(count)
    return np.asarray((ndtri(points) * np.sqrt(likely)) @ vectors[:, ::-1][:, : len(likely)].T * 2.0**BITS)


# The fraction of the budget for the mean and the covariance from which the first centres follow.
_FRACTION = 0.2
# The constant column from which that mean and the count are read, as a fraction of the norm of the
# rest.
_CONSTANT = 0.5


@dataclass(kw_only=True, repr=False, eq=False)
class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, PrivateEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """k-means clustering whose centres reveal at most (epsilon, delta) about any one record.

    **Guarantee.** `cluster_centers_` and everything computed from them satisfy `guarantee_`.
    Features are clipped to their `bounds`, and rows to a distance of `norm` from the middle of the
    bounds (from zero without bounds). NaN counts as the middle. The fit makes `max_iter` steps,
    whatever the data are.

    There is no `labels_` and no `inertia_`: the clusters of the records and their distances to the
    centres are not released. `predict` answers for any row, and its answer about a private row is
    as private as that row.

    Why it holds: one Gaussian mechanism for mean and covariance (a fifth of the budget) and one for
    each step. A row adds (αR, x) to its cluster, with a norm of at most R√(1 + α²) (joint.proof.md,
    2 and 3). The cluster of a row is found in whole numbers, from that row and from released
    centres alone.

    What would break it: bounds or centres that were read off the data.

    Parameters:

    - `n_clusters`: how many clusters. `max_iter`: how many steps; the budget is split among them.
    - `init`: `"sobol"`, or an array of public centres, and then the whole budget goes to the steps.
      Sobol points do not depend on the data; they are mapped to a normal distribution with the
      released mean and covariance.
    - `epsilon`, `delta`: how much one fit may reveal. There is no default.
    - `bounds`: the low and the high end of the features, each one number or one number per feature,
      or `{column: (low, high)}`.
      `norm`: the greatest distance of a row from their middle. One of the two is needed.
    - `relation`: `"add-remove"`, where the number of rows is secret, or `"replace"`, where it is
      public.
    - `session`: is charged before the data are read. `unit`: what one row stands for, as the
      session protects it.
    - `progress`: True for a progress bar, or a function of (steps done, steps in total).

    >>> import numpy as np
    >>> X = np.repeat([[-0.5, 0.0], [0.5, 0.0]], 2000, axis=0)
    >>> model = KMeans(2, epsilon=1, delta=1e-5, bounds=(-1, 1)).fit(X)
    >>> [round(abs(float(x)), 1) for x in model.cluster_centers_[:, 0]]
    [0.5, 0.5]
    """

    n_clusters: int = field(default=8, kw_only=False)
    init: npt.ArrayLike | Literal["sobol"] = "sobol"
    max_iter: int = 5
    norm: float | None = None

    cluster_centers_: Reals = field(init=False)
    n_iter_: int = field(init=False)
    n_features_in_: int = field(init=False)
    _ball_: Ball = field(init=False)
    _public_start_: bool = field(init=False)

    def fit(self, X: Matrix, y: object = None) -> Self:
        """Charge the cost, then release the centres. `y` is ignored."""
        clusters, steps = check.whole(n_clusters=self.n_clusters), check.whole(max_iter=self.max_iter)
        matrix = self._matrix(X, reset=True)
        start = _public_centres(self.init, clusters, matrix.shape[1])
        fraction, constant = (_FRACTION, _CONSTANT) if start is None else (0.0, 0.0)
        ball = Ball.of(
            matrix.shape[1], bounds=self._bounds_pair(matrix.shape[1]), norm=self.norm, constant=constant
        )
        budget, progress = self._budget(), self._progress_callback()
        (step_noise,) = budget.noise_multipliers((1 - fraction) / steps)
        if start is None:
            (moments_noise,) = budget.noise_multipliers(fraction)
            self._charge(budget.gaussian(moments_noise) + steps * budget.gaussian(step_noise))
            moments = ball.release(matrix, noise=moments_noise, budget=budget)
            space, centres = InnerBall.around(moments), first_centres(moments, clusters)
        else:
            self._charge(steps * budget.gaussian(step_noise))
            space = InnerBall(np.zeros(matrix.shape[1]), 1 << BITS)
            centres = (start - ball.box.middle) / ball.size * 2.0**BITS
        rows = [space.cells(ball.cells(matrix[part], BITS)[:, : matrix.shape[1]]) for part in blocks(matrix)]
        for step in range(steps):
            centres = lloyd_step(rows, centres, space, noise=step_noise, relation=budget.relation)
            if progress is not None:
                progress(step + 1, steps)
        self.cluster_centers_ = ball.box.middle + ball.size * space.units(centres)
        self.n_iter_, self._ball_, self._public_start_ = steps, ball, start is not None
        return self

    def predict(self, X: Matrix) -> npt.NDArray[np.intp]:
        """The index of the nearest centre. Rows are clipped to the bounds of the fit."""
        return np.asarray(self.transform(X).argmin(axis=1))

    def fit_predict(self, X: Matrix, y: object = None) -> npt.NDArray[np.intp]:
        """Fit, then `predict` the same rows. The answer is as private as the rows."""
        return self.fit(X).predict(X)

    def transform(self, X: Matrix) -> Reals:
        """The distance of each row to each centre."""
        check_fitted(self)
        rows = self._ball_.clip(self._matrix(X, reset=False))
        return np.asarray(cdist(rows, self.cluster_centers_))

    def score(self, X: Matrix, y: object = None) -> float:
        """Minus the sum of squared distances of these rows to their centres. It is as private as
        the rows.
        """
        return -float((self.transform(X).min(axis=1) ** 2).sum())

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _explanation(self) -> list[str]:
        return [
            f"Rows more than {self._ball_.reach:.4g} away from the middle of the bounds were moved to that distance.",
            *(
                [
                    "A fifth of the budget released the mean and covariance from which the first centres follow."
                ]
                if not self._public_start_
                else ["The caller passed the first centres, which count as public."]
            ),
            f"The size and the sum of each cluster were released {self.n_iter_} times, with Gaussian noise.",
        ]


def _public_centres(init: object, clusters: int, features: int) -> Reals | None:
    """Public centres, or None if they are to be computed."""
    if isinstance(init, str):
        check.choice(("sobol",), init=init)
        return None
    try:
        centres: Reals = np.asarray(init, np.float64)
    except (TypeError, ValueError, OverflowError):
        centres = np.zeros(0)
    if centres.shape == (clusters, features) and np.isfinite(centres).all():
        return centres
    raise BadParameter(
        "DP104",
        f"init must be 'sobol', or an array of {clusters} centres of {features} finite numbers.",
        why="the first centres are public, or follow from a release.",
        fix="init='sobol'",
    )
