# SPDX-License-Identifier: Apache-2.0
"""The minimiser of a regularised sum of losses, with a certificate of how far off it can be.

    objective = RegularisedLoss(rows, Logistic(), ridge=1.0, push=b)      # b has the shape of the weights
    objective.minimiser(2**-24).cells(grid)                               # on a grid, exactly

**Guarantee.** At the point that is returned the gradient of Σ loss + (ridge/2)·‖w‖² + b·w has at
most the stated norm, in real arithmetic and whatever the rows are; so the point is no further than
that norm / ridge from the exact minimiser.

Why it holds: the objective is strongly convex, and the gradient is evaluated with a bound on its
error. Scores and sums over rows are exact: rows, weights and slopes are split into whole numbers
whose sums stay below 2**53. What remains is the evaluation of one slope for each row, for which
`_slack` allows several times what the functions used are off by.

How: Newton's method. A step is halved until the slope along it is still negative at its end, which
lowers a convex function, or it is taken whole if it halves the least gradient seen so far. In real
arithmetic both happen only finitely often (output.proof.md), for every set of rows. Nothing is
returned without the certificate, no data set is an error, and the number of steps is not revealed.

What would break it: a limit on the number of steps after which something else is returned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit, softmax

from discreet.errors import UnsupportedGuarantee
from discreet.learn.arrays import Ints, Reals
from discreet.learn.descent import CellRows
from discreet.learn.losses import Hinge, Huber, Logistic, Loss, Softmax
from discreet.noise.grid import Grid

__all__ = [
    "MAX_ROWS",
    "MAX_WEIGHTS",
    "Point",
    "RegularisedLoss",
    "certifiable_norm",
    "max_slope_norm",
    "refuse_too_many_rows",
]


#: The matrix of second derivatives is held in memory, and sums of fine parts stay exact.
MAX_WEIGHTS = 1 << 12
MAX_ROWS = 1 << 31
# Bits of the two parts of a weight.
_COARSE, _FINE = 37, 31
# Bits of each of the three parts of a slope: times a cell, 2**19 rows add up exactly.
_LIMB = 18
# Steps of Newton's method before plain gradient steps, which need no factorisation.
_PATIENCE = 200
_EXACT = 2.0**-50


def max_slope_norm(loss: Loss, scores: int) -> float:
    """The greatest norm of a record's slopes, rounded up; ∞ where a score can push without limit."""
    match loss:
        case Logistic():
            return 1.0
        case Softmax():
            return math.nextafter(math.sqrt(2), 2)
        case Hinge():
            return math.sqrt(scores) * (1 + 1e-15)
        case Huber():
            return loss.width * math.sqrt(scores) * (1 + 1e-15)
    return math.inf


def certifiable_norm(loss: Loss, scores: int, wanted: float) -> float:
    """A gradient norm that can be certified for every data set of at most 2**31 rows, from `wanted`
    on.

    So it is a function of public numbers, and no number of rows that fits into memory is refused.
    """
    return max(wanted, 4 * MAX_ROWS * _slack(loss, scores))


def _slack(loss: Loss, scores: int) -> float:
    """How far the computed slopes of one row may be off in norm, the sum over rows included.

    A score is off by 2**-53 of itself, and no score times its curvature exceeds 1.5 (of targets
    within ±1); functions are good to a few units in the last place, and a slope is rounded to
    2**-54 of its greatest.
    """
    if isinstance(loss, Softmax):
        return _EXACT * (scores + 8) / 4
    return _EXACT * math.sqrt(scores) * (max(1.0, loss.width + 1.0) if isinstance(loss, Huber) else 1.0)


@dataclass(frozen=True)
class Point:
    """Weights (coarse + fine · 2**-31) · 2**-shift of whole numbers: products with rows add up
    exactly.
    """

    coarse: Reals
    fine: Reals
    shift: int

    @classmethod
    def near(cls, *parts: Reals) -> Point:
        """The point nearest to the sum of the parts, which need not be representable as one float."""
        longest = math.fsum(float(np.linalg.norm(part)) for part in parts)
        shift = _COARSE - max(math.frexp(longest)[1], -60)
        scaled = [np.ldexp(part, shift) for part in parts]
        coarse = sum(np.rint(part) for part in scaled)
        rest = sum(part - np.rint(part) for part in scaled)
        return cls(np.asarray(coarse), np.asarray(np.rint(np.ldexp(rest, _FINE))), shift)

    @property
    def floats(self) -> tuple[Reals, Reals]:
        """Two arrays of floats whose sum is the point, exactly."""
        return np.ldexp(self.coarse, -self.shift), np.ldexp(self.fine, -self.shift - _FINE)

    def cells(self, grid: Grid) -> Ints | npt.NDArray[np.object_]:
        """The weights rounded to a grid, exactly."""
        high, low = (part.ravel().tolist() for part in self.floats)
        exact = np.array([Fraction(a) + Fraction(b) for a, b in zip(high, low, strict=True)], object)
        return np.asarray(grid.cells(exact)).reshape(self.coarse.shape)


