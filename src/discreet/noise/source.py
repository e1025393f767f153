# SPDX-License-Identifier: Apache-2.0
"""The source of random bits: the operating system's in programs, a seeded one only in tests.

    words = source.current().words(1000)        # 1000 independent uniform 64-bit words

**Guarantee**: the words are the output of AES-256 in counter mode. The keys come from the operating
system; nobody chooses them, and no other thread or process has them.

Why it holds: every block has its own key, fresh from the system's generator and forgotten at once,
so the memory of a process does not reveal the words of earlier blocks. Every thread has its own
block, which stores its process and the number of earlier forks; a stale block is discarded before
it gives a word.

A draw must not fail after its charge, so the caller calls `reserve` before the charge: it raises
DP805 if the system gives no bits, and otherwise takes a block for the next draws.

What would break it: a virtual machine that is copied while running gives, in both copies, the words
that were left in the block (see docs/sharp-edges/timing.md).
"""

from __future__ import annotations

import hashlib
import itertools
import os
import threading
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Protocol

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from discreet import check

Words = npt.NDArray[np.uint64]

_SEED_BYTES = 48  # a 32-byte key and a 16-byte counter
_BLOCK_WORDS = 4096  # what a small request takes its words from
_ZEROS = memoryview(bytes(8 * (1 << 16)))


class Source(Protocol):
    """Anything that gives uniform bits; `private` is False if the bits can be repeated."""

    @property
    def private(self) -> bool: ...

    def words(self, count: int) -> Words:
        """Fresh uniform 64-bit words, in an array that the caller owns."""
        ...

    def bits(self, count: int) -> int:
        """A uniform whole number of that many bits."""
        ...


class _Stream:
    """Blocks of AES-256 in counter mode, each with its own seed; small requests share a block."""

    def __init__(self, next_seed: Callable[[], bytes]) -> None:
        self._next_seed = next_seed
        self._block: Words = np.empty(0, np.uint64)
        self._used = 0

    def words(self, count: int) -> Words:
        if count > _BLOCK_WORDS // 4:
            return self._fresh(count)
        if self._used + count > self._block.size:
            self.refill()
        start, self._used = self._used, self._used + count
        return self._block[start : self._used]

    def refill(self) -> None:
        """Replaces the block by a fresh one."""
        self._block, self._used = self._fresh(_BLOCK_WORDS), 0

    def _fresh(self, count: int) -> Words:
        seed, words = self._next_seed(), np.empty(count, np.uint64)
        zeros = _ZEROS[: 8 * count] if 8 * count <= len(_ZEROS) else bytes(8 * count)
        cipher = Cipher(algorithms.AES(seed[:32]), modes.CTR(seed[32:]))
        cipher.encryptor().update_into(zeros, words.view(np.uint8).data)
        return words


class SystemSource:
    """The source of every real draw: a generator per thread, seeded by the operating system."""

    private = True

    def __init__(self) -> None:
        self._local = threading.local()

    def words(self, count: int) -> Words:
        return self._stream().words(count)

    def reserve(self) -> None:
        """A fresh block for this thread, or DP805."""
        self._stream().refill()

    def _stream(self) -> _Stream:
        local, birth = self._local, (os.getpid(), _forks)
        if getattr(local, "birth", None) != birth:
            local.stream, local.birth = _Stream(_system_seed), birth
        stream: _Stream = local.stream
        return stream

    def bits(self, count: int) -> int:
        return _join_words(self.words(-(-count // 64)), count)


class SeededSource:
    """The same words for the same seed. For tests only: its words are not private."""

    private = False

    def __init__(self, seed: int | str) -> None:
        blocks = itertools.count()
        self._stream = _Stream(lambda: hashlib.sha384(f"{next(blocks)} {seed!r}".encode()).digest())

    def words(self, count: int) -> Words:
        """The next `count` words of 64 bits."""
        return self._stream.words(count)

    def bits(self, count: int) -> int:
        """The next `count` bits, as a number."""
        return _join_words(self.words(-(-count // 64)), count)


class ScriptEnded(Exception):
    """A ScriptedSource was asked for more bits than its script holds."""


class ScriptedSource:
    """The bits of a script in order; then it raises ScriptEnded. For tests only."""

    private = False

    def __init__(self, bits: Iterable[int] = (), *, words: Iterable[int] = ()) -> None:
        self._script = [int(bit) for bit in bits]
        for word in words:
            self._script.extend((int(word) >> bit) & 1 for bit in range(63, -1, -1))
        self.used = 0

    def words(self, count: int) -> Words:
        """The next `count` words of 64 bits."""
        return np.array([self.bits(64) for _ in range(count)], np.uint64)

    def bits(self, count: int) -> int:
        """The next `count` bits, as a number."""
        if self.used + count > len(self._script):
            raise ScriptEnded
        value = 0
        for bit in self._script[self.used : self.used + count]:
            value = 2 * value + bit
        self.used += count
        return value


def current() -> Source:
    """The source of this context: the system's, unless a test has replaced it."""
    return _current.get()


def reserve() -> None:
    """Takes random bits for the next draws, before they are charged; DP805 if there are none."""
    source = _current.get()
    if isinstance(source, SystemSource):
        source.reserve()


def is_private() -> bool:
    """False inside `discreet.testing.seeded()` and similar; releases carry it as `private`."""
    return _current.get().private


def _system_seed() -> bytes:
    return check.random_bytes(_SEED_BYTES)


def _join_words(words: Words, count: int) -> int:
    value = 0
    for word in words.tolist():
        value = (value << 64) | word
    return value >> (64 * words.size - count)


def _count_fork() -> None:
    global _forks  # noqa: PLW0603 - one number per process, which only the fork hook writes
    _forks += 1


_forks = 0
_system = SystemSource()
_current: ContextVar[Source] = ContextVar("discreet_source", default=_system)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)
