# SPDX-License-Identifier: Apache-2.0
"""The ladder mechanism: pure privacy with noise for the local sensitivity at every distance.

Rung 0 is the exact count. Rung t adds, on both sides, as many whole numbers as the local
sensitivity at distance t - 1. A rung is drawn with probability proportional to its width times
exp(-rate · t), and then a number on it uniformly.

**Guarantee.** ε-differential privacy, with exact whole numbers.

Why it holds: a number on rung t is on rung t - 1, t or t + 1 of any neighbour's ladder, so rate =
ε/2 is always enough (Zhang, Cormode, Procopiuc, Srivastava, Xiao 2015). Wide rungs allow more: if
no rung is narrower than a public `floor`, the total width changes little between neighbours, and
the rate is nearly ε (graphs.proof.md §4).

What would break it: a floor that was read off the graph.
"""

from __future__ import annotations

import math

import numpy as np

from discreet import check, noise, privacy
from discreet.errors import BadParameter
from discreet.exact import bisect, exactly
from discreet.graphs.counts import SubgraphCount
from discreet.graphs.local import LocalSensitivity
from discreet.mechanisms.mechanism import Mechanism
from discreet.noise.scales import LARGEST, Scales
from discreet.privacy.guarantee import Guarantee

__all__ = ["Ladder"]

_RUNGS = 8  # the floor by default, in units of growth / ε
_MAX_EPSILON = 100.0  # at this ε the answer is exact with probability 1 - exp(-50)


class Ladder(Mechanism):
    """A count with noise on the rungs of its local sensitivity; see above."""

    def __init__(self, count: SubgraphCount, *, epsilon: float, floor: int | None = None) -> None:
        self.count = count
        epsilon = check.moderate(epsilon=epsilon)
        self._guarantee = privacy.pure(epsilon, unit="edge")
        if count.cap > LARGEST:
            raise _too_wide_error()
        default = math.ceil(min(_RUNGS * count.growth / epsilon, count.cap))
        self.floor = min(default if floor is None else check.whole(floor=floor), count.cap)
        # Every width lies between the floor and the cap.
        growth = min(count.growth, count.cap - self.floor)
        self.scale = scale_for(min(epsilon, _MAX_EPSILON), growth, self.floor)
        # A scale that cannot be drawn exactly is refused here, before any draw.
        Scales(exactly(self.scale))

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def draw(self, data: object) -> int:
        graph = self.count.graph(data)
        return self.count.exact(graph) + self.noise(self.count.sensitivity(graph))

    def noise(self, local: LocalSensitivity) -> int:
        """A draw from the ladder, as a distance from the exact count.

        The weight of rung t is exp(-t / scale) times its width, and widths do not fall. So the rung
        is a mixture: u is drawn with exp(-u / scale) times the increase of the width at u as
        weight, and a geometric number of further rungs is added.
        """
        widths = np.maximum(np.array(local.levels, np.int64), self.floor)
        increases = np.diff(2 * widths, prepend=[0, 1])
        scale = exactly(self.scale)
        start = int(noise.largest(-np.arange(increases.size), scale, weights=increases)[0])
        rung: int = start + noise.geometric(scale)
        if not rung:
            return 0
        below, beyond = widths[: rung - 1], max(0, rung - 1 - widths.size)
        width = int(widths[rung - 1]) if rung <= widths.size else local.cap
        distance: int = sum(below.tolist()) + beyond * local.cap + 1 + noise.uniform(width)
        return -distance if noise.uniform(2) else distance


def cost(rate: float, growth: int, floor: int) -> float:
    """The ε of a ladder with weights exp(-rate · t), rounded up."""
    widths = math.log1p(2 * growth / (math.expm1(rate) + 2 * floor))
    return (rate + min(rate, widths)) * (1 + 1e-12)


def scale_for(epsilon: float, growth: int, floor: int) -> float:
    """The least scale, up to 1e-12, whose cost is at most ε; the cost grows with the rate."""
    low, high = epsilon / 2 * (1 - 1e-11), epsilon
    low, _ = bisect(lambda rate: cost(rate, growth, floor) <= epsilon, yes=low, no=high, steps=60)
    scale = 1 / low
    while cost(1 / scale, growth, floor) > epsilon:
        scale = math.nextafter(scale, math.inf)
    return scale


def _too_wide_error() -> BadParameter:
    return BadParameter(
        "DP108",
        "one edge can move this count by more than 2**46.",
        why="such noise would not fit into an exact 64-bit integer.",
        fix="method='smooth', or stars with fewer points",
    )
