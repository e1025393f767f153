# SPDX-License-Identifier: Apache-2.0
"""Charges that are paid like earlier ones: recognising them changes nothing but the time that it takes."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import privacy
from discreet.errors import DiscreetError, OverBudget
from discreet.ledger import Asker, Ledger, Limit, State, chain
from discreet.ledger.costs import Amounts, CostRow, menu
from discreet.ledger.running import RepeatableCharge, RunningTotals
from tests.ledger.workers import writing

HALVES = {"ana": 0.5, "bo": 0.5}
LIFE = Limit.filter(epsilon=3, delta=1e-6)
LIMITS = {
    "pure": Limit.filter(epsilon=1),
    "candidates": Limit.filter(epsilon=1, delta=1e-6),
    "tracks": Limit.filter(epsilon=1, delta=1e-6, leaks=0.5),
    "basic": Limit.filter(epsilon=1, delta=1e-6, kind="basic"),
    "rho": Limit.filter(rho=0.1, delta=1e-8),
    "mu": Limit.filter(mu=0.5),
    "plan": Limit.plan(9 * privacy.laplace(scale=10) + 9 * privacy.gaussian(noise=20.0)),
    "odometer": Limit.odometer(delta=1e-6),
    "month": Limit.filter(epsilon=1, delta=1e-6, window="month"),
    "month and life": Limit.filter(epsilon=1, delta=1e-6, window="month", lifetime=LIFE),
    "hour and odometer": Limit.filter(epsilon=1, window="hour", lifetime=Limit.odometer(delta=1e-6)),
    "allocations": Limit.filter(epsilon=1, delta=1e-6, analysts=HALVES, projects={"x": 0.9}),
    "reserved": Limit.filter(epsilon=1, delta=1e-6, analysts=HALVES, reserved=True),
    "month and allocations": Limit.filter(
        epsilon=1, delta=1e-6, window="month", lifetime=LIFE, analysts=HALVES
    ),
}
STOCK = [
    privacy.gaussian(noise=20.0),
    privacy.gaussian(noise=7.0),
    privacy.pure(0.03),
    privacy.pure(3e-9),
    privacy.laplace(scale=20),
    privacy.approximate(0.02, 1e-8),
    privacy.gaussian(noise=20.0).sampled(0.01),
]
TIMES = [
    "2030-01-31T22:59:59.999999+00:00",
    "2030-01-31T23:00:00+00:00",
    "2030-02-01T00:30:00+01:00",
    "2030-02-01T00:00:00+00:00",
    "2030-02-01T00:00:00",
    "2030-13-01",
    "now",
]


def price(limit, guarantee):
    try:
        return limit.cost(guarantee)
    except DiscreetError:
        return None


def priced(limit):
    return [guarantee for guarantee in STOCK if price(limit, guarantee) is not None]


def asker(analyst):
    return Asker(analyst=analyst, project="x")


# --- a repetition says the truth ------------------------------------------------------------------------------


def between(data, low, high):
    """An amount from low to high, often one of the two."""
    if high in (math.inf, low):
        return low
    part = data.draw(st.sampled_from([Fraction(0), Fraction(1), Fraction(1), Fraction(1, 3), Fraction(6, 7)]))
    return low + part * (high - low)


@pytest.mark.parametrize("name", LIMITS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_limit_pays_again_as_its_repetition_says(name, data):
    limit = LIMITS[name]
    stock = priced(limit)
    state, time = limit.start(), TIMES[1]
    for _ in range(data.draw(st.integers(1, 5))):
        cost = limit.cost(data.draw(st.sampled_from(stock)))
        who = asker(data.draw(st.sampled_from(["ana", "bo"])))
        for _ in range(data.draw(st.integers(1, 4))):
            try:
                state = limit.admit(state, cost, asker=who, now=time)
            except OverBudget:
                return
        repetition = limit.repetition(state, cost, asker=who, now=time)
        if repetition is None:
            continue
        free = {key: between(data, of, repetition.until.get(key, of)) for key, of in state.items()}
        later = State(free)
        if limit.knows(later):
            assert limit.admit(later, cost, asker=who, now=time) == later.plus(repetition.added)


@pytest.mark.parametrize("name", LIMITS)
def test_a_repetition_ends_where_the_budget_does(name):
    """What a repetition allows is admitted, and at the end of all repetitions hardly anything is left."""
    limit, who = LIMITS[name], asker("ana")
    cost = limit.cost(privacy.pure(0.03) if name != "plan" else privacy.laplace(scale=20))
    state, repeated = limit.start(), 0
    for _ in range(400):
        try:
            state = limit.admit(state, cost, asker=who, now=TIMES[0])
        except OverBudget:
            break
        repetition = limit.repetition(state, cost, asker=who, now=TIMES[0])
        while repetition and all(state[key] <= most for key, most in repetition.until.items()):
            paid = limit.admit(state, cost, asker=who, now=TIMES[0])
            assert paid == state.plus(repetition.added)
            state, repeated = paid, repeated + 1
            if repeated > 300:
                break
    assert repeated > 5


def test_a_repetition_ends_with_its_window():
    limit = LIMITS["month"]
    cost = limit.cost(privacy.pure(0.03))
    state = limit.admit(limit.start(), cost, now=TIMES[0])
    ends = limit.repetition(state, cost, now=TIMES[0]).ends
    assert ends.isoformat() == "2030-02-01T00:00:00+00:00"
    assert limit.repetition(state, cost) is None
    assert limit.repetition(state, cost, now=TIMES[3]) is None, "that charge would begin a new window"
    last = "9999-12-31T00:00:00+00:00"
    state = limit.admit(limit.start(), cost, now=last)
    assert limit.repetition(state, cost, now=last) is None, "no calendar has the day when it ends"


# --- verification by runs is verification row by row -----------------------------------------------------------

runs = st.lists(
    st.tuples(st.integers(0, len(STOCK) - 1), st.integers(0, len(STOCK) - 1), st.sampled_from(["ana", "bo"]))
    .flatmap(lambda run: st.tuples(st.just(run), st.integers(1, 9), st.booleans()))
    .map(lambda run: (*run[0], *run[1:])),
    min_size=1,
    max_size=4,
)
FLAWS = ["none", "none", "text", "unchanged", "time", "analyst", "cost", "guarantee", "body", "uncharged"]


def rows_of(data, limit):
    """What the rows of a ledger say, charge by charge; one of them may be wrong."""
    stock, state, flaw = priced(limit), limit.start(), data.draw(st.sampled_from(FLAWS))
    charges = [
        (
            stock[number % len(stock)],
            stock[(other if step % 2 and alternates else number) % len(stock)],
            analyst,
        )
        for number, other, analyst, count, alternates in data.draw(runs)
        for step in range(count)
    ]
    wrong = data.draw(st.integers(0, len(charges) - 1))
    month = data.draw(st.integers(0, len(charges)))
    for number, (_, guarantee, analyst) in enumerate(charges):
        time, cost = TIMES[3 if number >= month else 0], limit.cost(guarantee)
        try:
            after = limit.admit(state, cost, asker=asker(analyst), now=time)
        except OverBudget:
            after = state
        said = {
            "guarantee": guarantee.to_json(),
            "cost": cost.to_dict(),
            "analyst": analyst,
            "project": "x",
            "time": time,
            "state": after.to_dict(),
        }
        if number == wrong:
            said |= slip(data, limit, flaw, said, state)
        yield flaw if number == wrong else "none", said
        try:
            state = State.from_dict(said["state"])
        except DiscreetError:
            state = after


def slip(data, limit, flaw, said, before):
    """Something that a row says wrongly."""
    name = data.draw(st.sampled_from(sorted(said["state"])))
    texts = st.sampled_from(["0", "2/20", "1/10", "inf", "x", f"{said['state'][name]}/1", "1/1000000"])
    return {
        "text": lambda: {"state": said["state"] | {name: data.draw(texts)}},
        "unchanged": lambda: {"state": before.to_dict()},
        "time": lambda: {"time": data.draw(st.sampled_from(TIMES))},
        "analyst": lambda: {"analyst": data.draw(st.sampled_from(["ana", "bo", "cy", None]))},
        "cost": lambda: {"cost": limit.cost(data.draw(st.sampled_from(priced(limit)))).to_dict()},
        "guarantee": lambda: {"guarantee": data.draw(st.sampled_from(priced(limit))).to_json()},
    }.get(flaw, dict)()


def write(ledger, rows):
    with writing(ledger._store):
        for flaw, said in rows:
            last = ledger._store.last()
            if flaw == "uncharged":
                more = {"settles": last.number, "answer": "[1]", "time": said["time"], "state": said["state"]}
                ledger._store.append(chain.next_row(last, "committed", **more))
                continue
            row = chain.next_row(last, "reserved", **said, question="how many?")
            if flaw == "body":
                spaced = json.dumps(json.loads(row.body), sort_keys=True)
                row = row._replace(body=spaced, hash=chain.digest(spaced))
            ledger._store.append(row)


@pytest.mark.parametrize("name", LIMITS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_verifying_by_runs_finds_what_verifying_row_by_row_finds(name, data):
    limit = LIMITS[name]
    with Ledger(":memory:", limit=limit) as ledger:
        write(ledger, rows_of(data, limit))
        by_runs = ledger.verify()
        with patch.object(RunningTotals, "follow", lambda *_: False):
            row_by_row = ledger.verify()
    assert by_runs == row_by_row


@pytest.mark.parametrize("name", LIMITS)
def test_most_charges_of_a_long_ledger_are_recognised(name):
    limit = LIMITS[name] if name != "plan" else Limit.plan(99 * privacy.laplace(scale=10))
    guarantees = [privacy.laplace(scale=1000), privacy.laplace(scale=900)]
    followed, follow = [], RunningTotals.follow

    def counted(totals, charge, time, stated):
        followed.append(follow(totals, charge, time, stated))
        return followed[-1]

    with Ledger(":memory:", limit=limit) as ledger:
        for number in range(60):
            ledger.charge(guarantees[number % 2], asker=asker("ana"))
        with patch.object(RunningTotals, "follow", counted):
            assert ledger.verify().intact
    assert sum(followed) > 50


def test_a_total_that_would_be_rounded_is_left_to_the_limit():
    limit = Limit.filter(epsilon=1)
    amounts = Amounts({"delta": Fraction(0), "epsilon": Fraction(1, 3**400)})
    totals, charge = RunningTotals(limit), RepeatableCharge(menu([CostRow("plain", amounts)]), Asker())
    for _ in range(40):
        after = limit.admit(totals.state, charge.cost)
        assert not totals.follow(charge, TIMES[0], after.to_dict())
        totals.state = after
        totals.learn(charge, TIMES[0])


def test_what_is_not_followed_changes_nothing():
    limit = LIMITS["month"]
    totals, charge = RunningTotals(limit), RepeatableCharge(limit.cost(privacy.pure(0.03)), Asker())
    for _ in range(3):
        totals.state = limit.admit(totals.state, charge.cost, now=TIMES[0])
        totals.learn(charge, TIMES[0])
    before = totals.state
    right = limit.admit(before, charge.cost, now=TIMES[0]).to_dict()
    for time, stated in [
        (TIMES[0], before.to_dict()),
        (TIMES[0], {}),
        (TIMES[0], right | {"window/epsilon": "1"}),
        (TIMES[3], right),
        (TIMES[5], right),
        ("", right),
    ]:
        assert not totals.follow(charge, time, stated)
        assert totals.state == before
    assert totals.follow(charge, TIMES[1], right)
    assert totals.state.to_dict() == right
