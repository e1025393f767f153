# SPDX-License-Identifier: Apache-2.0
"""Code that is not ours, run on records: a caller's function, or the methods of a record itself.

    call_quietly(predicate, record)  # its value, or None where it raises
    with callback_guard():           # once around a loop: nested calls then cost next to nothing
        keys = [call_quietly(key, record) for record in records]

**Guarantee.** The result is the value, or `instead`. No exception of any kind is raised (including
`SystemExit`, `GeneratorExit` and a `KeyboardInterrupt` that the code raises itself), no text is
shown, and no warning. So no record decides whether there is an answer.

A real interruption still ends the call: Ctrl-C, or any other signal whose handler raises. The
exception of the handler is raised without a context, a cause or the frames that held a record.

Why it holds: Python runs signal handlers in the main thread, and there the handlers of the signals
below are wrapped. The wrapper remembers the exception of a handler, which distinguishes it from the
exceptions of the code. In other threads no handler runs, and every exception is the code's own.

What would break it: code that ends the process (`os._exit`), that stores or sends records, or whose
running time depends on them.
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
                # An interruption before the guard is complete must leave nothing behind.
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
            # A handler that the function has set itself stays.
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
    """The result of the function, or `instead` if it raises anything."""
    with callback_guard() as guard:
        try:
            result = function(*arguments)
        except BaseException:  # noqa: BLE001 - the exception and its text could reveal a record
            result = instead
        if guard.stopped is not None:
            raise guard.stopped
        return result
