# SPDX-License-Identifier: Apache-2.0
"""Builds logarithms, exponentials and powers of a number, whose bounds follow from its own.

**Guarantee.** As `build`: the result is total, with proved bounds, and the same on every engine
(`algebra/curves.py`), or the question is refused (DP705). It is rounded to a grid with about 2^20
cells between its bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import RefusedQuestion
from discreet.tables.algebra.curves import MOST_CELLS, RealFunction, find_nudge, most_reach
from discreet.tables.algebra.expr import Clamp, Compare, Expr
from discreet.tables.algebra.types import NUMBER
from discreet.tables.ask import build
from discreet.tables.ask.build import Term
from discreet.tables.ask.columns import grid_places

__all__ = ["LOGARITHMS", "exponential", "logarithm", "power"]

#: The names of logarithms, and the logarithms of their bases.
LOGARITHMS = {"LN": 1.0, "LOG2": math.log(2), "LOG10": math.log(10)}
#: A real number is rounded to so many bits first.
_BITS_OF_REALS = 20
#: Below this the exponential is 0 on every grid, and some engines fail.
_LEAST_EXPONENT = -100
_GREATEST_POWER = 16
_FINEST = 24


def logarithm(term: Term, name: str = "LN", operand: str = "x") -> Term:
    """A logarithm; NULL where a whole number is not above 0. `operand` is what the user wrote."""
    if isinstance(term, Fraction):
        if term <= 0:
            raise _domain_error(f"{name} exists only for numbers above 0.", f"{name}(days + 1)")
        return Fraction(math.log(term) / LOGARITHMS[name])
    return _where_positive(
        _require_number(term), _Function("ln", f"{name}({{}})", operand, 1 / LOGARITHMS[name])
    )


def exponential(term: Term, operand: str = "x") -> Term:
    """e to the power of a number."""
    function = _Function("exp", "EXP({})", operand)
    x = _few_cells(_require_number(term), function)
    least = _LEAST_EXPONENT << x.type.places
    if x.type.low < least:
        x = Clamp(x, least, max(least, x.type.high))
    return _curve(x, function)


def power(term: Term, exponent: Fraction, operand: str = "x") -> Term:
    """A number to a public power that is not a small whole number; NULL where it does not exist."""
    if abs(exponent) > _GREATEST_POWER or not exponent:
        raise _domain_error(
            f"the exponent of POWER must be between -{_GREATEST_POWER} and {_GREATEST_POWER}, and not 0.",
            f"POWER({operand}, 2)",
        )
    function = _Function("power", f"POWER({{}}, {float(exponent):g})", operand, exponent=float(exponent))
    x = _require_number(term)
    if exponent > 0 and x.type.low >= 0:
        return _curve(_few_cells(x, function), function)
    return _where_positive(x, function)


@dataclass(frozen=True)
class _Function:
    """One of CURVES, how SQL writes it and its operand, and what its values are multiplied with."""

    name: str
    form: str
    operand: str
    factor: float = 1.0
    exponent: float = 1.0

    @property
    def text(self) -> str:
        """What the user wrote."""
        return self.form.format(self.operand)

    def clamped_text(self, low: int, high: int) -> str:
        """The same with bounds."""
        return self.form.format(f"CLAMP({self.operand}, {low}, {high})")

    def value(self, x: Fraction) -> float:
        """Its value; infinite where it is no float."""
        try:
            if self.name == "power":
                return float(float(x) ** self.exponent)
            return (math.log(x) if self.name == "ln" else math.exp(x)) * self.factor
        except OverflowError:
            return math.inf


def _where_positive(x: Expr, function: _Function) -> Expr:
    """A curve of the positive numbers; whole numbers may have others, where it is NULL."""
    if x.type.low <= 0 and (x.type.places or x.type.high <= 0):
        raise _domain_error(
            f"{function.text} needs numbers above 0, and these may be 0 or close to it.",
            f"keep them away from 0:  {function.clamped_text(1, 1000)}",
        )
    few = _few_cells(x, function)
    curve = _curve(few if few.type.low > 0 else Clamp(few, 1, few.type.high), function)
    if x.type.low > 0:
        return curve
    return build.case([(Compare(">", few, build.on_grid(Fraction(0))), curve)], build.NULL)


def _curve(x: Expr, function: _Function) -> Expr:
    """A curve on the finest grid on which it is the same on every engine."""
    kind = x.type
    low, high = sorted(map(function.value, kind.bounds))
    reach, most = max(abs(low), abs(high)), most_reach(kind.high - kind.low + 1)
    places, scale, nudge = 0, 0.0, None
    if reach <= most // 2:
        room = int(math.log2(most / max(reach, 2.0**-_FINEST)))
        places = max(0, min(grid_places(Fraction(low), Fraction(high)), room, _FINEST))
        scale = 2.0**places * function.factor
        nudge = find_nudge(function.name, (kind.low, kind.high), 2.0**-kind.places, scale, function.exponent)
    if nudge is None:
        raise _domain_error(
            f"{function.text} is too large for some of these numbers.",
            function.clamped_text(1, 10),
        )
    return build.with_type(RealFunction(function.name, x, places, scale, nudge, function.exponent))


def _few_cells(x: Expr, function: _Function) -> Expr:
    """A number with so few cells that all of them can be looked at."""
    kind = x.type
    spare = (kind.high - kind.low).bit_length() - _BITS_OF_REALS
    if kind.places and spare > 0:
        x = build.to_places(x, max(0, kind.places - spare))
    if x.type.high - x.type.low >= MOST_CELLS:
        raise _domain_error(
            f"{function.text} needs numbers with closer bounds.",
            function.clamped_text(1, 1000000),
        )
    return x


def _require_number(term: Term) -> Expr:
    if build.kind_of(term) != NUMBER:
        raise build.wrong_kind_error("a number is needed here", term)
    return build.on_grid(term)


def _domain_error(what: str, fix: str) -> RefusedQuestion:
    return build.expression_error(
        what, "its value must exist for every row, have bounds, and be the same on every engine.", fix
    )
