# SPDX-License-Identifier: Apache-2.0
"""What confidence intervals need of a fit by noisy descent: its curvature, and how many records
were clipped.

    multipliers = inference_multipliers(problem)
    Evidence.release(problem, descent, multipliers).covariance(descent)     # of the weights, or why there is none

**Guarantee.** Two Gaussian releases, four for squared errors, with fractions of the budget that are
fixed before the fit. They are the matrix of second derivatives at the released weights (5 %) and
the number of records that were clipped anywhere (1 %); for squared errors also a histogram of the
sizes of residuals and the sum of their squares (1 % each). Everything else is a function of them. A
fit without intervals does not pay for them.

Why it holds (inference.proof.md): a record adds k kᵀ to the matrix with ‖k‖ <= 1, which is what
`moments` adds; it adds 0 or 1 to the number of clipped records, 1 to one shell of residuals, and
between 0 and 1 to their squares. Each is a function of that record and of what was released before.

What the covariance means: weights are normal about the most likely ones. Their variance has two
parts: the sampling error, which is the inverse of the curvature, and the noise of every step as the
descent passes it on. This holds only if hardly a record was clipped, if the noise hides no
direction of the curvature, and if the steps have reached the most likely weights. Otherwise there
is no covariance, but a sentence that says why.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from discreet import noise as exact
from discreet.errors import BadParameter, CannotCertify
from discreet.exact import exactly
from discreet.learn.arrays import Bools, Reals
from discreet.learn.descent import CellRows, score_blocks, step_responses
from discreet.learn.features import BITS, Box, blocks, truncate_rows
from discreet.learn.losses import Likelihood, Squared
from discreet.learn.moments import NoisyMoments
from discreet.learn.ranges import count_shells, length_ratio, noisy_counts
from discreet.learn.solvers import WIDEST, FittedWeights, Problem, Solver

__all__ = [
    "DescentRun",
    "Evidence",
    "Intervals",
    "check_inference",
    "coefficient_covariance",
    "inference_fractions",
    "inference_multipliers",
]


# Fractions of the budget.
_CURVATURE, _CLIPPED, _RESIDUALS = 0.05, 0.01, 0.01
# Rows longer than this many typical rows are shortened in the curvature, which makes intervals
# wider.
_LONGEST = 2.0
# Steps of a squared residual, and of nothing else.
_STEPS = 2.0**10
# Eigenvalues above this many edges of the noise are trusted, and residuals above twice as many
# standard deviations.
_CLEAR = 3.0
# The largest fraction of clipped records.
_MOST_CLIPPED = 0.005
# By how many standard errors the average of the steps may differ from the most likely weights.
_OFF = 0.25


@dataclass(frozen=True)
class DescentRun:
    """A finished descent. All of it except the rows is released or public."""

    rows: CellRows
    weights: Reals
    clip: float
    #: The standard deviation of the noise of a step, as a fraction of the mean gradient.
    push: float
    rate: float
    momentum: float
    settle: float
    steps: int
    count: float


@dataclass(frozen=True)
class Evidence:
    """What was released for the intervals."""

    #: Σ second derivative · z zᵀ.
    curvature: NoisyMoments
    #: The number of clipped records.
    clipped: float
    #: The variance of a residual; None where the noise hides it.
    variance: float | None
    #: The flattening of the loss.
    flattening: float = 0.0

    @classmethod
    def release(cls, problem: Problem, descent: DescentRun, multipliers: tuple[float, ...]) -> Evidence:
        """Draw the releases. They were charged before."""
        loss, rows = problem.loss, descent.rows
        if not isinstance(loss, Likelihood):
            raise TypeError("only a likelihood has intervals")
        unit = loss.curvature * _LONGEST**2 * rows.width
        released = NoisyMoments.release(
            _curvature_rows(descent, loss),
            rows.width,
            bits=BITS,
            noise=multipliers[0],
            relation=problem.budget.relation,
        )
        curvature = NoisyMoments(released.matrix * unit, released.spread * unit)
        if not isinstance(loss, Squared):
            clipped = int(_is_clipped(problem, descent, loss, math.inf).sum())
            return cls(curvature, _add_noise(clipped, multipliers[1]), 1.0, loss.flattening)
        widest = _residual_bound(problem, descent, multipliers[2])
        clipped = int(_is_clipped(problem, descent, loss, widest).sum())
        variance = _variance(descent, widest, multipliers[3])
        return cls(curvature, _add_noise(clipped, multipliers[1]), variance)

    def covariance(self, descent: DescentRun) -> Reals | str:
        """Of the weights about the most likely ones, or why there is none."""
        values, axes = np.linalg.eigh(self.curvature.matrix)
        fraction = self.clipped / descent.count
        if values[0] < _CLEAR * self.curvature.edge:
            return "noise hides some direction of the features in the curvature."
        if fraction > _MOST_CLIPPED:
            return (
                f"about {fraction:.1%} of the records were clipped, by bounds or in their gradients, and with more than "
                f"{_MOST_CLIPPED:.1%} the coefficients are biased."
            )
        if self.variance is None:
            return "noise hides the size of the residuals."
        pushes, start = step_responses(
            values / descent.count,
            rate=descent.rate,
            momentum=descent.momentum,
            steps=descent.steps,
            settle=descent.settle,
        )
        variances = self.variance / values + (pushes**2).sum(axis=0) * descent.push**2
        unreached = start / (1 - start) * (axes.T @ descent.weights[:, 0])
        flattened = _score_variance(values / descent.count, descent) * (
            axes.T @ _flattening_growth(descent.weights[:, 0], self.flattening)
        )
        if (np.abs(unreached) + np.abs(flattened) > _OFF * np.sqrt(variances)).any():
            return "the steps have not reached the most likely coefficients, because a class is rare or the noise is large."
        return np.asarray((axes * variances) @ axes.T)


def _score_variance(curvatures: Reals, descent: DescentRun) -> float:
    """The variance of a score that noise in single late steps causes.

    It is the stationary variance of the heavy ball, for rows of mean square 1 (inference.proof.md,
    5).
    """
    rate, m = descent.rate * descent.settle, descent.momentum
    variances = rate * (1 + m) / (curvatures * (1 - m) * (2 * (1 + m) - rate * curvatures))
    return float(variances.sum()) * descent.push**2


def _flattening_growth(weights: Reals, flattening: float) -> Reals:
    """How much weights grow per unit of variance of the scores. The intercept grows by half a unit
    at most, however rare a class is.
    """
    out = flattening * weights
    out[-1] = min(0.5, max(-0.5, out[-1]))
    return out


def inference_fractions(problem: Problem) -> tuple[float, ...]:
    """The fractions of the budget for intervals: none, unless `inference` is on."""
    if not problem.inference:
        return ()
    residuals = (_RESIDUALS, _RESIDUALS) if isinstance(problem.loss, Squared) else ()
    return (_CURVATURE, _CLIPPED, *residuals)


def inference_multipliers(problem: Problem) -> tuple[float, ...]:
    """The noise multipliers of those releases."""
    return tuple(problem.budget.noise_multipliers(part)[0] for part in inference_fractions(problem))


def check_inference(problem: Problem, solver: Solver) -> None:
    """Refuse to charge for intervals that can never exist. Only public facts are used."""
    if not problem.inference:
        return
    if not solver.has_intervals:
        raise _contradiction_error(
            f"solver={solver.name!r} has no confidence intervals.",
            "its coefficients are biased, or the size of their error is unknown.",
            "solver='whitened', inference=True" if problem.box.width <= WIDEST else "inference=False",
        )
    if not isinstance(problem.loss, Likelihood) or problem.scores != 1:
        raise _contradiction_error(
            "inference=True needs two classes.",
            "intervals are proved and measured for one score only, and more classes need more scores.",
            "inference=False",
        )
    if problem.loss.is_robust:
        raise _contradiction_error(
            "loss='robust' has no confidence intervals.",
            "it clips records whatever the number of rows is, so its coefficients are biased.",
            "loss='log', inference=True",
        )
    if problem.penalty.any():
        raise _contradiction_error(
            "a model with a penalty has no confidence intervals.",
            "a penalty draws coefficients to zero, and an interval would not cover that bias.",
            "LinearRegression(inference=True, …), or alpha=0",
        )


def _contradiction_error(what: str, why: str, fix: str) -> BadParameter:
    return BadParameter("DP107", what, why=why, fix=fix)


def _curvature_rows(descent: DescentRun, loss: Likelihood) -> Iterator[Reals]:
    """Rows times the root of their second derivative, in whole numbers, the longest 2**BITS; each a
    function of one record.
    """
    rows = descent.rows
    scale = rows.size / (_LONGEST * math.sqrt(rows.width))
    for (cells, scores, _), squares in zip(score_blocks(rows, descent.weights), rows.squares, strict=True):
        seconds = np.nan_to_num(loss.second(scores) / loss.curvature)
        lengths = np.maximum(1.0, np.sqrt(squares) * scale)
        heights = np.sqrt(np.clip(seconds, 0.0, 1.0)) * (scale * 2.0**BITS / lengths)[:, None]
        yield truncate_rows(cells * heights, 4.0**BITS)


def _residuals(descent: DescentRun) -> Iterator[Reals]:
    """Squared residuals, each a function of its record; one that is no number counts as 0."""
    for _, scores, targets in score_blocks(descent.rows, descent.weights):
        yield np.nan_to_num(np.square(scores - targets)[:, 0])


def _residual_bound(problem: Problem, descent: DescentRun, noise: float) -> float:
    """The greatest residual that counts: hardly one is larger, as noisy counts of shells tell;
    targets lie in [-1, 1].
    """
    spread = noise * (math.sqrt(2) if problem.budget.relation == "replace" else 1.0)
    counts = sum(count_shells(squares, 1.0) for squares in [np.zeros(0), *_residuals(descent)])
    return length_ratio(noisy_counts(np.asarray(counts), spread), spread, all_rows=True)


def _variance(descent: DescentRun, widest: float, noise: float) -> float | None:
    """The mean of squared residuals, from their sum in whole steps, of which a record adds 2**10 at
    most.
    """
    parts = (np.minimum(squares / widest**2, 1.0) for squares in _residuals(descent))
    total = _add_noise(sum(int(np.rint(part * _STEPS).sum()) for part in parts), noise * _STEPS)
    if total < 2 * _CLEAR * noise * _STEPS:
        return None
    return total / _STEPS * widest**2 / max(descent.count - descent.rows.width, 1.0)


def _is_clipped(problem: Problem, descent: DescentRun, loss: Likelihood, widest: float) -> Bools:
    """Which records were clipped, by bounds or in their gradients: one bit for each."""
    rows, parts = descent.rows, blocks(problem.data)
    changed = [problem.box.is_changed(problem.data[part])[problem.keep[part]] for part in parts]
    pulled = []
    for (_, scores, targets), squares in zip(score_blocks(rows, descent.weights), rows.squares, strict=True):
        slopes = np.abs(loss.slopes(scores, targets)[:, 0])
        pulled.append((slopes * np.sqrt(squares) * rows.size > descent.clip) | (slopes > widest))
    none = np.zeros(0, bool)
    out = np.concatenate([none, *changed]) | np.concatenate([none, *pulled])
    if problem.clipped_targets is not None:
        out |= problem.clipped_targets[problem.keep]
    return np.asarray(out)


def _add_noise(total: int, spread: float) -> float:
    return float(total + exact.rounded_gaussian(exactly(spread)))


class Intervals(NamedTuple):
    """Low and high ends: one row for each coefficient, and one pair for the intercept."""

    coef: Reals
    intercept: tuple[float, float]


def coefficient_covariance(fit: FittedWeights, box: Box, *, half: float = 1.0) -> Reals:
    """The covariance of (coefficients, intercept) on raw features, for targets of half the range
    `half`.
    """
    if fit.covariance is None:
        raise _no_intervals_error(fit)
    # What each weight adds to the coefficients and to the intercept.
    slopes, intercepts = box.coefficients(np.eye(box.width))
    turn = np.column_stack([slopes, intercepts])
    return np.asarray(half**2 * turn.T @ fit.covariance @ turn)


def _no_intervals_error(fit: FittedWeights) -> CannotCertify:
    if fit.no_intervals is None:
        why, fix = (
            "intervals need releases of their own, and this fit did not pay for them.",
            "set inference=True and fit again; the new fit is charged again",
        )
    else:
        why, fix = fit.no_intervals, "use more rows, a larger epsilon, or bounds that contain every record"
    return CannotCertify("DP301", "this fit has no confidence intervals.", why=why, fix=fix)
