# SPDX-License-Identifier: Apache-2.0
"""A small data set that questions are asked about: two private tables, two public ones, and no rows at all."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from discreet.tables.ask.start import Dataset
from discreet.tables.data.dataset import Column, Each, Table

WARDS = [("A", "north", 10), ("B", "north", 20), ("C", "south", 30)]
REGIONS = [("north", True), ("south", False)]


class Shelf:
    """An engine that knows public tables and refuses to be asked about anything else."""

    name = "shelf"

    def __init__(self, **tables: list[dict[str, Any]]) -> None:
        self.rows = {
            "wards": [dict(zip(("ward", "region", "beds"), row, strict=True)) for row in WARDS],
            "regions": [dict(zip(("region", "coast"), row, strict=True)) for row in REGIONS],
            **tables,
        }

    def tables(self) -> tuple[str, ...]:
        return tuple(self.rows)

    def columns(self, table: str) -> dict[str, str]:
        return {name: column.kind for name, column in TABLES[table].columns.items()}

    def values(self, table: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
        assert not TABLES[table].private, "the values of a private table were asked for"
        return sorted({tuple(row[name] for name in columns) for row in self.rows[table]})

    def check(self, asked: Any) -> None:
        pass

    def sums(self, asked: Any) -> Any:
        raise AssertionError("a question was counted while it was read")

    sizes = sums

    def close(self) -> None:
        self.rows.clear()


def _table(name: str, unit: str | None, *columns: Column) -> Table:
    return Table(name, {column.name: column for column in columns}, unit)


DAYS = (date(2024, 1, 1), date(2025, 12, 31))
TABLES = {
    "visits": _table(
        "visits",
        "patient_id",
        Column("patient_id", "integer"),
        Column("ward", "text", values=("A", "B", "C")),
        Column("note", "text"),
        Column("days", "integer", (0, 60)),
        Column("age", "integer"),
        Column("zip", "integer", (0, 99_999)),
        Column("cost", "real", (0, 500)),
        Column("weight", "real"),
        Column("urgent", "boolean", null=False),
        Column("day", "date", DAYS),
        Column("born", "date"),
        Column(
            "seen_at", "timestamp", (datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 12, 31, tzinfo=UTC))
        ),
        Column("blob", "other"),
    ),
    "labs": _table(
        "labs",
        "patient_id",
        Column("patient_id", "integer"),
        Column("ward", "text", values=("A", "B", "C")),
        Column("value", "real", (-1, 1)),
        Column("kind", "text"),
    ),
    "wards": _table(
        "wards", None, Column("ward", "text"), Column("region", "text"), Column("beds", "integer", (0, 100))
    ),
    "regions": _table("regions", None, Column("region", "text"), Column("coast", "boolean")),
}


def world(**tables: list[dict[str, Any]]) -> Dataset:
    return Dataset("hospital", TABLES, Each("patient_id", at_most=20), Shelf(**tables))
