# SPDX-License-Identifier: Apache-2.0
"""The fit: its gradient is that of the likelihood, it finds a known distribution, and it stops before it fits the noise."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from discreet.tables.synthetic.mixture import (
    Mixture,
    NoisyMarginal,
    NoisyPairs,
    _Fit,
    components_for,
    fit_mixture,
)
from discreet.tables.synthetic.stream import SeededStream
from discreet.tables.workloads.residuals import ResidualSystem

SIZES = (3, 2, 4)
ALL = (0, 1, 2)


def law(seed=1, concentration=1.0):
    """A joint distribution of three columns."""
    powers = np.exp(concentration * SeededStream(seed, "law").normal(*SIZES))
    return powers / powers.sum()


def margin(joint, keys):
    return joint.sum(axis=tuple(key for key in range(joint.ndim) if key not in keys))


def pairs_of(joint, total=10_000.0, variance=100.0, noise=None, absent=()):
    """The residuals of one and two columns, exactly or with noise."""
    sizes = joint.shape
    order = min(2, len(sizes))
    system = ResidualSystem(sizes, tuple(combinations(range(len(sizes)), order)))
    residuals = {}
    for keys in system.residuals:
        table = total * margin(joint, keys)
        if noise is not None:
            table = table + variance**0.5 * noise.normal(*table.shape)
        residuals[keys] = system.without_means(table, keys)
    return NoisyPairs(sizes, total, residuals, dict.fromkeys(residuals, variance), frozenset(absent))


def distance(mixture, joint, keys):
    return float(np.abs(mixture.table(keys) - margin(joint, keys)).sum() / 2)


def test_the_gradient_is_that_of_the_misfit():
    noise = SeededStream(3, "noise")
    table = NoisyMarginal(ALL, 10_000 * law(2), 50.0)
    fit = _Fit(pairs_of(law(), noise=noise), [table], 4, None, np.float64)
    parameters = [fit.logits.copy(), 0.3 * noise.normal(4)]

    def misfit():
        return fit._loss(fit._mixture(parameters))[0]

    _, gradients = fit._loss(fit._mixture(parameters))
    for array, gradient in zip(parameters, gradients, strict=True):
        for place in np.ndindex(*array.shape):
            before = array[place]
            ends = []
            for step in (1e-5, -1e-5):
                array[place] = before + step
                ends.append(misfit())
            array[place] = before
            # χ² has twice the gradient of χ² / 2
            slope = (ends[0] - ends[1]) / 2e-5
            assert slope == pytest.approx(2 * gradient[place], rel=1e-4, abs=1e-3)


def test_the_misfit_is_the_square_of_the_standardised_errors():
    joint, noise = law(), SeededStream(5, "noise")
    pairs = pairs_of(joint, noise=noise)
    table = NoisyMarginal(ALL, 10_000 * joint + 7 * noise.normal(*SIZES), 49.0)
    mixture = fit_mixture(pairs, [table], components=5, most_steps=2)
    found, freedom = 0.0, 0
    system = ResidualSystem(SIZES, tuple(combinations(ALL, 2)))
    for keys, residual in pairs.residuals.items():
        if keys:
            model = system.without_means(10_000 * mixture.table(keys), keys)
            found += float(((model - residual) ** 2).sum()) / 100.0
            freedom += int(np.prod([SIZES[key] - 1 for key in keys]))
    found += float(((10_000 * mixture.table(ALL) - table.counts) ** 2).sum()) / 49.0
    freedom += table.counts.size
    assert mixture.misfit == pytest.approx(found / freedom, rel=1e-4)


def test_exact_pairs_are_found():
    joint = law()
    mixture = fit_mixture(pairs_of(joint, variance=1.0), components=50, most_steps=2_000)
    assert mixture.misfit <= 1
    for keys in combinations(ALL, 2):
        assert distance(mixture, joint, keys) < 0.002


def test_a_whole_table_is_found():
    """Parity: all pairs are even, and only the table of three columns shows that two columns decide the third."""
    joint = np.zeros((2, 2, 2))
    for cell in np.ndindex(2, 2, 2):
        joint[cell] = 0.25 * (sum(cell) % 2)
    pairs = pairs_of(joint, variance=1.0)
    assert distance(fit_mixture(pairs), joint, ALL) > 0.3
    table = NoisyMarginal(ALL, 10_000 * joint, 25.0)
    assert distance(fit_mixture(pairs, [table], components=50, most_steps=500), joint, ALL) < 0.05


def test_it_stops_before_it_fits_the_noise():
    joint, noise = law(concentration=0.7), SeededStream(9, "noise")
    noisy = pairs_of(joint, total=500.0, variance=400.0, noise=noise)
    early = fit_mixture(noisy)
    assert early.misfit <= 1
    without_noise_variance = NoisyPairs(
        noisy.sizes, noisy.total, noisy.residuals, dict.fromkeys(noisy.variances, 0.0001 * 400)
    )
    late = fit_mixture(without_noise_variance, most_steps=1_000)
    assert late.misfit > 1
    assert distance(early, joint, ALL) < distance(late, joint, ALL)


def test_the_same_numbers_give_the_same_model():
    pairs = pairs_of(law(), noise=SeededStream(1, "noise"))
    one, other = fit_mixture(pairs), fit_mixture(pairs)
    assert all(np.array_equal(*both) for both in zip(one.factors, other.factors, strict=True))


def test_absent_codes_have_no_rows():
    pairs = pairs_of(law(), noise=SeededStream(1, "noise"), absent=[(2, 3), (0, 0)])
    mixture = fit_mixture(pairs)
    again = fit_mixture(pairs, start=mixture.to_single(), most_steps=50)
    for model in (mixture, again):
        assert model.factors[2][:, 3].max() == 0
        assert model.factors[0][:, 0].max() == 0
        assert model.table(ALL).sum() == pytest.approx(1)


@pytest.mark.parametrize("sizes", [(1,), (4,), (1, 3), (1, 1, 2), (2, 1, 3)])
def test_columns_with_one_value_and_single_columns(sizes):
    joint = np.full(sizes, 1.0 / np.prod(sizes))
    mixture = fit_mixture(pairs_of(joint, variance=4.0))
    assert mixture.table(tuple(range(len(sizes)))).shape == sizes
    assert mixture.table(()) == pytest.approx(1)


@pytest.mark.parametrize("total", [0.0, -40.0])
def test_no_rows_at_all(total):
    pairs = pairs_of(law(), total=total, noise=SeededStream(2, "noise"))
    assert np.isfinite(fit_mixture(pairs).table(ALL)).all()


def test_a_model_as_json():
    mixture = fit_mixture(pairs_of(law())).to_single()
    again = Mixture.from_dict(mixture.to_dict(), SIZES)
    assert np.array_equal(again.weights, mixture.weights)
    assert all(np.array_equal(*both) for both in zip(again.factors, mixture.factors, strict=True))
    with pytest.raises(ValueError, match="another size"):
        Mixture.from_dict(mixture.to_dict(), (3, 2, 5))


def test_tables_of_three_columns_leave_other_three_columns_alone():
    """Two parities of three columns each: with few components, columns of both seem to belong together."""
    one = np.zeros((2, 2, 2))
    for cell in np.ndindex(2, 2, 2):
        one[cell] = 0.25 * (sum(cell) % 2)
    joint = np.multiply.outer(one, one)
    pairs = pairs_of(joint, variance=1.0)
    tables = [NoisyMarginal(keys, 10_000 * margin(joint, keys), 25.0) for keys in ((0, 1, 2), (3, 4, 5))]

    def worst(components):
        mixture = fit_mixture(pairs, tables, components=components, most_steps=500)
        assert distance(mixture, joint, (0, 1, 2)) < 0.05
        return np.mean([distance(mixture, joint, keys) for keys in ((0, 1, 3), (0, 4, 5), (1, 2, 5))])

    assert components_for(joint.shape) == 4_000
    assert worst(4_000) < 0.5 * worst(100)


def test_there_are_fewer_components_of_wider_columns():
    counts = [components_for([width] * 10) for width in (1, 3, 10, 30, 300)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == 4_000
    assert counts[-1] == 400
