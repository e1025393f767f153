# SPDX-License-Identifier: Apache-2.0
"""Verifying a statement: it is made again from the ledger, as of the entry that it was made at, and
compared.

    found = verify_statement(Path("statement.html").read_text(), Ledger("visits.ledger"))
    found.holds; found.later; found.differences; found.asserted

**Guarantee.** `holds` means that every letter of the page, or every value of the JSON, is what the
ledger gives today for the same rows: no figure, sentence or entry was changed, dropped or added.
Rows that were charged later make no difference, and are counted (`later`). What is not in the
ledger cannot be verified, and is listed (`asserted`).

What would break it: a ledger that is itself not the one that was charged; an anchor that was kept
elsewhere tells.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from discreet.errors import BadDescription, BadParameter
from discreet.json_types import JsonObject, JsonValue
from discreet.ledger import chain, registry
from discreet.ledger.former_words import former_page
from discreet.ledger.ledger import Ledger
from discreet.ledger.provenance import Provenance, not_a_statement_error
from discreet.ledger.statement import Statement

__all__ = ["Difference", "StatementCheck", "verify_statement"]

CHANGED, MISSING, ADDED = "changed", "missing", "added"
#: Differences that are listed.
_LISTED = 20
_LONGEST = 200
#: Pieces times pieces that are compared one by one.
_MOST = 10**7
_TAGS = re.compile(r"(?<=>)(?=<)|(?<=>)(?=[^<])|(?<=[^>])(?=<)")


@dataclass(frozen=True)
class Difference:
    """One thing that the statement says otherwise than the ledger: `changed`, `missing` in the
    statement, or `added` to it.
    """

    kind: str
    statement: str | None
    ledger: str | None

    def __str__(self) -> str:
        if self.kind == MISSING:
            return f"missing: the ledger gives {self.ledger!r}"
        if self.kind == ADDED:
            gives = "" if self.ledger is None else f", which has {self.ledger}"
            return f"added: {self.statement!r} does not follow from the ledger{gives}"
        return f"changed: it says {self.statement!r}, and the ledger gives {self.ledger!r}"

    def to_dict(self) -> dict[str, str | None]:
        """As plain JSON types."""
        return {"kind": self.kind, "statement": self.statement, "ledger": self.ledger}


@dataclass(frozen=True)
class StatementCheck:
    """What a comparison of a statement with its ledger found.

    **Guarantee.** `holds` is true only if every figure and sentence of the statement follows from
    the ledger's rows up to the statement's last entry, or is listed in `asserted` as somebody's own
    words.
    """

    form: str
    rows: int
    later: int
    differences: tuple[Difference, ...]
    asserted: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether the statement says what the ledger says, as of its last entry."""
        return not self.differences

    @property
    def verdict(self) -> str:
        """In one sentence."""
        if not self.holds:
            return "The statement does not say what the ledger says."
        if self.later:
            more = "1 row was" if self.later == 1 else f"{self.later} rows were"
            return f"The statement is true as of entry {self.rows - 1}; {more} added to the ledger since."
        return f"The statement is true as of entry {self.rows - 1}, the last one."

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        return "\n".join(
            [self.verdict, *map(str, self.differences), *(f"not verified: {one}" for one in self.asserted)]
        )


def verify_statement(text: str, ledger: Ledger) -> StatementCheck:
    """Compare a statement, as HTML, Markdown or JSON, with the ledger that it was made from.

    A damaged ledger is refused (DP602), and so is a file that is no statement (DP105), or one of
    another version of the software (DP402), whose words differ: verify it with that version.

    **Guarantee.** If the check `holds`, every letter of the statement follows from the first rows
    of this ledger, in today's words or in the former ones of this version (`former_words.py`).

    Why it holds: the statement is made again and compared as a whole. What would break it: a ledger
    that is not the one that was charged; an anchor that was kept elsewhere tells.

    >>> from discreet import privacy
    >>> from discreet.ledger import Limit
    >>> ledger = Ledger(":memory:", limit=Limit.filter(epsilon=1), unit="patient")
    >>> receipt = ledger.charge(privacy.pure(0.2, unit="patient"))
    >>> check = verify_statement(Statement.of(ledger).to_json(), ledger)
    >>> check.holds, check.rows
    (True, 2)
    """
    if not isinstance(text, str):
        raise BadParameter(
            "DP104",
            f"a statement is text, not {type(text).__name__}.",
            why="it is compared letter by letter.",
            fix="verify_statement(Path('statement.html').read_text(encoding='utf-8'), ledger)",
        )
    plain = _plain(text)
    form = "json" if plain.startswith("{") else "html" if plain.startswith("<!doctype") else "md"
    stated = _parse_json(plain) if form == "json" else None
    provenance = Provenance.in_text(plain) if stated is None else Provenance.from_dict(stated.get("making"))
    _require_same_version(provenance)
    whole = ledger.verify()
    if not whole.intact:
        raise chain.damaged_error(whole.findings[0].text.removeprefix("the ledger is damaged: "))
    differences = list(_ledger_differences(provenance, ledger, whole.entries))
    if not differences:
        differences = _wording_differences(plain, stated, _remake(ledger, provenance), form)
    later = max(0, whole.entries - provenance.rows)
    return StatementCheck(
        form, provenance.rows, later, tuple(differences[:_LISTED]), tuple(_list_unverified(provenance))
    )


def _remake(ledger: Ledger, provenance: Provenance) -> Statement:
    """The statement that these words give; words that give none are not those of a statement."""
    try:
        registry.validate_declared(provenance.declared)
        return Statement.made_with(ledger, provenance)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise not_a_statement_error() from None


