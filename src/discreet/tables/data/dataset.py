# SPDX-License-Identifier: Apache-2.0
"""A data set: its tables, what is publicly known of their columns, and whom it protects.

Everything here is public: it was written down by a person, or comes from a schema. Nothing is read off the rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from json import dumps as quoted
from typing import TYPE_CHECKING, Any, NoReturn, Self

from discreet import check
from discreet.errors import BadParameter, EngineFailed, RefusedQuestion
from discreet.privacy.unit import RELATIONS, Unit
from discreet.tables.ask.asking import Asking
from discreet.tables.data import rules
from discreet.tables.data.engine import Engine, not_copied
from discreet.tables.data.frozen import Frozen
from discreet.tables.data.rules import KINDS
from discreet.tables.engines.source import ROW

if TYPE_CHECKING:
    from discreet.tables.ask.query import Query

__all__ = ["KINDS", "UNIT_KINDS", "Column", "Dataset", "Each", "Table"]

#: What a unit may be told by. A real number may not: 7.0 and 7 are one person, and NaN is nobody. Nor may bytes, lists and the
#: like, which engines do not compare alike.
UNIT_KINDS = ("integer", "text", "decimal", "date")


@dataclass(frozen=True)
class Column:
    """What is publicly known of a column.

    `bounds` are two numbers, dates or moments that values are moved between; `values` the categories that can occur
    as groups; `source` says where that knowledge comes from. `places` sets the grid: values are kept to 2**-places.
    A column without a kind ("") is a description that still waits for its table.
    """

    name: str
    kind: str
    bounds: tuple[Any, Any] | None = None
    values: tuple[Any, ...] | None = None
    places: int | None = None
    source: str | None = None
    null: bool = True  # whether NULL can occur; False is enforced: a row with NULL there is dropped

    def __post_init__(self) -> None:
        where = f"[columns.{self.name}]" if self.name else "column(…)"
        rules.truth_of(f"{where} null", self.null)
        if self.source is not None:
            rules.word_of(f"{where} source", self.source)
        if self.kind:
            set_to = object.__setattr__
            set_to(self, "kind", rules.kind_of(where, self.kind))
            set_to(self, "bounds", rules.bounds_of(where, self.kind, self.bounds))
            set_to(self, "values", rules.values_of(where, self.kind, self.values))
            set_to(self, "places", rules.places_of(where, self.kind, self.places, self.bounds))


@dataclass(frozen=True)
class Table:
    """One table; `unit` is the column that says whose row it is, or None for a public table.

    Where every row is a unit of its own, `unit` is `engines.source.ROW`, which is the name of no column.
    """

    name: str
    columns: Mapping[str, Column]
    unit: str | None = None
    source: str = ""  # where it lies, without any password; empty for a frame
    within: str = ""  # its name in the database that `source` is

    @property
    def private(self) -> bool:
        """Whether its rows belong to somebody."""
        return self.unit is not None

    def __post_init__(self) -> None:
        where = f"table {self.name}"
        rules.word_of("the name of a table", self.name)
        folded = {name.casefold() for name in self.columns}
        if len(folded) < len(self.columns):
            raise rules.wrong(where, "two columns differ in upper and lower case only.", "rename one of them")
        if self.unit is None or self.unit == ROW:
            return
        if self.unit not in self.columns:
            raise rules.wrong(
                where, f"it has no column {self.unit}.", _spelt(self.unit, self.name, self.columns)
            )
        if self.columns[self.unit].kind not in UNIT_KINDS:
            raise rules.wrong(
                f"{where}, column {self.unit}",
                "whom a row belongs to must be a whole number, a text, a decimal or a date, not a real number, a truth "
                "value, a moment or bytes.",
                "store it as a whole number or as text",
                "7 and 7.0 would be two people on one engine and one person on another.",
            )


def _spelt(unit: str, table: str, columns: Mapping[str, Column]) -> str:
    """The same name as the table spells it. One that is only similar is never proposed: it would protect somebody else."""
    plain = re.compile(r"[\W_]+")
    same = [name for name in columns if plain.sub("", name).casefold() == plain.sub("", unit).casefold()]
    if len(same) == 1:
        return f'protect=dp.each("{same[0]}", at_most=…)'
    possible = ", ".join(name for name, column in columns.items() if column.kind in UNIT_KINDS)
    of_table = f"the column of {table} that says whose row each is (one of: {possible})"
    return f"name {of_table}, add a column {unit} to it, or leave the table out"


@dataclass(frozen=True)
class Each:
    """Whom the data set protects: each distinct value of a column, with what is assumed of how much one adds.

    Each unit contributes at most `at_most` rows ("auto": chosen privately and paid for once); `groups` groups, if it is
    known that few matter. Neither is trusted: the extra rows of a unit are down-weighted.
    """

    column: str | None  # None: every row is a unit of its own
    at_most: int | str = 1
    groups: int | None = None
    relation: str = "add-remove"
    word: str = ""  # what a unit is called: "patient"; the column's name if empty

    def __post_init__(self) -> None:
        if self.column is not None and not (isinstance(self.column, str) and self.column):
            raise BadParameter(
                "DP104",
                "the privacy unit is the name of a column.",
                why="rows with the same value there belong to one person, and are protected together.",
                fix='protect=dp.each("patient_id", at_most=20)',
            )
        if self.at_most != "auto":
            check.whole(at_most=self.at_most)
        if self.groups is not None:
            check.whole(groups=self.groups)
        check.choice(RELATIONS, relation=self.relation)
        if self.column is None and self.at_most != 1:
            raise BadParameter(
                "DP107",
                "where every row is protected for itself, each adds one row.",
                why="a limit on rows is about somebody who may have several.",
                fix="protect=dp.each_row()",
            )

    def as_code(self) -> str:
        """The call that states the same: a fix names the same privacy unit.

        >>> Each("patient_id", 20, relation="replace").as_code()
        'dp.each("patient_id", at_most=20, relation="replace")'
        """
        stated = [] if self.column is None else [quoted(self.column), f"at_most={quoted(self.at_most)}"]
        stated += [] if self.groups is None else [f"groups={self.groups!r}"]
        stated += [] if self.relation == "add-remove" else [f"relation={quoted(self.relation)}"]
        stated += [f"word={quoted(self.word)}"] if self.word not in {"", "row"} else []
        return f"dp.{'each_row' if self.column is None else 'each'}({', '.join(stated)})"

    @property
    def unit(self) -> Unit:
        """Who is protected, as every guarantee states it."""
        return Unit(self.word or self.column or "row", self.relation)


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(Asking):
    """Tables in an engine, with their public description; `data["visits"]`, or `data` itself, begins a question.

    **Guarantee.** Nothing that it shows, and no question that is built from it, was read off the rows.
    """

    name: str
    tables: Mapping[str, Table]
    protect: Each
    engine: Engine
    version: str = ""  # a public name of this snapshot
    budget: Mapping[str, Any] = field(default_factory=dict)  # the [budget] section, as it was written
    files: tuple[Frozen, ...] = ()  # those that it was opened from, as they were then

    def __post_init__(self) -> None:
        private = [table for table in self.tables.values() if table.private]
        if not private:
            raise rules.wrong(
                "the data set", "it has no private table.", 'dp.open("visits.parquet", protect=…)'
            )
        kinds = {
            column.kind for table in private for name, column in table.columns.items() if name == table.unit
        }
        if len(kinds) > 1:
            raise rules.wrong(
                f"column {self.protect.column}",
                "it is not of the same simple type in all tables.",
                "store it as whole numbers in all of them, or as text in all of them",
                "7, 7.0 and '7' are not the same person to an engine, and each would be protected for itself.",
            )

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        return self.protect.unit

    def __getitem__(self, table: str) -> Query:
        """A question about one of several private tables begins here."""
        from discreet.tables.ask.query import start

        return start(self, table)

    @property
    def _query(self) -> Query:
        """A question about the only private table."""
        private = [table.name for table in self.tables.values() if table.private]
        if len(private) == 1:
            return self[private[0]]
        raise RefusedQuestion(
            "DP701",
            "the data set has several private tables.",
            why="a question begins with the rows of one of them.",
            fix=f'data["{private[0]}"].count()',
        )

    def describe(self) -> str:
        """What is known and what is missing, in plain sentences."""
        from discreet.tables.data.summary import text

        return text(self)

    def public_description(self) -> dict[str, Any]:
        """The description as plain JSON types, for a statement."""
        from discreet.tables.data.summary import facts

        return facts(self)

    def to_toml(self) -> str:
        """The description as a TOML file; `open` reads it back."""
        from discreet.tables.data.toml import write

        return write(self)

    def is_current(self) -> bool:
        """Whether it can be asked as it was opened: no file has changed, and the engine is open in this process.

        A question to one that is not is refused (DP803) before it is charged. No row is read, and nothing is spent.
        """
        try:
            self.ready()
        except EngineFailed:
            return False
        return True

    def ready(self) -> None:
        """Refuse what `is_current` says no to, with the reason."""
        for each in self.files:
            each.check()
        self.engine.ready()

    def close(self) -> None:
        """Let go of the engine; a data set can also be opened by `with`."""
        self.engine.close()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        place = (
            next((table.source for table in self.tables.values() if table.private), "") or "visits.parquet"
        )
        raise not_copied(
            f"open it where it is needed:  dp.open({quoted(place)}, protect={self.protect.as_code()})"
        )

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
