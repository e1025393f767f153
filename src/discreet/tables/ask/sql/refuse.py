# SPDX-License-Identifier: Apache-2.0
"""How SQL is refused: a code, the reason, and a line that would work.

**Guarantee.** What is shown is the question's own text and the public description; a refusal never reads data.
"""

from __future__ import annotations

import re
from typing import Any

from sqlglot import ErrorLevel, exp

from discreet.errors import RefusedQuestion
from discreet.tables.ask.sql.dialect import Plain

__all__ = ["name_of", "only", "owned", "refused", "shown", "unsupported"]

_LONGEST = 60

#: Parts of SQL that people will ask for, each with the reason why not and what to write instead.
_REASONS: dict[type[Any], tuple[str, str, str]] = {
    exp.SetOperation: (
        "a UNION, INTERSECT or EXCEPT",
        "whether a row is in the result would depend on other people's rows.",
        "ask two questions:  {this}   and   {expression}",
    ),
    exp.Window: (
        "a window (OVER)",
        "a rank or a running total of a row depends on other people's rows.",
        "SELECT ward, COUNT(*) FROM visits GROUP BY ward",
    ),
    exp.Exists: (
        "EXISTS",
        "whether a row is kept would depend on other people's rows.",
        "join the table:  FROM visits JOIN wards ON visits.ward = wards.ward",
    ),
    exp.Subquery: (
        "a query inside a query",
        "its result would enter every row without noise.",
        "ask for it first:  {this}   and write the released number into the question",
    ),
    exp.Select: (
        "a query inside a query",
        "its result would enter every row without noise.",
        "ask for it first, and write the released number into the question",
    ),
    exp.Any: ("ANY", "its result would enter every row without noise.", "a number itself:  days > 3"),
    exp.All: ("ALL", "its result would enter every row without noise.", "a number itself:  days > 3"),
    exp.Placeholder: ("a parameter", "a question is recorded with its values.", "write the value itself"),
    exp.Parameter: ("a parameter", "a question is recorded with its values.", "write the value itself"),
    exp.SessionParameter: (
        "a parameter",
        "a question is recorded with its values.",
        "write the value itself",
    ),
    exp.Interval: (
        "an interval",
        "how long a month is differs among engines.",
        "write the day itself:  came_on >= DATE '2026-01-01'",
    ),
    exp.CurrentDate: (
        "the current date",
        "the same question would mean something else tomorrow, and the record would not say what.",
        "write the day itself:  came_on >= DATE '2026-01-01'",
    ),
    exp.CurrentTime: (
        "the current time",
        "the record would not say what was asked.",
        "write the time itself",
    ),
    exp.CurrentTimestamp: (
        "the current time",
        "the same question would mean something else tomorrow, and the record would not say what.",
        "write it out:  seen_at >= TIMESTAMP '2026-01-01 00:00:00'",
    ),
    exp.ILike: (
        "ILIKE",
        "upper and lower case are not the same on every engine.",
        "ward LIKE 'A%' OR ward LIKE 'a%'",
    ),
    exp.Star: (
        "*",
        "a row is not a number, and no noise can be added to it.",
        "SELECT COUNT(*) FROM visits",
    ),
    exp.Distinct: (
        "DISTINCT",
        "whether a value is new depends on other people's rows.",
        "SELECT ward, COUNT(*) FROM visits GROUP BY ward",
    ),
    exp.Lateral: ("LATERAL", "it makes rows that belong to nobody.", "join a public table"),
    exp.Array: ("an array", "a value is a number, a text, a truth value or a date.", "days IN (1, 2, 3)"),
    exp.Struct: (
        "a struct",
        "a value is a number, a text, a truth value or a date.",
        "name the columns one by one",
    ),
    exp.Tuple: ("a tuple", "a value is a number, a text, a truth value or a date.", "days = 1 AND cost = 2"),
    exp.Lambda: ("a function of one's own", "nothing is known of what it does with a row.", "use CASE"),
    exp.Dot: ("a name in three parts", "there is one data set in a session.", "table.column"),
}


