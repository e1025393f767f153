# SPDX-License-Identifier: Apache-2.0
"""Which of many noisy scores is the largest: exactly, by knowing only the contenders exactly.

    largest(scores, scale=2.0, noise="gumbel")  # i with a chance proportional to exp(score / 2)
    largest(scores, scale=2.0, noise="exponential")  # permute-and-flip
    largest(scores, scale=2.0, noise="laplace", count=10)  # the ten largest, in order
    largest(scores, scale=2.0, weights=lengths)  # proportional to length * exp(score / 2)

**Guarantee**: the answer has exactly the distribution of the indices that sort `score + scale *
noise`, where the noises are independent reals of the stated distribution. Scores, weights and the
scale stand for exactly the numbers they are.

Why it holds: the noise of an element is a function of one uniform real. Floating point encloses
every noisy score within a slack far larger than its error; whatever cannot be among the largest
even so is out, and the few that remain draw more bits of the same reals until integer intervals
tell them apart (lazy.proof.md, §6). With Gumbel noise the largest is the first of an exponential
race: i wins with probability w_i exp(s_i) / sum. With exponential noise it is permute-and-flip
(Ding et al., "The permute-and-flip mechanism is identical to report-noisy-max with exponential
noise", 2021).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import check
from discreet.errors import BadParameter
from discreet.exact import as_ratio
from discreet.noise import enclosure
from discreet.noise.enclosure import Interval
from discreet.noise.lazy import CHUNK, KNOWN_BITS, Floats, Integers, Uniform, unit
from discreet.noise.scales import Number
from discreet.noise.source import Source, Words, current

NOISES = ("gumbel", "exponential", "laplace")
SLACK = 2.0**-24  # far more than the error of the float of a noisy score
# A uniform number outside has too few known digits, so its candidate always contends.
LEAST, MOST = 2.0**-30, 1.0 - 2.0**-24
FAR = 2.0**60  # a candidate further behind is only known to be behind

_RELATIVE_SLACK = 2.0**-44  # of the distance from the best score

Indices = npt.NDArray[np.intp]
ExactNumber = Callable[[int], Fraction]  # of the candidate with this index
Scores = npt.ArrayLike | Sequence[Number]


def largest(
    scores: Scores,
    scale: Number = 1,
    *,
    noise: str = "gumbel",
    count: int = 1,
    weights: Scores | None = None,
) -> Integers:
    """The indices of the `count` largest values of score + scale * noise, largest first.

    **Guarantee.** As above: exactly the distribution of that order, for all scores, weights and
    scales.

    >>> largest([0, 1_000, 500], scale=1, count=2).tolist()
    [1, 2]
    """
    check.choice(NOISES if weights is None else NOISES[:1], noise=noise)
    check.positive(scale=scale)
    check.whole(count=count)
    field, candidates = _field(scores, as_ratio(scale), noise, weights)
    if count > candidates.size:
        raise BadParameter(
            "DP102",
            f"count must be at most the number of candidates that have a weight, not {count}.",
            why="a candidate is chosen at most once, and one without weight never.",
            fix=f"pass count={max(candidates.size, 1)} or less, and at least one candidate",
        )
    source = current()
    words = source.words(candidates.size)
    return candidates[_first(field, words, count, source)].astype(np.int64)


def _first(field: Field, words: Words, count: int, source: Source) -> Indices:
    low, high = field.bounds(words)
    bar = np.partition(low, low.size - count)[low.size - count]
    contenders = np.flatnonzero(high >= bar)
    order = contenders[np.argsort(-high[contenders], kind="stable")]
    if order.size > count or not (low[order[:-1]] > high[order[1:]]).all():
        exact = [_Contender(field, int(index), int(words[index]), source) for index in order]
        exact.sort(key=cmp_to_key(_compare))
        order = np.array([contender.index for contender in exact], np.intp)
    return order[:count]


@dataclass(frozen=True)
class Field:
    """The candidates: how far each is behind the best score in units of the scale, and its weight."""

    noise: str
    behind: Floats
    exact_behind: ExactNumber
    log_weights: Floats | float
    exact_weight: ExactNumber

    def bounds(self, words: Words) -> tuple[Floats, Floats]:
        """Floats below and above each noisy score, in units of the scale and relative to the best
        score.
        """
        key, doubt = np.empty(words.size), np.empty(words.size, np.bool_)
        for start in range(0, words.size, CHUNK):
            part = slice(start, start + CHUNK)
            u = unit(words[part])
            doubt[part] = (u < LEAST) | (u > MOST)
            key[part] = self._noise(np.minimum(u, MOST), words[part])
        far = self.behind > FAR
        key += self.log_weights
        key -= np.where(far, FAR, self.behind)
        slack = np.where(far, FAR, self.behind) * _RELATIVE_SLACK + SLACK
        low, high = key - slack, key + slack
        low[far | doubt] = -np.inf
        high[doubt] = np.inf
        return low, high

    def _noise(self, u: Floats, words: Words) -> Floats:
        if self.noise == "gumbel":
            return -np.log(-np.log1p(-u))
        clock = -np.log(u)
        return clock if self.noise == "exponential" else np.where(words & np.uint64(1), -clock, clock)

    def enclose(self, index: int, uniform: Uniform, *, negative: bool) -> Interval:
        """Integers that enclose 2**uniform.known times the noisy score."""
        bits = uniform.known
        low, high = self._enclose_noise(index, uniform, bits)
        if negative and self.noise == "laplace":
            low, high = -high, -low
        behind_low, behind_high = enclosure.ratio(self.exact_behind(index), bits)
        return low - behind_high, high - behind_low

    def _enclose_noise(self, index: int, uniform: Uniform, bits: int) -> Interval:
        prefix, denominator = uniform.prefix, 1 << uniform.known
        if self.noise != "gumbel":
            return _minus_log(Fraction(prefix + 1, denominator), bits)[0], _minus_log(
                Fraction(prefix, denominator), bits
            )[1]
        weight, work = self.exact_weight(index), bits + uniform.known + 8
        soonest = Fraction(_minus_log(1 - Fraction(prefix, denominator), work)[0], 1 << work)
        latest = Fraction(_minus_log(1 - Fraction(prefix + 1, denominator), work)[1], 1 << work)
        return _minus_log(latest / weight, bits)[0], _minus_log(soonest / weight, bits)[1]


class _Contender:
    """One candidate whose noisy score is known within an interval that shrinks on demand."""

    def __init__(self, field: Field, index: int, word: int, source: Source) -> None:
        self._field, self.index, self._negative = field, index, bool(word & 1)
        self._uniform = Uniform(source, word >> 1, KNOWN_BITS)
        self._enclose()

    def refine(self) -> None:
        self._uniform.refine()
        self._enclose()

    def _enclose(self) -> None:
        uniform = self._uniform
        while uniform.prefix in (0, (1 << uniform.known) - 1):  # until both logarithms are finite
            uniform.refine()
        self.bits = uniform.known
        self.low, self.high = self._field.enclose(self.index, uniform, negative=self._negative)


def _compare(first: _Contender, second: _Contender) -> int:
    """-1 where the first is the larger; that two are equal has probability zero."""
    while True:
        common = max(first.bits, second.bits)
        if first.low << (common - first.bits) > second.high << (common - second.bits):
            return -1
        if second.low << (common - second.bits) > first.high << (common - first.bits):
            return 1
        (first if first.bits <= second.bits else second).refine()


def _minus_log(x: Fraction, bits: int) -> Interval:
    low, high = enclosure.log(x, bits)
    return -high, -low


def _field(scores: Scores, scale: Fraction, noise: str, weights: Scores | None) -> tuple[Field, Indices]:
    """The candidates that have a weight, and their indices among all."""
    gap, exact_gap = _gaps(scores)
    with np.errstate(over="ignore"):
        behind = gap / float(scale)
    # two floats can be further apart than any float
    for index in map(int, np.flatnonzero(np.isinf(gap))):
        behind[index] = _nearest(exact_gap(index) / scale)
    if weights is None:
        all_indices = np.arange(gap.size)
        return Field(noise, behind, lambda i: exact_gap(i) / scale, 0.0, lambda _: Fraction(1)), all_indices
    weight, exact_weight = _weights(weights, gap.size)
    candidates = np.flatnonzero(weight)
    field = Field(
        noise,
        behind[candidates],
        lambda i: exact_gap(int(candidates[i])) / scale,
        np.log(weight[candidates]),
        lambda i: exact_weight(int(candidates[i])),
    )
    return field, candidates


def _gaps(scores: Scores) -> tuple[Floats, ExactNumber]:
    """How far each score is below the largest, correctly rounded; infinite where a float cannot
    hold it.
    """
    array = _row(scores, "scores")
    if not array.size:
        return np.empty(0), as_ratio
    best = array.max()
    if array.dtype.kind in "iu":  # modulo 2**64 the difference of two 64-bit integers is exact
        floats = (best.astype(np.uint64) - array.astype(np.uint64)).astype(np.float64)
    elif array.dtype.kind == "O":
        floats = _nearest_all(best - array)
    else:
        with np.errstate(over="ignore"):
            floats = best - array
    return floats, lambda i: as_ratio(best) - as_ratio(array[i])


def _weights(values: Scores, count: int) -> tuple[Floats, ExactNumber]:
    """Weights that are zero or more, one for each score."""
    array = _row(values, "weights")
    floats = _nearest_all(array)
    lost = not np.isfinite(floats).all() or ((floats == 0) != (array == 0)).any()
    if array.size != count or (floats < 0).any() or lost:
        raise _bad_scores_error(
            "weights must be numbers that are zero or more, within the range of a float, one for each score."
        )
    return floats, lambda i: as_ratio(array[i])


def _row(values: Scores, name: str) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.dtype.kind == "f" and np.can_cast(array.dtype, np.float64):
        array = array.astype(np.float64)
    if array.ndim != 1 or not (array.dtype.kind in "iuO" or array.dtype == np.float64):
        raise _bad_scores_error(f"{name} must be one row of numbers.")
    if array.dtype.kind == "O":
        array = np.array([_ratio(value, name) for value in array], object)
    elif not np.isfinite(array).all():
        raise _bad_scores_error(f"{name} must be finite numbers.")
    return array


def _ratio(value: Any, name: str) -> Fraction:
    try:
        return as_ratio(value)
    except (TypeError, ValueError, OverflowError):
        raise _bad_scores_error(f"{name} must be finite numbers.") from None


def _nearest_all(array: npt.NDArray[Any]) -> Floats:
    if array.dtype.kind != "O":
        return array.astype(np.float64)
    return np.array([_nearest(value) for value in array], np.float64)


def _nearest(value: Fraction) -> float:
    """The nearest float, or an infinity where there is none."""
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _bad_scores_error(what: str) -> BadParameter:
    return BadParameter(
        "DP101",
        what,
        why="no theorem covers a choice by entries that are not numbers.",
        fix="replace such entries before the choice, by the same rule for all data",
    )
