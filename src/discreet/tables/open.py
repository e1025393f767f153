# SPDX-License-Identifier: Apache-2.0
"""Opening a data set: where its tables lie, whom they protect, what is known of their columns.

    data = dp.open("visits.parquet", protect=dp.each("patient_id", at_most=20))
    data = dp.open("visits.toml")                                   # the same, written down

**Guarantee.** Opening costs nothing and tells nothing of the rows: names and kinds come from schemas, everything else
from the person who opens. What is missing is refused, or stays unknown; nothing is guessed from data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from json import dumps as quoted
from pathlib import Path
from typing import Any

from discreet import check
from discreet.errors import BadParameter, DiscreetError
from discreet.tables import engines
from discreet.tables.data import rules, toml
from discreet.tables.data.budget import checked as checked_budget
from discreet.tables.data.dataset import UNIT_KINDS, Column, Dataset, Each, Table
from discreet.tables.data.engine import Engine
from discreet.tables.data.readers import schema
from discreet.tables.data.readers.sound import kind_of
from discreet.tables.data.sources import HOMES, Found, bring, find, one_address
from discreet.tables.engines.source import ROW

__all__ = ["column", "each", "each_row", "how_to_open", "open"]

#: What a description may call a column whose schema says something else.
_READ_AS = {
    "integer": ("integer", "real", "decimal"),
    "real": ("real", "integer", "decimal"),
    "decimal": ("decimal", "integer", "real"),
    "text": ("text", "integer", "real", "decimal"),
}


@check.arguments
def each(
    column: str,
    at_most: int | str | None = None,
    *,
    groups: int | None = None,
    relation: str = "add-remove",
    word: str = "",
) -> Each:
    """Whom the data protect: each distinct value of a column, all its rows together.

    Each of them contributes at most `at_most` rows; extra rows are down-weighted, so it is a choice between
    noise and bias, never an assumption. "auto" finds it privately and pays for it once.

    >>> each("patient_id", at_most=20).unit
    Unit(protects='patient_id', relation='add-remove')
    """
    if at_most is None:
        raise BadParameter(
            "DP107",
            "at_most is missing: how many rows may each of them contribute?",
            why="the noise is in proportion to it; rows beyond it are down-weighted.",
            fix=f'dp.each("{column}", at_most=20)   or  at_most="auto"',
        )
    return Each(column, at_most, groups, relation, word)


@check.arguments
def each_row(*, relation: str = "add-remove", word: str = "row") -> Each:
    """Every row is protected for itself: right only where nobody can have two.

    >>> each_row(word="household").unit.protects
    'household'
    """
    return Each(None, 1, None, relation, word)


@check.arguments
def column(
    kind: str | None = None,
    *,
    bounds: tuple[Any, Any] | None = None,
    values: Any = None,
    places: int | None = None,
    source: str | None = None,
    null: bool = True,
) -> Column:
    """What is publicly known of a column, to be handed to `open` in its `columns`.

    The kind may be left out where the schema has it. `source` says where the knowledge comes from.

    >>> column("integer", bounds=(0, 60), source="hospital rules").bounds
    (0, 60)
    """
    return Column("", kind or "", bounds, values, places, source, null)


@check.arguments
def open(  # noqa: A001 - as a person says it: dp.open(…)
    source: Any,
    protect: Each | None = None,
    *,
    columns: Mapping[str, Any] | None = None,
    name: str | None = None,
    public: Mapping[str, Any] | None = None,
    engine: str | None = None,
    version: str = "",
    budget: Mapping[str, Any] | None = None,
    table: str = "",
) -> Dataset:
    """A data set from a file, a frame, a database, several of them by name, or a description in a TOML file.

    >>> import pyarrow
    >>> visits = pyarrow.table({"patient_id": [1, 1, 2], "days": [3, 4, 90]})
    >>> data = open(visits, each("patient_id", at_most=5), columns={"days": column(bounds=(0, 60))})
    >>> data
    <Dataset data: data; protects each patient_id>
    """
    if isinstance(source, str | Path) and Path(source).suffix.lower() == ".toml":
        given = {
            "protect": protect,
            "columns": columns,
            "name": name,
            "public": public,
            "table": table or None,
        }
        return _from_toml(source, given, engine)
    if not isinstance(protect, Each):
        raise _unprotected(source, table)
    for word, told in (("columns", columns), ("public", public)):
        if told is not None and not isinstance(told, Mapping):
            fix = {
                "columns": 'columns={"days": dp.column(bounds=(0, 60))}',
                "public": 'public={"wards": "wards.csv"}',
            }
            raise rules.wrong(word, "it must say what is meant by name.", fix[word])
    if isinstance(source, Mapping):
        found = {key: find(part) for key, part in source.items()}
    else:
        single = find(source, table)
        found = {name or single.name: single}
    if not found:
        raise rules.wrong(
            "the data set", "it has no tables.", 'dp.open({"visits": "visits.parquet"}, protect=…)'
        )
    known = _by_table(columns or {}, list(found), list(public or {}))
    return _opened(
        name or next(iter(found)),
        found,
        {key: find(part) for key, part in (public or {}).items()},
        protect,
        known,
        engine=engine,
        version=version,
        budget=checked_budget(budget or {}),
    )


def _from_toml(path: str | Path, given: Mapping[str, Any], engine: str | None) -> Dataset:
    told, name = toml.read(path), Path(path).name
    twice = [key for key, value in given.items() if value is not None]
    if twice:
        raise BadParameter(
            "DP107",
            f"{', '.join(twice)} was given, but the description says it already.",
            why="one of the two would be silently ignored.",
            fix=f"write it into {name}, and call  dp.open({str(path)!r})",
        )
    places = {**told.private, **told.public}
    data = _opened(
        told.name,
        {key: find(place.source, place.table) for key, place in told.private.items()},
        {key: find(place.source, place.table) for key, place in told.public.items()},
        told.protect,
        {key: dict(place.columns) for key, place in places.items()},
        engine=engine or told.engine,
        version=told.version,
        budget=told.budget,
    )
    borrowed = {key: place.borrowed for key, place in places.items() if place.borrowed}
    return replace(data, tables=_with_borrowed(data, borrowed)) if borrowed else data


def _opened(
    name: str,
    private: Mapping[str, Found],
    public: Mapping[str, Found],
    protect: Each,
    known: Mapping[str, Mapping[str, Column]],
    *,
    engine: str | None,
    version: str,
    budget: Mapping[str, Any],
) -> Dataset:
    if set(private) & set(public):
        raise rules.wrong("public", "a table is private and public at once.", "give one of them another name")
    units = dict.fromkeys(private, protect.column or ROW)
    place = _engine({**private, **public}, units, known, engine)
    with ExitStack() as undo:
        undo.callback(place.close)
        tables = {}
        for key, found in {**private, **public}.items():
            settled = _settled(key, place.columns(key), known.get(key, {}), units.get(key), found)
            tables[key] = Table(key, settled, units.get(key), found.label, found.within)
        files = tuple(one.files for one in (*private.values(), *public.values()) if one.files is not None)
        data = Dataset(name, tables, protect, place, version, budget, files)
        undo.pop_all()
    return data


def _engine(found: Mapping[str, Found], units: Any, known: Any, wanted: str | None) -> Engine:
    """The engine that all tables are brought to: the one asked for, or that of the first table."""
    first = next(iter(found.values()))
    kind = wanted or HOMES[first.home]
    if kind not in HOMES.values():
        raise BadParameter(
            "DP105",
            "there is no such engine.",
            why="what an engine counts is compared with exact arithmetic, one engine at a time.",
            fix=f'engine="{rules.closest(str(kind).lower(), HOMES.values())}"',
        )
    session = first.handle.sparkSession if first.home == "spark" else None
    handles = {
        key: bring(one, kind, known.get(key, {}), unit=units.get(key), session=session)
        for key, one in found.items()
    }
    make: dict[str, Callable[[], Engine]] = {
        "duckdb": lambda: engines.duckdb(handles, units=units),
        "polars": lambda: engines.polars(handles, units=units),
        "postgres": lambda: engines.postgres(one_address(found), handles, units=units),
        "spark": lambda: engines.spark(session, handles, units=units),
    }
    opened: Engine = schema.opened(make[kind])
    return opened


def _settled(
    table: str, kinds: Mapping[str, str], known: Mapping[str, Column], unit: str | None, found: Found
) -> dict[str, Column]:
    """Every column of the schema, with what the description says of it."""
    for name in known:
        if name not in kinds:
            near = rules.nearest(name, kinds)
            fix = f'[columns.{near}],  in Python  columns={{"{near}": dp.column(…)}}'
            raise rules.wrong(f"[columns.{name}]", f"{table} has no such column.", fix)
    columns = {}
    for name, kind in kinds.items():
        told = known.get(name, Column(name, ""))
        wanted = told.kind or kind
        allowed = (kind,) if name == unit else _READ_AS.get(kind, (kind,))
        if wanted not in allowed:
            raise rules.wrong(
                f"[columns.{name}]",
                f"it is described as {wanted}, but in {found.label or table} it is {kind}.",
                f'type = "{kind}"',
                "what it is called must be what it is, whatever the rows hold.",
            )
        columns[name] = replace(told, name=name, kind=wanted)
    return columns


def _with_borrowed(data: Dataset, borrowed: Mapping[str, Mapping[str, str]]) -> dict[str, Table]:
    """The tables, with categories that are listed in a column of a public table."""
    tables = dict(data.tables)
    for key, columns in borrowed.items():
        settled = dict(tables[key].columns)
        for name, where in columns.items():
            owner, _, listed = where.partition(".")
            other = data.tables.get(owner)
            if other is None or other.private or listed not in other.columns:
                fix = 'values = "public:wards.ward"   with a section [public.wards]'
                raise rules.wrong(f"[columns.{name}] values", "there is no such public column.", fix)
            values = [value for (value,) in data.engine.values(owner, (listed,)) if value is not None]
            settled[name] = replace(settled[name], values=tuple(values))
        tables[key] = replace(tables[key], columns=settled)
    return tables


def _by_table(columns: Mapping[str, Any], private: list[str], public: list[str]) -> dict[str, Any]:
    """Descriptions of columns, table by table; those of the only private table may stand alone."""
    tables = [*private, *public]
    nested = {key: part for key, part in columns.items() if isinstance(part, Mapping)}
    plain = {key: part for key, part in columns.items() if key not in nested}
    unknown = [key for key in nested if key not in tables]
    if unknown or (plain and len(private) > 1) or not all(isinstance(p, Column) for p in plain.values()):
        raise rules.wrong(
            "columns",
            "every entry must be a column of the only private table, or a table with its columns.",
            _as_columns(columns, private, tables),
        )
    if plain:
        nested[private[0]] = {**nested.get(private[0], {}), **plain}
    return nested


def _as_columns(columns: Mapping[str, Any], private: list[str], tables: list[str]) -> str:
    """The entries of a description in the form that is read, with two numbers taken for bounds."""
    inner: dict[str, str] = {}
    for name, told in columns.items():
        if isinstance(told, Mapping):
            continue
        pair = (
            isinstance(told, list | tuple)
            and len(told) == 2
            and all(isinstance(e, int | float) for e in told)
        )
        listed = isinstance(told, list | tuple | set) and bool(told) and all(isinstance(e, str) for e in told)
        asked = f"bounds=({told[0]}, {told[1]})" if pair else f"values={list(told)!r}" if listed else "…"
        inner[str(name)] = f"dp.column({asked})"
    entries = ", ".join(f"{quoted(name)}: {told}" for name, told in inner.items())
    if len(private) == 1 and inner:
        return f"columns={{{entries}}}"
    own = entries or "…: dp.column(…)"
    return f"columns={{{quoted(private[0])}: {{{own}}}}}   with the name of a table: {', '.join(tables)}"


def how_to_open(source: Any) -> str:
    """How what is no data set yet is opened as one; an example, where it cannot be."""
    try:
        return _unprotected(source, "").fix
    except DiscreetError:
        return 'dp.open("visits.parquet", protect=dp.each("patient_id", at_most=20))'


def _unprotected(source: Any, table: str) -> BadParameter:
    """The error for data that protect nobody yet; a source that cannot be opened is refused first."""
    several = source if isinstance(source, Mapping) else {"": source}
    found = [find(part, table) for part in several.values()]
    shown = quoted(str(source)) if isinstance(source, str | Path) else "source"
    shown += f", table={quoted(table)}" if table else ""
    units = list(dict.fromkeys(name for one in found for name in _possible_units(one)))
    named = [name for name in units if name.casefold() == "id" or name.casefold().endswith("_id")]
    whom = named if len(named) == 1 else units or ["patient_id"]
    fix = f"dp.open({shown}, protect=dp.each({quoted(whom[0])}, at_most=20))"
    others = f"   (or each of: {', '.join(whom[1:])})" if len(whom) > 1 else ""
    return BadParameter(
        "DP107",
        "protect is missing: whom do the data protect?",
        why="a guarantee is about somebody; rows of the same person must be told from rows of others.",
        fix=f"{fix}{others}   (only if nobody can have two rows:  dp.each_row())",
    )


def _possible_units(found: Found) -> list[str]:
    """The columns that can say whose row it is, as far as a schema that lies on this machine tells."""
    if found.home == "file":
        kinds = schema.kinds(found.handle)
    elif found.home == "arrow":
        kinds = {field.name: kind_of(field.type) for field in found.handle.schema}
    else:
        return []
    return [name for name, kind in kinds.items() if kind in UNIT_KINDS]
