# SPDX-License-Identifier: Apache-2.0
"""The weights of groups as one array; only groups that are chosen get a key in Python.

    numbered    g, k0 …, s0    every group with a weight above zero, numbered in the order of keys

**Guarantee.** The weights are those of `sums`. A number tells nothing about a group that is not
chosen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sqlglot import exp

from discreet.tables.algebra.engine import Integers
from discreet.tables.algebra.types import TEXT
from discreet.tables.engines import terms as t
from discreet.tables.engines.pairs import Pairs
from discreet.tables.engines.relation import select
from discreet.tables.engines.temporary import Temporary
from discreet.tables.engines.terms import name_term

__all__ = ["group_weights", "key_rows", "number_groups"]


def number_groups(summed: exp.Select, pairs: Pairs) -> exp.Select:
    """g, k0 …, s0 from k0 …, s0.

    A weight is at most 2^12 for each of at most 2^40 units, so 64 bits hold their sum.
    """
    keys = pairs.key_names
    # A packed text is a position in a list, and the list has no order.
    terms = [
        t.cast(t.column(name), "TEXT") if key.type.kind == TEXT else t.column(name)
        for key, name in zip(pairs.keys, keys, strict=True)
    ]
    order = exp.Order(expressions=[exp.Ordered(this=term, nulls_first=False) for term in terms])
    number = exp.Window(this=exp.RowNumber(), order=order)
    weight = name_term(t.cast(t.column("s0"), t.BIGINT), "s0")
    return select([name_term(number, "g"), *map(t.column, keys), weight], summed)


def group_weights(temporary: Temporary, table: exp.Table) -> Integers:
    """The weight of each group, in the order of their numbers."""
    # The name is ours.
    columns = temporary.fetch_arrays(f"SELECT g, s0 FROM {table.name}")  # noqa: S608
    weights = np.empty(columns["g"].size, np.int64)
    weights[columns["g"] - 1] = columns["s0"]
    return weights


def key_rows(temporary: Temporary, table: exp.Table, keys: list[str], places: Integers) -> list[Any]:
    """The keys of the groups at these places of the array, in the same order."""
    if not places.size:
        return []
    columns = ", ".join(f'"{key}"' for key in keys)
    numbers = ", ".join(str(int(place) + 1) for place in places)
    # Every part of the statement is a name or a number of ours.
    rows = temporary.fetch(f"SELECT g, {columns} FROM {table.name} WHERE g IN ({numbers})")  # noqa: S608
    key_by_number = {number: key for number, *key in rows}
    return [key_by_number[int(place) + 1] for place in places]
