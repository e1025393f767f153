# SPDX-License-Identifier: Apache-2.0
"""`session.synthesize`: what is charged, what is shown, and that everything after it is free."""

from __future__ import annotations

import json
import math
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import discreet as dp
from discreet.errors import DiscreetError
from discreet.tables.plan.spend import Spend
from discreet.tables.synthetic import mechanism as mechanism_file
from discreet.tables.synthetic.copy import SyntheticCopy
from discreet.tables.synthetic.mechanism import checked_tables, compile_synthesis, synthesis_request
from discreet.tables.synthetic.mixture import fit_mixture
from tests.chance import may_fail
from tests.tables.synthetic.people import COLUMNS, opened, rows, session_on

COST = {"epsilon": 5.0, "delta": 1e-6}


@pytest.fixture(scope="module")
def data():
    return opened(2_000)


@pytest.fixture(scope="module")
def copied(data):
    return session_on(data).synthesize(data, **COST)


def shares(values):
    found, counts = np.unique(np.array([str(value) for value in values]), return_counts=True)
    return dict(zip(found.tolist(), (counts / len(values)).tolist(), strict=True))


def test_the_copy_looks_like_the_rows(data, copied):
    frame = copied.to_pandas()
    assert abs(len(frame) - 2_000) < 60
    truth = rows(2_000).to_pydict()
    for name in ("sex", "ward", "smokes"):
        of_copy, of_rows = shares(frame[name]), shares(truth[name])
        assert all(abs(of_copy.get(value, 0) - share) < 0.05 for value, share in of_rows.items())
    # In the rows nobody of the first sex stays ten days.
    women = frame[frame["sex"] == "F"]
    assert (women["days"].dropna() >= 10).mean() < 0.1
    assert frame["born"].dropna().between(COLUMNS["born"].bounds[0], COLUMNS["born"].bounds[1]).all()
    assert copied.quality.value < 0.2
    assert copied.quality.low <= copied.quality.value <= copied.quality.high


def test_null_is_copied_only_where_it_occurs(copied):
    frame = copied.to_pandas()
    assert frame["sex"].isna().sum() == 0
    assert 0.04 < frame["smokes"].isna().mean() < 0.14


def test_more_rows_seeds_and_conditions_are_free(data):
    session = session_on(data)
    copied = session.synthesize(data, columns=["sex", "days", "smokes"], **COST)
    spent = session.budget().spent_fraction
    assert copied.to_rows(50, seed=2) == copied.to_rows(50, seed=2) != copied.to_rows(50, seed=3)
    assert len(copied.to_rows(5_000)) == 5_000
    assert copied.to_rows(0) == []
    for where, holds in {
        "sex": ("M", lambda row: row[0] == "M"),
        "days": ((7, 12), lambda row: 7 <= row[1] <= 12),
        "smokes": ([True, None], lambda row: row[2] in {True, None}),
    }.items():
        wanted, condition = holds
        assert all(map(condition, copied.to_rows(300, where={where: wanted})))
    both = copied.to_rows(200, where={"days": (None, 12), "sex": "M"})
    assert all(row[0] == "M" and row[1] <= 12 for row in both)
    single = copied.to_rows(20, where={"days": 11})
    assert {row[1] for row in single} <= set(range(10, 15))
    assert session.budget().spent_fraction == spent
    assert sum(entry.kind == "reserved" for entry in session.ledger.entries()) == 1


def test_a_key_gives_the_same_copy_at_no_cost(tmp_path):
    data = opened(200)
    session = dp.Session(data, limit=dp.Limit.filter(epsilon=2, delta=1e-5), ledger=tmp_path / "a.ledger")
    ask = {"columns": ["sex", "ward", "days"], "epsilon": 1.0, "delta": 1e-6, "key": "copy"}
    one = session.synthesize(data, **ask)
    spent = session.budget().spent_fraction
    other = dp.Session(data, ledger=tmp_path / "a.ledger").synthesize(data, **ask)
    assert {**one.to_dict(), "notes": []} == {**other.to_dict(), "notes": []}
    assert one.to_rows() == other.to_rows()
    assert str(one.table("sex", "ward")) == str(other.table("sex", "ward"))
    assert session.budget().spent_fraction == spent
    with pytest.raises(DiscreetError, match="DP604"):
        session.synthesize(data, **{**ask, "columns": ["sex", "ward"]})


