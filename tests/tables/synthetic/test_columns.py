# SPDX-License-Identifier: Apache-2.0
"""Every value has one public code, and a code gives back values of its interval, in the units of the column."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import DiscreetError
from discreet.tables.synthetic.columns import CopiedColumn
from discreet.tables.synthetic.counts import count_tables, counted_rows, exact_cells
from discreet.tables.synthetic.mechanism import synthesis_request
from tests.tables.synthetic.people import COLUMNS, opened, rows


def columns_of(start, columns=None, bins=None):
    return {column.name: column for column in synthesis_request(start, columns, bins, 0.01).columns}


def code_of(column, value):
    """The code of a value, by the condition that only this value fulfils."""
    (code,) = np.flatnonzero(column.shares(value))
    return code


def test_the_usual_intervals():
    found = columns_of(opened())
    assert {name: column.size for name, column in found.items()} == {
        "sex": 3,
        "ward": 4,
        "days": 14,
        "cost": 22,
        "born": 21,
        "smokes": 3,
    }
    assert found["days"].edges == (0, 1, *range(5, 56, 5), 61)
    assert found["days"].label(0) == 0
    assert found["days"].label(1) == "1 to 4"
    assert found["days"].label(12) == "55 to 60"
    assert found["days"].label(13) is None


def test_stated_intervals_conditions_and_null():
    found = columns_of(opened().where(dp.col("days") >= 10), ["days"], {"days": [5, 20, 30]})
    assert found["days"].edges == (10, 20, 30, 61)
    assert not found["days"].null
    assert columns_of(opened(), ["days"], {"days": 3})["days"].edges == (0, 20, 40, 61)
    dates = columns_of(opened(), ["born"], {"born": [date(1960, 1, 1), date(1970, 1, 1)]})["born"]
    assert [dates.label(code) for code in range(4)] == [
        "1950-01-01 to 1959-12-31",
        "1960-01-01 to 1969-12-31",
        "1970-01-01 to 1989-12-31",
        None,
    ]
    never = opened(columns=COLUMNS | {"sex": dp.column(values=["F", "M"], null=False)})
    assert not columns_of(never, ["sex"])["sex"].null


def test_a_value_lies_in_the_interval_of_its_code():
    """Each row is decoded from its own code: it stays in its interval, and single values stay as they are."""
    data = opened(300)
    request = synthesis_request(data, None, None, 0.01)
    for column in request.columns:
        asked = counted_rows(data.count().question.rows, "people", (column,), 1, 1)
        cells = exact_cells(data.engine, asked)
        assert cells.values.sum() == 300
        for level in (1e-12, 0.5, 1 - 1e-12):
            codes = cells.places[:, 0]
            values = column.decode(codes, np.full(len(codes), level))
            assert [code_of(column, value) for value in values] == codes.tolist()


def test_moments_and_decimals_come_back_in_their_units():
    start = datetime(2024, 1, 1, tzinfo=UTC)
    table = pa.table(
        {
            "id": list(range(48)),
            "seen": [start + timedelta(hours=n) for n in range(48)],
            "price": pa.array([Decimal(n) / 4 for n in range(48)], pa.decimal128(6, 2)),
        }
    )
    described = {
        "seen": dp.column(bounds=(start, start + timedelta(days=2))),
        "price": dp.column(bounds=(0, 12)),
    }
    found = columns_of(opened(table=table, columns=described))
    for name, kind in (("seen", datetime), ("price", float)):
        column = found[name]
        values = column.decode(np.arange(column.size), np.full(column.size, 0.5))
        assert values[-1] is None
        assert all(isinstance(value, kind) for value in values[:-1])
        assert [code_of(column, value) for value in values] == list(range(column.size))


def test_texts_that_are_not_listed_are_left_out():
    table = pa.table({"id": [1, 2, 3, 4], "sex": ["F", "X", None, "M"]})
    data = opened(table=table)
    request = synthesis_request(data, None, None, 0.01)
    cells = exact_cells(
        data.engine, counted_rows(data.count().question.rows, "people", request.columns, 1, 1)
    )
    (counts,) = (table.tolist() for _, table in count_tables(cells, request.sizes, [(0,)]))
    assert counts == [1, 1, 1]


def test_a_column_as_json():
    for column in columns_of(opened()).values():
        assert CopiedColumn.from_dict(column.to_dict()) == column


@pytest.mark.parametrize(
    ("columns", "bins", "code"),
    [
        (["nothing"], None, "DP701"),
        ([], None, "DP104"),
        ("sex", None, "DP104"),
        (["sex", "sex"], None, "DP104"),
        ([3], None, "DP104"),
        (["id"], None, "DP704"),
        (["name"], None, "DP704"),
        (["sex"], {"days": 3}, "DP107"),
        (["sex"], {"sex": 3}, "DP107"),
        (["days"], {"days": 0}, "DP102"),
        (["days"], {"days": -2}, "DP102"),
        (["days"], {"days": 1.5}, "DP107"),
        (["days"], {"days": True}, "DP107"),
        (["days"], {"days": "many"}, "DP107"),
        (["days"], {"days": [3, 1]}, "DP107"),
        (["days"], {"days": []}, "DP107"),
        (["days"], {"days": [1, float("nan")]}, "DP107"),
        (["days"], {"days": ["1950-01-01"]}, "DP107"),
        (["days"], {"days": None}, None),
        (["born"], {"born": [3, 4]}, "DP107"),
        (["days"], 3, "DP107"),
        (["cost", "days"], {"cost": 100_000}, "DP107"),
    ],
)
def test_bad_columns_and_bins_are_refused(columns, bins, code):
    data = opened(table=rows_with_names())
    if code is None:
        assert synthesis_request(data, columns, bins, 0.01)
        return
    with pytest.raises(DiscreetError) as caught:
        synthesis_request(data, columns, bins, 0.01)
    assert caught.value.code == code
    assert caught.value.spent == "nothing"


def rows_with_names():
    return rows(20).append_column("name", pa.array([f"name {n}" for n in range(20)]))


def test_the_fixes_work():
    data = opened(table=rows_with_names())
    for columns in (["id"], ["name"], []):
        with pytest.raises(DiscreetError) as caught:
            synthesis_request(data, columns, None, 0.01)
        words = eval(f"dict({caught.value.fix})")
        assert synthesis_request(data, words["columns"], None, 0.01)
    for bins in ({"days": []}, {"cost": 100_000}):
        with pytest.raises(DiscreetError) as caught:
            synthesis_request(data, None, bins, 0.01)
        words = eval(f"dict({caught.value.fix})")
        assert synthesis_request(data, None, words["bins"], 0.01)
    unknown = opened(table=rows_with_names().select(["id", "name"]))
    with pytest.raises(DiscreetError) as caught:
        synthesis_request(unknown, None, None, 0.01)
    assert caught.value.code == "DP704"


@pytest.mark.parametrize("share", [-0.1, 0.6, float("nan"), "much", None, True])
def test_a_bad_share_of_the_check_is_refused(share):
    with pytest.raises(DiscreetError):
        synthesis_request(opened(), ["sex"], None, share)


@pytest.mark.parametrize("start", [None, 3, "SELECT 1", opened().group_by("sex"), opened().count()])
def test_only_rows_can_be_copied(start):
    with pytest.raises(DiscreetError) as caught:
        synthesis_request(start, None, None, 0.01)
    assert caught.value.code == "DP104"
