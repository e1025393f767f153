# SPDX-License-Identifier: Apache-2.0
"""What is drawn is what the views say, in every chart; and every chart has words."""

from __future__ import annotations

import math
import sys
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from discreet import plot, privacy
from discreet.errors import BadParameter, MissingExtra
from discreet.plot.attacker import certified_misses
from discreet.plot.canvas import upper_bound_text
from discreet.plot.spread import histogram
from tests import oracle

figure = pytest.importorskip("matplotlib.figure")

COIN, BELL = privacy.randomized_response(1.0), privacy.gaussian(2.0)
CURVES = {"coin": COIN, "bell": BELL, "training": 100 * privacy.gaussian(1.0).sampled(0.02)}
ALL = {
    "tradeoff": lambda ax=None: plot.tradeoff(CURVES, ax=ax),
    "roc": lambda ax=None: plot.roc(CURVES, points={"here": (0.2, 0.5)}, ax=ax),
    "epsilon_delta": lambda ax=None: plot.epsilon_delta({"coin": COIN, "bell": BELL}, ax=ax),
    "loss": lambda ax=None: plot.loss(CURVES["training"], ax=ax),
    "loss of atoms": lambda ax=None: plot.loss(8 * COIN, delta=0.01, ax=ax),
    "race": lambda ax=None: plot.race(privacy.randomized_response(0.1), runs=[1, 10, 50], ax=ax),
    "noise": lambda ax=None: plot.noise(1.0, ax=ax),
    "error": lambda ax=None: plot.error({"1/ε": lambda epsilon: 1 / epsilon}, ax=ax),
    "burn_down": lambda ax=None: plot.burn_down([0.1, 0.2], 1.0, ax=ax),
}


def lines(chart):
    """The labelled lines of a figure."""
    (ax,) = chart.get_axes()
    return {line.get_label(): line for line in ax.get_lines() if not line.get_label().startswith("_")}


@pytest.mark.parametrize("name", ALL)
def test_every_chart_has_words_and_is_valid_svg(name):
    chart = ALL[name]()
    words = plot.alt_text(chart)
    assert len(words) > 40
    assert words.endswith(".")
    assert "nan" not in words
    drawn = ET.fromstring(chart._repr_svg_())
    assert drawn.get("aria-label") == words
    assert any(part.tag.endswith("desc") and part.text in words for part in drawn.iter() if part.text)


@pytest.mark.parametrize("name", ALL)
def test_every_chart_goes_into_given_axes(name):
    mine = figure.Figure()
    left, right = mine.subplots(1, 2)
    assert ALL[name](ax=left) is mine
    first = plot.alt_text(mine)
    ALL[name](ax=right)
    assert len(plot.alt_text(mine)) > 1.9 * len(first)
    part = figure.Figure().subfigures(1, 2)[0]
    assert ALL[name](ax=part.add_subplot()) is part.figure


@pytest.mark.parametrize("name", ALL)
def test_every_chart_asks_for_matplotlib_where_there_is_none(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra) as raised:
        ALL[name]()
    assert raised.value.code == "DP501"


@pytest.mark.parametrize("name", ["tradeoff", "roc", "race"])
def test_lines_differ_in_colour_and_in_dash(name):
    drawn = lines(ALL[name]()).values()
    assert len({line.get_color() for line in drawn}) == len(drawn)
    assert len({str(line._unscaled_dash_pattern) for line in drawn}) == len(drawn)


@pytest.mark.parametrize("name", CURVES)
def test_the_attackers_curve_is_the_view(name):
    guarantee = CURVES[name]
    misses, found = lines(plot.tradeoff(CURVES))[name], lines(plot.roc(CURVES))[name]
    assert np.array_equal(found.get_ydata(), guarantee.roc(401).detection)
    assert np.allclose(misses.get_ydata(), 1 - found.get_ydata(), rtol=0, atol=1e-15)
    for at in (0, 37, 200, 350, 400):
        alarm, missed = misses.get_xdata()[at], misses.get_ydata()[at]
        assert missed <= guarantee.tradeoff(float(alarm)) + 1e-9


