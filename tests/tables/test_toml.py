# SPDX-License-Identifier: Apache-2.0
"""A description says what it means, or is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from discreet.errors import BadDescription
from discreet.tables.algebra.engine import ROW
from discreet.tables.ask.start import Dataset
from discreet.tables.data import toml
from discreet.tables.data.dataset import Column, Each, Table

WHOLE = """
[dataset]
source = "visits.parquet"
name = "visits"
version = "2026-03"
unit = "patient_id"
relation = "add-remove"
word = "patient"
engine = "polars"

[limits]
rows_per_unit = 20
groups_per_unit = 3

[columns.days]
type = "int"
bounds = [0, 60]
source = "hospital rules"
null = false

[columns.cost]
type = "float"
bounds = [0, 500.5]
places = 10

[columns.ward]
type = "category"
values = "public:wards.ward"

[columns.born]
type = "date"
bounds = [1900-01-01, 2026-12-31]

[columns."seen at"]
bounds = [2020-01-01T00:00:00Z, 2026-12-31T23:59:59Z]
type = "timestamp"

[public.wards]
source = "wards.csv"

[public.wards.columns.beds]
type = "integer"

[budget]
epsilon = 1
delta = 1e-6
filter = "lanes"
per_analyst = { ana = 0.5, ben = 0.25 }
window = "30 days"
lifetime = { epsilon = 3.0, delta = 1e-5 }
ledger = "visits.ledger"
"""


def read(folder: Path, text: str) -> toml.DataDescription:
    path = folder / "clinic.toml"
    path.write_text(text, encoding="utf-8")
    return toml.read(path)


def refused(folder: Path, text: str) -> str:
    with pytest.raises(BadDescription) as wrong:
        read(folder, text)
    assert wrong.value.code == "DP403"
    return str(wrong.value)


def test_everything_that_can_be_said_is_understood(tmp_path):
    told = read(tmp_path, WHOLE)
    assert (told.name, told.version, told.engine) == ("visits", "2026-03", "polars")
    assert told.protect == Each("patient_id", 20, 3, "add-remove", "patient")
    visits, wards = told.private["visits"], told.public["wards"]
    assert visits.source == str(tmp_path / "visits.parquet")
    assert visits.columns["days"] == Column("days", "integer", (0, 60), source="hospital rules", null=False)
    assert visits.columns["cost"] == Column("cost", "real", (0, 500.5), places=10)
    assert visits.columns["born"].bounds == (date(1900, 1, 1), date(2026, 12, 31))
    assert visits.columns["seen at"].bounds[0] == datetime(2020, 1, 1, tzinfo=UTC)
    assert visits.borrowed == {"ward": "wards.ward"}
    assert wards.columns["beds"].kind == "integer"
    assert told.budget["ledger"] == str(tmp_path / "visits.ledger")
    assert told.budget["lifetime"] == {"epsilon": 3.0, "delta": 1e-5}


def test_little_is_enough(tmp_path):
    told = read(tmp_path, '[dataset]\nsource = "x.parquet"\neach_row = true\n')
    assert told.name == "clinic"
    assert told.protect == Each(None)
    assert told.version == ""
    assert dict(told.budget) == {}


def test_several_tables_have_a_section_each(tmp_path):
    told = read(
        tmp_path,
        """
        [dataset]
        unit = "patient_id"
        [limits]
        rows_per_unit = "auto"
        [tables.visits]
        source = "postgresql://localhost/clinic"
        table = "public.visits"
        [tables.visits.columns.days]
        bounds = [0, 60]
        [tables.patients]
        source = "patients.parquet"
        """,
    )
    assert list(told.private) == ["visits", "patients"]
    assert told.private["visits"].source == "postgresql://localhost/clinic"
    assert told.private["visits"].table == "public.visits"
    assert told.private["visits"].columns["days"].kind == ""
    assert told.protect.at_most == "auto"


HEAD = '[dataset]\nsource = "x.parquet"\nunit = "id"\n[limits]\nrows_per_unit = 5\n'


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ('[datset]\nsource = "x"', "dataset"),
        ('[dataset]\nsorce = "x"', "source"),
        (HEAD + "[limit]\n", "limits"),
        (HEAD.replace("rows_per_unit", "rows_per_units"), "rows_per_unit"),
        (HEAD + "[columns.days]\nbound = [0, 1]", "bounds"),
        (HEAD + '[columns.days]\ntype = "integr"', "integer"),
        (HEAD + "[public.wards]\nsourc = 1", "source"),
        (HEAD + "[budget]\nepsilom = 1", "epsilon"),
        (HEAD + '[budget]\nepsilon = 1\nfilter = "lane"', "tracks"),
    ],
)
def test_a_mistyped_description_is_refused_and_the_nearest_word_named(tmp_path, text, advice):
    fix = refused(tmp_path, text).split("Fix")[1]
    assert advice in fix


COLUMN = HEAD + "[columns.x]\n"


@pytest.mark.parametrize(
    "text",
    [
        "not toml at all",
        "dataset = 3",
        '[dataset]\nunit = "id"\n[limits]\nrows_per_unit = 5',  # no source
        '[dataset]\nsource = "x.parquet"',  # nobody is protected
        '[dataset]\nsource = "x.parquet"\nunit = "id"',  # no rows_per_unit
        '[dataset]\nsource = "x.parquet"\nunit = "id"\neach_row = true',
        '[dataset]\nsource = "x.parquet"\neach_row = 1',
        '[dataset]\nsource = ["x.parquet"]\neach_row = true',
        '[dataset]\nsource = ""\neach_row = true',
        '[dataset]\nsource = "x"\neach_row = true\nrelation = "swap"',
        '[dataset]\nsource = "x"\neach_row = true\nversion = 3',
        '[dataset]\nsource = "x"\neach_row = true\n[limits]\nrows_per_unit = 2',
        HEAD.replace("5", "0"),
        HEAD.replace("5", "-1"),
        HEAD.replace("5", "true"),
        HEAD.replace("5", "2.5"),
        HEAD.replace("5", "nan"),
        HEAD.replace("5", '"many"'),
        HEAD.replace("5", "99999999999999999999"),
        HEAD + "groups_per_unit = 0",
        HEAD + "[tables.a]\nsource = 'a.parquet'",  # source twice
        HEAD + "[columns]\nx = 3",
        COLUMN + 'type = "integer"\nbounds = []',
        COLUMN + 'type = "integer"\nbounds = [0]',
        COLUMN + 'type = "integer"\nbounds = [0, 1, 2]',
        COLUMN + 'type = "integer"\nbounds = "0-60"',
        COLUMN + 'type = "integer"\nbounds = [60, 0]',
        COLUMN + 'type = "integer"\nbounds = [5, 5]',
        COLUMN + 'type = "integer"\nbounds = [0.5, 2]',
        COLUMN + 'type = "integer"\nbounds = [false, true]',
        COLUMN + 'type = "integer"\nbounds = [0, 4611686018427387905]',
        COLUMN + 'type = "real"\nbounds = [nan, 1]',
        COLUMN + 'type = "real"\nbounds = [0, inf]',
        COLUMN + 'type = "real"\nbounds = [-1e300, 1e300]',
        COLUMN + 'type = "real"\nbounds = ["0", "1"]',
        COLUMN + 'type = "real"\nbounds = [0, 1]\nplaces = 63',
        COLUMN + 'type = "real"\nbounds = [0, 1000]\nplaces = 60',
        COLUMN + 'type = "real"\nplaces = 1.5',
        COLUMN + 'type = "integer"\nplaces = 2',
        COLUMN + 'type = "text"\nbounds = ["a", "z"]',
        COLUMN + 'type = "date"\nbounds = [0, 1]',
        COLUMN + 'type = "date"\nbounds = [2020-01-01T00:00:00Z, 2021-01-01T00:00:00Z]',
        COLUMN + 'type = "timestamp"\nbounds = [2020-01-01, 2021-01-01]',
        COLUMN + 'type = "text"\nvalues = []',
        COLUMN + 'type = "text"\nvalues = "north"',
        COLUMN + 'type = "text"\nvalues = ["a", "a"]',
        COLUMN + 'type = "text"\nvalues = ["a", 1]',
        COLUMN + 'type = "integer"\nvalues = [1, true]',
        COLUMN + 'type = "real"\nvalues = [1.0, 2.0]',
        COLUMN + "type = 7",
        COLUMN + 'null = "no"',
        COLUMN + "source = 5",
        HEAD + "[budget]\nepsilon = 0",
        HEAD + '[budget]\nepsilon = "1"',
        HEAD + "[budget]\nepsilon = nan",
        HEAD + "[budget]\nepsilon = true",
        HEAD + "[budget]\ndelta = 1e-6",
        HEAD + "[budget]\nepsilon = 1\ndelta = 1",
        HEAD + "[budget]\nepsilon = 1\nrho = 1",
        HEAD + '[budget]\nepsilon = 1\nwindow = "sometimes"',
        HEAD + "[budget]\nepsilon = 1\nwindow = 30",
        HEAD + "[budget]\nepsilon = 1\nlifetime = 3",
        HEAD + "[budget]\nepsilon = 1\nlifetime = { epsilon = -3 }",
        HEAD + "[budget]\nepsilon = 1\nper_analyst = 1.5",
        HEAD + "[budget]\nepsilon = 1\nper_analyst = { ana = 0 }",
        HEAD + "[budget]\nepsilon = 1\nledger = 3",
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, text):
    assert "Spent  nothing." in refused(tmp_path, text)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(BadDescription):
        toml.read(tmp_path / "nowhere.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadDescription):
        toml.read(tmp_path / "binary.toml")


def dataset(**other) -> Dataset:
    visits = {
        "patient id": Column("patient id", "integer"),
        "days": Column("days", "integer", (0, 60), source='the "rules",\n§ 3\\4 \x07'),
        "cost": Column("cost", "real", (-0.5, 1e6), places=3, null=False),
        "ward": Column("ward", "text", values=("Nørd", "süd", "")),
        "born": Column("born", "date", (date(1900, 1, 1), date(2026, 1, 1))),
        "seen": Column(
            "seen", "timestamp", (datetime(2020, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC))
        ),
        "ill": Column("ill", "boolean", values=(False, True)),
    }
    tables = {
        "visits": Table("visits", visits, "patient id", "/data/visits.parquet"),
        "wards": Table("wards", {"ward": Column("ward", "text")}, None, "/data/wards.csv"),
    }
    fields = {"protect": Each("patient id", 20, 4, "replace", "patient"), "version": "v1", **other}
    return Dataset("visits", tables, engine=None, **fields)


@pytest.mark.parametrize("limit", [20, "auto"])
def test_what_is_written_is_read_back(tmp_path, limit):
    budget = {"epsilon": 1.5, "delta": 1e-6, "per_analyst": {"ana b": 0.5}, "ledger": "/data/x.ledger"}
    data = dataset(protect=Each("patient id", limit, None, "add-remove"), budget=budget)
    told = read(tmp_path, data.to_toml())
    assert (told.name, told.version, told.protect) == (data.name, data.version, data.protect)
    assert told.private["visits"].columns == data.tables["visits"].columns
    assert told.private["visits"].source == "/data/visits.parquet"
    assert told.public["wards"].columns == data.tables["wards"].columns
    assert told.budget == budget


def test_several_tables_are_written_with_a_section_each(tmp_path):
    columns = {"id": Column("id", "integer"), "x.y": Column("x.y", "real", (0, 1))}
    tables = {name: Table(name, columns, "id", f"/data/{name}.csv") for name in ("a", "b c")}
    data = Dataset("clinic", tables, Each("id", 3), engine=None)
    told = read(tmp_path, data.to_toml())
    assert {name: place.columns for name, place in told.private.items()} == {"a": columns, "b c": columns}


def test_rows_that_are_protected_for_themselves_are_written_so(tmp_path):
    data = Dataset("x", {"x": Table("x", {"a": Column("a", "text")}, ROW, "/x.csv")}, Each(None), engine=None)
    assert read(tmp_path, data.to_toml()).protect == Each(None)
