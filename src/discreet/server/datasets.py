# SPDX-License-Identifier: Apache-2.0
"""The data sets of a server by name: the description without rows, the ledger, and the engines.

**Guarantee.** This process holds no rows and opens no data: what it knows of them is the public
description that an engine process has read off schemas. A ledger that the store has seen before is
never made anew: if it is gone or was put back to an older copy, the server does not start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from discreet.ledger import Entry, Ledger, Limit
from discreet.ledger.overview import members
from discreet.ledger.periods import STREAM
from discreet.ledger.receipt import NOT_DRAWN
from discreet.server.config import HostedDescription, ServerConfig, settings_error
from discreet.server.engine import EngineWatcher
from discreet.server.store import ServerStore
from discreet.session import Session
from discreet.tables.ask.start import Dataset

__all__ = ["Hosted", "QuestionRecord", "open_datasets"]

#: What a server of one description may spend if the description has no [budget].
DEFAULT_BUDGET = {"epsilon": 1.0, "delta": 1e-6}


@dataclass(frozen=True)
class QuestionRecord:
    """A question as the ledger has it: `state` is "waiting", "answered" or "not drawn"."""

    key: str
    number: int
    time: str
    question: str
    purpose: str | None
    seat: str | None
    mechanism: str | None
    guarantee: str | None
    state: str


class Hosted:
    """One data set of a server."""

    def __init__(
        self, settings: HostedDescription, data: Dataset, ledger: Ledger, seats: tuple[str, ...]
    ) -> None:
        self.settings, self.ledger, self.seats = settings, ledger, seats
        self.data, self.name = data, data.name
        self.engines: list[tuple[EngineWatcher, ThreadPoolExecutor]] = []
        self._records: dict[str, QuestionRecord] = {}
        self._read_up_to = 0

    def session(
        self, seat: str | None = None, project: str | None = None, purpose: str | None = None
    ) -> Session:
        """A session on the description and the ledger; whatever needs a row is refused (DP803)
        before it is charged.
        """
        return Session(self.data, ledger=self.ledger, analyst=seat, project=project, purpose=purpose)

    def describe_again(self, toml: str) -> bool:
        """Take the description of data that were opened again; whether it differs."""
        data = Dataset.from_toml(toml)
        differs = data.public_description() != self.data.public_description()
        self.data = data
        return differs

    def records(self) -> Mapping[str, QuestionRecord]:
        """Every question in the ledger that has a key, the oldest first. Only new rows are read."""
        for entry in self.ledger.entries(after=self._read_up_to):
            self._read_up_to = entry.number
            self._note(entry)
        return self._records

    def _note(self, entry: Entry) -> None:
        if entry.key is None or entry.mechanism == STREAM:
            return
        if entry.kind == "reserved":
            self._records[entry.key] = QuestionRecord(
                entry.key,
                entry.number,
                entry.time,
                entry.question or "",
                entry.purpose,
                entry.analyst,
                entry.mechanism,
                entry.guarantee,
                "waiting",
            )
        elif entry.kind == "committed" and entry.key in self._records:
            state = "not drawn" if entry.answer == NOT_DRAWN else "answered"
            self._records[entry.key] = replace(self._records[entry.key], state=state)

    def close(self) -> None:
        """End the engines."""
        for watcher, thread in self.engines:
            thread.shutdown(wait=False, cancel_futures=True)
            watcher.stop()


async def open_datasets(config: ServerConfig, store: ServerStore) -> dict[str, Hosted]:
    """Start the engines of all data sets, and open their ledgers."""
    hosted: dict[str, Hosted] = {}
    try:
        for settings in config.datasets:
            each = await _open_dataset(settings, config, store)
            if each.name in hosted:
                each.close()
                raise settings_error(
                    f"two data sets are called {each.name}.", '[dataset]   name = "…"   in one of them'
                )
            hosted[each.name] = each
    except BaseException:
        for each in hosted.values():
            each.close()
        raise
    return hosted


async def _open_dataset(settings: HostedDescription, config: ServerConfig, store: ServerStore) -> Hosted:
    loop, engines = asyncio.get_running_loop(), []
    try:
        toml = ""
        for number in range(config.engine.processes):
            watcher = EngineWatcher(settings.description, config.engine)
            thread = ThreadPoolExecutor(1, thread_name_prefix=f"{settings.description.stem}-{number}")
            engines.append((watcher, thread))
            toml = await loop.run_in_executor(thread, watcher.start)
        data = Dataset.from_toml(toml)
        address = _ledger_address(settings, data, config.state)
        ledger = await loop.run_in_executor(
            None, partial(_open_ledger, address, data, settings, config, store)
        )
        for watcher, _ in engines:
            watcher.use_ledger(ledger, address)
    except BaseException:
        for watcher, thread in engines:
            thread.shutdown(wait=False)
            watcher.stop()
        raise
    store.save_description(data.name, toml, None)
    store.keep_anchor(data.name, len(ledger) - 1, ledger.anchor())
    each = Hosted(settings, data, ledger, _seat_names(ledger.limit, settings))
    each.engines = engines
    return each


def _ledger_address(settings: HostedDescription, data: Dataset, state: Path) -> str:
    """Where the ledger lies: as the settings or the description say, or in the folder of the
    server.
    """
    return settings.ledger or str(data.budget.get("ledger") or state / f"{data.name}.ledger")


def _open_ledger(
    address: str, data: Dataset, settings: HostedDescription, config: ServerConfig, store: ServerStore
) -> Ledger:
    seen = store.last_anchor(data.name)
    if seen is not None:
        # Without a limit a ledger is never made: one that is gone is missed (DP603).
        return Ledger(address, unit=data.unit, dataset=data.name, anchor=seen[1])
    if "://" not in address and Path(address).exists():
        return Ledger(address, unit=data.unit, dataset=data.name)
    return Ledger(
        address,
        limit=hosted_limit(data.budget, settings, single=config.single),
        unit=data.unit,
        dataset=data.name,
        description=data.public_description(),
    )


def hosted_limit(budget: Mapping[str, Any], settings: HostedDescription, *, single: bool) -> Limit:
    """The limit of a new ledger: the [budget] of the description, divided among the seats."""
    amounts = {name: budget[name] for name in ("epsilon", "delta", "rho", "mu") if name in budget}
    if not amounts and not single:
        raise settings_error(
            "the description states no budget.",
            "[budget]   epsilon = 1.0   delta = 1e-6   in the description",
            "a server never chooses how much may be revealed.",
        )
    allocations = budget.get("per_analyst")
    if allocations is None and settings.seats > 1:
        share = settings.share or 1 / settings.seats
        allocations = {f"seat {number}": share for number in range(1, settings.seats + 1)}
    window, lifetime = budget.get("window", "none"), budget.get("lifetime")
    return Limit.filter(
        **(amounts or DEFAULT_BUDGET),
        kind=budget.get("filter"),
        leaks=budget.get("leaks"),
        analysts=allocations,
        reserved=settings.reserved,
        window=None if window == "none" else window,
        lifetime=None if lifetime is None else Limit.filter(**lifetime),
    )


def _seat_names(limit: Limit, settings: HostedDescription) -> tuple[str, ...]:
    """The seats of a data set: the allocations of its ledger, or numbers if it has none."""
    allocated = tuple(name for group, name, _ in members(limit) if group == "analyst")
    return allocated or tuple(f"seat {number}" for number in range(1, settings.seats + 1))
