# SPDX-License-Identifier: Apache-2.0
"""What every scheme is made from: for each unit and group its rows, and its exact sum of each feature.

A feature that is the same in every row needs no column: its sum is known from the number of rows. So whatever counts
rows or units in the same groups is made from the same pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

from discreet.tables.data.expr import Constant, Expr
from discreet.tables.data.sums import BoundedSums, GroupScheme, OnceScheme, Relation, UnitSizes

__all__ = ["Pairs"]


@dataclass(frozen=True)
class Pairs:
    """What is grouped: rows, keys and features; the weights of a scheme are made from it."""

    rows: Relation
    keys: tuple[Expr, ...]
    features: tuple[Expr, ...]

    @property
    def key_names(self) -> list[str]:
        return [f"k{place}" for place in range(len(self.keys))]

    @property
    def sum_names(self) -> list[str]:
        return [f"v{place}" for place in range(len(self.features))]

    def name_of(self, feature: Expr) -> str:
        """The column with the sums of a feature that is not constant."""
        return self.sum_names[self.features.index(feature)]

    def covers(self, other: Pairs) -> bool:
        """Whether everything that is made from `other` can be made from these."""
        alike = (self.rows, self.keys) == (other.rows, other.keys)
        return alike and set(self.features) >= set(other.features)

    @staticmethod
    def of(asked: BoundedSums) -> Pairs:
        """The pairs of a question; features do not matter where every unit counts once."""
        if isinstance(asked.scheme, GroupScheme | OnceScheme):
            return Pairs(asked.rows, asked.keys, ())
        return Pairs.with_features(asked)

    @staticmethod
    def with_features(asked: BoundedSums) -> Pairs:
        """The same with all features, which the next question about these groups may ask for."""
        summed = dict.fromkeys(feature for feature in asked.features if not isinstance(feature, Constant))
        return Pairs(asked.rows, asked.keys, tuple(summed))

    @staticmethod
    def for_sizes(asked: UnitSizes) -> Pairs:
        """The pairs that sizes are made from; groups do not matter where rows are counted."""
        return Pairs(asked.rows, asked.keys if asked.norm == 2 else (), ())
