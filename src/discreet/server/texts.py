# SPDX-License-Identifier: Apache-2.0
"""The sentences of the pages that code chooses; those that always stand on a page are in its
template.

Every sentence is constant, or is filled with numbers and names by its parameters.
"""

from __future__ import annotations

import math

__all__ = [
    "allocation_words",
    "column_kind",
    "column_values",
    "dataset_words",
    "many",
    "more_like_this",
    "rows_per_unit",
]

#: Titles of the pages of a data set, by key; the order is that of the navigation.
NAVIGATION = (
    ("data", "", "Data", "read description"),
    ("ask", "/ask", "Ask", "preview"),
    ("answers", "/answers", "My answers", "read own answers"),
    ("curate", "/curate", "Overview", "change people"),
    ("seats", "/curate/seats", "Seats", "change people"),
    ("ledger", "/ledger", "Ledger", "read ledger"),
    ("statement", "/statement", "Statement", "read statement"),
    ("log", "/log", "Access log", "read log"),
)

NOT_LET_IN = "This does not let you in. Ask for a new link or token."
LEDGER_DAMAGED = "The ledger is damaged (DP602), so no question is asked. What was published stays."
STATES = {"answered": "answered", "waiting": "on its way", "not drawn": "paid for, not drawn"}

_KINDS = {
    "integer": "whole number",
    "number": "number",
    "real": "number",
    "decimal": "number",
    "text": "text",
    "boolean": "yes or no",
    "date": "date",
    "timestamp": "time",
}


def many(count: float, one: str, several: str = "") -> str:
    """A count with its noun.

    >>> many(1, "entry", "entries"), many(1200, "group")
    ('1 entry', '1,200 groups')
    """
    return f"{count:,.0f} {one if count == 1 else several or one + 's'}"


def more_like_this(count: float) -> str:
    """How many more questions like one fit.

    >>> more_like_this(43), more_like_this(0)
    ('About 43 more like this one fit.', 'This one does not fit any more.')
    """
    if count == math.inf:
        return "Any number of questions like this one fits."
    if count < 1:
        return "This one does not fit any more."
    return f"About {math.floor(count):,} more like this one {'fits' if count < 2 else 'fit'}."


def column_kind(kind: str) -> str:
    """The type of a column in words."""
    return _KINDS.get(kind, kind or "as in the table")


def column_values(bounds: tuple[object, object] | None, values: tuple[object, ...] | None) -> str:
    """What a column may contain, in words.

    >>> column_values((17, 90), None), column_values(None, ("a", "b"))
    ('17 to 90', 'a, b')
    """
    if bounds is not None:
        return f"{bounds[0]} to {bounds[1]}"
    if values is not None:
        shown = ", ".join("empty" if value is None else str(value) for value in values[:60])
        return shown if len(values) <= 60 else f"{shown}, … ({len(values)} values)"
    return "–"


def rows_per_unit(unit: str, at_most: object) -> str:
    """The contribution bound in words."""
    if isinstance(at_most, int):
        return f"Each {unit} contributes at most {many(at_most, 'row')}."
    if isinstance(at_most, dict):
        parts = ", ".join(f"{many(count, 'row')} to {table}" for table, count in at_most.items())
        return f"Each {unit} contributes at most {parts}."
    return ""


def dataset_words(name: str, unit: str, at_most: object, version: str) -> str:
    """A data set in a few sentences."""
    bound = rows_per_unit(unit, at_most)
    dated = f" Version of the data: {version}." if version else ""
    return f"{name} protects each {unit}: answers have random noise that hides any one {unit}. {bound}{dated}".strip()


def allocation_words(share: float | None) -> str:
    """The allocation of a seat in words."""
    return "the whole budget" if share is None or share >= 1 else f"{100 * share:.3g} % of the budget"
