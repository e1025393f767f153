# SPDX-License-Identifier: Apache-2.0
"""The remaining budget after each spend, and when it will be used up at this pace.

The amounts must be of a quantity that adds up: pure ε, ρ, or one accounting track of a limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import accumulate
from typing import TYPE_CHECKING

from discreet import check
from discreet.errors import BadParameter
from discreet.plot.canvas import GREY, axes_for, finish
from discreet.privacy.svg import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@check.arguments
def burn_down(
    spends: Sequence[float],
    limit: float,
    *,
    when: Sequence[float] | None = None,
    currency: str = "ε",
    time: str = "releases",
    ax: Axes | None = None,
) -> Figure:
    """Plot the remaining budget after each spend; a dashed line continues the average pace until
    nothing remains.

    `when` are the times of the spends, from 0, in increasing order; without them the spends are
    numbered.

    **Guarantee.** Amounts are subtracted exactly, as the decimals that they print as. The dashed
    line is a forecast and guarantees nothing.

    >>> from discreet import plot
    >>> plot.alt_text(plot.burn_down([0.1, 0.2], limit=1.0))
    'ε remaining: 0.7 of 1 ε remains after 2 spends; at this pace nothing remains at 6.667 releases.'
    """
    limit = check.positive(limit=limit)
    amounts = [check.not_negative(spend=spend) for spend in spends]
    times = _times(when, len(amounts))
    # As they are written: ten times 0.1 is 1.
    exact = Decimal(repr(limit))
    left = [
        float(exact - spent) for spent in accumulate(map(Decimal, map(repr, amounts)), initial=Decimal(0))
    ]
    ax = axes_for(ax, (5.6, 3.4))
    last = times[-1] if times else 1.0
    ax.step(
        [0.0, *times, last], [*left, left[-1]], where="post", color=COLOURS[0], label=f"{currency} remaining"
    )
    ax.axhline(0, color=COLOURS[1], linewidth=1.2)
    end = _end(times, left)
    if end is not None:
        ax.plot([times[-1], end], [left[-1], 0], color=GREY, linestyle="--", label="at this pace")
    ax.set(xlabel=time, ylabel=f"{currency} remaining of {limit:g}")
    ax.locator_params(axis="x", integer=True)
    ax.set_xlim(0, 1.05 * (end or max([1.0, *times])))
    ax.set_ylim(min(0.0, left[-1]) - 0.02 * limit, 1.05 * limit)
    spends_made = "1 spend" if len(amounts) == 1 else f"{len(amounts)} spends"
    state = f"{max(left[-1], 0):.4g} of {limit:g} {currency} remains after {spends_made}"
    forecast = f"; at this pace nothing remains at {end:.4g} {time}" if end is not None else ""
    overspent = f"; overspent by {-left[-1]:.4g}" if left[-1] < 0 else ""
    return finish(ax, f"{currency} remaining", f"{state}{forecast}{overspent}.")


def _times(when: Sequence[float] | None, count: int) -> list[float]:
    if when is None:
        return [float(number) for number in range(1, count + 1)]
    times = [check.not_negative(when=moment) for moment in when]
    if len(times) != count or times != sorted(times):
        raise BadParameter(
            "DP107",
            "when must have one time for each spend, in increasing order.",
            why="the remaining budget at a time depends on what was spent before it.",
            fix="plot.burn_down([0.1, 0.2], limit=1, when=[0, 3])",
        )
    return times


def _end(times: list[float], left: list[float]) -> float | None:
    """When nothing remains, if spending goes on at the average pace so far."""
    spent = left[0] - left[-1]
    if not times or spent <= 0 or left[-1] <= 0 or times[-1] <= 0:
        return None
    return times[-1] * left[0] / spent
