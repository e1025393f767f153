# SPDX-License-Identifier: Apache-2.0
"""The constants of a limit, fixed when it is made: the Rényi order α, the budget B of its track,
and ρ.

D_α ≤ B in both directions gives (ε, w) for every ε, with

    w = CKS(α, B, ε) = e^{(α-1)(B-ε)} · (1 - 1/α)^α / (α - 1)          (Canonne, Kamath, Steinke 2020, Proposition 12).

**Guarantee.** `budget` returns a B for which w is not above what was asked for, and `holds`
confirms it; both compute with fifty decimal digits and round against themselves by far more than
those digits lose, so the result is the same on every machine. Any order is valid; `best_order`
finds the one with the greatest ρ = B/α, where Gaussian noise gets most.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from discreet.ledger.costs import GRID, floor

_DIGITS = 50
#: B is lowered by this before it is rounded down: fifty digits lose less than a millionth of it at
#: any order here.
_MARGIN = Decimal("1e-28")
_SLACK = Decimal("1e-36")
#: Orders between 1 + this and 1 + the other are looked at.
_NEAREST, _FURTHEST = Decimal("1e-6"), Decimal("1e12")


@lru_cache(maxsize=256)
def best_order(epsilon: Fraction, delta: Fraction) -> float:
    """The order α, to four digits of α - 1, at which B/α is greatest for the target (ε, δ)."""
    with localcontext(prec=30):
        low, high = _NEAREST.ln(), _FURTHEST.ln()
        for _ in range(60):
            third = (high - low) / 3
            left, right = low + third, high - third
            if _slope(epsilon, delta, left.exp()) < _slope(epsilon, delta, right.exp()):
                low = left
            else:
                high = right
        return float(1 + Decimal(f"{((low + high) / 2).exp():.3e}"))


@lru_cache(maxsize=256)
def budget(epsilon: Fraction, delta: Fraction, order: float) -> Fraction:
    """The greatest B, rounded down, with CKS(order, B, ε) ≤ δ; it may be negative, if the order is
    a bad one.
    """
    with localcontext(prec=_DIGITS):
        exact = _budget(epsilon, delta, Decimal(order) - 1)
        return floor(Fraction(exact - _MARGIN), GRID)


def holds(epsilon: Fraction, delta: Fraction, order: float, divergence: Fraction) -> bool:
    """Whether D_order ≤ divergence is proved to give (ε, δ)."""
    with localcontext(prec=_DIGITS):
        away = Decimal(order) - 1
        log_w = away * (_decimal(divergence) - _decimal(epsilon)) - _log_peak(away)
        return log_w + _SLACK <= _decimal(delta).ln()


def least_epsilon(delta: Fraction, order: float, divergence: Fraction) -> Fraction:
    """The least ε, rounded up, for which D_order ≤ divergence gives (ε, δ)."""
    with localcontext(prec=_DIGITS):
        away = Decimal(order) - 1
        exact = _decimal(divergence) - (_log_peak(away) + _decimal(delta).ln()) / away
        return max(Fraction(0), -floor(-Fraction(exact + _MARGIN), GRID))


def _budget(epsilon: Fraction, delta: Fraction, away: Decimal) -> Decimal:
    return _decimal(epsilon) + (_decimal(delta).ln() + _log_peak(away)) / away


def _slope(epsilon: Fraction, delta: Fraction, away: Decimal) -> Decimal:
    """ρ = B/α."""
    return _budget(epsilon, delta, away) / (1 + away)


def _log_peak(away: Decimal) -> Decimal:
    """-log of (1 - 1/α)^α / (α - 1), α = 1 + away."""
    order = 1 + away
    return away.ln() - order * (away / order).ln()


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
