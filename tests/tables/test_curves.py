# SPDX-License-Identifier: Apache-2.0
"""Logarithms, exponentials and powers: their cells in 60 digits, and how far they are from the next."""

from __future__ import annotations

import math

import numpy as np
import pytest

import discreet as dp
from discreet.errors import DiscreetError
from discreet.tables.algebra import curves
from discreet.tables.algebra.curves import curve_at, find_nudge, most_reach
from discreet.tables.algebra.evaluate import Assignment, Values, evaluate
from discreet.tables.algebra.expr import all_parts
from discreet.tables.ask.curves import exponential, logarithm, power
from discreet.tables.ask.sql import parse
from tests.tables.reference import value
from tests.tables.small import number
from tests.tables.world import world

MADE = {
    "ln of days": logarithm(number(0, 60)),
    "ln of a fraction": logarithm(number(1, 3 << 10, 10, null=False)),
    "log2": logarithm(number(1, 2**12), "LOG2"),
    "log10": logarithm(number(1, 1000), "LOG10"),
    "exp": exponential(number(-5 << 6, 9 << 6, 6)),
    "exp of the far": exponential(number(-(2**15), 3)),
    "root": power(number(0, 900), 0.5),
    "cube": power(number(0, 7 << 8, 8), 3.5),
    "inverse": power(number(1, 400), -1.25),
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_every_cell_is_the_one_of_sixty_digits(made):
    (read,) = {part for part in all_parts(made) if not part.parts and hasattr(part, "column")}
    cells = np.unique(np.linspace(read.type.low, read.type.high, 4_000).astype(np.int64))
    known = {read: Values(cells, np.zeros(len(cells), bool))}
    found = evaluate(made, Assignment({}, known, len(cells)))
    for cell, null, made_cell in zip(cells.tolist(), found.null, found.cells, strict=True):
        exact = value(made, {("visits", "x"): cell / 2**read.type.places})
        assert (None if null else made_cell) == exact
        assert exact is None or made.type.low <= exact <= made.type.high
    assert {made.type.low, made.type.high} <= set(found.cells[~found.null].tolist())


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_last_digits_decide_nothing(made):
    (curve,) = {part for part in all_parts(made) if isinstance(part, curves.RealFunction)}
    kind = curve.of.type
    cells = np.arange(kind.low, kind.high + 1)
    x = cells * curve.unit
    exact = curve_at(curve.function, x, curve.exponent)
    for error in (-8, 8):
        wrong = exact + error * np.spacing(exact)
        assert (np.floor(wrong * curve.scale + curve.nudge) == curve.cells_of(cells)).all()


def test_without_a_nudge_they_would():
    """The mutant: whole powers lie on a step, and one last digit moves them to the cell below."""
    cells = np.arange(1, 900)
    exact = curve_at("power", cells.astype(float), 2.0)
    assert (np.floor(exact - np.spacing(exact)) < exact).all()
    nudge = find_nudge("power", (1, 899), 1.0, 1.0, 2.0)
    assert nudge
    assert (np.floor(exact - 8 * np.spacing(exact) + nudge) == exact).all()


def test_the_margin_has_room_for_sixteen_last_digits():
    for cells in (1, 61, 2**20, 2**24):
        reach = most_reach(cells)
        assert 1 / (curves._RARE * cells) >= 16 * np.spacing(float(reach)) * (1 - 1e-9)


def test_bounds_follow():
    def bounds(text):
        (aggregate,) = parse(f"SELECT AVG({text}) FROM visits", world()).question.aggregates
        return tuple(float(end) for end in aggregate.of.type.bounds)

    assert bounds("LN(days)") == pytest.approx((0, math.log(60)), abs=1e-5)
    assert bounds("EXP(-days)") == pytest.approx((0, 1), abs=1e-5)
    assert bounds("POWER(days, 1.5)") == pytest.approx((0, 60**1.5), abs=1e-3)
    assert bounds("LOG2(CLAMP(cost, 0.25, 8))") == pytest.approx((-2, 3), abs=1e-5)


REFUSED = {
    "LN(cost)": "DP705",
    "LN(value)": "DP701",
    "LN(-days)": "DP705",
    "LN(age)": "DP104",
    "LN(note)": "DP705",
    "LN(zip * 1000)": "DP705",
    "EXP(days)": "DP705",
    "EXP(zip)": "DP705",
    "POWER(days, 0)": "DP705",
    "POWER(days, 99.5)": "DP705",
    "POWER(days, days)": "DP705",
    "POWER(cost, -1)": "DP705",
    "POWER(zip, 15.5)": "DP705",
    "LN(0)": "DP705",
    "LOG(days)": "DP705",
    "SIN(days)": "DP705",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_has_no_bounds_is_refused(text):
    with pytest.raises(DiscreetError) as refused:
        parse(f"SELECT AVG({text}) FROM visits", world())
    assert refused.value.code == REFUSED[text]


def test_the_mean_of_logarithms_is_a_geometric_mean():
    pl = pytest.importorskip("polars")
    x = [1 + n % 97 for n in range(3_000)]
    frame = pl.DataFrame({"id": range(3_000), "x": x, "y": [n / 8 for n in x]})
    bounds = {"x": dp.column(bounds=(0, 100)), "y": dp.column(bounds=(0.125, 16))}
    data = dp.open(frame, protect=dp.each("id", at_most=1), name="t", columns=bounds)
    session = dp.Session(data, limit=dp.Limit.filter(epsilon=1e9))
    answer = session.sql(
        "SELECT GEOMEAN(x) AS x, GEOMETRIC_MEAN(y) AS y, AVG(LN(y)) AS l FROM t", epsilon=1e6
    )
    exact = math.exp(np.log(x).mean())
    found = [answer.columns[name].values[0] for name in "xyl"]
    assert found == pytest.approx([exact, exact / 8, math.log(exact / 8)], rel=1e-5)
    written = data.where(dp.col("x") > 3).mean(dp.col("x").log() + (dp.col("y") / 8).exp())
    assert session.release(written, epsilon=1e6).value > 0
