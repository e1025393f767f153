# SPDX-License-Identifier: Apache-2.0
"""What all charts share: axes, colours with dashes, names, and descriptions."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from discreet import exact
from discreet.errors import BadParameter, MissingExtra
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.svg import look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREY = "#767676"
Array = NDArray[np.floating[Any]]
_ABOVE: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 2, "fontsize": "small"}
Several = Guarantee | Mapping[str, Guarantee]


#: Letters of a line of a label: a longer one leaves no room for the curves.
_NARROW = 34


class Style(TypedDict, total=False):
    """How a line looks."""

    color: str
    linestyle: Any
    linewidth: float
    marker: str


def axes_for(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The axes that were given, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        import_module("matplotlib.figure")
    except ImportError:
        why = "the small core draws trade-off and ROC curves as .svg, and leaves the rest to matplotlib."
        instead = "plot.roc_svg(…), plot.tradeoff_svg(…)"
        raise MissingExtra.of("matplotlib", "this chart", why=why, instead=instead) from None
    from discreet.plot.figure import NotebookFigure

    return NotebookFigure(figsize=size, layout="constrained").add_subplot()


def style(number: int, heights: Sequence[float] | Array | None = None) -> Style:
    """The look of the n-th line, which no other has; a line whose `heights` are only one point is a
    dot.
    """
    colour, dash, width = look(number)
    options: Style = {"color": colour, "linestyle": (0, dash) if dash else "-", "linewidth": 0.75 * width}
    if heights is not None and sum(map(math.isfinite, heights)) == 1:
        options["marker"] = "o"
    return options


def wrap_label(label: str) -> str:
    """A label in lines that leave room for the curves."""
    return textwrap.fill(label, _NARROW, max_lines=3, placeholder=" …") if len(label) > _NARROW else label


def ink(ax: Axes) -> str:
    """The colour of text on these axes, which may have a dark background."""
    return cast(str, ax.xaxis.label.get_color())


def upper_bound_text(value: float) -> str:
    """An upper bound to four digits.

    >>> upper_bound_text(2.12501), upper_bound_text(0.5), upper_bound_text(math.inf)
    ('2.126', '0.5', '∞')
    """
    return exact.upper_bound_text(value, digits=4)


def guarantees_by_name(guarantees: Several) -> dict[str, Guarantee]:
    """Guarantees by name; a single one has the name ""."""
    by_name = {"": guarantees} if isinstance(guarantees, Guarantee) else guarantees
    if not isinstance(by_name, Mapping) or not all(isinstance(each, Guarantee) for each in by_name.values()):
        raise BadParameter(
            "DP104",
            "a chart needs a guarantee, or several by name.",
            why="every line that is drawn is a view of a guarantee.",
            fix="plot.roc({'coin': privacy.randomized_response(1.0)})",
        )
    if not by_name:
        raise BadParameter(
            "DP107",
            "there is nothing to draw.",
            why="an empty chart shows no guarantee.",
            fix="plot.roc(privacy.laplace(scale=1))",
        )
    return dict(by_name)


def finish(ax: Axes, title: str, words: str, *, legend: str = "best") -> Figure:
    """Give the axes their words and quiet looks; the figure. `legend` is a corner, or "above" the
    axes.
    """
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(visible=True, color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    handles, labels = ax.get_legend_handles_labels()
    if labels:
        position = _ABOVE if legend == "above" else {"loc": legend}
        ax.legend(handles, [wrap_label(label) for label in labels], frameon=False, **position)
    canvas = cast(Any, ax)
    canvas.discreet_alt = (title, words)
    figure = canvas.figure
    # A figure inside a figure.
    while figure is not figure.figure:
        figure = figure.figure
    return cast("Figure", figure)


def words_of(figure: Figure) -> tuple[str, str]:
    """The title and the description of all that was drawn into a figure."""
    words = [both for ax in figure.get_axes() if (both := getattr(ax, "discreet_alt", None))]
    return "; ".join(title for title, _ in words), " ".join(text for _, text in words)
