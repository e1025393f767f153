# SPDX-License-Identifier: Apache-2.0
"""Expressions of one row, translated from the tree of SQL to `expr.Expr`.

**Guarantee.** The table of handlers below is closed. A kind of node that is not in it is refused,
and so is a part of a node that its handler does not read. So everything that reaches an engine is a
function of one row that `build` and `compare` have proved total and bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sqlglot import exp

from discreet.tables.algebra.expr import Constant, Expr, IsNull, Read
from discreet.tables.algebra.types import DATE, MOMENT, NUMBER, TEXT, TRUTH
from discreet.tables.ask import build, columns, compare, dates, strings
from discreet.tables.ask.build import Term
from discreet.tables.ask.sql import dates as sql_dates
from discreet.tables.ask.sql.functions import call
from discreet.tables.ask.sql.literals import literal
from discreet.tables.ask.sql.refuse import (
    node_text,
    question_error,
    require_only,
    unsupported_error,
    with_own_column,
)
from discreet.tables.ask.sql.scope import ColumnRef, NameScope

__all__ = ["Scalar", "conjuncts", "list_fix"]

#: Each handler takes nodes of one class.
Handler = Callable[["Scalar", Any], Term]


@dataclass(frozen=True)
class Scalar:
    """Translates expressions in a scope; `text` names the expression in an error about missing
    bounds.
    """

    scope: NameScope
    text: str = ""

    def term(self, node: exp.Expression) -> Term:
        """An expression used as a number, so that each column needs bounds."""
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise unsupported_error(node)
        return handler(self, node)

    def operand(self, node: exp.Expression) -> Term:
        """One side of a comparison, where a single column needs no bounds."""
        ref = self.scope.column(node)
        return self.read_unclamped(ref) if ref is not None else self.term(node)

    def count_operand(self, node: exp.Expression) -> Expr:
        """What COUNT counts if it is not NULL; in place of the unit stands 1 in the rows that have
        one.
        """
        ref = self.scope.column(node)
        if ref is None or not ref.is_unit:
            return build.on_grid(self.operand(node))
        known = build.logic("not", [_has_no_unit(self.scope, node, ref)])
        return build.on_grid(build.case([(known, Fraction(1))], build.NULL))

    def condition(self, node: exp.Expression) -> Expr:
        """An expression used as a condition."""
        return build.condition(self.term(node))

    def read_unclamped(self, ref: ColumnRef) -> Read:
        """A column without clamping, for comparisons and keys."""
        _check_unit(ref)
        return _nulls(columns.unbounded_column(ref.table, ref.column), ref)

    def read_clamped(self, ref: ColumnRef, bounds: tuple[Fraction, Fraction] | None = None) -> Read:
        """A column clamped to its bounds."""
        _check_unit(ref)
        return _nulls(columns.bounded_column(ref.table, ref.column, bounds, text=self.text), ref)


def conjuncts(node: exp.Expression) -> list[exp.Expression]:
    """The conditions that AND joins, without parentheses."""
    waiting, conditions = [node], []
    while waiting:
        top = waiting.pop()
        if isinstance(top, exp.Paren):
            waiting.append(require_only(top, "this").this)
        elif isinstance(top, exp.And):
            require_only(top, "this", "expression")
            waiting += [top.expression, top.this]
        else:
            conditions.append(top)
    return conditions


def _nulls(read: Read, ref: ColumnRef) -> Read:
    """A column that is never NULL: only private tables enforce that (`columns.rows_of`)."""
    sure = ref.table.private and not ref.optional
    return read if sure else Read(read.table, read.column, read.of.with_null(True))


def _check_unit(ref: ColumnRef) -> None:
    if ref.is_unit:
        raise question_error(
            "DP706",
            f"{ref.column} is the privacy unit, and cannot be used as a value.",
            "a number, a group or a condition about one person would reveal that person.",
            f"COUNT(DISTINCT {ref.column})   counts them; leave {ref.column} out of everything else",
        )


# --- one handler for each kind of node ---------------------------------------------------------------


def _column(scalar: Scalar, node: exp.Column) -> Term:
    meaning = scalar.scope.meaning(node)
    if isinstance(meaning, ColumnRef):
        return scalar.read_clamped(meaning)
    inner, expression = meaning
    return Scalar(inner, scalar.text).term(expression)


def _paren(scalar: Scalar, node: exp.Expression) -> Term:
    return scalar.term(require_only(node, "this").this)


def _literal(_: Scalar, node: exp.Expression) -> Term:
    return literal(require_only(node, "this", "is_string"))


def _boolean(_: Scalar, node: exp.Expression) -> Term:
    return build.constant(bool(require_only(node, "this").this))


def _null(_: Scalar, node: exp.Expression) -> Term:
    require_only(node)
    return build.NULL


def _negative(scalar: Scalar, node: exp.Expression) -> Term:
    return build.arithmetic("-", Fraction(0), scalar.term(require_only(node, "this").this))


def _binary(make: Callable[[Term, Term], Term]) -> Handler:
    def handler(scalar: Scalar, node: exp.Expression) -> Term:
        require_only(node, "this", "expression")
        return make(scalar.term(node.this), scalar.term(node.expression))

    return handler


def _join(scalar: Scalar, node: exp.Expression) -> Term:
    require_only(node, "this", "expression", "safe")
    return strings.join([scalar.term(node.this), scalar.term(node.expression)])


def _division(op: str) -> Handler:
    def handler(scalar: Scalar, node: exp.Expression) -> Term:
        require_only(node, "this", "expression")
        terms = scalar.term(node.this), scalar.term(node.expression)
        away = f"{node_text(node.this)} {op} CLAMP({node_text(node.expression)}, 1, 1000)"
        return build.quotient(*terms, whole=op == "//", instead=away)

    return handler


def _comparison(op: str) -> Handler:
    def handler(scalar: Scalar, node: exp.Expression) -> Term:
        require_only(node, "this", "expression")
        return compare.compare(op, scalar.operand(node.this), scalar.operand(node.expression))

    return handler


def _and(scalar: Scalar, node: exp.Expression) -> Term:
    return build.logic("and", [scalar.term(part) for part in conjuncts(node)])


def _or(scalar: Scalar, node: exp.Expression) -> Term:
    parts: list[exp.Expression] = []
    while isinstance(node, exp.Or):
        require_only(node, "this", "expression")
        parts.append(node.expression)
        node = node.this
    return build.logic("or", [scalar.term(part) for part in [node, *reversed(parts)]])


def _not(scalar: Scalar, node: exp.Expression) -> Term:
    return build.logic("not", [scalar.term(require_only(node, "this").this)])


def _is(scalar: Scalar, node: exp.Expression) -> Term:
    require_only(node, "this", "expression")
    if isinstance(node.expression, exp.Null):
        ref = scalar.scope.column(node.this)
        if ref is not None and ref.is_unit:
            return _has_no_unit(scalar.scope, node.this, ref)
        return IsNull(build.on_grid(scalar.operand(node.this)))
    if isinstance(node.expression, exp.Boolean):
        return compare.is_truth(scalar.condition(node.this), bool(node.expression.this))
    raise unsupported_error(node)


def _has_no_unit(scope: NameScope, node: exp.Expression, ref: ColumnRef) -> Expr:
    """Whether a row has no unit in this table: never where the table is read, because rows without
    a unit are dropped there, and after an outer join in the rows without a match.
    """
    # A prefix means the side of a table, also where USING has merged both sides.
    named = node if isinstance(node, exp.Column) and node.args.get("table") is not None else None
    if not (ref.optional or (named is not None and scope.owner(named)[0].optional)):
        return build.constant(False)  # type: ignore[return-value]
    # The rows of a query have no unit that an expression could read: another column says it as well.
    column = ref.column if ref.table.of != "" else _never_null(ref)
    read = columns.unbounded_column(ref.table, column)
    return IsNull(Read(read.table, read.column, read.of.with_null(True)))


def _never_null(ref: ColumnRef) -> str:
    """A column that every row of a query has."""
    sure = [name for name, column in ref.table.columns.items() if name != ref.column and not column.null]
    if sure:
        return sure[0]
    raise question_error(
        "DP706",
        f"{ref.column} of a query inside FROM cannot be compared with NULL.",
        "the query selects no other column that every row has.",
        f"add  1 AS found  to the columns of the query, and write  found IS NULL  for  {ref.column} IS NULL",
    )


def _in(scalar: Scalar, node: exp.Expression) -> Term:
    if node.args.get("query") is not None:
        raise question_error(
            "DP702",
            f"IN with a query is not supported here: {node_text(node)}",
            "it is supported as a condition of WHERE by itself, which other conditions follow with AND.",
            list_fix(scalar, node.this, node.args["query"]),
        )
    require_only(node, "this", "expressions")
    return compare.is_in(scalar.operand(node.this), [scalar.term(value) for value in node.expressions])


_LISTS = {
    NUMBER: "(1, 2)",
    TEXT: "('A', 'B')",
    TRUTH: "(TRUE)",
    DATE: "(DATE '2026-01-01', DATE '2026-01-02')",
    MOMENT: "(TIMESTAMP '2026-01-01 00:00:00')",
}


def list_fix(scalar: Scalar, node: exp.Expression, query: exp.Expression) -> str:
    """A fix for IN with a query: a list of values, or a join if the column is the unit."""
    ref = scalar.scope.column(node) if isinstance(node, exp.Column) else None
    if ref is None or not ref.is_unit:
        column = None if ref is None else ref.table.columns[ref.column]
        values = [] if column is None or column.kind != "text" else list(column.values or ())[:2]
        written = ", ".join(exp.Literal.string(value).sql() for value in values)
        kind = build.kind_of(scalar.operand(node))
        return f"{node_text(node)} IN {f'({written})' if written else _LISTS[kind]}"
    named = {table.name for table in query.find_all(exp.Table)}
    tables = scalar.scope.dataset.tables
    for name in sorted(named & tables.keys()):
        if tables[name].private and name != ref.table.name and tables[name].unit == ref.column:
            return f"FROM {ref.table.name} JOIN {name} USING ({ref.column})"
    return f"leave {ref.column} out of the condition"


def _between(scalar: Scalar, node: exp.Expression) -> Term:
    require_only(node, "this", "low", "high")
    ends = [scalar.operand(node.args[end]) for end in ("low", "high")]
    return compare.between(scalar.operand(node.this), *ends)


def _like(scalar: Scalar, node: exp.Expression) -> Term:
    require_only(node, "this", "expression", "negate")
    matches = compare.like(scalar.operand(node.this), scalar.term(node.expression))
    return build.logic("not", [matches]) if node.args.get("negate") else matches


def _regular(scalar: Scalar, node: exp.Expression) -> Term:
    require_only(node, "this", "expression")
    return compare.regular(scalar.operand(node.this), scalar.term(node.expression))


def _ilike(scalar: Scalar, node: exp.Expression) -> Term:
    require_only(node, "this", "expression", "negate")
    text, pattern = scalar.operand(node.this), scalar.term(node.expression)
    matches = strings.like_in_any_case(text, pattern)
    return build.logic("not", [matches]) if node.args.get("negate") else matches


def _case(scalar: Scalar, node: exp.Expression) -> Term:
    require_only(node, "this", "ifs", "default")
    whens = [
        (_when(scalar, node.this, branch), scalar.term(branch.args["true"])) for branch in node.args["ifs"]
    ]
    default = node.args.get("default")
    return build.case(whens, build.NULL if default is None else scalar.term(default))


def _when(scalar: Scalar, subject: exp.Expression, branch: exp.Expression) -> Term:
    require_only(branch, "this", "true")
    if subject is None:
        return scalar.condition(branch.this)
    return compare.compare("=", scalar.operand(subject), scalar.operand(branch.this))


def _if(scalar: Scalar, node: exp.Expression) -> Term:
    require_only(node, "this", "true", "false")
    otherwise = node.args.get("false")
    whens = [(scalar.condition(node.this), scalar.term(node.args["true"]))]
    return build.case(whens, build.NULL if otherwise is None else scalar.term(otherwise))


_WHOLE = {"INT", "BIGINT", "SMALLINT", "TINYINT"}
_REAL = {"FLOAT", "DOUBLE", "DECIMAL", "REAL"}
_TEXTS = {"TEXT", "VARCHAR"}
_MOMENTS = {"TIMESTAMP", "TIMESTAMPTZ", "DATETIME"}


_CONVERTED = {
    NUMBER: "FLOOR(x)",
    TEXT: "CASE WHEN ward = 'A' THEN 1 ELSE 0 END   or, if it holds numbers:  type = \"integer\"  in the description",
    TRUTH: "CASE WHEN urgent THEN 1 ELSE 0 END",
    DATE: "YEAR(day)   or   MONTH(day)",
    MOMENT: "YEAR(day)   or   MONTH(day)   or   HOUR(day)",
}


def _cast(scalar: Scalar, node: exp.Expression) -> Term:
    """A conversion that never fails and means the same on every engine; others are refused."""
    require_only(node, "this", "to", "safe")
    require_only(node.args["to"], "this", "nested")
    target, term = getattr(node.args["to"].this, "name", ""), scalar.term(node.this)
    kind = build.kind_of(term)
    written = term.value if isinstance(node.this, exp.Literal) and isinstance(term, Constant) else None
    if isinstance(written, str) and target == "DATE":
        return compare.as_date(written)
    if isinstance(written, str) and target in _MOMENTS:
        return compare.as_moment(written)
    if target in _WHOLE | _REAL and kind in {NUMBER, TRUTH}:
        number = build.as_number(term)
        if target in _REAL or build.on_grid(number).type.places == 0:
            return number
    if dates.is_dated(term) and target in {"DATE", *_MOMENTS}:
        return dates.to_date(term) if target == "DATE" else dates.to_moment(term)
    if (kind == TEXT and target in _TEXTS) or (kind, target) == (TRUTH, "BOOLEAN"):
        return term
    raise question_error(
        "DP705",
        f"this conversion is not supported: {node_text(node)}",
        "engines round such conversions differently, or fail on some rows.",
        with_own_column(_CONVERTED.get(kind, "COUNT(*)"), node),
    )


_HANDLERS: dict[type[exp.Expression], Handler] = {
    exp.Column: _column,
    exp.Paren: _paren,
    exp.Literal: _literal,
    exp.Boolean: _boolean,
    exp.Null: _null,
    exp.Neg: _negative,
    exp.Add: sql_dates.add,
    exp.Sub: sql_dates.subtract,
    exp.DPipe: _join,
    exp.Mul: _binary(lambda a, b: build.arithmetic("*", a, b)),
    exp.Div: _division("/"),
    exp.IntDiv: _division("//"),
    exp.Mod: _binary(build.modulo),
    exp.EQ: _comparison("="),
    exp.NEQ: _comparison("<>"),
    exp.LT: _comparison("<"),
    exp.LTE: _comparison("<="),
    exp.GT: _comparison(">"),
    exp.GTE: _comparison(">="),
    exp.And: _and,
    exp.Or: _or,
    exp.Not: _not,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.RegexpLike: _regular,
    exp.ILike: _ilike,
    exp.Case: _case,
    exp.If: _if,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Extract: sql_dates.extract,
    exp.AtTimeZone: sql_dates.at_time_zone,
    exp.Anonymous: call,
}