#: Parts of a statement that people will write, with their name, the reason why not and what to write instead.
_PARTS = {
    "sample": ("DP702", "TABLESAMPLE", "which rows are kept must not depend on other rows.", "leave it out"),
    "method": ("DP703", "NATURAL JOIN", "which columns are equal must be said.", "JOIN wards USING (ward)"),
    "offset": (
        "DP702",
        "OFFSET",
        "an answer is shown from its beginning.",
        "LIMIT 10, and skip the first ones",
    ),
    "hint": ("DP702", "a hint", "how a question is counted is part of the proof.", "leave it out"),
    "locks": ("DP702", "FOR UPDATE", "nothing is ever changed.", "leave it out"),
    "into": ("DP702", "INTO", "nothing is ever written.", "answer.to_parquet('answer.parquet')"),
    "qualify": ("DP702", "QUALIFY", "it needs a window, which mixes people's rows.", "HAVING COUNT(*) > 100"),
    "windows": ("DP702", "WINDOW", "a window mixes people's rows.", "GROUP BY"),
    "laterals": ("DP702", "LATERAL", "it makes rows that belong to nobody.", "join a public table"),
    "pivots": (
        "DP702",
        "PIVOT",
        "its columns would depend on the data.",
        "SELECT ward, COUNT(*) FROM visits GROUP BY ward   and pivot the answer",
    ),
    "db": (
        "DP701",
        "the name of a schema",
        "there is one data set in a session.",
        "the name of the table alone",
    ),
    "all": (
        "DP702",
        "GROUP BY ALL",
        "keys are named, so that a change of SELECT changes none.",
        "GROUP BY ward",
    ),
    "nulls_first": ("DP702", "NULLS FIRST", "NULL comes last in an answer.", "leave it out"),
    "distinct": (
        "DP702",
        "DISTINCT",
        "whether a value is new depends on other people's rows.",
        "GROUP BY ward",
    ),
}


def refused(code: str, what: str, why: str, fix: str) -> RefusedQuestion:
    """The error, to be raised."""
    return RefusedQuestion(code, what, why=why, fix=fix)


def unsupported(node: exp.Expression, where: str = "") -> RefusedQuestion:
    """The error for a part of SQL that is not answered, with its reason if it is a frequent one."""
    for kind, (name, why, fix) in _REASONS.items():
        if isinstance(node, kind):
            return refused("DP702", f"{name} is not answered: {shown(node)}", why, _filled(fix, node))
    place = f" {where}" if where else ""
    return refused(
        "DP702",
        f"this is not answered{place}: {shown(node)}",
        "only what is proved to act on the rows of one person at a time is passed on.",
        "see the page on SQL for what can be written; CASE, CLAMP and BUCKET cover most of the rest",
    )


def _filled(fix: str, node: exp.Expression) -> str:
    """A fix with the question's own table and parts in it."""
    select = node.find_ancestor(exp.Select)
    start = None if select is None else select.args.get("from_") or select.args.get("from")
    table = start.this.name if start is not None and isinstance(start.this, exp.Table) else ""
    parts = {key: shown(part) for key, part in node.args.items() if isinstance(part, exp.Expression)}
    for key in ("this", "expression"):
        fix = fix.replace(f"{{{key}}}", parts.get(key, ""))
    return fix.replace("FROM visits", f"FROM {table}") if table else fix


def owned(fix: str, node: exp.Expression) -> str:
    """A fix with the first column of the question's own words in the place of x, or of a day."""
    column = node.find(exp.Column)
    return fix if column is None else re.sub(r"\((x|day)(?=[,)])", lambda _: f"({shown(column)}", fix)


def only(node: exp.Expression, *parts: str) -> exp.Expression:
    """The node, if it has nothing but these parts: what is not understood is refused, and never ignored."""
    for part, value in node.args.items():
        if part not in parts and part != "_type" and value not in (None, False, [], ""):
            name = part.strip("_").upper().replace("_", " ")
            silence = "a part of a question that is not understood is never left out in silence."
            code, name, why, fix = _PARTS.get(part, ("DP702", name, silence, "leave it out"))
            raise refused(code, f"{name} is not answered here: {shown(node)}", why, fix)
    return node


def shown(node: exp.Expression) -> str:
    """A node as text, cut where it is long."""
    text = " ".join(node.sql(dialect=Plain, unsupported_level=ErrorLevel.IGNORE).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def name_of(node: exp.Expression) -> str:
    """The name of a function in capitals, or nothing if it is none."""
    return str(node.this).upper() if isinstance(node, exp.Anonymous) else ""
