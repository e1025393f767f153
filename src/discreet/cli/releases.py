# SPDX-License-Identifier: Apache-2.0
"""A release file: many tables at once, each with its question and its cost.

    [release]                name, data, ledger, epsilon | rho | delta | error, analyst, project, purpose, format
    [[table]]                name, sql, epsilon | rho | delta | error, format
    [[stream]]               a question that is published again every period: see `release_streams.py`
    [[copy]]                 a synthetic copy: see `release_copies.py`
    [statement]              what only a person knows, for the statement: intended_use, publication_date, …

A folder with release.toml and .sql files is a release, too: each file is a table, whose keys stand
in comments before the question, such as `-- epsilon = 0.1`.

**Guarantee.** A key that is not in this list, or a value of the wrong type, is refused with DP403.
What each table costs is known before anything is drawn; an error that needs a first answer to know
its cost is refused here.
"""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from discreet import check
from discreet.cli.files import TABLES
from discreet.cli.places import SHIPPED
from discreet.cli.previews import is_released, known_cost
from discreet.cli.release_copies import COPY_FORMATS, COPY_WORDS, MOST_COPY_ROWS, CopySection
from discreet.cli.release_streams import WORDS, StreamSection
from discreet.cli.statement import STATEMENT_EXAMPLE
from discreet.errors import BadDescription, BadParameter, EngineFailed
from discreet.paths import check_address, expand_home, is_folder, text_of

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee
    from discreet.session import QuestionCost, Session
    from discreet.tables.plan.preview import Preview

_COST = ("epsilon", "rho", "delta", "error")
_RELEASE = ("name", "data", "ledger", *_COST, "analyst", "project", "purpose", "format")
_TABLE = ("name", "sql", *_COST, "format")
_STREAM = ("name", "sql", "epsilon", "rho", "delta", *WORDS, "file", "format")
_COPY = ("name", "table", *COPY_WORDS, "epsilon", "rho", "delta", "rows", "seed", "format")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_KEY = re.compile(r"\w+\s*=")
_USUAL = ("csv", "parquet")
_EXAMPLE = 'name = "by_region"\n       sql = "SELECT region, COUNT(*) FROM income GROUP BY region"\n       epsilon = 0.1'


@dataclass(frozen=True)
class TableRequest:
    """One table of a release."""

    name: str
    sql: str
    spend: QuestionCost
    formats: tuple[str, ...]


@dataclass(frozen=True)
class ReleaseFile:
    """What a release file states."""

    name: str
    data: str
    ledger: str | None
    who: dict[str, str | None]
    tables: tuple[TableRequest, ...]
    declared: Mapping[str, object] = field(default_factory=dict)
    streams: tuple[StreamSection, ...] = ()
    copies: tuple[CopySection, ...] = ()

    def jobs(self, session: Session) -> list[TableJob]:
        """Each table with its cost, and whether it was paid for before; reads no data."""
        return [_table_job(session, table, self) for table in self.tables]


@dataclass(frozen=True)
class TableJob:
    """One table to be released, with its cost."""

    name: str
    sql: str
    key: str
    spend: QuestionCost
    formats: tuple[str, ...]
    preview: Preview
    paid: bool

    @property
    def cost(self) -> Guarantee:
        """Its cost, due unless it was paid before."""
        return self.preview.cost

    @property
    def words(self) -> str:
        """The cost as text."""
        stated = ", ".join(f"{_SIGNS[name]} {value:g}" for name, value in self.spend.items())
        return f"{stated} (paid before)" if self.paid else stated

    def to_dict(self) -> dict[str, object]:
        """As plain JSON types."""
        return {
            "name": self.name,
            "key": self.key,
            "paid": self.paid,
            "spend": self.spend,
            **self.preview.to_dict(),
        }


_SIGNS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}


