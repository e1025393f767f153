# SPDX-License-Identifier: Apache-2.0
"""Confidence intervals for the coefficients of a private linear model.

    confidence_intervals(model, confidence=0.95).coef        # low and high ends, one row for each coefficient

**Guarantee.** Intervals are a function of what the fit released: of the one matrix of the solver `joint`, or of what the solver
`whitened` released for them where the model has `inference=True`. So they cost nothing after the fit. Each holds the true
coefficient with about the stated probability, over records and noise, **if** the model is right: the expected target, or
the log-odds of the second class, is linear in the features, records are independent, and errors have one variance.

Why it holds: weights on rows are normal about the true ones with the covariance of joint.proof.md, 5, or of inference.proof.md, 4, to
first order in the noise; coefficients are a linear function of them. Where the noise is too large for that, or too many
records were clipped, and for every other solver, there is a refusal. Intervals that leave the noise out would be wrong.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from discreet import check
from discreet.errors import CannotCertify
from discreet.learn.arguments import checked_call
from discreet.learn.base import check_fitted
from discreet.learn.features import Box
from discreet.learn.glm import LinearModel
from discreet.learn.problem import Fit

__all__ = ["Intervals", "coefficient_covariance", "confidence_intervals"]

Reals = npt.NDArray[np.float64]


class Intervals(NamedTuple):
    """Low and high ends: one row for each coefficient, and one pair for the intercept."""

    coef: Reals
    intercept: tuple[float, float]


def coefficient_covariance(fit: Fit, box: Box, *, half: float = 1.0) -> Reals:
    """The covariance of (coefficients, intercept) on raw features, for targets of half the range `half`."""
    if fit.covariance is None:
        raise _no_intervals_error(fit)
    slopes, intercepts = box.coefficients(np.eye(box.width))  # what each weight adds
    turn = np.column_stack([slopes, intercepts])
    return np.asarray(half**2 * turn.T @ fit.covariance @ turn)


def _no_intervals_error(fit: Fit) -> CannotCertify:
    if fit.no_intervals is None:
        why, fix = (
            "a part of the budget has to release what they need, and this fit did not pay for that.",
            "inference=True in the model, and fit again; the new fit has a cost of its own",
        )
    else:
        why, fix = fit.no_intervals, "use more rows or a larger epsilon, or bounds that hold every record"
    return CannotCertify("DP301", "this fit has no confidence intervals.", why=why, fix=fix)


@checked_call
def confidence_intervals(model: LinearModel, confidence: float = 0.95) -> Intervals:
    """Two-sided normal intervals about the coefficients and the intercept of a fitted model.

    **Guarantee.** They cost nothing. When they hold, and when there are none, is said above.

    >>> import numpy as np
    >>> from discreet.learn import LinearRegression
    >>> X = np.linspace(-1, 1, 3000).reshape(-1, 1)
    >>> given = {"epsilon": 1, "delta": 1e-5, "bounds": (-1, 1), "target_bounds": (-2, 2)}
    >>> confidence_intervals(LinearRegression(**given, solver="joint").fit(X, X[:, 0])).coef.shape
    (1, 2)
    """
    level = check.inner_probability(confidence=confidence)
    check_fitted(model)
    covariance = coefficient_covariance(model._fit_, model._box_, half=model._half_)
    away = float(ndtri(0.5 + level / 2)) * np.sqrt(np.diag(covariance))
    slopes, intercept = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    ends = np.column_stack([slopes - away[:-1], slopes + away[:-1]])
    return Intervals(ends, (intercept - float(away[-1]), intercept + float(away[-1])))
