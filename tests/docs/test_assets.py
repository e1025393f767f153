# SPDX-License-Identifier: Apache-2.0
"""The pictures that are kept as files are those that the code draws today."""

from __future__ import annotations

import re
import runpy

import numpy as np
import pytest

from discreet import privacy
from tests.docs.blocks import blocks
from tests.house.project import DOCS, read

ASSETS = DOCS / "assets"
NUMBER = re.compile(r"(?<![\w#])-?\d+(?:\.\d+)?")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("assets")
    runpy.run_path(str(ASSETS / "draw.py"))["draw"](folder)
    return folder


def test_every_picture_is_drawn_by_the_script(drawn):
    kept = {path.name for path in ASSETS.iterdir() if path.suffix in {".svg", ".png"}}
    assert kept == {path.name for path in drawn.iterdir()}


@pytest.mark.parametrize("name", sorted(path.name for path in ASSETS.glob("*.svg")))
def test_a_kept_picture_is_up_to_date(drawn, name):
    old, new = ((folder / name).read_text(encoding="utf-8") for folder in (ASSETS, drawn))
    assert NUMBER.sub("0", old) == NUMBER.sub("0", new), "run  python docs/assets/draw.py"
    # a hundredth of a pixel may round either way on another machine
    assert np.allclose(*([float(n) for n in NUMBER.findall(text)] for text in (old, new)), atol=0.02)


def test_the_explanation_on_the_page_is_what_is_printed():
    page = read(DOCS / "explain" / "what-epsilon-means-for-one-person.md")
    assert blocks(page, "text")[0].text == str(privacy.gaussian(noise=2.0, unit="person").explain())
