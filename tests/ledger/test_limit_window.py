# SPDX-License-Identifier: Apache-2.0
"""Windows by the calendar, clocks that go backwards, and what holds for life."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from itertools import pairwise

import pytest

from discreet import privacy
from discreet.errors import BadParameter, OverBudget
from discreet.ledger import Asker, Ledger, Limit, chain
from tests.ledger.workers import writing

TENTH = privacy.pure(0.1)


def admitted(limit, state, guarantee, now, most=1000, **whose):
    """As many as fit at that time."""
    cost, count = limit.cost(guarantee), 0
    while count < most:
        try:
            state, count = limit.admit(state, cost, now=now, **whose), count + 1
        except OverBudget:
            break
    return state, count


def test_a_window_renews_and_the_lifetime_does_not():
    limit = Limit.filter(epsilon=1, window="month", lifetime=Limit.filter(epsilon=2.5))
    state, counts = limit.start(), []
    for month in ("2030-01", "2030-02", "2030-03", "2030-04"):
        state, count = admitted(limit, state, TENTH, f"{month}-15")
        counts.append(count)
    assert counts == [10, 10, 5, 0]
    assert limit.guarantee == privacy.pure(2.5)


def test_a_clock_that_goes_backwards_stays_in_the_later_window():
    limit = Limit.filter(epsilon=1, window="month")
    state, first = admitted(limit, limit.start(), TENTH, "2030-02-01")
    state, back = admitted(limit, state, TENTH, "2030-01-31")
    state, again = admitted(limit, state, TENTH, "2030-02-28")
    assert (first, back, again) == (10, 0, 0)
    assert admitted(limit, state, TENTH, "2030-03-01")[1] == 10


@pytest.mark.parametrize(
    ("window", "same", "next_one"),
    [
        ("hour", ("2030-01-01T10:00", "2030-01-01T10:59"), "2030-01-01T11:00"),
        ("day", ("2030-01-01T00:00", "2030-01-01T23:59"), "2030-01-02T00:00"),
        ("month", ("2030-01-01", "2030-01-31"), "2030-02-01"),
        ("year", ("2030-01-01", "2030-12-31"), "2031-01-01"),
        ("2 months", ("2030-01-01", "2030-02-28"), "2030-03-01"),
    ],
)
def test_windows_follow_the_calendar(window, same, next_one):
    limit = Limit.filter(epsilon=1, window=window)
    start = limit.admit(limit.start(), limit.cost(TENTH), now=same[0])
    assert limit.budget(start, now=same[1]).tracks[0].spent == Fraction(1, 10)
    assert limit.budget(start, now=next_one).tracks[0].spent == 0


def test_thirty_days_are_thirty_days():
    limit = Limit.filter(epsilon=1, window="30 days")
    begin, state, begun = datetime(2030, 1, 1, tzinfo=UTC), limit.start(), []
    for day in range(95):
        before = state
        state = limit.enter(state, begin + timedelta(days=day))
        begun += [day] if state != before else []
    assert len(begun) == 4
    assert {later - earlier for earlier, later in pairwise(begun[1:])} == {30}


def test_time_zones_are_read_and_a_time_without_one_is_utc():
    limit = Limit.filter(epsilon=1, window="day")
    east = datetime(2030, 1, 2, 1, 0, tzinfo=timezone(timedelta(hours=3)))
    state = limit.admit(limit.start(), limit.cost(TENTH), now=east)
    assert limit.budget(state, now="2030-01-01T23:00").tracks[0].spent == Fraction(1, 10)
    assert limit.budget(state, now="2030-01-02T00:00:00Z").tracks[0].spent == 0


def test_left_shows_both_and_counts_the_windows():
    limit = Limit.filter(epsilon=1, delta=1e-6, window="month", lifetime=Limit.filter(epsilon=3, delta=1e-6))
    state = limit.admit(limit.start(), limit.cost(privacy.gaussian(20.0)), now="2030-01-01")
    state = limit.admit(state, limit.cost(privacy.gaussian(20.0)), now="2030-04-01")
    text = str(limit.budget(state, now="2030-04-02"))
    assert "4 windows begun" in text
    assert "lifetime: Rényi track of order" in text
    assert limit.budget(limit.start()).notes[0] == "0 windows begun"
    orders = {limit.each.first.tracks[1].order, limit.lifetime.first.tracks[1].order}
    assert len(orders) == 2, "the lifetime has an order of its own"


def test_each_limit_is_charged_at_its_own_order():
    limit = Limit.filter(epsilon=1, delta=1e-6, window="month", lifetime=Limit.filter(epsilon=3, delta=1e-6))
    state = limit.admit(limit.start(), limit.cost(privacy.gaussian(20.0)), now="2030-01-01")
    for prefix, part in (("window/", limit.each), ("lifetime/", limit.lifetime)):
        track = part.chosen_filter(state.under(prefix)).tracks[1]
        assert float(state.under(prefix)[track.name]) == pytest.approx(track.order / 800)


def test_without_a_lifetime_nothing_is_guaranteed_for_life():
    limit = Limit.filter(epsilon=1, delta=1e-6, window="month")
    assert limit.guarantee is None
    assert any("no guarantee" in line for line in limit.describe())
    assert limit.guarantee_after(12) == 12 * privacy.approximate(1, 1e-6)


def test_a_refusal_by_the_lifetime_charges_nothing():
    limit = Limit.filter(epsilon=1, window="month", lifetime=Limit.filter(epsilon=0.25))
    state, count = admitted(limit, limit.start(), TENTH, "2030-01-01")
    assert count == 2
    assert limit.budget(state, now="2030-01-01").like(TENTH) == 0
    assert limit.budget(state, now="2030-01-01").like(privacy.pure(0.05)) == 1


def test_allocations_renew_with_the_window():
    limit = Limit.filter(
        epsilon=1, analysts={"ana": 0.3}, window="month", lifetime=Limit.odometer(delta=1e-6)
    )
    state, first = admitted(limit, limit.start(), TENTH, "2030-01-01", asker=Asker(analyst="ana"))
    state, second = admitted(limit, state, TENTH, "2030-02-01", asker=Asker(analyst="ana"))
    assert (first, second) == (3, 3)
    assert "all answers so far: ε = 0.6" in str(limit.budget(state, asker=Asker(analyst="ana")))


@pytest.mark.parametrize(
    "window", ["", "fortnight", "0 days", "-1 days", "1.5 days", 30, True, "days 30", "9999999 days"]
)
def test_bad_windows_are_refused(window):
    with pytest.raises(BadParameter, match="DP107"):
        Limit.filter(epsilon=1, window=window)


@pytest.mark.parametrize("now", [None, "yesterday", 1893456000, True])
def test_a_window_needs_the_time(now):
    limit = Limit.filter(epsilon=1, window="month")
    with pytest.raises(BadParameter, match="DP107"):
        limit.admit(limit.start(), limit.cost(TENTH), now=now)


def test_what_does_not_go_together_is_refused():
    life = Limit.filter(epsilon=3)
    for wrong in (
        {"window": "month", "lifetime": Limit.plan(privacy.pure(1.0))},
        {"window": "month", "lifetime": 3},
        {"window": "month", "lifetime": life, "analysts": {"ana": 0.5}, "reserved": True},
    ):
        with pytest.raises(BadParameter, match="DP107"):
            Limit.filter(epsilon=1, **wrong)
    with_life = Limit.filter(epsilon=1, window="month", lifetime=life)
    with pytest.raises(BadParameter, match="DP107"):
        with_life.admit(with_life.start(), Limit.filter(epsilon=1).cost(TENTH), now="2030-01-01")


@pytest.mark.parametrize("name", ["first", "number"])
@pytest.mark.parametrize("text", ["inf", "1/2", "0", str(10**30), None])
def test_a_stored_window_that_no_calendar_has_is_damage(name, text):
    limit = Limit.filter(epsilon=1, window="month")
    with Ledger(":memory:", limit=limit) as ledger:
        ledger.charge(privacy.pure(0.1))
        state = dict(ledger.spent.to_dict()) | {name: text}
        if text is None:
            del state[name]
        cost = {"guarantee": privacy.pure(0.1).to_json(), "cost": limit.cost(privacy.pure(0.1)).to_dict()}
        with writing(ledger._store):
            last = ledger._store.last()
            ledger._store.append(chain.next_row(last, "reserved", time=chain.now(), state=state, **cost))
        assert not ledger.verify().intact


@pytest.mark.parametrize("value", [[1], {}, 7, 1.5, object()])
def test_a_window_or_a_time_of_another_type_is_refused(value):
    with pytest.raises(BadParameter, match="a window is a length of time") as refused:
        Limit.filter(epsilon=1, window=value)
    assert refused.value.code == "DP107"
    limit = Limit.filter(epsilon=1, window="month")
    with pytest.raises(BadParameter, match="needs the time"):
        limit.admit(limit.start(), limit.cost(TENTH), now=value)
