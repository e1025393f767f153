# SPDX-License-Identifier: Apache-2.0
"""What `describe` drafts can be opened, whatever the names and types of the columns are."""

from __future__ import annotations

import csv
import sqlite3
import tempfile
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.errors import BadDescription
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


def check_draft(source: Path, names: list[str], rows: int = 2) -> None:
    if len({name.casefold() for name in names}) < len(names):
        with pytest.raises(BadDescription, match="differ only in upper and lower case"):
            describe(source)
        return
    data = opened(source, describe(source))
    (table,) = data.tables.values()
    assert list(table.columns) == names
    session = dp.Session(data, limit=dp.Limit.filter(epsilon=1e9))
    assert session.sql("SELECT COUNT(*) FROM data", epsilon=1e6).value == rows


@SMALL
@given(st.lists(st.tuples(NAMES, st.sampled_from(TYPES)), max_size=5), st.sampled_from([0, 2]))
def test_a_draft_of_parquet_can_be_opened(columns, rows):
    columns = {UNIT: pa.int64(), **{name: kind for name, kind in columns if name.casefold() != UNIT}}
    unit = pa.array([1, 2][:rows], pa.int64())
    arrays = [unit, *(pa.nulls(rows, kind) for kind in list(columns.values())[1:])]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "data.parquet"
        try:
            pq.write_table(pa.table(arrays, names=list(columns)), source)
        except pa.lib.ArrowException:
            return
        check_draft(source, list(columns), rows)


@SMALL
@given(
    st.lists(NAMES, max_size=4, unique=True),
    st.sampled_from([(".csv", ","), (".tsv", "\t")]),
    st.sampled_from(["x", ""]),
    st.sampled_from([0, 2]),
)
def test_a_draft_of_a_text_file_can_be_opened(names, kind, cell, rows):
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
            writer.writerows([names, *([str(row), *[cell] * (len(names) - 1)] for row in range(rows))])
        check_draft(source, names, rows)


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


def test_a_name_of_a_column_is_never_read_as_sql(tmp_path):
    """A quick reader of decimals once wrote the name as it is: `x + 1` was the sum of another column."""
    cents = pa.array([Decimal("1.00"), Decimal("2.00")], pa.decimal128(9, 2))
    names = ["x + x", "select", 'say "x"', "a b", "1"]
    table = pa.table(
        {
            UNIT: [1, 2],
            "x": pa.array([Decimal("5.00")] * 2, pa.decimal128(9, 2)),
            **dict.fromkeys(names, cents),
        }
    )
    pq.write_table(table, tmp_path / "data.parquet")
    columns = {name: dp.column(bounds=(0, 100)) for name in names}
    data = dp.open(tmp_path / "data.parquet", dp.each(UNIT, at_most=1), columns=columns)
    session = dp.Session(data, limit=dp.Limit.filter(epsilon=1e9))
    for name in names:
        quoted = name.replace('"', '""')
        assert round(session.sql(f'SELECT SUM("{quoted}") FROM data', epsilon=1e6).value, 1) == 3, name
