# SPDX-License-Identifier: Apache-2.0
"""The attacker's curve: trade-off (misses against false alarms) and ROC (detections against false
alarms).

**Guarantee.** The points that are joined are those of `Guarantee.roc`: never above the true
trade-off curve, never below the true ROC. The chart shows no more than is proved.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet import check
from discreet.errors import BadParameter
from discreet.plot.canvas import (
    GREY,
    Array,
    Several,
    axes_for,
    finish,
    guarantees_by_name,
    ink,
    style,
    wrap_label,
)
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.svg import describe, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from discreet.privacy.guarantee import Guarantee


Points = Mapping[str, tuple[float, float]]
_SQUARE = (4.8, 4.8)
_POINTS = 401


@check.arguments
def tradeoff(
    guarantees: Several,
    *,
    points: Points | None = None,
    certified: bool = False,
    bands: Sequence[Band] = (),
    ax: Axes | None = None,
) -> Figure:
    """Plot the trade-off curve: the attacker's least miss rate for each false-alarm rate. The
    higher, the safer.

    `points` are (false alarms, detections) by name; `certified` adds the band between the proved
    curve and one that is proved from the other side; `bands` are measured ones, such as an audit's.

    **Guarantee.** The points of a curve are those of `Guarantee.roc`: never above the true
    trade-off curve. It holds for every test that an attacker can make of the answer (Dong, Roth, Su
    2022).

    >>> from discreet import plot, privacy
    >>> figure = plot.tradeoff({"one answer": privacy.laplace(scale=1), "two": 2 * privacy.laplace(scale=1)})
    >>> len(figure.axes)
    1
    """
    return _draw(guarantees, points or {}, bands, axes_for(ax, _SQUARE), certified=certified, rising=False)


@check.arguments
def roc(
    guarantees: Several,
    *,
    points: Points | None = None,
    certified: bool = False,
    bands: Sequence[Band] = (),
    ax: Axes | None = None,
) -> Figure:
    """Plot the ROC curve: the attacker's greatest detection rate for each false-alarm rate. See
    `tradeoff`.

    **Guarantee.** The curve is never below the true one; the nearer it is to the diagonal, the
    safer.

    >>> from discreet import plot, privacy
    >>> len(plot.roc(privacy.gaussian(noise=2.0), certified=True).axes)
    1
    """
    return _draw(guarantees, points or {}, bands, axes_for(ax, _SQUARE), certified=certified, rising=True)


def _draw(
    guarantees: Several, points: Points, bands: Sequence[Band], ax: Axes, *, certified: bool, rising: bool
) -> Figure:
    named = guarantees_by_name(guarantees) if guarantees or not bands else {}
    ax.plot([0, 1], [0, 1] if rising else [1, 0], color=GREY, linestyle=":", linewidth=1)
    for number, (name, guarantee) in enumerate(named.items()):
        curve = guarantee.roc(_POINTS)
        heights = curve.detection if rising else 1 - curve.detection
        ax.plot(curve.false_alarm, heights, label=name or None, **style(number))
        if certified:
            _shade(ax, _certified_band(guarantee), style(number)["color"], rising=rising)
    for number, band in enumerate(bands, start=len(named)):
        _shade(ax, band, style(number)["color"], rising=rising)
    for name, point in points.items():
        _mark(ax, name, point, rising=rising)
    ax.set(
        xlabel="false alarms",
        ylabel="detections" if rising else "misses",
        xlim=(-0.01, 1.01),
        ylim=(-0.01, 1.01),
        aspect="equal",
    )
    words = [
        *([describe(named, rising=rising)] if named else []),
        *(f"Shaded: {band.name}." for band in bands if band.name),
    ]
    words += (
        ["Shaded: between what is proved of the attacker from above and from below."] if certified else []
    )
    # curves lie above the diagonal of a ROC and below that of a trade-off: the other side is free
    corner = "lower right" if rising else "upper right"
    return finish(ax, title(rising=rising), " ".join(words), legend=corner)


def _certified_band(guarantee: Guarantee) -> Band:
    curve = guarantee.roc(_POINTS)
    least = 1 - certified_misses(guarantee, curve.false_alarm)
    return Band(curve.false_alarm.tolist(), least.clip(0, curve.detection).tolist(), curve.detection.tolist())


def _shade(ax: Axes, band: Band, colour: str, *, rising: bool) -> None:
    low, high = band.low, band.high
    if not rising:
        low, high = [1 - rate for rate in band.high], [1 - rate for rate in band.low]
    ax.fill_between(
        band.false_alarm, low, high, color=colour, alpha=0.25, linewidth=0, label=band.name or None
    )


def _mark(ax: Axes, name: str, point: tuple[float, float], *, rising: bool) -> None:
    alarm, detection = point
    alarm, detection = check.probability(false_alarm=alarm), check.probability(detection=detection)
    height = detection if rising else 1 - detection
    ax.plot([alarm], [height], marker="o", markersize=5, color=ink(ax), linestyle="none")
    paper = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "alpha": 0.8, "pad": 1}
    beside = (9, -9 if rising else 9)
    ax.annotate(
        wrap_label(name), (alarm, height), beside, textcoords="offset points", va="center", bbox=paper
    )


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
