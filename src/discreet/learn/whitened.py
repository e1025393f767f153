# SPDX-License-Identifier: Apache-2.0
"""Noisy gradient descent in coordinates that a private second-moment matrix whitens: the default
solver.

**Guarantee.** Gaussian releases of histograms of the lengths of rows and of the targets (`ranges`,
a fiftieth of the budget each), of the second moments (a fifth), and of 100 gradients (the rest).
Nothing else leaves the data, and together they are exactly the Gaussian mechanism that the budget
allows.

Why it works: if the second moment of the rows z = Wᵀx is nearly the identity, all directions are
learned at the same rate. For classes the rows are centred at the mean of the features. The clip
norm grows with the number of rows, so that the fit tends to the fit without privacy; the noise that
this costs stays below half of the sampling error unless classes are rare. Every number that steers
the descent, also that mean and the number of rows, is read from the released matrix. The constants
were chosen on other data sets than those that the benchmarks report; users need not tune them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from discreet.learn.arrays import Reals
from discreet.learn.descent import LARGEST, CellRows, descend
from discreet.learn.features import BITS, Box
from discreet.learn.inference import DescentRun, Evidence, inference_fractions, inference_multipliers
from discreet.learn.losses import Squared
from discreet.learn.moments import NoisyMoments
from discreet.learn.ranges import NarrowedProblem, is_regression, range_releases
from discreet.learn.solvers import FittedWeights, Problem, Solver
from discreet.privacy.guarantee import Guarantee

__all__ = ["WhitenedDescent", "row_count"]


# The fraction of the budget for each histogram of lengths or of targets.
_COUNTS = 0.02
# The fraction of the budget for the matrix.
_MATRIX = 0.2
_STEPS = 100
_MOMENTUM = 0.8
# Eigenvalues below this fraction of the largest eigenvalue of the noise are not trusted.
_FLOOR = 0.25
# How fast the clip grows where hardly a record may be clipped.
_OF_CLASSES, _OF_TARGETS = 0.2, 0.02
# How much shorter the later steps are then.
_SETTLE = 0.25
# The length of the constant beside whitened features, where there is little to learn from.
_CONSTANT = 0.2
# A typical row is 2**12 cells long, less where slopes need the digits.
_ROW_BITS, _LEAST_ROW_BITS = 12, 6


class WhitenedDescent(Solver):
    """Descend in a privately whitened space."""

    name = "whitened"
    has_intervals = True

    def guarantee_for(self, problem: Problem) -> Guarantee:
        counts_noise, matrix_noise, step_noise = _noise_multipliers(problem)
        budget = problem.budget
        guarantee = (
            range_releases(problem) * budget.gaussian(counts_noise)
            + budget.gaussian(matrix_noise)
            + _STEPS * budget.gaussian(step_noise)
        )
        for noise in inference_multipliers(problem):
            guarantee = guarantee + budget.gaussian(noise)
        return guarantee

    def fit(self, problem: Problem) -> FittedWeights:
        counts_noise, matrix_noise, step_noise = _noise_multipliers(problem)
        narrowed = NarrowedProblem.release(problem, counts_noise)
        problem = narrowed.problem
        box, budget, loss = problem.box, problem.budget, problem.loss
        cells = (block for block, _ in problem.cells())
        released = NoisyMoments.release(
            cells, box.width, bits=BITS, noise=matrix_noise, relation=budget.relation
        )
        count = row_count(released, box, problem.known_count)
        signal = count * budget.mu / box.width
        if is_regression(problem):
            turn = _whitening(released.matrix, count, released.edge)
        else:
            turn = _whitening_about_mean(
                released, count, box, min(1.0, _CONSTANT * math.sqrt(max(1.0, signal)))
            )
        slope = loss.unit * _clip_slope(signal, count, problem, float(np.linalg.norm(turn, 2)))
        rows, clip = _whitened_rows(problem, turn, slope), slope * math.sqrt(box.width)
        penalty = turn.T @ (problem.penalty[:, None] * turn) / count
        rate = loss.pace / (loss.curvature + float(np.linalg.norm(penalty, 2)))
        # Noise in the weights averages the probabilities, and larger coefficients make up for that
        # (inference.proof.md, 5).
        settle = _SETTLE if problem.inference and not is_regression(problem) else 1.0
        weights = descend(
            rows,
            loss,
            _start(turn, box, problem),
            clip=clip,
            noise=step_noise,
            steps=_STEPS,
            rate=rate,
            momentum=_MOMENTUM,
            penalty=penalty + _ridge(problem, signal) * np.eye(box.width),
            count=count,
            relation=budget.relation,
            settle=settle,
            progress=problem.progress,
        )
        is_too_noisy = count <= _least_count(released, box)
        fit = FittedWeights(narrowed.weights(turn @ weights), count, slope, is_too_noisy=is_too_noisy)
        if not problem.inference:
            return fit
        push = step_noise * clip * (2 if budget.relation == "replace" else 1) / count
        descent = DescentRun(rows, weights, clip, push, rate, _MOMENTUM, settle, _STEPS, count)
        return _with_covariance(fit, narrowed, turn, descent)

    def explain(self, problem: Problem) -> list[str]:
        return [
            "A few hundredths of the budget released a histogram of the lengths of rows, from which the longest allowed row follows.",
            "A fifth of the budget released the sums of products of features, with symmetric Gaussian noise.",
            f"The rest paid for {_STEPS} noisy gradients, in coordinates that this matrix whitens.",
            "These coordinates, the number of rows, the length of the steps and the clip norm follow from that release.",
            *([_FOR_INTERVALS.format(sum(inference_fractions(problem)))] if problem.inference else []),
        ]


_FOR_INTERVALS = "{:.0%} of the budget was for confidence intervals: it released the curvature and the number of clipped records."


def _start(turn: Reals, box: Box, problem: Problem) -> Reals:
    """Whitened weights that give every row the score of the mean target."""
    level = np.zeros((box.width, problem.scores))
    level[-1] = problem.loss.level * box.length / max(box.constant, 1e-300)
    return np.asarray(np.linalg.solve(turn, level)) if problem.loss.level else level


def _ridge(problem: Problem, signal: float) -> float:
    """A ridge for regressions with few rows. Intervals would not cover its bias, so fits with
    intervals have none.
    """
    return min(1.0, 0.05 / signal) if isinstance(problem.loss, Squared) and not problem.inference else 0.0


def _with_covariance(
    fit: FittedWeights, narrowed: NarrowedProblem, turn: Reals, descent: DescentRun
) -> FittedWeights:
    """The fit with the covariance of its weights, or with the reason why there is none."""
    problem = narrowed.problem
    covariance = Evidence.release(problem, descent, inference_multipliers(problem)).covariance(descent)
    if isinstance(covariance, str):
        return replace(
            fit, no_intervals=covariance, notes=(f"There are no confidence intervals: {covariance}",)
        )
    # What each coordinate adds to the weights.
    axes = narrowed.weights(turn) - narrowed.weights(np.zeros_like(turn))
    return replace(fit, covariance=axes @ covariance @ axes.T)


def row_count(released: NoisyMoments, box: Box, known: int | None) -> float:
    """The number of rows: public when records are replaced, otherwise read from the column of
    constants.
    """
    if known is not None:
        return float(max(known, 1))
    square = (box.constant / box.length) ** 2
    return max(float(released.matrix[-1, -1]) / square, _least_count(released, box))


def _least_count(released: NoisyMoments, box: Box) -> float:
    """The least number of rows that differs clearly from none: twice the noise."""
    return max(2 * released.spread / (box.constant / box.length) ** 2, 1.0)


def _clip_slope(signal: float, count: float, problem: Problem, longest: float) -> float:
    """Where the slope of a typical record is clipped. All that is used is released or public.

    A constant clip would bind however many rows there are, and the fit would not tend to the most
    likely model. So it grows with √n·μ, until it is longer than any row can be. That keeps the
    noise of the weights at a third of their sampling error. It grows only once there are 100 rows
    for each weight. For intervals it grows twice as fast where there are classes, because an
    interval covers noise but not clipping. It grows more slowly where there are targets, whose
    residuals are far smaller than their range.
    """
    few_rows = min(0.4, max(0.03, 0.025 * math.sqrt(signal)))
    if problem.loss.is_robust:
        return few_rows
    weights = problem.box.width * problem.scores
    pace = 0.1 if not problem.inference else _OF_TARGETS if is_regression(problem) else _OF_CLASSES
    noisier = math.sqrt(2) if problem.inference and problem.budget.relation == "replace" else 1
    enough = min(1.0, count / (100 * weights))
    growing = pace / noisier * problem.budget.mu * math.sqrt(count / weights) * enough
    return max(few_rows, min(growing, longest / math.sqrt(problem.box.width)))


def _noise_multipliers(problem: Problem) -> tuple[float, float, float]:
    """Of each vector of counts, of the matrix, and of each step."""
    steps = 1 - _MATRIX - range_releases(problem) * _COUNTS - sum(inference_fractions(problem))
    counts_noise, matrix_noise, step_noise = (
        problem.budget.noise_multipliers(part)[0] for part in (_COUNTS, _MATRIX, steps / _STEPS)
    )
    return counts_noise, matrix_noise, step_noise


def _whitening(matrix: Reals, count: float, edge: float) -> Reals:
    """W such that the second moment of Wᵀx is nearly the identity, in the directions that the noise
    does not hide.
    """
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, _FLOOR * edge)
    return np.asarray(vectors / np.sqrt(values / count))


def _whitening_about_mean(released: NoisyMoments, count: float, box: Box, last: float) -> Reals:
    """W such that features about their mean become round, and the constant becomes `last`.

    Where few eigenvalues are trusted, a constant as long as the features together would take most
    of a clipped gradient. The mean is shrunk towards the middle of the box, by as much as its noise
    alone would move it.
    """
    constant = box.constant / box.length
    sums = released.matrix[:-1, -1] / constant
    noise = len(sums) * (released.spread / constant) ** 2 / 2
    mean = max(0.0, 1 - noise / max(float(sums @ sums), noise)) * sums / count
    cross = np.outer(sums, mean)
    about = released.matrix[:-1, :-1] - cross - cross.T + count * np.outer(mean, mean)
    turn = np.zeros_like(released.matrix)
    turn[:-1, :-1] = _whitening(about, count, released.edge)
    turn[-1, :-1] = -mean @ turn[:-1, :-1] / constant
    turn[-1, -1] = last / constant
    return turn


def _whitened_rows(problem: Problem, turn: Reals, slope: float) -> CellRows:
    """Whitened rows in cells. Where slopes are large, cells are coarser, because slopes need the
    digits.
    """
    bits = max(_LEAST_ROW_BITS, _ROW_BITS - math.ceil(math.log2(max(1.0, slope))))
    size = math.sqrt(problem.box.width) / 2**bits
    return CellRows.of(_whitened_cells(problem, turn, size), size=size, width=problem.box.width)


def _whitened_cells(problem: Problem, turn: Reals, size: float) -> Iterator[tuple[Reals, Reals]]:
    """Whitened rows in cells: sums of whole numbers, so that a row's cells depend on that row
    alone.
    """
    longest = float(np.sqrt((turn * turn).sum(axis=0)).max())
    exponent = 52 - BITS - math.frexp(longest)[1]
    whole = np.rint(np.ldexp(turn, exponent))
    for cells, targets in problem.cells():
        turned = np.rint(np.ldexp(cells @ whole, -exponent - BITS) / size)
        yield np.clip(turned, -LARGEST, LARGEST), targets
