# SPDX-License-Identifier: Apache-2.0
"""A data set: its tables, the public description of their columns, and its privacy unit.

Everything here is public: a person wrote it down, or it comes from a schema. No row is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from json import dumps as quoted
from typing import Any, NoReturn, Self

from discreet import check
from discreet.errors import BadParameter, EngineFailed
from discreet.privacy.unit import RELATIONS, Unit
from discreet.tables.algebra.engine import LINKED, ROW, Engine, not_copied
from discreet.tables.algebra.frozen import Frozen
from discreet.tables.algebra.resources import ANY, Resources
from discreet.tables.data import rules
from discreet.tables.data.rules import KINDS

__all__ = ["KINDS", "PERIODS", "UNIT_KINDS", "Column", "DescribedTables", "Each", "Link", "Table"]

#: The types of a privacy unit. A real number is not among them, because 7.0 and 7 are one person and NaN is nobody; nor are
#: bytes and lists, on which engines disagree.
UNIT_KINDS = ("integer", "text", "decimal", "date")
#: The types of foreign keys.
_LINK_KINDS = {"integer", "text", "date"}


@dataclass(frozen=True)
class Column:
    """The public description of a column, made by `dp.column`.

    `bounds` are two numbers, dates or moments; values beyond them are clipped. Where a number has
    the bounds "auto", a session chooses them privately, and `auto` says so. `values` are the
    categories that can be groups. `source` says where this knowledge comes from. `places` sets the
    grid: values are rounded to multiples of 2**-places. The kind "" means the kind of the schema.

    **Guarantee.** A `Column` is public and consistent: its bounds are finite and in order, and its
    values are distinct and of its kind. Bounds or values that were read off private data would
    break this.

    >>> Column("days", "integer", bounds=(0, 60)).bounds
    (0, 60)
    """

    name: str
    kind: str
    bounds: tuple[Any, Any] | None = None
    values: tuple[Any, ...] | None = None
    places: int | None = None
    source: str | None = None
    # False drops rows with NULL in this column.
    null: bool = True
    # Bounds are chosen privately by a session.
    auto: bool = False

    def __post_init__(self) -> None:
        where = f"[columns.{self.name}]" if self.name else "column(…)"
        if isinstance(self.bounds, str) and self.bounds == "auto":
            object.__setattr__(self, "bounds", None)
            object.__setattr__(self, "auto", True)
        kind = rules.kind_of(where, self.kind) if self.kind else ""
        if self.auto and kind and kind not in rules.NUMBERS:
            raise rules.description_error(
                where,
                f'bounds = "auto" is for numbers, not for the type {kind}.',
                rules.EXAMPLES.get(kind, f'leave bounds out:  dp.column("{kind}")'),
                "what dates and texts are possible is known without the data.",
            )
        rules.truth_of(f"{where} null", self.null)
        if self.source is not None:
            rules.word_of(f"{where} source", self.source)
        if self.kind:
            set_to = object.__setattr__
            set_to(self, "kind", kind)
            set_to(self, "bounds", rules.bounds_of(where, self.kind, self.bounds))
            set_to(self, "values", rules.values_of(where, self.kind, self.values))
            set_to(self, "places", rules.places_of(where, self.kind, self.places, self.bounds))


@dataclass(frozen=True)
class Link:
    """A foreign key through which the rows of a table reach their units: `column` of the table
    equals `key` of another private table.
    """

    column: str
    table: str
    key: str

    @classmethod
    def parse(cls, text: str) -> Link | None:
        """The link in "column -> table.key"; None if the text is the name of a column.

        >>> str(Link.parse("order_id->orders.id"))
        'order_id -> orders.id'
        """
        column, arrow, end = text.partition("->")
        table, _, key = end.strip().rpartition(".")
        return cls(column.strip(), table, key) if arrow else None

    def __str__(self) -> str:
        return f"{self.column} -> {self.table}.{self.key}"


#: The lengths of time that can be part of a privacy unit, in UTC; a week begins on Monday.
PERIODS = ("day", "week", "month", "quarter", "year")


@dataclass(frozen=True)
class Table:
    """A table; `unit` is the column of the privacy unit, or None for a public table.

    If every row is a unit of its own, `unit` is `algebra.engine.ROW`, and if rows reach their units
    through `link`, it is `algebra.engine.LINKED`; neither is the name of a column.
    """

    name: str
    columns: Mapping[str, Column]
    unit: str | None = None
    # A path or address without any password; empty for a frame.
    source: str = ""
    # The name of the table in its database.
    within: str = ""
    link: Link | None = None
    # The column of time that tells the units of one value of `unit` apart; "" if each value is one unit.
    when: str = ""
    # Of a table that a question makes: the described table that it is, or "" for the rows of a query.
    of: str | None = None
    # Of the rows of a query: columns that are keys of a described table, as (table, key).
    keys: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    # Of a public table: columns that are a hierarchy, the coarsest first.
    hierarchy: tuple[str, ...] = ()
    # Whether its rows belong to privacy units.
    private: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "private", self.unit is not None)
        where = f"table {self.name}"
        rules.word_of("the name of a table", self.name)
        folded = {name.casefold() for name in self.columns}
        if len(folded) < len(self.columns):
            raise rules.same_names_error(where)
        if self.hierarchy:
            self._check_hierarchy(where)
        if self.unit in {None, ROW, LINKED}:
            return
        if self.unit not in self.columns:
            raise rules.description_error(
                where,
                f"it has no column {self.unit}.",
                _misspelt_unit_fix(self.unit, self.name, self.columns),
            )
        if self.columns[self.unit].kind not in UNIT_KINDS:
            raise rules.description_error(
                f"{where}, column {self.unit}",
                "the privacy unit must be a whole number, a text, a decimal or a date, not a real number, a truth value, "
                "a moment or bytes.",
                "store it as a whole number or as text",
                "engines disagree on whether 7 and 7.0 are the same person.",
            )

    def _check_hierarchy(self, where: str) -> None:
        """Refuse a hierarchy that is not made of two or more columns of a public table."""
        names = [name for name in self.hierarchy if name in self.columns]
        if len(self.hierarchy) < 2 or len({*names}) < len(self.hierarchy) or self.private:
            example = [*dict.fromkeys([*names, *self.columns])][:2]
            raise rules.description_error(
                where,
                "hierarchy must list two or more columns of a public table, the coarsest first.",
                f"hierarchy = {quoted(example)}   or, in Python,  "
                f"hierarchies={{{quoted(self.name)}: {quoted(example)}}}",
                "its rows say which places belong to which.",
            )


def _misspelt_unit_fix(unit: str, table: str, columns: Mapping[str, Column]) -> str:
    """The fix for a misspelt unit. A name that is merely similar is never proposed, because it
    would protect somebody else.
    """
    plain = re.compile(r"[\W_]+")
    same = [name for name in columns if plain.sub("", name).casefold() == plain.sub("", unit).casefold()]
    if len(same) == 1:
        return f'protect=dp.each("{same[0]}", at_most=…)'
    possible = ", ".join(name for name, column in columns.items() if column.kind in UNIT_KINDS)
    of_table = f"the column of {table} that identifies the unit (one of: {possible})"
    return f"use {of_table}, add a column {unit} to it, or leave the table out"


@dataclass(frozen=True, repr=False)
class Each:
    """The privacy unit of a data set and its contribution bound, made by `dp.each` and
    `dp.each_row`.

    Each unit contributes at most `at_most` rows, or a number that is chosen privately and paid for
    once ("auto"); and at most `groups` groups, if that is stated. Each of the two can be a mapping
    with a number for each private table.

    **Guarantee.** Every release protects all rows with the same value of `column`. The bounds are
    enforced, not trusted: extra rows and groups are down-weighted. A person with two values of
    `column` is protected only as two units.

    >>> Each("patient_id", 20)
    dp.each("patient_id", at_most=20)
    """

    # None means that every row is a unit of its own.
    column: str | None
    at_most: int | str | Mapping[str, int] = 1
    groups: int | Mapping[str, int] | None = None
    relation: str = "add-remove"
    # The name of a unit in texts, such as "patient"; by default the name of the column.
    word: str = ""
    # For each table whose rows say it otherwise: its own column, or "column -> table.key".
    links: tuple[tuple[str, str], ...] = ()
    # A unit is one value of `column` in one such period, by the time in the column `when`.
    per: str = ""
    when: str | Mapping[str, str] = ""

    def __post_init__(self) -> None:
        if self.column is not None and not (isinstance(self.column, str) and self.column):
            raise BadParameter(
                "DP104",
                "the privacy unit must be the name of a column.",
                why="all rows with the same value of this column are protected together.",
                fix='protect=dp.each("patient_id", at_most=20)',
            )
        if self.at_most != "auto":
            object.__setattr__(self, "at_most", _check_numbers("at_most", self.at_most))
        if self.groups is not None:
            object.__setattr__(self, "groups", _check_numbers("groups", self.groups))
        check.choice(RELATIONS, relation=self.relation)
        if self.column is None and (self.at_most != 1 or self.links):
            raise BadParameter(
                "DP107",
                "at_most must be 1, and links empty, where every row is a unit of its own.",
                why="a bound on rows is for units with several rows.",
                fix="protect=dp.each_row()",
            )
        _check_period(self.column, self.per, self.when)

    def __repr__(self) -> str:
        return self.as_code()

    def as_code(self) -> str:
        """The call of `dp.each` or `dp.each_row` that makes this object.

        >>> Each("patient_id", 20, relation="replace").as_code()
        'dp.each("patient_id", at_most=20, relation="replace")'
        """
        arguments = [] if self.column is None else [quoted(self.column), f"at_most={quoted(self.at_most)}"]
        arguments += [] if self.groups is None else [f"groups={quoted(self.groups)}"]
        arguments += [] if self.relation == "add-remove" else [f"relation={quoted(self.relation)}"]
        arguments += [f"word={quoted(self.word)}"] if self.word not in {"", "row"} else []
        links = ", ".join(f"{quoted(table)}: {quoted(way)}" for table, way in self.links)
        arguments += [f"links={{{links}}}"] if links else []
        arguments += [f"per={quoted(self.per)}"] if self.per else []
        when = self.when if isinstance(self.when, str) else dict(self.when)
        arguments += [f"when={quoted(when)}"] if when else []
        return f"dp.{'each_row' if self.column is None else 'each'}({', '.join(arguments)})"

    @property
    def unit(self) -> Unit:
        """The privacy unit as every guarantee states it."""
        word = self.word or self.column or "row"
        return Unit(f"{word}-{self.per}" if self.per else word, self.relation)


def _check_period(column: str | None, per: object, when: object) -> None:
    """Refuse a period that is none, and a time without a period."""
    if per:
        check.choice(PERIODS, per=per)
    if isinstance(when, Mapping):
        for table, name in when.items():
            rules.word_of(f"when of {table}", name)
    elif when:
        rules.word_of("when", when)
    if (when and not per) or (per and column is None):
        raise BadParameter(
            "DP107",
            "when is stated without per." if not per else "a row cannot be divided into periods.",
            why="the time of a row belongs to the privacy unit only if the unit is a person in a period.",
            fix=f'dp.each({quoted(column or "user_id")}, at_most=5, per="day", when="{when or "seen_at"}")',
        )


def _check_numbers(name: str, bounds: Any) -> int | Mapping[str, int]:
    """A number of rows or groups, or one for each table."""
    if not isinstance(bounds, Mapping):
        return check.whole(**{name: bounds})
    if not bounds:
        raise BadParameter(
            "DP104",
            f"{name} is an empty mapping.",
            why="it says how much one unit contributes, for each private table.",
            fix=f'{name}={{"visits": 20}}',
        )
    return {
        rules.word_of(f"{name} of a table", table): check.whole(**{name: bound})
        for table, bound in bounds.items()
    }


def _check_bounds(protect: Each, private: Sequence[str]) -> None:
    """Refuse bounds of tables that are not private tables, and a private table without `at_most`."""
    for name, bounds in (("at_most", protect.at_most), ("groups", protect.groups)):
        if not isinstance(bounds, Mapping):
            continue
        missing = [table for table in private if table not in bounds] if name == "at_most" else []
        if missing or set(bounds) - set(private):
            stated = {table: bounds[table] for table in private if table in bounds}
            complete = stated | dict.fromkeys(missing, max(bounds.values()))
            raise rules.description_error(
                f"{name} of {protect.column}",
                f"it must have a number for each private table ({', '.join(private)}), and for no other.",
                f"{name}={quoted(complete or dict.fromkeys(private, max(bounds.values())))}",
                "the noise of a question depends on the bound of the tables that it reads.",
            )


def _check_link(table: Table, link: Link, tables: Mapping[str, Table]) -> None:
    """Refuse a link that does not lead to a unit by values that every engine compares alike."""
    passed, end = [table.name], tables.get(link.table)
    while end is not None and end.link is not None and end.name not in passed:
        passed.append(end.name)
        end = tables.get(end.link.table)
    owner = tables.get(link.table)
    kinds = {
        side.columns[name].kind if side is not None and name in side.columns else ""
        for side, name in ((table, link.column), (owner, link.key))
    }
    leads = end is not None and end.unit is not None and end.name not in passed
    if leads and len(kinds) == 1 and kinds <= _LINK_KINDS:
        return
    raise rules.description_error(
        f"table {table.name}",
        f"the link {link} does not lead to the privacy unit.",
        _link_fix(table, tables),
        "it must join a column of the table with a column of the same type of another private table: whole numbers, texts or "
        "dates.",
    )


def _link_fix(table: Table, tables: Mapping[str, Table]) -> str:
    """A link by two columns of the same type whose names are alike."""
    for other in tables.values():
        for key, column in other.columns.items():
            if other.unit in {None, ROW, LINKED} or key == other.unit or column.kind not in _LINK_KINDS:
                continue
            for name, own in table.columns.items():
                if name.casefold()[-3:] == key.casefold()[-3:] and own.kind == column.kind:
                    return f'links={{"{table.name}": "{Link(name, other.name, key)}"}}'
    return f'links={{"{table.name}": "order_id -> orders.id"}}'


@dataclass(frozen=True, eq=False, repr=False)
class DescribedTables:
    """Tables in an engine, with their public description: a data set without its questions.

    `ask/start.py` adds the methods that ask, and users hold that class.

    **Guarantee.** Everything that it shows comes from the description and from schemas.
    """

    name: str
    tables: Mapping[str, Table]
    protect: Each
    engine: Engine
    # The public name of this snapshot.
    version: str = ""
    # The [budget] section of the description.
    budget: Mapping[str, Any] = field(default_factory=dict)
    # The files that it was opened from, to notice changes.
    files: tuple[Frozen, ...] = ()
    # Queries by the names under which questions use them as tables.
    views: Mapping[str, str] = field(default_factory=dict)
    # The most that its engine may use.
    resources: Resources = ANY

    def __post_init__(self) -> None:
        private = [table for table in self.tables.values() if table.private]
        if not private:
            raise rules.description_error(
                "the data set", "it has no private table.", 'dp.open("visits.parquet", protect=…)'
            )
        kinds = {
            column.kind for table in private for name, column in table.columns.items() if name == table.unit
        }
        if len(kinds) > 1:
            raise rules.description_error(
                f"column {self.protect.column}",
                "the privacy unit has different types in different tables.",
                "store it as whole numbers in all of them, or as text in all of them",
                "an engine takes 7, 7.0 and '7' for three people, and each would be protected separately.",
            )

        _check_bounds(self.protect, [table.name for table in private])
        for table in private:
            if table.link is not None:
                _check_link(table, table.link, self.tables)

    @cached_property
    def unit(self) -> Unit:
        """The privacy unit."""
        return self.protect.unit

    def describe(self) -> str:
        """The description in plain sentences: the privacy unit, what is known of each column, and
        what is missing.
        """
        from discreet.tables.data.summary import text

        return text(self)

    def public_description(self) -> dict[str, Any]:
        """The description as plain JSON types, for the ledger and its statement."""
        from discreet.tables.data.summary import facts

        return facts(self)

    def to_toml(self) -> str:
        """The description as the text of a TOML file, which `dp.open` reads; passwords are left
        out.
        """
        from discreet.tables.data.toml import write

        return write(self)

    def is_current(self) -> bool:
        """Whether it can still be queried: no file has changed, and the engine is open in this
        process.

        If not, a question is refused (DP803) before it is charged. This check reads no row and
        spends nothing.
        """
        try:
            self.ready()
        except EngineFailed:
            return False
        return True

    def ready(self) -> None:
        """Raise EngineFailed (DP803) with the reason if the data set is not current."""
        for each in self.files:
            each.check()
        self.engine.ready()

    def close(self) -> None:
        """Close the engine; `with dp.open(…) as data:` does it too."""
        self.engine.close()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        sources = (table.source for table in self.tables.values() if table.private)
        source = quoted(next(sources, "") or "visits.parquet")
        raise not_copied(f"open it where it is needed:  dp.open({source}, protect={self.protect.as_code()})")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Dataset {self.name}: {', '.join(self.tables)}; protects each {self.unit.protects}>"

    def __str__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        from discreet.tables.data.summary import html

        return html(self)
