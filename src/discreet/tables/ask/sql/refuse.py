# SPDX-License-Identifier: Apache-2.0
"""Refusals of SQL: a code, the reason, and a line that works instead.

**Guarantee.** An error shows the text of the question and the public description. No data are read
for it.
"""

from __future__ import annotations

import re

from sqlglot import ErrorLevel, exp

from discreet.errors import RefusedQuestion
from discreet.tables.ask.sql.dialect import PlainDialect

__all__ = [
    "name_of",
    "node_text",
    "question_error",
    "require_only",
    "unsupported_error",
    "whole_text",
    "with_own_column",
]

_LONGEST = 60

#: Parts of SQL that are not supported: their name, the reason, and what to write instead.
_REASONS: dict[type[exp.Expression], tuple[str, str, str]] = {
    exp.SetOperation: (
        "a UNION, INTERSECT or EXCEPT",
        "only UNION ALL inside FROM keeps each row with its person.",
        "ask two questions:  {this}   and   {expression}",
    ),
    exp.Window: (
        "a window (OVER) outside a query inside FROM",
        "it has one value for each row, and rows cannot be released.",
        "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY days) AS n FROM visits) AS v WHERE n = 1",
    ),
    exp.Exists: (
        "EXISTS inside another condition",
        "it is supported as a condition of WHERE by itself, which other conditions follow with AND.",
        "ask one question for each side of OR",
    ),
    exp.Subquery: (
        "a query inside a query",
        "its exact result would be used without noise.",
        "run it first:  {this}   and write the released number into the question",
    ),
    exp.Select: (
        "a query inside a query",
        "its exact result would be used without noise.",
        "run it first, and write the released number into the question",
    ),
    exp.Any: ("ANY", "its exact result would be used without noise.", "a number itself:  days > 3"),
    exp.All: ("ALL", "its exact result would be used without noise.", "a number itself:  days > 3"),
    exp.Placeholder: (
        "a parameter",
        "the ledger records each question with its values.",
        "write the value itself, or ? and  parameters=[3]",
    ),
    exp.Parameter: (
        "a parameter",
        "the ledger records each question with its values.",
        "write the value itself",
    ),
    exp.SessionParameter: (
        "a parameter",
        "the ledger records each question with its values.",
        "write the value itself",
    ),
    exp.Interval: (
        "an interval by itself",
        "it has no value until it is added to a date.",
        "came_on + INTERVAL 7 DAY > DATE '2026-01-01'",
    ),
    exp.CurrentDate: (
        "the current date",
        "the same text would ask a different question tomorrow.",
        "write the day itself:  came_on >= DATE '2026-01-01'",
    ),
    exp.CurrentTime: (
        "the current time",
        "the same text would ask a different question a second later.",
        "write the time itself",
    ),
    exp.CurrentTimestamp: (
        "the current time",
        "the same text would ask a different question tomorrow.",
        "write it out:  seen_at >= TIMESTAMP '2026-01-01 00:00:00'",
    ),
    exp.Star: (
        "*",
        "noise protects numbers; a row cannot be released.",
        "SELECT COUNT(*) FROM visits",
    ),
    exp.Distinct: (
        "DISTINCT",
        "whether a value is new depends on the rows of other people.",
        "SELECT ward, COUNT(*) FROM visits GROUP BY ward",
    ),
    exp.Lateral: ("LATERAL", "it creates rows that belong to nobody.", "join a public table"),
    exp.Array: ("an array", "a value is a number, a text, a truth value or a date.", "days IN (1, 2, 3)"),
    exp.Struct: (
        "a struct",
        "a value is a number, a text, a truth value or a date.",
        "name the columns one by one",
    ),
    exp.Tuple: ("a tuple", "a value is a number, a text, a truth value or a date.", "days = 1 AND cost = 2"),
    exp.Lambda: ("a user-defined function", "its effect on a row is unknown.", "use CASE"),
    exp.Dot: ("a name with three parts", "a session has a single data set.", "table.column"),
}


