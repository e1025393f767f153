# SPDX-License-Identifier: Apache-2.0
"""DuckDB's SQL, and its names of types."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp

from discreet.tables.engines import terms as t
from discreet.tables.engines.dialect import Dialect
from discreet.tables.engines.read import clamp
from discreet.tables.engines.source import MOST_DIGITS, SourceColumn
from discreet.tables.engines.terms import Term

__all__ = ["DuckDialect", "column_of"]

_INTEGERS = (
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "HUGEINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
)
#: The digits of the widest decimal.
_WIDEST_DECIMAL = 38
#: Timestamps coarser than microseconds: their largest have no number of microseconds in 64 bits.
_COARSE = ("TIMESTAMP_S", "TIMESTAMP_MS")
_KINDS = {
    **dict.fromkeys(_INTEGERS, "integer"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "real"),
    **dict.fromkeys(("VARCHAR", "UUID"), "text"),
    "BOOLEAN": "boolean",
    "DATE": "date",
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_NS", *_COARSE), "timestamp"),
    "TIMESTAMP WITH TIME ZONE": "timestamp",
}


class DuckDialect(Dialect):
    """DuckDB's SQL."""

    name: ClassVar[str] = "duckdb"
    wide: ClassVar[exp.DataType] = exp.DataType.build("HUGEINT", dialect="duckdb")

    def pattern(self, like: str) -> str:
        return like  # no escape character, unless one is named

    def trim_spaces(self, term: Term) -> Term:
        return t.call("TRIM", term, t.text(" "))

    def over(self, left: Term, right: Term, *, wide: bool = False) -> Term:
        return t.call("DIVIDE", left, right)

    def summand(self, term: Term) -> Term:
        # DuckDB sums 32-bit numbers in 64 bits, which hold 2^40 of them, and 64-bit numbers in 128.
        return t.cast(term, "INT")

    def matches(self, term: Term, pattern: str) -> Term:
        return t.call("REGEXP_FULL_MATCH", term, t.text(pattern))

    def exact_text(self, term: Term, column: SourceColumn) -> Term:
        value = term if column.native == "VARCHAR" else t.cast(term, "TEXT")
        return exp.Collate(this=value, expression=exp.to_identifier("C", quoted=True))

    def fraction(self, term: Term, digits: int, column: SourceColumn) -> Term:
        if _is_tight(column):
            return _digits_as_written(term, digits)
        rest = t.binary(exp.Sub, term, t.call("FLOOR", term.copy()))
        return t.cast(
            t.call("FLOOR", t.times(rest, t.number(10**digits, f"DECIMAL({digits + 1},0)"))), t.BIGINT
        )

    def day_number(self, term: Term, column: SourceColumn) -> Term:
        return t.cast(t.binary(exp.Sub, term, t.date("1970-01-01")), t.BIGINT)

    def has_infinities(self, column: SourceColumn) -> bool:
        # The infinities of other types are their ends, and are clamped like any other value.
        return column.native not in _COARSE

    def micro_number(self, term: Term, column: SourceColumn) -> Term:
        if column.native in _COARSE:
            # Clamped while they are seconds: the largest have too many microseconds for 64 bits.
            kind = exp.DataType.build(column.native, dialect="duckdb")
            ends = [t.cast(t.text(end), kind) for end in ("200000-01-01 (BC)", "200000-01-01")]
            return t.call("EPOCH_US", clamp(term, *ends))
        if column.native != "TIMESTAMP_NS":
            return t.call("EPOCH_US", term)
        nanos = t.call("EPOCH_NS", term)
        rest = t.binary(exp.Mod, nanos, t.number(1000))
        down = t.cases([(t.binary(exp.LT, rest, t.number(0)), t.number(1))], t.number(0))
        # Rounded towards zero first, because rounding down could leave 64 bits.
        return t.binary(exp.Sub, t.call("DIVIDE", nanos.copy(), t.number(1000)), down)


def _is_tight(column: SourceColumn) -> bool:
    """Whether x - ⌊x⌋, or that times a power of ten, may need more digits than a decimal has."""
    assert column.digits is not None
    assert column.scale is not None
    return column.scale > _WIDEST_DECIMAL - MOST_DIGITS or (
        column.digits == _WIDEST_DECIMAL and column.digits - column.scale <= MOST_DIGITS
    )


def _digits_as_written(term: Term, digits: int) -> Term:
    """⌊(x - ⌊x⌋) · 10^digits⌋ from the digits after the point.

    For x = -y with y > 0 it is 10^digits - ⌈f⌉, where f = (y - ⌊y⌋) · 10^digits; for f = 0 it is 0.
    """
    written = t.call("SPLIT_PART", t.cast(term, "TEXT"), t.text("."), t.number(2, "INT"))
    first = t.call("SUBSTR", written, t.number(1, "INT"), t.number(digits, "INT"))
    rest = t.call("SUBSTR", written.copy(), t.number(digits + 1, "INT"))
    down = t.cast(t.call("RPAD", first, t.number(digits, "INT"), t.text("0")), t.BIGINT)
    exact = t.binary(exp.EQ, t.call("RTRIM", rest, t.text("0")), t.text(""))
    up = t.cases([(exact, down.copy())], t.add(down.copy(), t.number(1)))
    is_negative = t.binary(exp.Like, t.cast(term.copy(), "TEXT"), t.text("-%"))
    is_whole = t.binary(exp.EQ, up.copy(), t.number(0))
    below = t.cases([(is_whole, t.number(0))], t.binary(exp.Sub, t.number(10**digits), up))
    return t.cases([(is_negative, below)], down)


def column_of(name: str, native: str) -> SourceColumn:
    """A column from DuckDB's name of its type."""
    if native.startswith("DECIMAL("):
        digits, scale = (int(part) for part in native[8:-1].split(","))
        return SourceColumn(name, "decimal", native, digits, scale)
    kind = "text" if native.startswith("ENUM(") else _KINDS.get(native, "other")
    return SourceColumn(name, kind, native, zoned=native.endswith("ZONE"))
