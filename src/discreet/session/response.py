# SPDX-License-Identifier: Apache-2.0
"""A fixed response time: every question to a session is answered, or refused, at the same time
after it was asked.

    dp.Session(data, limit=limit, ledger="visits.ledger", response_time="2s")

**Guarantee.** In the whole life of the session, the time that `sql`, `release` and `release_batch`
take to return depends on the data in at most one event: that a question was not ready in time. An
answer, an answer shown again, a refusal, and a failure of the engine all come `response_time` after
the call. If one is not ready by then, the call raises DP804 at that very time, and so does every
later call of this session, without looking at any data. So the clock tells at most which question
was late first.

Why it holds: the question runs in a thread of its own. The caller waits for it until the time is
over, sleeps for the rest of it, and looks at the outcome only then. A late question is finished
nevertheless: it was charged, and its answer is stored in the ledger under its key (a random one
where none was given). A session with a longer response time shows it at no further cost.

What it does not hide: whether a question was late; what others see of this machine's processors,
memory and disks meanwhile; the time to open a file or to make a session; and the few microseconds
by which an operating system wakes a sleeper late. What would break it: a response time that was
chosen after looking at how long questions take on these data; a new session after every late
question, each of which tells one more event; after_each, which is not called here.
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
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, cast

from discreet.errors import BadParameter, EngineFailed

__all__ = ["Clock", "ResponseTime", "at_response_time"]

Result = TypeVar("Result")
Parameters = ParamSpec("Parameters")

_UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0}
#: A day, in seconds.
_LONGEST = 86_400.0
_in_question: ContextVar[bool] = ContextVar("discreet_inside_a_timed_question", default=False)


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
        while (remaining := until - self.now()) > 0:
            time.sleep(remaining)


class ResponseTime:
    """When questions return: as soon as they are ready, or all of them a fixed time after they were
    asked.
    """

    def __init__(self, value: float | str | None, clock: Clock | None = None) -> None:
        self.seconds = None if value is None else _seconds(value)
        self._clock = clock or SystemClock()
        self._late = False

    def wait_for(self, work: Callable[..., Result], key: str | None) -> Result:
        """What the work returns or raises, when the time is over; `key` is that of the answer."""
        if self.seconds is None or _in_question.get():
            return work()
        until = self._clock.now() + self.seconds
        outcome = None if self._late else _Outcome(work)
        if outcome is None or not self._clock.wait(outcome.done, until):
            self._late = True
        self._clock.sleep(until)
        if outcome is None or self._late:
            raise self._late_error(key, started=outcome is not None)
        return outcome.result()

    def silence(self, callback: Callable[[], object]) -> Callable[[], object]:
        """The callback, or one that does nothing: the moments of its calls would tell how long each
        part takes.
        """
        return callback if self.seconds is None else (lambda: None)

    def describe(self) -> list[str]:
        """A sentence about it for `Session.describe`."""
        if self.seconds is None:
            return []
        return [
            f"Every question returns {self.seconds:g} s after it was asked; if one is not ready by then, the session ends."
        ]

    def _late_error(self, key: str | None, *, started: bool) -> EngineFailed:
        longer = (
            f"dp.Session(session.data, ledger=session.ledger, response_time={10 * (self.seconds or 0):g})"
        )
        retry = f"   and ask it the same again{f' with key={key!r}' if key else ''}" if started else ""
        return EngineFailed(
            "DP804",
            f"a question was not ready {self.seconds:g} s after it was asked, and this session has ended.",
            why="the time until an answer is ready depends on the data; the clock tells only that it was late.",
            fix=f"session = {longer}{retry}",
            spent="what this question costs; its answer is kept and costs nothing more"
            if started
            else "nothing",
        )


class _Outcome(Generic[Result]):
    """The outcome of some work, in a thread that nobody waits for."""

    def __init__(self, work: Callable[..., Result]) -> None:
        self.done, self._work = threading.Event(), work
        self._value: Result | None = None
        self._error: BaseException | None = None
        # The thread draws from the noise source of its caller: a test draws the noise of the test.
        threading.Thread(target=copy_context().run, args=(self._work_to_end,), daemon=True).start()

    def _work_to_end(self) -> None:
        _in_question.set(True)
        try:
            self._value = self._work()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the caller gets it when it is time
            self._error = error
        finally:
            self.done.set()

    def result(self) -> Result:
        if self._error is not None:
            raise self._error
        return cast(Result, self._value)


def at_response_time(method: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A method of a session that returns at its response time.

    An answer without a key gets a random one, so that it can be found again.
    """
    takes_key = "key" in signature(method).parameters

    @wraps(method)
    def call_at_response_time(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        response: ResponseTime = cast(Any, args[0])._response  # noqa: SLF001 - a part of the session in its own file
        if (
            response.seconds is not None
            and takes_key
            and kwargs.get("key") is None
            and not _in_question.get()
        ):
            kwargs["key"] = f"answer-{secrets.token_hex(8)}"
        key = kwargs.get("key")
        return response.wait_for(partial(method, *args, **kwargs), key if isinstance(key, str) else None)

    return call_at_response_time


def _seconds(value: float | str) -> float:
    number: float = math.nan
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min)\s*", value)
        number = float(match[1]) * _UNITS[match[2]] if match else math.nan
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
    if 0 < number <= _LONGEST:
        return number
    raise BadParameter(
        "DP102",
        "response_time must be a number of seconds, or a text such as '500ms', '2s' or '1min', above zero and at most a day.",
        why="every question returns so long after it was asked.",
        fix='response_time="2s"',
    )
