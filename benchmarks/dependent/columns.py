# SPDX-License-Identifier: Apache-2.0
"""Quantiles and trimmed means of columns: the error of every method against that of the global sensitivity; time.

python benchmarks/data_dependent.py --only columns --column people.csv:income --bounds 0 1e6      # repeat both at will
python benchmarks/data_dependent.py --only columns --ten-million
"""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from discreet.mechanisms import Laplace, Quantile, ptr, smooth
from discreet.mechanisms.mechanism import Mechanism, Refusal

TITLE = "Quantiles and trimmed means of columns"
EPSILONS = (0.1, 0.5, 1.0)
DELTA = 1e-6
DRAWS = 101
SIZE = 20_000  # half of them secret
TRIM = 0.1
QUANTILES = {"median": 0.5, "quantile 0.9": 0.9, "quantile 0.99": 0.99}
TRIMMED = "trimmed mean"
METHODS = ("global", "smooth", "smooth, public", "exponential", "propose")
_SYMMETRIC = {"smooth", "smooth, public"}
_PROPOSED = 20  # bounds to search, from half the range downwards


class Column(NamedTuple):
    """Every other record is secret; the others are public, and may be looked at when noise is planned."""

    all: Any
    bounds: tuple[float, float]
    real: bool = True

    @property
    def records(self) -> Any:
        return self.all[::2]

    @property
    def public(self) -> Any:
        return self.all[1::2]

    def nearer_bound(self, value: float) -> float:
        return min(value - self.bounds[0], self.bounds[1] - value)


def options(parser) -> None:
    parser.add_argument(
        "--column", metavar="FILE.csv:NAME", action="append", default=[], help="a column of numbers"
    )
    parser.add_argument(
        "--bounds",
        metavar=("LOW", "HIGH"),
        nargs=2,
        type=float,
        action="append",
        default=[],
        help="what is publicly known of the numbers, for each --column in turn",
    )
    parser.add_argument(
        "--ten-million", action="store_true", help="time the sensitivity of 10,000,000 records too"
    )


def lines(options) -> Iterator[str]:
    if len(options.column) != len(options.bounds):
        raise SystemExit(
            "each --column needs its --bounds LOW HIGH: bounds that are read off the data are not private"
        )
    given = {
        which.rsplit("/", 1)[-1]: Column(_read(which), tuple(bounds))
        for which, bounds in zip(options.column, options.bounds, strict=True)
    }
    yield f"Median of |error| over {DRAWS} draws, and in brackets how many times smaller than with the global sensitivity, whose error is"
    yield "computed, not drawn. One record is replaced. Answers are moved back into the bounds; a symmetric noise (global, smooth) that is"
    yield "wider than that counts as being off by the distance to the nearer bound, which is its exact median."
    yield "'smooth' is planned for records that are spread evenly over the bounds, 'smooth, public' for as many other records of"
    yield f"the same kind. 'propose' searches {_PROPOSED} bounds, with half of ε for the search, and spends δ = {DELTA:g}. Columns with a star are"
    yield "made here, of a known law."
    yield ""
    yield "| column | records | bounds | statistic | exact | ε | " + " | ".join(METHODS) + " |"
    yield "|---|--:|---|---|--:|--:|" + "--:|" * len(METHODS)
    for name, column in (given or dict(_public())).items():
        yield from _errors(name if column.real else f"{name}*", column)
    yield ""
    yield "Seconds of CPU time against the number of records (log-normal, in no order): sorting alone; then, of sorted records,"
    yield "the exact smooth sensitivity with t = 0.1 and with t so small that every window counts; then all of one release, ε = 1."
    yield ""
    yield "| records | sort | median, t = 0.1 | every window | trimmed mean, t = 0.1 | every window | a median | a trimmed mean |"
    yield "|--:|" + "--:|" * 7
    for power in range(3, 8 if options.ten_million else 7):
        yield _costs(10**power)


def _errors(name: str, column: Column) -> Iterator[str]:
    low, high = column.bounds
    shown = f"{name} | {len(column.records)} | {low:g} … {high:g}"
    for statistic in (*QUANTILES, TRIMMED):
        truth = _exact(statistic, column)
        shown = f"{shown} | {statistic} | {truth:.4g}"
        for epsilon in EPSILONS:
            found = dict(_found(statistic, column, epsilon, truth))
            cells = [_cell(found.get(method), found["global"]) for method in METHODS]
            yield f"| {shown} | {epsilon:g} | " + " | ".join(cells) + " |"
            shown = " |  |  |  | "
        shown = " |  | "


def _found(statistic: str, column: Column, epsilon: float, truth: float) -> Iterator[tuple[str, float]]:
    """The median of |error| by method; a refusal is infinitely far off."""
    far = column.nearer_bound(truth)
    yield "global", min(_global(statistic, column, epsilon).error(0.5), far)
    for method, mechanism in _mechanisms(statistic, column, epsilon):
        off = float(
            np.median([_distance(mechanism.draw(column.records), column, truth) for _ in range(DRAWS)])
        )
        # the law of the error is symmetric: half of all answers, or more, are no further off than the nearer bound
        yield method, min(off, far) if method in _SYMMETRIC else off


