# SPDX-License-Identifier: Apache-2.0
"""Shuffled reports, against a sum over all reports of a few people, and known values."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from discreet import privacy
from discreet.errors import BadParameter, UnsupportedGuarantee
from discreet.privacy.shuffling import _binomial

GAMMAS = np.exp(np.linspace(0.0, 1.4, 15))


def view(rows: Sequence[Sequence[float]]) -> dict[tuple[int, ...], float]:
    """The distribution of how many reports of each kind there are, if the reports have these tables."""
    kinds = len(rows[0])
    counts = {(0,) * kinds: 1.0}
    for row in rows:
        added: dict[tuple[int, ...], float] = defaultdict(float)
        for count, chance in counts.items():
            for kind, probability in enumerate(row):
                added[(*count[:kind], count[kind] + 1, *count[kind + 1 :])] += chance * probability
        counts = dict(added)
    return counts


def divergence(
    left: dict[tuple[int, ...], float], right: dict[tuple[int, ...], float], gamma: float
) -> float:
    return sum(max(0.0, mass - gamma * right.get(key, 0.0)) for key, mass in left.items())


def response(epsilon: float, outcomes: int) -> list[list[float]]:
    total = math.exp(epsilon) + outcomes - 1
    return [
        [(math.exp(epsilon) if i == j else 1.0) / total for j in range(outcomes)] for i in range(outcomes)
    ]


def worst(tables: list[list[float]], people: int, gamma: float) -> float:
    """Over all answers of the others, and both directions."""
    others = itertools.combinations_with_replacement(range(len(tables)), people - 1)
    views = [
        [view([tables[own], *(tables[other] for other in rest)]) for own in range(len(tables))]
        for rest in others
    ]
    return max(divergence(a, b, gamma) for world in views for a, b in itertools.permutations(world, 2))


@pytest.mark.parametrize("people", [1, 2, 3, 5])
def test_two_answers_are_bracketed(people: int) -> None:
    tables = response(1.2, 2)
    guarantee = privacy.shuffled(privacy.randomized_response(1.2, relation="replace"), people)
    general = privacy.shuffled(privacy.pure(1.2, relation="replace"), people)
    for gamma in GAMMAS:
        truth = worst(tables, people, float(gamma))
        bound = guarantee.bound(epsilon=math.log(gamma))
        assert bound.lower <= truth * (1 + 1e-9) + 1e-15
        assert truth <= bound.upper * (1 + 1e-9)
        assert bound.upper <= general.delta(math.log(gamma)) * (1 + 1e-9)
        assert general.bound(epsilon=math.log(gamma)).lower <= truth * (1 + 1e-9) + 1e-15
        if people <= 2:
            assert bound.upper - truth <= 1e-6


def test_the_lower_bound_is_what_equal_answers_reveal() -> None:
    """With all others at 0, three people at ε = log 3: the sum of coins, by hand."""
    lower = (
        privacy.shuffled(privacy.randomized_response(math.log(3), relation="replace"), 3)
        .bound(epsilon=0.0)
        .lower
    )
    others = [9 / 16, 6 / 16, 1 / 16]
    named = [
        [a * x + b * y for x, y in zip([*others, 0], [0, *others], strict=True)]
        for a, b in ((0.75, 0.25), (0.25, 0.75))
    ]
    assert lower == pytest.approx(sum(max(0.0, q - p) for p, q in zip(*named, strict=True)), rel=1e-6)


@pytest.mark.parametrize("outcomes", [3, 4])
@pytest.mark.parametrize("people", [2, 4])
def test_more_answers_are_never_below_the_truth(outcomes: int, people: int) -> None:
    tables = response(1.2, outcomes)
    known = privacy.shuffled(privacy.randomized_response(1.2, outcomes, relation="replace"), people)
    general = privacy.shuffled(privacy.pure(1.2, relation="replace"), people)
    for gamma in GAMMAS:
        truth = worst(tables, people, float(gamma))
        assert truth <= known.delta(math.log(gamma)) * (1 + 1e-9)
        assert truth <= general.delta(math.log(gamma)) * (1 + 1e-9)


def test_any_private_randomiser_is_covered() -> None:
    rng = np.random.default_rng(7)
    general = privacy.shuffled(privacy.pure(1.2, relation="replace"), 4)
    bounds = {float(gamma): general.delta(math.log(gamma)) for gamma in GAMMAS[::3]}
    closest = 0.0
    for _ in range(25):
        # Every column has entries whose ratio is e^1.2 at most.
        tables = np.exp(rng.integers(0, 2, (3, 4)) * 1.2)
        tables /= tables.sum(axis=1, keepdims=True)
        loss = float(np.max(np.log(tables.max(axis=0) / tables.min(axis=0))))
        if loss > 1.2:
            continue
        for gamma, bound in bounds.items():
            truth = worst(tables.tolist(), 4, gamma)
            assert truth <= bound * (1 + 1e-9)
            closest = max(closest, truth / bound)
    assert closest > 0.3


@pytest.mark.parametrize(
    ("epsilon", "people", "delta", "any_randomiser", "two_answers"),
    [
        (0.5, 100, 1e-3, 0.111900, 0.097587),
        (1.0, 1_000, 1e-6, 0.182412, 0.148671),
        (4.0, 100_000, 1e-6, 0.169770, 0.118153),
        (1.0, 1_000_000, 1e-8, 0.006125, 0.005012),
    ],
)
def test_known_values(
    epsilon: float, people: int, delta: float, any_randomiser: float, two_answers: float
) -> None:
    general = privacy.shuffled(privacy.pure(epsilon, relation="replace"), people)
    binary = privacy.shuffled(privacy.randomized_response(epsilon, relation="replace"), people).bound(
        delta=delta
    )
    assert general.epsilon(delta) == pytest.approx(any_randomiser, rel=2e-4)
    assert binary.upper == pytest.approx(two_answers, rel=2e-4)
    # The proved pair also tells how many clones there are, and so it is a little worse than the truth.
    assert 0.6 * binary.upper <= binary.lower


@pytest.mark.parametrize(("trials", "chance"), [(1, 0.5), (30, 0.25), (999, 0.5), (1000, 0.125)])
def test_binomial_masses_are_close(trials: int, chance: float) -> None:
    heads = sorted({0, 1, trials // 8, trials // 2, trials})
    found = _binomial(trials, chance, np.array([-1.0, *heads, trials + 1.0]))
    exact = [
        math.comb(trials, k) * Fraction(chance) ** k * Fraction(1 - chance) ** (trials - k) for k in heads
    ]
    assert found[[0, -1]].tolist() == [0.0, 0.0]
    for mass, truth in zip(found[1:-1], exact, strict=True):
        assert mass == pytest.approx(float(truth), rel=1e-9)


def test_binomial_masses_of_many_trials_are_close() -> None:
    assert _binomial(10**6, 0.5, np.array([500_000.0]))[0] == pytest.approx(0.000797884361313, rel=1e-9)
    around = _binomial(10**9, 0.2, 2e8 + np.arange(-300_000.0, 300_001.0))
    assert float(around.sum()) == pytest.approx(1.0, rel=1e-8)


def test_it_composes_and_never_exceeds_the_report() -> None:
    local = privacy.randomized_response(1.0, relation="replace")
    weekly = privacy.shuffled(local, 10_000)
    assert weekly.epsilon(0.0) == 1.0
    bound = (52 * weekly).bound(delta=1e-6)
    assert weekly.epsilon(1e-6) < bound.lower <= bound.upper < 0.359
    assert weekly.renyi(8.0) < 0.001
    assert privacy.shuffled(local, 1).epsilon(1e-6) == pytest.approx(local.epsilon(1e-6), rel=1e-6)
    (assumption,) = weekly.assumes
    assert "10,000 people report" in assumption


def test_the_noise_of_a_device_is_found_by_calibration() -> None:
    target = privacy.approximate(0.1, 1e-6, relation="replace")

    def family(epsilon: float) -> privacy.Guarantee:
        return privacy.shuffled(privacy.randomized_response(epsilon, relation="replace"), 3_000)

    epsilon = privacy.calibrate(family, to=target, between=(0.5, 2.0), tolerance=1e-2)
    assert 1.0 < epsilon < 1.4
    assert family(epsilon).implies(target)


def test_refusals() -> None:
    local = privacy.pure(1.0, relation="replace")
    for people in (0, -1, 2.5, True, float("nan"), 10**12):
        with pytest.raises(BadParameter):
            privacy.shuffled(local, people)  # type: ignore[arg-type]
    with pytest.raises(BadParameter, match="guarantee of one report"):
        privacy.shuffled(1.0, 100)  # type: ignore[arg-type]
    for refused in (
        privacy.pure(1.0),
        privacy.approximate(1.0, 1e-6, relation="replace"),
        privacy.gaussian(1.0, relation="replace"),
        privacy.concentrated(0.1, relation="replace"),
    ):
        with pytest.raises(UnsupportedGuarantee, match="shuffled"):
            privacy.shuffled(refused, 100)
