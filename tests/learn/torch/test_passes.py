# SPDX-License-Identifier: Apache-2.0
"""The passes on the GPU compute what the plain expressions say."""

from __future__ import annotations

import math

import pytest
import torch

from discreet.learn.torch.passes import affine_sums, large
from discreet.learn.torch.pieces.base import Share

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
KINDS = [torch.float32, torch.bfloat16, torch.float64]


def spoilt(kind):
    """Enough numbers for the kernels, in rows that no block divides; record 1 is not finite, and has factor 0."""
    values = torch.randn(5, 3, 400_003, device="cuda").to(kind)
    values[1, 0, ::7], values[1, 2, -1] = math.nan, math.inf
    factors = torch.tensor(
        [1.0, 0.0, 0.25, 0.7, 0.0], device="cuda", dtype=torch.promote_types(kind, torch.float32)
    )
    return values, Share(factors)


def test_small_tensors_and_those_of_a_processor_have_no_kernel():
    assert not large(torch.zeros(2**23))


@needs_gpu
@pytest.mark.parametrize("kind", KINDS)
def test_values_are_scaled_by_the_factor_of_their_record(kind):
    values, share = spoilt(kind)
    assert large(values)
    before = values.clone()
    wanted = (values.double() * share.factors.double()[:, None, None]).nan_to_num(0.0, 0.0, 0.0).to(kind)
    torch.testing.assert_close(share.scale(values), wanted)
    assert torch.equal(values.nan_to_num(), before.nan_to_num())


@needs_gpu
@pytest.mark.parametrize("kind", KINDS)
def test_values_of_records_that_are_spoilt_are_cleared(kind):
    values, share = spoilt(kind)
    wanted = values.clone()
    wanted[[1, 4]] = 0
    assert torch.equal(share.clear(values), wanted)


@needs_gpu
def test_what_lies_in_another_order_is_left_to_torch():
    values, share = spoilt(torch.float32)
    assert not large(values.mT)
    assert torch.equal(share.clear(values.mT), values.mT.nan_to_num(0.0, 0.0, 0.0))


@needs_gpu
@pytest.mark.parametrize(
    ("kind", "short"),
    [(torch.float32, False), (torch.float32, True), (torch.bfloat16, False), (torch.float64, False)],
)
def test_both_operands_in_one_pass_are_what_two_passes_make_of_them(kind, short):
    signal, share = spoilt(kind)
    inputs = torch.randn(5, 3, 300_001, device="cuda").to(kind)
    inputs[1, 1, 5] = math.inf
    before = signal.clone()
    scaled, cleared = share.prepare(inputs, signal, short=short)
    assert torch.equal(scaled, share.scale(inputs, short=short))
    assert torch.equal(cleared, share.clear(before.clone(), short=short))
    assert torch.equal(signal.nan_to_num(), before.nan_to_num() if short else cleared.nan_to_num())


@needs_gpu
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("positions", "width"), [(1, 1), (33, 70), (64, 128), (197, 384)])
def test_sums_of_a_layer_norm(kind, positions, width):
    gradient, x = (torch.randn(4, positions, width, device="cuda").to(kind) for _ in range(2))
    _, mean, scale = torch.native_layer_norm(x.float(), [width], None, None, 1e-5)
    gradient[1, 0, 0] = math.nan
    found = affine_sums(gradient, x, mean, scale)
    g, normal = gradient.double(), (x.double() - mean.double()) * scale.double()
    for one, wanted in zip(found, ((g * normal).sum(1), g.sum(1)), strict=True):
        torch.testing.assert_close(one.double(), wanted, rtol=1e-5, atol=1e-4, equal_nan=True)
        assert one[[0, 2, 3]].isfinite().all()
