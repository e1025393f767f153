# SPDX-License-Identifier: Apache-2.0
"""What every scheme is made from: for each unit and group its rows, and its exact sum of each feature."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.tables.expr import Expr
from discreet.tables.plan import Groups, Once, Relation, Sizes, Sums

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

    @staticmethod
    def of(asked: Sums) -> Pairs:
        """The pairs of a question; features do not matter where every unit counts once."""
        return Pairs(
            asked.rows, asked.keys, () if isinstance(asked.scheme, Groups | Once) else asked.features
        )

    @staticmethod
    def sized(asked: Sizes) -> Pairs:
        """The pairs that sizes are made from; groups do not matter where rows are counted."""
        return Pairs(asked.rows, asked.keys if asked.norm == 2 else (), ())
