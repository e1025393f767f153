# SPDX-License-Identifier: Apache-2.0
"""SHOW TABLES and DESCRIBE: questions about the description of a data set.

**Guarantee.** Only the description is read, which is public; nothing is spent.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from discreet.tables.ask.sql.refuse import question_error
from discreet.tables.ask.sql.scope import match_name
from discreet.tables.ask.sql.text import tokenize_text
from discreet.tables.ask.start import Dataset
from discreet.tables.data.dataset import Table

__all__ = ["CatalogueQuestion", "catalogue_question"]


@dataclass(frozen=True)
class CatalogueQuestion:
    """SHOW TABLES, or DESCRIBE with its table."""

    text: str
    table: Table | None = None


def catalogue_question(text: object, dataset: Dataset) -> CatalogueQuestion | None:
    """The question of SHOW TABLES or DESCRIBE table; None for every other text."""
    first = text.split(maxsplit=1)[:1] if isinstance(text, str) else []
    if not first or first[0].upper().rstrip(";") not in {"SHOW", "DESCRIBE", "DESC"}:
        return None
    tokens = [token for token in tokenize_text(text) if token.text != ";"]
    words = [token.text.upper() for token in tokens]
    if words == ["SHOW", "TABLES"]:
        return CatalogueQuestion(str(text))
    if words[0] != "SHOW" and len(words) > 1 and words[1] == "TABLE":
        tokens = tokens[1:]
    name = None
    if words[0] != "SHOW" and len(tokens) == 2:
        quoted = tokens[1].token_type == TokenType.IDENTIFIER
        name = match_name(exp.to_identifier(tokens[1].text, quoted=quoted), dataset.tables)
    if name is None:
        raise question_error(
            "DP702",
            "this is not a description that can be shown.",
            "the description lists the tables, and the columns of each.",
            f"SHOW TABLES   or   DESCRIBE {next(iter(dataset.tables))}",
        )
    return CatalogueQuestion(str(text), dataset.tables[name])
