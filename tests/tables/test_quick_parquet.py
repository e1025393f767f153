# SPDX-License-Identifier: Apache-2.0
"""DuckDB's own reader of Parquet files and the slower one that never fails: the same cells, or an error that nobody sees."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

import discreet as dp
from discreet.tables.data.readers.parquet import Parquet
from discreet.tables.engines.duckdb_open import _quick_view, _view
from tests.tables.odd import decimals

LEAST, MOST = -(2**63), 2**63 - 1
NUMBERS = [0, 1, -1, MOST, MOST - 1, LEAST, LEAST + 1, LEAST + 2, 10**18, -(10**18), None]
MOMENTS = [*NUMBERS, 253_402_300_799_999_999, 253_402_300_800_000_000, -62_135_596_800_000_001]
DAYS = [0, 2**31 - 1, 2**31 - 2, -(2**31), -(2**31) + 1, 2_932_896, 2_932_897, -719_162, -719_163, None]
REALS = [0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 1.7e308, None]
COLUMNS = {
    "int64": pa.array(NUMBERS, pa.int64()),
    "uint64": pa.array(NUMBERS, pa.int64()).view(pa.uint64()),
    "int32": pa.array(DAYS, pa.int32()),
    "uint32": pa.array(DAYS, pa.int32()).view(pa.uint32()),
    "double": pa.array(REALS, pa.float64()),
    "float": pa.array([None if x is None else x if abs(x) < 1e38 else math.inf for x in REALS], pa.float32()),
    "bool": pa.array([True, False, None]),
    "date": pa.array(DAYS, pa.int32()).view(pa.date32()),
    "moment": pa.array(MOMENTS, pa.int64()).view(pa.timestamp("us")),
    "moment in a zone": pa.array(MOMENTS, pa.int64()).view(pa.timestamp("us", "Asia/Tokyo")),
    "text": pa.array(["", "a", "ä\0b", None, "\U0010ffff"]),
    "dictionary": pa.array(["x", None, "y"]).dictionary_encode(),
    "other": pa.array([[1], None, [2]]),
}
#: Bytes that are no text, in the middle of three groups of rows.
BROKEN = pa.array([*[b"a"] * 100, b"\xff\xfe", *[b"b"] * 199], pa.binary()).view(pa.string())
STATEMENTS = [
    "SELECT COUNT(*) FROM {}",
    "SELECT COUNT(k) FROM {}",
    "SELECT COUNT(*) FROM {} WHERE k IS NULL",
    "SELECT COUNT(*) FROM {} WHERE k IS NOT NULL",
    "SELECT COUNT(*) FROM {} WHERE NOT (k = 'a')",
    "SELECT COUNT(*) FROM {} WHERE k > 'c'",
    "SELECT COUNT(*) FROM {} WHERE k IN ('a', 'z')",
    "SELECT COUNT(*) FROM {} WHERE k LIKE 'a%'",
    "SELECT COUNT(*) FROM {} WHERE COALESCE(k, 'zz') = 'zz'",
    "SELECT COUNT(*) FROM {} WHERE x < 50 AND k IS NULL",
    "SELECT COUNT(*) FROM {} WHERE x >= 50 AND k IS NULL",
    "SELECT k, COUNT(*) FROM {} GROUP BY k ORDER BY k",
    "SELECT MIN(k), MAX(k), COUNT(DISTINCT k) FROM {}",
    "SELECT COUNT(*) FROM {} AS one JOIN (SELECT 'b' AS text) AS l ON one.k = l.text",
    "SELECT SUM(x) FROM {}",
]


def views(paths: list[Path]) -> tuple[Any, str, str]:
    """A connection with the files as they are read quickly, and as they are always read."""
    connection, files = duckdb.connect(), Parquet.of(paths)
    quick = files.plain_terms()
    assert quick is not None
    _quick_view(connection, exp.table_("quick"), files, quick)
    _view(connection, exp.table_("always"), files)
    return connection, "quick", "always"


@pytest.mark.parametrize("kind", COLUMNS)
def test_both_readers_give_the_same_cells(tmp_path: Path, kind: str) -> None:
    pq.write_table(pa.table({"x": COLUMNS[kind]}), tmp_path / "t.parquet")
    connection, quick, always = views([tmp_path / "t.parquet"])
    found = [
        connection.execute(f"SELECT TYPEOF(x), CAST(x AS TEXT) FROM {name}").fetchall()
        for name in (quick, always)
    ]
    assert found[0] == found[1]


#: The bytes of Parquet's decimals with so many digits, and of those that it keeps as whole numbers.
WIDTHS = {digits: next(n for n in range(1, 17) if 10**digits <= 2 ** (8 * n - 1)) for digits in range(1, 39)}
INTEGERS = {digits: 4 if digits <= 9 else 8 for digits in range(1, 19)}


@pytest.mark.parametrize("stored", ["as bytes", "as integers"])
@pytest.mark.parametrize("digits", WIDTHS)
def test_both_readers_give_the_same_decimals_even_those_that_are_none(
    tmp_path: Path, digits: int, stored: str
) -> None:
    """Cells up to the ends of the bytes that hold them, most of which have more digits than the type."""
    as_integers = stored == "as integers"
    size = INTEGERS.get(digits, WIDTHS[digits]) if as_integers else WIDTHS[digits]
    ends = [0, 1, 10**digits - 1, 10**digits, 2 ** (8 * size - 1) - 1, 2 ** (8 * size - 1)]
    cells = [*ends[:-1], *(-end for end in ends)]
    for scale in sorted({0, digits // 2, digits}):
        kind = pa.decimal128(digits, scale)
        rows = pa.concat_arrays([decimals(kind, cells), pa.nulls(1, kind)])
        table = pa.table({"x": rows})
        pq.write_table(table, tmp_path / "t.parquet", store_decimal_as_integer=as_integers)
        if as_integers and digits <= 4:  # DuckDB has fewer bytes for them than the file
            assert Parquet.of([tmp_path / "t.parquet"]).plain_terms() is None
            continue
        connection, quick, always = views([tmp_path / "t.parquet"])
        found = [
            connection.execute(f"SELECT TYPEOF(x), CAST(x AS TEXT) FROM {name}").fetchall()
            for name in (quick, always)
        ]
        assert found[0] == found[1]
        # The greatest number is itself, and one more is none.
        assert [row[1] is None for row in found[0]] == [*(abs(cell) >= 10**digits for cell in cells), True]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_that_names_a_broken_cell_fails_or_finds_the_same(tmp_path: Path, statement: str) -> None:
    """If DuckDB left the row out by what the file says of its texts, another broken row would change what this one counts as."""
    table = pa.table({"k": BROKEN, "x": list(range(300))})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=100)
    connection, quick, always = views([tmp_path / "t.parquet"])
    expected = connection.execute(statement.format(always)).fetchall()
    try:
        found = connection.execute(statement.format(quick)).fetchall()
    except duckdb.Error:
        return
    assert found == expected


def test_columns_are_found_by_their_names_in_every_file(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": ["a"], "x": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"x": [2], "k": ["b"]}), tmp_path / "2.parquet")
    connection, quick, always = views([tmp_path / "1.parquet", tmp_path / "2.parquet"])
    for name in (quick, always):
        assert connection.execute(f"SELECT k, x FROM {name} ORDER BY x").fetchall() == [("a", 1), ("b", 2)]


@pytest.mark.parametrize(
    "kind",
    [
        pa.int8(),
        pa.uint16(),
        pa.float16(),
        pa.timestamp("ns"),
        pa.timestamp("ms"),
        pa.date64(),
    ],
    ids=str,
)
def test_types_that_duckdb_reads_in_its_own_way_are_left_to_the_other_reader(
    tmp_path: Path, kind: Any
) -> None:
    pq.write_table(pa.table({"x": pa.array([None], kind)}), tmp_path / "t.parquet")
    terms = Parquet.of([tmp_path / "t.parquet"]).plain_terms()
    # what lies in the file as another type is read as that: a date64 is a date there
    written = pq.read_schema(tmp_path / "t.parquet").field("x").type
    assert terms is None or written != kind


def test_one_broken_cell_changes_nothing_but_its_row(tmp_path: Path) -> None:
    """Asked as a user does, before and after the slower reader has taken over."""
    sound = BROKEN.view(pa.binary()).to_pylist()
    sound[100] = b"a"
    answers = []
    for name, cells in (("sound", sound), ("broken", BROKEN.view(pa.binary()).to_pylist())):
        table = pa.table({"who": list(range(300)), "k": pa.array(cells, pa.binary()).view(pa.string())})
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=100)
        known = {"k": dp.column("text", values=["a", "b"])}
        data = dp.open(tmp_path / f"{name}.parquet", protect=dp.each("who", at_most=1), columns=known)
        session = dp.Session(data, limit=dp.Limit.filter(epsilon=1e6), ledger=None)
        # the noise is 1/10,000 of a row: that it changes a rounded count has probability e^-5000
        asked = session.sql(f"SELECT k, COUNT(*) AS n FROM {name} GROUP BY k", epsilon=1e4)
        answers.append(dict(zip(asked.to_pandas()["k"], asked.to_pandas()["n"].round(), strict=True)))
    assert answers[0]["a"] - answers[1]["a"] == 1
    assert answers[0]["b"] == answers[1]["b"] == 199
