# SPDX-License-Identifier: Apache-2.0
"""The constants of a limit, against fifty digits of another library and the table of the theory."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest

from discreet.ledger import pinned

MILLIONTH = Fraction(1, 10**6)


def conversion(order, budget, epsilon):
    """CKS(α, B, ε)."""
    alpha, b, e = (
        mpmath.mpf(order),
        mpmath.mpf(budget.numerator) / budget.denominator,
        mpmath.mpf(str(float(epsilon))),
    )
    return mpmath.exp((alpha - 1) * (b - e)) * (1 - 1 / alpha) ** alpha / (alpha - 1)


@pytest.mark.parametrize(
    ("epsilon", "delta", "order", "rho"),
    [
        ("1/2", MILLIONTH, 40, None),
        ("1", MILLIONTH, 22, 0.02436),
        ("1", Fraction(1, 10**9), 35, None),
        ("3", MILLIONTH, 8.9, 0.1851),
        ("8", MILLIONTH, 4.4, 1.052),
    ],
)
def test_the_best_order_is_that_of_the_table(epsilon, delta, order, rho):
    found = pinned.best_order(Fraction(epsilon), delta)
    assert found == pytest.approx(order, rel=0.01)
    if rho is not None:
        assert float(pinned.budget(Fraction(epsilon), delta, found)) / found == pytest.approx(
            rho, abs=6e-5 * max(1, 10 * rho)
        )


def test_the_old_conversion_would_give_less():
    """ρ + 2√(ρ·log 1/δ) = ε gives ρ = .01747 at (1, 1e-6), 28 % less."""
    rho = 0.01747
    assert rho + 2 * (rho * 6 * 2.302585) ** 0.5 == pytest.approx(1, abs=1e-3)
    assert float(pinned.budget(Fraction(1), MILLIONTH, 22.0)) / 22 > 1.39 * rho


@pytest.mark.parametrize("epsilon", ["1/1000", "1/10", "1", "10", "1000"])
@pytest.mark.parametrize("delta", [Fraction(1, 10), MILLIONTH, Fraction(1, 10**100)])
def test_a_budget_is_just_below_the_edge(epsilon, delta):
    with mpmath.workdps(60):
        for order in (pinned.best_order(Fraction(epsilon), delta), 1.001, 2.5, 1e6):
            budget = pinned.budget(Fraction(epsilon), delta, order)
            target = mpmath.mpf(1) / delta.denominator
            reached = conversion(order, budget, Fraction(epsilon))
            assert reached <= target
            assert reached > target * (1 - (order - 1) * mpmath.mpf("1e-20") - mpmath.mpf("1e-20"))
            assert pinned.holds(Fraction(epsilon), delta, order, budget)
            assert not pinned.holds(Fraction(epsilon), delta, order, budget + Fraction(1, 1 << 78))


def test_the_best_order_is_best():
    for epsilon, delta in (
        (Fraction(1), MILLIONTH),
        (Fraction(5), Fraction(1, 100)),
        (Fraction(1, 20), MILLIONTH),
    ):
        best = pinned.best_order(epsilon, delta)
        slope = pinned.budget(epsilon, delta, best) / Fraction(best)
        for other in (0.7, 0.95, 1.05, 1.5):
            away = 1 + (best - 1) * other
            assert pinned.budget(epsilon, delta, away) / Fraction(away) <= slope


def test_the_least_epsilon_is_the_inverse():
    for order, budget in ((22.0, Fraction(1, 2)), (1.5, Fraction(3)), (300.0, Fraction(1, 100))):
        epsilon = pinned.least_epsilon(MILLIONTH, order, budget)
        assert pinned.holds(epsilon, MILLIONTH, order, budget)
        assert not pinned.holds(epsilon - Fraction(1, 1 << 70), MILLIONTH, order, budget)


def test_a_tenth_of_delta_for_leaks_costs_one_percent_of_rho():
    full, rest = MILLIONTH, Fraction(9, 10) * MILLIONTH / (1 - MILLIONTH / 10)
    slopes = [pinned.budget(Fraction(1), share, 22.0) for share in (full, rest)]
    assert float(slopes[1] / slopes[0]) == pytest.approx(0.991, abs=5e-4)
