# SPDX-License-Identifier: Apache-2.0
"""Code that is not ours, run on records: a caller's function, or the methods of a record itself.

    call_quietly(predicate, record)  # its value, or None where it raises
    with callback_guard():           # once around a loop: nested calls then cost next to nothing
        found = [call_quietly(key, record) for record in records]

**Guarantee.** What comes back is the value, or `instead`. Nothing else does: no exception of any
kind (`SystemExit`, `GeneratorExit` and a `KeyboardInterrupt` that the code raises itself included),
no text, no warning. So no record decides whether there is an answer.

A real interruption still ends the call: Ctrl-C, or any other signal whose handler raises. Then the
exception of the handler leaves, without a context, a cause or the frames that held a record.

Why it holds: while such code runs in the main thread, where Python runs handlers, the handlers of
the signals below are wrapped. What a handler raised is remembered, so it is told from what the code
raised. In other threads no handler runs, and every exception is the code's own.

What would break it: code that ends the process by itself (`os._exit`), that keeps or sends what it
sees, or that takes long.
"""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

__all__ = ["call_quietly", "callback_guard"]

#: Signals that programs handle by raising: to stop, to reload, to limit the time.
_SIGNALS = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGBREAK")
    if hasattr(signal, name)
]


class CallbackGuard:
    """Remembers whether a signal told the program to stop; one for each thread at a time."""

    def __init__(self) -> None:
        self.stopped: BaseException | None = None
        self._handlers: dict[int, Any] = {}
        self._warnings = warnings.catch_warnings()
        self._depth = 0

    def __enter__(self) -> Self:
        self._depth += 1
        if self._depth == 1:
            try:
                self._begin()
            except BaseException:
                # interrupted before it began: nothing of it may stay
                self._end()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if self._depth:
            return
        self._end()
        if self.stopped is not None:
            self.stopped.__context__ = self.stopped.__cause__ = None
            raise self.stopped.with_traceback(None)

    def _begin(self) -> None:
        _local.guard = self
        self._warnings.__enter__()
        warnings.simplefilter("ignore")
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                self._handlers[number] = handler
                signal.signal(number, self._handle)

    def _end(self) -> None:
        _local.guard = None
        self._warnings.__exit__(None, None, None)
        for number, handler in self._handlers.items():
            # a function that set a handler of its own keeps it
            if signal.getsignal(number) == self._handle:
                signal.signal(number, handler)

    def _handle(self, number: int, frame: Any) -> None:
        try:
            self._handlers[number](number, frame)
        except BaseException as error:
            self.stopped = error
            raise


_local = threading.local()


def callback_guard() -> CallbackGuard:
    """A context in which `call_quietly` is cheap; contexts may be nested."""
    guard: CallbackGuard | None = getattr(_local, "guard", None)
    return CallbackGuard() if guard is None else guard


def call_quietly(function: Callable[..., Any], *arguments: Any, instead: Any = None) -> Any:
    """What the function returns; `instead` where it raises anything."""
    with callback_guard() as guard:
        try:
            found = function(*arguments)
        except BaseException:  # noqa: BLE001 - whatever it is, its text and the fact itself would tell of a record
            found = instead
        if guard.stopped is not None:
            raise guard.stopped
        return found
