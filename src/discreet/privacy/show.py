# SPDX-License-Identifier: Apache-2.0
"""A guarantee for the eye: a text, and the same as HTML with its trade-off curve as inline SVG."""

from __future__ import annotations

import html as escape
import math

from discreet.privacy.guarantee import Guarantee

#: The δ at which ε is shown.
_DELTAS = (0.0, 1e-9, 1e-6)
_SIZE = 200


def rows(guarantee: Guarantee) -> list[tuple[str, str]]:
    """The views that describe a guarantee at a glance, as (name, value)."""
    epsilons = [(f"ε at δ = {delta:g}", _number(guarantee.epsilon(delta))) for delta in _DELTAS]
    return [
        ("what was run", repr(guarantee)),
        ("protects", str(guarantee.unit)),
        *epsilons,
        ("advantage of an attacker", _number(guarantee.advantage())),
        ("misses at 1 % false alarms, at least", f"{100 * guarantee.tradeoff(0.01):.2f} %"),
        ("zero-concentrated ρ", _number(guarantee.concentrated())),
        *([("assumes", "; ".join(sorted(guarantee.assumes)))] if guarantee.assumes else []),
    ]


def text(guarantee: Guarantee) -> str:
    """The rows, aligned."""
    shown = rows(guarantee)
    width = max(len(name) for name, _ in shown)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in shown)


def html(guarantee: Guarantee) -> str:
    """The rows as a table beside the trade-off curve."""
    cells = "".join(
        f"<tr><th style='text-align:left;font-weight:normal'>{escape.escape(name)}</th>"
        f"<td style='text-align:left'>{escape.escape(value)}</td></tr>"
        for name, value in rows(guarantee)
    )
    return (
        "<div style='display:flex;gap:1em;align-items:center;flex-wrap:wrap'>"
        f"{svg({'': guarantee})}<table>{cells}</table></div>"
    )


#: Dark, light and middle tones that differ for every kind of colour vision (Okabe, Ito 2008).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")


def svg(guarantees: dict[str, Guarantee], size: int = _SIZE) -> str:
    """Trade-off curves as a self-contained SVG: false alarms to the right, misses upwards, safety top right."""
    margin = round(size * 0.17)
    inner = size - 2 * margin
    lines, legend = [], []
    for number, (name, guarantee) in enumerate(guarantees.items()):
        curve = guarantee.roc(101)
        points = " ".join(
            f"{margin + alarm * inner:.2f},{margin + found * inner:.2f}"
            for alarm, found in zip(curve.false_alarm, curve.detection, strict=True)
        )
        colour = COLOURS[number % len(COLOURS)]
        lines.append(f"<polyline points='{points}' fill='none' stroke='{colour}' stroke-width='2'/>")
        if name:
            y = margin + max(14, size // 15) * (number + 1)
            legend.append(
                f"<text x='{size - margin}' y='{y}' text-anchor='end' fill='{colour}'>{escape.escape(name)}</text>"
            )
    label = "Trade-off curve: the attacker's least miss rate for each false-alarm rate. " + "; ".join(
        f"{name or 'this guarantee'} misses at least {100 * guarantee.tradeoff(0.01):.1f} % at 1 % false alarms"
        for name, guarantee in guarantees.items()
    )
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {size} {size}' width='{size}' height='{size}' role='img' "
        f"aria-label='{escape.escape(label, quote=True)}' font-family='sans-serif' font-size='{max(9, size // 22)}'>"
        f"<title>{escape.escape(label)}</title>"
        f"<rect x='{margin}' y='{margin}' width='{inner}' height='{inner}' fill='none' stroke='#999'/>"
        f"<line x1='{margin}' y1='{margin}' x2='{margin + inner}' y2='{margin + inner}' stroke='#999' stroke-dasharray='3 3'/>"
        f"{''.join(lines)}{''.join(legend)}{_axes(size, margin)}</svg>"
    )


def _axes(size: int, margin: int) -> str:
    low, high = margin, size - margin
    middle = size / 2
    return (
        f"<text x='{middle}' y='{size - 6}' text-anchor='middle'>false alarms</text>"
        f"<text x='12' y='{middle}' text-anchor='middle' transform='rotate(-90 12 {middle})'>misses</text>"
        f"<text x='{low}' y='{high + max(14, size // 18)}' text-anchor='middle'>0</text><text x='{high}' y='{high + max(14, size // 18)}' text-anchor='middle'>1</text>"
        f"<text x='{low - 8}' y='{high + 4}' text-anchor='end'>0</text><text x='{low - 8}' y='{low + 4}' text-anchor='end'>1</text>"
    )


def _number(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.6g}"
