# SPDX-License-Identifier: Apache-2.0
"""The engine process, which alone opens data: it charges, draws and commits. The server watches it.

**Guarantee.** A question ends in one of three ways, and the payment follows them. The engine
raises: it commits that the answer was not drawn. The engine dies, or misses the deadline: the
watcher ends it and commits the same, so that nothing is drawn twice for one payment after rows
could have caused the end. The server dies: the charge stays held, and the same key draws for the
same payment; rows cannot cause that, because they are read here only. Before the charge every end
costs nothing.

Why it holds: each draw is made under a held charge (`discreet.ledger.turn`), of which only the
first commit is ever shown. What would break it: an engine that takes the server down with it; the
engine asks the kernel to be ended first when memory is short, and a memory limit applies to it
alone.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from discreet.errors import DiscreetError
from discreet.ledger import Charge, Entry, Ledger, Receipt
from discreet.ledger.receipt import NOT_DRAWN
from discreet.server.config import EngineSettings
from discreet.server.refusals import refuse
from discreet.session import Session

__all__ = ["EngineOrder", "EngineReply", "EngineWatcher"]

#: Seconds that opening data, and waiting for the turn at a ledger, may take.
PATIENCE = 120.0


@dataclass(frozen=True)
class EngineOrder:
    """Questions for an engine, by their keys in the ledger: SQL, cost and parameters; and who pays.

    `epsilon` is what they may cost at δ = 1e-6, where a token limits what is spent in a day.
    """

    questions: Mapping[str, tuple[str, Mapping[str, Any], tuple[Any, ...]]]
    seat: str | None
    project: str | None = None
    purpose: str | None = None
    batch: bool = False
    epsilon: float = 0.0


@dataclass(frozen=True)
class EngineReply:
    """How a question ended: "answered", "not drawn", "refused" (before any charge), or "not ready".

    `answers` holds each answer and its receipt in wire form. `charged` says that something was
    charged, so that `error` must not show in the status of the response.
    """

    state: str
    answers: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)
    error: DiscreetError | None = None
    charged: bool = False


class EngineWatcher:
    """One engine process, seen from the server. `run` is called from one thread at a time."""

    def __init__(self, description: Path, settings: EngineSettings) -> None:
        self._description, self._settings = description, settings
        self._process: Any = None
        self._pipe: Connection | None = None
        self._ledger: Ledger | None = None
        self._address = ""
        self.restarts = 0
        #: Called with the description when the data were opened again.
        self.on_reopened: Callable[[str], None] = lambda _: None

    def start(self) -> str:
        """Start the process; the description that it opened, as TOML. No ledger is needed yet."""
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_run_engine, args=(theirs, self._description, self._settings), daemon=True
        )
        with _without_main():
            self._process.start()
        theirs.close()
        kind, text = self._receive(PATIENCE)
        if kind == "opened":
            return str(text)
        self.stop()
        raise text if isinstance(text, DiscreetError) else refuse("stopping", retry=20)

    def use_ledger(self, ledger: Ledger, address: str) -> None:
        """From now on charge this ledger, which lies at the address."""
        self._ledger, self._address = ledger, address
        self._send(("ledger", address))

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.is_alive()

    @property
    def pid(self) -> int | None:
        """The number of the process."""
        return None if self._process is None else self._process.pid

    def stop(self) -> None:
        """End the process now."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None

    def run(self, order: EngineOrder, deadline: float, on_charged: Callable[[int], None]) -> EngineReply:
        """How the questions ended, within `deadline` seconds after the first charge."""
        if not self.is_alive:
            try:
                self._restart()
            except DiscreetError as failure:
                return EngineReply("not ready", error=failure)
        # Keys of which a charge may wait: those of the question, and those of steps before it.
        keys, until, charged = dict.fromkeys(order.questions), time.monotonic() + PATIENCE, False
        self._send(("ask", order))
        while True:
            kind, content = self._receive(until - time.monotonic())
            if kind == "charged":
                number, new = content
                keys |= dict.fromkeys(new)
                until = until if charged else time.monotonic() + deadline
                charged = True
                on_charged(number)
            elif kind == "reopened":
                self.on_reopened(content)
            elif kind == "reply":
                return content  # type: ignore[no-any-return]  # an EngineReply
            else:
                return self._give_up(keys, charged=charged)

    def _give_up(self, keys: Iterable[str], *, charged: bool) -> EngineReply:
        """End an engine that died or is late; what it was paid for is not drawn, for good."""
        self.stop()
        self.restarts += 1
        assert self._ledger is not None
        waiting = [self._ledger.find_pending(key) for key in keys]
        receipts = [receipt for receipt in waiting if receipt is not None]
        if receipts:
            self._ledger.commit_all([(receipt, NOT_DRAWN) for receipt in receipts])
        if receipts or charged:
            return EngineReply("not drawn", charged=True)
        return EngineReply("not ready")

    def _restart(self) -> None:
        self.on_reopened(self.start())
        self._send(("ledger", self._address))

    def _send(self, message: object) -> None:
        # A process that has died is noticed where its reply is awaited.
        with contextlib.suppress(OSError):
            assert self._pipe is not None
            self._pipe.send(message)

    def _receive(self, seconds: float) -> tuple[str, Any]:
        """The next message, or that none came in time."""
        assert self._pipe is not None
        try:
            if self._pipe.poll(max(0.0, seconds)):
                message: tuple[str, Any] = self._pipe.recv()
                return message
        except (EOFError, OSError):
            return "died", None
        return "late", None


