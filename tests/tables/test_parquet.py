# SPDX-License-Identifier: Apache-2.0
"""Of Parquet files their columns count, and nothing that a folder or another file is called or holds."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import BadDescription, BadParameter, DiscreetError, EngineFailed
from discreet.tables.algebra.sums import BoundedSums, OnceScheme, Private, RowScheme
from discreet.tables.ask.columns import bounded_column
from discreet.tables.data.readers.parquet import Parquet
from discreet.tables.open import column, each, each_row, open  # noqa: A004 - as it is called

pytest.importorskip("duckdb")
pytest.importorskip("polars")

BOTH = pytest.mark.parametrize("engine", ["duckdb", "polars"])
ROWS = BoundedSums(Private("t"), (), (), OnceScheme())


def write(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def people(data):
    """How many units there are."""
    return data.engine.sums(ROWS)[()][0]


@BOTH
def test_the_name_of_a_folder_does_not_replace_a_column(engine, tmp_path):
    for place in range(5):
        write(tmp_path / f"patient={place}" / "part.parquet", patient=[7], ward=["a"])
    source = tmp_path / "*" / "*.parquet"
    data = open(source, each("patient", at_most=1), name="t", engine=engine)
    assert list(data.tables["t"].columns) == ["patient", "ward"]
    assert people(data) == 1
    described = open(source, each("patient", 1), columns={"patient": column()}, name="t", engine=engine)
    assert people(described) == 1


@BOTH
def test_a_folder_is_a_column_where_the_description_names_it(engine, tmp_path):
    for place, year in enumerate(("2024", "2025", "x%20y", "__HIVE_DEFAULT_PARTITION__")):
        write(tmp_path / f"year={year}" / f"month={place}" / "part.parquet", id=[place])
    source = str(tmp_path / "**" / "*.parquet")
    plain = open(source, each("id", at_most=1), name="t", engine=engine)
    assert list(plain.tables["t"].columns) == ["id"]
    told = {"year": column("integer", bounds=(2000, 2030)), "month": column("text")}
    data = open(source, each("id", at_most=1), columns=told, name="t", engine=engine)
    assert {name: one.kind for name, one in data.tables["t"].columns.items()} == {
        "id": "integer",
        "year": "integer",
        "month": "text",
    }
    keys = tuple(bounded_column(data.tables["t"], name) for name in ("year", "month"))
    found = data.engine.sums(BoundedSums(Private("t"), keys, (), OnceScheme()))
    assert set(found) == {(2024, "0"), (2025, "1"), (None, "2"), (None, "3")}
    with pytest.raises(BadDescription, match="no such column"):
        open(source, each("id", at_most=1), columns={"day": column("integer")}, engine=engine)


@BOTH
def test_people_may_be_told_by_folders(engine, tmp_path):
    for name in ("ann", "bob"):
        write(tmp_path / f"who={name}" / "part.parquet", n=[1, 2])
    data = open(tmp_path / "*" / "*.parquet", each("who", at_most=1), name="t", engine=engine)
    assert data.tables["t"].columns["who"].kind == "text"
    assert people(data) == 2


@BOTH
def test_files_that_belong_together_have_the_same_columns_and_types(engine, tmp_path):
    write(tmp_path / "a.parquet", id=pa.array([1], pa.int64()), s=["x"])
    write(tmp_path / "b.parquet", s=pa.array(["y"]).dictionary_encode(), id=pa.array([2], pa.int64()))
    source = tmp_path / "*.parquet"
    data = open(source, each("id", at_most=1), name="t", engine=engine)
    keys = (bounded_column(data.tables["t"], "s"),)
    assert data.engine.sums(BoundedSums(Private("t"), keys, (), OnceScheme())) == {("x",): (1,), ("y",): (1,)}
    for other in (
        {"id": pa.array([2], pa.int32()), "s": ["y"]},
        {"id": [2]},
        {"id": [2], "s": ["y"], "more": [1]},
        {"id": ["Ann"], "s": ["y"]},
    ):
        write(tmp_path / "b.parquet", **other)
        with pytest.raises(BadDescription, match="different columns") as refused:
            open(source, each("id", at_most=1), engine=engine)
        assert "Ann" not in str(refused.value)


@BOTH
def test_a_path_that_looks_like_a_pattern_is_that_file_and_stays_as_it_was(engine, tmp_path):
    path = tmp_path / "data[1]" / "t.parquet"
    write(path, id=[1, 2])
    write(tmp_path / "data1" / "t.parquet", id=[1, 2, 3])
    data = open(path, each("id", at_most=1), name="t", engine=engine)
    assert people(data) == 2
    write(path, id=[1, 2, 3, 4])
    with pytest.raises(EngineFailed, match="changed"):
        data.engine.sums(
            BoundedSums(Private("t"), (), (bounded_column(data.tables["t"], "id", (0, 1)),), RowScheme(1, 1))
        )


@BOTH
def test_a_table_of_columns_that_nobody_can_ask_about_has_its_rows(engine, tmp_path):
    write(tmp_path / "t.parquet", blob=pa.array([b"\xff", None, b"x"], pa.binary()))
    assert people(open(tmp_path / "t.parquet", each_row(), name="t", engine=engine)) == 3


def test_files_of_several_kinds_are_not_mixed(tmp_path):
    write(tmp_path / "t.parquet", id=[1])
    (tmp_path / "t.csv").write_text("id\n1\n", encoding="utf-8")
    with pytest.raises(EngineFailed, match="different formats"):
        open(tmp_path / "t.*", each("id", at_most=1))


def test_a_file_with_two_columns_of_one_name_is_refused(tmp_path):
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["id", "id"]), tmp_path / "t.parquet")
    two = pa.table([pa.array([1]), pa.array([2])], names=["id", "id"])
    for source in (tmp_path / "t.parquet", two):
        with pytest.raises(DiscreetError) as refused:
            open(source, each("id", at_most=1))
        assert refused.value.code == "DP403"


def test_only_columns_that_are_needed_are_read(tmp_path):
    write(tmp_path / "t.parquet", id=[1], s=["x"], n=[2])
    files = Parquet.of([tmp_path / "t.parquet"])
    assert [batch.column_names for batch in files.batches(["n"])] == [["n"]]
    assert files.table().to_pylist() == [{"id": 1, "s": "x", "n": 2}]
    assert files.empty().schema == files.table().schema


def test_a_database_does_not_take_a_file(tmp_path):
    write(tmp_path / "t.parquet", id=[1])
    with pytest.raises(BadParameter, match="cannot read"):
        open(tmp_path / "t.parquet", each("id", at_most=1), engine="postgres")
