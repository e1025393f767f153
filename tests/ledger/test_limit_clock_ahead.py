# SPDX-License-Identifier: Apache-2.0
"""A clock that was ahead: what is said, and that the way out forgets nothing that was spent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import privacy
from discreet.errors import OverBudget
from discreet.ledger import Ledger, Limit, chain
from discreet.ledger.window import _window_number, _window_start

TENTH = privacy.pure(0.1)
EACH, LIFE = Fraction(1), Fraction(3)


def monthly(left=LIFE):
    return Limit.filter(epsilon=EACH, window="month", lifetime=Limit.filter(epsilon=left))


@pytest.fixture
def clock(monkeypatch):
    """What the machine believes."""
    says = {"time": "2030-01-15T00:00:00.000000+00:00"}
    monkeypatch.setattr(chain, "now", lambda: says["time"])
    return lambda day: says.update(time=f"{day}T00:00:00.000000+00:00")


def spend_all(ledger):
    count = 0
    while True:
        try:
            ledger.charge(TENTH)
            count += 1
        except OverBudget as refused:
            return count, refused


def test_the_refusal_says_what_to_do_and_that_works(clock, tmp_path):
    clock("2040-07-01")
    with Ledger(tmp_path / "old.ledger", limit=monthly()) as old:
        assert spend_all(old)[0] == 10
        clock("2030-01-15")
        count, refused = spend_all(old)
        assert count == 0
        assert "begins on 2040-07-01" in refused.what
        assert "2030-02-01 or later" in refused.fix
        left = LIFE - old.spent["lifetime/epsilon"]
        assert old.verify().intact
    clock("2030-02-01")
    counts = []
    with Ledger(tmp_path / "new.ledger", limit=monthly(left)) as new:
        for month in (2, 3, 4):
            clock(f"2030-0{month}-01")
            counts.append(spend_all(new)[0])
    assert counts == [10, 10, 0]  # with the ten of the old one thirty, which is the limit for life


def test_a_full_window_of_today_says_nothing_of_clocks(clock):
    with Ledger(":memory:", limit=monthly()) as ledger:
        _, refused = spend_all(ledger)
        assert "clock" not in refused.what + refused.fix


def test_a_full_lifetime_says_nothing_of_clocks(clock):
    with Ledger(":memory:", limit=monthly(Fraction(1, 2))) as ledger:
        clock("2040-07-01")
        assert spend_all(ledger)[0] == 5
        clock("2030-01-15")
        _, refused = spend_all(ledger)
        assert "clock" not in refused.what + refused.fix


begin = datetime(2030, 1, 1, tzinfo=UTC)
#: Days from one charge to the next, how far the clock is off, and how many tenths are spent.
steps = st.tuples(st.integers(0, 40), st.sampled_from([0, 0, 45, 4000, -45]), st.integers(1, 12))


@settings(max_examples=200, deadline=None)
@given(st.lists(steps, max_size=8), st.lists(steps, max_size=8))
def test_no_true_window_after_the_way_out_spends_more_than_its_limit(before, after):
    spent, day = {}, begin
    total = Fraction(0)

    def run(limit, charges, *, is_right):
        nonlocal day, total
        state = limit.start()
        for days, off, tenths in charges:
            day += timedelta(days=days)
            now = day if is_right else day + timedelta(days=off)
            for _ in range(tenths):
                try:
                    state = limit.admit(state, limit.cost(TENTH), now=now)
                except OverBudget:
                    break
                month = (day.year, day.month)
                spent[month] = spent.get(month, 0) + Fraction(1, 10)
                total += Fraction(1, 10)
        return state

    old = run(monthly(), before, is_right=False)
    mended = (day.year, day.month)
    day = (day.replace(day=1) + timedelta(days=32)).replace(day=1)  # the next window by a clock that is right
    left = LIFE - old["lifetime/epsilon"]
    if left:
        run(monthly(left), after, is_right=True)
    assert total <= LIFE
    assert all(of <= EACH for month, of in spent.items() if month > mended)


@pytest.mark.parametrize(
    "length", ["hour", "5 hours", "day", "30 days", "week", "month", "7 months", "year", "3 years"]
)
@pytest.mark.parametrize("moment", ["0001-01-02", "2030-01-31T13:00", "9000-12-31T23:00"])
def test_a_window_begins_where_it_says(length, moment):
    number = _window_number(length, datetime.fromisoformat(moment)) + 1
    text = _window_start(length, number).replace(" at ", "T").removesuffix(" UTC")
    first = datetime.fromisoformat(text)
    assert _window_number(length, first) == number
    assert _window_number(length, first - timedelta(hours=1)) == number - 1
