# SPDX-License-Identifier: Apache-2.0
"""Aggregates: each becomes one noisy column, and equal aggregates are released once.

**Guarantee.** The operand of an aggregate is a bounded expression of one row, or the question is
refused. FILTER makes the operand NULL where its condition is not TRUE. Equal aggregates are one
release, so nobody can average their noise.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sqlglot import exp

from discreet.tables.algebra.expr import Expr, Read, all_parts
from discreet.tables.algebra.strings import LONGEST, Length
from discreet.tables.ask import build
from discreet.tables.ask.domain import domain
from discreet.tables.ask.question import Aggregate
from discreet.tables.ask.sql.functions import AGGREGATES, LENGTHS
from discreet.tables.ask.sql.keys import key_expression
from discreet.tables.ask.sql.literals import literal_number
from discreet.tables.ask.sql.refuse import name_of, node_text, question_error, require_only, with_own_column
from discreet.tables.ask.sql.scalar import Scalar
from discreet.tables.ask.sql.selected import SelectedRows, optional_unit_error

__all__ = [
    "QUANTILES",
    "AggregateCall",
    "Aggregates",
    "called_name",
    "filter_operand",
    "free_name",
    "is_aggregate",
    "percent_name",
    "short_name",
]

#: The functions of a rank, or of a list of ranks.
QUANTILES = ("QUANTILE", "QUANTILE_CONT", "PERCENTILE_CONT")
_MOST_PARTS = 1_000
_HALF = Fraction(1, 2)


def is_aggregate(node: exp.Expression) -> bool:
    """Whether a node is an aggregate, perhaps with FILTER or WITHIN GROUP."""
    return called_name(node) in AGGREGATES


def called_name(node: exp.Expression) -> str:
    """The name of the function that a node calls, perhaps with FILTER or WITHIN GROUP."""
    while isinstance(node, exp.Filter | exp.WithinGroup):
        node = node.this
    return name_of(node)


@dataclass
class Aggregates:
    """The aggregates of a question, each once, with a name of its own."""

    rows: SelectedRows
    taken: set[str]
    all: list[Aggregate] = field(default_factory=list)

    def name(self, node: exp.Expression, alias: str = "") -> str:
        """The name of the released column of a node; a new aggregate is added."""
        return self.add(self._aggregate(node), alias)

    def add(self, aggregate: Aggregate, alias: str = "") -> str:
        """The name of the released column of an aggregate, which is added if it is new."""
        for known in self.all:
            if replace(known, name="", text="") == replace(aggregate, name="", text=""):
                return known.name
        name = free_name(alias or aggregate.name, self.taken)
        self.all.append(replace(aggregate, name=name))
        return name

    def call(self, node: exp.Expression) -> tuple[AggregateCall, exp.Expression | None]:
        """The call of a node, and the condition of its FILTER."""
        inner, condition, order = _unwrap(node)
        arguments = require_only(inner, "this", "expressions").expressions
        return AggregateCall(self.rows, name_of(inner), arguments, order, node_text(node)), condition

    def _aggregate(self, node: exp.Expression) -> Aggregate:
        call, condition = self.call(node)
        aggregate = _MAKERS[call.name](call)
        return replace(_apply_filter(aggregate, condition, self.rows), text=node_text(node))


@dataclass(frozen=True)
class AggregateCall:
    """A call of an aggregate: its arguments, the expression of WITHIN GROUP (ORDER BY …), and its
    text.
    """

    rows: SelectedRows
    name: str
    arguments: list[exp.Expression]
    order: exp.Expression | None
    text: str

    def only_argument(self) -> exp.Expression:
        """Its only argument."""
        if len(self.arguments) != 1 or self.order is not None:
            raise self.arguments_error()
        return self.arguments[0]

    def number(self, node: exp.Expression) -> Expr:
        """An operand with bounds; TRUE counts as 1."""
        _check_distinct(node, self.text)
        of = build.on_grid(build.as_number(Scalar(self.rows.scope, self.text).term(node)))
        if of.type.high - of.type.low >= LONGEST // 2 and any(
            isinstance(part, Length) for part in all_parts(of)
        ):
            raise _length_error(node, self.text)
        return of

    def arguments_error(self) -> Exception:
        """The error for arguments that do not fit."""
        return question_error(
            "DP706",
            f"{self.text} has arguments that {self.name} does not take.",
            "an aggregate is released in one of the forms below.",
            "COUNT(*), COUNT(DISTINCT patient_id), SUM(days), AVG(days), QUANTILE(days, 0.9), "
            "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY days)",
        )


def _length_error(node: exp.Expression, text: str) -> Exception:
    """The refusal of a sum of lengths that nobody bounds."""
    lengths = [part for part in node.find_all(exp.Anonymous) if name_of(part) in LENGTHS]
    written = node_text(lengths[0] if lengths else node)
    return question_error(
        "DP104",
        f"{text} needs bounds, and a text may have any length.",
        "without bounds one person can move the result arbitrarily far, and no amount of noise hides that.",
        text.replace(written, f"CLAMP({written}, 0, 500)"),
    )


def _unwrap(node: exp.Expression) -> tuple[exp.Expression, exp.Expression | None, exp.Expression | None]:
    """The call itself, the condition of its FILTER, and the expression of its WITHIN GROUP."""
    condition = order = None
    if isinstance(node, exp.Filter):
        require_only(node, "this", "expression")
        condition, node = require_only(node.expression, "this").this, node.this
    if isinstance(node, exp.WithinGroup):
        require_only(node, "this", "expression")
        ordered = require_only(node.expression, "expressions").expressions
        if len(ordered) != 1:
            raise question_error(
                "DP706",
                f"{node_text(node)} orders by several expressions.",
                "a quantile orders by one expression.",
                with_own_column("QUANTILE(x, 0.9)", ordered[0]),
            )
        order, node = require_only(ordered[0], "this").this, node.this
    return node, condition, order


def _apply_filter(aggregate: Aggregate, condition: exp.Expression | None, rows: SelectedRows) -> Aggregate:
    if condition is None:
        return aggregate
    if aggregate.kind == "units":
        raise question_error(
            "DP706",
            "COUNT(DISTINCT …) cannot have a FILTER.",
            "it counts each person once, whichever rows they have.",
            "put the condition into WHERE",
        )
    of = build.on_grid(Fraction(1)) if aggregate.of is None else aggregate.of
    filtered = filter_operand(of, condition, rows)
    return replace(aggregate, kind="count_of" if aggregate.kind == "count" else aggregate.kind, of=filtered)


def filter_operand(of: Expr, condition: exp.Expression | None, rows: SelectedRows) -> Expr:
    """The operand of an aggregate with FILTER: NULL where the condition is not TRUE."""
    if condition is None:
        return of
    return build.case([(Scalar(rows.scope).condition(condition), of)], build.NULL)


def _check_distinct(node: exp.Expression, text: str) -> None:
    if isinstance(node, exp.Distinct):
        raise question_error(
            "DP706",
            f"DISTINCT is supported only in COUNT(DISTINCT unit): {text}",
            "whether a value is new depends on the rows of other people.",
            "leave DISTINCT out",
        )


# --- one maker for each function ---------------------------------------------------------------------


def _count(call: AggregateCall) -> Aggregate:
    node = call.only_argument()
    if isinstance(node, exp.Star):
        require_only(node)
        return Aggregate("count", name="count")
    if isinstance(node, exp.Distinct):
        return _units(call, require_only(node, "expressions").expressions)
    if isinstance(node, exp.Literal):
        return Aggregate("count", name="count")
    of = Scalar(call.rows.scope, call.text).count_operand(node)
    if build.is_null(of):
        raise question_error("DP706", "COUNT(NULL) counts nothing.", "it is 0 for all data.", "COUNT(*)")
    return Aggregate("count_of", of, name=f"count_{short_name(node)}")


def _units(call: AggregateCall, nodes: list[exp.Expression]) -> Aggregate:
    ref = call.rows.scope.column(nodes[0]) if len(nodes) == 1 else None
    if ref is not None and ref.is_unit and ref.optional:
        raise optional_unit_error(nodes[0], call.rows.scope)
    if ref is not None and ref.is_unit:
        return Aggregate("units", name=f"count_{ref.column}")
    if len(nodes) != 1:
        raise question_error(
            "DP706",
            f"{call.text} counts distinct values of several columns.",
            "one column is counted at a time.",
            f"COUNT(DISTINCT {node_text(nodes[0])})",
        )
    of = _countable_values(nodes[0], call.rows)
    return Aggregate("distinct", of, name=f"count_{short_name(nodes[0])}")


def _countable_values(node: exp.Expression, rows: SelectedRows) -> Expr:
    """An expression whose values can be told apart: anything that could be a key, and whole numbers
    without bounds.
    """
    ref = rows.scope.column(node)
    if ref is not None and (ref.table.columns[ref.column].kind == "integer" or ref.owner_keys(rows.tables)):
        return Scalar(rows.scope, node_text(node)).read_unclamped(ref)
    return key_expression(node, rows)


def _count_if(call: AggregateCall) -> Aggregate:
    condition = Scalar(call.rows.scope, call.text).condition(call.only_argument())
    of = build.case([(condition, Fraction(1))], build.NULL)
    return Aggregate("count_of", of, name=f"count_{short_name(call.only_argument())}")


def _of(kind: str, prefix: str) -> Callable[[AggregateCall], Aggregate]:
    def make(call: AggregateCall) -> Aggregate:
        node = call.only_argument()
        return Aggregate(kind, call.number(node), name=f"{prefix}_{short_name(node)}")

    return make


def _median(call: AggregateCall) -> Aggregate:
    return _quantile_of(call, call.only_argument(), _HALF, "median")


def _quantile(call: AggregateCall) -> Aggregate:
    """QUANTILE(x, 0.9), or PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)."""
    if call.order is not None and len(call.arguments) == 1:
        node, at = call.order, call.arguments[0]
    elif call.order is None and len(call.arguments) == 2:
        node, at = call.arguments
    else:
        raise call.arguments_error()
    fraction = literal_number(at, "the rank of a quantile")
    if not 0 < fraction < 1 or fraction.denominator > _MOST_PARTS:
        raise question_error(
            "DP706",
            f"the rank of {call.text} must lie between 0 and 1 and have at most three digits.",
            "the smallest and the largest value belong to one person each; MIN and MAX release values near them.",
            with_own_column("QUANTILE(x, 0.9), MIN(x) or MAX(x)", node),
        )
    return _quantile_of(call, node, fraction, f"q{percent_name(fraction)}")


def percent_name(rank: Fraction) -> str:
    """The rank of a quantile in percent, as a part of a name."""
    return f"{float(100 * rank):g}".replace(".", "_")


def _quantile_of(call: AggregateCall, node: exp.Expression, fraction: Fraction, prefix: str) -> Aggregate:
    at = (fraction.numerator, fraction.denominator)
    return Aggregate("quantile", call.number(node), name=f"{prefix}_{short_name(node)}", fraction=at)


def _mode(call: AggregateCall) -> Aggregate:
    """MODE(x), or MODE() WITHIN GROUP (ORDER BY x): one of the public values of x."""
    node = call.order if call.order is not None and not call.arguments else call.only_argument()
    of = key_expression(node, call.rows)
    values = domain(of, call.rows.facts())
    values = None if values is None else tuple(value for value in values if value is not None)
    if not values:
        raise question_error(
            "DP706",
            f"{call.text} needs public values to choose from.",
            "releasing a value that nobody declared would reveal that somebody has it.",
            f"SELECT {node_text(node)}, COUNT(*) FROM visits GROUP BY {node_text(node)}   with  delta=1e-6   "  # noqa: S608 - shown, not run
            f'or list them in the description:  [columns.{of.column if isinstance(of, Read) else "…"}]  values = ["A", "B"]',
        )
    return Aggregate("mode", of, name=f"mode_{short_name(node)}", values=values)


_MAKERS: dict[str, Callable[[AggregateCall], Aggregate]] = {
    "COUNT": _count,
    "COUNT_IF": _count_if,
    "SUM": _of("sum", "sum"),
    "AVG": _of("mean", "avg"),
    "MEAN": _of("mean", "avg"),
    **dict.fromkeys(("VAR", "VARIANCE", "VAR_POP"), _of("variance", "var")),
    **dict.fromkeys(("STDDEV", "STDDEV_POP"), _of("stddev", "stddev")),
    "MEDIAN": _median,
    **dict.fromkeys(QUANTILES, _quantile),
    "MIN": _of("min", "min"),
    "MAX": _of("max", "max"),
    "MODE": _mode,
}


def short_name(node: exp.Expression) -> str:
    """A short name for an expression; CLAMP(days, 0, 60) is called days."""
    while isinstance(node, exp.Paren) or name_of(node) == "CLAMP":
        node = node.this if isinstance(node, exp.Paren) else (node.expressions or [exp.Null()])[0]
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
        return str(node.name)
    return re.sub(r"\W+", "_", node_text(node).lower()).strip("_")[:40] or "value"


def free_name(name: str, taken: set[str]) -> str:
    """The name, or name_2, name_3, … if the name or one of its interval columns is taken."""
    wanted, number = name, 1
    while _ends(wanted) & {end for other in taken for end in _ends(other)}:
        number += 1
        wanted = f"{name}_{number}"
    taken.add(wanted)
    return wanted


def _ends(name: str) -> set[str]:
    return {name, f"{name}_lo", f"{name}_hi"}
