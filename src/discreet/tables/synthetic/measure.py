# SPDX-License-Identifier: Apache-2.0
"""What a synthetic copy measures of the rows, with exact noise: pairs, chosen tables, and the
distance of the copy.

**Guarantee.** With `reach` the greatest l1 norm of what one unit adds (`at_most` rows of full
weight), each function costs `privacy.gaussian(noise)`, or `privacy.exponential(epsilon)` for a
choice, for units that are added, removed or replaced. Scores and sums are whole numbers, so that
their sensitivity holds as they are computed.

Why it holds: mechanism.proof.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import cast

from discreet.exact import exactly, float_above
from discreet.mechanisms.choice import ExponentialMechanism
from discreet.mechanisms.distributions import GaussianDistribution
from discreet.tables.plan.contribution import Contribution
from discreet.tables.synthetic.counts import Counts, l1_distance
from discreet.tables.workloads.measurement import Layout, Measurement, least_overlap, measurement_at
from discreet.tables.workloads.objectives import plan_noise
from discreet.tables.workloads.residuals import KeySet, ResidualSystem

__all__ = [
    "UnitReach",
    "choose_table",
    "measure_distance",
    "measure_table",
    "pair_measurement",
    "pair_system",
]

#: √2 of a replacement, and other factors, are rounded up on this grid.
_FACTOR_GRID = 1 << 40


@dataclass(frozen=True)
class UnitReach:
    """How far one unit can move tables: the l1 norm of what it adds, in weights."""

    contribution: Contribution
    fine: int

    @property
    def added(self) -> int:
        """Σ of the weights of a unit at most."""
        return self.contribution.rows * self.fine

    @property
    def l1(self) -> int:
        """The l1 distance of a table of neighbouring data."""
        return self.added * self.contribution.replacement_factor_l1()

    @property
    def l2(self) -> Fraction:
        """At least the l2 distance of a table of neighbouring data: its cells are never negative."""
        return self.added * self.contribution.replacement_factor_l2(signed=False)


def pair_system(sizes: Sequence[int]) -> ResidualSystem:
    """All tables of two columns; of one column its own table."""
    order = min(2, len(sizes))
    return ResidualSystem(tuple(sizes), tuple(combinations(range(len(sizes)), order)))


def pair_measurement(system: ResidualSystem, noise: float, reach: UnitReach) -> Measurement:
    """The measurement of all pairs that costs one Gaussian mechanism of this noise."""
    layout = Layout((), system, plan_noise(system).variances)
    length = noise_of(noise) * reach.added
    if reach.contribution.replaces:
        # One vertex less another, or less nothing (mechanism.proof.md, § 2).
        square = max(1.0, 2.0 * (1.0 - least_overlap(layout)))
        length *= Fraction(math.ceil(math.sqrt(square) * _FACTOR_GRID) + 1, _FACTOR_GRID)
    return measurement_at(layout, length)


def noise_of(noise: float) -> Fraction:
    """A noise in sensitivities, by whichever of its two readings is larger: as a decimal, or in
    binary.
    """
    return max(exactly(noise), Fraction(noise))


def rounded_noise(scale: float, size: int) -> Counts:
    """Rounded Gaussian noise."""
    drawn: Counts = GaussianDistribution(scale).draw(size)
    return drawn


def choose_table(
    candidates: Sequence[KeySet], scores: Sequence[int], epsilon: float, reach: UnitReach, weight: int = 1
) -> KeySet:
    """One of the candidates with a great score.

    A score is the l1 distance of a table of rows from a public one, times at most `weight`, less a
    public number.
    """
    mechanism = ExponentialMechanism(epsilon=epsilon, sensitivity=weight * reach.l1, candidates=candidates)
    return cast("KeySet", mechanism.draw(list(scores)))


def measure_table(table: Counts, noise: float, reach: UnitReach) -> tuple[Counts, float]:
    """A table with noise, in weights, and the scale of the noise."""
    scale = float_above(noise_of(noise) * reach.l2)
    return table + rounded_noise(scale, table.size), scale


def measure_distance(
    pairs: Iterable[tuple[Counts, Counts]], tables: int, noise: float, reach: UnitReach
) -> tuple[int, GaussianDistribution]:
    """The sum of the l1 distances of so many pairs of tables, the second of each public, and the
    distribution of its noise.
    """
    distances = [l1_distance(table, public) for table, public in pairs]
    assert len(distances) == tables
    distribution = GaussianDistribution(float_above(noise_of(noise) * reach.l1 * tables))
    return sum(distances) + int(distribution.draw()), distribution
