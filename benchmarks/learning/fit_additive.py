# SPDX-License-Identifier: Apache-2.0
"""Fit one kind of model on one data set, and print test scores as one line of JSON.

    python fit_additive.py additive set.npz 10 0.5 1 4

Split number s is the same for every method. Nothing is tuned.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import numpy as np

DELTA = 1e-5


def additive(table: dict[str, Any], epsilon: float) -> Any:
    from discreet.learn import AdditiveClassifier, AdditiveRegressor

    categories = {index: list(range(size)) for index, size in enumerate(table["sizes"]) if size}
    declared = {
        "epsilon": epsilon,
        "delta": DELTA,
        "bounds": (table["low"], table["high"]),
        "categories": categories,
    }
    if table["is_class"]:
        return AdditiveClassifier(classes=[0, 1], **declared)
    return AdditiveRegressor(target_bounds=tuple(table["target"]), **declared)


def linear(table: dict[str, Any], epsilon: float) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    from discreet.learn import LinearRegression, LogisticRegression

    sizes = table["sizes"]
    low = np.concatenate(
        [np.zeros(size) if size else [end] for size, end in zip(sizes, table["low"], strict=True)]
    )
    high = np.concatenate(
        [np.ones(size) if size else [end] for size, end in zip(sizes, table["high"], strict=True)]
    )
    declared = {"epsilon": epsilon, "delta": DELTA, "bounds": (low, high)}
    if table["is_class"]:
        model: Any = LogisticRegression(classes=[0, 1], **declared)
    else:
        model = LinearRegression(target_bounds=tuple(table["target"]), **declared)

    def indicators(rows: np.ndarray) -> np.ndarray:
        parts = [
            rows[:, [index]] if not size else (rows[:, [index]] == np.arange(size)).astype(float)
            for index, size in enumerate(sizes)
        ]
        return np.concatenate(parts, axis=1)

    return make_pipeline(FunctionTransformer(indicators), model)


def ebm(table: dict[str, Any], epsilon: float) -> Any:
    from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

    types = ["nominal" if size else "continuous" for size in table["sizes"]]
    bounds = {
        index: (float(table["low"][index]), float(table["high"][index]))
        for index, size in enumerate(table["sizes"])
        if not size
    }
    declared = {"epsilon": epsilon, "delta": DELTA, "feature_types": types, "privacy_bounds": bounds}
    if table["is_class"]:
        return DPExplainableBoostingClassifier(n_jobs=1, **declared)
    low, high = table["target"]
    return DPExplainableBoostingRegressor(
        n_jobs=1, privacy_target_min=float(low), privacy_target_max=float(high), **declared
    )


def scores(name: str, table: dict[str, Any], epsilon: float, splits: int) -> dict[str, list[float]]:
    """Accuracy or R², AUC, and CPU seconds of each split; a quarter of the rows is left out."""
    X, y = table["X"], table["y"]
    out: dict[str, list[float]] = {"score": [], "auc": [], "seconds": []}
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(len(y))
        test, train = np.split(order, [len(y) // 4])
        model = globals()[name](table, epsilon)
        rows, labels = X, y.astype(int) if table["is_class"] else y
        start = time.process_time()
        model.fit(rows[train], labels[train])
        out["seconds"].append(time.process_time() - start)
        out["score"].append(float(model.score(rows[test], labels[test])))
        if table["is_class"]:
            out["auc"].append(_auc(model.predict_proba(rows[test])[:, 1], labels[test]))
    return out


def _auc(chances: np.ndarray, labels: np.ndarray) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(labels, chances))


def main() -> None:
    """Print {ε: scores}."""
    warnings.simplefilter("ignore")
    _, name, path, splits, *epsilons = sys.argv
    with np.load(path) as file:
        table = dict(file)
    table["is_class"] = bool(table["is_class"])
    print(json.dumps({epsilon: scores(name, table, float(epsilon), int(splits)) for epsilon in epsilons}))


if __name__ == "__main__":
    main()
