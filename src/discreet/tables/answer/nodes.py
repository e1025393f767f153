# SPDX-License-Identifier: Apache-2.0
"""The trees that expressions on released numbers become: leaves with noise, and operators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from discreet.tables.answer.linear import Form
from discreet.tables.answer.noisy import Noisy

__all__ = ["Applied", "Cell", "Linear", "Node", "ReleasedQuotient", "Unbounded", "leaves_of"]


@dataclass(frozen=True)
class Linear:
    """A released number with a linear noise; a public value has no noise."""

    value: Any
    form: Form

    @property
    def is_number(self) -> bool:
        """Whether arithmetic may be done with it."""
        return isinstance(self.value, int | float) and not isinstance(self.value, bool)


@dataclass(frozen=True)
class ReleasedQuotient:
    """A released number divided by another one."""

    top: Linear
    bottom: Linear

    @property
    def value(self) -> Any:
        return self.top.value / self.bottom.value if self.bottom.value else None


@dataclass(frozen=True)
class Cell:
    """A number of a noisy column whose noise is not linear."""

    name: str
    row: int
    column: Noisy

    @property
    def value(self) -> Any:
        return self.column.values[self.row]


@dataclass(frozen=True)
class Applied:
    """An operator on nodes. As a leaf it has an interval of its own (`statistics.py`)."""

    op: str
    parts: tuple[Node, ...]
    value: Any
    is_leaf: bool = False


@dataclass(frozen=True)
class Unbounded:
    """A released number without an interval, such as a rank."""

    value: Any


Node: TypeAlias = Linear | ReleasedQuotient | Cell | Applied | Unbounded


def leaves_of(node: Node) -> Iterator[object]:
    """What tells the noisy leaves of a node apart."""
    if isinstance(node, Linear):
        if node.form:
            yield frozenset(node.form.items())
    elif isinstance(node, ReleasedQuotient):
        yield node.top.value, node.bottom.value, (*leaves_of(node.top),), (*leaves_of(node.bottom),)
    elif isinstance(node, Cell):
        yield node.row, node.column.together or node.name
    elif isinstance(node, Applied):
        leaves = [leaf for part in node.parts for leaf in leaves_of(part)]
        # A statistic is one leaf: its interval divides the probability to fail by itself.
        yield from [(node.op, *leaves)] if node.is_leaf else leaves
