# SPDX-License-Identifier: Apache-2.0
"""What may be done to released numbers: arithmetic, comparison and logic, with intervals that are carried along.

All of this is post-processing: it reads released values only, so it costs nothing and reveals nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["After", "Column", "Combined", "Literal"]


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
