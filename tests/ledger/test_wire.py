# SPDX-License-Identifier: Apache-2.0
"""Receipts, budgets and previews in JSON: read back they are equal, and any other text is refused with a code."""

from __future__ import annotations

import json
import math

import pytest

import discreet as dp
from discreet import privacy
from discreet.errors import DiscreetError
from discreet.ledger import Asker, Budget, Ledger, Limit, Receipt
from discreet.tables import Preview
from tests.refusals import refusal

GAUSSIAN = privacy.gaussian(noise=20.0)
LIMITS = {
    "pure": Limit.filter(epsilon=1),
    "tracks": Limit.filter(epsilon=1, delta=1e-6),
    "rho": Limit.filter(rho=0.5),
    "odometer": Limit.odometer(delta=1e-6),
    "month and life": Limit.filter(epsilon=1, window="month", lifetime=Limit.filter(epsilon=3)),
    "allocations": Limit.filter(epsilon=1, analysts={"ana": 0.5, "bo": 0.5}),
}


def charged(limit):
    ledger = Ledger(":memory:", limit=limit)
    guarantee = privacy.pure(0.01) if "rho" not in limit.to_dict() else GAUSSIAN
    return ledger, ledger.charge(guarantee, key="a", asker=Asker("ana"))


@pytest.mark.parametrize("name", LIMITS)
def test_a_receipt_that_was_read_is_the_receipt_and_pays_for_its_answer(name):
    ledger, receipt = charged(LIMITS[name])
    again = Receipt.from_json(receipt.to_json())
    assert again == receipt
    assert again.to_json() == receipt.to_json()
    assert ledger.commit(again, "[17]") == "[17]"
    entry = ledger.find("a", asker=Asker("ana"))
    assert Receipt.from_json(entry.receipt.to_json()) == entry.receipt


def test_a_receipt_keeps_the_tracks_that_it_closed():
    limit = Limit.filter(epsilon=1, delta=1e-6)
    ledger = Ledger(":memory:", limit=limit)
    receipts = [ledger.charge(guarantee) for guarantee in (GAUSSIAN, privacy.gaussian(noise=8.0))]
    assert any(receipt.closes for receipt in receipts)
    assert [Receipt.from_json(receipt.to_json()) for receipt in receipts] == receipts


@pytest.mark.parametrize("name", LIMITS)
def test_a_budget_that_was_read_shows_the_same(name):
    ledger, _ = charged(LIMITS[name])
    budget = ledger.budget(Asker("ana"))
    again = Budget.from_json(budget.to_json())
    assert again == budget
    assert str(again) == str(budget)
    assert again.remaining == budget.remaining
    assert again.fits == budget.fits
    assert again.last == budget.last
    assert again.to_json() == budget.to_json()
    assert refusal(again.like, GAUSSIAN).code == "DP107"
    asked = Budget.from_json(budget.to_json(), count=budget.like)
    assert asked.like(privacy.pure(0.01)) == budget.like(privacy.pure(0.01))


def test_a_budget_without_an_end_is_read_back():
    limit = Limit.odometer(delta=1e-6)
    budget = limit.budget(limit.start())
    assert budget.remaining["epsilon"] == math.inf
    assert Budget.from_json(budget.to_json()).remaining == budget.remaining


@pytest.mark.parametrize("cost", [{"epsilon": 0.1}, {"epsilon": 0.1, "delta": 1e-7}, {"error": "±200"}])
def test_a_preview_that_was_read_is_the_preview(cost):
    adult = dp.open(dp.data.path("adult.toml"))
    session = dp.Session(adult, limit=dp.Limit.filter(epsilon=1, delta=1e-6))
    preview = session.preview("SELECT sex, COUNT(*), AVG(age) FROM adult GROUP BY sex", **cost)
    again = Preview.from_json(preview.to_json())
    assert again == preview
    assert str(again) == str(preview)
    assert again.cost.epsilon(delta=1e-6) == preview.cost.epsilon(delta=1e-6)


def texts():
    ledger, receipt = charged(LIMITS["tracks"])
    adult = dp.open(dp.data.path("adult.toml"))
    session = dp.Session(adult, limit=dp.Limit.filter(epsilon=1))
    preview = session.preview("SELECT COUNT(*) FROM adult", epsilon=0.1)
    budget = ledger.budget(Asker("ana"))
    return [(Receipt, receipt.to_json()), (Budget, budget.to_json()), (Preview, preview.to_json())]


WRONG = [None, 7, -1, "x", "", [], {}, [7], {"a": 1}, True, 1e999, "nan"]


def outcome(kind, text):
    """A code and nothing, or what was read."""
    try:
        return "read", kind.from_json(text)
    except DiscreetError as error:
        return error.code, None


@pytest.mark.parametrize(("kind", "text"), texts(), ids=["receipt", "budget", "preview"])
def test_any_other_text_is_refused_with_a_code(kind, text):
    whole = json.loads(text)
    (name,) = whole.keys() - {"discreet"}
    for bad in [
        "",
        "{",
        "null",
        "[]",
        "7",
        "{}",
        text[:-1],
        json.dumps({"discreet": 1, name: 7}),
        f"[{text}]",
    ]:
        assert refusal(kind.from_json, bad).code == "DP401", bad
    assert refusal(kind.from_json, json.dumps(whole | {"discreet": 2})).code == "DP402"
    assert refusal(kind.from_json, None).code in {"DP104", "DP401"}
    for field in whole[name]:
        without = {other: value for other, value in whole[name].items() if other != field}
        assert refusal(kind.from_json, json.dumps(whole | {name: without})).code == "DP401", field
        for wrong in WRONG:
            changed = json.dumps(whole | {name: whole[name] | {field: wrong}})
            code, read = outcome(kind, changed)
            assert code in {"read", "DP401"}, (field, wrong)
            if read is None:
                continue
            # What is read is what such an object may be, and is written as it was read.
            assert json.loads(read.to_json())[name][field] == json.loads(changed)[name][field], (field, wrong)


def test_entries_are_read_by_range():
    ledger = Ledger(":memory:", limit=Limit.filter(epsilon=1))
    for _ in range(9):
        ledger.charge(privacy.pure(0.1))
    numbers = list(range(10))

    def read(**bounds):
        return [entry.number for entry in ledger.entries(**bounds)]

    assert read() == numbers
    for after in (0, 3, 8, 9, 10, 1000):
        assert read(after=after) == numbers[after + 1 :]
        for limit in (1, 2, 600):
            assert read(after=after, limit=limit) == numbers[after + 1 :][:limit]
    assert read(limit=3) == [0, 1, 2]
    for bad in (-1, 0.5, "x", True):
        assert refusal(ledger.entries, after=bad).code in {"DP102", "DP103"}
    for bad in (0, -1, 0.5, "x", True):
        assert refusal(ledger.entries, limit=bad).code in {"DP102", "DP103"}


def test_a_range_reads_no_other_rows(monkeypatch):
    monkeypatch.setattr("discreet.ledger.store._PAGE", 2)
    ledger = Ledger(":memory:", limit=Limit.filter(epsilon=1))
    for _ in range(9):
        ledger.charge(privacy.pure(0.1))
    run, fetched = ledger._store.run, []

    def counted(sql, *values):
        rows = run(sql, *values)
        fetched.extend(row[0] for row in rows)
        return rows

    monkeypatch.setattr(ledger._store, "run", counted)
    assert [entry.number for entry in ledger.entries(after=2, limit=5)] == [3, 4, 5, 6, 7]
    assert fetched == [3, 4, 5, 6, 7]
