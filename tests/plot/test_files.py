# SPDX-License-Identifier: Apache-2.0
"""A chart in a file: the right points and words, in the format that the name asks for."""

from __future__ import annotations

import json
import subprocess
import sys
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from discreet import plot, privacy
from discreet.errors import BadParameter, MissingExtra
from discreet.plot import save
from tests.chance import no_chance

FOUR = {
    "randomized response": privacy.randomized_response(1.0),
    "leaky": privacy.leaky(0.1),
    "both": privacy.leaky_randomized_response(1.0, 0.1),
    "Laplace": privacy.laplace(1.0),
}


def parts(chart, tag):
    return [part for part in chart.iter() if part.tag.rpartition("}")[2] == tag]


def test_an_svg_has_a_curve_a_name_and_words_for_each(tmp_path):
    save(FOUR, tmp_path / "four.svg")
    chart = ET.parse(tmp_path / "four.svg").getroot()
    assert len(parts(chart, "polyline")) == 4
    assert {part.text for part in parts(chart, "text")} >= set(FOUR)
    assert len({(part.get("stroke"), part.get("stroke-dasharray")) for part in parts(chart, "polyline")}) == 4
    assert chart.get("role") == "img"
    assert "misses at least 88.9 %" in chart.get("aria-label")
    assert parts(chart, "desc")[0].text in chart.get("aria-label")


@pytest.mark.parametrize(("draw", "rising"), [(plot.tradeoff_svg, False), (plot.roc_svg, True)])
@pytest.mark.parametrize("guarantee", FOUR.values(), ids=FOUR)
def test_the_curve_without_matplotlib_is_the_view(guarantee, draw, rising):
    line = parts(ET.fromstring(draw({"": guarantee}, size=400)), "polyline")[0].get("points")
    across, down = np.array([point.split(",") for point in line.split()], dtype=float).T
    false_alarm, height = (across - 52) / 338, 1 - (down - 10) / 338
    for alarm, shown in zip(false_alarm, height, strict=True):
        missed = guarantee.tradeoff(min(max(alarm, 0), 1))
        slack = 0.06 / 338 * 5  # a hundredth of a pixel, either way, on a slope of at most e
        assert abs(shown - (1 - missed if rising else missed)) < slack or alarm < 1e-4


def test_words_round_to_the_safe_side():
    told = plot.roc_svg(FOUR)
    for detected in ("2.8 %", "11.1 %", "12.8 %"):  # 2.718…, 11 and a little more, 12.718…
        assert f"detects at most {detected} at 1 % false alarms" in told
    assert "misses at least 97.2 %" in plot.tradeoff_svg(FOUR)  # 97.281…


def test_a_long_name_goes_below_the_square():
    short, long = (ET.fromstring(plot.roc_svg({name: FOUR["leaky"]})) for name in ("leaky", "leaky " * 9))
    assert (short.get("height"), int(long.get("height")) > 200) == ("200", True)
    assert float(parts(long, "text")[0].get("y")) > 200


def test_names_are_escaped():
    chart = ET.fromstring(plot.roc_svg({"a < b & 'c'": FOUR["leaky"]}))
    assert "a < b & 'c'" in [part.text for part in parts(chart, "text")]


def test_a_figure_carries_its_words_into_every_format(tmp_path):
    pytest.importorskip("matplotlib")
    figure = plot.roc(FOUR)
    assert plot.alt_text(figure).startswith("ROC curve")
    save(figure, tmp_path / "four.svg")
    chart = ET.parse(tmp_path / "four.svg").getroot()
    assert chart.get("aria-label") == plot.alt_text(figure)
    assert chart.get("role") == "img"
    assert parts(chart, "desc")[0].text.startswith("against randomized response the best attacker detects")
    save(figure, tmp_path / "four.png")
    assert b"against randomized response" in (tmp_path / "four.png").read_bytes()
    assert plot.roc(FOUR)._repr_svg_() == (tmp_path / "four.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(("ending", "begins"), [(".png", b"\x89PNG"), (".pdf", b"%PDF")])
@pytest.mark.parametrize("kind", ["tradeoff", "roc"])
def test_other_formats_are_drawn_by_matplotlib(tmp_path, ending, begins, kind):
    pytest.importorskip("matplotlib")
    file = tmp_path / f"four{ending}"
    save(FOUR, file, kind)
    assert file.read_bytes().startswith(begins)


def test_without_matplotlib_an_svg_can_be_drawn_and_a_png_cannot(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for kind in ("tradeoff", "roc"):
        save(privacy.laplace(1.0), tmp_path / f"{kind}.svg", kind)
        assert (tmp_path / f"{kind}.svg").exists()
    with pytest.raises(MissingExtra) as raised:
        save({"": privacy.laplace(1.0)}, tmp_path / "curve.png")
    assert raised.value.code == "DP501"


@pytest.mark.parametrize(
    ("what", "name", "kind", "code"),
    [
        (FOUR, "curve.gif", "roc", "DP105"),
        (FOUR, "curve", "roc", "DP105"),
        (FOUR, "no/curve.svg", "roc", "DP102"),
        (FOUR, "curve.svg", "loss", "DP105"),
        ({}, "curve.svg", "roc", "DP107"),
        ({"a": 1.0}, "curve.svg", "roc", "DP104"),
        ("curve", "curve.svg", "roc", "DP104"),
        (None, "curve.png", "roc", "DP104"),
    ],
)
def test_what_cannot_be_saved_is_refused(tmp_path, what, name, kind, code):
    with pytest.raises(BadParameter) as raised:
        save(what, tmp_path / name, kind)
    assert raised.value.code == code


@no_chance("a figure of a guarantee draws nothing")
def test_matplotlib_is_loaded_by_the_first_picture_and_not_before():
    program = (
        "import sys, json, discreet, discreet.plot\n"
        "discreet.plot.roc_svg({'': discreet.privacy.laplace(1)})\n"
        "print(json.dumps([name for name in sys.modules if name.startswith('matplotlib')]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
