# SPDX-License-Identifier: Apache-2.0
"""Charts of the pages, as SVG made from released numbers: bars or points with intervals, and the
spending of a budget.

**Guarantee.** A chart is post-processing: it is a function of an `Answer`, or of amounts in a
ledger. Every text in it is escaped, and it has no `style` attribute and no script, so a strict
content security policy shows it as it is.

Positions across are percentages, and text has a fixed size: a chart is as legible on a telephone as
on a wide screen.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from numbers import Real
from typing import Any

from discreet.mechanisms.digits import cell_text, number_cells
from discreet.privacy.svg import COLOURS
from discreet.tables.answer.answer import Answer

__all__ = ["Chart", "answer_charts", "burn_down"]

#: Groups and columns that a chart shows; the table beside it has all of them.
GROUPS, COLUMNS = 40, 4
#: Letters of a label.
_LETTERS = 48
#: Pixels from one bar to the next, and of a line of text.
_STEP, _TEXT = 40, 13
#: The width of the file, if nothing else gives one.
_WIDTH = 640
_HEIGHT = 180


@dataclass(frozen=True)
class Chart:
    """A chart: its title, what it shows in words, and the SVG."""

    title: str
    words: str
    svg: str


@dataclass(frozen=True)
class _Bar:
    """A group: its label, its number with the ends of its interval, and how they are written."""

    label: str
    value: float
    low: float
    high: float
    text: str


def answer_charts(answer: Answer) -> list[Chart]:
    """One chart for each noisy column with numbers, up to four.

    >>> from discreet.tables.answer.noisy import Noisy
    >>> count = Noisy((12, 30), (9, 27), (15, 33), nonnegative=True)
    >>> (chart,) = answer_charts(Answer.of(keys=["ward"], groups=[("A",), ("B",)], columns={"n": count}))
    >>> chart.words
    'n by ward: 12 to 30. Lines show 95 % noise intervals.'
    """
    charts = []
    for name, column in list(answer.columns.items())[:COLUMNS]:
        rows = zip(answer.groups, column.values, column.lo, column.hi, strict=True)
        bars = [bar for row in rows if (bar := _bar(*row)) is not None]
        if bars:
            by = f" by {', '.join(answer.keys)}" if answer.keys else ""
            charts.append(_chart(f"{column.text or name}{by}", bars, from_zero=column.nonnegative))
    return charts


def _bar(group: Sequence[Any], value: Any, low: Any, high: Any) -> _Bar | None:
    """A group of a chart; None where there is no number to draw."""
    if not _is_number(value):
        return None
    number, *ends = number_cells(value, low, high)
    start, end = (float(each) if _is_number(each) else float(value) for each in (low, high))
    interval = f" ({ends[0]} to {ends[1]})" if start < end else ""
    return _Bar(", ".join(map(cell_text, group)), float(value), start, end, f"{number}{interval}")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _chart(title: str, bars: Sequence[_Bar], *, from_zero: bool) -> Chart:
    shown = bars[:GROUPS]
    least, most = min(bar.low for bar in shown), max(bar.high for bar in shown)
    if from_zero:
        least, most = min(0.0, least), max(0.0, most)
    scale = _Scale.over(least, most)
    numbers = sorted(shown, key=lambda bar: bar.value)
    ends = [bar.text.partition(" (")[0] for bar in (numbers[0], numbers[-1])]
    between = ends[0] if len(shown) == 1 else f"{ends[0]} to {ends[1]}"
    cut = f" The first {len(shown)} of {len(bars)} groups." if len(shown) < len(bars) else ""
    words = f"{title}: {between}. Lines show 95 % noise intervals.{cut}"
    height = _STEP * len(shown) + 2 * _TEXT
    parts = [_axis(scale, height)]
    parts += [_group(bar, _STEP * at, scale, from_zero=from_zero) for at, bar in enumerate(shown)]
    return Chart(title, words, _svg(title, words, height, "".join(parts)))


@dataclass(frozen=True)
class _Scale:
    """Numbers from `least` to `most` as percentages of the width."""

    least: float
    most: float

    @classmethod
    def over(cls, least: float, most: float) -> _Scale:
        """The scale over an interval, with a margin beyond every end but 0; a single number is in
        the middle.
        """
        margin = (most / 2 - least / 2) * 0.04 or max(abs(least), 1.0) * 0.1
        low = least - margin if least or not most else least
        high = most + margin if most or not least else most
        return cls(max(low, -sys.float_info.max), min(high, sys.float_info.max))

    def across(self, number: float) -> float:
        """Where a number is, in percent."""
        # Halves, so that the difference of two huge numbers stays finite.
        share = (number / 2 - self.least / 2) / (self.most / 2 - self.least / 2)
        return round(100 * min(max(share, 0.0), 1.0), 2)

    def marks(self) -> list[float]:
        """A few round numbers inside.

        >>> _Scale(-3, 107).marks()
        [0.0, 50.0, 100.0]
        """
        wide = self.most - self.least
        if not math.isfinite(wide) or wide <= 0:
            return []
        power = 10.0 ** math.floor(math.log10(wide / 2))
        step = max(each * power for each in (1, 2, 5) if each * power <= wide / 2)
        first, last = math.ceil(self.least / step), math.floor(self.most / step)
        # Numbers that differ only beyond the digits of a float have no round numbers between them.
        return [number * step for number in range(first, last + 1)][:6] if last - first < 12 else []


def _axis(scale: _Scale, height: int) -> str:
    lines = []
    for mark in scale.marks():
        x = scale.across(mark)
        anchor = "start" if x < 6 else "end" if x > 94 else "middle"
        lines.append(
            f"<text x='{x:g}%' y='{height - 6}' text-anchor='{anchor}' class='soft'>{escape(f'{mark:.6g}')}</text>"
        )
    return "".join(lines)


def _group(bar: _Bar, top: int, scale: _Scale, *, from_zero: bool) -> str:
    """A label, and a bar or a point with its interval below it."""
    middle = top + _TEXT + 13
    x, low, high = scale.across(bar.value), scale.across(bar.low), scale.across(bar.high)
    label = bar.label if len(bar.label) <= _LETTERS else f"{bar.label[: _LETTERS - 1]}…"
    named = f"{label}: " if label else ""
    grid = "".join(
        f"<line x1='{scale.across(mark):g}%' x2='{scale.across(mark):g}%' y1='{middle - 9}' y2='{middle + 9}' "
        "stroke='#8a8a8a' stroke-opacity='.5'/>"
        for mark in scale.marks()
    )
    words = f"<text x='0' y='{top + _TEXT}'>{escape(named)}<tspan class='number'>{escape(bar.text)}</tspan></text>"
    if from_zero:
        zero = scale.across(0)
        left, width = min(zero, x), abs(x - zero)
        mark = f"<rect class='bar' x='{left:g}%' width='{round(width, 2):g}%' y='{middle - 7}' height='14' fill='{COLOURS[4]}'/>"
    else:
        mark = f"<circle class='point' cx='{x:g}%' cy='{middle}' r='5' fill='{COLOURS[0]}'/>"
    ends = "".join(
        f"<line x1='{at:g}%' x2='{at:g}%' y1='{middle - 5}' y2='{middle + 5}'/>" for at in (low, high)
    )
    interval = (
        f"<g class='interval' stroke='currentColor' stroke-width='2'><line x1='{low:g}%' x2='{high:g}%' y1='{middle}' "
        f"y2='{middle}'/>{ends}</g>"
    )
    return f"{words}{grid}{mark}{interval if low < high else ''}"


def burn_down(
    times: Sequence[float], spent: Sequence[float], *, now: float, labels: tuple[str, str]
) -> Chart:
    """What remains of a budget after each charge, as steps; `times` and `now` are seconds, `spent`
    the fractions spent so far.

    The dashed line continues the average pace until nothing remains. `labels` say what the left and
    the right end of the chart are.

    **Guarantee.** The steps are the stated fractions. The dashed line is a forecast and guarantees
    nothing.

    >>> burn_down([0, 10], [0.1, 0.4], now=10, labels=("first", "now")).words
    '60 % of the budget remains after 2 charges.'
    """
    last = spent[-1] if spent else 0.0
    charges = f"{len(spent)} charge{'' if len(spent) == 1 else 's'}"
    words = f"{math.floor(100 * (1 - last) + 1e-9):g} % of the budget remains after {charges}."
    start = min([*times, now])
    wide = max(now - start, 1e-9)
    points, height = [(0.0, 0.0)], 0.0
    for moment, fraction in zip(times, spent, strict=True):
        x = 70 * (moment - start) / wide
        points += [(x, height), (x, fraction)]
        height = fraction
    points.append((70.0, height))
    line = " ".join(f"{x:.2f},{100 * min(max(y, 0.0), 1.0):.2f}" for x, y in points)
    end = 70 / last if last > 0 else math.inf
    reach = min(end, 100.0)
    forecast = (
        f"<line class='forecast' x1='70' y1='{100 * last:.2f}' x2='{reach:.2f}' y2='{100 * min(1.0, last * reach / 70):.2f}' "
        f"stroke='currentColor' stroke-dasharray='5 4' stroke-width='2' vector-effect='non-scaling-stroke'/>"
        if 0 < last < 1
        else ""
    )
    left, right = map(escape, labels)
    inner = (
        f"<svg x='0' y='8' width='100%' height='{_HEIGHT - 36}' viewBox='0 0 100 100' preserveAspectRatio='none'>"
        f"<line x1='0' x2='100' y1='100' y2='100' stroke='currentColor' stroke-width='1' vector-effect='non-scaling-stroke'/>"
        f"<polyline class='spent' points='{line}' fill='none' stroke='{COLOURS[0]}' stroke-width='3' "
        f"vector-effect='non-scaling-stroke'/>{forecast}</svg>"
        f"<text x='0' y='{_HEIGHT - 10}' class='soft'>{left}</text>"
        f"<text x='70%' y='{_HEIGHT - 10}' text-anchor='middle' class='soft'>{right}</text>"
    )
    return Chart("Budget remaining", words, _svg("Budget remaining", words, _HEIGHT, inner))


def _svg(title: str, words: str, height: int, inside: str) -> str:
    name, described = escape(title), escape(words)
    return (
        f"<svg class='chart' xmlns='http://www.w3.org/2000/svg' width='{_WIDTH}' height='{height}' role='img' "
        f"aria-label='{name}: {described}' font-family='sans-serif' font-size='{_TEXT}' fill='currentColor'>"
        f"<title>{name}</title><desc>{described}</desc>{inside}</svg>"
    )
