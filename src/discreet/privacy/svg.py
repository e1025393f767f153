# SPDX-License-Identifier: Apache-2.0
"""Charts with nothing installed: the attacker's curve, and a hundred squares, as self-contained
SVG.

**Guarantee.** The points of a curve are those of `Guarantee.roc`, rounded to the hundredth of a
pixel; what the words beside it say is rounded to the safe side. Every chart has a `<title>` and a
`<desc>` for those who do not see it.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.privacy.guarantee import Guarantee

#: Dark, light and middle tones that differ for every kind of colour vision (Okabe, Ito 2008) ...
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
#: ... and dashes, for paper without colour.
DASHES: tuple[tuple[int, ...], ...] = ((), (7, 3), (2, 2), (9, 3, 2, 3), (12, 3), (4, 2, 1, 2))
_WIDTH = 2.0

#: The false-alarm rate at which a curve is put into words.
_ALARM = 0.01
_POINTS = 401


#: Space above and to the right of the square.
_EDGE = 10

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class _Frame:
    """The unit square on the paper, with room for labels on the left and below."""

    size: int

    @property
    def margin(self) -> int:
        return max(36, round(self.size * 0.13))

    @property
    def inner(self) -> int:
        return self.size - self.margin - _EDGE

    @property
    def font(self) -> int:
        return max(9, self.size // 30)

    def across(self, share: float) -> float:
        return round(self.margin + share * self.inner, 2)

    def height(self, share: float) -> float:
        return round(_EDGE + (1 - share) * self.inner, 2)

    def fits(self, name: str) -> bool:
        """Whether a name has room in the half of the square that is free."""
        return 0.52 * self.font * len(name) + 42 < 0.65 * self.inner


@check.arguments
def tradeoff_svg(guarantees: Mapping[str, Guarantee], size: int = 200, paper: str = "none") -> str:
    """Trade-off curves as SVG: the least miss rate of an attacker for each false-alarm rate.

    A name "" has no legend. Nothing has to be installed.

    **Guarantee.** The points are those of `Guarantee.roc`, so no curve lies above the true one, up
    to a hundredth of a pixel.

    >>> from discreet import privacy
    >>> tradeoff_svg({"": privacy.laplace(scale=1)}).startswith("<svg")
    True
    """
    return _square(guarantees, _Frame(size), paper, rising=False)


@check.arguments
def roc_svg(guarantees: Mapping[str, Guarantee], size: int = 200, paper: str = "none") -> str:
    """ROC curves as SVG: the best detection rate of an attacker for each false-alarm rate.

    **Guarantee.** As for `tradeoff_svg`; no curve lies below the true one.

    >>> from discreet import privacy
    >>> "detects at most" in roc_svg({"": privacy.laplace(scale=1)})
    True
    """
    return _square(guarantees, _Frame(size), paper, rising=True)


def describe(guarantees: Mapping[str, Guarantee], *, rising: bool) -> str:
    """What the curves show, in words; detections rounded up, misses down."""
    parts = []
    for name, guarantee in guarantees.items():
        missed = Fraction(guarantee.tradeoff(_ALARM))
        share = math.ceil((1 - missed) * 1000) if rising else math.floor(missed * 1000)
        verb = "detects at most" if rising else "misses at least"
        against = f"against {name} " if name else ""
        parts.append(f"{against}the best attacker {verb} {share / 10:g} % at 1 % false alarms")
    return "; ".join(parts) + "."


def title(*, rising: bool) -> str:
    """The title of the chart."""
    if rising:
        return "ROC curve: the attacker's best detection rate for each false-alarm rate"
    return "Trade-off curve: the attacker's least miss rate for each false-alarm rate"


def _square(guarantees: Mapping[str, Guarantee], frame: _Frame, paper: str, *, rising: bool) -> str:
    named, described = html.escape(title(rising=rising)), html.escape(describe(guarantees, rising=rising))
    names, width, left, right = list(guarantees), frame.size, frame.across(0), frame.across(1)
    inside = all(map(frame.fits, names))
    height = width if inside else round(width + 1.5 * frame.font * len(names))
    ground = f"<rect width='{width}' height='{height}' rx='4' fill='{paper}'/>" if paper != "none" else ""
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}' "
        f"role='img' aria-label='{named}: {described}' font-family='sans-serif' font-size='{frame.font}' "
        f"fill='currentColor'><title>{named}</title><desc>{described}</desc>{ground}"
        f"<rect x='{left:g}' y='{_EDGE}' width='{frame.inner}' height='{frame.inner}' fill='none' stroke='#999'/>"
        f"<line x1='{left:g}' y1='{frame.height(not rising):g}' x2='{right:g}' y2='{frame.height(rising):g}' "
        f"stroke='#999' stroke-dasharray='3 3'/>{_curves(guarantees, frame, rising=rising)}"
        f"{_legend(names, frame, rising=rising, inside=inside)}{_axes(frame, 'detections' if rising else 'misses')}</svg>"
    )


def _curves(guarantees: Mapping[str, Guarantee], frame: _Frame, *, rising: bool) -> str:
    lines = []
    for number, guarantee in enumerate(guarantees.values()):
        curve = guarantee.roc(_POINTS)
        heights = curve.detection if rising else 1 - curve.detection
        points = " ".join(
            f"{frame.across(alarm):g},{frame.height(height):g}"
            for alarm, height in _bends(curve.false_alarm, heights)
        )
        lines.append(f"<polyline points='{points}' fill='none' {_stroke(number)}/>")
    return "".join(lines)


def _bends(across: Array, heights: Array) -> list[tuple[float, float]]:
    """The points at which a line changes its direction, and its ends."""
    turns = np.abs(np.diff(np.diff(heights) / np.diff(across))) > 1e-9
    is_bend = np.concatenate([[True], turns, [True]])
    return list(zip(across[is_bend].tolist(), heights[is_bend].tolist(), strict=True))


def look(number: int) -> tuple[str, tuple[int, ...], float]:
    """Colour, dash and width of the n-th line, no two alike: of six lines either tells, of more
    both together do.

    >>> len({look(number) for number in range(200)}), len({look(number)[:2] for number in range(36)})
    (200, 36)
    """
    repeats, index = divmod(number, len(COLOURS))
    dash = DASHES[(index + repeats) % len(DASHES)]
    return COLOURS[index], dash, _WIDTH * (1 + repeats // len(DASHES) / 2)


def _stroke(number: int) -> str:
    colour, dash, width = look(number)
    pattern = f" stroke-dasharray='{' '.join(map(str, dash))}'" if dash else ""
    return f"stroke='{colour}' stroke-width='{width:g}'{pattern}"


def _legend(names: list[str], frame: _Frame, *, rising: bool, inside: bool) -> str:
    """In the half of the square where no curve can be, or below; beside a piece of each line."""
    if not any(names):
        return ""
    step, right = 1.5 * frame.font, frame.across(1) - 8
    first = frame.height(0) - 10 - step * (len(names) - 1) if rising else frame.height(1) + step
    first = first if inside else frame.size + 0.75 * frame.font
    rows = []
    for number, name in enumerate(names):
        y = first + step * number
        rows.append(
            f"<text x='{right - 34:g}' y='{y:g}' text-anchor='end'>{html.escape(name)}</text>"
            f"<line x1='{right - 28:g}' y1='{y - frame.font / 3:g}' x2='{right:g}' y2='{y - frame.font / 3:g}' "
            f"{_stroke(number)}/>"
        )
    return "".join(rows)


def _axes(frame: _Frame, upwards: str) -> str:
    middle, below = frame.across(0.5), frame.height(0) + frame.font + 4
    marks = "".join(
        f"<text x='{frame.across(at):g}' y='{below:g}' text-anchor='middle'>{at:g}</text>"
        f"<text x='{frame.across(0) - 6:g}' y='{frame.height(at) + frame.font / 3:g}' text-anchor='end'>{at:g}</text>"
        for at in (0, 0.5, 1)
    )
    return (
        f"{marks}<text x='{middle:g}' y='{below + frame.font + 3:g}' text-anchor='middle'>false alarms</text>"
        f"<text x='{frame.font}' y='{frame.height(0.5):g}' text-anchor='middle' "
        f"transform='rotate(-90 {frame.font} {frame.height(0.5):g})'>{upwards}</text>"
    )


def hundred_squares_svg(filled: int, words: str, side: int = 11) -> str:
    """A hundred squares of which some are filled; a line after the first fifty, which are the
    coin's.
    """
    size = 10 * side
    squares = "".join(
        f"<rect x='{side * (at % 10) + 1}' y='{side * (at // 10) + 1}' width='{side - 2}' height='{side - 2}' "
        f"fill='{COLOURS[1] if at < filled else 'none'}' stroke='{COLOURS[1]}'/>"
        for at in range(100)
    )
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {size} {size}' width='{size}' height='{size}' role='img' "
        f"aria-label='{html.escape(words)}'><title>{html.escape(words)}</title>{squares}"
        f"<line x1='0' y1='{size // 2}' x2='{size}' y2='{size // 2}' stroke='currentColor' stroke-width='2'/></svg>"
    )
