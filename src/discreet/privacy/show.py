# SPDX-License-Identifier: Apache-2.0
"""Renders a guarantee for people: a text, and the same as HTML with its trade-off curve as inline
SVG.

**Guarantee.** Every ε, advantage and ρ is an upper bound and is rounded up; beside an ε stands the
δ that it holds at.
"""

from __future__ import annotations

import html as escape
import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from discreet.exact import upper_bound_text
from discreet.privacy.guarantee import Guarantee, alternatives
from discreet.privacy.svg import tradeoff_svg

#: The δ at which ε is shown.
_DELTAS = (0.0, 1e-9, 1e-6)
#: Of what people read, the numbers with more digits than these, and the direction in which each
#: weakens the claim.
_LONG = re.compile(r"\b(noise|scale|epsilon|delta|rho|mu|rate)=(\d+\.\d+(?:e-?\d+)?)")
_WEAKER = {"noise": ROUND_FLOOR, "scale": ROUND_FLOOR}


def rows(guarantee: Guarantee) -> list[tuple[str, str]]:
    """The views that describe a guarantee at a glance, as (name, value)."""
    epsilons = {delta: guarantee.epsilon(delta) for delta in _DELTAS}
    if all(map(math.isinf, epsilons.values())):
        epsilons |= [point(guarantee)]
    epsilon_rows = [
        (f"ε at δ = {_all_digits(delta)}", upper_bound_text(epsilon)) for delta, epsilon in epsilons.items()
    ]
    return [
        ("what was run", repr(guarantee)),
        ("protects", str(guarantee.unit) if guarantee.group_size == 1 else _several_units(guarantee)),
        *epsilon_rows,
        ("advantage of an attacker", upper_bound_text(guarantee.advantage())),
        (
            "misses at 1 % false alarms, at least",
            f"{math.floor(10_000 * guarantee.tradeoff(0.01)) / 100:.2f} %",
        ),
        ("zero-concentrated ρ", upper_bound_text(guarantee.concentrated())),
        *([("assumes", "; ".join(sorted(guarantee.assumes)))] if guarantee.assumes else []),
    ]


def point(guarantee: Guarantee, delta: float | None = None) -> tuple[float, float]:
    """One point (δ, ε) that stands for the curve: at the δ that was asked for, if any.

    Else at δ = 0 if ε is finite there, at the δ with which the mechanism may fail, or at 1e-6 or
    the double of that. Where ε is infinite at the δ that was asked for, because all of it is spent
    on failing, a greater δ is taken.
    """
    own = float(upper_bound_text(max(0.0, *(bag.failure for bag in alternatives(guarantee)))))
    usual = sorted({0.0, own, max(_DELTAS[-1], 2 * own), (1 + own) / 2})
    deltas = usual if delta is None else [delta, *(tried for tried in (2 * delta, *usual) if tried > delta)]
    points = ((tried, guarantee.epsilon(tried)) for tried in deltas if tried < 1)
    return next((each for each in points if math.isfinite(each[1])), (deltas[0], math.inf))


def least_epsilon(guarantee: Guarantee, delta: float | None = None) -> str:
    """ε in one line, rounded up, with the δ that it holds at; see `point`.

    >>> from discreet import privacy
    >>> least_epsilon(privacy.gaussian(4.0)), least_epsilon(privacy.gaussian(4.0), delta=1e-7)
    ('1.06071 at δ = 1e-06', '1.18175 at δ = 1e-07')
    """
    delta_shown, epsilon = point(guarantee, delta)
    return f"{upper_bound_text(epsilon)} at δ = {_all_digits(delta_shown)}"


def short(guarantee: Guarantee) -> str:
    """What was run, with at most six digits; less noise than there is, or more ε, where digits are
    left out.

    >>> from discreet import privacy
    >>> short(privacy.gaussian(noise=4.224678890657337) + privacy.pure(0.1))
    'gaussian(noise=4.22467) + pure(epsilon=0.1)'
    """

    def fewer(match: re.Match[str]) -> str:
        name, digits = match.groups()
        plain = Context(prec=6, rounding=_WEAKER.get(name, ROUND_CEILING)).create_decimal(Decimal(digits))
        return f"{name}={digits if plain == Decimal(digits) else f'{float(plain):g}'}"

    return _LONG.sub(fewer, repr(guarantee))


def text(guarantee: Guarantee) -> str:
    """The rows, aligned."""
    lines = rows(guarantee)
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in lines)


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


def _several_units(guarantee: Guarantee) -> str:
    change = str(guarantee.unit).removeprefix(f"one {guarantee.unit.protects} ")
    return f"{guarantee.group_size:,} {guarantee.unit.protects}s {change} together"


def _all_digits(delta: float) -> str:
    """A δ with all its digits: at a smaller one ε is greater."""
    return f"{delta:g}" if float(f"{delta:g}") == delta else repr(delta)
