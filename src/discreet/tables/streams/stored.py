# SPDX-License-Identifier: Apache-2.0
"""A stream as the ledger stores it: everything that is public about it, as JSON.

**Guarantee.** `plan_from_dict(plan_to_dict(plan), …)` has the same matrix, noise, periods and
bound, whatever this version would choose today. Where the question now has other columns or groups,
or a newer version has stored the stream, it raises ValueError.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from discreet.mechanisms.distributions import GaussianDistribution, LaplaceDistribution
from discreet.privacy.guarantee import Guarantee
from discreet.streams.factor import Factor
from discreet.streams.participation import Participation
from discreet.tables.algebra.sums import GroupKey
from discreet.tables.answer.frames import plain_value
from discreet.tables.ask.question import Question
from discreet.tables.ask.start import Dataset
from discreet.tables.plan.groups import public_groups
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
        "groups": _digest_of_groups(plan.groups),
        "entry": None if plan.entry is None else plan.entry.to_dict(),
    }


def plan_from_dict(
    stored: Mapping[str, Any], question: Question, dataset: Dataset, guarantee: Guarantee
) -> StreamPlan:
    """The stream that was stored, for its question and its data."""
    if stored["discreet.stream"] > _VERSION:
        raise ValueError
    calendar = Calendar(stored["every"], date.fromisoformat(stored["start"]), stored["periods"])
    bound = Participation(**stored["per_unit"])
    source = stream_rows(question, dataset, stored["time"], calendar, bound)
    layout = stream_layout(question, stored["noise"], stored["bits"])
    groups = public_groups(question)
    if layout.reach != stored["reach"] or _digest_of_groups(groups) != stored["groups"]:
        raise ValueError
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


def _digest_of_groups(groups: Sequence[GroupKey] | None) -> str | None:
    """What tells public groups from others; None where keys are private."""
    if groups is None:
        return None
    text = json.dumps([[plain_value(part) for part in group] for group in groups], ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