def test_a_named_point_is_where_it_should_be():
    (ax,) = plot.tradeoff(COIN, points={"here": (0.2, 0.5)}).get_axes()
    dots = [line for line in ax.get_lines() if line.get_marker() == "o"]
    assert [(*dot.get_xdata(), *dot.get_ydata()) for dot in dots] == [(0.2, 0.5)]
    assert [text.get_text() for text in ax.texts] == ["here"]


@pytest.mark.parametrize(
    "guarantee",
    [COIN, BELL, privacy.laplace(1.0), privacy.leaky_randomized_response(1.0, 0.1), 3 * privacy.laplace(2.0)],
    ids=repr,
)
def test_the_certified_band_holds_the_truth_and_is_narrow(guarantee):
    alarms = np.linspace(0, 1, 101)
    above = certified_misses(guarantee, alarms)
    below = np.array([guarantee.tradeoff(float(alarm)) for alarm in alarms])
    assert np.all(above >= below - 1e-9)
    assert np.max((above - below)[1:]) < 0.02


def test_the_certified_band_is_above_exact_curves():
    for alarm in (0.0, 0.01, 0.1, 0.3, 0.5, 0.9, 1.0):
        exact = oracle.miss_rate(oracle.composed(*[oracle.randomized_response(0.5)] * 3), alarm)
        assert certified_misses(3 * privacy.randomized_response(0.5), np.array([alarm]))[0] >= exact - 1e-12


def test_bands_are_drawn_between_their_two_curves():
    band = plot.Band([0, 0.5, 1], [0, 0.6, 1], [0.1, 0.8, 1], name="audit")
    (ax,) = plot.tradeoff(COIN, bands=[band], certified=True).get_axes()
    certified, audit = (shade.get_paths()[0].vertices for shade in ax.collections)
    assert {(0.5, 0.4), (0.5, 0.2)} <= {(round(x, 9), round(y, 9)) for x, y in audit}
    assert certified[:, 1].max() <= 1
    assert "Shaded: audit." in plot.alt_text(plot.roc(COIN, bands=[band]))


def test_epsilon_is_drawn_where_it_is_finite():
    leaky = privacy.leaky_randomized_response(1.0, 1e-4)
    chart = plot.epsilon_delta({"leaky": leaky}, deltas=[1e-6, 1e-3, 0.1], certified=True)
    drawn = lines(chart)["leaky"].get_ydata()
    assert math.isnan(drawn[0])
    assert drawn[1:].tolist() == [leaky.epsilon(1e-3), leaky.epsilon(0.1)]
    assert "ε of leaky is infinite at δ = 1e-06, and at most 0.9988 at δ = 0.001" in plot.alt_text(chart)


def test_the_loss_keeps_its_mass_and_its_mean():
    distribution = CURVES["training"].loss()
    edges, heights = histogram(distribution)
    assert 1 - 1e-8 < float((heights * np.diff(edges)).sum()) <= 1 + 1e-12
    middle = (edges[1:] + edges[:-1]) / 2
    assert float((heights * np.diff(edges) * middle).sum()) == pytest.approx(
        distribution.mean, abs=edges[1] - edges[0]
    )
    drawn = {label: line.get_xdata()[0] for label, line in lines(plot.loss(CURVES["training"])).items()}
    assert any(label.startswith("mean") and x == distribution.mean for label, x in drawn.items())
    epsilon = CURVES["training"].epsilon(1e-6)
    assert any(label.startswith("ε =") and x == epsilon for label, x in drawn.items())


def test_every_runner_is_its_route():
    coin = privacy.randomized_response(0.1)
    drawn = lines(plot.race(coin, runs=[1, 10, 50]))
    for label, route in {
        "basic": "basic",
        "advanced": "advanced",
        "zCDP": "zcdp",
        "Rényi": "renyi improved",
        "optimal (knows only ε, δ)": "optimal",
        "exact": None,
    }.items():
        expected = [(k * coin).epsilon(1e-6, route=route) for k in (1, 10, 50)]
        assert drawn[label].get_ydata().tolist() == expected
    assert set(lines(plot.race(privacy.gaussian(10.0), most=9))) == {"basic", "zCDP", "Rényi", "exact"}


