# SPDX-License-Identifier: Apache-2.0
"""The attacker's curve: trade-off (misses against false alarms) and ROC (detections against false
alarms).

**Guarantee.** The points that are joined are those of `Guarantee.roc`: never above the true
trade-off curve, never below the true ROC. The chart shows no more than is proved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from discreet import check
from discreet.plot.band import Band, certified_misses
from discreet.plot.canvas import GREY, Several, axes_for, finish, guarantees_by_name, ink, style, wrap_label
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