def read_release(file: Path) -> ReleaseFile:
    """A release file, validated; paths in it are relative to its folder.

    A folder holds `release.toml` and a .sql file for each table, named after the file.
    """
    check_address(file)
    queries: list[Path] = []
    if is_folder(file):
        queries = sorted(file.glob("*.sql"))
        file = file / "release.toml"
    try:
        document = tomllib.loads(text_of(file) + "".join(map(_table_text, queries)))
    except EngineFailed as missing:
        raise release_file_error(file.name, missing.what, missing.fix) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        reason = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "it is nested too deeply"
        raise release_file_error(file.name, f"{reason}.", "[release]") from None
    _check_keys(file.name, document, ("release", "table", "stream", "copy", "statement"))
    head, tables = document.get("release", {}), document.get("table", [])
    streams, copies = document.get("stream", []), document.get("copy", [])
    _check_keys("[release]", head, _RELEASE)
    if not all(isinstance(each, list) for each in (tables, streams, copies)) or not [
        *tables,
        *streams,
        *copies,
    ]:
        raise release_file_error(
            "[[table]]", "there is no table to release.", f"[[table]]\n       {_EXAMPLE}"
        )
    requests = tuple(_table(number, table, head) for number, table in enumerate(tables, 1))
    sections = tuple(_stream(number, stream, head, file) for number, stream in enumerate(streams, 1))
    name = _name("[release] name", head.get("name", file.stem))
    copied = tuple(_copy(number, section, head, name) for number, section in enumerate(copies, 1))
    names = [table.name for table in requests] + [stream.name for stream in sections]
    names += [copy.name for copy in copied]
    if len(set(names)) < len(names):
        raise release_file_error(
            "[[table]]",
            "two tables have the same name.",
            "give each table its own name: its files are named after it",
        )
    data = _text("[release] data", head.get("data"), 'data = "income.toml"')
    ledger = (
        None
        if "ledger" not in head
        else _text("[release] ledger", head["ledger"], 'ledger = "income.ledger"')
    )
    return ReleaseFile(
        name=name,
        data=data if data in SHIPPED else str(file.parent / data),
        ledger=ledger if ledger is None or "://" in ledger else str(file.parent / expand_home(ledger)),
        who={
            name: _optional_text(f"[release] {name}", head.get(name))
            for name in ("analyst", "project", "purpose")
        },
        tables=requests,
        declared=_check_declared(document.get("statement", {})),
        streams=sections,
        copies=copied,
    )


def _table_text(path: Path) -> str:
    """A .sql file as a [[table]]: its first lines, such as `-- epsilon = 0.1`, are the keys."""
    lines = text_of(path).splitlines()
    comments = list(itertools.takewhile(lambda line: line.strip().startswith("--"), lines))
    stated = [line.strip().removeprefix("--").strip() for line in comments]
    # A comment in prose is no key, and a misspelt key is refused as in the release file.
    keys = [line for line in stated if _KEY.match(line)]
    named = any(line.partition("=")[0].strip() == "name" for line in keys)
    # JSON writes a text as TOML reads it.
    sql = json.dumps("\n".join(lines[len(comments) :]), ensure_ascii=False)
    name = [] if named else [f"name = {json.dumps(path.stem)}"]
    return "\n".join(["", "[[table]]", *name, *keys, f"sql = {sql}"])


def _check_declared(section: Any) -> Mapping[str, object]:
    """What a person says for the statement; refused before anything is spent."""
    from discreet.ledger.registry import validate_declared

    try:
        return validate_declared(section)
    except BadParameter as slip:
        raise release_file_error("[statement]", slip.what, STATEMENT_EXAMPLE) from None


def _table(number: int, section: Any, head: dict[str, Any]) -> TableRequest:
    where = f"[[table]] {number}"
    _check_keys(where, section, _TABLE)
    return TableRequest(
        name=_name(f"{where} name", section.get("name")),
        sql=_text(f"{where} sql", section.get("sql"), _EXAMPLE),
        spend=_spend(where, section, head),
        formats=_formats(where, section.get("format", head.get("format", list(_USUAL)))),
    )


def _stream(number: int, section: Any, head: dict[str, Any], file: Path) -> StreamSection:
    where = f"[[stream]] {number}"
    _check_keys(where, section, (*_STREAM, "error"))
    cost = dict(_spend(where, section, head))
    if "error" in cost:
        raise release_file_error(where, "a stream states what it may cost in amounts.", "epsilon = 0.1")
    usual = {"every": 'every = "week"', "periods": "periods = 52"}
    missing = [name for name in usual if name not in section]
    if missing:
        raise release_file_error(
            where, f"it does not state {missing[0]}.", "\n       ".join(usual[name] for name in missing)
        )
    private = _optional_text(f"{where} file", section.get("file"))
    return StreamSection(
        name=_name(f"{where} name", section.get("name")),
        sql=_text(f"{where} sql", section.get("sql"), 'sql = "SELECT COUNT(*) FROM visits"'),
        words={name: section[name] for name in WORDS if name in section},
        cost=cost,
        formats=_formats(where, section.get("format", head.get("format", list(_USUAL)))),
        file=None if private is None else str(file.parent / expand_home(private)),
    )


