# SPDX-License-Identifier: Apache-2.0
"""Laws that every guarantee obeys, whatever it is made of. The examples are fixed, so a failure repeats."""

from __future__ import annotations

import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import privacy

laws = settings(max_examples=40)
few = settings(max_examples=20)

# A bound is computed, so two ways to the same truth may differ by rounding, never by more than this.
SLACK = 1 + 1e-9
# Two brackets of the same truth may differ by the width both are allowed to have.
WIDTH = 1 + 1e-3


def _number(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_nan=False, allow_infinity=False)


noises, scales, epsilons = _number(0.5, 50), _number(0.2, 50), _number(0.01, 4)
deltas = st.sampled_from([0.3, 1e-2, 1e-6, 1e-15, 1e-100])
rates = _number(1e-4, 1)
counts = st.integers(1, 300)

with_pairs = st.one_of(
    st.builds(privacy.gaussian, noises),
    st.builds(privacy.laplace, scales),
    st.builds(lambda e, k: privacy.randomized_response(epsilon=e, outcomes=k), epsilons, st.integers(2, 9)),
    st.builds(lambda s, d: privacy.discrete_laplace(s, sensitivity=d), scales, st.integers(1, 4)),
    st.builds(privacy.pure, epsilons),
    st.builds(privacy.exponential, epsilons),
    st.builds(privacy.approximate, epsilons, st.sampled_from([1e-9, 1e-3])),
    st.builds(lambda n, r: privacy.gaussian(n).sampled(rate=r), noises, rates),
    st.builds(lambda e, r: privacy.randomized_response(epsilon=e).sampled(rate=r), epsilons, rates),
)
without_pairs = st.one_of(
    st.builds(lambda rho: privacy.concentrated(rho=rho), _number(0.001, 2)),
    st.builds(
        lambda d, rho: privacy.approximate_concentrated(delta=d, rho=rho), st.just(1e-7), _number(0.001, 2)
    ),
    st.builds(lambda a, e: privacy.renyi(order=a, epsilon=e), st.sampled_from([2, 8.5]), epsilons),
    st.builds(lambda e: privacy.renyi_curve({2: e, 8: 2 * e}), _number(0.01, 1)),
)
primitives = st.one_of(with_pairs, without_pairs)
trees = st.one_of(
    primitives,
    st.builds(lambda a, k: k * a, with_pairs, counts),
    st.builds(lambda a, b: a + b, with_pairs, with_pairs),
    st.builds(lambda a, b, k: a + k * b, primitives, with_pairs, counts),
)

replaced = st.one_of(
    st.builds(lambda n: privacy.gaussian(n, relation="replace", unit="household"), noises),
    st.builds(
        lambda e, r: privacy.pure(e, relation="replace").sampled(r, scheme="without-replacement"),
        epsilons,
        rates,
    ),
    st.builds(lambda n, r: privacy.gaussian(n).sampled(r, relation="replace"), noises, rates),
    st.builds(lambda a, b: privacy.parallel(a, b, relation="replace"), with_pairs, with_pairs),
)
described = st.one_of(
    trees,
    replaced,
    st.builds(lambda a, k: k * a, replaced, counts),
    st.builds(lambda a, b: privacy.parallel(a, 2 * b), with_pairs, with_pairs),
    st.builds(lambda a, k: a.group(k), with_pairs, st.integers(2, 5)),
    st.builds(lambda e: privacy.leaky_randomized_response(e, 0.01) + privacy.leaky(0.02), epsilons),
    st.builds(lambda p: privacy.pair([p, 1 - p], [0.5, 0.5], unit="visit"), _number(0.1, 0.9)),
    st.builds(
        lambda s: privacy.two_gaussians(shift=s, ratio=1.1) + privacy.discrete_gaussian(s + 1, 2), epsilons
    ),
)


@laws
@given(primitives, primitives, primitives)
def test_addition_commutes_and_associates(a: Any, b: Any, c: Any) -> None:
    assert a + b == b + a
    assert hash(a + b) == hash(b + a)
    assert (a + b) + c == a + (b + c)
    assert hash((a + b) + c) == hash(a + (b + c))
    assert a + b != a + b + c


@laws
@given(primitives, st.integers(1, 6), st.integers(1, 6))
def test_a_count_is_repeated_addition(a: Any, j: int, k: int) -> None:
    repeated = a
    for _ in range(k - 1):
        repeated = repeated + a
    assert k * a == a * k == repeated
    assert hash(k * a) == hash(repeated)
    assert j * a + k * a == (j + k) * a
    assert j * (k * a) == (j * k) * a
    assert 1 * a == a


