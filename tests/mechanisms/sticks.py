# SPDX-License-Identifier: Apache-2.0
"""Exact hockey sticks of mixtures of refusals and discrete Laplace numbers, and all small data sets."""

from __future__ import annotations

import itertools
import math

import numpy as np


def cdf(k, scale):
    """P(Z <= k) for P(z) ∝ exp(-|z| / scale), of a number or an array."""
    k, q = np.asarray(k, float), math.exp(-1 / scale)
    above = np.exp(-(np.maximum(k, 0) + 1) / scale) / (1 + q)
    return np.where(k < 0, np.exp(np.minimum(k, 0) / scale) / (1 + q), 1 - above)[()]


def pmf(k, scale):
    return np.exp(-np.abs(np.asarray(k, float)) / scale) * math.tanh(1 / (2 * scale))


def stick(a, b, shift, scale):
    """Σ_z (a p(z) - b p(z - shift))₊: the ratio of the two falls in z, so that the sum is over z <= some z*."""
    shift = abs(shift)
    if a <= b * math.exp(-shift / scale):
        return 0.0
    if a * math.exp(-shift / scale) >= b:
        return a - b
    last = math.ceil(shift / 2 + scale / 2 * math.log(a / b)) - 1
    last = min(max(last, 0), shift - 1)
    return a * cdf(last, scale) - b * cdf(last - shift, scale)


def bags(letters, most):
    """Every bag of at most so many records, as sorted lists."""
    return [
        list(bag)
        for size in range(most + 1)
        for bag in itertools.combinations_with_replacement(letters, size)
    ]


def neighbours(letters, most, relation):
    """Every ordered pair of neighbouring bags of at most `most` records."""
    pairs = []
    for bag in bags(letters, most):
        if relation == "add-remove" and len(bag) < most:
            pairs += [(bag, sorted([*bag, letter])) for letter in letters]
        if relation == "replace":
            kinds = {
                tuple(sorted([*bag[:i], letter, *bag[i + 1 :]]))
                for i in range(len(bag))
                for letter in letters
            }
            pairs += [(bag, list(other)) for other in kinds if list(other) != bag]
    return pairs if relation == "replace" else [*pairs, *[(other, bag) for bag, other in pairs]]


def to_unsafe(letters, most, relation, unsafe):
    """The exact distance of each bag to the nearest that belongs to an unsafe pair, among bags of at most `most`."""
    around: dict[tuple, set] = {}
    start = set()
    for one, other in neighbours(letters, most, relation):
        around.setdefault(tuple(one), set()).add(tuple(other))
        if unsafe(one, other):
            start |= {tuple(one), tuple(other)}
    distance, rim, steps = dict.fromkeys(start, 0), start, 0
    while rim:
        steps += 1
        rim = {other for bag in rim for other in around[bag]} - set(distance)
        distance |= dict.fromkeys(rim, steps)
    return {tuple(bag): distance.get(tuple(bag), math.inf) for bag in bags(letters, most)}
