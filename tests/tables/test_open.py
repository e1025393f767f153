# SPDX-License-Identifier: Apache-2.0
"""Whatever a table lies in, it is opened by its schema, and its rows are counted as they are."""

from __future__ import annotations

import sqlite3
from datetime import date
from fractions import Fraction

import pytest

from discreet.errors import BadDescription, BadParameter, DiscreetError, EngineFailed
from discreet.tables.algebra.engine import ROW
from discreet.tables.algebra.sums import BoundedSums, OnceScheme, Private, RowScheme
from discreet.tables.ask.columns import bounded_column
from discreet.tables.ask.start import Dataset
from discreet.tables.data.dataset import Column, Each, Table
from discreet.tables.data.readers import texts
from discreet.tables.open import column, each, each_row, open  # noqa: A004 - as it is called

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")

ROWS = {"patient_id": [1, 1, 2, None], "days": [3, 90, 7, 1], "ward": ["A", "A", "B", "B"]}
PATIENT = each("patient_id", at_most=20)
DAYS = {"days": column(bounds=(0, 60))}
#: patients of each ward, and the days (moved between 0 and 60) of everybody who has a name
UNITS, DAYS_IN_ALL = {("A",): (1,), ("B",): (1,)}, 70


def counted(data: Dataset, table: str = "visits") -> tuple[dict, int]:
    told = data.tables[table]
    units = data.engine.sums(BoundedSums(Private(table), (bounded_column(told, "ward"),), (), OnceScheme()))
    total = data.engine.sums(
        BoundedSums(Private(table), (), (bounded_column(told, "days"),), RowScheme(20, 1))
    )
    return units, total[()][0]


def arrow() -> pa.Table:
    return pa.table(ROWS)


@pytest.fixture
def files(tmp_path):
    pq.write_table(arrow(), tmp_path / "visits.parquet")
    for part, at in (("1", slice(0, 2)), ("2", slice(2, 4))):
        pq.write_table(arrow()[at], tmp_path / f"part-{part}.parquet")
    with pa.ipc.new_file(str(tmp_path / "visits.arrow"), arrow().schema) as file:
        file.write_table(arrow())
    lines = ["patient_id{0}days{0}ward", "1{0}3{0}A", "1{0}90{0}A", "2{0}7{0}B", "{0}1{0}B"]
    for suffix, delimiter in (("csv", ","), ("tsv", "\t")):
        text = "\n".join(line.format(delimiter) for line in lines)
        (tmp_path / f"visits.{suffix}").write_text(text, encoding="utf-8")
    with duckdb.connect(str(tmp_path / "visits.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT * FROM read_parquet(?)", [str(tmp_path / "visits.parquet")]
        )
    with sqlite3.connect(tmp_path / "visits.sqlite") as connection:
        connection.execute("CREATE TABLE visits (patient_id INTEGER, days INTEGER, ward TEXT)")
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?)", list(zip(*ROWS.values(), strict=True)))
    return tmp_path


@pytest.mark.parametrize(
    "name", ["visits.parquet", "part-*.parquet", "visits.arrow", "visits.duckdb", "visits.sqlite"]
)
@pytest.mark.parametrize("engine", [None, "polars"])
def test_files_are_opened_by_their_schema(files, name, engine):
    if engine and name.endswith("duckdb"):
        with pytest.raises(BadParameter, match="cannot read"):
            open(files / name, PATIENT, engine=engine)
        return
    data = open(str(files / name), PATIENT, columns=DAYS, name="visits", engine=engine)
    assert data.tables["visits"].columns["patient_id"].kind == "integer"
    assert data.engine.name == (engine or "duckdb")
    assert counted(data) == (UNITS, DAYS_IN_ALL)


@pytest.mark.parametrize("engine", [None, "polars"])
@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_a_text_file_is_text_until_somebody_says_otherwise(files, suffix, engine):
    path = files / f"visits.{suffix}"
    plain = open(path, PATIENT, engine=engine)
    assert {told.kind for told in plain.tables["visits"].columns.values()} == {"text"}
    told = {"days": column("integer", bounds=(0, 60)), "patient_id": column("integer")}
    data = open(path, PATIENT, columns=told, engine=engine)
    assert data.tables["visits"].columns["patient_id"].kind == "integer"
    assert counted(data) == (UNITS, DAYS_IN_ALL)


