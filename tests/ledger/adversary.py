# SPDX-License-Identifier: Apache-2.0
"""The worst adaptive analyst against a limit, by going through everything that she could do.

After each answer she sees how likely it was under the two neighbours, and asks again, anything that the limit admits, or
stops. Her best H_γ is, with r = p/q of the answer,   f(state, γ) = max{(1-γ)₊, max_m Σ_y p_y·f(state', γ·q_y/p_y)}.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from discreet import privacy
from discreet.errors import OverBudget
from discreet.ledger import Asker
from discreet.privacy.guarantee import Guarantee


@dataclass(frozen=True)
class Small:
    """A mechanism with few outcomes: what it is said to be, and its two distributions."""

    guarantee: Guarantee
    p: tuple[float, ...]
    q: tuple[float, ...]

    @property
    def turned(self) -> Small:
        return Small(self.guarantee, self.q, self.p)


def response(epsilon: float) -> Small:
    truth = 1 / (1 + math.exp(-epsilon))
    return Small(privacy.randomized_response(epsilon), (truth, 1 - truth), (1 - truth, truth))


def leaky_response(epsilon: float, delta: float) -> Small:
    truth, quiet = 1 / (1 + math.exp(-epsilon)), 1 - delta
    return Small(
        privacy.leaky_randomized_response(epsilon, delta),
        (delta, 0.0, quiet * truth, quiet * (1 - truth)),
        (0.0, delta, quiet * (1 - truth), quiet * truth),
    )


def laplace(scale: float, sensitivity: int) -> Small:
    """Integer Laplace noise, with outcomes of equal loss merged."""
    decay = math.exp(-1 / scale)
    most = (1 - decay) / (1 + decay)
    middle = [most * decay**z for z in range(1, sensitivity)]
    above, below = 1 / (1 + decay), decay**sensitivity / (1 + decay)
    p, q = (above, *middle, below), (below, *reversed(middle), above)
    return Small(privacy.discrete_laplace(scale, sensitivity), p, q)


def table(p: Sequence[float], q: Sequence[float]) -> Small:
    return Small(privacy.pair(p, q), tuple(p), tuple(q))


def worst(limit, mechanisms: Sequence[Small], epsilon: float, questions: int, **whose: Asker) -> float:
    """The greatest δ at ε that any adaptive analyst reaches within so many questions, in both directions."""
    ways = (mechanisms, [mechanism.turned for mechanism in mechanisms])
    return max(_worst(limit, way, math.exp(epsilon), questions, whose) for way in ways)


def _worst(limit, mechanisms, gamma, questions, whose):
    costs = [limit.cost(mechanism.guarantee) for mechanism in mechanisms]

    @cache
    def after(state, number):
        try:
            return limit.admit(state, costs[number], **whose)
        except OverBudget:
            return None

    @cache
    def best(state, gamma, questions):
        found = max(0.0, 1 - gamma)
        for number, mechanism in enumerate(mechanisms):
            then = after(state, number) if questions else None
            if then is not None:
                outcomes = zip(mechanism.p, mechanism.q, strict=True)
                parts = (p * best(then, _near(gamma * q / p), questions - 1) for p, q in outcomes if p > 0)
                found = max(found, math.fsum(parts))
        return found

    return best(limit.start(), gamma, questions)


def _near(gamma: float) -> float:
    """Rounded down to twelve digits, so that the same ratio by another order of answers is recognised.

    H_γ falls as γ grows, so this errs against the limit, by 1e-11 at most.
    """
    return float(f"{gamma * (1 - 1e-12):.12g}") if gamma else 0.0
