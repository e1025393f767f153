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
    Limit.filter(epsilon=1, delta=1e-6, analysts={"ana": 0.5, "bo": 0.5}),
]
# a fixed stock, because a price is computed once for each mechanism and remembered
STOCK = [privacy.pure(0.1), privacy.pure(0.3), privacy.laplace(scale=20), privacy.randomized_response(0.2)]
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
