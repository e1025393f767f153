# SPDX-License-Identifier: Apache-2.0
"""More loops that look harmless: settings, buffers, copies, failures, and what cannot be clipped."""

from __future__ import annotations

import copy
import io

import pytest
import torch
from torch import nn

from discreet import testing
from discreet.errors import BadParameter, RefusedTraining
from discreet.learn.torch import Adaptive, CorrectedAdam, private
from tests.learn.torch.test_review import X, Y, begun, check_refused, losses, trained


def test_a_rate_that_is_a_tensor_may_not_count_micro_batches():
    model = nn.Linear(4, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.1), foreach=False)
    _, _, run = begun(model, optimizer=optimizer, physical=4)
    batches = iter(run)
    run.backward(losses(model, *next(batches)))
    optimizer.step()
    optimizer.param_groups[0]["lr"].mul_(0.5)
    run.backward(losses(model, *next(batches)))
    with pytest.raises(RefusedTraining, match="DP916"):
        optimizer.step()


class Counter(nn.Linear):
    def __init__(self):
        super().__init__(4, 2)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return super().forward(x)


def test_a_buffer_that_counts_micro_batches_is_refused():
    check_refused("DP922", Counter(), physical=4)
    assert trained(*begun(Counter())).steps == 3


def test_repeatable_noise_is_seen_when_it_is_drawn():
    model, optimizer, run = begun(steps=1)
    for x, y in run:
        run.backward(losses(model, x, y))
        with testing.seeded(1):
            optimizer.step()
    assert not run.private


def test_copies_of_a_model_hold_nothing_of_its_run():
    model, _, _ = begun()
    stored = io.BytesIO()
    torch.save(model, stored)
    stored.seek(0)
    for twin in (copy.deepcopy(model), torch.load(stored, weights_only=False)):
        hooks = [*twin._forward_pre_hooks.values(), *twin._forward_hooks.values()]
        assert all(hook._function.__name__ == "_nothing" for hook in hooks)
        assert twin(X).shape == (16, 2)


def test_a_backward_pass_that_failed_is_followed_by_no_step():
    model, optimizer, run = begun()

    def fail(gradient):
        raise MemoryError

    for x, y in run:
        found = losses(model, x, y)
        found.register_hook(fail)
        with pytest.raises(MemoryError):
            run.backward(found)
        with pytest.raises(RefusedTraining, match="DP911"):
            optimizer.step()
        break


def test_no_record_is_read_before_it_is_paid_for():
    class Refuses:
        def charge(self, guarantee, question):
            raise LookupError

    class Data:
        def __len__(self):
            return 16

        def __getitem__(self, place):
            raise AssertionError

    model = nn.Linear(4, 2)
    with pytest.raises(LookupError):
        begun(model, Data(), session=Refuses())


def test_what_is_not_proved_is_refused():
    with pytest.raises(BadParameter, match="DP104"):
        begun(nn.Linear(4, 2).half())
    model = nn.Linear(4, 1)
    _, _, run = begun(model, X, exact=True)
    with pytest.raises(RefusedTraining, match="DP916"):
        begun(model, X, exact=True)
    run.close()
    assert Adaptive(rate=50.0).next_clip(2.0**39, -(10**6), noise=1.0, batch=16) == 2.0**40


def test_second_derivatives_are_refused():
    def penalty(model, x, y):
        x = x.clone().requires_grad_()
        (found,) = torch.autograd.grad(losses(model, x, y).sum(), x, create_graph=True)
        return found.square().sum(1)

    check_refused("DP921", nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2)), penalty)


def test_gradients_at_inputs_are_allowed():
    def attacked(model, x, y):
        near = x.clone().requires_grad_()
        (found,) = torch.autograd.grad(losses(model, near, y).sum(), near)
        return losses(model, x + 0.1 * found.sign(), y)

    model, optimizer, run = begun()
    assert trained(model, optimizer, run, attacked).steps == 3


@pytest.mark.parametrize(
    "freeze", [lambda p: p.requires_grad_(False), lambda p: setattr(p, "requires_grad", False)]
)
def test_freezing_during_a_run_is_refused(freeze):
    model, _, run = begun()
    with pytest.raises(RefusedTraining, match="DP921"):
        freeze(model.weight)
    run.close()
    freeze(model.weight)
    assert not model.weight.requires_grad


def test_two_optimizers_with_settings_of_their_own_and_micro_batches():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    both = [CorrectedAdam(model[0].parameters()), CorrectedAdam(model[1].parameters())]
    run = private(model, both, (X, Y), noise=1.0, steps=3, batch=16, size=16, sampling="full", physical=4)
    for x, y in run:
        run.backward(losses(model, x, y))
        for optimizer in both:
            optimizer.step()
    assert run.steps == 3


@pytest.mark.parametrize("compiled", [lambda m: torch.compile(m, backend="eager"), lambda m: m])
def test_a_compiled_model_is_refused(compiled):
    model, _, run = begun()
    called = compiled(model)
    if called is model:
        model.compile(backend="eager")
    x, _ = next(iter(run))
    with pytest.raises(Exception, match="DP921"):
        called(x)
