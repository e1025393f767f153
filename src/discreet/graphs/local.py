# SPDX-License-Identifier: Apache-2.0
"""The local sensitivity of a count: on a graph and on all graphs near it.

    local = triangles.sensitivity(graph)
    local.at(0)  # how far one edge can move the count of this graph
    local.at(3)  # the greatest local sensitivity within three edges of this graph
    local.distance_above(10)  # edges to change until the local sensitivity exceeds 10
    local.smooth(Fraction(1, 10))  # the smooth sensitivity

All of it is as secret as the graph, and printing it shows nothing. `levels` ends with `cap`, the
global sensitivity, which every graph reaches at some distance.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from discreet.noise.enclosure import exp_minus

_BITS = 128  # of a discount; smaller discounts are rounded up to 2**-128


@dataclass(frozen=True)
class LocalSensitivity:
    """The local sensitivity at every distance: whole numbers that do not fall, up to `cap`."""

    levels: Sequence[int] = field(repr=False)
    cap: int = field(repr=False)

    def at(self, distance: int) -> int:
        """The greatest local sensitivity of graphs within this distance."""
        return self.levels[distance] if distance < len(self.levels) else self.cap

    def distance_above(self, bound: int) -> float:
        """The distance to the nearest graph of greater local sensitivity; infinite if there is
        none.
        """
        return math.inf if bound >= self.cap else bisect_right(self.levels, bound)

    def smooth(self, decay: Fraction) -> Fraction:
        """The greatest level after a discount of exp(-decay) for each step, rounded up.

        **Guarantee.** S(x) <= e^decay S(x') for neighbours, exactly, and S is at least every
        discounted level.

        Why it holds: with discounts r_0 = 1 and r_s+1 >= e^-decay r_s, rounded up step by step in
        whole numbers, S(x) = max r_s LS_s(x) >= max r_s+1 LS_s+1(x) >= e^-decay max r_s LS_s(x'),
        because LS_s+1(x) >= LS_s(x') for neighbours. Beyond the last level discounts only fall.
        (Nissim, Raskhodnikova, Smith 2007, for exact discounts.)
        """
        _, factor = exp_minus(decay, _BITS)
        discount, best = 1 << _BITS, 0
        for level in self.levels:
            best = max(best, level * discount)
            discount = -(-discount * factor >> _BITS)
            if self.cap * discount <= best:
                break
        return Fraction(best, 1 << _BITS)
