# SPDX-License-Identifier: Apache-2.0
"""Mechanisms from mechanisms: a function of the answer, several answers at once, and the best of
many runs.

    then(count, lambda noisy: max(0, noisy))  # or count.then(…): costs nothing
    both(count, total)                        # two answers, both paid for
    select_best(train, score, mean_runs=20)   # only the best of a secret number of runs is shown

The guarantee for a group of k units is `mechanism.guarantee_at(distance=k)`, for these as for all
others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from discreet import check, noise, privacy
from discreet.errors import BadParameter
from discreet.exact import as_ratio, exactly
from discreet.mechanisms.callbacks import call_quietly
from discreet.mechanisms.exact import number
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism, Refusal
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.selection import SelectedGuarantee, above_minus_one, gamma_for

__all__ = ["Best", "Both", "Chosen", "Then", "both", "select_best", "then"]

Score = Callable[[Any], float]


class Then(Mechanism):
    """A function of what another mechanism released. See `then`.

    **Guarantee.** That of the mechanism, unchanged: the function sees only what was released.

    >>> from discreet.mechanisms import Geometric
    >>> Then(Geometric(epsilon=1, sensitivity=1), abs, None).guarantee.epsilon(delta=0)
    1.0
    """

    def __init__(
        self, mechanism: Mechanism, function: Callable[[Any], Any], error: Callable[[float], Any] | None
    ) -> None:
        self.mechanism, self.function, self._error = mechanism, function, error
        self.stated_delta = mechanism.stated_delta

    @property
    def guarantee(self) -> Guarantee:
        return self.mechanism.guarantee

    def guarantee_at(self, distance: int) -> Guarantee:
        return self.mechanism.guarantee_at(distance)

    def draw(self, data: object) -> object:
        value = self.mechanism.draw(data)
        return value if isinstance(value, Refusal) else self.function(value)

    def error(self, confidence: float = CONFIDENCE) -> object:
        """What the `error` function says of this confidence, or None."""
        confidence = check.inner_probability(confidence=confidence)
        return None if self._error is None else self._error(confidence)


class Both(Mechanism):
    """The answers of several mechanisms on the same data. See `both`.

    **Guarantee.** The sum of the guarantees of all mechanisms, by composition. Each draws noise of
    its own.

    >>> from discreet.mechanisms import Geometric
    >>> pair = Both(Geometric(epsilon=1, sensitivity=1), Geometric(epsilon=0.5, sensitivity=1))
    >>> pair.guarantee.epsilon(delta=0)
    1.5
    """

    def __init__(self, *mechanisms: Mechanism) -> None:
        self.mechanisms = mechanisms
        self.error_unit = _units(mechanisms)
        self._guarantee = self._sum(1)

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def guarantee_at(self, distance: int) -> Guarantee:
        return self._sum(check.whole(distance=distance))

    def draw(self, data: object) -> tuple[Any, ...]:
        return tuple(mechanism.draw(data) for mechanism in self.mechanisms)

    def error(self, confidence: float = CONFIDENCE) -> tuple[Any, ...]:
        """The error of each, such that all of them hold together with this confidence (a union
        bound).
        """
        each = self._each(confidence)
        return tuple(mechanism.error(each) for mechanism in self.mechanisms)

    def interval(self, value: object, confidence: float = CONFIDENCE) -> tuple[Any, Any] | None:
        """The lower ends and the upper ends, which hold together; None if some answer has no
        interval.
        """
        each = self._each(confidence)
        intervals = []
        for mechanism, part in zip(self.mechanisms, cast(tuple[Any, ...], value), strict=True):
            interval = None if isinstance(part, Refusal) else mechanism.interval(part, each)
            if interval is None:
                return None
            intervals.append(interval)
        return tuple(low for low, _ in intervals), tuple(high for _, high in intervals)

    def _each(self, confidence: float) -> float:
        share = (1 - check.inner_probability(confidence=confidence)) / len(self.mechanisms)
        return min(1 - share, math.nextafter(1.0, 0.0))

    def _sum(self, distance: int) -> Guarantee:
        first, *others = (mechanism.guarantee_at(distance) for mechanism in self.mechanisms)
        return sum(others, start=first)


class Chosen(NamedTuple):
    """The winner among several candidates: which one it was, and what it released.

    >>> Chosen(candidate=2, value=41.5).candidate
    2
    """

    candidate: int
    value: Any


class Best(Mechanism):
    """The best of a secret number of runs. See `select_best`.

    **Guarantee.** `privacy.selected` of the guarantee of one run: 2ε at most for runs that are
    ε-private.

    >>> from discreet.mechanisms import Laplace
    >>> Best([Laplace(epsilon=0.5, sensitivity=1)], float, 10, named=True)(3.0).value.candidate
    0
    """

    def __init__(
        self,
        candidates: Sequence[Mechanism],
        score: Score,
        mean_runs: float,
        *,
        named: bool,
        eta: float | str = 0.0,
        delta: float = 1e-6,
    ) -> None:
        self.candidates, self.score, self._named = tuple(candidates), score, named
        self.eta = self._least_shape(mean_runs, eta, delta) if isinstance(eta, str) else _shape(eta)
        #: of the geometric number that is drawn first, if η is 0 or more
        self.scale = _scale_for(mean_runs, self.eta)
        if self.eta < 0:
            self.gamma = gamma_for(mean_runs, self.eta)
        else:
            self.gamma = math.nextafter(-math.expm1(-1 / self.scale), 0.0) * (1 - 1e-15)
        self._guarantee = self._best(1)

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def guarantee_at(self, distance: int) -> Guarantee:
        return self._best(check.whole(distance=distance))

    def draw(self, data: object) -> object:
        best, highest = None, -math.inf
        for run in range(self._runs()):
            candidate = noise.uniform(len(self.candidates))
            value = self.candidates[candidate].draw(data)
            score = _score_of_run(self.score, value)
            if run == 0 or score > highest:
                best, highest = Chosen(candidate, value), score
        assert best is not None
        refused = isinstance(best.value, Refusal)
        return best if self._named and not refused else best.value

    def _runs(self) -> int:
        """P(k) ∝ (1-γ)^k · Π_{0<l<k} (l+η)/(l+1), exactly."""
        return self._runs_of_race() if self.eta < 0 else self._runs_of_geometric()

    def _runs_of_geometric(self) -> int:
        """A geometric number, kept with probability Π (l+η)/(l+1), which is 1/k for η = 0."""
        while True:
            count = noise.geometric(exactly(self.scale)) + 1
            if self.eta == 0 and noise.uniform(count) == 0:
                return int(count)
            if self.eta and all(
                noise.bernoulli((at + as_ratio(self.eta)) / (at + 1)) for at in range(1, count)
            ):
                return int(count)

    def _runs_of_race(self) -> int:
        """With a = -η, stop at k with probability a/k: P(k) = a/k · Π_{l<k} (1 - a/l), which is a
        times the product; and begin again with probability γ after each k.
        """
        stop, again = -as_ratio(self.eta), as_ratio(self.gamma)
        count = 1
        while not noise.bernoulli(stop / count):
            count = 1 if noise.bernoulli(again) else count + 1
        return count

    def _one_run(self, distance: int) -> Guarantee:
        return privacy.one_of(*(candidate.guarantee_at(distance) for candidate in self.candidates))

    def _best(self, distance: int) -> Guarantee:
        return privacy.selected(self._one_run(distance), gamma=self.gamma, eta=self.eta)

    def _least_shape(self, mean_runs: float, eta: str, delta: float) -> float:
        best = privacy.selected(self._one_run(1), mean_runs, eta=eta, delta=delta)
        return float(best.eta) if isinstance(best, SelectedGuarantee) else 0.0


@check.arguments
def then(
    mechanism: Mechanism,
    function: Callable[[Any], Any],
    *,
    error: Callable[[float], Any] | None = None,
) -> Then:
    """The mechanism that releases `function(value)` instead of the value.

    **Guarantee.** The guarantee of `mechanism`, unchanged. A refusal passes through untouched.
    `error`, if stated, is the margin of error of the new answer at a confidence; without it there
    is none.

    Why it holds: post-processing (Dwork, McSherry, Nissim, Smith 2006): the function sees the
    released value only. What would break it: a function that looks at the data on its own.

    >>> from discreet.mechanisms import Geometric
    >>> count = Geometric(epsilon=1, sensitivity=1).then(abs)
    >>> count(3).value >= 0, count.guarantee.epsilon(delta=0)
    (True, 1.0)
    """
    _mechanisms([mechanism])
    check.function(function=function)
    if error is not None:
        check.function(error=error)
    return Then(mechanism, function, error)


@check.arguments
def both(*mechanisms: Mechanism) -> Both:
    """The mechanism that releases the answers of two or more mechanisms on the same data, as a
    tuple.

    **Guarantee.** The sum of the guarantees, which must protect the same unit (DP201 otherwise).
    `error(confidence)` and `interval` hold for all answers together.

    Why it holds: composition; every mechanism draws noise of its own. The errors are each taken at
    1 - (1-c)/k, a union bound. What would break it: mechanisms that share noise.

    >>> from discreet.mechanisms import Geometric
    >>> pair = both(Geometric(epsilon=1, sensitivity=1), Geometric(epsilon=0.5, sensitivity=1))
    >>> pair.guarantee.epsilon(delta=0), pair.error(confidence=0.9)
    (1.5, (3.0, 6.0))
    """
    return Both(*_mechanisms(mechanisms))


@check.arguments
def select_best(
    mechanism: Mechanism | None = None,
    score: Score | None = None,
    *,
    mean_runs: float,
    candidates: Sequence[Mechanism] | None = None,
    eta: float | str = 0.0,
    delta: float = 1e-6,
) -> Best:
    """The mechanism that runs another a secret, random number of times and releases the best run
    only.

    **Guarantee.** `privacy.selected` of the guarantee of one run: 2ε at most for an ε-private
    mechanism, whatever `mean_runs` is. With `candidates`, every run picks one of them by a fair
    die, the guarantee of one run is the greatest of theirs at every point, and the release is
    `Chosen(candidate, value)`.

    The number of runs K has P(K = k) ∝ (1-γ)^k / k, exactly, with γ = 1 - exp(-1 / scale) and no
    upper limit; its mean is `mean_runs` to within 1e-5. `eta` above -1 and up to 1 is the shape of
    that distribution: the less, the less it costs, and the more often there is one run only. With
    `eta="least"` it is the shape with the least ε at `delta`, see `privacy.selected`. `score` is a
    function of a released value: the greater the better, the first of equals wins. A run that
    refused, or whose score raises or is no number, is worse than every other.

    Why it holds: `privacy/selection.proof.md` (Liu, Talwar 2019; Papernot, Steinke 2022). A score
    that needs the data must be released by the mechanism itself and so be paid for: `both(train,
    accuracy)` scores as `value[1]`.

    What would break it: a score that looks at the data, that keeps what it sees, or an attacker who
    learns how many runs there were, for example from the clock (docs/sharp-edges/timing.md).

    >>> from discreet.mechanisms import Laplace
    >>> best = select_best(Laplace(epsilon=0.5, sensitivity=1), score=float, mean_runs=10)
    >>> best.guarantee.epsilon(delta=0) <= 1.0, isinstance(best(3.0).value, float)
    (True, True)
    """
    if (mechanism is None) == (candidates is None):
        raise BadParameter(
            "DP107",
            "select_best needs either one mechanism or candidates.",
            why="every run draws from a mechanism.",
            fix="select_best(mechanism, score, mean_runs=10)",
        )
    judge = check.function(score=score)
    several = _mechanisms([mechanism] if candidates is None else candidates)
    return Best(several, judge, mean_runs, named=candidates is not None, eta=eta, delta=delta)


def _units(mechanisms: Sequence[Mechanism]) -> str:
    """What the errors of several mechanisms count: one word if it is the same for all."""
    units = [mechanism.error_unit for mechanism in mechanisms]
    if len(set(units)) == 1:
        return units[0]
    return f"({', '.join(unit or 'in the unit of the value' for unit in units)})"


def _score_of_run(score: Score, value: Any) -> float:
    """The score of a run, without any error: the run may never be released."""
    result = math.nan if isinstance(value, Refusal) else number(call_quietly(score, value))
    return -math.inf if math.isnan(result) else result


def _shape(eta: float) -> float:
    """A shape that can be drawn."""
    if above_minus_one(eta) <= 1:
        return float(eta)
    raise BadParameter(
        "DP102",
        f"eta must be above -1 and at most 1, not {eta:g}.",
        why="a greater eta costs more for the same mean.",
        fix="eta=0.0",
    )


def _scale_for(mean_runs: float, eta: float) -> float:
    """The scale of the geometric distribution whose selection runs so often on average, in six
    digits.
    """
    return float(f"{-1 / math.log1p(-gamma_for(mean_runs, eta)):.6g}")


def _mechanisms(candidates: Any) -> tuple[Mechanism, ...]:
    mechanisms = tuple(candidates) if isinstance(candidates, list | tuple) else ()
    if mechanisms and all(isinstance(mechanism, Mechanism) for mechanism in mechanisms):
        return mechanisms
    raise BadParameter(
        "DP104",
        "every argument must be a mechanism.",
        why="a combination has a guarantee only if every part has one.",
        fix="both(Laplace(epsilon=1, sensitivity=1), Laplace(epsilon=1, sensitivity=1))",
    )
