# SPDX-License-Identifier: Apache-2.0
"""What a mechanism for a table is made of: parts that each add a few columns, and a budget that they share.

A recipe knows what it wants to release and nothing of how much it may cost; a part is ready to be drawn. Budgets come
in two currencies: a pure ε, or the noise of a Gaussian mechanism in sensitivities, ρ = 1 / 2 noise².
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from discreet.privacy.guarantee import Guarantee
from discreet.tables.answer.answer import Noisy
from discreet.tables.data.engine import Engine
from discreet.tables.data.expr import Expr
from discreet.tables.data.sums import GroupKey, Relation
from discreet.tables.plan.contribution import Contribution

__all__ = ["FINE", "Part", "Recipe", "Scope", "Stated"]

#: Cells of a weight where only its share matters.
FINE = 256


@dataclass(frozen=True)
class Scope:
    """The rows that are asked about, the keys that they are grouped by, and what one unit may add."""

    rows: Relation
    keys: tuple[Expr, ...]
    contribution: Contribution

    @property
    def fine(self) -> int:
        """Into how many cells a weight is divided; where rows are units there is only the weight one."""
        return 1 if self.contribution.alone else FINE


@dataclass(frozen=True)
class Stated:
    """What is said of a noisy column before it is drawn."""

    noise: str  # the law, in words
    error: str  # how wrong it will be, in words
    note: str = ""  # what must be said with the answer


class Part(Protocol):
    """A few columns, ready to be drawn."""

    @property
    def guarantee(self) -> Guarantee:
        """What they reveal together, of all groups."""

    def draw(self, engine: Engine, groups: Sequence[GroupKey]) -> dict[str, Noisy]:
        """The columns of these groups."""

    def errors(self, confidence: float) -> dict[str, float | None]:
        """How far each is off, at most; None where that depends on data."""

    def stated(self, confidence: float) -> dict[str, Stated]:
        """What is said of each."""

    def expected(self) -> dict[str, float]:
        """A number for each that grows in proportion to its error, whatever the data are."""


class Recipe(Protocol):
    """A few columns, before it is known what they may cost."""

    @property
    def weight(self) -> float:
        """Its part of the budget, against those of others."""

    def pure(self, epsilon: Fraction) -> Part:
        """The part whose promise is ε-differential privacy."""

    def gaussian(self, noise: float) -> Part:
        """The part that costs no more than Gaussian noise of `noise` sensitivities, in ρ."""

    def promised(self, noise: float) -> Guarantee:
        """The promise of `gaussian(noise)`."""
