# SPDX-License-Identifier: Apache-2.0
"""GROUP BY with the privacy unit, inside FROM: aggregates over the rows of each unit, without
noise.

    SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS p

**Guarantee.** Every group belongs to one unit, so what is computed in it is a function of the rows
of that unit (theory: per-unit operators are 1-stable). It never leaves the engine: the outer
question adds noise to what it makes of it. The bounds of a count are 0 and at_most, those of a sum
are at_most times those of its operand; CLAMP around the aggregate stands in place of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sqlglot import exp

from discreet.tables.algebra.bounds import stated_bound
from discreet.tables.algebra.engine import LINKED
from discreet.tables.algebra.expr import Expr
from discreet.tables.algebra.sums import PerUnit, UnitAggregate
from discreet.tables.algebra.types import NUMBER, TEXT, TRUTH, Type
from discreet.tables.ask import build
from discreet.tables.ask.build import on_grid
from discreet.tables.ask.sql.aggregates import is_aggregate
from discreet.tables.ask.sql.refuse import name_of, node_text, question_error, require_only
from discreet.tables.ask.sql.scalar import Scalar
from discreet.tables.ask.sql.scope import FromItem, NameScope
from discreet.tables.ask.sql.selected import (
    MadeColumn,
    SelectedRows,
    filter_rows,
    made_column,
    typed_column,
)
from discreet.tables.ask.sql.stacked import QueryRows
from discreet.tables.data.dataset import Column

__all__ = ["aggregate_column", "group_by_unit", "is_grouped", "most_rows_of", "quoted_column"]

#: SQL's names of aggregates, and ours.
_KINDS = {"COUNT": "count", "SUM": "sum", "MIN": "min", "MAX": "max"}


def is_grouped(query: exp.Select) -> bool:
    """Whether a query groups rows."""
    return any(query.args.get(part) for part in ("group", "distinct")) or any(
        _is_group_aggregate(node) for item in query.expressions for node in item.find_all(exp.Expression)
    )


def _is_group_aggregate(node: exp.Expression) -> bool:
    inside = node.parent if isinstance(node.parent, exp.Window) and node.arg_key == "this" else None
    return isinstance(node, exp.Anonymous) and is_aggregate(node) and inside is None


def group_by_unit(query: exp.Select, rows: SelectedRows, columns: Mapping[str, exp.Expression]) -> QueryRows:
    """The groups of a query, each of one unit, with the columns that it selects."""
    grouping = _Grouping(rows)
    for node in _group_nodes(query, columns):
        grouping.add_key(node, next((name for name, item in columns.items() if item is node), ""))
    grouping.check_unit(query)
    columns_of_groups = {name: grouping.rewrite(node, name) for name, node in columns.items()}
    having = query.args.get("having")
    condition = None if having is None else grouping.rewrite(require_only(having, "this").this)
    qualify = query.args.get("qualify")
    if qualify is not None:
        qualify.set("this", grouping.rewrite(qualify.this))
    groups = grouping.rows_of_groups()
    if condition is not None:
        filter_rows(groups, [condition])
    return QueryRows(groups, columns_of_groups)


def _group_nodes(query: exp.Select, columns: Mapping[str, exp.Expression]) -> list[exp.Expression]:
    """The expressions of GROUP BY; those of SELECT DISTINCT are its columns."""
    group = query.args.get("group")
    if query.args.get("distinct"):
        require_only(query.args["distinct"])
        if group is not None:
            raise question_error(
                "DP702",
                "DISTINCT and GROUP BY stand together.",
                "each of them makes groups.",
                "leave DISTINCT out",
            )
        return list(columns.values())
    if group is None:
        return []
    require_only(group, "expressions")
    items = list(columns.values())
    nodes = []
    for node in group.expressions:
        by_place = isinstance(node, exp.Literal) and not node.args.get("is_string")
        if by_place and str(node.this).isdigit() and 1 <= int(node.this) <= len(items):
            nodes.append(items[int(node.this) - 1])
        elif isinstance(node, exp.Column) and not node.args.get("table") and node.name in columns:
            nodes.append(columns[node.name])
        else:
            nodes.append(node)
    return nodes


@dataclass
class _Grouping:
    """The keys and aggregates of a query, with the columns that stand for them outside."""

    rows: SelectedRows
    keys: list[tuple[exp.Expression, str, MadeColumn]] = field(default_factory=list)
    aggregates: dict[str, tuple[UnitAggregate, Column]] = field(default_factory=dict)
    alias: str = "groups"

    def add_key(self, node: exp.Expression, name: str) -> None:
        """One expression of GROUP BY."""
        if any(self.rows.scope.same(node, written) for written, _, _ in self.keys):
            return
        if is_aggregate(node):
            raise question_error(
                "DP706",
                f"GROUP BY cannot use {node_text(node)}.",
                "it is an aggregate, and groups must exist before it.",
                "group by a column",
            )
        made = made_column(self._free(name or _short(node)), node, self.rows)
        if made.of is not None and made.of.type.kind == NUMBER and made.of.type.places:
            raise question_error(
                "DP704",
                f"{node_text(node)} is a real number, and cannot be grouped by.",
                "engines disagree on whether such values are equal.",
                f"GROUP BY FLOOR({node_text(node)})",
            )
        self.keys.append((node, made.column.name, made))

    def check_unit(self, query: exp.Select) -> None:
        """Refuse groups that could hold the rows of several units."""
        if any(made.of is None or made.owner_key is not None for _, _, made in self.keys):
            return
        unit = next((t.unit for t in self.rows.scope.tables() if t.private and t.unit in t.columns), None)
        distinct = bool(query.args.get("distinct"))
        what = "SELECT DISTINCT" if distinct else "GROUP BY"
        others = [node_text(node) for node, _, _ in self.keys]
        raise question_error(
            "DP702",
            f"a query inside FROM can group only the rows of one unit: {node_text(query)}",
            f"without the unit in {what}, its exact result depends on the rows of several people.",
            f"{what} {', '.join([unit, *others])}" if unit else "leave the inner query out",
        )

    def rewrite(self, node: exp.Expression, name: str = "") -> exp.Expression:
        """An expression after grouping: its keys and aggregates are columns of the groups."""
        for written, column, _ in self.keys:
            if self.rows.scope.same(node, written):
                return quoted_column(column, self.alias)
        if isinstance(node, exp.Filter) or (isinstance(node, exp.Anonymous) and is_aggregate(node)):
            return self._aggregate(node, name)
        if isinstance(node, exp.Window):
            return self._window(node)
        if isinstance(node, exp.Column):
            raise question_error(
                "DP706",
                f"{node_text(node)} is neither in GROUP BY nor inside an aggregate.",
                "a group has many values of it.",
                f"MIN({node_text(node)}), or add it to GROUP BY",
            )
        return self._with_parts(node)

    def _with_parts(self, node: exp.Expression) -> exp.Expression:
        copy = node.copy()
        for part, value in node.args.items():
            if isinstance(value, exp.Expression) and not isinstance(value, exp.Identifier):
                copy.set(part, self.rewrite(value))
            elif isinstance(value, list):
                parts = [self.rewrite(v) if isinstance(v, exp.Expression) else v for v in value]
                copy.set(part, parts)
        return copy

    def _window(self, node: exp.Window) -> exp.Expression:
        """A window over groups: its function stays, what it is a function of is rewritten."""
        copy = self._with_parts(exp.Window(**{key: part for key, part in node.args.items() if key != "this"}))
        copy.set("this", self._with_parts(node.this))
        return copy

    def _aggregate(self, node: exp.Expression, name: str) -> exp.Expression:
        call, condition = node, None
        if isinstance(node, exp.Filter):
            require_only(node, "this", "expression")
            condition, call = require_only(node.expression, "this").this, node.this
        if name_of(call) in {"AVG", "MEAN"}:
            operands = require_only(call, "this", "expressions").expressions
            calls = [
                _filter_call(node, exp.Anonymous(this=part, expressions=[operands[0].copy()]))
                for part in ("SUM", "COUNT")
            ]
            total, count = (self._aggregate(part_call, "") for part_call in calls)
            return exp.Paren(this=exp.Div(this=total, expression=count))
        aggregate, described = aggregate_column(call, condition, self.rows, node_text(node))
        for column, (other, _) in self.aggregates.items():
            if other == aggregate:
                return quoted_column(column, self.alias)
        column = self._free(name or node_text(node))
        self.aggregates[column] = (aggregate, _rename(described, column))
        return quoted_column(column, self.alias)

    def _free(self, name: str) -> str:
        taken = {column.casefold() for column in (*self.aggregates, *(key for _, key, _ in self.keys))}
        free, number = name, 1
        while free.casefold() in taken:
            number += 1
            free = f"{name}_{number}"
        return free

    def rows_of_groups(self) -> SelectedRows:
        """One row for each group."""
        rows = self.rows
        columns = {name: made.column for _, name, made in self.keys}
        columns |= {name: column for name, (_, column) in self.aggregates.items()}
        unit = next((name for _, name, made in self.keys if made.of is None), LINKED)
        owners = {
            name: made.owner_key for _, name, made in self.keys if made.owner_key and made.of is not None
        }
        table = rows.tables.add(self.alias, columns, unit=unit, keys=owners)
        keys = tuple((name, made.of) for _, name, made in self.keys if made.of is not None)
        aggregates = tuple((name, aggregate) for name, (aggregate, _) in self.aggregates.items())
        relation = PerUnit(rows.relation, table.name, keys, aggregates)
        scope = NameScope(rows.scope.dataset, [FromItem(self.alias, table)], outer=rows.scope.outer)
        return SelectedRows(relation, scope)


def _filter_call(node: exp.Expression, call: exp.Expression) -> exp.Expression:
    """Another call with the FILTER of a node."""
    if not isinstance(node, exp.Filter):
        return call
    return exp.Filter(this=call, expression=node.expression.copy())


def _rename(column: Column, name: str) -> Column:
    return replace(column, name=name)


def aggregate_column(
    call: exp.Expression, condition: exp.Expression | None, rows: SelectedRows, text: str
) -> tuple[UnitAggregate, Column]:
    """An aggregate over the rows of a unit, and the description of its value."""
    name = name_of(call)
    arguments = require_only(call, "this", "expressions").expressions
    if name not in {*_KINDS, "COUNT_IF"} or len(arguments) != 1:
        raise question_error(
            "DP706",
            f"{text} is not supported over the rows of one unit.",
            "COUNT, COUNT(DISTINCT …), SUM, AVG, MIN and MAX are, and mean the same on every engine.",
            f"MAX({node_text(arguments[0])})" if arguments else "COUNT(*)",
        )
    scalar, row_bound = Scalar(rows.scope, text), most_rows_of(rows)
    node = arguments[0]
    counts = (0, row_bound) if row_bound else None
    if name in {"COUNT", "COUNT_IF"}:
        kind, of = _counted_operand(name, node, condition, scalar)
        return UnitAggregate(kind, of), Column("count", "integer", counts, null=False)
    if name == "SUM":
        of = _filter_operand(on_grid(build.as_number(scalar.term(node))), condition, scalar)
        return UnitAggregate("sum", of), _sum_column(of, row_bound)
    column = rows.scope.column(node)
    operand = on_grid(scalar.operand(node))
    of = _filter_operand(operand, condition, scalar)
    if of.type.kind in {TEXT, TRUTH}:
        raise question_error(
            "DP706",
            f"{text} orders texts or truth values.",
            "engines disagree on the order of texts.",
            f"COUNT(DISTINCT {node_text(node)})",
        )
    bounds = None if column is None else column.table.columns[column.column].bounds
    return UnitAggregate(_KINDS[name], of), typed_column("value", of.type.with_null(True), bounds)


def _counted_operand(
    name: str, node: exp.Expression, condition: exp.Expression | None, scalar: Scalar
) -> tuple[str, Expr | None]:
    """What COUNT counts: rows, values, or different values."""
    one = on_grid(Fraction(1))
    if name == "COUNT_IF":
        return "count_of", build.case([(scalar.condition(node), one)], build.NULL)
    if isinstance(node, exp.Star | exp.Literal):
        return ("count", None) if condition is None else ("count_of", _filter_operand(one, condition, scalar))
    if isinstance(node, exp.Distinct):
        (inner,) = require_only(node, "expressions").expressions
        return "distinct", _filter_operand(scalar.count_operand(inner), condition, scalar)
    return "count_of", _filter_operand(scalar.count_operand(node), condition, scalar)


def _filter_operand(of: Expr, condition: exp.Expression | None, scalar: Scalar) -> Expr:
    """The operand of an aggregate with FILTER: NULL where the condition is not TRUE."""
    if condition is None:
        return of
    return on_grid(build.case([(scalar.condition(condition), of)], build.NULL))


def _sum_column(of: Expr, row_bound: int | None) -> Column:
    low, high = of.type.bounds
    bounds = None
    if row_bound is not None:
        low, high = min(low, low * row_bound), max(high, high * row_bound)
        high += (high == low) * Fraction(1, 2**of.type.places)
        bounds = (int(low), int(high)) if of.type.places == 0 else (low, high)
    kind = Type(NUMBER, of.type.low, of.type.high, of.type.places, of.type.null)
    column = typed_column("sum", kind, bounds)
    return (
        column
        if bounds is not None
        else Column("sum", column.kind, None, places=column.places, null=of.type.null)
    )


def most_rows_of(rows: SelectedRows) -> int | None:
    """The number of rows that a unit contributes at most; None if it is chosen privately."""
    return stated_bound(rows.scope.dataset.protect.at_most, rows.relation)


def quoted_column(name: str, table: str) -> exp.Expression:
    """A column by its exact name."""
    return exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(table, quoted=True))


def _short(node: exp.Expression) -> str:
    return str(node.name) if isinstance(node, exp.Column) else node_text(node)
