# SPDX-License-Identifier: Apache-2.0
"""A description is made from the schema; the rows could be anything."""

from __future__ import annotations

import builtins
import sqlite3
import tomllib
from datetime import date
from pathlib import Path

import pytest

from discreet.errors import BadDescription, EngineFailed
from discreet.tables.data.describe import describe
from discreet.tables.data.readers import schema

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
duckdb = pytest.importorskip("duckdb")

SECRET = "Methuselah"
COLUMNS = {
    "patient_id": [1, 2],
    "name": [SECRET, "b"],
    "age": [969.5, 1.0],
    "born": [date(1, 2, 3), None],
    "odd": [[1], [2]],
    "ill": [True, None],
}


def parquet(folder: Path, rows: int = 2) -> Path:
    path = folder / "visits.parquet"
    pq.write_table(pa.table({name: (cells * rows)[:rows] for name, cells in COLUMNS.items()}), path)
    return path


def test_a_description_has_names_and_types_and_leaves_the_rest_blank(tmp_path):
    text = describe(parquet(tmp_path))
    told = tomllib.loads(text)
    kinds = {name: column["type"] for name, column in told["columns"].items()}
    assert kinds == {
        "patient_id": "integer",
        "name": "text",
        "age": "real",
        "born": "date",
        "odd": "other",
        "ill": "boolean",
    }
    assert all(set(column) == {"type"} for column in told["columns"].values())
    assert set(told["dataset"]) == {"source", "name"}
    assert '# unit = "patient_id"' in text
    assert "# bounds = [ , ]" in text
    assert SECRET not in text
    assert "969" not in text


def test_the_description_of_other_rows_is_the_same(tmp_path):
    one = describe(parquet(tmp_path, 1))
    assert describe(parquet(tmp_path, 2)) == one


def test_row_groups_that_cannot_be_read_are_not_missed(tmp_path):
    path = parquet(tmp_path, 2)
    whole = describe(path)
    content = bytearray(path.read_bytes())
    footer = int.from_bytes(content[-8:-4], "little") + 8
    content[4 : len(content) - footer] = b"\xff" * (len(content) - footer - 4)
    path.write_bytes(content)
    with pytest.raises(Exception, match=r".+"):
        pq.read_table(path)
    assert describe(path) == whole


def test_of_a_text_file_only_the_first_line_is_read(tmp_path, monkeypatch):
    path = tmp_path / "visits.csv"
    path.write_text("patient_id,name\n" + f"1,{SECRET}\n" * 100_000, encoding="utf-8")
    read = []
    opener = Path.open

    class Watched:
        def __init__(self, file):
            self.file = file

        def readline(self, size=-1):
            read.append(self.file.readline(size))
            return read[-1]

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

    monkeypatch.setattr(Path, "open", lambda self, *how: Watched(opener(self, *how)))
    monkeypatch.setattr(builtins, "open", None)
    text = describe(path)
    assert read == [b"patient_id,name\n"]
    assert tomllib.loads(text)["columns"] == {"patient_id": {"type": "text"}, "name": {"type": "text"}}
    assert '# type = "integer"' in text


def test_a_pattern_is_described_by_its_first_file(tmp_path):
    parquet(tmp_path)
    told = tomllib.loads(describe(tmp_path / "*.parquet"))
    assert told["dataset"]["source"].endswith("*.parquet")
    assert told["dataset"]["name"] == "visits"


def test_arrow_files_and_databases_have_schemas_too(tmp_path):
    table = pa.table({"patient_id": [1], "ward": [SECRET]})
    with pa.ipc.new_file(str(tmp_path / "visits.arrow"), table.schema) as file:
        file.write_table(table)
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
        connection.execute("CREATE TABLE visits (patient_id BIGINT, ward TEXT)")
    expected = {"patient_id": {"type": "integer"}, "ward": {"type": "text"}}
    assert tomllib.loads(describe(tmp_path / "visits.arrow"))["columns"] == expected
    told = tomllib.loads(describe(tmp_path / "clinic.duckdb"))
    assert told["columns"] == expected
    assert told["dataset"]["table"] == "visits"


def test_what_is_no_table_is_refused(tmp_path):
    with pytest.raises(EngineFailed) as missing:
        describe(tmp_path / "nothing.parquet")
    assert missing.value.code == "DP802"
    for name, content in (
        ("a.parquet", b"no"),
        ("b.txt", b"x"),
        ("c.arrow", b"ARROW1"),
        ("d.duckdb", b"x" * 9000),
        ("empty.csv", b""),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(EngineFailed):
            describe(tmp_path / name)
    (tmp_path / "twice.csv").write_text("a,a\n1,2\n", encoding="utf-8")
    with pytest.raises(BadDescription) as wrong:
        describe(tmp_path / "twice.csv")
    assert wrong.value.code == "DP403"


def test_a_database_of_several_tables_asks_for_one(tmp_path):
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
        connection.execute("CREATE TABLE a (x INT); CREATE TABLE b (y INT)")
    with pytest.raises(BadDescription):
        describe(tmp_path / "clinic.duckdb")
    assert "[columns.y]" in describe(tmp_path / "clinic.duckdb", table="b")


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    (tmp_path / "a.tsv").write_text("\ufeffid\tname\n", encoding="utf-8")
    assert schema.header(tmp_path / "a.tsv") == ["id", "name"]


def test_a_table_of_sqlite_is_what_was_declared(tmp_path):
    with sqlite3.connect(tmp_path / "clinic.sqlite") as connection:
        connection.execute(
            "CREATE TABLE visits (patient_id INTEGER, ward VARCHAR(9), cost DOUBLE, day DATE, ok BOOL, x)"
        )
        connection.execute("INSERT INTO visits VALUES ('seven', 7, 'a lot', 'never', 'so', x'00')")
    told = tomllib.loads(describe(tmp_path / "clinic.sqlite"))["columns"]
    kinds = {name: column["type"] for name, column in told.items()}
    assert kinds == {
        "patient_id": "integer",
        "ward": "text",
        "cost": "real",
        "day": "date",
        "ok": "boolean",
        "x": "text",
    }
