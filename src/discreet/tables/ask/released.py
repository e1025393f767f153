# SPDX-License-Identifier: Apache-2.0
"""What may be done to released numbers: arithmetic, comparison and logic, with intervals that are
carried along.

All of this is post-processing: it reads released values only, so it costs nothing and reveals
nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = [
    "PublicValue",
    "ReleasedColumn",
    "ReleasedExpression",
    "ReleasedOperation",
    "column_names",
    "quotient_columns",
]


@dataclass(frozen=True)
class ReleasedColumn:
    """A released column: a key or an aggregate, by its name."""

    name: str


@dataclass(frozen=True)
class PublicValue:
    """A public value."""

    value: Any


@dataclass(frozen=True)
class ReleasedOperation:
    """An operator on released values: + - * / abs round least greatest, = <> < <= > >=, and or not."""

    op: str
    parts: tuple[ReleasedExpression, ...]


ReleasedExpression = ReleasedColumn | PublicValue | ReleasedOperation


def column_names(of: ReleasedExpression) -> set[str]:
    """The released columns that are read."""
    if isinstance(of, ReleasedColumn):
        return {of.name}
    return set().union(*map(column_names, of.parts)) if isinstance(of, ReleasedOperation) else set()


def quotient_columns(of: ReleasedExpression) -> set[str]:
    """The released columns that are divided with, or compared with, another one."""
    if not isinstance(of, ReleasedOperation):
        return set()
    here = column_names(of) if of.op in {"/", "=", "<>", "<", "<=", ">", ">="} else set()
    return (here if len(here) > 1 else set()).union(*map(quotient_columns, of.parts))
