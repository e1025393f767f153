# SPDX-License-Identifier: Apache-2.0
"""Passes over large tensors on the GPU, in one reading instead of several; `rules.piece.Share` has what they compute.

They run only where there is a GPU and triton, on tensors that are so large that starting a kernel costs less than reading
twice what it reads once.
"""
# mypy: disable-error-code="untyped-decorator,no-untyped-call,no-untyped-def,import-not-found,import-untyped"
# ruff: noqa: ANN001, ANN202 - the compiler of kernels reads annotations as types of its own

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl

    _CAN = True
except ImportError:  # then this file can be read, and `large` says no
    triton, _CAN = SimpleNamespace(jit=lambda function: function), False

__all__ = ["clear", "kernels", "large", "scaled", "unit_if_cut"]

#: Operands of norm and sum are both cut to TF32, or may be rounded to it in two ways (clip.proof.md, Lemma 2).
_CUT, _ROUNDED = 2.0**-9, 2.0**-8 + 2.0**-16

_LARGE = 2**22
_BLOCK = 2048
_PARTS = 64  # programs for each record that clear it
_KINDS = {torch.float32, torch.bfloat16, torch.float16}


def kernels(values: Tensor) -> bool:
    """Whether kernels can be made for these values at all."""
    return _CAN and values.is_cuda and values.dtype in _KINDS


def large(values: Tensor) -> bool:
    """Whether these values are for the kernels of this file."""
    return _CAN and values.is_cuda and values.numel() >= _LARGE and values.is_contiguous()


@triton.jit
def _cut(values):
    """Without the bits that TF32 has not: then it does not matter how a product would have rounded them away.

    What is not finite stays so: the bits of its exponent are kept.
    """
    if values.dtype == tl.float32:
        return (values.to(tl.int32, bitcast=True) & -0x2000).to(tl.float32, bitcast=True)
    else:  # noqa: RET505 - the compiler reads only one of the two
        return values


@triton.jit
def _scaled(values, factors, out, width, blocks, CUT: tl.constexpr, BLOCK: tl.constexpr):  # noqa: PLR0917
    """One program for each record and block of its numbers."""
    program = tl.program_id(0).to(tl.int64)
    record = program // blocks
    place = (program % blocks) * BLOCK + tl.arange(0, BLOCK)
    inside = place < width
    factor = tl.load(factors + record)
    value = tl.load(values + record * width + place, mask=inside, other=0.0) * factor
    value = tl.where(tl.abs(value) < float("inf"), value, 0.0).to(out.dtype.element_ty)
    if CUT:
        value = _cut(value)
    tl.store(out + record * width + place, value, mask=inside)


@triton.jit
def _clear(values, factors, width, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """Nothing is read of a record whose factor is not 0."""
    record = tl.program_id(0).to(tl.int64)
    if tl.load(factors + record) == 0.0:
        zeros = tl.zeros([BLOCK], dtype=values.dtype.element_ty)
        for start in range(tl.program_id(1) * BLOCK, width, PARTS * BLOCK):
            place = start + tl.arange(0, BLOCK)
            tl.store(values + record * width + place, zeros, mask=place < width)


def scaled(values: Tensor, factors: Tensor, *, short: bool = False) -> Tensor:
    """Factor times value, by record, and 0 for what is not finite; with `short`, cut to TF32 after that."""
    values, records = values.contiguous(), factors.shape[0]
    out = torch.empty_like(values)
    width = values.numel() // records
    blocks = -(-width // _BLOCK)
    with torch.cuda.device(values.device):
        _scaled[(records * blocks,)](values, factors, out, width, blocks, CUT=short, BLOCK=_BLOCK)
    return out


def clear(values: Tensor, factors: Tensor) -> None:
    """Zero, in place, in records whose factor is 0; the others are not touched, nor read."""
    records = factors.shape[0]
    width = values.numel() // records
    with torch.cuda.device(values.device):
        _clear[(records, _PARTS)](values, factors, width, PARTS=_PARTS, BLOCK=_BLOCK)


def unit_if_cut(
    function: Callable[[Tensor, Tensor], tuple[Tensor, ...]],
    left: tuple[int, ...],
    right: tuple[int, ...],
    device: torch.device,
) -> float:
    """How far a norm by this function may be from that of operands that are cut to TF32.

    Tested once on a device, with operands of these shapes: where its products leave out the bits that TF32 has not, cutting
    them before changes nothing, to the last bit of the result.
    """
    draw = torch.Generator().manual_seed(0)
    whole = [torch.randn(shape, generator=draw).to(device) for shape in (left, right)]
    short = [(each.view(torch.int32) & -0x2000).view(torch.float32) for each in whole]
    same = all(torch.equal(one, other) for one, other in zip(function(*whole), function(*short), strict=True))
    return _CUT if same else _ROUNDED
