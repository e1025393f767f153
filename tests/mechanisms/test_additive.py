# SPDX-License-Identifier: Apache-2.0
"""Additive noise: the guarantee is kept by the distribution that is drawn, on any input, and the error bars are true."""

from __future__ import annotations

import itertools
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import errors, privacy, testing
from discreet.mechanisms import (
    AboveThreshold,
    DiscreteGaussian,
    Gaussian,
    Geometric,
    Laplace,
    PartitionSelection,
    Release,
    additive,
    classic_gaussian_scale,
)
from tests.chance import may_fail
from tests.finite import hockey_stick
from tests.statistical import fit
from tests.statistical.constants import ALPHA, MANY

ALL = [
    Laplace(epsilon=0.7, sensitivity=0.3),
    Laplace(scale=2.0, sensitivity=1),
    Gaussian(rho=0.1, sensitivity=1 / 3),
    Gaussian(epsilon=2, delta=1e-5, sensitivity=7),
    Gaussian(scale=0.01, sensitivity=1e-3),
    Geometric(epsilon=0.5, sensitivity=2),
    DiscreteGaussian(rho=0.3, sensitivity=1),
    DiscreteGaussian(epsilon=1, delta=1e-6, sensitivity=2),
]


def _probabilities(distribution_of, scale: float) -> tuple[np.ndarray, np.ndarray]:
    support = np.arange(-4000, 4001)
    return support, distribution_of(support, scale)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 0.3, 1 / 3, 1, 2.7, 40])
@pytest.mark.parametrize("sensitivity", [1, 0.1, 1 / 3, 3, 2.0**-60, 2.0**60, Fraction(2, 7)])
@pytest.mark.parametrize("dimension", [None, 3, 100])
def test_the_guarantee_of_laplace_is_never_above_what_was_asked(epsilon, sensitivity, dimension) -> None:
    guaranteed = Laplace(epsilon=epsilon, sensitivity=sensitivity, dimension=dimension).guarantee
    assert epsilon * (1 - 1e-9) <= guaranteed.epsilon(delta=0) <= epsilon


@pytest.mark.parametrize("sensitivity", [1, 0.1, 5])
@pytest.mark.parametrize("dimension", [None, 7])
@pytest.mark.parametrize("kind", [Gaussian, DiscreteGaussian])
def test_the_guarantee_of_a_gaussian_is_never_above_what_was_asked(kind, sensitivity, dimension) -> None:
    words = {"sensitivity": sensitivity, "dimension": dimension}
    assert 0.2 * (1 - 1e-6) <= kind(rho=0.2, **words).guarantee.concentrated() <= 0.2
    for epsilon, delta in ((0.1, 1e-6), (1, 1e-9), (8, 0.01)):
        assert kind(epsilon=epsilon, delta=delta, **words).guarantee.delta(epsilon) <= delta


def test_the_grid_costs_almost_no_noise() -> None:
    """Against the real-valued mechanisms: nothing for a dyadic sensitivity, at most one part in 2^10 otherwise."""
    assert Laplace(epsilon=0.5, sensitivity=1).scale == 2.0
    assert Laplace(epsilon=0.5, sensitivity=0.1).scale == pytest.approx(0.2, rel=2**-10)
    for dimension in (1, 2, 50):
        assert Gaussian(rho=0.5, sensitivity=0.1, dimension=dimension).scale == pytest.approx(0.1, rel=2e-3)
        assert Laplace(epsilon=1, sensitivity=0.1, dimension=dimension).scale == pytest.approx(0.1, rel=2e-3)


@pytest.mark.parametrize(
    "mechanism", [Geometric(epsilon=0.5, sensitivity=2), DiscreteGaussian(scale=3, sensitivity=2)]
)
def test_the_guarantee_is_the_exact_curve_of_the_distribution(mechanism) -> None:
    distribution_of = fit.discrete_laplace if isinstance(mechanism, Geometric) else fit.discrete_gaussian
    support, p = _probabilities(distribution_of, mechanism.distribution.scale)
    q = distribution_of(support - 2, mechanism.distribution.scale)
    for epsilon in (0.0, 0.2, 0.6, 0.9):
        assert mechanism.guarantee.delta(epsilon) == pytest.approx(hockey_stick(p, q, epsilon), rel=1e-8)


