# SPDX-License-Identifier: Apache-2.0
"""How often one unit takes part in a stream, and how far it can therefore move the encoded sums.

Participation(rows=3)                       # three rows in all, in any periods
Participation(periods=4, apart=13)          # one row in each of four periods, 13 periods apart
Participation(periods=52, rows=2)           # two rows in each of 52 periods
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from discreet import check
from discreet.errors import BadParameter
from discreet.streams.factor import Factor

__all__ = ["Participation"]

#: A unit with more rows than this in a stream is no unit to protect, and its square leaves 64 bits.
_MOST = 10**6


@dataclass(frozen=True)
class Participation:
    """The contribution bound of one unit to a whole stream.

    Without `periods`, at most `rows` rows count in the whole stream. With `periods`, rows count in
    at most that many periods, each at least `apart` periods after the one before, and in each at
    most `rows` rows.

    **Guarantee.** `squared_sensitivity` is at least Σ_t (Σ_s n_{t-s} v_s)² for every pattern v of
    contributions that the bound allows, of absolute value at most 1 for each row; and some pattern
    attains it. The square root of it is the l2 sensitivity of a stream with that factor.

    Why it holds: participation.proof.md, § 2. What would break it: a bound that is not enforced on
    the rows of each unit alone; a factor with negative or growing coefficients, which `Factor`
    refuses.

    >>> from discreet.streams import independent, square_root
    >>> Participation(rows=3).squared_sensitivity(independent(52))
    9
    >>> Participation(periods=4).squared_sensitivity(independent(52))
    4
    """

    rows: int = 1
    periods: int | None = None
    apart: int = 1

    def __post_init__(self) -> None:
        _check_size("rows", self.rows)
        _check_size("apart", self.apart)
        if self.periods is not None:
            _check_size("periods", self.periods)
        if self.periods is None and self.apart != 1:
            raise BadParameter(
                "DP107",
                "apart needs periods: in how many periods a unit takes part.",
                why="rows that are counted in all may lie in one period, so no gap follows from them.",
                fix=f"dp.streams.Participation(periods=4, apart={self.apart})",
            )

    @property
    def most_rows(self) -> int:
        """The most rows of a unit that count in the whole stream."""
        return self.rows if self.periods is None else self.rows * self.periods

    def within(self, horizon: int) -> Participation:
        """The same bound in a stream of that many periods: no unit takes part in more."""
        check.whole(horizon=horizon)
        if self.periods is None:
            return self
        periods = min(self.periods, -(-horizon // self.apart))
        return Participation(self.rows, periods, self.apart if periods > 1 else 1)

    def squared_sensitivity(self, factor: Factor) -> int:
        """The square of the l2 sensitivity, exactly."""
        if self.periods is None:
            return self.rows**2 * sum(number**2 for number in factor.coefficients)
        horizon = factor.periods
        moved = [0] * horizon
        for start in range(0, min(horizon, self.periods * self.apart), self.apart):
            for at, number in enumerate(factor.coefficients[: horizon - start], start):
                moved[at] += number
        return self.rows**2 * sum(number**2 for number in moved)

    def describe(self, unit: str, every: str = "period") -> str:
        """The bound in words.

        >>> Participation(periods=4, apart=13).describe("patient", "week")
        'Each patient contributes in at most 4 weeks, at least 13 weeks apart, 1 row in each'
        """
        rows = f"{self.rows} row{'s' if self.rows != 1 else ''}"
        if self.periods is None:
            return f"Each {unit} contributes at most {rows} in all {every}s together"
        gap = f", at least {self.apart} {every}s apart" if self.apart > 1 else ""
        periods = f"{self.periods} {every}{'s' if self.periods != 1 else ''}"
        return f"Each {unit} contributes in at most {periods}{gap}, {rows} in each"


def _check_size(name: str, value: object) -> None:
    named: dict[str, Any] = {name: value}
    if check.whole(**named) > _MOST:
        raise BadParameter(
            "DP102",
            f"{name} must be at most {_MOST:,}, not {value}.",
            why="noise grows with it, and nothing would be left of the numbers.",
            fix=f"{name}=1",
        )
