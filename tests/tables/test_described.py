# SPDX-License-Identifier: Apache-2.0
"""A data set from its description alone: questions are built and previewed as where the rows are, and none is answered."""

from __future__ import annotations

import pandas as pd
import pytest

import discreet as dp
from discreet.errors import DiscreetError
from discreet.tables import Dataset
from tests.refusals import refusal

QUESTIONS = [
    ("SELECT COUNT(*) FROM visits", {"epsilon": 0.1}),
    ("SELECT ward, COUNT(*), AVG(days) FROM visits GROUP BY ward", {"epsilon": 0.1}),
    ("SELECT city, SUM(days) FROM visits GROUP BY city", {"epsilon": 0.5, "delta": 1e-7}),
    ("SELECT MEDIAN(days) FROM visits WHERE day >= DATE '2030-02-01'", {"rho": 0.01}),
    ("SELECT COUNT(*) FROM visits", {"error": "±50"}),
    ("SELECT COUNT(DISTINCT patient) FROM visits", {"epsilon": 0.1}),
    ("SELECT COUNT(*) FROM long", {"epsilon": 0.1}),
]


@pytest.fixture
def visits(tmp_path):
    rows = pd.DataFrame(
        {
            "patient": [n // 2 for n in range(400)],
            "ward": ["a", "b", "c", None] * 100,
            "city": [f"city {n % 9}" for n in range(400)],
            "days": [n % 40 for n in range(400)],
            "day": pd.to_datetime(["2030-01-31", "2030-02-01"] * 200).date,
        }
    )
    rows.to_parquet(tmp_path / "visits.parquet")
    columns = {
        "ward": dp.column(values=["a", "b", "c"], source="the hospital"),
        "days": dp.column(bounds=(0, 60)),
    }
    protect = dp.each("patient", at_most=2, relation="replace", word="patient")
    data = dp.open(
        tmp_path / "visits.parquet", protect=protect, columns=columns, name="visits", version="May"
    )
    return data.view("long", "SELECT * FROM visits WHERE days > 30")


@pytest.mark.parametrize(("question", "cost"), QUESTIONS)
def test_a_question_has_the_same_preview_where_the_rows_are_not(visits, question, cost):
    described = Dataset.from_toml(visits.to_toml())
    previews = [
        dp.Session(data, dp.Limit.filter(epsilon=3, delta=1e-6)).preview(question, **cost)
        for data in (visits, described)
    ]
    assert previews[0] == previews[1]


def test_the_description_is_the_same(visits):
    described = Dataset.from_toml(visits.to_toml())
    assert described.public_description() == visits.public_description()
    assert described.to_toml() == visits.to_toml()
    assert described.describe() == visits.describe()
    assert described.unit == visits.unit
    assert repr(described) == repr(visits)


def test_no_answer_is_given_and_nothing_is_charged(visits):
    session = dp.Session(Dataset.from_toml(visits.to_toml()), dp.Limit.filter(epsilon=3, delta=1e-6))
    assert not session.data.is_current()
    for question, cost in QUESTIONS:
        error = refusal(session.sql, question, **cost)
        assert (error.code, error.spent) == ("DP803", "nothing"), question
    assert session.budget().spent_fraction == 0
    assert len(session.ledger) == 1


def test_the_ledger_of_the_described_data_takes_charges_of_both(visits, tmp_path):
    limit = dp.Limit.filter(epsilon=1)
    described = dp.Session(Dataset.from_toml(visits.to_toml()), limit, tmp_path / "a.ledger")
    described.charge(dp.privacy.pure(0.1, unit=visits.unit), question="elsewhere")
    session = dp.Session(visits, limit, tmp_path / "a.ledger")
    session.sql(QUESTIONS[0][0], epsilon=0.1)
    assert session.ledger.verify().intact
    assert len(session.ledger.versions()) == 1


def test_several_tables_with_links_and_public_tables(tmp_path):
    orders = pd.DataFrame({"order_id": range(30), "customer": [n % 9 for n in range(30)]})
    items = pd.DataFrame({"order_id": [n % 30 for n in range(90)], "price": [1.5] * 90})
    prices = pd.DataFrame({"kind": ["a", "b"], "factor": [1, 2]})
    for name, rows in {"orders": orders, "items": items, "prices": prices}.items():
        rows.to_parquet(tmp_path / f"{name}.parquet")
    data = dp.open(
        {name: tmp_path / f"{name}.parquet" for name in ("orders", "items")},
        protect=dp.each("customer", at_most=9, links={"items": "order_id -> orders.order_id"}),
        public={"prices": tmp_path / "prices.parquet"},
        columns={"items": {"price": dp.column(bounds=(0, 10))}},
    )
    described = Dataset.from_toml(data.to_toml())
    assert described.public_description() == data.public_description()
    question = "SELECT SUM(price) FROM items"
    previews = [
        dp.Session(each, dp.Limit.filter(epsilon=1)).preview(question, epsilon=0.1)
        for each in (data, described)
    ]
    assert previews[0] == previews[1]


def test_tables_from_memory_have_no_source(tmp_path):
    rows, wards = pd.DataFrame({"p": [1, 2], "days": [3, 4]}), pd.DataFrame({"ward": ["a", "b"]})
    columns = {"days": dp.column(bounds=(0, 9))}
    data = dp.open(rows, dp.each("p", at_most=1), name="visits", columns=columns, public={"wards": wards})
    described = Dataset.from_toml(data.to_toml())
    assert described.to_toml() == data.to_toml()
    question = "SELECT SUM(days) FROM visits"
    previews = [
        dp.Session(each, dp.Limit.filter(epsilon=1)).preview(question, epsilon=0.1)
        for each in (data, described)
    ]
    assert previews[0] == previews[1]
    # Rows are read from somewhere.
    (tmp_path / "visits.toml").write_text(data.to_toml())
    error = refusal(dp.open, tmp_path / "visits.toml")
    assert (error.code, error.fix) == ("DP403", 'source = "visits.parquet"')


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda _: "", "DP403"),
        (lambda _: "x = ", "DP403"),
        (lambda text: text.replace('type = "integer"\n', ""), "DP403"),
        (lambda text: text.replace('values = ["a", "b", "c"]', 'values = "public:wards.ward"'), "DP403"),
        (lambda text: text.replace('unit = "patient"', 'unit = "somebody"'), "DP403"),
        (lambda text: text.replace("bounds = [0, 60]", "bounds = [60, 0]"), "DP403"),
        (lambda text: text + "\n[other]\n", "DP403"),
        (lambda _: None, "DP104"),
        (lambda _: 7, "DP104"),
    ],
)
def test_a_description_that_lacks_something_is_refused(visits, change, code):
    text = visits.to_toml()
    assert change(text) != text
    assert refusal(Dataset.from_toml, change(text)).code == code


def test_a_question_with_a_misspelt_column_is_refused_as_where_the_rows_are(visits):
    question = "SELECT AVG(dais) FROM visits"
    errors = []
    for data in (visits, Dataset.from_toml(visits.to_toml())):
        with pytest.raises(DiscreetError) as error:
            dp.Session(data, dp.Limit.filter(epsilon=1)).preview(question, epsilon=0.1)
        errors.append(str(error.value))
    assert errors[0] == errors[1]
