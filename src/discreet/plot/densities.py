# SPDX-License-Identifier: Apache-2.0
"""The densities of Laplace and Gaussian noise with the same ε, around an answer and around its
neighbour's.

The chart shows continuous noise. Released numbers lie on a grid; see `discreet.mechanisms`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from discreet import check
from discreet.plot.canvas import Array, axes_for, finish, style
from discreet.privacy.calibrate import calibrate
from discreet.privacy.constructors import approximate, gaussian

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@check.arguments
def noise(
    epsilon: float = 1.0, *, delta: float = 1e-6, sensitivity: float = 1.0, ax: Axes | None = None
) -> Figure:
    """Plot the densities of Laplace noise with ε and Gaussian noise with (ε, δ) for one number.

    The strong curves stand around the exact answer 0, the faint ones around the answer of a
    neighbour, `sensitivity` away.

    **Guarantee.** The Laplace noise is ε-differentially private and the Gaussian noise (ε,
    δ)-differentially private for a number of this sensitivity. Why it holds: Dwork, McSherry,
    Nissim, Smith 2006; Balle, Wang 2018. The chart itself reads no data.

    >>> from discreet import plot
    >>> figure = plot.noise(epsilon=0.5, delta=1e-6)
    >>> plot.alt_text(figure).startswith("Noise with the same ε")
    True
    """
    epsilon, sensitivity = check.moderate(epsilon=epsilon), check.moderate(sensitivity=sensitivity)
    delta = check.inner_probability(delta=delta)
    scale = sensitivity / epsilon
    sigma = sensitivity * calibrate(gaussian, to=approximate(epsilon, delta))
    width = 3 * max(sigma, scale) + sensitivity
    across = np.union1d(np.linspace(-width, width, 601), [0.0, sensitivity])
    ax = axes_for(ax, (5.6, 3.6))
    densities: dict[str, Callable[[Array], Array]] = {
        f"Laplace, ε = {epsilon:g}": partial(_laplace, scale),
        f"Gaussian, ε = {epsilon:g} at δ = {delta:g}": partial(_gaussian, sigma),
    }
    for number, (name, density) in enumerate(densities.items()):
        ax.plot(across, density(across), label=name, **style(number))
        ax.plot(across, density(across - sensitivity), alpha=0.4, **style(number))
    ax.set(xlabel=f"released, if the exact answer is 0 (strong) or {sensitivity:g} (faint)", ylabel="density")
    ax.set_ylim(bottom=0)
    words = (
        f"For one answer that moves by {sensitivity:g}: Laplace noise of scale {scale:.4g} (standard deviation "
        f"{math.sqrt(2) * scale:.4g}) and Gaussian noise of standard deviation {sigma:.4g}."
    )
    return finish(ax, "Noise with the same ε", words, legend="above")


def _laplace(scale: float, x: Array) -> Array:
    return np.asarray(np.exp(-np.abs(x) / scale) / (2 * scale))


def _gaussian(sigma: float, x: Array) -> Array:
    return np.asarray(np.exp(-((x / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi)))
