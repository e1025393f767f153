# SPDX-License-Identifier: Apache-2.0
"""Values that are written in a question: exact numbers, texts, dates."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from sqlglot import exp

from discreet.tables.ask.build import Term, constant
from discreet.tables.ask.sql.refuse import refused, shown

__all__ = ["literal", "number", "whole", "written_number"]

#: Digits and exponents beyond this make numbers that no column holds, and take for ever.
_NUMBER = re.compile(r"(\d{0,40})\.?(\d{0,40})([eE][+-]?\d{1,2})?")


def literal(node: Any) -> Term:
    """A number or a text in quotes."""
    return constant(node.this) if node.args.get("is_string") else number(node.this)


def number(text: str) -> Fraction:
    """A number exactly as it is written."""
    if not _NUMBER.fullmatch(text) or not any(c.isdigit() for c in text):
        raise refused(
            "DP705",
            "a number is too long, or not one.",
            "values are kept in 64 bits.",
            "write it in digits:  1000  or  0.25",
        )
    return Fraction(text if not text.startswith(".") else "0" + text)


def written_number(node: exp.Expression, what: str) -> Fraction:
    """A number that stands in the question itself, with its sign."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Neg):
        return -written_number(node.this, what)
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        return number(node.this)
    raise refused(
        "DP705",
        f"{what} must be a number that is written down, not {shown(node)}.",
        "it is part of the question, and public.",
        "CLAMP(days, 0, 60)   or   BUCKET(days, 0, 10, 20)",
    )


def whole(node: exp.Expression, what: str, low: int, high: int, word: str = "") -> int:
    """A whole number that stands in the question itself, after a word of SQL perhaps."""
    value = written_number(node, what)
    if value.denominator == 1 and low <= value <= high:
        return int(value)
    raise refused(
        "DP705",
        f"{what} must be a whole number from {low} to {high}.",
        "it is part of the question.",
        f"{word} {max(low, 1)}".strip(),
    )
