# SPDX-License-Identifier: Apache-2.0
"""Many tables of the same rows as sums of residuals: what a table says beyond all of its
sub-tables.

    system = ResidualSystem((2, 5, 16), [(0, 1), (0, 2)])    # sex × race, and sex × education
    system.closure                                           # (), (0,), (1,), (2,), (0, 1), (0, 2)

The table of a set A of keys is Q_A x, and its residual r_A = P_A Q_A x is what remains of it when
the mean along each of its keys is subtracted. A table is the sum of the residuals of all subsets of
A, each spread evenly over the keys that it lacks. Residuals of different sets are orthogonal, so
independent noise on each of them gives estimates that are the best linear unbiased ones, agree with
each other, and have variances and covariances in closed form (Xiao, He, Zhang and Kifer 2023).

Here are public numbers only: sizes of keys, sets of keys, and variances. The variance σ_S² of a set
S is that of the noise on each cell of Q_S x before the means are subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Floats", "KeySet", "ResidualSystem", "closure_of", "subsets"]

#: The places of some keys, in increasing order.
KeySet: TypeAlias = tuple[int, ...]
Floats: TypeAlias = npt.NDArray[np.float64]


def subsets(keys: KeySet) -> Iterable[KeySet]:
    """All subsets of a set of keys, the small ones first.

    >>> list(subsets((0, 2)))
    [(), (0,), (2,), (0, 2)]
    """
    return (part for size in range(len(keys) + 1) for part in combinations(keys, size))


def closure_of(sets: Iterable[KeySet]) -> tuple[KeySet, ...]:
    """All subsets of some sets: the tables that follow from theirs.

    >>> closure_of([(0, 1)])
    ((), (0,), (1,), (0, 1))
    """
    found: set[KeySet] = set()
    for keys in sets:
        if keys not in found:
            found.update(subsets(keys))
    return tuple(sorted(found, key=lambda keys: (len(keys), keys)))


@dataclass(frozen=True)
class ResidualSystem:
    """The tables of some sets of keys, and the residuals that they consist of.

    `sizes` are the numbers of values of the keys. A key with a single value has no residual: its
    tables are those without it.
    """

    sizes: tuple[int, ...]
    sets: tuple[KeySet, ...]

    @cached_property
    def closure(self) -> tuple[KeySet, ...]:
        """All tables that follow from the sets."""
        return closure_of(self.sets)

    @cached_property
    def residuals(self) -> tuple[KeySet, ...]:
        """The sets whose residuals are not zero."""
        return closure_of(map(self.free_keys, self.sets))

    def free_keys(self, keys: KeySet) -> KeySet:
        """The keys of a set that have more than one value."""
        return tuple(key for key in keys if self.sizes[key] > 1)

    def shape(self, keys: KeySet) -> tuple[int, ...]:
        """The numbers of values of some keys."""
        return tuple(self.sizes[key] for key in keys)

    def cells(self, keys: KeySet) -> int:
        """The number of cells of a table."""
        return math.prod(self.shape(keys))

    def contrast(self, keys: KeySet) -> float:
        """c_S = Π (1 - 1/n): the squared length of one row in the residual of a set."""
        return math.prod(1 - 1 / size for size in self.shape(keys))

    def dimension(self, keys: KeySet) -> int:
        """The dimension of the residual of a set."""
        return math.prod(size - 1 for size in self.shape(keys))

    # --- how a table depends on the noise of its residuals ---------------------------------------------

    @cached_property
    def _terms(self) -> tuple[Any, Any, Floats]:
        """Var_A = Σ factor · σ_S²: the places of A in the closure and of S among the residuals, and
        the factors.
        """
        place = {keys: at for at, keys in enumerate(self.residuals)}
        lengths = np.array([self.contrast(keys) * self.cells(keys) ** 2 for keys in self.residuals])
        columns = [[place[part] for part in subsets(self.free_keys(table))] for table in self.closure]
        rows = np.repeat(np.arange(len(columns)), [len(parts) for parts in columns])
        places = np.concatenate([np.array(parts) for parts in columns])
        squares = np.array([float(self.cells(self.free_keys(table))) ** 2 for table in self.closure])
        return rows, places, lengths[places] / squares[rows]

    def variances(self, noise: Mapping[KeySet, float]) -> dict[KeySet, float]:
        """The variance of a cell of each table of the closure, from the variances σ_S² of the
        residuals.
        """
        rows, columns, factors = self._terms
        of_residuals = np.array([noise[keys] for keys in self.residuals])
        totals = np.bincount(rows, factors * of_residuals[columns], len(self.closure))
        return dict(zip(self.closure, totals.tolist(), strict=True))

    def loads(self, weights: Mapping[KeySet, float]) -> dict[KeySet, float]:
        """V_S: how much σ_S² adds to Σ weight · Var_A over the tables."""
        rows, columns, factors = self._terms
        of_tables = np.array([weights.get(keys, 0.0) for keys in self.closure])
        totals = np.bincount(columns, factors * of_tables[rows], len(self.residuals))
        return dict(zip(self.residuals, totals.tolist(), strict=True))

    def rounding(self, roundings: Mapping[KeySet, float], keys: KeySet) -> float:
        """How much rounding moves a cell of a table, from how much it moves one of each residual."""
        free = self.free_keys(keys)
        return math.fsum(roundings[part] * self.cells(part) for part in subsets(free)) / self.cells(free)

    def covariance(
        self, noise: Mapping[KeySet, float], one: Mapping[int, int], other: Mapping[int, int]
    ) -> float:
        """The covariance of two cells, each given by the value (its number) of each of its keys."""
        shared = self.free_keys(tuple(sorted(one.keys() & other.keys())))
        spread = self.cells(self.free_keys(tuple(one))) * self.cells(self.free_keys(tuple(other)))
        total = 0.0
        for part in subsets(shared):
            inner = math.prod((one[key] == other[key]) - 1 / self.sizes[key] for key in part)
            total += noise[part] * inner * self.cells(part) ** 2
        return total / spread

    # --- tables from residuals, and back ---------------------------------------------------------------

    def center(self, table: Any, keys: KeySet, first: int = 0) -> Any:
        """Π (n I - J) of a table of whole numbers; its keys are the axes from `first` on.

        **Guarantee.** Whole numbers stay whole. One row moves the result by a vector of squared
        length Π n (n - 1).
        """
        for axis, size in enumerate(self.shape(keys), first):
            table = size * table - table.sum(axis=axis, keepdims=True)
        return table

    def without_means(self, table: Floats, keys: KeySet, first: int = 0) -> Floats:
        """P_S: a table less its mean along each of its keys."""
        for axis in range(first, first + len(keys)):
            table = table - table.mean(axis=axis, keepdims=True)
        return table

    def table(self, residuals: Mapping[KeySet, Floats], keys: KeySet, first: int = 0) -> Floats:
        """The table of a set: the residuals of its subsets, each spread over the keys that it
        lacks.

        The axes before `first` are those of every residual.
        """
        free = self.free_keys(keys)
        total: Any = 0.0
        for part in subsets(free):
            lacking = tuple(key for key in free if key not in part)
            axes = tuple(first + free.index(key) for key in lacking)
            total = total + np.expand_dims(residuals[part], axes) / self.cells(lacking)
        places = tuple(first + at for at, key in enumerate(keys) if self.sizes[key] == 1)
        shape = np.shape(residuals[()])[:first] + self.shape(keys)
        spread: Floats = np.array(np.broadcast_to(np.expand_dims(total, places), shape))
        return spread

    def adjoint(self, tables: Mapping[KeySet, Floats], first: int = 0) -> dict[KeySet, Floats]:
        """The transpose of `table`: for each residual, the sums over the lacking keys of all
        tables, less their means.
        """
        collected: dict[KeySet, Floats] = {}
        for keys, table in tables.items():
            places = tuple(first + at for at, key in enumerate(keys) if self.sizes[key] == 1)
            values, free = table.sum(axis=places), self.free_keys(keys)
            for part in subsets(free):
                lacking = tuple(first + at for at, key in enumerate(free) if key not in part)
                spread = self.cells(free) // self.cells(part)
                found = self.without_means(values.sum(axis=lacking) / spread, part, first)
                collected[part] = collected[part] + found if part in collected else found
        return collected

    def residuals_of(self, table: Floats, keys: KeySet, wanted: Sequence[KeySet] | None = None) -> Any:
        """The residuals of all subsets of a set, from its exact table."""
        free = self.free_keys(keys)
        table = table.reshape(self.shape(free))
        parts = tuple(subsets(free)) if wanted is None else wanted
        lacking = {part: tuple(at for at, key in enumerate(free) if key not in part) for part in parts}
        return {part: self.without_means(table.sum(axis=lacking[part]), part) for part in parts}
