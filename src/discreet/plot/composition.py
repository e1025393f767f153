# SPDX-License-Identifier: Apache-2.0
"""A comparison of composition theorems: the ε that each proves as the number of runs grows.

**Guarantee.** Every point is `Guarantee.epsilon` by that route, so it is an upper bound; the lowest
line is the tightest proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet import check
from discreet.errors import UnsupportedGuarantee
from discreet.plot.canvas import axes_for, finish, style, upper_bound_text
from discreet.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The routes that are drawn, and their labels.
_ROUTES = {
    "basic": "basic",
    "advanced": "advanced",
    "zcdp": "zCDP",
    "renyi improved": "Rényi",
    "optimal": "optimal (knows only ε, δ)",
}


@check.arguments
def race(
    mechanism: Guarantee,
    *,
    delta: float = 1e-6,
    runs: Sequence[int] | None = None,
    most: int = 100,
    ax: Axes | None = None,
) -> Figure:
    """Plot ε at δ of k runs of a mechanism by every composition theorem that applies, for k up to
    `most` or for `runs`.

    **Guarantee.** Every point is an upper bound on ε, proved by the theorem that its line is named
    after; the lowest line is the tightest proof. The theorems are those of `Guarantee.compare`.

    >>> from discreet import plot, privacy
    >>> figure = plot.race(privacy.pure(0.1), delta=1e-6, most=50)
    >>> plot.alt_text(figure)[:47]
    'What composition theorems prove as runs are add'
    """
    at = check.inner_probability(delta=delta)
    counts = [check.whole(runs=k) for k in runs] if runs is not None else _run_counts(check.whole(most=most))
    ax, ends = axes_for(ax, (5.6, 4.0)), {}
    for number, (route, name) in enumerate([*_ROUTES.items(), (None, "exact")]):
        values = [_epsilon(k * mechanism, at, route) for k in counts]
        if not any(map(math.isfinite, values)):
            continue
        width = 1.5 if route else 2.5
        ax.plot(counts, values, label=name, **style(number, values) | {"linewidth": width})
        ends[name] = values[-1]
    ax.set(xlabel="runs", ylabel=f"ε at δ = {at:g}")
    ax.locator_params(axis="x", integer=True)
    ax.set_ylim(0, _height(list(ends.values())))
    ends_text = ", ".join(f"{name} {upper_bound_text(value)}" for name, value in ends.items())
    words = f"ε of {mechanism!r}, run {counts[-1]} times, at δ = {at:g}: {ends_text}."
    return finish(ax, "What composition theorems prove as runs are added", words)


def _epsilon(guarantee: Guarantee, delta: float, route: str | None) -> float:
    try:
        value = guarantee.epsilon(delta, route=route)
    except UnsupportedGuarantee:
        return math.nan
    return value if math.isfinite(value) else math.nan


def _height(ends: list[float]) -> float:
    """A height at which all lines stay visible, except one that is far above the others."""
    *others, highest = sorted(ends)
    return 1.05 * min(highest, 2.5 * others[-1]) if others else 1.05 * highest


def _run_counts(most: int) -> list[int]:
    """Some twenty counts from one to the most, closer together where the lines bend."""
    return sorted({max(1, round(most * share**2)) for share in np.linspace(0.05, 1, 20).tolist()} | {1})
