# SPDX-License-Identifier: Apache-2.0
"""Passes over large tensors on the GPU, in one reading instead of several. `pieces.base.Share` says
what they compute.

They run only where there is a GPU and triton. Those that scale and clear run only on large tensors,
where one reading less saves more time than starting a kernel costs.
"""
# mypy: disable-error-code="untyped-decorator,no-untyped-call,no-untyped-def,import-not-found,import-untyped"
# ruff: noqa: ANN001, ANN202, PLR0917 - the compiler of kernels reads annotations as types of its own

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl

    _CAN = True
# Then this file can be imported, and `large` returns False.
except ImportError:
    triton, _CAN = SimpleNamespace(jit=lambda function: function), False

__all__ = ["affine_sums", "clear", "kernels", "large", "prepare_records", "scale_records", "unit_if_cut"]

#: Operands of norm and sum are both cut to TF32, or may be rounded to it in two ways (clip.proof.md, Lemma 2).
_CUT, _ROUNDED = 2.0**-9, 2.0**-8 + 2.0**-16

_LARGE = 2**22
_BLOCK = 2048
#: Programs for each record that clear it.
_PARTS = 64
#: How many positions and features are read at a time.
_POSITIONS, _FEATURES = 32, 64
_KINDS = {torch.float32, torch.bfloat16, torch.float16}


def kernels(values: Tensor) -> bool:
    """Whether kernels can be made for these values at all."""
    return _CAN and values.is_cuda and values.dtype in _KINDS


def large(values: Tensor) -> bool:
    """Whether these values are large enough for the kernels that scale and clear."""
    return _CAN and values.is_cuda and values.numel() >= _LARGE and values.is_contiguous()


@triton.jit
def _truncate(values):
    """Without the bits that TF32 has not: then it does not matter how a product would have rounded
    them away.

    What is not finite stays so: the bits of its exponent are kept.
    """
    if values.dtype == tl.float32:
        return (values.to(tl.int32, bitcast=True) & -0x2000).to(tl.float32, bitcast=True)
    else:  # noqa: RET505 - the compiler reads only one of the two
        return values


@triton.jit
def _scale(values, factor, out, record, block, width, CUT: tl.constexpr, BLOCK: tl.constexpr):
    """One block of the numbers of one record."""
    place = block * BLOCK + tl.arange(0, BLOCK)
    inside = place < width
    value = tl.load(values + record * width + place, mask=inside, other=0.0) * factor
    value = tl.where(tl.abs(value) < float("inf"), value, 0.0).to(out.dtype.element_ty)
    if CUT:
        value = _truncate(value)
    tl.store(out + record * width + place, value, mask=inside)


@triton.jit
def _scale_rows(values, factors, out, width, blocks, CUT: tl.constexpr, BLOCK: tl.constexpr):
    """One program for each record and block of its numbers."""
    program = tl.program_id(0).to(tl.int64)
    record = program // blocks
    _scale(values, tl.load(factors + record), out, record, program % blocks, width, CUT, BLOCK)


