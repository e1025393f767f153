# SPDX-License-Identifier: Apache-2.0
"""Every reader is total and local: whatever a cell holds there is an answer, and no other row is read differently.

Each row of a table of odd columns belongs to somebody else, and each is counted by itself: what is counted of two halves
of the rows, one after the other, is what is counted of all of them.
"""

from __future__ import annotations

from functools import cache

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import BadDescription
from discreet.tables.algebra.sums import BoundedSums, OnceScheme, Private
from discreet.tables.ask.columns import bounded_column, unbounded_column
from discreet.tables.ask.sql import parse
from discreet.tables.data.readers.sound import kind_of, sanitize
from discreet.tables.open import column, each, open  # noqa: A004 - as it is called
from discreet.tables.plan.compile import compile_question
from discreet.tables.plan.spend import Spend
from tests.tables import odd

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")

ENGINES = ["duckdb", "polars"]
BOUNDS = {kind: column(bounds=(-1000, 1000)) for kind in ("integer", "real")}
BOUNDS["decimal"] = column(bounds=(-1000, 1000), places=10)
SPEND = Spend(epsilon=1.0, delta=1e-6)


@cache
def odd_table() -> pa.Table:
    """A row for each person `who`, with a cell of every odd column."""
    columns = odd.columns()
    count = max(len(cells) for cells in columns.values())
    spread = {
        name: pa.chunked_array([odd.cell(cells, place) for place in range(count)])
        for name, cells in columns.items()
    }
    return pa.table({"who": pa.array(range(count), pa.int64()), **spread})


def is_kept(name, table) -> bool:
    """Whether a Parquet file can have such a column."""
    try:
        pq.write_table(table.select([name]), pa.BufferOutputStream())
    except pa.ArrowException:
        return False
    return True


def parquet(table, folder):
    table = table.select([name for name in table.column_names if is_kept(name, table)])
    half = table.num_rows // 2
    for number, part in enumerate((table[:half], table[half:])):
        pq.write_table(part, folder / f"part-{number}.parquet", row_group_size=3)
    return str(folder / "part-*.parquet")


def ipc(table, folder):
    with pa.ipc.new_file(str(folder / "t.arrow"), table.schema) as file:
        file.write_table(table)
    return folder / "t.arrow"


def pandas(table, _):
    return pd.DataFrame(
        {name: pd.arrays.ArrowExtensionArray(table.column(name)) for name in table.column_names}
    )


READERS = {"arrow": lambda table, _: table, "ipc": ipc, "parquet": parquet, "pandas": pandas}
PLACES = [(engine, reader) for engine in ENGINES for reader in READERS]


def opened(reader, engine, table, folder, protect=None):
    folder.mkdir(exist_ok=True)
    source = READERS[reader](table, folder)
    there = pq.read_schema(folder / "part-0.parquet").names if reader == "parquet" else table.column_names
    kinds = {field.name: kind_of(field.type) for field in table.schema if field.name in there}
    told = {name: BOUNDS[kind] for name, kind in kinds.items() if kind in BOUNDS}
    return open(source, protect or each("who", at_most=1), columns=told, name="t", engine=engine)


def counted(data):
    """The cell that each person has in each column, between its bounds and beyond them."""
    table, who = data.tables["t"], bounded_column(data.tables["t"], "who")
    names = [name for name, known in table.columns.items() if known.kind != "other" and name != "who"]
    return {
        name: [
            set(data.engine.sums(BoundedSums(Private("t"), (who, read(table, name)), (), OnceScheme())))
            for read in (bounded_column, unbounded_column)
        ]
        for name in names
    }


@pytest.mark.parametrize(("engine", "reader"), PLACES)
def test_every_cell_is_read_by_itself_and_none_makes_reading_fail(engine, reader, tmp_path):
    table = odd_table()
    whole = counted(opened(reader, engine, table, tmp_path / "whole"))
    assert len(whole) > 25
    parts = []
    for start in (0, 1):
        half = pa.concat_tables([table[place : place + 1] for place in range(start, table.num_rows, 2)])
        parts.append(counted(opened(reader, engine, half, tmp_path / f"half-{start}")))
    for name, answers in whole.items():
        for place, answer in enumerate(answers):
            assert answer == parts[0][name][place] | parts[1][name][place], name
            assert sorted(who for who, _ in answer) == list(range(table.num_rows)), name


