# SPDX-License-Identifier: Apache-2.0
"""When outcomes are shown: on doubling ticks after a question was begun, or at one fixed time.

**Guarantee.** With `fixed`, every outcome is shown at the deadline, whatever the rows are, as long
as none misses it. With ticks, the time tells at most which of the moments tick, 2 · tick, 4 · tick,
… came first after the outcome was there: nine possibilities up to 64 s for a tick of 250 ms. Random
delays would average out over many questions; a schedule does not.

Why it holds: this process waits for the moments of the schedule and looks at the outcome only then.
The question is drawn in another process, and an engine takes the next question after the outcome
was shown, not when it was ready, so waiting questions tell no more.

What it does not hide: the speed of other requests of this machine meanwhile. What would break it: a
process that is too busy to wake up at a tick shows an outcome late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TypeVar

from discreet.server.config import ShowingSettings

__all__ = ["moments", "show_at_tick"]

Outcome = TypeVar("Outcome")

#: The part of a fixed time after which a question that is not drawn is given up, so that this can be
#: written down in time.
GIVE_UP = 0.9


def moments(showing: ShowingSettings) -> Iterator[float]:
    """The seconds after which an outcome may be shown.

    >>> schedule = moments(ShowingSettings(tick=0.25))
    >>> [next(schedule) for _ in range(4)]
    [0.25, 0.5, 1.0, 2.0]
    """
    moment = showing.deadline if showing.fixed else showing.tick
    while True:
        yield moment
        moment *= 2


async def show_at_tick(showing: ShowingSettings, outcome: asyncio.Future[Outcome], started: float) -> Outcome:
    """The outcome, at the first moment of the schedule at which it is there."""
    loop = asyncio.get_running_loop()
    for moment in moments(showing):
        await asyncio.sleep(max(0.0, started + moment - loop.time()))
        if outcome.done():
            break
    return outcome.result()
