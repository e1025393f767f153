# SPDX-License-Identifier: Apache-2.0
"""An explanation in numbers that no attacker beats, found by trying every event; and in words that round them up."""

from __future__ import annotations

import json
import re
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest
from mpmath import e, erfinv, findroot, log, mpf, ncdf, sqrt

from discreet import privacy
from discreet.privacy.explain import _chance, _odds_of, _of_hundred, explain
from tests import oracle

P, Q = [0.5, 0.3, 0.15, 0.04, 0.01], [0.1, 0.25, 0.3, 0.15, 0.2]
SMALL = {
    "coin": (privacy.randomized_response(1.0), oracle.randomized_response(1.0)),
    "a coin that is nearly always right": (
        privacy.randomized_response(3.0),
        oracle.randomized_response(3.0),
    ),
    "leaky": (privacy.leaky_randomized_response(0.5, 0.1), oracle.leaky_randomized_response(0.5, 0.1)),
    "five coins": (
        5 * privacy.randomized_response(0.6),
        oracle.composed(*[oracle.randomized_response(0.6)] * 5),
    ),
    "whole numbers": (privacy.discrete_laplace(2, 4), oracle.discrete_laplace(2, 4)),
    "any two distributions": (privacy.pair(P, Q), oracle.atoms(P, Q)),
}
KINDS = {
    "gaussian": privacy.gaussian(2.0),
    "pure": privacy.pure(1.0),
    "weak": privacy.pure(30.0),
    "broken": privacy.leaky(0.999999),
    "training": 100 * privacy.gaussian(1.0).sampled(0.01) + privacy.laplace(10),
    "curve": privacy.concentrated(0.1),
    "patient": privacy.gaussian(1.0, relation="replace", unit="patient"),
}


def events(atoms):
    """(P, Q) of every event, for both ways round."""
    for way in (atoms, oracle.swapped(atoms)):
        for size in range(len(way) + 1):
            for event in combinations(way, size):
                yield sum((p for p, _ in event), mpf(0)), sum((q for _, q in event), mpf(0))


@pytest.mark.parametrize("name", SMALL)
def test_no_event_beats_the_numbers(name):
    guarantee, atoms = SMALL[name]
    told = guarantee.explain()
    found = list(events(atoms))
    guess = max((1 + p - q) / 2 for p, q in found)
    assert guess <= told.right <= guess + 1e-9
    assert max((p for p, q in found if q <= 0.01), default=0) <= told.caught
    caught = max(1 - oracle.miss_rate(way, 0.01) for way in (atoms, oracle.swapped(atoms)))
    assert caught <= told.caught <= caught + 1e-6
    assert max((p for p, q in found if p > 9 * q), default=0) <= told.sure <= 1


@pytest.mark.parametrize(("name", "truth"), [("coin", 0), ("a coin that is nearly always right", 0.9556)])
def test_the_chance_of_certainty_is_where_the_line_leaves_the_curve(name, truth):
    assert SMALL[name][0].explain().sure == pytest.approx(truth, abs=3e-4)


def test_a_gaussian_has_closed_forms():
    told = privacy.gaussian(2.0).explain()
    quantile = lambda p: sqrt(mpf(2)) * erfinv(2 * mpf(p) - 1)  # noqa: E731
    detection = lambda alarm: ncdf(quantile(alarm) + 0.5)  # noqa: E731
    line = findroot(lambda alarm: log(detection(alarm)) - log(9 * alarm), (1e-6, 1e-5), solver="anderson")
    for shown, truth in (
        (told.right, ncdf(mpf("0.25"))),
        (told.caught, detection(0.01)),
        (told.sure, 9 * line),
    ):
        assert truth <= shown <= truth * (1 + 1e-3)
    assert told.never_above == 1


def test_a_greatest_loss_bounds_every_posterior():
    told = privacy.pure(1.0).explain()
    assert e / (1 + e) <= told.never_above <= e / (1 + e) + 1e-12
    assert "never more than 73.2 % sure, odds of 2.8 to 1" in told.sentences[3]
    assert "never" not in privacy.gaussian(2.0).explain().sentences[3]
    both = privacy.randomized_response(3.0).explain().sentences[3]
    assert "at most 95.6 in 100, and is never more than 95.3 % sure" in both


