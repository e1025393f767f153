# SPDX-License-Identifier: Apache-2.0
"""What every scheme is made from: the rows and exact sums of each unit in each group.

A feature that is the same in every row needs no column, because its sum follows from the number of
rows. So rows and units in the same groups are counted from the same pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

from discreet.tables.algebra.expr import Constant, Expr
from discreet.tables.algebra.sums import BoundedSums, GroupScheme, OnceScheme, Relation, UnitSizes

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
    def of(request: BoundedSums) -> Pairs:
        """The pairs of a question; features do not matter where every unit counts once."""
        if isinstance(request.scheme, GroupScheme | OnceScheme):
            return Pairs(request.rows, request.keys, ())
        return Pairs.with_features(request)

    @staticmethod
    def with_features(request: BoundedSums) -> Pairs:
        """The same with all features, which the next question about these groups may ask for."""
        summed = dict.fromkeys(feature for feature in request.features if not isinstance(feature, Constant))
        return Pairs(request.rows, request.keys, tuple(summed))

    @staticmethod
    def for_sizes(request: UnitSizes) -> Pairs:
        """The pairs that sizes are made from; groups do not matter where rows are counted."""
        return Pairs(request.rows, request.keys if request.norm == 2 else (), ())