def test_no_cell_of_a_text_file_makes_it_fail_or_decides_a_type(tmp_path):
    lines = [
        "id,n,x,d,t,b,s",
        "1,7,1.5,2020-02-29,2020-02-29T12:00:00Z,true,plain",
        "2,seven,much,yesterday,noon,maybe,",
        '3, 7,nan,2020-02-30,2020-13-01,2,"quo""ted, and long"',
        "4",
        '4,7,1,2020-01-01,2020-01-01 00:00:00,true,"over two',
        'lines"',
        "5,1,2,2020-01-01,2020-01-01 00:00:00,false,x,too,much",
        "6,99999999999999999999,1e999,99999-01-01,x,x,y",
        "",
    ]
    path = tmp_path / "nasty.csv"
    path.write_bytes("\n".join(lines).encode() + b"\n7,1,1,1,1,1,\xff\xfe\n")
    kinds = {
        "id": "integer",
        "n": "integer",
        "x": "real",
        "d": "date",
        "t": "timestamp",
        "b": "boolean",
        "s": "text",
    }
    table = texts.from_text_files([path], {name: column(kind) for name, kind in kinds.items()})
    rows = {row["id"]: row for row in table.to_pylist() if row["id"] is not None}
    assert set(rows) == {1, 2, 3, 6, 7}
    assert (
        table.num_rows == len(lines) - 1
    )  # one for each line but the first and the empty one, and one for the last
    assert (rows[1]["n"], rows[1]["x"], rows[1]["d"], rows[1]["b"]) == (7, 1.5, date(2020, 2, 29), True)
    assert all(rows[2][name] is None for name in "nxdtbs")
    assert rows[3]["n"] is None
    assert rows[3]["d"] is None
    assert rows[3]["s"] == 'quo"ted, and long'
    assert rows[6]["n"] is None
    assert (rows[7]["n"], rows[7]["s"]) == (1, None)
    malformed = [row for row in table.to_pylist() if row["id"] is None]
    assert len(malformed) == 4
    assert all(cell is None for row in malformed for cell in row.values())
    clean = texts.from_text_files([path], {})
    assert [str(field.type) for field in clean.schema] == ["large_string"] * 7
    nobody = tmp_path / "empty.csv"
    nobody.write_text(lines[0] + "\n", encoding="utf-8")
    empty = texts.from_text_files([nobody], {name: column(kind) for name, kind in kinds.items()})
    assert empty.schema == table.schema


