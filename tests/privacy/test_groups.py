# SPDX-License-Identifier: Apache-2.0
"""Several units at once: the exact curves of sampled groups, and that no lower bound is above what a mechanism attains.

For mechanisms of which only (ε, δ) is known the greatest δ over *all* of them is a linear program: two outcomes are enough
for one test region, a mechanism is the mass p(x) of that region for every data set x, and neighbours constrain each other.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import logsumexp
from scipy.stats import binom, norm

from discreet import calibrate, errors, privacy
from discreet.privacy import comonotone
from discreet.privacy.groups import GroupGuarantee, SampledGroupGuarantee, chain
from discreet.privacy.guarantee import Guarantee, _lower_delta, _lower_epsilon
from discreet.privacy.losses import Composition
from discreet.privacy.pairs import log_delta_of

Data = frozenset[int]
Distribution = dict[Data, float]

# --- all mechanisms at once ------------------------------------------------------------------------------------------


def subsets(records: int) -> list[Data]:
    return [frozenset(s) for size in range(records + 1) for s in itertools.combinations(range(records), size)]


def poisson(data: Data, rate: float) -> Distribution:
    """The distribution of a Poisson sample."""
    return {
        frozenset(kept): rate**size * (1 - rate) ** (len(data) - size)
        for size in range(len(data) + 1)
        for kept in itertools.combinations(sorted(data), size)
    }


def fixed_size(data: Data, size: int) -> Distribution:
    samples = [frozenset(s) for s in itertools.combinations(sorted(data), size)]
    return dict.fromkeys(samples, 1 / len(samples))


def neighbours(relation: str, records: int) -> Iterator[tuple[Data, Data]]:
    for x in subsets(records):
        if relation == "add-remove":
            yield from ((x, x | {r}) for r in range(records) if r not in x)
        else:
            yield from ((x, (x - {old}) | {new}) for old in x for new in range(records) if new not in x)


def worst(
    stated: tuple[float, float],
    relation: str,
    records: int,
    distributions: tuple[Distribution, Distribution],
    at: float,
) -> float:
    """The greatest H at e^at of (P, Q) or (Q, P) over all mechanisms that have (ε, δ) for these neighbours."""
    index = {x: i for i, x in enumerate(subsets(records))}
    grown, delta = math.exp(stated[0]), stated[1]
    rows, limits = [], []
    for x, y in neighbours(relation, records):
        for a, b in ((x, y), (y, x)):
            row = np.zeros(len(index))
            row[index[a]], row[index[b]] = 1.0, -grown
            rows.append(row)
            limits.append(delta)
            # the other outcome: 1 - p(a) ≤ e^ε·(1 - p(b)) + δ
            rows.append(-row)
            limits.append(grown - 1 + delta)
    found = 0.0
    for first, second in (distributions, distributions[::-1]):
        goal = np.zeros(len(index))
        for x, chance in first.items():
            goal[index[x]] -= chance
        for x, chance in second.items():
            goal[index[x]] += chance * math.exp(at)
        solved = linprog(goal, A_ub=np.array(rows), b_ub=limits, bounds=(0, 1), method="highs")
        assert solved.status == 0
        found = max(found, -solved.fun)
    return found


RATE = 0.4
STATED = {"pure": (1.0, 0.0), "small": (0.3, 0.0), "loose": (1.2, 0.01), "wide": (0.5, 0.05)}


def stated_guarantee(name: str, relation: str = "add-remove") -> Guarantee:
    return privacy.approximate(*STATED[name], relation=relation)


AB = frozenset({0, 1})
#: name ↦ (relation of the base, records, P, Q, the guarantee)
CASES: dict[str, tuple[str, int, Distribution, Distribution, Callable[[Guarantee], Guarantee]]] = {
    "one": ("add-remove", 1, {frozenset({0}): 1.0}, {frozenset(): 1.0}, lambda g: g),
    "group of 2": ("add-remove", 2, {AB: 1.0}, {frozenset(): 1.0}, lambda g: g.group(2)),
    "group of 3": ("add-remove", 3, {frozenset({0, 1, 2}): 1.0}, {frozenset(): 1.0}, lambda g: g.group(3)),
    "group of 5": ("add-remove", 5, {frozenset(range(5)): 1.0}, {frozenset(): 1.0}, lambda g: g.group(5)),
    "one for another": (
        "add-remove",
        2,
        {frozenset({0}): 1.0},
        {frozenset({1}): 1.0},
        lambda g: g.at_distance(2),
    ),
    "two replaced": ("replace", 4, {AB: 1.0}, {frozenset({2, 3}): 1.0}, lambda g: g.group(2)),
    "poisson": (
        "add-remove",
        1,
        poisson(frozenset({0}), RATE),
        {frozenset(): 1.0},
        lambda g: g.sampled(RATE),
    ),
    "poisson, group of 2": (
        "add-remove",
        2,
        poisson(AB, RATE),
        {frozenset(): 1.0},
        lambda g: g.sampled(RATE).group(2),
    ),
    "poisson, group of 4": (
        "add-remove",
        4,
        poisson(frozenset(range(4)), RATE),
        {frozenset(): 1.0},
        lambda g: g.sampled(RATE).group(4),
    ),
    "poisson, at distance 2": (
        "add-remove",
        2,
        poisson(frozenset({0}), RATE),
        poisson(frozenset({1}), RATE),
        lambda g: g.sampled(RATE).at_distance(2),
    ),
    "poisson, replaced": (
        "add-remove",
        2,
        poisson(frozenset({0}), RATE),
        poisson(frozenset({1}), RATE),
        lambda g: g.sampled(RATE, relation="replace"),
    ),
    "poisson, known under replace": (
        "replace",
        2,
        poisson(frozenset({0}), RATE),
        poisson(frozenset({1}), RATE),
        lambda g: g.sampled(RATE),
    ),
    "poisson, two replaced": (
        "replace",
        4,
        poisson(AB, RATE),
        poisson(frozenset({2, 3}), RATE),
        lambda g: g.sampled(RATE).group(2),
    ),
    "fixed size": (
        "replace",
        5,
        fixed_size(frozenset({0, 1, 2, 3}), 2),
        fixed_size(frozenset({4, 1, 2, 3}), 2),
        lambda g: g.sampled(0.5, "without-replacement"),
    ),
    "fixed size, from add-remove": (
        "add-remove",
        5,
        fixed_size(frozenset({0, 1, 2, 3}), 2),
        fixed_size(frozenset({4, 1, 2, 3}), 2),
        lambda g: g.sampled(0.5, "without-replacement", "replace"),
    ),
}
ATTAINED = {
    "one",
    "group of 2",
    "group of 3",
    "group of 5",
    "one for another",
    "two replaced",
    "poisson",
    "poisson, group of 2",
    "poisson, group of 4",
    "poisson, known under replace",
    "fixed size",
    "fixed size, from add-remove",
}


@functools.cache
def truth(case: str, stated: str, at: float) -> float:
    relation, records, p, q, _ = CASES[case]
    return worst(STATED[stated], relation, records, (p, q), at)


@pytest.mark.parametrize("stated", STATED)
@pytest.mark.parametrize("case", CASES)
def test_bounds_hold_on_both_sides_of_the_worst_mechanism(case: str, stated: str) -> None:
    relation, _, _, _, build = CASES[case]
    guarantee = build(stated_guarantee(stated, relation))
    for at in (0.0, 0.1, 0.3, 0.7, 1.1, 1.9, 2.6):
        bound, attained = guarantee.bound(epsilon=at), truth(case, stated, at)
        assert attained <= bound.upper + 1e-9, at
        assert bound.lower <= attained + 1e-9, at
        if case in ATTAINED or (case == "poisson, replaced" and STATED[stated][1] == 0):
            assert bound.upper == pytest.approx(attained, abs=1e-9), at


def test_the_attained_are_called_tight_and_no_others() -> None:
    for case, (relation, *_, build) in CASES.items():
        node = build(stated_guarantee("loose", relation))
        assert node.tight == (case in ATTAINED), case  # type: ignore[attr-defined]


def test_what_used_to_be_called_exact_is_not_above_any_mechanism() -> None:
    """δ = .3683 was "exact" for a replaced record at ε = .3 and half of the data; no 1-private mechanism has more than .2967."""
    for rate in (0.1, 0.5, 0.9):
        p, q = (poisson(frozenset({r}), rate) for r in (0, 1))
        for at in (0.0, 0.1, 0.5, 1.0):
            bound = privacy.pure(1.0).sampled(rate, relation="replace").bound(epsilon=at)
            attained = worst((1.0, 0.0), "add-remove", 2, (p, q), at)
            assert bound.lower <= attained + 1e-9
            assert bound.upper == pytest.approx(attained, abs=1e-9)


# --- mechanisms that are known by more than (ε, δ) -------------------------------------------------------------------


def hockey(p: np.ndarray, q: np.ndarray, at: float) -> float:
    return max(
        float(np.maximum(p - math.exp(at) * q, 0).sum()), float(np.maximum(q - math.exp(at) * p, 0).sum())
    )


@pytest.mark.parametrize("seed", range(12))
def test_random_channels_are_covered_and_cover_their_lower_bounds(seed: int) -> None:
    """Random mechanisms on subsets of four records: guarantees made of their own worst (ε, δ) and of their own worst pairs."""
    random = np.random.default_rng(seed)
    records, outcomes = 4, int(random.integers(2, 5))
    weights = random.normal(size=(records, outcomes)) * random.uniform(0.05, 0.4)
    distributions = {x: np.exp(sum((weights[r] for r in x), np.zeros(outcomes))) for x in subsets(records)}
    distributions = {x: distribution / distribution.sum() for x, distribution in distributions.items()}
    near = list(neighbours("add-remove", records))
    epsilon = max(float(np.abs(np.log(distributions[x] / distributions[y])).max()) for x, y in near)
    point = 0.8 * epsilon
    delta = max(hockey(distributions[x], distributions[y], point) for x, y in near)
    known = [privacy.pure(epsilon * (1 + 1e-12)), privacy.approximate(point, delta * (1 + 1e-12))]
    whole = frozenset(range(records))
    mixed = sum(chance * distributions[x] for x, chance in poisson(whole, RATE).items())
    for guarantee in known:
        for at in (0.0, 0.2, 0.8, 2.0):
            assert (
                hockey(distributions[whole], distributions[frozenset()], at)
                <= guarantee.group(records).delta(at) + 1e-12
            )
            assert (
                hockey(mixed, distributions[frozenset()], at)
                <= guarantee.sampled(RATE).group(records).delta(at) + 1e-12
            )


Z = np.arange(-400, 401)


def noisy(kind: str, total: int) -> np.ndarray:
    logs = {"laplace": -np.abs(Z - total) / 1.3, "gaussian": -((Z - total) ** 2) / (2 * 1.7**2)}[kind]
    distribution = np.exp(logs)
    return distribution / np.exp(logs).sum()


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("moves", [(1, 1, 1), (1, -1, 1), (1, 0, 1), (-1, -1, -1)])
def test_a_sampled_group_of_integers(kind: str, moves: tuple[int, ...]) -> None:
    base = privacy.discrete_laplace(1.3) if kind == "laplace" else privacy.discrete_gaussian(1.7)
    group = base.sampled(RATE).group(3)
    mixed = np.zeros(Z.size)
    for kept in itertools.product((0, 1), repeat=3):
        chance = math.prod(RATE if keep else 1 - RATE for keep in kept)
        mixed += chance * noisy(kind, sum(move * keep for move, keep in zip(moves, kept, strict=True)))
    for at in (0.0, 0.05, 0.3, 0.8, 1.5):
        bound, found = group.bound(epsilon=at), hockey(mixed, noisy(kind, 0), at)
        assert found <= bound.upper + 1e-12
        if abs(sum(moves)) == 3:
            assert found == pytest.approx(bound.lower, abs=1e-11)
            assert found == pytest.approx(bound.upper, abs=1e-11)


# --- Gaussian noise: user-level DP-SGD -------------------------------------------------------------------------------


def mixture_delta(mu: float, rate: float, size: int, at: float) -> tuple[mpmath.mpf, mpmath.mpf]:
    """δ of one step, removed and added."""
    p = [
        mpmath.binomial(size, j) * mpmath.mpf(rate) ** j * (1 - mpmath.mpf(rate)) ** (size - j)
        for j in range(size + 1)
    ]
    mu = mpmath.mpf(mu)

    def loss(x: mpmath.mpf) -> mpmath.mpf:
        return mpmath.log(
            mpmath.fsum(w * mpmath.exp(j * mu * x - (j * mu) ** 2 / 2) for j, w in enumerate(p))
        )

    def solve(level: float) -> mpmath.mpf:
        low, high = mpmath.mpf(-60), mpmath.mpf(120)
        for _ in range(160):
            middle = (low + high) / 2
            low, high = (middle, high) if loss(middle) < level else (low, middle)
        return high

    x = solve(at)
    removed = mpmath.fsum(w * mpmath.ncdf(j * mu - x) for j, w in enumerate(p)) - mpmath.exp(
        at
    ) * mpmath.ncdf(-x)
    if -at <= size * math.log1p(-rate):
        return removed, mpmath.mpf(0)
    x = solve(-at)
    added = mpmath.ncdf(x) - mpmath.exp(at) * mpmath.fsum(
        w * mpmath.ncdf(x - j * mu) for j, w in enumerate(p)
    )
    return removed, added


@pytest.mark.parametrize(
    ("noise", "rate", "size"),
    [(1.0, 0.01, 10), (1.0, 0.01, 2), (2.0, 0.1, 5), (0.5, 0.3, 3), (8.0, 1e-4, 40)],
)
def test_one_step_against_forty_digits(noise: float, rate: float, size: int) -> None:
    pairs = comonotone.gaussian(1 / noise, rate, size)
    for at in (0.0, 1e-3, 0.05, 0.4, 1.0, 3.0, 8.0):
        with mpmath.workdps(40):
            both = mixture_delta(1 / noise, rate, size, at)
        for pair, exact in zip(pairs, both, strict=True):
            found = log_delta_of(pair, at)
            if exact < 1e-300:
                assert (float(mpmath.log(exact)) if exact else -math.inf) <= found < -690
            else:
                assert found == pytest.approx(float(mpmath.log(exact)), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize(
    ("noise", "rate", "size", "removed", "added"),
    [
        (1.0, 0.01, 10, 2.77846, 0.095145),
        (1.0, 0.01, 2, 0.470080, 0.018463),
        (2.0, 0.1, 5, 2.284648, 0.426683),
    ],
)
def test_one_step_of_a_user_with_many_records(
    noise: float, rate: float, size: int, removed: float, added: float
) -> None:
    group = privacy.gaussian(noise).sampled(rate).group(size)
    bound = group.bound(delta=1e-5)
    assert bound.lower <= bound.upper == pytest.approx(removed, rel=2e-6)
    assert bound.lower == pytest.approx(removed, rel=2e-6)
    one_way = comonotone.gaussian(1 / noise, rate, size)[1]
    assert log_delta_of(one_way, added * 1.0001) < math.log(1e-5) < log_delta_of(one_way, added * 0.9999)


def plain_lattice(noise: float, rate: float, size: int, steps: int, at: float) -> tuple[float, float]:
    """δ of a composition (removed) between two values, by an ordinary FFT of losses that are rounded down and up."""
    j, step, width = np.arange(size + 1), 1e-4, 1 << 21
    weights = binom.pmf(j, size, rate)
    x = np.linspace(-14.0, 14.0 + size / noise, 200_001)
    shifted = x[:, None] - j / noise
    ends = logsumexp(j * x[:, None] / noise - (j / noise) ** 2 / 2, b=weights, axis=1)
    mass = np.diff((norm.cdf(shifted) * weights).sum(axis=1))
    grid = step * np.fft.fftfreq(width, 1 / width)
    over = grid > at
    found = []
    for rounded in (np.floor(ends[:-1] / step), np.ceil(ends[1:] / step)):
        density = np.zeros(width)
        np.add.at(density, np.clip(rounded.astype(int), -width // 2, width // 2 - 1) % width, mass)
        total = np.fft.irfft(np.fft.rfft(density) ** steps, width)
        found.append(float(np.sum(total[over] * -np.expm1(at - grid[over]))))
    return found[0], found[1]


#: (noise, rate, size, steps) ↦ ε at δ = 1e-5 lies between these.
TABLE = {
    (1.0, 0.01, 10, 100): (8.606, 8.616),
    (1.0, 0.01, 5, 1000): (11.59, 11.69),
    (2.0, 0.01, 10, 1000): (8.435, 8.455),
    (4.0, 0.01, 10, 1000): (3.451, 3.471),
    (1.0, 0.001, 10, 1000): (1.872, 1.892),
}


@pytest.mark.parametrize(("noise", "rate", "size", "steps"), TABLE)
def test_many_steps_of_a_user_with_many_records(noise: float, rate: float, size: int, steps: int) -> None:
    low, high = TABLE[noise, rate, size, steps]
    run = (steps * privacy.gaussian(noise).sampled(rate)).group(size)
    bound = run.bound(delta=1e-5)
    assert low < bound.lower <= bound.upper < high
    assert bound.upper - bound.lower < 1e-5 * bound.upper
    below, above = plain_lattice(noise, rate, size, steps, bound.upper)
    assert below < 1e-5 < above
    assert above < 3 * below


def test_tiny_rates_and_very_many_steps() -> None:
    """There the loss is nearly Gaussian: its variance is that of the likelihood ratio, times the steps."""
    noise, rate, size, steps = 2.0, 1e-6, 10, 1_000_000
    j, weights = np.arange(size + 1), binom.pmf(range(size + 1), size, rate)
    square = float(np.sum(np.multiply.outer(weights, weights) * np.expm1(np.multiply.outer(j, j) / noise**2)))
    bound = (steps * privacy.gaussian(noise).sampled(rate)).group(size).bound(delta=1e-5)
    limit = privacy.gaussian(1 / math.sqrt(steps * square)).epsilon(delta=1e-5)
    assert bound.lower == pytest.approx(limit, rel=0.05)
    assert bound.upper == pytest.approx(bound.lower, rel=1e-6)


def test_moments_and_lattice_agree() -> None:
    for pair in comonotone.gaussian(0.5, 0.02, 6):
        exact, lattice = Composition([(pair, 200)]), Composition([(replace(pair, moments=None), 200)])
        assert exact.spectrum is not None
        assert lattice.spectrum is None
        for delta in (1e-3, 1e-9):
            low, high = lattice.lower_epsilon(delta), lattice.upper_epsilon(delta)
            assert low <= exact.upper_epsilon(delta)
            assert exact.lower_epsilon(delta) <= high
            assert exact.upper_epsilon(delta) - exact.lower_epsilon(delta) <= high - low


def test_a_group_is_never_more_than_its_chain_and_never_less_than_one_unit() -> None:
    step = privacy.gaussian(1.0).sampled(0.02)
    for size in (2, 5):
        group, at_distance = step.group(size), step.at_distance(size)
        assert isinstance(group, SampledGroupGuarantee)
        assert not isinstance(at_distance, SampledGroupGuarantee)
        for at in (0.0, 0.3, 2.0):
            assert step.delta(at) <= group.delta(at) <= at_distance.delta(at)


def test_a_rate_of_nearly_one_is_the_group_itself() -> None:
    sampled, whole = privacy.gaussian(2.0).sampled(1 - 1e-12).group(3), privacy.gaussian(2.0).group(3)
    assert sampled.epsilon(delta=1e-5) == pytest.approx(whole.epsilon(delta=1e-5), rel=1e-6)


def test_renyi_divergence_of_a_sampled_group() -> None:
    """At whole orders E r^α is a finite sum."""
    mu, rate, size = 0.5, 0.1, 3
    weights = np.exp(comonotone.log_binomial(rate, size))
    for order in (2, 3):
        total = 0.0
        for chosen in itertools.product(range(size + 1), repeat=order):
            cross = (sum(chosen) ** 2 - sum(c * c for c in chosen)) / 2
            total += math.prod(weights[c] for c in chosen) * math.exp(mu * mu * cross)
        group = privacy.gaussian(1 / mu).sampled(rate).group(size)
        assert group.renyi(order=float(order)) == pytest.approx(math.log(total) / (order - 1), rel=1e-9)


# --- the tree --------------------------------------------------------------------------------------------------------


def test_a_sampled_group_goes_through_json_and_says_so() -> None:
    for base in (privacy.gaussian(1.0), privacy.pure(0.5), privacy.gaussian(1.0) + privacy.laplace(2.0)):
        group = base.sampled(0.1).group(3)
        again = privacy.from_json(group.to_json())
        assert again == group
        assert isinstance(again, SampledGroupGuarantee)
        assert repr(group).endswith(".sampled(0.1).group(3)")
    assert privacy.gaussian(1.0).sampled(0.1).group(2).group(3) == privacy.gaussian(1.0).sampled(0.1).group(6)


def test_a_composition_of_groups_is_the_group_of_a_composition() -> None:
    run = 10 * privacy.gaussian(1.0).sampled(0.01) + privacy.laplace(5.0)
    assert run.group(4) == 10 * privacy.gaussian(1.0).sampled(0.01).group(4) + privacy.laplace(5.0).group(4)


def test_noise_can_be_calibrated_for_users_with_many_records() -> None:
    target = privacy.approximate(2.0, 1e-5)
    noise = calibrate(lambda z: privacy.gaussian(z).sampled(0.05).group(4), to=target)
    met = privacy.gaussian(noise).sampled(0.05).group(4)
    assert met.epsilon(delta=1e-5) <= 2.0
    assert privacy.gaussian(noise * 0.99).sampled(0.05).group(4).epsilon(delta=1e-5) > 2.0


def test_a_group_of_a_leak_is_what_a_chain_can_reach() -> None:
    """Total variation adds along a chain, and what a leak goes with is grouped together with it."""
    assert privacy.leaky(0.01).group(3).delta(0.0) == pytest.approx(0.03, rel=1e-9)
    both = (privacy.leaky(1e-6) + privacy.gaussian(4.0)).group(3)
    assert isinstance(both, GroupGuarantee)
    apart = privacy.leaky(3e-6) + privacy.gaussian(4.0).group(3)
    assert both.epsilon(delta=1e-4) >= apart.epsilon(delta=1e-4)


def test_a_group_beyond_all_doubles_is_guaranteed_nothing() -> None:
    with pytest.raises(errors.UnsupportedGuarantee):
        privacy.approximate(1.0, 1e-305).group(1000)
    # sampled groups of so many units fall back to what every member may reveal
    assert privacy.pair([0.5, 0.5 - 1e-9, 1e-9], [0.5, 0.5, 0.0]).group(1000).delta(3.0) <= 1.0


@mpmath.workdps(400)
def chained(stated: tuple[float, float], size: int, at: float) -> mpmath.mpf:
    """max over α of g(…g(α)…) - e^at·α with g(α) = min(1, δ + e^ε·α, 1 - e^-ε·(1-δ-α)) applied k times."""
    epsilon, delta = (mpmath.mpf(value) for value in stated)
    grown = mpmath.exp(epsilon)
    # the slope changes where some step passes the corner of g
    starts, corner = [mpmath.mpf(0)], (1 - delta) / (1 + grown)
    for _ in range(size):
        starts.append(corner)
        corner = max(mpmath.mpf(0), (corner - delta) / grown)
    best = mpmath.mpf(0)
    for start in starts:
        alpha = start
        for _ in range(size):
            alpha = min(mpmath.mpf(1), delta + grown * alpha, 1 - (1 - delta - alpha) / grown)
        best = max(best, alpha - mpmath.exp(mpmath.mpf(at)) * start)
    return best


@pytest.mark.parametrize("size", [2, 3, 7, 20])
@pytest.mark.parametrize("stated", [(0.3, 1e-6), (2.0, 1e-9), (0.0, 1e-3), (5.0, 1e-300)])
def test_a_chain_is_the_composition_of_its_steps(stated: tuple[float, float], size: int) -> None:
    knots, deltas = chain(*stated, size)
    for at, found in zip(knots.tolist(), deltas.tolist(), strict=True):
        best = chained(stated, size, at)
        assert best <= found * (1 + 1e-12)
        assert float(best) == pytest.approx(found, rel=1e-9, abs=1e-320)


@pytest.mark.parametrize("runs", [2, 5])
def test_runs_of_an_exponential_mechanism_claim_no_more_than_one_that_exists(runs: int) -> None:
    """Each point of its curve has its own worst scores: the product of the curves belongs to no mechanism.

    Options whose scores move by no more than a sensitivity: two outcomes with losses t and t - 1, for any t.
    """
    for at in (0.0, 0.5, 1.0):
        bound, attained = (runs * privacy.exponential(1.0)).bound(epsilon=at), 0.0
        for t in np.linspace(0.01, 0.99, 99):
            p = math.expm1(1 - t) / math.expm1(1.0) * math.exp(t)
            told = np.arange(runs + 1)
            loss, mass = told * t + (runs - told) * (t - 1), binom.pmf(told, runs, p)
            attained = max(attained, float(np.sum(mass * np.maximum(0.0, -np.expm1(at - loss)))))
        assert bound.lower <= attained * (1 + 1e-9)
        assert attained <= bound.upper


def test_a_group_can_be_sampled_and_repeated() -> None:
    """A household that is in the sample as one: the pair of the group, diluted."""
    household = privacy.gaussian(1.0).sampled(0.1).group(3).sampled(0.5)
    bound = household.bound(delta=1e-5)
    assert 0 < bound.lower <= bound.upper < privacy.gaussian(1.0).sampled(0.1).group(3).epsilon(delta=1e-5)


def test_noise_with_too_many_outcomes_falls_back_to_a_chain() -> None:
    coarse = privacy.discrete_gaussian(1.0, sensitivity=100_000).sampled(0.01).group(4)
    assert coarse.delta(0.5) <= 1
    many = privacy.discrete_laplace(1e6, sensitivity=200_000).sampled(0.01).group(2)
    bound = many.bound(epsilon=0.0)
    assert 0 < bound.lower < bound.upper < 0.01
    assert not many.tight  # type: ignore[attr-defined]


@pytest.mark.parametrize(("scale", "rate", "size"), [(1.0, 0.1, 4), (3.0, 0.5, 2), (0.4, 0.01, 6)])
def test_laplace_noise_against_plain_integrals(scale: float, rate: float, size: int) -> None:
    x = np.linspace(-40 * scale, size + 40 * scale, 2_000_001)
    q = np.exp(-np.abs(x) / scale) / (2 * scale)
    p = sum(
        w * np.exp(-np.abs(x - j) / scale) / (2 * scale)
        for j, w in enumerate(binom.pmf(range(size + 1), size, rate))
    )
    for at in (0.0, 0.05, 0.3, 0.9):
        ways = ((p, q), (q, p))
        for pair, (first, second) in zip(comonotone.laplace(1 / scale, rate, size), ways, strict=True):
            plain = np.trapezoid(np.maximum(first - math.exp(at) * second, 0.0), x)
            assert math.exp(log_delta_of(pair, at)) == pytest.approx(float(plain), abs=1e-8)
    distribution = comonotone.LaplaceShifts(1 / scale, rate, size)
    inside = (x >= 0) & (x <= size)
    for loss in np.linspace(distribution.knots[0], distribution.knots[-1], 7):
        at = distribution.point(np.array([loss]))
        assert float(
            logsumexp(distribution.log_weights + distribution.log_ratios(float(at[0])))
        ) == pytest.approx(loss, abs=1e-12)
        below, above = inside & (x <= at), inside & (x >= at)
        plain_masses = [np.trapezoid(mass[part], x[part]) for mass in (p, q) for part in (below, above)]
        assert np.concatenate(distribution.masses(at)) == pytest.approx(plain_masses, abs=1e-4)


def test_the_gaussian_masses_tell_the_same_as_the_closed_form() -> None:
    for pair in comonotone.gaussian(0.7, 0.05, 6):
        for at in (0.0, 0.1, 0.25):
            assert log_delta_of(replace(pair, log_delta=None), at) == pytest.approx(
                log_delta_of(pair, at), rel=1e-8
            )


# --- every wrapper around every mechanism ----------------------------------------------------------------------------

BASES: dict[str, Callable[[str], Guarantee]] = {
    "pure": lambda r: privacy.pure(0.6, relation=r),
    "approximate": lambda r: privacy.approximate(0.6, 1e-4, relation=r),
    "leaky": lambda r: privacy.leaky(1e-3, relation=r),
    "leaky response": lambda r: privacy.leaky_randomized_response(0.6, 1e-4, relation=r),
    "response": lambda r: privacy.randomized_response(0.6, 4, relation=r),
    "exponential": lambda r: privacy.exponential(0.6, relation=r),
    "laplace": lambda r: privacy.laplace(2.0, relation=r),
    "gaussian": lambda r: privacy.gaussian(2.0, relation=r),
    "discrete laplace": lambda r: privacy.discrete_laplace(3.0, 2, relation=r),
    "many integers": lambda r: privacy.discrete_laplace(1e6, 400_000, relation=r),
    "discrete gaussian": lambda r: privacy.discrete_gaussian(3.0, 2, relation=r),
    "concentrated": lambda r: privacy.concentrated(0.1, relation=r),
    "renyi": lambda r: privacy.renyi(order=8, epsilon=0.5, relation=r),
    "lopsided": lambda r: privacy.pair([0.7, 0.2, 0.1], [0.3, 0.3, 0.4], relation=r),
    "revealing": lambda r: privacy.pair([0.7, 0.299, 0.001], [0.3, 0.7, 0.0], relation=r),
    "two gaussians": lambda r: privacy.two_gaussians(0.5, 1.1, relation=r),
    "two answers": lambda r: privacy.gaussian(4.0, relation=r) + privacy.laplace(3.0, relation=r),
    "two gaussian answers": lambda r: privacy.gaussian(4.0, relation=r) + privacy.gaussian(3.0, relation=r),
    "a leak and noise": lambda r: privacy.gaussian(4.0, relation=r) + privacy.leaky(1e-4, relation=r),
}
WRAPPERS: dict[str, Callable[[Guarantee], Guarantee]] = {
    "itself": lambda g: g,
    "group": lambda g: g.group(3),
    "at distance": lambda g: g.at_distance(2),
    "poisson": lambda g: g.sampled(0.2),
    "poisson, replaced": lambda g: g.sampled(0.2, relation="replace"),
    "fixed size": lambda g: g.sampled(0.2, "without-replacement", "replace"),
    "fixed size, added": lambda g: g.sampled(0.2, "without-replacement", "add-remove"),
    "poisson, group": lambda g: g.sampled(0.2).group(3),
    "poisson, at distance": lambda g: g.sampled(0.2).at_distance(3),
    "fixed size, group": lambda g: g.sampled(0.2, "without-replacement").group(2),
    "selected": lambda g: privacy.selected(g, mean_runs=3),
    "selected, sampled": lambda g: privacy.selected(g.sampled(0.2), mean_runs=3),
    "parallel": lambda g: privacy.parallel(g, privacy.laplace(1.0)),
    "parallel, replaced": lambda g: privacy.parallel(g, privacy.laplace(1.0), relation="replace"),
    "one of": lambda g: privacy.one_of(g, privacy.laplace(5.0, relation=g.unit.relation)),
}


LONG, SLOW = {"selected", "selected, sampled", "parallel, replaced", "fixed size, group"}, pytest.mark.slow


@pytest.mark.parametrize("runs", [1, pytest.param(3, marks=SLOW)])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("wrapper", [pytest.param(w, marks=SLOW if w in LONG else ()) for w in WRAPPERS])
def test_what_is_shown_to_be_attained_never_exceeds_what_is_proved(
    relation: str, wrapper: str, runs: int
) -> None:
    """`bound` takes the lesser of both, which would hide a witness that is no mechanism of the description."""
    for base in BASES.values():
        try:
            guarantee = runs * WRAPPERS[wrapper](base(relation))
            guarantee.bags()
            epsilon = guarantee.epsilon(delta=1e-5)
        except (errors.UnsupportedGuarantee, errors.CannotCertify):
            continue
        assert _lower_epsilon(guarantee, 1e-5) <= epsilon * (1 + 1e-8) + 1e-12, guarantee
        for at in (0.0, 0.2, 1.0):
            assert _lower_delta(guarantee, at) <= guarantee.delta(at) * (1 + 1e-8) + 1e-15, (guarantee, at)
        assert _lower_epsilon(guarantee, 0.0) <= guarantee.epsilon(delta=0) * (1 + 1e-12), guarantee


@pytest.mark.parametrize("inner", [privacy.gaussian(1.0), privacy.laplace(2.0), privacy.pure(0.1)])
def test_a_group_of_any_size_has_an_answer(inner):
    """A mixture with a part for each of a billion units does not fit any memory; a chain of neighbours needs none."""
    group = (100 * inner.sampled(0.01)).group(10**9)
    assert group.epsilon(1e-5) >= (100 * inner.sampled(0.01)).group(1_000).epsilon(1e-5)
    assert inner.sampled(0.01).group(10**5).group(10**4).bound(delta=1e-5).lower >= 0


@pytest.mark.parametrize("size", [0, -1, 2.5, None, True, "two"])
@pytest.mark.parametrize(
    "guarantee", [privacy.pure(1), privacy.gaussian(1.0).sampled(0.1), privacy.leaky(0.1)]
)
def test_a_distance_is_a_whole_number(guarantee, size):
    for ask in (guarantee.group, guarantee.at_distance, (2 * guarantee).at_distance):
        with pytest.raises(errors.BadParameter):
            ask(size)
