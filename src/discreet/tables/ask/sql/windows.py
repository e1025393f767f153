# SPDX-License-Identifier: Apache-2.0
"""Window functions inside FROM, over the rows of one unit: first visits, gaps, running totals.

    SELECT COUNT(*) FROM (SELECT day, LAG(day) OVER (PARTITION BY patient_id ORDER BY day) AS before FROM visits) AS v

**Guarantee.** Every partition has the rows of one unit, so a value is a function of those rows.
Rows that ORDER BY leaves equal are ordered by what they contain, never by where they lie: the
result is the same for the same rows, on every engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from discreet.tables.algebra.engine import LINKED
from discreet.tables.algebra.expr import Expr
from discreet.tables.algebra.sums import Windowed, WindowFunction
from discreet.tables.algebra.types import TEXT
from discreet.tables.ask.build import on_grid
from discreet.tables.ask.sql.literals import whole_number
from discreet.tables.ask.sql.per_unit import aggregate_column, most_rows_of, quoted_column
from discreet.tables.ask.sql.refuse import name_of, node_text, question_error, require_only
from discreet.tables.ask.sql.scalar import Scalar
from discreet.tables.ask.sql.scope import FromItem, NameScope
from discreet.tables.ask.sql.selected import SelectedRows, filter_rows, made_column
from discreet.tables.data.dataset import Column

__all__ = ["has_windows", "with_windows"]

_PLACES = {"ROW_NUMBER": "row_number", "RANK": "rank", "DENSE_RANK": "dense_rank"}
_NEIGHBOURS = {"LAG": "lag", "LEAD": "lead"}
_TOTALS = {"SUM", "COUNT", "COUNT_IF", "MIN", "MAX", "AVG", "MEAN"}
_FARTHEST = 10_000
_ALIAS = "windows"


def has_windows(nodes: Iterable[exp.Expression]) -> bool:
    """Whether some expressions have a window."""
    return any(node.find(exp.Window) is not None for node in nodes)


def with_windows(
    query: exp.Select, rows: SelectedRows, columns: Mapping[str, exp.Expression]
) -> tuple[SelectedRows, dict[str, exp.Expression]]:
    """The rows with a column for each window, and the columns of the query with those in their
    place.
    """
    windows = _Windows(rows, _named_windows(query))
    rewritten = {name: windows.rewrite(node) for name, node in columns.items()}
    qualify = query.args.get("qualify")
    kept = None if qualify is None else windows.rewrite(require_only(qualify, "this").this)
    result = windows.rows_with_columns()
    if kept is not None:
        filter_rows(result, [kept])
    return result, rewritten


def _named_windows(query: exp.Select) -> dict[str, exp.Window]:
    return {window.this.name: window for window in query.args.get("windows") or []}


@dataclass
class _Windows:
    """The windows of a query, and the columns that stand for them outside."""

    rows: SelectedRows
    named: Mapping[str, exp.Window]
    functions: dict[str, tuple[WindowFunction, Column]] = field(default_factory=dict)

    def rewrite(self, node: exp.Expression) -> exp.Expression:
        """An expression with columns in place of its windows."""
        if isinstance(node, exp.Window):
            return self._column(node)
        copy = node.copy()
        for part, value in node.args.items():
            if isinstance(value, exp.Expression):
                copy.set(part, self.rewrite(value))
            elif isinstance(value, list):
                parts = [self.rewrite(v) if isinstance(v, exp.Expression) else v for v in value]
                copy.set(part, parts)
        return copy

    def _column(self, node: exp.Window) -> exp.Expression:
        spec = self._spec(node)
        name = name_of(node.this)
        if name in {"AVG", "MEAN"}:
            operands = require_only(node.this, "this", "expressions").expressions
            total, count = (
                self._add(spec, exp.Anonymous(this=part, expressions=[operands[0].copy()]), node)
                for part in ("SUM", "COUNT")
            )
            return exp.Paren(this=exp.Div(this=total, expression=count))
        return self._add(spec, node.this, node)

    def _add(self, spec: exp.Window, call: exp.Expression, node: exp.Window) -> exp.Expression:
        function, column = self._function(spec, call, node)
        for alias, (other, _) in self.functions.items():
            if other == function:
                return quoted_column(alias, _ALIAS)
        name = f"{node_text(node)} {len(self.functions)}"
        self.functions[name] = (function, replace(column, name=name))
        return quoted_column(name, _ALIAS)

    def _spec(self, node: exp.Window) -> exp.Window:
        """The window of a function, by its name or as it stands."""
        require_only(node, "this", "partition_by", "order", "spec", "alias", "over")
        alias = node.args.get("alias")
        if alias is None:
            return node
        if alias.name not in self.named:
            raise question_error(
                "DP701",
                f"there is no window {alias.name!r}.",
                "a window needs a definition.",
                f"WINDOW {alias.name} AS (PARTITION BY patient_id ORDER BY came_on)",
            )
        return require_only(self.named[alias.name], "this", "partition_by", "order", "spec", "over")  # type: ignore[return-value]

    def _function(
        self, spec: exp.Window, call: exp.Expression, node: exp.Window
    ) -> tuple[WindowFunction, Column]:
        partition, order = self._partition(spec, node), self._order(spec)
        by_rows = _is_by_rows(spec, node)
        name = name_of(call)
        arguments = require_only(call, "this", "expressions").expressions if name else []
        row_bound = most_rows_of(self.rows)
        if name in _PLACES and not arguments:
            if spec.args.get("spec") is not None:
                raise _frame_error(node)
            ends = (1, row_bound) if row_bound and row_bound > 1 else (0, 1) if row_bound else None
            column = Column("place", "integer", ends, null=False)
            return WindowFunction(_PLACES[name], None, partition, order), column
        if name in _NEIGHBOURS and 1 <= len(arguments) <= 2 and order and spec.args.get("spec") is None:
            offset = whole_number(arguments[1], "the offset", 0, _FARTHEST, name) if arguments[1:] else 1
            value, column = self._operand(arguments[0])
            return WindowFunction(_NEIGHBOURS[name], value, partition, order, offset), replace(
                column, null=True
            )
        if name == "FIRST_VALUE" and len(arguments) == 1 and order and spec.args.get("spec") is None:
            value, column = self._operand(arguments[0])
            return WindowFunction("first", value, partition, order), replace(column, null=True)
        if name in _TOTALS:
            aggregate, column = aggregate_column(call, None, self.rows, node_text(node))
            if aggregate.kind != "distinct":
                kind, of = aggregate.kind, aggregate.of
                return WindowFunction(kind, of, partition, order, rows=by_rows), column
        raise _function_error(node, name, order)

    def _operand(self, node: exp.Expression) -> tuple[Expr, Column]:
        operand = made_column("value", node, self.rows)
        if operand.of is None:
            # This call refuses it.
            Scalar(self.rows.scope).term(node)
        assert operand.of is not None
        return operand.of, operand.column

    def _partition(self, spec: exp.Window, node: exp.Window) -> tuple[Expr, ...]:
        """What rows of a partition have in common, beside the unit."""
        scope = self.rows.scope
        refs = [scope.column(part) for part in spec.args.get("partition_by") or []]
        leads_to_unit = [ref is not None and bool(ref.owner_keys(self.rows.tables)) for ref in refs]
        if not any(leads_to_unit):
            unit = next((t.unit for t in scope.tables() if t.private and t.unit in t.columns), None)
            raise question_error(
                "DP702",
                f"a window must be partitioned by the privacy unit: {node_text(node)}",
                "a rank or a running total among the rows of several people depends on all of them.",
                f"PARTITION BY {unit}" if unit else "leave the window out",
            )
        parts = []
        for part, ref in zip(spec.args["partition_by"], refs, strict=True):
            if ref is None or not ref.is_unit:
                parts.append(_comparable(on_grid(Scalar(scope).operand(part)), part))
        return tuple(parts)

    def _order(self, spec: exp.Window) -> tuple[tuple[Expr, bool], ...]:
        order = spec.args.get("order")
        if order is None:
            return ()
        parts = []
        for item in require_only(order, "expressions").expressions:
            require_only(item, "this", "desc")
            of = on_grid(Scalar(self.rows.scope).operand(item.this))
            if of.type.kind == TEXT:
                raise question_error(
                    "DP702",
                    f"a window cannot be ordered by a text: {node_text(item.this)}",
                    "engines disagree on the order of texts.",
                    "ORDER BY came_on",
                )
            parts.append((of, bool(item.args.get("desc"))))
        return tuple(parts)

    def rows_with_columns(self) -> SelectedRows:
        """The rows with one more column for each window."""
        rows = self.rows
        columns = {name: column for name, (_, column) in self.functions.items()}
        table = rows.tables.add(_ALIAS, columns, unit=LINKED)
        functions = tuple((name, function) for name, (function, _) in self.functions.items())
        scope = NameScope(
            rows.scope.dataset,
            [*rows.scope.sources, FromItem(_ALIAS, table)],
            set(rows.scope.merged),
            rows.scope.outer,
        )
        return SelectedRows(Windowed(rows.relation, table.name, functions), scope, rows.known)


def _comparable(of: Expr, node: exp.Expression) -> Expr:
    if of.type.is_ordered and of.type.places:
        raise question_error(
            "DP702",
            f"a window cannot be partitioned by a real number: {node_text(node)}",
            "engines disagree on whether such values are equal.",
            f"FLOOR({node_text(node)})",
        )
    return of


def _is_by_rows(spec: exp.Window, node: exp.Window) -> bool:
    """Whether a total is over rows one by one; the other frame ends with the rows that are equal."""
    frame = spec.args.get("spec")
    if frame is None:
        return False
    ends = [frame.args.get(part) for part in ("start", "start_side", "end", "end_side")]
    kind = str(frame.args.get("kind"))
    if ends != ["UNBOUNDED", "PRECEDING", "CURRENT ROW", None] or kind not in {"ROWS", "RANGE"}:
        raise _frame_error(node)
    require_only(frame, "kind", "start", "start_side", "end")
    return kind == "ROWS"


def _frame_error(node: exp.Window) -> Exception:
    return question_error(
        "DP702",
        f"this frame is not supported: {node_text(node)}",
        "a total is over all rows of a unit, or over those up to the present one.",
        "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW   or no frame",
    )


def _function_error(node: exp.Window, name: str, order: tuple[tuple[Expr, bool], ...]) -> Exception:
    if name in {*_NEIGHBOURS, "FIRST_VALUE"} and not order:
        return question_error(
            "DP702",
            f"{name} needs ORDER BY and no frame: {node_text(node)}",
            "without an order there is no row before or after.",
            f"{name}(days) OVER (PARTITION BY patient_id ORDER BY came_on)",
        )
    return question_error(
        "DP702",
        f"this window function is not supported: {node_text(node)}",
        "ROW_NUMBER, RANK, DENSE_RANK, LAG, LEAD, FIRST_VALUE, SUM, COUNT, AVG, MIN and MAX are.",
        "ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY came_on)",
    )
