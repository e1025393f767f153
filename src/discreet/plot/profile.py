# SPDX-License-Identifier: Apache-2.0
"""ε for every δ: the curve of which (ε, δ) is one point.

**Guarantee.** Every point is `Guarantee.epsilon` there, so it is never below the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet import check
from discreet.plot.canvas import Array, Several, axes_for, finish, guarantees_by_name, style, upper_bound_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DELTAS = tuple(10.0**power for power in np.linspace(-12, -1, 23).tolist())
#: The δ at which the curve is put into words, or that which is drawn nearest to it.
_DESCRIBED_DELTA = 1e-6


@check.arguments
def epsilon_delta(
    guarantees: Several,
    *,
    deltas: Sequence[float] = _DELTAS,
    certified: bool = False,
    ax: Axes | None = None,
) -> Figure:
    """Plot ε against δ; `certified` shades the gap down to the certified lower bound. Infinite
    values are not drawn.

    **Guarantee.** Every point is `Guarantee.epsilon(delta)`, so the curve is never below the true
    one. What would break it: reading ε between two points, where the line is only interpolated.

    >>> from discreet import plot, privacy
    >>> plot.alt_text(plot.epsilon_delta(privacy.gaussian(noise=4.0)))
    'The least proved ε for each δ: ε is at most 1.061 at δ = 1e-06.'
    """
    named = guarantees_by_name(guarantees)
    deltas_shown = [check.inner_probability(delta=delta) for delta in deltas]
    ax, words = axes_for(ax, (5.6, 3.8)), []
    for number, (name, guarantee) in enumerate(named.items()):
        upper = np.array([guarantee.epsilon(delta) for delta in deltas_shown])
        upper[np.isinf(upper)] = np.nan
        ax.plot(deltas_shown, upper, label=name or None, **style(number, upper))
        if certified:
            lower = [guarantee.bound(delta=delta).lower for delta in deltas_shown]
            ax.fill_between(deltas_shown, lower, upper, color=style(number)["color"], alpha=0.25, linewidth=0)
        whose = f" of {name}" if name else ""
        words.append(f"ε{whose} is {_describe_point(deltas_shown, upper)}")
    ax.set(xscale="log", xlabel="δ", ylabel="ε")
    ax.set_ylim(bottom=0)
    return finish(ax, "The least proved ε for each δ", "; ".join(words) + ".")


def _describe_point(deltas: Sequence[float], upper: Array) -> str:
    """ε where it is drawn nearest to the usual δ; and from where on, if it is infinite there."""
    at = min(range(len(deltas)), key=lambda index: abs(np.log10(deltas[index] / _DESCRIBED_DELTA)))
    if np.isfinite(upper[at]):
        return f"at most {upper_bound_text(upper[at])} at δ = {deltas[at]:g}"
    finite = [index for index in range(len(deltas)) if np.isfinite(upper[index])]
    if not finite:
        return "infinite at every δ that is drawn"
    first = min(finite, key=lambda index: deltas[index])
    return f"infinite at δ = {deltas[at]:g}, and at most {upper_bound_text(upper[first])} at δ = {deltas[first]:g}"
