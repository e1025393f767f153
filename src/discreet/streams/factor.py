# SPDX-License-Identifier: Apache-2.0
"""The integer matrices that a stream is encoded with: lower triangular, constant along diagonals.

    independent(52)                 # each period by itself
    square_root(52)                 # the square root of "add up everything so far": best for totals
    banded_inverse(52, bands=4)     # for units that come back every few periods

Row t of the stream is Σ_{s≤t} n_{t-s} x_s plus fresh noise. It is a whole number before the noise
is added, so nothing is rounded and nothing has to be remembered but the numbers themselves.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from discreet import check
from discreet.errors import BadParameter

__all__ = ["MOST_PERIODS", "Factor", "banded_inverse", "independent", "square_root"]

Floats = npt.NDArray[np.float64]

#: The longest stream: 27 years of days.
MOST_PERIODS = 10_000
#: Bits of the first coefficient; up to 1,000 periods they cost less than 1e-5 of the error.
_BITS, _MORE_BITS, _MANY_PERIODS = 10, 16, 1_000
#: Bits of the fixed-point numbers that the square root is computed with.
_WORK = 128


@dataclass(frozen=True)
class Factor:
    """The coefficients n_0 ≥ n_1 ≥ … ≥ 0 of an integer Toeplitz matrix, with n_0 > 0.

    `periods` is the length of the stream; coefficients that are left out are 0.

    **Guarantee.** The coefficients are whole, not negative and never grow, which the sensitivity of
    `Participation` needs; anything else is refused. Encoding is exact in whole numbers.

    Why it holds: it is checked when a factor is made. What would break it: encoding in floats.

    >>> Factor((4, 2, 2), 3).encode([1, 0, 5])
    22
    """

    coefficients: tuple[int, ...]
    periods: int
    name: str = "own"

    def __post_init__(self) -> None:
        check_periods(self.periods)
        numbers = self.coefficients
        are_whole = isinstance(numbers, tuple) and all(type(number) is int for number in numbers)
        if not are_whole or not numbers or len(numbers) > self.periods or not _falls(numbers):
            raise BadParameter(
                "DP102",
                "the coefficients of a factor must be whole numbers that are not negative and never grow.",
                why="only then the worst pattern of contributions is known, and the sensitivity with it.",
                fix="dp.streams.square_root(52)",
            )

    def encode(self, sums: list[int]) -> int:
        """Σ_s n_{t-s} x_s for the last of the periods given, exactly."""
        last = len(sums) - 1
        return sum(number * sums[last - lag] for lag, number in enumerate(self.coefficients[: last + 1]))

    @cached_property
    def inverse(self) -> Floats:
        """The first column of the inverse matrix, as floats: it only reads noisy rows."""
        numbers = np.zeros(self.periods)
        numbers[: len(self.coefficients)] = [number / self.coefficients[0] for number in self.coefficients]
        column = np.zeros(self.periods)
        column[0] = 1.0
        width = len(self.coefficients)
        for t in range(1, self.periods):
            lags = min(t, width - 1)
            column[t] = -float(numbers[1 : lags + 1] @ column[t - lags : t][::-1]) if lags else 0.0
        return column / self.coefficients[0]

    @cached_property
    def running(self) -> Floats:
        """The first column of "add up everything so far" times the inverse matrix."""
        sums: Floats = np.cumsum(self.inverse)
        return sums


@lru_cache(maxsize=64)
def independent(periods: int) -> Factor:
    """Each period by itself: fresh noise, and no other period in it.

    >>> independent(52).coefficients
    (1,)
    """
    return Factor((1,), check_periods(periods), "independent")


@lru_cache(maxsize=64)
def square_root(periods: int) -> Factor:
    """The square root of the matrix that adds up everything so far, in whole numbers.

    Its coefficients are C(2k, k) / 4^k times a power of two, rounded (Fichtenberger, Henzinger,
    Upadhyay 2023). For units that take part once no Toeplitz matrix has totals with a much smaller
    greatest error.

    >>> square_root(4).coefficients
    (1024, 512, 384, 320)
    """
    bits, exact = _bits(check_periods(periods)), 1 << _WORK
    half = 1 << (_WORK - bits - 1)
    numbers = []
    for k in range(periods):
        if k:
            exact = exact * (2 * k - 1) // (2 * k)
        numbers.append((exact + half) >> (_WORK - bits))
    return Factor(tuple(numbers), periods, "square root")


@lru_cache(maxsize=256)
def banded_inverse(periods: int, bands: int) -> Factor:
    """The matrix whose inverse has the first `bands` coefficients of (1 - x)^(1/2), in whole
    numbers: for units that come back every few periods.

    >>> banded_inverse(5, 2).coefficients
    (1024, 512, 256, 128, 64)
    """
    check_periods(periods)
    if check.whole(at_least=2, bands=bands) > periods:
        raise BadParameter(
            "DP102",
            f"bands must be at most {periods}, the number of periods; got {bands}.",
            why="a band beyond the last period is never used.",
            fix=f"bands={max(2, periods)}" if periods > 1 else "dp.streams.independent(1)",
        )
    terms = np.ones(bands)
    for k in range(1, bands):
        terms[k] = terms[k - 1] * (k - 1.5) / k
    column = np.zeros(periods)
    column[0] = 1.0
    for t in range(1, periods):
        lags = min(t, bands - 1)
        column[t] = -float(terms[1 : lags + 1] @ column[t - lags : t][::-1])
    numbers = tuple(round(float(number) * (1 << _bits(periods))) for number in column)
    return Factor(_without_zeros(numbers), periods, f"banded inverse of {bands} bands")


def check_periods(periods: object) -> int:
    """A number of periods that a stream can have."""
    number = check.whole(periods=periods)
    if number > MOST_PERIODS:
        raise BadParameter(
            "DP102",
            f"periods must be at most {MOST_PERIODS:,}, got {number}.",
            why="each row of a stream is computed from all rows before it.",
            fix='periods=520, or a longer period:  every="month"',
        )
    return number


def _bits(periods: int) -> int:
    return _BITS if periods <= _MANY_PERIODS else _MORE_BITS


def _falls(numbers: tuple[int, ...]) -> bool:
    """Whether the first is positive, none is negative, and none is above the one before."""
    steps = itertools.pairwise(numbers)
    return numbers[0] > 0 and numbers[-1] >= 0 and all(before >= after for before, after in steps)


def _without_zeros(numbers: tuple[int, ...]) -> tuple[int, ...]:
    last = max(at for at, number in enumerate(numbers) if number)
    return numbers[: last + 1]
