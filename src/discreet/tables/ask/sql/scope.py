# SPDX-License-Identifier: Apache-2.0
"""Name resolution: the tables of FROM, their aliases, and the columns of inlined queries.

**Guarantee.** A name means one column of the public description, or it is refused (DP701). Unquoted
names are compared without regard to the case of ASCII letters. All other characters, and names in
quotes, are compared exactly, so a look-alike is a different name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from discreet.errors import RefusedQuestion
from discreet.tables.ask.columns import similar_names
from discreet.tables.ask.sql.refuse import name_of, node_text, question_error, require_only, unsupported_error
from discreet.tables.ask.start import Dataset
from discreet.tables.data.dataset import Table

__all__ = ["ColumnRef", "FromItem", "NameScope", "match_name"]


@dataclass(frozen=True)
class FromItem:
    """An item of FROM: a table, or an inlined query whose columns are expressions in its own scope."""

    alias: str
    table: Table | None = None
    # Whether it is the table of a left join, so that every column can be NULL.
    optional: bool = False
    inner: NameScope | None = None
    columns: Mapping[str, exp.Expression] = field(default_factory=dict)

    @property
    def names(self) -> Iterable[str]:
        """The names of its columns."""
        return self.table.columns if self.table is not None else self.columns


@dataclass(frozen=True)
class ColumnRef:
    """A column of a table to which a name refers."""

    table: Table
    column: str
    optional: bool

    @property
    def is_unit(self) -> bool:
        """Whether it is the column of the privacy unit."""
        return self.table.private and self.column == self.table.unit

    def owner_keys(self, tables: Mapping[str, Table]) -> set[tuple[str, str]]:
        """The keys that it is and that belong to one unit: ("", "") for the unit itself, or the
        (table, key) of a `Link`.
        """
        if self.optional:
            # Where it is NULL, nobody is meant.
            return set()
        described = self.table.of if self.table.of is not None else self.table.name
        links = [table.link for table in tables.values() if table.link is not None]
        keys = {
            (link.table, link.key) for link in links if (link.table, link.key) == (described, self.column)
        }
        if self.is_unit:
            keys.add(("", ""))
        if self.table.link is not None and self.table.link.column == self.column:
            keys.add((self.table.link.table, self.table.link.key))
        return keys | ({self.table.keys[self.column]} if self.column in self.table.keys else set())


@dataclass
class NameScope:
    """The names that an expression can refer to."""

    dataset: Dataset
    sources: list[FromItem] = field(default_factory=list)
    # The columns of USING, whose value is the same on both sides.
    merged: set[str] = field(default_factory=set)
    # The names around a query in EXISTS: they are meant where no own name fits.
    outer: NameScope | None = None

    def tables(self) -> list[Table]:
        """All tables, including those of inlined queries."""
        tables = []
        for source in self.sources:
            tables += source.inner.tables() if source.inner is not None else []
            tables += [source.table] if source.table is not None else []
        return tables

    def made_optional(self) -> NameScope:
        """The same names where every column can be NULL, because a join keeps rows without them."""
        items = [replace(source, optional=True) for source in self.sources]
        return NameScope(self.dataset, items, set(self.merged), self.outer)

    def optional(self) -> frozenset[str]:
        """The tables of left joins, whose columns can be NULL."""
        inside = frozenset().union(
            *(source.inner.optional() for source in self.sources if source.inner is not None)
        )
        here = {source.table.name for source in self.sources if source.optional and source.table is not None}
        return inside | here

    def meaning(self, node: exp.Column) -> ColumnRef | tuple[NameScope, exp.Expression]:
        """The column that a name refers to, or the expression of an inlined query."""
        source, name = self.owner(node)
        if source.inner is not None:
            return source.inner, source.columns[name]
        assert source.table is not None
        # USING has the unit of whichever side is there.
        together = name in self.merged and name == source.table.unit
        return ColumnRef(source.table, name, source.optional and not together)

    def column(self, node: exp.Expression) -> ColumnRef | None:
        """The column, if the expression is a single column; else None."""
        while isinstance(node, exp.Paren):
            node = node.this
        if not isinstance(node, exp.Column):
            return None
        meaning = self.meaning(node)
        return meaning if isinstance(meaning, ColumnRef) else meaning[0].column(meaning[1])

    def same(self, one: exp.Expression, other: exp.Expression) -> bool:
        """Whether two expressions are equal once their names are resolved."""
        return type(one) is type(other) and self._resolve(one) == self._resolve(other)

    def _resolve(self, node: exp.Expression) -> exp.Expression:
        """A copy with fully qualified columns, and function names in capitals."""
        copy = node.copy()
        for part in list(copy.find_all(exp.Column, exp.Anonymous)):
            if not isinstance(part, exp.Column):
                part.set("this", name_of(part))
            elif (owner := self._owner_or_none(part)) is not None:
                part.set("this", exp.to_identifier(owner[1], quoted=True))
                part.set("table", exp.to_identifier(owner[0].alias, quoted=True))
        return copy

    def _owner_or_none(self, node: exp.Column) -> tuple[FromItem, str] | None:
        try:
            return self.owner(node)
        except RefusedQuestion:
            # It may be an alias, which is not the same as a column.
            return None

    def owner(self, node: exp.Column) -> tuple[FromItem, str]:
        """The item of FROM that has the column, and the name of the column there."""
        require_only(node, "this", "table")
        identifier, prefix = node.this, node.args.get("table")
        if not isinstance(identifier, exp.Identifier):
            raise _no_column_error(node_text(node), self.sources)
        if identifier.name.startswith("$"):
            raise unsupported_error(exp.Placeholder(this=identifier.name))
        if prefix is not None and self.outer is not None and self._is_outer(prefix):
            return self.outer.owner(node)
        searched = self.sources if prefix is None else [self.source(prefix)]
        matches = [
            (source, name)
            for source in searched
            if (name := match_name(identifier, source.names)) is not None
        ]
        if not matches and self.outer is not None:
            return self.outer.owner(node)
        if not matches:
            raise _no_column_error(identifier.name, searched, quoted=bool(identifier.args.get("quoted")))
        if len(matches) > 1 and matches[0][1] not in self.merged and not _all_units(matches):
            raise question_error(
                "DP701",
                f"several tables have a column {identifier.name}.",
                "the name does not say which of them is meant.",
                " or ".join(f"{source.alias}.{name}" for source, name in matches),
            )
        return matches[0]

    def _is_outer(self, prefix: exp.Identifier) -> bool:
        return match_name(prefix, [source.alias for source in self.sources]) is None

    def is_own(self, node: exp.Expression) -> bool:
        """Whether an expression names only columns of this scope, and none of the names around it."""
        own = NameScope(self.dataset, self.sources, self.merged)
        return all(own._owner_or_none(column) is not None for column in node.find_all(exp.Column))

    def source(self, identifier: exp.Identifier) -> FromItem:
        """The item of FROM with this name."""
        by_alias = {source.alias: source for source in self.sources}
        alias = match_name(identifier, by_alias)
        if alias is None:
            raise question_error(
                "DP701",
                f"FROM has no table named {identifier.name!r}.",
                "a column must come from a table in FROM or JOIN.",
                f"use {similar_names(identifier.name, by_alias)}",
            )
        return by_alias[alias]


def match_name(identifier: exp.Identifier, names: Iterable[str]) -> str | None:
    """The name that an identifier means, or None."""
    known, wanted = list(names), identifier.name
    if wanted in known:
        return str(wanted)
    if identifier.args.get("quoted") or not wanted.isascii():
        return None
    alike = [name for name in known if name.isascii() and name.lower() == wanted.lower()]
    return alike[0] if len(alike) == 1 else None


def _all_units(matches: list[tuple[FromItem, str]]) -> bool:
    """Whether all are unit columns; private tables join only on the unit, so these are equal in
    every row.
    """
    return all(source.table is not None and name == source.table.unit for source, name in matches)


def _no_column_error(name: str, searched: list[FromItem], *, quoted: bool = False) -> Exception:
    known = [column for source in searched for column in source.names]
    where = " and ".join(source.alias for source in searched) or "the question"
    fix = f"use {similar_names(name, known)}" if known else "name a table:  SELECT COUNT(*) FROM visits"
    return question_error(
        "DP701",
        f"{where} has no column {name!r}.",
        "a question can use only columns of the description.",
        f"{fix};   a text needs single quotes:  '{name}'" if quoted else fix,
    )
