# SPDX-License-Identifier: Apache-2.0
"""Private logistic regression, binary and multinomial.

A private linear support vector classifier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from discreet import check
from discreet.learn.glm import LinearClassifier
from discreet.learn.inference import Intervals
from discreet.learn.losses import Hinge, Logistic, Softmax

__all__ = ["LinearSVC", "LogisticRegression"]


Reals = npt.NDArray[np.float64]

#: Clips of a typical slope up to which probabilities are corrected in full, and from which on not at all.
_CLIPPED, _UNCLIPPED = 0.4, 0.6


@dataclass(kw_only=True, repr=False, eq=False)
class LogisticRegression(LinearClassifier):
    """Logistic regression whose coefficients reveal at most (epsilon, delta) about any one record.

    **Guarantee.** `guarantee_` holds for the coefficients and everything computed from them: adding or removing one row
    (`relation="replace"`: exchanging one) changes no probability by more than e^ε, but for δ. Which labels exist and
    where features lie is declared (`classes`, `bounds` or `norm`) and never read off the data; a row with another
    label is left out, NaN counts as the middle of its bounds, and no data value is an error.

    Why it holds: the proof of the solver, `whitened` (the default up to 2,000 features), `gradient`, `objective` or `output`;
    see the files of that name. With a `session` the whole cost is charged before the data are read.

    What would break it: bounds, classes or a choice of ε that were read off the data; a fit that was repeated until it
    looked good (use `tune`, which pays for that).

    With many rows the default solver tends to the maximum-likelihood fit. `loss="robust"` caps the pull of every record
    instead, whatever their number: it can classify better where no linear model fits, but its coefficients are biased.
    `inference=True` spends 6 % of the same budget on what confidence intervals need, and clips less; then see `conf_int`.

    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 2000).reshape(-1, 1)
    >>> model = LogisticRegression(epsilon=1, delta=1e-5, bounds=(-1, 1), classes=[0, 1])
    >>> bool(model.fit(X, X[:, 0] > 0).score(X, X[:, 0] > 0) > 0.9)
    True
    """

    loss: str = "log"
    inference: bool = False

    def fit(self, X: Any, y: Any) -> Self:
        """Charge, then fit."""
        is_robust = check.choice(("log", "robust"), loss=self.loss) == "robust"
        loss = Logistic(is_robust) if _is_binary(self.classes) else Softmax(is_robust)
        self._classify(X, y, loss, low=0.0, inference=self.inference)
        return self

    def conf_int(self, confidence: float = 0.95) -> Intervals:
        """Confidence intervals of the coefficients and the intercept, after a fit with `inference=True`.

        They allow for the noise as well as for the sample, if the log-odds are linear in the features; where
        too much was clipped or the noise hides too much, they are refused with the reason (DP301).
        """
        return self._intervals(confidence)

    def predict_proba(self, X: Any) -> Reals:
        """How likely each class is; of two classes with a correction for the clipping of gradients."""
        scores = self.decision_function(X)
        if scores.ndim == 2:
            return np.asarray(softmax(scores, axis=1))
        second = _likely(scores, self._fit_.slope)
        return np.stack([1 - second, second], axis=1)

    def predict_log_proba(self, X: Any) -> Reals:
        """Their logarithms; -∞ where a probability rounds to 0."""
        with np.errstate(divide="ignore"):  # a warning would tell of a row
            return np.log(self.predict_proba(X))


def _likely(scores: Reals, slope: float | None) -> Reals:
    """P(second class) by a score that was learned with slopes clipped at `slope`.

    Where clipping binds, the score s of the best model has σ(-|s|) η = slope (1 - η), η the probability of the likelier
    class, and no score in between is preferred. Records are clipped by different amounts, so half of this link and
    half of the usual one is taken; on simulated data it lowers the log-loss by up to a third. From a slope of 0.6 on
    hardly a record is clipped, and the usual link is right.
    """
    plain = np.asarray(expit(scores))
    if slope is None or slope >= _UNCLIPPED:
        return plain
    unlikely = np.asarray(expit(-np.abs(scores)))
    likelier = np.where(unlikely < slope, slope / (slope + unlikely), 0.5)
    part = 0.5 * min(1.0, (_UNCLIPPED - slope) / (_UNCLIPPED - _CLIPPED))
    return (1 - part) * plain + part * np.where(scores > 0, likelier, 1 - likelier)


def _is_binary(classes: Any) -> bool:
    return np.size(classes) == 2


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
