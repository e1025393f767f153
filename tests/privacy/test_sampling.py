# SPDX-License-Identifier: Apache-2.0
"""The pairs behind each sampling theorem, against every small data set that can be written down."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from discreet import errors, privacy
from discreet.privacy import families
from discreet.privacy.pairs import dilute
from tests.privacy.test_lattice import profile

RATE = 0.3
GAMMAS = np.exp(np.linspace(-2, 2, 41))
Z = np.arange(-60, 61)


def noisy(total: int, scale: float = 1.2) -> np.ndarray:
    """The distribution of an integer sum plus discrete Laplace noise."""
    weights = np.exp(-np.abs(Z - total) / scale)
    return weights / weights.sum()


def poisson(records: tuple[int, ...]) -> np.ndarray:
    """The distribution of the noisy sum of a Poisson sample."""
    distribution = np.zeros(Z.size)
    for kept in itertools.product((0, 1), repeat=len(records)):
        chance = math.prod(RATE if keep else 1 - RATE for keep in kept)
        distribution += chance * noisy(sum(r for r, keep in zip(records, kept, strict=True) if keep))
    return distribution


def fixed_size(records: tuple[int, ...], size: int) -> np.ndarray:
    samples = list(itertools.combinations(records, size))
    return sum(noisy(sum(sample)) for sample in samples) / len(samples)


def hockey(p: np.ndarray, q: np.ndarray, gamma: float) -> float:
    return float(np.maximum(p - gamma * q, 0).sum())


@pytest.mark.parametrize("others", [(), (1,), (-1, 1), (1, 1, 0)])
@pytest.mark.parametrize("record", [-1, 0, 1])
def test_poisson_pairs_dominate_every_data_set(others: tuple[int, ...], record: int) -> None:
    removed, added = privacy.discrete_laplace(1.2, 1).sampled(RATE).pairs()
    with_it, without = poisson((*others, record)), poisson(others)
    for gamma in GAMMAS:
        assert hockey(with_it, without, gamma) <= profile(removed, gamma) + 1e-12
        assert hockey(without, with_it, gamma) <= profile(added, gamma) + 1e-12


@pytest.mark.parametrize("others", [(), (1,), (-1, 1), (1, 1, 0)])
@pytest.mark.parametrize("pair", list(itertools.product((-1, 0, 1), repeat=2)))
def test_the_replace_pair_dominates_every_data_set(others: tuple[int, ...], pair: tuple[int, int]) -> None:
    (worst,) = privacy.discrete_laplace(1.2, 1).sampled(RATE, relation="replace").pairs()
    before, after = (poisson((*others, record)) for record in pair)
    for gamma in GAMMAS:
        assert hockey(before, after, gamma) <= profile(worst, gamma) + 1e-12


@pytest.mark.parametrize("others", [(0, 1), (-1, 1), (1, 1)])
@pytest.mark.parametrize("pair", list(itertools.product((-1, 0, 1), repeat=2)))
def test_the_fixed_size_pair_dominates_every_data_set(others: tuple[int, ...], pair: tuple[int, int]) -> None:
    (worst,) = (
        privacy.discrete_laplace(1.2, 2, relation="replace").sampled(1 / 3, "without-replacement").pairs()
    )
    before, after = (fixed_size((*others, record), 1) for record in pair)
    for gamma in GAMMAS:
        assert hockey(before, after, gamma) <= profile(worst, gamma) + 1e-12


def test_one_direction_alone_would_not_dominate_a_fixed_size_sample() -> None:
    """The pair of one role understates the other role; only the symmetric pair covers both."""
    base = privacy.discrete_laplace(1.2, 2).pairs()[0]
    before, after = fixed_size((1, 1, -1), 1), fixed_size((1, 1, 1), 1)
    alone = dilute(base, 1 / 3)
    assert any(hockey(after, before, gamma) > profile(alone, gamma) + 1e-3 for gamma in GAMMAS)


def test_two_steps_that_change_roles_cost_more_than_either_role_and_stay_below_the_claim() -> None:
    """Samples of one of two records; ask for a, then for b: the replaced record plays another part each time."""
    keep = math.exp(1) / (1 + math.exp(1))
    yes, no = np.array([keep, 1 - keep]), np.array([1 - keep, keep])
    role = (0.5 * yes + 0.5 * no, no)
    other = (no, 0.5 * yes + 0.5 * no)
    claim = 2 * privacy.randomized_response(1.0, relation="replace").sampled(0.5, "without-replacement")
    beaten = False
    for epsilon in np.linspace(0, 1, 21):
        values = [
            hockey(np.outer(a[0], b[0]).ravel(), np.outer(a[1], b[1]).ravel(), math.exp(epsilon))
            for a, b in ((role, other), (role, role), (other, other))
        ]
        assert max(values) <= claim.delta(float(epsilon)) + 1e-12
        beaten = beaten or values[0] > max(values[1:]) * 1.05
    assert beaten


def test_gaussians_in_the_plane_do_not_beat_the_antipodal_pair() -> None:
    """Records on a circle at any angle, on a fine grid of the plane."""
    mu, rate = 1.0, 0.25
    x, y = np.meshgrid(np.linspace(-8, 8, 321), np.linspace(-8, 8, 321))
    cell = (16 / 320) ** 2

    def bell(a: float, b: float) -> np.ndarray:
        return np.exp(-((x - a) ** 2 + (y - b) ** 2) / 2) / (2 * math.pi) * cell

    worst = families.antipodal_gaussian(mu, rate)
    p = (1 - rate) * bell(0, 0) + rate * bell(mu, 0)
    for angle in np.linspace(0, math.pi, 7):
        for length in (0.0, 0.5, 1.0):
            q = (1 - rate) * bell(0, 0) + rate * bell(length * math.cos(angle), length * math.sin(angle))
            for gamma in (0.7, 1.0, 1.1, 1.3):
                assert hockey(p.ravel(), q.ravel(), gamma) <= profile(worst, gamma) + 2e-5


def test_a_sample_of_a_sample_is_one_sample() -> None:
    twice = privacy.gaussian(1.0).sampled(0.1).sampled(0.2)
    assert twice == privacy.gaussian(1.0).sampled(0.1 * 0.2)


def test_a_replace_guarantee_cannot_become_an_add_remove_one_by_poisson_sampling() -> None:
    with pytest.raises(errors.UnsupportedGuarantee) as refused:
        privacy.gaussian(1.0, relation="replace").sampled(0.1, relation="add-remove")
    assert refused.value.code == "DP202"
