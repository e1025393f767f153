# SPDX-License-Identifier: Apache-2.0
"""A uniform real of which a few bits are known, and more are drawn when a decision needs them.

    u = Uniform(source)
    u.below(lambda bits: exp_minus(Fraction(1, 3), bits))  # True with probability exp(-1/3), exactly

**Guarantee**: `draw` gives independent whole numbers whose distribution is exactly the one that the
`LazyNoise` states, on the assumption that its floating-point `guess` is nearer to the truth than
its `slack`.

Why it holds: a sample is a function of an infinite string of fair bits. Floating point looks at the
first 63 and answers only where every continuation of them, and every error smaller than the slack,
gives the same number. All other elements are decided by integer intervals, which draw more bits of
the *same* string until the answer is certain. Both ways compute the same function of the same
string, so its distribution is the ideal one: lazy.proof.md has the argument and the error budget.

What would break it: a `log`, `exp` or `ndtri` that is wrong by more than about 2**-42 of its value
(the ones in use are right to 2**-50).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from discreet.exact import bisect_whole
from discreet.noise.enclosure import Interval
from discreet.noise.source import Source, Words

Floats = npt.NDArray[np.float64]
Real = Any  # a float or an array of them: the same expression serves one element and many
Integers = npt.NDArray[np.int64]
Threshold = Callable[[int], Interval]

CHUNK = 1 << 13  # elements at a time: the scratch arrays stay in the cache
KNOWN_BITS = 63  # of each word, one bit is the sign
LEAST = 2.0**-19  # a uniform below this has too few known digits for floating point
SLACK = 2.0**-38  # the greatest error of a guess, per unit of scale
GUARD_BITS = 16  # more than the known ones, to which a threshold is computed

_FIRST = slice(0, 1)
_STEP_BITS = 64


class Uniform:
    """A uniform real in [0, 1): `prefix` / 2**`known` and the digits that follow, drawn on demand."""

    __slots__ = ("_source", "_step", "known", "prefix")

    def __init__(self, source: Source, prefix: int = 0, known: int = 0, step: int = _STEP_BITS) -> None:
        self._source, self._step = source, step
        self.prefix, self.known = prefix, known

    def refine(self) -> None:
        """Draw more of the digits."""
        self.prefix = (self.prefix << self._step) | self._source.bits(self._step)
        self.known += self._step

    def below(self, threshold: Threshold) -> bool:
        """Whether this real is below the one that `threshold(bits)` encloses. They are never equal."""
        while True:
            low, high = threshold(self.known + GUARD_BITS)
            if (self.prefix + 1) << GUARD_BITS <= low:
                return True
            if self.prefix << GUARD_BITS >= high:
                return False
            self.refine()


class Tailed(Protocol):
    """A distribution on 0, 1, 2, … for each element, given by its tail."""

    def tail(self, index: int, k: int, bits: int) -> Interval:
        """Encloses 2**bits * P(sample >= k) for the element at that index, k >= 1."""
        ...


class LazyNoise(Tailed, Protocol):
    """A tail, and a floating-point guess of its quantile.

    Anything with a decreasing tail and a quantile to 12 digits can be drawn, heavy tails too: a new
    distribution is a new class with these three methods.
    """

    def guess(self, u: Real, part: slice) -> Real:
        """The real h with `sample = floor(h + 1/2)` where the uniforms are `u`."""
        ...

    def slack(self, part: slice) -> Real:
        """How far `guess` may be from the truth, for u >= LEAST known to 63 bits."""
        ...


def draw(noise: LazyNoise, count: int, source: Source, *, signed: bool = False) -> Integers:
    """Independent samples of the distribution, one per element; `signed` gives each a fair sign."""
    out = np.empty(count, np.int64)
    for start in range(0, count, CHUNK):
        part = slice(start, min(start + CHUNK, count))
        words = source.words(part.stop - start)
        samples = magnitudes(noise, words, part, source)
        if signed:
            add_signs(samples, words)
        out[part] = samples
    return out


def add_signs(samples: Integers, words: Words) -> None:
    """Turn over, in index, the samples whose words are odd."""
    sign = -(words & np.uint64(1)).view(np.int64)
    samples ^= sign
    samples -= sign


def magnitudes(noise: LazyNoise, words: Words, part: slice, source: Source) -> Integers:
    """The samples that the upper 63 bits of these words decide, or these and more that are drawn."""
    u = unit(words)
    real = noise.guess(u, part)
    nearest = np.rint(real)
    clear = np.abs(np.subtract(real, nearest, out=real), out=real) < 0.5 - noise.slack(part)
    samples: Integers = nearest.astype(np.int64)
    if u.min() < LEAST:
        clear &= u >= LEAST
    if not clear.all():
        for index in map(int, np.flatnonzero(~clear)):
            uniform = Uniform(source, int(words[index]) >> 1, KNOWN_BITS)
            samples[index] = locate(uniform, noise, part.start + index, int(samples[index]))
    return samples


def draw_one(noise: LazyNoise, source: Source, *, signed: bool = False) -> int:
    """`draw` for one element of a distribution whose elements are all alike."""
    word = source.bits(64)
    u = unit_of(word)
    real = float(noise.guess(u, _FIRST))
    sample = round(real)
    if u < LEAST or abs(real - sample) >= 0.5 - noise.slack(_FIRST):
        sample = locate(Uniform(source, word >> 1, KNOWN_BITS), noise, 0, sample)
    return -sample if signed and word & 1 else sample


def define(noise: LazyNoise, source: Source, *, signed: bool = False) -> int:
    """One sample without floating point, a bit at a time: the definition that `draw` must agree
    with.
    """
    sign = -1 if signed and source.bits(1) else 1
    return sign * locate(Uniform(source, step=1), noise, index=0, start=0)


def locate(u: Uniform, noise: Tailed, index: int, start: int) -> int:
    """The k with tail(k + 1) <= u < tail(k), sought from `start` in doubling strides and then by
    halves.
    """

    def reaches(k: int) -> bool:
        return k <= 0 or u.below(lambda bits: noise.tail(index, k, bits))

    low, stride = start, 1
    if reaches(low):
        high = low + 1
        while reaches(high):
            stride *= 2
            low, high = high, high + stride
    else:
        high = low
        while not reaches(low):
            low, high, stride = low - stride, low, 2 * stride
    return bisect_whole(reaches, yes=low, no=high)


def unit(words: Words) -> Floats:
    """The first 63 bits of each word as a number in (0, 1], within a relative 2**-53 plus 2**-64."""
    u = (words >> np.uint64(1)).view(np.int64).astype(np.float64)
    u *= 2.0**-KNOWN_BITS
    u += 2.0 ** -(KNOWN_BITS + 1)
    return u


def unit_of(word: int) -> float:
    """`unit` of one word."""
    return (word >> 1) * 2.0**-KNOWN_BITS + 2.0 ** -(KNOWN_BITS + 1)
