# SPDX-License-Identifier: Apache-2.0
"""The descriptions that a ledger was charged under, for a statement: each version, its period, and
what changed.

**Guarantee.** What is said here is recorded in rows that the hash chain covers. A description that
is only given with the statement is named as that, and charges that name none are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from discreet.json_types import JsonObject
from discreet.ledger.description import Description, list_changes
from discreet.ledger.receipt import Entry

__all__ = ["Given", "describe_versions", "latest_version", "publish_description", "recorded_by_digest"]


class Given(NamedTuple):
    """A description that was given with a statement: its digest and, if no row holds it, what it
    says.
    """

    digest: str
    facts: Mapping[str, Any] | None


def describe_versions(entries: Sequence[Entry], given: Given | None) -> JsonObject:
    """Every version with its period, how many charges name none, and whether a given description is
    one of them.
    """
    versions = list(
        {version.digest: (number, version) for number, version in _version_rows(entries)}.values()
    )
    charges = [entry for entry in entries if entry.kind == "reserved"]
    lines = []
    for at, (number, version) in enumerate(versions):
        own = [entry for entry in charges if entry.description == version.digest]
        before = [other for _, other in versions[:at] if other.name == version.name]
        lines.append(
            {
                "digest": version.digest,
                "row": number,
                "dataset": version.name,
                **{name: version.facts.get(name) for name in ("version", *_WHO)},
                "charges": len(own),
                "compiled": sum(entry.compiled for entry in own),
                "first": own[0].time if own else None,
                "last": own[-1].time if own else None,
                "changed": [change.words for change in list_changes(before[-1], version)] if before else [],
            }
        )
    digests = {version.digest for _, version in versions}
    return {
        "versions": lines,
        "not_recorded": sum(entry.description is None for entry in charges),
        "given": None if given is None else ("recorded" if given.digest in digests else "not recorded"),
    }


_WHO = ("protects", "relation", "column", "at_most", "groups")


def latest_version(entries: Sequence[Entry]) -> Description | None:
    """The version that the last charge was made under; else the last one that was recorded."""
    versions = recorded_by_digest(entries)
    used = [entry.description for entry in entries if entry.kind == "reserved" and entry.description]
    last = used[-1] if used else next(reversed(versions), "")
    return versions.get(last)


def recorded_by_digest(entries: Iterable[Entry]) -> dict[str, Description]:
    """Every version that a row holds, by its digest."""
    return {version.digest: version for _, version in _version_rows(entries)}


def publish_description(description: Description | None) -> dict[str, Any] | None:
    """A description for readers elsewhere: of where a table lies, only the last name."""
    if description is None:
        return None
    tables = {name: {**table, **_last_name(table)} for name, table in description.tables.items()}
    return {**description.facts, **({"tables": tables} if tables else {})}


def _last_name(table: Mapping[str, Any]) -> dict[str, str]:
    source = table.get("source")
    return {"source": source.partition("?")[0].rpartition("/")[2]} if isinstance(source, str) else {}


def _version_rows(entries: Iterable[Entry]) -> list[tuple[int, Description]]:
    """The rows that describe the data, and what they say."""
    rows = [
        (
            entry.number,
            entry.describes if entry.kind == "described" else (entry.about or {}).get("description"),
        )
        for entry in entries
        if entry.kind in {"open", "described"}
    ]
    return [(number, Description.of(facts)) for number, facts in rows if facts is not None]
