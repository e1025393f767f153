# SPDX-License-Identifier: Apache-2.0
"""Rounds reals to a grid of dyadic step, in exact integers, and back.

    grid = Grid.for_noise(scale=2.0, sensitivity=0.1)
    cells = grid.cells([1.25, 7.0])                      # floor(x / step + 1/2), exactly
    grid.sensitivity(0.1)                                # in whole cells, rounding included
    grid.reals(cells + noise)                            # back to float64

**Guarantee**: `cells` is the mathematical floor(x / step + 1/2) of the number that x is, whatever
its size, and `reals` is the nearest float64 to cells * step. If two inputs differ by at most D,
their cells differ by at most ceil(D / step). Rounding half *up* moves every tie the same way;
half-even, which numpy and Python use, can add one cell: 0.5 and 1.5 become 0 and 2.

Why it holds: floor(a + d) - floor(a) <= ceil(d). In a vector every coordinate moves by less than
one cell more than its real distance, which adds at most d to an l1 distance and sqrt(d) to an l2
distance.

What would break it: adding floats to what `reals` returns. Casts to float32 or float16 are made
last, of the finished result, and so are functions of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from discreet import check
from discreet.errors import BadParameter
from discreet.exact import as_ratio, binary_above
from discreet.noise.scales import Number, Numbers, is_many

# The step is at most scale / 2**10, so rounding adds less than 1e-7 of the variance.
FINE_BITS = 10
COARSE_BITS = 6  # the share of a sensitivity that rounding may cost a very long vector
_MIN_EXPONENT, _MAX_EXPONENT = -960, 900  # steps and cells stay inside float64
_INT64_BITS = 62


@dataclass(frozen=True)
class Grid:
    """The multiples of 2**exponent.

    **Guarantee.** `cells` rounds every finite number to the nearest multiple of the step, exactly,
    ties upwards; `sensitivity` and its kin are never too small for the rounded numbers.

    >>> grid = Grid(-2)
    >>> grid.step, grid.cells(0.6), grid.reals(2), grid.sensitivity(0.3)
    (Fraction(1, 4), 2, 0.5, 2)
    """

    exponent: int

    def __post_init__(self) -> None:
        if not _MIN_EXPONENT <= self.exponent <= _MAX_EXPONENT:
            raise BadParameter(
                "DP108",
                f"the exponent of a grid must lie between {_MIN_EXPONENT} and {_MAX_EXPONENT}, not {self.exponent}.",
                why="float64 cannot hold multiples of other steps.",
                fix="measure in another unit, so that values and noise are nearer to 1",
            )

    @classmethod
    def for_noise(cls, scale: Number, sensitivity: Number, dimension: int = 1, norm: int = 1) -> Grid:
        """The coarsest grid with step <= scale / 2**10 that enlarges the sensitivity only a little.

        If the sensitivity is a multiple of the step, the sensitivity of one number does not grow;
        otherwise it grows by at most a share of 2**-10. Rounding a vector of d numbers adds d cells
        to an l1 distance and sqrt(d) to an l2 distance, so the step is finer by that factor. If the
        factor exceeds 2**10, the sensitivity may grow by a share of 2**-6, because noise on a finer
        grid is slow to draw.
        """
        check.positive(scale=scale)
        check.positive(sensitivity=sensitivity)
        d = check.whole(dimension=dimension)
        excess = d if norm == 1 else math.isqrt(d - 1) + 1
        bits = FINE_BITS if excess <= 1 << FINE_BITS else COARSE_BITS
        fine = log_two_floor(as_ratio(sensitivity) / excess) - bits
        whole = _valuation(as_ratio(sensitivity)) if d == 1 else fine
        return cls(min(log_two_floor(as_ratio(scale)) - FINE_BITS, max(fine, whole)))

    @property
    def step(self) -> Fraction:
        """The distance between neighbours, exactly."""
        return Fraction(2) ** self.exponent

    @overload
    def cells(self, values: Number, *, instead: Number | None = None) -> int: ...
    @overload
    def cells(self, values: Numbers, *, instead: Number | None = None) -> int | npt.NDArray[Any]: ...
    def cells(self, values: Numbers, *, instead: Number | None = None) -> int | npt.NDArray[Any]:
        """floor(x / step + 1/2) of each value: an int, or an array of int64 (or of ints).

        NaN and the infinities are refused, or replaced by the number `instead`.
        """
        if not is_many(values):
            return self._cell(_finite(values, instead))
        array = np.asarray(values)
        if np.can_cast(array.dtype, np.float64) and array.dtype.kind == "f":
            return np.asarray(self._float_cells(_finite_array(array.astype(np.float64, copy=False), instead)))
        if np.can_cast(array.dtype, np.int64) and array.dtype.kind != "b":
            return np.asarray(self._integer_cells(array.astype(np.int64, copy=False)))
        return _compact([self._cell(_finite(x, instead)) for x in array.ravel()], array.shape)

    def in_cells(self, amount: Number) -> Fraction:
        """An amount, such as the scale of the noise, in steps, exactly."""
        return as_ratio(amount) / self.step

    def sensitivity(self, distance: Number) -> int:
        """The greatest distance in cells of two rounded numbers within this distance."""
        check.not_negative(distance=distance)
        return math.ceil(self.in_cells(distance))

    def sensitivity_l1(self, distance: Number, dimension: int) -> int:
        """The same for two vectors whose l1 distance is at most this."""
        check.not_negative(distance=distance)
        return math.floor(self.in_cells(distance)) + check.whole(dimension=dimension)

    def sensitivity_l2(self, distance: Number, dimension: int) -> float:
        """The same for two vectors whose l2 distance is at most this; a float that is never too
        small.
        """
        check.not_negative(distance=distance)
        cells, bits = self.in_cells(distance), 64
        root = Fraction(math.isqrt(check.whole(dimension=dimension) << (2 * bits)) + 1, 1 << bits)
        return binary_above(cells + root)

    @overload
    def reals(self, cells: int, dtype: npt.DTypeLike = np.float64) -> float: ...
    @overload
    def reals(self, cells: npt.ArrayLike, dtype: npt.DTypeLike = np.float64) -> float | npt.NDArray[Any]: ...
    def reals(self, cells: npt.ArrayLike, dtype: npt.DTypeLike = np.float64) -> float | npt.NDArray[Any]:
        """cells * step as the nearest float64, then cast; a plain float for a plain int."""
        array = np.asarray(cells)
        # The conversion to float64 rounds correctly, and the power of two is exact.
        if array.dtype.kind in "iu":
            exact = array.astype(np.float64)
            exact *= 2.0**self.exponent
        else:
            exact = np.array([self._real(int(cell)) for cell in array.ravel()]).reshape(array.shape)
        with np.errstate(over="ignore"):
            reals = exact.astype(dtype, copy=False)
        return reals if is_many(cells) else float(reals.item())

    def _cell(self, value: Fraction) -> int:
        return math.floor(value / self.step + Fraction(1, 2))

    def _float_cells(self, values: npt.NDArray[np.float64]) -> Any:
        with np.errstate(over="ignore", under="ignore"):
            # exact; or beyond a float; or so small that no digit of it matters
            scaled = values * 2.0**-self.exponent
        if values.size and max(scaled.max(), -scaled.min()) >= 2.0**_INT64_BITS:
            return _compact([self._cell(Fraction(x)) for x in values.ravel().tolist()], values.shape)
        below = np.floor(scaled)
        up = scaled - below >= 0.5  # the difference is exact, or rounds to the right side of a half
        return below.astype(np.int64) + up

    def _integer_cells(self, values: npt.NDArray[np.int64]) -> Any:
        if self.exponent > 0:
            return ((values >> min(self.exponent - 1, 63)) + 1) >> 1
        room = _INT64_BITS + self.exponent
        if values.size and (room <= 0 or np.abs(values.astype(np.float64)).max() >= 2.0**room):
            return _compact([self._cell(Fraction(x)) for x in values.ravel().tolist()], values.shape)
        return values << -self.exponent

    def _real(self, cell: int) -> float:
        try:
            return float(cell * self.step)
        except OverflowError:
            return math.inf if cell > 0 else -math.inf


def _finite(value: Any, instead: Any) -> Fraction:
    try:
        return as_ratio(value)
    # An infinity or NaN.
    except (OverflowError, ValueError):
        if instead is None:
            raise _not_numbers_error() from None
        return as_ratio(instead)
    except TypeError:
        raise _not_numbers_error() from None


def _finite_array(values: npt.NDArray[np.float64], instead: Any) -> npt.NDArray[np.float64]:
    finite = np.isfinite(values)
    if finite.all():
        return values
    if instead is None:
        raise _not_numbers_error()
    return np.where(finite, values, float(instead))


def _compact(cells: list[int], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    small = all(abs(cell) < 1 << _INT64_BITS for cell in cells)
    return np.array(cells, np.int64 if small else object).reshape(shape)


def log_two_floor(x: Fraction) -> int:
    """The largest k with 2**k <= x, for x > 0."""
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if Fraction(2) ** guess <= x else guess - 1


def _valuation(x: Fraction) -> int:
    """The largest k such that x is a whole multiple of 2**k, or far below every step where there is
    none.
    """
    if x.denominator & (x.denominator - 1):
        return -(10**6)
    twos = (x.numerator & -x.numerator).bit_length() - 1
    return twos - (x.denominator.bit_length() - 1)


def _not_numbers_error() -> BadParameter:
    return BadParameter(
        "DP101",
        "values must be finite numbers.",
        why="NaN and the infinities are on no grid, and noise cannot hide them.",
        fix="pass instead=0.0, or another public number to replace them",
    )
