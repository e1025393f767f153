# SPDX-License-Identifier: Apache-2.0
"""Noise on a GPU from ChaCha20 (RFC 8439, section 2.3): one kernel, and the same in numpy, which
the kernel must equal.

    blocks(key, counters, nonce)              # in numpy: (number of counters, 16) words of 32 bits
    add_noise(buffer, key, turn, scales)      # on the GPU: cipher, Box-Muller, noise on a grid, added in place

**Guarantee.** Under a secret key that is used for nothing else, and with no (counter, nonce) used
twice, the words cannot be told from uniform ones by anybody who cannot break ChaCha20. That is a
computational guarantee, like that of the library's own source, which is AES in counter mode.

A run on a GPU takes its key from `discreet.noise.source`, which takes its own from the operating
system; the counter is the number of the block, and the nonce counts the buffers that got noise.
Nothing else goes in: `torch.manual_seed` has no effect here.

The kernel avoids constants that float32 cannot hold (2**-64 and 2**-63 are exact in it), so that no
promotion rounds them. Every program makes BLOCK blocks of the cipher and from each of them eight
normal numbers, and touches every element of the buffer once. `reference_normals` says which number
belongs to which element, and a test compares the two. The kernel runs only where there is a GPU and
triton.
"""
# mypy: disable-error-code="untyped-decorator,no-untyped-call,no-untyped-def,import-not-found,import-untyped"
# ruff: noqa: ANN001, ANN202 - the compiler of kernels reads annotations as types of its own

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import numpy.typing as npt
import torch

try:
    import triton
    import triton.language as tl
    from triton.language.extra import libdevice
# Then this file can be imported, and `noise` never calls the kernel.
except ImportError:
    triton = SimpleNamespace(jit=lambda function=None, **_: function or (lambda kernel: kernel))

from discreet.noise.source import current

__all__ = ["NORMALS", "add_noise", "blocks", "fresh_key", "reference_normals"]

Words32 = npt.NDArray[np.uint32]

#: How many normal numbers come from one block: a pair from every four words.
NORMALS = 8
#: The text "expand 32-byte k".
CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
_COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
_DIAGONALS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
_DOUBLE_ROUNDS = 10
#: Blocks of the cipher that one program of the kernel makes.
_BLOCK = 128


def fresh_key() -> Words32:
    """Eight words that nobody has seen."""
    return current().words(4).view(np.uint32).copy()


def blocks(key: Words32, counters: npt.ArrayLike, nonce: tuple[int, int, int]) -> Words32:
    """One block of sixteen words for each counter."""
    counts = np.asarray(counters, np.uint32)
    start = np.empty((16, counts.size), np.uint32)
    start[:4] = np.array(CONSTANTS, np.uint32)[:, None]
    start[4:12] = np.asarray(key, np.uint32)[:, None]
    start[12] = counts
    start[13:] = np.array(nonce, np.uint32)[:, None]
    state = start.copy()
    for _ in range(_DOUBLE_ROUNDS):
        for places in (*_COLUMNS, *_DIAGONALS):
            _quarter_round(state, *places)
    return (state + start).T.copy()


def _quarter_round(state: Words32, a: int, b: int, c: int, d: int) -> None:
    for left, right, turned, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[left] += state[right]
        state[turned] ^= state[left]
        state[turned] = (state[turned] << np.uint32(by)) | (state[turned] >> np.uint32(32 - by))


def reference_normals(key: Words32, count: int, turn: int) -> npt.NDArray[np.float64]:
    """The standard normals that the kernel adds: element number k·N + b is the k-th of block b, of
    N blocks.
    """
    number = -(-count // NORMALS)
    words = blocks(key, np.arange(number), (turn, 0, 0)).reshape(number, 4, 4).astype(np.float64)
    high, low = words[..., 0] * 2.0**32, words[..., 1]
    radius = np.sqrt(-2.0 * np.log((high + low + 0.5) * 2.0**-64))
    angle = np.pi * ((words[..., 2] * 2.0**32 + words[..., 3]) * 2.0**-63)
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    return np.ascontiguousarray(pairs.reshape(number, NORMALS).T).ravel()[:count]


@triton.jit
def _rotate_quarter(a, b, c, d):
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
        x0, x4, x8, x12 = _rotate_quarter(x0, x4, x8, x12)
        x1, x5, x9, x13 = _rotate_quarter(x1, x5, x9, x13)
        x2, x6, x10, x14 = _rotate_quarter(x2, x6, x10, x14)
        x3, x7, x11, x15 = _rotate_quarter(x3, x7, x11, x15)
        x0, x5, x10, x15 = _rotate_quarter(x0, x5, x10, x15)
        x1, x6, x11, x12 = _rotate_quarter(x1, x6, x11, x12)
        x2, x7, x8, x13 = _rotate_quarter(x2, x7, x8, x13)
        x3, x4, x9, x14 = _rotate_quarter(x3, x4, x9, x14)
    # a lane beyond the last block writes nothing: its first place is pushed past the end
    first = tl.where(index < blocks, index, size)
    _pair(buffer, x0 + s0, x1 + s1, x2 + s2, x3 + s3, first, blocks, size, scales)
    _pair(buffer, x4 + s4, x5 + s5, x6 + s6, x7 + s7, first + 2 * blocks, blocks, size, scales)
    _pair(buffer, x8 + s8, x9 + s9, x10 + s10, x11 + s11, first + 4 * blocks, blocks, size, scales)
    _pair(buffer, x12 + s12, x13 + s13, x14 + s14, x15 + s15, first + 6 * blocks, blocks, size, scales)


def add_noise(buffer: torch.Tensor, key: torch.Tensor, turn: int, scales: torch.Tensor) -> None:
    """`noise.StepNoise.add_` for a contiguous buffer on a GPU; `key` holds eight int32, `scales`
    three float64, there too.
    """
    size = buffer.numel()
    blocks = -(-size // NORMALS)
    grid = (-(-blocks // _BLOCK),)
    with torch.cuda.device(buffer.device):
        _add_noise[grid](buffer, size, blocks, key, turn, scales, BLOCK=_BLOCK)
