# SPDX-License-Identifier: Apache-2.0
"""The groups of an answer whose keys are public: every combination is shown, whether anybody is in it or not.

**Guarantee.** Which groups are shown, and in which order, does not depend on data. Rows outside them are left out before
anything is bounded, row by row, so that they take nothing from what a unit may add.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from discreet.errors import RefusedQuestion
from discreet.tables.ask.question import Key, Question
from discreet.tables.data.expr import Expr, IsIn, IsNull, Logic
from discreet.tables.data.sums import Filtered, GroupKey, Relation, sorted_groups
from discreet.tables.data.types import DATE, MOMENT, NUMBER, days, micros

__all__ = ["is_one_of", "kept_rows", "public_groups"]

#: So many groups are answered at once, at most.
MOST_GROUPS = 10**7


def public_groups(question: Question) -> list[GroupKey] | None:
    """All public groups, sorted; None where some key has no public values."""
    for key in question.keys:
        _check(key)
    if question.combinations is not None:
        return sorted_groups({tuple(group) for group in question.combinations})
    listed = [key.values for key in question.keys]
    if any(values is None for values in listed):
        return None
    sets = [dict.fromkeys(values) for values in listed if values is not None]
    if math.prod(len(values) for values in sets) > MOST_GROUPS:
        raise RefusedQuestion(
            "DP704",
            "the public keys have more than ten million combinations.",
            why="every one of them gets a row with noise, whether it has data or not.",
            fix="group by fewer or coarser keys, or leave the values of one key to be found",
        )
    return sorted_groups(itertools.product(*sets))


def kept_rows(question: Question) -> Relation:
    """The rows whose keys have a public value, where they have any."""
    rows = question.rows
    for place, key in enumerate(question.keys):
        values = key.values
        if values is None and question.combinations is not None:
            values = tuple({group[place] for group in question.combinations})
        if values is not None:
            rows = Filtered(rows, is_one_of(key.of, values))
    return rows


def is_one_of(of: Expr, values: Sequence[Any]) -> Expr:
    """Whether a key has one of some public values."""
    known = tuple(_cells(of, value) for value in values if value is not None)
    inside = IsIn(of, known)
    if None not in values:
        return inside
    return Logic("or", (inside, IsNull(of))) if known else IsNull(of)


def _cells(of: Expr, value: Any) -> Any:
    if of.type.kind == DATE and isinstance(value, date):
        return days(value)
    if of.type.kind == MOMENT and isinstance(value, datetime):
        return micros(value)
    return value


def _check(key: Key) -> None:
    if key.of.type.kind == NUMBER and key.of.type.places:
        raise RefusedQuestion(
            "DP704",
            f"{key.name} is a real number, and reals are no keys.",
            why="two numbers that look alike need not be equal, and each would be a group of its own.",
            fix=f"group by a whole number, for example  FLOOR({key.name})",
        )
    if key.values is not None and not key.values:
        raise RefusedQuestion(
            "DP704",
            f"{key.name} has an empty list of public values.",
            why="there would be no group to answer for.",
            fix=f"state the values of {key.name}, or leave them to be found with delta=1e-6",
        )
