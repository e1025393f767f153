# SPDX-License-Identifier: Apache-2.0
"""The privacy notes on approximate differential privacy, composition and private learning, row by row.

A test is named by what it claims, and its docstring begins with its row in docs/notes.md. A statement
that is wrong as written is refuted by its counterexample, and the right one is checked beside it.
"""

from __future__ import annotations

import itertools
import math

import pytest
from mpmath import exp, mpf, pi, quad, sqrt

import discreet as dp
from discreet import errors, privacy
from discreet.mechanisms import Gaussian, classic_gaussian_scale
from tests import oracle


def spread_out(size: int) -> tuple[list[float], list[float]]:
    """A uniform choice among `size` outcomes that only the one data set can give, or only the other."""
    return [1 / size] * size + [0.0] * size, [0.0] * size + [1 / size] * size


def test_approximate_privacy_is_about_sets() -> None:
    """Row 4.46: Outcome by outcome P(a) ≤ e^ε P'(a) + δ holds here with ε = 0, δ = 1/N; but every
    answer gives all away."""
    p, q = spread_out(1_000)
    assert all(abs(a - b) <= 1e-3 + 1e-15 for a, b in zip(p, q, strict=True))
    revealed = privacy.pair(p, q)
    assert revealed.advantage() == pytest.approx(1.0)
    assert revealed.delta(epsilon=10.0) == pytest.approx(1.0)
    assert not revealed.implies(privacy.approximate(10.0, 0.9))


def test_only_a_total_of_delta_is_exempt() -> None:
    """Row 4.47: Exempting each outcome of probability δ or less exempts all thousand; exempting a
    total of δ, hardly one."""
    p, q = spread_out(1_000)
    assert sum(a for a in p if a <= 1e-3 + 1e-15) == pytest.approx(1.0)
    exempt = privacy.pair([0.999 * 0.6, 0.999 * 0.4, 0.001, 0.0], [0.999 * 0.5, 0.999 * 0.5, 0.0, 0.001])
    assert exempt.delta(epsilon=math.log(1.25)) == pytest.approx(0.001)
    assert privacy.pair(p, q).delta(epsilon=math.log(1.25)) == pytest.approx(1.0)


@pytest.mark.parametrize("n", [10, 1_000])
def test_delta_must_be_far_below_one_over_n(n: int) -> None:
    """Row 4.48: Publishing each record with probability δ is (0, δ)-private; with δ = 1/n somebody is
    exposed 63 % of the time."""
    assert privacy.leaky(1 / n).advantage() == pytest.approx(1 / n)
    assert 1 - (1 - 1 / n) ** n > 0.63
    assert 1 - (1 - 1e-3 / n) ** n < 0.001 + 1e-12


def test_the_l2_sensitivity_is_over_neighbours() -> None:
    """Row 4.49: Over all pairs of data sets a count would move by n; over neighbours it moves by one."""
    sets = list(itertools.product((0, 1), repeat=4))

    def counts(bits: tuple[int, ...]) -> tuple[int, int]:
        return sum(bits), 4 - sum(bits)

    def moved(a: tuple[int, ...], b: tuple[int, ...]) -> float:
        return math.dist(counts(a), counts(b))

    near = max(moved(a, b) for a in sets for b in sets if math.dist(a, b) == 1)
    far = max(moved(a, b) for a in sets for b in sets)
    assert (near, far) == (pytest.approx(math.sqrt(2)), pytest.approx(4 * math.sqrt(2)))


def test_the_gaussian_density_has_sigma_once() -> None:
    """Row 4.50: With σ² in the denominator it integrates to 1/σ: 0.3333 at σ = 3."""
    sigma = mpf(3)
    shape = lambda x: exp(-(x**2) / (2 * sigma**2)) / sqrt(2 * pi)  # noqa: E731
    assert float(quad(lambda x: shape(x) / sigma**2, [-60, 0, 60])) == pytest.approx(1 / 3, rel=1e-9)
    assert float(quad(lambda x: shape(x) / sigma, [-60, 0, 60])) == pytest.approx(1.0, rel=1e-9)


def test_the_classic_formula_needs_a_small_epsilon() -> None:
    """Row 4.51: Below ε = 1 it holds and wastes noise; at ε = 20 it guarantees δ = 1e-5 and gives
    1.5e-3."""
    for epsilon in (0.1, 0.5, 0.99):
        sigma = classic_gaussian_scale(epsilon, 1e-5)
        assert privacy.gaussian(sigma).delta(epsilon) <= 1e-5
        assert Gaussian(epsilon=epsilon, delta=1e-5, sensitivity=1).scale < sigma
    sigma = math.sqrt(2 * math.log(1.25 / 1e-5)) / 20
    assert privacy.gaussian(sigma).bound(epsilon=20.0).lower > 1e-3
    with pytest.raises(errors.BadParameter):
        classic_gaussian_scale(1.0, 1e-5)


