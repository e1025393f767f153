# SPDX-License-Identifier: Apache-2.0
"""Opens a data set: `dp.open`, `dp.each`, `dp.each_row` and `dp.column`.

    data = dp.open("visits.parquet", protect=dp.each("patient_id", at_most=20))
    data = dp.open("visits.toml")                                   # the same from a description

**Guarantee.** Opening costs nothing and reveals nothing about the rows. Names and kinds come from
schemas, and everything else from the caller. What is missing is refused or stays unknown; it is
never guessed from data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import date
from decimal import Decimal
from json import dumps as quoted
from pathlib import Path
from typing import Any, Literal

from discreet import check
from discreet.errors import BadParameter, DiscreetError
from discreet.tables import engines
from discreet.tables.algebra.engine import LINKED, ROW, Engine
from discreet.tables.algebra.resources import Resources
from discreet.tables.algebra.types import Value
from discreet.tables.ask.start import Dataset
from discreet.tables.data import rules, toml
from discreet.tables.data.budget import validate_budget as checked_budget
from discreet.tables.data.dataset import UNIT_KINDS, Column, Each, Link, Table
from discreet.tables.data.periods import several_units_error, time_column
from discreet.tables.data.readers import schema
from discreet.tables.data.readers.sound import kind_of
from discreet.tables.data.sources import HOMES, TableSource, as_described, bring, find, one_address

__all__ = ["column", "each", "each_row", "how_to_open", "open"]

#: A bound of a column.
Bound = int | float | Decimal | date
#: The kinds that a description may give to a column, for each kind of the schema.
_READ_AS = {
    "integer": ("integer", "real", "decimal"),
    "real": ("real", "integer", "decimal"),
    "decimal": ("decimal", "integer", "real"),
    "text": ("text", "integer", "real", "decimal"),
}


@check.arguments
def each(
    column: str,
    at_most: int | Literal["auto"] | Mapping[str, int] | None = None,
    *,
    groups: int | Mapping[str, int] | None = None,
    relation: str = "add-remove",
    word: str = "",
    links: Mapping[str, str] | None = None,
    per: str | None = None,
    when: str | Mapping[str, str] | None = None,
) -> Each:
    """The privacy unit: each distinct value of a column, with all its rows.

    Each unit contributes at most `at_most` rows; "auto" chooses the number privately, and pays for
    it once. `groups` is the number of groups in which a unit usually is. With several private
    tables both can say it for each: `at_most={"flights": 400, "planes": 1}`; a question is bounded
    by the tables whose rows it reads, the greatest of a join. `relation` is "add-remove" or
    "replace". `word` is what a unit is called in texts: "patient". `links` says for each table
    without this column whose its rows are: another column, or a foreign key to a private table that
    knows, as in {"orders": "customer", "items": "order_id -> orders.id"}.

    With `per`, a unit is one value of the column in one "day", "week", "month", "quarter" or "year"
    (UTC), and is called so: "user_id-day". `when` names the column of the date or the moment, for
    all tables or for each; it may be left out if a table has one such column.

    **Guarantee.** Every release protects all rows with the same value of the column. The bounds are
    enforced: extra rows are down-weighted, so `at_most` trades noise against bias and is never an
    assumption.

    With `per` it protects a person in each period separately, and rows without a time belong to
    nobody. Whoever is in n periods is protected as a group of n units
    (`guarantee.group(n)`), and no more.

    What would break it: a column that has two values for one person. A row that a key leads to two
    units is a row of each of them, and is protected as such.

    >>> each("patient_id", at_most=20).unit
    Unit(protects='patient_id', relation='add-remove')
    """
    if at_most is None:
        raise BadParameter(
            "DP107",
            "at_most is missing: the number of rows that each unit may contribute.",
            why="the noise is proportional to it, and extra rows are down-weighted.",
            fix=f'dp.each("{column}", at_most=20)   or  at_most="auto"',
        )
    return Each(column, at_most, groups, relation, word, _link_pairs(links), per or "", when or "")


def _link_pairs(links: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """The links, by the names of their tables."""
    pairs = (links or {}).items()
    return tuple((rules.word_of("links", name), rules.word_of("links", text)) for name, text in pairs)


@check.arguments
def each_row(*, relation: str = "add-remove", word: str = "row") -> Each:
    """The privacy unit of a table in which every row is a unit of its own.

    **Guarantee.** Every release protects each row. A person with two rows is not protected as a
    whole, so use it only where nobody can have two.

    >>> each_row(word="household").unit.protects
    'household'
    """
    return Each(None, 1, None, relation, word)


@check.arguments
def column(
    kind: str | None = None,
    *,
    bounds: tuple[Bound, Bound] | Literal["auto"] | None = None,
    values: Collection[Value] | None = None,
    places: int | None = None,
    source: str | None = None,
    null: bool = True,
) -> Column:
    """The public description of a column, for `columns` of `dp.open`.

    `kind` may be left out if the schema has it. Values outside `bounds` are clipped; "auto" chooses
    them privately, at a tenth of the cost of the first question that needs them. `values` are
    the categories that can be groups. `places` sets the grid of a real column, `source` says where
    the knowledge comes from, and `null=False` drops rows with NULL.

    **Guarantee.** The description is public: it appears in statements, and noise is computed from
    it. Bounds or values that were read off private data would break every guarantee.

    >>> column("integer", bounds=(0, 60), source="hospital rules").bounds
    (0, 60)
    """
    return Column("", kind or "", bounds, values, places, source, null)  # type: ignore[arg-type]  # checked there


@check.arguments
def open(  # noqa: A001 - as a person says it: dp.open(…)
    source: object,
    protect: Each | None = None,
    *,
    columns: Mapping[str, Column | Mapping[str, Column]] | None = None,
    name: str | None = None,
    public: Mapping[str, object] | None = None,
    engine: str | None = None,
    version: str = "",
    budget: Mapping[str, object] | None = None,
    table: str = "",
    memory: str | None = None,
    threads: int | None = None,
    hierarchies: Mapping[str, Sequence[str]] | None = None,
) -> Dataset:
    """Open a data set: a file, a frame, a database, several of them by name, or a TOML description.

    `protect` is the privacy unit, `columns` describes columns, `public` names tables that belong to
    nobody, and `table` names a table of a database. `memory`, such as "1GB", and `threads` are the
    most that the engine may use. `hierarchies` says for public tables which columns are a
    hierarchy, the coarsest first: {"places": ["region", "district", "town"]}. Columns of the same
    names in private tables have their values, and ROLLUP over them is a tree.

    **Guarantee.** Opening reads schemas and public tables, costs nothing and reveals nothing about
    private rows. Every later release protects the unit of `protect`.

    What would break it: a public table that was made from private data.

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
            "memory": memory,
            "threads": threads,
            "hierarchies": hierarchies,
        }
        return _from_toml(source, given, engine)
    if isinstance(protect, list | tuple) and protect and all(isinstance(each, Each) for each in protect):
        raise several_units_error(protect)
    if not isinstance(protect, Each):
        raise _missing_unit_error(source, table)
    for word, mapping in (("columns", columns), ("public", public)):
        if mapping is not None and not isinstance(mapping, Mapping):
            fix = {
                "columns": 'columns={"days": dp.column(bounds=(0, 60))}',
                "public": 'public={"wards": "wards.csv"}',
            }
            raise rules.description_error(word, "it must be a mapping by name.", fix[word])
    if isinstance(source, Mapping):
        sources = {key: find(part) for key, part in source.items()}
    else:
        single = find(source, table)
        sources = {name or single.name: single}
    if not sources:
        raise rules.description_error(
            "the data set", "it has no tables.", 'dp.open({"visits": "visits.parquet"}, protect=…)'
        )
    columns_by_table = _by_table(columns or {}, list(sources), list(public or {}))
    return _open_tables(
        name or next(iter(sources)),
        sources,
        {key: find(part) for key, part in (public or {}).items()},
        protect,
        columns_by_table,
        engine=engine,
        version=version,
        budget=checked_budget(budget or {}),
        resources=Resources("" if memory is None else memory, threads),
        hierarchies=_hierarchies(hierarchies or {}, list(public or {})),
    )