def test_no_way_to_spread_an_l1_distance_is_worse_than_one_coordinate() -> None:
    """All moves of a two-dimensional vector by at most four cells, against the guarantee."""
    mechanism = Geometric(scale=3.0, sensitivity=4, dimension=2)
    support = np.arange(-120, 121)
    one = {move: fit.discrete_laplace(support - move, 3.0) for move in range(5)}
    worst = dict.fromkeys((0.0, 0.4, 0.9, 1.2), 0.0)
    for a, b in itertools.product(range(5), repeat=2):
        if a + b <= 4:
            p, q = np.outer(one[0], one[0]), np.outer(one[a], one[b])
            for epsilon in worst:
                worst[epsilon] = max(worst[epsilon], hockey_stick(p, q, epsilon))
    for epsilon, delta in worst.items():
        assert delta <= mechanism.guarantee.delta(epsilon) <= delta * (1 + 1e-6) + 1e-12


@given(
    st.floats(-1e6, 1e6),
    st.floats(0, 1),
    st.sampled_from([m for m in ALL if type(m) in (Laplace, Gaussian)]),
)
def test_rounding_never_moves_neighbours_further_apart_than_guaranteed(value, share, mechanism) -> None:
    far = Fraction(value) + Fraction(share) * Fraction(mechanism.sensitivity)
    guaranteed = mechanism.guarantee
    paid = (
        guaranteed.sensitivity
        if isinstance(mechanism, Laplace)
        else mechanism.distribution.scale / guaranteed.noise
    )
    assert abs(mechanism.grid.cells(far) - mechanism.grid.cells(value)) <= paid


@may_fail(3 * ALPHA, "one distribution fits, two do not")
@pytest.mark.parametrize(
    ("mechanism", "distribution_of"),
    [
        (Laplace(epsilon=2, sensitivity=0.25), fit.discrete_laplace),
        (Gaussian(rho=2, sensitivity=0.25), fit.rounded_gaussian),
        (Geometric(scale=4.0, sensitivity=1), fit.discrete_laplace),
        (DiscreteGaussian(scale=4.0, sensitivity=1), fit.discrete_gaussian),
    ],
)
def test_what_is_drawn_has_the_guaranteed_distribution(mechanism, distribution_of) -> None:
    """On the grid of one number, drawn as an array; fine grids are compared in blocks of cells."""
    block = 1 if mechanism.grid.exponent == 0 else 64
    scale = mechanism.distribution.scale

    def sampler(_, count):
        return mechanism.add_noise(np.full(count, 7 * block)) // block - 7

    def law(k, wide):
        starts = np.arange(k[0] * block, (k[-1] + 1) * block)
        return distribution_of(starts, wide * block).reshape(-1, block).sum(axis=1)

    fit.accepts_only(sampler, law, scale / block, MANY)


def test_a_long_vector_is_answered_in_one_go() -> None:
    values = np.arange(50_000) / 7
    for mechanism in (Laplace(epsilon=1, sensitivity=1), Gaussian(rho=0.5, sensitivity=1)):
        release = mechanism(values)
        assert np.abs(release.value - values).max() <= mechanism.with_dimension(50_000).error(1 - 1e-12)
        assert mechanism.with_dimension(50_000).scale == pytest.approx(1.0, rel=2**-5)


@pytest.mark.parametrize("mechanism", ALL)
@pytest.mark.parametrize("confidence", [0.5, 0.95, 1 - 1e-9])
def test_the_error_is_true_and_not_a_step_too_large(mechanism, confidence) -> None:
    error, step = mechanism.error(confidence), float(mechanism.grid.step)
    assert mechanism.tail(error) <= 1 - confidence
    if error > 1.01 * step:
        assert mechanism.tail(error - 1.01 * step) > (1 - confidence) * (1 - 1e-9)


