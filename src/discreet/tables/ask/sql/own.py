# SPDX-License-Identifier: Apache-2.0
"""Fixes that use the names of the data set instead of those of an example.

The fixes of this package are written for one example: the table `visits` of the unit `patient_id`,
with the text `ward` ('A' or 'B'), the numbers `days` and `cost`, the date `came_on`, the moment
`seen_at`, the truth value `urgent`, and the public table `wards`.

**Guarantee.** Only the text of the question and the public description are read. If a fix is a
whole question, that question is accepted; if it would be refused with the own names, the fix counts
rows instead. The same holds for a query that is to be run first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from discreet.errors import DiscreetError
from discreet.tables.ask.expressions import identifier
from discreet.tables.ask.sql.dialect import PlainDialect
from discreet.tables.ask.sql.text import parse_statement
from discreet.tables.ask.start import Dataset
from discreet.tables.data.dataset import Column, Table

__all__ = ["in_own_names"]

#: The columns of the example, and the kinds of column that may replace them.
_NUMBERS = frozenset({"integer", "real", "decimal"})
_WORDS = {
    "ward": frozenset({"text"}),
    "days": _NUMBERS,
    "cost": _NUMBERS,
    "came_on": frozenset({"date", "timestamp"}),
    "seen_at": frozenset({"timestamp"}),
    "urgent": frozenset({"boolean"}),
}
_EXAMPLE = re.compile(rf"(?<![\w.\"'])({'|'.join((*_WORDS, 'patient_id', 'visits', 'wards'))})(?![\w'])")
_LETTERS = re.compile(r"'(A|B|a)'")
_KEYED = re.compile(r"GROUP BY ward\b")
_SUMMED = re.compile(r"\b(?:SUM|AVG|MEDIAN|QUANTILE|VAR_POP|STDDEV_POP|MIN|MAX)\([^()]*\)")
_FIRST = "run it first:  "
_JOINED = re.compile(r"(FROM visits )?JOIN wards (ON visits\.ward = wards\.ward|USING \(ward\))")


def in_own_names(fix: str, text: str, dataset: Dataset, answered: Callable[[str], object]) -> str:
    """The fix of a refused `text` in the names of the data set; `answered` raises if a question is
    refused.
    """
    names = _Own(dataset, text)
    own_fix = names.replace_dates(names.replace_join(fix))
    keyed = bool(_KEYED.search(own_fix))
    own_fix = _SUMMED.sub(lambda call: names.replace_names(call[0], summed=True, keyed=keyed), own_fix)
    own_fix = names.replace_names(own_fix, keyed=keyed)
    question, gap, remark = own_fix.partition("   ")
    if question.startswith(_FIRST):
        first = _without_outer_columns(question.removeprefix(_FIRST), answered) or names.count
        return f"{_FIRST}{first}{gap}{remark}"
    if question.startswith("SELECT ") and not _is_answered(question, answered):
        return f"{names.count}{gap}{remark}"
    return own_fix


@dataclass(frozen=True)
class _Own:
    """Replacements for the names of the example: first names in the question, then others of the
    right kind.
    """

    dataset: Dataset
    text: str

    @property
    def table(self) -> Table:
        """The private table of the question."""
        private = [table for table in self.dataset.tables.values() if table.private]
        return next((table for table in private if self._names(table.name)), private[0])

    @property
    def count(self) -> str:
        """A question that is always accepted."""
        return f"SELECT COUNT(*) FROM {_sql_name(self.table.name)}"  # noqa: S608 - shown, not run

    def replace_names(self, part: str, *, keyed: bool, summed: bool = False) -> str:
        """Part of a fix with the names replaced; a summed number without bounds is clamped."""
        wards = self._column("ward", keyed=keyed)
        if wards is not None and re.search(r"\bward\b", part) and not re.search("""["']A["']""", self.text):
            part = _LETTERS.sub(lambda letter: _letter(letter[1], wards), part)
        return _EXAMPLE.sub(lambda word: self._word(word[1], keyed=keyed, summed=summed), part)

    def replace_join(self, fix: str) -> str:
        """The fix with a join that the data set allows, or without one if there is none."""
        match = _JOINED.search(fix)
        if match is None or "wards" in self.dataset.tables:
            return fix
        start = f"FROM {_sql_name(self.table.name)} " if match[1] else ""
        for other in self.dataset.tables.values():
            shared = next((name for name in other.columns if name in self.table.columns), None)
            by = self.table.unit if other.private else shared
            if other.name != self.table.name and by in other.columns:
                return (
                    f"{fix[: match.start()]}{start}JOIN {_sql_name(other.name)} USING ({_sql_name(str(by))})"
                )
        return self.count

    def replace_dates(self, fix: str) -> str:
        """The fix with a TIMESTAMP in place of a DATE where the column holds moments."""
        column = self._column("came_on")
        if column is None or column.kind == "date":
            return fix
        return re.sub(r"DATE ('2026-01-01)'", r"TIMESTAMP \1 00:00:00'", fix)

    def _word(self, word: str, *, keyed: bool, summed: bool) -> str:
        if word in self.dataset.tables or self._is_own(word):
            return word
        if word == "visits":
            return _sql_name(self.table.name)
        if word == "patient_id":
            unit = str(self.table.unit)
            return _sql_name(unit) if unit in self.table.columns else word
        column = self._column(word, keyed=keyed) if word in _WORDS else None
        if column is None:
            return word
        name = _sql_name(column.name)
        return f"CLAMP({name}, 0, 500)" if summed and column.kind in _NUMBERS and not column.bounds else name

    def _column(self, word: str, *, keyed: bool = False) -> Column | None:
        taken = self._column("days") if word == "cost" else None
        return next((column for column in self._columns(word, keyed=keyed) if column is not taken), taken)

    def _columns(self, word: str, *, keyed: bool) -> Iterator[Column]:
        """Columns of the right kind: with the same name, then in the order of the question, then
        the rest.
        """
        fit = [
            column
            for column in self.table.columns.values()
            if column.kind in _WORDS[word] and column.name != self.table.unit and (column.values or not keyed)
        ]
        named = [column for column in fit if self._names(column.name)]
        yield from (column for column in fit if column.name == word)
        yield from sorted(named, key=lambda column: self._place(column.name))
        yield from fit

    def _is_own(self, word: str) -> bool:
        return any(word in table.columns for table in self.dataset.tables.values())

    def _names(self, name: str) -> bool:
        return self._place(name) >= 0

    def _place(self, name: str) -> int:
        column = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", self.text, re.IGNORECASE)
        return -1 if column is None else column.start()


def _letter(letter: str, column: Column) -> str:
    """A public value of the column in place of 'A' or 'B', if there is one."""
    values = [str(value) for value in column.values or ()][:2] or ["A", "B"]
    value = values[-1] if letter == "B" else values[0]
    value = value.lower() if letter == "a" else value
    return f"'{value.replace(chr(39), chr(39) * 2)}'"


def _sql_name(name: str) -> str:
    """A name as SQL writes it, quoted if it must be."""
    return exp.Column(this=identifier(name)).sql(dialect=PlainDialect)


def _without_outer_columns(query: str, answered: Callable[[str], object]) -> str | None:
    """A query inside another one, by itself: as it is, or without conditions that columns are
    equal, which may be columns of the outer query; None if neither is answered.
    """
    if _is_answered(query, answered):
        return query
    try:
        select = parse_statement(query).select
    except (DiscreetError, RecursionError):
        return None
    where = select.args.get("where")
    conditions = (
        []
        if where is None
        else list(where.this.flatten())
        if isinstance(where.this, exp.And)
        else [where.this]
    )
    own = [
        node
        for node in conditions
        if not (
            isinstance(node, exp.EQ)
            and isinstance(node.this, exp.Column)
            and isinstance(node.expression, exp.Column)
        )
    ]
    select.set("where", exp.Where(this=exp.and_(*own)) if own else None)
    alone = select.sql(dialect=PlainDialect)
    return alone if _is_answered(alone, answered) else None


def _is_answered(question: str, answered: Callable[[str], object]) -> bool:
    try:
        answered(question)
    except (DiscreetError, RecursionError):
        return False
    return True
