# SPDX-License-Identifier: Apache-2.0
"""Every aggregate of the coverage benchmark: its 95 % intervals hold as often as they should."""

from __future__ import annotations

import importlib.util
import math
import sys

import numpy as np
import pytest

from tests.house.project import ROOT

pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")

RUNS = 2_000


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("coverage_benchmark", ROOT / "benchmarks" / "coverage.py")
    module = importlib.util.module_from_spec(spec)
    # Data classes look up the module that they are defined in.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def opened(bench):
    rows = bench.frame(2)
    connection = duckdb.connect()
    connection.register("t", rows.to_arrow())
    return bench.dataset(rows, 2), connection


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["Laplace", "Gaussian"])
def test_every_interval_holds_as_often_as_it_should(bench, opened, noise):
    data, connection = opened
    for text, written in bench.ASKED.items():
        (truth,) = connection.execute(f"SELECT {written or text} FROM t").fetchone()
        # Intervals of ranks hold for all data, and so more often where rows lie close together.
        is_rank = text.startswith(bench.RANKED)
        runs, spends = (RUNS // 10, bench.SPENDS_OF_RANKS) if is_rank else (RUNS, bench.SPENDS)
        judged = bench.judge(data, text, spends[noise], float(truth), runs)
        # The noise of a test is the same in every run; four standard deviations of the share.
        slack = 4 * math.sqrt(0.05 * 0.95 / runs)
        assert judged.held >= 0.945 - slack, text
        if not is_rank:
            assert judged.held <= 0.97 + slack, text
            assert judged.width <= 1.25, text
        assert judged.answered > 0.99, text


@pytest.mark.parametrize("noise", ["Laplace", "Gaussian"])
@pytest.mark.parametrize(
    "text", ["COUNT(*)", "AVG(x)", "STDDEV_POP(z)", "REGR_SXX(y, x)", "SUM(x) / COUNT(*)"]
)
def test_some_intervals_hold_as_often_as_they_should(bench, opened, text, noise):
    data, connection = opened
    (truth,) = connection.execute(f"SELECT {text} FROM t").fetchone()
    judged = bench.judge(data, text, bench.SPENDS[noise], float(truth), 400)
    slack = 4 * math.sqrt(0.05 * 0.95 / 400)
    assert 0.945 - slack <= judged.held
    assert 0.7 <= judged.width <= 1.4


def test_a_quantile_beside_a_gap_holds_as_often_as_it_says(bench, opened):
    """Half of the rows at 1000, half at 3000: every value between is a median, and both ends have to be held."""
    data, _ = opened
    ends = [
        bench.judge(data, "MEDIAN(g)", bench.SPENDS["Laplace"], end, 400).held for end in (1000.0, 3000.0)
    ]
    assert min(ends) >= 0.95 - 4 * math.sqrt(0.05 * 0.95 / 400)
    assert np.mean(ends) <= 1
