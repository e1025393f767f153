# SPDX-License-Identifier: Apache-2.0
"""For which data a ledger is charged: the description that each charge names, and what of it may
change.

**Guarantee.** Within one data set the unit (its column, its type, its word, the relation) and the
contribution bounds stay what they were at the first charge, and a table that was private once, by
its name or by where it lies, is never public later. Whatever else changes is written down as a new
version before the first charge under it. A version is known by the SHA-256 of its text, which every
charge carries, so it lies in the hash chain.

Why that is needed: a limit bounds the loss of one unit. Charges for one visit and charges for one
patient add up to a bound for neither, whatever word both are given. Contribution bounds are
enforced question by question; they are fixed because the statement names one for all answers.

What would break it: two columns of the same name that mean different people, or two files of one
name. Neither can be seen from a description; the statement lists every version with its sources,
and marks as asserted what only a person can know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from discreet.errors import BadParameter, LedgerError
from discreet.json_types import JsonFacts
from discreet.ledger import chain

__all__ = ["Change", "Description", "list_changes", "refuse_another"]

#: What is the same in every version of a data set, and what a person calls it.
_FIXED = {
    "column": "the unit column",
    "relation": "the relation",
    "protects": "the word for who is protected",
    "at_most": "at_most",
    "groups": "groups",
    "per": "the period of a unit",
    "when": "the time that tells periods apart",
}
#: What may change, and says nothing about what a question means: where knowledge and rows come
#: from.
_ORIGIN = ("source", "within")


#: What `Dataset.public_description` returns, or a description that was made of it already.


@dataclass(frozen=True)
class Change:
    """One difference between two versions. `refused`: it may not be; `alters`: what was described
    before is described otherwise.
    """

    words: str
    refused: bool = False
    alters: bool = True


@dataclass(frozen=True)
class Description:
    """What `Dataset.public_description` says, as one text that never changes.

    >>> Description.of({"name": "visits", "column": "patient_id"}).text
    '{"column":"patient_id","name":"visits"}'
    """

    text: str
    facts: JsonFacts

    @classmethod
    def of(cls, facts: object) -> Description:
        """From a mapping, or from a description that was made already."""
        if isinstance(facts, Description):
            return facts
        if not isinstance(facts, Mapping):
            raise _no_mapping_error(facts)
        plain = _plain(facts)
        return cls(chain.canonical(plain), plain)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the text: the name of this version."""
        return chain.digest(self.text)

    @property
    def name(self) -> str | None:
        """The data set."""
        return self.facts.get("name")

    @property
    def tables(self) -> JsonFacts:
        """The tables by name."""
        tables: JsonFacts = self.facts.get("tables", {})
        return tables

    def lies(self, *, private: bool) -> set[tuple[str, str]]:
        """Where its private tables, or its public ones, lie, as far as that is known."""
        places = [
            (str(table.get("source") or ""), str(table.get("within") or ""))
            for table in self.tables.values()
            if bool(table.get("private", True)) is private
        ]
        return {place for place in places if place[0]}

    def is_about_the_data_of(self, other: Description) -> bool:
        """Whether both describe one data set: by its name, or because a private table of both lies
        in the same place.
        """
        return self.name == other.name or bool(self.lies(private=True) & other.lies(private=True))


def refuse_another(versions: Iterable[Description], new: Description) -> None:
    """Refuse a description that protects somebody else than the versions that the ledger was
    charged under.

    >>> before = Description.of({"name": "visits", "column": "patient_id", "at_most": 4})
    >>> refuse_another([before], Description.of({"name": "visits", "column": "visit_id", "at_most": 4}))
    Traceback (most recent call last):
    ...
    discreet.errors.LedgerError: DP608 ...
    """
    for old in versions:
        refused = [change for change in list_changes(old, new) if change.refused]
        if refused:
            raise _other_description_error(old, refused)


def list_changes(old: Description, new: Description) -> list[Change]:
    """How the new description differs from the old one; between different data sets only what may
    not be.
    """
    changes = list(_exposed_tables(old, new))
    if old.is_about_the_data_of(new):
        changes += _unit_changes(old, new)
    if old.name != new.name:
        return [*changes, Change(f"the data set is {new.name}, not {old.name}")]
    return [*changes, *_word_changes(old, new), *_table_changes(old, new)]


def _unit_changes(old: Description, new: Description) -> Iterator[Change]:
    for name, words in _FIXED.items():
        was, is_now = old.facts.get(name), new.facts.get(name)
        if was != is_now:
            yield Change(f"{words} is {_text_of(is_now)}, not {_text_of(was)}", refused=True)
    kinds = {_unit_kind(description) for description in (old, new)} - {None}
    if len(kinds) > 1:
        yield Change("the unit column has another type", refused=True)


