# SPDX-License-Identifier: Apache-2.0
"""A number with a proof on either side, and tables of such numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """What is proved of a quantity: it lies in [lower, upper].

    `route` names the argument behind the upper value, `theorem` cites it, and `assumes` lists what
    the description takes for granted (empty for the built-in mechanisms).
    """

    lower: float
    upper: float
    route: str
    theorem: str
    assumes: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"[{self.lower:.7g}, {self.upper:.7g}] by {self.route} ({self.theorem})"


@dataclass(frozen=True)
class Comparison:
    """Every route that applies to one guarantee at one δ, the tightest first."""

    delta: float
    rows: tuple[Bound, ...]

    def __iter__(self) -> Iterator[Bound]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, route: int | str) -> Bound:
        if isinstance(route, int):
            return self.rows[route]
        return next(row for row in self.rows if row.route == route)

    def __str__(self) -> str:
        width = max(len(row.route) for row in self.rows)
        lines = [f"ε at δ = {self.delta:g}"]
        lines += [f"  {row.route:<{width}}  {row.upper:>12.7g}  {row.theorem}" for row in self.rows]
        return "\n".join(lines)

    __repr__ = __str__
