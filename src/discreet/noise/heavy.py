# SPDX-License-Identifier: Apache-2.0
"""Real noise of any scale, rounded to whole numbers: heavy tails, and light ones of a scale that
may be secret.

    rounded_noise(CauchyNoise(), scale=Fraction(7, 3))  # floor(scale * Z + 1/2)
    rounded_noise(LomaxNoise(Fraction(9, 2)), scale, centre=Fraction(1, 3))  # floor(centre + scale * Z + 1/2)

| noise | density, or how Z is made |
|---|---|
| `LaplaceNoise()` | exp(-|z|) / 2 |
| `GaussianNoise()` | standard normal |
| `StudentTNoise(d)`, `CauchyNoise()` = `StudentTNoise(1)` | ∝ (1 + z²/d)^(-(d+1)/2), d any positive ratio |
| `LomaxNoise(a)` | (a-1)/2 · (1 + |z|)^-a, a > 1 |
| `LaplaceLogNormalNoise(σ)` | X exp(σY), X Laplace, Y standard normal |
| `UniformLogNormalNoise(σ)` | X exp(σY), X uniform on [-1, 1] |
| `ArsinhNormalNoise(σ)` | sinh(σY) / σ |

**Guarantee**: the answer is the integer floor(centre + scale * Z + 1/2) of the mathematical Z, for
every scale, zero and the astronomic included, as a Python int. No scale raises, so that a scale may
depend on secrets.

Why it holds: `lazy.locate` with the tails that are written here (heavy.proof.md). What would break
it: nothing that is floating point; the quantiles in float only say where the search begins.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any, ClassVar

from scipy.special import stdtrit

from discreet import check
from discreet.errors import BadParameter
from discreet.exact import as_ratio
from discreet.noise import lazy
from discreet.noise.enclosure import Interval, exp_minus, normal_tails, ratio
from discreet.noise.lazy import Uniform
from discreet.noise.source import Source, current
from discreet.noise.tails import arsinh_normal_tails, lomax_tails, student_tails

__all__ = [
    "ArsinhNormalNoise",
    "CauchyNoise",
    "GaussianNoise",
    "HeavyNoise",
    "LaplaceLogNormalNoise",
    "LaplaceNoise",
    "LomaxNoise",
    "StudentTNoise",
    "UniformLogNormalNoise",
    "rounded_noise",
]

_FIRST_BITS = 20  # of every uniform real; more are drawn when a decision needs them
_GUESS_BITS = 8
_HALF = Fraction(1, 2)
# Beyond these parameters of a distribution an enclosure takes seconds.
_LEAST_PARAMETER, _GREATEST_PARAMETER = Fraction(1, 1000), 1000


class Tails(ABC):
    """A symmetric distribution of a real number Z, given by its tails."""

    @abstractmethod
    def tails(self, z: Fraction, bits: int) -> Interval:
        """Encloses 2**bits * P(|Z| > z), z > 0."""

    @abstractmethod
    def quantile(self, u: float) -> float:
        """Roughly the z with P(|Z| > z) = u; it only says where a search begins."""


class HeavyNoise(ABC):
    """A distribution that can be drawn; its parameters are exact."""

    @abstractmethod
    def begin(self, source: Source) -> Tails:
        """The distribution of one draw; where that distribution is itself random, a fresh one."""


class ExplicitNoise(HeavyNoise, Tails):
    """Noise whose tails can be written down."""

    def begin(self, source: Source) -> Tails:
        return self


@dataclass(frozen=True)
class LaplaceNoise(ExplicitNoise):
    """exp(-|z|) / 2."""

    def tails(self, z: Fraction, bits: int) -> Interval:
        return exp_minus(z, bits)

    def quantile(self, u: float) -> float:
        return -math.log(u)


@dataclass(frozen=True)
class GaussianNoise(ExplicitNoise):
    """The standard normal distribution."""

    def tails(self, z: Fraction, bits: int) -> Interval:
        return normal_tails(z, bits)

    def quantile(self, u: float) -> float:
        return _normal_quantile(u)


@dataclass(frozen=True)
class StudentTNoise(ExplicitNoise):
    """Student's t; its tails fall like |z|**-degrees."""

    degrees: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "degrees", _parameter("degrees", self.degrees))

    def tails(self, z: Fraction, bits: int) -> Interval:
        return student_tails(self.degrees, z, bits)

    def quantile(self, u: float) -> float:
        return -float(stdtrit(float(self.degrees), u / 2))


