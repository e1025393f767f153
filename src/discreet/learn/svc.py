# SPDX-License-Identifier: Apache-2.0
"""A private linear support vector classifier."""

from __future__ import annotations

from typing import Any, Self

from discreet.learn.glm import LinearClassifier
from discreet.learn.losses import Hinge

__all__ = ["LinearSVC"]


class LinearSVC(LinearClassifier):
    """A linear classifier by the smoothed hinge loss: one score for two classes, one against the rest for more.

    **Guarantee.** That of LogisticRegression.

    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 2000).reshape(-1, 1)
    >>> model = LinearSVC(epsilon=1, delta=1e-5, bounds=(-1, 1), classes=["no", "yes"])
    >>> labels = np.where(X[:, 0] > 0, "yes", "no")
    >>> bool(model.fit(X, labels).score(X, labels) > 0.9)
    True
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Charge, then fit."""
        self._classify(X, y, Hinge(), low=-1.0)
        return self
