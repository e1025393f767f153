# SPDX-License-Identifier: Apache-2.0
"""What is spent and what remains: the names say which, the two add up, and what is said to remain is admitted."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet import privacy
from discreet.errors import OverBudget, UnsupportedGuarantee
from discreet.ledger import Asker, Ledger, Limit
from discreet.ledger.budget import TrackBudget, percent
from discreet.ledger.overview import budget_facts as plain

pa = pytest.importorskip("pyarrow")

NOW = "2031-05-06"
LIMITS = {
    "pure": Limit.filter(epsilon=1),
    "approximate": Limit.filter(epsilon=1, delta=1e-6),
    "concentrated": Limit.filter(rho=0.5),
    "gaussian": Limit.filter(mu=1.0),
    "shared": Limit.filter(epsilon=1, delta=1e-6, analysts={"ana": 0.5, "bo": 0.5}),
    "window": Limit.filter(
        epsilon=1, delta=1e-6, window="month", lifetime=Limit.filter(epsilon=3, delta=1e-5)
    ),
    "plan": Limit.plan(10 * privacy.gaussian(noise=10.0) + 3 * privacy.laplace(20.0)),
    "odometer": Limit.odometer(delta=1e-6),
}
COSTS = [
    privacy.pure(0.05),
    privacy.gaussian(30.0),
    privacy.pure(0.31),
    privacy.laplace(20.0),
    privacy.gaussian(10.0),
]


def who(name: str) -> dict[str, str]:
    return {"asker": Asker("ana")} if name == "shared" else {}


def charged(name: str, costs: list[privacy.Guarantee]):
    """A limit after those of the costs that fit."""
    limit = LIMITS[name]
    state = limit.start()
    for cost in costs:
        try:
            state = limit.admit(state, limit.cost(cost), now=NOW, **who(name))
        except (OverBudget, UnsupportedGuarantee):
            continue
    return limit, state


@pytest.mark.parametrize("name", LIMITS)
@settings(max_examples=15, deadline=None)
@given(costs=st.lists(st.sampled_from(COSTS), max_size=12))
def test_the_fractions_add_up_and_only_ever_go_one_way(name, costs):
    before = LIMITS[name].budget(LIMITS[name].start(), now=NOW, **who(name))
    assert (before.spent_fraction, before.remaining_fraction) == (0, 1)
    limit, state = charged(name, costs)
    left = limit.budget(state, now=NOW, **who(name))
    assert left.spent_fraction + left.remaining_fraction == 1
    assert 0 <= left.spent_fraction <= 1
    _, more = charged(name, [*costs, *COSTS])
    assert limit.budget(more, now=NOW, **who(name)).spent_fraction >= left.spent_fraction
    assert not hasattr(left, "share")
    assert all(0 <= track.spent_fraction <= 1 for track in left.tracks)


@pytest.mark.parametrize("name", LIMITS)
@settings(max_examples=6, deadline=None)
@given(costs=st.lists(st.sampled_from(COSTS), max_size=12))
def test_what_remains_is_admitted_and_a_little_more_is_not(name, costs):
    limit, state = charged(name, costs)
    remaining = limit.budget(state, now=NOW, **who(name)).remaining
    assert {"epsilon", "rho"} & set(remaining)
    words = {"epsilon": privacy.pure, "rho": lambda rho: privacy.gaussian(1 / math.sqrt(2 * rho))}
    for word, made in words.items():
        most = remaining.get(word, math.nan)
        if math.isnan(most):
            continue
        if most == math.inf:
            assert name == "odometer"
            continue
        if most:
            limit.admit(state, limit.cost(made(most)), now=NOW, **who(name))
        with pytest.raises(OverBudget):
            limit.admit(state, limit.cost(made(1.002 * most + 1e-9)), now=NOW, **who(name))


def test_a_session_tells_what_is_spent_and_what_remains():
    data = dp.open(pa.table({"who": [1, 2, 3]}), protect=dp.each("who", at_most=1), name="visits")
    session = dp.Session(data, limit=Limit.filter(epsilon=1))
    assert session.budget().remaining == {"epsilon": 1.0}
    session.sql("SELECT COUNT(*) FROM visits", epsilon=0.2)
    budget = session.budget()
    assert (budget.spent_fraction, budget.remaining_fraction) == (pytest.approx(0.2), pytest.approx(0.8))
    assert budget.remaining["epsilon"] == 0.8
    assert str(budget).splitlines()[0] == "20 % spent, 80 % remaining"
    assert "<b>20 % spent, 80 % remaining</b>" in budget._repr_html_()
    session.sql("SELECT COUNT(*) FROM visits", epsilon=budget.remaining["epsilon"])
    assert str(session.budget()).startswith("100 % spent, 0 % remaining")
    assert session.budget().remaining == {"epsilon": 0.0}


def test_plain_facts_say_which_way_a_fraction_goes():
    ledger = Ledger(":memory:", limit=Limit.filter(epsilon=1, delta=1e-6), unit="patient")
    ledger.charge(privacy.pure(0.25, unit="patient"))
    facts = plain(ledger.budget())
    assert facts["spent_fraction"] + facts["remaining_fraction"] == 1
    assert facts["remaining"]["epsilon"] == 0.75
    assert not {"used", "share", "left"} & set(facts)
    assert all({"spent_fraction", "spent", "total"} <= set(track) for track in facts["lanes"])


def test_an_allocated_limit_has_no_single_remainder():
    limit = LIMITS["shared"]
    assert limit.budget(limit.start()).remaining == {}


def test_an_odometer_does_not_say_that_its_loss_has_a_limit():
    limit, state = charged("odometer", [privacy.pure(0.31)])
    assert limit.budget(state).headline.endswith("remaining of δ, the rest has no limit")


@given(st.floats(0, 1))
def test_a_percentage_is_on_the_careful_side(fraction):
    spent, remaining = percent(fraction, ROUND_CEILING), percent(1 - fraction, ROUND_FLOOR)
    assert float(spent[:-2]) >= 100 * fraction - 1e-7
    assert float(remaining[:-2]) <= 100 * (1 - fraction) + 1e-7
    assert spent != "0 %" or fraction < 1e-9
    assert remaining != "100 %" or fraction < 1e-9


def test_a_track_beyond_its_total_is_all_spent():
    assert TrackBudget("ε", Fraction(1), Fraction(2)).spent_fraction == 1
    assert TrackBudget("ε", Fraction(0), Fraction(0)).spent_fraction == 0
    assert TrackBudget("ε", math.inf, Fraction(2)).spent_fraction == 0
