# SPDX-License-Identifier: Apache-2.0
"""Principal components from a mean and a second-moment matrix that are released once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from discreet import check
from discreet.errors import BadParameter
from discreet.learn.arrays import Reals
from discreet.learn.ball import Ball
from discreet.learn.base import PrivateEstimator, check_fitted
from discreet.learn.inputs import Matrix, as_floats, as_matrix

__all__ = ["PCA"]


# The constant column from which mean and count are read, as a fraction of the norm of the rest.
_CONSTANT = 0.3
# The least variance that whitening divides by, as a fraction of the largest.
_LEAST = 1e-12


@dataclass(kw_only=True, repr=False, eq=False)
class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Principal components that reveal at most (epsilon, delta) about any one record.

    **Guarantee.** All attributes together, and everything computed from them, satisfy `guarantee_`.
    Features are clipped to their `bounds`, and rows to a distance of `norm` from the middle of the
    bounds (from zero without bounds). NaN counts as the middle.

    Why it holds: one Gaussian mechanism on Σ(x, v)(x, v)ᵀ for a constant v (joint.proof.md, 3);
    mean, count, covariance and components are read from it.

    What would break it: bounds that were read off the data. The rows that `transform` returns are
    as private as the rows that it was given.

    Noise adds to the variances of weak components. Do not trust components whose variance is below
    about √(2d) times the standard deviation of the noise.

    Parameters:

    - `n_components`: how many components, or the fraction of the variance (between 0 and 1) that
      they explain; None for all. `whiten`: scale the coordinates to variance 1.
    - `epsilon`, `delta`: how much one fit may reveal. There is no default.
    - `bounds`: the low and the high end of the features, each one number or one number per feature,
      or `{column: (low, high)}`.
      `norm`: the greatest distance of a row from their middle. One of the two is needed.
    - `relation`: `"add-remove"`, where the number of rows is secret, or `"replace"`, where it is
      public.
    - `session`: is charged before the data are read. `unit`: what one row stands for, as the
      session protects it.
    - `progress` has no effect: there is only one release.

    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 3000)[:, None] * [1.0, 0.5]
    >>> pca = PCA(1, epsilon=1, delta=1e-5, bounds=(-1, 1)).fit(X)
    >>> bool(abs(pca.components_[0, 1] / pca.components_[0, 0] - 0.5) < 0.2)
    True
    """

    n_components: float | None = field(default=None, kw_only=False)
    whiten: bool = False
    norm: float | None = None

    components_: Reals = field(init=False)
    explained_variance_: Reals = field(init=False)
    explained_variance_ratio_: Reals = field(init=False)
    mean_: Reals = field(init=False)
    n_components_: int = field(init=False)
    n_samples_: int = field(init=False)
    n_features_in_: int = field(init=False)
    _ball_: Ball = field(init=False)
    _whitens_: bool = field(init=False)

    def fit(self, X: Matrix, y: object = None) -> Self:
        """Charge the cost, then release the moments. `y` is ignored."""
        check.flag(whiten=self.whiten)
        matrix = self._matrix(X, reset=True)
        wanted = _component_count(self.n_components, matrix.shape[1])
        ball = Ball.of(
            matrix.shape[1], bounds=self._bounds_pair(matrix.shape[1]), norm=self.norm, constant=_CONSTANT
        )
        budget = self._budget()
        self._charge(budget.gaussian(budget.noise))
        moments = ball.release(matrix, noise=budget.noise, budget=budget)
        values, vectors = np.linalg.eigh(moments.covariance)
        variances = np.maximum(values[::-1], 0.0) * ball.size**2
        ratios = variances / max(float(variances.sum()), np.finfo(float).tiny)
        components = (
            wanted if isinstance(wanted, int) else int(np.searchsorted(np.cumsum(ratios), wanted)) + 1
        )
        self.n_components_ = min(components, len(variances))
        self.components_ = _orient(vectors[:, ::-1].T[: self.n_components_])
        self.explained_variance_ = variances[: self.n_components_]
        self.explained_variance_ratio_ = ratios[: self.n_components_]
        self.mean_ = ball.box.middle + ball.size * moments.mean
        self.n_samples_ = round(moments.count)
        self._ball_, self._whitens_ = ball, self.whiten
        return self

    def transform(self, X: Matrix) -> Reals:
        """The coordinates of rows along the components. Rows are clipped to the bounds of the fit."""
        check_fitted(self)
        rows = self._ball_.clip(self._matrix(X, reset=False)) - self.mean_
        turned: Reals = rows @ self.components_.T
        return turned / self._lengths() if self._whitens_ else turned

    def inverse_transform(self, X: Matrix) -> Reals:
        """The rows with these coordinates along the components."""
        check_fitted(self)
        turned = as_floats(as_matrix(X))
        if turned.shape[1] != self.n_components_:
            raise BadParameter(
                "DP104",
                f"X must have {self.n_components_} columns, one for each component.",
                why="each column is the coordinate along one component.",
                fix="pass what transform returned",
            )
        return np.asarray(
            (turned * self._lengths() if self._whitens_ else turned) @ self.components_ + self.mean_
        )

    def get_covariance(self) -> Reals:
        """The covariance of the features, as far as the components explain it."""
        check_fitted(self)
        return np.asarray(self.components_.T * self.explained_variance_ @ self.components_)

    def _lengths(self) -> Reals:
        largest = max(float(self.explained_variance_.max()), np.finfo(float).tiny)
        return np.sqrt(np.maximum(self.explained_variance_, _LEAST * largest))

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _explanation(self) -> list[str]:
        return [
            f"Rows more than {self._ball_.reach:.4g} away from the middle of the bounds were moved to that distance.",
            "The count, the sums of features and the sums of their products were released once, with Gaussian noise.",
        ]


def _component_count(components: float | None, features: int) -> int | float:
    """How many components, or the fraction of the variance that they explain."""
    if components is None:
        return features
    if isinstance(components, float | np.floating):
        return check.inner_probability(n_components=components)
    wanted = check.whole(n_components=components)
    if wanted > features:
        raise BadParameter(
            "DP102",
            f"n_components must be at most {features}, the number of features.",
            why="there are no more directions than features.",
            fix=f"n_components={features}",
        )
    return wanted


def _orient(rows: Reals) -> Reals:
    """Each row with the sign that makes its largest entry positive, so that a direction has one
    form.
    """
    largest = np.abs(rows).argmax(axis=1)
    return np.asarray(rows * np.sign(rows[np.arange(len(rows)), largest])[:, None])
