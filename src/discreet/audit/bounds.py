# SPDX-License-Identifier: Apache-2.0
"""From counts to certainty: intervals of binomial probabilities, a band for a whole curve, and what
they prove.

An attacker's event is a point (false alarm, detection) = (Q(E), P(E)). What is certified of it is a
corner: with the stated confidence the detection is at least `detection` and the false-alarm rate at
most `false_alarm`. The complement of the event is a test of Q against P, with detection 1 -
false_alarm and false alarms 1 - detection, so one corner speaks for both directions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtri

from discreet import check
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.tradeoff import Roc

__all__ = ["Corners", "Excess", "clopper_pearson", "dkw", "excess"]

Array = npt.NDArray[np.float64]

#: A relative margin; the inverse of the beta function is far more accurate.
_SAFE = 1e-9
#: Corners whose exact place under the claimed curve is computed, if they come this near.
_CHECKED = 16
_NEAR = 1e-6


@check.arguments
def clopper_pearson(hits: npt.ArrayLike, trials: int, alpha: float) -> tuple[Array, Array]:
    """Bounds below and above a binomial probability, each of which fails with probability `alpha`
    at most.

    **Guarantee.** P(lower > p) <= alpha and P(upper < p) <= alpha, for every p and every number of
    trials: exact, not asymptotic (Clopper, Pearson 1934). Both fail together with probability 2
    alpha at most.

    >>> low, high = clopper_pearson(0, 1000, 0.05)
    >>> float(low), round(float(high), 6)
    (0.0, 0.002991)
    """
    hits = np.asarray(hits, dtype=float)
    trials, alpha = check.whole(trials=trials), check.inner_probability(alpha=alpha)
    inner = np.clip(hits, 1, None), np.clip(hits, None, trials - 1)
    lower = np.where(hits > 0, betaincinv(inner[0], trials - inner[0] + 1, alpha) * (1 - _SAFE), 0.0)
    upper = np.where(hits < trials, betaincinv(inner[1] + 1, trials - inner[1], 1 - alpha) * (1 + _SAFE), 1.0)
    return lower, np.minimum(1.0, upper)


@check.arguments
def dkw(trials: int, alpha: float) -> float:
    """How far an empirical distribution function strays to one side, anywhere, but for probability
    `alpha`.

    **Guarantee.** P(sup (F_n - F) > width) <= alpha for every distribution (Dvoretzky, Kiefer,
    Wolfowitz 1956 with the constant of Massart 1990, which needs alpha <= 1/2).

    >>> round(dkw(50_000, 1e-4), 5)
    0.0096
    """
    alpha = check.inner_probability(alpha=alpha)
    return math.sqrt(math.log(1 / min(alpha, 0.5)) / (2 * check.whole(trials=trials))) * (1 + _SAFE)


@dataclass(frozen=True, eq=False)
class Corners:
    """Certified points of the attacker's ROC region: detection at least, false alarm at most, all
    at once.
    """

    false_alarm: Array
    detection: Array

    @staticmethod
    def join(*parts: Corners) -> Corners:
        """All corners of several sets."""
        return Corners(
            np.concatenate([part.false_alarm for part in parts]),
            np.concatenate([part.detection for part in parts]),
        )

    def both_ways(self) -> Corners:
        """The corners, and those of the complements, which test the second distribution against the
        first.
        """
        return Corners.join(self, Corners(1 - self.detection, 1 - self.false_alarm))

    def epsilon(self, delta: float) -> float:
        """The greatest ε such that (ε', δ) is refuted for every ε' below it: P(E) <= e^ε Q(E) + δ
        fails.
        """
        return self.best_epsilon(delta)[0]

    def mu(self) -> float:
        """The greatest μ such that no mechanism with less Gaussian privacy loss allows these
        corners.
        """
        return self.best_mu()[0]

    def best_epsilon(self, delta: float) -> tuple[float, int]:
        """That ε, and the corner of `both_ways` that proves it."""
        corners = self.both_ways()
        with np.errstate(divide="ignore", invalid="ignore"):
            return _greatest(np.log(np.maximum(corners.detection - delta, 0.0) / corners.false_alarm))

    def best_mu(self) -> tuple[float, int]:
        """That μ, and the corner that proves it."""
        with np.errstate(invalid="ignore"):
            return _greatest(ndtri(self.detection) - ndtri(self.false_alarm))


def _greatest(bounds: Array) -> tuple[float, int]:
    """The greatest of many lower bounds, and its place; what is no number proves nothing."""
    comparable = np.where(np.isnan(bounds), -np.inf, bounds)
    index = int(np.argmax(comparable))
    return max(0.0, float(comparable[index]) * (1 - _SAFE)), index


@dataclass(frozen=True)
class Excess:
    """By how much a corner lies above a claimed curve; `amount` > 0 refutes the claim. `index`
    counts the corners.
    """

    amount: float
    index: int
    reversed: bool


def excess(corners: Corners, claim: Guarantee) -> Excess:
    """The corner that lies highest above the attacker's best detection under the claim.

    **Guarantee.** A positive amount is a refutation: the claim's curve is evaluated on the safe
    side (`tradeoff` is never above the truth) at the corner itself, not between the points of a
    grid, which only chooses where to look.
    """
    both, count = corners.both_ways(), corners.detection.size
    curve = claimed_curve(claim)
    rough = both.detection - np.interp(both.false_alarm, curve.false_alarm, curve.detection)
    order = np.argsort(-rough, kind="stable")[:_CHECKED]
    near = [int(i) for i in order if rough[i] > -_NEAR] or [int(order[0])]
    excesses = [
        (float(both.detection[i]) - (1 - claim.tradeoff(float(both.false_alarm[i]))), i) for i in near
    ]
    amount, index = max(excesses)
    return Excess(amount, index % count, index >= count)


@lru_cache(maxsize=64)
def claimed_curve(claim: Guarantee) -> Roc:
    """The attacker's best curve under a claim, at many points; between them the true one lies above
    the chords.
    """
    return claim.roc(401)
