# SPDX-License-Identifier: Apache-2.0
"""Released numbers with their intervals, group by group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from discreet import check
from discreet.errors import BadParameter
from discreet.plot.canvas import GREY, axes_for, finish
from discreet.privacy.picture import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW, _MOST = 0.28, 60  # inches for one group; more groups than that cannot be read


@check.arguments
def groups(
    labels: Sequence[str],
    values: Sequence[Any],
    lo: Sequence[Any],
    hi: Sequence[Any],
    *,
    name: str = "value",
    ax: Axes | None = None,
) -> Figure:
    """One point for each group, with a bar from `lo` to `hi`; None is left out. The first of many groups are drawn."""
    if not len(labels) == len(values) == len(lo) == len(hi) or not labels:
        raise BadParameter(
            "DP107",
            "a picture of groups needs a label, a value and two ends for each of at least one group.",
            why="there is nothing to draw, or it is not clear what belongs together.",
            fix="plot.groups(['a', 'b'], [3, 5], [1, 3], [5, 7])",
        )
    shown = [at for at in range(len(labels)) if values[at] is not None][:_MOST]
    ax = axes_for(ax, (6.0, 1.2 + _ROW * max(3, len(shown))))
    places = list(range(len(shown)))
    for place, at in zip(places, shown, strict=True):
        if lo[at] is not None and hi[at] is not None:
            ax.plot([lo[at], hi[at]], [place, place], color=GREY, linewidth=2.5, solid_capstyle="butt")
    ax.plot([values[at] for at in shown], places, "o", color=COLOURS[0], markersize=5)
    ax.set_yticks(places, [str(labels[at]) for at in shown])
    ax.invert_yaxis()
    ax.set_xlabel(f"{name}, with 95 % intervals of the noise")
    said = "; ".join(f"{labels[at]} {_words(values[at], lo[at], hi[at])}" for at in shown[:12])
    more = f" The first {len(shown)} of {len(labels)} groups." if len(shown) < len(labels) else ""
    return finish(ax, f"{name} by group", f"{said}.{more}")


def _words(value: Any, low: Any, high: Any) -> str:
    ends = "" if low is None or high is None else f" ({low:.4g} to {high:.4g})"
    return f"{value:.4g}{ends}"