@triton.jit
def _prepare_rows(
    inputs,
    signal,
    factors,
    scaled,
    cleared,
    width,
    blocks,
    outputs,
    signal_blocks,
    CUT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program for each record and block of its inputs, and then of its signal."""
    program = tl.program_id(0).to(tl.int64)
    record = program // (blocks + signal_blocks)
    block = program % (blocks + signal_blocks)
    factor = tl.load(factors + record)
    if block < blocks:
        _scale(inputs, factor, scaled, record, block, width, CUT, BLOCK)
    else:
        block -= blocks
        if CUT:
            _scale(signal, (factor > 0).to(factor.dtype), cleared, record, block, outputs, CUT, BLOCK)
        elif factor == 0.0:
            place = block * BLOCK + tl.arange(0, BLOCK)
            zeros = tl.zeros([BLOCK], dtype=cleared.dtype.element_ty)
            tl.store(cleared + record * outputs + place, zeros, mask=place < outputs)


@triton.jit
def _affine(gradient, x, mean, scale, out, records, positions, width, T: tl.constexpr, WIDE: tl.constexpr):
    """One program for each record and block of features: both sums over its positions."""
    record = tl.program_id(0).to(tl.int64)
    n = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    of_scale = tl.zeros([WIDE], dtype=tl.float32)
    of_shift = tl.zeros([WIDE], dtype=tl.float32)
    for start in range(0, positions, T):
        t = start + tl.arange(0, T)
        there = t < positions
        row = record * positions + t
        place = row[:, None] * width + n[None, :]
        inside = there[:, None] & (n < width)[None, :]
        g = tl.load(gradient + place, mask=inside, other=0.0).to(tl.float32)
        value = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
        m = tl.load(mean + row, mask=there, other=0.0)
        s = tl.load(scale + row, mask=there, other=0.0)
        of_scale += tl.sum(g * ((value - m[:, None]) * s[:, None]), 0)
        of_shift += tl.sum(g, 0)
    tl.store(out + record * width + n, of_scale, mask=n < width)
    tl.store(out + (records + record) * width + n, of_shift, mask=n < width)


@triton.jit
def _clear(values, factors, width, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """Nothing is read of a record whose factor is not 0."""
    record = tl.program_id(0).to(tl.int64)
    if tl.load(factors + record) == 0.0:
        zeros = tl.zeros([BLOCK], dtype=values.dtype.element_ty)
        for start in range(tl.program_id(1) * BLOCK, width, PARTS * BLOCK):
            place = start + tl.arange(0, BLOCK)
            tl.store(values + record * width + place, zeros, mask=place < width)


def scale_records(values: Tensor, factors: Tensor, *, short: bool = False) -> Tensor:
    """Factor times value, by record, and 0 for what is not finite; with `short`, cut to TF32 after
    that.
    """
    values, records = values.contiguous(), factors.shape[0]
    out = torch.empty_like(values)
    width = values.numel() // records
    blocks = -(-width // _BLOCK)
    with torch.cuda.device(values.device):
        _scale_rows[(records * blocks,)](values, factors, out, width, blocks, CUT=short, BLOCK=_BLOCK)
    return out


def prepare_records(inputs: Tensor, signal: Tensor, factors: Tensor, *, short: bool) -> tuple[Tensor, Tensor]:
    """Factor times input, and the signal, by record; 0 for what is not finite, or is of a record
    whose factor is 0.

    With `short` both are cut to TF32, in copies; without it the signal is cleared in place, and is
    not read.
    """
    scaled, records = torch.empty_like(inputs), factors.shape[0]
    cleared = torch.empty_like(signal) if short else signal
    width, outputs = inputs.numel() // records, signal.numel() // records
    blocks, signal_blocks = -(-width // _BLOCK), -(-outputs // _BLOCK)
    sizes = width, blocks, outputs, signal_blocks
    with torch.cuda.device(inputs.device):
        _prepare_rows[(records * (blocks + signal_blocks),)](
            inputs, signal, factors, scaled, cleared, *sizes, CUT=short, BLOCK=_BLOCK
        )
    return scaled, cleared


def affine_sums(gradient: Tensor, x: Tensor, mean: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Σ_t g_t·(x_t - mean_t)·scale_t and Σ_t g_t of each record, for (records, positions,
    features).
    """
    records, positions, width = x.shape
    out = x.new_empty((2, records, width), dtype=torch.float32)
    tensors = (tensor.contiguous() for tensor in (gradient, x, mean, scale))
    with torch.cuda.device(x.device):
        _affine[(records, -(-width // _FEATURES))](
            *tensors, out, records, positions, width, T=_POSITIONS, WIDE=_FEATURES
        )
    scale_sums, shift_sums = out.unbind()
    return scale_sums, shift_sums


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

    Tested once on a device, with operands of these shapes: where its products leave out the bits
    that TF32 has not, cutting them before changes nothing, to the last bit of the result.
    """
    draw = torch.Generator().manual_seed(0)
    whole = [torch.randn(shape, generator=draw).to(device) for shape in (left, right)]
    cut = [(operand.view(torch.int32) & -0x2000).view(torch.float32) for operand in whole]
    pairs = zip(function(*whole), function(*cut), strict=True)
    return _CUT if all(torch.equal(of_whole, of_cut) for of_whole, of_cut in pairs) else _ROUNDED
