# SPDX-License-Identifier: Apache-2.0
"""What may be done to released numbers: arithmetic, comparison and logic, with intervals that are carried along.

All of this is post-processing: it reads released values only, so it costs nothing and reveals nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["After", "Column", "Combined", "Literal", "divided_with", "names_in"]


@dataclass(frozen=True)
class Column:
    """A released column: a key or an aggregate, by its name."""

    name: str


@dataclass(frozen=True)
class Literal:
    """A public value."""

    value: Any


@dataclass(frozen=True)
class Combined:
    """An operator on released values: + - * / abs round least greatest, = <> < <= > >=, and or not."""

    op: str
    parts: tuple[After, ...]


After = Column | Literal | Combined


def names_in(of: After) -> set[str]:
    """The released columns that are read."""
    if isinstance(of, Column):
        return {of.name}
    return set().union(*map(names_in, of.parts)) if isinstance(of, Combined) else set()


def divided_with(of: After) -> set[str]:
    """The released columns that are divided with, or compared with, another one."""
    if not isinstance(of, Combined):
        return set()
    here = names_in(of) if of.op in {"/", "=", "<>", "<", "<=", ">", ">="} else set()
    return (here if len(here) > 1 else set()).union(*map(divided_with, of.parts))
