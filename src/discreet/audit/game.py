# SPDX-License-Identifier: Apache-2.0
"""The two-sample game: outputs on x and on a neighbour are told apart as well as possible, and that
is measured.

The runs on each input are cut into three parts. On the first (a quarter) scores are learned; on the
second (a quarter) the most telling score, events and thresholds are chosen; on the third (a half),
which nothing has seen, they are measured. The error probability 1 - confidence is shared out before
anything is drawn:

    one half       the events, one for each direction for ε, and another for the excess over a claim: the interval
                   of Clopper and Pearson for each of the two rates
    one quarter    the ROC curve at every threshold at once: the inequality of Dvoretzky, Kiefer and Wolfowitz
    one quarter    the ROC curve at thresholds that were chosen before: Clopper and Pearson, sharper in the tails
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet import check
from discreet.audit.bounds import Array, Corners, claimed_curve, clopper_pearson, dkw
from discreet.audit.cells import candidates, sample_of
from discreet.audit.draws import Auditable, Chunk, ExceptionOutcome, Progress, draw_all, guarantee_of
from discreet.audit.outputs import OutputColumn
from discreet.audit.report import AuditReport, AuditRoc
from discreet.audit.scores import Score
from discreet.audit.witness import CLOPPER_PEARSON, Event, Rate
from discreet.errors import BadParameter
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.tradeoff import Roc

__all__ = ["audit", "audit_bits"]

_LEAST_TRIALS = 100
#: Thresholds among which the best is looked for.
_GRID = 256
#: Thresholds at which the band is sharpened.
_SHARPENED = 64
#: Points of the curve in a report.
_POINTS = 1001
_LOOKS = ("everything", "values", "bits")


@check.arguments
def audit(
    mechanism: Auditable,
    x: object,
    x_neighbour: object,
    *,
    trials: int = 100_000,
    confidence: float = 0.999,
    claim: Guarantee | None = None,
    look_at: str = "everything",
    workers: int | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """Play the two-sample game with a mechanism, or any function of the data, on two neighbouring
    inputs.

    **Guarantee.** If the mechanism keeps its claim on this pair, `report.refutes()` is True with
    probability 1 - confidence at most; the same holds for every lower bound of the report, all of
    them together. A claim that is not refuted is not proved: another pair of inputs, or more
    trials, might refute it.

    Why it holds: what is measured was chosen on other runs than those it is measured on; the
    intervals are exact for every number of runs; the shares of the error probability add up
    (`report.shares`).

    What would break it: runs that are not independent, such as a generator that is seeded anew in
    every call; inputs that are not neighbours. Audit on made-up data: the report is not private.

    `mechanism` is a `Mechanism`, a function from data to an output of any kind, or
    `batched(function)`. So many `trials` are drawn on each input. `claim` is by default what a
    mechanism states of itself. `look_at` is everything, the values or the bits of floating-point
    numbers alone.

    >>> from discreet.audit import audit
    >>> report = audit(len, [1, 2, 3], [1, 2], trials=2_000)
    >>> report.epsilon_at_least() > 4
    True
    """
    started = time.perf_counter()
    trials = check.whole(at_least=_LEAST_TRIALS, trials=trials)
    alpha = 1 - check.inner_probability(confidence=confidence)
    look_at = check.choice(_LOOKS, look_at=look_at)
    claim = _validate_claim(claim) if claim is not None else guarantee_of(mechanism, x)
    inputs = (x, x_neighbour)
    outputs = draw_all(mechanism, inputs, trials, workers, progress)
    _check_some_output(outputs)
    plan = _AuditPlan(alpha, claim)
    # Outputs may be as large as floats go. A score that overflows is a bad score.
    with np.errstate(all="ignore"):
        events, roc = _measure(outputs, inputs, trials, look_at, plan)
    seconds = time.perf_counter() - started
    return AuditReport(trials, confidence, claim, events, roc, plan.shares(), seconds, inputs)


def _measure(
    outputs: tuple[list[Chunk], list[Chunk]],
    inputs: tuple[object, object],
    trials: int,
    look_at: str,
    plan: _AuditPlan,
) -> tuple[tuple[Event, ...], AuditRoc]:
    """Learn, choose and measure, each on runs of its own."""
    learn, choose, measure = _parts(trials)
    sample = sample_of(outputs, inputs, trials, learn, look_at)
    scores = candidates(*sample.at(learn))
    chosen, shape = _choose(scores, _sort_scores(scores, sample.at(choose)), plan)
    fresh = sample.at(measure)
    events = tuple(_event(choice, _sort_scores([choice.score], fresh)[0], plan) for choice in chosen)
    return events, _audit_roc(shape, _sort_scores([shape.score], fresh)[0], plan)


@check.arguments
def audit_bits(
    mechanism: Auditable,
    x: object,
    x_neighbour: object,
    *,
    trials: int = 100_000,
    confidence: float = 0.999,
    claim: Guarantee | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """Play the same game on the bits of floating-point outputs alone, to find a leak that is not in
    the value.

    **Guarantee.** That of `audit`. Only the cells of `discreet.audit.cells` are looked at, because
    float noise leaks through the last bits (Mironov 2012; Jin, McMurtry, Rubinstein, Ohrimenko
    2022).

    >>> from discreet.audit import audit_bits
    >>> report = audit_bits(lambda data: float(sum(data)) / 3, [1, 1], [1], trials=2_000)
    >>> report.epsilon_at_least() > 4
    True
    """
    return audit(
        mechanism,
        x,
        x_neighbour,
        trials=trials,
        confidence=confidence,
        claim=claim,
        look_at="bits",
        workers=workers,
        progress=progress,
    )


@dataclass(frozen=True)
class _AuditPlan:
    """How the error probability is shared out, and what is looked for."""

    alpha: float
    claim: Guarantee | None

    @property
    def events(self) -> int:
        return 2 if self.claim is None else 4

    @property
    def of_event(self) -> float:
        """For each of the two rates of each event."""
        return self.alpha / 2 / self.events / 2

    @property
    def of_band(self) -> float:
        """For each of the two empirical distribution functions."""
        return self.alpha / 4 / 2

    @property
    def of_point(self) -> float:
        """For each of the two rates at each threshold of the sharpened band."""
        return self.alpha / 4 / 2 / _SHARPENED

    def shares(self) -> dict[str, float]:
        return {
            "each rate of each event": self.of_event,
            "each side of the band": self.of_band,
            "each rate at each chosen threshold": self.of_point,
            "in all": self.alpha,
        }


@dataclass(frozen=True, eq=False)
class _Constant:
    """The score of outputs that never differ."""

    def of(self, columns: dict[str, OutputColumn]) -> Array:
        return np.zeros(len(next(iter(columns.values()))))

    def words(self, threshold: float, *, above: bool) -> str:
        return "any output"


@dataclass(frozen=True, eq=False)
class _Choice:
    """A score with the thresholds that matter, and for an event the one that was chosen."""

    score: Score
    grid: Array
    threshold: float
    reversed: bool = False


#: The scores of the runs on x and of those on its neighbour, each in order.
Sides = tuple[Array, Array]


def _parts(trials: int) -> tuple[slice, slice, slice]:
    quarter = trials // 4
    return slice(0, quarter), slice(quarter, 2 * quarter), slice(2 * quarter, trials)


def _sort_scores(
    scores: Sequence[Score], part: tuple[dict[str, OutputColumn], npt.NDArray[np.bool_]]
) -> list[Sides]:
    columns, first = part
    sorted_scores = []
    for score in scores:
        values = np.nan_to_num(score.of(columns), nan=0.0) if columns else np.zeros(first.size)
        sorted_scores.append((np.sort(values[first]), np.sort(values[~first])))
    return sorted_scores


def _choose(scores: list[Score], scored: list[Sides], plan: _AuditPlan) -> tuple[list[_Choice], _Choice]:
    """The best (score, threshold) for every question, and the best score for the curve."""
    if not scores:
        alone = _Choice(_Constant(), np.zeros(1), 0.0)
        return [alone] * plan.events, alone
    grids = [_grid(sides) for sides in scored]
    corners = [_corners(sides, grid, plan.of_event) for sides, grid in zip(scored, grids, strict=True)]
    allowed = claimed_curve(plan.claim) if plan.claim is not None else None
    curves = [None] if allowed is None else [None, allowed]
    events = []
    for reverse in (False, True):
        for curve in curves:
            worth = [_worth(c, curve, reverse=reverse) for c in corners]
            best = max(range(len(scores)), key=lambda i: float(worth[i].max()))
            threshold = grids[best][int(np.argmax(worth[best]))]
            events.append(_Choice(scores[best], grids[best], float(threshold), reverse))
    total = [
        max(_worth(c, allowed, reverse=reverse).max() for reverse in (False, True)) if allowed else c.mu()
        for c in corners
    ]
    best = int(np.argmax(total))
    return events, _Choice(scores[best], grids[best], 0.0)


def _worth(corners: Corners, allowed: Roc | None, *, reverse: bool) -> Array:
    """What a corner proves: the logarithm of the ratio of its rates, or its height above the
    claimed curve.
    """
    detection, false_alarm = corners.detection, corners.false_alarm
    if reverse:
        detection, false_alarm = 1 - false_alarm, 1 - detection
    if allowed is not None:
        return np.asarray(detection - np.interp(false_alarm, allowed.false_alarm, allowed.detection))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.log(detection / false_alarm), nan=-np.inf, posinf=1e300, neginf=-1e300)


def _grid(sides: Sides) -> Array:
    """Thresholds: every value if there are few, else quantiles that lie denser towards both ends."""
    values = np.unique(np.concatenate(sides))
    if values.size <= _GRID:
        return values
    tail = np.geomspace(2 / values.size, 0.1, _GRID // 4)
    shares = np.concatenate([tail, np.linspace(0.1, 0.9, _GRID // 2), 1 - tail])
    return np.unique(values[(shares * (values.size - 1)).astype(int)])


def _hits(sides: Sides, thresholds: Array) -> tuple[Array, Array]:
    """How many runs on each input reach each threshold."""
    first, second = (
        (side.size - np.searchsorted(side, thresholds, side="left")).astype(float) for side in sides
    )
    return first, second


def _corners(sides: Sides, thresholds: Array, alpha: float) -> Corners:
    """What Clopper and Pearson certify at each threshold."""
    on_x, on_neighbour = _hits(sides, thresholds)
    detection = clopper_pearson(on_x, sides[0].size, alpha)[0]
    return Corners(clopper_pearson(on_neighbour, sides[1].size, alpha)[1], detection)


def _event(choice: _Choice, sides: Sides, plan: _AuditPlan) -> Event:
    """A chosen event on fresh runs: where it is likelier its rate is bounded from below, on the
    other input from above.
    """
    counts = [int(count[0]) for count in _hits(sides, np.array([choice.threshold]))]
    words = choice.score.words(choice.threshold, above=not choice.reversed)
    if choice.reversed:
        counts = [sides[1].size - counts[1], sides[0].size - counts[0]]
    runs, error = sides[0].size, plan.of_event
    low, high = clopper_pearson(counts[0], runs, error)[0], clopper_pearson(counts[1], runs, error)[1]
    often, seldom = (
        Rate(count, runs, float(bound), CLOPPER_PEARSON, error)
        for count, bound in zip(counts, (low, high), strict=True)
    )
    return Event(words, "neighbour" if choice.reversed else "x", often, seldom)


def _audit_roc(choice: _Choice, sides: Sides, plan: _AuditPlan) -> AuditRoc:
    """The curve of one score: at the thresholds that were chosen, and at those that the fresh runs
    show.
    """
    places = np.linspace(0, choice.grid.size - 1, min(_SHARPENED, choice.grid.size)).astype(int)
    sharp = choice.grid[places]
    values = np.unique(np.concatenate(sides))
    spread = values[np.linspace(0, values.size - 1, min(_POINTS, values.size)).astype(int)]
    thresholds, runs = np.concatenate([sharp, spread]), sides[0].size
    hits, hits_neighbour = _hits(sides, thresholds)
    detection = np.clip(hits / runs - dkw(runs, plan.of_band), 0, 1)
    false_alarm = np.clip(hits_neighbour / runs + dkw(runs, plan.of_band), 0, 1)
    certain = _corners(sides, sharp, plan.of_point)
    better, fewer = np.zeros(thresholds.size, bool), np.zeros(thresholds.size, bool)
    better[: sharp.size] = certain.detection > detection[: sharp.size]
    fewer[: sharp.size] = certain.false_alarm < false_alarm[: sharp.size]
    detection[: sharp.size] = np.maximum(detection[: sharp.size], certain.detection)
    false_alarm[: sharp.size] = np.minimum(false_alarm[: sharp.size], certain.false_alarm)
    order = np.lexsort((hits, hits_neighbour))
    return AuditRoc(
        choice.score,
        runs,
        thresholds=thresholds[order],
        hits=hits[order],
        hits_neighbour=hits_neighbour[order],
        detection_at_least=detection[order],
        false_alarm_at_most=false_alarm[order],
        detection_sharp=better[order],
        false_alarm_sharp=fewer[order],
        point_error=plan.of_point,
        band_error=plan.of_band,
    )


def _validate_claim(claim: object) -> Guarantee:
    if isinstance(claim, Guarantee):
        return claim
    raise BadParameter(
        "DP104",
        f"claim must be a guarantee, not {type(claim).__name__}.",
        why="the attacker's best curve under the claim is compared with what was measured.",
        fix="claim=privacy.pure(1.0)",
    )


def _check_some_output(outputs: tuple[list[Chunk], list[Chunk]]) -> None:
    """A function that never returns was called wrongly; one that fails on one input only leaks."""
    chunks = [*outputs[0], *outputs[1]]
    if all(isinstance(chunk, list) and isinstance(chunk[0], ExceptionOutcome) for chunk in chunks):
        kinds = {
            output.kind if isinstance(output, ExceptionOutcome) else ""
            for chunk in chunks
            for output in chunk
        }
        if "" not in kinds:
            raise BadParameter(
                "DP107",
                f"every run on both inputs raised {', '.join(sorted(kinds))}.",
                why="there is no output to look at.",
                fix="call the function once by hand:  mechanism(x)",
            )
