# SPDX-License-Identifier: Apache-2.0
"""`verify` recomputes every total: what it takes over from the row before is what it would have computed."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import privacy
from discreet.errors import DiscreetError
from discreet.ledger import Asker, Ledger, Limit, State, chain
from tests.ledger.workers import writing

LIMITS = [
    Limit.filter(epsilon=1),
    Limit.filter(epsilon=1, delta=1e-6),
    Limit.filter(epsilon=1, delta=1e-6, leaks=0.5),
    Limit.filter(epsilon=1, delta=1e-6, window="month", lifetime=Limit.filter(epsilon=3, delta=1e-6)),
    Limit.plan(3 * privacy.laplace(scale=10) + 2 * privacy.gaussian(noise=20.0)),
    Limit.odometer(delta=1e-6),
    Limit.filter(epsilon=1, delta=1e-6, analysts={"ana": 0.5, "bo": 0.5}),
]
GAUSSIAN = privacy.gaussian(noise=20.0)
# a fixed stock, because a price is computed once for each mechanism and remembered
STOCK = [
    privacy.pure(0.1),
    privacy.pure(0.3),
    privacy.laplace(scale=20),
    privacy.randomized_response(0.2),
    GAUSSIAN,
]
TIMES = ["2030-01-31T00:00:00+00:00", "2030-02-01T00:00:00+00:00"]

charges = st.tuples(
    st.sampled_from(STOCK),  # what the row says was run
    st.none() | st.sampled_from(STOCK),  # what its stored cost was computed from, if from something else
    st.sampled_from(["right", "right", "right", "unchanged", "more"]),  # the total that it carries
    st.booleans(),  # whether a month has passed
)


def write(ledger, state, charge, time):
    """One charge with a right hash, whatever it says; the total that it carries, and whether that is right."""
    limit = ledger.limit
    guarantee, other, total, _ = charge
    cost = limit.cost(other or guarantee)
    analyst = "ana" if limit is LIMITS[-1] else None
    try:
        right = limit.admit(state, cost, asker=Asker(analyst=analyst), now=time)
    except DiscreetError:
        right = None
    carried = {"right": right or state, "unchanged": state, "more": right or state}[total]
    if total == "more" and right is not None:
        carried = State({name: of + (name.endswith("epsilon")) for name, of in right.items()})
    said = {"guarantee": guarantee.to_json(), "cost": cost.to_dict(), "analyst": analyst, "question": ""}
    with writing(ledger._store):
        last = ledger._store.last()
        row = chain.next_row(last, "reserved", **said, time=time, state=carried.to_dict())
        ledger._store.append(row)
    return carried, right is not None and carried == right


def recomputed(ledger):
    """Every charge again at today's cost, none taken over."""
    state = ledger.limit.start()
    for entry in ledger.entries():
        if entry.kind == "reserved" and state is not None:
            today = ledger.limit.cost(privacy.from_json(entry.guarantee))
            along = ledger.limit.open_ways(today, State.from_dict(entry.state))
            try:
                state = ledger.limit.admit(state, along, asker=Asker(analyst=entry.analyst), now=entry.time)
            except DiscreetError:
                state = None
    return state


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(LIMITS), st.lists(charges, min_size=1, max_size=6))
def test_every_total_is_what_computing_it_anew_gives(limit, book):
    with Ledger(":memory:", limit=limit) as ledger:
        state, month, sound, others = limit.start(), 0, True, set()
        for charge in book:
            if limit is LIMITS[0] and GAUSSIAN in charge[:2]:
                continue  # no pure limit has a price for it
            month = max(month, charge[3])
            state, right = write(ledger, state, charge, TIMES[month])
            sound &= right
            if charge[1] is not None and limit.cost(charge[1]) != limit.cost(charge[0]):
                others.add(len(ledger) - 1)
        found = ledger.verify()
        assert found.intact == sound
        again = recomputed(ledger)
        assert found.recomputed == (None if again is None else limit.budget(again))
        assert found.spent == limit.budget(state)
        told = [one.text for one in found.findings if one.code in {"W4", "W5"}]
        assert all(any(f"#{number}" in text for text in told) for number in others)
        assert bool(told) == bool(others)


def restated(text):
    """The amount of a text written in another way, or another amount."""
    return st.sampled_from(["0", "2/20", "1/10", "inf", "1/7", f"{text}/1", f"0{text}", "x"])


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(LIMITS), st.data())
def test_a_total_that_was_written_anew_is_found_as_by_computing_every_row(limit, data):
    """Rows with right hashes of which some state another total than was computed."""
    asker = Asker(analyst="ana" if limit is LIMITS[-1] else None)
    state, sound = limit.start(), True
    with Ledger(":memory:", limit=limit) as ledger, writing(ledger._store):
        for _ in range(data.draw(st.integers(1, 8))):
            stock = STOCK[:-1] if limit is LIMITS[0] else [GAUSSIAN, GAUSSIAN, GAUSSIAN, *STOCK]
            guarantee = data.draw(st.sampled_from(stock))
            cost = limit.cost(guarantee)
            try:
                after = limit.admit(state, cost, asker=asker, now=TIMES[0])
            except DiscreetError:
                break
            texts = after.to_dict()
            if data.draw(st.integers(0, 3)) == 0:
                name = data.draw(st.sampled_from(sorted(texts)))
                texts[name] = data.draw(restated(texts[name]))
            sound &= texts == after.to_dict()
            said = {"guarantee": guarantee.to_json(), "cost": cost.to_dict(), "analyst": asker.analyst}
            row = chain.next_row(ledger._store.last(), "reserved", **said, time=TIMES[0], state=texts)
            ledger._store.append(row)
            try:
                state = State.from_dict(texts)
            except DiscreetError:
                break
            if not limit.knows(state):
                break
        rows = len(ledger)
    verification = ledger.verify()
    assert verification.entries == rows
    assert verification.intact == sound
