# SPDX-License-Identifier: Apache-2.0
"""A figure that renders itself in a notebook, with its description, whatever the notebook's
plotting mode is.

The only file that needs matplotlib to be loaded; `discreet.plot.canvas` loads it.
"""

from __future__ import annotations

import io
import re
from html import escape
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from discreet.json_types import JsonObject
from discreet.plot.canvas import words_of

#: Nothing in the file depends on when or where it was written.
_FIXED: dict[Any, Any] = {"svg.hashsalt": "discreet", "svg.fonttype": "path"}


class NotebookFigure(Figure):
    """A figure that was not made by pyplot, so that nothing global remembers it."""

    def _repr_svg_(self) -> str:
        return svg_of(self)


def svg_of(figure: Figure) -> str:
    """The figure as SVG, with a title and a description that screen readers find."""
    title, text = words_of(figure)
    file = io.StringIO()
    with mpl.rc_context(_FIXED):
        figure.savefig(file, format="svg", metadata={"Date": None, "Title": title})
    label = f' role="img" aria-label="{escape(f"{title}: {text}")}"'
    svg = re.sub(r"<svg\b", lambda match: match.group() + label, file.getvalue(), count=1)
    return svg.replace("</title>", f"</title><desc>{escape(text)}</desc>", 1)


def metadata(figure: Figure, ending: str) -> JsonObject:
    """The same words where a format other than SVG keeps them."""
    title, text = words_of(figure)
    return {"Title": title, "Subject" if ending == ".pdf" else "Description": text}
