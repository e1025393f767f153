# SPDX-License-Identifier: Apache-2.0
"""What is shown of a data set: its public description, without the places of its files."""

from __future__ import annotations

from dataclasses import replace

from discreet.server.datasets import Hosted
from discreet.tables.algebra.types import Value
from discreet.tables.ask.start import Dataset
from discreet.tables.data.dataset import Column
from discreet.tables.data.toml import write

__all__ = ["column_facts", "sentences_of", "shown_description"]


def shown_description(hosted: Hosted) -> str:
    """The description as TOML, from which `Dataset.from_toml` makes an equal data set; where the
    files lie, and the budget of the whole, are left out.
    """
    tables = {name: replace(table, source="", within="") for name, table in hosted.data.tables.items()}
    return write(replace(hosted.data, tables=tables, budget={}))


def sentences_of(data: Dataset) -> list[str]:
    """The description in plain sentences."""
    return [line for line in data.describe().splitlines() if line.strip()]


def column_facts(column: Column) -> dict[str, object]:
    """What is publicly known of a column, as JSON types."""
    return {
        "name": column.name,
        "kind": column.kind,
        "bounds": None if column.bounds is None else [_plain(value) for value in column.bounds],
        "values": None if column.values is None else [_plain(value) for value in column.values],
        "null": column.null,
        "source": column.source,
    }


def _plain(value: Value) -> bool | int | float | str | None:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