@dataclass(frozen=True)
class RegularisedLoss:
    """Σ loss of the rows + (ridge/2)·‖w‖² + push·w, to be minimised over w."""

    rows: CellRows
    loss: Loss
    ridge: float
    push: Reals

    def minimiser(self, norm: float) -> Point:
        """A point where the norm of the gradient is certified to be at most `norm`."""
        point = Point.near(np.zeros_like(self.push))
        gradient, slack = self.gradient(point)
        least, steps = math.inf, 0
        while not (length := float(np.linalg.norm(gradient))) + slack <= norm:
            least, steps = min(least, length), steps + 1
            step = self._newton(point, gradient) if steps < _PATIENCE else -gradient / self._steepness
            point, gradient, slack = self._follow(point, gradient, step, least / 2)
        return point

    def gradient(self, point: Point) -> tuple[Reals, float]:
        """The gradient, and a bound on the norm of its error."""
        total = np.zeros((3, *self.push.shape), np.int64)
        for cells, targets in zip(self.rows.parts, self.rows.targets, strict=True):
            wide = cells.astype(np.float64)
            limbs = self._limbs(self.loss.slopes(self._scores(wide, point), targets))
            total += np.stack([wide.T @ limb for limb in limbs]).astype(np.int64)
        sizes = self._reach * self.rows.size * np.ldexp(1.0, [-_LIMB, -2 * _LIMB, -3 * _LIMB])
        pulled = np.tensordot(sizes, total.astype(np.float64), axes=1)
        shrunk = self.ridge * sum(point.floats)
        lengths = [float(np.linalg.norm(part)) for part in (pulled, shrunk, self.push)]
        slack = self.count * _slack(self.loss, self.push.shape[1]) + _EXACT * math.fsum(lengths)
        return pulled + shrunk + self.push, slack

    @cached_property
    def count(self) -> int:
        """How many rows there are."""
        return sum(len(targets) for targets in self.rows.targets)

    @cached_property
    def _reach(self) -> float:
        """A power of two that no slope of one score exceeds."""
        return 2.0 ** math.frexp(self.loss.width)[1] if isinstance(self.loss, Huber) else 1.0

    @property
    def _steepness(self) -> float:
        """The greatest second derivative in any direction."""
        return self.ridge + self.count * self.loss.curvature

    def _scores(self, wide: Reals, point: Point) -> Reals:
        """Scores with one rounding; for a softmax relative to the greatest, so that the rounding is
        too.
        """
        high, low = wide @ point.coarse, wide @ point.fine
        if isinstance(self.loss, Softmax):
            top = (np.arange(len(wide)), np.argmax(np.ldexp(high, _FINE) + low, axis=1))
            high, low = high - high[top][:, None], low - low[top][:, None]
        return np.ldexp(high + np.ldexp(low, -_FINE), -point.shift) * self.rows.size

    def _limbs(self, slopes: Reals) -> list[Reals]:
        """Three parts of 18 bits, which add up to the slopes."""
        rest, limbs = slopes / self._reach, []
        for level in (1, 2, 3):
            limb = np.rint(np.ldexp(rest, level * _LIMB))
            limbs.append(limb)
            rest = rest - np.ldexp(limb, -level * _LIMB)
        return limbs

    def _follow(
        self, point: Point, gradient: Reals, step: Reals, target: float
    ) -> tuple[Point, Reals, float]:
        """Go along the step as far as the rule of the module allows."""
        if not float((gradient * step).sum()) < 0:
            step = -gradient / self._steepness
        length = 1.0
        while True:
            end = Point.near(*point.floats, length * step)
            end_gradient, slack = self.gradient(end)
            is_halved = length == 1.0 and float(np.linalg.norm(end_gradient)) <= target
            if is_halved or length < 2.0**-60 or float((end_gradient * step).sum()) <= 0:
                return end, end_gradient, slack
            length /= 2

    def _newton(self, point: Point, gradient: Reals) -> Reals:
        try:
            factor = cho_factor(self._hessian(point))
        # Rounding can make the matrix indefinite.
        except LinAlgError:
            return -gradient / self._steepness
        return np.asarray(-cho_solve(factor, gradient.T.ravel()).reshape(gradient.T.shape).T)

    def _hessian(self, point: Point) -> Reals:
        """The second derivatives, weights of one score after those of another. Rounding here only
        slows the search.
        """
        width, scores = self.push.shape
        out = np.zeros((scores, width, scores, width))
        for cells, targets in zip(self.rows.parts, self.rows.targets, strict=True):
            wide = cells.astype(np.float64) * self.rows.size
            bends = _second_derivatives(self.loss, self._scores(cells.astype(np.float64), point), targets)
            for (first, second), bend in bends.items():
                out[first, :, second, :] += (wide * bend[:, None]).T @ wide
        for first in range(scores):
            for second in range(first):
                out[first, :, second, :] = out[second, :, first, :]
        flat = out.reshape(width * scores, width * scores)
        flat[np.diag_indices(width * scores)] += self.ridge
        return flat


def _second_derivatives(loss: Loss, scores: Reals, targets: Reals) -> dict[tuple[int, int], Reals]:
    """Second derivatives by pairs of scores, the first of a pair not after the second; absent ones
    are zero.
    """
    columns = range(scores.shape[1])
    if isinstance(loss, Softmax):
        p = np.asarray(softmax(scores, axis=1))
        return {(k, j): p[:, k] * ((k == j) - p[:, j]) for k in columns for j in columns if k <= j}
    if isinstance(loss, Logistic):
        second = np.asarray(expit(scores) * expit(-scores))
    elif isinstance(loss, Huber):
        second = (np.abs(scores - targets) < loss.width).astype(np.float64)
    else:
        second = (np.abs(1.0 - targets * scores) < 0.5).astype(np.float64)
    return {(k, k): second[:, k] for k in columns}


def refuse_too_many_rows(rows: int) -> None:
    """Refuse data sets with more rows than the proof covers."""
    if rows > MAX_ROWS:
        raise UnsupportedGuarantee(
            "DP203",
            f"this solver is proved for data sets of at most {MAX_ROWS} rows.",
            why="with more rows, rounding errors hide how near its answer is to the minimiser.",
            fix="solver='whitened', or solver='gradient'",
            spent="the cost of this fit; it was charged before the rows were counted",
        )