@pytest.mark.parametrize(
    ("mechanism", "distribution_of"),
    [
        (Geometric(scale=3.3, sensitivity=1), fit.discrete_laplace),
        (DiscreteGaussian(scale=3.3, sensitivity=1), fit.discrete_gaussian),
    ],
)
def test_tails_are_those_of_the_distribution(mechanism, distribution_of) -> None:
    support, p = _probabilities(distribution_of, 3.3)
    for k in (0, 1, 5, 20):
        exact = float(p[np.abs(support) > k].sum())
        assert exact <= mechanism.tail(k) <= exact * (1 + 1e-9)
    many = type(mechanism)(scale=3.3, sensitivity=1, dimension=5)
    assert many.tail(5) == pytest.approx(1 - (1 - mechanism.tail(5)) ** 5, rel=1e-9)
    assert many.error(0.9) > mechanism.error(0.9)


def test_the_tail_of_a_wide_discrete_gaussian_is_bounded_from_above() -> None:
    """Where the sum is too long it is bounded; at the seam both are at hand."""
    narrow, wide = (DiscreteGaussian(scale=scale, sensitivity=1) for scale in (20_000.0, 20_000.5))
    for k in (10_000, 60_000, 100_000):
        assert narrow.tail(k) <= wide.tail(k) <= narrow.tail(k) * 1.001


@pytest.mark.parametrize("kind", [Laplace, Gaussian, Geometric, DiscreteGaussian])
def test_a_planned_error_is_met_with_the_most_noise(kind) -> None:
    planned = kind.for_error(25, sensitivity=1, confidence=0.9)
    assert planned.error(0.9) <= 25
    assert kind(scale=planned.scale * 1.05, sensitivity=1).error(0.9) > 25


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan")])
@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_what_is_no_finite_number_counts_as_zero(kind, value) -> None:
    mechanism = kind(scale=1, sensitivity=1)
    with testing.seeded(1):
        expected = mechanism(0.0).value
    with testing.seeded(1):
        assert mechanism(value).value == expected
    with testing.seeded(1):
        several = mechanism([0.0, 5.0]).value
    with testing.seeded(1):
        assert mechanism([value, 5.0]).value.tolist() == several.tolist()


@pytest.mark.parametrize(
    "value", [2.0**1000, -(2.0**1000), 1e308, -0.0, 5e-324, 2**62, 2**200, Fraction(1, 3)]
)
@pytest.mark.parametrize(
    "mechanism", [Laplace(scale=1e-3, sensitivity=1e-3), Gaussian(scale=1e3, sensitivity=1)]
)
def test_every_magnitude_is_answered_alike(mechanism, value) -> None:
    found = mechanism(value).value
    assert type(found) is float
    assert abs(Fraction(found) - Fraction(value)) <= mechanism.error(1 - 1e-12) + abs(Fraction(value)) / 2**52


@pytest.mark.parametrize("value", [2**62, -(2**63), 10**30])
def test_whole_numbers_of_any_size_stay_whole(value) -> None:
    found = Geometric(epsilon=1, sensitivity=1)(value).value
    assert isinstance(found, int)
    assert abs(found - value) < 1000


def test_a_vector_needs_no_announcement() -> None:
    release = Laplace(epsilon=1, sensitivity=2)([1, 2, 3])
    assert release.value.shape == (3,)
    assert release.guarantee == Laplace(epsilon=1, sensitivity=2, dimension=3).guarantee
    assert release.guarantee.epsilon(delta=0) <= 1
    assert Gaussian(rho=1, sensitivity=1)(np.zeros((2, 3))).value.shape == (2, 3)
    with pytest.raises(errors.BadParameter, match="DP107"):
        Laplace(epsilon=1, sensitivity=2, dimension=2)([1, 2, 3])


def test_a_release_says_what_it_is() -> None:
    mechanism = Laplace(epsilon=1, sensitivity=1)
    with testing.seeded(3):
        release = mechanism(42)
    assert isinstance(release, Release)
    assert not release.private
    assert "NOT PRIVATE" in str(release)
    assert "NOT PRIVATE" in release._repr_html_()
    assert mechanism(42).private
    low, high = release.interval
    assert high - low == pytest.approx(2 * release.error)
    assert release.error == mechanism.error()
    assert "one record added or removed" in str(release)


