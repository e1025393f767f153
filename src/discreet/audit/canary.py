# SPDX-License-Identifier: Apache-2.0
"""Auditing in one run: many canaries, each in or out by the toss of a coin, and guesses about all
of them.

Insert m records that nothing else depends on, each with probability one half; train once; score
each by how much it looks included (its loss, say). Guess "in" for the highest scores, "out" for the
lowest, nothing for the rest. If the run is private, few guesses are right: `tail` says how few, and
canary.proof.md why.

    included = coins == 1
    report = one_run(included, score=-losses, delta=1e-5)
    report.epsilon_at_least; report.refutes(privacy.gaussian(noise=1.0)); report.mu_at_least
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import bdtrc, xlog1py, xlogy

from discreet import check
from discreet.audit.bounds import Array
from discreet.errors import BadParameter
from discreet.exact import bisect
from discreet.privacy.constructors import gaussian
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.logarithms import log_choose

__all__ = ["OneRun", "one_run", "tail"]

#: The shares of the canaries that are guessed; all of them are tried.
_LADDER = (1.0, 0.5, 0.25, 0.1, 0.05, 0.02)
#: No bound is above it.
_MOST = 50.0
_SAFE = 1e-9
#: The ε at which a claimed curve is read.
_PLACES = np.concatenate([[0.0], np.geomspace(1e-3, 20.0, 60)])


@dataclass(frozen=True)
class OneRun:
    """What one run with canaries proves.

    **Guarantee.** With probability `confidence`, `epsilon_at_least` and `mu_at_least` are lower
    bounds and `refutes` is False for a claim that holds, all at once: they speak of the same few
    counts.
    """

    delta: float
    confidence: float
    canaries: int
    #: How many were guessed, and how many of these were right.
    tried: tuple[tuple[int, int], ...]

    @property
    def epsilon_at_least(self) -> float:
        """No (ε, δ) guarantee with a smaller ε holds, at the δ of this report."""
        return max(self._epsilon_bound(*counts) for counts in self.tried)

    @property
    def mu_at_least(self) -> float:
        """No μ-Gaussian guarantee with a smaller μ holds; far from tight, because only the mean of
        the excess is bounded.
        """
        return _greatest_refuted(lambda mu: self.refutes(gaussian(1 / mu)), 1e-3, 20.0)

    def refutes(self, claim: Guarantee) -> bool:
        """Whether so many right guesses contradict a guarantee for each canary."""
        curve = [(float(epsilon), claim.delta(float(epsilon))) for epsilon in _PLACES]
        return any(
            min(tail(self.canaries, *counts, *point) for point in curve) <= self._alpha
            for counts in self.tried
        )

    def _epsilon_bound(self, guesses: int, right: int) -> float:
        return _epsilon_bound(self.canaries, guesses, right, self.delta, self._alpha)

    @property
    def _alpha(self) -> float:
        return (1 - self.confidence) / len(self.tried)

    @property
    def witness(self) -> tuple[int, int, float]:
        """What proves `epsilon_at_least`: so many guesses, so many right, and the error probability
        of this test.
        """
        return (*max(self.tried, key=lambda counts: self._epsilon_bound(*counts)), self._alpha)

    def to_dict(self) -> dict[str, object]:
        """As plain JSON types."""
        guesses, right, error = self.witness
        return {
            "epsilon_at_least": self.epsilon_at_least,
            "delta": self.delta,
            "confidence": self.confidence,
            "canaries": self.canaries,
            "tried": [list(counts) for counts in self.tried],
            "witness": {"guesses": guesses, "right": right, "error": error},
        }

    def __str__(self) -> str:
        guesses, right, error = self.witness
        epsilon = math.floor(self.epsilon_at_least * 1e4) / 1e4
        sizes = "" if len(self.tried) == 1 else f", shared among {len(self.tried)} numbers of guesses"
        return (
            f"ε at least {epsilon:.4f} at δ = {self.delta:g}: {right} of {guesses} guesses right, "
            f"{self.canaries} canaries, error probability {error:.7g} (confidence {self.confidence:.12g}{sizes})"
        )


@check.arguments
def one_run(
    included: npt.ArrayLike,
    score: npt.ArrayLike,
    *,
    guesses: int | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> OneRun:
    """Lower bounds from the scores of canaries that were included by fair coins.

    **Guarantee.** If the run is (ε, δ)-DP for each canary, the bound exceeds ε with probability 1 -
    confidence at most.

    Why it holds: canary.proof.md. `guesses` says how many of the most extreme scores, half of them
    from either end, are taken for guesses, and must be chosen without looking at `included`; if it
    is not given, six shares of the canaries are tried, and each gets a sixth of the error
    probability.

    What would break it: canaries that were not included by independent fair coins; a score that
    knows `included` in another way than through the output of the run.

    >>> included = np.arange(1000) % 2 == 0
    >>> round(one_run(included, np.where(included, 1.0, 0.0), guesses=1000).epsilon_at_least, 1)
    5.8
    """
    coins, scores = _validate_vectors(included, score)
    delta, confidence = check.delta(delta=delta), check.inner_probability(confidence=confidence)
    if guesses is None:
        sizes = sorted({max(2, int(share * scores.size)) for share in _LADDER})
    else:
        sizes = [_validate_guesses(check.whole(guesses=guesses), scores.size)]
    order = np.argsort(scores, kind="stable")
    tried = []
    for size in sizes:
        low, high = order[: size // 2], order[scores.size - (size - size // 2) :]
        tried.append((size, int((~coins[low]).sum() + coins[high].sum())))
    return OneRun(delta, confidence, scores.size, tuple(tried))


def tail(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """The greatest probability of so many right guesses under (ε, δ): canary.proof.md.

    >>> tail(10, 10, 10, 0.0, 0.0) == 2.0**-10
    True
    """
    if right <= 0:
        return 1.0
    rate = 1 / (1 + math.exp(-epsilon))
    probability = float(bdtrc(right - 1, guesses, rate))
    if delta > 0:
        below = np.arange(right - 1, -1, -1)
        probability += _liftable_mass(
            _masses(below, guesses, rate), canaries * delta / (1 + math.exp(epsilon))
        )
    return min(1.0, probability * (1 + _SAFE)) if delta > 0 else probability


def _masses(hits: npt.NDArray[np.int64], trials: int, rate: float) -> Array:
    """Binomial probabilities, by logarithms."""
    return np.asarray(np.exp(log_choose(trials, hits) + xlogy(hits, rate) + xlog1py(trials - hits, -rate)))


def _liftable_mass(masses: Array, budget: float) -> float:
    """How much mass a budget lifts, where the first costs 1 for each unit, the second 2, and so on."""
    costs = np.arange(1, masses.size + 1)
    spent = np.cumsum(costs * masses)
    whole = int(np.searchsorted(spent, budget, side="right"))
    lifted = float(masses[:whole].sum())
    if whole == masses.size:
        return lifted
    return lifted + (budget - (float(spent[whole - 1]) if whole else 0.0)) / (whole + 1)


def _epsilon_bound(canaries: int, guesses: int, right: int, delta: float, alpha: float) -> float:
    """The greatest ε at which so many right guesses are too unlikely.

    The tail need not grow with ε for the bound to hold: what is (ε, δ)-DP is so for every greater
    ε, and the right guesses that refute any of these are at least as many as those that refute one
    of them.
    """
    return _greatest_refuted(
        lambda epsilon: tail(canaries, guesses, right, epsilon, delta) <= alpha, 0.0, _MOST
    )


def _greatest_refuted(refuted: Callable[[float], bool], low: float, high: float) -> float:
    """Where a statement that is false of small numbers begins to be tenable, by bisection."""
    if not refuted(low):
        return 0.0
    return bisect(refuted, yes=low, no=high, steps=50)[0] * (1 - _SAFE)


def _validate_vectors(included: npt.ArrayLike, score: npt.ArrayLike) -> tuple[npt.NDArray[np.bool_], Array]:
    coins, scores = np.asarray(included), np.asarray(score, dtype=float)
    if coins.dtype != bool or coins.ndim != 1 or coins.shape != scores.shape or coins.size < 2:
        raise BadParameter(
            "DP107",
            "included must be a vector of bools, and score a vector of as many numbers.",
            why="each canary has one coin and one score.",
            fix="one_run(included=coins == 1, score=-losses)",
        )
    return coins, np.nan_to_num(scores, nan=0.0)


def _validate_guesses(guesses: int, canaries: int) -> int:
    if guesses <= canaries:
        return guesses
    raise BadParameter(
        "DP102",
        f"guesses must be at most the number of canaries, {canaries}, not {guesses}.",
        why="each canary is guessed once.",
        fix=f"guesses={canaries}",
    )
