# SPDX-License-Identifier: Apache-2.0
"""A guarantee for the eye: a text, and the same as HTML with its trade-off curve as inline SVG."""

from __future__ import annotations

import html as escape
import math
from decimal import ROUND_CEILING, Context, Decimal

from discreet.privacy.guarantee import Guarantee
from discreet.privacy.picture import tradeoff_svg

#: The δ at which ε is shown.
_DELTAS = (0.0, 1e-9, 1e-6)


def rows(guarantee: Guarantee) -> list[tuple[str, str]]:
    """The views that describe a guarantee at a glance, as (name, value)."""
    epsilons = [(f"ε at δ = {delta:g}", _number(guarantee.epsilon(delta))) for delta in _DELTAS]
    return [
        ("what was run", repr(guarantee)),
        ("protects", str(guarantee.unit) if guarantee.together == 1 else _several(guarantee)),
        *epsilons,
        ("advantage of an attacker", _number(guarantee.advantage())),
        (
            "misses at 1 % false alarms, at least",
            f"{math.floor(10_000 * guarantee.tradeoff(0.01)) / 100:.2f} %",
        ),
        ("zero-concentrated ρ", _number(guarantee.concentrated())),
        *([("assumes", "; ".join(sorted(guarantee.assumes)))] if guarantee.assumes else []),
    ]


def least_epsilon(guarantee: Guarantee) -> str:
    """ε in one line, rounded up: at δ = 0 if it is finite there, else at δ = 1e-6."""
    shown = {delta: guarantee.epsilon(delta) for delta in (0.0, 1e-6)}
    delta = 0.0 if math.isfinite(shown[0.0]) else 1e-6
    return f"{_rounded_up(shown[delta])} at δ = {delta:g}"


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
        f"{tradeoff_svg({'': guarantee})}<table>{cells}</table></div>"
    )


def _several(guarantee: Guarantee) -> str:
    change = "added or removed together" if guarantee.unit.relation == "add-remove" else "replaced together"
    return f"{guarantee.together:,} {guarantee.unit.protects}s {change}"


def _rounded_up(value: float) -> str:
    plain = Decimal(f"{value:.10e}")  # so that the nudge of a float does not become a digit
    return _number(float(Context(prec=6, rounding=ROUND_CEILING).create_decimal(plain)))


def _number(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.6g}"
