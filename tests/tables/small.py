# SPDX-License-Identifier: Apache-2.0
"""Tables small enough to try all of their neighbours.

A table is a tuple of people, a person a tuple of rows, a row a tuple (g, x). The same person has the same place in two
tables; a person without rows is not there.
"""

from __future__ import annotations

import itertools

from discreet.tables.algebra import expr as e
from discreet.tables.algebra.sums import Private
from discreet.tables.algebra.types import NUMBER, TEXT, Type
from discreet.tables.ask.question import Aggregate, Key, Question
from discreet.tables.ask.start import Dataset
from discreet.tables.data.dataset import Column, Each, Table
from discreet.tables.plan.contribution import Contribution
from tests.tables.reference import Reference

ROWS = Private("visits")


def number(low, high, places=0, *, null=True):
    return e.Read("visits", "x", Type(NUMBER, low, high, places, null))


WARD = e.Read("visits", "g", Type(TEXT))


def engine(table):
    """The exact sums of a small table, in plain Python."""
    rows = [{"id": who, "g": g, "x": x} for who, person in enumerate(table) for g, x in person]
    return Reference({"visits": rows}, {"visits": "id"})


def weighted(asked, person):
    """What one person adds: {key: (numbers)}."""
    return engine((person,)).sums(asked)


def dataset(table=(), at_most=1, groups=None, relation="add-remove", *, rows_are_units=False):
    columns = {"id": Column("id", "integer"), "x": Column("x", "real"), "g": Column("g", "text")}
    visits = Table("visits", columns, unit="id")
    protect = Each(None, relation=relation) if rows_are_units else Each("id", at_most, groups, relation)
    return Dataset("visits", {"visits": visits}, protect, engine(table))


def contribution(**words):
    return Contribution.of(dataset(**words))


def question(*aggregates, keys=None, combinations=None):
    grouped = () if keys is None else (Key("g", WARD, None if keys == "unknown" else tuple(keys)),)
    named = []
    for place, (kind, *rest) in enumerate(aggregates):
        words = rest[1] if len(rest) > 1 else {}
        named.append(
            Aggregate(kind, rest[0] if rest else None, f"{kind}{place}", f"{kind.upper()}(…)", **words)
        )
    return Question(ROWS, tuple(named), grouped, combinations=combinations)


def people(values, wards=("a", "b"), most=2, at_least=0):
    """Every person with so many rows."""
    rows = list(itertools.product(wards, values))
    for many in range(at_least, most + 1):
        yield from itertools.combinations_with_replacement(rows, many)
