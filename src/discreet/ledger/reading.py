# SPDX-License-Identifier: Apache-2.0
"""What a reader of a statement asks besides the guarantee: how accurate, how biased, who may ask,
which digests, how to verify.

**Guarantee.** Every sentence follows from the ledger, or says that it is asserted. Nothing is read
off the data, and no digest of the data is given: with one, whoever guesses a record could check the
guess.
"""

from __future__ import annotations

from collections.abc import Iterator

from discreet.json_types import JsonFacts, JsonObject
from discreet.ledger.layers import rows_words

__all__ = ["sections"]


def sections(facts: JsonFacts) -> list[JsonObject]:
    """Short sections, each a title and its sentences."""
    sentences_by_title = {
        "How accurate the answers are": _accuracy(facts),
        "Known bias": _bias(facts),
        "Who may ask what": _questions(facts),
        "Digests": _digests(facts),
        "How to verify this statement": _verifying(facts),
    }
    return [{"title": title, "sentences": list(sentences)} for title, sentences in sentences_by_title.items()]


def _accuracy(facts: JsonFacts) -> Iterator[str]:
    yield "Every answer has random noise; the mechanism and the cost of each are listed under “What was released”."
    if any(line["in_session"] for line in facts["released"]):
        yield (
            "Numbers that a session drew come with a 95 % confidence interval for the noise, where it has one "
            "(columns ending in _lo and _hi)."
        )
    yield "The ledger does not record margins of error, so this statement lists none."
    yield from _declared_sentence(facts, "utility", "Utility")


def _bias(facts: JsonFacts) -> Iterator[str]:
    described, unit = facts["description"], facts["unit"]["protects"]
    if described is None:
        yield "No description of the data is recorded, so it is not known what was clipped or down-weighted."
    else:
        at_most = described.get("at_most")
        if at_most is not None:
            yield f"Each {unit} contributes {rows_words(at_most)}; extra rows are down-weighted, so counts and sums may be too low."
        yield "Values outside the stated bounds are clipped to them, so sums and means may be too high or too low."
        yield "Groups that are too small may be suppressed, where the groups were not declared."
    yield "Confidence intervals do not include this bias."
    yield from _declared_sentence(facts, "post_processing", "Post-processing")


def _questions(facts: JsonFacts) -> Iterator[str]:
    lines = facts["released"]
    if facts["limit"]["kind"] == "plan":
        yield "The noise of every answer was planned in advance; what was asked may depend on earlier answers."
    else:
        yield "Questions, and what was spent on each, may have been chosen in view of earlier answers."
    people = sorted({line["analyst"] or line["project"] for line in lines} - {None})
    charges = f"{len(lines)} charge{'' if len(lines) == 1 else 's'}"
    yield f"{charges}; named as having asked: {', '.join(people) or 'nobody'}."
    yield from _declared_sentence(
        facts,
        "access_type",
        "Access",
        "Whether people query the data or only see published tables is not stated.",
    )
    yield from _declared_sentence(
        facts, "model_name", "Model", "Whom the people in the data have to trust with it is not stated."
    )


def _digests(facts: JsonFacts) -> Iterator[str]:
    for version in facts["described"]["versions"]:
        yield f"Description of {version['dataset'] or 'the data'}: sha256 {version['digest']}."
    if not facts["described"]["versions"]:
        yield "Description: none is recorded."
    if facts["making"]["given"] is not None:
        yield f"Description given with this statement: sha256 {facts['making']['given']}."
    yield f"Ledger, row {facts['ledger']['rows'] - 1}: sha256 {facts['ledger']['anchor']}."
    yield f"Software: discreet {facts['making']['version']}, source files sha256 {facts['making']['software']}."
    yield "Data: no digest. A digest of the rows would let anybody who guesses a record check the guess."


def _verifying(facts: JsonFacts) -> Iterator[str]:
    yield (
        "With the ledger at hand,  discreet statement verify FILE LEDGER  makes this statement again from its first "
        f"{facts['ledger']['rows']} rows and says whether both agree."
    )
    yield "Whoever keeps the digest of the last row elsewhere can tell whether rows were removed or changed since."
    asserted = ["when it was made", "by which software"]
    asserted += (
        ["what is marked as asserted"]
        if facts["making"]["declared"] or facts["making"]["given_facts"]
        else []
    )
    yield f"Not in the ledger, and so not verified: {', '.join(asserted)}."


def _declared_sentence(facts: JsonFacts, name: str, title: str, otherwise: str = "") -> Iterator[str]:
    """What a person declared, marked as that."""
    declared = facts["making"]["declared"].get(name)
    if declared is not None:
        yield f"{title} (asserted): {declared}"
    elif otherwise:
        yield otherwise
