# SPDX-License-Identifier: Apache-2.0
"""Convolutions on the GPU, record by record: gradients of a weight, and their norms, without ever
making the patches.

Patches are nine times as large as the picture that they are cut from, for a kernel of three by
three. A program of these kernels looks up the numbers of a patch where they lie, so that one start
of one kernel does for a layer what making patches and multiplying them does in dozens.

They run only where there is a GPU and triton; `pieces.patches` has what they compute, and a test
compares the two.
"""
# mypy: disable-error-code="untyped-decorator,no-untyped-call,no-untyped-def,import-not-found,import-untyped"
# ruff: noqa: ANN001, ANN202, PLR0917 - the compiler of kernels reads annotations as types of its own

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from discreet.learn.torch.passes import kernels, unit_if_cut

try:
    import triton
    import triton.language as tl
# Then this file can be imported, and `fits` returns False.
except ImportError:
    triton = SimpleNamespace(jit=lambda function: function)

__all__ = ["MOST_POSITIONS", "Window", "fits", "gradients", "squares", "unit"]

#: Squares are made for so many positions at most: their Gram matrices stay in the registers of one program.
MOST_POSITIONS = 64

_STEP = 32


@dataclass(frozen=True)
class Window:
    """How a kernel moves over its input; one number for each dimension."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]
    groups: int


def fits(source: Tensor, window: Window) -> bool:
    """Whether this convolution is for the kernels of this file."""
    return kernels(source) and source.dim() == 4 and window.groups == 1


@triton.jit
def _patches(source, place, n, height, width, columns, positions, patch, sy, sx, py, px, dy, dx, KY, KX):
    """What lies under positions `place`, one below the other, at the places `n` of a patch, side by
    side.
    """
    row = (place // columns * sy - py)[:, None] + (n // KX % KY * dy)[None, :]
    column = (place % columns * sx - px)[:, None] + (n % KX * dx)[None, :]
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    inside = inside & (place < positions)[:, None] & (n < patch)[None, :]
    at = (n // (KY * KX) * height * width)[None, :] + row * width + column
    return tl.load(source + at, mask=inside, other=0.0)


@triton.jit
def _gradient(
    source, signal, out, channels, height, width, outputs, columns, positions,
    sy, sx, py, px, dy, dx,
    KY: tl.constexpr, KX: tl.constexpr, M: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """One program for each record and block of its gradient, (outputs, numbers in a patch)."""
    record = tl.program_id(0).to(tl.int64)
    n = tl.program_id(1) * N + tl.arange(0, N)
    m = tl.program_id(2) * M + tl.arange(0, M)
    patch = channels * KY * KX
    source += record * channels * height * width
    signal += record * outputs * positions
    total = tl.zeros([M, N], dtype=tl.float32)
    for start in range(0, positions, STEP):
        t = start + tl.arange(0, STEP)
        u = _patches(source, t, n, height, width, columns, positions, patch, sy, sx, py, px, dy, dx, KY, KX)
        here = (m < outputs)[:, None] & (t < positions)[None, :]
        g = tl.load(signal + m[:, None] * positions + t[None, :], mask=here, other=0.0)
        total = tl.dot(g, u, total)
    written = (m < outputs)[:, None] & (n < patch)[None, :]
    tl.store(out + record * outputs * patch + m[:, None] * patch + n[None, :], total, mask=written)


@triton.jit
def _square(
    source, signal, out, channels, height, width, outputs, columns, positions,
    sy, sx, py, px, dy, dx,
    KY: tl.constexpr, KX: tl.constexpr, T: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """One program for each record: both Gram matrices, and the sum of their product."""
    record = tl.program_id(0).to(tl.int64)
    t = tl.arange(0, T)
    patch = channels * KY * KX
    source += record * channels * height * width
    signal += record * outputs * positions
    of_patches = tl.zeros([T, T], dtype=tl.float32)
    for start in range(0, patch, STEP):
        n = start + tl.arange(0, STEP)
        u = _patches(source, t, n, height, width, columns, positions, patch, sy, sx, py, px, dy, dx, KY, KX)
        of_patches = tl.dot(u, tl.trans(u), of_patches)
    of_signal = tl.zeros([T, T], dtype=tl.float32)
    for start in range(0, outputs, STEP):
        m = start + tl.arange(0, STEP)
        here = (m < outputs)[:, None] & (t < positions)[None, :]
        g = tl.load(signal + m[:, None] * positions + t[None, :], mask=here, other=0.0)
        of_signal = tl.dot(tl.trans(g), g, of_signal)
    tl.store(out + record, tl.sum(of_patches * of_signal))


def gradients(source: Tensor, signal: Tensor, window: Window) -> Tensor:
    """The gradient of every record at the weight, in float32: (records, outputs, channels,
    *kernel).
    """
    records, outputs, channels = source.shape[0], signal.shape[1], source.shape[1]
    out = source.new_empty((records, outputs, channels, *window.kernel), dtype=torch.float32)
    patch = channels * window.kernel[0] * window.kernel[1]
    m = 32 if outputs <= 32 else 64
    grid = (records, -(-patch // 64), -(-outputs // m))
    _launch(_gradient, grid, source, signal, out, window, M=m, N=64, STEP=_STEP)
    return out


def squares(source: Tensor, signal: Tensor, window: Window) -> Tensor:
    """The squared norm of the gradient of every record; a little below zero, perhaps, where it is
    zero.
    """
    out = source.new_empty(source.shape[0], dtype=torch.float32)
    positions = signal.shape[2] * signal.shape[3]
    size = max(16, triton.next_power_of_2(positions))
    _launch(_square, (source.shape[0],), source, signal, out, window, T=size, STEP=_STEP)
    return out


def unit(operand: Tensor, otherwise: float) -> float:
    """Of a piece that was measured here and whose sum is made of operands that are cut to TF32."""
    return _unit(operand.device) if operand.dtype == torch.float32 else otherwise


@lru_cache(maxsize=16)
def _unit(device: torch.device) -> float:
    window = Window((3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1)

    def both(source: Tensor, signal: Tensor) -> tuple[Tensor, Tensor]:
        return gradients(source, signal, window), squares(source, signal, window)

    # Shapes that need all kinds of blocks.
    shapes = [(outputs, side) for outputs in (20, 70) for side in (4, 5, 7)]
    return max(
        unit_if_cut(both, (2, 40, side, side), (2, outputs, side, side), device) for outputs, side in shapes
    )


def _launch(
    kernel: Any,
    grid: tuple[int, ...],
    source: Tensor,
    signal: Tensor,
    out: Tensor,
    window: Window,
    **sizes: int,
) -> None:
    _, channels, height, width = source.shape
    _, outputs, rows, columns = signal.shape
    moves = *window.stride, *(left for left, _ in window.padding), *window.dilation
    with torch.cuda.device(source.device) if source.is_cuda else nullcontext():
        kernel[grid](
            source.contiguous(), signal.contiguous(), out,
            channels, height, width, outputs, columns, rows * columns, *moves,
            KY=window.kernel[0], KX=window.kernel[1], **sizes,
        )  # fmt: skip
