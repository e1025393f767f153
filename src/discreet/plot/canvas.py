# SPDX-License-Identifier: Apache-2.0
"""What all pictures share: axes, colours with dashes, names, and words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, Context, Decimal
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadParameter, MissingExtra
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.picture import COLOURS, DASHES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREY = "#767676"
Array = NDArray[np.floating[Any]]
_ABOVE: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 2, "fontsize": "small"}
Several = Guarantee | Mapping[str, Guarantee]


class Style(TypedDict):
    """How a line looks."""

    color: str
    linestyle: Any


def axes_for(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The axes that were given, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        import_module("matplotlib.figure")
    except ImportError:
        why = "the small core draws trade-off and ROC curves as .svg, and leaves the rest to matplotlib."
        instead = "plot.roc_svg(…), plot.tradeoff_svg(…)"
        raise MissingExtra.of("matplotlib", "this picture", why=why, instead=instead) from None
    from discreet.plot.picture import Picture

    return Picture(figsize=size, layout="constrained").add_subplot()


def style(number: int) -> Style:
    """The look of the n-th line: a colour and a dash, so that either alone is enough to tell it."""
    dash = DASHES[number % len(DASHES)]
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": (0, dash) if dash else "-"}


def rounded_up(value: float) -> str:
    """An upper bound to four digits.

    >>> rounded_up(2.12501), rounded_up(0.5), rounded_up(math.inf)
    ('2.126', '0.5', '∞')
    """
    if math.isinf(value):
        return "∞"
    return f"{float(Context(prec=4, rounding=ROUND_CEILING).create_decimal(Decimal(value))):g}"


def named(guarantees: Several) -> dict[str, Guarantee]:
    """Guarantees by name; a single one has the name ""."""
    found = {"": guarantees} if isinstance(guarantees, Guarantee) else guarantees
    if not isinstance(found, Mapping) or not all(isinstance(one, Guarantee) for one in found.values()):
        raise BadParameter(
            "DP104",
            "a picture needs a guarantee, or several by name.",
            why="every line that is drawn is a view of a guarantee.",
            fix="plot.roc({'coin': privacy.randomized_response(1.0)})",
        )
    if not found:
        raise BadParameter(
            "DP107",
            "there is nothing to draw.",
            why="an empty picture says nothing about anybody.",
            fix="plot.roc(privacy.laplace(scale=1))",
        )
    return dict(found)


def finish(ax: Axes, title: str, words: str, *, legend: str = "best") -> Figure:
    """Give the axes their words and quiet looks; the figure. `legend` is a corner, or "above" the axes."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(visible=True, color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    if ax.get_legend_handles_labels()[1]:
        place = _ABOVE if legend == "above" else {"loc": legend}
        ax.legend(frameon=False, **place)
    drawn = cast(Any, ax)
    drawn.discreet_alt = (title, words)
    figure = drawn.figure
    while figure is not figure.figure:  # a figure inside a figure
        figure = figure.figure
    return cast("Figure", figure)


def words_of(figure: Figure) -> tuple[str, str]:
    """The title and the description of all that was drawn into a figure."""
    words = [both for ax in figure.get_axes() if (both := getattr(ax, "discreet_alt", None))]
    return "; ".join(title for title, _ in words), " ".join(text for _, text in words)
