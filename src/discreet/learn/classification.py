# SPDX-License-Identifier: Apache-2.0
"""Private linear classifiers: logistic regression, binary and multinomial, and a support vector
classifier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from discreet import check
from discreet.learn.arrays import Reals
from discreet.learn.glm import LinearClassifier
from discreet.learn.inference import Intervals
from discreet.learn.inputs import Matrix, Target
from discreet.learn.losses import Hinge, Logistic, Softmax

__all__ = ["LinearSVC", "LogisticRegression", "second_class_probability"]


#: Probabilities are corrected in full up to the first clip of a typical slope, and not at all from
#: the second on.
_CLIPPED, _UNCLIPPED = 0.4, 0.6


@dataclass(kw_only=True, repr=False, eq=False)
class LogisticRegression(LinearClassifier):
    """Logistic regression whose coefficients reveal at most (epsilon, delta) about any one record.

    **Guarantee.** `guarantee_` holds for the coefficients and for everything computed from them. If
    one row is added or removed (`relation="replace"`: exchanged), no probability changes by more
    than a factor of e^ε, except for δ. Labels and bounds are declared (`classes`, `bounds` or
    `norm`) and never read off the data. A row with an undeclared label is left out, NaN counts as
    the middle of its bounds, and no data value causes an error.

    Why it holds: by the proof of the solver. `whitened` (the default up to 2,000 features),
    `gradient`, `objective` and `output` are explained in the files with these names. A `session` is
    charged with the whole cost before the data are read.

    What would break it: bounds, classes or an ε that were chosen by looking at the data; fits that
    are repeated until one looks good (use `tune`, which pays for that).

    Parameters:

    - `epsilon`, `delta`: how much one fit may reveal. There is no default.
    - `bounds`: the low and the high end of the features, each one number or one number per feature,
      or `{column: (low, high)}`.
      Values outside are clipped. `norm`: the greatest length of a row after each feature was scaled
      to [-1, 1]; longer rows are shortened. One of the two is needed.
    - `classes`: every label that can occur.
    - `solver`: how the model is fitted; see the reference page "Solvers".
    - `relation`: `"add-remove"`, where the number of rows is secret, or `"replace"`, where it is
      public.
    - `session`: is charged before the data are read. `unit`: what one row stands for, as the
      session protects it.
    - `progress`: True for a progress bar, or a function of (steps done, steps in total).
    - `loss`: `"log"`, or `"robust"` to limit the influence of each record whatever the number of
      rows. With many rows `"log"` tends to the maximum-likelihood fit. `"robust"` can classify
      better where no linear model fits, but its coefficients are biased.
    - `inference`: True spends 6 % of the same budget on what confidence intervals need, and clips
      less; see `conf_int`.

    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 2000).reshape(-1, 1)
    >>> model = LogisticRegression(epsilon=1, delta=1e-5, bounds=(-1, 1), classes=[0, 1])
    >>> bool(model.fit(X, X[:, 0] > 0).score(X, X[:, 0] > 0) > 0.9)
    True
    """

    loss: Literal["log", "robust"] = "log"
    inference: bool = False

    def fit(self, X: Matrix, y: Target) -> Self:
        """Charge the cost, then fit the model to rows `X` and labels `y`."""
        is_robust = check.choice(("log", "robust"), loss=self.loss) == "robust"
        loss = Logistic(is_robust) if _is_binary(self.classes) else Softmax(is_robust)
        self._classify(X, y, loss, low=0.0, inference=self.inference)
        return self

    def conf_int(self, confidence: float = 0.95) -> Intervals:
        """Confidence intervals of the coefficients and the intercept, after a fit with
        `inference=True`.

        They cover the noise as well as the sampling error, provided that the log-odds are linear in
        the features. If too much was clipped, or if the noise hides too much, they are refused with
        the reason (DP301). They cost nothing.
        """
        return self._intervals(confidence)

    def predict_proba(self, X: Matrix) -> Reals:
        """The probability of each class; for two classes it is corrected for the clipping of
        gradients.
        """
        scores = self.decision_function(X)
        if scores.ndim == 2:
            return np.asarray(softmax(scores, axis=1))
        second = second_class_probability(scores, self._fit_.slope)
        return np.stack([1 - second, second], axis=1)

    def predict_log_proba(self, X: Matrix) -> Reals:
        """The logarithm of the probability of each class; -∞ where a probability rounds to 0."""
        # A warning would reveal a row.
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


def second_class_probability(scores: Reals, slope: float | None) -> Reals:
    """P(second class) by a score that was learned with slopes clipped at `slope`.

    Where clipping binds, the score s of the best model has σ(-|s|) η = slope (1 - η), η the
    probability of the likelier class, and no score in between is preferred. Records are clipped by
    different amounts, so half of this link and half of the usual one is taken; on simulated data it
    lowers the log-loss by up to a third. From a slope of 0.6 on hardly a record is clipped, and the
    usual link is right.
    """
    plain = np.asarray(expit(scores))
    if slope is None or slope >= _UNCLIPPED:
        return plain
    unlikely = np.asarray(expit(-np.abs(scores)))
    likelier = np.where(unlikely < slope, slope / (slope + unlikely), 0.5)
    weight = 0.5 * min(1.0, (_UNCLIPPED - slope) / (_UNCLIPPED - _CLIPPED))
    return (1 - weight) * plain + weight * np.where(scores > 0, likelier, 1 - likelier)


def _is_binary(classes: npt.ArrayLike | None) -> bool:
    return classes is not None and np.size(classes) == 2


class LinearSVC(LinearClassifier):
    """A linear classifier by the smoothed hinge loss: one score for two classes, one against the
    rest for more.

    **Guarantee.** The guarantee of `LogisticRegression`: `guarantee_` holds for the coefficients
    and for everything computed from them.

    Why it holds: by the proof of the solver: `whitened`, `gradient`, `objective` (two classes) or
    `output`.

    What would break it: bounds, classes or an ε that were chosen by looking at the data.

    Parameters: those of `LogisticRegression`, without `loss` and `inference`.

    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 2000).reshape(-1, 1)
    >>> model = LinearSVC(epsilon=1, delta=1e-5, bounds=(-1, 1), classes=["no", "yes"])
    >>> labels = np.where(X[:, 0] > 0, "yes", "no")
    >>> bool(model.fit(X, labels).score(X, labels) > 0.9)
    True
    """

    def fit(self, X: Matrix, y: Target) -> Self:
        """Charge the cost, then fit the model to rows `X` and labels `y`."""
        self._classify(X, y, Hinge(), low=-1.0)
        return self
