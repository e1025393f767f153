# SPDX-License-Identifier: Apache-2.0
"""Released numbers with their intervals, group by group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from discreet import check
from discreet.errors import BadParameter
from discreet.mechanisms.digits import number_cells
from discreet.plot.canvas import GREY, axes_for, finish, wrap_label
from discreet.privacy.svg import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Inches for one group; more groups than that cannot be read.
_ROW, _MOST = 0.28, 60
#: Groups that are put into words.
_DESCRIBED_GROUPS = 12


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
    """Plot one point for each group, with a bar from `lo` to `hi`; None is left out. At most 60
    groups are drawn.

    **Guarantee.** The chart is post-processing of released numbers: it reads no data and costs no
    budget.

    >>> from discreet import plot
    >>> plot.alt_text(plot.groups(["a", "b"], [3, 5], [1, 3], [5, 7], name="visits"))
    'visits by group: a 3 (1 to 5); b 5 (3 to 7).'
    """
    if not len(labels) == len(values) == len(lo) == len(hi) or not labels:
        raise BadParameter(
            "DP107",
            "a chart of groups needs a label, a value and two ends for each of at least one group.",
            why="there is nothing to draw, or it is not clear what belongs together.",
            fix="plot.groups(['a', 'b'], [3, 5], [1, 3], [5, 7])",
        )
    shown = [at for at in range(len(labels)) if values[at] is not None][:_MOST]
    ticks = [wrap_label(str(labels[at])) for at in shown]
    lines = sum(tick.count("\n") + 1 for tick in ticks)
    ax = axes_for(ax, (6.0, 1.2 + _ROW * max(3, lines)))
    barred = [at for at in shown if lo[at] is not None and hi[at] is not None]
    for at in barred:
        height = shown.index(at)
        ax.plot([lo[at], hi[at]], [height, height], color=GREY, linewidth=2.5, solid_capstyle="butt")
    ax.plot([values[at] for at in shown], range(len(shown)), "o", color=COLOURS[0], markersize=5)
    ax.set_yticks(range(len(shown)), ticks)
    ax.set_ylim(max(len(shown), 1) - 0.5, -0.5)
    _plain_numbers(ax)
    ax.set_xlabel(f"{wrap_label(name)}, with 95 % intervals of the noise" if barred else wrap_label(name))
    title = name if len(labels) == 1 else f"{name} by group"
    return finish(ax, title, _words(labels, values, lo, hi, shown))


def _plain_numbers(ax: Axes) -> None:
    """Ticks that are read as they stand: no 1.2e6 in a corner that all of them are to be added to."""
    formatter: Any = ax.xaxis.get_major_formatter()
    if hasattr(formatter, "set_useOffset"):
        formatter.set_useOffset(False)
        formatter.set_scientific(False)
        ax.locator_params(axis="x", nbins=6)


def _words(
    labels: Sequence[str], values: Sequence[Any], lo: Sequence[Any], hi: Sequence[Any], shown: list[int]
) -> str:
    numbers = "; ".join(
        f"{labels[at]} {_number(values[at], lo[at], hi[at])}" for at in shown[:_DESCRIBED_GROUPS]
    )
    more = f"; and {len(shown) - _DESCRIBED_GROUPS} more" if len(shown) > _DESCRIBED_GROUPS else ""
    left_out = f" The first {len(shown)} of {len(labels)} groups." if len(shown) < len(labels) else ""
    return f"{numbers}{more}.{left_out}" if shown else "No group has a number."


def _number(value: Any, low: Any, high: Any) -> str:
    number, least, most = number_cells(value, low, high)
    return number if low is None or high is None else f"{number} ({least} to {most})"
