# SPDX-License-Identifier: Apache-2.0
"""A statement: what was guaranteed, to whom, what was released, and on what the guarantee rests.

    statement = Statement.of(ledger, data.public_description())
    statement.to_html(); statement.to_markdown(); statement.to_json()

It is for those who must answer for a release: a director, an auditor, a journalist, the people in
the data. Its order is that of NIST SP 800-226: ε and the unit on top, then algorithms, security,
access and collection; its registry entry has the columns of the public registry of deployments.

**Guarantee.** Every figure is recomputed from the rows of the ledger, after the whole ledger was
verified; a damaged one is refused. What is claimed is what the limit proves, however the questions
were chosen. No answer is in it unless `answers` is asked for, and nothing that was read off the
data otherwise.

What would break it: a description of the data set that is not true. Each line says whether it is
enforced by the software, asserted by the curator, or not covered at all; what nobody checked when
it was charged is never called enforced.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from discreet.json_types import JsonFacts, JsonObject
from discreet.ledger import chain, overview, reading, registry
from discreet.ledger.asker import NOBODY, Asker
from discreet.ledger.budget import Budget
from discreet.ledger.costs import State
from discreet.ledger.description import Description, list_changes
from discreet.ledger.former_words import former_facts
from discreet.ledger.layers import layers
from discreet.ledger.ledger import Ledger
from discreet.ledger.provenance import Provenance, software_digest
from discreet.ledger.receipt import Entry
from discreet.ledger.released import release_lines
from discreet.ledger.stated_guarantee import StatedGuarantee, state_guarantee
from discreet.ledger.verify import Verification
from discreet.privacy.constructors import approximate
from discreet.privacy.explain import cautions
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.wire import from_json

__all__ = ["Statement"]

#: Of the objects that `to_dict` returns.
VERSION = 2
#: False-alarm rates at which the curve is written down.
_ALARMS = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)
#: A setting of the database that could undo a charge: it belongs to the machine, not to the rows.
_MACHINE = "W6"


@dataclass(frozen=True)
class Statement:
    """What was guaranteed and what was released; see the module docstring.

    >>> from discreet import privacy
    >>> from discreet.ledger import Limit
    >>> ledger = Ledger(":memory:", limit=Limit.filter(epsilon=1), unit="patient", dataset="visits")
    >>> receipt = ledger.charge(privacy.pure(0.2, unit="patient"), question="SELECT COUNT(*) FROM visits")
    >>> print(Statement.of(ledger).headline)
    ε = 1 for one patient added or removed, over all answers together.
    """

    facts: JsonFacts
    stated: StatedGuarantee

    @classmethod
    def of(
        cls,
        ledger: Ledger,
        description: JsonFacts | None = None,
        *,
        answers: bool = False,
        anchor: str | None = None,
        declared: JsonFacts | None = None,
    ) -> Statement:
        """The statement of everything in a ledger; the data are not needed.

        The descriptions that charges were made under are in the ledger. One that is given, as
        `Dataset.public_description` returns it, is shown in the place of the last of them, and
        marked as asserted if no charge was made under it. `declared` holds what only a person
        knows, by the fields of the registry (`registry.DECLARED`), and `units`, the public number
        of protected units. With `anchor`, a hash that was written down earlier, a ledger that was
        put back is refused.
        """
        given, declared_facts = (
            None if description is None else Description.of(description),
            registry.validate_declared(declared),
        )
        checked = _require_intact(ledger.verify(anchor=anchor))
        known = given is not None and given.digest in recorded_by_digest(
            islice(ledger.entries(), checked.entries)
        )
        provenance = Provenance(
            ledger=ledger.id,
            rows=checked.entries,
            made=chain.now(),
            version=chain.version(),
            software=software_digest(),
            answers=answers,
            in_memory=ledger.where == ":memory:",
            weaknesses=tuple(finding.text for finding in checked.findings if finding.code == _MACHINE),
            declared=declared_facts,
            given=None if given is None else given.digest,
            given_facts=None if given is None or known else _in_order(publish_description(given)),
        )
        return cls._of_rows(ledger, provenance, checked)

    @classmethod
    def made_with(cls, ledger: Ledger, provenance: Provenance) -> Statement:
        """The statement of the first rows of a ledger: the same for the same rows and the same
        words, at any later time.
        """
        return cls._of_rows(ledger, provenance, _require_intact(ledger.verify(rows=provenance.rows)))

    @classmethod
    def _of_rows(cls, ledger: Ledger, provenance: Provenance, checked: Verification) -> Statement:
        entries = list(islice(ledger.entries(), provenance.rows))
        state = State.from_dict(entries[-1].state)
        claim = state_guarantee(ledger.limit, ledger.unit, state)
        facts: JsonObject = {"discreet": {"statement": VERSION, "version": provenance.version}}
        facts |= {
            "made": provenance.made,
            "making": provenance.to_dict(),
            **_guarantee_facts(ledger, claim, provenance),
        }
        facts |= {
            "budget": _budget_facts(ledger, entries, provenance),
            **_record_facts(ledger, checked, entries, provenance),
        }
        facts["registry"] = registry.entry(facts, provenance.declared)
        facts["reading"] = reading.sections(facts)
        return cls(facts, claim)

    @property
    def headline(self) -> str:
        """The guarantee in one sentence."""
        return str(self.facts["headline"])

    def to_dict(self) -> JsonObject:
        """Everything, as plain JSON types."""
        plain: JsonObject = json.loads(json.dumps(self.facts, allow_nan=False))
        return plain

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=2)

    def to_markdown(self) -> str:
        """For a repository, a ticket, or pandoc."""
        from discreet.ledger.statement_markdown import page

        return page(self.facts, self.provenance.block())

    def to_html(self) -> str:
        """One page that needs nothing else: it prints whole, follows a dark screen, and can be read
        aloud.
        """
        from discreet.ledger.statement_html import page

        return page(self.facts, self.stated, self.provenance.block())

    @property
    def guarantee(self) -> Guarantee | None:
        """What is guaranteed at the end and at every moment before; None if there is no limit."""
        return self.stated.guarantee

    def in_former_words(self) -> Statement:
        """The same facts with the library's sentences as earlier software of this version worded
        them.
        """
        return replace(self, facts=former_facts(self.facts))

    @property
    def provenance(self) -> Provenance:
        """What it was made with besides the rows of the ledger."""
        return Provenance.from_dict(self.facts["making"])

    def __str__(self) -> str:
        return self.to_markdown()

    def _repr_html_(self) -> str:
        from discreet.ledger.statement_html import body

        return body(self.facts, self.stated)


def _in_order(facts: JsonFacts | None) -> JsonFacts | None:
    """A description as the page of a statement keeps it, names in order, so that it is shown the
    same when it is verified.
    """
    if facts is None:
        return None
    ordered: JsonObject = json.loads(chain.canonical(facts))
    return ordered


def _require_intact(checked: Verification) -> Verification:
    if not checked.intact:
        raise chain.damaged_error(checked.findings[0].text.removeprefix("the ledger is damaged: "))
    return checked


def _guarantee_facts(ledger: Ledger, claim: StatedGuarantee, provenance: Provenance) -> JsonObject:
    """What is claimed, to whom, and why it holds."""
    unit, limit = ledger.unit, ledger.limit
    return {
        "dataset": ledger.dataset,
        "headline": claim.headline,
        "unit": {
            "protects": unit.protects,
            "relation": unit.relation,
            "words": str(unit),
            "number": provenance.declared.get(registry.UNITS),
        },
        "claim": claim.to_dict(),
        "curve": _curve(claim),
        "words": _words(claim),
        "cautions": _cautions(claim, provenance.declared.get(registry.UNITS)),
        "limit": {"kind": limit.kind, "theorem": limit.theorem, "says": limit.describe()},
    }


def _budget_facts(ledger: Ledger, entries: Sequence[Entry], provenance: Provenance) -> JsonObject:
    """What is spent and what remains, of the whole budget and of each allocation."""

    def budget(asker: Asker) -> Budget:
        state = State.from_dict(entries[-1].state)
        charges = [entry for entry in entries if entry.kind == "reserved" and entry.guarantee]
        own = [
            entry
            for entry in charges
            if asker.analyst in (None, entry.analyst) and asker.project in (None, entry.project)
        ]
        last = from_json(str(own[-1].guarantee)) if own else None
        return replace(ledger.limit.budget(state, asker=asker, now=provenance.made), last=last)

    return overview.budget_facts(budget(NOBODY)) | {"shares": overview.allocation_facts(ledger.limit, budget)}


def _record_facts(
    ledger: Ledger, checked: Verification, entries: Sequence[Entry], provenance: Provenance
) -> JsonObject:
    """What the rows hold, on what the guarantee rests, and what the check of the ledger found."""
    rows = release_lines(entries, ledger.limit, answers=provenance.answers)
    given = None if provenance.given is None else Given(provenance.given, provenance.given_facts)
    versions = describe_versions(entries, given)
    description = _visible_description(entries, given)
    findings = [
        {"code": finding.code, "text": finding.text}
        for finding in checked.findings
        if finding.code != _MACHINE
    ]
    return {
        "released": rows,
        "description": description,
        "described": versions,
        "layers": layers(ledger.limit, description, versions, rows, forgets=provenance.in_memory),
        "ledger": {
            "id": ledger.id,
            "opened": entries[0].time,
            "rows": checked.entries,
            "anchor": checked.anchor,
            "intact": checked.intact,
            "findings": [*findings, *({"code": _MACHINE, "text": text} for text in provenance.weaknesses)],
        },
    }


def _visible_description(entries: Sequence[Entry], given: Given | None) -> JsonFacts | None:
    """The description that is shown: a given one if there is one, else the last one that was
    charged under.
    """
    if given is None:
        return publish_description(latest_version(entries))
    return (
        given.facts
        if given.facts is not None
        else publish_description(recorded_by_digest(entries).get(given.digest))
    )


def _curve(claim: StatedGuarantee) -> list[dict[str, float]] | None:
    if claim.guarantee is None:
        return None
    return [{"false_alarm": alarm, "misses_at_least": claim.guarantee.tradeoff(alarm)} for alarm in _ALARMS]


def _words(claim: StatedGuarantee) -> JsonObject | None:
    """What the claim means for one protected unit. It holds under adaptive questions, so the caveat
    on those is left out.
    """
    if claim.guarantee is None:
        return None
    explanation = claim.guarantee.explain().to_dict()
    return {name: explanation[name] for name in ("guess", "odds", "certainty", "sentences", "not_protected")}


def _cautions(claim: StatedGuarantee, units: int | None) -> list[str]:
    """Where the claim protects little or nothing; without a limit, at the ε that was reached."""
    unit, reached = claim.unit, min(claim.epsilon, _MOST)
    guarantee = claim.guarantee
    if guarantee is None:
        guarantee = approximate(reached, claim.delta, unit=unit.protects, relation=unit.relation)
    warnings = [] if claim.guarantee is not None else [_NO_LIMIT]
    return [*warnings, *cautions(guarantee.explain().right, claim.delta, claim.unit, units)]


_NO_LIMIT = "There is no limit: the loss grows with every answer, and there is no guarantee for the whole."
_MOST = 1e4


class Given(NamedTuple):
    """A description that was given with a statement: its digest and, if no row holds it, what it
    says.
    """

    digest: str
    facts: JsonFacts | None


def describe_versions(entries: Sequence[Entry], given: Given | None) -> JsonObject:
    """Every version with its period, how many charges name none, and whether a given description is
    one of them.

    **Guarantee.** What is said here is recorded in rows that the hash chain covers. A description
    that is only given with the statement is named as that, and charges that name none are counted.
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


def publish_description(description: Description | None) -> JsonObject | None:
    """A description for readers elsewhere: of where a table lies, only the last name."""
    if description is None:
        return None
    tables = {name: {**table, **_last_name(table)} for name, table in description.tables.items()}
    return {**description.facts, **({"tables": tables} if tables else {})}


def _last_name(table: JsonFacts) -> dict[str, str]:
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
