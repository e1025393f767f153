# SPDX-License-Identifier: Apache-2.0
"""One run audits itself: right training is not accused, and each wrong one is."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from torch.nn.functional import cross_entropy

from discreet.audit import one_run
from tests.learn.torch.broken import ClippedAfterAveraging, NotClipped, with_noise_for_the_mean, without_noise
from tests.learn.torch.reference import Reference, data, loop, small, start_run
from tests.statistical.constants import ALPHA

COUNT = 400


def audited(**settings):
    """A run of four full batches; for one record that is a Gaussian mechanism of μ = 0.2."""
    plain = {"noise": 10.0, "steps": 4, "sampling": "full", "batch": 20, "size": 20, "canaries": COUNT}
    run, optimizer = start_run(None, data(20), **(plain | settings))
    loop(run, optimizer)
    return run, one_run(run.canaries.included, run.canaries.scores, delta=1e-9, confidence=1 - ALPHA)


@pytest.mark.parametrize(
    "settings",
    [{}, {"exact": True, "canaries": 60}, {"physical": 50}, {"adaptive": True}],
    ids=["float", "exact", "micro-batches", "adaptive"],
)
def test_right_training_is_not_accused(settings):
    run, report = audited(**settings)
    assert not report.refutes(run.guarantee)
    assert run.guarantee == run.plan.guarantee


def test_right_training_on_drawn_batches_is_not_accused():
    run, report = audited(sampling="poisson", batch=10)
    assert report.epsilon_at_least <= run.epsilon(1e-9)


@pytest.mark.parametrize("break_noise", [without_noise, with_noise_for_the_mean])
def test_noise_that_is_missing_or_too_weak_is_found(break_noise, monkeypatch):
    break_noise(monkeypatch)
    run, report = audited()
    assert report.refutes(run.guarantee)


class ClippedTooWide(Reference):
    """Clips to another norm than the noise is for."""

    def clipped_sum(self, losses, *, clip, weights=None):
        return super().clipped_sum(losses, clip=60 * clip, weights=weights)


@pytest.mark.parametrize(
    ("clipper", "canaries"), [(ClippedAfterAveraging, COUNT), (NotClipped, COUNT), (ClippedTooWide, 200)]
)
def test_records_that_are_not_clipped_each_to_the_norm_of_the_noise_are_found(clipper, canaries):
    run, report = audited(clipper=clipper, canaries=canaries)
    assert report.refutes(run.guarantee)


def test_a_canary_is_clipped_like_a_record_and_seen_through_noise_only():
    """With next to no noise every score is the number of steps, over the divisor, for those that are in."""
    run, _ = audited(noise=0.001, clip=0.5)
    wanted = np.where(run.canaries.included, 4 * 0.5 / 20, 0.0)
    assert np.abs(run.canaries.scores - wanted).max() < 1e-3
    assert stats.binomtest(int(run.canaries.included.sum()), COUNT, 0.5).pvalue > ALPHA


def test_canaries_change_nothing_for_the_records():
    """The gradient of the records is the same with canaries as without, but for noise."""
    torch.manual_seed(0)
    model = small()
    copy = small()
    copy.load_state_dict(model.state_dict())
    moved = []
    for one, canaries in ((model, None), (copy, 50)):
        settings = {"noise": 0.001, "steps": 1, "sampling": "full", "size": 20, "batch": 20, "clip": 0.1}
        run, optimizer = start_run(one, data(20), canaries=canaries, **settings)
        loop(run, optimizer)
        run.close()
        moved.append(torch.cat([p.detach().flatten() for p in one.parameters()]))
    torch.testing.assert_close(*moved, atol=1e-4, rtol=0)


def test_the_losses_of_records_stay_with_them_when_canaries_are_there():
    run, optimizer = start_run(None, data(20), sampling="full", size=20, batch=20, canaries=30)
    for x, y in run:
        assert len(x) == 20 + run.canaries.included.sum()
        run.backward(cross_entropy(run.model(x), y, reduction="none"))
        optimizer.step()
    assert run.canaries.weight.detach().abs().max() == 0