@laws
@given(with_pairs, with_pairs, st.integers(2, 9))
def test_a_count_distributes(a: Any, b: Any, k: int) -> None:
    assert k * (a + b) == k * a + k * b


@few
@given(trees)
def test_epsilon_falls_as_delta_grows(a: Any) -> None:
    found = [a.epsilon(delta=delta) for delta in (1e-100, 1e-15, 1e-6, 0.3)]
    assert all(e >= 0 for e in found)
    assert all(later <= sooner * SLACK for sooner, later in itertools.pairwise(found))


@few
@given(trees)
def test_delta_falls_as_epsilon_grows(a: Any) -> None:
    found = [a.delta(epsilon=epsilon) for epsilon in (0.0, 0.1, 1.0, 50.0)]
    assert all(0 <= d <= 1 for d in found)
    assert all(later <= sooner * SLACK for sooner, later in itertools.pairwise(found))


@few
@given(noises, rates, rates, st.integers(1, 100), deltas)
def test_more_sampling_is_never_safer(noise: float, r1: float, r2: float, k: int, delta: float) -> None:
    low, high = sorted((r1, r2))
    rare, often = (k * privacy.gaussian(noise).sampled(rate=rate) for rate in (low, high))
    assert rare.bound(delta=delta).lower <= often.epsilon(delta=delta) * SLACK
    assert rare.epsilon(delta=delta) <= often.epsilon(delta=delta) * WIDTH + 1e-12


@laws
@given(with_pairs, rates, deltas)
def test_a_sample_is_never_worse_than_everyone(a: Any, rate: float, delta: float) -> None:
    assert a.sampled(rate=rate).epsilon(delta=delta) <= a.epsilon(delta=delta) * WIDTH + 1e-12
    assert a.sampled(rate=1.0).epsilon(delta=delta) <= a.epsilon(delta=delta) * WIDTH + 1e-12


@few
@given(noises, _number(1, 5), counts, deltas)
def test_more_noise_is_never_worse(noise: float, factor: float, k: int, delta: float) -> None:
    for make in (privacy.gaussian, privacy.laplace):
        little, much = k * make(noise), k * make(noise * factor)
        assert much.epsilon(delta=delta) <= little.epsilon(delta=delta) * WIDTH + 1e-12


@few
@given(with_pairs, with_pairs, deltas)
def test_a_composition_is_never_cheaper_than_a_part(a: Any, b: Any, delta: float) -> None:
    assert (a + b).epsilon(delta=delta) >= a.bound(delta=delta).lower / SLACK
    assert (a + b).advantage() >= a.advantage() / WIDTH


@few
@given(with_pairs, with_pairs, deltas)
def test_a_composition_never_costs_more_than_the_sum(a: Any, b: Any, delta: float) -> None:
    half = delta / 2
    assert (a + b).epsilon(delta=delta) <= (a.epsilon(delta=half) + b.epsilon(delta=half)) * WIDTH


@pytest.mark.parametrize(
    "restore", [lambda a: privacy.from_json(a.to_json()), lambda a: pickle.loads(pickle.dumps(a))]
)
@laws
@given(described)
def test_json_and_pickle_bring_a_guarantee_back(restore: Any, a: Any) -> None:
    restored = restore(a)
    assert restored == a
    assert hash(restored) == hash(a)
    assert restored.unit == a.unit
    assert restored.to_json() == a.to_json()


@few
@given(trees, deltas)
def test_the_lower_value_is_below_the_upper(a: Any, delta: float) -> None:
    bound = a.bound(delta=delta)
    assert 0 <= bound.lower <= bound.upper == a.epsilon(delta=delta)
    assert bound.route
    assert bound.theorem
    other = a.bound(epsilon=1.0)
    assert 0 <= other.lower <= other.upper == a.delta(epsilon=1.0) <= 1


@few
@given(trees, deltas)
def test_epsilon_and_delta_are_inverse(a: Any, delta: float) -> None:
    epsilon = a.epsilon(delta=delta)
    if epsilon < math.inf:
        assert a.delta(epsilon=epsilon) <= delta * (1 + 1e-6)


