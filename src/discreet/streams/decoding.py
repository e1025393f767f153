# SPDX-License-Identifier: Apache-2.0
"""Numbers read off the noisy rows of a stream, and how noise adds up in them.

**Guarantee.** Post-processing of released rows with public weights. The estimate of a sum over
periods is its exact value plus Σ weight · noise of its rows, so it has no bias.

Why it holds: the rows are N x plus noise, the weights are a · N⁻¹ for the 0-1 vector a of the
periods, and a · N⁻¹ N x = a · x. What would break it: rows of another factor, or in another order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.streams.factor import Factor

__all__ = ["deviations", "simultaneous_beta", "weights_of_range"]

Floats = npt.NDArray[np.float64]


def weights_of_range(factor: Factor, first: int, last: int) -> Floats:
    """The weights of rows 0 to `last` in the sum of the periods `first` to `last`.

    >>> from discreet.streams import independent
    >>> weights_of_range(independent(4), 1, 2).tolist()
    [0.0, 1.0, 1.0]
    """
    assert 0 <= first <= last < factor.periods, "the periods of a range lie in the stream"
    weights = factor.running[last::-1].copy() if last else factor.running[:1].copy()
    if first:
        weights[:first] -= factor.running[first - 1 :: -1] if first > 1 else factor.running[:1]
    return weights


def deviations(factor: Factor, measure: str | int) -> Floats:
    """The standard deviation, for noise of standard deviation one, of a number in each period.

    `measure` is "totals" (everything so far), "periods" (each by itself), or the length of a
    sliding window.

    >>> from discreet.streams import independent
    >>> deviations(independent(4), "totals").round(3).tolist()
    [1.0, 1.414, 1.732, 2.0]
    """
    if measure == "totals":
        column = factor.running
    elif measure == "periods":
        column = factor.inverse
    else:
        length = min(int(measure), factor.periods)
        column = factor.running.copy()
        column[length:] -= factor.running[: factor.periods - length]
    norms: Floats = np.sqrt(np.cumsum(np.square(column)))
    return norms


def simultaneous_beta(beta: float, numbers: int, *, gaussian: bool) -> float:
    """The β of each of many intervals, so that all hold together with probability 1 - β.

    For Gaussian noise 1 - (1 - β)^(1/m): centred Gaussian numbers stay within their intervals
    together at least as often as independent ones do (Šidák 1967), whatever their correlation. Else
    β / m.

    >>> round(simultaneous_beta(0.05, 52, gaussian=False), 6)
    0.000962
    """
    if not gaussian or numbers == 1:
        return beta / numbers
    return float(-np.expm1(np.log1p(-beta) / numbers)) * (1 - 1e-12)


def decode(weights: Floats, rows: Sequence[int]) -> float:
    """Σ weight · row."""
    return float(weights @ np.array([float(row) for row in rows]))
