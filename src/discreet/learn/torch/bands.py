# SPDX-License-Identifier: Apache-2.0
"""Numbers of correlated noise: a factor of the prefix sums with few bands, and how far noise moves
the sums.

    factor(4)                   # c_0 … c_3; the matrix C has c_k on its k-th diagonal below the main one
    prefix_error(4, 500)        # the root mean square error of a sum of gradients, over 500 steps, for noise of one

Training adds up gradients, so what matters is the error of their running sums. The noise of
`banded` is C⁻¹Z, with fresh normals Z: part of what a step adds the next steps take back.

**Guarantee.** Every column of C has a norm of at most one, and C is zero above the diagonal and
from its `bands`-th diagonal on.

Why it holds: c_k is C(2k, k)/4^k, which are the coefficients of the square root of the matrix of
prefix sums, cut off and divided by their norm, and by 2**-40 less than that, which is far beyond
what six operations on doubles can be off by. The last columns are cut by the end of the run, so
they are shorter. That these coefficients are good ones is not needed: they decide the error, and
`banded.proof.md` uses only the guarantee above.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_banded

__all__ = ["factor", "prefix_error", "variances"]

Reals = npt.NDArray[np.float64]


def factor(bands: int) -> Reals:
    """The coefficients c_0 … c_{bands-1}.

    >>> factor(1) <= 1, float(factor(3) @ factor(3)) <= 1
    (array([ True]), True)
    """
    ratios = [1.0, *((2 * k - 1) / (2 * k) for k in range(1, bands))]
    roots = np.cumprod(ratios)
    return np.asarray(roots * ((1 - 2.0**-40) / math.sqrt(math.fsum(roots * roots))))


def _inverse(bands: int, steps: int) -> Reals:
    """The first column of C⁻¹, which all others repeat."""
    diagonals = np.repeat(factor(bands)[:, None], steps, axis=1)[:steps]
    first = np.zeros(steps)
    first[0] = 1.0
    below = diagonals.shape[0] - 1
    return np.asarray(solve_banded((below, 0), diagonals, first), np.float64)


def variances(bands: int, steps: int) -> Reals:
    """The variance of the noise of every step, for fresh noise of one.

    >>> variances(1, 3).round(6)
    array([1., 1., 1.])
    """
    return np.cumsum(_inverse(bands, steps) ** 2)


def prefix_error(bands: int, steps: int) -> float:
    """The root mean square error of the sums of the first 1, 2, … steps, for fresh noise of one.

    >>> round(prefix_error(1, 3), 6) == round(math.sqrt((1 + 2 + 3) / 3), 6)
    True
    """
    sums = np.cumsum(_inverse(bands, steps))
    return math.sqrt(float(np.cumsum(sums * sums).mean()))
