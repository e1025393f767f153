# SPDX-License-Identifier: Apache-2.0
"""Frames and database files with cells that their columns were not made for: total, local, and of types that rows do not decide."""

from __future__ import annotations

import math
import sqlite3
from datetime import date, datetime, timedelta
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import BadDescription, DiscreetError
from discreet.tables.algebra.sums import BoundedSums, OnceScheme, Private
from discreet.tables.algebra.types import days
from discreet.tables.ask.columns import unbounded_column
from discreet.tables.data.readers import texts
from discreet.tables.open import column, each, open  # noqa: A004 - as it is called

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")

WIDE = 2**63


def cells(data, name="v"):
    """The cell of each person."""
    table = data.tables["t"]
    keys = (unbounded_column(table, "who"), unbounded_column(table, name))
    found = data.engine.sums(BoundedSums(Private("t"), keys, (), OnceScheme()))
    assert set(found.values()) <= {(1,)}
    by_person = dict(found.keys())
    assert len(by_person) == len(found)
    return by_person


# --- pandas ----------------------------------------------------------------------------------------


class Strange(str):
    """A text that says it is another one."""

    __slots__ = ()

    def __str__(self):
        return "somebody else"

    def __eq__(self, other):
        raise ValueError(str(other))

    __hash__ = str.__hash__


def series():
    """Columns of a pandas frame, and whether anything can be asked about them."""
    moments = np.array([-WIDE, -WIDE + 1, WIDE - 1, 0, 10**16], np.int64)
    yield (
        "objects",
        [
            None,
            "a",
            "\ud800",
            "a\udfffb",
            7,
            7.5,
            b"\xff",
            [1],
            {"a": 1},
            object(),
            Strange("x"),
            np.nan,
            "\x00",
        ],
    )
    yield "str", pd.Series(["a", None, "\x00"], dtype="str")
    yield "string", pd.Series(["a", None], dtype=pd.StringDtype("python"))
    yield "categories", pd.Categorical.from_codes([0, 1, -1, 2], pd.Index(["a", "b", "\ud800"], dtype=object))
    yield "numbers", pd.Categorical([1, 2, None])
    yield "truths", pd.array([True, False, None], "boolean")
    yield "wholes", pd.array([1, None, WIDE - 1], "Int64")
    yield "reals", np.array([np.nan, np.inf, -0.0, 5e-324])
    yield "halves", np.array([np.nan, np.inf, 1], np.float16)
    for unit in ("s", "ms", "us", "ns"):
        yield f"moments {unit}", moments.view(f"M8[{unit}]")
        yield (
            f"zoned {unit}",
            pd.Series(moments.view(f"M8[{unit}]")).dt.tz_localize("UTC").dt.tz_convert("Asia/Kolkata"),
        )
    yield "days", pd.Series([date(1, 1, 1), date(9999, 12, 31), "x"], dtype=object)


def odd_series():
    yield "complex", np.array([1j, complex(np.nan, np.inf)])
    yield "durations", np.array([-WIDE, WIDE - 1], np.int64).view("m8[ns]")
    yield "periods", pd.period_range("2020-01", periods=3, freq="M")
    yield "intervals", pd.interval_range(0, 3)
    yield "sparse", pd.arrays.SparseArray([0, 0, 1])
    yield "long", np.array([1, 2], np.longdouble)
    yield "bytes", np.array([b"\xff", b"a"], "S3")


def frame(values):
    told = pd.Series(list(values), dtype=object) if isinstance(values, list) else pd.Series(values)
    return pd.DataFrame({"who": np.arange(len(told)), "v": told.reset_index(drop=True)})


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize("name", [name for name, _ in series()])
def test_every_cell_of_a_pandas_frame_is_read_by_itself(name, engine):
    whole = frame(dict(series())[name])
    protect = each("who", at_most=1)
    found = cells(open(whole, protect, name="t", engine=engine))
    assert sorted(found) == list(range(len(whole)))
    types = texts.from_pandas(whole).schema
    for place in range(len(whole)):
        alone = whole.iloc[place : place + 1]
        assert texts.from_pandas(alone).schema == types
        assert cells(open(alone, protect, name="t", engine=engine)).items() <= found.items()
    assert texts.from_pandas(whole.iloc[:0]).schema == types


