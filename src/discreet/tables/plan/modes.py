# SPDX-License-Identifier: Apache-2.0
"""MODE: the most frequent of some public values, chosen by an exponential mechanism on counts.

**Guarantee.** The choices of all groups together are one exponential mechanism. It counts weighted
rows; a unit's weights add up to at most `at_most`, over all groups and values.

Why it holds: adding a unit decreases no count, so the scores of one choice move within [0, w],
where w is the unit's weight there (compile.proof.md, § 8).

What would break it: candidates that were read off the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from discreet import noise, privacy
from discreet.errors import RefusedQuestion
from discreet.exact import exactly, float_below
from discreet.privacy.guarantee import Guarantee
from discreet.tables.algebra.engine import Engine, guard_engine
from discreet.tables.algebra.sums import BoundedSums, Filtered, GroupKey, RowScheme
from discreet.tables.algebra.types import Value
from discreet.tables.answer.answer import CONFIDENCE, Noisy
from discreet.tables.ask.question import Aggregate
from discreet.tables.plan.groups import is_one_of
from discreet.tables.plan.linear import whole
from discreet.tables.plan.stage import ColumnDescription, QueryScope

__all__ = ["ModeStrategy", "Modes"]


@dataclass(frozen=True)
class ModeStrategy:
    """A mode of one expression, not yet with an ε."""

    scope: QueryScope
    aggregate: Aggregate

    def __post_init__(self) -> None:
        values = self.aggregate.values
        if self.aggregate.of is None or not values or None in values:
            raise RefusedQuestion(
                "DP706",
                f"{self.aggregate.text or 'MODE'} needs public values to choose from.",
                why="the mode shows one of these values, so they must not come from the data.",
                fix="declare  values = [...]  for the column, none of them NULL",
            )

    @property
    def weight(self) -> float:
        return 1.0

    def pure_stage(self, epsilon: Fraction) -> Modes:
        return Modes(self, float_below(epsilon))

    def gaussian_stage(self, noise: float) -> Modes:
        # ε²/8 = 1 / 2 noise² (Cesar, Rogers 2021)
        return Modes(self, 2 / noise)

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
    def candidates(self) -> tuple[Value, ...]:
        """The public values, each once."""
        return tuple(dict.fromkeys(self.strategy.aggregate.values or ()))

    @property
    def scale(self) -> Fraction:
        """How far one unit moves two scores apart, over all groups together, divided by ε."""
        scope = self.strategy.scope
        distance = scope.contribution.rows * scope.fine
        return scope.contribution.replacement_factor_l1() * distance / exactly(self.epsilon)

    @property
    def sums(self) -> BoundedSums:
        """The counts of all candidates in each group, in weighted rows."""
        scope, of = self.strategy.scope, self.strategy.aggregate.of
        assert of is not None
        rows = Filtered(scope.rows, is_one_of(of, self.candidates))
        return BoundedSums(
            rows, (*scope.keys, of), (whole(1),), RowScheme(scope.contribution.rows, scope.fine)
        )

    def draw(self, engine: Engine, groups: Sequence[GroupKey]) -> dict[str, Noisy]:
        """The column of these groups."""
        aggregate = self.strategy.aggregate
        counts = guard_engine(engine.sums, replace(self.sums, among=tuple(groups)))
        values = tuple(self._choose(counts, group) for group in groups)
        no_interval = (None,) * len(groups)
        noise_text = self.describe()[aggregate.name].noise
        return {aggregate.name: Noisy(values, no_interval, no_interval, aggregate.text, noise_text)}

    def errors(self, confidence: float = CONFIDENCE) -> dict[str, float | None]:
        return {self.strategy.aggregate.name: None}

    def describe(self, confidence: float = CONFIDENCE) -> dict[str, ColumnDescription]:
        aggregate = self.strategy.aggregate
        odds = max(1.0, (len(self.candidates) - 1) * confidence / (1 - confidence))
        behind = self._scale_in_rows * float(np.log(odds))
        error = f"at most {behind:.4g} rows behind the most frequent"
        noise_text = f"exponential mechanism at epsilon {self.epsilon:.4g} over {len(self.candidates)} values"
        name = aggregate.text or aggregate.name
        note = f"{name} is {error} value with {confidence:.0%} confidence; it has no interval."
        return {aggregate.name: ColumnDescription(noise_text, error, note)}

    def expected_errors(self) -> dict[str, float]:
        return {self.strategy.aggregate.name: self._scale_in_rows}

    @property
    def _scale_in_rows(self) -> float:
        return float(self.scale) / self.strategy.scope.fine

    def _choose(self, counts: dict[GroupKey, tuple[int, ...]], group: GroupKey) -> Value:
        scores = [counts.get((*group, value), (0,))[0] for value in self.candidates]
        exact = np.array(scores, np.int64 if max(scores) < 1 << 62 else object)
        return self.candidates[int(noise.largest(exact, self.scale)[0])]
