# SPDX-License-Identifier: Apache-2.0
"""A column where it is read: from any value of the source to NULL or a whole number of cells, in
SQL.

**Guarantee.** `cell` is the exact meaning of `expr.Read`, and no value makes it fail: a value is
clamped to numbers that every later step can hold before the step is taken. Reals: clamping to a
double, multiplying by a power of two and rounding down are exact. Decimals and texts: the whole
part and at most 18 digits after the point are whole numbers; later digits lie below every grid that
`source.readable` admits.

NULL and NaN are tested first, so LEAST and GREATEST see neither. If an engine computes a branch
that it does not take, a bound is harmless.
"""

from __future__ import annotations

import math
from fractions import Fraction

from sqlglot import exp

from discreet.exact import binary_above, binary_below
from discreet.tables.algebra.types import NUMBER, TEXT, TRUTH, Type
from discreet.tables.engines import terms as t
from discreet.tables.engines.dialect import Dialect
from discreet.tables.engines.source import MOST_DIGITS, SourceColumn
from discreet.tables.engines.terms import Term

__all__ = ["NUMERAL", "cell", "clamp", "double_beyond", "plain"]

#: The texts that are read as numbers.
NUMERAL = "[+-]?[0-9]{1,18}([.][0-9]{1,18})?"


def cell(dialect: Dialect, column: SourceColumn, of: Type) -> Term:
    """The value of a column as its cell."""
    value = t.column(column.name)
    if of.kind == TEXT:
        return dialect.exact_text(value, column)
    if of.kind == TRUTH:
        return value
    if of.kind != NUMBER:
        return _moment(dialect, column, of)
    reader = {"real": _real, "decimal": _decimal, "text": _text, "boolean": _boolean, "integer": _integer}
    return reader[column.kind](dialect, column, of)


def plain(dialect: Dialect, column: SourceColumn) -> Term:
    """A column as it is, but that no text depends on a collation: for units, which are only ever
    equal or not.
    """
    value = t.column(column.name)
    return dialect.unit_text(value, column) if column.kind == "text" else value


def clamp(value: Term, low: Term, high: Term) -> Term:
    """A value that is not NULL, moved between two ends."""
    return t.call("GREATEST", t.call("LEAST", value, high), low)


def _between(value: Term, low: int, high: int) -> Term:
    return clamp(value, t.number(low), t.number(high))


def _where(condition: Term, value: Term) -> Term:
    return t.cases([(condition, value)], t.nothing(t.BIGINT))


def _present(column: SourceColumn) -> Term:
    return t.negate(t.is_null(t.column(column.name)))


def _shift(whole: Term, places: int) -> Term:
    return t.times(whole, t.number(1 << places)) if places else whole


def _integer(_: Dialect, column: SourceColumn, of: Type) -> Term:
    """Clamped in its own type, which may be wider than 64 bits or know no sign, and cast when it is
    small.
    """
    value = t.column(column.name)
    low, high = of.low >> of.places, -(-of.high >> of.places)
    cells = _shift(t.cast(_between(value, low, high), t.BIGINT), of.places)
    return _where(_present(column), _between(cells, of.low, of.high) if of.places else cells)


def _boolean(_: Dialect, column: SourceColumn, of: Type) -> Term:
    low, high = (min(max(value << of.places, of.low), of.high) for value in (0, 1))
    value = t.column(column.name)
    return t.cases([(value, t.number(high)), (t.negate(value.copy()), t.number(low))], t.nothing(t.BIGINT))


def _real(dialect: Dialect, column: SourceColumn, of: Type) -> Term:
    """⌊clamp(x) · 2^places⌋. Ends that no double has are rounded outwards, and the cells clamped
    again.
    """
    low, high = Fraction(of.low, 1 << of.places), Fraction(of.high, 1 << of.places)
    below, above = double_beyond(low, -math.inf), double_beyond(high, math.inf)
    value = t.cast(t.column(column.name), t.DOUBLE)
    clamped = clamp(value, t.real(below), t.real(above))
    scaled = t.times(clamped, t.real(float(1 << of.places))) if of.places else clamped
    cells = t.cast(t.call("FLOOR", scaled), t.BIGINT)
    if Fraction(below) != low or Fraction(above) != high:
        cells = _between(cells, of.low, of.high)
    return _where(t.both([_present(column), t.negate(dialect.is_nan(value.copy()))]), cells)


def double_beyond(end: Fraction, outwards: float) -> float:
    """The double nearest to an end, or the next one beyond it if that is inside."""
    return binary_below(end) if outwards < 0 else binary_above(end)


def _decimal(dialect: Dialect, column: SourceColumn, of: Type) -> Term:
    low, high = of.low >> of.places, (of.high >> of.places) + 1
    value, is_number = t.column(column.name), _present(column)
    if dialect.decimal_has_nan:
        is_number = t.both([is_number, t.negate(dialect.is_nan(value.copy()))])
    if column.scale is None:
        clamped = clamp(value, t.number(low, dialect.wide), t.number(high, dialect.wide))
        scaled = t.times(clamped, t.number(1 << of.places, dialect.wide))
        return _where(is_number, _between(t.cast(t.call("FLOOR", scaled), t.BIGINT), of.low, of.high))
    clamped = _in_own_type(value, column, low, high)
    if (cells := _from_digits(dialect, column, of, clamped)) is not None:
        return _where(is_number, _between(cells, of.low, of.high))
    whole = t.cast(t.call("FLOOR", clamped), t.BIGINT)
    digits = min(column.scale, MOST_DIGITS)
    cells = _shift(whole, of.places)
    if of.places and digits:
        part = dialect.fraction(clamped.copy(), digits, column)
        cells = t.add(cells, _over_ten(dialect, part, digits, of.places))
    return _where(is_number, _between(cells, of.low, of.high))


