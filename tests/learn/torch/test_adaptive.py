# SPDX-License-Identifier: Apache-2.0
"""The clipping norm that moves: its price is exact, it finds its quantile, and it never sees the size of a batch."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch

from discreet.errors import BadParameter
from discreet.learn.torch import Adaptive, private
from tests.learn.torch.reference import loop, start_run

LEVELS = pytest.mark.parametrize("exact", [False, True], ids=["float", "exact"])


@pytest.mark.parametrize("noise", [0.3, 1.0, 7.77])
@pytest.mark.parametrize("batch", [1, 16, 512, 10**6])
def test_sum_and_count_together_cost_what_the_plan_says(noise, batch):
    """1/z_Δ² + (½)²/σ² ≤ 1/z², exactly, and not by much less."""
    adaptive = Adaptive()
    spent = (
        1 / Fraction(adaptive.sum_noise(noise, batch)) ** 2
        + Fraction(1, 4) / Fraction(adaptive.count_noise(noise, batch)) ** 2
    )
    assert spent <= 1 / Fraction(noise) ** 2
    assert spent > (1 - Fraction(1, 10**9)) / Fraction(noise) ** 2


def test_the_price_that_is_known():
    assert Adaptive().sum_noise(1.0, 512) == pytest.approx(1.000190785)


def test_a_count_that_would_take_everything():
    with pytest.raises(BadParameter):
        Adaptive(noise=0.4).sum_noise(1.0, 512)
    with pytest.raises(BadParameter):
        start_run(adaptive=Adaptive(noise=0.5))


@pytest.mark.parametrize("name", ["quantile", "rate", "noise", "least"])
@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "1", True])
def test_settings_that_are_none(name, bad):
    with pytest.raises(BadParameter):
        Adaptive(**{name: bad})


@LEVELS
def test_the_norm_goes_where_half_of_the_records_are_below_it(exact):
    """Gradients of norm 5, 15, …, 95: the norm settles near 50, from below and from above."""
    for start in (10.0, 200.0):
        model = torch.nn.Linear(1, 1, bias=False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        records = torch.arange(5.0, 101.0, 10.0)[:, None]
        settings = {"noise": 0.1, "steps": 40, "sampling": "full", "clip": start, "exact": exact}
        run = private(model, optimizer, records, adaptive=Adaptive(rate=0.5, noise=0.5), **settings)
        for x in run:
            run.backward(model(x).sum(1))
            optimizer.step()
        assert 30 < float(run.clip) < 75
        assert run.guarantee == run.plan.guarantee


@LEVELS
def test_an_empty_batch_counts_nobody(exact, monkeypatch):
    """Blanks count neither as below nor as above: the norm is moved by noise alone."""
    nobody = torch.zeros(0, 3), torch.zeros(0).long()
    run, optimizer = start_run(None, nobody, exact=exact, adaptive=True, batch=60)
    moved, original = [], Adaptive.next_clip

    def spy(self, clip, twice, **settings):
        moved.append(int(twice))
        return original(self, clip, twice, **settings)

    monkeypatch.setattr(Adaptive, "next_clip", spy)
    loop(run, optimizer)
    assert moved == [0, 0, 0]


def test_the_norm_has_a_floor():
    adaptive = Adaptive(rate=50.0, least=0.25)
    assert adaptive.next_clip(1.0, 10**6, noise=1.0, batch=100) == 0.25
    assert float(adaptive.next_clip(torch.tensor(1.0), torch.tensor(10**6), noise=1.0, batch=100)) == 0.25


def test_the_noise_follows_the_norm():
    """Half the norm, half the noise: measured on zero gradients."""
    model = torch.nn.Linear(4000, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    run = private(
        model,
        optimizer,
        torch.zeros(30, 4000),
        noise=1.0,
        steps=4,
        batch=30,
        sampling="full",
        adaptive=Adaptive(rate=2),
    )
    for x in run:
        before = float(run.clip)
        run.backward(model(x).sum(1))
        optimizer.step()
        width = float(model.weight.grad.double().std()) * 30
        assert width == pytest.approx(before, rel=0.15)
    assert float(run.clip) < 0.5
