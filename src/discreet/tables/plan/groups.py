# SPDX-License-Identifier: Apache-2.0
"""The groups of an answer with public keys: every combination is shown, whether it has rows or not.

**Guarantee.** The groups and their order do not depend on data. Rows outside them are dropped row
by row before contributions are bounded, so they use up none of a unit's contribution bound.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from datetime import date, datetime

from discreet.errors import RefusedQuestion
from discreet.tables.algebra.expr import Expr, IsIn, IsNull, Logic
from discreet.tables.algebra.sums import Filtered, GroupKey, Relation, sorted_groups
from discreet.tables.algebra.types import DATE, MOMENT, NUMBER, Value, days, micros
from discreet.tables.ask.question import Key, Question

__all__ = ["is_one_of", "kept_rows", "public_groups"]

#: The greatest number of groups of one answer.
MOST_GROUPS = 10**7


def public_groups(question: Question) -> list[GroupKey] | None:
    """All public groups, sorted; None if a key of a single table has no public values.

    A question with grouping sets has its groups in its tables, and none here, be its keys public or
    not.
    """
    for key in question.keys:
        _check_key(key)
    if question.workload is not None:
        return []
    if question.combinations is not None:
        return sorted_groups({tuple(group) for group in question.combinations})
    values_by_key = [dict.fromkeys(key.values) for key in question.keys if key.values is not None]
    if len(values_by_key) < len(question.keys):
        return None
    if math.prod(len(values) for values in values_by_key) > MOST_GROUPS:
        raise RefusedQuestion(
            "DP704",
            "the public keys have more than ten million combinations.",
            why="every combination gets a row with noise, whether it has data or not.",
            fix="group by fewer or coarser keys, or remove the public values of one key and state a delta",
        )
    return sorted_groups(itertools.product(*values_by_key))


def kept_rows(question: Question) -> Relation:
    """The rows in which each key with public values has one of them."""
    rows = question.rows
    for place, key in enumerate(question.keys):
        values = key.values
        if values is None and question.combinations is not None:
            values = tuple({group[place] for group in question.combinations})
        if values is not None:
            rows = Filtered(rows, is_one_of(key.of, values))
    return rows


def is_one_of(of: Expr, values: Sequence[Value]) -> Expr:
    """Whether an expression has one of these values; None stands for NULL."""
    not_null = tuple(_cells(of, value) for value in values if value is not None)
    listed = IsIn(of, not_null)
    if None not in values:
        return listed
    return Logic("or", (listed, IsNull(of))) if not_null else IsNull(of)


def _cells(of: Expr, value: Value) -> Value:
    if of.type.kind == DATE and isinstance(value, date):
        return days(value)
    if of.type.kind == MOMENT and isinstance(value, datetime):
        return micros(value)
    return value


def _check_key(key: Key) -> None:
    if key.of.type.kind == NUMBER and key.of.type.places:
        raise RefusedQuestion(
            "DP704",
            f"{key.name} is a real number, and cannot be grouped by.",
            why="two numbers that look alike need not be equal, and each would be a group of its own.",
            fix=f"group by a whole number, for example  FLOOR({key.name})",
        )
    if key.values is not None and not key.values:
        raise RefusedQuestion(
            "DP704",
            f"{key.name} has an empty list of public values.",
            why="the answer would have no group.",
            fix=f"state the values of {key.name}, or remove the empty list and state delta=1e-6",
        )
