# SPDX-License-Identifier: Apache-2.0
"""A statement claims what the limit proves, shows everything that was charged, and leaks nothing."""

from __future__ import annotations

import json
import re
import sqlite3
from html.parser import HTMLParser

import pytest

from discreet import privacy
from discreet.errors import BadParameter, LedgerDamaged
from discreet.ledger import Asker, Ledger, Limit, chain
from discreet.ledger.layers import ASSERTED, ENFORCED, NOT_COVERED
from discreet.ledger.statement import Statement

SECRET = '{"count": 41.75}'
DESCRIPTION = {
    "name": "visits",
    "version": "2026-01",
    "protects": "patient",
    "column": "patient_id",
    "at_most": 20,
    "groups": None,
    "tables": {
        "visits": {
            "private": True,
            "columns": {
                "days": {"kind": "integer", "bounds": [0, 60], "values": None, "source": "hospital rules"},
                "ward": {"kind": "text", "bounds": None, "values": 4, "source": None},
            },
        },
        "wards": {"private": False, "columns": {"ward": {"kind": "text"}}},
    },
}


def small(epsilon=0.1):
    return privacy.pure(epsilon, unit="patient")


def book(limit=None, where=":memory:"):
    ledger = Ledger(where, limit=limit or Limit.filter(epsilon=1), unit="patient", dataset="visits")
    receipt = ledger.charge(
        small(),
        question="SELECT COUNT(*) FROM visits",
        mechanism="count",
        asker=Asker(analyst="ana", purpose="a report"),
        in_session=True,
    )
    ledger.commit(receipt, SECRET)
    ledger.charge(
        small(),
        question="SELECT AVG(days) FROM visits",
        mechanism="mean",
        asker=Asker(analyst="ana"),
        in_session=True,
    )
    return ledger


def forms(statement):
    return statement.to_html(), statement.to_markdown(), statement.to_json()


@pytest.mark.parametrize(
    ("limit", "epsilon", "delta", "flavour"),
    [
        (Limit.filter(epsilon=1), 1.0, 0.0, "Pure DP"),
        (Limit.filter(epsilon=1, delta=1e-6), 1.0, 1e-6, "Approximate DP"),
        (Limit.filter(rho=0.5), privacy.concentrated(0.5).epsilon(1e-6), 1e-6, "Zero-concentrated DP"),
        (Limit.filter(mu=1), privacy.gaussian(1.0).epsilon(1e-6), 1e-6, "Gaussian DP"),
        (Limit.plan(3 * small()), 3 * 0.1, 0.0, "Pure DP"),
        (
            Limit.filter(epsilon=1, delta=1e-6, window="month", lifetime=Limit.filter(epsilon=5, delta=1e-5)),
            5.0,
            1e-5,
            "Approximate DP",
        ),
        (Limit.filter(epsilon=1, window="month"), 1.0, 0.0, "Pure DP"),
    ],
    ids=lambda value: value.kind if isinstance(value, Limit) else None,
)
def test_the_claim_is_that_of_the_limit_and_not_of_what_was_charged(limit, epsilon, delta, flavour):
    claim = Statement.of(book(limit)).to_dict()["claim"]
    assert (claim["epsilon"], claim["delta"]) == (pytest.approx(epsilon, rel=1e-9), delta)
    assert claim["epsilon"] >= epsilon * (1 - 1e-15)
    assert claim["flavour"] == flavour
    stored = privacy.from_json(json.dumps(claim["guarantee"]))
    assert stored.unit == privacy.Unit("patient")


def test_windows_without_a_lifetime_add_up(monkeypatch):
    monkeypatch.setattr(chain, "now", lambda: "2030-01-31T00:00:00.000000+00:00")
    ledger = book(Limit.filter(epsilon=1, window="month"))
    monkeypatch.setattr(chain, "now", lambda: "2030-03-01T00:00:00.000000+00:00")
    ledger.charge(small())
    statement = Statement.of(ledger)
    # January, February (without a charge) and March
    assert statement.to_dict()["claim"]["epsilon"] == pytest.approx(3.0)
    assert "3 windows" in statement.headline
    marks = {line["what"]: line["mark"] for layer in statement.to_dict()["layers"] for line in layer["lines"]}
    assert marks["lifetime"] == NOT_COVERED


def test_an_odometer_claims_no_end():
    statement = Statement.of(book(Limit.odometer(delta=1e-6)))
    assert statement.guarantee is None
    assert statement.headline.startswith("No limit; ")
    assert statement.to_dict()["claim"]["epsilon"] == pytest.approx(0.2)
    assert all(forms(statement))


def test_every_charge_is_listed_and_they_add_up_to_what_was_spent():
    ledger = book()
    lines = Statement.of(ledger).to_dict()["released"]
    assert [line["question"] for line in lines] == [
        "SELECT COUNT(*) FROM visits",
        "SELECT AVG(days) FROM visits",
    ]
    assert [line["status"] for line in lines] == ["answered", "charged; no answer was kept"]
    assert sum(line["added"]["epsilon"] for line in lines) == pytest.approx(float(ledger.spent["epsilon"]))
    assert lines[-1]["spent_fraction_after"] == ledger.budget().spent_fraction == pytest.approx(0.2)


