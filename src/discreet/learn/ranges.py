# SPDX-License-Identifier: Apache-2.0
"""Where rows and targets really lie inside bounds that are too wide: noisy histograms of lengths
and of targets.

    narrowed = NarrowedProblem.release(problem, noise=50.0)      # the same problem in a smaller box
    narrowed.problem, narrowed.weights(weights)                  # … and weights on the rows of the declared box

**Guarantee.** Each release is a vector of whole-number counts, of which one record moves one by 1
(replacing it moves two), with Gaussian noise of the given multiplier. Everything else is a function
of those counts and of public numbers.

Why it holds: a record lies in one shell by the length of its row in whole cells, and in one bin by
its target; both depend on that record and on the ends of the shells and bins alone. The box that
follows only shortens rows, the range only clips targets; what comes after takes them as if they had
been declared.

Why it helps: noise is in proportion to the longest row that is allowed. Bounds that are ten times
too wide make it ten times too large, in every release that follows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from discreet import noise as exact
from discreet.exact import exactly
from discreet.learn.arrays import Ints, Reals
from discreet.learn.features import BITS, CONSTANT
from discreet.learn.losses import Huber, Squared
from discreet.learn.solvers import Problem

__all__ = [
    "NarrowedProblem",
    "core_range",
    "count_bins",
    "count_shells",
    "is_regression",
    "length_ratio",
    "noisy_counts",
    "outer_shell",
    "range_releases",
]


#: Shells by length: the first holds rows longer than 2**-½ of the longest allowed one, each next is
#: as much shorter.
_SHELLS = 12
_BINS = 20
#: Counts whose sum is below this many times their noise are ignored, and so are single bins below
#: the second number.
_SEEN, _CORE = 12.0, 2.5
#: The fraction of rows that may be shortened, and the fraction that the core of a target must hold.
_OUTSIDE, _INSIDE = 0.02, 0.75


def is_regression(problem: Problem) -> bool:
    """Whether targets are numbers, whose range may be too wide too."""
    return isinstance(problem.loss, Squared | Huber)


def range_releases(problem: Problem) -> int:
    """How many vectors of counts are released."""
    return 3 if is_regression(problem) else 1


@dataclass(frozen=True)
class NarrowedProblem:
    """A problem whose rows are at most `ratio` times as long as declared, and whose targets lie at
    `middle` ± `half`.
    """

    problem: Problem
    ratio: float
    middle: float = 0.0
    half: float = 1.0

    @classmethod
    def release(cls, problem: Problem, noise: float) -> NarrowedProblem:
        """Release the counts, each vector with this multiplier."""
        spread = noise * (math.sqrt(2) if problem.budget.relation == "replace" else 1.0)
        ratio = length_ratio(noisy_counts(row_shells(problem), spread), spread, all_rows=problem.inference)
        box = problem.box
        smaller = replace(box, radius=box.radius * ratio, constant=CONSTANT * box.radius * ratio)
        narrow = cls(replace(problem, box=smaller, penalty=problem.penalty / ratio**2), ratio)
        return narrow._with_targets(spread) if is_regression(problem) else narrow

    def weights(self, weights: Reals) -> Reals:
        """Weights on the rows of this problem as weights on those of the declared box, for targets
        as they were declared.
        """
        out = weights * self.half
        out[:-1] /= self.ratio
        out[-1] += self.middle * self.problem.box.length / self.problem.box.constant
        return out

    def _with_targets(self, spread: float) -> NarrowedProblem:
        problem, low, high = self.problem, -1.0, 1.0
        values = problem.targets[problem.keep, 0]
        for _ in range(2):
            low, high = core_range(noisy_counts(count_bins(values, low, high), spread), spread, low, high)
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        loss = Huber(problem.loss.width / half) if isinstance(problem.loss, Huber) else problem.loss
        targets = (problem.targets - middle) / half
        clipped = np.abs(targets[:, 0]) > 1
        if problem.clipped_targets is not None:
            clipped |= problem.clipped_targets
        inside = replace(problem, targets=np.clip(targets, -1.0, 1.0), loss=loss, clipped_targets=clipped)
        return replace(self, problem=inside, middle=middle, half=half)


def row_shells(problem: Problem) -> Ints:
    """How many rows have a length in each shell, from the longest."""
    longest, total = problem.box.room(BITS), np.zeros(_SHELLS, np.int64)
    for cells, _ in problem.cells():
        features = cells[:, :-1]
        total += count_shells(np.einsum("ij,ij->i", features, features), longest)
    return total


def count_shells(squares: Reals, longest: float, shells: int = _SHELLS) -> Ints:
    """How many squared lengths lie in each shell, from the one that ends at the square `longest`."""
    edges = longest * 2.0 ** -np.arange(1, shells)
    return np.bincount((squares[:, None] < edges).sum(axis=1), minlength=shells).astype(np.int64)


def length_ratio(counts: Reals, spread: float, *, all_rows: bool = False) -> float:
    """The fraction of the declared length that all but a few rows keep within; 1 if the counts show
    nothing.

    For intervals hardly a row may be shortened. So every shell that stands out from the noise is
    kept, and one more beyond those.
    """
    return float(2.0 ** (-outer_shell(counts, spread, all_rows=all_rows) / 2))


def outer_shell(counts: Reals, spread: float, *, all_rows: bool = False) -> int:
    """The first shell from outside that holds more than a few records, or than noise alone would."""
    total = float(counts.sum())
    if total < _SEEN * spread:
        return 0
    beyond = np.cumsum(counts)
    noise = spread * np.sqrt(np.arange(1, len(counts) + 1))
    least = 3 * noise if all_rows else np.maximum(_OUTSIDE * total, 2 * noise)
    return max(0, int(np.argmax(beyond > least)) - all_rows)


def count_bins(values: Reals, low: float, high: float) -> Ints:
    """How many values lie in each of equal parts of a range; those outside count in none."""
    inside = values[(values >= low) & (values <= high)]
    at = np.minimum((inside - low) * (_BINS / (high - low)), _BINS - 1).astype(np.int64)
    return np.bincount(at, minlength=_BINS).astype(np.int64)


def core_range(counts: Reals, spread: float, low: float, high: float) -> tuple[float, float]:
    """The ends of the bins that hold most values, widened by their own width and a bin; the same
    ends if none stand out.
    """
    trusted = np.flatnonzero(counts > _CORE * spread)
    total = float(counts.sum())
    if not trusted.size or total < _SEEN * spread:
        return low, high
    first, last = int(trusted[0]), int(trusted[-1]) + 1
    if counts[first:last].sum() < _INSIDE * total:
        return low, high
    step, width = (high - low) / _BINS, last - first + 1
    return max(low, low + (first - width) * step), min(high, low + (last + width) * step)


def noisy_counts(counts: Ints, spread: float) -> Reals:
    """Whole-number counts with rounded Gaussian noise of this standard deviation."""
    return np.asarray(counts + exact.rounded_gaussian(exactly(spread), counts.shape), np.float64)
