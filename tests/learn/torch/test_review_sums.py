# SPDX-License-Identifier: Apache-2.0
"""What a hostile reading of norms and sums found, each as it was."""
# ruff: noqa: ARG004, ARG005 - functions and hooks of torch take what they are given

from __future__ import annotations

import pytest
import torch
from torch import nn

from discreet.errors import RefusedTraining
from discreet.learn.torch.clip import Clipper, _norms, _shares
from discreet.learn.torch.noise import StepNoise
from discreet.learn.torch.pieces.outer import Outer, Signal
from discreet.learn.torch.pieces.rows import TableRows, Tied
from discreet.learn.torch.sums import FloatSums
from tests.learn.torch.reference import data, small, start_run


def clipped(model, losses, x, clip, **named):
    clipper = Clipper(model)
    with clipper.watch():
        return clipper.clipped_sum(losses(model, x), clip=clip, **named)


def norm_of(found):
    return float(torch.stack([g.double().square().sum() for g in found.gradients.values()]).sum().sqrt())


def test_a_hook_that_changes_the_first_gradient_changes_one_pass_only():
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1), torch.randn(4, 3)

    def spoilt(model, x):
        losses = model(x).squeeze(1)
        losses.register_hook(lambda gradient: gradient.mul_(torch.tensor([1e-9, 1.0, 1.0, 9.0])))
        return losses

    def plain(model, x):
        return model(x).squeeze(1)

    before = clipped(model, plain, x, 1e6).norms
    clipped(model, spoilt, x, 1e6)
    assert torch.equal(clipped(model, plain, x, 1e6).norms, before)


class Mixed(nn.Module):
    """Doubles beside single precision, in which cancelling tokens lose their digits."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(512, 512, bias=False), nn.Linear(1, 1, bias=False).double()

    def forward(self, x):
        return self.a(x), self.b(torch.zeros(len(x), 1, dtype=torch.float64))


@pytest.mark.parametrize("apart", [1e-4, 1e-5, 1e-6])
def test_doubles_beside_single_precision_do_not_narrow_its_margins(apart):
    torch.manual_seed(0)
    tokens, signal = torch.randn(4, 8, 512), 1e4 * torch.randn(4, 8, 512)
    x = torch.cat([tokens, tokens + apart * torch.randn(4, 1, 512)], 1)
    g = torch.cat([signal, -signal], 1)

    def losses(model, x):
        wide, narrow = model(x)
        return (wide * g).sum((1, 2)).double() + narrow.squeeze(1)

    for record in range(4):
        assert norm_of(clipped(Mixed(), losses, x, 1.0, weights=torch.eye(4)[record])) <= 1


def test_a_table_that_equals_the_rounding_of_a_tied_layer():
    torch.manual_seed(0)
    a, g = 1000 * torch.randn(1, 8, 8), 1000 * torch.randn(1, 8, 4)
    a, g = torch.cat([a, a.flip(1)], 1), torch.cat([g, -g.flip(1)], 1)
    rounding = Outer(a, Signal(g)).dense()
    tied = Tied(TableRows(torch.arange(4)[None], rounding.clone(), 4), Outer(a, Signal(g)))
    clip = float(rounding.norm())
    found = tied.total(_shares(_norms([tied.measure()], torch.zeros(1)), clip, None))
    assert 0.9 * clip < float(found.norm()) <= clip


@pytest.mark.parametrize(("width", "exponent"), [(256, 105), (64, 120)])
def test_factors_so_small_that_products_lose_their_digits_are_zero(width, exponent):
    outer = Outer(torch.full((1, width), 2.0**-50), Signal(torch.full((1, 1), 2.0**exponent)))
    clip = 2.0**-40
    share = _shares(_norms([outer.measure()], torch.zeros(1)), clip, None)
    assert float(outer.total(share).double().norm()) <= clip


class Greedy(torch.autograd.Function):
    """The identity, which enlarges the gradient of everybody."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient.mul_(100)


