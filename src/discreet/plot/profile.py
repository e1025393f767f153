# SPDX-License-Identifier: Apache-2.0
"""ε for every δ: the curve of which (ε, δ) is one point.

**Guarantee.** Every point is `Guarantee.epsilon` there, so it is never below the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet import check
from discreet.plot.canvas import Array, Several, axes_for, finish, named, rounded_up, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DELTAS = tuple(10.0**power for power in np.linspace(-12, -1, 23).tolist())
#: The δ at which the curve is put into words, or that which is drawn nearest to it.
_SAID = 1e-6


@check.arguments
def epsilon_delta(
    guarantees: Several,
    *,
    deltas: Sequence[float] = _DELTAS,
    certified: bool = False,
    ax: Axes | None = None,
) -> Figure:
    """ε against δ; `certified` shades the gap down to the certified lower bound. Where ε is infinite there is no line."""
    shown = named(guarantees)
    places = [check.inner_probability(delta=delta) for delta in deltas]
    ax, words = axes_for(ax, (5.6, 3.8)), []
    for number, (name, guarantee) in enumerate(shown.items()):
        upper = np.array([guarantee.epsilon(delta) for delta in places])
        upper[np.isinf(upper)] = np.nan
        ax.plot(places, upper, label=name or None, **style(number, upper))
        if certified:
            lower = [guarantee.bound(delta=delta).lower for delta in places]
            ax.fill_between(places, lower, upper, color=style(number)["color"], alpha=0.25, linewidth=0)
        of = f" of {name}" if name else ""
        words.append(f"ε{of} is {_said(places, upper)}")
    ax.set(xscale="log", xlabel="δ", ylabel="ε")
    ax.set_ylim(bottom=0)
    return finish(ax, "The least proved ε for each δ", "; ".join(words) + ".")


def _said(places: Sequence[float], upper: Array) -> str:
    """ε where it is drawn nearest to the usual δ; and from where on, if it is infinite there."""
    at = min(range(len(places)), key=lambda place: abs(np.log10(places[place] / _SAID)))
    if np.isfinite(upper[at]):
        return f"at most {rounded_up(upper[at])} at δ = {places[at]:g}"
    finite = [place for place in range(len(places)) if np.isfinite(upper[place])]
    if not finite:
        return "infinite at every δ that is drawn"
    first = min(finite, key=lambda place: places[place])
    return f"infinite at δ = {places[at]:g}, and at most {rounded_up(upper[first])} at δ = {places[first]:g}"
