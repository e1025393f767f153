# SPDX-License-Identifier: Apache-2.0
"""How much one unit may add, and how far that moves the sums: the schemes with their sensitivities.

**Guarantee.** For each scheme the number here is never below the greatest distance, in the stated norm, between the
sums of two neighbouring tables, and it is attained by some pair of tables (compile.proof.md, §§ 2 to 4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from discreet import check
from discreet.errors import BadParameter
from discreet.privacy.unit import Unit
from discreet.tables.ask.start import Dataset

__all__ = ["Contribution", "MassFit", "NormFit", "fit_mass", "fit_norm"]

#: √2, rounded up.
ROOT_TWO = Fraction(math.isqrt(2 << 200) + 1, 1 << 100)
_STEPS_PER_ROW = 256  # c of NormScheme for a full row: rounding up then costs well below one percent
_EVEN = 16  # values of several columns are multiplied to about so many times the widest of them
_MOST_STEPS = 2**29  # NormScheme drops units with 2^31 steps: one with `rows` rows stays far below


@dataclass(frozen=True)
class Contribution:
    """What is publicly assumed of one unit: it contributes at most `rows` rows, in `groups` groups."""

    rows: int
    groups: int
    one_row_per_unit: bool  # whether every row is a unit of its own, so that no weight is ever below one
    unit: Unit
    stated_groups: int | None = None  # what somebody said of groups

    @classmethod
    def of(cls, dataset: Dataset, cap: int | None = None) -> Contribution:
        """As the data set describes it; `cap` is the number that was chosen privately where it says "auto"."""
        protect = dataset.protect
        if protect.column is None:
            return cls(1, 1, one_row_per_unit=True, unit=dataset.unit)
        if protect.at_most == "auto" and cap is None:
            raise BadParameter(
                "DP107",
                f'at_most is "auto" for {protect.column}, and no number was chosen yet.',
                why="the contribution bound decides how much noise is needed, and choosing it costs budget.",
                fix="session.sql(…) chooses it first; or state it:  at_most=20",
            )
        rows = check.whole(at_most=cap if protect.at_most == "auto" else protect.at_most)
        stated = None if protect.groups is None else check.whole(groups=protect.groups)
        return cls(rows, rows, one_row_per_unit=False, unit=dataset.unit, stated_groups=stated).with_rows(
            rows
        )

    def with_rows(self, rows: int) -> Contribution:
        """The same for another `at_most`; nobody is in more groups than they have rows."""
        return replace(self, rows=rows, groups=min(rows, self.stated_groups or rows))

    @property
    def replaces(self) -> bool:
        """Whether a neighbour has another unit in the place of one, and not one more or less."""
        return self.unit.relation == "replace"

    def replacement_factor_l1(self) -> int:
        """By how much a replaced unit moves sums further, in l1, than one that is added or removed."""
        return 2 if self.replaces else 1

    def replacement_factor_l2(self, *, signed: bool) -> Fraction:
        """The same in l2: vectors without negative numbers are at right angles at most (compile.proof.md, § 3)."""
        if not self.replaces:
            return Fraction(1)
        return Fraction(2) if signed else ROOT_TWO


@dataclass(frozen=True)
class NormFit:
    """Numbers of NormScheme: how features are multiplied, measured, and how long a unit's answer may be."""

    times: tuple[int, ...]
    cells: tuple[int, ...]
    most: int
    present: int  # the number that stands for "has a row in this group"; 0 if nobody asks


def fit_norm(
    reach: Sequence[int], shares: Sequence[float], present: float, contribution: Contribution
) -> NormFit:
    """Cells in which feature j, of at most `reach[j]` in a row, gets its share of the noise's precision.

    A unit with `rows` rows in `groups` groups is never down-weighted: `most` is as long as its answer can be. That is a
    matter of use; what is private does not depend on it.
    """
    rows, groups = contribution.rows, contribution.groups
    steps = max(1, min(_STEPS_PER_ROW, _MOST_STEPS // (rows * (len(reach) + 1))))
    if tuple(reach) == (1,) and not present and contribution.one_row_per_unit:
        return NormFit((1,), (1,), rows, 0)
    if not reach:
        return NormFit((), (1,), math.isqrt(steps * steps * groups - 1) + 1, steps)
    fine = len(reach) > 1 or present > 0 or not contribution.one_row_per_unit
    times, cells = [], []
    for high, share in zip(reach, shares, strict=True):
        wanted = max(1.0, steps * math.sqrt(share))  # steps for a row at its greatest
        factor = 1
        while fine and high * factor < 4 * wanted:
            factor *= 2
        times.append(factor)
        cells.append(max(1, round(high * factor / wanted)))
    here = 0
    if present:
        here = max(1, round(steps * rows * math.sqrt(present / groups)))
        cells.append(1)
    per_row = [Fraction(high * factor, cell) for high, factor, cell in zip(reach, times, cells, strict=False)]
    longest = max(_length(per_row, rows, spread) + spread * here * here for spread in (1, groups))
    return NormFit(tuple(times), tuple(cells), math.isqrt(longest - 1) + 1, here)


def _length(per_row: Sequence[Fraction], rows: int, groups: int) -> int:
    """Q of a unit with full rows, all but one of the groups with one row each."""
    return sum(
        math.ceil((rows - groups + 1) * steps) ** 2 + (groups - 1) * math.ceil(steps) ** 2
        for steps in per_row
    )


@dataclass(frozen=True)
class MassFit:
    """Numbers of MassScheme: how features are multiplied, and how much of them one unit may add in all."""

    times: tuple[int, ...]
    most: int


def fit_mass(reach: Sequence[int], contribution: Contribution) -> MassFit:
    """Numbers by which features with `reach[j]` in a row, at most, become about equally long: one noise serves them all.

    A unit with `rows` rows is never down-weighted: `most` is what they are if each of them is as large as it can be.
    """
    even = max(reach) * (_EVEN if len(reach) > 1 else 1)
    times = tuple(max(1, round(Fraction(even, high))) for high in reach)
    return MassFit(times, contribution.rows * sum(map(math.prod, zip(reach, times, strict=True))))
