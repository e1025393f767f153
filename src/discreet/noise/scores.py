# SPDX-License-Identifier: Apache-2.0
"""Scores and weights of candidates, each both as the nearest float and exactly."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import BadParameter
from discreet.exact import as_ratio

Floats = npt.NDArray[np.float64]
Exactly = Callable[[int], Fraction]


def gaps(scores: Any) -> tuple[Floats, Exactly]:
    """How far each score is below the largest, correctly rounded; infinite where a float cannot hold it."""
    array = _row(scores, "scores")
    if not array.size:
        return np.empty(0), as_ratio
    best = array.max()
    if array.dtype.kind in "iu":  # modulo 2**64 the difference of two 64-bit integers is exact
        floats = (best.astype(np.uint64) - array.astype(np.uint64)).astype(np.float64)
    elif array.dtype.kind == "O":
        floats = _nearest_all(best - array)
    else:
        with np.errstate(over="ignore"):
            floats = best - array
    return floats, lambda i: as_ratio(best) - as_ratio(array[i])


def weights(values: Any, count: int) -> tuple[Floats, Exactly]:
    """Weights that are zero or more, one for each score."""
    array = _row(values, "weights")
    floats = _nearest_all(array)
    lost = not np.isfinite(floats).all() or ((floats == 0) != (array == 0)).any()
    if array.size != count or (floats < 0).any() or lost:
        raise _bad_scores_error(
            "weights must be numbers that are zero or more, within the range of a float, one for each score."
        )
    return floats, lambda i: as_ratio(array[i])


def _row(values: Any, name: str) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.dtype.kind == "f" and np.can_cast(array.dtype, np.float64):
        array = array.astype(np.float64)
    if array.ndim != 1 or not (array.dtype.kind in "iuO" or array.dtype == np.float64):
        raise _bad_scores_error(f"{name} must be one row of numbers.")
    if array.dtype.kind == "O":
        array = np.array([_ratio(value, name) for value in array], object)
    elif not np.isfinite(array).all():
        raise _bad_scores_error(f"{name} must be finite numbers.")
    return array


def _ratio(value: Any, name: str) -> Fraction:
    try:
        return as_ratio(value)
    except (TypeError, ValueError, OverflowError):
        raise _bad_scores_error(f"{name} must be finite numbers.") from None


def _nearest_all(array: npt.NDArray[Any]) -> Floats:
    if array.dtype.kind != "O":
        return array.astype(np.float64)
    return np.array([nearest(value) for value in array], np.float64)


def nearest(value: Fraction) -> float:
    """The nearest float, or an infinity where there is none."""
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _bad_scores_error(what: str) -> BadParameter:
    return BadParameter(
        "DP101",
        what,
        why="no theorem covers a choice by entries that are not numbers.",
        fix="replace such entries before the choice, by the same rule for all data",
    )