@few
@given(trees, deltas)
def test_no_route_is_below_the_certified_lower_value(a: Any, delta: float) -> None:
    floor = a.bound(delta=delta).lower
    rows = a.compare(delta=delta)
    assert rows
    assert min(row.upper for row in rows) * SLACK >= a.epsilon(delta=delta)
    for row in rows:
        assert row.upper >= floor / SLACK, f"{row.route} says {row.upper!r}, the truth is at least {floor!r}"
        assert row.theorem
        assert math.isclose(a.epsilon(delta=delta, route=row.route), row.upper, rel_tol=1e-9)


@few
@given(trees)
def test_the_tradeoff_curve_is_convex_falling_and_below_chance(a: Any) -> None:
    alarms = np.linspace(0, 1, 21)
    misses = np.array([a.tradeoff(false_alarm=float(alarm)) for alarm in alarms])
    assert np.all(misses >= 0)
    assert np.all(misses <= 1 - alarms + 1e-12)
    assert np.all(np.diff(misses) <= 1e-9)
    assert np.all(misses[1:-1] <= (misses[:-2] + misses[2:]) / 2 + 1e-3)
    assert np.max(1 - alarms - misses) <= a.advantage() + 1e-9


@few
@given(trees)
def test_the_roc_curve_rises_and_beats_chance(a: Any) -> None:
    roc = a.roc()
    assert roc.false_alarm.shape == roc.detection.shape
    assert np.all(np.diff(roc.false_alarm) >= 0)
    assert np.all(np.diff(roc.detection) >= -1e-12)
    assert np.all(roc.detection >= roc.false_alarm - 1e-12)
    assert roc.false_alarm[0] == 0
    assert math.isclose(roc.detection[-1], 1)


@laws
@given(trees)
def test_renyi_divergence_grows_with_the_order(a: Any) -> None:
    found = [a.renyi(order=order) for order in (1.5, 2.0, 4.0, 32.0)]
    assert all(sooner <= later * SLACK for sooner, later in itertools.pairwise(found))
    assert all(
        d <= order * a.concentrated() * SLACK for d, order in zip(found, (1.5, 2.0, 4.0, 32.0), strict=True)
    )


@laws
@given(primitives, primitives)
def test_renyi_divergences_and_concentration_add(a: Any, b: Any) -> None:
    for order in (2.0, 8.5):
        whole, parts = (a + 2 * b).renyi(order=order), a.renyi(order=order) + 2 * b.renyi(order=order)
        assert whole == parts or math.isclose(whole, parts, rel_tol=1e-9)


@laws
@given(trees)
def test_a_guarantee_implies_itself(a: Any) -> None:
    assert a.implies(a)


@few
@given(trees, st.sampled_from([1e-2, 1e-6]))
def test_a_guarantee_implies_what_it_was_asked(a: Any, delta: float) -> None:
    epsilon = a.epsilon(delta=delta)
    if 0 < epsilon < math.inf:
        assert a.implies(privacy.approximate(epsilon * SLACK, delta))


@few
@given(with_pairs, st.sampled_from([1e-2, 1e-6]))
def test_a_guarantee_does_not_imply_what_is_false(a: Any, delta: float) -> None:
    floor = a.bound(delta=delta).lower
    if 1e-3 < floor < math.inf:
        assert not a.implies(privacy.approximate(floor * 0.99, delta))


@laws
@given(with_pairs, with_pairs)
def test_parts_are_as_dear_as_the_dearest(a: Any, b: Any) -> None:
    both = privacy.parallel(a, b)
    for delta in (1e-2, 1e-9):
        most = max(a.epsilon(delta=delta), b.epsilon(delta=delta))
        assert both.epsilon(delta=delta) <= most * WIDTH + 1e-12
        assert both.epsilon(delta=delta) >= max(g.bound(delta=delta).lower for g in (a, b)) / SLACK


@few
@given(with_pairs, st.integers(1, 5))
def test_a_larger_group_is_never_safer(a: Any, size: int) -> None:
    assert a.group(1).epsilon(delta=1e-6) <= a.epsilon(delta=1e-6) * WIDTH
    small, large = a.group(size), a.group(size + 1)
    assert small.bound(delta=1e-6).lower <= large.epsilon(delta=1e-6) * SLACK


@few
@given(primitives)
def test_every_guarantee_can_be_printed(a: Any) -> None:
    assert repr(a)
    assert str(a)
    assert str(a.bound(delta=1e-6))
    assert "epsilon" in str(a.compare(delta=1e-6)).lower() or "ε" in str(a.compare(delta=1e-6))