@pytest.mark.parametrize(
    ("guarantee", "line"),
    [
        (privacy.pure(0.3), "0.3 at δ = 0"),
        (privacy.gaussian(noise=1.0), "4.88656 at δ = 1e-06"),  # 4.886554…, never rounded down
        (privacy.approximate(1, 1e-3), "1 at δ = 0.001"),
    ],
)
def test_a_release_says_its_epsilon(guarantee: privacy.Guarantee, line: str) -> None:
    release = Release(7, guarantee, 2.0, error_unit="records")
    assert f"epsilon    {line}" in str(release).splitlines()
    assert f"<td>{line}</td>" in release._repr_html_()
    assert "at most 2 records (95%)" in str(release)
    assert "at most 2 records (95%)" in release._repr_html_()
    assert "at most 2 (95%)" in str(Release(7, guarantee, 2.0))


def test_a_release_says_what_its_error_counts() -> None:
    vector = AboveThreshold(epsilon=1, sensitivity=1, threshold=5)([1, 2])
    assert f"at most {vector.error:.6g} from the line (95%)" in str(vector)
    keys = PartitionSelection(epsilon=1, delta=1e-5)({"flu": 900})
    assert f"at most {keys.error:.6g} users (95%)" in str(keys)


def test_a_guarantee_names_its_unit_and_covers_groups() -> None:
    mechanism = Gaussian(rho=0.5, sensitivity=1, relation="replace", unit="patient")
    assert mechanism.guarantee_at(distance=3).concentrated() == pytest.approx(4.5)
    assert str(mechanism.unit) == "one patient replaced"
    assert Geometric(epsilon=0.5, sensitivity=1).guarantee_at(distance=4).epsilon(delta=0) == 2.0


def test_mechanisms_can_be_stored() -> None:
    for mechanism in ALL:
        again = pickle.loads(pickle.dumps(mechanism))
        assert (again.guarantee, again.error()) == (mechanism.guarantee, mechanism.error())


NUMBERS = [0, -1, math.nan, math.inf, True, "1", None, 1j, 1e200, 1e-200]


@pytest.mark.parametrize("bad", NUMBERS)
@pytest.mark.parametrize("kind", [Laplace, Gaussian, Geometric, DiscreteGaussian])
def test_bad_parameters_are_refused(kind, bad) -> None:
    with pytest.raises(errors.BadParameter):
        kind(scale=1.0, sensitivity=bad)
    with pytest.raises(errors.BadParameter):
        kind(scale=bad, sensitivity=1)
    amount = {"epsilon": bad} if kind in (Laplace, Geometric) else {"epsilon": bad, "delta": 1e-6}
    with pytest.raises(errors.BadParameter):
        kind(sensitivity=1, **amount)
    if bad is not None:
        with pytest.raises(errors.BadParameter):
            kind(scale=1.0, sensitivity=1, dimension=bad)
    with pytest.raises(errors.BadParameter):
        kind(scale=1.0, sensitivity=1).guarantee_at(distance=bad)
    if bad != 1e-200:
        with pytest.raises(errors.BadParameter):
            kind(scale=1.0, sensitivity=1).error(confidence=bad)


@pytest.mark.parametrize("words", [{}, {"epsilon": 1.0}, {"delta": 1e-6}, {"rho": 1.0, "scale": 1.0}])
def test_the_amount_of_noise_is_stated_once(words) -> None:
    with pytest.raises(errors.BadParameter, match="DP107"):
        Gaussian(sensitivity=1, **words)


KINDS = [Laplace, Gaussian, Geometric, DiscreteGaussian]


def drawn(mechanism, value, seed=7) -> tuple[list, str]:
    with testing.seeded(seed):
        found = mechanism(value).value
    return np.ravel(found).tolist(), type(found).__name__


@pytest.mark.parametrize(
    "value", ["1", None, 1j, object(), math.nan, math.inf, Decimal("sNaN"), {1}, {"a": 1}]
)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_number_at_all_counts_as_zero(kind, value) -> None:
    mechanism = kind(scale=1.0, sensitivity=1)
    assert drawn(mechanism, value) == drawn(mechanism, 0)
    assert drawn(mechanism, [5, value, 7.0]) == drawn(mechanism, [5, 0, 7])
    assert drawn(mechanism, np.array([5, value, 7], object)) == drawn(mechanism, [5, 0, 7])


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_counts_whatever_its_type(kind) -> None:
    mechanism = kind(scale=1.0, sensitivity=1)
    for one in (True, np.True_, 1.0, Fraction(1), Decimal("1.00"), np.float32(1), np.array(1.0), 1 + 0j):
        assert drawn(mechanism, one) == drawn(mechanism, 1)


