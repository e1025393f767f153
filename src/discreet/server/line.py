# SPDX-License-Identifier: Apache-2.0
"""Who is next: people take turns, so that one who asks a lot does not keep others waiting.

**Guarantee.** While a question waits, nothing is charged for it. Nobody has more than `PER_PERSON`
questions waiting and `AT_ONCE` being drawn, and a data set not more than `IN_ALL` waiting; what is
beyond is refused at once. The order depends on who asked when, and never on rows.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from typing import Generic, Protocol, TypeVar

from discreet.server.refusals import refuse

__all__ = ["WaitingLine"]

AT_ONCE, PER_PERSON, IN_ALL = 2, 10, 100
#: Seconds after which a refused question is asked again.
RETRY = 20


class Waiting(Protocol):
    """What waits: it is somebody's."""

    @property
    def person(self) -> str:
        """Whose it is."""
        ...


Item = TypeVar("Item", bound=Waiting)


class WaitingLine(Generic[Item]):
    """Questions that wait for an engine, by person."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[Item]] = OrderedDict()
        self._drawing: Counter[str] = Counter()
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def join(self, item: Item) -> None:
        """Wait at the end of the own line; refused if it is full."""
        own = self._waiting.get(item.person, deque())
        if len(own) >= PER_PERSON or len(self) >= IN_ALL:
            raise refuse("busy", retry=RETRY)
        own.append(item)
        self._waiting[item.person] = own
        self._changed.set()

    def leave(self, item: Item) -> bool:
        """Leave the line; whether it was still waiting."""
        own = self._waiting.get(item.person, deque())
        if item not in own:
            return False
        own.remove(item)
        if not own:
            del self._waiting[item.person]
        return True

    def before(self, item: Item) -> int:
        """How many are drawn before this one, if nobody else comes."""
        rounds = list(self._waiting.get(item.person, ())).index(item)
        ahead = list(self._waiting).index(item.person)
        return sum(
            min(len(own), rounds + (place < ahead)) for place, own in enumerate(self._waiting.values())
        )

    async def take(self) -> Item:
        """The next question: that of the person whose turn it is. `finish` ends it."""
        while True:
            for person, own in self._waiting.items():
                if self._drawing[person] < AT_ONCE:
                    item = own.popleft()
                    del self._waiting[person]
                    if own:
                        # The next turn of this person comes after that of everybody else.
                        self._waiting[person] = own
                    self._drawing[person] += 1
                    return item
            self._changed.clear()
            await self._changed.wait()

    def finish(self, item: Item) -> None:
        """A question that was taken has been shown."""
        self._drawing[item.person] -= 1
        if not self._drawing[item.person]:
            del self._drawing[item.person]
        self._changed.set()
