# SPDX-License-Identifier: Apache-2.0
"""The privacy-loss distribution: its mean, its tail beyond an ε, and the Gaussian that it tends to.

**Guarantee.** The masses are those of `Guarantee.loss`, gathered into cells of equal width; a loss
that has a probability of its own, such as the greatest loss of Laplace noise, is a stem with that
probability and is in no cell. Beyond ε is what is greater than ε, not what is equal to it. Tails of
less than 1e-9 are beyond the edge of the chart. The Gaussian is an estimate and never enters a
bound.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.plot.canvas import GREY, Array, axes_for, finish, ink, upper_bound_text
from discreet.privacy.svg import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from discreet.privacy.guarantee import Guarantee
    from discreet.privacy.tradeoff import LossDistribution

_CELLS = 160
#: Outcomes up to this many are drawn one by one.
_FEW = 60
#: Densities below this share of the greatest, and tails below this mass, are not drawn.
_FLOOR = 1e-9
#: Losses that are apart by less than this part of them are the same, but for rounding.
_SAME = 1e-9
#: A mass so many times as great as all near it is one loss, and no density; near are so many on
#: either side, but for the nearest.
_ATOM, _BESIDE, _NEAR = 20.0, 3, 12


@check.arguments
def loss(guarantee: Guarantee, *, delta: float = 1e-6, ax: Axes | None = None) -> Figure:
    """Plot the distribution of the privacy loss on a logarithmic axis, with the tail beyond ε(δ)
    shaded.

    **Guarantee.** The masses are those of `Guarantee.loss`, which dominate the mechanism, and the
    stated ε is an upper bound. The dashed Gaussian is an estimate (Sommer, Meiser, Mohammadi 2019)
    and enters no bound.

    >>> from discreet import plot, privacy
    >>> plot.alt_text(plot.loss(privacy.laplace(scale=2), delta=1e-6)).startswith("The privacy loss of laplace")
    True
    """
    epsilon = guarantee.epsilon(check.inner_probability(delta=delta))
    distribution = guarantee.loss()
    ax = axes_for(ax, (5.6, 3.8))
    few = distribution.losses.size <= _FEW
    heights = _stems(ax, distribution, epsilon) if few else _cells(ax, distribution, epsilon)
    top, least = float(heights.max()), float(heights[heights > 0].min())
    ax.axvline(distribution.mean, color=COLOURS[1], linewidth=1.5, label=f"mean {distribution.mean:.3g}")
    if math.isfinite(epsilon):
        ax.axvline(
            epsilon,
            color=ink(ax),
            linewidth=1,
            linestyle=":",
            label=f"ε = {upper_bound_text(epsilon)} at δ = {delta:g}",
        )
    condition = ""
    if distribution.infinite > _FLOOR:
        condition = ", given that the loss is finite"
        ax.plot([], [], " ", label=f"infinite loss: probability {upper_bound_text(distribution.infinite)}")
    ax.set(yscale="log", xlabel="privacy loss", ylabel="probability" if few else "density")
    ax.set_ylim(max(_FLOOR * top, least / 5), 5 * top)
    words = (
        f"Mean {distribution.mean:.4g}, standard deviation {math.sqrt(distribution.variance):.4g}{condition}; ε is at most {upper_bound_text(epsilon)} at "
        f"δ = {delta:g}; outcomes of probability {upper_bound_text(abs(distribution.infinite))} count as revealing everything."
    )
    return finish(ax, f"The privacy loss of {guarantee!r}", words, legend="above")


def _beyond(losses: Array, epsilon: float) -> NDArray[np.bool_]:
    """Which losses are greater than the ε that is shown; one that is equal to it, but for rounding,
    is not.
    """
    printed = float(upper_bound_text(epsilon)) if math.isfinite(epsilon) else math.inf
    return np.asarray(losses > printed * (1 + _SAME))


def _atoms(distribution: LossDistribution) -> NDArray[np.bool_]:
    """Which losses have a probability of their own, in a distribution that is otherwise dense."""
    masses = distribution.masses
    padded = np.pad(masses, _NEAR)
    shifts = [step for step in range(-_NEAR, _NEAR + 1) if abs(step) >= _BESIDE]
    near = np.max([padded[_NEAR + step : _NEAR + step + masses.size] for step in shifts], axis=0)
    return np.asarray((masses > 1e-6) & (masses > _ATOM * near))


def _stems(ax: Axes, distribution: LossDistribution, epsilon: float, word: str = "loss") -> Array:
    for beyond, colour, name in ((False, COLOURS[0], word), (True, COLOURS[3], "beyond ε")):
        some = _beyond(distribution.losses, epsilon) == beyond
        if some.any():
            ax.vlines(
                distribution.losses[some],
                0,
                distribution.masses[some],
                color=colour,
                linewidth=3,
                alpha=0.5,
                label=name,
            )
            ax.plot(distribution.losses[some], distribution.masses[some], "o", color=colour, markersize=4)
    steps = np.diff(distribution.losses)
    if steps.size > 1 and np.allclose(steps, steps[0], rtol=1e-6):
        _bell(
            ax,
            distribution,
            np.linspace(distribution.losses[0], distribution.losses[-1], 200),
            float(steps[0]),
        )
    return np.asarray(distribution.masses)


def _cells(ax: Axes, distribution: LossDistribution, epsilon: float) -> Array:
    atoms = _atoms(distribution)
    if atoms.any():
        _stems(
            ax,
            replace(distribution, losses=distribution.losses[atoms], masses=distribution.masses[atoms]),
            epsilon,
            "one loss: probability",
        )
    edges, heights = histogram(distribution, ~atoms)
    ax.stairs(heights, edges, color=COLOURS[0], baseline=None, label="loss")
    beyond = _beyond(edges[1:], epsilon)
    if beyond.any():
        ax.stairs(
            np.where(beyond, heights, 0), edges, fill=True, color=COLOURS[3], alpha=0.6, label="beyond ε"
        )
    _bell(ax, distribution, (edges[1:] + edges[:-1]) / 2, 1.0)
    return heights


def _bell(ax: Axes, distribution: LossDistribution, across: Array, width: float) -> None:
    """The Gaussian with the mean and the spread of the distribution, as mass in a cell of that
    width.
    """
    spread = math.sqrt(distribution.variance)
    if spread > 0:
        bell = (
            width
            * np.exp(-(((across - distribution.mean) / spread) ** 2) / 2)
            / (spread * math.sqrt(2 * math.pi))
        )
        ax.plot(across, bell, color=GREY, linestyle="--", label="Gaussian it tends to")


def histogram(distribution: LossDistribution, among: NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
    """Edges and densities of equal cells over all losses (or those that are given) but tails of
    less than 1e-9.
    """
    below, above = np.cumsum(distribution.masses), np.cumsum(distribution.masses[::-1])[::-1]
    common = distribution.losses[(below >= _FLOOR) & (above >= _FLOOR)]
    rows = slice(None) if among is None else among
    masses, edges = np.histogram(
        distribution.losses[rows],
        bins=_CELLS,
        range=(common[0], common[-1]),
        weights=distribution.masses[rows],
    )
    return edges, np.asarray(masses / np.diff(edges))
