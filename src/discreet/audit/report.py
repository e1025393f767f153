# SPDX-License-Identifier: Apache-2.0
"""What an audit found: lower bounds, the event that witnesses them, and the whole curve with its band.

**Promise.** With probability `confidence` every number of a report is true at the same time: each event's corner, the
band at every threshold, and so `epsilon_at_least` for every δ, `mu_at_least`, and `refutes` for a claim that was named
before the outputs were looked at. A report never proves that a mechanism is private.
"""

from __future__ import annotations

import html
import json
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet import check
from discreet.audit.bounds import Array, Corners, Excess, excess
from discreet.errors import BadParameter
from discreet.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["AuditReport", "AuditRoc", "Event"]


@dataclass(frozen=True)
class Event:
    """Something that an attacker can look for in an output, and how often fresh runs on each input showed it."""

    words: str
    hits: int
    hits_neighbour: int
    trials: int
    detection_at_least: float
    false_alarm_at_most: float
    reversed: bool

    def __str__(self) -> str:
        shares = [f"{hits / self.trials:.4%}" for hits in (self.hits, self.hits_neighbour)]
        return f"{self.words}: {shares[0]} of the runs on x, {shares[1]} of those on its neighbour"

    @property
    def corner(self) -> Corners:
        """As a test of x against its neighbour."""
        detection, false_alarm = self.detection_at_least, self.false_alarm_at_most
        if self.reversed:
            detection, false_alarm = 1 - false_alarm, 1 - detection
        return Corners(np.array([false_alarm]), np.array([detection]))


@dataclass(frozen=True, eq=False)
class AuditRoc:
    """The empirical ROC of one score on fresh runs, and a band that holds at all its points at once."""

    false_alarm: Array
    detection: Array
    false_alarm_at_most: Array
    detection_at_least: Array
    score: str

    @property
    def corners(self) -> Corners:
        """The certified points."""
        return Corners(self.false_alarm_at_most, self.detection_at_least)

    def certified(self, false_alarm: Any) -> Array:
        """The detection that is certified at false-alarm rates: the best corner that does not exceed each."""
        order = np.argsort(self.false_alarm_at_most, kind="stable")
        best = np.maximum.accumulate(self.detection_at_least[order])
        place = np.searchsorted(self.false_alarm_at_most[order], false_alarm, side="right")
        return np.asarray(np.concatenate([[0.0], best])[place])