@contextlib.contextmanager
def _without_main() -> Any:
    """Start a process that does not run the program of this one again."""
    main = sys.modules["__main__"]
    names = {name: getattr(main, name) for name in ("__file__", "__spec__") if hasattr(main, name)}
    for name in names:
        setattr(main, name, None)
    try:
        yield
    finally:
        for name, value in names.items():
            setattr(main, name, value)


# --- inside the engine process -------------------------------------------------------------------------


class WatchedLedger(Ledger):
    """A ledger that tells the server of each charge, after it is on disk and before anything is
    drawn.
    """

    tell: Callable[[int, list[str]], None]

    def charge_all(self, wanted: Iterable[Charge], **facts: Any) -> list[Receipt | Entry]:
        charges = super().charge_all(wanted, **facts)
        receipts = [charge for charge in charges if isinstance(charge, Receipt)]
        if receipts:
            self.tell(receipts[-1].number, [receipt.key for receipt in receipts if receipt.key is not None])
        return charges


def _run_engine(pipe: Connection, description: Path, settings: EngineSettings) -> None:
    """Open the data, and answer orders until the server goes away."""
    _limit_process(settings)
    try:
        host = EngineHost(pipe, description, settings)
    except DiscreetError as failure:
        pipe.send(("failed", failure))
        return
    with contextlib.suppress(EOFError, OSError):
        pipe.send(("opened", host.data.to_toml()))
        while True:
            kind, content = pipe.recv()
            if kind == "ledger":
                host.use_ledger(content)
            else:
                pipe.send(("reply", host.reply(content)))


def _limit_process(settings: EngineSettings) -> None:
    """Be ended first, be nice, print nothing, and take no more memory than allowed."""
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - for the life of the process
    with contextlib.suppress(OSError):
        os.nice(5)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("900", encoding="ascii")
    if settings.memory is not None and os.name == "posix":
        import resource

        # DuckDB keeps within its own limit; this stops what does not.
        most = 2 * settings.memory + 2**30
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


class EngineHost:
    """The data and the ledger of an engine process."""

    def __init__(self, pipe: Connection, description: Path, settings: EngineSettings) -> None:
        self._pipe, self._description, self._settings = pipe, description, settings
        self.data = self._open()
        self._ledger: WatchedLedger | None = None
        self._charged = False

    def use_ledger(self, address: str) -> None:
        """Charge this ledger."""
        self._ledger = WatchedLedger(address)
        self._ledger.tell = self._tell
        # What questions import and open is there before the first of them, so that its tick does not tell.
        Session(self.data, ledger=self._ledger)
        self.data.ready()

    def _open(self) -> Any:
        from discreet.tables.open import open as open_data

        return open_data(self._description)

    def _tell(self, number: int, keys: list[str]) -> None:
        self._charged = True
        self._pipe.send(("charged", (number, keys)))

    def reply(self, order: EngineOrder) -> EngineReply:
        """Answer an order; whatever happens, something is returned."""
        self._charged = False
        try:
            self._open_again_if_changed()
        except DiscreetError as failure:
            return EngineReply("not ready", error=failure)
        try:
            answers = self._ask(order)
        except DiscreetError as refusal:
            if not self._charged:
                return EngineReply("not drawn" if refusal.code == "DP801" else "refused", error=refusal)
            state = "refused" if refusal.code in _AFTER_A_STEP else "not drawn"
            return EngineReply(state, error=refusal if state == "refused" else None, charged=True)
        except Exception:  # noqa: BLE001 - an engine may raise anything, and its text may quote rows
            return EngineReply("not drawn" if self._charged else "not ready", charged=self._charged)
        wires = {
            key: (answer.to_json(), None if answer.receipt is None else answer.receipt.to_json())
            for key, answer in answers.items()
        }
        return EngineReply("answered", wires, charged=self._charged)

    def _open_again_if_changed(self) -> None:
        """Open data that were replaced, before anything is charged."""
        if self.data.is_current():
            return
        data = self._open()
        self.data.close()
        self.data = data
        self._pipe.send(("reopened", data.to_toml()))

    def _ask(self, order: EngineOrder) -> Mapping[str, Any]:
        session = Session(
            self.data,
            ledger=self._ledger,
            analyst=order.seat,
            project=order.project,
            purpose=order.purpose,
        )
        if order.batch:
            return session.release_batch(
                {key: (sql, dict(cost)) for key, (sql, cost, _) in order.questions.items()}  # type: ignore[misc]
            )
        ((key, (sql, cost, parameters)),) = order.questions.items()
        return {key: session.sql(sql, key=key, parameters=parameters, **cost)}


#: Refusals of a later step that follow from released numbers and the ledger.
_AFTER_A_STEP = {"DP601", "DP203", "DP706", "DP707"}