def _global(statistic: str, column: Column, epsilon: float) -> Laplace:
    count = len(column.records)
    left = 1 if statistic in QUANTILES else count - 2 * _statistic(statistic, column.bounds).trim_count(count)
    width = Fraction(column.bounds[1]) - Fraction(column.bounds[0])
    return Laplace(epsilon=epsilon, sensitivity=width / left, relation="replace")


def _mechanisms(statistic: str, column: Column, epsilon: float) -> Iterator[tuple[str, Mechanism]]:
    (low, high), what = column.bounds, _statistic(statistic, column.bounds)
    for method, public in (("smooth", None), ("smooth, public", column.public)):
        yield (
            method,
            smooth.SmoothMechanism(
                what, smooth.SmoothBudget(epsilon=epsilon), size=len(column.records), public=public
            ),
        )
    if statistic in QUANTILES:
        q = QUANTILES[statistic]
        yield "exponential", Quantile(q, column.bounds, epsilon=epsilon, relation="replace")
        search = ptr.order_statistic(q, column.bounds).search
        bounds = [(high - low) / 2**k for k in range(1, _PROPOSED + 1)]
        halves = {"search_epsilon": epsilon / 2, "release_epsilon": epsilon / 2}
        yield "propose", search(bounds=bounds, delta=DELTA, relation="replace", **halves)


def _statistic(name: str, bounds: tuple[float, float]) -> Any:
    if name == TRIMMED:
        return smooth.TrimmedMean(bounds, TRIM)
    return smooth.OrderStatistic(bounds, q=QUANTILES[name])


def _exact(statistic: str, column: Column) -> float:
    return float(_statistic(statistic, column.bounds).measure(column.records, 1.0)[0])


def _distance(answer: Any, column: Column, truth: float) -> float:
    if isinstance(answer, Refusal):
        return math.inf
    return abs(float(np.clip(getattr(answer, "value", answer), *column.bounds)) - truth)


def _cell(error: float | None, worst: float) -> str:
    if error is None:
        return "–"
    if math.isinf(error):
        return "refused"
    return f"{error:.3g} (×{worst / error:.3g})" if error else "exact"


def _costs(count: int) -> str:
    bounds, records = (0.0, 1e7), _incomes(np.random.default_rng(2), count)
    median, mean = (_statistic(name, bounds) for name in ("median", TRIMMED))
    ordered = np.sort(records)
    found = [_seconds(lambda: np.sort(records))]
    sort_again = _seconds(lambda: np.sort(ordered))
    found += [
        max(0.0, _seconds(lambda what=what, t=t: what.measure(ordered, t)) - sort_again)
        for what in (median, mean)
        for t in (0.1, 1 / count)
    ]
    found.append(_seconds(lambda: smooth.median(records, bounds, epsilon=1.0)))
    found.append(_seconds(lambda: smooth.trimmed_mean(records, bounds, trim=TRIM, epsilon=1.0)))
    return f"| {count:,} | " + " | ".join(f"{seconds:.2g}" for seconds in found) + " |"


def _seconds(work: Callable[[], Any]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def _read(which: str) -> Any:
    path, name = which.rsplit(":", 1)
    with Path(path).open(encoding="utf-8", newline="") as file:
        cells = [row[name] for row in csv.DictReader(line for line in file if not line.startswith("#"))]
    return np.array([float(cell) for cell in cells if cell.strip()])


def _incomes(rng: np.random.Generator, count: int) -> Any:
    return np.rint(rng.lognormal(math.log(32_000), 0.8, count))


def _public() -> Iterator[tuple[str, Column]]:
    """Columns that anybody has: those that matplotlib ships, if it is installed, and some that are made here."""
    try:
        from matplotlib import cbook
    except ImportError:
        pass
    else:
        yield (
            "share price",
            Column(_read(f"{cbook.get_sample_data('Stocks.csv', asfileobj=False)}:AAPL"), (0.0, 1e3)),
        )
        trades, terrain = (cbook.get_sample_data(name) for name in ("goog.npz", "jacksboro_fault_dem.npz"))
        yield "shares traded", Column(trades["price_data"]["volume"].astype(float), (0.0, 1e9))
        yield "height, m", Column(terrain["elevation"].ravel()[::7].astype(float), (0.0, 9_000.0))
    rng = np.random.default_rng(1)
    yield "income", Column(_incomes(rng, SIZE), (0.0, 1e7), real=False)
    yield "price", Column(np.round(5 * (1 + rng.pareto(1.2, SIZE)), 2), (0.0, 1e6), real=False)
    old = rng.random(SIZE) < 0.4
    ages = np.where(old, rng.normal(68, 9, SIZE), rng.normal(31, 12, SIZE))
    yield "age", Column(np.clip(np.rint(ages), 0, 110), (0.0, 120.0), real=False)
