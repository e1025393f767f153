# SPDX-License-Identifier: Apache-2.0
"""`--explain` says what the guarantee says of itself; `--plot-kind` draws what it names."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from discreet import privacy
from discreet.cli.figures import KINDS

LINE = "account '5 * laplace(2)'"
GUARANTEE = 5 * privacy.laplace(2)


def test_the_sentences_are_those_of_the_guarantee(discreet):
    words, told = discreet(f"{LINE} --explain").words, GUARANTEE.explain()
    assert all(text in words for text in (*told.sentences, *told.not_protected, told.conditions))
    assert "in words" not in discreet(LINE).words


def test_json_holds_the_explanation_if_it_was_asked_for(discreet):
    assert discreet(f"{LINE} --explain --json").object["explanation"] == GUARANTEE.explain().to_dict()
    assert discreet(f"{LINE} --json").object["explanation"] is None


def test_a_training_run_is_explained_too(discreet):
    line = "account dpsgd --n 1000 --batch 100 --noise 2 --steps 10 --unit patient --explain"
    assert "whether the patient is in the data" in discreet(line).words
    assert discreet(f"{line} --json").object["explanation"]["protects"] == "patient"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_picture_is_drawn(discreet, tmp_path, kind):
    pytest.importorskip("matplotlib")
    file = tmp_path / "picture.svg"
    done = discreet(f"{LINE} --plot {file} --plot-kind {kind} --json")
    assert (done.code, done.object["plot"]) == (0, str(file))
    picture = ET.parse(file).getroot()
    assert {
        "tradeoff": "Trade-off curve",
        "roc": "ROC curve",
        "epsilon-delta": "ε for each δ",
        "loss": "privacy loss of 5 * laplace",
        "race": "run 5 times",
    }[kind] in picture.get("aria-label")


def test_what_ran_once_races_against_itself(discreet, tmp_path):
    pytest.importorskip("matplotlib")
    done = discreet(f"account 'gaussian(9)' --delta 0 --plot {tmp_path}/race.svg --plot-kind race")
    assert done.code == 0
    assert "run 100 times, at δ = 1e-06" in (tmp_path / "race.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("flags", "code"), [("--plot-kind roc", "DP107"), ("--plot x.svg --plot-kind pie", "DP105")]
)
def test_a_picture_that_cannot_be_drawn_is_refused(discreet, flags, code):
    done = discreet(f"{LINE} {flags}")
    assert done.code == 2
    assert done.err.startswith(code)


@pytest.mark.parametrize("flags", ["--plot-kind pie", "--plot x.svg --plot-kind pie"])
def test_the_fix_of_an_unknown_picture_can_be_pasted(discreet, flags):
    told = discreet(f"{LINE} {flags}").err
    assert "Fix    --plot-kind tradeoff" in told
    assert "plot_kind" not in told
