# SPDX-License-Identifier: Apache-2.0
"""Filters: their constants, what fits and what does not, and what is refused before it is a limit."""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace
from fractions import Fraction

import mpmath
import pytest

from discreet import privacy
from discreet.errors import BadDescription, BadParameter, OverBudget, UnsupportedGuarantee
from discreet.ledger import Asker, Cost, Limit, State
from discreet.ledger.pricing import Track
from discreet.privacy.unit import Unit
from tests.ledger.conftest import spend

LIMITS = [
    Limit.filter(epsilon=1),
    Limit.filter(epsilon=1, delta=1e-6),
    Limit.filter(epsilon=1, delta=1e-6, kind="tracks"),
    Limit.filter(epsilon=1, delta=1e-6, kind="basic"),
    Limit.filter(epsilon=1, delta=1e-6, leaks=0.1),
    Limit.filter(epsilon=1, delta=1e-6, expects=[privacy.gaussian(20.0), privacy.approximate(0.1, 1e-8)]),
    Limit.filter(epsilon=1, delta=1e-6, kind="zcdp"),
    Limit.filter(epsilon=1, delta=1e-6, kind="gdp"),
    Limit.filter(rho=0.5),
    Limit.filter(rho=0.5, delta=1e-9),
    Limit.filter(mu=1.0),
    Limit.odometer(delta=1e-6),
    Limit.plan(5 * privacy.gaussian(10.0) + privacy.pure(0.1), within=privacy.approximate(2, 1e-6)),
    Limit.filter(epsilon=1, delta=1e-6, analysts={"ana": 0.5, "bo": 0.3}, projects={"flu": 1}),
    Limit.filter(epsilon=1, delta=1e-6, analysts={"ana": 0.5, "bo": 0.3}, reserved=True),
    Limit.filter(epsilon=1, delta=1e-6, window="30 days", lifetime=Limit.filter(epsilon=5, delta=1e-6)),
    Limit.filter(epsilon=1, analysts={"ana": 0.5}, window="month", lifetime=Limit.odometer(delta=1e-6)),
]


def test_ten_times_a_tenth_is_one_and_the_eleventh_is_refused():
    for kind in ({}, {"delta": 1e-6}):
        limit = Limit.filter(epsilon=1, **kind)
        state = spend(limit, *[privacy.pure(0.1)] * 10)
        with pytest.raises(OverBudget, match="DP601"):
            spend(limit, privacy.pure(1e-50), state=state)


def test_tiny_amounts_do_not_vanish():
    limit = Limit.filter(epsilon=1)
    state = spend(limit, privacy.pure(1.0 - 2e-15), *[privacy.pure(1e-17)] * 200)
    assert state["epsilon"] == 1
    with pytest.raises(OverBudget):
        spend(limit, privacy.pure(1e-50), state=state)


@pytest.mark.parametrize(
    "limit", [Limit.filter(epsilon=1, delta=1e-6, kind="tracks"), Limit.filter(rho=1), Limit.filter(mu=1)]
)
def test_nothing_is_free(limit):
    """Not even what is far below the last digit of a double."""
    tiny = (privacy.pure(1e-90), 3 * privacy.pure(1e-60), privacy.pure(1e-90).sampled(1e-90))
    for guarantee in (privacy.gaussian(1e90), *tiny):
        after = spend(limit, guarantee)
        assert all(after[track.name] > 0 for track in limit.tracks)


def test_noise_with_a_ratio_costs_exactly_that():
    limit = Limit.filter(epsilon=1, delta=1e-6)
    state = spend(limit, privacy.discrete_laplace(scale=7.3, sensitivity=2), privacy.laplace(scale=3))
    assert state["epsilon"] == Fraction(20, 73) + Fraction(1, 3)
    assert spend(Limit.filter(mu=1.0), *[privacy.gaussian(10.0)] * 100)["mu2"] == 1


