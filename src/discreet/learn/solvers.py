# SPDX-License-Identifier: Apache-2.0
"""The solvers by name, and the one that is taken where none is named.

`auto` is `whitened`, whose matrix has a row and a column for each feature, and `gradient` where that would be too large: from
2,000 features on, or where a sparse table stays sparse. It is decided by public facts: the number of features, how the table is
stored, and whether its bounds keep zeros.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Any

from scipy import sparse

from discreet import check
from discreet.learn.features import Box
from discreet.learn.problem import Solver

__all__ = ["AUTO", "CLASSIFIERS", "REGRESSORS", "WIDEST", "solver_for"]

AUTO = "auto"
#: Features beyond which a matrix of all their products takes too long and is mostly noise.
WIDEST = 2_000

_HOMES = {
    "whitened": "Whitened",
    "gradient": "Gradient",
    "objective": "Objective",
    "output": "Output",
    "joint": "Joint",
    "adassp": "AdaSSP",
}
CLASSIFIERS = ("whitened", "gradient", "objective", "output")
REGRESSORS = ("whitened", "gradient", "joint", "adassp")


def solver_for(name: str, allowed: Collection[str], matrix: Any, box: Box) -> Solver:
    """The solver of that name, if the estimator has it; see the module docstring for `auto`."""
    found = check.choice((AUTO, *allowed), solver=name)
    if found == AUTO:
        stays_sparse = sparse.issparse(matrix) and box.keeps_zeros
        found = "gradient" if box.width > WIDEST or stays_sparse else "whitened"
    made: Solver = getattr(import_module(f"discreet.learn.{found}"), _HOMES[found])()
    return made
