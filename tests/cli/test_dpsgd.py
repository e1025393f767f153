# SPDX-License-Identifier: Apache-2.0
"""`discreet account dpsgd` turns the words of a training run into the right guarantee."""

from __future__ import annotations

import json

import pytest

from discreet import privacy

RUN = "account dpsgd --n 50000 --batch 512"


def described(done):
    return privacy.from_json(json.dumps(done.object["guarantee"]))


def test_rate_and_steps_follow_from_the_run(discreet):
    done = discreet(f"{RUN} --noise 1.0 --epochs 10 --delta 1e-5 --json")
    # 10 · 50 000 / 512 = 976.56, and the last step is not half a step
    assert described(done) == 977 * privacy.gaussian(1.0).sampled(512 / 50_000)
    assert done.object["training"] == {
        "n": 50_000,
        "batch": 512,
        "rate": 0.01024,
        "steps": 977,
        "noise": 1.0,
        "scheme": "poisson",
    }
    assert done.object["delta"] == 1e-5


@pytest.mark.parametrize(
    ("words", "steps"), [("--epochs 0.1", 10), ("--epochs 0.3", 30), ("--epochs 1e-9", 1), ("--steps 7", 7)]
)
def test_part_of_an_epoch_is_counted_exactly(discreet, words, steps):
    done = discreet(f"account dpsgd --n 1000 --batch 10 --noise 1 {words} --json")
    assert done.object["training"]["steps"] == steps


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("scheme", ["poisson", "without-replacement"])
def test_noise_is_in_clipping_norms_whatever_the_relation(discreet, scheme, relation):
    done = discreet(f"{RUN} --noise 2 --steps 10 --scheme {scheme} --relation {relation} --json")
    assert described(done) == 10 * privacy.gaussian(2.0).sampled(0.01024, scheme, relation)


def test_a_replaced_record_moves_the_sum_by_two_norms(discreet):
    full = "account dpsgd --n 100 --batch 100 --noise 2 --steps 1 --delta 1e-6 --json"
    removed = discreet(full).object["epsilon"]
    replaced = discreet(full.replace("--json", "--relation replace --json")).object["epsilon"]
    assert removed == pytest.approx(privacy.gaussian(2.0).epsilon(1e-6), rel=1e-6)
    assert replaced == pytest.approx(privacy.gaussian(1.0).epsilon(1e-6), rel=1e-3)


def test_without_delta_one_is_chosen_and_said(discreet):
    assert discreet(f"{RUN} --noise 1 --steps 10 --json").object["delta"] == 1e-6
    assert "1e-06, at most a tenth of 1/n" in discreet(f"{RUN} --noise 1 --steps 10").words
    assert "a tenth of 1/n" not in discreet(f"{RUN} --noise 1 --steps 10 --delta 1e-5").words


def test_the_answer_says_all_that_a_report_needs(discreet):
    words = discreet(f"{RUN} --noise 1.0 --epochs 10 --delta 1e-5").words
    bound = (977 * privacy.gaussian(1.0).sampled(0.01024)).bound(delta=1e-5)
    low, high = words.partition("certified ")[2].split(" by ")[0].split(" ≤ ε ≤ ")
    assert bound.lower - 1e-4 < float(low) <= bound.lower <= bound.upper <= float(high) < bound.upper + 1e-4
    for part in (
        "50,000 records",
        "rate 0.01024",
        "977",
        "(Poisson)",
        "shuffled list are not such samples",
        "one record added or removed",
        "with 1 % false alarms misses at least",
    ):
        assert part in words


def test_the_least_noise_for_a_target(discreet):
    done = discreet(f"{RUN} --epochs 10 --epsilon 1 --delta 1e-5 --json")
    noise = done.object["calibrated"]["value"]
    train = lambda z: 977 * privacy.gaussian(z).sampled(0.01024)  # noqa: E731
    assert train(noise).implies(privacy.approximate(1.0, 1e-5))
    assert not train(noise * (1 - 1e-5)).implies(privacy.approximate(1.0, 1e-5))
    assert done.object["calibrated"] == {"flag": "--noise", "parameter": "noise", "value": noise}


def test_the_most_steps_for_a_target(discreet):
    done = discreet(f"{RUN} --noise 1.0 --epsilon 1 --delta 1e-5")
    most = int(done.words.partition("steps ")[2].split()[0].replace(",", ""))
    step = privacy.gaussian(1.0).sampled(0.01024)
    assert (most * step).implies(privacy.approximate(1.0, 1e-5))
    assert not ((most + 1) * step).implies(privacy.approximate(1.0, 1e-5))