@pytest.mark.parametrize("name", KINDS)
def test_what_is_said_is_not_less_than_what_is_proved(name):
    guarantee = KINDS[name]
    told = guarantee.explain()
    right, caught = (float(re.search(r"at most ([\d.]+)", text)[1]) for text in told.sentences[1:3])
    assert 50 <= 50 * (1 + guarantee.advantage()) <= right <= 50 * (1 + guarantee.advantage()) + 0.11
    assert 100 * (1 - guarantee.tradeoff(0.01)) <= caught <= 100 * (1 - guarantee.tradeoff(0.01)) + 0.11
    assert told.sure <= guarantee.posterior_exceeds(0.9)
    if "1 in " in told.sentences[3]:
        many = int(re.search(r"1 in ([\d,]+)", told.sentences[3])[1].replace(",", ""))
        assert told.sure <= 1 / many


def test_numbers_are_rounded_up():
    assert (_of_hundred(0.5), _of_hundred(0.5 + 1e-12), _of_hundred(1)) == ("50", "50.1", "100")
    assert (_odds_of(0.75), _odds_of(0.7500001), _odds_of(1.0)) == ("3", "3.1", "∞")
    assert _chance(1 / 23_999) == "1 in 23,000"
    assert _chance(0.00999) == "1 in 100"
    assert _chance(0.01) == "1.1 in 100"  # the float is a little more than 1 %


def test_more_runs_never_sound_safer():
    once, often = (k * privacy.laplace(2) for k in (1, 7))
    before, after = once.explain(), often.explain()
    assert before.right < after.right
    assert before.caught < after.caught
    assert before.sure <= after.sure


def test_the_sentences_come_from_the_curve_and_not_from_one_epsilon():
    gaussian, pure = privacy.gaussian(2.0), privacy.pure(privacy.gaussian(2.0).epsilon(delta=1e-6))
    assert gaussian.explain().right < 0.6
    assert pure.explain().right > 0.9


def test_the_relation_and_the_unit_are_in_the_words():
    present = " ".join(privacy.pure(1.0, unit="voter").explain().sentences)
    assert "whether the voter is in the data" in present
    assert "the data with one voter and the same data without that voter" in present
    told = privacy.pure(1.0, unit="voter", relation="replace").explain()
    assert "which of two values the voter has" in told.sentences[1]
    assert any("number of voters counts as public" in text for text in told.not_protected)
    assert not any("public" in text for text in privacy.pure(1.0).explain().not_protected)


def test_what_is_not_protected_and_what_is_assumed_is_said():
    told = explain(privacy.pure(1.0))
    text = str(told)
    assert all(line in text for line in (*told.sentences, *told.not_protected, told.conditions))
    for word in ("group", "guarantee.group(k)", "Other sources", "running times", "decision"):
        assert word in text
    assert "parameters fixed in advance." in told.conditions
    assumed = type(told)(told.unit, 0.6, 0.1, 0.1, 1.0, ("keys are public",))
    assert "it assumes: keys are public." in assumed.conditions


@pytest.mark.parametrize("name", KINDS)
def test_json_says_the_same_as_the_text(name):
    told = KINDS[name].explain()
    found = json.loads(told.to_json())
    assert found == told.to_dict()
    assert found["sentences"] == list(told.sentences)
    assert found["guess"]["right"] == told.right
    assert found["odds"] == {"false_alarm": 0.01, "detection": told.caught}
    assert found["certainty"]["chance"] == told.sure


def test_html_is_well_formed_and_draws_a_hundred_squares():
    told = privacy.gaussian(2.0, unit="<b>voter</b>").explain()
    page = ET.fromstring(told._repr_html_())
    squares = [part for part in page.iter() if part.tag.endswith("rect")]
    assert len(squares) == 100
    assert sum(part.get("fill") != "none" for part in squares) == 60
    assert "<b>voter</b>" in "".join(page.itertext())
    assert [part.text for part in page.iter() if part.tag.endswith("title")] == [
        "At most 60 of 100 guesses are right. A coin toss gets 50 right, above the line."
    ]