class CauchyNoise(StudentTNoise):
    """Student's t with one degree."""

    def __init__(self) -> None:
        super().__init__(Fraction(1))


@dataclass(frozen=True)
class LomaxNoise(ExplicitNoise):
    """(shape - 1)/2 · (1 + |z|)**-shape, shape > 1."""

    shape: Fraction

    def __post_init__(self) -> None:
        check.above_one(shape=self.shape)
        _parameter("shape - 1", as_ratio(self.shape) - 1)
        object.__setattr__(self, "shape", as_ratio(self.shape))

    def tails(self, z: Fraction, bits: int) -> Interval:
        return lomax_tails(self.shape, z, bits)

    def quantile(self, u: float) -> float:
        return math.expm1(min(700.0, -math.log(u) / float(self.shape - 1)))


class _Uniform(Tails):
    """Uniform on [-1, 1]."""

    def tails(self, z: Fraction, bits: int) -> Interval:
        return ratio(max(Fraction(0), 1 - z), bits)

    def quantile(self, u: float) -> float:
        return 1.0 - u


@dataclass(frozen=True)
class LogNormalNoise(HeavyNoise):
    """X exp(σY): given Y, the distribution of X with a random scale, of which digits are drawn when
    they are needed.
    """

    sigma: Fraction
    inner: ClassVar[Tails]

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", _parameter("sigma", self.sigma))

    def begin(self, source: Source) -> Tails:
        return _Stretched(self.inner, self.sigma, _LazyNormal(source))


class LaplaceLogNormalNoise(LogNormalNoise):
    """X exp(σY) for a Laplace X and a standard normal Y."""

    inner = LaplaceNoise()


class UniformLogNormalNoise(LogNormalNoise):
    """X exp(σY) for X uniform on [-1, 1] and a standard normal Y."""

    inner = _Uniform()


@dataclass(frozen=True)
class ArsinhNormalNoise(ExplicitNoise):
    """sinh(σY) / σ for a standard normal Y."""

    sigma: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", _parameter("sigma", self.sigma))

    def tails(self, z: Fraction, bits: int) -> Interval:
        return arsinh_normal_tails(self.sigma, z, bits)

    def quantile(self, u: float) -> float:
        sigma = float(self.sigma)
        return math.sinh(min(700.0, sigma * _normal_quantile(u))) / sigma


def rounded_noise(noise: HeavyNoise, scale: Any, centre: Any = 0) -> int:
    """floor(centre + scale * Z + 1/2), exactly; scale >= 0 and centre are ints, Fractions or floats
    as they are.

    >>> rounded_noise(CauchyNoise(), scale=0, centre=Fraction(5, 2))
    3
    >>> isinstance(rounded_noise(LaplaceLogNormalNoise(Fraction(1, 2)), scale=10**30), int)
    True
    """
    width, source = _any_size("scale", scale), current()
    check.not_negative(scale=max(-1, min(width, 1)))
    middle, rest = divmod(_any_size("centre", centre) + _HALF, 1)
    if not width:
        return int(middle)
    negative = source.bits(1)
    cells = _Cells(noise.begin(source), width, 1 - rest if negative else rest)
    steps = cells.locate(_fresh(source))
    return int(middle) + (-steps if negative else steps)


