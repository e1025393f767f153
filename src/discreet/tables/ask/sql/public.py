# SPDX-License-Identifier: Apache-2.0
"""Questions that name public tables only.

**Guarantee.** A question is public only if every table that its text names, in any place, is a
public table of the description or a query of its own WITH. Nothing else is concluded from the text:
where it runs (`answer/public.py`), no other table exists.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from discreet.errors import DiscreetError
from discreet.tables.ask.sql.parameters import parse_with_parameters
from discreet.tables.ask.sql.scope import match_name
from discreet.tables.ask.start import Dataset

__all__ = ["PublicQuestion", "public_question"]


#: Functions that would show paths of the machine on which a question runs.
_SETTINGS = {"current_setting"}
#: How the names of DuckDB's own tables begin, of which some show the same. A query of WITH hides
#: them in its own scope only.
_OWN_TABLES = ("duckdb_", "pg_", "pragma_", "sqlite_")


@dataclass(frozen=True)
class PublicQuestion:
    """The text of a question, and the public tables that it names."""

    text: str
    tables: tuple[str, ...]


def public_question(text: object, dataset: Dataset, parameters: object = ()) -> PublicQuestion | None:
    """A question that names public tables only; None for every other text."""
    if all(table.private for table in dataset.tables.values()):
        return None
    try:
        statement = parse_with_parameters(text, parameters)
    except DiscreetError:
        # The parser of private questions says why.
        return None
    tables = public_tables(statement.select, dataset)
    return PublicQuestion(statement.text, tables) if tables and not statement.explain else None


def public_tables(select: exp.Select, dataset: Dataset) -> tuple[str, ...]:
    """The tables that a statement names, if all of them are public; none otherwise."""
    named = {query.alias.casefold() for query in select.find_all(exp.CTE)}
    named = {name for name in named if not name.startswith(_OWN_TABLES)}
    public = [name for name, table in dataset.tables.items() if not table.private]
    if any(node.name.casefold() in _SETTINGS for node in select.find_all(exp.Func)):
        return ()
    tables = set()
    for node in select.find_all(exp.Table):
        if not isinstance(node.this, exp.Identifier) or node.args.get("db"):
            return ()
        name = match_name(node.this, public)
        if name is None and node.name.casefold() not in named:
            return ()
        tables |= set() if name is None else {name}
    return tuple(sorted(tables))
