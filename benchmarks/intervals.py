# SPDX-License-Identifier: Apache-2.0
"""How often the confidence intervals of `inference=True` hold the truth, and how often they are refused.

    python benchmarks/intervals.py                # every setting, 200 runs each (about ten minutes, one thread)
    python benchmarks/intervals.py --runs 20      # a quick look
    python benchmarks/intervals.py --only linear  # settings whose name matches

Records and noise are fresh in every run, from stated laws, so the truth is known. `held` counts every coefficient and
the intercept of fits that were not refused; `without noise` is what intervals of the usual standard errors would hold,
at the same fits.
"""

from __future__ import annotations

import argparse
import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import CannotCertify
from discreet.learn import LinearRegression, LogisticRegression

Reals = npt.NDArray[np.float64]
Made = Callable[[np.random.Generator, int], Reals]
_BEYOND = 1.959963984540054


@dataclass(frozen=True)
class Setting:
    """A law of features, the true slopes and intercept, and what is declared."""

    features: Made
    slopes: tuple[float, ...]
    intercept: float
    bounds: Any
    rows: int
    epsilon: float
    errors: Callable[[np.random.Generator, int], Reals] | None = None  # of a target; None for classes
    more: dict[str, Any] = field(default_factory=dict)


def mixed(rng: np.random.Generator, count: int) -> Reals:
    """Two even features, an indicator, and a skewed one."""
    even, rare = rng.uniform(-1, 1, (count, 2)), rng.random(count) < 0.3
    return np.column_stack([even, rare, np.minimum(rng.gamma(2.0, 1.0, count), 16.0)])


def chained(rng: np.random.Generator, count: int) -> Reals:
    """Twelve normal features, each correlated with the next by a half."""
    out = rng.normal(size=(count, 12))
    for column in range(1, 12):
        out[:, column] = 0.5 * out[:, column - 1] + math.sqrt(0.75) * out[:, column]
    return np.clip(out, -6.0, 6.0)


def heavy(rng: np.random.Generator, count: int) -> Reals:
    """Two log-normal features, cut far out."""
    return np.minimum(rng.lognormal(0.0, 0.8, (count, 2)), 40.0)


def normal(spread: float) -> Callable[[np.random.Generator, int], Reals]:
    return lambda rng, count: spread * rng.normal(size=count)


MIXED = ((0.8, -0.4, 0.5, -0.2), -0.3, ([-1, -1, 0, 0], [1, 1, 1, 16]))
WIDE = ([-10, -10, -10, -70], [10, 10, 10, 90])
CHAIN = (0.5, -0.5, 0.3, 0.0, 0.0, -0.2, 0.1, 0.0, 0.4, 0.0, 0.0, -0.3)
SETTINGS = {
    "logistic mixed n=20,000 ε=1": Setting(mixed, *MIXED, 20_000, 1.0),
    "logistic mixed n=8,000 ε=1": Setting(mixed, *MIXED, 8_000, 1.0),
    "logistic mixed n=4,000 ε=1": Setting(mixed, *MIXED, 4_000, 1.0),
    "logistic mixed n=4,000 ε=4": Setting(mixed, *MIXED, 4_000, 4.0),
    "logistic mixed n=20,000 ε=0.5": Setting(mixed, *MIXED, 20_000, 0.5),
    "logistic mixed n=20,000 ε=4": Setting(mixed, *MIXED, 20_000, 4.0),
    "logistic mixed n=50,000 ε=0.5": Setting(mixed, *MIXED, 50_000, 0.5),
    "logistic mixed, replace, n=30,000 ε=2": Setting(
        mixed, *MIXED, 30_000, 2.0, more={"relation": "replace"}
    ),
    "logistic mixed, bounds ×10, n=30,000 ε=1": Setting(mixed, MIXED[0], MIXED[1], WIDE, 30_000, 1.0),
    "logistic chained n=60,000 ε=2": Setting(chained, CHAIN, 0.2, (-6, 6), 60_000, 2.0),
    "logistic rare (4 %) n=40,000 ε=2": Setting(mixed, (0.8, -0.4, 0.5, -0.2), -3.2, MIXED[2], 40_000, 2.0),
    "logistic heavy n=20,000 ε=2": Setting(heavy, (0.3, -0.2), 0.0, (0, 40), 20_000, 2.0),
    "linear mixed n=20,000 ε=1": Setting(mixed, *MIXED, 20_000, 1.0, normal(0.5), {"target_bounds": (-8, 8)}),
    "linear mixed n=8,000 ε=1": Setting(mixed, *MIXED, 8_000, 1.0, normal(0.5), {"target_bounds": (-8, 8)}),
    "linear mixed, targets ×10, n=20,000 ε=4": Setting(
        mixed, *MIXED, 20_000, 4.0, normal(0.5), {"target_bounds": (-80, 80)}
    ),
    "linear chained n=60,000 ε=2": Setting(
        chained, CHAIN, 0.2, (-6, 6), 60_000, 2.0, normal(1.0), {"target_bounds": (-12, 12)}
    ),
    "linear, targets cut, n=20,000 ε=4": Setting(
        mixed, *MIXED, 20_000, 4.0, normal(0.5), {"target_bounds": (-1.5, 1.0)}
    ),
}


