# SPDX-License-Identifier: Apache-2.0
"""A stream as the ledger stores it: everything that is public about it, as JSON.

**Guarantee.** `plan_from_dict(plan_to_dict(plan), …)` has the same matrix, noise, periods and bound,
whatever this version would choose today. A description of which the question now has other
coordinates is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from discreet.errors import BadDescription
from discreet.mechanisms.distributions import GaussianDistribution, LaplaceDistribution
from discreet.privacy.guarantee import Guarantee
from discreet.streams.factor import Factor
from discreet.streams.participation import Participation
from discreet.tables.ask.question import Question
from discreet.tables.ask.start import Dataset
from discreet.tables.plan.groups import kept_rows, public_groups
from discreet.tables.streams.bounded import stream_rows
from discreet.tables.streams.calendar import Calendar
from discreet.tables.streams.entry import KeyEntry
from discreet.tables.streams.plan import StreamPlan, stream_layout

__all__ = ["plan_from_dict", "plan_to_dict"]

_VERSION = 1


def plan_to_dict(plan: StreamPlan) -> dict[str, Any]:
    """A stream as plain JSON types."""
    bound, calendar = plan.participation, plan.calendar
    return {
        "discreet.stream": _VERSION,
        "question": plan.question.text,
        "time": plan.time,
        "every": calendar.every,
        "start": calendar.start.isoformat(),
        "periods": calendar.periods,
        "per_unit": {"rows": bound.rows, "periods": bound.periods, "apart": bound.apart},
        "best_for": plan.measure,
        "factor": {"name": plan.factor.name, "coefficients": list(plan.factor.coefficients)},
        "noise": plan.noise,
        "bits": plan.bits,
        "scales": [distribution.scale for distribution in plan.distributions],
        "reach": list(plan.layout.reach),
        "groups": None if plan.groups is None else len(plan.groups),
        "entry": None if plan.entry is None else plan.entry.to_dict(),
    }


def plan_from_dict(
    stored: Mapping[str, Any], question: Question, dataset: Dataset, guarantee: Guarantee
) -> StreamPlan:
    """The stream that was stored, for its question and its data."""
    if stored["discreet.stream"] > _VERSION:
        raise _unreadable_stream_error("DP402", "it is from a newer version of discreet.")
    calendar = Calendar(stored["every"], date.fromisoformat(stored["start"]), stored["periods"])
    bound = Participation(**stored["per_unit"])
    source = stream_rows(question, kept_rows(question), dataset, stored["time"], calendar, bound)
    layout = stream_layout(question, stored["noise"], stored["bits"])
    groups = public_groups(question)
    if layout.reach != stored["reach"] or (None if groups is None else len(groups)) != stored["groups"]:
        raise _unreadable_stream_error("DP401", "its columns or groups are not those that it was opened with.")
    kind = GaussianDistribution if stored["noise"] == "gaussian" else LaplaceDistribution
    return StreamPlan(
        question,
        source,
        stored["time"],
        dataset.unit,
        stored["best_for"],
        Factor(tuple(stored["factor"]["coefficients"]), calendar.periods, stored["factor"]["name"]),
        stored["noise"],
        stored["bits"],
        layout,
        tuple(kind(scale) for scale in stored["scales"]),
        guarantee,
        None if groups is None else tuple(groups),
        None if stored["entry"] is None else KeyEntry.from_dict(stored["entry"]),
    )


def _unreadable_stream_error(code: str, reason: str) -> BadDescription:
    return BadDescription(
        code,
        f"the stream cannot be continued: {reason}",
        why="a row that is encoded or read in another way than the rows before it would be wrong.",
        fix="open the data with the description that the stream was opened with, or open a new stream:  name='visits from 2027'",
    )