@dataclass(frozen=True)
class _Cells:
    """How many whole numbers are passed on the way from `rest` (of a cell, in [0, 1]) outwards."""

    noise: Tails
    scale: Fraction
    rest: Fraction

    def tail(self, index: int, k: int, bits: int) -> Interval:
        z = (k - self.rest) / self.scale
        return self.noise.tails(z, bits) if z > 0 else (1 << bits, 1 << bits)

    def locate(self, uniform: Uniform) -> int:
        """How many, for this uniform real: sought from where floating point sees it."""
        size = self.scale.numerator.bit_length() - self.scale.denominator.bit_length()
        while uniform.known < size + _GUESS_BITS:
            uniform.refine()  # a first guess from fewer digits would be far off
        far = self.scale * Fraction(self.noise.quantile(_middle(uniform)))
        return lazy.locate(uniform, self, 0, max(0, math.floor(far + self.rest)))


@dataclass(frozen=True)
class _Stretched(Tails):
    """X exp(σY) for one Y, of which more digits are drawn on demand."""

    inner: Tails
    sigma: Fraction
    normal: _LazyNormal

    def tails(self, z: Fraction, bits: int) -> Interval:
        near, far = self.normal.magnitude(bits + 8)
        # exp(-σ|Y|) > 4**-(σ|Y|): its inverse keeps its digits
        work = bits + 8 + 2 * math.ceil(self.sigma * far)
        low, high = exp_minus(self.sigma * far, work)[0], exp_minus(self.sigma * near, work)[1]
        narrow, wide = Fraction(low, 1 << work), Fraction(high, 1 << work)
        if self.normal.negative:
            narrow, wide = 1 / wide, 1 / narrow
        return self.inner.tails(z * wide, bits)[0], self.inner.tails(z * narrow, bits)[1]

    def quantile(self, u: float) -> float:
        sign = -1.0 if self.normal.negative else 1.0
        near = float(self.normal.magnitude(_FIRST_BITS + 24)[0])  # what `tails` asks for first
        return self.inner.quantile(u) * math.exp(min(700.0, sign * near * float(self.sigma)))


class _LazyNormal:
    """A standard normal number: a sign, and a magnitude known as closely as anybody asks."""

    def __init__(self, source: Source) -> None:
        self.negative = bool(source.bits(1))
        self._uniform = _fresh(source)
        self._known, self._ends = 0, (Fraction(0), Fraction(0))

    def magnitude(self, bits: int) -> tuple[Fraction, Fraction]:
        """Two numbers at a distance of at most 2**-bits that |Y| lies between."""
        if bits > self._known:
            steps = _Cells(GaussianNoise(), Fraction(1 << bits), _HALF).locate(self._uniform)
            ends = max(Fraction(0), steps - _HALF) / (1 << bits), (steps + _HALF) / (1 << bits)
            self._known, self._ends = bits, ends
        return self._ends


def _fresh(source: Source) -> Uniform:
    return Uniform(source, source.bits(_FIRST_BITS), _FIRST_BITS, _FIRST_BITS)


def _middle(uniform: Uniform) -> float:
    return float(Fraction(2 * uniform.prefix + 1, 2 << uniform.known))


def _normal_quantile(u: float) -> float:
    return -NormalDist().inv_cdf(max(u, 1e-300) / 2)


def _any_size(name: str, value: Any) -> Fraction:
    """A number exactly; a ratio may be larger than every float."""
    if not isinstance(value, Fraction):
        check.real(**{name: value})
    return as_ratio(value)


def _parameter(name: str, value: Any) -> Fraction:
    check.positive(**{name: value})
    exact = as_ratio(value)
    if not _LEAST_PARAMETER <= exact <= _GREATEST_PARAMETER:
        raise BadParameter(
            "DP102",
            f"{name} must lie between {float(_LEAST_PARAMETER):g} and {_GREATEST_PARAMETER}.",
            why="exact arithmetic on the tails of such a distribution takes seconds for one number.",
            fix=f"pass a {name} near 1",
        )
    return exact
