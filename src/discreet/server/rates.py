# SPDX-License-Identifier: Apache-2.0
"""How often somebody may ask: buckets that fill up evenly, one for each token and kind of request.

**Guarantee.** A bucket depends on earlier requests of the same token alone. Rates are those of one
process: with several workers each has its own.
"""

from __future__ import annotations

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable

from discreet.server.refusals import refuse

__all__ = ["OpenStreams", "RateLimiter"]

#: So many buckets are remembered; the least recently used one is forgotten first.
_MOST = 10_000


class RateLimiter:
    """Buckets of requests: `rate` a second on average, and `burst` at once."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, who: str) -> None:
        """Take one from a bucket, or refuse with the seconds after which there is one again."""
        now = self._clock()
        level, since = self._buckets.pop(who, (self._burst, now))
        level = min(self._burst, level + (now - since) * self._rate)
        allowed = level >= 1
        self._buckets[who] = (level - 1 if allowed else level, now)
        if len(self._buckets) > _MOST:
            self._buckets.popitem(last=False)
        if not allowed:
            raise refuse("busy", retry=math.ceil((1 - level) / self._rate))


class OpenStreams:
    """Streams of events that are open: so many for each person, and so many in all."""

    IN_ALL = 200

    def __init__(self, each: int) -> None:
        self._each, self._open = each, Counter[str]()

    def open(self, who: str) -> None:
        """One more, or a refusal."""
        if self._open[who] >= self._each or self._open.total() >= self.IN_ALL:
            raise refuse("busy", retry=10)
        self._open[who] += 1

    def close(self, who: str) -> None:
        """One less."""
        self._open[who] -= 1
