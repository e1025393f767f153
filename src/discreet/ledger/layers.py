# SPDX-License-Identifier: Apache-2.0
"""On what a promise rests, layer by layer, in the order of the pyramid of NIST SP 800-226.

**Promise.** Every line is marked: *enforced* by the software (it refuses otherwise), *asserted* by the curator (the promise
depends on it, and nothing here checks it), or *not covered* (nothing is promised about it). A line is marked enforced only
for what goes through a session and a ledger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from discreet.ledger.limit import Limit
from discreet.ledger.odometer import Odometer
from discreet.ledger.plan import Plan
from discreet.ledger.shares import Shared
from discreet.ledger.window import Windowed

__all__ = ["ASSERTED", "ENFORCED", "NOT_COVERED", "layers"]

ENFORCED, ASSERTED, NOT_COVERED = "enforced by the software", "asserted by the curator", "not covered"

Line = tuple[str, str, str]


def layers(
    limit: Limit,
    description: Mapping[str, Any] | None,
    released: Sequence[Mapping[str, Any]],
    *,
    forgets: bool = False,
) -> list[dict[str, Any]]:
    """The five layers, the most visible one first; `forgets` says that the ledger is in memory only."""
    found: dict[str, Iterator[Line]] = {
        "Privacy loss and unit": _loss(limit, description),
        "Algorithms and correctness": _algorithms(description, released),
        "Security and side channels": _security(forgets=forgets),
        "Access control": _access(limit),
        "Data collection": _collection(),
    }
    return [
        {"layer": name, "lines": [dict(zip(("what", "mark", "words"), line, strict=True)) for line in lines]}
        for name, lines in found.items()
    ]


def _loss(limit: Limit, description: Mapping[str, Any] | None) -> Iterator[Line]:
    if isinstance(limit, Odometer):
        yield "ε and δ", NOT_COVERED, "there is no limit; the ledger only says how far the loss has come."
    else:
        yield "ε and δ", ENFORCED, f"the ledger refuses what would exceed the limit ({limit.theorem})."
    if isinstance(limit, Plan):
        yield (
            "adaptive questions",
            ENFORCED,
            "noise is fixed in advance by slots; what is asked in them may depend on answers.",
        )
    else:
        yield "adaptive questions", ENFORCED, "questions and their prices may depend on earlier answers."
    if isinstance(limit, Windowed):
        yield _lifetime(limit)
    yield "unit", ENFORCED, "every charge was stated for this unit and this relation; others are refused."
    yield _unit(description)
    yield (
        "one ledger",
        ASSERTED,
        "no other answers about the same people are given out from elsewhere, or from another ledger.",
    )


def _lifetime(limit: Windowed) -> Line:
    if limit.lifetime is None:
        return "lifetime", NOT_COVERED, f"the limit renews every {limit.length}; nothing bounds a lifetime."
    if isinstance(limit.lifetime, Odometer):
        return (
            "lifetime",
            NOT_COVERED,
            f"the limit renews every {limit.length}; over a lifetime the loss is counted, not limited.",
        )
    return "lifetime", ENFORCED, f"the limit renews every {limit.length}, and a second one bounds a lifetime."


def _unit(description: Mapping[str, Any] | None) -> Line:
    if description is None or "column" not in description:
        return (
            "who that is",
            ASSERTED,
            "what one person adds to the data is what the charges were stated for.",
        )
    if description["column"] is None:
        return (
            "who that is",
            ASSERTED,
            "nobody has more than one row; somebody with several is not protected as one.",
        )
    return "who that is", ASSERTED, f"the column {description['column']} says whose row it is."


def _algorithms(
    description: Mapping[str, Any] | None, released: Sequence[Mapping[str, Any]]
) -> Iterator[Line]:
    yield (
        "noise",
        ENFORCED,
        "exact integers from the operating system's generator; repeatable noise is refused.",
    )
    yield (
        "charge first",
        ENFORCED,
        "every charge was in the ledger before its answer was drawn, and none was given back.",
    )
    yield (
        "accounting",
        ENFORCED,
        "exact ratios, rounded against the curator; recomputed for this statement from the stored mechanisms.",
    )
    outside = sum(1 for line in released if line["mechanism"] is None)
    if outside:
        what = "1 charge was" if outside == 1 else f"{outside} charges were"
        yield (
            "drawn elsewhere",
            ASSERTED,
            f"{what} for something drawn outside of a session; that it was what is stated is not checked.",
        )
    if description is None:
        yield (
            "bounds",
            ASSERTED,
            "no description was given: how much one unit can change an answer is taken from the charges.",
        )
        return
    if description.get("at_most") is not None:
        words = f"at most {description['at_most']} of one count in full; whoever has more is weighed down to that."
        yield "rows of one unit", ENFORCED, words
    yield from _bounds(description)


def _bounds(description: Mapping[str, Any]) -> Iterator[Line]:
    columns = [
        (name, column)
        for table in description.get("tables", {}).values()
        if table.get("private", True)
        for name, column in table.get("columns", {}).items()
        if column.get("bounds") or column.get("values")
    ]
    unsourced = [name for name, column in columns if not column.get("source")]
    yield (
        "clipping",
        ENFORCED,
        "values are moved between the stated bounds before they are added up; nothing is read off the rows.",
    )
    if columns:
        yield (
            "bounds and categories",
            ASSERTED,
            "they were stated without looking at the data; their sources are listed below.",
        )
    if unsourced:
        yield (
            "without a source",
            ASSERTED,
            f"nobody says where the bounds or categories of {', '.join(unsourced)} come from.",
        )
    public = [name for name, table in description.get("tables", {}).items() if not table.get("private", True)]
    if public:
        yield "public tables", ASSERTED, f"{', '.join(public)} would be the same whoever is in the data."


def _security(*, forgets: bool) -> Iterator[Line]:
    yield (
        "floating point",
        ENFORCED,
        "records are put on a grid and summed as whole numbers; no noise is added to a float.",
    )
    yield "errors and refusals", ENFORCED, "they depend on questions and earlier charges, never on a record."
    yield (
        "the ledger",
        ENFORCED,
        "rows carry each other's hashes; a changed, missing or inserted row is found.",
    )
    if forgets:
        yield (
            "its place",
            NOT_COVERED,
            "the ledger is kept in memory, and what was spent is forgotten with it.",
        )
    yield (
        "roll-back",
        ASSERTED,
        "the file was not put back to an older copy; the anchor below, kept elsewhere, shows it.",
    )
    yield "random bits", ASSERTED, "the operating system's generator is what it should be."
    yield "timing", NOT_COVERED, "how long an answer takes is not protected."
    yield "machine", NOT_COVERED, "memory, disks, logs and backups of the machine that holds the data."


def _access(limit: Limit) -> Iterator[Line]:
    inner = limit.each if isinstance(limit, Windowed) else limit
    if isinstance(inner, Shared):
        kind = "reserved" if inner.reserved else "not reserved"
        yield "shares", ENFORCED, f"analysts or projects have shares of the limit ({kind})."
    yield "names", ASSERTED, "analysts are who they say; the ledger writes down the name that it is given."
    yield "the data", NOT_COVERED, "who can read the rows themselves, without this software."


def _collection() -> Iterator[Line]:
    yield "trust", ASSERTED, "a trusted curator holds the data as they are (central model)."
    yield (
        "collection",
        NOT_COVERED,
        "how the data were collected, with whose consent, how long they are kept, and who else has them.",
    )
