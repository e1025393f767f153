# SPDX-License-Identifier: Apache-2.0
"""The curves and tables of an additive model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from discreet.plot.canvas import GREY, axes_for, finish, wrap_label
from discreet.privacy.svg import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Panels beside each other, and panels in all; inches of one.
_COLUMNS, _MOST = 3, 12
_WIDTH, _HEIGHT = 3.2, 2.5
#: Standard deviations on each side of a curve.
_BAND = 2.6

Numbers = npt.NDArray[np.float64]


class Term(Protocol):
    """What a chart needs of a curve or a table."""

    @property
    def features(self) -> tuple[str | int, ...]:
        """Its one feature, or two."""

    @property
    def kind(self) -> str:
        """numbers, category, pair or line."""

    @property
    def values(self) -> Numbers:
        """One row for each bin, one column for each score."""

    @property
    def edges(self) -> Numbers | None:
        """The ends of bins of numbers."""

    @property
    def labels(self) -> tuple[object, ...]:
        """The values of a category."""

    @property
    def deviations(self) -> Numbers | None:
        """Standard deviations of the values."""

    @property
    def importance(self) -> float:
        """How much the term matters."""


def curves(terms: Sequence[Term], ax: Axes | None, *, score: str) -> Figure:
    """One panel for each term, the most important first, at most 12; or one term into `ax`."""
    ranked = sorted(terms, key=lambda term: -term.importance)[:_MOST]
    if len(ranked) == 1:
        return _panel(ranked[0], axes_for(ax, (1.5 * _WIDTH, 1.3 * _HEIGHT)), score)
    columns = min(_COLUMNS, len(ranked))
    rows = math.ceil(len(ranked) / columns)
    figure = axes_for(None, (_WIDTH * columns, _HEIGHT * rows)).figure
    figure.clear()
    for number, term in enumerate(ranked, 1):
        _panel(term, figure.add_subplot(rows, columns, number), score)
    return cast("Figure", figure)


def _panel(term: Term, ax: Axes, score: str) -> Figure:
    name = " × ".join(str(feature) for feature in term.features)
    if term.kind == "pair":
        return _table(term, ax, name)
    is_category = bool(term.labels)
    (ax.axvline if is_category else ax.axhline)(0, color=GREY, linewidth=0.8)
    many = term.values.shape[1] > 1
    for column, heights in enumerate(term.values.T):
        label = f"class {column + 1}" if many else ""
        band = None if term.deviations is None else _BAND * term.deviations[:, column]
        _curve(term, ax, heights, band, {"color": COLOURS[column % len(COLOURS)], "label": label})
    (ax.set_ylabel if is_category else ax.set_xlabel)(wrap_label(name))
    (ax.set_xlabel if is_category else ax.set_ylabel)(score)
    if is_category:
        ax.set_yticks(
            range(len(term.labels)), [wrap_label(str(text)) for text in term.labels], fontsize="small"
        )
        ax.invert_yaxis()
    heights = term.values[:, -1]
    words = f"from {heights.min():.3g} to {heights.max():.3g}"
    return finish(ax, f"what {name} adds to the {score}", f"{name}: {words}.")


def _curve(term: Term, ax: Axes, heights: Numbers, band: Numbers | None, look: dict[str, Any]) -> None:
    if term.kind == "line" and term.edges is not None:
        ax.plot(term.edges, heights, **look)
        return
    if term.edges is not None:
        steps = heights[:-1]
        ax.stairs(steps, term.edges, baseline=None, linewidth=1.6, **look)
        if band is not None:
            low, high = steps - band[:-1], steps + band[:-1]
            ax.stairs(high, term.edges, baseline=low, fill=True, color=look["color"], alpha=0.2)
        return
    positions = np.arange(len(term.labels))
    margins = None if band is None else band[: len(term.labels)]
    ax.errorbar(heights[: len(term.labels)], positions, xerr=margins, fmt="o", markersize=4, **look)


def _table(term: Term, ax: Axes, name: str) -> Figure:
    """A heat map by groups of the two features: numbers from low to high, values from frequent to
    rare.
    """
    heights = term.values[:, :, -1]
    size = float(np.abs(heights).max()) or 1.0
    image = ax.imshow(heights.T, origin="lower", cmap="RdBu_r", vmin=-size, vmax=size, aspect="auto")
    first, second = (wrap_label(str(feature)) for feature in term.features)
    ax.set_xlabel(f"groups of {first}")
    ax.set_ylabel(f"groups of {second}")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.figure.colorbar(image, ax=ax, shrink=0.8)
    figure = finish(
        ax, f"what {name} adds together", f"{name}: from {heights.min():.3g} to {heights.max():.3g}."
    )
    ax.grid(visible=False)
    return figure
