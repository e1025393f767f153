# SPDX-License-Identifier: Apache-2.0
"""What all engines share: the checks before a run, the lock, and the way back from rows to sums.

**Guarantee.** A refusal depends on schemas, types, the request and public tables alone, and comes
before a private row is read. The error text of an engine is replaced by one constant text
(`guard_engine`). No connection crosses a fork (`forks`): a child connects for itself, or is refused
before anything is charged.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import RLock
from typing import Any, NoReturn

from discreet.errors import STOPPED, DiscreetError, RefusedQuestion
from discreet.forks import quiet_at_forks
from discreet.tables.algebra.engine import LINKED, ROW, guard_engine, not_copied, outdated_error
from discreet.tables.algebra.expr import Read
from discreet.tables.algebra.sums import BoundedSums, ExactSums, Lookup, Relation, UnitSizes, sorted_groups
from discreet.tables.engines import forks
from discreet.tables.engines.results import bin_counts, check_keys, exact_sums, value_of, whole_read
from discreet.tables.engines.source import SourceTable, known_table
from discreet.tables.engines.tree import lookups, private_tables, unit_of
from discreet.tables.engines.widths import check_sizes, check_sums

__all__ = ["EngineBase"]

ResultRows = Iterable[Sequence[Any]]


class EngineBase(ABC):
    """Tables somewhere. A subclass turns a request into work that returns rows, or refuses it."""

    name: str

    def __init__(self, tables: Mapping[str, SourceTable]) -> None:
        self._tables = dict(tables)
        # One request at a time: prepared tables and names of columns are shared.
        self.lock = RLock()
        self._process, self._is_closed = os.getpid(), False
        quiet_at_forks(self)

    @abstractmethod
    def _sums(self, request: BoundedSums) -> Callable[[], ResultRows]:
        """Work that returns the keys and sums of each group."""

    @abstractmethod
    def _sizes(self, request: UnitSizes) -> Callable[[], ResultRows]:
        """Work that returns bins and numbers of units."""

    @abstractmethod
    def _values(self, reads: Sequence[Read]) -> Callable[[], ResultRows]:
        """Work that returns the distinct cells of columns of one public table."""

    @abstractmethod
    def _public_rows(self, source: SourceTable) -> Any:
        """The rows of a public table as an Arrow table."""

    @abstractmethod
    def _has_copies(self, lookup: Lookup) -> Callable[[], bool]:
        """Work that says whether a public table has a key of a lookup twice."""

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise not_copied("open the data set again where it is needed, with the same dp.open(…)")

    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(self._tables)

    def columns(self, table: str) -> dict[str, str]:
        """The columns of a table and their kinds, from its schema."""
        unit = self._tables[table].unit if table in self._tables else None
        source = known_table(self._tables, table, private=unit is not None, linked=unit == LINKED)
        return {name: column.kind for name, column in source.columns.items()}

    def divide_units(self, per: str, when: Mapping[str, str]) -> None:
        """Make each value of a unit's column in each period a unit of its own; `when` names the
        column of the time for each table, and "" where rows reach their units through a key.
        """
        with self.lock:
            for name, column in when.items():
                if column:
                    self._tables[name] = replace(self._tables[name], period=(per, column))

    def check(self, request: BoundedSums | UnitSizes) -> None:
        """Refuse a request that does not fit this engine; no private row is read."""
        forks.refuse_unseen()
        with self.lock:
            self._validate(request)
            if isinstance(request, BoundedSums):
                self._sums(request)
            else:
                self._sizes(request)

    def ready(self) -> None:
        """Refuse a data set that is closed, of another process, or changed since it was opened."""
        with self._asking():
            try:
                self._check_source()
            except (DiscreetError, *STOPPED):
                raise
            except BaseException:  # noqa: BLE001 - an engine's error may quote a row
                failure = outdated_error("the data cannot be reached any more.")
            else:
                return
        raise failure

    def sums(self, request: BoundedSums) -> ExactSums:
        """The sums, exactly."""
        with self._asking():
            self._validate(request)
            work = self._sums(request)
            return exact_sums(request, guard_engine(work))

    def sizes(self, request: UnitSizes) -> tuple[int, ...]:
        """The numbers of units, exactly."""
        with self._asking():
            self._validate(request)
            work = self._sizes(request)
            return bin_counts(len(request.edges) + 1, guard_engine(work))

    def values(self, table: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
        """The distinct values of columns of a public table, sorted."""
        source = known_table(self._tables, table, private=False)
        reads = [whole_read(source, name) for name in columns]
        with self._asking():
            rows = guard_engine(self._values(reads))
        return sorted_groups({tuple(map(value_of, reads, row)) for row in rows})

    def public_rows(self, table: str) -> Any:
        """The rows of a public table as an Arrow table, without columns of unknown kinds."""
        source = known_table(self._tables, table, private=False)
        with self._asking():
            return guard_engine(self._public_rows, source)

    def close(self) -> None:
        """Delete what was prepared, and close what was opened; a second call does nothing."""
        forks.refuse_unseen()
        with self.lock:
            is_ours = not self._is_closed and self._process == os.getpid()
            self._is_closed = True
            if is_ours:
                self._release()

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """The only request at this time, to an engine that is open in this process."""
        forks.refuse_unseen()
        with self.lock:
            if self._is_closed:
                raise outdated_error("the data set was closed.")
            self._wake()
            if self._process != os.getpid():
                raise forks.other_process_error()
            yield

    def _wake(self) -> None:  # noqa: B027 - most engines never sleep
        """Connect again, if `sleep` has closed the connection."""

    def sleep(self) -> None:  # noqa: B027 - and most have nothing to close
        """Close what must not cross a fork, if it can be opened again."""

    def _check_source(self) -> None:  # noqa: B027 - a frame stays as it is
        """Raise if the source is not as it was when it was opened; no row is read."""

    @abstractmethod
    def _release(self) -> None:
        """Delete what was prepared, and close what was opened."""

    def _is_single(self, rows: Relation) -> bool:
        """Whether every row is a unit of its own."""
        return unit_of(self._tables, rows) == ROW

    def _validate(self, request: BoundedSums | UnitSizes) -> None:
        for name in private_tables(request.rows):
            known_table(self._tables, name, private=True)
        check_keys(request.keys)
        if isinstance(request, BoundedSums):
            check_sums(request)
        else:
            check_sizes(request)
        if not self._is_single(request.rows):
            return
        for lookup in lookups(request.rows):
            known_table(self._tables, lookup.table, private=False)
            with self._asking():
                has_copies = guard_engine(self._has_copies(lookup))
            if has_copies:
                raise RefusedQuestion(
                    "DP703",
                    f"the public table {lookup.table} has a key twice, and each row is a unit of its own.",
                    why="the join would turn one row into several, which nobody could tell from rows of other people.",
                    fix=f"keep one row for each key in {lookup.table}, or protect each value of a column",
                )
