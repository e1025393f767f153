# SPDX-License-Identifier: Apache-2.0
"""Auditing without sampling: where the probabilities of all outcomes are known, so are δ(ε) and
ε(δ) of the pair.

    from discreet import testing
    from discreet.audit import exact

    def coin(bit):                                  # every outcome with its probability
        return {bit: Fraction(3, 4), 1 - bit: Fraction(1, 4)}

    def walked(bit):                                # or all that a sampler can do with a few random bits
        return testing.walk(lambda source: sampler(bit, source), depth=12)

    exact(coin, 0, 1).epsilon()                     # (lower, upper)

A walk leaves some mass open. That mass may lie anywhere, and the interval is as wide as that
requires.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet import check
from discreet.errors import BadParameter
from discreet.exact import as_ratio, binary_above, binary_below, bisect
from discreet.privacy.guarantee import Guarantee

__all__ = ["ExactReport", "exact"]

Probabilities = Mapping[Hashable, Fraction]

#: A relative margin; exponentials and logarithms are far more accurate.
_SAFE = 1e-12
#: The relative error of an exponential, at most.
_ROUNDING = Fraction(1, 10**14)


@dataclass(frozen=True)
class ExactReport:
    """Both distributions, outcome by outcome, and the mass of each that is not decided.

    **Guarantee.** `delta(ε)` and `epsilon(δ)` are intervals that hold the truth for this pair of
    inputs, in both directions. Probabilities are exact fractions; only exponentials are rounded,
    outwards.
    """

    masses: dict[Hashable, Fraction]
    masses_neighbour: dict[Hashable, Fraction]
    open: Fraction
    open_neighbour: Fraction
    closed: bool

    def delta(self, epsilon: float) -> tuple[float, float]:
        """The least δ for this ε, from below and from above; see `_deltas` for why."""
        bounds = [self._deltas(*direction, check.not_negative(epsilon=epsilon)) for direction in self._ways()]
        return max(low for low, _ in bounds), max(high for _, high in bounds)

    def epsilon(self, delta: float = 0.0) -> tuple[float, float]:
        """The least ε for this δ, from below and from above; infinite where no ε will do."""
        delta = check.delta(delta=delta)
        if delta == 0:
            ratios = [self._ratios(*direction) for direction in self._ways()]
            return max(low for low, _ in ratios), max(high for _, high in ratios)
        return self._inverse(delta, 0), self._inverse(delta, 1)

    def witness(self, epsilon: float = 0.0) -> tuple[frozenset[Hashable], Fraction, Fraction]:
        """The event that proves `delta(epsilon)`: its outcomes, and its probability on the likelier
        input and on the other.

        **Guarantee.** P(E) - e^ε·Q(E), with the open mass counted to Q, is the lower bound up to
        rounding; no event has a greater one.
        """
        factor = Fraction(math.exp(min(700.0, check.not_negative(epsilon=epsilon))))
        candidates = []
        for p, q, _, open_q in self._ways():
            event = frozenset(outcome for outcome, mass in p.items() if mass > factor * q.get(outcome, 0))
            rates = (
                sum((p[outcome] for outcome in event), Fraction(0)),
                sum((q.get(outcome, Fraction(0)) for outcome in event), Fraction(0)) + open_q,
            )
            candidates.append((rates[0] - factor * rates[1], event, *rates))
        _, event, often, seldom = max(candidates, key=lambda candidate: candidate[0])
        return event, often, seldom

    def refutes(self, claim: Guarantee) -> bool:
        """Whether some δ(ε) of this pair is certainly greater than the claim allows."""
        losses = {0.0} | {abs(loss) for loss in self._losses() if math.isfinite(loss)}
        middles = {loss * share for loss in losses for share in (0.5, 0.9, 0.999)}
        return any(self.delta(at)[0] > claim.delta(at) * (1 + _SAFE) for at in losses | middles)

    def keeps(self, epsilon: float, delta: float = 0.0) -> bool:
        """Whether this pair certainly satisfies (ε, δ), in both directions, up to 1e-12 of either
        number.
        """
        if check.delta(delta=delta) == 0:
            return self.epsilon()[1] <= epsilon * (1 + _SAFE)
        return self.delta(epsilon)[1] <= delta * (1 + _SAFE)

    def _ways(self) -> list[tuple[Probabilities, Probabilities, Fraction, Fraction]]:
        first, second = (self.masses, self.open), (self.masses_neighbour, self.open_neighbour)
        return [(p[0], q[0], p[1], q[1]) for p, q in ((first, second), (second, first))]

    def _losses(self) -> list[float]:
        both = self.masses.keys() & self.masses_neighbour.keys()
        return [_log(self.masses[outcome] / self.masses_neighbour[outcome]) for outcome in both]

    def _deltas(
        self, p: Probabilities, q: Probabilities, open_p: Fraction, open_q: Fraction, epsilon: float
    ) -> tuple[float, float]:
        """Σ (P - e^ε Q)⁺ with P = p + something of mass open_p, and Q = q + something of mass
        open_q.

        Each term falls by e^ε·r at most when r is added to q, and rises by r at most when r is
        added to p.
        """
        if epsilon > 700:
            alone = sum((mass for outcome, mass in p.items() if not q.get(outcome)), Fraction(0))
            return 0.0 if open_q else binary_below(alone), 1.0
        spread = _ROUNDING if epsilon else Fraction(0)
        factor_above, factor_below = (Fraction(math.exp(epsilon)) * (1 + sign * spread) for sign in (1, -1))
        low = _surplus(p, q, factor_above) - factor_above * open_q
        high = _surplus(p, q, factor_below) + open_p
        return max(0.0, binary_below(low)), min(1.0, binary_above(high))

    def _ratios(
        self, p: Probabilities, q: Probabilities, open_p: Fraction, open_q: Fraction
    ) -> tuple[float, float]:
        """log sup P/Q: outcome by outcome, with the open masses on the worse side for either bound."""
        outcomes = {outcome for outcome, mass in p.items() if mass} | {o for o, mass in q.items() if mass}
        low = max(
            (_log_ratio(p.get(o, Fraction(0)), q.get(o, Fraction(0)) + open_q) for o in outcomes), default=0.0
        )
        if open_p and not self.closed:
            return max(0.0, low * (1 - _SAFE)), math.inf
        high = max(
            (_log_ratio(p.get(o, Fraction(0)) + open_p, q.get(o, Fraction(0))) for o in outcomes), default=0.0
        )
        return max(0.0, low * (1 - _SAFE)), max(0.0, high * (1 + _SAFE))

    def _inverse(self, delta: float, side: int) -> float:
        """Where δ(ε), which falls, comes down to δ."""
        low, high = 0.0, 1.0
        if self.delta(low)[side] <= delta:
            return 0.0
        while self.delta(high)[side] > delta:
            low, high = high, 2 * high
            if high > 700:
                return math.inf if side else low
        low, high = bisect(lambda epsilon: self.delta(epsilon)[side] > delta, yes=low, no=high, steps=60)
        return high if side else low


@check.arguments
def exact(
    distribution: Callable[[Any], object], x: object, x_neighbour: object, *, closed: bool = False
) -> ExactReport:
    """The exact privacy of a pair of inputs, from the probabilities of all outcomes.

    **Guarantee.** That of `ExactReport`. `distribution(data)` gives a dictionary from outcomes to
    probabilities, or that and the mass that is left open, as `testing.walk` does; an object with
    `probabilities(data)` will do too. With `closed=True` the caller states that no other outcomes
    exist, which bounds ε at δ = 0 in spite of open mass.

    What would break it: probabilities that are not those of the mechanism, or a `closed` that is
    not true.

    >>> report = exact(lambda bit: {bit: Fraction(3, 4), 1 - bit: Fraction(1, 4)}, 0, 1)
    >>> low, high = report.epsilon()
    >>> low <= math.log(3) <= high, round(high - low, 9)
    (True, 0.0)
    >>> report.delta(0.0)
    (0.5, 0.5)
    """
    function = getattr(distribution, "probabilities", distribution)
    (first, rest), (second, rest_neighbour) = (_probabilities(function(data)) for data in (x, x_neighbour))
    return ExactReport(first, second, rest, rest_neighbour, closed)


def _probabilities(law: object) -> tuple[dict[Hashable, Fraction], Fraction]:
    masses, rest = law if isinstance(law, tuple) else (law, None)
    exact_masses = {outcome: as_ratio(mass) for outcome, mass in masses.items()}
    total = sum(exact_masses.values(), Fraction(0))
    left = 1 - total if rest is None else as_ratio(rest)
    if (
        min(exact_masses.values(), default=Fraction(0)) < 0
        or abs(total + left - 1) > Fraction(1, 10**9)
        or left < -_SAFE
    ):
        raise BadParameter(
            "DP106",
            "the probabilities of the outcomes do not sum to 1.",
            why="mass that is missing could be anywhere.",
            fix="return every outcome, or (outcomes, open mass)",
        )
    return exact_masses, max(left, Fraction(0))


def _surplus(p: Probabilities, q: Probabilities, factor: Fraction) -> Fraction:
    """Σ (p - factor·q)⁺."""
    return sum(
        (max(Fraction(0), mass - factor * q.get(outcome, 0)) for outcome, mass in p.items()), Fraction(0)
    )


def _log_ratio(p: Fraction, q: Fraction) -> float:
    if p == 0:
        return -math.inf
    return math.inf if q == 0 else _log(p / q)


def _log(ratio: Fraction) -> float:
    """log of a ratio, also of one near 1 and of one that is no float."""
    if ratio <= 0:
        return -math.inf
    if Fraction(1, 2) < ratio < 2:
        return math.log1p(float(ratio - 1))
    return math.log(ratio.numerator) - math.log(ratio.denominator)
