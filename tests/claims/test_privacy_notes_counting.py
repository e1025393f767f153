# SPDX-License-Identifier: Apache-2.0
"""The privacy notes, first half: randomized response, the Laplace mechanism, counts and histograms, row by row.

A test is named by what it claims, and its docstring begins with its row in docs/notes.md. A statement
that is wrong as written is refuted by its counterexample, and the right one is checked beside it. d is the bias of randomized response, which the notes call
δ or ε in turn.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet import privacy
from discreet.errors import BadParameter, UnsupportedGuarantee
from discreet.mechanisms import queries
from discreet.mechanisms.additive import Laplace
from discreet.mechanisms.local import RandomizedResponse

TENTH = RandomizedResponse(bias=0.1)


def _close(found: float, truth: float, digits: float = 1e-9) -> bool:
    return abs(found - truth) <= digits * abs(truth)


def _reports_distribution(ones: int, size: int, bias: float) -> np.ndarray:
    """The exact distribution of the number of 1s among the reports, when `ones` of `size` people have a 1."""
    yes = stats.binom.pmf(np.arange(ones + 1), ones, 0.5 + bias)
    no = stats.binom.pmf(np.arange(size - ones + 1), size - ones, 0.5 - bias)
    return np.convolve(yes, no)


def _failure(size: int, bias: float, error: float) -> float:
    """The greatest chance, over all data, that the debiased mean is off by more than `error`."""
    shares = (np.arange(size + 1) / size - (0.5 - bias)) / (2 * bias)
    return max(
        float(_reports_distribution(ones, size, bias)[np.abs(shares - ones / size) > error + 1e-12].sum())
        for ones in range(0, size + 1, max(1, size // 8))
    )


# --- randomized response -----------------------------------------------------------------------------


def test_a_report_is_true_with_chance_a_half_plus_bias() -> None:
    """Row 4.1."""
    assert (TENTH.truth, TENTH.lie) == (Fraction(6, 10), Fraction(4, 10))


def test_the_expected_report() -> None:
    """Row 4.2: E y = 1/2 - d + 2dx, and solving for x gives x back."""
    d = Fraction(1, 10)
    for x, expected in ((0, TENTH.lie), (1, TENTH.truth)):
        assert expected == Fraction(1, 2) - d + 2 * d * x
        assert (expected - (Fraction(1, 2) - d)) / (2 * d) == x


@pytest.mark.parametrize("ones", [0, 2, 5])
def test_the_debiased_mean(ones: int) -> None:
    """Row 4.3: Unbiased, with variance (1 - 4d²)/(16 d² n) whatever the data."""
    size, d = 5, 0.1
    shares = np.array([TENTH.estimate(np.arange(size) < named).shares[1] for named in range(size + 1)])
    law = _reports_distribution(ones, size, d)
    assert _close(float(law @ shares) + 1, ones / size + 1)
    truth = (1 - 4 * d * d) / (16 * d * d * size)
    assert _close(float(law @ (shares - ones / size) ** 2), truth)
    assert _close(TENTH.variance(size, share=ones / size), truth)
    assert truth <= 1 / (16 * d * d * size)


def test_chebyshev_for_the_debiased_mean() -> None:
    """Row 4.4: As written, P(|error| > d) <= 1/(4√n): false. Chebyshev and Hoeffding hold."""
    assert _failure(4, 0.1, error=0.1) > 0.6 > 1 / (4 * math.sqrt(4))
    size = 50
    for d in (0.1, 0.3):
        for t in (0.1, 0.3, 0.6, 1.0):
            exact = _failure(size, d, t)
            assert exact <= min(1, (1 - 4 * d * d) / (16 * d * d * size * t * t)) + 1e-12
            assert exact <= min(1, 2 * math.exp(-8 * d * d * size * t * t)) + 1e-12


def test_half_the_error_at_three_quarters() -> None:
    """Row 4.5: 1/(2d√n) has a confidence of 75 % already; 1/(d√n) has 93.75 %, and in truth far more."""
    size, d = 400, 0.1
    assert _failure(size, d, 1 / (2 * d * math.sqrt(size))) <= 1 / 4
    assert _failure(size, d, 1 / (d * math.sqrt(size))) <= 1 / 16
    assert _failure(size, d, 1 / (d * math.sqrt(size))) < 1e-4


def test_the_epsilon_of_that_size_is_the_bias() -> None:
    """Row 4.6: n = 1/(d²α²) is about the bias d; the ε of differential privacy is about four times as
    large."""
    d, alpha = 0.1, 0.5
    assert _failure(round(1 / (d * alpha) ** 2), d, alpha) <= 1 / 4
    assert _close(TENTH.guarantee.epsilon(delta=0), 0.405465, 1e-6)


def test_points_are_enough_for_pure_privacy() -> None:
    """Row 4.7: The greatest ratio over all sets of reports is that of a single report."""
    device = RandomizedResponse(epsilon=1.2, outcomes=4)
    p, q = ([device.truth if y == x else device.lie for y in range(4)] for x in (0, 1))
    sets = [s for size in range(1, 5) for s in itertools.combinations(range(4), size)]
    ratios = [sum(p[y] for y in s) / sum(q[y] for y in s) for s in sets]
    assert max(ratios) == max(a / b for a, b in zip(p, q, strict=True))
    assert _close(math.log(max(ratios)), 1.2)


@pytest.mark.parametrize("bias", [0, 0.5])
def test_no_bias_tells_nothing_and_a_half_tells_all(bias: float) -> None:
    """Row 4.8."""
    with pytest.raises(BadParameter) as caught:
        RandomizedResponse(bias=bias)
    assert caught.value.code == "DP102"


def test_the_mean_of_reports_is_biased() -> None:
    """Row 4.9: If nobody has a 1, the mean of the reports tends to 0.4, not to 0; the claimed error
    at n = 4e6 is 0.005."""
    size, d = 4_000_000, 0.1
    claimed = 1 / (d * math.sqrt(size))
    reports = np.arange(size) < 0.4 * size  # what is expected
    assert abs(reports.mean() - 0) > 50 * claimed
    assert abs(TENTH.estimate(reports).shares[1]) < 1e-12


def test_the_error_holds_for_the_debiased_mean_only() -> None:
    """Row 4.10."""
    size, d = 1_000, 0.1
    claimed = 1 / (d * math.sqrt(size))
    law = _reports_distribution(0, size, d)
    assert float(law[np.arange(size + 1) / size >= claimed].sum()) > 0.99
    assert _failure(size, d, claimed) <= 1 / 16


@pytest.mark.parametrize("bias", [0.01, 0.1, 0.3, 0.49])
def test_the_epsilon_of_a_bias(bias: float) -> None:
    """Row 4.11: ε = ln((1/2 + d)/(1/2 - d)) = 2 artanh(2d): not O(d), since it has no bound as d
    nears 1/2."""
    device = RandomizedResponse(bias=bias)
    epsilon = device.guarantee.epsilon(delta=0)
    assert _close(epsilon, 2 * math.atanh(2 * bias))
    assert _close(math.tanh(epsilon / 2) / 2, bias)
    assert _close(RandomizedResponse(epsilon=epsilon).bias, bias)
    assert epsilon >= 4 * bias
    assert RandomizedResponse(bias=0.4999999).guarantee.epsilon(delta=0) > 15


def test_the_size_by_epsilon() -> None:
    """Row 4.12: n = 1/(α² sinh²(ε/2)) suffices for 75 %; at ε = 1, α = 0.05 that is 1474, below
    4/(ε²α²) = 1600."""
    epsilon, alpha = 1.0, 0.05
    size = math.ceil(1 / (alpha * math.sinh(epsilon / 2)) ** 2)
    assert size == 1474
    device = RandomizedResponse(epsilon=epsilon)
    assert _close(device.variance(size), 1 / (4 * size * math.sinh(epsilon / 2) ** 2))
    assert _failure(size, device.bias, alpha) <= 1 / 4
    assert device.sample_size(error=alpha, confidence=0.75) > size  # Hoeffding, for every confidence


# --- the Laplace mechanism ---------------------------------------------------------------------------


def test_the_scale_of_a_mean() -> None:
    """Row 4.13: b = 1/(εn)."""
    for size, epsilon in ((50, 0.3), (1_000, 2.0)):
        assert _close(queries.mean((0, 1), size=size).laplace(epsilon=epsilon).scale, 1 / (epsilon * size))


def test_the_ratio_is_reached() -> None:
    """Row 4.14: e^(1/(nb)), where b = 1/(εn): the noise on whole numbers reaches e^ε and no more."""
    answer = queries.mean((0, 1), size=4).laplace(epsilon=0.7)
    scale, moved = answer.noise.distribution.scale, answer.noise.grid.sensitivity(1)
    steps = np.arange(-5 * moved, 6 * moved)
    losses = (np.abs(steps - moved) - np.abs(steps)) / scale
    assert _close(float(losses.max()), 0.7)
    assert _close(answer.guarantee.epsilon(delta=0), 0.7)


def test_sensitivity_is_found_from_neighbours_to_ratio() -> None:
    """Row 4.15: Neighbours, then the distance of their answers, then the ratio."""
    size = 3
    neighbours = [(a, (*a[:-1], b)) for a in itertools.product((0, 1), repeat=size) for b in (0, 1)]
    greatest = max(abs(np.mean(a) - np.mean(b)) for a, b in neighbours)
    query = queries.mean((0, 1), size=size)
    assert _close(greatest, query.sensitivity("replace"))
    assert _close(query.laplace(epsilon=1).scale, greatest)


@pytest.mark.parametrize("t", [0.5, 1.0, 2.0, 10.0])
def test_the_tails_are_exponential(t: float) -> None:
    """Row 4.16."""
    noise = Laplace(scale=3.0, sensitivity=1)
    assert math.exp(-t) <= noise.tail(3.0 * t) <= math.exp(-t) * 1.002


def test_a_quarter_is_reached_at_ln_four() -> None:
    """Row 4.17."""
    noise = Laplace(scale=1.0, sensitivity=1)
    assert noise.tail(2.0) == pytest.approx(math.exp(-2), rel=2e-3)
    assert noise.tail(2.0) < 1 / 4
    assert noise.tail(math.log(4)) == pytest.approx(1 / 4, rel=2e-3)


def test_the_size_of_a_mean() -> None:
    """Row 4.18: ln(4)/(αε) suffices for 75 %, which is less than 2/(αε)."""
    alpha, epsilon = 0.01, 0.5
    size = queries.mean((0, 1), size=1).sample_size(error=alpha, confidence=0.75, epsilon=epsilon)
    assert math.log(4) / (alpha * epsilon) <= size <= 1.003 * math.log(4) / (alpha * epsilon)
    assert size < 2 / (alpha * epsilon)


def test_sensitivity_is_about_neighbours() -> None:
    """Row 4.19: Over all pairs of data sets the mean moves by 1; over neighbours by 1/n."""
    size = 4
    everything = [np.mean(x) for x in itertools.product((0, 1), repeat=size)]
    assert max(everything) - min(everything) == 1
    assert queries.mean((0, 1), size=size).sensitivity("replace") == 1 / size


def test_the_mean_needs_a_public_size() -> None:
    """Row 4.20: 1/n only when a record is replaced: from (1) to (1, 0) the mean falls by 1/2, which
    is more than 1/2 of 1/n."""
    assert abs(np.mean([1]) - np.mean([1, 0])) == 0.5
    with pytest.raises(UnsupportedGuarantee):
        queries.mean((0, 1), size=2).laplace(epsilon=1, relation="add-remove")
    assert queries.mean((0, 1)).sensitivity("add-remove") == 1


def test_the_scale_is_sensitivity_over_epsilon() -> None:
    """Row 4.21."""
    for query, relation in ((queries.sum((-2, 5)), "add-remove"), (queries.sum((-2, 5)), "replace")):
        answer = query.laplace(epsilon=0.25, relation=relation)
        assert answer.scale == query.sensitivity(relation) / 0.25


PARTS = [lambda x: x & 1, lambda x: x & 2, lambda x: x & 4]


def test_several_answers_take_the_l1_sensitivity() -> None:
    """Row 4.22."""
    answer = queries.counts(PARTS).laplace(epsilon=0.5)
    assert _close(answer.scale, 3 / 0.5, 1e-2)  # the grid adds a little
    assert answer.scale >= 3 / 0.5
    assert answer.guarantee.epsilon(delta=0) <= 0.5
    assert queries.counts(PARTS).geometric(epsilon=0.5).scale == 3 / 0.5


def test_the_ratio_of_several_answers() -> None:
    """Row 4.23: Over all outputs the log ratio is at most the l1 distance over b, and it is reached."""
    query = queries.counts(PARTS)
    answer = query.geometric(epsilon=0.5)
    greatest = 0.0
    for record in range(8):
        moved = query.exact([record])
        for output in itertools.product((-2, 0, 1, 3), repeat=3):
            loss = float(np.abs(moved - output).sum() - np.abs(output).sum()) / answer.scale
            greatest = max(greatest, abs(loss))
    assert _close(greatest, 0.5)


def test_post_processing_loses_nothing_more() -> None:
    """Row 4.24: F after M loses nothing more, and F may be random."""
    law = np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])
    after = law @ np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    for epsilon in (0.0, 0.2, 0.6, 1.0):
        before = privacy.pair(*law).delta(epsilon=epsilon)
        assert privacy.pair(*after).delta(epsilon=epsilon) <= before
    assert privacy.pair(*after).epsilon(delta=0) < privacy.pair(*law).epsilon(delta=0)


def test_a_group_of_k_loses_k_times_as_much() -> None:
    """Row 4.25: k records at once lose kε, and k randomized responses do reach it."""
    device = RandomizedResponse(epsilon=0.3)
    for k in (1, 2, 5):
        assert _close(device.guarantee_at(distance=k).epsilon(delta=0), k * 0.3)
        assert _close(k * math.log(device.truth / device.lie), k * 0.3)


# --- counts and histograms ---------------------------------------------------------------------------


def _moves(query: queries.Query, values: list, relation: str) -> int:
    """The greatest l1 change over all data sets of one or two records."""
    found = 0
    for size in (1, 2):
        for data in itertools.product(values, repeat=size):
            for value in values:
                other = (*data, value) if relation == "add-remove" else (*data[:-1], value)
                found = max(found, int(np.abs(query.exact(data) - query.exact(other)).sum()))
    return found


def test_a_count_has_sensitivity_one() -> None:
    """Row 4.26."""
    query = queries.count(lambda x: x > 1)
    for relation in ("add-remove", "replace"):
        assert query.sensitivity(relation) == _moves(query, [0, 1, 2], relation) == 1


def test_several_counts_move_by_k_together() -> None:
    """Row 4.27: k at worst, √k in l2; less where the conditions exclude each other."""
    query = queries.counts(PARTS)
    for relation in ("add-remove", "replace"):
        assert query.sensitivity(relation) == _moves(query, list(range(8)), relation) == 3
        assert _close(query.sensitivity(relation, norm=2), math.sqrt(3))
    assert queries.counts(PARTS, at_most=1).sensitivity("add-remove") == 1


def test_a_histogram_has_two_only_when_a_record_is_replaced() -> None:
    """Row 4.28."""
    query = queries.histogram(["a", "b", "c"])
    for relation, moved in (("add-remove", 1), ("replace", 2)):
        assert query.sensitivity(relation) == _moves(query, ["a", "b", "c", "z"], relation) == moved


def test_the_noise_of_a_histogram() -> None:
    """Row 4.29."""
    query = queries.histogram(["a", "b", "c"])
    assert query.geometric(epsilon=0.5, relation="replace").scale == 2 / 0.5
    assert query.geometric(epsilon=0.5).scale == 1 / 0.5


@pytest.mark.parametrize("t", [1.0, 3.0, 10.0])
def test_the_tail_of_one_count(t: float) -> None:
    """Row 4.30: With noise 2/ε the error exceeds t/ε with chance e^(-t/2), not e^(-t); the right
    threshold is 2t/ε."""
    noise = Laplace(epsilon=1, sensitivity=2)
    assert noise.tail(t) == pytest.approx(math.exp(-t / 2), rel=5e-3)
    assert noise.tail(t) > 1.6 * math.exp(-t)
    assert noise.tail(2 * t) == pytest.approx(math.exp(-t), rel=5e-3)


def test_the_union_bound() -> None:
    """Row 4.31: k = 100, noise 2/ε: beyond (10 + ln k)/ε lies some count with chance 0.0652, not
    4.54e-5; doubled, 4.54e-5."""
    k, guaranteed = 100, math.exp(-10)
    noise = queries.histogram(range(k)).laplace(epsilon=1, relation="replace").noise
    threshold = 10 + math.log(k)
    assert noise.tail(threshold) == pytest.approx(0.0652, rel=2e-2)
    assert noise.tail(threshold) > 1000 * guaranteed
    assert noise.tail(2 * threshold) == pytest.approx(guaranteed, rel=3e-2)
    assert _close(-math.expm1(k * math.log1p(-math.exp(-threshold))), guaranteed, 1e-3)


def test_the_error_grows_with_the_logarithm() -> None:
    """Row 4.32: Ten times as many counts add ln(10)/ε to the error, again and again."""
    errors = [queries.histogram(range(k)).laplace(epsilon=1).error(0.95) for k in (10, 100, 1000)]
    assert all(error is not None for error in errors)
    for few, many in itertools.pairwise(errors):
        assert many - few == pytest.approx(math.log(10), rel=2e-2)


def test_names_outside_the_list_never_become_a_place() -> None:
    """Row 4.33: Names that are not on the public list are dropped, or counted together; they never
    become a place."""
    names = ["Ada", "Ada", "Grace", "Zebedee", None, 7]
    assert queries.histogram(["Ada", "Grace", "Mary"]).exact(names).tolist() == [2, 1, 0]
    assert queries.histogram(["Ada", "Grace", "Mary"], other=True).exact(names).tolist() == [2, 1, 0, 3]


def test_all_counts_with_noise() -> None:
    """Row 4.34: Laplace noise grows with k, Gaussian noise with √k."""
    rows = [lambda _: True]
    few, many = queries.counts(rows), queries.counts(rows * 100)
    assert many.geometric(epsilon=1).scale == 100 * few.geometric(epsilon=1).scale
    assert _close(many.gaussian(rho=0.1).scale / few.gaussian(rho=0.1).scale, 10, 5e-3)


@pytest.mark.parametrize("t", [0.5, 2.0, 8.0])
def test_the_accuracy_of_the_laplace_mechanism(t: float) -> None:
    """Row 4.45: P(error >= St/ε) = e^(-t)."""
    noise = Laplace(epsilon=0.5, sensitivity=3)
    assert noise.tail(3 * t / 0.5) == pytest.approx(math.exp(-t), rel=5e-3)
    assert noise.error(confidence=-math.expm1(-t)) == pytest.approx(3 * t / 0.5, rel=5e-3)


# --- the summary -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [10, 1_000])
def test_the_scale_of_a_mean_depends_on_epsilon(size: int) -> None:
    """Row 4.59: b = 1/n is ε = 1 whatever was asked for; b = 1/(nε)."""
    written = queries.mean((0, 1), size=size).laplace(scale=1 / size)
    assert _close(written.guarantee.epsilon(delta=0), 1.0)
    right = queries.mean((0, 1), size=size).laplace(scale=1 / (size * 0.25))
    assert _close(right.guarantee.epsilon(delta=0), 0.25)


def test_several_means_move_by_k_over_n() -> None:
    """Row 4.60: k/n for k means of n people; k for k counts."""
    size, query = 5, queries.counts(PARTS)
    assert query.sensitivity("replace") == 3
    means = [np.array(query.exact([*[0] * (size - 1), last])) / size for last in range(8)]
    assert _close(max(np.abs(a - b).sum() for a in means for b in means), 3 / size)


def test_ten_times_log_k_is_too_little_for_few_counts() -> None:
    """Row 4.61: 10 ln k: fails for k = 2 and 3 with noise 1/ε, and up to k = 12 with noise 2/ε; 10 +
    ln k never fails."""

    def failure(k: int, threshold: float, scale: float) -> float:
        return -math.expm1(k * math.log1p(-math.exp(-threshold / scale)))

    guaranteed = math.exp(-10)
    assert _close(failure(2, 10 * math.log(2), 1), 0.00195, 1e-2)
    assert _close(failure(3, 10 * math.log(3), 1), 5.08e-5, 1e-2)
    assert _close(failure(12, 10 * math.log(12), 2), 4.82e-5, 1e-2)
    for scale, enough in ((1, 4), (2, 13)):
        found = {k for k in range(2, 200) if failure(k, 10 * math.log(k), scale) > guaranteed}
        assert found == set(range(2, enough))
        assert all(failure(k, scale * (10 + math.log(k)), scale) <= guaranteed for k in range(2, 200))
    noise = queries.histogram([0, 1]).laplace(epsilon=1).noise
    assert noise.tail(10 * math.log(2)) == pytest.approx(0.00195, rel=2e-2)
