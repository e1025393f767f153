# SPDX-License-Identifier: Apache-2.0
"""The kernels for convolutions on the GPU, against autograd record by record."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import conv2d

from discreet.learn.torch import windows
from discreet.learn.torch.pieces.patches import PatchProducts
from discreet.learn.torch.rules.convolution import _window

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")

#: Channels, outputs, size, kernel, stride, padding, gap.
LAYERS = pytest.mark.parametrize(
    "layer",
    [
        (3, 5, (7, 6), (3, 3), 1, 1, 1),
        (4, 40, (9, 8), (3, 2), 2, 1, 1),
        (6, 70, (8, 8), (3, 3), 1, 2, 2),
        (40, 6, (5, 5), (1, 1), 2, 0, 1),
        (16, 64, (32, 32), (3, 3), 1, 1, 1),
        (64, 128, (4, 4), (3, 3), 1, 1, 1),
    ],
)


def example(layer):
    channels, outputs, size, kernel, stride, padding, gap = layer
    torch.manual_seed(0)
    x = torch.randn(4, channels, *size, device="cuda")
    weight = torch.randn(outputs, channels, *kernel, device="cuda")
    g = torch.randn_like(conv2d(x, weight, None, stride, padding, gap))
    each = [torch.nn.grad.conv2d_weight(x[i : i + 1].double(), weight.shape, g[i : i + 1].double(), stride, padding, gap)
            for i in range(4)]  # fmt: skip
    return x, g, _window(kernel, stride, padding, gap, 1), torch.stack(each)


@needs_gpu
@LAYERS
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_gradients_are_those_of_autograd(kind, layer):
    x, g, window, wanted = example(layer)
    found = windows.gradients(x.to(kind), g.to(kind), window)
    torch.testing.assert_close(found.double(), wanted, rtol=0.02, atol=0.02 * float(wanted.abs().max()))


@needs_gpu
@LAYERS
def test_norms_are_those_of_autograd_and_the_clip_holds(layer):
    x, g, window, wanted = example(layer)
    measure, norms = PatchProducts(x, g, window).measure(), wanted.flatten(1).norm(dim=1)
    torch.testing.assert_close(measure.rooted.double(), norms, rtol=4e-3, atol=0.0)
    assert (measure.rooted + measure.unit * measure.masses >= norms).all()


@needs_gpu
def test_a_record_that_is_not_finite_has_no_finite_norm_and_leaves_the_others_alone():
    for bad in (float("nan"), float("inf")):
        x, g, window, wanted = example((64, 128, (4, 4), (3, 3), 1, 1, 1))
        x[1, 0, 0, 0] = bad
        found = windows.squares(x, g, window)
        assert not bool(found[1].isfinite())
        others = [0, 2, 3]
        torch.testing.assert_close(
            found[others].double(), wanted[others].flatten(1).square().sum(1), rtol=1e-2, atol=0.0
        )


def test_without_a_gpu_the_kernels_are_not_asked():
    assert not windows.fits(torch.zeros(2, 3, 4, 4), _window((3, 3), 1, 1, 1, 1))