def test_densities_have_mass_one_and_the_ratio_that_epsilon_allows():
    (ax,) = plot.noise(0.5, delta=1e-3, sensitivity=2.0).get_axes()
    here, shifted, *_ = ax.get_lines()
    ratio = np.log(here.get_ydata() / shifted.get_ydata())
    assert np.abs(ratio).max() == pytest.approx(0.5)
    for line in ax.get_lines():
        assert np.trapezoid(line.get_ydata(), line.get_xdata()) == pytest.approx(1, abs=0.02)


def test_the_error_is_that_of_the_mechanisms():
    from discreet.mechanisms.additive import Laplace

    drawn = lines(plot.error(epsilons=[0.5, 2.0], confidence=0.9))
    expected = [Laplace(epsilon=epsilon, sensitivity=1.0).error(0.9) for epsilon in (0.5, 2.0)]
    assert drawn["Laplace, δ = 0"].get_ydata().tolist() == expected
    assert len(drawn) == 2


def test_what_is_left_is_the_limit_less_what_was_spent():
    chart = plot.burn_down([0.25, 0.25], 1.0, when=[0, 4], time="days")
    drawn = lines(chart)
    assert drawn["ε remaining"].get_ydata().tolist() == [1, 0.75, 0.5, 0.5]
    assert drawn["at this pace"].get_xdata()[-1] == 8
    assert "0.5 of 1 ε remains after 2 spends; at this pace nothing remains at 8 days" in plot.alt_text(chart)
    assert "overspent by 0.5" in plot.alt_text(plot.burn_down([1.5], 1.0))
    assert "at this pace" not in lines(plot.burn_down([], 1.0))


def test_words_round_bounds_up():
    assert (upper_bound_text(2.12501), upper_bound_text(2.125), upper_bound_text(math.inf)) == (
        "2.126",
        "2.125",
        "∞",
    )


@pytest.mark.parametrize(
    ("draw", "code"),
    [
        (lambda: plot.roc([COIN]), "DP104"),
        (lambda: plot.roc({}), "DP107"),
        (lambda: plot.roc({"a": 1}), "DP104"),
        (lambda: plot.roc(COIN, points={"x": (2, 0.5)}), "DP102"),
        (lambda: plot.roc(COIN, points={"x": (0.5, True)}), "DP104"),
        (lambda: plot.Band([0, 1], [0], [1]), "DP107"),
        (lambda: plot.Band([0, 1], [0, 1], [0, 0.5]), "DP107"),
        (lambda: plot.Band([1, 0], [0, 1], [0, 1]), "DP107"),
        (lambda: plot.Band([0, 2], [0, 1], [0, 1]), "DP102"),
        (lambda: plot.Band([0, math.nan], [0, 1], [0, 1]), "DP101"),
        (lambda: plot.epsilon_delta(COIN, deltas=[0]), "DP102"),
        (lambda: plot.loss(COIN, delta=1), "DP102"),
        (lambda: plot.race(COIN, most=0), "DP102"),
        (lambda: plot.race(COIN, runs=[1.5]), "DP103"),
        (lambda: plot.noise(0), "DP102"),
        (lambda: plot.noise("1"), "DP104"),
        (lambda: plot.error(epsilons=[-1]), "DP102"),
        (lambda: plot.error(confidence=1), "DP102"),
        (lambda: plot.error({"a": lambda _: math.nan}), "DP101"),
        (lambda: plot.burn_down([0.1], 0), "DP102"),
        (lambda: plot.burn_down([-0.1], 1), "DP102"),
        (lambda: plot.burn_down([math.inf], 1), "DP101"),
        (lambda: plot.burn_down([0.1], 1, when=[1, 2]), "DP107"),
        (lambda: plot.burn_down([0.1, 0.1], 1, when=[2, 1]), "DP107"),
        (lambda: plot.alt_text(COIN), "DP104"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_code(draw, code):
    with pytest.raises(BadParameter) as raised:
        draw()
    assert raised.value.code == code
