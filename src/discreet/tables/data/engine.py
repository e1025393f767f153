# SPDX-License-Identifier: Apache-2.0
"""What an engine must be able to do; `discreet.tables.engines` has four of them.

**Guarantee.** Rows never leave the engine: only whole numbers per group do. Nothing that an engine says about data
(an error, a warning) passes: `guarded` puts one constant text in its place.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar, TypeVarTuple, runtime_checkable

import numpy as np
import numpy.typing as npt

from discreet.errors import STOPPED, DiscreetError, EngineFailed, LedgerError
from discreet.tables.data.sums import BoundedSums, ExactSums, GroupKey, UnitSizes, sorted_groups

__all__ = [
    "ROW",
    "Choose",
    "Engine",
    "Integers",
    "SelectsGroups",
    "groups_from_sums",
    "guarded",
    "not_copied",
    "outdated",
    "selected_groups",
]

#: In place of a unit's column: every row of the table is a unit of its own.
ROW: Final = "\0row"

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Integers = npt.NDArray[np.int64]
#: The places of the groups that are chosen, from the weights of all.
Choose = Callable[[Integers], Integers]


class Engine(Protocol):
    """A place where tables lie and sums are made."""

    name: str

    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""

    def columns(self, table: str) -> dict[str, str]:
        """The columns of a table and their kinds: integer, real, decimal, text, boolean, date, timestamp, other.

        From the schema alone; no row is read.
        """

    def check(self, asked: BoundedSums | UnitSizes) -> None:
        """Refuse what the schema cannot give; no private row is read."""

    def sums(self, asked: BoundedSums) -> ExactSums:
        """The sums, exactly."""

    def sizes(self, asked: UnitSizes) -> tuple[int, ...]:
        """The numbers of units, exactly."""

    def values(self, table: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
        """The distinct values of columns of a PUBLIC table, sorted."""

    def ready(self) -> None:
        """Refuse (DP803) what could not be counted now: asked before a charge, so that a refusal costs nothing.

        From schemas, names and times of files alone; no row is read.
        """

    def close(self) -> None:
        """Forget what was prepared."""


def not_copied(fix: str) -> LedgerError:
    """The refusal to copy or pickle a handle to private data."""
    return LedgerError(
        "DP607",
        "a data set, or something that holds one, was about to be copied or pickled.",
        why="it is a handle to private rows; in another process it would carry them along, or lose them.",
        fix=fix,
    )


@runtime_checkable
class SelectsGroups(Protocol):
    """An engine that lists weights without keys."""

    def selected_groups(self, asked: BoundedSums, choose: Choose) -> list[GroupKey]:
        """As the function `selected_groups`."""


def selected_groups(engine: Engine, asked: BoundedSums, choose: Choose) -> list[GroupKey]:
    """The keys of the groups that `choose` picks from the weights of all groups with a weight above zero.

    `asked` has the scheme `GroupScheme`. `choose` is called once, with the weights in the order of the keys, which only the set of
    groups decides. Nothing is made for a group that is not picked, where the engine can do without.
    """
    if isinstance(engine, SelectsGroups):
        return engine.selected_groups(asked, choose)
    return groups_from_sums(engine, asked, choose)


def groups_from_sums(engine: Engine, asked: BoundedSums, choose: Choose) -> list[GroupKey]:
    """The same from all sums with their keys."""
    found = guarded(engine.sums, asked)
    groups = sorted_groups(group for group, (weight,) in found.items() if weight > 0)
    weights = np.fromiter((found[group][0] for group in groups), np.int64, len(groups))
    return [groups[place] for place in choose(weights).tolist()]


def guarded(work: Callable[[*Ts], T], *args: *Ts) -> T:
    """What `work(*args)` returns; where the engine fails, an error that says nothing of the data."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return work(*args)
    except (DiscreetError, *STOPPED):
        raise
    except BaseException:  # noqa: BLE001 - an engine's error may quote a row, and one of them has panics that are no Exception
        failed = EngineFailed(
            "DP801",
            "the data could not be counted.",
            why="what the engine said is not shown, because it may quote the data; what was charged stays charged.",
            fix="check the source without privacy: does it exist, is it readable, has it the columns described?",
            spent="what this question costs",
        )
    raise failed


def outdated(what: str, fix: str = "") -> EngineFailed:
    """The error for a data set that cannot be asked any more as it was opened."""
    return EngineFailed(
        "DP803",
        what,
        why="every answer comes from one state of the data, the one that was opened; nothing else was looked at.",
        fix=fix or "data = dp.open(…)  again, and ask through a new session on it, with the same ledger",
    )