def test_the_charge_is_the_guarantee_and_comes_first(data):
    session = session_on(data, epsilon=1, delta=1e-6)
    copied = session.synthesize(data, columns=["sex"], epsilon=0.5, delta=1e-7)
    (entry,) = (each for each in session.ledger.entries() if each.kind == "reserved")
    assert entry.guarantee == copied.guarantee.to_json()
    assert copied.guarantee.epsilon(1e-7) <= 0.5
    assert copied.receipt.number == 1
    before = session.budget().spent_fraction
    with pytest.raises(DiscreetError) as caught:
        session.synthesize(data, columns=["sex"], epsilon=0.9, delta=1e-7)
    assert caught.value.code == "DP601"
    assert session.budget().spent_fraction == before
    words = caught.value.fix.split("ask with", 1)[1].split("(on the command line", 1)[0]
    smaller = eval(f"dict({words.strip()})")
    assert session.synthesize(data, columns=["sex"], **smaller).rows > 0


@pytest.mark.parametrize("method", ["mixture", "aim"])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_a_preview_tells_the_cost_and_the_margins_and_spends_nothing(method, relation):
    """Those of the copy itself; and the same for other rows."""
    few, many = (opened(count, dp.each("id", at_most=2, relation=relation)) for count in (3, 90))
    session = session_on(many)
    ask = {"columns": ["sex", "ward", "smokes"], "method": method, "rho": 0.3}
    preview = session.preview_synthesis(many, **ask)
    assert session.budget().spent_fraction == 0
    assert str(preview) == str(session_on(few).preview_synthesis(few, **ask))
    copied = session.synthesize(many, **ask)
    assert preview.cost == copied.guarantee
    assert preview.question == copied.question
    assert dict(preview.codes) == {"sex": 3, "ward": 4, "smokes": 3}
    if method == "aim":
        assert preview.margins == {}
        return
    for order, tables in {
        1: [("sex",), ("ward",), ("smokes",)],
        2: [("sex", "ward"), ("sex", "smokes"), ("ward", "smokes")],
    }.items():
        cells = [line for names in tables for line in copied.table(*names).rows()]
        # The interval of a count below zero is cut there.
        widest = max(line[order + 2] - line[order] for line in cells if line[order] > 0)
        assert widest == pytest.approx(preview.margins[order])


def test_what_a_copy_refuses_its_preview_refuses(data):
    session = session_on(data)
    for ask in (
        {"columns": ["age"], "rho": 1},
        {"check": 2, "rho": 1},
        {"epsilon": 1},
        {"bins": 3, "rho": 1},
    ):
        refusals = []
        for asked in (session.preview_synthesis, session.synthesize):
            with pytest.raises(DiscreetError) as caught:
                asked(data, **ask)
            refusals.append(str(caught.value))
        assert refusals[0] == refusals[1]


def test_a_released_table_beside_the_copy(data, copied):
    table = copied.table("ward", "sex")
    assert table.header == ("ward", "sex", "count", "count_lo", "count_hi", "synthetic")
    assert len(table) == 4 * 3
    for ward, sex, count, low, high, synthetic in table.rows():
        assert low <= count <= high
        assert low >= 0 or low == count
        assert abs(count - synthetic) < 80
        exact = sum(
            row == (sex, ward)
            for row in zip(*rows(2_000).select(["sex", "ward"]).to_pydict().values(), strict=True)
        )
        assert abs(count - exact) < 6 * (high - low)
    assert table.to_pandas().shape == (12, 6)
    frame = copied.to_pandas()
    counted = dict(frame.groupby(["ward", "sex"]).size())
    assert {(line[0], line[1]): line[5] for line in table.rows() if line[5]} == counted
    assert copied.table("sex").rows()[0][0] == "F"
    # Totals of released tables agree.
    by_sex = {line[0]: line[1] for line in copied.table("sex").rows()}
    for sex, count in by_sex.items():
        assert math.isclose(count, sum(line[2] for line in table.rows() if line[1] == sex), abs_tol=1e-6)


