# SPDX-License-Identifier: Apache-2.0
"""The report of an audit: lower bounds, the events that prove them, and the whole curve with its
band.

**Guarantee.** With probability `confidence` every number of a report is true at the same time: each
event's corner, the band at every threshold, and so `epsilon_at_least` for every δ, `mu_at_least`,
and `refutes` for a claim that was named before the outputs were looked at. A report never proves
that a mechanism is private.
"""

from __future__ import annotations

import html
import json
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet import check
from discreet.audit.bounds import Array, Corners, Excess, excess
from discreet.audit.scores import Mask, Score
from discreet.audit.witness import CLOPPER_PEARSON, DKW, Event, Rate
from discreet.errors import BadParameter
from discreet.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["AuditReport", "AuditRoc"]

#: Where ε is printed.
_DELTAS = (0.0, 1e-3)


@dataclass(frozen=True, eq=False)
class AuditRoc:
    """The empirical ROC of one score on fresh runs, and a band that holds at all its points at
    once.

    Point i is the event that the score reaches `thresholds[i]`: `hits` of so many `runs` on x,
    `hits_neighbour` on the neighbour. Its two rates are certified, each by the theorem that
    `*_sharp` says: Clopper and Pearson with the error probability `point_error`, else Dvoretzky,
    Kiefer and Wolfowitz with `band_error`.

    **Guarantee.** Both bounds hold at all points at once, except with the error probability of the
    report. What would break it: runs that are not independent, or a score that has seen them.
    """

    score: Score = field(repr=False)
    runs: int
    thresholds: Array
    hits: Array
    hits_neighbour: Array
    detection_at_least: Array
    false_alarm_at_most: Array
    detection_sharp: Mask
    false_alarm_sharp: Mask
    point_error: float
    band_error: float

    @property
    def name(self) -> str:
        """What the score looks at."""
        return str(getattr(self.score, "name", "several cells"))

    @property
    def detection(self) -> Array:
        """The share of the runs on x that reach each threshold."""
        return self.hits / self.runs

    @property
    def false_alarm(self) -> Array:
        """The share of the runs on the neighbour that reach each threshold."""
        return self.hits_neighbour / self.runs

    @property
    def corners(self) -> Corners:
        """The certified points."""
        return Corners(self.false_alarm_at_most, self.detection_at_least)

    def event(self, index: int, *, on_neighbour: bool) -> Event:
        """One point as an event that is likelier on x, or its complement, which is likelier on the
        neighbour.
        """
        on_x = self._rate(self.hits, self.detection_at_least, self.detection_sharp, index)
        on_other = self._rate(self.hits_neighbour, self.false_alarm_at_most, self.false_alarm_sharp, index)
        words = self.score.words(float(self.thresholds[index]), above=not on_neighbour)
        if on_neighbour:
            return Event(words, "neighbour", on_other.complement, on_x.complement)
        return Event(words, "x", on_x, on_other)

    def _rate(self, hits: Array, bound: Array, sharp: Mask, index: int) -> Rate:
        method, error = (CLOPPER_PEARSON, self.point_error) if sharp[index] else (DKW, self.band_error)
        return Rate(int(hits[index]), self.runs, float(bound[index]), method, error)

    def certified_detection(self, false_alarm: npt.ArrayLike) -> Array:
        """The detection that is certified at false-alarm rates: the best corner that does not
        exceed each.
        """
        order = np.argsort(self.false_alarm_at_most, kind="stable")
        best = np.maximum.accumulate(self.detection_at_least[order])
        index = np.searchsorted(self.false_alarm_at_most[order], false_alarm, side="right")
        return np.asarray(np.concatenate([[0.0], best])[index])

    def to_dict(self) -> dict[str, object]:
        """As plain JSON types."""
        listed = ("hits", "hits_neighbour", "detection_at_least", "false_alarm_at_most")
        rates = {"false_alarm": self.false_alarm.tolist(), "detection": self.detection.tolist()}
        return {"score": self.name, "runs": self.runs, **rates} | {
            name: getattr(self, name).tolist() for name in listed
        }