def test_what_is_no_text_in_a_pandas_frame_is_null():
    table = texts.from_pandas(frame(dict(series())["objects"]))
    found = dict(enumerate(table.column("v").to_pylist()))
    assert {place: cell for place, cell in found.items() if cell is not None} == {1: "a", 10: "x", 12: "\x00"}
    assert texts.from_pandas(frame(dict(series())["categories"])).column("v").to_pylist() == [
        "a",
        "b",
        None,
        None,
    ]


@pytest.mark.parametrize("name", [name for name, _ in odd_series()])
def test_a_pandas_column_of_another_type_is_there_and_not_looked_at(name):
    whole = frame(dict(odd_series())[name])
    for rows in (whole, whole.iloc[:0]):
        data = open(rows, each("who", at_most=1), name="t")
        assert data.tables["t"].columns["v"].kind in {"other", "text"}
        with pytest.raises(BadDescription):
            open(rows[["v"]].astype(whole["v"].dtype), each("v", at_most=1), columns={"v": column("integer")})


# --- Polars ----------------------------------------------------------------------------------------


def test_every_cell_of_a_polars_frame_is_read_by_itself():
    ends = pl.Series([-WIDE, WIDE - 1, 0, None], dtype=pl.Int64)
    columns = {
        **{f"at_{unit}": ends.cast(pl.Datetime(unit)) for unit in ("ms", "us", "ns")},
        **{f"zoned_{unit}": ends.cast(pl.Datetime(unit, "Asia/Kolkata")) for unit in ("ms", "us", "ns")},
        "day": pl.Series([-(2**31), 2**31 - 1, 0, None], dtype=pl.Int32).cast(pl.Date),
        "wide": pl.Series([-(2**127), 2**127 - 1, 0, None], dtype=pl.Int128),
        "real": pl.Series([float("nan"), float("inf"), -0.0, 5e-324]),
        "text": pl.Series(["\x00", "", "a", None]),
        "kind": pl.Series(["\x00", "", "a", None], dtype=pl.Categorical),
    }
    whole = pl.DataFrame({"who": range(4), **columns})
    protect = each("who", at_most=1)
    for engine in ("polars", "duckdb"):
        kept = whole if engine == "polars" else whole.drop("wide")
        data = open(kept, protect, name="t", engine=engine)
        for name in kept.columns[1:]:
            found = cells(data, name)
            assert sorted(found) == [0, 1, 2, 3]
            for place in range(4):
                alone = open(kept[place : place + 1], protect, name="t", engine=engine)
                assert cells(alone, name).items() <= found.items()


# --- databases -------------------------------------------------------------------------------------


def test_every_cell_of_a_duckdb_file_is_read_by_itself(tmp_path):
    path = tmp_path / "t.duckdb"
    kinds = {
        "TIMESTAMP_S": ["290000-01-01", "290000-01-01 (BC)", "infinity", "-infinity"],
        "TIMESTAMP_MS": ["290000-01-01", "290000-01-01 (BC)", "infinity", "-infinity"],
        "TIMESTAMP": ["290000-01-01", "290000-01-01 (BC)", "infinity", "-infinity"],
        "TIMESTAMP_NS": ["1677-09-22", "2262-04-11", "1969-12-31 23:59:59.999999999", "infinity"],
        "DATE": ["5000000-01-01", "5000000-01-01 (BC)", "infinity", "-infinity"],
        "DECIMAL(38,38)": ["-0.5", "0.99999999999999999999999999999999999999", "-0." + "0" * 37 + "1", "0"],
        "DECIMAL(38,20)": ["-999999999999999999.5", "999999999999999999.5", "-0.00000000000000000001", "0"],
        "HUGEINT": [
            "-170141183460469231731687303715884105728",
            "170141183460469231731687303715884105727",
            "0",
            "1",
        ],
        "DOUBLE": ["nan", "inf", "-inf", "-0.0"],
        "BOOLEAN": ["true", "false", "true", "false"],
    }
    with duckdb.connect(str(path)) as connection:
        names = ", ".join(f"c{place} {kind}" for place, kind in enumerate(kinds))
        connection.execute(f"CREATE TABLE t (who BIGINT, {names})")
        for who, row in enumerate(zip(*kinds.values(), strict=True)):
            values = ", ".join(f"'{cell}'::{kind}" for cell, kind in zip(row, kinds, strict=True))
            connection.execute(f"INSERT INTO t VALUES ({who}, {values})")
        connection.execute(f"INSERT INTO t VALUES (4, {', '.join(['NULL'] * len(kinds))})")
    told = {f"c{place}": column(places=10) for place, kind in enumerate(kinds) if kind.startswith("DECIMAL")}
    with open(path, each("who", at_most=1), columns=told, name="t") as data:
        for place, kind in enumerate(kinds):
            found = cells(data, f"c{place}")
            assert sorted(found) == [0, 1, 2, 3, 4], kind
        assert cells(data, "c5") == {0: -512, 1: 1023, 2: -1, 3: 0, 4: None}


