# SPDX-License-Identifier: Apache-2.0
"""A run that is resumed counts what was run before, whatever has changed since."""

from __future__ import annotations

import io
import json

import pytest
import torch

from discreet import privacy
from discreet.errors import DiscreetError
from discreet.ledger import Ledger, Limit
from tests.learn.torch.reference import loop, small, start_run

ASKED = {"noise": None, "epsilon": 2, "delta": 1e-5, "steps": 6}


def half(**settings):
    """A run that stopped after three of six steps."""
    run, optimizer = start_run(**(ASKED | settings))
    for turn, (x, y) in enumerate(run, 1):
        run.backward(torch.nn.functional.cross_entropy(run.model(x), y, reduction="none"))
        optimizer.step()
        if turn == 3:
            break
    return run


def refused(**settings):
    with pytest.raises(DiscreetError) as caught:
        start_run(**settings)
    return caught.value.code


def test_a_checkpoint_is_plain_and_holds_no_key():
    run = half()
    state = run.state_dict()
    assert json.loads(json.dumps(state)) == state
    assert set(state) == {"discreet", "steps", "guarantee", "clip", "plan"}
    saved = io.BytesIO()
    torch.save(state, saved)
    saved.seek(0)
    assert torch.load(saved) == state


def test_what_is_left_is_run_and_all_of_it_is_counted():
    first = half()
    resumed, optimizer = start_run(**ASKED, resume=first.state_dict())
    assert resumed.plan.noise == first.plan.noise
    assert resumed.guarantee == first.guarantee
    loop(resumed, optimizer)
    assert resumed.steps == 3
    assert resumed.guarantee == first.plan.guarantee
    assert resumed.epsilon() <= 2
    assert "6 steps" in resumed.explain()


def test_resuming_twice_goes_on_counting():
    first = half()
    second, optimizer = start_run(**ASKED, resume=first.state_dict())
    batches = iter(second)
    x, y = next(batches)
    second.backward(torch.nn.functional.cross_entropy(second.model(x), y, reduction="none"))
    optimizer.step()
    third, last = start_run(**ASKED, resume=second.state_dict())
    loop(third, last)
    assert third.steps == 2
    assert third.guarantee == first.plan.guarantee


def test_another_batch_or_other_noise_is_added_up_as_what_it_was():
    first = half(noise=1.5, epsilon=None, delta=None)
    resumed, optimizer = start_run(noise=1.0, batch=20, steps=6, resume=first.state_dict())
    loop(resumed, optimizer)
    wanted = 3 * privacy.gaussian(1.5).sampled(10 / 60) + 3 * privacy.gaussian(1.0).sampled(20 / 60)
    assert resumed.guarantee == wanted


def test_what_would_exceed_the_target_is_refused():
    first = half(noise=0.7, epsilon=None, delta=None)
    assert refused(**ASKED, resume=first.state_dict()) == "DP914"
    assert (
        refused(
            **(ASKED | {"batch": 40, "noise": 1.0, "epsilon": None, "delta": None, "steps": 2}),
            resume=first.state_dict(),
        )
        == "DP914"
    )


def test_another_unit_or_relation_does_not_add_up():
    state = half().state_dict()
    assert refused(**ASKED, unit="patient", resume=state) == "DP201"
    assert refused(**ASKED, relation="replace", resume=state) == "DP201"


@pytest.mark.parametrize(
    "state",
    [{}, 3, "x", {"discreet": 2}, {"discreet": 1, "steps": 1, "guarantee": "no", "clip": 1.0}],
    ids=str,
)
def test_what_is_no_checkpoint(state):
    assert refused(**ASKED, resume=state) == "DP914"


def test_a_norm_that_moves_goes_on_where_it_was():
    first = half(adaptive=True)
    resumed, _ = start_run(**ASKED, adaptive=True, resume=first.state_dict())
    assert float(resumed.clip) == pytest.approx(float(first.clip))
    fixed, _ = start_run(**ASKED, clip=7.0, resume=half().state_dict())
    assert fixed.clip == 7.0


def test_what_is_left_is_charged_anew():
    """Two runs from one checkpoint show two things, so the ledger is asked for both."""
    ledger = Ledger(":memory:", limit=Limit.filter(epsilon=8, delta=1e-3), unit="record")
    first = half(session=ledger)
    before = len(ledger)
    for _ in range(2):
        resumed, _ = start_run(small(), **ASKED, resume=first.state_dict(), session=ledger)
        assert resumed.receipt.guarantee == 3 * first.plan.one_round()
    assert len(ledger) == before + 2
