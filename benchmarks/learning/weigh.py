# SPDX-License-Identifier: Apache-2.0
"""Fit one model on many made-up rows, and print what it took as one line of JSON.

    python weigh.py discreet dense 1000000

Seconds are CPU time of the fit alone; megabytes are the growth of the peak over what the data take.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import time
import warnings

import numpy as np
from scipy import sparse

WIDE, TOGETHER = 50, 20  # dense: features; sparse: features that are not zero in a row
MANY = 10_000  # features of the sparse case


def dense(rows: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    X = generator.uniform(-1, 1, (rows, WIDE))
    return X, (X @ generator.normal(size=WIDE) + generator.logistic(size=rows) > 0).astype(int)


def thin(rows: int) -> tuple[sparse.csr_array, np.ndarray]:
    """Rows of `TOGETHER` ones among MANY features, as a bag of words has them."""
    generator = np.random.default_rng(0)
    where = generator.integers(0, MANY, rows * TOGETHER)
    X = sparse.csr_array((np.ones(len(where)), where, np.arange(rows + 1) * TOGETHER), shape=(rows, MANY))
    X.sum_duplicates()
    return X, (X @ generator.normal(size=MANY) > 0).astype(int)


def discreet(kind: str) -> object:
    from discreet.learn import LogisticRegression

    guarantee = {"epsilon": 1, "delta": 1e-5, "classes": [0, 1]}
    if kind == "dense":
        return LogisticRegression(bounds=(-1, 1), **guarantee)
    return LogisticRegression(norm=math.sqrt(TOGETHER), solver="gradient", **guarantee)


def diffprivlib(kind: str) -> object:
    from diffprivlib.models import LogisticRegression

    return LogisticRegression(epsilon=1, data_norm=math.sqrt(WIDE if kind == "dense" else TOGETHER))


def sklearn(_kind: str) -> object:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression()


def peak() -> float:
    """Megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Fit, and print seconds, megabytes and the accuracy on the rows themselves."""
    warnings.simplefilter("ignore")
    _, library, kind, rows = sys.argv
    X, y = (dense if kind == "dense" else thin)(int(rows))
    model = globals()[library](kind)
    before, start = peak(), time.process_time()
    model.fit(X, y)
    seconds, grown = time.process_time() - start, peak() - before
    some = slice(0, 20_000)
    data = X.nbytes if kind == "dense" else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    said = {
        "seconds": seconds,
        "megabytes": grown,
        "data": data / 2**20,
        "score": model.score(X[some], y[some]),
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main()