def _hierarchies(
    hierarchies: Mapping[str, Sequence[str]], public: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """The hierarchies by the names of public tables."""
    for name, columns in hierarchies.items():
        if name not in public or isinstance(columns, str):
            table = rules.closest(name, public) if public else "places"
            raise rules.description_error(
                "hierarchies",
                "each entry must be a public table, with a list of its columns.",
                f'hierarchies={{"{table}": ["region", "district"]}}   with  public={{"{table}": …}}',
            )
    return {
        name: tuple(rules.word_of("hierarchies", column) for column in columns)
        for name, columns in hierarchies.items()
    }


def _from_toml(path: str | Path, given: Mapping[str, Any], engine: str | None) -> Dataset:
    description, name = toml.read(path), Path(path).name
    repeated = [key for key, value in given.items() if value is not None]
    if repeated:
        raise BadParameter(
            "DP107",
            f"{', '.join(repeated)} cannot be passed with a description in a file.",
            why="the file says it already, and one of the two would be ignored.",
            fix=f"write it into {name}, and call  dp.open({str(path)!r})",
        )
    tables = {**description.private, **description.public}
    data = _open_tables(
        description.name,
        {key: find(table.source, table.table) for key, table in description.private.items()},
        {key: find(table.source, table.table) for key, table in description.public.items()},
        description.protect,
        {key: dict(table.columns) for key, table in tables.items()},
        engine=engine or description.engine,
        version=description.version,
        budget=description.budget,
        resources=description.resources,
        hierarchies={key: table.hierarchy for key, table in description.public.items() if table.hierarchy},
    )
    borrowed = {key: table.borrowed for key, table in tables.items() if table.borrowed}
    described = replace(data, tables=_with_borrowed(data, borrowed)) if borrowed else data
    for key, text in description.views.items():
        described = described.view(key, text)
    return described


def _open_tables(
    name: str,
    private: Mapping[str, TableSource],
    public: Mapping[str, TableSource],
    protect: Each,
    columns_by_table: Mapping[str, Mapping[str, Column]],
    *,
    engine: str | None,
    version: str,
    budget: Mapping[str, Any],
    resources: Resources,
    hierarchies: Mapping[str, tuple[str, ...]],
) -> Dataset:
    if set(private) & set(public):
        raise rules.description_error(
            "public", "a private and a public table have the same name.", "rename one of them"
        )
    link_texts = dict(protect.links)
    if unknown := [key for key in link_texts if key not in private]:
        nearest = rules.closest(unknown[0], private)
        raise rules.description_error(
            "links",
            f"there is no private table {unknown[0]}.",
            f'links={{"{nearest}": "{link_texts[unknown[0]]}"}}',
        )
    links = {key: Link.parse(text) for key, text in link_texts.items()}
    units = {
        key: LINKED if links.get(key) is not None else link_texts.get(key, protect.column or ROW)
        for key in private
    }
    private, public = (
        {key: as_described(source, columns_by_table.get(key, {})) for key, source in sources.items()}
        for sources in (private, public)
    )
    opened_engine = _engine({**private, **public}, units, columns_by_table, engine, resources)
    with ExitStack() as undo:
        undo.callback(opened_engine.close)
        tables = {}
        for key, sources in {**private, **public}.items():
            described = _described_columns(
                key, opened_engine.columns(key), columns_by_table.get(key, {}), units.get(key), sources
            )
            unit, link = units.get(key), links.get(key)
            tables[key] = Table(
                key,
                described,
                unit,
                sources.label,
                sources.within,
                link,
                hierarchy=hierarchies.get(key, ()),
            )
            if protect.per and unit not in {None, LINKED}:
                tables[key] = replace(tables[key], when=time_column(tables[key], protect))
        if protect.per:
            opened_engine.divide_units(protect.per, {key: table.when for key, table in tables.items()})
        files = tuple(
            source.files for source in (*private.values(), *public.values()) if source.files is not None
        )
        tables = _with_places(tables, opened_engine)
        data = Dataset(name, tables, protect, opened_engine, version, budget, files, resources=resources)
        undo.pop_all()
    return data


def _engine(
    sources: Mapping[str, TableSource],
    units: Any,
    columns_by_table: Any,
    wanted: str | None,
    resources: Resources,
) -> Engine:
    """The engine of all tables: the chosen one, or that of the first table."""
    first = next(iter(sources.values()))
    engine_name = wanted or HOMES[first.home]
    if engine_name not in HOMES.values():
        raise BadParameter(
            "DP105",
            f"engine={wanted!r} is not a known engine.",
            why="each engine is tested against exact arithmetic.",
            fix=f'engine="{rules.closest(str(engine_name).lower(), HOMES.values())}"',
        )
    session = first.handle.sparkSession if first.home == "spark" else None
    handles = {
        key: bring(
            source,
            engine_name,
            columns_by_table.get(key, {}),
            unit=_unit_column(units.get(key)),
            session=session,
        )
        for key, source in sources.items()
    }
    make: dict[str, Callable[[], Engine]] = {
        "duckdb": lambda: engines.duckdb(handles, units=units, resources=resources),
        "polars": lambda: engines.polars(handles, units=units, resources=resources),
        "postgres": lambda: engines.postgres(one_address(sources), handles, units=units, resources=resources),
        "spark": lambda: engines.spark(session, handles, units=units, resources=resources),
    }
    opened: Engine = schema.guard_opening(make[engine_name])
    return opened


def _unit_column(unit: str | None) -> str | None:
    return None if unit == LINKED else unit


def _described_columns(
    table: str, kinds: Mapping[str, str], known: Mapping[str, Column], unit: str | None, sources: TableSource
) -> dict[str, Column]:
    """Every column of the schema with its description."""
    for name in known:
        if name not in kinds:
            nearest = rules.nearest(name, kinds)
            fix = f'[columns.{nearest}],  in Python  columns={{"{nearest}": dp.column(…)}}'
            raise rules.description_error(f"[columns.{name}]", f"{table} has no such column.", fix)
    columns = {}
    for name, kind in kinds.items():
        described = known.get(name, Column(name, ""))
        wanted = described.kind or kind
        allowed = (kind,) if name == unit else _READ_AS.get(kind, (kind,))
        if wanted not in allowed:
            raise rules.description_error(
                f"[columns.{name}]",
                f"it is described as {wanted}, but {sources.label or table} has {kind}.",
                f'type = "{kind}"',
                "the type comes from the schema, so that it does not depend on the rows.",
            )
        columns[name] = replace(described, name=name, kind=wanted)
    return columns


def _with_places(tables: Mapping[str, Table], engine: Engine) -> dict[str, Table]:
    """The tables, where columns of private ones have the values of the hierarchy that has their
    name, unless values are stated.
    """
    found = dict(tables)
    for public in tables.values():
        for level in public.hierarchy:
            values = [value for (value,) in engine.values(public.name, (level,)) if value is not None]
            for table in found.values():
                column = table.columns.get(level)
                if not table.private or column is None or column.values is not None or not values:
                    continue
                if column.kind == public.columns[level].kind:
                    described = {**table.columns, level: replace(column, values=tuple(values))}
                    found[table.name] = replace(table, columns=described)
    return found


def _with_borrowed(data: Dataset, borrowed: Mapping[str, Mapping[str, str]]) -> dict[str, Table]:
    """The tables, with the values that come from columns of public tables."""
    tables = dict(data.tables)
    for key, columns in borrowed.items():
        described = dict(tables[key].columns)
        for name, where in columns.items():
            owner, _, column_name = where.partition(".")
            other = data.tables.get(owner)
            if other is None or other.private or column_name not in other.columns:
                fix = 'values = "public:wards.ward"   with a section [public.wards]'
                raise rules.description_error(
                    f"[columns.{name}] values", "the public table has no such column.", fix
                )
            values = [value for (value,) in data.engine.values(owner, (column_name,)) if value is not None]
            described[name] = replace(described[name], values=tuple(values))
        tables[key] = replace(tables[key], columns=described)
    return tables


def _by_table(columns: Mapping[str, Any], private: list[str], public: list[str]) -> dict[str, Any]:
    """Descriptions of columns by table; those of the only private table need no table."""
    tables = [*private, *public]
    nested = {key: part for key, part in columns.items() if isinstance(part, Mapping)}
    plain = {key: part for key, part in columns.items() if key not in nested}
    unknown = [key for key in nested if key not in tables]
    if unknown or (plain and len(private) > 1) or not all(isinstance(p, Column) for p in plain.values()):
        raise rules.description_error(
            "columns",
            "each entry must be a column of the only private table, or a table with its columns.",
            _as_columns(columns, private, tables),
        )
    if plain:
        nested[private[0]] = {**nested.get(private[0], {}), **plain}
    return nested


def _as_columns(columns: Mapping[str, Any], private: list[str], tables: list[str]) -> str:
    """A fix: the entries as calls of `dp.column`, with two numbers taken for bounds."""
    calls: dict[str, str] = {}
    for name, entry in columns.items():
        if isinstance(entry, Mapping):
            continue
        pair = (
            isinstance(entry, list | tuple)
            and len(entry) == 2
            and all(isinstance(e, int | float) for e in entry)
        )
        listed = (
            isinstance(entry, list | tuple | set) and bool(entry) and all(isinstance(e, str) for e in entry)
        )
        arguments = (
            f"bounds=({entry[0]}, {entry[1]})" if pair else f"values={list(entry)!r}" if listed else "…"
        )
        calls[str(name)] = f"dp.column({arguments})"
    entries = ", ".join(f"{quoted(name)}: {entry}" for name, entry in calls.items())
    if len(private) == 1 and calls:
        return f"columns={{{entries}}}"
    all_entries = entries or "…: dp.column(…)"
    return (
        f"columns={{{quoted(private[0])}: {{{all_entries}}}}}   with the name of a table: {', '.join(tables)}"
    )


def how_to_open(source: object) -> str:
    """The call that opens a source, for a fix; an example if the source cannot be opened."""
    try:
        return _missing_unit_error(source, "").fix
    except DiscreetError:
        return 'dp.open("visits.parquet", protect=dp.each("patient_id", at_most=20))'


def _missing_unit_error(source: object, table: str) -> BadParameter:
    """The error for a missing privacy unit; a source that cannot be opened is refused first."""
    parts = source if isinstance(source, Mapping) else {"": source}
    sources = [find(part, table) for part in parts.values()]
    written = quoted(str(source)) if isinstance(source, str | Path) else "source"
    written += f", table={quoted(table)}" if table else ""
    units = list(dict.fromkeys(name for found_source in sources for name in _possible_units(found_source)))
    named = [name for name in units if name.casefold() == "id" or name.casefold().endswith("_id")]
    guesses = named if len(named) == 1 else units or ["patient_id"]
    fix = f"dp.open({written}, protect=dp.each({quoted(guesses[0])}, at_most=20))"
    others = f"   (or each of: {', '.join(guesses[1:])})" if len(guesses) > 1 else ""
    return BadParameter(
        "DP107",
        "protect is missing: the privacy unit of the data.",
        why="a guarantee protects all rows of a person, so the data set must say which rows belong together.",
        fix=f"{fix}{others}   (only if nobody can have two rows:  dp.each_row())",
    )


def _possible_units(sources: TableSource) -> list[str]:
    """The columns that can be the privacy unit, for sources whose schema is on this machine."""
    if sources.home == "file":
        kinds = schema.kinds(sources.handle)
    elif sources.home == "arrow":
        kinds = {field.name: kind_of(field.type) for field in sources.handle.schema}
    else:
        return []
    return [name for name, kind in kinds.items() if kind in UNIT_KINDS]