def test_the_constants_are_those_of_the_theorem():
    """α and ρ = B/α at the full δ, and what is left of ρ when three quarters of δ, or a tenth, pay for leaks."""
    former = Limit.filter(epsilon=1, delta=1e-6, leaks=0.1)
    assert former.leak == Fraction(1, 10**7)
    assert former.tracks[1].order == pytest.approx(22.18, abs=0.1)
    assert float(former.shown_rho) == pytest.approx(0.991 * 0.02436, rel=1e-3)
    limit = Limit.filter(epsilon=1, delta=1e-6, kind="tracks")
    assert limit.leak == Fraction(3, 4 * 10**6)
    assert limit.tracks[0] == Track("epsilon", Fraction(1))
    assert float(limit.shown_rho) == pytest.approx(0.890 * 0.02436, rel=1e-3)
    assert float(Limit.filter(epsilon=1, delta=1e-6, kind="zcdp").tracks[0].total) == pytest.approx(
        float(limit.shown_rho), rel=1e-12
    )


def renyi_of_pure(epsilon, order):
    with mpmath.workdps(40):
        half, e = mpmath.mpf(order) - mpmath.mpf(1) / 2, mpmath.mpf(epsilon)
        return (mpmath.log(mpmath.cosh(half * e)) - mpmath.log(mpmath.cosh(e / 2))) / (mpmath.mpf(order) - 1)


def test_tracks_admit_more_queries_than_a_concentrated_filter():
    """Under (1, 1e-6), a tenth of δ for leaks: 5 of ε = 0.2 and 10 of 0.1 by the pure track, 124 of 0.02 by the Rényi track,
    where a concentrated filter of the full δ would admit 1, 4 and 121; for Gaussian noise both are the same."""
    tracks, single = (Limit.filter(epsilon=1, delta=1e-6, kind=kind, leaks=0.1) for kind in ("lanes", "zcdp"))

    def fits(limit, guarantee):
        return limit.budget(limit.start()).like(guarantee)

    order, budget = tracks.tracks[1].order, float(tracks.tracks[1].total)
    for epsilon, pure in (("0.2", 5), ("0.1", 10), ("0.05", 20), ("0.02", 50)):
        by_renyi = int(budget / renyi_of_pure(epsilon, order))
        assert fits(tracks, privacy.pure(float(epsilon))) == max(pure, by_renyi)
        by_rho = int(float(single.tracks[0].total) / (float(epsilon) * math.tanh(float(epsilon) / 2)))
        assert fits(single, privacy.pure(float(epsilon))) == by_rho
    assert fits(tracks, privacy.pure(0.02)) == 124
    assert [fits(single, privacy.pure(e)) for e in (0.2, 0.1, 0.05)] == [1, 4, 19]
    assert fits(tracks, privacy.gaussian(20.0)) == fits(single, privacy.gaussian(20.0)) == 19


def test_how_many_is_what_is_admitted():
    limit = Limit.filter(epsilon=1, delta=1e-6)
    state = spend(limit, privacy.pure(0.3), privacy.approximate(0.1, 1e-9))
    for guarantee in (privacy.gaussian(15.0), privacy.pure(0.07), privacy.approximate(0.01, 2e-8)):
        many = limit.budget(state).like(guarantee)
        full = spend(limit, *[guarantee] * many, state=state)
        with pytest.raises(OverBudget):
            spend(limit, guarantee, state=full)
    assert (
        Limit.filter(epsilon=1)
        .budget(State({"delta": Fraction(0), "epsilon": Fraction(2, 5)}))
        .like(privacy.pure(1e-7))
        == 6_000_000
    )


def test_a_track_that_is_closed_stays_closed_and_the_other_goes_on():
    limit = Limit.filter(epsilon=1, delta=1e-6)
    state = spend(limit, privacy.gaussian(30.0))
    assert state["epsilon"] == math.inf
    assert "pure track (ε): closed" in str(limit.budget(state))
    state = spend(limit, *[privacy.pure(0.01)] * 50, state=state)
    assert 0 < limit.budget(state).spent_fraction < 1


def test_when_the_renyi_track_is_closed_gaussian_noise_still_fits_as_a_point_of_its_curve():
    limit = Limit.filter(epsilon=1, delta=1e-6, kind="tracks")
    state = spend(limit, *[privacy.pure(0.2)] * 4)
    assert state[limit.tracks[1].name] > limit.tracks[1].total
    after = spend(limit, privacy.gaussian(40.0), state=state)
    assert after["delta"] > 0
    assert after["epsilon"] < 1


