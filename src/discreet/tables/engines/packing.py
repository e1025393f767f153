# SPDX-License-Identifier: Apache-2.0
"""Columns in as few bytes as their types allow, and texts as positions in a list.

Grouping by position is several times as fast as by text. The list of a column has every text of it,
and rows find their positions by a join with the list, which takes half the time of a cast.

**Guarantee.** Packed rows are the rows of the source with the same meaning. A list is made of rows
and stays in the engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from sqlglot import exp

from discreet.tables.algebra.expr import IsIn, Read
from discreet.tables.algebra.sums import Filtered, Relation
from discreet.tables.algebra.types import TEXT, TRUTH
from discreet.tables.engines import terms as t
from discreet.tables.engines.pairs import Pairs
from discreet.tables.engines.relation import Relations, select
from discreet.tables.engines.temporary import Temporary
from discreet.tables.engines.terms import UNIT, Term, name_term
from discreet.tables.engines.tree import normal
from discreet.tables.engines.write import Writer

__all__ = ["Packer"]

#: Columns with at most so many different texts are stored as positions in a list.
_LISTED = 10_000
_WIDTHS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31}

Among = Mapping[str, Sequence[IsIn]]


class Packer:
    """Packs rows of tables that cannot change: a text added later would be in no list."""

    def __init__(self, relations: Relations, temporary: Temporary) -> None:
        self._relations, self._temporary = relations, temporary
        self._lists: dict[Read, exp.Table | None] = {}

    def pack(
        self, columns: Mapping[str, Read | None], source: exp.Select, among: Among = MappingProxyType({})
    ) -> exp.Select:
        """The columns of a source; those without a type as they are.

        Rows whose text is not `among` the given values are dropped.
        """
        chosen: list[Term] = []
        lists: list[tuple[str, exp.Table]] = []
        for name, read in columns.items():
            value = t.column(name, "t")
            listed = self._list_of(read) if read and read.of.kind == TEXT else None
            if listed is not None:
                value = t.column("position", f"l{len(lists)}")
                lists.append((name, listed))
            chosen.append(name_term(_small(read, value) if read else value, name))
        packed = select(chosen, source)
        for number, (name, listed) in enumerate(lists):
            places = self._chosen_texts(listed, among.get(name, ())).subquery(f"l{number}", copy=False)
            same = t.binary(exp.EQ, t.column(name, "t"), t.column("text", f"l{number}"))
            packed.join(places, on=same, join_type="INNER" if among.get(name) else "LEFT", copy=False)
        return packed

    def without_filter(self, pairs: Pairs) -> tuple[Pairs, dict[str, Read | None], Among]:
        """Pairs without the filters that a join with a list replaces, their columns, the filters."""
        columns: dict[str, Read | None] = dict.fromkeys((UNIT, *pairs.key_names, *pairs.sum_names))
        texts: dict[Read, str] = {}
        for key, name in zip(pairs.keys, pairs.key_names, strict=True):
            if isinstance(key, Read) and key.of.kind == TEXT:
                columns[name] = normal(key)
                texts[normal(key)] = name
        rows, among = self.peel(pairs.rows, texts)
        return replace(pairs, rows=rows), columns, among

    def peel(self, rows: Relation, texts: Mapping[Read, str]) -> tuple[Relation, Among]:
        """A relation without its outermost filters "text is one of …", and these by column name."""
        among = {name: list[IsIn]() for name in texts.values()}
        while isinstance(rows, Filtered) and isinstance(rows.condition, IsIn):
            read = rows.condition.of
            if not isinstance(read, Read) or normal(read) not in texts or not self._list_of(normal(read)):
                break
            among[texts[normal(read)]].append(rows.condition)
            rows = rows.rows
        return rows, among

    def unpack(self, table: exp.Table, reads: Mapping[Read, None], first: str = "r") -> exp.Select:
        """Packed rows with numbers in 64 bits, with room for arithmetic; `first` as it is."""
        columns: list[Term] = [t.column(first)]
        for read in reads:
            value = t.column(self._relations.name_of(read))
            small = read.of.kind in {TEXT, TRUTH}
            columns.append(
                name_term(value if small else t.cast(value, t.BIGINT), self._relations.name_of(read))
            )
        return select(columns, table)

    def _chosen_texts(self, listed: exp.Table, among: Sequence[IsIn]) -> exp.Select:
        """The texts of a list that meet some conditions."""
        writer = Writer(self._relations.dialect, lambda _: t.column("text"))
        chosen = select([t.column("text"), t.column("position")], listed)
        return chosen.where(*(writer.write(condition) for condition in among), copy=False)

    def _list_of(self, read: Read) -> exp.Table | None:
        """The texts of a column with their positions; None if they are many, or have no table."""
        if read.table not in self._relations.tables:
            return None
        if read not in self._lists:
            self._lists[read] = self._listing(read)
        return self._lists[read]

    def _listing(self, read: Read) -> exp.Table | None:
        column = t.column(self._relations.name_of(read))
        texts = select(
            [column], self._relations.cells(self._relations.tables[read.table], {read: None}, read.table)
        ).distinct(copy=False)
        texts = select([column.copy()], texts).where(t.negate(t.is_null(column.copy())), copy=False)
        table = self._temporary.store(texts.limit(_LISTED + 1, copy=False))
        listed = None
        if 0 < self._temporary.count(table) <= _LISTED:
            name = f"discreet_list_{len(self._lists)}"
            position = t.cast(column.copy(), self._temporary.enumerate(name, select([column.copy()], table)))
            listed = self._temporary.store(
                select([name_term(column.copy(), "text"), name_term(position, "position")], table)
            )
        self._temporary.drop(table)
        return listed


def _small(read: Read, value: Term) -> Term:
    if read.of.kind in {TEXT, TRUTH}:
        return value
    bits = max(read.of.high, -read.of.low - 1, 0).bit_length()
    return t.cast(value, next((kind for kind, most in _WIDTHS.items() if bits <= most), t.BIGINT))