def one_run(setting: Setting, rng: np.random.Generator) -> tuple[str, list[bool], list[bool], Reals]:
    """Why there is no interval, or which coefficients are held, by ours and without noise, and how much wider ours are."""
    X = setting.features(rng, setting.rows)
    score = X @ np.array(setting.slopes) + setting.intercept
    given = {
        "epsilon": setting.epsilon,
        "delta": 1e-5,
        "bounds": setting.bounds,
        "inference": True,
        **setting.more,
    }
    if setting.errors is None:
        chances = 1 / (1 + np.exp(-score))
        bend = chances * (1 - chances)
        model = LogisticRegression(classes=[0, 1], **given).fit(X, (rng.random(len(X)) < chances).astype(int))
    else:
        errors = setting.errors(rng, len(X))
        bend = np.full(len(X), 1 / errors.var())
        model = LinearRegression(**given).fit(X, score + errors)
    try:
        found = model.conf_int()
    except CannotCertify as refused:
        return refused.why, [], [], np.zeros(0)
    ends = np.vstack([found.coef, found.intercept])
    truth = np.append(setting.slopes, setting.intercept)
    wide = np.column_stack([X, np.ones(len(X))])
    usual = _BEYOND * np.sqrt(np.diag(np.linalg.inv((wide * bend[:, None]).T @ wide)))
    held = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    bare = np.abs(ends.mean(axis=1) - truth) <= usual
    return "", held.tolist(), bare.tolist(), (ends[:, 1] - ends[:, 0]) / 2 / usual


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print("| setting | refused | held (95 %) | least of a coefficient | without noise | width ÷ usual |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, setting in SETTINGS.items():
        if not re.search(options.only, name):
            continue
        rng = np.random.default_rng(sum(map(ord, name)))
        runs = [one_run(setting, rng) for _ in range(options.runs)]
        good = [run for run in runs if not run[0]]
        reasons = Counter(re.sub(r"about -?[\d.]+%", "about …", run[0]) for run in runs if run[0])
        if good:
            held, bare = np.array([run[1] for run in good]), np.array([run[2] for run in good])
            wider = float(np.mean([run[3] for run in good]))
            line = f"{held.mean():.3f} | {held.mean(axis=0).min():.3f} | {bare.mean():.3f} | {wider:.2f}"
        else:
            line = "– | – | – | –"
        print(f"| {name} | {1 - len(good) / len(runs):.0%} | {line} |", flush=True)
        for reason, times in reasons.most_common():
            print(f"  refused {times}: {reason}", flush=True)


if __name__ == "__main__":
    main()
