# SPDX-License-Identifier: Apache-2.0
"""Discretisation is on the safe side for every γ, not only where an answer happens to look."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from discreet.privacy import families
from discreet.privacy.lattice import Masses, contract, knots_around, spread
from discreet.privacy.pairs import Pair, dilute, dilute_other, mask, swap, symmetrise
from discreet.privacy.tilted import TiltedDistribution, convolve, peak

PAIRS: dict[str, Callable[[], Pair]] = {
    "gaussian": lambda: families.gaussian(0.7),
    "sharp gaussian": lambda: families.gaussian(6.0),
    "laplace": lambda: families.laplace(1.3),
    "bounded range": lambda: families.bounded_range(0.9),
    "answer": lambda: families.randomized_response(1.0),
    "leaky dice": lambda: families.randomized_response(0.8, 4, 0.01),
    "removed": lambda: dilute(families.gaussian(1.0), 0.05),
    "added": lambda: dilute_other(families.gaussian(1.0), 0.05),
    "swapped": lambda: swap(dilute(families.laplace(2.0), 0.2)),
    "fixed size": lambda: symmetrise(dilute(families.gaussian(1.0), 0.1)),
    "masked": lambda: mask(families.laplace(1.0), 0.3),
    "replaced": lambda: families.antipodal_gaussian(1.0, 0.05),
    "replaced laplace": lambda: families.antipodal_laplace(1.5, 0.2),
    "wide gaussian": lambda: families.two_gaussians(0.3, 1.2),
}
GAMMAS = np.exp(np.linspace(-3, 3, 61))


def profile(pair: Pair, gamma: float) -> float:
    """H_γ from the masses, for any γ > 0."""
    at = float(np.log(gamma))
    over = pair.losses > at
    value = pair.infinite + float(np.sum(pair.p[over] - gamma * pair.q[over]))
    if pair.smooth is not None and at < pair.high:
        _, p_gt, _, q_gt = pair.smooth(np.array([max(at, pair.low)]))
        value += float(p_gt[0] - gamma * q_gt[0])
    return value


def profile_of_masses(masses: Masses, gamma: float) -> float:
    return masses.infinite + float(
        np.sum(np.maximum(masses.p - gamma * masses.p * np.exp(-masses.losses), 0))
    )


@pytest.mark.parametrize("cells", [7, 40, 999])
@pytest.mark.parametrize("name", PAIRS)
def test_spread_dominates_and_contract_is_dominated(name: str, cells: int) -> None:
    pair = PAIRS[name]()
    losses = np.linspace(pair.least - 0.013, pair.greatest + 0.017, cells)
    above, below = spread(pair, losses), contract(pair, losses)
    for gamma in GAMMAS:
        truth = profile(pair, gamma)
        assert profile_of_masses(above, gamma) >= truth - 1e-15
        assert profile_of_masses(below, gamma) <= truth + 1e-15


@pytest.mark.parametrize(
    "name", ["gaussian", "sharp gaussian", "bounded range", "removed", "added", "replaced"]
)
def test_both_errors_are_of_second_order_for_a_smooth_pair(name: str) -> None:
    """Eight times finer cells must divide the gap by far more than eight, which rounding the loss would give."""
    pair = PAIRS[name]()
    gaps = []
    for cells in (400, 3200):
        losses = knots_around(
            0.0, pair.least - 0.01, pair.greatest + 0.01, (pair.greatest - pair.least) / cells, 1e-9
        )
        above, below = spread(pair, losses), contract(pair, losses)
        gaps.append(max(profile_of_masses(above, g) - profile_of_masses(below, g) for g in GAMMAS))
    assert gaps[1] <= gaps[0] / 16 + 1e-12


def test_knots_outside_the_range_lose_nothing() -> None:
    pair = families.laplace(1.0)
    wide = spread(pair, np.linspace(-5, 5, 2001))
    assert wide.infinite == 0
    assert abs(float(wide.p.sum()) - 1) < 1e-9


def test_mass_above_the_last_knot_counts_as_revealed() -> None:
    pair = families.gaussian(1.0)
    cut = spread(pair, np.linspace(-40, 1.0, 400))
    assert cut.infinite == pytest.approx(pair.exceeds(1.0)[0], rel=1e-12)


def test_the_error_that_convolve_states_covers_the_error_it_makes() -> None:
    first, second = [Fraction(1, 7), Fraction(4, 7), Fraction(2, 7)], [Fraction(3, 5), Fraction(2, 5)]
    exact = [Fraction(1)]
    for distribution in [first] * 5 + [second]:
        exact = [
            sum(
                (exact[i - j] * distribution[j] for j in range(len(distribution)) if 0 <= i - j < len(exact)),
                Fraction(0),
            )
            for i in range(len(exact) + len(distribution) - 1)
        ]
    distributions = [np.array([float(x) for x in distribution]) for distribution in (first, second)]
    found, error = convolve(distributions, [np.arange(3), np.arange(2)], [5, 1], 32)
    off = sum(abs(Fraction(float(x)) - (exact[i] if i < len(exact) else 0)) for i, x in enumerate(found))
    assert off <= error < 1e-11


@pytest.mark.parametrize("upper", [True, False])
def test_every_stated_error_moves_the_answer_to_the_safe_side(*, upper: bool) -> None:
    """With w ≤ c(λ), a mass of `error` may add or hide error·c(λ)·e^{K - λε}, and no less is allowed for."""

    def distribution(error: float) -> TiltedDistribution:
        masses = np.full(1000, 1e-3)
        return TiltedDistribution(2.0, 0.5, 0.0, 0.01, masses, error, 0.0, 0.0, 9.0, 0.0, 0.0, upper)

    clean, wrong = (np.exp(distribution(error).log_delta(1.0)) for error in (0.0, 1e-2))
    allowed = 1e-2 * peak(2.0) * np.exp(0.5 - 2.0)
    assert wrong - clean == pytest.approx(allowed if upper else -allowed, rel=1e-9)


def test_below_its_window_a_distribution_guarantees_no_more_than_the_bound_of_chernoff() -> None:
    masses = np.full(1000, 1e-3)
    distribution = TiltedDistribution(2.0, 0.5, 1.0, 0.01, masses, 0.0, 0.0, 0.0, 9.0, 0.0, 0.0, upper=True)
    assert np.exp(distribution.log_delta(0.9)) >= peak(2.0) * np.exp(0.5 - 2.0 * 0.9)
