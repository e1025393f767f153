# SPDX-License-Identifier: Apache-2.0
"""What the eye reads from a chart is what was drawn: lines differ, numbers stand as they are, nothing is squeezed away."""

from __future__ import annotations

import itertools
import math
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import plot, privacy
from discreet.plot.canvas import style, upper_bound_text
from discreet.privacy.svg import look, roc_svg, tradeoff_svg

figure = pytest.importorskip("matplotlib.figure")
dates = pytest.importorskip("datetime")

MANY = {f"noise {n:g}": privacy.gaussian(n) for n in (0.5, 0.7, 1, 1.4, 2, 2.8, 4, 5.7, 8, 11, 16, 23, 32)}
LONG = "a name that somebody wrote in whole sentences, because it says what the mechanism does and why it is used"
ATOMS = {
    "coin": privacy.randomized_response(1.0),
    "pure": privacy.pure(0.7),
    "Laplace": privacy.laplace(1.0),
    "two Laplace": 2 * privacy.laplace(1.0),
}


def drawn(chart):
    """The figure as it is laid out on paper."""
    chart.canvas.draw()
    (ax,) = chart.get_axes()
    return ax


def labelled(ax):
    return [line for line in ax.get_lines() if not line.get_label().startswith("_")]


def ticks(axis):
    return [
        label.get_text().replace("\N{MINUS SIGN}", "-") for label in axis.get_ticklabels() if label.get_text()
    ]


# --- lines --------------------------------------------------------------------------------------------


def test_no_two_of_two_hundred_lines_look_alike():
    assert len({look(number) for number in range(200)}) == 200
    for lines in itertools.combinations(map(look, range(6)), 2):
        assert lines[0][0] != lines[1][0]
        assert lines[0][1] != lines[1][1]
    assert len({str(style(number)) for number in range(200)}) == 200


@pytest.mark.parametrize("draw", [plot.roc, plot.tradeoff, plot.epsilon_delta])
def test_thirteen_curves_are_told_apart(draw):
    lines = labelled(draw(MANY).get_axes()[0])
    seen = {(line.get_color(), str(line._unscaled_dash_pattern), line.get_linewidth()) for line in lines}
    assert len(seen) == len(lines) == len(MANY)


@pytest.mark.parametrize("draw", [roc_svg, tradeoff_svg])
def test_thirteen_curves_are_told_apart_without_matplotlib(draw):
    page = ET.fromstring(draw(MANY))
    curves = [part.attrib for part in page.iter() if part.tag.endswith("polyline")]
    kinds = ("stroke", "stroke-dasharray", "stroke-width")
    assert len({tuple(curve.get(kind) for kind in kinds) for curve in curves}) == len(curves) == len(MANY)


@pytest.mark.parametrize(
    "chart",
    [
        lambda: plot.error(epsilons=[1.0]),
        lambda: plot.race(privacy.randomized_response(0.1), runs=[3]),
        lambda: plot.epsilon_delta(privacy.leaky_randomized_response(1.0, 0.05), deltas=[1e-6, 0.1]),
    ],
)
def test_a_line_of_one_point_is_a_dot(chart):
    for line in chart().get_axes()[0].get_lines():
        assert np.isfinite(np.asarray(line.get_ydata(), float)).sum() > 1 or line.get_marker() == "o"


# --- numbers ------------------------------------------------------------------------------------------

WIDTHS = st.sampled_from([1e-6, 1e-3, 0.5, 30.0, 4e4])
MIDDLES = st.sampled_from([0.0, 5.0, -3.25, 1000.001, 123_456.5, 12_345_678.0])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(MIDDLES, WIDTHS), min_size=1, max_size=4))
def test_ticks_are_read_as_they_stand_and_words_keep_the_interval(points):
    values = [middle for middle, _ in points]
    lo, hi = ([middle + sign * width for middle, width in points] for sign in (-1, 1))
    labels = [f"g{place}" for place in range(len(points))]
    chart = plot.groups(labels, values, lo, hi, name="AVG(x)")
    ax = drawn(chart)
    assert ax.xaxis.get_offset_text().get_text() == ""
    shown = [float(tick) for tick in ticks(ax.xaxis)]
    assert shown == pytest.approx(ax.get_xticks().tolist(), rel=1e-4, abs=1e-4 * (max(hi) - min(lo)))
    words = plot.alt_text(chart)
    for label, low, high in zip(labels, lo, hi, strict=True):
        said = re.search(rf"{label} (\S+) \((\S+) to (\S+?)\)", words)
        number, least, most = map(float, said.groups())
        assert least <= number <= most
        assert least <= low < high <= most, "the words hold the interval"
        assert most - least <= 1.2 * (high - low), "and are not much wider"


def test_one_number_has_no_groups_and_no_offset():
    chart = plot.groups(["count"], [12_345_678], [12_345_670], [12_345_686], name="COUNT(*)")
    assert plot.alt_text(chart) == "COUNT(*): count 12345678 (12345670 to 12345686)."
    assert drawn(chart).xaxis.get_offset_text().get_text() == ""


def test_points_without_intervals_do_not_speak_of_them():
    chart = plot.groups(["a", "b"], [1, 2], [None, None], [None, None], name="n")
    assert "interval" not in chart.get_axes()[0].get_xlabel()
    assert plot.alt_text(chart) == "n by group: a 1; b 2."
    assert plot.alt_text(plot.groups(["a"], [None], [None], [None])).endswith("No group has a number.")