#: Clauses that are not supported: the code, their name, the reason, and what to write instead.
_PARTS = {
    "sample": ("DP702", "TABLESAMPLE", "sampling may choose rows because of other rows.", "leave it out"),
    "method": (
        "DP703",
        "NATURAL JOIN",
        "a join must name the columns that are equal.",
        "JOIN wards USING (ward)",
    ),
    "offset": (
        "DP702",
        "OFFSET",
        "an answer always starts at its first row.",
        "LIMIT 10, and skip the first rows of the answer",
    ),
    "hint": ("DP702", "a hint", "the proof fixes how a question is computed.", "leave it out"),
    "locks": ("DP702", "FOR UPDATE", "a session never changes data.", "leave it out"),
    "into": (
        "DP702",
        "INTO",
        "a session never writes to the database.",
        "answer.to_parquet('answer.parquet')",
    ),
    "qualify": (
        "DP702",
        "QUALIFY",
        "it chooses rows, and rows cannot be released.",
        "put it into a query inside FROM",
    ),
    "windows": ("DP702", "WINDOW", "a window mixes the rows of several people.", "GROUP BY"),
    "laterals": ("DP702", "LATERAL", "it creates rows that belong to nobody.", "join a public table"),
    "pivots": (
        "DP702",
        "PIVOT",
        "its columns would depend on the data.",
        "SELECT ward, COUNT(*) FROM visits GROUP BY ward   and pivot the answer",
    ),
    "db": (
        "DP701",
        "the name of a schema",
        "a session has a single data set.",
        "the name of the table alone",
    ),
    "nulls_first": ("DP702", "NULLS FIRST", "an answer always lists NULL last.", "leave it out"),
    "distinct": (
        "DP702",
        "DISTINCT",
        "whether a value is new depends on the rows of other people.",
        "GROUP BY ward",
    ),
}


def question_error(code: str, what: str, why: str, fix: str) -> RefusedQuestion:
    """A RefusedQuestion with this code, reason and fix."""
    return RefusedQuestion(code, what, why=why, fix=fix)


def unsupported_error(node: exp.Expression, where: str = "") -> RefusedQuestion:
    """The error for a part of SQL that is not supported, with its own reason where there is one."""
    for kind, (name, why, fix) in _REASONS.items():
        if isinstance(node, kind):
            return question_error(
                "DP702", f"{name} is not supported: {node_text(node)}", why, _fill_in(fix, node)
            )
    place = f" {where}" if where else ""
    return question_error(
        "DP702",
        f"this expression is not supported{place}: {node_text(node)}",
        "only operations that are proved to act on the rows of one person at a time are allowed.",
        "use CASE, CLAMP or BUCKET; the reference page on SQL lists everything that is supported",
    )


def _fill_in(fix: str, node: exp.Expression) -> str:
    """A fix that names the table and the parts of the question."""
    select = node.find_ancestor(exp.Select)
    start = None if select is None else select.args.get("from_") or select.args.get("from")
    table = start.this.name if start is not None and isinstance(start.this, exp.Table) else ""
    # A whole query is to be run, so its text is never cut off.
    parts = {
        key: whole_text(part) if isinstance(part, exp.Query) else node_text(part)
        for key, part in node.args.items()
        if isinstance(part, exp.Expression)
    }
    for key in ("this", "expression"):
        fix = fix.replace(f"{{{key}}}", parts.get(key, ""))
    return fix.replace("FROM visits", f"FROM {table}") if table else fix


def with_own_column(fix: str, node: exp.Expression) -> str:
    """A fix in which the first column of `node` stands in place of the examples x and day."""
    column = node.find(exp.Column)
    return (
        fix
        if column is None
        else re.sub(
            r"\((DISTINCT )?(?:x|day)(?=[,)])", lambda match: f"({match[1] or ''}{node_text(column)}", fix
        )
    )


def require_only(node: exp.Expression, *parts: str) -> exp.Expression:
    """The node, if it has no other parts than these; an unknown part is refused, never ignored."""
    for part, value in node.args.items():
        if part not in parts and part != "_type" and value not in (None, False, [], ""):
            name = part.strip("_").upper().replace("_", " ")
            silence = "ignoring a part of the question would answer a different question."
            code, name, why, fix = _PARTS.get(part, ("DP702", name, silence, "leave it out"))
            raise question_error(code, f"{name} is not supported here: {node_text(node)}", why, fix)
    return node


def whole_text(node: exp.Expression) -> str:
    """A node as text, on one line."""
    return " ".join(node.sql(dialect=PlainDialect, unsupported_level=ErrorLevel.IGNORE).split())


def node_text(node: exp.Expression) -> str:
    """A node as text of at most 60 characters."""
    text = whole_text(node)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def name_of(node: exp.Expression) -> str:
    """The name of a function in capitals; an empty text for other nodes."""
    return str(node.this).upper() if isinstance(node, exp.Anonymous) else ""