@pytest.mark.parametrize("bad", [np.array(["a"]), np.array([1j]), np.array(["2026"], "M8[Y]")])
@pytest.mark.parametrize("kind", KINDS)
def test_an_array_that_is_declared_to_hold_no_numbers_is_refused(kind, bad) -> None:
    with pytest.raises(errors.BadParameter, match="DP104"):
        kind(scale=1.0, sensitivity=1)(bad)


def test_whole_number_noise_takes_the_whole_number_below() -> None:
    mechanism = Geometric(epsilon=1, sensitivity=1)
    assert drawn(mechanism, 1.9) == drawn(mechanism, 1)
    assert drawn(mechanism, [-0.5, Fraction(7, 2)]) == drawn(mechanism, [-1, 3])
    with pytest.raises(errors.BadParameter, match="DP103"):
        mechanism(np.array([1.0, 2.0]))


EDGES = [2**62 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**19, 10**400]


@pytest.mark.parametrize(
    "edge", [sign * edge for edge in EDGES for sign in (1, -1)], ids=range(2 * len(EDGES))
)
@pytest.mark.parametrize("kind", KINDS)
def test_the_type_of_an_answer_does_not_tell_its_size(kind, edge) -> None:
    """The attack: [2**62 - 1, 0] was an array of int64, [2**62, 0] one of objects; near 2**63 draws wrapped around."""
    mechanism = kind(scale=1.0, sensitivity=1)
    kinds = (np.int64, int) if kind in (Geometric, DiscreteGaussian) else (np.float64, float)
    arrays = [np.array([edge, 0], object)]
    if 0 <= edge < 2**64:
        arrays.append(np.array([edge, 0], np.uint64))
    if abs(edge) < 2**63:
        arrays.append(np.array([edge, 0], np.int64))
    for row in ([edge, 0], (0, edge), *arrays):
        found = mechanism(row).value
        assert (found.dtype, found.shape) == (kinds[0], (2,))
        assert (found.max() if edge > 0 else -found.min()) >= 2.0**61
        many = mechanism.with_dimension(2).draw_many(row, 3)
        assert (many.dtype, many.shape) == (kinds[0], (3, 2))
    assert type(mechanism(edge).value) is kinds[1]
    many = mechanism.draw_many(edge, 50)
    assert many.dtype == kinds[0]
    assert (many >= 2.0**61).all() if edge > 0 else (many <= -(2.0**61)).all()
    assert str(mechanism(edge))


@pytest.mark.parametrize("edge", [2**62, -(2**62)])
def test_draws_at_the_end_of_the_range_do_not_wrap_around(edge) -> None:
    """With noise of the widest scale; the sum stays at the end, which the exact sum decides."""
    wide = Geometric(scale=2.0**46, sensitivity=1)
    assert (np.sign(wide.draw_many(edge, 10_000)) == np.sign(edge)).all()


def test_a_sum_beyond_the_range_is_its_end() -> None:
    ends = np.iinfo(np.int64)
    cells, noise = np.array([2**62, -(2**62), 5, 2**62]), np.array([2**62, -(2**62) - 1, -7, 2**63 - 1])
    assert additive._add(cells, noise).tolist() == [ends.max, ends.min, -2, ends.max]


def test_the_classic_formula_is_only_a_comparison() -> None:
    assert classic_gaussian_scale(0.5, 1e-6) == pytest.approx(math.sqrt(2 * math.log(1.25e6)) / 0.5)
    for epsilon in (1, 1.5, 8):
        with pytest.raises(errors.BadParameter, match="DP102"):
            classic_gaussian_scale(epsilon, 1e-6)
    for epsilon, delta in ((0.1, 1e-3), (0.9, 1e-9)):
        assert Gaussian(epsilon=epsilon, delta=delta, sensitivity=1).scale < classic_gaussian_scale(
            epsilon, delta
        )