@pytest.mark.parametrize(
    "ask",
    [
        lambda copied: copied.table(),
        lambda copied: copied.table("sex", "ward", "days", "cost"),
        lambda copied: copied.table("sex", "sex"),
        lambda copied: copied.table("age"),
        lambda copied: copied.to_rows(-1),
        lambda copied: copied.to_rows(1.5),
        lambda copied: copied.to_rows(10**9),
        lambda copied: copied.to_rows(10, seed="x"),
        lambda copied: copied.to_rows(10, seed=-1),
        lambda copied: copied.to_rows(10, where={"age": 3}),
        lambda copied: copied.to_rows(10, where={"sex": "X"}),
        lambda copied: copied.to_rows(10, where={"sex": ["F", "X"]}),
        lambda copied: copied.to_rows(10, where={"sex": []}),
        lambda copied: copied.to_rows(10, where={"days": (20, 10)}),
        lambda copied: copied.to_rows(10, where={"days": (1, 2, 3)}),
        lambda copied: copied.to_rows(10, where={"days": (100, 200)}),
        lambda copied: copied.to_rows(10, where={"days": "many"}),
        lambda copied: copied.to_rows(10, where={"days": float("nan")}),
        lambda copied: copied.to_rows(10, where={"smokes": 1}),
        lambda copied: copied.to_rows(10, where={"born": (3, 4)}),
        lambda copied: copied.to_rows(10, where="sex = 'F'"),
        lambda copied: copied.to_csv("/nowhere/at/all.csv"),
    ],
)
def test_bad_requests_of_a_copy_have_codes(copied, ask):
    with pytest.raises(DiscreetError) as caught:
        ask(copied)
    assert caught.value.spent == "nothing"
    if "where={" in caught.value.fix:
        words = eval(f"dict({caught.value.fix})")
        assert len(copied.to_rows(10, **words)) == 10


def test_exports(copied, tmp_path):
    copied.to_csv(tmp_path / "copy.csv", rows=20)
    lines = (tmp_path / "copy.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "sex,ward,days,cost,born,smokes"
    assert len(lines) == 21
    copied.to_parquet(tmp_path / "copy.parquet", rows=20)
    table = pa.parquet.read_table(tmp_path / "copy.parquet")
    assert table.num_rows == 20
    assert b"discreet.statement" in table.schema.metadata
    assert copied.to_polars(rows=20).shape == (20, 6)
    assert copied.to_pandas(rows=20).attrs["discreet.protects"]


def test_types_do_not_depend_on_the_rows(copied):
    """No rows and rows with NULL alone have the types of all others, so that files can be joined."""
    full, none = copied.to_arrow(rows=50), copied.to_arrow(rows=0)
    missing = copied.to_arrow(rows=20, where={"smokes": None})
    assert missing["smokes"].null_count == 20
    assert full.schema.types == none.schema.types == missing.schema.types
    assert pa.null() not in full.schema.types
    assert copied.to_polars(rows=50).schema == copied.to_polars(rows=0).schema
    empty = copied.to_pandas(rows=0)
    assert (len(empty), empty["days"].dtype, list(empty.columns)) == (0, "int64", list(copied.header))
    assert empty.attrs["discreet.statement"]


def test_a_copy_is_made_of_one_table():
    """The fix is applied: each table by itself."""
    people = pa.table({"id": [1, 2, 3], "sex": ["F", "M", "F"]})
    visits = pa.table({"id": [1, 1, 2], "ward": ["east", "north", "east"]})
    data = dp.open(
        {"visits": visits, "people": people},
        protect=dp.each("id", at_most=2),
        columns={"visits": {"ward": COLUMNS["ward"]}, "people": {"sex": COLUMNS["sex"]}},
    )
    session = session_on(data)
    with pytest.raises(DiscreetError, match="DP701") as caught:
        session.synthesize(data, **COST)
    assert caught.value.spent == "nothing"
    assert not any(entry.kind == "reserved" for entry in session.ledger.entries())
    fixed = eval(caught.value.fix.replace("…", "rho=0.5"), {"session": session, "data": data})
    assert fixed.header == ("ward",)


def test_the_statement_says_what_it_is_not_good_for(copied):
    words = copied.statement()
    for part in (
        "1. ",
        "synthetic copy",
        "Guarantee",
        "is off" if not copied.quality else "wrong cell",
        "Do not use",
    ):
        assert part.lower() in words.lower()
    assert "Synthetic copy" in str(copied)
    assert copied._repr_html_().startswith("<ol>")
    assert "rows of sex" in repr(copied)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"discreet.copy": 1}', '{"discreet.answer": 1}'])
