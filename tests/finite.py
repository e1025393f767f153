# SPDX-License-Identifier: Apache-2.0
"""Distributions on finitely many outcomes, as arrays of their probabilities."""

from __future__ import annotations

import itertools
import math

import numpy as np


def hockey_stick(p, q, epsilon):
    """δ(ε) in one direction: the mass by which p exceeds e^ε q."""
    return float(np.maximum(0, np.asarray(p) - math.exp(epsilon) * np.asarray(q)).sum())


def em_distribution(scores, scale):
    """The exponential mechanism by its definition."""
    weights = np.exp((np.asarray(scores, float) - max(scores)) / float(scale))
    return weights / weights.sum()


def pf_distribution(scores, scale):
    """Permute-and-flip by its definition: every order, every run of tails."""
    heads = np.exp((np.asarray(scores, float) - max(scores)) / float(scale))
    distribution = np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        tails = 1.0
        for i in order:
            distribution[i] += tails * heads[i]
            tails *= 1 - heads[i]
    return distribution / math.factorial(len(scores))
