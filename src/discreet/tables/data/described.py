# SPDX-License-Identifier: Apache-2.0
"""Tables that are described and not there: for building and previewing questions without the rows.

**Guarantee.** The engine of such tables answers from the description, and refuses everything that
would need a row. It does so before a charge, so a refusal costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

from discreet.errors import EngineFailed
from discreet.tables.algebra.engine import LINKED, ROW
from discreet.tables.algebra.sums import BoundedSums, ExactSums, UnitSizes
from discreet.tables.data import rules
from discreet.tables.data.dataset import Column, Link, Table
from discreet.tables.data.periods import time_column
from discreet.tables.data.toml import DataDescription, TableDescription

__all__ = ["DescribedEngine", "tables_of"]


class DescribedEngine:
    """An engine without rows; `name` is that of the engine that has them."""

    def __init__(self, name: str, tables: Mapping[str, Table]) -> None:
        self.name = name
        self._tables = tables

    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(self._tables)

    def columns(self, table: str) -> dict[str, str]:
        """The columns of a table and their kinds."""
        return {name: column.kind for name, column in self._tables[table].columns.items()}

    def check(self, asked: BoundedSums | UnitSizes) -> None:
        """Nothing: a question fits the description that it was built from."""

    def divide_units(self, per: str, when: Mapping[str, str]) -> None:
        """Nothing to divide."""

    def sums(self, asked: BoundedSums) -> ExactSums:
        """Refused."""
        self.ready()

    def sizes(self, asked: UnitSizes) -> tuple[int, ...]:
        """Refused."""
        self.ready()

    def values(self, table: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
        """Refused."""
        self.ready()

    def public_rows(self, table: str) -> Any:
        """Refused."""
        self.ready()

    def ready(self) -> NoReturn:
        """Refuse: there is nothing to count."""
        raise EngineFailed(
            "DP803",
            "this data set is a description without rows.",
            why="it was made by Dataset.from_toml, to build and preview questions where the rows are not.",
            fix='data = dp.open("visits.toml")   where the rows are',
        )

    def close(self) -> None:
        """Nothing is open."""


def tables_of(description: DataDescription) -> dict[str, Table]:
    """The tables of a description that says everything about them."""
    ways = dict(description.protect.links)
    links = {name: Link.parse(way) for name, way in ways.items()}
    tables = {}
    for name, table in description.private.items():
        own = ways.get(name, description.protect.column or ROW)
        unit = own if links.get(name) is None else LINKED
        tables[name] = Table(name, _columns(name, table), unit, table.source, table.table, links.get(name))
        if description.protect.per and unit != LINKED:
            tables[name] = replace(tables[name], when=time_column(tables[name], description.protect))
    for name, table in description.public.items():
        columns = _columns(name, table)
        tables[name] = Table(name, columns, None, table.source, table.table, hierarchy=table.hierarchy)
    return tables


def _columns(name: str, table: TableDescription) -> dict[str, Column]:
    for column in (*table.borrowed, *table.columns):
        if column in table.borrowed:
            raise rules.description_error(
                f"table {name}, column {column}",
                "its values come from a public table, whose rows are not here.",
                "pass what to_toml() of the opened data set returns; it lists the values",
            )
        if not table.columns[column].kind:
            raise rules.description_error(
                f"table {name}, column {column}",
                "its type is missing, and there is no schema to take it from.",
                'type = "integer"',
            )
    return dict(table.columns)
