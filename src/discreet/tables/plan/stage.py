# SPDX-License-Identifier: Apache-2.0
"""What a query plan is made of: stages that each release a few columns, and the scope that they
share.

A strategy knows which columns it releases, and nothing about the budget. A stage has its noise and
can be drawn. A budget comes in two currencies: a pure ε, or the noise of a Gaussian mechanism in
sensitivities, with ρ = 1 / 2 noise².
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from discreet.privacy.guarantee import Guarantee
from discreet.tables.algebra.engine import Engine
from discreet.tables.algebra.expr import Expr
from discreet.tables.algebra.sums import GroupKey, Relation
from discreet.tables.answer.answer import Noisy
from discreet.tables.plan.contribution import Contribution

__all__ = ["FINE", "ColumnDescription", "QueryScope", "Stage", "Strategy"]

#: The cells of a full weight where only the quotient of weights matters.
FINE = 256


@dataclass(frozen=True)
class QueryScope:
    """The rows and the keys of a question, and the contribution bound of a unit."""

    rows: Relation
    keys: tuple[Expr, ...]
    contribution: Contribution

    @property
    def fine(self) -> int:
        """The cells of a full weight; 1 where rows are units, because every weight is one there."""
        return 1 if self.contribution.one_row_per_unit else FINE


@dataclass(frozen=True)
class ColumnDescription:
    """The noise and the margin of error of a column before it is drawn, in words."""

    noise: str
    error: str
    # The answer shows it too.
    note: str = ""


class Stage(Protocol):
    """A few columns with their noise, ready to be drawn."""

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of all columns together, for all groups."""

    def draw(self, engine: Engine, groups: Sequence[GroupKey]) -> dict[str, Noisy]:
        """The columns of these groups."""

    def errors(self, confidence: float) -> dict[str, float | None]:
        """The margin of error of each column; None where it depends on data."""

    def describe(self, confidence: float) -> dict[str, ColumnDescription]:
        """The description of each column."""

    def expected_errors(self) -> dict[str, float]:
        """A number for each column that is proportional to its error, whatever the data are."""


class Strategy(Protocol):
    """A way to release a few columns, at any spend."""

    @property
    def weight(self) -> float:
        """Its part of the spend, relative to the weights of other strategies."""

    def pure_stage(self, epsilon: Fraction) -> Stage:
        """The stage that is ε-differentially private."""

    def gaussian_stage(self, noise: float) -> Stage:
        """The stage that costs no more, in ρ, than Gaussian noise of `noise` sensitivities."""

    def gaussian_guarantee(self, noise: float) -> Guarantee:
        """The guarantee of `gaussian_stage(noise)`."""
