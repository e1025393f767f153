# SPDX-License-Identifier: Apache-2.0
"""Literals of a question: exact numbers and texts."""

from __future__ import annotations

import re
from fractions import Fraction

from sqlglot import exp

from discreet.tables.ask.build import Term, constant
from discreet.tables.ask.sql.refuse import node_text, question_error

__all__ = ["literal", "literal_number", "number", "whole_number"]

#: More digits or larger exponents make numbers that no column holds, and take very long to compute.
_NUMBER = re.compile(r"(\d{0,40})\.?(\d{0,40})([eE][+-]?\d{1,2})?")


def literal(node: exp.Expression) -> Term:
    """The value of a number or of a text in quotes."""
    return constant(node.this) if node.args.get("is_string") else number(node.this)


def number(text: str) -> Fraction:
    """The exact value of a number."""
    if not _NUMBER.fullmatch(text) or not any(c.isdigit() for c in text):
        raise question_error(
            "DP705",
            "a number is too long, or is not written as a number.",
            "values have 64 bits.",
            "write it in digits:  1000  or  0.25",
        )
    return Fraction(text if not text.startswith(".") else "0" + text)


def literal_number(node: exp.Expression, what: str) -> Fraction:
    """A number literal with its sign; `what` names it in an error."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Neg):
        return -literal_number(node.this, what)
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        return number(node.this)
    raise question_error(
        "DP705",
        f"{what} must be a literal number, not {node_text(node)}.",
        "it belongs to the question, and cannot come from the data.",
        "CLAMP(days, 0, 60)   or   BUCKET(days, 0, 10, 20)",
    )


def whole_number(node: exp.Expression, what: str, low: int, high: int, word: str = "") -> int:
    """A whole number literal; `word` is the word of SQL before it, for the fix."""
    value = literal_number(node, what)
    if value.denominator == 1 and low <= value <= high:
        return int(value)
    raise question_error(
        "DP705",
        f"{what} must be a whole number from {low} to {high}.",
        "other values have no meaning here.",
        f"{word} {max(low, 1)}".strip(),
    )
