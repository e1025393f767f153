# SPDX-License-Identifier: Apache-2.0
"""A release file: many tables at once, each with its question and its cost.

    [release]                name, data, ledger, epsilon | rho | delta | error, analyst, project, purpose, format
    [[table]]                name, sql, epsilon | rho | delta | error, format
    [statement]              what only a person knows, for the statement: intended_use, publication_date, …

**Guarantee.** A key that is not in this list, or a value of the wrong type, is refused with DP403. What each table costs is
known before anything is drawn; an error that needs a first answer to know its cost is refused here.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import check
from discreet.cli.files import TABLES
from discreet.cli.places import SHIPPED
from discreet.cli.previews import resolved
from discreet.cli.statement import STATEMENT_EXAMPLE
from discreet.errors import BadDescription, BadParameter, EngineFailed, LedgerError
from discreet.paths import check_address, expanded, text_of

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee
    from discreet.session import Session

_COST = ("epsilon", "rho", "delta", "error")
_RELEASE = ("name", "data", "ledger", *_COST, "analyst", "project", "purpose", "format")
_TABLE = ("name", "sql", *_COST, "format")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_USUAL = ("csv", "parquet")
_EXAMPLE = 'name = "by_region"\n       sql = "SELECT region, COUNT(*) FROM income GROUP BY region"\n       epsilon = 0.1'


@dataclass(frozen=True)
class TableAsked:
    """One table of a release."""

    name: str
    sql: str
    spend: dict[str, Any]
    formats: tuple[str, ...]


@dataclass(frozen=True)
class Release:
    """A release file that has been read."""

    name: str
    data: str
    ledger: str | None
    who: dict[str, str | None]
    tables: tuple[TableAsked, ...]
    declared: dict[str, Any] = field(default_factory=dict)

    def jobs(self, session: Session) -> list[Job]:
        """Each table with its cost, and whether it was paid for before; reads no data."""
        return [_job(session, table, self) for table in self.tables]


@dataclass(frozen=True)
class Job:
    """One table that is to be made."""

    name: str
    sql: str
    key: str
    spend: dict[str, Any]
    formats: tuple[str, ...]
    preview: Any
    paid: bool

    @property
    def cost(self) -> Guarantee:
        """What it costs, if it was not paid for before."""
        cost: Guarantee = self.preview.cost
        return cost

    @property
    def words(self) -> str:
        """The cost for the eye."""
        stated = ", ".join(f"{_SIGNS[name]} {value:g}" for name, value in self.spend.items())
        return f"{stated} (paid before)" if self.paid else stated

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON types."""
        return {
            "name": self.name,
            "key": self.key,
            "paid": self.paid,
            "spend": self.spend,
            **self.preview.to_dict(),
        }


_SIGNS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}


def read(file: Path) -> Release:
    """What a release file says, checked; paths in it are taken from where it lies."""
    check_address(file)
    try:
        told = tomllib.loads(text_of(file))
    except EngineFailed as missing:
        raise wrong(file.name, missing.what, missing.fix) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        reason = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "it is nested too deeply"
        raise wrong(file.name, f"{reason}.", "[release]") from None
    _known(file.name, told, ("release", "table", "statement"))
    head, tables = told.get("release", {}), told.get("table", [])
    _known("[release]", head, _RELEASE)
    if not isinstance(tables, list) or not tables:
        raise wrong("[[table]]", "there is no table to release.", f"[[table]]\n       {_EXAMPLE}")
    asked = tuple(_table(number, table, head) for number, table in enumerate(tables, 1))
    names = [table.name for table in asked]
    if len(set(names)) < len(names):
        raise wrong(
            "[[table]]", "two tables have the same name.", "give each its own: its files are called like it"
        )
    data = _word("[release] data", head.get("data"), 'data = "income.toml"')
    ledger = (
        None
        if "ledger" not in head
        else _word("[release] ledger", head["ledger"], 'ledger = "income.ledger"')
    )
    return Release(
        name=_name("[release] name", head.get("name", file.stem)),
        data=data if data in SHIPPED else str(file.parent / data),
        ledger=ledger if ledger is None or "://" in ledger else str(file.parent / expanded(ledger)),
        who={name: _maybe(f"[release] {name}", head.get(name)) for name in ("analyst", "project", "purpose")},
        tables=asked,
        declared=_declared(told.get("statement", {})),
    )


