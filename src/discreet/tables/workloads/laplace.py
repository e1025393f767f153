# SPDX-License-Identifier: Apache-2.0
"""Many tables under a pure ε: which of them to measure with Laplace noise, and how the others
follow.

A row is in one cell of each measured table, so that its costs ε_B add up. The estimates are those
of least squares: with noise of variance v_B on each cell of B, the residual of S is known with the
precision π_S = Σ 1 / (v_B n_B) over the measured tables B that contain S, which is that of noise of
variance σ_S² = 1 / (n_S π_S).

Measuring the residuals themselves costs more here: one row moves that of S by Π 2 (1 - 1/n) in the
l1 norm, not by less than one.

The shares are searched for from several starts. The problem is not convex, and privacy does not
depend on the outcome.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from discreet.tables.workloads.objectives import Objective, plan_noise
from discreet.tables.workloads.residuals import Floats, KeySet, ResidualSystem, subsets

__all__ = ["MeasuredTables", "cell_coefficients", "plan_shares", "pooled_noise", "pooled_residuals"]

#: Tables with less than this share of the greatest are not measured.
_NEGLIGIBLE = 1e-3
#: Rounds in which the weights follow the variances, for the least greatest one.
_ROUNDS = 12


@dataclass(frozen=True)
class MeasuredTables:
    """The share of ε of each measured table; they add up to one."""

    system: ResidualSystem
    shares: Mapping[KeySet, float]

    def variances(self) -> dict[KeySet, float]:
        """σ_S² of the residuals, for noise of variance 2 / share² on each measured table."""
        return pooled_noise(self.system, {keys: 2 / share**2 for keys, share in self.shares.items()})


def pooled_noise(system: ResidualSystem, measured: Mapping[KeySet, float]) -> dict[KeySet, float]:
    """σ_S² of least squares, from tables measured with noise of some variance on each cell."""
    precisions = dict.fromkeys(system.residuals, 0.0)
    for keys, variance in measured.items():
        free = system.free_keys(keys)
        for part in subsets(free):
            precisions[part] += 1 / (variance * system.cells(free))
    return {keys: 1 / (system.cells(keys) * precision) for keys, precision in precisions.items()}


def pooled_residuals(
    system: ResidualSystem, tables: Mapping[KeySet, Floats], measured: Mapping[KeySet, float]
) -> dict[KeySet, Floats]:
    """The least-squares residuals from noisy tables: means of what each of them says, weighted by 1
    / (v_B n_B).
    """
    sums: dict[KeySet, Floats] = {}
    totals: dict[KeySet, float] = {}
    for keys, table in tables.items():
        weight = 1 / (measured[keys] * system.cells(system.free_keys(keys)))
        for part, residual in system.residuals_of(table, keys).items():
            sums[part] = sums[part] + weight * residual if part in sums else weight * residual
            totals[part] = totals.get(part, 0.0) + weight
    return {part: total / totals[part] for part, total in sums.items()}


def cell_coefficients(
    system: ResidualSystem, measured: Mapping[KeySet, float], keys: KeySet
) -> list[tuple[KeySet, float, int]]:
    """The absolute coefficients of the cells of the measured tables in the estimate of a cell of a
    table.

    Each comes with the measured table and with the number of its cells that have this coefficient.
    It depends on the keys in which the two cells agree.
    """
    free = system.free_keys(keys)
    weights = {
        table: 1 / (variance * system.cells(system.free_keys(table))) for table, variance in measured.items()
    }
    totals = dict.fromkeys(system.residuals, 0.0)
    for table, weight in weights.items():
        for part in subsets(system.free_keys(table)):
            totals[part] += weight
    found = []
    for table, weight in weights.items():
        shared = tuple(key for key in system.free_keys(table) if key in free)
        # An axis for each shared key: first whether the key is in S, then whether the cells agree in it.
        values: Floats = np.zeros((2,) * len(shared))
        counts = np.full(
            (2,) * len(shared), math.prod(system.shape(tuple(set(system.free_keys(table)) - set(shared))))
        )
        for part in subsets(shared):
            inside = tuple(int(key in part) for key in shared)
            values[inside] = weight / totals[part] * system.cells(part) / system.cells(free)
        for axis, key in enumerate(shared):
            without, within = np.moveaxis(values, axis, 0)
            size = system.sizes[key]
            values = np.stack([without - within / size, without + within * (1 - 1 / size)], axis=axis)
            counts = np.stack([np.take(counts, 0, axis) * (size - 1), np.take(counts, 1, axis)], axis=axis)
        pairs = zip(np.abs(values).ravel().tolist(), counts.ravel().tolist(), strict=True)
        found += [(table, value, count) for value, count in pairs]
    return found


def plan_shares(system: ResidualSystem, objective: Objective = "each") -> MeasuredTables:
    """Shares of ε with a small sum of weighted variances, or a small greatest one.

    >>> plan = plan_shares(ResidualSystem((2, 3), ((), (0, 1))))
    >>> round(sum(plan.shares.values()), 9)
    1.0
    """
    if isinstance(objective, str):
        weights = {keys: float(system.cells(keys)) if objective == "cells" else 1.0 for keys in system.sets}
    else:
        weights = dict(objective)
    search = _Search(system)
    best = search.least_sum(weights)
    if objective != "worst":
        return best
    for _ in range(_ROUNDS):
        found = system.variances(best.variances())
        peak = max(found[keys] for keys in system.sets)
        weights = {keys: weights[keys] * found[keys] / peak for keys in system.sets}
        candidate = search.least_sum(
            weights, [np.log([best.shares.get(keys, 1e-4) for keys in search.tables])]
        )
        of_candidate = system.variances(candidate.variances())
        if max(of_candidate[keys] for keys in system.sets) < peak:
            best = candidate
    return best


class _Search:
    """The search for shares, with what it needs computed once."""

    def __init__(self, system: ResidualSystem) -> None:
        self.system = system
        self.tables = list(dict.fromkeys(system.free_keys(keys) for keys in system.closure))
        place = {keys: at for at, keys in enumerate(system.residuals)}
        inside = [[place[part] for part in subsets(keys)] for keys in self.tables]
        self._table = np.repeat(np.arange(len(inside)), [len(parts) for parts in inside])
        self._part = np.concatenate([np.array(parts) for parts in inside])
        self._cells = np.array([float(system.cells(keys)) for keys in self.tables])
        self._part_cells = np.array([float(system.cells(keys)) for keys in system.residuals])

    def least_sum(
        self, weights: Mapping[KeySet, float], starts: Sequence[Floats] | None = None
    ) -> MeasuredTables:
        loads = self.system.loads(weights)
        load = np.array([loads[keys] for keys in self.system.residuals])
        outcomes = [
            minimize(self._loss, start, args=(load,), jac=True, method="L-BFGS-B", options={"maxiter": 500})
            for start in starts or self._starts(weights)
        ]
        logs = min(outcomes, key=lambda outcome: float(outcome.fun)).x
        shares = np.exp(logs - logs.max())
        shares[shares < _NEGLIGIBLE] = 0.0
        if not self._covers(shares):
            shares = np.exp(logs - logs.max())
        shares /= shares.sum()
        chosen = {keys: share for keys, share in zip(self.tables, shares.tolist(), strict=True) if share}
        return MeasuredTables(self.system, chosen)

    def _loss(self, logs: Floats, load: Floats) -> tuple[float, Floats]:
        """The logarithm of Σ load σ² for shares exp(logs) / Σ exp(logs), and its gradient."""
        shares = np.exp(logs - logs.max())
        shares /= shares.sum()
        amounts = shares**2 / (2 * self._cells)
        precisions = np.bincount(self._part, amounts[self._table], len(load))
        parts = load / (self._part_cells * precisions)
        total = float(parts.sum())
        slopes = np.bincount(self._table, (parts / precisions)[self._part], len(shares))
        # d loss / d share, and through the softmax.
        by_share = -slopes * shares / self._cells / total
        return float(np.log(total)), shares * (by_share - float(by_share @ shares))

    def _covers(self, shares: Floats) -> bool:
        """Whether every residual is inside a measured table."""
        hit = np.bincount(self._part, shares[self._table], len(self._part_cells))
        return bool((hit > 0).all())

    def _starts(self, weights: Mapping[KeySet, float]) -> list[Floats]:
        """Even shares, the largest tables, and shares by size or by what Gaussian noise would give."""
        orders = np.array([len(keys) for keys in self.tables])
        gaussian = plan_noise(self.system, dict(weights)).variances
        by_noise = -np.log([gaussian[keys] for keys in self.tables])
        asked = {self.system.free_keys(keys) for keys in self.system.sets}
        of_asked = np.array([0.0 if keys in asked else -4.0 for keys in self.tables])
        return [
            np.zeros(len(orders)),
            2.0 * (orders - orders.max()),
            -1.0 * orders,
            by_noise,
            of_asked,
            np.log(self._cells) / 3 - np.log(self._cells).max() / 3,
        ]
