# SPDX-License-Identifier: Apache-2.0
"""Confidence intervals for the coefficients of a private least-squares fit.

    confidence_intervals(model, confidence=0.95).coef        # low and high ends, one row for each coefficient

**Promise.** Intervals are a function of what the solver `joint` released, so they cost nothing. Each holds
the true coefficient with about the stated probability, over errors and noise, **if** the expected target is
linear in the features, errors are independent and of one variance, and neither features nor targets were
clipped by their bounds.

Why it holds: weights on rows are normal about the true ones with the covariance of joint.proof.md, 5, to
first order in the noise; coefficients are a linear function of them. Where the noise is too large for that,
and for every other solver, there is a refusal. Intervals of ordinary least squares would leave the noise out,
and be wrong.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from discreet import check
from discreet.errors import CannotCertify
from discreet.learn.features import Box
from discreet.learn.glm import LinearRegressor
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
        raise CannotCertify(
            "DP301",
            "this fit has no confidence intervals.",
            why="only solver='joint' has, without a penalty, and if noise hides no direction of the features.",
            fix="LinearRegression(solver='joint', …), with more epsilon, tighter bounds or fewer features",
        )
    slopes, intercepts = box.coefficients(np.eye(box.width))  # what each weight adds
    turn = np.column_stack([slopes, intercepts])
    return np.asarray(half**2 * turn.T @ fit.covariance @ turn)


def confidence_intervals(model: LinearRegressor, confidence: float = 0.95) -> Intervals:
    """Two-sided normal intervals about the coefficients and the intercept of a fitted model.

    **Promise.** They cost nothing. When they hold, and when there are none, is said above.

    >>> import numpy as np
    >>> from discreet.learn import LinearRegression
    >>> X = np.linspace(-1, 1, 3000).reshape(-1, 1)
    >>> given = {"epsilon": 1, "delta": 1e-5, "bounds": (-1, 1), "target_bounds": (-2, 2)}
    >>> confidence_intervals(LinearRegression(**given, solver="joint").fit(X, X[:, 0])).coef.shape
    (1, 2)
    """
    level = check.inner_probability(confidence=confidence)
    check_is_fitted(model, "privacy_")
    covariance = coefficient_covariance(model._fit_, model._box_, half=model._half_)
    away = float(ndtri(0.5 + level / 2)) * np.sqrt(np.diag(covariance))
    ends = np.column_stack([model.coef_ - away[:-1], model.coef_ + away[:-1]])
    return Intervals(ends, (float(model.intercept_ - away[-1]), float(model.intercept_ + away[-1])))
