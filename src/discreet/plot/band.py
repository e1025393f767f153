# SPDX-License-Identifier: Apache-2.0
"""A curve between two curves: what an audit measured, or what is proved from both sides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet import check
from discreet.errors import BadParameter
from discreet.plot.canvas import Array
from discreet.privacy.guarantee import Guarantee

#: Places at which both sides of δ(ε) are computed; each costs a composition.
_NODES = 16
_FAR = 60.0


@check.named_fields
@dataclass(frozen=True)
class Band:
    """Detection rates between `low` and `high`, at increasing false-alarm rates: a region to shade
    in a chart.

    **Guarantee.** What it says of an attacker is what its two curves say; it is drawn as it is, not
    smoothed.

    >>> Band([0.0, 0.5, 1.0], [0.0, 0.5, 1.0], [0.2, 0.8, 1.0], name="audit").name
    'audit'
    """

    false_alarm: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    name: str = ""

    def __post_init__(self) -> None:
        rows = {"false_alarm": self.false_alarm, "low": self.low, "high": self.high}
        for name, values in rows.items():
            numbers = [check.probability(**{name: value}) for value in values]
            object.__setattr__(self, name, tuple(numbers))
        lengths = {len(values) for values in (self.false_alarm, self.low, self.high)}
        if len(lengths) > 1 or not self._in_order():
            raise BadParameter(
                "DP107",
                "a band needs increasing false alarms, and low ≤ high at each of them.",
                why="it is the region between two curves over the same points.",
                fix="plot.Band([0, 0.5, 1], [0, 0.5, 1], [0.2, 0.8, 1])",
            )

    def _in_order(self) -> bool:
        rising = all(a <= b for a, b in zip(self.false_alarm, self.false_alarm[1:], strict=False))
        return rising and all(low <= high for low, high in zip(self.low, self.high, strict=True))


def certified_misses(guarantee: Guarantee, false_alarm: Array) -> Array:
    """A curve that the true trade-off curve provably does not exceed (where the worst mechanism is
    known).

    The truth is the supremum over γ = e^ε ≥ 1 of 1 - δ - γα and (1 - δ - α)/γ. δ is convex in γ and
    falls, so between two places it lies above the lines that continue its chords from either side.
    Below that pair of lines both terms are greatest at an end or where the lines meet, so those few
    (γ, δ) bound the supremum.
    """
    gamma, delta = _lowest_profile(guarantee)
    steep = 1 - delta[:, None] - gamma[:, None] * false_alarm
    flat = (1 - delta[:, None] - false_alarm) / gamma[:, None]
    highest = np.maximum(steep, flat).max(axis=0) * (1 + 1e-12)
    return np.asarray(np.clip(highest, 0.0, 1 - false_alarm))


def _lowest_profile(guarantee: Guarantee) -> tuple[Array, Array]:
    """Points (γ, δ) whose lower convex hull lies nowhere above the true profile."""
    epsilons = np.linspace(0.0, _top(guarantee), _NODES)
    bounds = [guarantee.bound(epsilon=float(epsilon)) for epsilon in epsilons]
    gamma = np.exp(epsilons)
    low, high = np.array([b.lower for b in bounds]), np.array([b.upper for b in bounds])
    gaps = np.diff(gamma)
    # slopes that continue the chord on the left of each node (at γ = 1 none is steeper than -1),
    # and on its right
    left = np.concatenate([[-1.0], np.minimum((low[1:] - high[:-1]) / gaps, 0.0)])
    right = np.concatenate([np.minimum((high[1:] - low[:-1]) / gaps, 0.0), [0.0]])
    rise = low[1:] - low[:-1] - right[1:] * gaps
    bend = np.where(right[1:] > left[:-1], rise / np.minimum(left[:-1] - right[1:], -1e-300), 0.0)
    at = gamma[:-1] + np.clip(bend, 0.0, gaps)
    between = np.maximum(low[:-1] + left[:-1] * (at - gamma[:-1]), low[1:] + right[1:] * (at - gamma[1:]))
    # the last chord goes on until δ is what is left at an ε far out; beyond that, nothing is known
    # of δ
    floor = guarantee.bound(epsilon=_FAR).lower
    meets = gamma[-1] + (floor - low[-1]) / min(left[-1], -1e-300)
    ends = np.clip([meets, math.exp(_FAR)], gamma[-1], math.exp(_FAR))
    return np.concatenate([gamma, at, ends]), np.concatenate([low, np.maximum(between, 0.0), [floor, 0.0]])


def _top(guarantee: Guarantee) -> float:
    """An ε beyond which hardly anything of the curve is decided."""
    epsilons = (guarantee.epsilon(delta) for delta in (1e-4, 1e-2, 0.1, 0.5, 0.9))
    return max(1e-3, min(next((epsilon for epsilon in epsilons if np.isfinite(epsilon)), 1.0), 50.0))