class Aliased(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(40, 40), nn.Linear(40, 40)

    def forward(self, x):
        spoiler = Greedy.apply(
            self.b(x)
        )  # made first, so that its backward pass comes after that of the other layer
        return (self.a(x) + spoiler).square().flatten(1).sum(1)


def test_a_gradient_that_is_changed_after_it_was_measured_is_refused():
    with pytest.raises(RefusedTraining, match="changed in place"):
        clipped(Aliased(), lambda model, x: model(x), torch.randn(2, 3, 40), 1.0)


def test_group_norm_in_half_precision_and_with_a_frozen_weight():
    torch.manual_seed(0)
    x, w = torch.randn(4, 8, 6, 6) + 100, torch.randn(4, 8, 6, 6)

    def losses(model, x):
        return (model(x) * w).flatten(1).sum(1)

    layer = nn.GroupNorm(2, 8).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        found = clipped(layer, losses, x.bfloat16(), 1e9).gradients[layer.weight]
    wide = nn.GroupNorm(2, 8).double()
    wanted = torch.autograd.grad(losses(wide, x.bfloat16().double()).sum(), wide.weight)[0]
    assert float((found - wanted).norm() / wanted.norm()) < 0.01
    layer = nn.GroupNorm(2, 8)
    layer.weight.requires_grad_(False)
    torch.testing.assert_close(
        clipped(layer, losses, x, 1e9).gradients[layer.bias], w.sum((0, 2, 3)), rtol=1e-4, atol=1e-4
    )


def test_a_release_of_nothing_is_noise_alone():
    model = small()
    sums = FloatSums(Clipper(model), list(model.parameters()), StepNoise())
    for each in sums._flats:
        each.add({p: torch.full_like(p, 1e9) for p in model.parameters()})
    sums.begin()
    sums.release(noise=1.0, clip=1.0, divide=1.0)
    assert all(float(p.grad.abs().max()) < 100 for p in model.parameters())
    sums.close()


def test_a_hook_that_takes_the_place_of_another_is_tested():
    model = small()
    run, optimizer = start_run(model, data())
    handle = model[0].register_forward_hook(lambda *given: None)
    batches = iter(run)
    x, y = next(batches)
    run.backward(nn.functional.cross_entropy(model(x), y, reduction="none"))
    optimizer.step()
    handle.remove()
    model[0].register_forward_hook(lambda module, given, out: out + out.mean(0).detach())
    x, y = next(batches)
    with pytest.raises(RefusedTraining):
        model(x)
    run.close()


def test_no_positions_at_all():
    layer = nn.Linear(40, 50)
    found = clipped(layer, lambda model, x: model(x).flatten(1).sum(1) + 0, torch.zeros(3, 0, 40), 1.0)
    assert float(found.norms.max()) < 1e-6


def test_squares_that_a_processor_flushes_to_zero_are_not_forgotten():
    torch.set_flush_denormal(True)
    try:
        for width in (2**10, 2**14):
            a, g = torch.full((1, 2, width), 2.0**-63.6), torch.zeros(1, 2, width)
            g[0, 0, 0] = 2.0**63.4
            outer = Outer(a, Signal(g))
            share = _shares(_norms([outer.measure()], torch.zeros(1)), 1.0, None)
            assert float(outer.total(share).double().norm()) <= 1
    finally:
        torch.set_flush_denormal(False)


@pytest.mark.parametrize("layer", [lambda: nn.LayerNorm(6), lambda: nn.GroupNorm(2, 6)])
def test_a_wide_norm_of_narrow_numbers_is_that_of_torch(layer):
    """Its parameters are not rounded to what comes in, unless automatic mixed precision does that."""
    norm, x = layer(), torch.randn(5, 6, dtype=torch.bfloat16)
    with torch.no_grad():
        norm.weight.uniform_(1, 2)
    wanted = norm(x)
    with Clipper(norm).watch():
        assert torch.equal(norm(x), wanted)


def test_a_wide_layer_behind_a_narrow_one_with_positions_is_summed():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 3, dtype=torch.float64)

        def forward(self, x):
            return self.second(self.first(x).double())

    model = Mixed()
    clipper = Clipper(model)
    with clipper.watch():
        found = clipper.clipped_sum(model(torch.randn(7, 3, 4)).square().sum((1, 2)), clip=1.0)
    assert sum(float(each.double().square().sum()) for each in found.gradients.values()) ** 0.5 <= 7.0
    assert all(bool(each.any()) for each in found.gradients.values())


def test_a_release_that_fails_keeps_no_sum():
    class Failing(StepNoise):
        def add_(self, *given, **named):
            raise RuntimeError

    model = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2, dtype=torch.float64)])
    sums = FloatSums(Clipper(model), list(model.parameters()), Failing())
    assert len(sums._flats) == 2
    for flat in sums._flats:
        flat.add({p: torch.ones_like(p) for p in model.parameters()})
    with pytest.raises(RuntimeError):
        sums.release(noise=1.0, clip=1.0, divide=1.0)
    assert all(flat._sum is None for flat in sums._flats)
    assert all(p.grad is None for p in model.parameters())
    sums.close()
