# SPDX-License-Identifier: Apache-2.0
"""Logarithms, exponentials and powers of a number, in whole cells.

**Guarantee.** A curve has the same value on every engine, although engines compute such functions
with different last digits.

Why it holds: `curve` looks at every cell that the operand can have, and moves the steps between
the cells of the result so that none of these values is near one: the nearest is `_MARGIN` times
farther than the last digit of a double there. So rounding down gives the same cell wherever the
function is within that distance of the exact value.

What would break it: an engine whose functions are wrong by more than a few last digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.tables.algebra.expr import Expr
from discreet.tables.algebra.types import NUMBER, Type

__all__ = ["CURVES", "MOST_CELLS", "RealFunction", "curve_at", "find_nudge", "most_reach"]

#: The functions of a curve: of a positive number, of any number, of a number that is not negative.
CURVES = ("ln", "exp", "power")
#: The most cells that an operand may have; all of them are looked at.
MOST_CELLS = 2**24
#: How many last digits of a double fit between a value and the nearest step.
_MARGIN = 16
#: The steps may lie at so many places between two cells. The middle comes first: it rounds to the
#: nearest cell.
_PLACES = 64
_NUDGES = sorted((k / _PLACES for k in range(_PLACES)), key=lambda nudge: abs(nudge - 0.5))
_CHUNK = 2**18
#: The margin is one part in so many times the number of cells, so that most nudges have it.
_RARE = 8

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class RealFunction(Expr):
    """⌊f(x) · scale + nudge⌋, on the grid of `places`; f is one of CURVES, `power` with a public
    exponent.

    The operand never leaves the domain of f, and `nudge` is what `find_nudge` gives.
    """

    function: str
    of: Expr
    places: int
    scale: float
    nudge: float
    exponent: float = 1.0

    @cached_property
    def type(self) -> Type:
        old = self.of.type
        # Each of the functions is monotone.
        ends = [int(self.cells_of(np.array([end]))[0]) for end in (old.low, old.high)]
        return Type(NUMBER, min(ends), max(ends), self.places, old.null)

    @property
    def unit(self) -> float:
        """The width of a cell of the operand."""
        return 2.0**-self.of.type.places

    def cells_of(self, cells: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The cells of the result."""
        values = curve_at(self.function, cells * self.unit, self.exponent) * self.scale
        return np.asarray(np.floor(values + self.nudge).astype(np.int64))


def curve_at(function: str, x: Floats, exponent: float = 1.0) -> Floats:
    """A function of CURVES."""
    if function == "ln":
        return np.asarray(np.log(x))
    return np.asarray(np.exp(x) if function == "exp" else np.power(x, exponent))


def most_reach(cells: int) -> int:
    """The greatest cell of the result for which `_MARGIN` last digits fit into the margin."""
    return 2**53 // (_MARGIN * 2 * _RARE * max(cells, 1))


@lru_cache(maxsize=128)
def find_nudge(
    function: str, ends: tuple[int, int], unit: float, scale: float, exponent: float = 1.0
) -> float | None:
    """A nudge for which no value of the operand is near a step; None if there is none."""
    margin = 1 / (_RARE * (ends[1] - ends[0] + 1))

    def is_free(nudge: float) -> bool:
        for first in range(ends[0], ends[1] + 1, _CHUNK):
            cells = np.arange(first, min(first + _CHUNK, ends[1] + 1), dtype=np.float64)
            after = (curve_at(function, cells * unit, exponent) * scale + nudge) % 1.0
            # A value that is not a number is never between the two.
            if not (after.min() >= margin and after.max() <= 1 - margin):
                return False
        return True

    return next(filter(is_free, _NUDGES), None)
