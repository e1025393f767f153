# SPDX-License-Identifier: Apache-2.0
"""Released numbers with their intervals, group by group."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias, cast

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
#: Panels beside each other; more of them are too narrow.
_PANELS = 4
#: Groups that are put into words.
_DESCRIBED_GROUPS = 12


#: Values, and the two ends of their intervals.
Numbers: TypeAlias = tuple[Sequence[Any], Sequence[Any], Sequence[Any]]


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
    indices = [at for at in range(len(labels)) if values[at] is not None][:_MOST]
    ticks = [wrap_label(str(labels[at])) for at in indices]
    lines = sum(tick.count("\n") + 1 for tick in ticks)
    ax = axes_for(ax, (6.0, 1.2 + _ROW * max(3, lines)))
    barred = [at for at in indices if lo[at] is not None and hi[at] is not None]
    for at in barred:
        height = indices.index(at)
        ax.plot([lo[at], hi[at]], [height, height], color=GREY, linewidth=2.5, solid_capstyle="butt")
    ax.plot([values[at] for at in indices], range(len(indices)), "o", color=COLOURS[0], markersize=5)
    ax.set_yticks(range(len(indices)), ticks)
    ax.set_ylim(max(len(indices), 1) - 0.5, -0.5)
    _plain_numbers(ax)
    ax.set_xlabel(f"{wrap_label(name)}, with 95 % intervals of the noise" if barred else wrap_label(name))
    title = name if len(labels) == 1 else f"{name} by group"
    return finish(ax, title, _words(labels, values, lo, hi, indices))


def panels(labels: Sequence[str], columns: Mapping[str, Numbers], *, ax: Axes | None = None) -> Figure:
    """Several columns of the same groups beside each other; or one column of many groups, in panels
    of at most 60 groups that are read from left to right. At most 240 groups are drawn.
    """
    if ax is not None or (len(columns) == 1 and len(labels) <= _MOST):
        ((name, (values, lo, hi)), *_) = columns.items()
        return groups(labels, values, lo, hi, name=name, ax=ax)
    if len(columns) > 1:
        parts = [(name, labels, numbers) for name, numbers in columns.items()]
    else:
        ((name, numbers),) = columns.items()
        count = min(_PANELS, math.ceil(len(labels) / _MOST))
        size = min(_MOST, math.ceil(len(labels) / count))
        starts = range(0, min(len(labels), count * size), size)
        values, lo, hi = numbers
        parts = [
            (name, labels[at:to], (values[at:to], lo[at:to], hi[at:to]))
            for at, to in pairwise([*starts, starts.stop])
        ]
    lines = min(_MOST, max(len(part) for _, part, _ in parts))
    first = axes_for(None, (4.6 * len(parts), 1.2 + _ROW * max(3, lines)))
    figure: Any = first.figure
    figure.clear()
    single = len(columns) == 1
    beside = figure.subplots(1, len(parts), sharex=single, sharey=not single, squeeze=False)[0]
    for axes, (name, part, (values, lo, hi)) in zip(beside, parts, strict=True):
        groups(part, values, lo, hi, name=name, ax=axes)
        axes.set_xlabel(wrap_label(name))
    figure.supxlabel("with 95 % intervals of the noise", fontsize="small")
    return cast("Figure", figure)


def _plain_numbers(ax: Axes) -> None:
    """Ticks that are read as they stand: no 1.2e6 in a corner that all of them are to be added to."""
    formatter: Any = ax.xaxis.get_major_formatter()
    if hasattr(formatter, "set_useOffset"):
        formatter.set_useOffset(False)
        formatter.set_scientific(False)
        ax.locator_params(axis="x", nbins=6)


def _words(
    labels: Sequence[str], values: Sequence[Any], lo: Sequence[Any], hi: Sequence[Any], indices: list[int]
) -> str:
    numbers = "; ".join(
        f"{labels[at]} {_number(values[at], lo[at], hi[at])}" for at in indices[:_DESCRIBED_GROUPS]
    )
    more = f"; and {len(indices) - _DESCRIBED_GROUPS} more" if len(indices) > _DESCRIBED_GROUPS else ""
    left_out = f" The first {len(indices)} of {len(labels)} groups." if len(indices) < len(labels) else ""
    return f"{numbers}{more}.{left_out}" if indices else "No group has a number."


def _number(value: Any, low: Any, high: Any) -> str:
    number, lowest, highest = number_cells(value, low, high)
    return number if low is None or high is None else f"{number} ({lowest} to {highest})"