def test_leaks_are_paid_from_their_own_account():
    limit = Limit.filter(epsilon=1, delta=1e-6, leaks=0.1)
    leak = privacy.leaky(5e-8)
    state = spend(limit, leak, leak + privacy.gaussian(30.0))
    assert state["delta"] == Fraction(1, 10**7)
    with pytest.raises(OverBudget):
        spend(limit, privacy.leaky(1e-12), state=state)
    spend(limit, privacy.gaussian(30.0), state=state)


def test_a_whole_training_run_is_truncated_once():
    """Shares of the Rényi track with a δ of 8e-8: 39 % and 1.1 % of it, where the plain curve would not fit at all."""
    run = 1_000 * privacy.gaussian(noise=0.8).sampled(rate=0.001)
    for epsilon, share in ((1, 0.389), (3, 0.0110)):
        limit = Limit.filter(epsilon=epsilon, delta=1e-6, leaks=0.1)
        name, total = limit.tracks[1].name, limit.tracks[1].total
        rows = {row.name: row.amounts for row in reversed(limit.cost(run).rows)}
        if epsilon == 1:
            assert rows["plain"][name] > 1000 * total
            assert float(rows["truncated"][name] / total) == pytest.approx(share, rel=0.01)
            assert rows["truncated"]["delta"] <= Fraction(8, 10**8)
            assert spend(limit, run)
        else:
            assert rows.keys() == {"plain", "point"}, "it is cheap enough as it stands"


def test_the_row_is_the_one_after_which_most_is_left():
    """A tenth of a lane is not worth a half of the δ account: the rows are weighed by the product of what is left."""
    limit = Limit.filter(epsilon=1, delta=1e-6, leaks=0.1)
    run = 1_000 * privacy.gaussian(noise=0.8).sampled(rate=0.001)
    track = limit.tracks[1]
    left = [
        (1 - row.amounts["delta"] / limit.leak, 1 - row.amounts[track.name] / track.total)
        for row in limit.cost(run).rows
    ]
    best = max(delta * loss for delta, loss in left if min(delta, loss) >= 0)
    after = spend(limit, run)
    assert (1 - after["delta"] / limit.leak) * (1 - after[track.name] / track.total) == best
    assert spend(limit, privacy.pure(0.3))["delta"] == 0


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.kind)
def test_a_limit_says_what_it_is_and_survives_storage(limit):
    again = Limit.from_dict(json.loads(json.dumps(limit.to_dict())))
    assert again == limit
    assert again.describe() == limit.describe()
    assert limit.theorem
    assert all(isinstance(line, str) and line for line in limit.describe())


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.kind)
def test_states_and_costs_survive_storage(limit):
    whose = {"asker": Asker("ana", "flu"), "now": "2030-05-01T10:00:00+00:00"}
    for guarantee in (privacy.gaussian(20.0), privacy.pure(0.1)):
        try:
            cost = limit.cost(guarantee)
        except UnsupportedGuarantee:
            continue
        state = limit.admit(limit.start(), cost, **whose)
        assert State.from_dict(json.loads(json.dumps(state.to_dict()))) == state
        read = Cost.from_dict(json.loads(json.dumps(cost.to_dict(), sort_keys=True)))
        assert read == cost
        assert limit.admit(limit.start(), read, **whose) == state
        assert "%" in limit.budget(state)._repr_html_()


def test_a_limit_has_the_guarantee_of_its_parameters():
    assert Limit.filter(epsilon=1).guarantee == privacy.pure(1.0)
    assert Limit.filter(epsilon=1, delta=1e-6).guarantee == privacy.approximate(1.0, 1e-6)
    assert Limit.filter(rho=0.5).guarantee == privacy.concentrated(0.5)
    assert Limit.filter(rho=0.5, delta=1e-9).guarantee == privacy.approximate_concentrated(1e-9, 0.5)
    assert Limit.filter(mu=0.5).guarantee == privacy.gaussian(2.0)
    assert Limit.filter(epsilon=1, delta=1e-6, kind="gdp").guarantee.implies(privacy.approximate(1, 1e-6))
    assert Limit.filter(epsilon=1).guarantee_for(Unit("patient", "replace")) == privacy.pure(
        1.0, relation="replace", unit="patient"
    )
    assert Limit.filter(epsilon=Fraction(1, 3)).guarantee.epsilon(0) >= 1 / 3
    assert Limit.odometer(delta=1e-6).guarantee is None


