# SPDX-License-Identifier: Apache-2.0
"""Intervals from joint noise: their bounds hold everywhere in the box, and they cover what they should."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from discreet.mechanisms.distributions import GaussianDistribution, LaplaceDistribution
from discreet.tables.answer import joint
from discreet.tables.answer.answer import Answer
from discreet.tables.answer.arrange import arrange
from discreet.tables.answer.joint import NoisySum, PairSums, SumsAbout
from discreet.tables.answer.linear import NoiseCoordinate
from discreet.tables.ask.sql import parse
from discreet.tables.plan.compile import compile_question
from discreet.tables.plan.spend import Spend

pl = pytest.importorskip("polars")
dp = pytest.importorskip("discreet")
duckdb = pytest.importorskip("duckdb")

ROWS, RUNS = 6_000, 400
STATISTICS = [
    "COVAR_POP(y, x)",
    "COVAR_SAMP(y, x)",
    "CORR(y, x)",
    "CORR(w, x)",
    "REGR_SLOPE(y, x)",
    "REGR_INTERCEPT(y, x)",
    "REGR_R2(y, x)",
    "REGR_SXX(y, x)",
    "REGR_SXY(y, x)",
    "VAR_SAMP(x)",
]
SPENDS = {"laplace": Spend(epsilon=2), "gaussian": Spend(rho=0.5)}


@pytest.fixture(scope="module")
def frame():
    draw = np.random.default_rng(5)
    x = draw.integers(0, 61, ROWS)
    y = np.clip(np.round(x * 0.7 + draw.normal(0, 8, ROWS)), -64, 64)
    return pl.DataFrame(
        {"id": np.arange(ROWS) // 2, "x": x, "y": y, "w": np.round(draw.random(ROWS) * 64) / 8}
    )


@pytest.fixture(scope="module")
def data(frame):
    bounds = {"x": (0, 60), "y": (-64, 64), "w": (0, 8)}
    columns = {name: dp.column(bounds=ends) for name, ends in bounds.items()}
    return dp.open(frame, protect=dp.each("id", at_most=2), name="t", columns=columns)


def parts(data, statistic, spend, runs):
    """The question, and its parts in many runs."""
    question = parse(f"SELECT {statistic} AS c FROM t", data).question
    columns = {}
    for stage in compile_question(question, data, spend).stages:
        columns |= stage.draw(data.engine, [()] * runs)
    return question, Answer.of(keys=[], groups=[()] * runs, columns=columns)


def held(column, truth):
    """The share of intervals that hold the truth, and their width beside the errors."""
    low, high, value = (np.array(part, float) for part in (column.lo, column.hi, column.values))
    assert (low <= value).all()
    assert (value <= high).all()
    enough = np.quantile(np.abs(value - truth), 0.95)
    return np.mean((low <= truth + 1e-9) & (truth - 1e-9 <= high)), np.mean(high - low) / 2 / enough


@pytest.mark.parametrize("noise", SPENDS)
@pytest.mark.parametrize("statistic", STATISTICS)
def test_statistics_hold_and_are_hardly_wider_than_they_must_be(data, frame, statistic, noise):
    question, answer = parts(data, statistic, SPENDS[noise], RUNS)
    connection = duckdb.connect()
    connection.register("t", frame.to_arrow())
    (truth,) = connection.execute(f"SELECT {statistic} FROM t").fetchone()
    share, width = held(arrange(answer, question).columns["c"], truth)
    # The seed is fixed; with 400 runs the standard deviations are 0.011 and about 0.05.
    assert share >= 0.93
    assert width <= 1.35


def test_without_the_sums_an_interval_follows_from_those_of_the_parts(data):
    for statistic in STATISTICS:
        question, answer = parts(data, statistic, SPENDS["laplace"], 5)
        bare = replace(
            answer, columns={name: replace(column, sums=None) for name, column in answer.columns.items()}
        )
        joint_column, column = (arrange(each, question).columns["c"] for each in (answer, bare))
        assert column.values == joint_column.values
        for row in range(5):
            assert column.lo[row] <= column.values[row] <= column.hi[row]
            if statistic != "VAR_SAMP(x)":
                wide, narrow = (each.hi[row] - each.lo[row] for each in (column, joint_column))
                assert wide > narrow, statistic


def test_much_noise_says_little(data):
    question, answer = parts(data, "CORR(y, x)", Spend(epsilon=1e-3), 20)
    column = arrange(answer, question).columns["c"]
    known = [row for row, value in enumerate(column.values) if value is not None]
    assert known
    assert all((column.lo[row], column.hi[row]) == (-1, 1) for row in known)
    question, answer = parts(data, "REGR_SLOPE(y, x)", Spend(epsilon=1e-3), 20)
    assert set(arrange(answer, question).columns["c"].lo) == {None}


# --- the bounds --------------------------------------------------------------------------------------


def sums(draw, noise):
    """Noisy sums of three columns, with noises of their own and one in common."""
    places = iter(range(100))
    shared = NoiseCoordinate("d", 0, 99, noise)

    def some(value):
        form = {NoiseCoordinate("d", 0, next(places), noise): draw.normal() for _ in range(2)}
        return NoisySum(value, {**form, shared: draw.normal()})

    def column():
        return SumsAbout(
            some(1000 + draw.normal()), some(100 * draw.normal()), some(9000 + 1000 * draw.random())
        )

    return PairSums(
        *(column() for _ in range(3)),
        mean_y=tuple(sorted(draw.normal(size=2))),
        mean_x=tuple(sorted(draw.normal(size=2))),
        variance_y=tuple(np.sort(7 + 4 * draw.random(2))),
        variance_x=tuple(np.sort(7 + 4 * draw.random(2))),
        centres=(3.0, -2.0),
    )


def inside(draw, ends):
    return ends[0] + (ends[1] - ends[0]) * draw.random()


def form_at(statistic, pair, draw, slope):
    """Top and bottom of a statistic somewhere in the box, by definition."""
    theta, eta = inside(draw, pair.mean_x), inside(draw, pair.mean_y)
    of_x, of_y = inside(draw, pair.variance_x), inside(draw, pair.variance_y)
    add, x, y, product = joint._add, pair.x, pair.y, pair.product
    counts = ((theta * eta, x.rows), (theta * eta, y.rows), (-theta * eta, product.rows))
    c = add((1.0, product.first), (-eta, x.first), (-theta, y.first), *counts)
    d = add((1.0, x.second), (-2 * theta, x.first), (theta**2, x.rows))
    e = add((1.0, y.second), (-2 * eta, y.first), (eta**2, y.rows))
    if statistic == "correlation":
        k = (of_y / of_x) ** 0.5
        return c, add((k / 2, d), (1 / (2 * k), e))
    if statistic == "intercept":
        b, mean = inside(draw, slope), pair.centres[1] + theta
        h = mean / of_x
        residuals = (1.0, y.first), (pair.centres[0] - b * mean, y.rows), (-b, x.first), (b * theta, x.rows)
        return add(*residuals, (-h, c), (h * b, d)), y.rows
    if statistic == "squares":
        return add((1.0, d), (of_x, product.rows), (-of_x, x.rows)), NoisySum(0.0, {})
    return c, {"covariance": product.rows, "slope": d, "products": NoisySum(0.0, {})}[statistic]


@pytest.mark.parametrize(
    "noise", [LaplaceDistribution(50.0), GaussianDistribution(50.0)], ids=["laplace", "gaussian"]
)
@pytest.mark.parametrize(
    "statistic", ["covariance", "slope", "correlation", "intercept", "squares", "products"]
)
def test_bounds_hold_everywhere_in_the_box(statistic, noise):
    draw = np.random.default_rng(7)
    for _ in range(12):
        pair, ends = sums(draw, noise), tuple(np.sort(draw.normal(size=2)))
        slope = tuple(np.sort(draw.normal(size=2)))
        curves = joint._intercept(pair, slope) if statistic == "intercept" else joint._CURVES[statistic](pair)
        top, bottom = curves
        for _ in range(25):
            above, below = form_at(statistic, pair, draw, slope)
            p = inside(draw, ends) if bottom is not None else 0.0
            assert top.low - 1e-6 <= above.value <= top.high + 1e-6
            if bottom is not None:
                assert bottom.low - 1e-6 <= below.value <= bottom.high + 1e-6
            noisy = joint._add((1.0, above), (-p, below))
            exact = joint.half_width(noisy.form, 0.05)
            assert exact <= joint._bound(top, bottom, ends if bottom else (0.0, 0.0), 0.05) * (1 + 1e-9)


@pytest.mark.parametrize("place", range(2))
def test_a_bound_at_the_corners_alone_would_not_hold(place):
    """What parabolas are below their chords counts."""
    draw = np.random.default_rng(3)
    noise = GaussianDistribution(50.0)
    broken = 0
    for _ in range(40):
        pair = sums(draw, noise)
        top, bottom = joint._correlation(pair) if place else joint._sum_of_squares(pair)
        curve = replace(bottom if place else top, bends=())
        for _ in range(10):
            found = form_at("correlation" if place else "squares", pair, draw, (0, 1))[place]
            broken += not curve.low <= found.value <= curve.high
    assert broken


def test_a_slope_is_looked_for_where_it_can_be():
    draw = np.random.default_rng(11)
    for scale in (1.0, 20.0):
        pair = sums(draw, LaplaceDistribution(scale))
        top, bottom = joint._slope(pair)
        low, high = joint._finite_range(top, bottom, 0.05)
        for p in itertools.chain(np.geomspace(high, 1e6 * high, 20), -np.geomspace(-low, -1e6 * low, 20)):
            bound = joint._bound(top, bottom, (p, p), 0.05)
            least = min(abs(t - p * b) for t in (top.low, top.high) for b in (bottom.low, bottom.high))
            assert least > bound