def test_text_files_that_belong_together_have_the_same_columns(tmp_path):
    for name, text in (("a.csv", "id,n\n1,2\n"), ("b.csv", "id,n\n3,4\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    both = texts.from_text_files([tmp_path / "a.csv", tmp_path / "b.csv"], {})
    assert both.column("n").to_pylist() == ["2", "4"]
    (tmp_path / "b.csv").write_text("n,id\n4,3\n", encoding="utf-8")
    with pytest.raises(BadDescription, match="different columns"):
        open(tmp_path / "*.csv", each("id", at_most=1))


def test_a_path_may_look_like_a_pattern(tmp_path):
    (tmp_path / "data[1]").mkdir()
    (tmp_path / "data[1]" / "a.csv").write_text("id\n7\n", encoding="utf-8")
    assert open(tmp_path / "data[1]" / "a.csv", each("id", at_most=1)).name == "a"


def frames():
    yield "arrow", arrow()
    yield "pandas", pd.DataFrame({name: pd.array(cells) for name, cells in ROWS.items()})
    yield (
        "objects",
        pd.DataFrame(
            {
                **ROWS,
                "patient_id": pd.array(ROWS["patient_id"]),
                "ward": pd.Series(ROWS["ward"], dtype=object),
            }
        ),
    )
    yield (
        "categories",
        pd.DataFrame(
            {**ROWS, "patient_id": pd.array(ROWS["patient_id"]), "ward": pd.Categorical(ROWS["ward"])}
        ),
    )
    yield "polars", pl.DataFrame(ROWS)
    yield "lazy", pl.LazyFrame(ROWS)


@pytest.mark.parametrize("kind", [kind for kind, _ in frames()])
def test_frames_are_opened_by_their_schema(kind):
    data = open(dict(frames())[kind], PATIENT, columns=DAYS, name="visits")
    assert data.engine.name == ("polars" if kind in {"polars", "lazy"} else "duckdb")
    assert {name: told.kind for name, told in data.tables["visits"].columns.items()} == {
        "patient_id": "integer",
        "days": "integer",
        "ward": "text",
    }
    assert counted(data) == (UNITS, DAYS_IN_ALL)


@pytest.mark.parametrize("kind", ["polars", "lazy"])
def test_a_polars_frame_may_be_counted_by_duckdb(kind):
    data = open(dict(frames())[kind], PATIENT, columns=DAYS, name="visits", engine="duckdb")
    assert data.engine.name == "duckdb"
    assert counted(data) == (UNITS, DAYS_IN_ALL)


def test_a_duckdb_connection_is_opened_by_table_or_by_relation():
    connection = duckdb.connect()
    connection.register("rows", arrow())
    connection.execute("CREATE TABLE visits AS SELECT * FROM rows")
    for source in (
        (connection, "visits"),
        connection.table("visits"),
        connection.sql("SELECT * FROM visits"),
    ):
        data = open(source, PATIENT, columns=DAYS, name="visits")
        assert counted(data) == (UNITS, DAYS_IN_ALL)


def test_the_type_of_a_pandas_column_of_objects_does_not_depend_on_its_cells():
    mixed = pd.DataFrame({"id": pd.Series([7, "7", 7.0, None], dtype=object)})
    table = texts.from_pandas(mixed)
    assert (
        table.schema == texts.from_pandas(mixed.iloc[:0]).schema == texts.from_pandas(mixed.iloc[:1]).schema
    )
    assert table.column("id").to_pylist() == [None, "7", None, None]
    numbers = pd.DataFrame({"c": pd.Categorical([1, None, 2])})
    assert texts.from_pandas(numbers).column("c").to_pylist() == [1, None, 2]


def test_several_tables_and_public_ones(files):
    patients = pa.table({"patient_id": [1, 2], "born": [1950, 2001]})
    wards = files / "wards.csv"
    wards.write_text("ward,beds\nA,10\nB,20\n", encoding="utf-8")
    data = open(
        {"visits": files / "visits.parquet", "patients": patients},
        PATIENT,
        columns={
            "visits": DAYS,
            "patients": {"born": column(bounds=(1900, 2026))},
            "wards": {"beds": column("integer")},
        },
        public={"wards": wards},
        name="clinic",
    )
    assert data.name == "clinic"
    assert [data.tables[name].private for name in ("visits", "patients", "wards")] == [True, True, False]
    assert data.tables["wards"].columns["beds"].kind == "integer"
    assert data.engine.values("wards", ("ward", "beds")) == [("A", 10), ("B", 20)]
    assert counted(data) == (UNITS, DAYS_IN_ALL)


def test_every_row_may_be_a_unit_of_its_own():
    data = open(arrow(), each_row(word="visit"), columns=DAYS, name="visits")
    assert data.tables["visits"].unit == ROW
    assert data.unit.protects == "visit"
    assert counted(data) == ({("A",): (2,), ("B",): (2,)}, 71)


TOML = """
[dataset]
source = "visits.parquet"
name = "visits"
version = "2026-03"
unit = "patient_id"

[limits]
rows_per_unit = 20

[columns.days]
bounds = [0, 60]
source = "hospital rules"

[columns.ward]
values = "public:wards.ward"

[public.wards]
source = "wards.csv"

[budget]
epsilon = 1.0
ledger = "visits.ledger"
"""


def test_a_description_is_opened_from_where_it_lies(files, monkeypatch):
    (files / "visits.toml").write_text(TOML, encoding="utf-8")
    (files / "wards.csv").write_text("ward\nB\nA\n\n", encoding="utf-8")
    monkeypatch.chdir("/")
    data = open(files / "visits.toml")
    assert data.tables["visits"].columns["ward"].values == ("A", "B")
    assert data.tables["visits"].columns["days"] == Column(
        "days", "integer", (0, 60), source="hospital rules"
    )
    assert (data.version, data.budget["ledger"]) == ("2026-03", str(files / "visits.ledger"))
    assert counted(data) == (UNITS, DAYS_IN_ALL)
    (files / "again.toml").write_text(data.to_toml(), encoding="utf-8")
    again = open(files / "again.toml")
    assert again.tables == data.tables
    assert (again.protect, again.budget, again.name) == (data.protect, data.budget, data.name)


@pytest.mark.parametrize(
    "where", ["private:wards.ward", "public:nothing.ward", "public:wards.nothing", "public:visits.ward"]
)
def test_categories_are_borrowed_from_public_columns_only(files, where):
    (files / "wards.csv").write_text("ward\nB\nA\n", encoding="utf-8")
    (files / "visits.toml").write_text(TOML.replace("public:wards.ward", where), encoding="utf-8")
    with pytest.raises(BadDescription) as wrong:
        open(files / "visits.toml")
    assert wrong.value.code == "DP403"


def test_what_a_description_says_is_not_said_again(files):
    (files / "visits.toml").write_text(TOML, encoding="utf-8")
    with pytest.raises(BadParameter, match="protect cannot be passed"):
        open(files / "visits.toml", PATIENT)


def test_nobody_is_protected_by_accident(files):
    with pytest.raises(BadParameter) as missing:
        open(str(files / "visits.parquet"))
    assert missing.value.code == "DP107"
    assert 'protect=dp.each("patient_id", at_most=20)' in missing.value.fix
    with pytest.raises(BadParameter, match="at_most is missing"):
        each("patient_id")


@pytest.mark.parametrize(
    ("ids", "others"),
    [([7], ["7"]), ([7], [7.0]), (["7"], [7.0]), ([7], [Fraction(7).limit_denominator() > 1])],
)
def test_a_person_is_told_by_one_type_in_all_tables(ids, others):
    with pytest.raises(BadDescription) as wrong:
        open({"a": pa.table({"id": ids}), "b": pa.table({"id": others})}, each("id", at_most=1))
    assert wrong.value.code == "DP403"


def test_a_person_is_never_told_by_a_real_number():
    with pytest.raises(BadDescription, match="real number"):
        open(pa.table({"id": [7.0, 7.5]}), each("id", at_most=1))


def test_a_description_of_the_unit_cannot_hide_its_type():
    with pytest.raises(BadDescription):
        open(pa.table({"id": ["7"]}), each("id", at_most=1), columns={"id": column("integer")})


@pytest.mark.parametrize(
    ("columns", "advice"),
    [
        ({"dayz": column(bounds=(0, 60))}, "days"),
        ({"ward": column("integer")}, None),
        ({"days": column("text")}, "integer"),
        ({"days": column("date")}, "integer"),
        ({"days": (0, 60)}, "dp.column"),
        ({"days": {"bounds": (0, 60)}}, "dp.column"),
    ],
)
def test_a_description_fits_the_schema_or_is_refused(columns, advice):
    if advice is None:  # numbers that are kept as text are read as numbers
        assert open(arrow(), PATIENT, columns=columns).tables["data"].columns["ward"].kind == "integer"
        return
    with pytest.raises(BadDescription) as wrong:
        open(arrow(), PATIENT, columns=columns)
    assert advice in wrong.value.fix


WRONG = {
    "DP102": [
        lambda: each("id", at_most=0),
        lambda: each("id", at_most=-1),
        lambda: each("id", at_most=10**16),
    ],
    "DP103": [
        lambda: each("id", at_most=2.5),
        lambda: each("id", at_most=True),
        lambda: each("id", at_most="many"),
    ],
    "DP104": [
        lambda: each("", at_most=1),
        lambda: each(7, at_most=1),
        lambda: open(object(), PATIENT),
        lambda: open((object(), "visits"), PATIENT),
        lambda: open([1, 2], PATIENT),
        lambda: open(pd.DataFrame({1: [2]}), PATIENT),
        lambda: open(pd.DataFrame([[1, 2]], columns=["a", "a"]), PATIENT),
    ],
    "DP105": [
        lambda: each("id", at_most=1, relation="swap"),
        lambda: open(arrow(), PATIENT, engine="abacus"),
    ],
    "DP107": [lambda: open(arrow()), lambda: open("postgresql://nowhere/x", PATIENT), lambda: Each(None, 2)],
    "DP403": [
        lambda: open(arrow(), each("patient", at_most=1)),
        lambda: Table("x", {name: Column(name, "integer") for name in ("id", "a", "A")}, "id"),
        lambda: open({}, PATIENT),
        lambda: open(arrow(), PATIENT, public={"data": arrow()}),
        lambda: open(arrow(), PATIENT, budget={"epsilon": -1}),
        lambda: column("integr"),
        lambda: column("integer", bounds=(1, 0)),
        lambda: column("integer", bounds=(0, float("nan"))),
        lambda: column("text", values=["a", "a"]),
        lambda: column("real", bounds=(0, 1), places=True),
        lambda: column(source=""),
        lambda: column(null="no"),
        lambda: Table("", {}),
        lambda: Dataset("x", {"x": Table("x", {})}, Each(None), engine=None),
    ],
    "DP802": [lambda: open("nowhere.parquet", PATIENT), lambda: open("nowhere.duckdb", PATIENT, table="x")],
}


@pytest.mark.parametrize(
    ("code", "at"), [(code, at) for code, all_ in WRONG.items() for at in range(len(all_))]
)
def test_mistakes_are_refused_with_their_code(code, at, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DiscreetError) as wrong:
        WRONG[code][at]()
    assert wrong.value.code == code
    assert wrong.value.spent == "nothing"


@pytest.mark.parametrize("name", ["visits.parquet", "visits.arrow", "visits.duckdb", "visits.sqlite"])
def test_a_file_that_is_something_else_is_refused_without_a_word_of_it(tmp_path, name):
    (tmp_path / name).write_bytes(b"secret " * 1000)
    with pytest.raises(EngineFailed) as failed:
        open(tmp_path / name, PATIENT, table="visits")
    assert failed.value.code == "DP802"
    assert "secret" not in str(failed.value)
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None


def test_the_portrait_shows_the_description_and_what_is_missing():
    told = {**DAYS, "ward": column(values=["A", "<B>"], source="a map"), "cost": column()}
    table = arrow().append_column("cost", pa.array([1.5] * 4)).append_column("odd", pa.array([[1]] * 4))
    data = open(table, each("patient_id", 20, word="patient"), columns=told, name="visits", version="v1")
    text, page = str(data), data._repr_html_()
    for words in ("visits v1", "each patient", "one patient added or removed", "20 rows", "0 … 60", "a map"):
        assert words in text
        assert words in page
    assert "No bounds are declared for cost." in text
    assert "bounds or values of days." in text
    assert "have a type that cannot be used: odd." in text
    assert "&lt;B&gt;" in page
    assert repr(data) == "<Dataset visits: visits; protects each patient>"
    rows = open(table, each_row(), name="visits")
    assert "Every row is its own unit" in str(rows)
    assert "chosen privately" in str(open(table, each("patient_id", "auto"), name="visits"))


def test_the_portrait_does_not_depend_on_the_rows():
    def portrait(rows):
        data = open(arrow()[:rows], PATIENT, columns=DAYS, name="visits")
        return str(data), data._repr_html_(), repr(data), data.to_toml()

    assert portrait(0) == portrait(2) == portrait(4)