def test_a_group_pays_a_geometric_sum() -> None:
    """Row 4.52: k·e^{kε}·δ is true; δ·(e^{kε} - 1)/(e^ε - 1) is enough: 9.95e-6 instead of 2.24e-5."""
    epsilon, delta, size = 0.3, 1e-6, 5
    written = size * math.exp(size * epsilon) * delta
    right = delta * math.expm1(size * epsilon) / math.expm1(epsilon)
    assert written == pytest.approx(2.24e-5, rel=1e-3)
    assert right == pytest.approx(9.95e-6, rel=1e-3)
    group = privacy.approximate(epsilon, delta).group(size)
    assert group.delta(size * epsilon) == pytest.approx(right, rel=1e-9)
    chain = privacy.gaussian(noise=1 / 0.3).group(3)
    assert chain.tradeoff(0.1) == pytest.approx(privacy.gaussian(noise=1 / 0.9).tradeoff(0.1), rel=1e-9)
    assert chain.tradeoff(0.1) == pytest.approx(0.648602992, rel=1e-8)


def test_parameters_add_under_adaptive_questions() -> None:
    """Row 4.53."""
    assert (7 * privacy.pure(0.3)).epsilon(delta=0) == pytest.approx(2.1)
    many = 7 * privacy.approximate(0.3, 1e-6)
    assert many.epsilon(delta=7e-6) <= 2.1 + 1e-9
    assert many.epsilon(delta=7e-6, route="basic") == pytest.approx(2.1)


def test_advanced_composition_holds_for_every_epsilon() -> None:
    """Row 4.54: ε√(2k ln 1/δ) + kε² at ε = 0.9, k = 50: 73.95, while basic gives 45 and the truth is
    41.36: take the least."""
    epsilon, count, delta = 0.9, 50, 1e-6
    written = epsilon * math.sqrt(2 * count * math.log(1 / delta)) + count * epsilon**2
    many = count * privacy.pure(epsilon)
    assert written == pytest.approx(73.95, rel=1e-3)
    assert many.epsilon(delta=0) == pytest.approx(45.0)
    assert many.epsilon(delta=delta) == pytest.approx(41.36, rel=1e-3)
    for one in (0.1, 0.9, 2.0, 5.0):
        truth = oracle.epsilon_of(lambda e, one=one: oracle.optimal_composition(one, 0, 10, e), 1e-6)
        assert float(truth) <= one * math.sqrt(2 * 10 * math.log(1e6)) + 10 * one**2
        # the proof of Dwork, Rothblum and Vadhan alone has k·ε·(e^ε - 1), which is more than k·ε²
        assert 10 * one * math.expm1(one) > 10 * one**2


@pytest.mark.parametrize("count", [100, 10_000, 1_000_000])
def test_it_is_good_for_small_epsilon(count: int) -> None:
    """Row 4.55: With ε = 0.1/√k the whole stays below 0.6 for any k, while adding grows like √k; with
    ε = 10/√k it is useless."""
    small, large = 0.1 / math.sqrt(count), 10 / math.sqrt(count)
    assert (count * privacy.pure(small)).epsilon(delta=1e-6, route="advanced (notes)") < 0.6
    assert count * small == pytest.approx(0.1 * math.sqrt(count))
    assert (count * privacy.pure(large)).epsilon(delta=1e-6, route="advanced (notes)") > 50


def test_three_ways_to_learn_in_private() -> None:
    """Row 4.56: Noise on the output: the minimiser of a λ-strongly convex mean of L-Lipschitz losses moves by 2L/(nλ), and that is
    reached by linear losses; the other two ways perturb the objective and the gradients."""
    n, strength, slope = 20, 0.5, 1.0

    def minimiser(signs: list[int]) -> float:
        return -slope * sum(signs) / n / strength  # of mean(slope·s·w) + strength/2·w²

    moved = abs(minimiser([1] * n) - minimiser([1] * (n - 1) + [-1]))
    assert moved == pytest.approx(2 * slope / (n * strength))
    steps = 100 * privacy.concentrated(rho=0.5 / 100)
    assert steps.concentrated() == pytest.approx(0.5)


def test_the_sample_size_grows_with_one_over_alpha() -> None:
    """Row 4.57: √d·√(log 1/δ)/(ε·α²) is enough, not needed: noise on the mean of n unit vectors has length √d·σ with
    σ = 2·z/n for the least noise z, so n = 2·z·√d/α records give an error of α - linear in 1/α, for the same ε and δ."""
    epsilon, delta = 1.0, 1e-6
    multiplier = dp.calibrate(privacy.gaussian, to=privacy.approximate(epsilon, delta))
    for dimension, alpha in itertools.product((10, 1_000), (0.1, 0.01)):
        enough = 2 * multiplier * math.sqrt(dimension) / alpha
        written = math.sqrt(dimension) * math.sqrt(math.log(1 / delta)) / (epsilon * alpha**2)
        noise = Gaussian(
            epsilon=epsilon, delta=delta, sensitivity=2 / enough, dimension=dimension, relation="replace"
        )
        assert noise.scale * math.sqrt(dimension) <= alpha * (1 + 0.01)
        assert (enough < written) is (alpha < math.sqrt(math.log(1 / delta)) / (2 * multiplier * epsilon))