@dataclass(frozen=True, eq=False)
class AuditReport:
    """The outcome of the two-sample game on one pair of neighbouring inputs.

    **Guarantee.** See `discreet.audit.report`. `refutes()` is True only if the outputs contradict
    the claim; that happens for a claim that holds with probability 1 - confidence at most.
    """

    trials: int
    confidence: float
    claim: Guarantee | None
    events: tuple[Event, ...]
    roc: AuditRoc
    #: What each test may spend of the error probability.
    shares: dict[str, float]
    seconds: float = 0.0
    inputs: tuple[object, object] = field(default=(None, None), repr=False)

    def epsilon_at_least(self, delta: float = 0.0) -> float:
        """No (ε, δ) guarantee with a smaller ε holds; `epsilon_witness` is the event that proves
        it.
        """
        return self.corners.epsilon(check.delta(delta=delta))

    @property
    def mu_at_least(self) -> float:
        """No μ-Gaussian guarantee with a smaller μ holds; `mu_witness` is the event that proves it."""
        return self.corners.mu()

    def refutes(self, claim: Guarantee | None = None) -> bool:
        """Whether the outputs contradict a guarantee; the mechanism's own, or the stated one, if
        none is given.
        """
        return self.excess(claim).amount > 0

    def excess(self, claim: Guarantee | None = None) -> Excess:
        """How far the certified detection rate lies above the most that the claim allows."""
        claim = claim if claim is not None else self.claim
        if isinstance(claim, Guarantee):
            return self._own if claim is self.claim else excess(self.corners, claim)
        raise BadParameter(
            "DP107",
            "there is no claim to compare with.",
            why="a plain function does not state a guarantee.",
            fix="report.refutes(privacy.pure(1.0))",
        )

    @property
    def witness(self) -> Event:
        """The event that proves most: against the claim if it is refuted, else of ε at δ = 0."""
        refuted = self.claim is not None and self.refutes()
        return self.claim_witness() if refuted else self.epsilon_witness()

    def epsilon_witness(self, delta: float = 0.0) -> Event:
        """The event whose two rates prove `epsilon_at_least(delta)`."""
        index = self.corners.best_epsilon(check.delta(delta=delta))[1]
        count = self.corners.detection.size
        return self._event(index % count, on_neighbour=index >= count)

    @property
    def mu_witness(self) -> Event:
        """The event whose two rates prove `mu_at_least`."""
        index = self.corners.best_mu()[1]
        on_neighbour = index < len(self.events) and self.events[index].likelier_on == "neighbour"
        return self._event(index, on_neighbour=on_neighbour)

    def claim_witness(self, claim: Guarantee | None = None) -> Event:
        """The event that lies highest above what a claim allows; it refutes the claim if `refutes`
        says so.
        """
        highest = self.excess(claim)
        return self._event(highest.index, on_neighbour=highest.reversed)

    def _event(self, index: int, *, on_neighbour: bool) -> Event:
        """The event of a corner, as a test for x or for the neighbour."""
        if index >= len(self.events):
            return self.roc.event(index - len(self.events), on_neighbour=on_neighbour)
        event = self.events[index]
        return event if (event.likelier_on == "neighbour") is on_neighbour else event.complement

    @cached_property
    def corners(self) -> Corners:
        """Every certified point: the events first, then the band."""
        return Corners.join(*(event.corner for event in self.events), self.roc.corners)

    @cached_property
    def _own(self) -> Excess:
        assert self.claim is not None
        return excess(self.corners, self.claim)

    # --- display and storage ----------------------------------------------------------------------

    def plot(self, ax: Axes | None = None) -> Figure:
        """The claimed ROC curve, and between what was measured and what is certified of it a band."""
        from discreet.plot import Band, roc

        where = np.unique(np.concatenate([self.roc.false_alarm, np.linspace(0, 1, 201)]))
        order = np.lexsort((self.roc.detection, self.roc.false_alarm))
        measured = np.interp(where, self.roc.false_alarm[order], self.roc.detection[order])
        low = np.minimum(self.roc.certified_detection(where), measured)
        band = Band(where.tolist(), low.tolist(), measured.tolist(), name="certified to measured")
        claims = {} if self.claim is None else {"claimed": self.claim}
        return roc(claims, bands=[band], ax=ax)

    def rows(self) -> list[tuple[str, str]]:
        """The findings, as (name, value); each bound is followed by the event that proves it."""
        verdict = [] if self.claim is None else [("claim", f"{self.claim!r}"), *self.verdict(self.claim)]
        bounds = [row for delta in _DELTAS for row in self._epsilon_rows(delta)]
        mu, proof = self.mu_witness.mu_at_least, str(self.mu_witness)
        low, high = self.mu_witness.printed
        return [
            *verdict,
            *_without_repeats(bounds),
            ("μ at least", f"{_down(mu)}: z({low:.7g}) - z({high:.7g})" if mu > 0 else _down(0.0)),
            *([("witness", proof)] if mu > 0 else []),
            ("trials", f"{self.trials} on each input, half of them to learn, half to measure"),
            ("confidence", f"{self.confidence:.12g}, for everything above at once"),
            ("time", f"{self.seconds:.1f} s"),
        ]

    def _epsilon_rows(self, delta: float) -> list[tuple[str, str]]:
        event = self.epsilon_witness(delta)
        bound, (low, high) = event.epsilon_at_least(delta), event.printed
        if bound <= 0:
            return [("ε at least", f"{_down(0.0)} at δ = {delta:g}: no event told the inputs apart")]
        finding = f"{_down(bound)} at δ = {delta:g}: ln(({low:.7g} - {delta:g}) / {high:.7g})"
        return [("ε at least", finding), ("witness", str(event))]

    def verdict(self, claim: Guarantee) -> list[tuple[str, str]]:
        """Whether a claim is refuted, and by which event."""
        if not self.refutes(claim):
            return [("verdict", "not refuted")]
        event = self.claim_witness(claim)
        here = "x" if event.likelier_on == "x" else "x'"
        allowed = 1 - claim.tradeoff(event.printed[1])
        return [
            ("verdict", "REFUTED"),
            ("witness", f"{event}; the claim allows at most {allowed:.7g} on {here}"),
        ]

    def to_json(self) -> str:
        """Everything but the inputs, as JSON; infinite numbers do not occur."""
        excess_ = self.excess() if self.claim is not None else None
        document = {
            "schema": 2,
            "trials": self.trials,
            "confidence": self.confidence,
            "claim": json.loads(self.claim.to_json()) if self.claim is not None else None,
            "refuted": excess_.amount > 0 if excess_ else None,
            "excess": excess_.amount if excess_ else None,
            "epsilon_at_least": self.epsilon_at_least(),
            "mu_at_least": self.mu_at_least,
            "bounds": [self._bound_dict(delta) for delta in _DELTAS],
            "mu_witness": self.mu_witness.to_dict(),
            "witness": self.witness.to_dict(),
            "events": [event.to_dict() for event in self.events],
            "roc": self.roc.to_dict(),
            "error_shares": self.shares,
            "seconds": self.seconds,
        }
        return json.dumps(document, ensure_ascii=False, allow_nan=False)

    def _bound_dict(self, delta: float) -> dict[str, object]:
        proof = self.epsilon_witness(delta).to_dict()
        return {"delta": delta, "epsilon_at_least": self.epsilon_at_least(delta), "witness": proof}

    def __str__(self) -> str:
        return "\n".join(f"{name:<11} {value}" for name, value in self.rows())

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
            for name, value in self.rows()
        )
        return f"<table>{cells}</table>"


def _without_repeats(rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Rows, where an event that proves two bounds is written out once."""
    values: set[str] = set()
    distinct = []
    for name, value in rows:
        distinct.append((name, "the same event" if name == "witness" and value in values else value))
        values.add(value)
    return distinct


def _down(value: float) -> str:
    """Four digits, rounded down, because it is a lower bound."""
    return f"{math.floor(value * 1e4) / 1e4:.4f}"