def test_the_digits_of_decimals_are_exact_where_they_fill_their_type():
    written = ["-0.5", "0.5", "-0.25", "0.7499", "-0.000000000000000001", "0.1", "-0.1", "-0.999", "0"]
    for digits, scale in ((38, 38), (38, 30), (38, 21), (30, 21), (37, 20), (38, 19), (38, 18)):
        with localcontext(prec=80):
            numbers = [Decimal(text) for text in written]
            reach = min(10 ** (digits - scale) - Decimal(1).scaleb(-scale), Decimal(10**12))
            numbers += [reach, -reach, Decimal(1).scaleb(-scale), -Decimal(1).scaleb(-scale)]
            expected = {who: math.floor(Fraction(number) * 2**18) for who, number in enumerate(numbers)}
        source = pa.table({"who": range(len(numbers)), "v": pa.array(numbers, pa.decimal128(digits, scale))})
        for engine in ("duckdb", "polars"):
            data = open(source, each("who", 1), columns={"v": column(places=18)}, name="t", engine=engine)
            assert cells(data) == expected, (digits, scale, engine)


def test_every_cell_of_an_sqlite_file_is_read_by_itself(tmp_path):
    anything = [
        None,
        7,
        -WIDE,
        7.5,
        float("inf"),
        "7",
        "x",
        "",
        "2020-01-01",
        "2020-02-30",
        "\x00",
        b"\xff",
        b"7",
    ]
    kinds = ["INTEGER", "REAL", "TEXT", "BOOLEAN", "DATE", "NUMERIC", "BLOB", ""]
    path = tmp_path / "t.sqlite"
    with sqlite3.connect(path) as connection:
        names = ", ".join(f"c{place} {kind}" for place, kind in enumerate(kinds))
        connection.execute(f"CREATE TABLE t (who INTEGER, {names})")
        for who, cell in enumerate(anything):
            connection.execute(f"INSERT INTO t VALUES ({who}{', ?' * len(kinds)})", [cell] * len(kinds))
        connection.execute("INSERT INTO t (who, c2) VALUES (99, CAST(x'ff' AS TEXT))")
    with open(path, each("who", at_most=1), name="t") as data:
        for name, known in data.tables["t"].columns.items():
            if name != "who" and known.kind != "other":
                assert sorted(cells(data, name)) == [*range(len(anything)), 99], name
        assert cells(data, "c2")[99] is None


# --- before the charge ----------------------------------------------------------------------------


def test_what_the_schema_decides_is_refused_before_the_charge():
    fine = pa.table({"who": [1, 2], "v": pa.array([None, None], pa.decimal128(38, 30))})
    data = open(fine, each("who", at_most=1), columns={"v": column(bounds=(0, 1))}, name="t")
    session = dp.Session(data, limit=dp.Limit.filter(epsilon=1))
    with pytest.raises(DiscreetError) as refused:
        session.sql("SELECT SUM(v) FROM t", epsilon=0.5)
    assert refused.value.code == "DP705"
    assert session.sql("SELECT COUNT(*) FROM t", epsilon=1.0) is not None  # all of it was left


def test_dates_that_name_people_are_never_made_one(tmp_path):
    far = pa.array([2**31 - 1, 2**31 - 2, days(date.max) + 1, 0], pa.int32()).view(pa.date32())
    for engine in ("duckdb", "polars"):
        data = open(pa.table({"who": far}), each("who", at_most=1), name="t", engine=engine)
        assert data.engine.sums(BoundedSums(Private("t"), (), (), OnceScheme())) == {(): (4,)}


def test_moments_are_moved_and_not_wrapped():
    at = pa.array([10**16, -(10**16), 0], pa.int64()).view(pa.timestamp("ms"))
    data = open(pa.table({"who": [0, 1, 2], "v": at}), each("who", at_most=1), name="t")
    moments = {who: moment.replace(tzinfo=None) for who, moment in cells(data).items()}
    assert moments[0] == datetime.max  # noqa: DTZ901 - without its zone
    assert moments[1] == datetime.min  # noqa: DTZ901
    assert moments[2] - datetime(1970, 1, 1) == timedelta(0)  # noqa: DTZ001
