# SPDX-License-Identifier: Apache-2.0
"""MODE: the most frequent of some public values, by an exponential mechanism on counts.

**Guarantee.** One exponential mechanism for all groups. Without groups it counts units: one unit moves each count by one
at most, whatever it does. With groups it counts weighted rows, of which a unit has `at_most` in all.

Why it holds: adding a unit moves no count down, so the scores of one choice move within [0, w], w the unit's weight
there; compile.proof.md, § 8. What would break it: candidates that were read off the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import noise, privacy
from discreet.errors import RefusedQuestion
from discreet.exact import exactly, float_below
from discreet.privacy.guarantee import Guarantee
from discreet.tables.answer.answer import CONFIDENCE, Noisy
from discreet.tables.ask.question import Aggregate
from discreet.tables.data.engine import Engine, guarded
from discreet.tables.data.sums import BoundedSums, Filtered, GroupKey, OnceScheme, RowScheme
from discreet.tables.plan.groups import is_one_of
from discreet.tables.plan.linear import whole
from discreet.tables.plan.stage import ColumnDescription, QueryScope

__all__ = ["ModeStrategy", "Modes"]


@dataclass(frozen=True)
class ModeStrategy:
    """The mode that is asked of one expression."""

    scope: QueryScope
    asked: Aggregate

    def __post_init__(self) -> None:
        if self.asked.of is None or not self.asked.values or None in self.asked.values:
            raise RefusedQuestion(
                "DP706",
                f"{self.asked.text or 'MODE'} needs the public values that it chooses from.",
                why="a value that only the data know of would be shown as it is.",
                fix="declare  values = [...]  for the column, none of them NULL",
            )

    @property
    def weight(self) -> float:
        return 1.0

    def pure_stage(self, epsilon: Fraction) -> Modes:
        return Modes(self, float_below(epsilon))

    def gaussian_stage(self, noise: float) -> Modes:
        return Modes(self, 2 / noise)  # ε²/8 = 1 / 2 noise² (Cesar, Rogers 2021)

    def gaussian_guarantee(self, noise: float) -> Guarantee:
        return self.gaussian_stage(noise).guarantee


@dataclass(frozen=True)
class Modes:
    """A most frequent value for each group, ready to be drawn."""

    strategy: ModeStrategy
    epsilon: float

    @property
    def guarantee(self) -> Guarantee:
        return privacy.exponential(self.epsilon, unit=self.strategy.scope.contribution.unit)

    @property
    def candidates(self) -> tuple[Any, ...]:
        """The public values, each once."""
        return tuple(dict.fromkeys(self.strategy.asked.values or ()))

    @property
    def scale(self) -> Fraction:
        """Of the scores: how far one unit moves two of them apart, over all groups together, divided by ε."""
        scope = self.strategy.scope
        moved = scope.contribution.rows * scope.fine if scope.keys else 1
        return scope.contribution.replacement_factor_l1() * moved / exactly(self.epsilon)

    @property
    def sums(self) -> BoundedSums:
        """The counts of all candidates, in each group: of units, or of weighted rows."""
        scope, of = self.strategy.scope, self.strategy.asked.of
        assert of is not None
        rows = Filtered(scope.rows, is_one_of(of, self.candidates))
        if not scope.keys:
            return BoundedSums(rows, (of,), (), OnceScheme())
        return BoundedSums(
            rows, (*scope.keys, of), (whole(1),), RowScheme(scope.contribution.rows, scope.fine)
        )

    def draw(self, engine: Engine, groups: Sequence[GroupKey]) -> dict[str, Noisy]:
        """The column of these groups."""
        asked = self.strategy.asked
        counts = guarded(engine.sums, replace(self.sums, among=tuple(groups)))
        values = tuple(self._one(counts, group) for group in groups)
        nothing = (None,) * len(groups)
        return {asked.name: Noisy(values, nothing, nothing, asked.text, self.describe()[asked.name].noise)}

    def errors(self, confidence: float = CONFIDENCE) -> dict[str, float | None]:
        return {self.strategy.asked.name: None}

    def describe(self, confidence: float = CONFIDENCE) -> dict[str, ColumnDescription]:
        asked, many = self.strategy.asked, len(self.candidates)
        odds = max(1.0, (many - 1) * confidence / (1 - confidence))
        scope = self.strategy.scope
        behind = float(self.scale) / (scope.fine if scope.keys else 1) * float(np.log(odds))
        what = "rows" if scope.keys else scope.contribution.unit.protects + "s"
        off = f"at most {behind:.4g} {what} behind the most frequent"
        law = f"exponential mechanism at epsilon {self.epsilon:.4g} over {many} values"
        note = (
            f"{asked.text or asked.name} is {off} with {confidence:.0%} confidence; a value has no interval."
        )
        return {asked.name: ColumnDescription(law, off, note)}

    def expected_errors(self) -> dict[str, float]:
        scope = self.strategy.scope
        return {self.strategy.asked.name: float(self.scale) / (scope.fine if scope.keys else 1)}

    def _one(self, counts: dict[GroupKey, tuple[int, ...]], group: GroupKey) -> Any:
        scores = [counts.get((*group, value), (0,))[0] for value in self.candidates]
        exact = np.array(scores, np.int64 if max(scores) < 1 << 62 else object)
        return self.candidates[int(noise.largest(exact, self.scale)[0])]