def test_a_text_that_is_no_copy_is_refused(text):
    with pytest.raises(DiscreetError, match="DP401"):
        SyntheticCopy.from_json(text)


def test_a_copy_of_a_newer_version_is_refused(copied):
    with pytest.raises(DiscreetError, match="DP402"):
        SyntheticCopy.from_json(json.dumps({**copied.to_dict(), "discreet.copy": 2}))


@pytest.mark.parametrize(
    "protect", [dp.each("id", at_most=3), dp.each("id", at_most=2, relation="replace"), dp.each_row()]
)
@pytest.mark.parametrize("count", [0, 1, 30])
def test_few_rows_and_units_with_several(protect, count):
    table = pa.table(
        {
            "id": pa.array([n // 4 for n in range(count)], pa.int64()),
            "sex": pa.array(["FM"[n % 2] for n in range(count)], pa.string()),
            "days": pa.array([n % 61 for n in range(count)], pa.int64()),
        }
    )
    data = opened(table=table, protect=protect)
    copied = session_on(data).synthesize(data, epsilon=8.0, delta=1e-6)
    assert copied.guarantee.unit == data.unit
    assert len(copied.to_rows()) == copied.rows
    assert len(copied.to_rows(5)) == 5


def test_a_column_with_one_value_alone():
    data = opened(50, columns={"sex": dp.column(values=["F"], null=False)})
    copied = session_on(data).synthesize(data, columns=["sex"], **COST)
    assert set(copied.to_rows(5)) == {("F",)}


def test_at_most_auto_is_chosen_first():
    table = pa.table({"id": [n // 2 for n in range(400)], "sex": ["FM"[n % 2] for n in range(400)]})
    data = opened(table=table, protect=dp.each("id", at_most="auto"))
    session = session_on(data)
    assert session.synthesize(data, **COST).rows > 100
    assert sum(entry.kind == "reserved" for entry in session.ledger.entries()) == 2


def test_rows_under_a_condition_of_the_request():
    data = opened(500)
    copied = session_on(data).synthesize(data.where(dp.col("days") >= 10), columns=["sex", "days"], **COST)
    assert all(row[1] >= 10 for row in copied.to_rows())


def test_what_is_checked():
    assert len(checked_tables((2,) * 13)) == 286
    assert len(checked_tables((2,) * 40)) == 300
    assert checked_tables((2, 3)) == [(0, 1)]
    assert checked_tables((2,)) == [(0,)]


RUNS = 300


@may_fail(2e-9, "two binomial tails, computed exactly")
def test_intervals_cover_the_truth(monkeypatch):
    """Of one cell and of the total, and of the paid distance, over many copies of one small table."""
    data = opened(60)
    request = synthesis_request(data, ["sex", "ward"], None, 0.3)
    mechanism = compile_synthesis(request, data, Spend(epsilon=1, delta=1e-6))
    truth = rows(60).select(["sex", "ward"]).to_pydict()
    exact = sum(pair == ("F", "east") for pair in zip(truth["sex"], truth["ward"], strict=True))
    cell = distance = 0
    # The interval holds for every model, so a quick fit will do.
    monkeypatch.setattr(mechanism_file, "fit_mixture", partial(fit_mixture, components=10, most_steps=10))
    for _ in range(RUNS):
        copied = mechanism.draw(data)
        line = copied.table("sex", "ward").rows()[0]
        cell += line[3] <= exact <= line[4]
        counted = np.zeros((3, 4))
        for sex, ward in copied.to_rows():
            counted[["F", "M", None].index(sex), ["east", "north", "south", None].index(ward)] += 1
        real = np.zeros((3, 4))
        for sex, ward in zip(truth["sex"], truth["ward"], strict=True):
            real[["F", "M"].index(sex), ["east", "north", "south"].index(ward)] += 1
        off = np.abs(counted - real).sum() / (2 * max(copied.rows, 1))
        distance += copied.quality.low <= off <= copied.quality.high
    # An interval of 95 % fails to cover so often with probability 1e-9 at most.
    least = binom.ppf(1e-9, RUNS, 0.95)
    assert cell >= least
    assert distance >= least
