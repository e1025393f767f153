# SPDX-License-Identifier: Apache-2.0
"""MST (McKenna, Miklau, Sheldon 2021) on the graphical models of mbi, in an environment of its own.

    python ask_mbi.py codes.npz rho out.npz

`codes.npz` has integer codes of rows and the sizes of the columns. Its noise is numpy's: this measures accuracy and time.
"""

from __future__ import annotations

import itertools
import json
import math
import resource
import sys
import time

import mbi
import numpy as np


def main(source: str, rho: float, target: str) -> None:
    """A third of ρ for tables of one column, a third to choose a tree, a third for its edges."""
    stored = np.load(source)
    codes, sizes = stored["codes"], [int(size) for size in stored["sizes"]]
    rng, names = np.random.default_rng(0), [f"c{place}" for place in range(len(sizes))]
    before = time.process_time()
    domain = mbi.Domain(names, sizes)
    measured = []

    def count(keys: tuple[int, ...]) -> np.ndarray:
        flat = np.ravel_multi_index(tuple(codes[:, key] for key in keys), [sizes[key] for key in keys])
        return np.bincount(flat, minlength=math.prod(sizes[key] for key in keys)).astype(float)

    def measure(keys: tuple[int, ...], scale: float) -> None:
        noisy = count(keys) + scale * rng.normal(size=math.prod(sizes[key] for key in keys))
        measured.append(mbi.LinearMeasurement(noisy, tuple(names[key] for key in keys), scale))

    for key in range(len(sizes)):
        measure((key,), math.sqrt(len(sizes) / (2 * rho / 3)))
    estimate = mbi.estimation.MirrorDescent().estimate(domain, measured, iters=500)
    total = max(float(np.mean([each.noisy_measurement.sum() for each in measured])), 1.0)
    alone = [np.asarray(estimate.project((name,)).datavector()) / total for name in names]
    edges = list(itertools.combinations(range(len(sizes)), 2))
    weights = {
        pair: np.abs(count(pair) - total * np.outer(alone[pair[0]], alone[pair[1]]).ravel()).sum()
        for pair in edges
    }
    epsilon = math.sqrt(8 * rho / 3 / (len(sizes) - 1))
    group = list(range(len(sizes)))
    for _ in range(len(sizes) - 1):
        open_edges = [pair for pair in edges if group[pair[0]] != group[pair[1]]]
        scores = np.array([weights[pair] for pair in open_edges]) * epsilon / 2 + rng.gumbel(
            size=len(open_edges)
        )
        one, other = open_edges[int(scores.argmax())]
        measure((one, other), math.sqrt((len(sizes) - 1) / (2 * rho / 3)))
        group = [group[one] if each == group[other] else each for each in group]
    model = mbi.estimation.MirrorDescent().estimate(domain, measured, iters=2500)
    rows = model.synthetic_data()
    table = rows.to_dict() if hasattr(rows, "to_dict") else rows.df
    np.savez(target, codes=np.stack([np.asarray(table[name]) for name in names], axis=1))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"seconds": time.process_time() - before, "memory": memory}))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3])
