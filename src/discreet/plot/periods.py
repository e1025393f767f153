# SPDX-License-Identifier: Apache-2.0
"""Released numbers over time, with the band of their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from discreet import check
from discreet.errors import BadParameter
from discreet.plot.canvas import axes_for, finish, wrap_label
from discreet.privacy.svg import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: So many lines can be told apart.
_MOST = len(COLOURS)
#: The last days, values, and both ends of their intervals.
Series: TypeAlias = tuple[Sequence[date], Sequence[Any], Sequence[Any], Sequence[Any]]


@check.arguments
def periods(series: Mapping[str, Series], *, name: str = "value", ax: Axes | None = None) -> Figure:
    """Plot one line for each series, with a band from `lo` to `hi`: `{label: (days, values, lo,
    hi)}`.

    **Guarantee.** The chart is post-processing of released numbers: it reads no data and costs no
    budget.

    >>> import datetime
    >>> from discreet import plot
    >>> days = [datetime.date(2026, 1, 11), datetime.date(2026, 1, 18)]
    >>> plot.alt_text(plot.periods({"visits": (days, [3, 5], [1, 3], [5, 7])}, name="visits"))
    'visits by period: visits 5 (3 to 7) on 2026-01-18.'
    """
    if not series or any(
        not days or len({len(part) for part in one}) > 1 for one in series.values() for days in one[:1]
    ):
        raise BadParameter(
            "DP107",
            "a chart of periods needs a day, a value and two ends for each of at least one period.",
            why="there is nothing to draw, or it is not clear what belongs together.",
            fix="plot.periods({'visits': ([date(2026, 1, 11)], [3], [1], [5])})",
        )
    ax = axes_for(ax, (7.0, 3.6))
    words = []
    for (label, (days, values, lo, hi)), colour in zip(list(series.items())[:_MOST], COLOURS, strict=False):
        at = np.array(days, "datetime64[D]")
        ax.plot(at, list(values), color=colour, linewidth=1.8, label=wrap_label(label))
        ax.fill_between(at, list(lo), list(hi), color=colour, alpha=0.2, linewidth=0)
        words.append(f"{label} {_number(values[-1])} ({_number(lo[-1])} to {_number(hi[-1])}) on {days[-1]}")
    if len(series) > 1:
        ax.legend(frameon=False)
    ax.set_ylabel(wrap_label(name))
    ax.figure.autofmt_xdate()
    return finish(ax, f"{name} by period", f"{'; '.join(words)}.")


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