BAD_NUMBERS = [0, -1, math.nan, math.inf, -math.inf, 5e-324, True, "1", None, 10**400, 1j]


@pytest.mark.parametrize("bad", BAD_NUMBERS)
def test_a_bad_epsilon_is_refused(bad):
    for make in (
        lambda: Limit.filter(epsilon=bad),
        lambda: Limit.filter(epsilon=bad, delta=1e-6),
        lambda: Limit.filter(rho=bad),
        lambda: Limit.filter(mu=bad),
        lambda: Limit.odometer(delta=1e-6, rho=bad),
    ):
        with pytest.raises(BadParameter) as refusal:
            make()
        assert refusal.value.code in {"DP101", "DP102", "DP104", "DP107"}


@pytest.mark.parametrize("bad", [-1e-9, math.nan, math.inf, 1, 1.0, 2.0, True, "1e-6", 1j])
def test_a_bad_delta_is_refused(bad):
    for make in (
        lambda: Limit.filter(epsilon=1, delta=bad),
        lambda: Limit.filter(epsilon=1, delta=bad, kind="zcdp"),
        lambda: Limit.filter(rho=1, delta=bad),
        lambda: Limit.odometer(delta=bad),
    ):
        with pytest.raises(BadParameter) as refusal:
            make()
        assert refusal.value.code in {"DP101", "DP102", "DP104"}


@pytest.mark.parametrize("bad", [1.0, "pure", None, [privacy.pure(1.0)], True])
def test_only_guarantees_have_a_price(bad):
    for limit in LIMITS:
        with pytest.raises(BadParameter, match="DP104"):
            limit.cost(bad)
    with pytest.raises(BadParameter, match="DP104"):
        Limit.plan(bad)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"epsilon": 1, "rho": 1},
        {"epsilon": 1, "delta": 1e-6, "mu": 1},
        {"epsilon": 1, "delta": 1e-6, "kind": "pure"},
        {"epsilon": 1, "kind": "lanes"},
        {"epsilon": 1, "delta": 0, "kind": "gdp"},
        {"rho": 1, "kind": "pure"},
        {"mu": 1, "delta": 1e-6},
        {"epsilon": 1, "lifetime": Limit.filter(epsilon=2)},
        {"epsilon": 1, "reserved": True},
        {"epsilon": 1, "leaks": 0.5},
        {"epsilon": 1, "kind": "basic"},
        {"epsilon": 1, "delta": 0, "kind": "basic"},
        {"epsilon": 1, "delta": 1e-6, "kind": "basic", "leaks": 0.5},
        {"epsilon": 1, "delta": 1e-6, "kind": "gdp", "leaks": 0.5},
        {"epsilon": 1, "delta": 1e-6, "kind": "lanes", "expects": [privacy.pure(0.1)]},
        {"epsilon": 1, "delta": 1e-6, "leaks": 0.5, "expects": [privacy.pure(0.1)]},
        {"epsilon": 1, "delta": 1e-6, "expects": []},
        {"rho": 1, "leaks": 0.5},
        {"mu": 1, "expects": [privacy.pure(0.1)]},
    ],
)
def test_what_contradicts_itself_is_refused(asked):
    with pytest.raises(BadParameter, match="DP107"):
        Limit.filter(**asked)


def test_an_unknown_kind_is_refused():
    with pytest.raises(BadParameter, match="DP105"):
        Limit.filter(epsilon=1, delta=1e-6, kind="moments")


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1, 100, 1e9])
@pytest.mark.parametrize("delta", [5e-324, 1e-100, 1e-6, 0.999])
def test_a_limit_can_be_made_for_any_target_of_use(epsilon, delta):
    for kind in ("lanes", "zcdp", "gdp"):
        limit = Limit.filter(epsilon=epsilon, delta=delta, kind=kind)
        assert Limit.from_dict(limit.to_dict()) == limit
        assert all(track.total > 0 for track in limit.tracks)


@pytest.mark.parametrize("epsilon", [1e-10, 1e-90, 1e10, 1e90])
def test_beyond_that_a_limit_with_delta_is_refused(epsilon):
    with pytest.raises(BadParameter, match="DP102"):
        Limit.filter(epsilon=epsilon, delta=1e-6)
    assert Limit.filter(epsilon=epsilon).guarantee == privacy.pure(epsilon)


