# SPDX-License-Identifier: Apache-2.0
"""A number with a proof on either side, and tables of such numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """Certified bounds on a quantity.

    **Guarantee.** The quantity lies in [lower, upper]. `route` names the theorem behind the upper
    value, `theorem` cites it, and `assumes` lists the assumptions of the description (none for the
    built-in mechanisms).

    >>> from discreet import privacy
    >>> print(privacy.laplace(scale=2).bound(delta=0))
    [0.5, 0.5] by closed form (the profile of one mechanism)
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
    """Every route that applies to one guarantee at one δ, the tightest first.

    **Guarantee.** Each row is a `Bound` that holds. Index by position or by the name of a route.

    >>> from discreet import privacy
    >>> (10 * privacy.pure(0.1)).compare(delta=1e-6)["basic"].upper
    1.0
    """

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
