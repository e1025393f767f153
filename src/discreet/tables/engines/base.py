# SPDX-License-Identifier: Apache-2.0
"""What all engines have in common: what is checked before anything is run, and how answers come back.

**Guarantee.** A refusal depends on schemas, types, the question and public tables: it comes before a private row is
read. Whatever an engine says when it fails is replaced by one constant text (`engine.guard_engine`). Nothing that is connected
crosses a fork (`forks`): a child connects for itself, or is refused before anything is charged.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any, NoReturn

from discreet.errors import STOPPED, DiscreetError, RefusedQuestion
from discreet.forks import quiet_at_forks
from discreet.tables.data.engine import LINKED, ROW, guard_engine, not_copied, outdated_error
from discreet.tables.data.expr import Read
from discreet.tables.data.sums import BoundedSums, ExactSums, Lookup, Relation, UnitSizes, sorted_groups
from discreet.tables.engines import forks
from discreet.tables.engines.results import bin_counts, check_keys, exact_sums, value_of, whole_read
from discreet.tables.engines.source import SourceTable, known_table
from discreet.tables.engines.tree import lookups, private_tables, unit_of
from discreet.tables.engines.widths import check_sizes, check_sums

__all__ = ["EngineBase"]

Found = Iterable[Sequence[Any]]


class EngineBase(ABC):
    """Tables somewhere. A subclass makes work of a question (which may be refused), and the work makes rows."""

    name: str

    def __init__(self, tables: Mapping[str, SourceTable]) -> None:
        self._tables = dict(tables)
        # one question at a time: what is prepared, and what columns are called, is shared
        self.lock = RLock()
        self._process, self._is_closed = os.getpid(), False
        quiet_at_forks(self)

    @abstractmethod
    def _sums(self, asked: BoundedSums) -> Callable[[], Found]:
        """Work that gives keys and sums for each group."""

    @abstractmethod
    def _sizes(self, asked: UnitSizes) -> Callable[[], Found]:
        """Work that gives bins and numbers of units."""

    @abstractmethod
    def _values(self, reads: Sequence[Read]) -> Callable[[], Found]:
        """Work that gives the distinct cells of columns of one public table."""

    @abstractmethod
    def _copies(self, lookup: Lookup) -> Callable[[], bool]:
        """Work that says whether a public table has a key of a lookup twice."""

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise not_copied("open the data set again where it is needed, with the same dp.open(…)")

    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(self._tables)

    def columns(self, table: str) -> dict[str, str]:
        """The columns of a table and their kinds, from its schema."""
        unit = self._tables[table].unit if table in self._tables else None
        known = known_table(self._tables, table, private=unit is not None, linked=unit == LINKED)
        return {name: column.kind for name, column in known.columns.items()}

    def check(self, asked: BoundedSums | UnitSizes) -> None:
        """Refuse what cannot be asked here; no private row is read."""
        forks.refuse_unseen()
        with self.lock:
            self._validate(asked)
            if isinstance(asked, BoundedSums):
                self._sums(asked)
            else:
                self._sizes(asked)

    def ready(self) -> None:
        """Refuse what could not be counted now: closed, of another process, or no longer as it was opened."""
        with self._asking():
            try:
                self._look()
            except (DiscreetError, *STOPPED):
                raise
            except BaseException:  # noqa: BLE001 - what an engine says may quote anything
                failed = outdated_error("the data cannot be reached any more.")
            else:
                return
        raise failed

    def sums(self, asked: BoundedSums) -> ExactSums:
        """The sums, exactly."""
        with self._asking():
            self._validate(asked)
            work = self._sums(asked)
            return exact_sums(asked, guard_engine(work))

    def sizes(self, asked: UnitSizes) -> tuple[int, ...]:
        """The numbers of units, exactly."""
        with self._asking():
            self._validate(asked)
            work = self._sizes(asked)
            return bin_counts(len(asked.edges) + 1, guard_engine(work))

    def values(self, table: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
        """The distinct values of columns of a public table, sorted."""
        source = known_table(self._tables, table, private=False)
        reads = [whole_read(source, name) for name in columns]
        with self._asking():
            found = guard_engine(self._values(reads))
        rows = (tuple(value_of(read, part) for read, part in zip(reads, row, strict=True)) for row in found)
        return sorted_groups(set(rows))

    def close(self) -> None:
        """Forget what was prepared, and let go of what was opened; a second time does nothing."""
        forks.refuse_unseen()
        with self.lock:
            is_ours = not self._is_closed and self._process == os.getpid()
            self._is_closed = True
            if is_ours:
                self._let_go()

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """The only question, on something that is open in this process."""
        forks.refuse_unseen()
        with self.lock:
            if self._is_closed:
                raise outdated_error("the data set was closed.")
            self._wake()
            if self._process != os.getpid():
                raise forks.other_process()
            yield

    def _wake(self) -> None:  # noqa: B027 - most engines never sleep
        """Connect again, if `sleep` has let go of a connection."""

    def sleep(self) -> None:  # noqa: B027 - and most have nothing to let go of
        """Let go of what must not cross a fork, if it can be had again."""

    def _look(self) -> None:  # noqa: B027 - a frame stays as it is
        """Raise if the source is not as it was opened; no row is read."""

    @abstractmethod
    def _let_go(self) -> None:
        """Forget what was prepared, and let go of what was opened."""

    def _single(self, rows: Relation) -> bool:
        """Whether every row is a unit of its own."""
        return unit_of(self._tables, rows) == ROW

    def _validate(self, asked: BoundedSums | UnitSizes) -> None:
        for name in private_tables(asked.rows):
            known_table(self._tables, name, private=True)
        check_keys(asked.keys)
        if isinstance(asked, BoundedSums):
            check_sums(asked)
        else:
            check_sizes(asked)
        if not self._single(asked.rows):
            return
        for lookup in lookups(asked.rows):
            known_table(self._tables, lookup.table, private=False)
            with self._asking():
                has_copies = guard_engine(self._copies(lookup))
            if has_copies:
                raise RefusedQuestion(
                    "DP703",
                    f"the public table {lookup.table} has a key twice, and every row is protected for itself.",
                    why="one row would become several, which could not be told from rows of others.",
                    fix=f"keep one row for each key in {lookup.table}, or protect each value of a column",
                )
