# SPDX-License-Identifier: Apache-2.0
"""How often the 95 % intervals of answers hold the exact number, and how wide they are, where nothing is clipped.

    python benchmarks/coverage.py                 # every aggregate, 20,000 runs (1,000 for quantiles): two minutes
    python benchmarks/coverage.py --runs 2000

`held` is the share of intervals that hold the exact number; `width` is half of the mean interval by the 95 % quantile of the
error of the released number, which is what an interval around it needs at least.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from discreet.tables.algebra.engine import guard_engine
from discreet.tables.plan.compile import compile_question
from discreet.tables.plan.ranks import Ranks
from discreet.tables.plan.spend import Spend
from discreet.tables.plan.totals import Totals
from tests.tables.small import dataset, number, question

X, FINE = number(0, 100, null=False), number(0, 4095, null=False)
TABLES = {"middle": [30, 50, 50, 70] * 500, "skewed": [2, 4, 8, 60] * 500}
PEOPLE = {"rows are units": {"rows_are_units": True}, "at_most=3": {"at_most": 3}}
SPENDS = {"Laplace": Spend(epsilon=0.2), "Gaussian": Spend(rho=0.02)}
KINDS = [("count",), ("sum", X), ("mean", X), ("variance", X), ("stddev", X), ("units",)]
QUANTILES = {"MEDIAN": (1, 2), "QUANTILE 0.9": (9, 10)}


def totals(runs: int) -> Iterator[tuple[str, str, float, float]]:
    """What holds of counts, sums, means, variances and counts of units, each asked alone."""
    for shape, values in TABLES.items():
        for people, words in PEOPLE.items():
            table = [tuple(("a", x) for x in values[at : at + 2]) for at in range(0, len(values), 2)]
            table = [(row,) for unit in table for row in unit] if "rows_are_units" in words else table
            rows = np.array(values, float)
            exact = [rows.size, rows.sum(), rows.mean(), rows.var(), rows.std(), len(table)]
            for noise, spend in SPENDS.items():
                for kind, truth in zip(KINDS, exact, strict=True):
                    data = dataset(table, **words)
                    (stage,) = compile_question(question(kind), data, spend).stages
                    assert isinstance(stage, Totals)
                    sums = np.array(stage.exact(data.engine, [()])[()], float)
                    drawn = np.stack([law.draw(runs) for law in stage.distributions], axis=1)
                    (column,) = (estimate.noisy(sums + drawn) for estimate in stage.estimates.values())
                    yield f"{kind[0].upper()}", f"{noise}, {shape}, {people}", *judged(column, truth)


def quantiles(runs: int) -> Iterator[tuple[str, str, float, float]]:
    """What holds of quantiles."""
    rng = np.random.default_rng(5)
    shapes = {
        "normal": np.clip(rng.normal(2000, 400, 5000), 0, 4095).astype(int),
        "uniform": rng.integers(0, 4096, 5000),
    }
    for shape, values in shapes.items():
        data = dataset([(("a", int(x)),) for x in values], rows_are_units=True)
        for noise, spend in SPENDS.items():
            for name, share in QUANTILES.items():
                asked = question(("quantile", FINE, {"fraction": share}))
                (stage,) = compile_question(asked, data, spend).stages
                assert isinstance(stage, Ranks)
                sums = guard_engine(data.engine.sums, stage.sums)
                bins = sorted((place, weights[0]) for (place,), weights in sums.items() if weights[0])
                chosen = [next(iter(stage._choose_bins(bins).values())) for _ in range(runs)]  # noqa: SLF001
                found = [stage.bins.value(place) for place, _, _ in chosen]
                ends = np.array([stage.bins.ends(low, high) for _, low, high in chosen], float)
                truth = float(np.quantile(values, share[0] / share[1], method="inverted_cdf"))
                held = ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean()
                needed = np.quantile(np.abs(np.array(found, float) - truth), 0.95)
                yield (
                    name,
                    f"{noise}, {shape}",
                    float(held),
                    float((ends[:, 1] - ends[:, 0]).mean() / 2 / needed),
                )


def judged(column, truth: float) -> tuple[float, float]:
    """The share that is held, and the width beside what is needed."""
    low, high, found = (np.array(part, float) for part in (column.lo, column.hi, column.values))
    held = ((low <= truth + 1e-9) & (truth <= high + 1e-9)).mean()
    return float(held), float(np.mean(high - low) / 2 / np.quantile(np.abs(found - truth), 0.95))


def main() -> None:
    """Print a table: for each aggregate the least and the greatest of its settings."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20_000)
    options = parser.parse_args()
    by_aggregate: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for name, setting, held, width in [*totals(options.runs), *quantiles(max(100, options.runs // 20))]:
        by_aggregate.setdefault((name, setting.split(",", maxsplit=1)[0]), []).append((held, width))
    print("| aggregate | noise | held (95 %) | width ÷ needed |")
    print("|---|---|--:|--:|")
    for (name, noise), pairs in by_aggregate.items():
        (low, high), (near, far) = ((min(part), max(part)) for part in zip(*pairs, strict=True))
        print(f"| {name} | {noise} | {low:.3f} – {high:.3f} | {near:.2f} – {far:.2f} |")


if __name__ == "__main__":
    main()