def test_no_answer_is_shown_unless_it_is_asked_for():
    ledger = book()
    assert [form for form in forms(Statement.of(ledger)) if "41.75" in form] == []
    assert [form for form in forms(Statement.of(ledger, answers=True)) if "41.75" not in form] == []


def test_what_stands_in_the_ledger_never_becomes_markup():
    ledger = book()
    evil = "`</style><script>alert('x')</script><img src=x onerror=alert(1)> | a"
    ledger.charge(small(), question=evil, asker=Asker(analyst=evil, purpose=evil), mechanism=evil)
    described = {"name": evil, "tables": {evil: {"columns": {evil: {"kind": evil, "source": evil}}}}}
    page, text, _ = forms(Statement.of(ledger, described))
    assert "<script" not in page
    assert "<img" not in page
    assert page.count("</style>") == 1
    beside_code = re.sub(r"`[^`]*`", "", text)
    assert "<script" not in beside_code
    assert "<img" not in beside_code
    assert re.findall(r"(?<!\\)\| a \|", text) == []  # a bar does not begin another cell


def test_the_page_needs_nothing_else_and_can_be_read_aloud():
    page = Statement.of(book(), DESCRIPTION).to_html()
    assert re.findall(r"(?:src|href)\s*=|url\(|@import|<script", page) == []
    assert page.startswith("<!doctype html>")
    assert "<html lang='en'>" in page
    assert "prefers-color-scheme:dark" in page
    assert "@media print" in page
    assert page.count("<svg") == page.count("role='img' aria-label=") - page.count("<div class='bar'")
    reader = _Balanced()
    reader.feed(page)
    assert reader.open == []


class _Balanced(HTMLParser):
    """Every element that is opened is closed, in order."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        """An element of a picture that closes itself."""

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_every_line_says_who_answers_for_it():
    found = Statement.of(book(), DESCRIPTION).to_dict()["layers"]
    assert [layer["layer"] for layer in found] == [
        "Privacy loss and unit",
        "Algorithms and correctness",
        "Security and side channels",
        "Access control",
        "Data collection",
    ]
    marks = {line["mark"] for layer in found for line in layer["lines"]}
    assert marks == {ENFORCED, ASSERTED, NOT_COVERED}
    lines = {line["what"]: line for layer in found for line in layer["lines"]}
    assert lines["who that is"]["words"] == "the column patient_id says whose row it is."
    assert "of ward come from" in lines["without a source"]["words"]
    assert lines["public tables"]["mark"] == ASSERTED
    assert "drawn elsewhere" not in lines


def test_a_charge_for_something_drawn_elsewhere_is_only_asserted():
    ledger = book()
    ledger.charge(small(), question="a training run")
    lines = [line for layer in Statement.of(ledger).to_dict()["layers"] for line in layer["lines"]]
    (line,) = [line for line in lines if line["what"] == "drawn elsewhere"]
    assert line["mark"] == ASSERTED
    assert line["words"].startswith("1 charge was")


def test_a_ledger_in_memory_says_that_it_forgets(tmp_path):
    def place(ledger):
        found = [line for layer in Statement.of(ledger).to_dict()["layers"] for line in layer["lines"]]
        return [line["mark"] for line in found if line["what"] == "its place"]

    assert place(book()) == [NOT_COVERED]
    assert place(book(where=tmp_path / "a.ledger")) == []


def test_the_bounds_come_with_their_source():
    page, text, _ = forms(Statement.of(book(), DESCRIPTION))
    assert "hospital rules" in page
    assert "| days | integer | 0 … 60 | hospital rules |" in text
    assert "| ward | text | 4 categories | – |" in text


def test_a_statement_shows_allocations():
    limit = Limit.filter(epsilon=1, analysts={"ana": 0.5, "bo": 0.25})
    page, text, stored = forms(Statement.of(book(limit)))
    assert "| ana | analyst | 50.0 % | 40.0 % |" in text
    assert {who["name"]: who["spent_fraction"] for who in json.loads(stored)["budget"]["shares"]} == {
        "ana": 0.4,
        "bo": 0.2,
    }
    assert "<td>bo</td>" in page


def test_a_damaged_ledger_has_no_statement(tmp_path):
    where = tmp_path / "a.ledger"
    book(where=where).close()
    with sqlite3.connect(where) as file:
        for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            file.execute(f"DROP TRIGGER {name}")
        file.execute("UPDATE ledger_entries SET body = replace(body, 'COUNT', 'COUMT') WHERE number = 1")
    with pytest.raises(LedgerDamaged):
        Statement.of(Ledger(where))


def test_a_ledger_that_was_put_back_has_no_statement():
    ledger = book()
    assert Statement.of(ledger, anchor=ledger.anchor()).to_dict()["ledger"]["anchor"] == ledger.anchor()
    with pytest.raises(LedgerDamaged):
        Statement.of(ledger, anchor="0" * 63 + "1")


def test_a_description_is_a_mapping():
    with pytest.raises(BadParameter, match="DP104"):
        Statement.of(book(), "visits.toml")


def test_findings_are_part_of_it(monkeypatch):
    ledger = book()
    monkeypatch.setattr(chain, "version", lambda: "9.9.9")
    found = Statement.of(ledger).to_dict()["ledger"]["findings"]
    assert {"W1", "W3"} <= {finding["code"] for finding in found}