def _unit_kind(description: Description) -> str | None:
    """The type of the column that tells units apart: read as a number, '7' and '07' are one person,
    and as text two.
    """
    column = description.facts.get("column")
    private = (table for table in description.tables.values() if table.get("private", True))
    kinds = (table.get("columns", {}).get(column, {}).get("kind") for table in private)
    return next((str(kind) for kind in kinds if kind), None)


def _exposed_tables(old: Description, new: Description) -> Iterator[Change]:
    """Tables that were private, and are public now: their rows would be shown as they are."""
    places = old.lies(private=True)
    for name, table in new.tables.items():
        before = old.tables.get(name, {"private": False}) if old.name == new.name else {"private": False}
        location = (str(table.get("source") or ""), str(table.get("within") or ""))
        if not table.get("private", True) and (before.get("private", True) or location in places):
            yield Change(f"table {name} is public, and its rows were private", refused=True)


def _word_changes(old: Description, new: Description) -> Iterator[Change]:
    for name in sorted({*old.facts, *new.facts} - {*_FIXED, "tables", "name"}):
        was, is_now = old.facts.get(name), new.facts.get(name)
        if was != is_now:
            yield Change(f"{name} is {_text_of(is_now)}, not {_text_of(was)}")


def _table_changes(old: Description, new: Description) -> Iterator[Change]:
    for name in sorted({*old.tables, *new.tables}):
        was, is_now = old.tables.get(name), new.tables.get(name)
        if was is None:
            yield Change(f"table {name} is new", alters=False)
        elif is_now is None:
            yield Change(f"table {name} is gone")
        elif was != is_now:
            yield from _changes_of_table(name, was, is_now)


def _changes_of_table(name: str, was: JsonFacts, is_now: JsonFacts) -> Iterator[Change]:
    for key in sorted({*was, *is_now} - {"columns"}):
        if was.get(key) != is_now.get(key):
            moved = f"table {name} lies elsewhere" if key in _ORIGIN else f"table {name}: {key} has changed"
            yield Change(moved, alters=key not in _ORIGIN)
    columns, others = was.get("columns", {}), is_now.get("columns", {})
    for column in sorted({*columns, *others}):
        before, after = columns.get(column), others.get(column)
        if before is None:
            yield Change(f"column {name}.{column} is new", alters=False)
        elif after is None:
            yield Change(f"column {name}.{column} is gone")
        elif before != after:
            yield from _changes_of_column(f"{name}.{column}", before, after)


def _changes_of_column(where: str, before: JsonFacts, after: JsonFacts) -> Iterator[Change]:
    for key in sorted({*before, *after}):
        was, is_now = before.get(key), after.get(key)
        if was != is_now:
            words = "its categories are others" if key == "categories" else f"{key} is {_text_of(is_now)}"
            yield Change(f"column {where}: {words}", alters=key not in _ORIGIN)


def _text_of(value: object) -> str:
    return "none" if value is None or value == "" else str(value)


def _plain(value: Any) -> Any:
    """As JSON has it; dates and other such bounds become text."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    finite = not isinstance(value, float) or value - value == 0
    return value if finite and (value is None or isinstance(value, bool | int | float | str)) else str(value)


def _other_description_error(old: Description, refused: list[Change]) -> LedgerError:
    changes = "; ".join(change.words for change in refused)
    return LedgerError(
        "DP608",
        f"this ledger was charged for another description of {old.name or 'its data'}: {changes}.",
        why="its limit bounds the loss of those who were protected before; answers that protect others do not add up to one guarantee.",
        fix=f"go on with what this ledger protects:  {_protect_argument(old)}",
    )


def _protect_argument(old: Description) -> str:
    """The arguments of `dp.open` that state whom the ledger protects."""
    facts = old.facts
    more = [f'relation="{facts["relation"]}"'] if facts.get("relation") == "replace" else []
    word, column = facts.get("protects"), facts.get("column")
    if column is None:
        arguments = [*more, *([f'word="{word}"'] if word and word != "row" else [])]
        unit = f"dp.each_row({', '.join(arguments)})"
    else:
        rows = facts.get("at_most")
        arguments = [f'"{column}"', f"at_most={rows!r}".replace("'", '"')]
        arguments += [f"groups={facts['groups']}"] if facts.get("groups") else []
        arguments += [*more, *([f'word="{word}"'] if word and word != column else [])]
        unit = f"dp.each({', '.join(arguments)})"
    private = sorted(name for name, table in old.tables.items() if table.get("private", True))
    return f"protect={unit}" + (f"   with {', '.join(private)} private" if private else "")


def _no_mapping_error(given: object) -> BadParameter:
    return BadParameter(
        "DP104",
        f"a description is a mapping, not {type(given).__name__}.",
        why="a charge names the data set that it is for, and where each bound of it comes from.",
        fix="description=data.public_description()",
    )
