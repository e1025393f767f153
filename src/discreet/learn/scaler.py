# SPDX-License-Identifier: Apache-2.0
"""Features shifted to mean 0 and scaled to variance 1, by a mean and a variance that are released once."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import OneToOneFeatureMixin, TransformerMixin

from discreet import check
from discreet.errors import BadParameter
from discreet.learn.base import PrivateEstimator, check_fitted
from discreet.learn.cube import Cube
from discreet.learn.inputs import as_floats

__all__ = ["StandardScaler"]

Reals = npt.NDArray[np.float64]

_NARROWEST = 0.05  # of half the bounds: a smaller standard deviation is not told from noise


class StandardScaler(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Standardise features by means and variances that reveal at most (epsilon, delta) about any one record.

    **Guarantee.** `mean_`, `var_`, `scale_` and `n_samples_seen_` together, and everything computed from them,
    satisfy `guarantee_`. What lies outside `bounds` counts as the bound, NaN as the middle. Under
    `relation="replace"` the number of rows is public. A scale is never below 2.5 % of the width of the
    bounds, nor where it could not be told from noise.

    Why it holds: one Gaussian mechanism on (count, Σx, Σx²) of all features (joint.proof.md, 1).

    What would break it: bounds that were read off the data. The rows that `transform` returns are as private
    as the rows that it was given: only the mean and the scale were released.

    >>> import numpy as np
    >>> X = np.linspace(0, 10, 4000).reshape(-1, 1)
    >>> scaler = StandardScaler(epsilon=1, delta=1e-5, bounds=(0, 10)).fit(X)
    >>> bool(abs(scaler.mean_[0] - 5) < 0.5)
    True
    """

    bounds: Any
    with_mean: bool
    with_std: bool

    n_features_in_: int
    n_samples_seen_: int
    mean_: Reals
    var_: Reals
    scale_: Reals | None
    _shifts_: bool

    def __init__(
        self,
        *,
        epsilon: Any = None,
        delta: Any = None,
        bounds: Any = None,
        with_mean: bool = True,
        with_std: bool = True,
        relation: str = "add-remove",
        session: Any = None,
        unit: str = "record",
        progress: Any = None,
    ) -> None:
        self.epsilon, self.delta, self.bounds = epsilon, delta, bounds
        self.with_mean, self.with_std = with_mean, with_std
        self.relation, self.session, self.unit, self.progress = relation, session, unit, progress

    def fit(self, X: Any, y: Any = None) -> Self:
        """Charge, then release the mean and the variance of each feature; `y` is not looked at."""
        check.flag(with_mean=self.with_mean)
        check.flag(with_std=self.with_std)
        matrix = self._matrix(X, reset=True)
        cube, budget = Cube.of(matrix.shape[1], self.bounds), self._budget()
        self._charge(budget.gaussian(budget.noise))
        everybody = np.ones((matrix.shape[0], 1), bool)
        sums = cube.release(matrix, everybody, noise=budget.noise, relation=budget.relation)
        known = matrix.shape[0] if budget.relation == "replace" else sums.count[0]
        count = max(float(known), sums.spread, 1.0)
        mean = np.clip(sums.first[0] / count, -1.0, 1.0)
        least = min(max(_NARROWEST**2, sums.spread / count), 1.0)  # the noise in a variance is of that size
        variance = np.clip(sums.second[0] / count - mean * mean, least, 1.0)
        self.n_samples_seen_ = max(round(float(known)), 0)
        self.mean_ = cube.middle + cube.half * mean
        self.var_ = cube.half**2 * variance
        self.scale_ = np.sqrt(self.var_) if self.with_std else None
        self._shifts_ = self.with_mean
        return self

    def transform(self, X: Any) -> Any:
        """Rows with the released mean taken off and divided by the released scale; NaN stays NaN, without a warning."""
        matrix = self._transform_input(X)
        scale = np.ones(matrix.shape[1]) if self.scale_ is None else self.scale_
        with np.errstate(all="ignore"):  # a warning would tell of a value
            if sparse.issparse(matrix):
                return sparse.csr_array(matrix @ sparse.diags_array(1 / scale))
            return (matrix - self.mean_ if self._shifts_ else matrix) / scale

    def inverse_transform(self, X: Any) -> Any:
        """The rows from which `transform` makes these."""
        matrix = self._transform_input(X)
        scale = np.ones(matrix.shape[1]) if self.scale_ is None else self.scale_
        with np.errstate(all="ignore"):
            if sparse.issparse(matrix):
                return sparse.csr_array(matrix @ sparse.diags_array(scale))
            return matrix * scale + self.mean_ if self._shifts_ else matrix * scale

    def _transform_input(self, X: Any) -> Any:
        check_fitted(self)
        matrix = self._matrix(X, reset=False)
        if not sparse.issparse(matrix):
            return as_floats(matrix)
        if self._shifts_:
            raise BadParameter(
                "DP107",
                "sparse rows cannot be shifted to mean 0 and stay sparse.",
                why="every zero would become another number.",
                fix="StandardScaler(with_mean=False, …), or X.toarray()",
            )
        with np.errstate(all="ignore"):
            return matrix.astype(np.float64)

    def _explanation(self) -> list[str]:
        return [
            "Features were clipped to their declared bounds.",
            "Count and sums of features and of their squares were released once, with Gaussian noise.",
        ]
