# SPDX-License-Identifier: Apache-2.0
"""Charts are well-formed, escape what they show, keep inside their frame, and say in words what they draw."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.server.charts import GROUPS, answer_charts, burn_down
from discreet.tables.answer.answer import Answer
from discreet.tables.answer.noisy import Noisy

EVIL = "<script>alert('x')</script>&\"'"
SVG = "{http://www.w3.org/2000/svg}"


def answer(values, lo, hi, groups=None, **words):
    column = Noisy(tuple(values), tuple(lo), tuple(hi), **words)
    groups = groups or [(f"g{at}",) for at in range(len(values))]
    return Answer.of(keys=["key"], groups=groups, columns={"n": column})


def percentages(svg):
    return [float(number) for number in re.findall(r"(?:x|x1|x2|cx|width)='(-?[\d.e+-]+)%'", svg)]


def test_a_bar_ends_at_its_value_and_the_line_at_its_interval():
    (chart,) = answer_charts(answer([50, 100], [40, 90], [60, 110], nonnegative=True))
    root = ET.fromstring(chart.svg)
    bars = [float(bar.get("width").rstrip("%")) for bar in root.iter(f"{SVG}rect")]
    lines = [line for group in root.iter(f"{SVG}g") for line in group]
    first, second = lines[0], lines[3]
    assert bars[0] == pytest.approx(bars[1] / 2, abs=0.02)
    scale = bars[1] / 100
    assert float(first.get("x1").rstrip("%")) == pytest.approx(40 * scale, abs=0.02)
    assert float(second.get("x2").rstrip("%")) == pytest.approx(110 * scale, abs=0.02)


def test_numbers_that_may_be_negative_are_points():
    (chart,) = answer_charts(answer([-5, 5], [-7, 3], [-3, 7]))
    assert chart.svg.count("<circle") == 2
    assert "<rect" not in chart.svg


def test_texts_are_escaped_everywhere():
    evil = answer([1], [0], [2], groups=[(EVIL,)], text=EVIL)
    (chart,) = answer_charts(Answer.of(keys=[EVIL], groups=evil.groups, columns=evil.columns))
    assert "<script" not in chart.svg
    assert EVIL in "".join(ET.fromstring(chart.svg).itertext())


def test_what_is_no_number_is_not_drawn():
    assert answer_charts(answer(["a"], [None], [None])) == []
    assert answer_charts(answer([None, math.nan, math.inf, True], [None] * 4, [None] * 4)) == []
    assert answer_charts(Answer.of(keys=[], groups=[], columns={"n": Noisy((), (), ())})) == []


def test_a_long_answer_says_that_it_is_cut():
    many = GROUPS + 5
    (chart,) = answer_charts(answer(range(many), range(many), range(many)))
    assert f"The first {GROUPS} of {many} groups." in chart.words
    assert f"g{GROUPS}:" not in chart.svg


def test_no_style_attribute_and_no_script_is_in_a_chart():
    (chart,) = answer_charts(answer([1, 2], [0, 1], [2, 3]))
    spending = burn_down([0, 5], [0.2, 0.5], now=9, labels=("a", "b"))
    for svg in (chart.svg, spending.svg):
        assert " style=" not in svg
        assert "<style" not in svg


@given(
    st.lists(
        st.tuples(st.floats(allow_nan=False), st.floats(0, 1e300), st.floats(0, 1e300)),
        min_size=1,
        max_size=6,
    ),
    st.booleans(),
)
def test_everything_stays_inside_the_frame(rows, nonnegative):
    values = [value for value, _, _ in rows]
    lo, hi = [v - d for v, d, _ in rows], [v + d for v, _, d in rows]
    for chart in answer_charts(answer(values, lo, hi, nonnegative=nonnegative)):
        ET.fromstring(chart.svg)
        assert all(0 <= number <= 100 for number in percentages(chart.svg))


def test_a_budget_burns_down_to_what_remains():
    chart = burn_down([100, 200], [0.25, 0.5], now=300, labels=(EVIL, "now"))
    root = ET.fromstring(chart.svg)
    (line,) = root.iter(f"{SVG}polyline")
    last = line.get("points").split()[-1].split(",")
    assert [float(number) for number in last] == [70, 50]
    (forecast,) = [each for each in root.iter(f"{SVG}line") if each.get("class") == "forecast"]
    # Half in 70 parts of the width: the rest would take as long again, and is cut off at the edge.
    assert float(forecast.get("x2")) == 100
    assert float(forecast.get("y2")) == pytest.approx(100 * 0.5 * 100 / 70, abs=0.01)
    assert chart.words == "50 % of the budget remains after 2 charges."


@pytest.mark.parametrize(("times", "spent"), [([], []), ([5], [0.0]), ([5, 5], [1.0, 1.0]), ([9], [2.0])])
def test_the_ends_of_a_budget_are_drawn(times, spent):
    chart = burn_down(times, spent, now=5, labels=("a", "b"))
    assert "forecast" not in chart.svg
    assert ET.fromstring(chart.svg).get("role") == "img"