def _ledger_differences(provenance: Provenance, ledger: Ledger, rows: int) -> Iterator[Difference]:
    """Whether it can be a statement of this ledger at all."""
    if provenance.ledger != ledger.id:
        yield Difference(
            CHANGED, f"made of the ledger {provenance.ledger}", f"this is the ledger {ledger.id}"
        )
    elif provenance.rows > rows:
        yield Difference(ADDED, f"{provenance.rows} rows", f"{rows} rows: it was put back or cut off")


def _wording_differences(
    text: str, stated: dict[str, Any] | None, remade: Statement, form: str
) -> list[Difference]:
    """What differs from today's words and, if anything does, from the former ones: whichever differ
    less.
    """
    wordings = []
    for statement, is_former in ((remade, False), (remade.in_former_words(), True)):
        if stated is not None:
            differences = list(_value_differences(stated, statement.to_dict()))
        else:
            page = statement.to_html() if form == "html" else statement.to_markdown()
            page = former_page(page, form) if is_former else page
            differences = list(_text_differences(text, page, form))
        if not differences:
            return []
        wordings.append(differences)
    return min(wordings, key=len)


def _text_differences(text: str, page: str, form: str) -> Iterator[Difference]:
    expected = _plain(page)
    if text == expected:
        return
    ours, theirs = _where_they_differ(_pieces(expected, form), _pieces(text, form))
    if len(ours) * len(theirs) > _MOST:
        yield Difference(CHANGED, f"{len(theirs)} pieces", f"{len(ours)} pieces, most of them others")
        return
    matcher = difflib.SequenceMatcher(None, theirs, ours, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal":
            yield _difference(_short("".join(theirs[a:b])), _short("".join(ours[c:d])))


def _where_they_differ(ours: list[str], theirs: list[str]) -> tuple[list[str], list[str]]:
    """Both without what they have in common at the beginning and at the end."""
    shorter = min(len(ours), len(theirs))
    start = next((at for at in range(shorter) if ours[at] != theirs[at]), shorter)
    end = next((at for at in range(shorter - start) if ours[-1 - at] != theirs[-1 - at]), shorter - start)
    return ours[start : len(ours) - end], theirs[start : len(theirs) - end]


def _pieces(page: str, form: str) -> list[str]:
    """What is compared piece by piece: lines, or tags and what stands between them."""
    return _TAGS.split(page) if form == "html" else page.splitlines(keepends=True)


def _value_differences(stated: JsonValue, ours: JsonValue, where: str = "") -> Iterator[Difference]:
    if isinstance(stated, Mapping) and isinstance(ours, Mapping):
        for name in [*ours, *(name for name in stated if name not in ours)]:
            place = f"{where}.{name}" if where else str(name)
            if name not in stated:
                yield Difference(MISSING, None, _short(f"{place}: {ours[name]}"))
            elif name not in ours:
                yield Difference(ADDED, _short(f"{place}: {stated[name]}"), None)
            else:
                yield from _value_differences(stated[name], ours[name], place)
    elif isinstance(stated, list) and isinstance(ours, list) and where == "released":
        yield from _entry_differences(stated, ours)
    elif stated != ours or type(stated) is not type(ours):
        yield Difference(CHANGED, _short(f"{where}: {stated}"), _short(f"{where}: {ours}"))


def _entry_differences(stated: list[Any], ours: list[Any]) -> Iterator[Difference]:
    """Charges are compared by their number, so that one that was dropped is named."""
    by_number = {line.get("number"): line for line in stated if isinstance(line, Mapping)}
    known = [line["number"] for line in ours]
    for line in ours:
        if line["number"] not in by_number:
            yield Difference(MISSING, None, _short(f"entry {line['number']}: {line['question']}"))
        else:
            yield from _value_differences(by_number[line["number"]], line, f"entry {line['number']}")
    if [line.get("number") for line in stated if isinstance(line, Mapping)] != [
        n for n in known if n in by_number
    ]:
        yield Difference(CHANGED, "the order or number of the entries", f"{len(ours)} entries in order")


def _difference(theirs: str, ours: str) -> Difference:
    kind = CHANGED if theirs and ours else MISSING if ours else ADDED
    return Difference(kind, theirs or None, ours or None)


def _list_unverified(provenance: Provenance) -> Iterator[str]:
    yield f"made {provenance.made}, by discreet {provenance.version} with source files sha256 {provenance.software}"
    if provenance.in_memory or provenance.weaknesses:
        yield "where the ledger was kept"
    if provenance.given_facts is not None:
        yield "the description of the data that was given with it"
    yield from (f"{name}: {_short(str(value))}" for name, value in provenance.declared.items())


def _parse_json(text: str) -> JsonObject:
    """JSON, in which no name may stand twice: a reader would see one value, and we another."""

    def once(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            raise ValueError
        return fields

    try:
        stated = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError):
        raise not_a_statement_error() from None
    return stated if isinstance(stated, dict) else {}


def _require_same_version(provenance: Provenance) -> None:
    if provenance.version != chain.version():
        raise BadDescription(
            "DP402",
            f"this statement was made by discreet {provenance.version}, and this is discreet {chain.version()}.",
            why="every letter is compared, and another version may word the same facts otherwise.",
            fix=f"pip install discreet=={provenance.version}   in an environment of its own, and verify it there",
        )


def _plain(text: str) -> str:
    """A text without what files and editors do to line ends."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").strip()


def _short(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
