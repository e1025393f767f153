# SPDX-License-Identifier: Apache-2.0
"""The odds of a noisy choice, against closed formulas and quadrature."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

from discreet.noise import race
from tests.chance import may_fail
from tests.statistical import fit
from tests.statistical.constants import ALPHA, FEW, WRONG

SCORES = np.array([0.0, 1.0, 2.5, 3.0])


def gumbel(scores):
    weights = np.exp(scores)
    return weights / weights.sum()


def by_quadrature(distribution):
    """P(i is the largest) = E[prod over j of F(noise_i + s_i - s_j)]."""

    def odds(scores):
        chances = [
            integrate.quad(
                lambda x, i=i: (
                    distribution.pdf(x)
                    * np.prod([distribution.cdf(x + scores[i] - s) for s in np.delete(scores, i)])
                ),
                distribution.ppf(1e-14),
                distribution.ppf(1 - 1e-14),
                limit=400,
            )[0]
            for i in range(scores.size)
        ]
        return np.array(chances)

    return odds


ODDS = {
    "gumbel": gumbel,
    "exponential": by_quadrature(stats.expon),
    "laplace": by_quadrature(stats.laplace),
}


@may_fail(2 * ALPHA, "one distribution fits, one does not")
@pytest.mark.parametrize("noise", race.NOISES)
@pytest.mark.parametrize(
    ("least", "count"), [(race.LEAST, FEW), (2.0, FEW // 2)]
)  # 2.0: every choice is exact
def test_the_largest_is_chosen_with_its_odds(noise, least, count, monkeypatch):
    monkeypatch.setattr(race, "LEAST", least)
    chosen = np.array([race.largest(SCORES, 0.5, noise=noise)[0] for _ in range(count)])
    right, doubled = ODDS[noise](SCORES / 0.5), ODDS[noise](SCORES)  # the scale without its factor of two
    fit.accepts(chosen, lambda k: right[k], lambda k: doubled[k])


def test_the_odds_by_quadrature_are_the_known_ones():
    known = [0.07424924482905, 0.12783540977227, 0.31801458991782, 0.47990075548086]
    assert ODDS["exponential"](SCORES / 2) == pytest.approx(known, abs=1e-7)
    known = [0.09415527994057, 0.15523581278674, 0.32863421824842, 0.42197468902427]
    assert ODDS["gumbel"](SCORES / 2) == pytest.approx(known, abs=1e-12)


@may_fail(2 * ALPHA, "one distribution fits, one does not")
def test_weights_multiply_the_odds():
    weights = np.array([3.0, 1.0, 0.0, 0.5])
    odds = weights * np.exp(SCORES)
    chosen = np.array([race.largest(SCORES, 1, weights=weights)[0] for _ in range(FEW)])
    assert 2 not in chosen
    relabelled = np.searchsorted([0, 1, 3], chosen)
    fit.accepts(
        relabelled, lambda k: (odds / odds.sum())[[0, 1, 3]][k], lambda k: gumbel(SCORES[[0, 1, 3]])[k]
    )


@may_fail(2 * ALPHA, "one distribution fits, one does not")
def test_the_two_largest_are_two_draws_without_replacement():
    pairs = list(itertools.permutations(range(3), 2))
    weights = np.exp(SCORES[:3])
    right = np.array(
        [weights[i] / weights.sum() * weights[j] / (weights.sum() - weights[i]) for i, j in pairs]
    )
    chosen = [tuple(race.largest(SCORES[:3], 1, count=2).tolist()) for _ in range(FEW)]
    labels = np.array([pairs.index(pair) for pair in chosen])
    wrong = np.exp(SCORES[:3] * (1 - WRONG))
    odds = np.array([wrong[i] / wrong.sum() * wrong[j] / (wrong.sum() - wrong[i]) for i, j in pairs])
    fit.accepts(labels, lambda k: right[k], lambda k: odds[k])
