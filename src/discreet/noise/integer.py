# SPDX-License-Identifier: Apache-2.0
"""Whole-number noise with exactly the stated distribution: uniform, geometric, Laplace, and two
kinds of Gaussian.

    discrete_laplace(scale=10.0, size=1_000_000)  # P(z) proportional to exp(-|z| / scale)
    rounded_gaussian(scale=10.0)  # floor(scale * N + 1/2) for a standard normal N
    discrete_gaussian(scale=Fraction(1, 3), size=5)  # P(z) proportional to exp(-z² / (2 scale²))

A scale is an int, a Fraction, a float, or an array of floats that is broadcast to `size`. A float
stands for its exact value. Without a size, one scale gives an int; otherwise the result is an int64
array.

Why it holds: `lazy.draw` with the tails below; from a scale of 2**21 on, `wide.draw` with the same
tails on a coarser grid, so that a large scale takes no longer. What would break it: see
lazy.proof.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, cast, overload

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from discreet import check
from discreet.noise import lazy, wide
from discreet.noise.coin import Bools, head_exp_minus, heads_exp_minus
from discreet.noise.enclosure import Interval, exp_minus, normal_tails
from discreet.noise.lazy import Floats, Integers, LazyNoise, Real
from discreet.noise.scales import (
    LARGEST,
    Number,
    Numbers,
    Scales,
    Size,
    as_floats,
    broadcast,
    count_of,
    in_shape,
    is_many,
    out_of_range_error,
    shape_of,
)
from discreet.noise.source import Source, current
from discreet.noise.wide import Wide, WideGaussian, WideGeometric, WideLaplace

Places = npt.NDArray[np.intp]

_ROUND = 4 * lazy.CHUNK  # elements of one round of rejection sampling
# Below this scale a single element rarely needs exact arithmetic, so `lazy` is faster than `wide`.
_WIDE_ALONE = 2**28


@overload
def uniform(below: int, size: None = None) -> int: ...
@overload
def uniform(below: int, size: int | Sequence[int]) -> Integers: ...
@overload
def uniform(below: int, size: Size = None) -> int | Integers: ...
def uniform(below: int, size: Size = None) -> int | Integers:
    """Whole numbers 0, 1, …, below - 1, all equally likely: leading bits with rejection.

    **Guarantee.** Exactly this distribution, to the last bit; samples are independent.

    >>> uniform(1), uniform(6, size=3).shape
    (0, (3,))
    """
    below = check.whole(below=below)
    if below > LARGEST:
        raise out_of_range_error("below", below)
    shape, source = shape_of(below, size), current()
    out = np.empty(count_of(shape), np.int64)
    pending = np.arange(out.size)
    surplus = np.uint64(64 - max(1, (below - 1).bit_length()))
    while pending.size:
        drawn = (source.words(pending.size) >> surplus).view(np.int64)
        fits = drawn < below
        out[pending[fits]] = drawn[fits]
        pending = pending[~fits]
    return cast("int | Integers", in_shape(out, shape))


@overload
def geometric(scale: Number, size: None = None) -> int: ...
@overload
def geometric(scale: Numbers, size: int | Sequence[int]) -> Integers: ...
@overload
def geometric(scale: Numbers, size: Size = None) -> int | Integers: ...
def geometric(scale: Numbers, size: Size = None) -> int | Integers:
    """P(k) proportional to exp(-k / scale) on 0, 1, 2, …: P(sample >= k) = exp(-k / scale).

    **Guarantee.** Exactly this distribution, to the last bit; samples are independent.

    >>> geometric(2.5) >= 0, geometric(2.5, size=3).shape
    (True, (3,))
    """
    return cast("int | Integers", _draw(_GEOMETRIC, scale, size))


@overload
def discrete_laplace(scale: Number, size: None = None) -> int: ...
@overload
def discrete_laplace(scale: Numbers, size: int | Sequence[int]) -> Integers: ...
@overload
def discrete_laplace(scale: Numbers, size: Size = None) -> int | Integers: ...
def discrete_laplace(scale: Numbers, size: Size = None) -> int | Integers:
    """P(z) proportional to exp(-|z| / scale) on all whole numbers.

    **Guarantee.** Exactly this distribution, to the last bit; samples are independent.

    >>> isinstance(discrete_laplace(10.0), int), discrete_laplace([1.0, 2.0]).shape
    (True, (2,))
    """
    return cast("int | Integers", _draw(_LAPLACE, scale, size))


@overload
def rounded_gaussian(scale: Number, size: None = None) -> int: ...
@overload
def rounded_gaussian(scale: Numbers, size: int | Sequence[int]) -> Integers: ...
@overload
def rounded_gaussian(scale: Numbers, size: Size = None) -> int | Integers: ...
def rounded_gaussian(scale: Numbers, size: Size = None) -> int | Integers:
    """floor(scale * N + 1/2), N standard normal: the continuous Gaussian rounded half up.

    **Guarantee.** Exactly this distribution, to the last bit; samples are independent.

    >>> rounded_gaussian(Fraction(1, 3), size=5).dtype
    dtype('int64')
    """
    return cast("int | Integers", _draw(_GAUSSIAN, scale, size))


@overload
def discrete_gaussian(scale: Number, size: None = None) -> int: ...
@overload
def discrete_gaussian(scale: Numbers, size: int | Sequence[int]) -> Integers: ...
@overload
def discrete_gaussian(scale: Numbers, size: Size = None) -> int | Integers: ...
def discrete_gaussian(scale: Numbers, size: Size = None) -> int | Integers:
    """P(z) proportional to exp(-z² / (2 scale²)) on all whole numbers.

    Rejection sampling: a discrete Laplace of scale t is accepted with probability exp(-(|z| -
    scale²/t)² / (2 scale²)) (Canonne, Kamath, Steinke 2020). The distribution is exact for any t;
    with t = ceil(scale), of the scale as a float, about three in four are accepted.

    **Guarantee.** Exactly this distribution, to the last bit; samples are independent.

    >>> isinstance(discrete_gaussian(3), int)
    True
    """
    shape, source = shape_of(scale, size), current()
    if shape is None:
        check.positive(scale=scale)
        return _one_discrete_gaussian(_scales_of_one(cast(Number, scale)), source)
    scales = Scales(broadcast(scale, shape))
    out = np.empty(count_of(shape), np.int64)
    for start in range(0, out.size, _ROUND):
        chunk = out[start : start + _ROUND]
        pending = np.arange(chunk.size)
        while pending.size:
            tries = pending.repeat(max(1, 1024 // pending.size))
            proposals, accepted = _proposals(scales, tries + start, source)
            chunk[tries[accepted]] = proposals[accepted]
            has_sample = np.zeros(chunk.size, np.bool_)
            has_sample[tries[accepted]] = True
            pending = pending[~has_sample[pending]]
    return cast("int | Integers", in_shape(out, shape))


def _one_discrete_gaussian(scales: Scales, source: Source) -> int:
    sigma, exact = float(scales.floats), scales.ratio(0)
    broad = float(math.ceil(sigma))
    middle = sigma * (sigma / broad)
    while True:
        sample = int(_draw(_LAPLACE, broad, None))
        y = (abs(sample) - middle) / sigma
        if head_exp_minus(0.5 * y * y, lambda: _exponent(exact, int(broad), sample), source):  # noqa: B023
            return sample


def _proposals(scales: Scales, tries: Places, source: Source) -> tuple[Integers, Bools]:
    """One proposal for each index in `tries`, and whether it is accepted."""
    sigma = scales.part(tries)
    broad = float(math.ceil(sigma)) if isinstance(sigma, float) else np.ceil(sigma)
    proposals = (
        _draw_alike(_LAPLACE, broad, tries.size, source)
        if isinstance(broad, float)
        else _draw_each(_LAPLACE, broad, source)
    )
    exponents = np.abs(proposals).astype(np.float64)
    exponents -= sigma * (sigma / broad)
    exponents /= sigma
    exponents *= exponents
    exponents *= 0.5

    def exponent(i: int) -> Fraction:
        t = broad if isinstance(broad, float) else broad[i]
        return _exponent(scales.ratio(int(tries[i])), int(t), int(proposals[i]))

    return proposals, heads_exp_minus(exponents, exponent, source)


def _exponent(scale: Fraction, t: int, sample: int) -> Fraction:
    """(|sample| - scale²/t)² / (2 scale²), exactly."""
    variance = scale * scale
    return (abs(sample) - variance / t) ** 2 / (2 * variance)


@dataclass(frozen=True)
class _Noise:
    """One noise distribution, for both samplers."""

    plain: Callable[[Scales], LazyNoise]
    wide: Callable[[LazyNoise, Scales, Any], Wide]
    coarse: Callable[[Scales], LazyNoise]
    signed: bool


def _draw(noise: _Noise, scale: Any, size: Size) -> Any:
    shape, source = shape_of(scale, size), current()
    if is_many(scale):
        return _draw_each(noise, as_floats(broadcast(scale, shape)), source).reshape(shape)
    check.positive(scale=scale)
    if shape is None and scale < _WIDE_ALONE:
        return lazy.draw_one(_noise_of_one(noise.plain, scale), source, signed=noise.signed)
    return cast("int | Integers", in_shape(_draw_alike(noise, scale, count_of(shape), source), shape))


def _draw_alike(noise: _Noise, scale: Any, count: int, source: Source) -> Integers:
    if wide.is_wide(scale):
        return wide.draw(_wide_of_one(noise, scale), count, source, signed=noise.signed)
    return lazy.draw(_noise_of_one(noise.plain, scale), count, source, signed=noise.signed)


def _draw_each(noise: _Noise, scales: Floats, source: Source) -> Integers:
    """Noise with one scale for each element."""
    all_scales, large = Scales(scales), wide.is_wide(scales)
    if not large.any():
        return lazy.draw(noise.plain(all_scales), scales.size, source, signed=noise.signed)
    out = np.empty(scales.size, np.int64)
    small = scales[~large]
    out[~large] = lazy.draw(noise.plain(Scales(small)), small.size, source, signed=noise.signed)
    shift = np.frexp(scales[large])[1].astype(np.int64) - 1 - wide.COARSE_BITS
    coarse = Scales(np.ldexp(scales[large], -shift))
    wide_noise = noise.wide(noise.coarse(coarse), coarse, shift)
    out[large] = wide.draw(wide_noise, shift.size, source, signed=noise.signed)
    return out


@lru_cache(maxsize=256, typed=True)
def _noise_of_one(kind: Callable[[Scales], LazyNoise], scale: Any) -> LazyNoise:
    return kind(Scales(scale))


@lru_cache(maxsize=256, typed=True)
def _wide_of_one(noise: _Noise, scale: Any) -> Wide:
    exact = Scales(scale).ratio(0)
    shift = wide.shift_of(exact)
    coarse = Scales(exact / 2**shift)
    return noise.wide(noise.coarse(coarse), coarse, shift)


@lru_cache(maxsize=256, typed=True)
def _scales_of_one(scale: Any) -> Scales:
    return Scales(scale)


class GeometricNoise:
    """P(k or more) = exp(-k / scale)."""

    def __init__(self, scales: Scales) -> None:
        self._scales = scales

    def guess(self, u: Real, part: slice) -> Real:
        return np.log(u) * -self._scales.part(part) - 0.5

    def slack(self, part: slice) -> Real:
        return lazy.SLACK * (self._scales.part(part) + 1.0)

    def tail(self, index: int, k: int, bits: int) -> Interval:
        return exp_minus(k / self._scales.ratio(index), bits)


class LaplaceMagnitude:
    """|z| of a discrete Laplace: P(k or more) = 2 q**k / (1 + q) for k >= 1, where q = exp(-1 /
    scale).
    """

    def __init__(self, scales: Scales) -> None:
        self._scales = scales
        scale = np.asarray(scales.floats)
        # scale * log(2 / (1 + q)) - 1/2, to full precision also if the scale is large and q near 1
        shift = -scale * np.log1p(np.expm1(-1.0 / scale) / 2.0) - 0.5
        self._shift = shift if shift.ndim else float(shift)

    def guess(self, u: Real, part: slice) -> Real:
        shift = self._shift if isinstance(self._shift, float) else self._shift[part]
        return np.log(u) * -self._scales.part(part) + shift

    def slack(self, part: slice) -> Real:
        return lazy.SLACK * (self._scales.part(part) + 1.0)

    def tail(self, index: int, k: int, bits: int) -> Interval:
        scale = self._scales.ratio(index)
        work = bits + 8
        low, high = exp_minus(k / scale, work)
        q_low, q_high = exp_minus(1 / scale, work)
        one = 1 << work
        return (low << (bits + 1)) // (one + q_high), -(-(high << (bits + 1)) // (one + q_low))


class GaussianMagnitude:
    """|round(scale N)|: P(k or more) = P(|N| > (k - 1/2) / scale) for k >= 1."""

    def __init__(self, scales: Scales) -> None:
        self._scales = scales

    def guess(self, u: Real, part: slice) -> Real:
        return ndtri(0.5 * u) * -self._scales.part(part)

    def slack(self, part: slice) -> Real:
        return lazy.SLACK * self._scales.part(part)

    def tail(self, index: int, k: int, bits: int) -> Interval:
        return normal_tails((k - Fraction(1, 2)) / self._scales.ratio(index), bits)


_GEOMETRIC = _Noise(GeometricNoise, WideGeometric, GeometricNoise, signed=False)
_LAPLACE = _Noise(LaplaceMagnitude, WideLaplace, GeometricNoise, signed=True)
_GAUSSIAN = _Noise(GaussianMagnitude, WideGaussian, GaussianMagnitude, signed=True)
