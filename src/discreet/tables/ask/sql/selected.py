# SPDX-License-Identifier: Apache-2.0
"""Rows that a question has selected so far, with their names, and the tables that it makes on the
way.

**Guarantee.** Everything here is public: names, types and bounds. A name that a question makes is
never one that a text can mean, so no query can read what another one made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from fractions import Fraction
from typing import Any

from sqlglot import exp

from discreet.tables.algebra.engine import LINKED, ROW
from discreet.tables.algebra.expr import Compare, Constant, Expr, IsIn, Read
from discreet.tables.algebra.sums import Filtered, Relation
from discreet.tables.algebra.types import DATE, MOMENT, NUMBER, TEXT, TRUTH, WIDEST, Type, python_value
from discreet.tables.ask import build
from discreet.tables.ask.build import logic
from discreet.tables.ask.conditions import conditions_of
from discreet.tables.ask.domain import Facts, domain
from discreet.tables.ask.sql.refuse import node_text, question_error
from discreet.tables.ask.sql.scalar import Scalar
from discreet.tables.ask.sql.scope import NameScope
from discreet.tables.ask.start import Dataset
from discreet.tables.data.dataset import Column, Table

__all__ = [
    "Known",
    "MadeColumn",
    "QuestionTables",
    "SelectedRows",
    "filter_rows",
    "made_column",
    "optional_unit_error",
    "question_tables",
    "typed_column",
    "working_copy",
]

#: The public values that a column of the rows can still have: those of a list in WHERE, or of a table joined to it.
Known = dict[tuple[str, str], tuple[Any, ...]]
_KINDS = {TEXT: "text", TRUTH: "boolean", DATE: "date", MOMENT: "timestamp"}
#: Lists of values longer than this are not carried from an inner query to an outer one.
_MOST_VALUES = 1_000


class QuestionTables(dict[str, Table]):
    """The tables of a data set, and those that one question makes: copies and the rows of queries."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        super().__init__(tables)
        self._read: set[str] = set()

    def read(self, name: str) -> Table:
        """A table to read; where it is read already, a copy whose columns are told apart."""
        table = self[name]
        if name in self._read:
            return self._add(replace(table, name=self._free(name), of=name))
        self._read.add(name)
        return table

    def add(
        self,
        alias: str,
        made: Mapping[str, Column],
        *,
        unit: str | None,
        keys: Mapping[str, tuple[str, str]] | None = None,
    ) -> Table:
        """The rows of a query as a table; `unit` is LINKED where no column has the unit."""
        return self._add(Table(self._free(alias), made, unit, of="", keys=keys or {}))

    def _add(self, table: Table) -> Table:
        self[table.name] = table
        return table

    def _free(self, name: str) -> str:
        number = 2
        while f"{name} ({number})" in self:
            number += 1
        return f"{name} ({number})"


def working_copy(dataset: Dataset) -> Dataset:
    """The data set, with tables to which one question adds its own."""
    return replace(dataset, tables=QuestionTables(dataset.tables))


def question_tables(dataset: Dataset) -> QuestionTables:
    """The tables of a working copy."""
    tables = dataset.tables
    assert isinstance(tables, QuestionTables)
    return tables


@dataclass
class SelectedRows:
    """A relation, its names, and the public values of its columns.

    `correlated` are conditions of a query in EXISTS that name columns of the query around it.
    """

    relation: Relation
    scope: NameScope
    known: Known = field(default_factory=dict)
    correlated: list[exp.Expression] = field(default_factory=list)

    @property
    def tables(self) -> QuestionTables:
        """The tables of the question."""
        return question_tables(self.scope.dataset)

    def restrict(self, at: tuple[str, str], values: tuple[Any, ...]) -> None:
        """Record that a column has only these values."""
        before = self.known.get(at)
        if before is not None:
            among = set(values)
            values = tuple(value for value in before if value in among)
        self.known[at] = values

    def facts(self) -> Facts:
        """What is publicly known of the rows."""
        return Facts(self.scope.dataset, conditions_of(self.relation), self.known, self.scope.optional())

    def whose(self) -> str:
        """The unit of rows whose columns do not say it."""
        return ROW if any(table.unit == ROW for table in self.scope.tables()) else LINKED


@dataclass(frozen=True)
class MadeColumn:
    """A column of an inner query: how it is described outside, and its expression; None for the
    unit.
    """

    column: Column
    of: Expr | None
    owner_key: tuple[str, str] | None = None


