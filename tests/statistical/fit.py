# SPDX-License-Identifier: Apache-2.0
"""Does a sample follow a distribution on the whole numbers? Exact binomial tails, and the distributions by textbook formulas.

The probabilities come from scipy and from sums, never from the enclosures that the samplers use.

**Guarantee**: a sound sampler fails `accepts` with probability at most (1 + number of wrong distributions) · ALPHA.

Why it holds: how many of n samples fall into a set is binomial. The sets are the cells of the distribution, the first cells
together, and for each other distribution the values that it makes more likely, where the two differ most. The p-value is the least
of the tails of these counts, multiplied by their number (the union bound): no limit theorem is used, which would be
wrong so far out. Whether a wrong distribution is rejected is a question of power; the chance to miss it is computed exactly, for
the set that tells the two distributions apart best. Of the sample the sets take only its range, beyond which n samples
expect about one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats

from tests.chance import risk
from tests.statistical.constants import ALPHA, LEAST_EXPECTED, WRONG

Distribution = Callable[[np.ndarray], np.ndarray]


def accepts(samples, right: Distribution, *wrong: Distribution) -> None:
    """The sample follows the right distribution and none of the wrong ones."""
    samples = np.asarray(samples)
    support = np.arange(samples.min(), samples.max() + 1)
    accepts_counts(
        np.bincount(samples - samples.min(), minlength=support.size),
        *(_masses(distribution, support) for distribution in (right, *wrong)),
    )


def accepts_counts(observed, right, *wrong) -> None:
    """The same for counts of values whose probabilities are known."""
    risk(ALPHA)
    assert p_value(observed, right, *wrong) > ALPHA
    for distribution in wrong:
        risk(ALPHA)
        missed = miss(observed.sum(), right, distribution)
        assert missed <= ALPHA, f"too few samples to tell the laws apart: missed with chance {missed:.1g}"
        assert p_value(observed, distribution, right) < ALPHA


def p_value(observed, distribution, *others) -> float:
    """How likely counts that fit the distribution so badly are, at most."""
    if np.any(distribution[observed > 0] <= 0):
        return 0.0  # what cannot be was seen
    size, sets = observed.sum(), _sets(observed.sum(), distribution, others)
    counts, chances = sets(observed), sets(distribution)
    tails = np.minimum(stats.binom.cdf(counts, size, chances), stats.binom.sf(counts - 1, size, chances))
    return float(min(1.0, 2 * tails.size * tails.min()))


def miss(size, right, wrong) -> float:
    """How likely it is, at most, that so many samples of the right distribution are not rejected as samples of the wrong one."""
    sets = _sets(size, wrong, [right])
    right, wrong = sets(right), sets(wrong)
    share = ALPHA / (2 * wrong.size)
    low, high = stats.binom.ppf(share, size, wrong), stats.binom.isf(share, size, wrong)
    return float(np.minimum(stats.binom.cdf(high, size, right), stats.binom.sf(low - 1, size, right)).min())


def _sets(size, distribution, others):
    """The function that sums values over each cell, over the first cells together, and where another distribution is greater."""
    starts = _cells(size * distribution)
    more_likely = [other > distribution for other in others]

    def sums(values):
        cells = np.add.reduceat(values, starts)
        return np.concatenate([cells, np.cumsum(cells)[:-1], [values[where].sum() for where in more_likely]])

    return lambda values: np.clip(sums(values), 0, None if values.dtype.kind == "i" else 1)


def _masses(distribution: Distribution, support):
    """The probability of each value; what lies beyond the sample joins the first."""
    masses = np.array(distribution(support), float)
    masses[0] += max(0.0, 1 - masses.sum())
    return masses


def _cells(expected):
    """Where cells begin, in order of support, merged until each expects enough."""
    starts, total = [0], 0.0
    for place, mass in enumerate(expected.tolist()):
        total += mass
        if total >= LEAST_EXPECTED:
            starts.append(place + 1)
            total = 0.0
    return np.array(starts[:-1] if len(starts) > 1 else starts)


def accepts_only(sampler, distribution, scale, count):
    """The sample fits its own scale and neither of the scales that are wrong by WRONG: 3 · ALPHA."""
    samples, scale = sampler(scale, count), float(scale)
    wrong = [lambda k, factor=factor: distribution(k, scale * factor) for factor in (1 - WRONG, 1 + WRONG)]
    accepts(samples, lambda k: distribution(k, scale), *wrong)


def geometric(k, scale):
    q = np.exp(-1 / scale)
    return (1 - q) * q**k


def discrete_laplace(k, scale):
    q = np.exp(-1 / scale)
    return (1 - q) / (1 + q) * q ** np.abs(k)


def rounded_gaussian(k, scale):
    far = -np.abs(k)  # the lower tail, where differences keep their digits
    return stats.norm.cdf((far + 0.5) / scale) - stats.norm.cdf((far - 0.5) / scale)


def discrete_gaussian(k, scale):
    reach = np.arange(-60 * int(scale + 1), 60 * int(scale + 1) + 1)
    return np.exp(-(np.asarray(k) ** 2) / (2 * scale**2)) / np.exp(-(reach**2) / (2 * scale**2)).sum()
