# SPDX-License-Identifier: Apache-2.0
"""What a mechanism costs in each lane, against closed forms in high precision and against enumerated distributions."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from discreet import privacy
from discreet.errors import UnsupportedGuarantee
from discreet.ledger.pricing import (
    NO_ACCOUNT,
    DeltaAccount,
    Track,
    cost_rows,
    failure,
    is_last_resort,
    pure_loss,
    slope_of_laplace,
    slope_of_pure,
    slope_of_range,
    slope_of_response,
)
from discreet.privacy.guarantee import alternatives

BIG = Fraction(10**9)
EPSILON, RENYI, RHO, MU2 = (
    Track("epsilon", BIG),
    Track("renyi", BIG, 22.18),
    Track("rho", BIG),
    Track("mu2", BIG),
)
ROOM = DeltaAccount(Fraction(1, 10**7), Fraction(1, 10**7))


def plain(guarantee, *tracks):
    row = cost_rows(guarantee, tracks, ROOM)[0]
    assert row.name == "plain"
    return row.amounts


@pytest.mark.parametrize(
    ("guarantee", "epsilon"),
    [
        (privacy.pure(0.1), Fraction(1, 10)),
        (privacy.randomized_response(0.3), Fraction(3, 10)),
        (privacy.exponential(0.7), Fraction(7, 10)),
        (privacy.laplace(3), Fraction(1, 3)),
        (privacy.discrete_laplace(7.3, 2), Fraction(20, 73)),
        (privacy.discrete_laplace(10.0, 3), Fraction(3, 10)),
        (privacy.approximate(0.2, 1e-9), Fraction(1, 5)),
        (privacy.leaky_randomized_response(0.2, 1e-9), Fraction(1, 5)),
        (privacy.leaky(1e-9), Fraction(0)),
        (10 * privacy.pure(0.1), Fraction(1)),
        (3 * privacy.laplace(3) + privacy.pure(0.25), Fraction(5, 4)),
        (privacy.parallel(privacy.pure(0.1), privacy.pure(0.3)), Fraction(3, 10)),
        (privacy.one_of(privacy.laplace(3), privacy.pure(0.3)), Fraction(1, 3)),
        (privacy.discrete_laplace(10.0).group(4), Fraction(2, 5)),
    ],
)
def test_the_pure_track_is_exact(guarantee, epsilon):
    assert plain(guarantee, EPSILON, RENYI)["epsilon"] == epsilon


@pytest.mark.parametrize(
    "guarantee", [privacy.gaussian(1.0), privacy.discrete_gaussian(3.0), privacy.concentrated(0.1)]
)
def test_what_has_no_greatest_loss_closes_the_pure_track(guarantee):
    assert plain(guarantee, EPSILON, RENYI)["epsilon"] == math.inf


def test_a_sampled_mechanism_costs_what_amplification_leaves():
    loss = plain(privacy.pure(1.0).sampled(0.1), EPSILON)["epsilon"]
    truth = mpmath.log1p(mpmath.mpf("0.1") * mpmath.expm1(1))
    assert 0 <= float(loss - Fraction(str(truth))) < 1e-12


def test_failures_go_to_their_own_account_exactly():
    mixed = 3 * privacy.leaky(1e-9) + privacy.approximate(0.1, 2e-9) + privacy.gaussian(50.0)
    assert plain(mixed, EPSILON, RENYI)["delta"] == Fraction(5, 10**9)
    half = privacy.approximate_concentrated(1e-8, 0.001)
    assert plain(half, RHO) == {
        "delta": Fraction(1, 10**8),
        "rho": plain(privacy.concentrated(0.001), RHO)["rho"],
    }
    assert plain(privacy.pure(0.1), EPSILON)["delta"] == 0


def test_sampling_thins_out_a_leak():
    """Rate times δ, and the loss that remains is that of the sampled mechanism without its leak."""
    sampled = privacy.leaky_randomized_response(1.0, 1e-8).sampled(0.25)
    amounts = plain(sampled, EPSILON, RENYI)
    assert Fraction(25, 10**10) <= amounts["delta"] <= Fraction(25001, 10**13)
    assert amounts["epsilon"] == plain(privacy.pure(1.0).sampled(0.25), EPSILON)["epsilon"]


@pytest.mark.parametrize("order", [1.01, 1.5, 2.0, 22.18, 500.0])
@pytest.mark.parametrize("epsilon", ["1e-9", "0.01", "0.5", "3", "40"])
def test_a_pure_mechanism_in_a_renyi_track_is_never_below_the_truth(epsilon, order):
    """[log cosh((α-½)ε) - log cosh(ε/2)]/(α-1) with forty digits."""
    with mpmath.workdps(60):
        e, alpha = mpmath.mpf(epsilon), mpmath.mpf(order)
        truth = (mpmath.log(mpmath.cosh((alpha - 0.5) * e)) - mpmath.log(mpmath.cosh(e / 2))) / (alpha - 1)
        amount = plain(privacy.pure(float(epsilon)), Track("renyi", BIG, order))[f"renyi {order!r}"]
        found = mpmath.mpf(amount.numerator) / amount.denominator
        assert truth <= found
        assert found <= min(truth, e) * (1 + mpmath.mpf("1e-9")) + mpmath.mpf(2) ** -79


@pytest.mark.parametrize(
    "guarantee", [privacy.gaussian(3.7), privacy.discrete_gaussian(3.7), 7 * privacy.gaussian(3.7)]
)
def test_gaussian_noise_costs_half_the_inverse_square(guarantee):
    times = 7 if "7 *" in repr(guarantee) else 1
    exact = times / (2 * Fraction("3.7") ** 2)
    rho = plain(guarantee, RHO)["rho"]
    divergence = plain(guarantee, RENYI)[RENYI.name]
    assert exact <= rho < exact * (1 + Fraction(1, 10**12))
    assert exact * Fraction(22.18) <= divergence < exact * Fraction(22.18) * (1 + Fraction(1, 10**12))


def test_pure_noise_in_the_concentrated_track_costs_what_its_theorem_says():
    for epsilon in ("0.001", "0.2", "1", "9"):
        with mpmath.workdps(40):
            truth = mpmath.mpf(epsilon) * mpmath.tanh(mpmath.mpf(epsilon) / 2)
            found = plain(privacy.pure(float(epsilon)), RHO)["rho"]
            assert (
                truth <= mpmath.mpf(found.numerator) / found.denominator <= truth * (1 + mpmath.mpf("1e-12"))
            )
    assert plain(privacy.exponential(0.2), RHO)["rho"] < plain(privacy.pure(0.2), RHO)["rho"] / 3


def test_xi_is_not_rho():
    rows = cost_rows(privacy.concentrated(0.1, 0.1), (RHO,), ROOM)
    assert {row.name for row in rows} == {"point"}


@pytest.mark.parametrize("epsilon", ["1e-12", "1e-3", "0.5", "1", "5", "40", "300"])
def test_the_slope_of_a_pure_mechanism(epsilon):
    """μ = 2Φ⁻¹(e^ε/(1 + e^ε)), by a root of erfc in high precision."""
    with mpmath.workdps(60):
        tail = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        found = slope_of_pure(Fraction(epsilon))
        half = mpmath.mpf(found.numerator) / found.denominator / 2
        assert mpmath.erfc(half / mpmath.sqrt(2)) / 2 <= tail
        less = half * (1 - mpmath.mpf("1e-11")) - mpmath.mpf("1e-14")
        assert less <= 0 or mpmath.erfc(less / mpmath.sqrt(2)) / 2 > tail


def test_the_gaussian_curve_of_that_slope_covers_randomized_response():
    for epsilon in (0.1, 1.0, 3.0):
        cover = privacy.gaussian(float(1 / slope_of_pure(Fraction(epsilon))) * (1 - 1e-12))
        response = privacy.randomized_response(epsilon)
        for at in np.linspace(0, epsilon, 9):
            assert response.delta(float(at)) <= cover.delta(float(at)) * (1 + 1e-9)
        assert response.delta(0.0) == pytest.approx(cover.delta(0.0), rel=1e-9), "and no smaller slope would"


def quantile(p):
    return mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)


def corners_of_range(e):
    """The corners of the worst pairs whose losses span ε, with losses t and t - ε."""
    for part in range(1, 200):
        t = e * part / 200
        p = (mpmath.exp(e) - mpmath.exp(t)) / mpmath.expm1(e)
        yield 1 - p, p * mpmath.exp(-t)


def points_of_laplace(e):
    for part in [*(mpmath.mpf(n) / 1000 for n in range(1, 1000)), mpmath.exp(-e / 2) / 2]:
        outer = 1 - mpmath.exp(e) * part if part < mpmath.exp(-e) / 2 else mpmath.exp(-e) * (1 - part)
        yield part, (mpmath.exp(-e) / (4 * part) if mpmath.exp(-e) / 2 <= part <= 0.5 else outer)


def corners_of_response(outcomes):
    def corners(e):
        whole = mpmath.exp(e) + outcomes - 1
        yield 1 / whole, (outcomes - 1) / whole

    return corners


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "0.5", "1", "3", "20"])
@pytest.mark.parametrize(
    ("slope", "points"),
    [
        (lambda e: slope_of_range(float(e)), corners_of_range),
        (slope_of_laplace, points_of_laplace),
        (lambda e: slope_of_response(float(e), 2), corners_of_response(2)),
        (lambda e: slope_of_response(float(e), 17), corners_of_response(17)),
    ],
    ids=["bounded range", "Laplace", "response", "response of 17"],
)
def test_the_slope_covers_the_trade_off_curve_and_no_smaller_one_does(slope, points, epsilon):
    """μ ≥ Φ⁻¹(1-α) - Φ⁻¹(β) at every point (α, β) of the curve, with equality at one of them."""
    with mpmath.workdps(40):
        needed = max(-quantile(alpha) - quantile(beta) for alpha, beta in points(mpmath.mpf(epsilon)))
        found = slope(Fraction(epsilon))
        ratio = mpmath.mpf(found.numerator) / found.denominator / needed
        assert 1 <= ratio <= 1 + mpmath.mpf("1e-4")


@pytest.mark.parametrize("epsilon", ["1e-8", "1e-5", "0.001", "0.1", "1", "6.5", "20", "40"])
@pytest.mark.parametrize("outcomes", [2, 3, 1000, 10**6, 10**9, 10**12])
def test_the_slope_of_a_response_with_many_outcomes_is_never_too_small(outcomes, epsilon):
    """Each outcome is rare then, and what is left of 1 has lost its digits."""
    with mpmath.workdps(60):
        ((lied, not_told),) = corners_of_response(outcomes)(mpmath.mpf(float(epsilon)))
        found = slope_of_response(float(epsilon), outcomes)
        slope = mpmath.mpf(found.numerator) / found.denominator
        assert not_told >= mpmath.erfc((slope + quantile(lied)) / mpmath.sqrt(2)) / 2


def test_the_gaussian_track_charges_the_exponential_mechanism_a_quarter_of_pure_noise():
    """μ² of an ε-bounded range is (π/8)·ε² for small ε, where ε-privacy alone proves (π/2)·ε² only."""
    ranged, pure = (plain(of, MU2)["mu2"] for of in (privacy.exponential(0.1), privacy.pure(0.1)))
    assert float(ranged) == pytest.approx(0.003927, rel=1e-3)
    assert float(pure) == pytest.approx(0.015702, rel=1e-3)


def test_a_concentrated_rho_for_pure_noise_is_cheaper_than_its_slope():
    """μ²/2 = .759 at ε = 1, where ρ = .462."""
    assert float(slope_of_pure(Fraction(1)) ** 2 / 2) == pytest.approx(0.759, abs=5e-4)
    assert float(plain(privacy.pure(1.0), RHO)["rho"]) == pytest.approx(0.462, abs=5e-4)


def test_only_gaussian_noise_and_pure_losses_have_a_slope():
    assert plain(5 * privacy.gaussian(10.0), MU2)["mu2"] == Fraction(1, 20)
    mixed = plain(privacy.gaussian(10.0) + privacy.laplace(2), MU2)["mu2"]
    assert mixed == Fraction(1, 100) + slope_of_laplace(Fraction(1, 2)) ** 2
    for guarantee in (privacy.discrete_gaussian(10.0), privacy.approximate(0.1, 1e-9)):
        with pytest.raises(UnsupportedGuarantee, match="DP203"):
            cost_rows(guarantee, (MU2,), NO_ACCOUNT)


def test_points_are_points_of_the_curve():
    run = 100 * privacy.gaussian(2.0).sampled(0.01)
    rows = [row for row in cost_rows(run, (EPSILON, RENYI), ROOM) if row.name == "point"]
    assert len(rows) == 3
    for row in rows:
        assert row.amounts["epsilon"] == Fraction(run.epsilon(float(row.amounts["delta"])))
        assert row.amounts[RENYI.name] >= Fraction(privacy.pure(float(row.amounts["epsilon"])).renyi(22.18))


def test_a_point_counts_the_mechanisms_own_failures():
    leaking = privacy.gaussian(20.0) + privacy.leaky(3e-9)
    rows = [row for row in cost_rows(leaking, (EPSILON, RENYI), ROOM) if row.name == "point"]
    assert min(row.amounts["delta"] for row in rows) > Fraction(3, 10**9)


def test_small_charges_are_not_truncated_and_dear_ones_are():
    tight = (Track("epsilon", Fraction(1)), Track("renyi", Fraction(1, 2), 22.0))
    cheap, dear = privacy.gaussian(30.0), 1_000 * privacy.gaussian(0.8).sampled(0.001)
    assert {row.name for row in cost_rows(cheap, tight, ROOM)} == {"plain", "point"}
    assert {row.name for row in cost_rows(dear, tight, ROOM)} == {"plain", "point", "truncated"}
    for blunt in (privacy.pure(0.1), privacy.pure(0.9), privacy.laplace(1), privacy.randomized_response(2.0)):
        assert {row.name for row in cost_rows(blunt, tight, ROOM)} == {"plain"}


def test_a_row_of_last_resort_takes_most_of_the_account():
    wide = DeltaAccount(Fraction(3, 4 * 10**6), Fraction(1, 10**7), last=Fraction(6, 10**7))
    tight = (Track("epsilon", Fraction(1)), Track("renyi", Fraction(1, 2), 22.0))
    dear = 1_000 * privacy.gaussian(0.8).sampled(0.001)
    rows = cost_rows(dear, tight, wide)
    assert [row.name for row in rows if is_last_resort(row)] == ["last point", "last truncated"]
    assert all(row.amounts["delta"] > Fraction(1, 10**7) for row in rows if is_last_resort(row))
    assert tuple(row for row in rows if not is_last_resort(row)) == cost_rows(dear, tight, ROOM), (
        "the others are as without it"
    )


def test_without_room_for_failures_there_is_one_row():
    assert len(cost_rows(privacy.laplace(2), (EPSILON,), NO_ACCOUNT)) == 1
    for guarantee in (privacy.gaussian(5.0), privacy.leaky(1e-9) + privacy.laplace(2)):
        with pytest.raises(UnsupportedGuarantee, match="DP203"):
            cost_rows(guarantee, (EPSILON,), NO_ACCOUNT)


def test_every_part_knows_its_loss_and_failure_on_the_safe_side():
    """What a row takes as exact is never below what the part itself says."""
    guarantees = [
        privacy.pure(0.3),
        privacy.laplace(3.3),
        privacy.discrete_laplace(3.3, 2),
        privacy.approximate(0.1, 1e-7),
        privacy.pure(2.0).sampled(0.3),
        privacy.selected(privacy.pure(0.5), mean_runs=10),
        privacy.pair([0.9, 0.1], [0.2, 0.8]),
        privacy.randomized_response(0.4, 5).group(3),
    ]
    for guarantee in guarantees:
        for bag in alternatives(guarantee):
            for part, _ in bag.entries:
                assert pure_loss(part) >= Fraction(part.worst_loss()) * (1 - Fraction(1, 10**15))
                assert failure(part) >= Fraction(part.failure) * (1 - Fraction(1, 10**15))
