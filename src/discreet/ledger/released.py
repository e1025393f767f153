# SPDX-License-Identifier: Apache-2.0
"""What was released: one line for each charge, in the order of the ledger.

**Guarantee.** Each charge is listed, with or without an answer; what it added is the difference of
the totals that the rows carry, so the lines add up to what was spent. Answers are left out unless
they are asked for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from discreet.json_types import JsonFacts, JsonObject
from discreet.ledger.costs import State
from discreet.ledger.limit import Limit
from discreet.ledger.periods import STREAM
from discreet.ledger.receipt import NOT_DRAWN, Entry
from discreet.privacy.show import least_epsilon
from discreet.privacy.wire import from_json

__all__ = ["ELSEWHERE", "IN_SESSION", "release_lines"]

#: Who drew the noise of a charge. Of what was drawn elsewhere the ledger knows only what it was
#: told.
IN_SESSION, ELSEWHERE = "drawn in a session", "asserted"


def release_lines(entries: Sequence[Entry], limit: Limit, *, answers: bool = False) -> Sequence[JsonFacts]:
    """Every charge as plain JSON types."""
    settled = {entry.settles: entry for entry in entries if entry.kind == "committed"}
    periods = Counter(entry.stream for entry in entries if entry.kind == "period")
    before, lines = State.from_dict(entries[0].state), []
    for entry in entries:
        after = State.from_dict(entry.state)
        if entry.kind == "reserved":
            answer = settled.get(entry.number)
            line = _line(entry, answer, before, after, periods) | {
                "spent_fraction_after": limit.budget(after).spent_fraction
            }
            lines.append(line | ({"answer": answer.answer if answer else None} if answers else {}))
        before = after
    return lines


def _line(
    entry: Entry, answer: Entry | None, before: State, after: State, periods: Mapping[int | None, int]
) -> JsonObject:
    return {
        "number": entry.number,
        "time": entry.time,
        "question": entry.question or "",
        "mechanism": entry.mechanism,
        "in_session": entry.in_session or entry.compiled,
        "noise": IN_SESSION if entry.in_session or entry.compiled else ELSEWHERE,
        **_guarantee_words(entry.guarantee),
        "added": _added_amounts(before, after),
        "analyst": entry.analyst,
        "project": entry.project,
        "purpose": entry.purpose,
        "status": _status(entry, answer, periods),
        "description": entry.description,
        "compiled": entry.compiled,
        "hash": entry.hash,
    }


def _status(entry: Entry, answer: Entry | None, periods: Mapping[int | None, int]) -> str:
    if answer is not None:
        if entry.mechanism == STREAM:
            return (
                f"a stream, paid for when it was opened; periods published: {periods.get(answer.number, 0)}"
            )
        return "charged; could not be drawn" if answer.answer == NOT_DRAWN else "answered"
    return "charged; not answered yet" if entry.held else "charged; no answer was kept"


@lru_cache(maxsize=1024)
def _guarantee_words(wire: str | None) -> Mapping[str, str]:
    """The guarantee that was charged, and its ε as text."""
    if wire is None:
        return {"guarantee": "–", "epsilon": "–"}
    guarantee = from_json(wire)
    return {
        "guarantee": repr(guarantee),
        "epsilon": f"ε = {least_epsilon(guarantee)}".removesuffix(" at δ = 0"),
    }


def _added_amounts(before: State, after: State) -> dict[str, float | None]:
    """What a charge added to each running total; a total that a new window put back to zero counts
    from there.
    """
    grown = {}
    for name, total in after.items():
        start = before.get(name, 0)
        added = total - start if total >= start and start != math.inf else total
        if name not in ("number", "first") and added > 0:
            grown[name] = None if added == math.inf else float(added)
    return grown
