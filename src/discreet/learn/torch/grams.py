# SPDX-License-Identifier: Apache-2.0
"""Norms of sums of outer products on the GPU, by Gram matrices that are never written down.

‖Σ_t g_t a_tᵀ‖² = Σ_{s,t} (a_s·a_t)(g_s·g_t) is a sum over blocks of two matrices of positions. A
program makes one block of each in its registers, multiplies them and keeps the sum. Blocks below
the diagonal equal those above; the diagonal has the lengths of all a_t and g_t, and so the mass.

Runs only where there is a GPU and triton; `pieces.outer` has what is computed, and a test compares
the two.
"""
# mypy: disable-error-code="untyped-decorator,no-untyped-call,no-untyped-def,import-not-found,import-untyped"
# ruff: noqa: ANN001, ANN202, PLR0917 - the compiler of kernels reads annotations as types of its own

from __future__ import annotations

from contextlib import nullcontext
from functools import lru_cache
from types import SimpleNamespace

import torch
from torch import Tensor

from discreet.learn.torch.passes import kernels, unit_if_cut

try:
    import triton
    import triton.language as tl
# Then this file can be imported, and `fits` returns False.
except ImportError:
    triton = SimpleNamespace(jit=lambda function: function)

__all__ = ["fits", "squares_and_masses", "unit"]


def fits(inputs: Tensor, gradient: Tensor) -> bool:
    """Whether these are for the kernels of this file."""
    return inputs.dim() == 3 and kernels(inputs) and inputs.dtype == gradient.dtype


@triton.jit
def _block(values, s, t, positions, width, T: tl.constexpr, STEP: tl.constexpr):
    """The products of the rows s with the rows t."""
    total = tl.zeros([T, T], dtype=tl.float32)
    for start in range(0, width, STEP):
        n = start + tl.arange(0, STEP)
        inside = (n < width)[None, :]
        left = tl.load(
            values + s[:, None] * width + n[None, :], mask=(s < positions)[:, None] & inside, other=0.0
        )
        right = tl.load(
            values + t[:, None] * width + n[None, :], mask=(t < positions)[:, None] & inside, other=0.0
        )
        total = tl.dot(left, tl.trans(right), total)
    return total


@triton.jit
def _gram(
    inputs, signal, out, records, positions, width, outputs, blocks, T: tl.constexpr, STEP: tl.constexpr
):
    """One program for each record and block: its part of the square, and of the mass, a little too
    much of it.
    """
    record = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) // blocks
    j = tl.program_id(1) % blocks
    square = 0.0
    mass = 0.0
    if i <= j:
        s = i * T + tl.arange(0, T)
        t = j * T + tl.arange(0, T)
        a = _block(inputs + record * positions * width, s, t, positions, width, T, STEP)
        g = _block(signal + record * positions * outputs, s, t, positions, outputs, T, STEP)
        square = tl.sum(a * g)
        if i < j:
            square = square * 2
        else:
            same = s[:, None] == t[None, :]
            # 2**-40 for squares that are lost, and 1 + 2**-8 for bits that TF32 has not
            long = tl.sqrt(tl.sum(tl.where(same, a, 0.0), 1)) + 9.094947017729282e-13
            wide = tl.sqrt(tl.sum(tl.where(same, g, 0.0), 1)) + 9.094947017729282e-13
            mass = tl.sum(long * wide) * 1.00390625
    place = record * blocks * blocks + tl.program_id(1)
    tl.store(out + place, square)
    tl.store(out + records * blocks * blocks + place, mass)


def squares_and_masses(inputs: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
    """The squared norm of each record, a little below zero, perhaps, where it is zero; and no less
    than its mass.
    """
    records, positions, width = inputs.shape
    size = min(128, max(16, triton.next_power_of_2(positions)))
    blocks = -(-positions // size)
    out = inputs.new_empty((2, records, blocks * blocks), dtype=torch.float32)
    numbers = records, positions, width, gradient.shape[2], blocks
    with torch.cuda.device(inputs.device) if inputs.is_cuda else nullcontext():
        _gram[(records, blocks * blocks)](
            inputs.contiguous(), gradient.contiguous(), out, *numbers,
            T=size, STEP=64 if size == 128 else 32, num_warps=8 if size == 128 else 4,
        )  # fmt: skip
    squares, masses = out.sum(2).unbind()
    return squares, masses


def unit(operand: Tensor, otherwise: float) -> float:
    """Of a piece that was measured here and whose sum is made of operands that are cut to TF32."""
    return _unit(operand.device) if operand.dtype == torch.float32 else otherwise


@lru_cache(maxsize=16)
def _unit(device: torch.device) -> float:
    return max(
        unit_if_cut(squares_and_masses, (2, size, 96), (2, size, 160), device) for size in (16, 32, 64, 200)
    )