def _from_digits(dialect: Dialect, column: SourceColumn, of: Type, clamped: Term) -> Term | None:
    """⌊x · 2^places⌋ of a clamped decimal from all its digits at once; None if 64 bits could be too
    few.

    x ≥ -base, and ⌊x · 2^places⌋ = ⌊(x + base) · 2^places⌋ - base · 2^places for whole numbers.
    """
    assert column.digits is not None
    assert column.scale is not None
    low, high = of.low >> of.places, (of.high >> of.places) + 1
    whole, ten = max(-low, high, 1), 10**column.scale
    digits = len(str(whole)) + column.scale
    if digits + column.scale + 1 > MOST_DIGITS or (2 * whole * ten) << of.places >= 1 << 61:
        return None
    if column.digits > digits:
        clamped = t.cast(clamped, f"DECIMAL({digits},{column.scale})")
    base = max(-low, 0)
    moved = t.times(clamped, t.number(ten, f"DECIMAL({column.scale + 1},0)")) if column.scale else clamped
    unscaled = t.cast(moved, t.BIGINT)
    if base:
        unscaled = t.add(unscaled, t.number(base * ten))
    cells = _shift(unscaled, of.places)
    if column.scale:
        cells = dialect.over(cells, t.number(ten))
    return t.binary(exp.Sub, cells, t.number(base << of.places)) if base else cells


def _in_own_type(value: Term, column: SourceColumn, low: int, high: int) -> Term:
    """A decimal clamped, but to ends that its digits cannot reach, because its type cannot hold
    them.
    """
    assert column.digits is not None
    assert column.scale is not None
    own = f"DECIMAL({column.digits},{column.scale})"
    reach = 10 ** (column.digits - column.scale)
    if high < reach:
        value = t.call("LEAST", value, t.number(max(high, 1 - reach), own))
    return t.call("GREATEST", value, t.number(min(low, reach - 1), own)) if low > -reach else value


def _over_ten(dialect: Dialect, digits: Term, count: int, places: int, more: Term | None = None) -> Term:
    """⌊(digits · 2^places + more) / 10^count⌋, wide where 64 bits are not enough."""
    wide = (10**count) << places >= 1 << 61
    kind = dialect.wide if wide else t.BIGINT
    scaled = t.times(t.cast(digits, kind), t.number(1 << places, kind))
    top = scaled if more is None else t.add(scaled, t.cast(more, kind))
    return t.cast(dialect.over(top, t.number(10**count, kind), wide=wide), t.BIGINT)


def _text(dialect: Dialect, column: SourceColumn, of: Type) -> Term:
    """A numeral by its parts. ⌊-y⌋ is -⌈y⌉: of a negative one the size is rounded up."""
    raw = dialect.exact_text(t.column(column.name), column)
    is_number = dialect.matches(raw, NUMERAL)
    safe = t.cases([(is_number.copy(), raw.copy())], t.text("0"))
    bare = t.call("REPLACE", t.call("REPLACE", safe, t.text("+"), t.text("")), t.text("-"), t.text(""))
    whole = t.cast(t.call("SPLIT_PART", bare, t.text("."), t.number(1, "INT")), t.BIGINT)
    after = t.call("SPLIT_PART", bare.copy(), t.text("."), t.number(2, "INT"))
    digits = t.cast(t.call("RPAD", after, t.number(MOST_DIGITS, "INT"), t.text("0")), t.BIGINT)
    negative = t.binary(exp.Like, raw.copy(), t.text("-%"))
    upwards = t.cases([(negative.copy(), t.number(10**MOST_DIGITS - 1))], t.number(0))
    part = _over_ten(dialect, digits, MOST_DIGITS, of.places, upwards)
    most = (max(-of.low, of.high, 0) >> of.places) + 1
    size = t.add(_shift(t.call("LEAST", whole, t.number(most)), of.places), part)
    cells = t.times(size, t.cases([(negative, t.number(-1))], t.number(1)))
    return _where(is_number, _between(cells, of.low, of.high))


def _moment(dialect: Dialect, column: SourceColumn, of: Type) -> Term:
    """A date or a timestamp; the infinities of some engines are clamped like any other value."""
    value = t.column(column.name)
    count = dialect.day_number if column.kind == "date" else dialect.micro_number
    if not dialect.has_infinities(column):
        return _where(_present(column), _between(count(value, column), of.low, of.high))
    epoch = t.cast(t.date("1970-01-01"), exp.DataType.build(column.native, dialect=dialect.name))
    finite = t.call("ISFINITE", value)
    safe = t.cases([(finite.copy(), value.copy())], epoch)
    late = t.binary(exp.GT, value.copy(), epoch.copy())
    infinite = t.cases([(late, t.number(of.high))], t.number(of.low))
    number = t.cases([(finite, _between(count(safe, column), of.low, of.high))], infinite)
    return _where(_present(column), number)
