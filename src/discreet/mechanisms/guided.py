# SPDX-License-Identifier: Apache-2.0
"""A private bound on how sensitive an answer is on these data, and then an answer with noise for
that bound.

    HighProbabilityBound(count_triangles, most_common_neighbours, bound_epsilon=0.5,
    release_epsilon=0.5, delta=1e-6)

Generalised propose-test-release: nothing needs to be proposed. A *measure* of the data, which moves
by 1 at most when one protected unit changes, bounds the local sensitivity of the answer. It is
released with noise and moved to the safe side, so that it is wrong with probability δ at most; then
the answer gets noise for the bound that was released.

**Guarantee.** (bound_epsilon + release_epsilon, δ)-differential privacy for the bound and the
answer together.

Why it holds: propose.proof.md, §4. Given a bound that is true of the data, a neighbour's answer is
no further away than it, so the answer is private; a bound that is not true has probability δ at
most, exactly computed. What would break it: a measure that moves by more than 1; a bound on the
sensitivity of *typical* data; to hide that the bound is an output.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from discreet import check
from discreet.errors import UnsupportedGuarantee
from discreet.exact import exactly, float_above, widest
from discreet.mechanisms.additive import Geometric, Laplace
from discreet.mechanisms.callbacks import call_quietly
from discreet.mechanisms.canonical import exact_ratio
from discreet.mechanisms.choice import Choice, ExponentialMechanism, NoisyMax, PermuteAndFlip
from discreet.mechanisms.distributions import LaplaceDistribution
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism, Refusal
from discreet.mechanisms.stability import FAR, answer_of, clamp, scores_of, total_guarantee
from discreet.privacy.guarantee import Guarantee

__all__ = ["HighProbabilityBound", "WithBound"]

_RUNS: tuple[Any, ...] = (Laplace, Geometric, ExponentialMechanism, PermuteAndFlip, NoisyMax)
_REFUSED = "no bound on the sensitivity could be stated for these data"
_LEAST, _MOST = 1e-100, 1e100  # sensitivities that noise can be drawn for


class WithBound(NamedTuple):
    """An answer, and the bound on the sensitivity that its noise was made for. Both are released.

    >>> WithBound(value=12.5, bound=3.0).bound
    3.0
    """

    value: Any
    bound: float


class HighProbabilityBound(Mechanism):
    """A released bound on the local sensitivity, then the answer with noise for it.

    **Guarantee.** As above. `measure(data)` moves by 1 at most between neighbours, rounding
    included: it counts as the whole number above it (below it with `upper=False`), as 0 where it
    raises or is no number. `sensitivity(m)` says how far the query moves, at most, from any data
    whose measure is at most m (at least m, with `upper=False`) to a neighbour; None, or what is no
    positive number, means that nothing can be said, and is refused. It is m itself, or 1, if left
    out.

    `mechanism` is `Laplace`, `Geometric`, or a choice: then the query answers scores, and the bound
    is on each of them. How many scores there are is public. The exponential mechanism on
    log-likelihoods is sampling from a posterior over finitely many candidates.

    >>> def handshakes(guests): return len(guests) * (len(guests) - 1) // 2  # one more guest shakes len(guests) hands
    >>> bounded = HighProbabilityBound(handshakes, len, bound_epsilon=1, release_epsilon=1, delta=1e-6)
    >>> bounded.guarantee
    approximate(epsilon=2.0, delta=1e-06)
    >>> bounded.margin  # the bound is what the measure is, plus this, plus noise
    13
    >>> bounded(["Ann", "Ben", "Cem"]).value.bound >= 1
    True
    """

    def __init__(
        self,
        query: Callable[[Any], Any],
        measure: Callable[[Any], Any],
        *,
        bound_epsilon: float,
        release_epsilon: float,
        delta: float,
        sensitivity: Callable[[int], Any] | None = None,
        upper: bool = True,
        mechanism: type[Mechanism] = Laplace,
        relation: str = "add-remove",
        unit: str = "record",
    ) -> None:
        self.query, self.measure = check.function(query=query), check.function(measure=measure)
        self.sensitivity = at_least_one if sensitivity is None else check.function(sensitivity=sensitivity)
        self.delta = check.inner_probability(delta=delta)
        self.release_epsilon = check.moderate(release_epsilon=release_epsilon)
        self.distribution = LaplaceDistribution(
            float_above(1 / exactly(check.moderate(bound_epsilon=bound_epsilon)))
        )
        # P(noise > margin) <= δ, by the exact tail.
        self.margin = self.distribution.tail_bound(min(1.0, 2 * self.delta))
        self._sign = _sign(upper)
        self._mechanism, self._words = _supported_mechanism(mechanism), {"relation": relation, "unit": unit}
        self._guarantee = total_guarantee((bound_epsilon, release_epsilon), self.delta, relation, unit)

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def draw(self, data: object) -> WithBound | Refusal:
        evaluate = scores_of if issubclass(self._mechanism, Choice) else answer_of
        answer = evaluate(self.query, data)
        bound = self._bound_for(
            self._rounded_measure(data) + self.distribution.draw() + self._sign * self.margin
        )
        if bound is None:
            return Refusal(_REFUSED)
        return WithBound(self._mechanism_for(bound).draw(answer), bound)

    def interval(self, value: object, confidence: float = CONFIDENCE) -> tuple[Any, Any] | None:
        """Where the exact answer lies with this confidence, given the bound that was released."""
        answer = cast(WithBound, value)
        return self._mechanism_for(answer.bound).interval(answer.value, confidence)

    def _rounded_measure(self, data: Any) -> int:
        """The measure on the side where it still bounds what it is meant to bound."""
        inside = clamp(call_quietly(self.measure, data), -FAR, FAR)
        return math.ceil(inside) if self._sign > 0 else math.floor(inside)

    def _bound_for(self, measure: int) -> float | None:
        sensitivity = self.sensitivity(measure)
        ratio = None if isinstance(sensitivity, bool) else exact_ratio(sensitivity)
        if ratio is None or not _LEAST <= ratio <= _MOST:
            return None
        return float_above(widest(sensitivity if isinstance(sensitivity, float) else ratio))

    def _mechanism_for(self, bound: float) -> Mechanism:
        made: Mechanism = self._mechanism(
            epsilon=self.release_epsilon, sensitivity=widest(bound), **self._words
        )
        return made


def at_least_one(measure: int) -> int:
    """The measure as a sensitivity: never below 1, so that there is noise."""
    return max(1, measure)


def _sign(upper: Any) -> int:
    return 1 if check.flag(upper=upper) else -1


def _supported_mechanism(mechanism: Any) -> Any:
    if mechanism in _RUNS:
        return mechanism
    raise UnsupportedGuarantee(
        "DP203",
        f"an answer under a private bound is given by {', '.join(run.__name__ for run in _RUNS)} only.",
        why="the proof needs ε-privacy for every pair whose answers are no further apart than the bound.",
        fix="mechanism=Laplace",
    )
