# SPDX-License-Identifier: Apache-2.0
"""Private least squares, with and without a penalty.

Private regression that a few wild targets do not move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from discreet import check
from discreet.learn.features import Box
from discreet.learn.glm import LinearRegressor
from discreet.learn.inference import Intervals
from discreet.learn.inputs import target_interval
from discreet.learn.losses import Huber, Squared

__all__ = ["HuberRegression", "LinearRegression", "Ridge"]


Reals = npt.NDArray[np.float64]


@dataclass(kw_only=True, repr=False, eq=False)
class LinearRegression(LinearRegressor):
    """Least squares whose coefficients reveal at most (epsilon, delta) about any one record.

    **Guarantee.** `guarantee_` holds for the coefficients and everything computed from them: adding or removing one row
    (`relation="replace"`: exchanging one) changes no probability by more than e^ε, but for δ. Bounds of features and of
    the target are declared and never read off the data; what lies outside is clipped, NaN counts as the middle.

    Why it holds: the proof of the solver: `whitened` (the default up to 2,000 features), `gradient`, `joint` (one release from which
    confidence intervals follow) or `adassp`.

    What would break it: bounds that were read off the data.

    `inference=True` spends 8 % of the same budget on what the confidence intervals of the usual solver need; see `conf_int`.

    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 2000).reshape(-1, 1)
    >>> model = LinearRegression(epsilon=1, delta=1e-5, bounds=(-1, 1), target_bounds=(-2, 2))
    >>> bool(abs(model.fit(X, 2 * X[:, 0]).coef_[0] - 2) < 0.3)
    True
    """

    inference: bool = False

    def fit(self, X: Any, y: Any) -> Self:
        """Charge, then fit."""
        self._regress(X, y, Squared(), inference=self.inference)
        return self

    def conf_int(self, confidence: float = 0.95) -> Intervals:
        """Confidence intervals of the coefficients and the intercept, after a fit with `inference=True` or `solver="joint"`.

        They allow for the noise as well as for the sample, if targets are linear in the features with errors of one
        variance; where the releases do not support any, they are refused with the reason (DP301).
        """
        return self._intervals(confidence)


@dataclass(kw_only=True, repr=False, eq=False)
class Ridge(LinearRegression):
    """Least squares with a penalty `alpha` on the squared length of the coefficients, as scikit-learn writes it.

    **Guarantee.** That of LinearRegression; the penalty is public.

    >>> Ridge(alpha=0.5, epsilon=1, delta=1e-5, bounds=(0, 1), target_bounds=(0, 1)).alpha
    0.5
    """

    alpha: Any = 1.0

    def _penalty(self, box: Box) -> Reals:
        """Of weights on rows: a coefficient is such a weight over the length of a row and half the bounds."""
        penalty = np.zeros(box.width)
        penalty[: len(box.half)] = check.not_negative(alpha=self.alpha) / (box.length * box.half) ** 2
        return penalty


_WIDTH = 0.1  # of the width of the target's bounds


@dataclass(kw_only=True, repr=False, eq=False)
class HuberRegression(LinearRegressor):
    """Regression that counts errors beyond `width` (in units of the target) linearly.

    **Guarantee.** That of LinearRegression. `width` is public; without one it is a tenth of the target's bounds.

    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 2000).reshape(-1, 1)
    >>> model = HuberRegression(epsilon=1, delta=1e-5, bounds=(-1, 1), target_bounds=(-2, 2))
    >>> bool(abs(model.fit(X, X[:, 0]).coef_[0] - 1) < 0.3)
    True
    """

    width: Any = None
    _solvers: ClassVar[tuple[str, ...]] = ("whitened", "gradient", "output")

    def fit(self, X: Any, y: Any) -> Self:
        """Charge, then fit."""
        low, high = target_interval(self.target_bounds)
        width = 2 * _WIDTH if self.width is None else check.moderate(width=self.width) / (high / 2 - low / 2)
        self._regress(X, y, Huber(width))
        return self
