# SPDX-License-Identifier: Apache-2.0
"""Adam that knows the noise is AdamW without noise, and unbiased with it."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from discreet.errors import BadParameter
from discreet.learn.torch import Adaptive, CorrectedAdam
from discreet.learn.torch.noise import normals
from tests.learn.torch.reference import loop, small, start_run


def test_without_noise_it_is_adamw():
    one, other = (torch.nn.Parameter(torch.tensor([1.0, -2.0, 3.0])) for _ in range(2))
    ours = CorrectedAdam([one], lr=0.1, weight_decay=0.01)
    theirs = torch.optim.AdamW([other], lr=0.1, eps=0.0, weight_decay=0.01)
    for turn in range(5):
        for parameter, optimizer in ((one, ours), (other, theirs)):
            parameter.grad = parameter.detach() * (turn + 1) + 0.3
            optimizer.step()
    torch.testing.assert_close(one, other)


def test_the_second_moment_is_that_of_the_gradient_without_the_noise():
    """Gradient 0.5 under noise of deviation 2: v̂ − Φ̂ is about 0.25, where Adam sees 4.25."""
    count = 20_000
    parameter = torch.nn.Parameter(torch.zeros(count, dtype=torch.float64))
    optimizer = CorrectedAdam([parameter], lr=0.1, betas=(0.9, 0.99))
    optimizer.noise_variance = 4.0
    for _ in range(200):
        parameter.grad = 0.5 + 2.0 * normals(count)
        optimizer.step()
    whole = 1 - 0.99**200
    found = (
        float(optimizer.state[parameter]["square"].mean()) / whole
        - optimizer.param_groups[0]["variance"] / whole
    )
    assert found == pytest.approx(0.25, abs=0.025)  # 7 standard deviations


def test_noise_that_changes_is_averaged_like_the_squares():
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = CorrectedAdam([parameter], lr=0.1, betas=(0.9, 0.5))
    for variance in (4.0, 0.0):
        optimizer.noise_variance = variance
        parameter.grad = torch.zeros(1)
        optimizer.step()
    assert optimizer.param_groups[0]["variance"] == pytest.approx(1.0)


@pytest.mark.parametrize("adaptive", [False, Adaptive()])
def test_the_run_tells_it_the_variance_of_every_step(adaptive):
    model = small()
    optimizer = CorrectedAdam(model.parameters(), lr=0.01)
    run, _ = start_run(model, optimizer=optimizer, noise=2.0, clip=3.0, batch=12, adaptive=adaptive)
    before = 3.0
    for _ in loop_once(run, optimizer):
        noise = 2.0 if not adaptive else adaptive.sum_noise(2.0, 12)
        assert float(optimizer.noise_variance) == pytest.approx((noise * before / 12) ** 2, rel=1e-5)
        before = float(run.clip)
    assert run.steps == 3


def loop_once(run, optimizer):
    for x, y in run:
        run.backward(cross_entropy(run.model(x), y, reduction="none"))
        optimizer.step()
        yield


def test_it_keeps_its_state():
    model = small()
    optimizer = CorrectedAdam(model.parameters(), lr=0.01)
    run, _ = start_run(model, optimizer=optimizer)
    loop(run, optimizer)
    run.close()
    other = CorrectedAdam(model.parameters(), lr=0.5)
    other.load_state_dict(optimizer.state_dict())
    assert other.param_groups[0]["taken"] == 3
    assert other.param_groups[0]["lr"] == 0.01


@pytest.mark.parametrize(
    "settings", [{"lr": -1}, {"lr": math.nan}, {"betas": (1.0, 0.9)}, {"share": 0}, {"weight_decay": -1}]
)
def test_settings_that_are_none(settings):
    with pytest.raises(BadParameter):
        CorrectedAdam(small().parameters(), **settings)
