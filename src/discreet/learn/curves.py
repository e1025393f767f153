# SPDX-License-Identifier: Apache-2.0
"""How much objective perturbation reveals: its whole curve δ(ε), and that curve as a guarantee that composes.

    guarantee_of(LogisticCurve(mu=0.27, bend=1.0), through=1.0, down_to=1e-5, budget=budget)

**Guarantee.** Each curve is never below the δ of the mechanism at any ε >= 0, in both directions (objective.proof.md). The
guarantee is a pair of probability tables whose curve is never below the given one; at ε = `through` it equals it.

Why it holds: a mechanism's δ is convex in e^ε, so it lies below the lines that connect points above it. A pair with
that curve for ε >= 0, and mirrored below, dominates in both directions. It is a pair because of what any (ε, δ) implies
at ε = 0: at most tanh(ε/2)·(1 - δ) + δ.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from discreet import privacy
from discreet.learn.budget import Budget
from discreet.privacy.bag import pair_of_profile
from discreet.privacy.families import gaussian_log_delta
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.pairs import symmetrise

__all__ = ["CornerCurve", "Curve", "LogisticCurve", "guarantee_of"]

_KNOTS = 400
_FAR = 1e-10  # the share of δ at which a curve is cut off; what lies beyond counts as lost
_UP = 1 + 1e-9  # far more than the rounding of the formulas below
_LEAST = 1e-305


class Curve(ABC):
    """An upper bound on δ for every ε >= 0."""

    @abstractmethod
    def delta(self, epsilon: float) -> float:
        """δ at ε, rounded up."""


@dataclass(frozen=True)
class LogisticCurve(Curve):
    """The binary logistic loss: `mu` = row norm / noise, `bend` = row norm² / ridge - mu²/2 (Theorem 1 of the proof).

    From ε = bend on it is the curve of the Gaussian mechanism with parameter mu. Below, one record's loss is at
    most (A + bend)²/(4·bend) where the Gaussian's would be A in ±bend.
    """

    mu: float
    bend: float

    def delta(self, epsilon: float) -> float:
        gaussian = math.exp(gaussian_log_delta(self.mu, epsilon))
        if epsilon >= self.bend:
            return max(gaussian * _UP, _LEAST)
        mu, bend = self.mu, self.bend
        first = 2 * math.sqrt(bend * epsilon) - bend  # the loss of the Gaussian from which on ours exceeds ε
        sharp = math.sqrt(1 / (2 * bend) + 1 / (mu * mu))
        factor = math.exp(-bend / 4 - mu * mu / 8) / math.sqrt(1 + mu * mu / (2 * bend))
        inside = factor * float(ndtr(-first * sharp) - ndtr(-bend * sharp))
        beyond = float(ndtr(-bend / mu - mu / 2))
        found = float(ndtr(mu / 2 - first / mu)) - math.exp(epsilon) * (inside + beyond)
        return min(1.0, max(found, gaussian, _LEAST) * _UP)


@dataclass(frozen=True)
class CornerCurve(Curve):
    """Losses of at most shift + max(0, A₁, A₂, …), each A that of a Gaussian mechanism: Σ count · δ (Theorem 2).

    `corners` are (count, mu) of those mechanisms.
    """

    corners: tuple[tuple[int, float], ...]
    shift: float

    def delta(self, epsilon: float) -> float:
        if epsilon >= self.shift:
            return self._beyond(epsilon - self.shift)
        return min(1.0, (1 - math.exp(epsilon - self.shift) * (1 - self._beyond(0.0))) * _UP)

    def _beyond(self, epsilon: float) -> float:
        found = math.fsum(count * math.exp(gaussian_log_delta(mu, epsilon)) for count, mu in self.corners)
        return min(1.0, max(found, _LEAST) * _UP)


def guarantee_of(curve: Curve, *, through: float, down_to: float, budget: Budget) -> Guarantee:
    """The curve as two tables of probabilities; they follow it down to a small share of δ = `down_to`."""
    top = through
    while curve.delta(top) > max(down_to * _FAR, 2 * _LEAST):
        top *= 1.1
    knots = np.unique(np.append(np.linspace(0.0, top, _KNOTS), through))
    deltas = np.array([curve.delta(float(at)) for at in knots])
    deltas[0] = np.min(np.tanh(knots / 2) * (1 - deltas) + deltas)  # what each (ε, δ) says of δ at ε = 0
    pair = symmetrise(pair_of_profile(knots, deltas))
    lost = pair.infinite
    p, q = np.append(pair.p, [lost, 0.0]), np.append(pair.q, [0.0, lost])
    return privacy.pair(p.tolist(), q.tolist(), relation=budget.relation, unit=budget.unit)
