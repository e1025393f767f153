# SPDX-License-Identifier: Apache-2.0
"""State beside the output: a fitted estimator leads to no record, and to nothing that is as long as there are records."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from discreet.learn import (
    PCA,
    AdditiveClassifier,
    AdditiveRegressor,
    GaussianNB,
    HuberRegression,
    KMeans,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    StandardScaler,
)

RECORDS = 611  # no other number of anything here
MONEY: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
BOX = {"bounds": (-1.0, 1.0)}
NUMBERS = {"target_bounds": (-1.0, 1.0)}
ESTIMATORS: list[Any] = [
    *(
        LogisticRegression(**MONEY, **BOX, classes=[0, 1], solver=solver)
        for solver in ("whitened", "gradient", "objective", "output")
    ),
    LinearSVC(**MONEY, **BOX, classes=[0, 1]),
    LinearRegression(**MONEY, **BOX, **NUMBERS),
    Ridge(**MONEY, **BOX, **NUMBERS),
    HuberRegression(**MONEY, **BOX, **NUMBERS),
    GaussianNB(**MONEY, **BOX, classes=[0, 1]),
    KMeans(3, **MONEY, **BOX),
    PCA(2, **MONEY, **BOX),
    StandardScaler(**MONEY, **BOX),
    PoissonRegressor(**MONEY, **BOX, target_bounds=(0, 1)),
    AdditiveClassifier(epsilon=9, delta=1e-5, **BOX, classes=[0, 1]),
    AdditiveRegressor(epsilon=9, delta=1e-5, **BOX, **NUMBERS),
]


def records():
    """Numbers with all their bits in use, so that eight bytes tell one of them."""
    x = np.sin((np.arange(RECORDS * 3.0) + 1) ** 2).reshape(RECORDS, 3)
    return x, (x[:, 0] > 0).astype(int), x[:, 1]


def arrays(thing):
    """All arrays that an object leads to."""
    found, todo, seen = [], [thing], set()
    while todo:
        each = todo.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, np.ndarray):
            found.append(each)
        elif isinstance(each, dict):
            todo += each.values()
        elif isinstance(each, list | tuple | set | frozenset):
            todo += each
        elif getattr(each, "__closure__", None):
            todo += [cell.cell_contents for cell in each.__closure__]
        elif hasattr(each, "__self__"):
            todo.append(each.__self__)
        elif hasattr(each, "__dict__") and not isinstance(each, type):
            todo += vars(each).values()
    return found


def holds(model, x):
    long = [each.shape for each in arrays(model) if RECORDS in each.shape or each.size >= RECORDS]
    stored = pickle.dumps(model)
    return long, [value for value in x.ravel()[::7] if value.tobytes() in stored]


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda m: f"{type(m).__name__}-{getattr(m, 'solver', '')}")
def test_nothing_of_the_records_is_left_in_an_estimator(model):
    x, classes, numbers = records()
    model.fit(x, classes if "classes" in model.get_params() else numbers)
    assert holds(model, x) == ([], [])


def test_the_rule_sees_a_record():
    x, _, _ = records()
    model = StandardScaler(**MONEY, **BOX).fit(x)
    model.last_, model.rows_ = x[7].copy(), x
    long, values = holds(model, x)
    assert long == [(RECORDS, 3)]
    assert values
