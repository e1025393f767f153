# SPDX-License-Identifier: Apache-2.0
"""The kernel that measures sums of outer products on the GPU, and the sums that go with it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from discreet.learn.torch import grams, windows
from discreet.learn.torch.clip import Clipper, _norms, _shares
from discreet.learn.torch.pieces.base import Share
from discreet.learn.torch.pieces.outer import Outer, Signal

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
KINDS = pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
SHAPES = pytest.mark.parametrize("shape", [(5, 24, 30), (40, 100, 90), (197, 384, 512), (256, 700, 900)])


def example(shape, kind, records=6):
    positions, width, outputs = shape
    torch.manual_seed(0)
    a, g = (torch.randn(records, positions, size, device="cuda").to(kind) for size in (width, outputs))
    return a, g, g.double().mT @ a.double()


@needs_gpu
@SHAPES
@KINDS
def test_squares_and_masses_are_those_of_the_gradients(kind, shape):
    a, g, gradients = example(shape, kind)
    squares, masses = grams.squares_and_masses(a, g)
    torch.testing.assert_close(squares.double(), gradients.flatten(1).square().sum(1), rtol=5e-3, atol=0.0)
    wanted = (a.double().norm(dim=2) * g.double().norm(dim=2)).sum(1)
    assert (masses >= wanted).all()
    assert (masses <= 1.01 * wanted).all()


@needs_gpu
@SHAPES
@KINDS
def test_what_each_record_adds_is_within_the_clip(kind, shape):
    """Also if half of what a record has cancels, so that its norm is small beside its mass."""
    a, g, _ = example(shape, kind)
    some = shape[0] // 4
    a[:, some : 2 * some], g[:, some : 2 * some] = a[:, :some], -g[:, :some]
    piece = Outer(a, Signal(g))
    measure = piece.measure()
    factors = _shares(_norms([measure], torch.zeros(6)), 1.0, None).factors
    assert float(factors.max()) < 1
    for record in range(6):
        alone = torch.zeros_like(factors)
        alone[record] = factors[record]
        again = Outer(a, Signal(g.clone()))
        again.measure()
        assert 0.1 < float(again.total(Share(alone)).double().norm()) <= 1


@needs_gpu
def test_products_leave_out_what_cutting_cuts():
    """If a device should round instead, the margin is wider and this test is to be taken out."""
    operand = torch.zeros(1, device="cuda")
    assert grams.unit(operand, 1.0) == windows.unit(operand, 1.0) == 2.0**-9


@needs_gpu
def test_a_record_that_is_not_finite_has_no_finite_norm_and_leaves_the_others_alone():
    for bad in (float("nan"), float("inf")):
        a, g, gradients = example((40, 100, 90), torch.float32)
        a[1, 3, 5] = bad
        squares, masses = grams.squares_and_masses(a, g)
        assert not bool((squares + masses)[1].isfinite())
        others = [0, 2, 3, 4, 5]
        wanted = gradients[others].flatten(1).square().sum(1)
        torch.testing.assert_close(squares[others].double(), wanted, rtol=5e-3, atol=0.0)
        piece = Outer(a, Signal(g))
        found = piece.total(_shares(_norms([piece.measure()], torch.zeros(6)), 1.0, None))
        assert bool(found.isfinite().all())


class Shared(nn.Module):
    """A layer and a table whose outputs are added, so that both get one and the same gradient."""

    def __init__(self):
        super().__init__()
        self.table, self.layer, self.last = nn.Embedding(3, 96), nn.Linear(96, 96), nn.Linear(96, 1)

    def forward(self, ids, x):
        return self.last((self.table(ids) + self.layer(x)).tanh()).square().flatten(1).sum(1)


@needs_gpu
def test_cutting_a_gradient_for_one_layer_leaves_it_whole_for_another():
    torch.manual_seed(0)
    model = Shared().cuda()
    ids, x = torch.randint(3, (5, 20), device="cuda"), torch.randn(5, 20, 96, device="cuda")
    wide = Shared().cuda().double()
    wide.load_state_dict(model.state_dict())
    with Clipper(model).watch() as clipper:
        found = clipper.clipped_sum(model(ids, x), clip=2.0**30)
    wanted = torch.autograd.grad(wide(ids, x.double()).sum(), wide.table.weight)[0]
    torch.testing.assert_close(found.gradients[model.table.weight].double(), wanted, rtol=1e-4, atol=1e-4)


def test_without_a_gpu_the_kernel_is_not_asked():
    assert not grams.fits(torch.zeros(2, 3, 4), torch.zeros(2, 3, 5))
