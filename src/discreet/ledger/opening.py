# SPDX-License-Identifier: Apache-2.0
"""Opening a ledger: make it if there is none, and refuse one that is damaged or belongs to
something else.

**Guarantee.** What is opened has the tables that were made, a first row that states limit, unit and
data set, as many rows as its head says, and an unbroken chain over its last thousand rows (`verify`
walks all of them). What was given and differs from what is stored is refused. A ledger appears
whole: nobody ever sees half of one, and nothing that bears the name of one, an empty file included,
is ever begun anew.

What cannot be known from the inside: that the whole file was put back to an older copy. An anchor
that was written down elsewhere tells.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from discreet.errors import BadParameter, DiscreetError, LedgerError
from discreet.json_types import JsonFacts, JsonObject
from discreet.ledger import chain
from discreet.ledger.chain import LedgerRow
from discreet.ledger.chance import random_name
from discreet.ledger.costs import State
from discreet.ledger.description import Description, refuse_another
from discreet.ledger.limit import Limit
from discreet.ledger.receipt import entry_of
from discreet.ledger.sqlite import SQLite
from discreet.ledger.store import Store
from discreet.paths import is_address
from discreet.privacy.unit import Unit

#: The rows whose chain is checked on opening.
CHECKED = 1_000
_LONGEST = 1_000_000
_EXAMPLES = {"key": "monday", "analyst": "ana", "project": "wards", "question": "how many?"}


def open_store(
    where: object, given: JsonFacts, anchor: str | None
) -> tuple[Store, dict[str, Any], LedgerRow]:
    """The store, what its first row says, and its last row; made first, if need be, with what was
    given.
    """
    if anchor is not None:
        validate_anchor(anchor)
    store = store_at(where)
    return store.alone(lambda: _open_store(store, given, anchor, where))


def _open_store(
    store: Store, given: JsonFacts, anchor: str | None, where: object
) -> tuple[Store, dict[str, Any], LedgerRow]:
    if not store.exists():
        if anchor is not None:
            raise chain.damaged_error("there is none, and the anchor says that there was one.")
        store.make(_first_row(given, where))
        if not store.exists():
            raise chain.damaged_error("it was removed as soon as it was made.")
    store.check()
    last = _check_chain(store)
    about = _read_first_row(store)
    running_total(Limit.from_dict(about["limit"]), last.number, chain.read_row(last, whole=False)["state"])
    check_description(about, store, given)
    check_belongs(about, given)
    if anchor is not None and not store.has(anchor):
        raise chain.damaged_error(
            "it does not hold the row of this anchor: it was put back, cut off or exchanged."
        )
    return store, about, last


def check_belongs(about: JsonFacts, given: JsonFacts) -> None:
    """Refuse what is said of a ledger and is not what its first row says; a description is compared
    on its own.
    """
    for name in ("dataset", "unit", "limit"):
        if (
            name in given
            and about[name] != given[name]
            and not (name == "limit" and _is_former(about, given))
        ):
            raise _other_ledger_error(name, about, given)


def check_description(about: JsonFacts, store: Store, given: JsonFacts) -> None:
    """Refuse a description that protects somebody else than those that the ledger was charged
    under.
    """
    if "description" in given:
        refuse_another(versions_after(store, about, 0).values(), Description.of(given["description"]))


def versions_after(store: Store, about: JsonFacts, looked: int) -> dict[str, Description]:
    """The descriptions that charges behind row `looked` were first made under, by their digests.

    The one that a ledger was made with binds nobody before the first charge: until then a slip can
    be corrected.
    """
    second = store.at(1) if looked == 0 else None
    versions = {} if second is None or second.kind == "described" else first_description(about)
    for row in store.description_rows(looked):
        later = Description.of(entry_of(row).describes)
        versions[later.digest] = later
    return versions


def first_description(about: JsonFacts) -> dict[str, Description]:
    """The description that a ledger was made with, by its digest; none if that was not recorded."""
    if about.get("description") is None:
        return {}
    description = Description.of(about["description"])
    return {description.digest: description}


def _is_former(about: JsonFacts, given: JsonFacts) -> bool:
    """Whether earlier releases wrote this for the same call: a ledger of theirs keeps the constants
    that it was made with.
    """
    former_limit = Limit.from_dict(given["limit"]).former_limit
    return former_limit is not None and about["limit"] == former_limit.to_dict()


def store_at(where: object) -> Store:
    """The store at a path or an address."""
    if isinstance(where, Store):
        return where
    if isinstance(where, str) and where.startswith(("postgresql://", "postgres://")):
        from discreet.ledger.postgres import PostgreSQL

        return PostgreSQL(where)
    if isinstance(where, str | Path) and str(where) and "\0" not in str(where) and not is_address(where):
        return SQLite(where)
    raise BadParameter(
        "DP104",
        "a ledger lies in a file or on a PostgreSQL server.",
        why="what was spent has to outlive the process that spent it.",
        fix="Ledger('visits.ledger', …)  or  Ledger('postgresql://host/database', …)",
    )


def validate_text(name: str, value: object) -> str:
    """Some words, up to a million characters; `name` is the parameter that an error names."""
    if not isinstance(value, str):
        raise BadParameter(
            "DP104",
            f"{name} must be text, not {type(value).__name__}.",
            why="it is written into the ledger, for people.",
            fix=f"{name}='{_EXAMPLES.get(name, 'visits')}'",
        )
    return _validate_length(name, value, fits=len(value) <= _LONGEST, words=f"{_LONGEST} characters at most")


def validate_label(name: str, value: object) -> str:
    """A name or a key: a few characters that can be printed."""
    label = validate_text(name, value)
    return _validate_length(
        name, label, fits=0 < len(label) <= 200 and label.isprintable(), words="1 to 200 printable characters"
    )


def _validate_length(name: str, value: str, *, fits: bool, words: str) -> str:
    if fits:
        return value
    raise BadParameter(
        "DP102",
        f"{name} must have {words}.",
        why="it is written into the ledger, for people.",
        fix=f"{name}='{_EXAMPLES.get(name, 'visits')}'",
    )


def validate_anchor(anchor: object) -> str:
    """An anchor: the hash that `Ledger.anchor` returned."""
    if isinstance(anchor, str) and re.fullmatch(r"[0-9a-f]{64}", anchor):
        return anchor
    raise BadParameter(
        "DP102",
        "an anchor is 64 hexadecimal digits.",
        why="it is the hash of a row, and a part of it could be the hash of another.",
        fix="pass what ledger.anchor() returned, unchanged.",
    )


def ledger_facts(
    limit: object, unit: Unit | str | None, dataset: object, description: object = None
) -> JsonObject:
    """What the caller says about the ledger, as its first row says it."""
    facts: dict[str, Any] = {}
    if limit is not None:
        if not isinstance(limit, Limit):
            raise BadParameter(
                "DP104",
                f"limit must be a Limit, not {type(limit).__name__}.",
                why="each limit names the theorem that makes its sum a guarantee.",
                fix="limit=Limit.filter(epsilon=1, delta=1e-6)",
            )
        facts["limit"] = limit.to_dict()
    if unit is not None:
        whole = unit if isinstance(unit, Unit) else Unit(unit)
        facts["unit"] = {"protects": whole.protects, "relation": whole.relation}
    if dataset is not None:
        facts["dataset"] = validate_text("dataset", dataset)
    if description is not None:
        facts["description"] = Description.of(description).facts
    return facts


def _first_row(given: JsonFacts, where: object) -> LedgerRow:
    """The row that a new ledger begins with."""
    if "limit" not in given:
        raise LedgerError(
            "DP603",
            "there is no ledger here, and no limit was given to make one.",
            why="a ledger without a limit could not refuse anything.",
            fix=_limit_fix(given, where),
        )
    unit = {"protects": "record", "relation": "add-remove"}
    about: dict[str, Any] = {"ledger": random_name(), "unit": unit}
    about |= {"dataset": None, **given}
    state = Limit.from_dict(given["limit"]).start().to_dict()
    return chain.next_row(None, "open", time=chain.now(), state=state, about=about)


def _limit_fix(given: JsonFacts, where: object) -> str:
    """The same call with a limit; an address is not repeated, since it may hold a password."""
    limit = "dp.Limit.filter(epsilon=1, delta=1e-6)"
    named = isinstance(where, str | Path) and "://" not in str(where)
    if "description" in given:  # a session makes its own: only that is for its data and its unit
        ledger = "" if str(where) == ":memory:" else f", ledger={str(where)!r}" if named else ", ledger=…"
        return f"dp.Session(data, {limit}{ledger})"
    return f"dp.Ledger({str(where) if named else 'visits.ledger'!r}, limit={limit})"


def _check_chain(store: Store) -> LedgerRow:
    """The last row, after the chain that leads to it was checked."""
    last = store.last()
    before = store.at(last.number - CHECKED)
    for row in store.rows(max(0, last.number - CHECKED + 1)):
        check_link(row, chain.read_row(row)["previous"], before)
        before = row
    if store.count() < last.number + 1:  # further back
        raise chain.damaged_error("rows are missing.")
    return last


def check_link(row: LedgerRow, previous: str, before: LedgerRow | None) -> None:
    """Refuse a row that does not come right after the one before it."""
    number, expected = (-1, chain.NOTHING) if before is None else (before.number, before.hash)
    if row.number != number + 1 or previous != expected:
        raise chain.damaged_error(f"row {row.number} does not follow the one before it.")


def running_total(limit: Limit, number: int, state: JsonFacts) -> State:
    """The running total that row `number` carries, with an amount for everything that the limit
    counts.
    """
    try:
        total = State.from_dict(state)
    except DiscreetError:
        total = State({})
    if not limit.knows(total):
        raise chain.damaged_error(f"row {number} carries a total that cannot be read.")
    return total


def _read_first_row(store: Store) -> dict[str, Any]:
    """What the first row says about the ledger."""
    row = store.at(0)
    try:
        about: dict[str, Any] = chain.read_row(row)["about"] if row is not None else {}
        Limit.from_dict(about["limit"])
        Unit(**about["unit"])
        validate_text("ledger", about["ledger"])
        if about["dataset"] is not None:
            validate_text("dataset", about["dataset"])
        first_description(about)
    except (DiscreetError, KeyError, TypeError) as error:
        if isinstance(error, DiscreetError) and error.code == "DP402":
            raise
        raise chain.damaged_error("its first row does not say what it is for.") from None
    return about


def _other_ledger_error(name: str, about: JsonFacts, given: JsonFacts) -> LedgerError:
    words = {"limit": "another limit", "unit": "another unit", "dataset": "another data set"}[name]
    return LedgerError(
        "DP603",
        f"this ledger was made with {words}.",
        why="what was spent was counted against that; counted against something else it would mean nothing.",
        fix=_belonging_fix(name, about, given.get("dataset")),
    )


def _belonging_fix(name: str, about: JsonFacts, dataset: str | None) -> str:
    """What to do instead; never to count the same people in a second ledger, or to call others by
    their name.
    """
    if name == "limit" or dataset is None:
        return f"leave out {name}=… (--{name})"
    if name == "unit":
        return f"open {dataset} with the unit that this ledger protects: {Unit(**about['unit'])}"
    own = "-".join(re.findall(r"[\w-]+", dataset)) or "data"
    return f"name the ledger that all answers about {dataset} are charged to:  ledger='{own}.ledger'"
