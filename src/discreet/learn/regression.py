# SPDX-License-Identifier: Apache-2.0
"""Private linear regression: least squares, with and without a penalty, and a loss that is robust
to outliers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from discreet import check
from discreet.learn.arrays import Reals
from discreet.learn.features import Box
from discreet.learn.glm import LinearRegressor
from discreet.learn.inference import Intervals
from discreet.learn.inputs import Matrix, Target, target_interval
from discreet.learn.losses import Huber, Squared
from discreet.learn.solvers import RegressorSolver, RobustSolver

__all__ = ["HuberRegression", "LinearRegression", "Ridge"]


@dataclass(kw_only=True, repr=False, eq=False)
class LinearRegression(LinearRegressor):
    """Least squares whose coefficients reveal at most (epsilon, delta) about any one record.

    **Guarantee.** `guarantee_` holds for the coefficients and for everything computed from them. If
    one row is added or removed (`relation="replace"`: exchanged), no probability changes by more
    than a factor of e^ε, except for δ. Bounds of the features and of the target are declared and
    never read off the data. Values outside are clipped, and NaN counts as the middle.

    Why it holds: by the proof of the solver. `whitened` (the default up to 2,000 features),
    `gradient`, `joint` (one release, from which confidence intervals follow) and `adassp` are
    explained in the files with these names.

    What would break it: bounds or an ε that were chosen by looking at the data.

    Parameters:

    - `epsilon`, `delta`: how much one fit may reveal. There is no default.
    - `bounds`: the low and the high end of the features, each one number or one number per feature,
      or `{column: (low, high)}`.
      Values outside are clipped. `norm`: the greatest length of a row after each feature was scaled
      to [-1, 1]; longer rows are shortened. One of the two is needed.
    - `target_bounds`: the low and the high end of the target. Targets outside are clipped.
    - `solver`: how the model is fitted; see the reference page "Solvers".
    - `relation`: `"add-remove"`, where the number of rows is secret, or `"replace"`, where it is
      public.
    - `session`: is charged before the data are read. `unit`: what one row stands for, as the
      session protects it.
    - `progress`: True for a progress bar, or a function of (steps done, steps in total).
    - `inference`: True spends 8 % of the same budget on what the confidence intervals of the
      default solver need; see `conf_int`.

    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 2000).reshape(-1, 1)
    >>> model = LinearRegression(epsilon=1, delta=1e-5, bounds=(-1, 1), target_bounds=(-2, 2))
    >>> bool(abs(model.fit(X, 2 * X[:, 0]).coef_[0] - 2) < 0.3)
    True
    """

    solver: RegressorSolver = "auto"
    inference: bool = False

    def fit(self, X: Matrix, y: Target) -> Self:
        """Charge the cost, then fit the model to rows `X` and targets `y`."""
        self._regress(X, y, Squared(), inference=self.inference)
        return self

    def conf_int(self, confidence: float = 0.95) -> Intervals:
        """Confidence intervals of the coefficients and the intercept, after `inference=True` or
        `solver="joint"`.

        They cover the noise as well as the sampling error, provided that targets are linear in the
        features with errors of one variance. If the releases do not support intervals, they are
        refused with the reason (DP301).
        """
        return self._intervals(confidence)


@dataclass(kw_only=True, repr=False, eq=False)
class Ridge(LinearRegression):
    """Least squares with a penalty `alpha` on the squared length of the coefficients, as
    scikit-learn defines it.

    **Guarantee.** The guarantee of `LinearRegression`. The penalty is public.

    Why it holds: the penalty depends on no record, so the proof of the solver applies unchanged.

    What would break it: an `alpha` that was chosen by looking at the data (use `tune`, which pays
    for that).

    Parameters: those of `LinearRegression`, and `alpha`, the weight of the penalty (0 or more).

    >>> Ridge(alpha=0.5, epsilon=1, delta=1e-5, bounds=(0, 1), target_bounds=(0, 1)).alpha
    0.5
    """

    alpha: float = 1.0

    def _penalty(self, box: Box) -> Reals:
        """The penalty on weights on rows. A coefficient is such a weight over the length of a row
        and half the bounds.
        """
        penalty = np.zeros(box.width)
        penalty[: len(box.half)] = check.not_negative(alpha=self.alpha) / (box.length * box.half) ** 2
        return penalty


#: The default width, as a fraction of the distance between the target's bounds.
_WIDTH = 0.1


@dataclass(kw_only=True, repr=False, eq=False)
class HuberRegression(LinearRegressor):
    """Regression in which errors beyond `width` count linearly, so that a few outliers do not
    dominate it.

    **Guarantee.** The guarantee of `LinearRegression`. The width is public.

    Why it holds: by the proof of the solver: `whitened`, `gradient` or `output`.

    What would break it: bounds, a width or an ε that were chosen by looking at the data.

    Parameters: those of `LinearRegression` without `inference`, and `width` in units of the target.
    Without a `width` it is a tenth of the distance between the target's bounds.

    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 2000).reshape(-1, 1)
    >>> model = HuberRegression(epsilon=1, delta=1e-5, bounds=(-1, 1), target_bounds=(-2, 2))
    >>> bool(abs(model.fit(X, X[:, 0]).coef_[0] - 1) < 0.3)
    True
    """

    solver: RobustSolver = "auto"
    width: float | None = None
    _solvers: ClassVar[tuple[str, ...]] = ("whitened", "gradient", "output")

    def fit(self, X: Matrix, y: Target) -> Self:
        """Charge the cost, then fit the model to rows `X` and targets `y`."""
        low, high = target_interval(self.target_bounds)
        width = 2 * _WIDTH if self.width is None else check.moderate(width=self.width) / (high / 2 - low / 2)
        self._regress(X, y, Huber(width))
        return self
