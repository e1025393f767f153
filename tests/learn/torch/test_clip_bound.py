# SPDX-License-Identifier: Apache-2.0
"""No record adds more than the clip: not by rounding, not by cancelling, not by numbers that are none."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from discreet.errors import BadParameter, RefusedTraining
from discreet.learn.torch.clip import Clipper, _norms, _shares
from discreet.learn.torch.pieces.base import Measure, Share, unit_of
from discreet.learn.torch.pieces.outer import Outer, Signal, measure_together
from discreet.learn.torch.pieces.patches import PatchProducts
from discreet.learn.torch.rules.convolution import _window
from tests.learn.torch.brute import clipped, wavy

pytestmark = pytest.mark.usefixtures("seeded")


def cancelling(records, positions, inputs, outputs, dtype):
    """Tokens whose gradients nearly cancel: what is left is small against what is added up."""
    a, g = torch.randn(records, positions, inputs), torch.randn(records, positions, outputs)
    half = positions // 2
    a[:, half:] = a[:, :half]
    g[:, half:] = -g[:, :half] * (1 - 2.0**-6)
    return a.to(dtype), g.to(dtype)


def added(outer: Outer, factors: torch.Tensor) -> torch.Tensor:
    """The norm of what each record really adds, others having factor 0."""
    alone = torch.diag(factors)
    return torch.stack([outer.total(Share(row)).double().norm() for row in alone])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("inputs", "outputs"), [(64, 64), (6, 5)])  # Gram matrices, and gradients
def test_what_cancelling_tokens_add_is_within_the_clip(dtype, inputs, outputs):
    a, g = cancelling(16, 16, inputs, outputs, dtype)
    outer = Outer(a, Signal(g))
    factors = _shares(_norms([outer.measure()], torch.zeros(16)), 1.0, None).factors
    norms = added(outer, factors)
    assert float(norms.max()) <= 1.0
    assert float(norms.max()) > 0.02  # and not by adding nothing


def test_errors_that_all_point_the_same_way_are_within_the_margin():
    """All entries alike, so that rounding errs the same way in each: the worst case that the margin is made for."""
    size = torch.linspace(1, 2, 200)[:, None, None].expand(-1, 1, 64)
    inputs = torch.cat([size, -size * (1 - 2.0**-6)], 1).to(torch.bfloat16)
    outer = Outer(inputs, Signal(torch.ones(200, 2, 64, dtype=torch.bfloat16)))
    measure = outer.measure()
    naive = added(
        outer, (1.0 / (measure.rooted.square() + 2.0**-18 * measure.masses.square()).sqrt()).clamp(max=1.0)
    )
    found = added(outer, _shares(_norms([measure], torch.zeros(200)), 1.0, None).factors)
    assert float(found.max()) <= 1.0
    assert float(naive.max()) > 1.1


def test_what_cancels_to_nothing_is_measured_by_its_mass():
    """√κ of the mass may hide below a Gram matrix, and (unit + κ) of it in the sum (Theorem 1)."""
    found = _norms([Measure(torch.zeros(2), torch.tensor([1.0, 3.0]), 2.0**-9)], torch.zeros(2))
    torch.testing.assert_close(found, torch.tensor([1.0, 3.0]) * (2.0**-9 + 2.0**-9 + 2.0**-18))


def test_a_tiny_signal_on_a_huge_input_is_not_lost():
    outer = Outer(torch.full((1, 3), 1e18), Signal(torch.full((1, 2), 1e-23)))
    for measure in (outer.measure(), measure_together([outer])):
        assert float(measure.norms) >= 1e-5 * math.sqrt(6)  # though 1e-46 is 0 in float32


@pytest.mark.parametrize(
    ("groups", "stride", "padding", "gap"), [(1, 1, 1, 1), (2, 2, 1, 1), (3, 1, 2, 2), (1, 3, 0, 1)]
)
def test_the_mass_of_a_convolution_is_no_less_than_that_of_its_patches(groups, stride, padding, gap):
    """And no more, if only one place of the input is not zero, and only where its patches are has it a gradient."""
    x, weight = torch.randn(4, 6, 11, 11), torch.randn(6, 6 // groups, 3, 2)
    out = nn.functional.conv2d(x, weight, None, stride, padding, gap, groups)
    window, g = _window((3, 2), stride, padding, gap, groups), torch.randn_like(out)
    assert (PatchProducts(x, g, window)._masses() >= _mass_of_patches(x, g, window)).all()
    x = torch.zeros_like(x)
    x[:, 0, 6 - padding, 6 - padding] = 3.0
    seen = window.patches(window.pad(x)).norm(dim=1).view(4, groups, *out.shape[2:]) > 0
    g = torch.zeros_like(out)
    g[:, 0] = seen[:, 0]
    torch.testing.assert_close(PatchProducts(x, g, window)._masses(), _mass_of_patches(x, g, window))


def _mass_of_patches(x, g, window):
    """Σ_t ‖g_t‖‖u_t‖, by group."""
    groups = window.groups
    patches = window.patches(window.pad(x)).norm(dim=1)
    each = patches * g.reshape(len(x) * groups, g.shape[1] // groups, -1).norm(dim=1)
    return each.sum(1).view(len(x), groups).norm(dim=1)


def test_without_the_margin_cancelling_tokens_exceed_the_clip():
    a, g = cancelling(64, 16, 64, 64, torch.bfloat16)
    outer = Outer(a, Signal(g))
    factors = (1.0 / outer.measure().rooted).clamp(max=1.0)
    assert float(added(outer, factors).max()) > 1.0


def test_random_records_lose_little_to_the_margin():
    model, x = nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 32)), torch.randn(8, 5, 32)
    found = clipped(model, x, 0.5)
    total = [clipped(model, x[i : i + 1], 0.5) for i in range(8)]
    norms = [
        math.sqrt(sum(float(g.double().square().sum()) for g in one.gradients.values())) for one in total
    ]
    assert all(0.4999 < norm <= 0.5 for norm in norms)
    assert bool((found.factors < 1).all())


SPOILT = [math.nan, math.inf, -math.inf, 1e30]


@pytest.mark.parametrize("value", SPOILT)
@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (lambda: nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)), (6,)),
        (lambda: nn.Sequential(nn.Linear(6, 5), nn.LayerNorm(5), nn.Linear(5, 24)), (4, 6)),
        (
            lambda: nn.Sequential(nn.Conv2d(6, 8, 3), nn.GroupNorm(2, 8), nn.ReLU(), nn.Conv2d(8, 12, 2)),
            (6, 4, 4),
        ),
        (lambda: nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True), (3, 6)),
        (lambda: nn.Sequential(nn.ConvTranspose1d(6, 4, 3), nn.PReLU()), (6, 5)),
    ],
)
def test_a_record_that_is_not_finite_adds_nothing_and_spoils_nobody(value, model, shape):
    made, x = model(), torch.randn(4, *shape)

    def loss(model, x):
        return 1e20 * wavy(model, x) if value == 1e30 else wavy(model, x)

    spoilt = x.clone()
    spoilt[1] = value
    found = clipped(made, spoilt, 0.5, loss)
    without = clipped(made, x[[0, 2, 3]], 0.5, loss)
    for parameter, gradient in found.gradients.items():
        assert bool(gradient.isfinite().all())
        if value != 1e30:
            torch.testing.assert_close(gradient, without.gradients[parameter], rtol=1e-4, atol=1e-6)
    if value != 1e30:
        assert float(found.factors[1]) == 0.0


def test_a_loss_that_is_not_finite_adds_nothing():
    model, x = nn.Linear(3, 1), torch.randn(3, 3)

    def loss(model, x):
        return model(x).squeeze(1) * torch.tensor([1.0, math.nan, 1.0])

    found = clipped(model, x, 0.5, loss)
    wanted = clipped(model, x[[0, 2]], 0.5, lambda model, x: model(x).squeeze(1))
    torch.testing.assert_close(found.gradients[model.weight], wanted.gradients[model.weight])


def test_weights_scale_what_a_record_adds_and_zero_removes_it():
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    weights = torch.tensor([1.0, 0.0, math.nan, 7.0])  # more than 1 counts as 1
    found = clipped(model, x, 0.5, weights=weights)
    kept = clipped(model, x[[0, 3]], 0.5)
    torch.testing.assert_close(found.gradients[model.weight], kept.gradients[model.weight])
    assert int(found.below) <= 2


def test_an_empty_gradient_is_zero_and_a_clip_may_be_a_tensor():
    model = nn.ModuleDict({"used": nn.Linear(3, 2), "unused": nn.Linear(3, 2)})
    x = torch.randn(4, 3)
    clipper = Clipper(model)
    with clipper.watch():
        found = clipper.clipped_sum(model["used"](x).sum(1), clip=torch.tensor(0.5))
    assert not bool(found.gradients[model["unused"].weight].any())
    plain = clipped(model["used"], x, 0.5, lambda model, x: model(x).sum(1))
    torch.testing.assert_close(found.gradients[model["used"].weight], plain.gradients[model["used"].weight])


def test_narrow_types_are_added_up_in_wide_ones():
    model, x = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 40)), torch.randn(6, 3, 16)
    wide = clipped(model, x, 0.5)

    def narrow(model, x):
        with torch.autocast("cpu", torch.bfloat16):
            return wavy(model, x)

    found = clipped(model, x, 0.5, narrow)
    for parameter, gradient in found.gradients.items():
        assert gradient.dtype == torch.float32
        assert float((gradient - wide.gradients[parameter]).norm()) < 0.2 * float(wide.norms.max())
    assert unit_of(torch.zeros(1, dtype=torch.bfloat16)) > unit_of(torch.zeros(1))


@pytest.mark.parametrize("clip", [0, -1.0, math.nan, math.inf, "1", True, 1e-30, 1e30])
def test_a_clip_that_is_no_clip_is_refused(clip):
    model = nn.Linear(3, 1)
    clipper = Clipper(model)
    with clipper.watch(), pytest.raises(BadParameter):
        clipper.clipped_sum(model(torch.randn(2, 3)).squeeze(1), clip=clip)


def test_losses_must_be_one_for_each_record():
    model, x = nn.Linear(3, 1), torch.randn(2, 3)
    clipper = Clipper(model)
    with clipper.watch():
        for losses in (model(x), model(x).mean(), torch.zeros(2), None):
            with pytest.raises(RefusedTraining) as refusal:
                clipper.clipped_sum(losses, clip=1.0)
            assert refusal.value.code == "DP912"


def test_a_model_must_be_a_model_with_something_to_train():
    with pytest.raises(BadParameter):
        Clipper("model")
    with pytest.raises(BadParameter):
        Clipper(nn.Linear(2, 2).requires_grad_(False))
