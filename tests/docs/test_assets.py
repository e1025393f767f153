# SPDX-License-Identifier: Apache-2.0
"""The pictures that are kept as files are those that the code draws today."""

from __future__ import annotations

import re
import runpy

import numpy as np
import pytest
from scipy import stats

from discreet import privacy
from tests.docs.blocks import blocks
from tests.house.project import DOCS, read

ASSETS = DOCS / "assets"
NUMBER = re.compile(r"(?<![\w#])-?\d+(?:\.\d+)?")


@pytest.fixture(scope="module")
def script():
    pytest.importorskip("matplotlib")
    return runpy.run_path(str(ASSETS / "draw.py"))


@pytest.fixture(scope="module")
def drawn(script, tmp_path_factory):
    folder = tmp_path_factory.mktemp("assets")
    script["draw"](folder)
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


@pytest.mark.parametrize("name", sorted(path.name for path in ASSETS.glob("*.svg")))
def test_a_kept_picture_is_shown_on_a_page_and_told_in_words(name):
    picture = (ASSETS / name).read_text(encoding="utf-8")
    assert all(re.search(rf"<{tag}>[^<]{{20,}}</{tag}>", picture) for tag in ("title", "desc"))
    pages = "".join(read(page) for page in DOCS.rglob("*.md"))
    assert re.search(rf"!\[[^]]{{20,}}\]\([^)]*assets/{re.escape(name)}\)", pages)


def test_the_lines_that_smooth_sensitivity_is_compared_with_are_right(script):
    """One record moves the mean of those that are left by the range at most; and what a trimmed normal sample varies by."""
    trimmed, count = script["TRIMMED"], len(script["RECORDS"])
    low, high = trimmed.range
    assert script["GLOBAL"] == (high - low) / (count - 2 * trimmed.trim_count(count))
    cut = stats.norm.ppf(0.9)
    kept = 0.8 - 2 * cut * stats.norm.pdf(cut)  # the second moment within the cuts
    variance = (kept + 0.2 * cut**2) / 0.8**2 / count
    assert script["SAMPLING"] == pytest.approx(stats.norm.ppf(0.975) * variance**0.5, rel=1e-4)


def test_the_explanation_on_the_page_is_what_is_printed():
    page = read(DOCS / "explain" / "what-epsilon-means-for-one-person.md")
    assert blocks(page, "text")[0].text == str(privacy.gaussian(noise=2.0, unit="person").explain())
