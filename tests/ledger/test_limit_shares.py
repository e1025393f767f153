# SPDX-License-Identifier: Apache-2.0
"""Shares: who is refused because of whom, and what is guaranteed to whom."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from discreet import privacy
from discreet.errors import BadDescription, BadParameter, OverBudget
from discreet.ledger import Asker, Limit

HALVES = {"ana": 0.5, "bo": 0.5}
BUDGETS = [
    {"epsilon": 1},
    {"epsilon": 1, "delta": 1e-6},
    {"rho": 0.5},
    {"rho": 0.5, "delta": 1e-8},
    {"mu": 1},
]


def exhaust(limit, state, guarantee, **whose):
    cost = limit.cost(guarantee)
    for _ in range(10_000):
        try:
            state = limit.admit(state, cost, **whose)
        except OverBudget:
            return state
    raise AssertionError


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_reserved_allocation_does_not_depend_on_the_others(budget):
    limit = Limit.filter(**budget, analysts=HALVES, reserved=True)
    guarantee = privacy.pure(0.013)
    fresh = limit.budget(limit.start(), asker=Asker(analyst="bo")).like(guarantee)
    used = exhaust(limit, limit.start(), guarantee, asker=Asker(analyst="ana"))
    assert limit.budget(used, asker=Asker(analyst="bo")).like(guarantee) == fresh > 0
    assert str(limit.budget(used, asker=Asker(analyst="bo"))) == str(
        limit.budget(limit.start(), asker=Asker(analyst="bo"))
    ), "nor does what is shown"


@pytest.mark.parametrize("budget", BUDGETS)
def test_reserved_allocations_together_stay_within_the_whole(budget):
    limit = Limit.filter(**budget, analysts={"ana": 0.5, "bo": 0.3, "cy": 0.2}, reserved=True)
    state = limit.start()
    for name, guarantee in (
        ("ana", privacy.pure(0.013)),
        ("bo", privacy.pure(0.007)),
        ("cy", privacy.pure(0.011)),
    ):
        state = exhaust(limit, state, guarantee, asker=Asker(analyst=name))
    assert limit.whole.fullness(state.under("all/")) <= 1


def test_a_reserved_limit_has_one_track():
    """One in the pure track and one in the Rényi track would leave no lane that holds for both."""
    limit = Limit.filter(epsilon=1, delta=1e-6, analysts=HALVES, reserved=True)
    assert [track.kind for track in limit.whole.tracks] == ["renyi"]
    shared = Limit.filter(epsilon=1, delta=1e-6, analysts=HALVES)
    assert [track.kind for track in shared.whole.first.tracks] == ["epsilon", "renyi"]


def test_allocations_that_are_not_reserved_are_bounded_by_the_whole():
    limit = Limit.filter(epsilon=1, analysts={"ana": 0.8, "bo": 0.8})
    tenth = privacy.pure(0.1)
    state = exhaust(limit, limit.start(), tenth, asker=Asker(analyst="ana"))
    assert limit.budget(state, asker=Asker(analyst="ana")).like(tenth) == 0
    assert limit.budget(state, asker=Asker(analyst="bo")).like(tenth) == 2
    assert [track.name for track in limit.budget(state, asker=Asker(analyst="bo")).tracks] == [
        "all: pure track (ε)",
        "bo: pure track (ε)",
    ]
    assert limit.budget(state).tracks[0].remaining == Fraction(1, 5)


def test_analysts_and_projects_both_count():
    limit = Limit.filter(epsilon=1, analysts={"ana": 1, "bo": 1}, projects={"flu": 0.3, "pox": 1})
    tenth = privacy.pure(0.1)
    state = exhaust(limit, limit.start(), tenth, asker=Asker(analyst="ana", project="flu"))
    assert limit.budget(state, asker=Asker(analyst="bo", project="flu")).like(tenth) == 0
    assert limit.budget(state, asker=Asker(analyst="bo", project="pox")).like(tenth) == 7
    assert limit.budget(state, asker=Asker(project="flu")).spent_fraction == 1


def test_a_refusal_changes_nothing_and_names_what_is_left():
    limit = Limit.filter(epsilon=1, analysts=HALVES)
    with pytest.raises(OverBudget, match=r"ana: pure track \(ε\): 0.5 of 0.5 remaining"):
        limit.admit(limit.start(), limit.cost(privacy.pure(0.6)), asker=Asker(analyst="ana"))


def test_a_reserved_allocation_has_its_own_guarantee():
    pure = Limit.filter(epsilon=1, analysts={"ana": 0.3}, reserved=True)
    assert pure.guarantee_to("ana") == privacy.pure(0.3)
    rho = Limit.filter(rho=0.5, analysts={"ana": 0.5}, reserved=True)
    assert rho.guarantee_to("ana") == privacy.concentrated(0.25)
    mu = Limit.filter(mu=1, analysts={"ana": 0.25}, reserved=True)
    assert mu.guarantee_to("ana") == privacy.gaussian(2.0)
    mixed = Limit.filter(epsilon=1, delta=1e-6, analysts={"ana": 0.5}, reserved=True)
    guarantee = mixed.guarantee_to("ana", privacy.Unit("patient"))
    assert guarantee.unit.protects == "patient"
    assert 0.6 < guarantee.epsilon_ < 0.8, "at the same δ half of ρ is worth about √½ of ε"
    with pytest.raises(BadParameter, match="DP107"):
        Limit.filter(epsilon=1, analysts={"ana": 0.5}).guarantee_to("ana")


@pytest.mark.parametrize(
    "shares",
    [
        {"analysts": {}},
        {"analysts": {"ana": 0}},
        {"analysts": {"ana": -0.5}},
        {"analysts": {"ana": 1.5}},
        {"analysts": {"ana": math.nan}},
        {"analysts": {"ana": True}},
        {"analysts": {"ana/bo": 0.5}},
        {"analysts": {"": 0.5}},
        {"analysts": {3: 0.5}},
        {"analysts": ["ana"]},
        {"analysts": {"ana": 0.6, "bo": 0.6}, "reserved": True},
        {"analysts": {"ana": 0.6}, "projects": {"flu": 0.5}, "reserved": True},
        {"analysts": {"ana": 0.6}, "reserved": 1},
    ],
)
def test_bad_allocations_are_refused(shares):
    with pytest.raises(BadParameter) as refusal:
        Limit.filter(epsilon=1, **shares)
    assert refusal.value.code in {"DP101", "DP102", "DP104", "DP107"}


def test_ten_tenths_may_be_reserved():
    names = {f"analyst {i}": 0.1 for i in range(10)}
    assert Limit.filter(epsilon=1, analysts=names, reserved=True)


@pytest.mark.parametrize("name", [None, "eve", "an"])
def test_an_analyst_without_an_allocation_is_refused(name):
    limit = Limit.filter(epsilon=1, analysts=HALVES)
    with pytest.raises(BadParameter, match="DP105"):
        limit.admit(limit.start(), limit.cost(privacy.pure(0.1)), asker=Asker(analyst=name))


def test_a_stored_limit_with_too_many_reserved_allocations_is_refused():
    data = Limit.filter(epsilon=1, analysts=HALVES, reserved=True).to_dict()
    data["shares"]["analyst"]["bo"] = "3/4"
    with pytest.raises(BadDescription, match="DP401"):
        Limit.from_dict(data)
