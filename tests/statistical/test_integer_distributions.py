# SPDX-License-Identifier: Apache-2.0
"""Large unseeded samples follow the stated distribution, and no distribution that is wrong by a fifth."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.noise import coin, integer, lazy
from tests.chance import may_fail
from tests.noise import reference
from tests.statistical import fit
from tests.statistical.constants import ALPHA, FEW, MANY

DISTRIBUTIONS = {
    integer.geometric: fit.geometric,
    integer.discrete_laplace: fit.discrete_laplace,
    integer.rounded_gaussian: fit.rounded_gaussian,
    integer.discrete_gaussian: fit.discrete_gaussian,
}
SAMPLERS = pytest.mark.parametrize("sampler", DISTRIBUTIONS, ids=lambda sampler: sampler.__name__)


def two_sided(p):
    return lambda k: np.where(k == 1, p, 1 - p)


@may_fail(3 * ALPHA, "one distribution fits, two do not")
@SAMPLERS
@pytest.mark.parametrize("scale", [0.4, 1.0, 7.3, 250.0])
def test_many_samples_follow_the_distribution(sampler, scale):
    fit.accepts_only(sampler, DISTRIBUTIONS[sampler], scale, MANY)


@may_fail(ALPHA, "one distribution fits")
@SAMPLERS
def test_a_ratio_is_a_scale(sampler):
    samples = sampler(Fraction(7, 3), MANY)
    fit.accepts(samples, lambda k: DISTRIBUTIONS[sampler](k, 7 / 3))


@may_fail(3 * ALPHA, "one distribution fits, two do not")
@SAMPLERS
def test_single_samples_follow_the_distribution(sampler):
    fit.accepts_only(
        lambda scale, count: np.array([sampler(scale) for _ in range(count)]),
        DISTRIBUTIONS[sampler],
        2.5,
        20_000,
    )


@may_fail(4 * ALPHA, "two distributions fit, two do not")
@SAMPLERS
def test_each_element_follows_the_distribution_of_its_own_scale(sampler):
    scales = np.array([0.7, 30.0])
    samples = sampler(scales, (MANY // 2, 2))
    for column, scale in enumerate(scales):
        distribution, other = (
            lambda k, s=s: DISTRIBUTIONS[sampler](k, s) for s in (scale, scales[1 - column])
        )
        fit.accepts(samples[:, column], distribution, other)


@may_fail(3 * ALPHA, "one distribution fits, two do not")
@SAMPLERS
@pytest.mark.parametrize("scale", [0.9, 11.0])
def test_the_lazy_path_alone_follows_the_distribution(sampler, scale, monkeypatch):
    monkeypatch.setattr(lazy, "SLACK", 1.0)
    monkeypatch.setattr(coin, "SLACK", 2.0)
    fit.accepts_only(sampler, DISTRIBUTIONS[sampler], scale, FEW)


@may_fail(3 * ALPHA, "one distribution fits, two do not")
@pytest.mark.parametrize("sampler", [reference.discrete_laplace, reference.discrete_gaussian])
def test_the_rational_reference_follows_the_same_distributions(sampler):
    distribution = DISTRIBUTIONS[getattr(integer, sampler.__name__)]
    fit.accepts_only(
        lambda scale, count: np.array([sampler(scale) for _ in range(count)]),
        distribution,
        Fraction(5, 2),
        FEW,
    )


@may_fail(2 * ALPHA, "one distribution fits, one does not")
def test_uniform_integers_are_uniform():
    samples = integer.uniform(10, MANY)
    fit.accepts(samples, lambda k: np.full(k.size, 0.1), lambda k: np.where(k < 5, 0.11, 0.09))


@may_fail(2 * ALPHA, "one distribution fits, one does not")
def test_the_two_gaussians_differ_where_they_should():
    samples = integer.discrete_gaussian(0.6, MANY)
    fit.accepts(samples, lambda k: fit.discrete_gaussian(k, 0.6), lambda k: fit.rounded_gaussian(k, 0.6))


@may_fail(4 * ALPHA, "two distributions fit, two do not")
@pytest.mark.parametrize("p", [0.1, Fraction(1, 3), 0.97])
def test_coins_have_their_bias(p):
    for heads in (coin.bernoulli(p, MANY), coin.bernoulli(np.full(MANY, float(p)))):
        fit.accepts(heads.astype(int), two_sided(float(p)), two_sided(0.8 * float(p)))


@may_fail(2 * ALPHA, "one distribution fits, one does not")
@pytest.mark.parametrize("slack", [coin.SLACK, 2.0])
@pytest.mark.parametrize("x", [0.05, Fraction(2, 3), 3.0])
def test_exponential_coins_have_their_bias(x, slack, monkeypatch):
    monkeypatch.setattr(coin, "SLACK", slack)
    heads = coin.bernoulli_exp_minus(x, MANY if slack < 1 else 4 * FEW).astype(int)
    fit.accepts(heads, two_sided(np.exp(-float(x))), two_sided(0.6 * np.exp(-float(x))))
