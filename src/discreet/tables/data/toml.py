# SPDX-License-Identifier: Apache-2.0
"""Descriptions of data sets as TOML files, which people read and keep beside their code.

    [dataset]                      source, name, version, unit (or each_row), relation, word, engine, memory,
                                   threads
    [limits]                       rows_per_unit, groups_per_unit
    [columns.days]                 type, bounds, values, null, places, source
    [tables.visits]                instead of source: one section for each private table, with its columns;
                                   unit, if it is another column, or "order_id -> orders.id"
    [public.wards]                 a public table, with its columns
    [views]                        adults = "SELECT …", for each query that questions use as a table
    [budget]                       epsilon, delta, rho, mu, filter, per_analyst, window, lifetime, ledger

**Guarantee.** A key that is not in this list, or a value of the wrong type, is refused with DP403,
so a typing error never becomes a default. Only the file is read. `read` and `write` are inverse.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import BadDescription, BadParameter, EngineFailed
from discreet.paths import check_address, expand_home, text_of
from discreet.tables.algebra.resources import ANY, Resources
from discreet.tables.data import rules
from discreet.tables.data.budget import validate_budget as checked_budget
from discreet.tables.data.dataset import Column, Each

if TYPE_CHECKING:
    from discreet.tables.data.dataset import DescribedTables, Table

__all__ = [
    "DataDescription",
    "TableDescription",
    "column_of",
    "key_text",
    "parse",
    "read",
    "resolve_source",
    "value_text",
    "write",
]

_SECTIONS = ("dataset", "limits", "columns", "tables", "public", "views", "budget")
_DATASET = (
    "source",
    "table",
    "name",
    "version",
    "unit",
    "each_row",
    "relation",
    "word",
    "per",
    "when",
    "engine",
    "memory",
    "threads",
)
_LIMITS = ("rows_per_unit", "groups_per_unit")
_COLUMN = ("type", "bounds", "values", "null", "places", "source")
_TABLE = ("source", "table", "columns")
_PRIVATE = (*_TABLE, "unit")
_PUBLIC = (*_TABLE, "hierarchy")
_SOURCE = 'source = "visits.parquet"'


@dataclass(frozen=True)
class TableDescription:
    """The source of one table and the descriptions of its columns."""

    source: str
    table: str = ""
    columns: Mapping[str, Column] = field(default_factory=dict)
    borrowed: Mapping[str, str] = field(default_factory=dict)  # values from a public table: "wards.ward"
    unit: str = ""  # another column of the unit, or a link
    hierarchy: tuple[str, ...] = ()  # columns of a public table, the coarsest first


@dataclass(frozen=True)
class DataDescription:
    """A parsed description: everything that `open` needs."""

    name: str
    private: Mapping[str, TableDescription]
    public: Mapping[str, TableDescription]
    protect: Each
    views: Mapping[str, str] = field(default_factory=dict)
    version: str = ""
    engine: str | None = None
    budget: Mapping[str, Any] = field(default_factory=dict)
    resources: Resources = ANY


def read(path: str | Path) -> DataDescription:
    """The validated description in a TOML file; its paths are relative to the file."""
    check_address(path)
    place = expand_home(path)
    try:
        text = text_of(place)
    except EngineFailed as missing:
        make = f"discreet describe visits.parquet --out {place.name}   and complete it; or "
        raise BadDescription(
            "DP403",
            missing.what,
            why="it describes what is publicly known of the data, and the privacy unit.",
            fix=(make if "there is no file" in missing.what else "") + missing.fix,
        ) from None
    description = parse(text, place)
    for name, table in {**description.private, **description.public}.items():
        if not table.source:
            raise rules.description_error(
                f"table {name}", "its source is blank: the path or address of the table.", _SOURCE
            )
    return description


def parse(text: str, place: Path) -> DataDescription:
    """The validated description in a text, which stands in this file or might.

    Sources of frames are blank.
    """
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        reason = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "it is nested too deeply"
        fix = 'texts are in quotes, lists in brackets:  source = "visits.parquet"   bounds = [0, 60]'
        raise rules.description_error(place.name, f"{reason}.", fix) from None
    if outside := [key for key in content if key in _DATASET and key not in _SECTIONS]:
        raise rules.description_error(
            place.name, f"the key {outside[0]!r} must be inside a section.", "[dataset]"
        )
    _check_keys(place.name, content, _SECTIONS)
    dataset = _section(content, "dataset", _DATASET)
    folder = place.parent
    public = {
        name: _place(f"[public.{name}]", section, folder, _PUBLIC)
        for name, section in _tables(content.get("public", {}), "public").items()
    }
    private = _private(content, dataset, folder, place.stem)
    protect = _protect(dataset, _section(content, "limits", _LIMITS))
    links = tuple((name, table.unit) for name, table in private.items() if table.unit)
    return DataDescription(
        name=_word("[dataset] name", dataset.get("name", place.stem)),
        private=private,
        public=public,
        protect=replace(protect, links=links),
        views={name: _word(f"[views] {name}", text) for name, text in content.get("views", {}).items()},
        version=_word("[dataset] version", dataset.get("version", "-")).removeprefix("-"),
        engine=_word("[dataset] engine", dataset["engine"]) if "engine" in dataset else None,
        budget=checked_budget(content.get("budget", {}), folder),
        resources=_resources(dataset),
    )


def _resources(dataset: Any) -> Resources:
    try:
        return Resources(dataset.get("memory", ""), dataset.get("threads"))
    except BadParameter as slip:
        fix = 'memory = "1GB"' if slip.what.startswith("memory") else "threads = 2"
        raise rules.description_error("[dataset]", slip.what, fix) from None


def _private(content: Any, dataset: Any, folder: Path, stem: str) -> dict[str, TableDescription]:
    if "tables" in content:
        if {"source", "table"} & set(dataset) or "columns" in content:
            fix = "move  source  and  [columns.…]  into  [tables.<name>]"
            raise rules.description_error(
                "[tables]", "source and columns must stand either in [dataset] or in each table.", fix
            )
        return {
            name: _place(f"[tables.{name}]", section, folder, _PRIVATE)
            for name, section in _tables(content["tables"], "tables").items()
        }
    section = {key: dataset[key] for key in ("source", "table") if key in dataset}
    name = _word("[dataset] name", dataset.get("name", stem))
    return {name: _place("[dataset]", {**section, "columns": content.get("columns", {})}, folder)}


def _protect(dataset: Any, limits: Any) -> Each:
    where = "[dataset]"
    row = rules.truth_of("[dataset] each_row", dataset.get("each_row", False))
    if row == ("unit" in dataset):
        fix = 'unit = "patient_id"   or, only if nobody can have two rows:  each_row = true'
        fix = f"unit = {value_text(dataset['unit'])}   alone, without each_row" if row else fix
        raise rules.description_error(where, "it must have either unit or each_row.", fix)
    if not row and "rows_per_unit" not in limits:
        fix = '[limits]\n       rows_per_unit = 20      # or  rows_per_unit = "auto"'
        raise rules.description_error("[limits]", "rows_per_unit is missing.", fix)
    try:
        return Each(
            None if row else _word("[dataset] unit", dataset["unit"]),
            at_most=limits.get("rows_per_unit", 1),
            groups=limits.get("groups_per_unit"),
            relation=dataset.get("relation", "add-remove"),
            word=_word("[dataset] word", dataset["word"]) if "word" in dataset else "",
            per=_word("[dataset] per", dataset["per"]) if "per" in dataset else "",
            when=dataset.get("when", ""),
        )
    except BadParameter as slip:
        what, fix = (text.replace("at_most", "rows_per_unit") for text in (slip.what, slip.fix))
        raise rules.description_error("[dataset] and [limits]", what, fix) from None


def _place(where: str, section: Any, folder: Path, keys: tuple[str, ...] = _TABLE) -> TableDescription:
    _check_keys(where, section, keys)
    if "source" not in section:
        raise rules.description_error(where, "source is missing: the path or address of the table.", _SOURCE)
    columns, borrowed = {}, {}
    for name, content in _tables(section.get("columns", {}), "columns").items():
        inside = f"{where} [columns.{name}]"
        _check_keys(inside, content, _COLUMN)
        values = content.get("values")
        if isinstance(values, str) and values.startswith("public:"):
            borrowed[name], values = values.removeprefix("public:"), None
        kind = rules.kind_of(inside, content["type"]) if "type" in content else ""
        columns[name] = column_of(name, kind, {**content, "values": values})
    table = _word(f"{where} table", section["table"]) if "table" in section else ""
    return TableDescription(
        _source(f"{where} source", section["source"], folder),
        table,
        columns,
        borrowed,
        _word(f"{where} unit", section["unit"]) if "unit" in section else "",
        _levels(f"{where} hierarchy", section.get("hierarchy", [])),
    )


def _levels(where: str, columns: Any) -> tuple[str, ...]:
    """The columns of a hierarchy; whether the table has them is checked where it is opened."""
    if not isinstance(columns, list):
        raise rules.description_error(
            where, "it must be a list of columns.", 'hierarchy = ["region", "district"]'
        )
    return tuple(_word(where, column) for column in columns)


def _source(where: str, source: Any, folder: Path) -> str:
    return "" if source == "" else resolve_source(_word(where, source), folder)


def column_of(name: str, kind: str, content: Mapping[str, Any]) -> Column:
    """A column from its section."""
    return Column(
        name,
        kind,
        bounds=_pair(name, content.get("bounds")),
        values=content.get("values"),
        places=content.get("places"),
        source=content.get("source"),
        null=content.get("null", True),
    )


def resolve_source(source: str, folder: Path) -> str:
    """A path relative to a folder; the address of a database unchanged."""
    return source if "://" in source else str(folder / expand_home(source))


def _pair(name: str, bounds: Any) -> Any:
    """Bounds as a pair; an empty list is a gap that `describe` left and nobody filled."""
    if bounds == []:
        raise rules.description_error(
            f"[columns.{name}]", "bounds are empty.", "bounds = [0, 100]   or remove the line"
        )
    return tuple(bounds) if isinstance(bounds, list) else bounds


def _section(content: Any, name: str, keys: tuple[str, ...]) -> Any:
    section = content.get(name, {})
    _check_keys(f"[{name}]", section, keys)
    return section


def _tables(section: Any, name: str) -> Any:
    if isinstance(section, dict) and all(isinstance(part, dict) for part in section.values()):
        return section
    example = "days" if name == "columns" else "visits"
    raise rules.description_error(
        f"[{name}]", "each of its entries must be a section.", f"[{name}.{example}]"
    )


def _check_keys(where: str, section: Any, keys: tuple[str, ...]) -> None:
    if not isinstance(section, dict):
        raise rules.description_error(where, "it must be a section with keys.", f"[{where.strip('[]')}]")
    for key in section:
        if key not in keys:
            near = rules.nearest(key, keys)
            raise rules.description_error(
                where, f"{key!r} is not a known key.", f"{near}   (did you mean this?)"
            )


def _word(where: str, value: Any) -> str:
    return rules.word_of(where, value)


def write(data: DescribedTables) -> str:
    """The description of a data set as TOML; frames have no source, so theirs is left blank."""
    protect = data.protect
    private = {name: table for name, table in data.tables.items() if table.private}
    lines = ["[dataset]"]
    single = len(private) == 1 and next(iter(private)) == data.name
    lines += _where(private[data.name]) if single else []
    lines += [f"name = {value_text(data.name)}"]
    lines += [f"version = {value_text(data.version)}"] if data.version else []
    lines += ["each_row = true"] if protect.column is None else [f"unit = {value_text(protect.column)}"]
    lines += [f"relation = {value_text(protect.relation)}"]
    lines += [f"word = {value_text(protect.word)}"] if protect.word else []
    lines += [f"per = {value_text(protect.per)}"] if protect.per else []
    lines += [f"when = {value_text(protect.when)}"] if protect.when else []
    lines += [f"engine = {value_text(data.engine.name)}"] if data.engine is not None else []
    lines += [f"memory = {value_text(data.resources.memory)}"] if data.resources.memory else []
    lines += [f"threads = {data.resources.threads}"] if data.resources.threads is not None else []
    if protect.column is not None:
        lines += ["", "[limits]", f"rows_per_unit = {value_text(protect.at_most)}"]
        lines += [f"groups_per_unit = {value_text(protect.groups)}"] if protect.groups else []
    links = dict(protect.links)
    for name, table in data.tables.items():
        section = f"tables.{key_text(name)}." if table.private else f"public.{key_text(name)}."
        lines += _table_lines(table, "" if single and table.private else section, links.get(name, ""))
    if data.views:
        lines += [
            "",
            "[views]",
            *(f"{key_text(name)} = {value_text(text)}" for name, text in data.views.items()),
        ]
    if data.budget:
        lines += [
            "",
            "[budget]",
            *(f"{key_text(key)} = {value_text(value)}" for key, value in data.budget.items()),
        ]
    return "\n".join(lines) + "\n"


def _table_lines(table: Table, section: str, unit: str) -> list[str]:
    lines = ["", f"[{section[:-1]}]", *_where(table)] if section else []
    lines += [f"unit = {value_text(unit)}"] if unit else []
    lines += [f"hierarchy = {value_text(table.hierarchy)}"] if table.hierarchy else []
    for column in table.columns.values():
        lines += ["", f"[{section}columns.{key_text(column.name)}]", f"type = {value_text(column.kind)}"]
        lines += [
            f"{name} = {value_text(value)}"
            for name, value in (
                ("bounds", "auto" if column.auto else column.bounds),
                ("values", column.values),
                ("places", column.places),
                ("source", column.source),
            )
            if value is not None
        ]
        lines += [] if column.null else ["null = false"]
    return lines


def _where(table: Table) -> list[str]:
    lines = [f"source = {value_text(table.source)}"]
    return [*lines, f"table = {value_text(table.within)}"] if table.within else lines


def key_text(name: str) -> str:
    """A key of TOML, in quotes if it needs them."""
    bare = name.replace("_", "").replace("-", "")
    return name if bare.isascii() and bare.isalnum() else value_text(name)


def value_text(value: Any) -> str:
    """A value in TOML, for every type that a description can hold."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + "".join(_ESCAPES.get(sign) or _escape(sign) for sign in value) + '"'
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key_text(key)} = {value_text(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(value_text(part) for part in value) + "]"
    return str(value)


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _escape(sign: str) -> str:
    return f"\\u{ord(sign):04x}" if ord(sign) < 0x20 or ord(sign) == 0x7F else sign
