# SPDX-License-Identifier: Apache-2.0
"""An event that witnesses a bound: how often it was seen on each input, and what these counts
prove.

**Guarantee.** What is printed of an event reproduces every bound that rests on it. Each rate has
its count, the number of runs, the theorem and the error probability; a reader with a table of
Clopper and Pearson gets a bound at least as good as the printed one. The input on which the event
is likelier comes first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

import numpy as np
from scipy.special import ndtri

from discreet.audit.bounds import Corners

__all__ = ["CLOPPER_PEARSON", "DKW", "Event", "Rate"]

CLOPPER_PEARSON, DKW = "Clopper-Pearson", "Dvoretzky-Kiefer-Wolfowitz"
#: Digits of a printed rate, which is rounded against the finding.
_DIGITS = 7


@dataclass(frozen=True)
class Rate:
    """A bound on how likely an event is on one input.

    **Guarantee.** The bound is false with probability `error` at most, if the runs are independent;
    `method` names the theorem.

    >>> Rate(hits=90, runs=100, bound=0.8, method="Clopper-Pearson", error=1e-3).complement.hits
    10
    """

    hits: int
    runs: int
    bound: float
    method: str
    error: float

    @property
    def complement(self) -> Rate:
        """The same of everything else: a bound from below becomes one from above, and the other way
        round.
        """
        return Rate(self.runs - self.hits, self.runs, 1 - self.bound, self.method, self.error)

    def to_dict(self) -> dict[str, object]:
        """As plain JSON types."""
        return dict(vars(self))


@dataclass(frozen=True)
class Event:
    """Something that an attacker can look for in an output, and how often fresh runs on each input
    showed it.

    The event is likelier on `likelier_on`, which is "x" or "neighbour": `often` bounds its rate
    there from below, `seldom` bounds its rate on the other input from above.

    **Guarantee.** Whoever computes ε from these two rates gets the printed bound, and it fails with
    probability `often.error + seldom.error` at most.
    """

    words: str
    likelier_on: str
    often: Rate
    seldom: Rate

    @property
    def complement(self) -> Event:
        """That it does not happen, which is likelier on the other input."""
        other = "neighbour" if self.likelier_on == "x" else "x"
        return Event(f"not ({self.words})", other, self.seldom.complement, self.often.complement)

    @property
    def corner(self) -> Corners:
        """As a test of x against its neighbour."""
        detection, false_alarm = self.often.bound, self.seldom.bound
        if self.likelier_on == "neighbour":
            detection, false_alarm = 1 - false_alarm, 1 - detection
        return Corners(np.array([false_alarm]), np.array([detection]))

    def epsilon_at_least(self, delta: float = 0.0) -> float:
        """What these two rates prove: P(E) <= e^ε Q(E) + δ needs at least this ε."""
        low, high = self.printed
        return max(0.0, math.log(max(low - delta, 0.0) / high)) if low > delta and high > 0 else 0.0

    @property
    def mu_at_least(self) -> float:
        """What these two rates prove of Gaussian privacy."""
        low, high = self.printed
        return max(0.0, float(ndtri(low) - ndtri(high))) if low > 0 and high < 1 else 0.0

    @property
    def printed(self) -> tuple[float, float]:
        """Both rates as they are printed: the first rounded down, the second up."""
        low, high = _round(self.often.bound, ROUND_FLOOR), _round(self.seldom.bound, ROUND_CEILING)
        return float(low), min(1.0, float(high))

    def __str__(self) -> str:
        here, there = ("x", "x'") if self.likelier_on == "x" else ("x'", "x")
        low, high = (f"{rate:.{_DIGITS}g}" for rate in self.printed)
        proofs = dict.fromkeys((_proof(self.often), _proof(self.seldom)))
        return (
            f"{self.words}: {self.often.hits} of {self.often.runs} runs on {here}, "
            f"{self.seldom.hits} of {self.seldom.runs} on {there}; probability at least {low} on {here}, "
            f"at most {high} on {there} ({', then '.join(proofs)}{' each' if len(proofs) == 1 else ''})"
        )

    def to_dict(self) -> dict[str, object]:
        """As plain JSON types."""
        rates = {"at_least": self.often.to_dict(), "at_most": self.seldom.to_dict()}
        return {"event": self.words, "likelier_on": self.likelier_on, **rates}


def _proof(rate: Rate) -> str:
    return f"{rate.method}, error probability {rate.error:.{_DIGITS}g}"


def _round(value: float, direction: str) -> float:
    return float(Context(prec=_DIGITS, rounding=direction).create_decimal_from_float(value))
