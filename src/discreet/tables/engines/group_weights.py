# SPDX-License-Identifier: Apache-2.0
"""The weights of groups by themselves: a million of them are an array, and only the few that are named get a key.

    numbered    g, k0 …, s0             every group with a weight above zero, numbered in the order of its keys

**Guarantee.** The weights are those of `sums`. The numbers say nothing of a group that is not asked for by its number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sqlglot import exp

from discreet.tables.data.engine import Integers
from discreet.tables.data.types import TEXT
from discreet.tables.engines import terms as t
from discreet.tables.engines.pairs import Pairs
from discreet.tables.engines.relation import select
from discreet.tables.engines.temporary import Temporary
from discreet.tables.engines.terms import name_term

__all__ = ["group_weights", "key_rows", "number_groups"]


def number_groups(summed: exp.Select, pairs: Pairs) -> exp.Select:
    """g, k0 …, s0 from k0 …, s0. A weight is 2^12 at most for each of 2^40 units at most, so 64 bits hold their sum."""
    keys = pairs.key_names
    # a text may be a place in a list, whose order is nobody's
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
    found = temporary.fetch_arrays(f"SELECT g, s0 FROM {table.name}")  # noqa: S608 - a name of ours
    out = np.empty(found["g"].size, np.int64)
    out[found["g"] - 1] = found["s0"]
    return out


def key_rows(temporary: Temporary, table: exp.Table, keys: list[str], places: Integers) -> list[Any]:
    """The keys of the groups at these places, in the order of the places."""
    if not places.size:
        return []
    columns = ", ".join(f'"{key}"' for key in keys)
    wanted = ", ".join(str(int(place) + 1) for place in places)
    rows = temporary.fetch(f"SELECT g, {columns} FROM {table.name} WHERE g IN ({wanted})")  # noqa: S608 - names and numbers of ours
    found = {number: key for number, *key in rows}
    return [found[int(place) + 1] for place in places]
