# SPDX-License-Identifier: Apache-2.0
"""bounds="auto": chosen privately with the first question that needs them, paid once, kept in the ledger."""

from __future__ import annotations

import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import DiscreetError

PEOPLE = 20_000
ROWS = pa.table(
    {
        "p": list(range(PEOPLE)),
        "cost": [float(n % 100) for n in range(PEOPLE)],
        "days": [n % 30 for n in range(PEOPLE)],
        "word": ["x"] * PEOPLE,
    }
)
MEAN = "SELECT AVG(cost) AS m FROM visits"


def opened(rows=ROWS, **columns):
    columns = {"cost": dp.column(bounds="auto"), **columns}
    return dp.open(rows, dp.each("p", at_most=1), name="visits", columns=columns)


def session(data=None, epsilon=10.0, **more):
    return dp.Session(data or opened(), dp.Limit.filter(epsilon), **more)


def spent(one):
    return float(one.ledger.spent["epsilon"])


def test_the_first_question_chooses_and_pays_a_tenth_and_no_other_does(tmp_path):
    place = tmp_path / "a.ledger"
    one = session(ledger=place)
    answer = one.sql(MEAN, epsilon=1.0)
    assert answer.value == pytest.approx(49.5, abs=3)
    assert spent(one) == pytest.approx(1.1, rel=1e-6)
    assert spent(one) <= 1.1
    low, high = one.data.tables["visits"].columns["cost"].bounds
    assert low <= 1
    assert 90 <= high <= 130
    one.sql(MEAN, epsilon=1.0)
    # Another process, another analyst.
    again = dp.Session(opened(), ledger=place, analyst="ana")
    assert again.data.tables["visits"].columns["cost"].bounds == (low, high)
    again.sql(MEAN, epsilon=1.0)
    assert spent(again) <= 3.1
    elders = again.data.where(dp.col("days") > 3).mean("cost")
    assert again.release(elders, epsilon=1.0).value == pytest.approx(49.5, abs=3)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT AVG(CLAMP(cost, 0, 100)) AS m FROM visits",
        "SELECT COUNT(*) AS n FROM visits WHERE cost > 50",
        "SELECT AVG(CLAMP(days, 0, 30)) AS m FROM visits",
    ],
)
def test_a_question_that_needs_no_bounds_chooses_none(text):
    one = session()
    one.sql(text, epsilon=1.0)
    assert spent(one) == 1.0
    assert one.data.tables["visits"].columns["cost"].bounds is None


def test_only_the_columns_that_are_needed_are_chosen():
    one = session(opened(days=dp.column(bounds="auto")))
    one.sql(MEAN, epsilon=1.0)
    columns = one.data.tables["visits"].columns
    assert columns["cost"].bounds is not None
    assert columns["days"].bounds is None
    one.sql("SELECT AVG(days) FROM visits", epsilon=1.0)
    assert spent(one) <= 2.2


@pytest.mark.parametrize(
    ("text", "spend"),
    [
        ("SELECT AVG(cost) AS m, word FROM visits GROUP BY word", {"epsilon": 1.0}),
        (MEAN, {}),
        (MEAN, {"epsilon": -1}),
        ("SELECT AVG(cost) FROM visits, trips", {"epsilon": 1.0}),
        ("SELECT AVG(days) FROM visits", {"epsilon": 1.0}),
        ("SELECT AVG(word) FROM visits", {"epsilon": 1.0}),
        (f"EXPLAIN PRIVACY {MEAN}", {"epsilon": 1.0}),
    ],
)
def test_a_question_that_is_refused_chooses_nothing(text, spend):
    one = session()
    with pytest.raises(DiscreetError):
        one.sql(text, **spend)
    assert spent(one) == 0


def test_a_preview_assumes_bounds_and_says_so():
    one = session()
    preview = one.preview(MEAN, epsilon=1.0)
    assert any("visits.cost are not chosen yet" in note for note in preview.notes)
    assert spent(one) == 0
    one.sql(MEAN, epsilon=1.0)
    assert not any("not chosen yet" in note for note in one.preview(MEAN, epsilon=1.0).notes)


def test_an_error_chooses_bounds_too():
    one = session()
    answer = one.sql(MEAN, error="±2")
    assert answer.value == pytest.approx(49.5, abs=3)
    assert one.data.tables["visits"].columns["cost"].bounds is not None


def test_python_questions_and_batches_say_how_to_choose():
    one = session()
    for ask in (
        lambda: one.release(one.data.mean("cost"), epsilon=1.0),
        lambda: one.release_batch({"a": (MEAN, {"epsilon": 1.0})}),
    ):
        with pytest.raises(DiscreetError) as refused:
            ask()
        assert 'session.suggest_bounds("visits", ["cost"], epsilon=0.05)' in refused.value.fix
    assert spent(one) == 0
    # The Fix, applied.
    one.suggest_bounds("visits", ["cost"], epsilon=0.5)
    one.release(one.data.mean("cost"), epsilon=1.0)
    one.release_batch({"a": (MEAN, {"epsilon": 1.0})})
    assert spent(one) <= 2.5


def test_too_few_units_have_no_bounds_and_that_is_paid_once():
    few = opened(ROWS.slice(0, 3))
    one = session(few)
    for paid in ("what choosing bounds cost", "nothing"):
        with pytest.raises(DiscreetError) as refused:
            one.sql(MEAN, epsilon=1.0)
        assert (refused.value.code, refused.value.spent) == ("DP706", paid)
        assert spent(one) == pytest.approx(0.1, rel=1e-6)
    one.sql(MEAN.replace("cost", "CLAMP(cost, 0, 500)"), epsilon=1.0)


@pytest.mark.parametrize("column", [dp.column("text"), dp.column("date"), dp.column("boolean")], ids=str)
def test_only_numbers_have_automatic_bounds(column):
    with pytest.raises(DiscreetError) as refused:
        dp.column(column.kind, bounds="auto")
    assert refused.value.code == "DP403"
    with pytest.raises(DiscreetError):
        opened(word=dp.column(bounds="auto"))


@pytest.mark.parametrize("bounds", ["AUTO", "yes", "", ("auto", 1)])
def test_other_words_are_no_bounds(bounds):
    with pytest.raises(DiscreetError):
        opened(cost=dp.column("real", bounds=bounds))


def test_automatic_bounds_are_described_written_and_read(tmp_path):
    import pyarrow.parquet as pq

    pq.write_table(ROWS, tmp_path / "visits.parquet")
    data = dp.open(
        tmp_path / "visits.parquet", dp.each("p", at_most=1), columns={"cost": dp.column(bounds="auto")}
    )
    assert "bounds chosen privately" in data.describe()
    assert data.public_description()["tables"]["visits"]["columns"]["cost"]["bounds"] == "auto"
    (tmp_path / "a.toml").write_text(data.to_toml(), encoding="utf-8")
    again = dp.open(tmp_path / "a.toml")
    assert again.tables["visits"].columns["cost"].auto
    one = session(again)
    before = one.data.public_description()
    one.sql(MEAN, epsilon=1.0)
    assert one.data.public_description() == before
    assert 'bounds = "auto"' in one.data.to_toml()
