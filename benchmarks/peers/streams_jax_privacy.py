# SPDX-License-Identifier: Apache-2.0
"""What jax-privacy's strategies make of streams: run by its own Python, prints JSON.

python streams_jax_privacy.py 52,1,1 52,4,13 > answers.json         # T, k, b for each case
"""

from __future__ import annotations

import json
import sys
import time

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
from jax_privacy.matrix_factorization import buffered_toeplitz, toeplitz  # noqa: E402

CASES = ("12,1,1", "52,1,1", "52,4,13")


def errors(coefficients, periods, k, apart):
    """Greatest and mean deviation of a total per sensitivity, from the coefficients of a strategy."""
    strategy = np.zeros(periods)
    strategy[: len(coefficients)] = np.asarray(coefficients, float)[:periods]
    inverse = np.zeros(periods)
    inverse[0] = 1 / strategy[0]
    for t in range(1, periods):
        inverse[t] = -(strategy[1 : t + 1] @ inverse[:t][::-1]) / strategy[0]
    norms = np.sqrt(np.cumsum(np.cumsum(inverse) ** 2))
    moved = np.zeros(periods)
    for start in range(0, min(periods, k * apart), apart):
        moved[start:] += strategy[: periods - start]
    sensitivity = np.linalg.norm(moved)
    return float(sensitivity * norms[-1]), float(sensitivity * np.sqrt(np.mean(norms**2)))


def main():
    found = []
    for case in sys.argv[1:] or CASES:
        periods, k, apart = map(int, case.split(","))
        started = time.process_time()
        buffers = buffered_toeplitz.optimize(
            n=periods, min_sep=apart, max_participations=k, error="max", max_buffers=3
        )
        blt = errors(buffers.toeplitz_coefs(periods), periods, k, apart)
        found.append(("BLT", blt, periods, k, apart, time.process_time() - started))
        started = time.process_time()
        bands = apart if k > 1 else min(periods, 16)
        banded = toeplitz.optimize_banded_toeplitz(periods, bands, reduction_fn=lambda each: each[-1])
        found.append(
            ("BandMF", errors(banded, periods, k, apart), periods, k, apart, time.process_time() - started)
        )
        print(found[-2:], file=sys.stderr, flush=True)
    names = ("name", "errors", "periods", "k", "apart", "seconds")
    print(json.dumps([dict(zip(names, each, strict=True)) for each in found]))


if __name__ == "__main__":
    main()