def test_a_place_that_a_dictionary_does_not_have_is_null():
    places = pa.array([0, 1, 2, -1, 100, None], pa.int8())
    listed = pa.DictionaryArray.from_arrays(places, pa.array(["a", "b"]), safe=False)
    table = sanitize(pa.table({"v": listed}))
    assert table.column("v").to_pylist() == ["a", "b", None, None, None, None]


def test_all_engines_and_readers_read_the_same(tmp_path):
    found = {}
    for engine, reader in PLACES:
        found[engine, reader] = counted(opened(reader, engine, odd_table(), tmp_path / f"{engine}-{reader}"))
    first = found["duckdb", "arrow"]
    for place, answers in found.items():
        for name, answer in answers.items():
            # a file has only days of a date64, and only as many bytes of a decimal as its digits need
            if not (place[1] == "parquet" and name.startswith(("date64", "decimal"))):
                assert answer == first[name], (place, name)


def questions(name, kind):
    """Questions in which a column is a key, is counted, is aggregated, and decides which rows count."""
    counts = "COUNT(*) AS n, COUNT({0}) AS m"
    if kind in BOUNDS:
        number = "CLAMP({0}, -9, 9)"
        yield f"SELECT {counts}, SUM({number}) AS s, AVG({number}) AS a FROM t".format(name)
        yield f"SELECT MEDIAN({number}) AS q FROM t WHERE {{0}} > -1 OR {{0}} IS NULL".format(name)
    if kind in {"text", "integer", "boolean", "date"}:
        yield f"SELECT {{0}}, {counts} FROM t GROUP BY {{0}}".format(name)
    if kind == "text":
        yield f"SELECT {counts} FROM t WHERE {{0}} = 'a' OR {{0}} LIKE '%x%'".format(name)
    if kind in {"date", "timestamp"}:
        yield f"SELECT {counts} FROM t WHERE {{0}} < '2020-01-01'".format(name)
        yield f"SELECT EXTRACT(MONTH FROM {{0}}) AS k, {counts} FROM t GROUP BY k".format(name)


@pytest.mark.parametrize(("engine", "reader"), [(e, r) for e, r in PLACES if r in {"arrow", "parquet"}])
def test_every_question_has_an_answer_of_the_same_form(engine, reader, tmp_path):
    data = opened(reader, engine, odd_table(), tmp_path / "some")
    nobody = opened(reader, engine, odd_table()[:0], tmp_path / "none")
    asked = 0
    for name, known in data.tables["t"].columns.items():
        for text in () if name == "who" else questions(name, known.kind):
            answers = [
                compile_question(parse(text, one).question, one, SPEND).draw(one) for one in (data, nobody)
            ]
            assert answers[0].to_arrow().schema == answers[1].to_arrow().schema, text
            asked += 1
    assert asked > 50


@pytest.mark.parametrize(("engine", "reader"), PLACES)
def test_the_schema_alone_decides_whether_a_column_can_name_people(engine, reader, tmp_path):
    table = odd_table()
    for number, name in enumerate(table.column_names):
        if reader == "parquet" and not is_kept(name, table):
            continue
        outcomes = []
        for rows in (table, table[:0]):
            try:
                folder = tmp_path / f"{number}-{rows.num_rows}"
                data = opened(reader, engine, rows.select([name]), folder, each(name, at_most=1))
            except BadDescription as refused:
                outcomes.append(refused.code)
            else:
                count = data.engine.sums(BoundedSums(Private("t"), (), (), OnceScheme()))
                assert count[()][0] <= table.num_rows
                outcomes.append("opened")
        kinds = {"integer": "opened", "text": "opened", "decimal": "opened", "date": "opened"}
        assert outcomes == [kinds.get(kind_of(table.schema.field(name).type), "DP403")] * 2, name
