# SPDX-License-Identifier: Apache-2.0
"""Mixtures of Gaussians and truncated batches, against quadrature over all samples and published values."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from discreet import privacy
from discreet.errors import BadParameter, UnsupportedGuarantee
from discreet.privacy import families
from discreet.privacy.losses import Composition
from discreet.privacy.pairs import dilute, either

X = np.linspace(-16, 16, 60_001)
EPSILONS = (0.0, 0.3, 1.0, 2.0, 4.0)


def density(means: dict[float, float], sigma: float) -> np.ndarray:
    total = sum(p * np.exp(-(((X - m) / sigma) ** 2) / 2) for m, p in means.items())
    return np.asarray(total) / sigma / math.sqrt(2 * math.pi)


def divergence(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0.0), X))


def batch_sums(values: tuple[float, ...], rate: float, batch: int) -> dict[float, float]:
    """The distribution of the sum of a truncated batch, over all samples."""
    sums: dict[float, float] = {}
    for size in range(len(values) + 1):
        for sample in itertools.combinations(range(len(values)), size):
            chance = rate**size * (1 - rate) ** (len(values) - size)
            kept = list(itertools.combinations(sample, min(size, batch)))
            for each in kept:
                total = sum(values[i] for i in each)
                sums[total] = sums.get(total, 0.0) + chance / len(kept)
    return sums


@pytest.mark.parametrize(("people", "batch", "rate"), [(3, 1, 0.5), (4, 2, 0.5), (5, 2, 0.7)])
def test_truncated_batches_are_never_below_the_truth(people: int, batch: int, rate: float) -> None:
    sigma = 1.0
    added = privacy.truncated_batches(sigma, rate, batch, people)
    replaced = privacy.truncated_batches(sigma, rate, batch, people, relation="replace")
    closest = 0.0
    for others in itertools.combinations_with_replacement((-1.0, 0.0, 1.0), people - 1):
        worlds = [density(batch_sums((*others, own), rate, batch), sigma) for own in (-1.0, 0.0, 1.0)]
        without = density(batch_sums(others, rate, batch), sigma)
        for epsilon in EPSILONS:
            bound, bound_replaced = added.delta(epsilon), replaced.delta(epsilon)
            for world in worlds:
                for p, q in ((world, without), (without, world)):
                    assert divergence(p, q, epsilon) <= bound * (1 + 1e-6) + 1e-9
                    closest = max(closest, divergence(p, q, epsilon) / bound if bound > 1e-6 else 0.0)
            for p, q in itertools.permutations(worlds, 2):
                assert divergence(p, q, epsilon) <= bound_replaced * (1 + 1e-6) + 1e-9
    assert closest > 0.5


def test_the_published_value_of_a_looser_pair_and_ours() -> None:
    """dp-accounting takes a replaced record for a full batch, and publishes ε = 17.904330; the proof needs less."""

    def looser(records: int) -> object:
        step = privacy.truncated_batches(1.0, 0.5, 2, records)
        chance, share = step.overflow
        usual = dilute(families.gaussian(1.0), 0.5)
        return either(usual, families.antipodal_gaussian(2.0, share), (1 - chance, chance))

    run = Composition([(looser(4), 3), (looser(3), 2)])
    assert run.lower_epsilon(1e-6) <= 17.904330 + 1e-6
    assert run.upper_epsilon(1e-6) == pytest.approx(17.904330, abs=1e-5)
    ours = 3 * privacy.truncated_batches(1.0, 0.5, 2, 4) + 2 * privacy.truncated_batches(1.0, 0.5, 2, 3)
    assert ours.epsilon(1e-6) == pytest.approx(16.456513, abs=1e-5)


def test_a_batch_that_cannot_overflow_is_poisson_sampling() -> None:
    plain = privacy.gaussian(1.0).sampled(0.01)
    for batch, records in ((200, 200), (500, 200), (300, 10_000)):
        truncated = privacy.truncated_batches(1.0, 0.01, batch, records)
        assert (50 * truncated).epsilon(1e-6) == pytest.approx((50 * plain).epsilon(1e-6), rel=1e-4)
        assert truncated.renyi(4.0) == pytest.approx(plain.renyi(4.0), rel=1e-3)
    epsilons = [
        (10 * privacy.truncated_batches(1.0, 0.1, batch, 100)).epsilon(1e-6) for batch in (8, 12, 20, 40)
    ]
    assert epsilons == sorted(epsilons, reverse=True)


def test_a_mixture_has_the_published_value() -> None:
    run = 3 * privacy.gaussian_mixture(1.0, {0: 0.2, 1: 0.6, 2: 0.2})
    run += 2 * privacy.gaussian_mixture(2.0, {0: 0.33, 2: 0.34, 3: 0.33})
    bound = run.bound(delta=1e-6)
    assert bound.lower <= 17.193115 <= bound.upper + 1e-6
    assert bound.upper - bound.lower <= 1e-5


@pytest.mark.parametrize(
    "moves", [{0.0: 0.5, 1.0: 0.5}, {1.0: 0.5, 2.0: 0.5}, {0.0: 0.9, 0.5: 0.05, 3.0: 0.05}, {1.0: 1.0}]
)
def test_a_mixture_has_the_curve_of_its_densities(moves: dict[float, float]) -> None:
    mixture = privacy.gaussian_mixture(0.9, moves)
    p, q = density(moves, 0.9), density({0.0: 1.0}, 0.9)
    for epsilon in EPSILONS:
        truth = max(divergence(p, q, epsilon), divergence(q, p, epsilon))
        assert mixture.delta(epsilon) == pytest.approx(truth, rel=1e-5, abs=1e-9)
        assert mixture.renyi(3.0) >= math.log(float(np.trapezoid(p**3 / q**2, X))) / 2 * (1 - 1e-9)


def test_a_mixture_is_what_sampling_makes() -> None:
    sampled = privacy.gaussian(1.0).sampled(0.01)
    assert privacy.gaussian_mixture(1.0, {0: 0.99, 1: 0.01}).epsilon(1e-6) == pytest.approx(
        sampled.epsilon(1e-6)
    )


def test_a_sum_at_exactly_its_own_delta() -> None:
    """1 - 0.9·0.8 is 0.28, read as decimals; in floats it is a little more."""
    assert (privacy.approximate(1, 0.1) + privacy.approximate(2, 0.2)).epsilon(0.28) == 3.0
    assert (2 * privacy.approximate(1, 0.5)).epsilon(0.75) == 2.0
    assert (privacy.approximate(1, 0.1) + privacy.approximate(2, 0.2)).epsilon(0.2799999) == math.inf


def test_a_record_that_is_blanked() -> None:
    blanked = privacy.gaussian(1.0, relation="zero-out")
    assert str(blanked.unit) == "one record blanked"
    assert blanked.sampled(0.01).epsilon(1e-6) == privacy.gaussian(1.0).sampled(0.01).epsilon(1e-6)
    assert privacy.gaussian(1.0).sampled(0.01, relation="zero-out").unit == blanked.unit
    assert blanked.allocated(10).epsilon(1e-6) == privacy.gaussian(1.0).allocated(10).epsilon(1e-6)
    assert privacy.from_json(blanked.sampled(0.1).to_json()) == blanked.sampled(0.1)
    assert "a blank in its place" in str(blanked.explain())
    assert "blanked together" in str(blanked.sampled(0.1).group(3))
    for refused in (
        lambda: blanked.sampled(0.1, scheme="without-replacement"),
        lambda: privacy.parallel(blanked, blanked),
        lambda: privacy.shuffled(privacy.pure(1.0, relation="zero-out"), 10),
        lambda: privacy.truncated_batches(1.0, 0.1, 5, 50, relation="zero-out"),
    ):
        with pytest.raises(UnsupportedGuarantee):
            refused()


def test_bad_parameters() -> None:
    for moves in (
        {},
        {0: 1.0},
        {1: 0.5},
        {-1: 1.0},
        {1: math.nan},
        [1, 2],
        {1: 0.5, 2: 0.6},
        {math.inf: 1.0},
    ):
        with pytest.raises(BadParameter):
            privacy.gaussian_mixture(1.0, moves)  # type: ignore[arg-type]
    for arguments in (
        (0.0, 0.1, 5, 50),
        (1.0, 0.0, 5, 50),
        (1.0, 1.5, 5, 50),
        (1.0, 0.1, 0, 50),
        (1.0, 0.1, 5, 10**12),
    ):
        with pytest.raises(BadParameter):
            privacy.truncated_batches(*arguments)
