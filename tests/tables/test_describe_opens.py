# SPDX-License-Identifier: Apache-2.0
"""What `describe` drafts can be opened, whatever the names and types of the columns are."""

from __future__ import annotations

import csv
import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.tables.data.describe import describe

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("duckdb")

UNIT = "id"
TYPES = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64()),
    *(pa.decimal128(precision, scale) for precision, scale in ((1, 0), (9, 2), (38, 0), (38, 38))),
    *(pa.decimal256(76, 20), pa.string(), pa.large_string(), pa.bool_(), pa.date32(), pa.date64()),
    *(
        pa.timestamp(unit, zone)
        for unit in ("s", "ms", "us", "ns")
        for zone in (None, "UTC", "Europe/Berlin")
    ),
    *(pa.time32("ms"), pa.time64("ns"), pa.duration("us"), pa.binary(), pa.large_binary(), pa.binary(4)),
    *(pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.map_(pa.string(), pa.int64()), pa.null()),
    pa.dictionary(pa.int32(), pa.string()),
]
#: Names as people write them, and as nobody should.
NAMES = st.one_of(
    st.sampled_from(
        ["age", "Age", "patient id", "x.y", 'say "it"', "it's", "#", "[a]", "größe", "select", "a\tb", "\\"]
    ),
    st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=8),
)
SMALL = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def opened(source: Path, draft: str) -> dp.tables.Dataset:
    """The data set of a draft in which only the unit was chosen."""
    chosen = draft.replace('# unit = ""', f'unit = "{UNIT}"').replace(
        f'# unit = "{UNIT}"', f'unit = "{UNIT}"'
    )
    assert chosen != draft
    text = chosen.replace("# rows_per_unit = 20", "rows_per_unit = 20")
    place = source.with_suffix(".toml")
    place.write_text(text, encoding="utf-8")
    return dp.open(place)


def check_draft(source: Path, names: list[str]) -> None:
    data = opened(source, describe(source))
    (table,) = data.tables.values()
    assert list(table.columns) == names
    session = dp.Session(data, limit=dp.Limit.filter(epsilon=1e9))
    assert session.sql("SELECT COUNT(*) FROM data", epsilon=1e6).value == 2


@SMALL
@given(st.lists(st.tuples(NAMES, st.sampled_from(TYPES)), max_size=5))
def test_a_draft_of_parquet_can_be_opened(columns):
    columns = {UNIT: pa.int64(), **{name: kind for name, kind in columns if name.casefold() != UNIT}}
    arrays = [pa.array([1, 2]), *(pa.nulls(2, kind) for kind in list(columns.values())[1:])]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "data.parquet"
        try:
            pq.write_table(pa.table(arrays, names=list(columns)), source)
        except pa.lib.ArrowException:
            return
        check_draft(source, list(columns))


@SMALL
@given(st.lists(NAMES, max_size=4, unique=True), st.sampled_from([(".csv", ","), (".tsv", "\t")]))
def test_a_draft_of_a_text_file_can_be_opened(names, kind):
    suffix, separator = kind
    # A cell of a header holds neither line ends nor the spaces around it.
    names = [
        UNIT,
        *(name for name in names if name.casefold() != UNIT and name.isprintable() and name == name.strip()),
    ]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"data{suffix}"
        with source.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter=separator)
            writer.writerows([names, *([str(row), *["x"] * (len(names) - 1)] for row in range(2))])
        check_draft(source, names)


@SMALL
@given(
    st.lists(
        st.tuples(
            NAMES, st.sampled_from(["INTEGER", "REAL", "TEXT", "BLOB", "DATE", "NUMERIC(9,2)", "", "ODD"])
        ),
        max_size=4,
    )
)
def test_a_draft_of_a_database_can_be_opened(columns):
    columns = {UNIT: "INTEGER", **{name: kind for name, kind in columns if name.isprintable()}}
    if len({name.casefold() for name in columns}) < len(columns):
        return
    listed = ", ".join('"{}" {}'.format(name.replace('"', '""'), kind) for name, kind in columns.items())
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "data.sqlite"
        with sqlite3.connect(source) as connection:
            connection.execute(f"CREATE TABLE data ({listed})")
            connection.executemany('INSERT INTO data ("id") VALUES (?)', [(1,), (2,)])
        connection.close()
        check_draft(source, list(columns))
