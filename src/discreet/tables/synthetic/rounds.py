# SPDX-License-Identifier: Apache-2.0
"""Rounds: tables of three columns that the model misses are chosen, measured, and the model is
fitted again.

**Guarantee.** The rows are seen through `choose_table` and `measure_table` alone, each called as
often as it was paid for, whatever the outcomes are. Candidates follow from the columns and from
released numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from discreet.tables.synthetic.counts import Counts, count_tables, l1_distance
from discreet.tables.synthetic.measure import UnitReach, choose_table, measure_table
from discreet.tables.synthetic.mixture import Mixture, components_for, fit_mixture
from discreet.tables.synthetic.released import MeasuredTable, ReleasedCounts
from discreet.tables.synthetic.spending import SynthesisSpending
from discreet.tables.workloads.measurement import SparseTable
from discreet.tables.workloads.residuals import KeySet

__all__ = ["Rounds", "candidate_tables", "tables_of_rounds"]

#: Tables that are measured in all rounds, and in one.
_TABLES, _AT_ONCE = 20, 10
#: A table with more cells is not measured.
_MOST_CELLS = 40_000
_MOST_CANDIDATES = 300
_FIRST_STEPS, _STEPS, _LAST_STEPS = 400, 100, 300


def candidate_tables(sizes: Sequence[int]) -> list[KeySet]:
    """The tables of three columns that could be measured."""
    triples = combinations([key for key, size in enumerate(sizes) if size > 1], 3)
    return [keys for keys in triples if math.prod(sizes[key] for key in keys) <= _MOST_CELLS]


def tables_of_rounds(sizes: Sequence[int]) -> int:
    """How many tables all rounds measure: a number that follows from the columns."""
    return min(_TABLES, len(candidate_tables(sizes)))


@dataclass(frozen=True)
class Rounds:
    """The rows that rounds measure, what they may spend, and how far one unit moves a table."""

    cells: SparseTable
    spending: SynthesisSpending
    reach: UnitReach

    def run(self, released: ReleasedCounts) -> tuple[ReleasedCounts, Mixture]:
        """What was released after all rounds, and the model that was fitted to it."""
        components = components_for(released.sizes)
        model = fit_mixture(released.pairs(), components=components, most_steps=_FIRST_STEPS)
        candidates = _promising(released, candidate_tables(released.sizes))
        left = self.spending.tables
        while left:
            chosen = self._choose(released, model, candidates, min(left, _AT_ONCE))
            left -= len(chosen)
            candidates = [keys for keys in candidates if keys not in chosen]
            measured = [
                MeasuredTable(keys, *measure_table(table, self.spending.table, self.reach))
                for keys, table in count_tables(self.cells, released.sizes, chosen)
            ]
            released = replace(released, chosen=(*released.chosen, *measured))
            model = fit_mixture(
                released.pairs(),
                released.noisy_tables(),
                most_steps=_STEPS if left else _LAST_STEPS,
                start=model,
            )
        return released, model

    def _choose(
        self, released: ReleasedCounts, model: Mixture, candidates: list[KeySet], count: int
    ) -> list[KeySet]:
        """Several tables by the same scores, one after the other."""
        weights = max(released.total, 0.0) * released.fine
        # A table is worth what the model misses beyond the noise that it would be measured with.
        noise = math.sqrt(2 / math.pi) * self.spending.table * float(self.reach.l2)
        scores = {
            keys: l1_distance(table, _model_table(model, keys, weights)) - round(noise * table.size)
            for keys, table in count_tables(self.cells, released.sizes, candidates)
        }
        chosen: list[KeySet] = []
        for _ in range(count):
            left = [keys for keys in candidates if keys not in chosen]
            chosen.append(
                choose_table(left, [scores[keys] for keys in left], self.spending.choice, self.reach)
            )
        return sorted(chosen)


def _promising(released: ReleasedCounts, candidates: list[KeySet]) -> list[KeySet]:
    """The candidates whose pairs depend on each other most, by released numbers."""
    if len(candidates) <= _MOST_CANDIDATES:
        return candidates
    total = max(released.total, 1.0)
    alone = [released.tables.table((key,)) for key in range(len(released.sizes))]
    strength = {
        pair: float(
            np.abs(released.tables.table(pair) - np.outer(*(alone[key] for key in pair)) / total).sum()
        )
        for pair in combinations(range(len(released.sizes)), 2)
    }
    ranked = sorted(candidates, key=lambda keys: -sum(strength[pair] for pair in combinations(keys, 2)))
    return sorted(ranked[:_MOST_CANDIDATES])


def _model_table(model: Mixture, keys: KeySet, weights: float) -> Counts:
    """The table of the model in whole weights."""
    expected: Counts = np.rint(model.table(keys).ravel() * weights).astype(np.int64)
    return expected
