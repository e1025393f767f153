# SPDX-License-Identifier: Apache-2.0
"""Something happens in the middle of a call: at its first event, or its second, and so on until it is over.

An event is a line of Python, the beginning or the end of a function, and the return from a function that is written in C. These
are all the places where Python lets an interrupt in, and some more. Only events in code that has something to leave
behind are counted: the ledger's own files, the driver of the server, and the locks and context managers of the standard library.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import discreet.ledger

_LEDGER = Path(discreet.ledger.__file__).parent
#: Pure functions and values: an interrupt within them does what one at the line that calls them does.
_ARITHMETIC = {
    _LEDGER / f"{name}.py"
    for name in (
        "candidates",
        "costs",
        "description",
        "filters",
        "layers",
        "limit",
        "pricing",
        "split",
        "stated_guarantee",
    )
}
assert all(path.exists() for path in _ARITHMETIC), "a file has another name today"
_DRIVER = importlib.util.find_spec("psycopg")
#: Of code that is not ours one event in so many is enough.
_STEP = 17
COUNTED = (
    *(str(path) for path in sorted(set(_LEDGER.glob("*.py")) - _ARITHMETIC)),
    *([] if _DRIVER is None or _DRIVER.origin is None else [str(Path(_DRIVER.origin).parent)]),
    str(contextlib.__file__),
    str(threading.__file__),
)


class Happening:
    """Does something at one event of a call; `happened` says whether the call was long enough."""

    def __init__(self, at: int, what: Callable[[], object]) -> None:
        self._left, self._what = at, what
        self.happened = False
        self._known: dict[str, bool] = {}
        self._is_foreign: dict[str, bool] = {}
        self._seen = 0

    def during(self, call: Callable[[], Any]) -> Any:
        sys.setprofile(self._profile)
        sys.settrace(self._trace)
        try:
            return call()
        finally:
            sys.settrace(None)
            sys.setprofile(None)

    def _counted(self, frame: Any) -> bool:
        name = frame.f_code.co_filename
        if name not in self._known:
            self._known[name] = name.startswith(COUNTED)
            self._is_foreign[name] = not name.startswith(str(_LEDGER))
        return self._known[name]

    def _trace(self, frame: Any, event: str, arg: object) -> Any:
        if not self._counted(frame):
            return None
        self._count(frame)
        return self._trace

    def _profile(self, frame: Any, event: str, arg: object) -> None:
        if event == "c_return" and self._counted(frame):
            self._count(frame)

    def _count(self, frame: Any) -> None:
        self._seen += 1
        if self._is_foreign[frame.f_code.co_filename] and self._seen % _STEP:
            return
        if self._left <= 0 and not self.happened and not _is_finalizing(frame):
            self.happened = True
            self._what()
        self._left -= 1


def _is_finalizing(frame: Any) -> bool:
    """Whether Python would swallow an exception here."""
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False
