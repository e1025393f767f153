# SPDX-License-Identifier: Apache-2.0
"""How much one unit contributes, and how far that moves the sums: the schemes with their
sensitivities.

**Guarantee.** For each scheme the sensitivity here is at least the greatest distance, in the stated
norm, between the sums of two neighbouring tables, and some pair of tables attains it
(compile.proof.md, §§ 2 to 4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from discreet import check
from discreet.errors import BadParameter
from discreet.privacy.unit import Unit
from discreet.tables.algebra.bounds import private_tables, stated_bound
from discreet.tables.algebra.sums import Private, Relation
from discreet.tables.ask.start import Dataset

__all__ = ["Contribution", "MassFit", "NormFit", "fit_mass", "fit_norm"]

#: √2, rounded up.
ROOT_TWO = Fraction(math.isqrt(2 << 200) + 1, 1 << 100)
#: c of NormScheme for a full row; rounding up then costs well below one percent.
_STEPS_PER_ROW = 256
#: The values of several columns are multiplied to about this many times the widest of them.
_EVEN = 16
#: NormScheme drops units with 2^31 steps; a unit with `rows` rows stays far below.
_MOST_STEPS = 2**29


@dataclass(frozen=True)
class Contribution:
    """The contribution bound of one unit: at most `rows` rows, in `groups` groups.

    `one_row_per_unit` says that no unit has two rows, so no weight is below one.
    `stated_groups` is the number of groups in the description, if it states one. `tables` are the
    private tables whose rows are bounded, if the data set has several.
    """

    rows: int
    groups: int
    one_row_per_unit: bool
    unit: Unit
    stated_groups: int | None = None
    tables: tuple[str, ...] = ()

    @classmethod
    def of(cls, dataset: Dataset, cap: int | None = None, rows: Relation | None = None) -> Contribution:
        """The bound that the data set states for the rows of a question; `cap` is the one chosen
        where it says "auto".
        """
        protect = dataset.protect
        if protect.column is None:
            return cls(1, 1, one_row_per_unit=True, unit=dataset.unit)
        if protect.at_most == "auto" and cap is None:
            raise BadParameter(
                "DP107",
                f'at_most is "auto" for {protect.column}, and no number is chosen yet.',
                why="the contribution bound determines the noise, and choosing it costs budget.",
                fix="session.sql(…) chooses it first; or state it:  at_most=20",
            )
        private = [table.name for table in dataset.tables.values() if table.private]
        rows = rows or Private(private[0])
        most = check.whole(at_most=cap if protect.at_most == "auto" else stated_bound(protect.at_most, rows))
        bound = cls(
            most,
            most,
            one_row_per_unit=False,
            unit=dataset.unit,
            stated_groups=stated_bound(protect.groups, rows),
            tables=private_tables(rows) if len(private) > 1 else (),
        )
        return bound.with_rows(most)

    def with_rows(self, rows: int) -> Contribution:
        """The bound for another `at_most`; a unit is in at most as many groups as it has rows."""
        return replace(self, rows=rows, groups=min(rows, self.stated_groups or rows))

    def with_groups(self, groups: int) -> Contribution:
        """The bound for another number of groups."""
        return replace(self, stated_groups=groups).with_rows(self.rows)

    def for_rows(self, most: int | None) -> Contribution:
        """The bound for rows of which no unit has more than `most`; None if nothing is known."""
        if most is None or self.one_row_per_unit or not most <= self.rows:
            return self
        return replace(self.with_rows(max(most, 1)), one_row_per_unit=most <= 1)

    @property
    def replaces(self) -> bool:
        """Whether neighbouring data sets replace a unit, and do not add or remove one."""
        return self.unit.relation == "replace"

    def replacement_factor_l1(self) -> int:
        """How much further, in l1, a replaced unit moves sums than one that is added or removed."""
        return 2 if self.replaces else 1

    def replacement_factor_l2(self, *, signed: bool) -> Fraction:
        """How much further, in l2, a replaced unit moves sums than one that is added or removed."""
        if not self.replaces:
            return Fraction(1)
        # The angle between vectors without negative coordinates is at most a right one
        # (compile.proof.md, § 3).
        return Fraction(2) if signed else ROOT_TWO


@dataclass(frozen=True)
class NormFit:
    """Parameters of NormScheme: multipliers and cells of the features, and the bound on the norm of
    a unit's answer.

    `present` is the number that stands for "has a row in this group"; 0 if the question does not
    ask for it.
    """

    multipliers: tuple[int, ...]
    cells: tuple[int, ...]
    norm_bound: int
    present: int


def fit_norm(
    reach: Sequence[int],
    shares: Sequence[float],
    present: float,
    contribution: Contribution,
    exclusive: Sequence[Sequence[int]],
) -> NormFit:
    """Cells that give feature j, of at most `reach[j]` in a row, its share of the precision of the
    noise. `exclusive` are sets of features of which at most one is not 0 in any row.

    `norm_bound` is the greatest norm of a unit with `rows` rows in `groups` groups, so such a unit
    is never down-weighted. This serves accuracy; the guarantee does not depend on it.
    """
    rows, groups = contribution.rows, contribution.groups
    steps = max(1, min(_STEPS_PER_ROW, _MOST_STEPS // (rows * (len(reach) + 1))))
    if tuple(reach) == (1,) and not present and contribution.one_row_per_unit:
        return NormFit((1,), (1,), rows, 0)
    if not reach:
        return NormFit((), (1,), math.isqrt(steps * steps * groups - 1) + 1, steps)
    fine = len(reach) > 1 or present > 0 or not contribution.one_row_per_unit
    multipliers, cells = [], []
    for high, share in zip(reach, shares, strict=True):
        # The steps of a row with the greatest value.
        row_steps = max(1.0, steps * math.sqrt(share))
        multiplier = 1
        while fine and high * multiplier < 4 * row_steps:
            multiplier *= 2
        multipliers.append(multiplier)
        cells.append(max(1, round(high * multiplier / row_steps)))
    present_steps = 0
    if present:
        present_steps = max(1, round(steps * rows * math.sqrt(present / groups)))
        cells.append(1)
    per_row = [
        Fraction(high * multiplier, cell)
        for high, multiplier, cell in zip(reach, multipliers, cells, strict=False)
    ]
    # Q is convex in the number of groups, so it is greatest for one group or for all of them.
    longest = [max(per_row[place] for place in places) for places in exclusive]
    greatest = max(_squared_norm(longest, rows, spread) + spread * present_steps**2 for spread in (1, groups))
    return NormFit(tuple(multipliers), tuple(cells), math.isqrt(greatest - 1) + 1, present_steps)


def _squared_norm(per_row: Sequence[Fraction], rows: int, groups: int) -> int:
    """Q of a unit with full rows, if all but one of its groups have one row each."""
    return sum(
        math.ceil((rows - groups + 1) * steps) ** 2 + (groups - 1) * math.ceil(steps) ** 2
        for steps in per_row
    )


@dataclass(frozen=True)
class MassFit:
    """Parameters of MassScheme: the multipliers of the features, and the bound on a unit's total."""

    multipliers: tuple[int, ...]
    mass_bound: int


def fit_mass(reach: Sequence[int], contribution: Contribution, exclusive: Sequence[Sequence[int]]) -> MassFit:
    """Multipliers that give features of at most `reach[j]` in a row about the same range, so that
    one noise serves all.

    `mass_bound` is the total of `rows` rows with the greatest values, so a unit with that many rows
    is never down-weighted. In no row is more than one feature of a set of `exclusive` other than 0.
    """
    even = max(reach) * (_EVEN if len(reach) > 1 else 1)
    multipliers = tuple(max(1, round(Fraction(even, high))) for high in reach)
    bounds = list(map(math.prod, zip(reach, multipliers, strict=True)))
    row_bound = sum(max(bounds[place] for place in places) for places in exclusive)
    return MassFit(multipliers, contribution.rows * row_bound)
