# SPDX-License-Identifier: Apache-2.0
"""Answers to questions that may depend on earlier answers: charged once, in one process, never
copied.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import NoReturn, Self

from discreet.errors import UnsupportedGuarantee
from discreet.noise.source import is_private
from discreet.privacy.guarantee import Guarantee

__all__ = ["OpenConversation"]


class OpenConversation:
    """A limited number of answers; the whole guarantee is spent when the conversation is opened.

    **Guarantee.** All answers together have `guarantee`, whoever asks and in whatever order. The
    object cannot be copied or used in another process, because two copies could answer twice as
    much. `private` is False once noise was drawn under the seed of a test.
    """

    _reopen: str

    def __init__(self, guarantee: Guarantee, remaining: int) -> None:
        self.guarantee, self.private = guarantee, is_private()
        self._remaining, self._lock, self._process = remaining, Lock(), os.getpid()

    @property
    def remaining(self) -> int:
        """How many of the limited answers remain."""
        return self._remaining

    @property
    def closed(self) -> bool:
        """Whether the conversation is over."""
        return self._remaining == 0

    def close(self) -> None:
        """End the conversation."""
        self._remaining = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise self._refusal_error("a conversation cannot be copied")

    @contextmanager
    def _one_answer(self) -> Iterator[None]:
        """One answer at a time, while the conversation is open, in the process that opened it."""
        # Before the lock: if a thread of the parent held it at the fork, the child would wait for
        # ever.
        if self._process != os.getpid():
            raise self._refusal_error("this conversation belongs to another process")
        with self._lock:
            if self.closed:
                raise self._refusal_error("this conversation is over")
            self.private = self.private and is_private()
            yield

    def _refusal_error(self, what: str) -> UnsupportedGuarantee:
        return UnsupportedGuarantee(
            "DP203",
            f"{what}.",
            why="its guarantee covers one conversation with a limited number of answers.",
            fix=self._reopen,
        )
