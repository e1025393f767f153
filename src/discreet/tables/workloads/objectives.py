# SPDX-License-Identifier: Apache-2.0
"""The best noise for many tables: which share of the precision each residual gets.

    each      every table counts the same: the least sum of the variances of one cell of each          (the default)
    cells     every cell counts the same: the least mean square error over all cells of all tables
    worst     the least greatest variance of any table
    weights   the least weighted sum of variances, one weight for each table

**Guarantee.** `NoisePlan.variances` fulfil Σ c_S / σ_S² = 1 up to rounding, which is what the whole
release may cost at one sensitivity; privacy does not depend on it, because the mechanism computes
its sensitivity from what it draws. `lower_bound` is a value of the objective that no linear
measurement with Gaussian noise of the same cost can beat.

Why it holds: for a weighted sum, Cauchy-Schwarz gives σ_S² = T √(c_S / V_S) with T = Σ √(c_S V_S)
and the least loss T². No other linear strategy is better, by the singular value bound (Li and
Miklau 2013): the residuals are the eigenspaces of the weighted tables. The least greatest variance
is the greatest T(λ)² over all weights λ that add up to one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from discreet.tables.workloads.residuals import KeySet, ResidualSystem

__all__ = ["OBJECTIVES", "NoisePlan", "Objective", "plan_noise"]

OBJECTIVES = ("each", "cells", "worst")
#: A word of OBJECTIVES, or the weight of each table; tables that are not named have none.
Objective: TypeAlias = str | Mapping[KeySet, float]

#: The search for the least greatest variance stops this near to what is proved to be the best.
_TOLERANCE = 1e-3
_MOST_STEPS = 10_000
#: No table gets less than this part of all weights, so that every residual has finite noise.
_LEAST_WEIGHT = 1e-9


@dataclass(frozen=True)
class NoisePlan:
    """The variances σ_S² of the residuals at a cost of one sensitivity, and what they lead to.

    `value` is the objective, and `lower_bound` what no strategy can beat.
    """

    system: ResidualSystem
    variances: Mapping[KeySet, float]
    value: float
    lower_bound: float

    def table_variances(self) -> dict[KeySet, float]:
        """The variance of a cell of each table of the closure."""
        return self.system.variances(self.variances)


def plan_noise(system: ResidualSystem, objective: Objective = "each") -> NoisePlan:
    """The variances of the residuals that are best for an objective.

    With "each", no table has a greater variance than it would have on its own with its part of the
    budget; if that were so, the plan is that of "worst", for which it is proved.

    >>> plan = plan_noise(ResidualSystem((2, 3), ((0, 1),)), {(0, 1): 1.0})
    >>> round(plan.table_variances()[(0, 1)], 6)
    1.0
    """
    if objective == "worst":
        return _least_greatest(system, dict.fromkeys(system.sets, 1.0))
    if isinstance(objective, str):
        cells = objective == "cells"
        weights = {keys: float(system.cells(keys)) if cells else 1.0 for keys in system.sets}
    else:
        weights = dict(objective)
    plan = _least_sum(system, weights)
    if objective == "each":
        found = plan.table_variances()
        if max(found[keys] for keys in system.sets) > len(system.sets) * (1 + _TOLERANCE):
            return _least_greatest(system, dict.fromkeys(system.sets, 1.0))
    return plan


def _least_sum(system: ResidualSystem, weights: Mapping[KeySet, float]) -> NoisePlan:
    """The least Σ weight · Var_A, in closed form."""
    least = _LEAST_WEIGHT * max(weights.values())
    loads = system.loads({keys: max(weights.get(keys, 0.0), least) for keys in system.sets})
    contrasts = {keys: system.contrast(keys) for keys in system.residuals}
    total = math.fsum(math.sqrt(contrasts[keys] * loads[keys]) for keys in system.residuals)
    variances = {keys: total * math.sqrt(contrasts[keys] / loads[keys]) for keys in system.residuals}
    found = system.variances(variances)
    value = math.fsum(weight * found[keys] for keys, weight in weights.items())
    bare = system.loads(weights)
    bound = math.fsum(math.sqrt(contrasts[keys] * bare[keys]) for keys in system.residuals) ** 2
    return NoisePlan(system, variances, value, bound)


def _least_greatest(system: ResidualSystem, scales: Mapping[KeySet, float]) -> NoisePlan:
    """The least max Var_A / scale, by multiplicative steps on the weights; a bound says how good it
    is.
    """
    sets: Sequence[KeySet] = list(scales)
    allowed = np.array([scales[keys] for keys in sets])
    weights = np.full(len(sets), 1 / len(sets))
    best: NoisePlan | None = None
    lower = 0.0
    for _ in range(_MOST_STEPS):
        plan = _least_sum(system, dict(zip(sets, (weights / allowed).tolist(), strict=True)))
        found = plan.table_variances()
        ratios = np.array([found[keys] for keys in sets]) / allowed
        # The bound holds for weights that add up to one, whatever they are.
        lower = max(lower, plan.lower_bound)
        if best is None or ratios.max() < best.value:
            best = NoisePlan(system, plan.variances, float(ratios.max()), lower)
        if best.value <= lower * (1 + _TOLERANCE):
            break
        weights = weights * ratios
        weights /= weights.sum()
    assert best is not None
    return NoisePlan(system, best.variances, best.value, lower)