@dataclass(frozen=True, eq=False)
class AuditReport:
    """The outcome of the two-sample game on one pair of neighbouring inputs.

    **Promise.** See `discreet.audit.report`. `refutes()` is True only if the outputs contradict the claim; that happens
    for a claim that holds with probability 1 - confidence at most.
    """

    trials: int
    confidence: float
    claim: Guarantee | None
    events: tuple[Event, ...]
    roc: AuditRoc
    shares: dict[str, float]  # what each test may spend of the error probability
    seconds: float = 0.0
    inputs: tuple[Any, Any] = field(default=(None, None), repr=False)

    def epsilon_at_least(self, delta: float = 0.0) -> float:
        """No (ε, δ) promise with a lesser ε holds."""
        return self.corners.epsilon(check.delta(delta=delta))

    @property
    def mu_at_least(self) -> float:
        """No μ-Gaussian promise with a lesser μ holds."""
        return self.corners.mu()

    def refutes(self, claim: Guarantee | None = None) -> bool:
        """Whether the outputs contradict a guarantee; the mechanism's own, or the stated one, if none is given."""
        return self.excess(claim).amount > 0

    def excess(self, claim: Guarantee | None = None) -> Excess:
        """How far the certified detection rate lies above the most that the claim allows."""
        claim = claim if claim is not None else self.claim
        if isinstance(claim, Guarantee):
            return self._own if claim is self.claim else excess(self.corners, claim)
        raise BadParameter(
            "DP107",
            "there is no claim to compare with.",
            why="a function does not say what it promises.",
            fix="report.refutes(privacy.pure(1.0))",
        )

    @property
    def witness(self) -> str:
        """The event that proves most, in words: against the claim if it is refuted, else of ε."""
        place = self.excess().place if self.claim is not None and self.refutes() else None
        if place is not None and place >= len(self.events):
            return self._band_words(place - len(self.events))
        best = max(self.events, key=lambda event: event.corner.epsilon(0.0))
        return str(best if place is None else self.events[place])

    @cached_property
    def corners(self) -> Corners:
        """Every certified point: the events first, then the band."""
        return Corners.joined(*(event.corner for event in self.events), self.roc.corners)

    @cached_property
    def _own(self) -> Excess:
        assert self.claim is not None
        return excess(self.corners, self.claim)

    def _band_words(self, place: int) -> str:
        false_alarm, detection = self.roc.false_alarm[place], self.roc.detection[place]
        return (
            f"the score by {self.roc.score} detects x in {detection:.4%} of the runs, "
            f"with {false_alarm:.4%} false alarms"
        )

    # --- display and storage -----------------------------------------------------------------------

    def plot(self, ax: Axes | None = None) -> Figure:
        """The claimed ROC curve, and between what was measured and what is certified of it a band."""
        from discreet.plot import Band, roc

        where = np.unique(np.concatenate([self.roc.false_alarm, np.linspace(0, 1, 201)]))
        order = np.lexsort((self.roc.detection, self.roc.false_alarm))
        measured = np.interp(where, self.roc.false_alarm[order], self.roc.detection[order])
        low = np.minimum(self.roc.certified(where), measured)
        band = Band(where.tolist(), low.tolist(), measured.tolist(), name="certified to measured")
        claims = {} if self.claim is None else {"claimed": self.claim}
        return roc(claims, bands=[band], ax=ax)

    def rows(self) -> list[tuple[str, str]]:
        """The findings, as (name, value)."""
        verdict = []
        if self.claim is not None:
            words = "REFUTED" if self.refutes() else "not refuted"
            verdict = [("claim", f"{self.claim!r}"), ("verdict", words)]
        return [
            *verdict,
            (
                "ε at least",
                f"{_down(self.epsilon_at_least())} (δ = 0), {_down(self.epsilon_at_least(1e-3))} (δ = 0.001)",
            ),
            ("μ at least", _down(self.mu_at_least)),
            ("witness", self.witness),
            ("trials", f"{self.trials} on each input, half of them to learn, half to measure"),
            ("confidence", f"{self.confidence:g}, for everything above at once"),
            ("time", f"{self.seconds:.1f} s"),
        ]

    def to_json(self) -> str:
        """Everything but the inputs, as JSON; infinite numbers do not occur."""
        excess_ = self.excess() if self.claim is not None else None
        found = {
            "schema": 1,
            "trials": self.trials,
            "confidence": self.confidence,
            "claim": json.loads(self.claim.to_json()) if self.claim is not None else None,
            "refuted": excess_.amount > 0 if excess_ else None,
            "excess": excess_.amount if excess_ else None,
            "epsilon_at_least": self.epsilon_at_least(),
            "mu_at_least": self.mu_at_least,
            "witness": self.witness,
            "events": [vars(event) for event in self.events],
            "roc": {
                key: value if key == "score" else value.tolist() for key, value in vars(self.roc).items()
            },
            "error_shares": self.shares,
            "seconds": self.seconds,
        }
        return json.dumps(found, ensure_ascii=False, allow_nan=False)

    def __str__(self) -> str:
        return "\n".join(f"{name:<11} {value}" for name, value in self.rows())

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
            for name, value in self.rows()
        )
        return f"<table>{cells}</table>"


def _down(value: float) -> str:
    """Four digits, rounded down, because it is a lower bound."""
    return f"{math.floor(value * 1e4) / 1e4:.4f}"
