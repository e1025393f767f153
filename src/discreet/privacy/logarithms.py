# SPDX-License-Identifier: Apache-2.0
"""Logarithms of what would overflow, vanish or cancel if it were computed itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Array = NDArray[np.floating[Any]]


def log_or_minus_infinity(x: float) -> float:
    """log x, and -∞ at 0 and below."""
    return math.log(x) if x > 0 else -math.inf


def log1mexp(x: float) -> float:
    """log(1 - e^x) for x ≤ 0."""
    return math.log(-math.expm1(x)) if x < 0 else -math.inf


def log_choose(n: int, k: NDArray[Any]) -> Array:
    """log of n over k, for each k."""
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))


def log_sum(logs: Array) -> Array:
    """log Σ e^logs along the last axis."""
    # What is not a number is out of reach, and stays so.
    with np.errstate(invalid="ignore"):
        top = np.minimum(np.maximum(logs.max(axis=-1), -1e300), 1e300)
        return np.asarray(top + np.log(np.exp(logs - top[..., None]).sum(axis=-1)))
