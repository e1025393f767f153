# SPDX-License-Identifier: Apache-2.0
"""What an engine must be able to do; `discreet.tables.engines` has four of them.

**Guarantee.** Rows never leave the engine; only whole numbers per group do. No error or warning of
an engine passes, because it may quote data: `guard_engine` replaces it with one constant text.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeVar, TypeVarTuple, runtime_checkable

import numpy as np
import numpy.typing as npt

from discreet.errors import STOPPED, DiscreetError, EngineFailed, LedgerError
from discreet.tables.algebra.sums import BoundedSums, ExactSums, GroupKey, UnitSizes, sorted_groups

__all__ = [
    "LINKED",
    "ROW",
    "Choose",
    "Engine",
    "Integers",
    "SelectsGroups",
    "groups_from_sums",
    "guard_engine",
    "not_copied",
    "outdated_error",
    "selected_groups",
]

#: Stands for the unit's column where every row of the table is a unit of its own.
ROW: Final = "\0row"
#: Stands for it where rows belong to units by no column of their own: they reach them through keys.
LINKED: Final = "\0linked"

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Integers = npt.NDArray[np.int64]
#: The places of the groups that are chosen, from the weights of all.
Choose = Callable[[Integers], Integers]


class Engine(Protocol):
    """Something that stores tables and computes sums."""

    name: str

    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""

    def columns(self, table: str) -> dict[str, str]:
        """The columns of a table and their kinds: integer, real, decimal, text, boolean, date,
        timestamp, other.

        From the schema alone; no row is read.
        """

    def divide_units(self, per: str, when: Mapping[str, str]) -> None:
        """Make each value of a unit's column in each period a unit of its own; `when` names the
        column of the time for each table, and "" where rows reach their units through a key.
        """

    def check(self, asked: BoundedSums | UnitSizes) -> None:
        """Refuse a request that does not fit the schema; no private row is read."""

    def sums(self, asked: BoundedSums) -> ExactSums:
        """The exact sums."""

    def sizes(self, asked: UnitSizes) -> tuple[int, ...]:
        """The exact numbers of units."""

    def values(self, table: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
        """The distinct values of columns of a PUBLIC table, sorted."""

    def public_rows(self, table: str) -> Any:
        """The rows of a PUBLIC table as an Arrow table, without columns of unknown kinds."""

    def ready(self) -> None:
        """Refuse (DP803) if the data cannot be counted now; called before a charge, so a refusal
        costs nothing.

        It looks only at schemas, and at names and times of files; no row is read.
        """

    def close(self) -> None:
        """Release everything that was prepared."""


def not_copied(fix: str) -> LedgerError:
    """The refusal to copy or pickle a handle to private data."""
    return LedgerError(
        "DP607",
        "a data set, or something that holds one, was about to be copied or pickled.",
        why="it is a handle to private rows; a copy in another process would contain them, or lose them.",
        fix=fix,
    )


@runtime_checkable
class SelectsGroups(Protocol):
    """An engine that can list the weights of groups without their keys."""

    def selected_groups(self, asked: BoundedSums, choose: Choose) -> list[GroupKey]:
        """As for the function `selected_groups`."""


def selected_groups(engine: Engine, asked: BoundedSums, choose: Choose) -> list[GroupKey]:
    """The keys of the groups that `choose` picks from the weights of all groups with a weight above
    zero.

    `asked` has the scheme `GroupScheme`. `choose` is called once, with the weights in the order of
    the keys, which depends only on the set of groups. If the engine can, it makes no key of a group
    that is not picked.
    """
    if isinstance(engine, SelectsGroups):
        return engine.selected_groups(asked, choose)
    return groups_from_sums(engine, asked, choose)


def groups_from_sums(engine: Engine, asked: BoundedSums, choose: Choose) -> list[GroupKey]:
    """The same, computed from all sums with their keys."""
    sums = guard_engine(engine.sums, asked)
    groups = sorted_groups(group for group, (weight,) in sums.items() if weight > 0)
    weights = np.fromiter((sums[group][0] for group in groups), np.int64, len(groups))
    return [groups[place] for place in choose(weights).tolist()]


def guard_engine(work: Callable[[*Ts], T], *args: *Ts) -> T:
    """The result of `work(*args)`; if the engine fails, an error that says nothing about the data."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return work(*args)
    except (DiscreetError, *STOPPED):
        raise
    except BaseException:  # noqa: BLE001 - an engine's error may quote a row, and one engine panics outside Exception
        failed = EngineFailed(
            "DP801",
            "the data could not be counted.",
            why="the engine's own error is not shown, because it may quote the data; a charge is never given back.",
            fix="check the source without privacy: does it exist, is it readable, does it have the described columns?",
            spent="what this question costs",
        )
    raise failed


def outdated_error(what: str, fix: str = "") -> EngineFailed:
    """The error for a data set that is not as it was when it was opened."""
    return EngineFailed(
        "DP803",
        what,
        why="every answer must come from the state of the data that was opened; no row was read.",
        fix=fix or "data = dp.open(…)  again, and ask through a new session on it, with the same ledger",
    )
