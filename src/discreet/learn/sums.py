# SPDX-License-Identifier: Apache-2.0
"""Least squares by sums of products: what the solvers `joint` and `adassp` share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from discreet.errors import UnsupportedGuarantee
from discreet.learn.features import BITS
from discreet.learn.losses import Squared
from discreet.learn.problem import Problem

__all__ = ["only_least_squares", "rows_with_targets"]

Reals = npt.NDArray[np.float64]


def rows_with_targets(problem: Problem) -> Iterator[Reals]:
    """Rows (x, y) of whole numbers, ‖x‖ <= 2**BITS and |y| <= 2**BITS; a target is rounded by itself."""
    for cells, targets in problem.cells():
        target = np.clip(np.nan_to_num(targets, nan=0.0), -1.0, 1.0)
        yield np.concatenate([cells, np.rint(target * 2.0**BITS)], axis=1)


def only_least_squares(problem: Problem, solver: str) -> None:
    """Sums of products determine the minimum of squared errors, and of nothing else."""
    if not isinstance(problem.loss, Squared) or problem.scores != 1:
        raise UnsupportedGuarantee(
            "DP203",
            f"solver={solver!r} fits squared errors of one target only.",
            why="it releases sums of products, from which no other loss can be minimised.",
            fix="solver='whitened'",
        )
