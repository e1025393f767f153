# SPDX-License-Identifier: Apache-2.0
"""Fit one library's models on one data set, and print test scores as one line of JSON.

    python fit.py discreet set.npz 20 0.1 0.5 1 4

Split number s is the same for every library. Libraries that take no bounds get features that were scaled to [-1, 1]
by the same public bounds. Nothing is tuned: what a library does by default is what is measured.
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Callable

import numpy as np

DELTA = 1e-5
Table = dict[str, np.ndarray]
Make = Callable[[Table, float], object]


def discreet(table: Table, epsilon: float, solver: str = "whitened") -> object:
    from discreet.learn import LinearRegression, LogisticRegression

    guarantee = {
        "epsilon": epsilon,
        "delta": DELTA,
        "bounds": (table["low"], table["high"]),
        "solver": solver,
    }
    if table["classes"]:
        return LogisticRegression(classes=list(range(int(table["classes"]))), **guarantee)
    return LinearRegression(target_bounds=tuple(table["target"]), **guarantee)


def gradient(table: Table, epsilon: float) -> object:
    return discreet(table, epsilon, "gradient")


def diffprivlib(table: Table, epsilon: float) -> object:
    from diffprivlib.models import LinearRegression, LogisticRegression

    width = len(table["low"])
    if table["classes"]:
        return _scaled(table, LogisticRegression(epsilon=epsilon, data_norm=math.sqrt(width)))
    return _scaled(
        table, LinearRegression(epsilon=epsilon, bounds_X=(-1, 1), bounds_y=tuple(table["target"]))
    )


def sklearn(table: Table, _epsilon: float) -> object:
    from sklearn.linear_model import LinearRegression, LogisticRegression

    return _scaled(table, LogisticRegression(max_iter=2000) if table["classes"] else LinearRegression())


def _scaled(table: Table, model: object) -> object:
    """The model behind a map of the bounds to [-1, 1]."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    low, high = table["low"], table["high"]
    return make_pipeline(
        FunctionTransformer(lambda X: np.clip((2 * X - low - high) / (high - low), -1, 1)), model
    )


def scores(make: Make, table: Table, epsilon: float, splits: int) -> list[float]:
    """Accuracy or R² on the fifth of the rows that was left out, for each split."""
    X, y, found = table["X"], table["y"], []
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(len(y))
        test, train = np.split(order, [len(y) // 5])
        model = make(table, epsilon).fit(X[train], y[train])
        found.append(float(model.score(X[test], y[test])))
    return found


def main() -> None:
    """Print {ε: [score of each split]}."""
    warnings.simplefilter("ignore")
    _, library, path, splits, *epsilons = sys.argv
    with np.load(path) as file:
        table = dict(file)
    make = globals()[library]
    print(json.dumps({epsilon: scores(make, table, float(epsilon), int(splits)) for epsilon in epsilons}))


if __name__ == "__main__":
    main()
