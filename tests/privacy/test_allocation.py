# SPDX-License-Identifier: Apache-2.0
"""Random allocation, against a sum over all outcomes, quadrature and published values."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr

from discreet import privacy
from discreet.errors import BadParameter, UnsupportedGuarantee
from discreet.privacy import averages, families
from discreet.privacy.pairs import atoms, log_delta_of

EPSILONS = (0.0, 0.05, 0.2, 0.5, 0.9)
BINARY = ([0.7, 0.3], [0.2, 0.8])
LEAKY = ([0.1, 0.6, 0.3, 0.0], [0.0, 0.2, 0.7, 0.1])


def enumerated(p: list[float], q: list[float], steps: int, times: int, epsilon: float) -> tuple[float, float]:
    """Both hockey-stick divergences of all answers, summed over all sequences of outcomes."""
    subsets = list(itertools.combinations(range(steps), times))
    removed = added = 0.0
    for outcomes in itertools.product(range(len(p)), repeat=steps):
        without = math.prod(q[outcome] for outcome in outcomes)
        with_record = sum(
            math.prod((p if step in chosen else q)[outcome] for step, outcome in enumerate(outcomes))
            for chosen in subsets
        ) / len(subsets)
        removed += max(0.0, with_record - math.exp(epsilon) * without)
        added += max(0.0, without - math.exp(epsilon) * with_record)
    return removed, added


@pytest.mark.parametrize("tables", [BINARY, LEAKY])
@pytest.mark.parametrize("steps", [2, 3, 5, 6])
def test_one_step_of_few_is_bracketed_closely(tables: tuple[list[float], list[float]], steps: int) -> None:
    pair = atoms(np.array(tables[0]), np.array(tables[1]))
    laws = {side: averages.average(pair, steps, upper=side) for side in (True, False)}
    for epsilon in EPSILONS:
        exact = enumerated(*tables, steps, 1, epsilon)
        for direction, truth in enumerate(exact):
            above, below = (
                math.exp(log_delta_of(laws[side].pairs(upper=side)[direction], epsilon))
                for side in (True, False)
            )
            assert below <= truth * (1 + 1e-12) <= above * (1 + 1e-12)
            assert above - below <= 2e-4


@pytest.mark.parametrize(("steps", "times"), [(4, 2), (5, 2), (6, 2), (6, 3)])
def test_several_steps_are_never_below_the_truth(steps: int, times: int) -> None:
    allocated = privacy.pair(*BINARY).allocated(steps, times)
    for epsilon in EPSILONS:
        truth = max(enumerated(*BINARY, steps, times, epsilon))
        assert truth <= allocated.delta(epsilon) * (1 + 1e-12)
        assert allocated.bound(epsilon=epsilon).lower <= truth * (1 + 1e-12)


def test_two_gaussian_steps_agree_with_quadrature_in_the_plane() -> None:
    sigma, epsilon = 0.8, 1.0
    mu, gamma = 1 / sigma, math.exp(1.0)
    # Given the first ratio a, the event (a + b) / 2 > γ is a half-line of the second.
    x = np.linspace(-12, 12 + mu, 400_001)
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    first = np.exp(mu * x - mu * mu / 2)
    needed = 2 * gamma - first
    with np.errstate(divide="ignore", invalid="ignore"):
        edge = np.where(needed > 0, np.log(np.maximum(needed, 1e-300)) / mu + mu / 2, -np.inf)
    inner = (first / 2 - gamma) * ndtr(-edge) + ndtr(mu - edge) / 2
    truth = float(np.trapezoid(density * inner, x))
    bound = privacy.gaussian(sigma).allocated(2).bound(epsilon=epsilon)
    assert bound.lower <= truth * (1 + 1e-6)
    assert truth <= bound.upper * (1 + 1e-6)
    assert bound.upper - bound.lower <= 1e-5 * bound.upper


@pytest.mark.parametrize(
    ("noise", "steps", "epochs", "epsilon"),
    [
        (1.0, 10, 1, 2.652),
        (1.0, 100, 1, 0.858),
        (1.0, 1000, 1, 0.172),
        (0.3, 128, 1, 15.93),
        (1.0, 100, 10, 1.964),
    ],
)
def test_known_values(noise: float, steps: int, epochs: int, epsilon: float) -> None:
    bound = (epochs * privacy.gaussian(noise).allocated(steps)).bound(delta=1e-6)
    assert bound.upper == pytest.approx(epsilon, abs=1.1e-3)
    assert bound.upper - bound.lower <= 1e-3


def test_the_added_direction_has_its_own_smaller_curve() -> None:
    law = averages.average(families.gaussian(1.0), 10, upper=True)
    assert law is not None
    removed, added = law.pairs(upper=True)
    assert log_delta_of(added, 1.544) < math.log(1e-6) < log_delta_of(added, 1.542)
    assert log_delta_of(removed, 1.544) > math.log(1e-5)


def test_at_small_epsilon_poisson_may_be_better() -> None:
    """Neither scheme dominates the other."""
    step = privacy.gaussian(1.0)
    allocated, poisson = step.allocated(10), 10 * step.sampled(0.1)
    assert allocated.bound(epsilon=0.0).lower > poisson.delta(0.0)
    assert allocated.delta(0.5) < poisson.bound(epsilon=0.5).lower


def test_more_steps_protect_more_and_all_steps_are_every_step() -> None:
    step = privacy.gaussian(1.0)
    epsilons = [step.allocated(steps).epsilon(1e-6) for steps in (1, 2, 3, 7, 8, 20)]
    assert epsilons == sorted(epsilons, reverse=True)
    assert step.allocated(4, times=4) == 4 * step
    assert step.allocated(1) == step


def test_extremes_fall_back_to_the_step_itself() -> None:
    sharp = privacy.gaussian(0.02)
    assert sharp.allocated(10).epsilon(1e-6) == pytest.approx(sharp.epsilon(1e-6))
    assert privacy.gaussian(1e6).allocated(10).epsilon(1e-6) <= privacy.gaussian(1e6).epsilon(1e-6)
    assert privacy.laplace(2.0).allocated(9).epsilon(0.0) == 0.5
    assert privacy.approximate(1.0, 1e-7).allocated(7).epsilon(1e-8) == math.inf


def test_it_combines_with_the_rest() -> None:
    epoch = privacy.gaussian(1.0).allocated(20)
    assert (3 * epoch).epsilon(1e-6) > epoch.epsilon(1e-6)
    assert epoch.sampled(0.1).epsilon(1e-6) < epoch.epsilon(1e-6)
    assert epoch.group(2).epsilon(1e-6) > epoch.epsilon(1e-6)
    assert privacy.parallel(epoch, privacy.pure(0.1)).epsilon(1e-6) == epoch.epsilon(1e-6)
    assert 10 < privacy.gaussian(1.0).allocated(20).renyi(21.0) <= 10.5


def test_refusals() -> None:
    step = privacy.gaussian(1.0)
    for steps, times in (
        (0, 1),
        (2.5, 1),
        (10, 0),
        (10, 11),
        (10**7, 1),
        (float("nan"), 1),
        ("10", 1),
        (True, 1),
    ):
        with pytest.raises(BadParameter) as refused:
            step.allocated(steps, times)  # type: ignore[arg-type]
        assert refused.value.fix
    for guarantee in (
        privacy.gaussian(1.0, relation="replace"),
        privacy.parallel(step, privacy.laplace(1.0)),
        privacy.concentrated(0.1),
        step.sampled(0.1, scheme="without-replacement"),
        privacy.truncated_batches(1.0, 0.1, 20, 100),
    ):
        with pytest.raises(UnsupportedGuarantee, match="allocated"):
            guarantee.allocated(10)
