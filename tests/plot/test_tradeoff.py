# SPDX-License-Identifier: Apache-2.0
"""A trade-off curve in a file: the right points, in the format that the name asks for."""

from __future__ import annotations

import sys
from xml.etree import ElementTree as ET

import pytest

from discreet import privacy
from discreet.errors import BadParameter, MissingExtra
from discreet.plot import save

FOUR = {
    "randomized response": privacy.randomized_response(1.0),
    "leaky": privacy.leaky(0.1),
    "both": privacy.leaky_randomized_response(1.0, 0.1),
    "Laplace": privacy.laplace(1.0),
}


def test_an_svg_has_a_curve_a_name_and_words_for_each(tmp_path):
    save(FOUR, tmp_path / "four.svg")
    picture = ET.parse(tmp_path / "four.svg").getroot()
    curves = [part for part in picture.iter() if part.tag.endswith("polyline")]
    assert len(curves) == 4
    assert {part.text for part in picture.iter() if part.tag.endswith("text")} >= set(FOUR)
    assert "misses at least" in picture.get("aria-label")


@pytest.mark.parametrize(("ending", "begins"), [(".png", b"\x89PNG"), (".pdf", b"%PDF")])
def test_other_formats_are_drawn_by_matplotlib(tmp_path, ending, begins):
    pytest.importorskip("matplotlib")
    file = tmp_path / f"four{ending}"
    save(FOUR, file)
    assert file.read_bytes().startswith(begins)


def test_without_matplotlib_an_svg_can_be_drawn_and_a_png_cannot(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    save({"": privacy.laplace(1.0)}, tmp_path / "curve.svg")
    assert (tmp_path / "curve.svg").exists()
    with pytest.raises(MissingExtra) as raised:
        save({"": privacy.laplace(1.0)}, tmp_path / "curve.png")
    assert raised.value.code == "DP501"


@pytest.mark.parametrize(
    ("name", "code"), [("curve.gif", "DP105"), ("curve", "DP105"), ("no/curve.svg", "DP102")]
)
def test_a_name_that_cannot_be_used_is_refused(tmp_path, name, code):
    with pytest.raises(BadParameter) as raised:
        save({"": privacy.laplace(1.0)}, tmp_path / name)
    assert raised.value.code == code
