# SPDX-License-Identifier: Apache-2.0
"""Laws of spending, for whatever is charged in whatever order."""

from __future__ import annotations

import json
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import privacy
from discreet.errors import OverBudget
from discreet.ledger import Cost, Limit, State

laws = settings(max_examples=40)

LANES = Limit.filter(epsilon=1, delta=1e-6, kind="tracks")
WIDE = Limit.filter(epsilon=1000, delta=1e-6, kind="tracks")
LIMITS = [
    LANES,
    Limit.filter(epsilon=1, delta=1e-6),
    Limit.filter(epsilon=1),
    Limit.filter(rho=0.05, delta=1e-7),
    Limit.filter(mu=0.5),
]

# a fixed stock, because a price is computed once for each mechanism and remembered
AMOUNTS = [0.001, 0.01, 0.017, 0.1, 0.13, 0.2, 0.3, 0.37]
PURE = [*map(privacy.pure, AMOUNTS), *map(privacy.laplace, [3, 7, 50, 333])]
OTHERS = [
    *map(privacy.gaussian, [6.0, 20.0, 61.0, 400.0]),
    *(privacy.approximate(epsilon, delta) for epsilon in (0.01, 0.2) for delta in (1e-9, 3e-8)),
    *map(privacy.leaky, [1e-9, 3e-8]),
    PURE[3] + 2 * PURE[4],
    PURE[8] + 2 * PURE[1],
]
amounts, pure, charges = map(st.sampled_from, (AMOUNTS, PURE, [*PURE, *OTHERS]))


def run(limit, guarantees):
    """The state after those that fit, and which of them did."""
    state, fitted = limit.start(), []
    for guarantee in guarantees:
        try:
            state = limit.admit(state, limit.cost(guarantee))
            fitted.append(guarantee)
        except OverBudget:
            continue
    return state, fitted


@laws
@given(st.lists(charges, max_size=12))
def test_totals_only_grow_and_some_track_stays_open(guarantees):
    state = LANES.start()
    for guarantee in guarantees:
        try:
            after = LANES.admit(state, LANES.cost(guarantee))
        except OverBudget:
            continue
        assert all(after[name] >= state[name] for name in state)
        assert after != state
        assert after["delta"] <= LANES.leak
        assert any(after[track.name] <= track.total for track in LANES.tracks)
        state = after


@laws
@given(st.lists(pure, min_size=1, max_size=10), st.randoms(use_true_random=False), st.sampled_from(LIMITS))
def test_the_order_of_charges_does_not_matter(guarantees, random, limit):
    """Each of these has one row; where a menu is offered, the choice depends on what was there before."""
    state, fitted = run(limit, guarantees)
    if any(len(limit.cost(guarantee).rows) > 1 for guarantee in fitted):
        return
    shuffled = fitted.copy()
    random.shuffle(shuffled)
    again, all_of_them = run(limit, shuffled)
    assert again == state
    assert len(all_of_them) == len(fitted)


@laws
@given(st.lists(charges, max_size=8), amounts, amounts)
def test_what_costs_less_fits_wherever_the_dearer_fits(guarantees, one, two):
    less, more = sorted((one, two))
    state, _ = run(LANES, guarantees)
    fits = [LANES.pay_best(state, LANES.cost(privacy.pure(epsilon))) is not None for epsilon in (less, more)]
    assert fits[0] >= fits[1]


@laws
@given(st.lists(charges, max_size=8), charges)
def test_a_smaller_history_never_admits_less(guarantees, last):
    """Room is monotone: a state with less in every lane admits whatever the fuller one admits."""
    state, _ = run(LANES, guarantees)
    lighter = State({name: of / 2 if isinstance(of, Fraction) else Fraction(0) for name, of in state.items()})
    cost = LANES.cost(last)
    try:
        LANES.admit(state, cost)
    except OverBudget:
        return
    assert LANES.admit(lighter, cost)


@laws
@given(charges, st.sampled_from(LIMITS[:1]))
def test_costs_survive_storage(guarantee, limit):
    cost = limit.cost(guarantee)
    assert Cost.from_dict(json.loads(json.dumps(cost.to_dict()))) == cost


@laws
@given(st.lists(charges, max_size=8))
def test_states_survive_storage(guarantees):
    state, _ = run(LANES, guarantees)
    assert State.from_dict(json.loads(json.dumps(state.to_dict()))) == state


@laws
@given(pure, st.sampled_from([1, 2, 5, 40]))
def test_a_bundle_costs_no_more_than_its_parts(guarantee, count):
    """k·a charged at once has a row that is no dearer than a charged k times, up to the rounding of a sum."""
    one, many = (WIDE.cost(of).rows[0].amounts for of in (guarantee, count * guarantee))
    assert all(many[name] <= count * one[name] * (1 + Fraction(1, 10**12)) for name in one)
    assert many["epsilon"] == count * one["epsilon"]


@laws
@given(st.fractions(Fraction(1, 100), 20), st.sampled_from([1e-12, 1e-6, 0.01, 0.3]))
def test_any_limit_survives_storage_and_keeps_its_claim(epsilon, delta):
    limit = Limit.filter(epsilon=epsilon, delta=delta)
    assert Limit.from_dict(json.loads(json.dumps(limit.to_dict()))) == limit
    assert Fraction(repr(limit.guarantee.epsilon_)) >= epsilon
    assert limit.guarantee.epsilon_ <= float(epsilon) * (1 + 1e-15)
