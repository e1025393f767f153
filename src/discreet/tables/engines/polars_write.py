# SPDX-License-Identifier: Apache-2.0
"""Columns and expressions in Polars, with the meaning of `expr` and 128-bit numbers where 64 are
too few.

Polars rounds whole-number division down and gives a remainder the sign of the divisor, as `expr`
does. Its whole numbers wrap round silently, so no value here may leave its type: see `widths` and
the types of expressions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from functools import reduce, singledispatchmethod
from operator import and_, or_
from typing import Any

import polars as pl

from discreet.tables.algebra import expr as e
from discreet.tables.algebra import strings
from discreet.tables.algebra.curves import RealFunction
from discreet.tables.algebra.types import DATE, NUMBER, TEXT, TRUTH, Type
from discreet.tables.engines.calendar import spelled_out
from discreet.tables.engines.dialect import speakable
from discreet.tables.engines.read import NUMERAL, double_beyond
from discreet.tables.engines.source import MOST_DIGITS, SourceColumn

__all__ = ["PolarsWriter", "cell", "narrow", "plain", "type_of", "wide"]

_TYPES = {TEXT: pl.String(), TRUTH: pl.Boolean()}
_PER_MICRO = {"ns": 1000}
_WITHIN_64_BITS = {"Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32"}
_MICROS = {"ms": 1000, "us": 1}


def type_of(of: Type) -> pl.DataType:
    """What a value is kept as."""
    return _TYPES.get(of.kind, pl.Int64())


def cell(column: SourceColumn, of: Type) -> pl.Expr:
    """The value of a column as its cell."""
    if of.kind in {TEXT, TRUTH}:
        return plain(column)
    reader = {"real": _real, "decimal": _decimal, "text": _text, "boolean": _whole, "integer": _whole}
    if of.kind == NUMBER:
        return reader[column.kind](column, of)
    return _day(column, of) if of.kind == DATE else _moment(column, of)


def plain(column: SourceColumn) -> pl.Expr:
    """A column as it is; a text as text, however it is kept."""
    value = pl.col(column.name)
    return value.cast(pl.String) if column.kind == "text" else value


def _between(value: pl.Expr, low: int, high: int) -> pl.Expr:
    """Clamped as a wide number, then narrow."""
    return value.cast(pl.Int128).clip(wide(low), wide(high)).cast(pl.Int64)


def wide(value: int) -> pl.Expr:
    """A whole number of 128 bits."""
    return pl.lit(value, dtype=pl.Int128)


def _whole(column: SourceColumn, of: Type) -> pl.Expr:
    if not of.places and column.native in _WITHIN_64_BITS:
        return pl.col(column.name).cast(pl.Int64).clip(narrow(of.low), narrow(of.high))
    low, high = of.low >> of.places, -(-of.high >> of.places)
    cells = _between(pl.col(column.name), low, high) * (1 << of.places)
    return _between(cells, of.low, of.high)


def _real(column: SourceColumn, of: Type) -> pl.Expr:
    low, high = Fraction(of.low, 1 << of.places), Fraction(of.high, 1 << of.places)
    below, above = double_beyond(low, -math.inf), double_beyond(high, math.inf)
    value = pl.col(column.name).cast(pl.Float64).fill_nan(None).clip(below, above)
    return _between((value * float(1 << of.places)).floor().cast(pl.Int64), of.low, of.high)


def _decimal(column: SourceColumn, of: Type) -> pl.Expr:
    """A decimal is kept as a whole number of its last digit."""
    assert column.scale is not None
    digits = min(column.scale, MOST_DIGITS)
    value = pl.col(column.name).to_physical().cast(pl.Int128) // wide(10 ** (column.scale - digits))
    return _in_tens(value, digits, of)


def _in_tens(value: pl.Expr, digits: int, of: Type) -> pl.Expr:
    """⌊value / 10^digits · 2^places⌋, clamped before it is multiplied."""
    ten = 10**digits
    kept = value.clip(wide((of.low >> of.places) * ten), wide(((of.high >> of.places) + 1) * ten))
    return _between((kept * wide(1 << of.places)) // wide(ten), of.low, of.high)


def _text(column: SourceColumn, of: Type) -> pl.Expr:
    raw = pl.col(column.name).cast(pl.String)
    is_number = raw.str.contains(rf"\A(?:{NUMERAL})\z")
    whole = raw.str.extract(r"\A[+-]?([0-9]{1,18})", 1).cast(pl.Int64, strict=False).cast(pl.Int128)
    after = raw.str.extract(r"[.]([0-9]{1,18})\z", 1).fill_null("").str.pad_end(MOST_DIGITS, "0")
    size = whole * wide(10**MOST_DIGITS) + after.cast(pl.Int64, strict=False).cast(pl.Int128)
    value = pl.when(raw.str.starts_with("-")).then(wide(0) - size).otherwise(size)
    return pl.when(is_number).then(_in_tens(value, MOST_DIGITS, of)).otherwise(None)


def _day(column: SourceColumn, of: Type) -> pl.Expr:
    return _between(pl.col(column.name).to_physical(), of.low, of.high)


def _moment(column: SourceColumn, of: Type) -> pl.Expr:
    count = pl.col(column.name).to_physical().cast(pl.Int128)
    return _between(
        count // wide(1000) if column.native == "ns" else count * wide(_MICROS[column.native]),
        of.low,
        of.high,
    )


class PolarsWriter:
    """Writes expressions whose columns have been read already; `read` gives each of them."""

    def __init__(self, read: Callable[[e.Read], pl.Expr]) -> None:
        self.read = read

    def constant(self, value: Any, of: Type) -> pl.Expr:
        """A public value."""
        if of.kind == TEXT and value is not None:
            speakable(value)
        return pl.lit(value, dtype=_TYPES.get(of.kind, pl.Int64()))

    @singledispatchmethod
    def write(self, expr: e.Expr) -> pl.Expr:
        """An expression on the columns of a frame."""
        raise AssertionError(f"no engine knows {type(expr).__name__}")

    @write.register
    def _read(self, expr: e.Read) -> pl.Expr:
        return self.read(expr)

    @write.register
    def _constant(self, expr: e.Constant) -> pl.Expr:
        return self.constant(expr.value, expr.of)

    @write.register
    def _scale(self, expr: e.Scaled) -> pl.Expr:
        return self.write(expr.of) * narrow(1 << (expr.places - expr.of.type.places))

    @write.register
    def _arithmetic(self, expr: e.Arithmetic) -> pl.Expr:
        left, right = self.write(expr.left), self.write(expr.right)
        if expr.op == "*":
            return left * right
        return left + right if expr.op == "+" else left - right

    @write.register
    def _quotient(self, expr: e.Quotient) -> pl.Expr:
        left, right = self.write(expr.left) * narrow(1 << expr.shift), self.write(expr.right)
        return left // pl.when(right != narrow(0)).then(right)

    @write.register
    def _modulo(self, expr: e.Modulo) -> pl.Expr:
        return self.write(expr.left) % narrow(expr.divisor)

    @write.register
    def _extreme(self, expr: e.Extreme) -> pl.Expr:
        items = [self.write(item) for item in expr.items]
        best = pl.min_horizontal(*items) if expr.op == "least" else pl.max_horizontal(*items)
        return pl.when(reduce(and_, [item.is_not_null() for item in items])).then(best)

    @write.register
    def _clamp(self, expr: e.Clamp) -> pl.Expr:
        return self.write(expr.of).clip(narrow(expr.low), narrow(expr.high))

    @write.register
    def _compare(self, expr: e.Compare) -> pl.Expr:
        left, right = self.write(expr.left), self.write(expr.right)
        made = {"=": left.eq, "<>": left.ne, "<": left.lt, "<=": left.le, ">": left.gt, ">=": left.ge}
        return made[expr.op](right)

    @write.register
    def _is_in(self, expr: e.IsIn) -> pl.Expr:
        of, kind = self.write(expr.of), expr.of.type
        values = [speakable(value) if kind.kind == TEXT else value for value in expr.values]
        known = of.is_in(pl.Series(values, dtype=_TYPES.get(kind.kind, pl.Int64())).implode())
        return pl.when(of.is_not_null()).then(known)

    @write.register
    def _like(self, expr: e.Like) -> pl.Expr:
        parts = [{"%": ".*", "_": "."}.get(sign, re.escape(sign)) for sign in speakable(expr.pattern)]
        return self.write(expr.of).str.contains(rf"(?s)\A{''.join(parts)}\z")

    @write.register
    def _is_null(self, expr: e.IsNull) -> pl.Expr:
        return self.write(expr.of).is_null()

    @write.register
    def _logic(self, expr: e.Logic) -> pl.Expr:
        return reduce(and_ if expr.op == "and" else or_, [self.write(item) for item in expr.items])

    @write.register
    def _not(self, expr: e.Not) -> pl.Expr:
        return ~self.write(expr.of)

    @write.register
    def _case(self, expr: e.Case) -> pl.Expr:
        result = self.write(expr.otherwise)
        for when, then in reversed(expr.whens):
            result = pl.when(self.write(when)).then(self.write(then)).otherwise(result)
        return result

    @write.register
    def _coalesce(self, expr: e.Coalesce) -> pl.Expr:
        return pl.coalesce(*(self.write(item) for item in expr.items))

    @write.register(e.AsDate)
    @write.register(e.AsMoment)
    @write.register(e.DatePart)
    @write.register(e.Shifted)
    @write.register(e.Truncated)
    def _calendar(self, expr: e.Expr) -> pl.Expr:
        return self.write(spelled_out(expr))

    @write.register
    def _steps(self, expr: e.Steps) -> pl.Expr:
        of = self.write(expr.of)
        edges, values = (
            pl.lit(pl.Series(list(cells), dtype=pl.Int64)) for cells in (expr.edges, expr.values)
        )
        return of + values.gather(edges.search_sorted(of, side="right"))

    @write.register
    def _root(self, expr: e.Root) -> pl.Expr:
        of = self.write(expr.of)
        safe = pl.when(of >= 0).then(of) * narrow(1 << expr.shift)
        return safe.cast(pl.Float64).sqrt().floor().cast(pl.Int64)

    @write.register
    def _curve(self, expr: RealFunction) -> pl.Expr:
        x = self.write(expr.of).cast(pl.Float64) * expr.unit
        if expr.function == "power":
            made = x.pow(expr.exponent)
        else:
            made = x.log() if expr.function == "ln" else x.exp()
        return (made * expr.scale + expr.nudge).floor().cast(pl.Int64)

    @write.register
    def _join(self, expr: strings.Joined) -> pl.Expr:
        return pl.concat_str(*(self.write(item) for item in expr.items))

    @write.register
    def _change_case(self, expr: strings.Cased) -> pl.Expr:
        before, after = strings.CASES[expr.case]
        return self.write(expr.of).str.replace_many(list(before), list(after))

    @write.register
    def _trim(self, expr: strings.Trimmed) -> pl.Expr:
        return self.write(expr.of).str.strip_chars(" ")

    @write.register
    def _substring(self, expr: strings.Substring) -> pl.Expr:
        return self.write(expr.of).str.slice(expr.start - 1, expr.length)

    @write.register
    def _length(self, expr: strings.Length) -> pl.Expr:
        return self.write(expr.of).str.len_chars().cast(pl.Int64)

    @write.register
    def _bucket(self, expr: e.Bucket) -> pl.Expr:
        of = self.write(expr.of)
        edges = pl.lit(pl.Series(expr.edges, dtype=pl.Int64))
        return pl.when(of.is_not_null()).then(edges.search_sorted(of, side="right").cast(pl.Int64))


def narrow(value: int) -> pl.Expr:
    """A whole number of 64 bits."""
    return pl.lit(value, dtype=pl.Int64)