def _copy(number: int, section: Any, head: dict[str, Any], release: str) -> CopySection:
    where = f"[[copy]] {number}"
    _check_keys(where, section, (*_COPY, "error"))
    cost = dict(_spend(where, section, head))
    if "error" in cost:
        raise release_file_error(where, "a synthetic copy states what it may cost in amounts.", "rho = 0.005")
    formats = section.get("format", head.get("format", "csv"))
    if not set(_formats(where, formats)) <= set(COPY_FORMATS):
        raise release_file_error(
            f"{where} format",
            f"the rows of a copy are written as {' or '.join(COPY_FORMATS)}.",
            'format = ["csv", "parquet"]',
        )
    name = _name(f"{where} name", section.get("name"))
    return CopySection(
        name=name,
        key=f"release {release}: {name}",
        words={name: section[name] for name in COPY_WORDS if name in section},
        cost=cost,
        formats=_formats(where, formats),
        table=_optional_text(f"{where} table", section.get("table")),
        rows=None if "rows" not in section else _whole(f"{where} rows", section["rows"], MOST_COPY_ROWS),
        seed=_whole(f"{where} seed", section.get("seed", 0), 10**15),
    )


def _whole(where: str, value: object, most: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most:
        return value
    name = where.rsplit(maxsplit=1)[-1]
    raise release_file_error(where, f"it is a whole number from 0 to {most:,}.", f"{name} = 1000")


def _spend(where: str, section: dict[str, Any], head: dict[str, Any]) -> QuestionCost:
    """The table's own cost; what it does not state is taken from [release], as a whole but for δ."""
    own = {name: section[name] for name in _COST if name in section}
    usual = {name: head[name] for name in _COST if name in head}
    stated = {**({"delta": usual["delta"]} if "delta" in usual and "rho" not in own else {}), **own}
    if not set(own) - {"delta"}:
        stated = {**usual, **own}
    try:
        for name in set(stated) - {"error"}:
            (check.delta if name == "delta" else check.positive)(**{name: stated[name]})
    except BadParameter as slip:
        raise release_file_error(where, slip.what, slip.fix) from None
    if not stated:
        raise release_file_error(
            where, "it does not state what it may cost.", "epsilon = 0.1   there, or under [release]"
        )
    return cast("QuestionCost", stated)


def _formats(where: str, section: object) -> tuple[str, ...]:
    forms = [section] if isinstance(section, str) else section
    if isinstance(forms, list) and forms and all(form in TABLES for form in forms):
        return tuple(forms)
    raise release_file_error(
        f"{where} format", f"it is one or more of {', '.join(TABLES)}.", 'format = ["csv", "parquet"]'
    )


def _table_job(session: Session, table: TableRequest, release: ReleaseFile) -> TableJob:
    from discreet.tables.ask.sql import parse

    key = f"release {release.name}: {table.name}"
    question = parse(table.sql, session.data).question
    spend = known_cost(session, question, table.spend)
    if spend is None:
        raise BadParameter(
            "DP107",
            f"the cost of table {table.name} at this error is known only after a first answer.",
            why="a release is checked against the budget as a whole, before anything is drawn.",
            fix='state epsilon = 0.1 for it, or an error in the units of a count or a sum:  error = "±50"',
        )
    preview = session.preview(question, **spend)
    is_paid = is_released(session, key, question.text, preview.cost, f"table {table.name}")
    return TableJob(table.name, table.sql, key, spend, table.formats, preview, is_paid)


def _check_keys(where: str, section: Any, keys: tuple[str, ...]) -> None:
    from discreet.tables.data.rules import nearest

    if not isinstance(section, dict):
        raise release_file_error(where, "it must be a section with keys.", "[release]")
    for key in section:
        if key not in keys:
            raise release_file_error(
                where, f"there is no key {key!r}.", f"{nearest(key, keys)}   (did you mean this?)"
            )


def _text(where: str, value: object, fix: str) -> str:
    if isinstance(value, str) and value.strip():
        return value
    raise release_file_error(where, "it is missing or not a text.", fix)


def _optional_text(where: str, value: object) -> str | None:
    return None if value is None else _text(where, value, f'{where.rsplit(maxsplit=1)[-1]} = "…"')


def _name(where: str, value: object) -> str:
    """A name that is also the name of a file."""
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    raise release_file_error(
        where,
        "it must consist of letters, digits, _ . and -, and begin with a letter or digit.",
        'name = "by_region"',
    )


def release_file_error(where: str, what: str, fix: str) -> BadDescription:
    """The error of a release file that cannot be run."""
    return BadDescription(
        "DP403",
        f"{where}: {what}",
        why="every key of a release file must be understood before anything is released.",
        fix=fix,
    )
