# SPDX-License-Identifier: Apache-2.0
"""Tables of a Spark session, counted by its cluster.

**Guarantee.** The rows of a question are evaluated once and stored (a local checkpoint), and
everything else is made from them. Without that, Spark would evaluate a source again for each part
of a statement that names it, and again after losing a part. Stored rows are never computed again:
if a part of them is lost, the question fails.

No setting of the session is changed or relied on. Casts and divisions that fail or wrap round under
one setting only get harmless arguments, timestamps without a time zone are never converted to one,
and texts are written in hexadecimal. One setting is checked: with `spark.speculation` two runs of
one task could store different rows.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

from sqlglot import exp

from discreet.errors import BadParameter, EngineFailed
from discreet.tables.algebra.engine import outdated_error
from discreet.tables.algebra.expr import Read
from discreet.tables.algebra.frozen import Frozen
from discreet.tables.algebra.sums import Relation
from discreet.tables.algebra.types import WIDEST
from discreet.tables.data.readers.schema import guard_opening
from discreet.tables.engines import terms as t
from discreet.tables.engines.base import ResultRows
from discreet.tables.engines.dialect import Dialect, speakable
from discreet.tables.engines.read import clamp
from discreet.tables.engines.source import SourceColumn, SourceTable
from discreet.tables.engines.sql_engine import SqlEngine
from discreet.tables.engines.terms import Term
from discreet.tables.engines.tree import all_tables

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
#: So many digits after the point are converted at once, so that no product has more than 38.
_STEP = 9
_DAY = 86_400_000_000  # microseconds
_LAST_DAY = WIDEST // _DAY + 1
_NUMBERS = itertools.count()
#: Settings that must be off, what they do, and why that matters.
_REFUSED = {
    "spark.speculation": (
        "may run a task twice",
        "two runs may read different rows, but a person must be bounded by the rows that are summed.",
    ),
    "spark.sql.parser.quotedRegexColumnNames": (
        "reads names of columns as patterns",
        "another column could be read than the one that is described.",
    ),
}


class SparkDialect(Dialect):
    """Spark's SQL."""

    name: ClassVar[str] = "spark"
    wide: ClassVar[exp.DataType] = exp.DataType.build("DECIMAL(38,0)")

    def has_infinities(self, column: SourceColumn) -> bool:
        return False

    def total(self, term: Term) -> Term:
        # Spark sums 64-bit numbers in 64 bits.
        return t.call("SUM", self.widen(term))

    def over(self, left: Term, right: Term, *, wide: bool = False) -> Term:
        return t.binary(exp.IntDiv, left, right)

    def literal(self, value: str) -> Term:
        return t.cast(exp.HexString(this=speakable(value).encode().hex().upper()), "TEXT")

    def matches(self, term: Term, pattern: str) -> Term:
        return exp.RegexpLike(this=term, expression=self.literal(rf"\A({pattern})\z"))

    def exact_text(self, term: Term, column: SourceColumn) -> Term:
        """A text that is no UTF-8 is NULL: on the way to Python, two of them could become one."""
        value = exp.Collate(this=term, expression=exp.var("UTF8_BINARY"))
        return t.cases([(t.call("IS_VALID_UTF8", value), value.copy())], t.nothing("TEXT"))

    def unit_text(self, term: Term, column: SourceColumn) -> Term:
        return exp.Collate(this=term, expression=exp.var("UTF8_BINARY"))

    def fraction(self, term: Term, digits: int, column: SourceColumn) -> Term:
        """Nine digits at a time: Spark rounds a product of decimals that could have more than 38
        digits.
        """
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
        # By its parts: a difference of timestamps is computed in the time zone of the session, in
        # which hours are missing. The day is clamped first, so that nothing leaves 64 bits.
        day = t.call("UNIX_DATE", t.cast(term, "DATE"))
        days = clamp(t.cast(day, t.BIGINT), t.number(-_LAST_DAY), t.number(_LAST_DAY))
        seconds = exp.Extract(this=exp.var("SECOND"), expression=term.copy())
        micros = t.cast(t.call("FLOOR", t.times(seconds, t.number(1_000_000, "INT"))), t.BIGINT)
        parts = [t.times(days, t.number(_DAY)), micros]
        for name, length in (("HOUR", 3_600_000_000), ("MINUTE", 60_000_000)):
            parts.append(t.times(t.cast(t.call(name, term.copy()), t.BIGINT), t.number(length)))
        return t.add(*parts)


