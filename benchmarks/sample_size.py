# SPDX-License-Identifier: Apache-2.0
"""How many records a private fit needs: the excess risk of noisy gradient descent against n, d and ε.

    python benchmarks/sample_size.py            # 30 runs of each setting, one thread (a few minutes)
    python benchmarks/sample_size.py --write    # and keep every run in docs/assets/sample-size.json

docs/explain/sample-size.md says what is measured and why; docs/assets/draw.py draws it.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.special import expit

import discreet as dp
from discreet import noise, privacy

KEPT = Path(__file__).resolve().parents[1] / "docs" / "assets" / "sample-size.json"
DELTA = 1e-5
CELLS = 2**10  # of a slope, and of a row, of length one
MIDDLE = {"n": 1000, "d": 10, "epsilon": 1.0}
SETTINGS = {
    "n": (125, 250, 500, 1000, 2000),
    "d": (2, 5, 10, 20, 50, 100),
    "epsilon": (0.25, 0.5, 1.0, 2.0, 4.0),
}
Slopes = Callable[[np.ndarray], np.ndarray]


def multiplier(epsilon: float) -> float:
    """The least Gaussian noise for (ε, δ), over the sensitivity, when a record is replaced."""
    target = privacy.approximate(epsilon, DELTA, relation="replace")
    return dp.calibrate(lambda z: privacy.gaussian(z, relation="replace"), to=target)


def steps_for(n: int, d: int, z: float) -> int:
    """As many steps as make the noise in a gradient as long as a gradient: they grow like n²."""
    return max(1, round(n**2 / (4 * d * z**2)))


def descend(rows: np.ndarray, slopes: Slopes, steps: int, z: float, runs: int) -> np.ndarray:
    """The average iterate of projected noisy descent from 0, one column for each run; rows have norm at most 1.

    A gradient is slope × row, both truncated to whole numbers, so that sums are exact and no record is longer than 1.
    """
    cells = np.trunc(rows * CELLS)
    weights = np.zeros((rows.shape[1], runs))
    total = np.zeros_like(weights)
    for _ in range(steps):
        total += weights
        noisy = cells.T @ np.trunc(slopes(rows @ weights) * CELLS)
        noisy += noise.rounded_gaussian(2 * z * math.sqrt(steps) * CELLS**2, weights.shape)
        weights = weights - noisy / (len(rows) * CELLS**2 * math.sqrt(2 * steps))
        weights /= np.maximum(1.0, np.linalg.norm(weights, axis=0))
    return total / steps


def hard(n: int, d: int, steps: int, z: float, runs: int) -> list[float]:
    """The loss -w·x of records whose mean is as long as the noise lets one see, 1/√T: a harder task for every setting."""
    length = min(
        1.0, math.ceil(CELLS / math.sqrt(steps)) / CELLS
    )  # whole cells: truncation takes nothing away
    rows = np.zeros((n, d))
    rows[:, 0] = length
    rows[::2, -1] = math.sqrt(1 - length**2) if d > 1 else 0.0
    rows[1 : 2 * (n // 2) : 2, -1] = -rows[0, -1]
    found = descend(rows, lambda scores: np.full_like(scores, -1.0), steps, z, runs)
    mean = rows.mean(axis=0)
    return np.round(np.linalg.norm(mean) - mean @ found, 6).tolist()


def usual(n: int, d: int, steps: int, z: float, runs: int) -> list[float]:
    """Logistic regression on one strong feature and d - 1 weak ones: the same task for all n."""
    generator = np.random.default_rng(n + 1000 * d)
    others = generator.normal(size=(n, d - 1))
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    signs = generator.choice([-1.0, 1.0], n)
    rows = np.column_stack([0.6 * signs, 0.8 * others])
    labels = generator.random(n) < expit(4 * rows[:, 0])

    def slopes(scores: np.ndarray) -> np.ndarray:
        return expit(scores) - labels[:, None]

    def risk(weights: np.ndarray) -> np.ndarray:
        scores = rows @ weights
        return (np.logaddexp(0, scores) - labels[:, None] * scores).mean(axis=0)

    found = descend(rows, slopes, steps, z, runs)
    return np.round(risk(found) - risk(minimiser(rows, slopes)), 6).tolist()


def minimiser(rows: np.ndarray, slopes: Slopes) -> np.ndarray:
    """The best weights in the ball, without noise: descent with steps of 1/curvature, to the end."""
    weights = np.zeros((rows.shape[1], 1))
    for _ in range(3000):
        weights = weights - 4 * rows.T @ slopes(rows @ weights) / len(rows)
        weights /= np.maximum(1.0, np.linalg.norm(weights, axis=0))
    return weights


def main() -> None:
    """Measure every setting, print the means, and keep all runs if told to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--write", action="store_true", help=f"keep every run in {KEPT.name}")
    options = parser.parse_args()
    kept = []
    for name, values in SETTINGS.items():
        print(f"\n| {name} | steps | bound | hard task | usual task |\n|--:|--:|--:|--:|--:|")
        for value in values:
            setting = MIDDLE | {name: value}
            z = multiplier(setting["epsilon"])
            steps = steps_for(setting["n"], setting["d"], z)
            tasks = {
                task.__name__: task(setting["n"], setting["d"], steps, z, options.runs)
                for task in (hard, usual)
            }
            kept.append({"along": name, **setting, "steps": steps, **tasks})
            cells = (
                f"{np.mean(found):.4f} ({np.std(found) / len(found) ** 0.5:.4f})" for found in tasks.values()
            )
            print(f"| {value} | {steps} | {math.sqrt(2 / steps):.4f} | {' | '.join(cells)} |", flush=True)
    if options.write:
        lines = ",\n".join(json.dumps(one) for one in kept)
        KEPT.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
