# SPDX-License-Identifier: Apache-2.0
"""Which split of δ the first charge chooses, how many questions then fit, and that the claim is kept."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet import privacy
from discreet.errors import BadDescription, BadParameter, OverBudget
from discreet.ledger import Asker, Limit, State, pinned
from discreet.ledger.costs import Cost
from discreet.ledger.filter_choice import SPLITS
from tests.ledger.adversary import leaky_response, response, table, worst

ROUNDING = 1e-10


@cache
def with_keys(epsilon, delta, share):
    """A Gaussian question that finds its keys: that share of δ is for them."""

    def of(noise):
        return privacy.leaky(share * delta) + privacy.gaussian(noise)

    return of(dp.calibrate(of, to=privacy.approximate(epsilon, delta)))


def fit(limit, *questions):
    """How many of the questions, asked in turn, are admitted before the first refusal."""
    state, costs = limit.start(), [limit.cost(question) for question in questions]
    for done in range(10_000):
        try:
            state = limit.admit(state, costs[done % len(costs)])
        except OverBudget:
            return done
    raise AssertionError


MIXED = (privacy.pure(0.1), privacy.concentrated(0.002), privacy.approximate(0.1, 2e-8))
#: (ε of the limit, questions; how many by basic composition, at splits 1/10, 1/2, 3/4, 9/10, and as it is now); δ is 1e-6.
TABLE = {
    "M1": (4, [privacy.approximate(0.5, 1e-7)], (8, 1, 5, 7, 8, 8)),
    "M1g": (4, [with_keys(0.5, 1e-7, 0.25)], (8, 4, 20, 30, 36, 36)),
    "M1g, a tenth for keys": (4, [with_keys(0.5, 1e-7, 0.1)], (8, 10, 48, 46, 43, 48)),
    "M2": (1, [privacy.approximate(0.05, 1e-8)], (20, 10, 21, 21, 20, 21)),
    "M4": (1, [privacy.concentrated(0.001)], (5, 24, 22, 21, 20, 22)),
    "M5": (1, [privacy.concentrated(0.0005) + privacy.leaky(1e-8)], (7, 10, 45, 43, 40, 45)),
    "M6": (3, [privacy.pure(0.2)], (15, 15, 15, 15, 15, 15)),
    "M7": (1, [with_keys(0.2, 1e-6, 0.25)], (1, 0, 2, 3, 3, 3)),
    "M7, a tenth for keys": (1, [with_keys(0.2, 1e-6, 0.1)], (1, 1, 5, 7, 9, 9)),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_chosen_candidate_admits_as_many_queries_as_the_table_says(name):
    epsilon, questions, (basic, *by_split, now) = TABLE[name]
    splits = [Limit.filter(epsilon=epsilon, delta=1e-6, leaks=leaks) for leaks in (0.1, 0.5, 0.75, 0.9)]
    assert [fit(limit, *questions) for limit in splits] == by_split
    limit = Limit.filter(epsilon=epsilon, delta=1e-6)
    assert fit(limit, *questions) == limit.budget(limit.start()).like(questions[0]) == now >= basic


def test_what_is_expected_chooses_the_split():
    """Laplace, Gaussian and private keys in turn: begun with Laplace noise the usual split is kept, which holds one fewer."""
    assert [fit(Limit.filter(epsilon=2, delta=1e-6, leaks=leaks), *MIXED) for leaks in (0.1, 0.75)] == [
        17,
        23,
    ]
    assert fit(Limit.filter(epsilon=2, delta=1e-6), *MIXED) == 23
    expecting = Limit.filter(epsilon=2, delta=1e-6, expects=MIXED)
    assert fit(expecting, *MIXED) == 24
    assert expecting.leak == Fraction(1, 2 * 10**6)


def test_an_answer_that_is_all_of_the_budget_fits():
    for whole in (privacy.approximate(1, 1e-6), with_keys(1, 1e-6, 0.1), dp_gaussian(1, 1e-6)):
        limit = Limit.filter(epsilon=1, delta=1e-6)
        state = limit.admit(limit.start(), limit.cost(whole))
        assert limit.chosen_filter(state).sort == "basic"
        for more in (privacy.pure(1e-9), privacy.leaky(1e-15), privacy.gaussian(1e6)):
            with pytest.raises(OverBudget):
                limit.admit(state, limit.cost(more))


@cache
def dp_gaussian(epsilon, delta):
    return privacy.gaussian(dp.calibrate(privacy.gaussian, to=privacy.approximate(epsilon, delta)))


# --- never fewer than basic composition --------------------------------------------------------------------


def by_basic(epsilon, delta, questions):
    """How many of (ε, δ), asked in turn, basic composition admits."""
    spent, done = [Fraction(0), Fraction(0)], 0
    while done < 10_000:
        e, d = questions[done % len(questions)]
        spent = [spent[0] + Fraction(repr(e)), spent[1] + Fraction(repr(d))]
        if spent[0] > Fraction(repr(epsilon)) or spent[1] > Fraction(repr(delta)):
            return done
        done += 1
    return done


BUDGETS = [(1.0, 1e-6), (4.0, 1e-6), (0.5, 1e-9)]
PARTS = st.tuples(
    st.sampled_from([1, 2, 3, 5, 8, 10, 13, 20, 40]), st.sampled_from([1, 2, 3, 7, 10, 11, 33, 100])
)
KINDS = {
    "any": privacy.approximate,
    "laplace with keys": lambda e, d: privacy.leaky(d) + privacy.laplace(Fraction(1) / Fraction(repr(e))),
    "gaussian": dp_gaussian,
    "gaussian with keys": lambda e, d: with_keys(e, d, 0.1),
}


def part_of(budget, parts):
    epsilon, delta = budget
    return float(f"{epsilon / parts[0]:.4g}"), float(f"{delta / parts[1]:.4g}")


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(BUDGETS), PARTS, st.sampled_from(list(KINDS)))
def test_questions_like_the_first_are_never_fewer_than_by_basic_composition(budget, parts, kind):
    epsilon, delta = part_of(budget, parts)
    limit = Limit.filter(*budget)
    assert fit(limit, KINDS[kind](epsilon, delta)) >= by_basic(*budget, [(epsilon, delta)])


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(BUDGETS), st.lists(PARTS, min_size=1, max_size=4))
def test_a_mix_that_is_expected_is_never_shorter_than_by_basic_composition(budget, mix):
    questions = [part_of(budget, parts) for parts in mix]
    guarantees = [privacy.approximate(*question) for question in questions]
    assert fit(Limit.filter(*budget, expects=guarantees), *guarantees) >= by_basic(*budget, questions)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(BUDGETS), st.lists(PARTS, min_size=1, max_size=5))
def test_any_mix_is_never_shorter_than_by_basic_composition_within_the_share_that_was_kept(budget, mix):
    """Whatever comes after the first question: all that basic composition admits within ε and the δ of the account."""
    questions = [part_of(budget, parts) for parts in mix]
    guarantees = [privacy.approximate(*question) for question in questions]
    limit = Limit.filter(*budget)
    try:
        kept = limit.chosen_filter(limit.admit(limit.start(), limit.cost(guarantees[0])))
    except OverBudget:
        assert by_basic(*budget, questions[:1]) == 0
        return
    epsilon = budget[0]
    assert fit(limit, *guarantees) >= by_basic(epsilon, float(kept.leak) * (1 - 1e-15), questions)


def test_a_beginning_without_delta_keeps_the_usual_split():
    """A beginning without δ keeps the usual split; then basic composition alone would admit what needs all of δ."""
    questions = [privacy.pure(0.1), privacy.approximate(0.1, 1e-6)]
    assert by_basic(1.0, 1e-6, [(0.1, 0.0), (0.1, 1e-6)]) == 3
    assert fit(Limit.filter(epsilon=1, delta=1e-6), *questions) == 1
    assert fit(Limit.filter(epsilon=1, delta=1e-6, expects=questions), *questions) == 3


# --- the claim -------------------------------------------------------------------------------------------


def test_the_worst_analyst_keeps_the_claim_whatever_she_asks_first():
    mechanisms = [
        response(0.7),
        response(0.3),
        leaky_response(0.2, 0.01),
        leaky_response(0.0001, 0.1),
        table(*RARE),
    ]
    limit = Limit.filter(epsilon=1, delta=0.1)
    first = {
        limit.chosen_filter(limit.admit(limit.start(), limit.cost(one.guarantee))).leak for one in mechanisms
    }
    assert len(first) >= 2, "different beginnings choose different splits"
    assert 0.09 < worst(limit, mechanisms, 1.0, 5) <= 0.1 + ROUNDING


RARE = ([0.14, 0.86], [0.055, 0.945])


def leak_or_go_on(epsilon, leak, share):
    """Two answers: after the likely one a leak of all the account, after the other one more answer within the lane.

    With the losses of the optimum, the probabilities are the greatest that the order and budget of the lane allow.
    """
    order = pinned.best_order(Fraction(epsilon), share)
    budget = float(pinned.budget(Fraction(epsilon), share, order))
    first, second = max(
        (
            (pair(loss, cost, order), pair(epsilon - loss + more, budget - cost, order))
            for loss in (0.80, 0.85, 0.90, 0.93)
            for cost in (budget * part / 20 for part in range(1, 20))
            for more in (0.1, 0.15, 0.2, 0.25, 0.3)
        ),
        key=lambda two: two[0][0][0] * two[1][0][0] * excess(epsilon, *two),
    )
    return [table(*first), table(*second), leaky_response(1e-90, leak)]


def excess(epsilon, first, second):
    losses = [math.log(p[0] / q[0]) for p, q in (first, second)]
    return max(0.0, -math.expm1(epsilon - sum(losses)))


def pair(loss, divergence, order):
    """Two outcomes, the first with that loss, as likely as D_order ≤ divergence allows in both directions."""
    low, high = 1e-12, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        costs = max(renyi(middle, loss, order), renyi(middle * math.exp(-loss), -loss, order))
        low, high = (middle, high) if costs < divergence * (1 - 1e-9) else (low, middle)
    return (low, 1 - low), (low * math.exp(-loss), 1 - low * math.exp(-loss))


def renyi(p, loss, order):
    q = p * math.exp(-loss)
    return math.log(p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)) / (order - 1)


@pytest.mark.parametrize("leaks", SPLITS)
@pytest.mark.parametrize("delta", [Fraction(1, 50), Fraction(1, 1000)])
def test_a_split_is_used_up_and_not_exceeded(delta, leaks):
    limit = Limit.filter(epsilon=1, delta=delta, leaks=leaks)
    rest = (limit.delta - limit.leak) / (1 - limit.leak)
    mechanisms = leak_or_go_on(1, float(limit.leak), rest)
    assert 0.85 * delta < worst(limit, mechanisms, 1.0, 3) <= delta + ROUNDING


class Both:
    """What is wrong: full δ for the account and full δ for the lane, as an unproved filter."""

    def __new__(cls, epsilon, delta):
        from tests.ledger.test_limit_adaptive import replace_unproved

        made = Limit.filter(epsilon=epsilon, delta=delta, kind="tracks")
        wide = Limit.filter(epsilon=epsilon, delta=delta, leaks=Fraction(1, 10**9))
        return replace_unproved(made, leak=delta, tracks=wide.tracks)


class Undecided:
    """What is wrong: every candidate stays possible as long as it admits what was asked, and nobody ever chooses."""

    def __init__(self, epsilon, delta):
        self.filters = Limit.filter(epsilon=epsilon, delta=delta).filters

    def start(self):
        state = State({})
        for number, one in enumerate(self.filters):
            state = state.replace_under(f"{number}/", one.start())
        return state

    def cost(self, guarantee):
        return [one.cost(guarantee) for one in self.filters]

    def admit(self, state, costs):
        after = State({})
        for number, (one, cost) in enumerate(zip(self.filters, costs, strict=True)):
            inner = state.under(f"{number}/")
            found = one.pay_best(inner, cost) if inner else None
            after = after.replace_under(f"{number}/", {} if found is None else found[0])
        if not after:
            raise OverBudget("DP601", "none", why="", fix="")
        return after


@pytest.mark.parametrize("wrong", [Both, Undecided])
@pytest.mark.parametrize("delta", [Fraction(1, 50), Fraction(1, 1000)])
def test_the_same_search_finds_a_split_that_is_none(wrong, delta):
    """Full δ in both, or a choice that is made after answers were seen: well above the claim."""
    rest = delta if wrong is Both else (delta - delta / 2) / (1 - delta / 2)
    mechanisms = leak_or_go_on(1, float(delta) * (1 if wrong is Both else 0.85), rest)
    assert worst(wrong(1, delta), mechanisms, 1.0, 3) > 1.15 * delta
    assert worst(Limit.filter(epsilon=1, delta=delta), mechanisms, 1.0, 3) <= delta + ROUNDING


# --- choosing once -----------------------------------------------------------------------------------------


def test_the_choice_depends_on_the_first_cost_alone_and_is_made_once():
    limit = Limit.filter(epsilon=1, delta=1e-6)
    leaking, quiet = privacy.approximate(0.1, 1e-7), privacy.concentrated(0.001)
    one = limit.admit(limit.start(), limit.cost(leaking))
    two = limit.admit(limit.start(), limit.cost(quiet))
    assert (limit.chosen_filter(one).sort, limit.chosen_filter(two).leak) == ("basic", Fraction(1, 2 * 10**6))
    for state, more in ((one, quiet), (two, leaking)):
        after = limit.admit(state, limit.cost(more))
        assert limit.chosen_filter(after) == limit.chosen_filter(state)


def test_a_refusal_chooses_nothing():
    limit = Limit.filter(epsilon=1, delta=1e-6)
    start = limit.start()
    with pytest.raises(OverBudget):
        limit.admit(start, limit.cost(privacy.pure(2)))
    assert limit.chosen_filter(start) is None
    with pytest.raises(OverBudget, match="needs δ = 2e-06, but only 1e-06 of the budget's δ remains"):
        limit.admit(start, limit.cost(privacy.approximate(0.1, 2e-6)))
    assert fit(limit, privacy.pure(0.5)) == 2


def test_only_states_of_this_limit_are_known():
    limit = Limit.filter(epsilon=1, delta=1e-6)
    pinned_state = limit.admit(limit.start(), limit.cost(privacy.gaussian(30.0)))
    assert limit.knows(limit.start())
    assert limit.knows(pinned_state)
    for other in (
        State({}),
        State({"delta": Fraction(0)}),
        Limit.filter(epsilon=2, delta=1e-6, leaks=0.5).start(),
    ):
        assert not limit.knows(other)


def test_a_stored_choice_is_read_and_proved_again():
    limit = Limit.filter(epsilon=1, delta=1e-6)
    data = json.loads(json.dumps(limit.to_dict()))
    assert Limit.from_dict(data) == limit
    one, *others = data["filters"]
    damaged = [
        {**data, "filters": [one]},
        {**data, "filters": [one, one]},
        {**data, "filters": [{**one, "leak": "9/10000000"}, *others]},
        {**data, "filters": [Limit.filter(epsilon=2, delta=1e-6, kind="basic").to_dict(), *others]},
        {**data, "filters": [Limit.odometer(delta=1e-6).to_dict(), *others]},
        {**data, "filters": "x"},
    ]
    for description in damaged:
        with pytest.raises(BadDescription, match="DP401"):
            Limit.from_dict(description)


@pytest.mark.parametrize("bad", [0, 1, -0.5, 1.5, math.nan, math.inf, True, "half"])
def test_a_share_that_is_none_is_refused(bad):
    with pytest.raises(BadParameter):
        Limit.filter(epsilon=1, delta=1e-6, leaks=bad)


@pytest.mark.parametrize("bad", [5, "often", [0.1], [None], True])
def test_only_guarantees_are_expected(bad):
    with pytest.raises(BadParameter, match="DP104"):
        Limit.filter(epsilon=1, delta=1e-6, expects=bad)
    one = privacy.concentrated(0.001)
    assert Limit.filter(epsilon=1, delta=1e-6, expects=one) == Limit.filter(
        epsilon=1, delta=1e-6, expects=[one]
    )


@pytest.mark.parametrize("epsilon", [1e-9, 1, 1e9])
@pytest.mark.parametrize("delta", [5e-324, 1e-100, 0.999])
def test_candidates_exist_for_any_target_of_use(epsilon, delta):
    limit = Limit.filter(epsilon=epsilon, delta=delta)
    assert Limit.from_dict(limit.to_dict()) == limit
    assert limit.guarantee == privacy.approximate(epsilon, delta)


# --- shares and windows --------------------------------------------------------------------------------------


def test_shares_choose_together():
    """The first charge of all chooses for everybody; a share that is small counts."""
    limit = Limit.filter(epsilon=1, delta=1e-6, analysts={"ana": 0.5, "bo": 0.5})
    state = limit.admit(limit.start(), limit.cost(privacy.concentrated(0.001)), asker=Asker(analyst="ana"))
    assert limit.whole.chosen_filter(state.under("all/")) == limit.whole.chosen_filter(
        state.under("analyst bo/")
    )
    assert limit.knows(state)
    assert limit.knows(limit.start())
    after = limit.admit(state, limit.cost(privacy.approximate(0.1, 1e-8)), asker=Asker(analyst="bo"))
    assert after.under("all/")["delta"] == after.under("analyst bo/")["delta"] == Fraction(1, 10**8)
    with pytest.raises(OverBudget):
        limit.admit(limit.start(), limit.cost(privacy.approximate(0.6, 1e-8)), asker=Asker(analyst="ana"))


def test_reserved_shares_of_basic_composition_guarantee_their_delta():
    limit = Limit.filter(epsilon=1, delta=1e-6, kind="basic", analysts={"ana": 0.5}, reserved=True)
    assert limit.guarantee_to("ana") == privacy.approximate(0.5, 5e-7)


def test_each_window_chooses_anew():
    limit = Limit.filter(epsilon=1, delta=1e-6, window="month", lifetime=Limit.filter(epsilon=9, delta=1e-5))
    state = limit.admit(limit.start(), limit.cost(privacy.approximate(0.1, 1e-7)), now="2030-01-01")
    first, life = (
        part.chosen_filter(state.under(at))
        for part, at in ((limit.each, "window/"), (limit.lifetime, "lifetime/"))
    )
    state = limit.admit(state, limit.cost(privacy.concentrated(0.001)), now="2030-02-01")
    assert limit.knows(state)
    assert limit.each.chosen_filter(state.under("window/")) != first
    assert limit.lifetime.chosen_filter(state.under("lifetime/")) == life


@pytest.mark.parametrize(
    "more", [{}, {"analysts": {"ana": 1}}, {"window": "month", "lifetime": Limit.filter(9, 1e-5)}]
)
def test_recomputing_does_not_choose_again(more):
    """Today's costs might choose another split; only the ways of the one that was chosen are open."""
    limit = Limit.filter(epsilon=1, delta=1e-6, **more)
    whose = {"asker": Asker("ana"), "now": "2030-01-01"}
    cost = limit.cost(privacy.concentrated(0.001))
    basic = limit.admit(limit.start(), limit.cost(privacy.approximate(0.1, 1e-7)), **whose)
    assert limit.admit(limit.start(), cost, **whose).keys() != basic.keys()
    assert limit.admit(limit.start(), limit.open_ways(cost, basic), **whose).keys() == basic.keys()
    assert limit.open_ways(cost, limit.start()) == cost


def test_a_stored_cost_proves_the_choice():
    limit = Limit.filter(epsilon=1, delta=1e-6)
    cost = limit.cost(with_keys(0.2, 1e-6, 0.1))
    read = Cost.from_dict(json.loads(json.dumps(cost.to_dict())))
    assert limit.best_filter(read) == limit.best_filter(cost)
