# SPDX-License-Identifier: Apache-2.0
"""Which column a name means: the tables of a FROM, their aliases, and the columns of inlined queries.

**Guarantee.** A name means one column of the public description, or is refused (DP701). Names without quotes may differ
in the case of their ASCII letters; all other characters, and names in quotes, are compared exactly, so that a
look-alike is another name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from discreet.errors import RefusedQuestion
from discreet.tables.ask.leaf import near
from discreet.tables.ask.sql.refuse import name_of, only, refused, shown, unsupported
from discreet.tables.data.dataset import Dataset, Table

__all__ = ["Found", "Scope", "Source", "matching"]


@dataclass(frozen=True)
class Source:
    """Something in FROM: a table, or the columns of an inlined query (each an expression in the scope inside)."""

    alias: str
    table: Table | None = None
    optional: bool = False  # of a left join: every column can be NULL
    inner: Scope | None = None
    columns: Mapping[str, exp.Expression] = field(default_factory=dict)

    @property
    def names(self) -> Iterable[str]:
        """The columns that it has."""
        return self.table.columns if self.table is not None else self.columns


@dataclass(frozen=True)
class Found:
    """What a name means: a column of a table."""

    table: Table
    column: str
    optional: bool

    @property
    def is_unit(self) -> bool:
        """Whether it says whose row it is."""
        return self.table.private and self.column == self.table.unit


@dataclass
class Scope:
    """The names that an expression may use."""

    dataset: Dataset
    sources: list[Source] = field(default_factory=list)
    merged: set[str] = field(default_factory=set)  # the columns of USING: one value, from either side

    def tables(self) -> list[Table]:
        """The tables in it, those of inlined queries too."""
        found = []
        for source in self.sources:
            found += source.inner.tables() if source.inner is not None else []
            found += [source.table] if source.table is not None else []
        return found

    def optional(self) -> frozenset[str]:
        """The tables of left joins: what is read from them can be NULL."""
        inside = frozenset().union(
            *(source.inner.optional() for source in self.sources if source.inner is not None)
        )
        here = {source.table.name for source in self.sources if source.optional and source.table is not None}
        return inside | here

    def meaning(self, node: exp.Column) -> Found | tuple[Scope, exp.Expression]:
        """The column that is meant, or the expression that an inlined query has in its place."""
        source, name = self.owner(node)
        if source.inner is not None:
            return source.inner, source.columns[name]
        assert source.table is not None
        return Found(source.table, name, source.optional)

    def column(self, node: exp.Expression) -> Found | None:
        """The column that an expression is, if it is nothing more than that."""
        while isinstance(node, exp.Paren):
            node = node.this
        if not isinstance(node, exp.Column):
            return None
        meaning = self.meaning(node)
        return meaning if isinstance(meaning, Found) else meaning[0].column(meaning[1])

    def same(self, one: exp.Expression, other: exp.Expression) -> bool:
        """Whether two expressions are written alike, however their names are."""
        return type(one) is type(other) and self._resolved(one) == self._resolved(other)

    def _resolved(self, node: exp.Expression) -> exp.Expression:
        """A copy with full names for columns, and capitals for functions."""
        copy = node.copy()
        parts: list[Any] = list(copy.find_all(exp.Column, exp.Anonymous))
        for part in parts:
            if isinstance(part, exp.Anonymous):
                part.set("this", name_of(part))
            elif (owner := self._owner_or_none(part)) is not None:
                part.set("this", exp.to_identifier(owner[1], quoted=True))
                part.set("table", exp.to_identifier(owner[0].alias, quoted=True))
        return copy

    def _owner_or_none(self, node: exp.Column) -> tuple[Source, str] | None:
        try:
            return self.owner(node)
        except RefusedQuestion:  # an alias, perhaps: not a column, and so not the same as one
            return None

    def owner(self, node: exp.Column) -> tuple[Source, str]:
        """What has the column, and the column's name there."""
        only(node, "this", "table")
        identifier, prefix = node.this, node.args.get("table")
        if not isinstance(identifier, exp.Identifier):
            raise _no_column(shown(node), self.sources)
        if identifier.name.startswith("$"):
            raise unsupported(exp.Placeholder(this=identifier.name))
        searched = self.sources if prefix is None else [self.source(prefix)]
        hits = [
            (source, name) for source in searched if (name := matching(identifier, source.names)) is not None
        ]
        if not hits:
            raise _no_column(identifier.name, searched, quoted=bool(identifier.args.get("quoted")))
        if len(hits) > 1 and hits[0][1] not in self.merged and not _all_units(hits):
            raise refused(
                "DP701",
                f"{identifier.name} is in several tables.",
                "it must be known which one is meant.",
                " or ".join(f"{source.alias}.{name}" for source, name in hits),
            )
        return hits[0]

    def source(self, identifier: exp.Identifier) -> Source:
        """The table that goes by a name here."""
        by_alias = {source.alias: source for source in self.sources}
        alias = matching(identifier, by_alias)
        if alias is None:
            raise refused(
                "DP701",
                f"no table goes by the name {identifier.name!r} here.",
                "a column is looked for in the tables of FROM and JOIN.",
                f"use {near(identifier.name, by_alias)}",
            )
        return by_alias[alias]


def matching(identifier: Any, names: Iterable[str]) -> str | None:
    """The one of some names that an identifier means."""
    known, wanted = list(names), identifier.name
    if wanted in known:
        return str(wanted)
    if identifier.args.get("quoted") or not wanted.isascii():
        return None
    alike = [name for name in known if name.isascii() and name.lower() == wanted.lower()]
    return alike[0] if len(alike) == 1 else None


def _all_units(hits: list[tuple[Source, str]]) -> bool:
    """Private tables are only joined on the unit, so that all of these are equal in every row."""
    return all(source.table is not None and name == source.table.unit for source, name in hits)


def _no_column(name: str, searched: list[Source], *, quoted: bool = False) -> Exception:
    known = [column for source in searched for column in source.names]
    where = " and ".join(source.alias for source in searched) or "the question"
    fix = f"use {near(name, known)}" if known else "name a table:  SELECT COUNT(*) FROM visits"
    return refused(
        "DP701",
        f"{where} has no column {name!r}.",
        "only columns of the description can be asked about.",
        f"{fix};   a text is in single quotes:  '{name}'" if quoted else fix,
    )
