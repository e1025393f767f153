# SPDX-License-Identifier: Apache-2.0
"""On what a guarantee rests, layer by layer, in the order of the pyramid of NIST SP 800-226.

**Guarantee.** Every line is marked: *enforced* by the software (it refuses otherwise), *asserted*
by the curator (the guarantee depends on it, and nothing here checks it), or *not covered* (nothing
is guaranteed about it). A line is marked enforced only for what goes through a session and a
ledger.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from discreet.json_types import JsonFacts, JsonObject
from discreet.ledger.limit import Limit
from discreet.ledger.odometer import Odometer
from discreet.ledger.plan import PlannedLimit
from discreet.ledger.window import WindowedLimit, allocated_limit

__all__ = ["ASSERTED", "ENFORCED", "NOT_COVERED", "layers", "rows_words"]

ENFORCED, ASSERTED, NOT_COVERED = "enforced by the software", "asserted by the curator", "not covered"

Line = tuple[str, str, str]


def layers(
    limit: Limit,
    description: JsonFacts | None,
    described: JsonFacts,
    released: Sequence[JsonFacts],
    *,
    forgets: bool = False,
) -> list[JsonObject]:
    """The five layers, the most visible one first; `forgets` says that the ledger is in memory
    only.

    `description` is the one that is shown, `described` what `versions.describe_versions` found of
    it in the rows.
    """
    lines_by_layer: dict[str, Iterator[Line]] = {
        "Privacy loss and unit": _loss_lines(limit, description, described),
        "Algorithms and correctness": _algorithm_lines(description, described, released),
        "Security and side channels": _security_lines(forgets=forgets),
        "Access control": _access_lines(limit),
        "Data collection": _collection_lines(),
    }
    return [
        {"layer": name, "lines": [dict(zip(("what", "mark", "words"), line, strict=True)) for line in lines]}
        for name, lines in lines_by_layer.items()
    ]


def _loss_lines(limit: Limit, description: JsonFacts | None, described: JsonFacts) -> Iterator[Line]:
    if isinstance(limit, Odometer):
        yield "ε and δ", NOT_COVERED, "there is no limit; the ledger only says how far the loss has come."
    else:
        yield "ε and δ", ENFORCED, f"the ledger refuses what would exceed the limit ({limit.theorem})."
    if isinstance(limit, PlannedLimit):
        yield (
            "adaptive questions",
            ENFORCED,
            "noise is fixed in advance by slots; what is asked in them may depend on answers.",
        )
    else:
        yield "adaptive questions", ENFORCED, "questions and their prices may depend on earlier answers."
    if isinstance(limit, WindowedLimit):
        yield _lifetime_line(limit)
    yield "unit", ENFORCED, "every charge was stated for this unit and this relation; others are refused."
    yield from _description_lines(described)
    yield from _unit_lines(description, described["versions"])
    yield (
        "one ledger",
        ASSERTED,
        "no other answers about the same people are given out from elsewhere, or from another ledger.",
    )


def _lifetime_line(limit: WindowedLimit) -> Line:
    if limit.lifetime is None:
        return "lifetime", NOT_COVERED, f"the limit renews every {limit.length}; nothing bounds a lifetime."
    if isinstance(limit.lifetime, Odometer):
        return (
            "lifetime",
            NOT_COVERED,
            f"the limit renews every {limit.length}; over a lifetime the loss is counted, not limited.",
        )
    return "lifetime", ENFORCED, f"the limit renews every {limit.length}, and a second one bounds a lifetime."


def _description_lines(described: JsonFacts) -> Iterator[Line]:
    """Whether the rows say for which data they were charged."""
    named = sum(version["charges"] for version in described["versions"])
    if named:
        yield (
            "description",
            ENFORCED,
            f"{_charges_were(named)} made under a description in the ledger; another unit, bound or relation is refused.",
        )
    if described["not_recorded"]:
        yield (
            "not recorded",
            ASSERTED,
            f"{_charges_were(described['not_recorded'])} made without a description: the unit column is not recorded.",
        )
    if described["given"] == "not recorded":
        yield (
            "given description",
            ASSERTED,
            "the description that is shown was given with this statement; no charge was made under it.",
        )


def _charges_were(count: int) -> str:
    return "1 charge was" if count == 1 else f"{count} charges were"


def _unit_lines(description: JsonFacts | None, versions: Sequence[JsonFacts]) -> Iterator[Line]:
    """Who one unit is, for each data set."""
    used = {version["dataset"]: version for version in versions if version["charges"]}
    if not used:
        yield _unit_line(description, "")
    for name, version in used.items():
        yield _unit_line(version, f" in {name}" if len(used) > 1 else "")


def _unit_line(description: JsonFacts | None, where: str) -> Line:
    if description is None or "column" not in description:
        words = "what one person adds to the data is what the charges were stated for."
    elif description["column"] is None:
        words = "nobody has more than one row; somebody with several is not protected as one."
    else:
        words = f"the column {description['column']} says whose row it is."
    return f"who that is{where}", ASSERTED, words


def _algorithm_lines(
    description: JsonFacts | None,
    described: JsonFacts,
    released: Sequence[JsonFacts],
) -> Iterator[Line]:
    inside = sum(1 for line in released if line["in_session"])
    outside = len(released) - inside
    yield from _noise_lines(inside, outside)
    yield (
        "accounting",
        ENFORCED,
        "exact ratios, rounded against the curator; recomputed for this statement from the stored mechanisms.",
    )
    yield from _outside_lines(outside, released)
    if description is None:
        yield (
            "bounds",
            ASSERTED,
            "no description was given: how much one unit can change an answer is taken from the charges.",
        )
        return
    yield from _contribution_lines(description, described)
    yield from _bound_lines(description, described)


def _noise_lines(inside: int, outside: int) -> Iterator[Line]:
    """Who drew the noise, and when: enforced only of what a session charged and drew itself."""
    if not inside:
        nothing = "no charge was drawn in a session." if outside else "nothing was charged yet."
        yield "noise", ASSERTED if outside else NOT_COVERED, nothing
        return
    some = f"of the {inside} drawn in a session: " if outside else ""
    yield (
        "noise",
        ENFORCED,
        f"{some}exact integers from the operating system's generator; repeatable noise is refused.",
    )
    yield (
        "charge first",
        ENFORCED,
        f"{some}every charge was in the ledger before its answer was drawn, and none was given back.",
    )
    yield (
        "floating point",
        ENFORCED,
        f"{some}records are put on a grid and summed as whole numbers; no noise is added to a float.",
    )


def _outside_lines(outside: int, released: Sequence[JsonFacts]) -> Iterator[Line]:
    """Charges whose guarantee was not computed from a description."""
    if outside:
        what = _charges_were(outside)
        yield (
            "drawn elsewhere",
            ASSERTED,
            f"{what} for something drawn outside of a session; its noise and its arithmetic are not checked.",
        )
    handed = sum(
        1 for line in released if line["in_session"] and line["description"] and not line["compiled"]
    )
    if handed:
        what = (
            "1 answer is that of a mechanism" if handed == 1 else f"{handed} answers are those of mechanisms"
        )
        yield (
            "on other data",
            ASSERTED,
            f"{what} on data of its own; that one unit changes these by no more than is stated is not checked.",
        )


def _contribution_lines(description: JsonFacts, described: JsonFacts) -> Iterator[Line]:
    """How many rows of one unit count: enforced where answers were computed from it, else a word of
    whoever gave it.
    """
    words = "each contributes {}; extra rows are down-weighted."
    used = {version["dataset"]: version for version in described["versions"] if version["compiled"]}
    for name, version in used.items():
        if version["at_most"] is not None:
            where = f" in {name}" if len(used) > 1 else ""
            yield f"rows of one unit{where}", ENFORCED, words.format(rows_words(version["at_most"]))
    if not used and description.get("at_most") is not None:
        prefix = "says the description, under which nothing was computed: "
        yield "rows of one unit", ASSERTED, prefix + words.format(rows_words(description["at_most"]))


def rows_words(most: object) -> str:
    """How many rows of one unit count."""
    if not isinstance(most, int):
        return "at most a number of rows that was found privately"
    return "at most 1 row" if most == 1 else f"at most {most} rows"


def _bound_lines(description: JsonFacts, described: JsonFacts) -> Iterator[Line]:
    columns = [
        (name, column)
        for table in description.get("tables", {}).values()
        if table.get("private", True)
        for name, column in table.get("columns", {}).items()
        if column.get("bounds") or column.get("values")
    ]
    unsourced = [name for name, column in columns if not column.get("source")]
    words = "values are clipped to the stated bounds before they are added up; nothing is read off the rows."
    compiled = sum(version["compiled"] for version in described["versions"])
    if compiled:
        yield (
            "clipping",
            ENFORCED,
            f"{_charges_were(compiled)} computed from a description in the ledger: {words}",
        )
    else:
        yield "clipping", ASSERTED, f"no charge was computed from a description in the ledger: {words}"
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


def _security_lines(*, forgets: bool) -> Iterator[Line]:
    yield (
        "refusals",
        ENFORCED,
        "what the ledger refuses depends on questions and earlier charges, never on a record.",
    )
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


def _access_lines(limit: Limit) -> Iterator[Line]:
    allocated = allocated_limit(limit)
    if allocated is not None:
        kind = "reserved" if allocated.reserved else "not reserved"
        yield "allocations", ENFORCED, f"analysts or projects have allocations of the budget ({kind})."
    yield "names", ASSERTED, "analysts are who they say; the ledger writes down the name that it is given."
    yield "the data", NOT_COVERED, "who can read the rows themselves, without this software."


def _collection_lines() -> Iterator[Line]:
    yield "trust", ASSERTED, "a trusted curator holds the data as they are (central model)."
    yield (
        "collection",
        NOT_COVERED,
        "how the data were collected, with whose consent, how long they are kept, and who else has them.",
    )
