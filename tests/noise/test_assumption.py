# SPDX-License-Identifier: Apache-2.0
"""Assumption A of lazy.proof.md: the compiled functions are right to 2**-44, and a sample of them to 2**-48.

A sample and no proof: it finds a library that is plainly worse than the ones the slack was made for.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.special import ndtri

from discreet import testing

ALLOWED = 2.0**-48


def uniforms(low, count):
    """Numbers between `low` and 1, spread evenly over the logarithm, with all their digits."""
    with testing.seeded("assumption") as seeded:
        u = seeded.words(count).astype(np.float64) * 2.0**-64
    return np.exp2(np.log2(low) * u)


def normal_quantile(v):
    """Newton's steps from the compiled value, in 40 digits: the error squares in each."""
    z = mpmath.mpf(float(ndtri(float(v))))
    for _ in range(3):
        z -= (mpmath.ncdf(z) - v) / mpmath.npdf(z)
    return z


FUNCTIONS = {
    "log": (np.log, mpmath.log, uniforms(2.0**-63, 1500)),
    "log1p": (np.log1p, mpmath.log1p, -uniforms(2.0**-63, 1500) * (1 - 2.0**-24)),
    "exp": (np.exp, mpmath.exp, -uniforms(2.0**-40, 1500) * 50),
    "expm1": (np.expm1, mpmath.expm1, -uniforms(2.0**-60, 1500) * 50),
    "ndtri": (ndtri, normal_quantile, uniforms(2.0**-20, 600) / 2),
    "ndtri near one half": (ndtri, normal_quantile, 0.5 - uniforms(2.0**-50, 300) / 4),
    "one exp": (math.exp, mpmath.exp, -uniforms(2.0**-40, 1500) * 50),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_functions_are_as_good_as_assumed(name):
    compiled, precise, points = FUNCTIONS[name]
    assert worst_error(compiled, precise, points) < ALLOWED


def worst_error(compiled, precise, points):
    with mpmath.workdps(40):
        values = compiled(points) if compiled is not math.exp else [math.exp(x) for x in points]
        truths = [precise(mpmath.mpf(float(x))) for x in points]
        return max(float(abs((mpmath.mpf(float(y)) - t) / t)) for y, t in zip(values, truths, strict=True))


def test_the_check_sees_a_poor_function():
    poor = lambda x: np.log(x) * (1 + 2.0**-46)  # noqa: E731
    assert worst_error(poor, mpmath.log, uniforms(2.0**-63, 50)) > ALLOWED
