# SPDX-License-Identifier: Apache-2.0
"""Does a sample follow a law on the whole numbers? The chi-square test, and the laws by textbook formulas.

The probabilities come from scipy and from sums, never from the enclosures that the samplers use.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats

from tests.statistical.constants import ALPHA, LEAST_EXPECTED, WRONG


def p_value(samples, law: Callable[[np.ndarray], np.ndarray]) -> float:
    """The chi-square p-value of whole numbers against P(k) = law(k); rare values share a cell."""
    low, high = int(samples.min()), int(samples.max())
    support = np.arange(low, high + 1)
    expected = samples.size * law(support)
    observed = np.bincount(samples - low, minlength=support.size).astype(float)
    expected, observed = _pooled(expected, observed)
    rest = samples.size - expected.sum()
    expected[0] += rest  # what lies beyond the sample joins a tail cell
    return float(stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), expected.size - 1))


def _pooled(expected, observed):
    """Cells in order of support, merged until each expects enough."""
    cells, ends = [], []
    total = 0.0
    for place, mass in enumerate(expected):
        total += mass
        if total >= LEAST_EXPECTED:
            cells.append(total)
            ends.append(place + 1)
            total = 0.0
    starts = [0, *ends[:-1]]
    sums = [observed[a:b].sum() for a, b in zip(starts, ends, strict=True)]
    cells[-1] += total
    sums[-1] += observed[ends[-1] :].sum()
    return np.array(cells), np.array(sums)


def accepts_only(sampler, law, scale, count):
    """The sample fits its own scale and neither of the scales that are wrong by WRONG."""
    samples, scale = sampler(scale, count), float(scale)
    assert p_value(samples, lambda k: law(k, scale)) > ALPHA
    for factor in (1 - WRONG, 1 + WRONG):
        assert p_value(samples, lambda k, factor=factor: law(k, scale * factor)) < ALPHA


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
