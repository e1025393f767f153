# SPDX-License-Identifier: Apache-2.0
"""Whole-number noise of a large scale: first a block of 2**shift numbers, then an offset in the
block.

**Guarantee**: `draw` gives independent samples whose distribution is exactly that of the `Wide`
noise.

Why it holds: the block is the same noise on a grid that is 2**shift times coarser, and `lazy`
samples it exactly. Inside a block the density is nearly flat: an offset is drawn uniformly and kept
with probability density / greatest density in the block; else another offset of the *same* block is
drawn. The first bits of that coin nearly always settle it. Where they do not, integer intervals
decide, with more bits of the same coin and of the same offset (lazy.proof.md, section 4).

What would break it: drawing the block again with the offset, or an exponent that rises and falls
between two neighbouring offsets.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from discreet.noise import lazy
from discreet.noise.enclosure import Interval, exp_minus
from discreet.noise.lazy import Integers, LazyNoise, Uniform
from discreet.noise.scales import Scales
from discreet.noise.source import Source

COARSE_BITS = 18  # a block is so wide that the scale is 2**18 to 2**19 blocks
_FAR = 7  # coarse scales; further out a Gaussian's coin is left to exact arithmetic


class Wide(Protocol):
    """Blocks, and how the density falls inside them."""

    #: The distribution of the block, and by how many bits its numbers are shifted: one shift, or
    #: one for each element.
    coarse: LazyNoise
    shift: Any
    #: How many more bits an offset has than a number: 1 where offsets are halves.
    halves: int
    #: Whether zero has two signs, so that the negative one is drawn again.
    two_zeros: bool

    def number(self, block: Any, offset: Any, shift: Any) -> Any:
        """The sample at an offset, which is a whole number of 2**-(shift + halves) of a block."""
        ...

    def exponent(self, index: int, block: int, offset: Fraction) -> Fraction:
        """log(greatest density in the block / density at the offset), for an offset in [0, 1]."""
        ...

    def far(self, part: slice) -> Any:
        """The last block in which every exponent is at most 2**-(COARSE_BITS - 3)."""
        ...


class WideGeometric:
    """floor(scale * E) for a standard exponential E: the density falls by exp(-offset / coarse
    scale).
    """

    halves, two_zeros = 0, False

    def __init__(self, coarse: LazyNoise, scales: Scales, shift: Any) -> None:
        self.coarse, self._scales, self.shift = coarse, scales, shift

    def number(self, block: Any, offset: Any, shift: Any) -> Any:
        return (block << shift) + offset

    def exponent(self, index: int, block: int, offset: Fraction) -> Fraction:
        return offset / self._scales.ratio(index)

    def far(self, part: slice) -> Any:
        return np.inf


class WideLaplace(WideGeometric):
    """The same with a fair sign, where a negative zero is drawn again: P(z) proportional to
    exp(-|z| / scale).
    """

    two_zeros = True


class WideGaussian:
    """floor(scale * |N| + 1/2), where block b is the numbers whose |N| is within [b - 1/2, b + 1/2)
    coarse units.
    """

    halves, two_zeros = 1, False

    def __init__(self, coarse: LazyNoise, scales: Scales, shift: Any) -> None:
        self.coarse, self._scales, self.shift = coarse, scales, shift

    def number(self, block: Any, offset: Any, shift: Any) -> Any:
        return (block << shift) - (1 << shift >> 1) + ((offset + 1) >> 1)

    def exponent(self, index: int, block: int, offset: Fraction) -> Fraction:
        half = Fraction(1, 2)
        nearest = block - half if block else 0
        return ((block - half + offset) ** 2 - nearest**2) / (2 * self._scales.ratio(index) ** 2)

    def far(self, part: slice) -> Any:
        return _FAR * self._scales.part(part)


def is_wide(scale: Any) -> Any:
    """Whether a scale (or each of an array of them) is drawn faster in blocks, of eight numbers or
    more.
    """
    return scale >= 8 << COARSE_BITS


def shift_of(scale: Fraction) -> int:
    """The bits of an offset in a block: the scale is then 2**COARSE_BITS blocks or more, and less
    than twice as many.
    """
    return (scale.numerator // scale.denominator).bit_length() - 1 - COARSE_BITS


def draw(noise: Wide, count: int, source: Source, *, signed: bool = False) -> Integers:
    """Independent samples, one per element; `signed` gives each a fair sign."""
    out = np.empty(count, np.int64)
    for start in range(0, count, lazy.CHUNK):
        part = slice(start, min(start + lazy.CHUNK, count))
        out[part] = _samples(noise, part, source, signed=signed)
    return out


def _samples(noise: Wide, part: slice, source: Source, *, signed: bool) -> Integers:
    words, later = source.words(part.stop - part.start), source.words(part.stop - part.start)
    blocks = lazy.magnitudes(noise.coarse, words, part, source)
    shift = noise.shift if isinstance(noise.shift, int) else noise.shift[part]
    mask = (1 << (shift + noise.halves)) - 1
    samples: Integers = noise.number(blocks, later.view(np.int64) & mask, shift)
    unsure, far = _first_unsure(), noise.far(part)
    if int(later.max()) >= unsure or (blocks > far).any():
        for index in map(int, np.flatnonzero((later >= np.uint64(unsure)) | (blocks > far))):
            samples[index] = settle(noise, part.start + index, int(blocks[index]), int(later[index]), source)
    if signed:
        lazy.add_signs(samples, words)
    if signed and noise.two_zeros and not samples.all():
        for index in map(int, np.flatnonzero((samples == 0) & ((words & np.uint64(1)) == 1))):
            element = slice(part.start + index, part.start + index + 1)
            samples[index] = _samples(noise, element, source, signed=True)[0]
    return samples


def settle(noise: Wide, index: int, block: int, word: int, source: Source) -> int:
    """The sample of one element in exact arithmetic: the low bits of the word are its offset, the
    others its coin.
    """
    shift = noise.shift if isinstance(noise.shift, int) else int(noise.shift[index])
    bits = shift + noise.halves
    while True:
        offset = word & ((1 << bits) - 1)
        uniform, coin = Uniform(source, offset, bits), Uniform(source, word >> bits, 64 - bits)
        if is_kept(noise, index, block, uniform, coin):
            return int(noise.number(block, offset, shift))
        word = source.bits(64)


def is_kept(noise: Wide, index: int, block: int, offset: Uniform, coin: Uniform) -> bool:
    """Whether the coin is below exp(-exponent) at the offset, of which more digits are drawn if it
    must be known better.
    """

    def threshold(bits: int) -> Interval:
        while offset.known < bits - lazy.GUARD_BITS:
            offset.refine()
        ends = [Fraction(offset.prefix + side, 1 << offset.known) for side in (0, 1)]
        smallest, largest = sorted(noise.exponent(index, block, end) for end in ends)
        return exp_minus(largest, bits)[0], exp_minus(smallest, bits)[1]

    return coin.below(threshold)


def _first_unsure() -> int:
    """The least word whose coin is not known to be below 1 - 2**-(COARSE_BITS - 3), its first bits
    being all ones.
    """
    return (1 << 64) - (1 << (64 - max(0, COARSE_BITS - 3)))
