# SPDX-License-Identifier: Apache-2.0
"""The margin of error of an answer against the ε that it costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from discreet import check
from discreet.plot.canvas import axes_for, finish, style, upper_bound_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Curves = Mapping[str, Callable[[float], float]]
_EPSILONS = tuple(np.geomspace(0.1, 10, 21).tolist())


@check.arguments
def error(
    curves: Curves | None = None,
    *,
    epsilons: Sequence[float] | None = None,
    confidence: float = 0.95,
    delta: float = 1e-6,
    sensitivity: float = 1.0,
    ax: Axes | None = None,
) -> Figure:
    """Plot the margin of error at a confidence against ε, both on logarithmic axes.

    `curves` are functions of ε by name, for example `lambda e: dp.Laplace(epsilon=e,
    sensitivity=1).error(0.95)`; without them, Laplace and Gaussian noise on one number of this
    sensitivity are drawn. `epsilons` are where: from 0.1 to 10 by default.

    **Guarantee.** The chart reads no data: an error is computed from the noise distribution. It is
    an upper bound if what `curves` return is one, as `mechanism.error` does.

    >>> from discreet import plot
    >>> plot.alt_text(plot.error(confidence=0.95))[:43]
    'The margin of error of an answer against th'
    """
    epsilons_shown = [
        check.positive(epsilon=epsilon) for epsilon in (_EPSILONS if epsilons is None else epsilons)
    ]
    confidence = check.inner_probability(confidence=confidence)
    errors = curves if curves is not None else _additive(confidence, delta, sensitivity)
    ax, words = axes_for(ax, (5.6, 3.8)), []
    formatter = import_module("matplotlib.ticker").NullFormatter()

    for number, (name, error_at) in enumerate(errors.items()):
        values = [check.positive(error=error_at(epsilon)) for epsilon in epsilons_shown]
        ax.plot(epsilons_shown, values, label=name, **style(number, values))
        nearest = min(range(len(epsilons_shown)), key=lambda at: abs(math.log(epsilons_shown[at])))
        words.append(f"{name} ±{upper_bound_text(values[nearest])} at ε = {epsilons_shown[nearest]:.3g}")
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="ε of one answer",
        ylabel=f"error, {100 * confidence:g} % of the time at most",
    )
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:g}")
        low, high = sorted(axis.get_view_interval())
        axis.set_minor_formatter("{x:g}" if high < 9 * low else formatter)
    return finish(ax, "The margin of error of an answer against the ε that it costs", "; ".join(words) + ".")


def _additive(confidence: float, delta: float, sensitivity: float) -> Curves:
    from discreet.mechanisms.additive import Gaussian, Laplace

    return {
        "Laplace, δ = 0": lambda epsilon: Laplace(epsilon=epsilon, sensitivity=sensitivity).error(confidence),
        f"Gaussian, δ = {delta:g}": lambda epsilon: Gaussian(
            epsilon=epsilon, delta=delta, sensitivity=sensitivity
        ).error(confidence),
    }
