# SPDX-License-Identifier: Apache-2.0
"""A fixed response time: every question to a session is answered, or refused, at the same time after it was asked.

    dp.Session(data, limit=limit, ledger="visits.ledger", response_time="2s")

**Guarantee.** How long `sql`, `release` and `release_all` take to return depends on data in one event at most, in the whole life of
the session: that a question was not ready in time. An answer, an answer shown again, a refusal, and a failure of the engine all
come `response_time` after the call. If one is not ready by then, the call raises DP804 at that very time, and so does every later
call of this session, without looking at any data. So the clock tells at most which question was the first to be late.

Why it holds: the question runs in a thread of its own. The caller waits for it until the time is over, sleeps for what is left of
it, and looks at the outcome only then. What is late is finished nevertheless: it was charged, and its answer is kept in the
ledger under its key (one is made up where none was given), where a session with a longer response time shows it for nothing more.

What it does not hide: whether a question was late; what others see of this machine's processors, memory and disks meanwhile; the
time until a file is opened or a session is made; and the few microseconds by which an operating system wakes a sleeper late.
What would break it: a response time that was chosen after looking at how long questions take on these data; a new
session after every late question, each of which tells one more event; after_each, which is not called here.
"""

from __future__ import annotations

import math
import re
import secrets
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from functools import partial, wraps
from inspect import signature
from typing import Any, Generic, Protocol, TypeVar, cast

from discreet.errors import BadParameter, EngineFailed

__all__ = ["Clock", "ResponseTime", "at_response_time"]

R = TypeVar("R")
Method = TypeVar("Method", bound=Callable[..., Any])

_UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0}
_LONGEST = 86_400.0
_inside: ContextVar[bool] = ContextVar("discreet_inside_a_timed_question", default=False)


class Clock(Protocol):
    """Time that passes; a test has one of its own."""

    def now(self) -> float:
        """Seconds since some moment; never goes back."""
        ...

    def wait(self, done: threading.Event, until: float) -> bool:
        """Wait for an event, until a moment at most; whether it came in time."""
        ...

    def sleep(self, until: float) -> None:
        """Sleep until a moment."""
        ...


class SystemClock:
    """The monotonic clock of this machine."""

    def now(self) -> float:
        return time.monotonic()

    def wait(self, done: threading.Event, until: float) -> bool:
        return done.wait(max(0.0, until - self.now()))

    def sleep(self, until: float) -> None:
        while (left := until - self.now()) > 0:
            time.sleep(left)


class ResponseTime:
    """When questions return: at once when they are ready, or all of them so many seconds after they were asked."""

    def __init__(self, stated: float | str | None, clock: Clock | None = None) -> None:
        self.seconds = None if stated is None else _seconds(stated)
        self._clock = clock or SystemClock()
        self._late = False

    def run(self, work: Callable[..., R], key: str | None) -> R:
        """What the work returns or raises, when it is time; `key` is that of the answer."""
        if self.seconds is None or _inside.get():
            return work()
        until = self._clock.now() + self.seconds
        outcome = None if self._late else _Outcome(work)
        if outcome is None or not self._clock.wait(outcome.done, until):
            self._late = True
        self._clock.sleep(until)
        if outcome is None or self._late:
            raise self._late_error(key, begun=outcome is not None)
        return outcome.result()

    def silent(self, callback: Callable[[], object]) -> Callable[[], object]:
        """The callback, or one that does nothing: when it is called would tell how long each part takes."""
        return callback if self.seconds is None else (lambda: None)

    def describe(self) -> list[str]:
        """A sentence for whoever reads what is promised."""
        if self.seconds is None:
            return []
        return [
            f"Every question returns {self.seconds:g} s after it was asked; if one is not ready by then, the session ends."
        ]

    def _late_error(self, key: str | None, *, begun: bool) -> EngineFailed:
        longer = (
            f"dp.Session(session.data, ledger=session.ledger, response_time={10 * (self.seconds or 0):g})"
        )
        under = f"   and ask it the same again{f' with key={key!r}' if key else ''}" if begun else ""
        return EngineFailed(
            "DP804",
            f"a question was not ready {self.seconds:g} s after it was asked, and this session has ended.",
            why="when it is ready depends on the data; that it was late is all that the clock tells.",
            fix=f"session = {longer}{under}",
            spent="what this question costs; its answer is kept and costs nothing more"
            if begun
            else "nothing",
        )


class _Outcome(Generic[R]):
    """What becomes of some work, in a thread that nobody waits for."""

    def __init__(self, work: Callable[..., R]) -> None:
        self.done, self._work = threading.Event(), work
        self._value: R | None = None
        self._error: BaseException | None = None
        # the noise of a test stays that of the test
        threading.Thread(target=copy_context().run, args=(self._run,), daemon=True).start()

    def _run(self) -> None:
        _inside.set(True)
        try:
            self._value = self._work()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the caller gets it when it is time
            self._error = error
        finally:
            self.done.set()

    def result(self) -> R:
        if self._error is not None:
            raise self._error
        return cast(R, self._value)


def at_response_time(method: Method) -> Method:
    """A method of a session that returns at its response time; an answer without a key gets one, so that it can be found again."""
    takes_key = "key" in signature(method).parameters

    @wraps(method)
    def timed(session: Any, *args: Any, **kwargs: Any) -> Any:
        response: ResponseTime = session._response  # noqa: SLF001 - a part of the session in a file of its own
        if response.seconds is not None and takes_key and kwargs.get("key") is None and not _inside.get():
            kwargs["key"] = f"answer-{secrets.token_hex(8)}"
        key = kwargs.get("key")
        return response.run(partial(method, session, *args, **kwargs), key if isinstance(key, str) else None)

    return cast(Method, timed)


def _seconds(stated: float | str) -> float:
    number: float = math.nan
    if isinstance(stated, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min)\s*", stated)
        number = float(found[1]) * _UNITS[found[2]] if found else math.nan
    elif isinstance(stated, int | float) and not isinstance(stated, bool):
        number = float(stated)
    if 0 < number <= _LONGEST:
        return number
    raise BadParameter(
        "DP102",
        "response_time must be a number of seconds, or a text such as '500ms', '2s' or '1min', above zero and at most a day.",
        why="every question returns so long after it was asked.",
        fix='response_time="2s"',
    )
