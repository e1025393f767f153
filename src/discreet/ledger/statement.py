# SPDX-License-Identifier: Apache-2.0
"""A statement: what was promised, to whom, what was released, and on what the promise rests.

    statement = Statement.of(ledger, data.public_description())
    statement.to_html(); statement.to_markdown(); statement.to_json()

It is for those who must answer for a release: a director, an auditor, a journalist, the people in the data. Its order
is that of NIST SP 800-226: ε and the unit on top, then algorithms, security, access and collection; its registry entry has
the columns of the public registry of deployments.

**Promise.** Every figure is recomputed from the rows of the ledger, after the whole ledger was verified; a damaged one is refused.
What is claimed is what the limit proves, however the questions were chosen. No answer is in it unless `answers` is
asked for, and nothing that was read off the data otherwise.

What would break it: a description of the data set that is not true. Each line says whether it is enforced by the
software, asserted by the curator, or not covered at all; what nobody checked when it was charged is never called enforced.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from discreet.ledger import chain, overview, registry
from discreet.ledger.claim import Claim, claim_of
from discreet.ledger.description import Description
from discreet.ledger.layers import layers
from discreet.ledger.ledger import Ledger
from discreet.ledger.released import released
from discreet.ledger.verify import Verification
from discreet.ledger.versions import described, latest, shown

__all__ = ["Statement"]

#: Of the objects that `to_dict` returns.
VERSION = 1
#: False-alarm rates at which the curve is written down.
_ALARMS = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)


@dataclass(frozen=True)
class Statement:
    """What was promised and what was released; see the module docstring.

    >>> from discreet import privacy
    >>> from discreet.ledger import Limit
    >>> ledger = Ledger(":memory:", limit=Limit.filter(epsilon=1), unit="patient", dataset="visits")
    >>> receipt = ledger.charge(privacy.pure(0.2, unit="patient"), question="SELECT COUNT(*) FROM visits")
    >>> print(Statement.of(ledger).headline)
    ε = 1 for one patient added or removed, over all answers together.
    """

    facts: Mapping[str, Any]
    claim: Claim

    @classmethod
    def of(
        cls,
        ledger: Ledger,
        description: Mapping[str, Any] | None = None,
        *,
        answers: bool = False,
        anchor: str | None = None,
    ) -> Statement:
        """The statement of everything in a ledger.

        The descriptions that charges were made under are in the ledger. One that is given, as `Dataset.public_description` returns
        it, is shown in the place of the last of them, and marked as asserted if no charge was made under it.
        With `anchor`, a hash that was written down earlier, a ledger that was put back to before it is refused.
        """
        given = None if description is None else Description.of(description)
        checked = ledger.verify(anchor=anchor)
        if not checked.intact:
            raise chain.damaged(checked.findings[0].text.removeprefix("the ledger is damaged: "))
        claim = claim_of(ledger.limit, ledger.unit, ledger.spent)
        facts = {
            "discreet": {"statement": VERSION, "version": chain.version()},
            "made": chain.now(),
            **_promised(ledger, claim),
            **_kept(ledger, checked, given, answers=answers),
        }
        return cls(facts | {"registry": registry.entry(facts)}, claim)

    @property
    def headline(self) -> str:
        """The promise in one sentence."""
        return str(self.facts["headline"])

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain JSON types."""
        return dict(self.facts)

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=2)

    def to_markdown(self) -> str:
        """For a repository, a ticket, or pandoc."""
        from discreet.ledger.statement_markdown import page

        return page(self.facts)

    def to_html(self) -> str:
        """One page that needs nothing else: it prints, follows a dark screen, and can be read aloud."""
        from discreet.ledger.statement_html import page

        return page(self.facts, self.claim)

    def __str__(self) -> str:
        return self.to_markdown()

    def _repr_html_(self) -> str:
        from discreet.ledger.statement_html import body

        return body(self.facts, self.claim)


def _promised(ledger: Ledger, claim: Claim) -> dict[str, Any]:
    """What is claimed, to whom, and why it holds."""
    unit, limit = ledger.unit, ledger.limit
    return {
        "dataset": ledger.dataset,
        "headline": claim.headline,
        "unit": {"protects": unit.protects, "relation": unit.relation, "words": str(unit)},
        "claim": claim.to_dict(),
        "curve": _curve(claim),
        "words": _words(claim),
        "limit": {"kind": limit.kind, "theorem": limit.theorem, "says": limit.describe()},
        "budget": overview.budget(ledger.left()) | {"shares": overview.shares(ledger)},
    }


def _kept(
    ledger: Ledger, checked: Verification, given: Description | None, *, answers: bool
) -> dict[str, Any]:
    """What the rows hold, on what the promise rests, and what the check of the ledger found."""
    entries = list(
        islice(ledger.entries(), checked.entries)
    )  # what is charged meanwhile is for the next statement
    rows = released(entries, ledger.limit, answers=answers)
    recorded = described(entries, given)
    description = shown(latest(entries) if given is None else given)
    return {
        "released": rows,
        "description": description,
        "described": recorded,
        "layers": layers(ledger.limit, description, recorded, rows, forgets=ledger.where == ":memory:"),
        "ledger": {
            "id": ledger.id,
            "opened": entries[0].time,
            "rows": checked.entries,
            "anchor": checked.anchor,
            "intact": checked.intact,
            "findings": [{"code": finding.code, "text": finding.text} for finding in checked.findings],
        },
    }


def _curve(claim: Claim) -> list[dict[str, float]] | None:
    if claim.guarantee is None:
        return None
    return [{"false_alarm": alarm, "misses_at_least": claim.guarantee.tradeoff(alarm)} for alarm in _ALARMS]


def _words(claim: Claim) -> dict[str, Any] | None:
    """What the claim means for one protected unit. It holds under adaptive questions, so the caveat on those is left out."""
    if claim.guarantee is None:
        return None
    told = claim.guarantee.explain().to_dict()
    return {name: told[name] for name in ("guess", "odds", "certainty", "sentences", "not_protected")}