def made_column(name: str, node: exp.Expression, rows: SelectedRows) -> MadeColumn:
    """A column of an inner query. A single column keeps its bounds and values; of an expression
    they follow from its type.
    """
    ref = rows.scope.column(node)
    if ref is not None and ref.is_unit and ref.optional:
        raise optional_unit_error(node, rows.scope)
    if ref is not None and ref.is_unit:
        return MadeColumn(replace(ref.table.columns[ref.column], name=name, null=ref.optional), None)
    scalar = Scalar(rows.scope)
    if ref is None:
        of = build.on_grid(scalar.term(node))
        return MadeColumn(_with_domain(typed_column(name, of.type), of, rows), of)
    of = scalar.read_unclamped(ref)
    known = ref.table.columns[ref.column]
    column = replace(known, name=name, null=of.type.null, places=_places(known, of.type))
    keys = ref.owner_keys(rows.tables)
    return MadeColumn(_with_values(column, of, rows), of, min(keys, default=None))


def optional_unit_error(node: exp.Expression, scope: NameScope) -> Exception:
    """The refusal of a unit that can be NULL: the rows belong to a unit all the same."""
    sure = [source for source in scope.sources if not source.optional and source.table is not None]
    others = [
        f"{source.alias}.{source.table.unit}"
        for source in sure
        if source.table and source.table.unit in source.table.columns
    ]
    return question_error(
        "DP703",
        f"{node_text(node)} is the privacy unit of a table whose rows can be missing.",
        "where it is NULL the row still belongs to somebody, whom the join knows from the other table.",
        others[0] if others else f"USING ({node.name})",
    )


def typed_column(name: str, of: Type, bounds: tuple[Any, Any] | None = None) -> Column:
    """The description of a column of some type; `bounds` stand in place of those of the type."""
    if of.kind != NUMBER:
        ends = None if of.kind in {TEXT, TRUTH} else _wider(of)
        return Column(name, _KINDS[of.kind], bounds or ends, null=of.null)
    unbounded = of.low <= -WIDEST or of.high >= WIDEST
    ends = bounds if bounds is not None or unbounded else _wider(of)
    if of.places == 0:
        return Column(name, "integer", ends, null=of.null)
    return Column(name, "real", ends, places=of.places, null=of.null)


def _wider(of: Type) -> tuple[Any, Any]:
    """The bounds of a type; where they are equal, the upper one is moved, because a range has a
    width.
    """
    high = of.high + (of.high == of.low)
    if of.kind == NUMBER:
        scale = Fraction(1, 2**of.places)
        ends = (of.low * scale, high * scale)
        return (int(ends[0]), int(ends[1])) if of.places == 0 else ends
    step = timedelta(days=1) if of.kind == DATE else timedelta(microseconds=1)
    low, last = python_value(of.low, of), python_value(of.high, of)
    return low, last + step if high > of.high else last


def _places(column: Column, of: Type) -> int | None:
    return of.places if column.kind in {"real", "decimal"} else None


def _with_domain(column: Column, of: Expr, rows: SelectedRows) -> Column:
    """A computed text, or a constant, with the values that it can have; of numbers the bounds say
    them.
    """
    if column.kind != "text" and not (isinstance(of, Constant) and column.kind in {"integer", "date"}):
        return column
    listed = tuple(value for value in domain(of, rows.facts()) or () if value is not None)
    return replace(column, values=listed if 0 < len(listed) <= _MOST_VALUES else None)


def _with_values(column: Column, of: Expr, rows: SelectedRows) -> Column:
    """The column with the values that the inner query leaves to it."""
    if column.kind not in {"text", "integer", "date"} or not isinstance(of, Read):
        return column
    if column.kind != "text" and column.values is None and (of.table, of.column) not in rows.known:
        return column
    values = domain(of, rows.facts())
    listed = tuple(value for value in values or () if value is not None)
    return replace(column, values=listed if 0 < len(listed) <= _MOST_VALUES else None)


def filter_rows(selected: SelectedRows, nodes: list[exp.Expression]) -> None:
    """Keep the rows for which all conditions are TRUE, and record the values that IN or = leaves to
    a column.
    """
    scalar = Scalar(selected.scope)
    conditions = [scalar.condition(node) for node in nodes]
    for condition in conditions:
        listed = _listed_values(condition)
        if listed is not None:
            selected.restrict(*listed)
    if conditions:
        selected.relation = Filtered(selected.relation, logic("and", conditions))


def _listed_values(condition: Expr) -> tuple[tuple[str, str], tuple[Any, ...]] | None:
    """`column IN (…)` or `column = value`: the column, and its values."""
    if isinstance(condition, IsIn) and isinstance(condition.of, Read):
        read, cells = condition.of, condition.values
    elif isinstance(condition, Compare) and condition.op == "=":
        sides = (condition.left, condition.right)
        read, other = sides if isinstance(sides[0], Read) else sides[::-1]  # type: ignore[assignment]
        if not isinstance(read, Read) or not isinstance(other, Constant):
            return None
        cells = (other.value,)
    else:
        return None
    # At an end of its bounds a clipped column stands for all values beyond it.
    ends = {read.type.low, read.type.high} if read.type.is_ordered else set[int]()
    if read.type.places or not ends.isdisjoint(cells):
        return None
    values = tuple(python_value(cell, read.type) if read.type.is_ordered else cell for cell in cells)
    return (read.table, read.column), values
