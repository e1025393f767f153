# SPDX-License-Identifier: Apache-2.0
"""Questions that were written with SQLAlchemy or Ibis: the SQL that these libraries make of them.

**Guarantee.** A question from another library is the SQL that it writes, parsed as any other SQL:
the same proof, the same refusals. The library is not asked for rows and needs no connection.
"""

from __future__ import annotations

import sys
from typing import Protocol

from discreet.errors import RefusedQuestion

__all__ = ["Compilable", "sql_of"]


class Compilable(Protocol):
    """A SELECT of SQLAlchemy, or a table or value expression of Ibis."""

    def compile(self) -> object:
        """Its SQL."""
        ...


def sql_of(question: object) -> str | None:
    """The SQL of a question of another library; None for anything else."""
    library = type(question).__module__.partition(".")[0]
    if library not in {"sqlalchemy", "ibis"}:
        return None
    try:
        if library == "sqlalchemy":
            # Values are written into the text, where the parser reads them as values again.
            return str(question.compile(compile_kwargs={"literal_binds": True}))  # type: ignore[attr-defined]
        return str(sys.modules["ibis"].to_sql(question, dialect="postgres"))
    except Exception as error:  # noqa: BLE001 - whatever the library raises may show a value
        raise RefusedQuestion(
            "DP702",
            f"{library} cannot write this as one SELECT ({type(error).__name__}).",
            why="a question of another library is the SQL that it writes.",
            fix='session.sql("SELECT COUNT(*) FROM visits", epsilon=0.1)',
        ) from None
