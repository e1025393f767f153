# SPDX-License-Identifier: Apache-2.0
"""Private regression that a few wild targets do not move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from discreet import check
from discreet.learn.glm import LinearRegressor, target_ends
from discreet.learn.losses import Huber

__all__ = ["HuberRegression"]

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
        low, high = target_ends(self.target_bounds)
        width = 2 * _WIDTH if self.width is None else check.moderate(width=self.width) / (high / 2 - low / 2)
        self._regress(X, y, Huber(width))
        return self
