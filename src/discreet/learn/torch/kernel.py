# SPDX-License-Identifier: Apache-2.0
"""One kernel on the GPU: ChaCha20, Box-Muller in double precision, and noise on a grid, added in place.

The constants that float32 cannot hold are avoided (2**-64 and 2**-63 are exact in it), so that no
promotion rounds them. Every program makes BLOCK blocks of the cipher and from each of them eight
normal numbers, and touches every element of the buffer once. `chacha.reference_normals` says which
number belongs to which element, and a test compares the two.

It runs only where there is a GPU and triton.
"""
# mypy: disable-error-code="untyped-decorator,no-untyped-call,no-untyped-def,import-not-found,import-untyped"
# ruff: noqa: ANN001, ANN202 - the compiler of kernels reads annotations as types of its own

from __future__ import annotations

from types import SimpleNamespace

import torch

try:
    import triton
    import triton.language as tl
    from triton.language.extra import libdevice
# Then this file can be imported, and `noise` never calls it.
except ImportError:
    triton = SimpleNamespace(jit=lambda function=None, **_: function or (lambda kernel: kernel))

from discreet.learn.torch.chacha import NORMALS

__all__ = ["add_noise"]

_BLOCK = 128


@triton.jit
def _quarter_round(a, b, c, d):
    a = a + b
    d = d ^ a
    d = (d << 16) | (d >> 16)
    c = c + d
    b = b ^ c
    b = (b << 12) | (b >> 20)
    a = a + b
    d = d ^ a
    d = (d << 8) | (d >> 24)
    c = c + d
    b = b ^ c
    b = (b << 7) | (b >> 25)
    return a, b, c, d


@triton.jit
def _word(key, place: tl.constexpr, zero):
    return zero + tl.load(key + place).to(tl.uint32, bitcast=True)


@triton.jit
def _noisy(buffer, place, inside, normal, scales):
    """(the sum in whole cells + the noise in whole cells) * cell / divisor, in place."""
    per_cell = tl.load(scales)
    spread = tl.load(scales + 1)
    back = tl.load(scales + 2)
    total = tl.load(buffer + place, mask=inside, other=0.0).to(tl.float64)
    total = tl.where(tl.abs(total) < float("inf"), total, 0.0)
    cells = libdevice.rint(total * per_cell) + libdevice.rint(normal * spread)
    tl.store(buffer + place, (cells * back).to(buffer.dtype.element_ty), mask=inside)


@triton.jit
def _pair(  # noqa: PLR0917 - a kernel takes no keywords
    buffer, w0, w1, w2, w3, place, blocks, size, scales
):
    """Two elements from four words; the second lies `blocks` elements after the first."""
    uniform = (w0.to(tl.float64) * 4294967296.0 + w1.to(tl.float64) + 0.5) * 5.421010862427522e-20
    turn = (w2.to(tl.float64) * 4294967296.0 + w3.to(tl.float64)) * 1.0842021724855044e-19
    radius = libdevice.sqrt(-2.0 * libdevice.log(uniform))
    _noisy(buffer, place, place < size, radius * libdevice.cospi(turn), scales)
    second = place + blocks
    _noisy(buffer, second, second < size, radius * libdevice.sinpi(turn), scales)


@triton.jit(do_not_specialize=["turn", "size", "blocks"])
def _add_noise(  # noqa: PLR0917
    buffer, size, blocks, key, turn, scales, BLOCK: tl.constexpr
):
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    zero = (index * 0).to(tl.uint32)
    s0, s1, s2, s3 = zero + 0x61707865, zero + 0x3320646E, zero + 0x79622D32, zero + 0x6B206574
    s4, s5, s6, s7 = _word(key, 0, zero), _word(key, 1, zero), _word(key, 2, zero), _word(key, 3, zero)
    s8, s9, s10, s11 = _word(key, 4, zero), _word(key, 5, zero), _word(key, 6, zero), _word(key, 7, zero)
    s12, s13, s14, s15 = index.to(tl.uint32), zero + turn.to(tl.uint32), zero, zero
    x0, x1, x2, x3, x4, x5, x6, x7 = s0, s1, s2, s3, s4, s5, s6, s7
    x8, x9, x10, x11, x12, x13, x14, x15 = s8, s9, s10, s11, s12, s13, s14, s15
    for _ in range(10):
        x0, x4, x8, x12 = _quarter_round(x0, x4, x8, x12)
        x1, x5, x9, x13 = _quarter_round(x1, x5, x9, x13)
        x2, x6, x10, x14 = _quarter_round(x2, x6, x10, x14)
        x3, x7, x11, x15 = _quarter_round(x3, x7, x11, x15)
        x0, x5, x10, x15 = _quarter_round(x0, x5, x10, x15)
        x1, x6, x11, x12 = _quarter_round(x1, x6, x11, x12)
        x2, x7, x8, x13 = _quarter_round(x2, x7, x8, x13)
        x3, x4, x9, x14 = _quarter_round(x3, x4, x9, x14)
    # a lane beyond the last block writes nothing: its first place is pushed past the end
    first = tl.where(index < blocks, index, size)
    _pair(buffer, x0 + s0, x1 + s1, x2 + s2, x3 + s3, first, blocks, size, scales)
    _pair(buffer, x4 + s4, x5 + s5, x6 + s6, x7 + s7, first + 2 * blocks, blocks, size, scales)
    _pair(buffer, x8 + s8, x9 + s9, x10 + s10, x11 + s11, first + 4 * blocks, blocks, size, scales)
    _pair(buffer, x12 + s12, x13 + s13, x14 + s14, x15 + s15, first + 6 * blocks, blocks, size, scales)


def add_noise(buffer: torch.Tensor, key: torch.Tensor, turn: int, scales: torch.Tensor) -> None:
    """`noise.StepNoise.add_` for a contiguous buffer on a GPU; `key` holds eight int32, `scales` three float64, there too."""
    size = buffer.numel()
    blocks = -(-size // NORMALS)
    grid = (-(-blocks // _BLOCK),)
    with torch.cuda.device(buffer.device):
        _add_noise[grid](buffer, size, blocks, key, turn, scales, BLOCK=_BLOCK)
