# SPDX-License-Identifier: Apache-2.0
"""AIM: rounds that choose the table that a graphical model misses most, measure it, and fit the
model again.

After McKenna, Mullins, Sheldon and Miklau (2022). Candidates are all tables of up to three columns
for which the junction tree stays small. Where a measured table hardly changes the model, the noise
of later rounds is halved and their choices become sharper; the last round uses what is left.

**Guarantee.** The whole run is ρ-zero-concentrated: noise and choices of a round depend on earlier
results alone, and their costs never add up to more than ρ on any path (Feldman and Zrnic 2021;
mechanism.proof.md, § 7). The costs are added as exact fractions. The rows are seen through
`choose_table` and `measure_table` alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

import numpy as np

from discreet.exact import exactly
from discreet.tables.synthetic.columns import CopiedColumn
from discreet.tables.synthetic.counts import Counts, count_tables, l1_distance
from discreet.tables.synthetic.measure import UnitReach, choose_table, measure_table
from discreet.tables.synthetic.released import MeasuredTable, ReleasedCounts
from discreet.tables.synthetic.sample import sample_rows
from discreet.tables.synthetic.tree import TreeModel, fit_tree, tree_cells
from discreet.tables.workloads.measurement import SparseTable
from discreet.tables.workloads.residuals import KeySet

__all__ = ["ZcdpFilter", "run_aim"]

#: Planned rounds for each column, and the part of the budget that measures; the rest chooses.
_ROUNDS_EACH, _MEASURE_SHARE = 8, 0.9
#: Cells of the junction tree when all is spent.
_CAPACITY = 1 << 17
_MOST_CELLS, _MOST_CANDIDATES = 40_000, 1_000
#: Rows by which tables outside of the tree are estimated.
_ROWS = 50_000
_STEPS, _LAST_STEPS = 25, 200
_DOWN = 1 - 1e-9
_MEAN_OF_NORMAL = math.sqrt(2 / math.pi)


@dataclass
class ZcdpFilter:
    """A budget ρ, and what is used of it.

    **Guarantee.** What `admits` let through never costs more than ρ together: costs are exact
    fractions, and each float is taken by whichever of its readings, decimal or binary, costs more.
    """

    rho: Fraction
    used: Fraction = field(default_factory=Fraction)

    def admits(self, noise: float, epsilon: float | None = None) -> bool:
        """Whether one more Gaussian measurement, and a choice if there is one, fit; if so, they are
        used up.
        """
        cost = 1 / (2 * min(exactly(noise), Fraction(noise)) ** 2)
        if epsilon is not None:
            cost += max(exactly(epsilon), Fraction(epsilon)) ** 2 / 8
        if self.used + cost > self.rho:
            return False
        self.used += cost
        return True

    @property
    def left(self) -> float:
        """About what is left."""
        return float(self.rho - self.used)


@dataclass(frozen=True)
class _Round:
    """The noise of a measurement in sensitivities, and the ε of a choice."""

    noise: float
    epsilon: float

    @property
    def cost(self) -> float:
        return 1 / (2 * self.noise**2) + self.epsilon**2 / 8

    @classmethod
    def costing(cls, rho: float) -> _Round:
        """A round of this cost."""
        return cls(1 / math.sqrt(2 * _MEASURE_SHARE * rho), math.sqrt(8 * (1 - _MEASURE_SHARE) * rho))


def run_aim(
    cells: SparseTable, columns: tuple[CopiedColumn, ...], rho: Fraction, reach: UnitReach
) -> tuple[ReleasedCounts, TreeModel]:
    """What was released in all rounds, and the model that was fitted to it."""
    return _Run(cells, columns, ZcdpFilter(rho), reach).run()


class _Run:
    """The state of a run: everything but `exact` is released."""

    def __init__(
        self, cells: SparseTable, columns: tuple[CopiedColumn, ...], budget: ZcdpFilter, reach: UnitReach
    ) -> None:
        self.budget, self.reach = budget, reach
        self.released = ReleasedCounts(columns, reach.fine, {}, {}, {})
        self.sizes = self.released.sizes
        self.candidates = _candidates(self.sizes)
        self.exact: Mapping[KeySet, Counts] = dict(count_tables(cells, self.sizes, self.candidates))

    def run(self) -> tuple[ReleasedCounts, TreeModel]:
        planned = _Round.costing(float(self.budget.rho) / max(1, _ROUNDS_EACH * len(self.sizes)) * _DOWN)
        for key in range(len(self.sizes)):
            self._measure((key,), planned.noise)
        model = self._fit(None, _STEPS)
        last = False
        while not last:
            last = self.budget.left < 2 * planned.cost
            if last:
                planned = _Round.costing(self.budget.left * _DOWN)
            if not self.budget.admits(planned.noise, planned.epsilon):
                break
            chosen = self._choose(model, planned)
            self._measure(chosen, planned.noise, paid=True)
            before = self._model_tables(model, [chosen])[chosen]
            model = self._fit(model, _LAST_STEPS if last else _STEPS)
            after = self._model_tables(model, [chosen])[chosen]
            noise = _MEAN_OF_NORMAL * planned.noise * float(self.reach.l2) * before.size
            if l1_distance(before, after) <= noise:
                planned = _Round(planned.noise / 2, planned.epsilon * 2)
        return self.released, model

    def _measure(self, keys: KeySet, noise: float, *, paid: bool = False) -> None:
        if paid or self.budget.admits(noise):
            noisy, scale = measure_table(self.exact[keys], noise, self.reach)
            self.released = self.released.with_table(MeasuredTable(keys, noisy, scale))

    def _fit(self, model: TreeModel | None, steps: int) -> TreeModel:
        return fit_tree(
            self.sizes,
            self.released.total,
            self.released.noisy_tables(),
            absent=self.released.absent_codes(),
            start=model,
            steps=steps,
        )

    def _choose(self, model: TreeModel, planned: _Round) -> KeySet:
        """A table by how much the model misses it, beyond the noise that it would get; larger sets
        of columns count more.
        """
        capacity = _CAPACITY * float(self.budget.used / self.budget.rho)
        measured = list(model.potentials)
        small = [
            keys
            for keys in self.candidates
            if model.tree.clique_of(keys) is not None or tree_cells(self.sizes, [*measured, keys]) <= capacity
        ]
        noise = _MEAN_OF_NORMAL * planned.noise * float(self.reach.l2)
        tables = self._model_tables(model, small)
        scores = [
            len(keys) * (l1_distance(self.exact[keys], tables[keys]) - round(noise * tables[keys].size))
            for keys in small
        ]
        # A score moves by the number of columns times what a table moves.
        weight = max(map(len, small))
        return choose_table(small, scores, planned.epsilon, self.reach, weight)

    def _model_tables(self, model: TreeModel, wanted: Sequence[KeySet]) -> dict[KeySet, Counts]:
        """Tables of the model in whole weights: exact inside its cliques, from rows of it
        elsewhere.
        """
        weights = max(self.released.total, 0.0) * self.reach.fine
        tables, others = dict[KeySet, Counts](), list[KeySet]()
        for keys in wanted:
            table = model.table(keys)
            if table is None:
                others.append(keys)
            else:
                tables[keys] = np.rint(table.ravel() * weights).astype(np.int64)
        if others:
            rows = min(_ROWS, max(1, round(self.released.total)))
            codes = sample_rows(model, rows, seed=0).astype(np.int64)
            sample = SparseTable(codes, np.ones(rows, np.int64))
            for keys, counts in count_tables(sample, self.sizes, others):
                tables[keys] = np.rint(counts * (weights / rows)).astype(np.int64)
        return tables


def _candidates(sizes: Sequence[int]) -> list[KeySet]:
    """All tables of up to three columns, or two if that are too many; tables of one column come
    first.
    """
    columns = range(len(sizes))
    sets = [keys for order in (1, 2, 3) for keys in combinations(columns, order)]
    if len(sets) > _MOST_CANDIDATES:
        sets = [keys for keys in sets if len(keys) < 3]
    return [keys for keys in sets if len(keys) == 1 or math.prod(sizes[key] for key in keys) <= _MOST_CELLS]
