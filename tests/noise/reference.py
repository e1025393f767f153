# SPDX-License-Identifier: Apache-2.0
"""The slow way: samplers in rational arithmetic alone (Canonne, Kamath, Steinke 2020), to compare with.

They share nothing with the samplers of the package but the source of bits.
"""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.noise.source import current


def uniform(below: int) -> int:
    while True:
        drawn = current().bits(max(1, (below - 1).bit_length()))
        if drawn < below:
            return drawn


def bernoulli(p: Fraction) -> bool:
    return uniform(p.denominator) < p.numerator


def bernoulli_exp_minus(x: Fraction) -> bool:
    while x > 1:
        if not bernoulli_exp_minus(Fraction(1)):
            return False
        x -= 1
    k = 1
    while bernoulli(x / k):
        k += 1
    return k % 2 == 1


def discrete_laplace(scale: Fraction) -> int:
    t, s = Fraction(scale).as_integer_ratio()
    while True:
        rest = uniform(t)
        if not bernoulli_exp_minus(Fraction(rest, t)):
            continue
        whole = 0
        while bernoulli_exp_minus(Fraction(1)):
            whole += 1
        magnitude = (rest + t * whole) // s
        negative = uniform(2)
        if magnitude or not negative:  # zero has one sign only
            return -magnitude if negative else magnitude


def discrete_gaussian(scale: Fraction) -> int:
    variance = Fraction(scale) ** 2
    t = math.floor(scale) + 1
    while True:
        sample = discrete_laplace(Fraction(t))
        if bernoulli_exp_minus((abs(sample) - variance / t) ** 2 / (2 * variance)):
            return sample
