# SPDX-License-Identifier: Apache-2.0
"""Tables of a Spark session, counted by its cluster.

**Promise.** One statement for each question. No setting of the session is changed, and none is relied on: casts and
divisions that would fail or wrap round under one setting and not under another are made harmless first.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from sqlglot import exp

from discreet.tables.engines import terms as t
from discreet.tables.engines.dialect import Dialect
from discreet.tables.engines.source import SourceColumn, SourceTable
from discreet.tables.engines.sql_engine import SqlEngine
from discreet.tables.engines.terms import Term
from discreet.tables.schema import opened

__all__ = ["Spark", "open_spark"]

_KINDS = {
    **dict.fromkeys(("ByteType", "ShortType", "IntegerType", "LongType"), "integer"),
    **dict.fromkeys(("FloatType", "DoubleType"), "real"),
    **dict.fromkeys(("StringType", "VarcharType", "CharType"), "text"),
    "BooleanType": "boolean",
    "DateType": "date",
    "TimestampType": "timestamp",
    "TimestampNTZType": "timestamp",
    "DecimalType": "decimal",
}
_STEP = 9  # so many digits after the point are taken at once: then no product has more than 38
_NUMBERS = itertools.count()


class SparkDialect(Dialect):
    """Spark's SQL."""

    name: ClassVar[str] = "spark"
    wide: ClassVar[exp.DataType] = exp.DataType.build("DECIMAL(38,0)")
    has_infinite_dates: ClassVar[bool] = False

    def total(self, term: Term) -> Term:
        return t.call("SUM", self.widened(term))  # a sum of 64-bit numbers has 64 bits here

    def over(self, left: Term, right: Term, *, wide: bool = False) -> Term:
        return t.binary(exp.IntDiv, left, right)

    def matches(self, term: Term, pattern: str) -> Term:
        return exp.RegexpLike(this=term, expression=t.text(rf"\A({pattern})\z"))

    def exact_text(self, term: Term, column: SourceColumn) -> Term:
        return exp.Collate(this=term, expression=exp.var("UTF8_BINARY"))

    def fraction(self, term: Term, digits: int) -> Term:
        """Nine digits at a time: Spark rounds a product of decimals that could have more than 38 digits."""
        one = t.number(1, "INT")
        rest = t.binary(exp.Mod, t.add(t.binary(exp.Mod, term, one), one.copy()), one.copy())
        total: Term = t.number(0)
        for start in range(0, digits, _STEP):
            count = min(_STEP, digits - start)
            moved = t.times(rest, t.number(10**count, f"DECIMAL({count + 1},0)"))
            total = t.add(t.times(total, t.number(10**count)), t.cast(t.call("FLOOR", moved), t.BIGINT))
            rest = t.binary(exp.Mod, moved.copy(), one.copy())
        return total

    def day_number(self, term: Term, column: SourceColumn) -> Term:
        return t.cast(t.call("UNIX_DATE", term), t.BIGINT)

    def micro_number(self, term: Term, column: SourceColumn) -> Term:
        if column.zoned:
            return t.call("UNIX_MICROS", term)
        start = t.cast(t.text("1970-01-01 00:00:00"), exp.DataType.build("TIMESTAMP_NTZ"))
        return t.call("TIMESTAMPDIFF", exp.var("MICROSECOND"), start, term)


class Spark(SqlEngine):
    """Tables of a Spark session; frames are known there under names that nobody else uses."""

    name: str = "spark"

    def __init__(
        self,
        session: Any,
        tables: Mapping[str, SourceTable],
        places: Mapping[str, exp.Table],
        views: Sequence[str],
    ) -> None:
        super().__init__(SparkDialect(), tables, places)
        self._session, self._views = session, list(views)

    def _fetch(self, statement: str) -> Sequence[Sequence[Any]]:
        rows: Sequence[Sequence[Any]] = self._session.sql(statement).collect()
        return rows

    def close(self) -> None:
        """Forget the names of the frames."""
        while self._views:
            self._session.catalog.dropTempView(self._views.pop())


def open_spark(session: Any, tables: Mapping[str, Any], units: Mapping[str, str | None]) -> Spark:
    """Give each frame a name in the session, and read the schemas."""
    places, sources, views = {}, {}, []
    for name, source in tables.items():
        frame = opened(lambda at=source: session.table(at)) if isinstance(source, str) else source
        view = f"discreet_{os.getpid()}_{next(_NUMBERS)}"
        opened(lambda at=frame, called=view: at.createTempView(called))
        views.append(view)
        places[name] = exp.table_(view, quoted=True)
        columns = {field.name: column_of(field) for field in frame.schema.fields}
        sources[name] = SourceTable(name, columns, units.get(name))
    return Spark(session, sources, places, views)


def column_of(field: Any) -> SourceColumn:
    """A column from a field of Spark's schema."""
    native = type(field.dataType).__name__
    kind = _KINDS.get(native, "other")
    if kind == "decimal":
        return SourceColumn(field.name, kind, native, field.dataType.precision, field.dataType.scale)
    return SourceColumn(field.name, kind, native, zoned=native == "TimestampType")
