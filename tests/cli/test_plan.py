# SPDX-License-Identifier: Apache-2.0
"""`discreet plan` says what would be paid, reads no row and spends nothing."""

from __future__ import annotations

import pytest

from discreet import privacy
from discreet.ledger import Ledger
from tests.cli import visits

ASK = f"plan {visits.COUNTS} --data visits.toml"


pytestmark = pytest.mark.usefixtures("here")


def test_a_plan_makes_no_ledger(discreet, here):
    done = discreet(f"{ASK} --epsilon 0.1")
    assert done.code == 0, done.err
    assert "0.0% now" in done.words
    assert "spent nothing" in done.words
    assert not (here / "visits.ledger").exists()


def test_a_plan_leaves_a_ledger_as_it_is(discreet):
    discreet(f"{ASK.replace('plan', 'query', 1)} --epsilon 0.1")
    before = Ledger("visits.ledger").anchor()
    found = discreet(f"{ASK} --epsilon 0.1 --json").object
    assert found["budget"]["fits"] is True
    assert found["budget"]["spent_fraction_after"] > found["budget"]["spent_fraction"] > 0
    assert Ledger("visits.ledger").anchor() == before


def test_the_attacker_is_that_of_the_cost(discreet):
    found = discreet(f"{ASK} --epsilon 0.5 --json").object
    assert found["budget"]["guess"] >= (1 + privacy.discrete_laplace(4, 2).advantage()) / 2 - 1e-12
    assert found["budget"]["guess"] <= (1 + privacy.pure(0.5).advantage()) / 2 + 1e-12


def test_a_query_that_does_not_fit_exits_with_status_3(discreet, here):
    done = discreet(f"{ASK} --epsilon 3")
    assert (done.code, done.err[:5]) == (3, "DP601")
    assert "it does not fit" in done.out
    asked = discreet(f"{ASK} --epsilon 3 --json")
    assert (asked.code, asked.object["budget"]["fits"]) == (3, False)
    assert not (here / "visits.ledger").exists()


def test_a_plan_without_any_limit_still_tells_the_cost(discreet, here):
    visits.make(here, budget=False)
    found = discreet(f"{ASK} --epsilon 3 --json").object
    assert found["budget"]["fits"] is None
    assert "none is stated" in discreet(f"{ASK} --epsilon 3").out
    assert discreet(f"{ASK} --epsilon 3 --limit eps=1").code == 3


def test_a_plan_for_an_error_keeps_the_error(discreet):
    found = discreet(f"{ASK} --error ±30 --json").object
    assert found["columns"][0]["error"].startswith("±")
    assert float(found["columns"][0]["error"][1:].split()[0]) <= 30


def test_a_release_is_planned_table_by_table(discreet, here):
    done = discreet("plan release.toml")
    assert done.code == 0, done.err
    for word in ("by_ward", "avg_days", "total", "ε 0.1", "ε 0.2", "4 public groups"):
        assert word in done.out
    found = discreet("plan release.toml --json").object
    assert [table["name"] for table in found["tables"]] == ["by_ward", "total"]
    assert not any(table["paid"] for table in found["tables"])
    assert not (here / "visits.ledger").exists()


def test_the_plan_is_the_same_whatever_the_rows_are(discreet, here):
    lines = ("plan release.toml --json", f"{ASK} --epsilon 0.1 --json", f"{ASK} --error ±30 --json")
    before = [discreet(line).out for line in lines]
    visits.make(here, people=1)
    assert [discreet(line).out for line in lines] == before


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (f"plan {visits.COUNTS} --epsilon 0.1", "DP107"),
        ("plan release.toml --epsilon 1", "DP107"),
        ("plan release.toml --data visits.toml", "DP107"),
        ("plan nowhere.toml", "DP403"),
        (ASK, "DP107"),
    ],
)
def test_what_contradicts_itself_is_refused(discreet, line, error):
    done = discreet(line)
    assert (done.code, done.err[:5]) == (2, error)