def test_delta_zero_is_the_pure_filter():
    assert Limit.filter(epsilon=1, delta=0) == Limit.filter(epsilon=1)


@pytest.mark.parametrize(
    ("limit", "guarantee"),
    [
        (Limit.filter(epsilon=1), privacy.gaussian(100.0)),
        (Limit.filter(epsilon=1), privacy.approximate(0.1, 1e-9)),
        (Limit.filter(rho=1), privacy.renyi(8, 0.1)),
        (Limit.filter(mu=1), privacy.discrete_gaussian(100.0)),
        (Limit.filter(mu=1), privacy.gaussian(100.0).sampled(0.01)),
        (Limit.filter(mu=1), privacy.concentrated(0.001)),
    ],
)
def test_what_has_no_bound_in_the_limits_measure_is_refused(limit, guarantee):
    with pytest.raises(UnsupportedGuarantee, match="DP203"):
        limit.cost(guarantee)


def test_states_and_costs_of_another_limit_are_refused():
    one, two = Limit.filter(epsilon=1, delta=1e-6), Limit.filter(epsilon=2, delta=1e-6)
    for state, cost in (
        (one.start(), two.cost(privacy.pure(0.1))),
        (spend(two, privacy.gaussian(20.0)), one.cost(privacy.pure(0.1))),
        (State({}), one.cost(privacy.pure(0.1))),
    ):
        with pytest.raises(BadParameter, match="DP107"):
            one.admit(state, cost)


def test_a_stored_limit_is_proved_again():
    """Constants that guarantee more than they keep are not read back."""
    data = Limit.filter(epsilon=1, delta=1e-6, kind="tracks").to_dict()
    pure, renyi = data["lanes"]
    wide = {**renyi, "total": str(Fraction(renyi["total"]) + Fraction(1, 1 << 70))}
    other = {**renyi, "order": 20.0}
    damaged = [
        {**data, "lanes": [pure, wide]},
        {**data, "lanes": [pure, other]},
        {**data, "lanes": [{**pure, "total": "2"}, renyi]},
        {**data, "lanes": [renyi]},
        {**data, "lanes": []},
        {**data, "leak": "1/1000"},
        {**data, "delta": "1/10000000"},
        {**data, "epsilon": None},
        {**data, "sort": "moments"},
        {**data, "limit": "natural"},
        {**data, "epsilon": "inf"},
        {**data, "epsilon": 1.0},
        {},
        None,
    ]
    for description in damaged:
        with pytest.raises(BadDescription, match="DP401"):
            Limit.from_dict(description)
    with pytest.raises(BadDescription, match="DP402"):
        Limit.from_dict({**data, "discreet": 99})


def test_damaged_states_and_costs_are_not_read():
    for text in ("x", "-1/2", "1/0", 0.5, None):
        with pytest.raises(BadDescription, match="DP401"):
            State.from_dict({"epsilon": text})
    for data in ({}, {"ways": 3}, {"ways": [[{"row": "plain"}]]}, None):
        with pytest.raises(BadDescription, match="DP401"):
            Cost.from_dict(data)


def test_a_gaussian_filter_that_is_too_wide_is_refused():
    limit = Limit.filter(epsilon=1, delta=1e-6, kind="gdp")
    (track,) = limit.tracks
    with pytest.raises(BadParameter, match="DP107"):
        replace(limit, tracks=(replace(track, total=track.total * Fraction(1001, 1000)),))


def test_totals_stay_short_however_odd_the_amounts():
    limit = Limit.filter(epsilon=1000, delta=1e-6)
    scales = [1000 + 1 / (3 + i) for i in range(200)]
    state = spend(limit, *(privacy.laplace(scale=scale) for scale in scales))
    assert len(str(state["epsilon"])) < 400
    assert 0 <= state["epsilon"] - sum(1 / Fraction(repr(scale)) for scale in scales) < 1e-30


def test_a_charge_is_quick():
    limit = Limit.filter(epsilon=1, delta=1e-6)
    state = limit.start()
    for guarantee in (privacy.pure(1e-5), privacy.gaussian(1000.0)):
        limit.cost(guarantee)
        times = []
        for _ in range(50):
            begun = time.thread_time()
            state = limit.admit(state, limit.cost(guarantee))
            times.append(time.thread_time() - begun)
        assert sorted(times)[10] < 2e-3