def test_what_is_not_put_into_words_is_counted():
    labels, values = [f"g{place}" for place in range(80)], list(range(80))
    words = plot.alt_text(plot.groups(labels, values, values, values))
    assert "; and 48 more. The first 60 of 80 groups." in words


def test_dates_and_texts_are_drawn_and_said():
    day = dates.date(2026, 11, 18)
    assert "2026-11-18 (2026-11-17 to 2026-11-19)" in plot.alt_text(
        plot.groups(["a"], [day], [day.replace(day=17)], [day.replace(day=19)])
    )
    assert (
        plot.alt_text(plot.groups(["x", "y"], ["A", "B"], [None] * 2, [None] * 2))
        == "value by group: x A; y B."
    )


@pytest.mark.parametrize("value", [0.1, 0.30000000000000004, 1e-9, 7.87, 123.4, 1.0000000000000002])
def test_a_bound_in_words_gains_no_digit_from_the_nudge_of_a_float(value):
    assert float(upper_bound_text(math.nextafter(value, math.inf))) == pytest.approx(value, rel=1e-3)
    assert float(upper_bound_text(value)) >= value * (1 - 1e-10)
    assert upper_bound_text(math.nextafter(0.1, 1)) == "0.1"


def test_a_limit_that_is_just_spent_is_not_overspent():
    words = plot.alt_text(plot.burn_down([0.1] * 3, 0.3))
    assert words == "ε remaining: 0 of 0.3 ε remains after 3 spends."
    assert "after 1 spend;" in plot.alt_text(plot.burn_down([0.1], 0.3))


@pytest.mark.parametrize("deltas", [[1e-9, 1e-8], [1e-3, 1e-2], [1e-6]])
def test_words_are_said_of_a_delta_that_is_drawn(deltas):
    words = plot.alt_text(plot.epsilon_delta(privacy.gaussian(2.0), deltas=deltas))
    assert float(re.search(r"δ = (\S+?)\.$", words)[1]) in deltas


# --- atoms --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ATOMS)
def test_the_greatest_loss_is_an_atom_at_epsilon_and_not_beyond_it(name):
    guarantee = ATOMS[name]
    ax = plot.loss(guarantee).get_axes()[0]
    distribution = guarantee.loss()
    names = {line.get_label() for line in labelled(ax)} | {part.get_label() for part in ax.collections}
    assert "beyond ε" not in names
    stems = np.concatenate([part.get_segments() for part in ax.collections if hasattr(part, "get_segments")])
    tops = {round(float(x), 6): float(y) for _, (x, y) in stems}
    greatest = round(guarantee.epsilon(0), 6)
    assert tops[greatest] == pytest.approx(
        float(distribution.masses[np.abs(distribution.losses - greatest) < 1e-6].sum()), rel=1e-3
    )


def test_a_tail_beyond_epsilon_is_still_shown():
    for guarantee, delta in ((privacy.gaussian(2.0), 1e-6), (8 * privacy.randomized_response(1.0), 0.01)):
        ax = plot.loss(guarantee, delta=delta).get_axes()[0]
        assert "beyond ε" in ax.get_legend_handles_labels()[1]


def test_an_infinite_loss_is_in_the_legend_and_the_mean_says_that_it_leaves_it_out():
    chart = plot.loss(privacy.leaky_randomized_response(1.0, 0.1), delta=0.2)
    assert "infinite loss: probability 0.1" in chart.get_axes()[0].get_legend_handles_labels()[1]
    assert "given that the loss is finite" in plot.alt_text(chart)


# --- room ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "chart",
    [
        lambda: plot.roc({LONG: privacy.gaussian(2.0), "coin": privacy.randomized_response(1.0)}),
        lambda: plot.tradeoff({LONG: privacy.gaussian(2.0)}),
        lambda: plot.groups([LONG, "b"], [3, 5], [1, 3], [5, 7]),
        lambda: plot.groups(["a", "b"], [3, 5], [1, 3], [5, 7], name=LONG),
    ],
)
def test_a_long_name_leaves_room_for_what_is_drawn(chart):
    made = chart()
    ax = drawn(made)
    assert ax.get_position().width > 0.5
    assert LONG in plot.alt_text(made), "words are not shortened"


def test_every_point_of_a_group_is_inside_the_axes():
    ax = drawn(plot.groups(["a", "b", "c"], [3, 5, 4], [1, 3, 2], [5, 7, 6]))
    bottom, top = sorted(ax.get_ylim())
    assert bottom < -0.2
    assert top > 2.2


def test_marks_can_be_seen_on_a_dark_ground():
    import matplotlib as mpl

    with mpl.rc_context({"axes.facecolor": "black", "axes.labelcolor": "white"}):
        dark = figure.Figure()
        first, second = dark.subplots(1, 2)
        plot.roc(privacy.gaussian(2.0), points={"here": (0.2, 0.5)}, ax=first)
        plot.loss(privacy.gaussian(2.0), ax=second)
    (dot,) = (line for line in first.get_lines() if line.get_marker() == "o")
    assert dot.get_color() == "white"
    assert all(line.get_color() != "black" for line in second.get_lines())