class Spark(SqlEngine):
    """Tables of a Spark session; each is known there under a name that nobody else uses.

    A table that was opened by its name is looked up again for each question. A frame is a plan,
    which is carried out for each question: on the files that it listed when it was made, if it
    reads files.
    """

    name: str = "spark"

    def __init__(
        self,
        session: Any,
        tables: Mapping[str, SourceTable],
        places: Mapping[str, exp.Table],
        by_name: Mapping[str, str],
        frozen: Frozen,
    ) -> None:
        super().__init__(SparkDialect(), tables, places)
        self._session, self._places, self._by_name = session, dict(places), dict(by_name)
        self._frozen = frozen

    def _fetch(self, statement: str) -> Sequence[Sequence[Any]]:
        rows: Sequence[Sequence[Any]] = self._session.sql(statement).collect()
        return rows

    def _from_stored(
        self, relation: Relation, rows: exp.Select, answer: Callable[[exp.Table], exp.Select]
    ) -> ResultRows:
        _check_settings(self._session)
        for name in all_tables(relation):
            self._look_up(name)
        stored = self._session.sql(self._dialect.sql(rows)).localCheckpoint(eager=True)
        view = _new_name()
        stored.createTempView(view)
        try:
            return self._fetch(self._dialect.sql(answer(exp.table_(view, quoted=True))))
        finally:
            self._session.catalog.dropTempView(view)
            _unpersist(stored)

    def _values(self, reads: Sequence[Read]) -> Callable[[], ResultRows]:
        work = super()._values(reads)

        def present() -> ResultRows:
            self._look_up(reads[0].table)
            return work()

        return present

    def _public_rows(self, source: SourceTable) -> Any:
        self._look_up(source.name)
        return super()._public_rows(source)

    def _look_up(self, name: str) -> None:
        """Point to the present rows of a table that was opened by its name."""
        if name in self._by_name:
            self._session.catalog.refreshTable(self._by_name[name])
            self._session.table(self._by_name[name]).createOrReplaceTempView(self._places[name].name)

    def _check_source(self) -> None:
        """Refuse settings that have changed, a session that was stopped, and a table that is gone
        or is another one.
        """
        _check_settings(self._session)
        self._frozen.check()
        for name, at in self._by_name.items():
            now = {field.name: column_of(field) for field in self._session.table(at).schema.fields}
            if not self._tables[name].columns.items() <= now.items():
                raise outdated_error(f"{name} has other columns than when it was opened.")

    def _release(self) -> None:
        while self._places:
            self._session.catalog.dropTempView(self._places.popitem()[1].name)


def open_spark(session: Any, tables: Mapping[str, Any], units: Mapping[str, str | None]) -> Spark:
    """Give each frame a name in the session, and read the schemas."""
    _check_session(session, tables)
    places, sources, files = {}, {}, list[str]()
    for name, source in tables.items():
        frame = guard_opening(lambda at=source: session.table(at)) if isinstance(source, str) else source
        view = _new_name()
        guard_opening(lambda at=frame, called=view: at.createTempView(called))
        places[name] = exp.table_(view, quoted=True)
        files += [] if isinstance(source, str) else _local_files(frame)
        columns = {field.name: column_of(field) for field in frame.schema.fields}
        sources[name] = SourceTable(name, columns, units.get(name))
    by_name = {name: source for name, source in tables.items() if isinstance(source, str)}
    return Spark(session, sources, places, by_name, Frozen(files))


def _local_files(frame: Any) -> list[str]:
    """The files of this machine that a frame has listed; none if it does not say."""
    found: list[str] = []
    with suppress(Exception):
        found = [unquote(urlsplit(file).path) for file in frame.inputFiles() if file.startswith("file:")]
    return found


def _check_session(session: Any, tables: Mapping[str, Any]) -> None:
    """Refuse frames of another session, and one that runs tasks twice."""
    frames = [source for source in tables.values() if not isinstance(source, str)]
    if not all(_is_same(session, frame.sparkSession) for frame in frames):
        raise BadParameter(
            "DP107",
            "the tables are in different Spark sessions.",
            why="one session counts them all.",
            fix="make all frames with one session",
        )
    _check_settings(session)


def _check_settings(session: Any) -> None:
    """Refuse settings under which a statement has another meaning."""
    for name, (what, why) in _REFUSED.items():
        if session.conf.get(name, "false").lower() != "false":
            raise EngineFailed(
                "DP802",
                f"the Spark session {what} ({name}).",
                why=why,
                fix=f'SparkSession.builder.config("{name}", "false")',
            )


def _is_same(left: Any, right: Any) -> bool:
    """Whether two handles belong to one session on the Java side."""
    ours, theirs = (getattr(handle, "_jsparkSession", None) for handle in (left, right))
    return left is right or (ours is not None and bool(ours.equals(theirs)))


def _new_name() -> str:
    return f"discreet_{os.getpid()}_{next(_NUMBERS)}"


def _unpersist(stored: Any) -> None:
    """Free stored rows now; without a Java side at hand Spark frees them when nobody needs them."""
    plan = getattr(stored, "_jdf", None)
    if plan is not None:
        plan.queryExecution().analyzed().rdd().unpersist(False)


def column_of(field: Any) -> SourceColumn:
    """A column from a field of Spark's schema."""
    native = type(field.dataType).__name__
    kind = _KINDS.get(native, "other")
    if kind == "decimal":
        return SourceColumn(field.name, kind, native, field.dataType.precision, field.dataType.scale)
    return SourceColumn(field.name, kind, native, zoned=native == "TimestampType")
