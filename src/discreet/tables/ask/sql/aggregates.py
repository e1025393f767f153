# SPDX-License-Identifier: Apache-2.0
"""Functions of many rows: each becomes one noisy column, and the same one is released once only.

**Guarantee.** The operand of an aggregate is a bounded expression of one row, or the question is refused; a condition
(FILTER) makes it NULL where it is not TRUE. Two aggregates that are equal are one release, so that nobody can average
their noise.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from sqlglot import exp

from discreet.tables.ask import build
from discreet.tables.ask.domain import domain
from discreet.tables.ask.question import Aggregate
from discreet.tables.ask.sql.functions import AGGREGATES
from discreet.tables.ask.sql.keys import key_expression
from discreet.tables.ask.sql.literals import written_number
from discreet.tables.ask.sql.refuse import name_of, only, owned, refused, shown
from discreet.tables.ask.sql.rows import Rows
from discreet.tables.ask.sql.scalar import Scalar
from discreet.tables.data.expr import Expr, Read

__all__ = ["Aggregates", "free_name", "is_aggregate", "words"]

_MOST_PARTS = 1_000
_HALF = Fraction(1, 2)


def is_aggregate(node: Any) -> bool:
    """Whether a node is a function of many rows (with its FILTER or WITHIN GROUP)."""
    while isinstance(node, exp.Filter | exp.WithinGroup):
        node = node.this
    return name_of(node) in AGGREGATES


@dataclass
class Aggregates:
    """The aggregates of a question, each once, with a name of its own."""

    rows: Rows
    taken: set[str]
    found: list[Aggregate] = field(default_factory=list)

    def name(self, node: Any, alias: str = "") -> str:
        """The name of the released column that a node stands for; it is added if it is new."""
        made = self._made(node)
        for known in self.found:
            if replace(known, name="", text="") == replace(made, name="", text=""):
                return known.name
        name = free_name(alias or made.name, self.taken)
        self.found.append(replace(made, name=name))
        return name

    def _made(self, node: Any) -> Aggregate:
        inner, condition, order = _unwrapped(node)
        name = name_of(inner)
        make = _MAKERS[name]
        aggregate = make(
            _Call(self.rows, name, only(inner, "this", "expressions").expressions, order, shown(node))
        )
        return replace(_filtered(aggregate, condition, self.rows), text=shown(node))


@dataclass(frozen=True)
class _Call:
    """A call of an aggregate: its arguments, what stands in WITHIN GROUP (ORDER BY …), and its text."""

    rows: Rows
    name: str
    arguments: list[Any]
    order: Any | None
    text: str

    def one(self) -> Any:
        """Its only argument."""
        if len(self.arguments) != 1 or self.order is not None:
            raise self.malformed()
        return self.arguments[0]

    def number(self, node: Any) -> Expr:
        """An operand with bounds; TRUE counts 1."""
        _check_distinct(node, self.text)
        return build.on_grid(build.as_number(Scalar(self.rows.scope, self.text).term(node)))

    def malformed(self) -> Exception:
        """The error for arguments that do not fit."""
        return refused(
            "DP706",
            f"{self.text} has other arguments than {self.name} takes.",
            "nothing is guessed.",
            "COUNT(*), COUNT(DISTINCT patient_id), SUM(days), AVG(days), QUANTILE(days, 0.9), "
            "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY days)",
        )


def _unwrapped(node: Any) -> tuple[Any, Any | None, Any | None]:
    """The call itself, the condition of its FILTER, and the expression of its WITHIN GROUP."""
    condition = order = None
    if isinstance(node, exp.Filter):
        only(node, "this", "expression")
        condition, node = only(node.expression, "this").this, node.this
    if isinstance(node, exp.WithinGroup):
        only(node, "this", "expression")
        ordered = only(node.expression, "expressions").expressions
        if len(ordered) != 1:
            raise refused(
                "DP706",
                f"{shown(node)} orders by several.",
                "a quantile has one.",
                owned("QUANTILE(x, 0.9)", ordered[0]),
            )
        order, node = only(ordered[0], "this").this, node.this
    return node, condition, order


def _filtered(aggregate: Aggregate, condition: Any | None, rows: Rows) -> Aggregate:
    if condition is None:
        return aggregate
    if aggregate.kind == "units":
        raise refused(
            "DP706",
            "COUNT(DISTINCT …) has no FILTER here.",
            "each person is counted once, whichever rows.",
            "put the condition into WHERE",
        )
    of = build.on_grid(Fraction(1)) if aggregate.of is None else aggregate.of
    kept = build.case([(Scalar(rows.scope).condition(condition), of)], build.NULL)
    return replace(aggregate, kind="count_of" if aggregate.kind == "count" else aggregate.kind, of=kept)


def _check_distinct(node: Any, text: str) -> None:
    if isinstance(node, exp.Distinct):
        raise refused(
            "DP706",
            f"DISTINCT is answered in COUNT(DISTINCT unit) only: {text}",
            "whether a value is new depends on other people's rows.",
            "leave DISTINCT out",
        )


# --- one maker for each function ---------------------------------------------------------------------


def _count(call: _Call) -> Aggregate:
    node = call.one()
    if isinstance(node, exp.Star):
        only(node)
        return Aggregate("count", name="count")
    if isinstance(node, exp.Distinct):
        return _units(call, only(node, "expressions").expressions)
    if isinstance(node, exp.Literal):
        return Aggregate("count", name="count")
    of = build.on_grid(Scalar(call.rows.scope, call.text).operand(node))
    if build.is_null(of):
        raise refused("DP706", "COUNT(NULL) is 0.", "it counts nothing.", "COUNT(*)")
    return Aggregate("count_of", of, name=f"count_{words(node)}")


def _units(call: _Call, nodes: list[Any]) -> Aggregate:
    found = call.rows.scope.column(nodes[0]) if len(nodes) == 1 else None
    if found is not None and found.is_unit:
        return Aggregate("units", name=f"count_{found.column}")
    unit = next((table.unit for table in call.rows.scope.tables() if table.unit in table.columns), None)
    other = next((f", or GROUP BY {shown(node)}" for node in nodes if shown(node) != unit), "")
    raise refused(
        "DP706",
        f"{call.text} counts the values of something else than the unit.",
        "one person may bring many values that nobody else has, so that such a count has no small bound.",
        (f"COUNT(DISTINCT {unit})" if unit else "COUNT(*): every row is a unit of its own") + other,
    )


def _count_if(call: _Call) -> Aggregate:
    condition = Scalar(call.rows.scope, call.text).condition(call.one())
    of = build.case([(condition, Fraction(1))], build.NULL)
    return Aggregate("count_of", of, name=f"count_{words(call.one())}")


def _of(kind: str, prefix: str) -> Callable[[_Call], Aggregate]:
    def make(call: _Call) -> Aggregate:
        node = call.one()
        return Aggregate(kind, call.number(node), name=f"{prefix}_{words(node)}")

    return make


def _median(call: _Call) -> Aggregate:
    return _quantile_of(call, call.one(), _HALF, "median")


def _quantile(call: _Call) -> Aggregate:
    """QUANTILE(x, 0.9), or PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)."""
    if call.order is not None and len(call.arguments) == 1:
        node, at = call.order, call.arguments[0]
    elif call.order is None and len(call.arguments) == 2:
        node, at = call.arguments
    else:
        raise call.malformed()
    fraction = written_number(at, "the rank of a quantile")
    if not 0 < fraction < 1 or fraction.denominator > _MOST_PARTS:
        raise refused(
            "DP706",
            f"the rank of {call.text} is not between 0 and 1, or has more than three digits.",
            "the least and the greatest value belong to one person each; MIN and MAX say what they give instead.",
            owned("QUANTILE(x, 0.9), MIN(x) or MAX(x)", node),
        )
    percent = f"{float(100 * fraction):g}".replace(".", "_")
    return _quantile_of(call, node, fraction, f"q{percent}")


def _quantile_of(call: _Call, node: Any, fraction: Fraction, prefix: str) -> Aggregate:
    at = (fraction.numerator, fraction.denominator)
    return Aggregate("quantile", call.number(node), name=f"{prefix}_{words(node)}", fraction=at)


def _mode(call: _Call) -> Aggregate:
    """MODE(x), or MODE() WITHIN GROUP (ORDER BY x): one of the public values of x."""
    node = call.order if call.order is not None and not call.arguments else call.one()
    of = key_expression(node, call.rows)
    values = domain(of, call.rows.scope.dataset, call.rows.known, call.rows.scope.optional())
    values = None if values is None else tuple(value for value in values if value is not None)
    if not values:
        raise refused(
            "DP706",
            f"{call.text} needs public values to choose from.",
            "the most frequent of unknown values would show that somebody has it.",
            f"SELECT {shown(node)}, COUNT(*) FROM visits GROUP BY {shown(node)}   with  delta=1e-6   "  # noqa: S608 - shown, not run
            f'or list them in the description:  [columns.{of.column if isinstance(of, Read) else "…"}]  values = ["A", "B"]',
        )
    return Aggregate("mode", of, name=f"mode_{words(node)}", values=values)


_MAKERS: dict[str, Callable[[_Call], Aggregate]] = {
    "COUNT": _count,
    "COUNT_IF": _count_if,
    "SUM": _of("sum", "sum"),
    "AVG": _of("mean", "avg"),
    "MEAN": _of("mean", "avg"),
    **dict.fromkeys(("VAR", "VARIANCE", "VAR_POP"), _of("variance", "var")),
    **dict.fromkeys(("STDDEV", "STDDEV_POP"), _of("stddev", "stddev")),
    "MEDIAN": _median,
    **dict.fromkeys(("QUANTILE", "QUANTILE_CONT", "PERCENTILE_CONT"), _quantile),
    "MIN": _of("min", "min"),
    "MAX": _of("max", "max"),
    "MODE": _mode,
}


def words(node: Any) -> str:
    """A short name for an expression: the column of CLAMP(days, 0, 60) is what it is about."""
    while isinstance(node, exp.Paren) or name_of(node) == "CLAMP":
        node = node.this if isinstance(node, exp.Paren) else (node.expressions or [exp.Null()])[0]
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
        return str(node.name)
    return re.sub(r"\W+", "_", shown(node).lower()).strip("_")[:40] or "value"


def free_name(name: str, taken: set[str]) -> str:
    """The name, or name_2, name_3, …; no name of a column, nor of the ends of its interval, is given twice."""
    wanted, number = name, 1
    while _ends(wanted) & {end for other in taken for end in _ends(other)}:
        number += 1
        wanted = f"{name}_{number}"
    taken.add(wanted)
    return wanted


def _ends(name: str) -> set[str]:
    return {name, f"{name}_lo", f"{name}_hi"}
