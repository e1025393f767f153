# SPDX-License-Identifier: Apache-2.0
"""The block function of ChaCha20 (RFC 8439, section 2.3), in numpy: the reference that the kernel on the GPU must equal.

    blocks(key, counters, nonce)        # (number of counters, 16) words of 32 bits

**Guarantee.** Under a secret key that is used for nothing else, and with no (counter, nonce) used
twice, the words cannot be told from uniform ones by anybody who cannot break ChaCha20. That is a
computational guarantee, like that of the library's own source, which is AES in counter mode.

A run on a GPU takes its key from `discreet.noise.source`, which takes its own from the operating
system; the counter is the number of the block, and the nonce counts the buffers that got noise.
Nothing else goes in: `torch.manual_seed` has no effect here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.noise.source import current

__all__ = ["NORMALS", "blocks", "fresh_key", "reference_normals"]

Words32 = npt.NDArray[np.uint32]

#: How many normal numbers come from one block: a pair from every four words.
NORMALS = 8
#: The text "expand 32-byte k".
CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
_COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
_DIAGONALS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
_DOUBLE_ROUNDS = 10


def fresh_key() -> Words32:
    """Eight words that nobody has seen."""
    return current().words(4).view(np.uint32).copy()


def blocks(key: Words32, counters: Any, nonce: tuple[int, int, int]) -> Words32:
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
    """The standard normals that the kernel adds: element number k·N + b is the k-th of block b, of N blocks."""
    number = -(-count // NORMALS)
    words = blocks(key, np.arange(number), (turn, 0, 0)).reshape(number, 4, 4).astype(np.float64)
    high, low = words[..., 0] * 2.0**32, words[..., 1]
    radius = np.sqrt(-2.0 * np.log((high + low + 0.5) * 2.0**-64))
    angle = np.pi * ((words[..., 2] * 2.0**32 + words[..., 3]) * 2.0**-63)
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    return np.ascontiguousarray(pairs.reshape(number, NORMALS).T).ravel()[:count]
