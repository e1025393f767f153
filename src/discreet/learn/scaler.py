# SPDX-License-Identifier: Apache-2.0
"""Features shifted to mean 0 and scaled to variance 1, by a mean and a variance that are released
once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from scipy import sparse
from sklearn.base import OneToOneFeatureMixin, TransformerMixin

from discreet import check
from discreet.errors import BadParameter
from discreet.learn.arrays import Reals, RealTable
from discreet.learn.base import PrivateEstimator, check_fitted
from discreet.learn.cube import Cube
from discreet.learn.inputs import Matrix, as_floats

__all__ = ["StandardScaler"]


# A smaller standard deviation, as a fraction of half the bounds, is not distinguished from noise.
_NARROWEST = 0.05


@dataclass(kw_only=True, repr=False, eq=False)
class StandardScaler(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Standardise features by means and variances that reveal at most (epsilon, delta) about any
    one record.

    **Guarantee.** `mean_`, `var_`, `scale_` and `n_samples_seen_` together, and everything computed
    from them, satisfy `guarantee_`. Values outside `bounds` count as the bound, and NaN counts as
    the middle. Under `relation="replace"` the number of rows is public. A scale is never below 2.5
    % of the width of the bounds, nor below what can be distinguished from noise.

    Why it holds: one Gaussian mechanism on (count, Σx, Σx²) of all features (joint.proof.md, 1).

    What would break it: bounds that were read off the data. The rows that `transform` returns are
    as private as the rows that it was given: only the mean and the scale were released.

    Parameters:

    - `epsilon`, `delta`: how much one fit may reveal. There is no default.
    - `bounds`: the low and the high end of the features, each one number or one number per feature,
      or `{column: (low, high)}`.
    - `with_mean`: shift to mean 0. `with_std`: scale to variance 1.
    - `relation`: `"add-remove"`, where the number of rows is secret, or `"replace"`, where it is
      public.
    - `session`: is charged before the data are read. `unit`: what one row stands for, as the
      session protects it.
    - `progress` has no effect: there is only one release.

    >>> import numpy as np
    >>> X = np.linspace(0, 10, 4000).reshape(-1, 1)
    >>> scaler = StandardScaler(epsilon=1, delta=1e-5, bounds=(0, 10)).fit(X)
    >>> bool(abs(scaler.mean_[0] - 5) < 0.5)
    True
    """

    with_mean: bool = True
    with_std: bool = True

    n_features_in_: int = field(init=False)
    n_samples_seen_: int = field(init=False)
    mean_: Reals = field(init=False)
    var_: Reals = field(init=False)
    scale_: Reals | None = field(init=False)
    _shifts_: bool = field(init=False)

    def fit(self, X: Matrix, y: object = None) -> Self:
        """Charge the cost, then release the mean and the variance of each feature. `y` is ignored."""
        check.flag(with_mean=self.with_mean)
        check.flag(with_std=self.with_std)
        matrix = self._matrix(X, reset=True)
        cube, budget = Cube.of(matrix.shape[1], self._bounds_pair(matrix.shape[1])), self._budget()
        self._charge(budget.gaussian(budget.noise))
        one_group = np.ones((matrix.shape[0], 1), bool)
        sums = cube.release(matrix, one_group, noise=budget.noise, relation=budget.relation)
        known = matrix.shape[0] if budget.relation == "replace" else sums.count[0]
        count = max(float(known), sums.spread, 1.0)
        mean = np.clip(sums.first[0] / count, -1.0, 1.0)
        # the noise in a variance is of this size
        least = min(max(_NARROWEST**2, sums.spread / count), 1.0)
        variance = np.clip(sums.second[0] / count - mean * mean, least, 1.0)
        self.n_samples_seen_ = max(round(float(known)), 0)
        self.mean_ = cube.middle + cube.half * mean
        self.var_ = cube.half**2 * variance
        self.scale_ = np.sqrt(self.var_) if self.with_std else None
        self._shifts_ = self.with_mean
        return self

    def transform(self, X: Matrix) -> RealTable:
        """Rows minus the released mean, divided by the released scale. NaN stays NaN."""
        matrix = self._transform_input(X)
        scale = np.ones(matrix.shape[1]) if self.scale_ is None else self.scale_
        # A warning would reveal a value.
        with np.errstate(all="ignore"):
            if sparse.issparse(matrix):
                return sparse.csr_array(matrix @ sparse.diags_array(1 / scale))
            return (matrix - self.mean_ if self._shifts_ else matrix) / scale

    def inverse_transform(self, X: Matrix) -> RealTable:
        """The rows that `transform` turns into these."""
        matrix = self._transform_input(X)
        scale = np.ones(matrix.shape[1]) if self.scale_ is None else self.scale_
        with np.errstate(all="ignore"):
            if sparse.issparse(matrix):
                return sparse.csr_array(matrix @ sparse.diags_array(scale))
            return matrix * scale + self.mean_ if self._shifts_ else matrix * scale

    def _transform_input(self, X: Matrix) -> RealTable:
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
            "The count, the sums of features and the sums of their squares were released once, with Gaussian noise.",
        ]