def _declared(told: Any) -> dict[str, Any]:
    """What a person says for the statement; refused before anything is spent."""
    from discreet.ledger.registry import declared

    try:
        return declared(told)
    except BadParameter as slip:
        raise wrong("[statement]", slip.what, STATEMENT_EXAMPLE) from None


def _table(number: int, told: Any, head: dict[str, Any]) -> TableAsked:
    where = f"[[table]] {number}"
    _known(where, told, _TABLE)
    return TableAsked(
        name=_name(f"{where} name", told.get("name")),
        sql=_word(f"{where} sql", told.get("sql"), _EXAMPLE),
        spend=_spend(where, told, head),
        formats=_formats(where, told.get("format", head.get("format", list(_USUAL)))),
    )


def _spend(where: str, told: dict[str, Any], head: dict[str, Any]) -> dict[str, Any]:
    """The table's own cost; what it does not state is taken from [release], as a whole but for δ."""
    own = {name: told[name] for name in _COST if name in told}
    usual = {name: head[name] for name in _COST if name in head}
    stated = {**({"delta": usual["delta"]} if "delta" in usual and "rho" not in own else {}), **own}
    if not set(own) - {"delta"}:
        stated = {**usual, **own}
    try:
        for name in set(stated) - {"error"}:
            (check.delta if name == "delta" else check.positive)(**{name: stated[name]})
    except BadParameter as slip:
        raise wrong(where, slip.what, slip.fix) from None
    if not stated:
        raise wrong(where, "it does not say what it may cost.", "epsilon = 0.1   there, or under [release]")
    return stated


def _formats(where: str, told: Any) -> tuple[str, ...]:
    forms = [told] if isinstance(told, str) else told
    if isinstance(forms, list) and forms and all(form in TABLES for form in forms):
        return tuple(forms)
    raise wrong(
        f"{where} format", f"it is one or more of {', '.join(TABLES)}.", 'format = ["csv", "parquet"]'
    )


def _job(session: Session, table: TableAsked, release: Release) -> Job:
    from discreet.tables.ask.sql import parse

    key = f"release {release.name}: {table.name}"
    question = parse(table.sql, session.data).question
    spend = resolved(session, question, table.spend)
    if spend is None:
        raise BadParameter(
            "DP107",
            f"what table {table.name} costs at this error is known only after a first answer.",
            why="a release is checked against the limit as a whole, before anything is drawn.",
            fix='state epsilon = 0.1 for it, or an error in the units of a count or a sum:  error = "±50"',
        )
    preview = session.preview(question, **spend)
    try:
        kept = session.find(key, question.text, preview.cost)
    except LedgerError as error:
        if error.code != "DP604":
            raise
        raise LedgerError(
            "DP604",
            f"a table {table.name} of a release of this name was released before, with another question or cost.",
            why="running a release again completes it; what has changed is another release, and costs again.",
            fix='[release]\n       name = "…"      # a new name',
        ) from None
    known = kept is not None or session.ledger.waiting(key) is not None
    return Job(table.name, table.sql, key, spend, table.formats, preview, known)


def _known(where: str, section: Any, keys: tuple[str, ...]) -> None:
    from discreet.tables.data.rules import nearest

    if not isinstance(section, dict):
        raise wrong(where, "it must be a section with keys.", "[release]")
    for key in section:
        if key not in keys:
            raise wrong(where, f"there is no key {key!r}.", f"{nearest(key, keys)}   (did you mean this?)")


def _word(where: str, value: Any, fix: str) -> str:
    if isinstance(value, str) and value.strip():
        return value
    raise wrong(where, "it is missing, or is no text.", fix)


def _maybe(where: str, value: Any) -> str | None:
    return None if value is None else _word(where, value, f'{where.rsplit(maxsplit=1)[-1]} = "…"')


def _name(where: str, value: Any) -> str:
    """A name that is also the name of a file."""
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    raise wrong(
        where, "it is letters, digits, _ . and -, and begins with a letter or digit.", 'name = "by_region"'
    )


def wrong(where: str, what: str, fix: str) -> BadDescription:
    """A release file that cannot be run."""
    return BadDescription(
        "DP403",
        f"{where}: {what}",
        why="what is not understood to the last key would release something else than what was written.",
        fix=fix,
    )
