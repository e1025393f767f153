# SPDX-License-Identifier: Apache-2.0
"""Unseeded samples of heavy noise follow the stated distribution, and no distribution of a wrong scale: by 40 % in a quick run, by 20 % in a slow one.

Every sample is decided by exact arithmetic: there is no other path.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from discreet.noise import heavy
from tests.chance import may_fail
from tests.statistical import fit
from tests.statistical.constants import ALPHA, WRONG

QUICK, MANY = (
    4_500,
    20_000,
)  # a sample of the heaviest distribution has a fifth of the information of a Gaussian one
EDGES = np.array([-np.inf, -8, -4, -2, -1, -0.5, -0.2, 0.2, 0.5, 1, 2, 4, 8, np.inf])  # in scales


def lln(z, sigma):
    def tail(x):
        return integrate.quad(lambda y: stats.norm.pdf(y) * np.exp(-x * np.exp(-sigma * y)), -9, 9)[0] / 2

    return np.array([1 - tail(x) if x >= 0 else tail(-x) for x in np.atleast_1d(z)])


def uln(z, sigma):
    size = np.maximum(np.abs(z), 1e-300)
    x = np.log(size) / sigma
    tail = (stats.norm.cdf(-x) - size * np.exp(sigma**2 / 2) * stats.norm.cdf(-x - sigma)) / 2
    return np.where(z >= 0, 1 - tail, tail)


def lomax(z, a):
    tail = (1 + np.abs(z)) ** (1 - a) / 2
    return np.where(z >= 0, 1 - tail, tail)


DISTRIBUTIONS = {
    heavy.LaplaceNoise(): stats.laplace.cdf,
    heavy.GaussianNoise(): stats.norm.cdf,
    heavy.CauchyNoise(): stats.cauchy.cdf,
    heavy.StudentTNoise(Fraction(5, 2)): lambda z: stats.t.cdf(z, 2.5),
    heavy.LomaxNoise(Fraction(9, 2)): lambda z: lomax(z, 4.5),
    heavy.LaplaceLogNormalNoise(Fraction(1, 2)): lambda z: lln(z, 0.5),
    heavy.UniformLogNormalNoise(Fraction(2, 3)): lambda z: uln(z, 2 / 3),
    heavy.ArsinhNormalNoise(Fraction(3, 4)): lambda z: stats.norm.cdf(np.arcsinh(0.75 * z) / 0.75),
}


def cells(cdf, scale, edges):
    """The probability of each cell."""
    return np.diff(np.concatenate(([0.0], cdf(edges[1:-1] / scale), [1.0])))


def accepts_only(noise, count, wrong):
    scale, cdf = Fraction(37, 3), DISTRIBUTIONS[noise]
    unit = 4.0 if isinstance(noise, heavy.LomaxNoise) else 12.0
    edges = np.concatenate(([-np.inf], np.unique(np.floor(EDGES[1:-1] * unit) + 0.5), [np.inf]))
    drawn = np.array([heavy.rounded_noise(noise, scale) for _ in range(count)], float)
    observed = np.histogram(np.clip(drawn, -1e14, 1e14), np.clip(edges, -1e15, 1e15))[0]
    scales = [float(scale) * factor for factor in (1, 1 - wrong, 1 + wrong)]
    fit.accepts_counts(observed, *(cells(cdf, each, edges) for each in scales))


@may_fail(3 * ALPHA, "one distribution fits, two do not")
@pytest.mark.parametrize("noise", DISTRIBUTIONS, ids=str)
def test_samples_follow_the_distribution_and_no_other(noise):
    accepts_only(noise, QUICK, 2 * WRONG)


@may_fail(3 * ALPHA, "one distribution fits, two do not")
@pytest.mark.slow
@pytest.mark.parametrize("noise", DISTRIBUTIONS, ids=str)
def test_many_samples_follow_the_distribution_and_no_near_one(noise):
    accepts_only(noise, MANY, WRONG)
