# SPDX-License-Identifier: Apache-2.0
"""The solvers by name."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module

from discreet import check
from discreet.learn.problem import Solver

__all__ = ["CLASSIFIERS", "REGRESSORS", "solver_named"]

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


def solver_named(name: str, allowed: Collection[str]) -> Solver:
    """The solver of that name, if the estimator has it."""
    found = check.choice(allowed, solver=name)
    made: Solver = getattr(import_module(f"discreet.learn.{found}"), _HOMES[found])()
    return made
