# SPDX-License-Identifier: Apache-2.0
"""SELECT about public tables only: run as it stands, exact and free.

**Guarantee.** No private row is read. The question runs in a DuckDB database of its own, which
holds copies of the public tables that it names and nothing else: no file, no network, no variable
of Python and no other table can be reached from there. So the answer depends on public tables
alone, whatever its text is, and costs nothing.

What would break it: a "public" table that was made from private data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from threading import Timer
from typing import Any

from sqlglot import exp

from discreet.tables.answer.answer import Answer
from discreet.tables.ask.sql.public import PublicQuestion
from discreet.tables.ask.sql.refuse import question_error
from discreet.tables.ask.start import Dataset
from discreet.tables.data.readers.schema import library

__all__ = ["public_answer"]

_NOTE = "Only public tables were read. The numbers are exact, and nothing was spent."
#: Nothing beyond the database can be reached, and no statement can change that.
_SANDBOX = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "memory_limit": "2GB",
    # Nothing is spilled to disk.
    "temp_directory": "",
}
#: The one function of our SQL that DuckDB lacks.
_CLAMP = "CREATE MACRO clamp(x, low, high) AS greatest(least(x, high), low)"
_LONGEST_SECONDS = 60.0
_LONGEST_ANSWER = 1_000_000


def public_answer(question: PublicQuestion, dataset: Dataset) -> Answer:
    """The answer to a question that names public tables only."""
    dataset.ready()
    return _run(question.text, {name: dataset.engine.public_rows(name) for name in question.tables})


def _run(text: str, tables: dict[str, Any]) -> Answer:
    """The rows of a statement in a database that holds some tables alone."""
    duckdb = library("duckdb")
    connection = duckdb.connect(":memory:", config=_SANDBOX)
    try:
        for name, rows in tables.items():
            connection.register(name, rows)
        connection.execute(_CLAMP)
        connection.execute("SET lock_configuration = true")
        with _stopped_in_time(connection):
            result = connection.execute(text)
            header = [column[0] for column in result.description]
            rows = result.fetchmany(_LONGEST_ANSWER + 1)
    except duckdb.Error as error:
        raise _failed_error(str(error).strip().splitlines()[0], tables) from None
    finally:
        connection.close()
    if len(rows) > _LONGEST_ANSWER:
        raise _failed_error(f"its answer has more than {_LONGEST_ANSWER} rows.", tables)
    groups = [tuple(map(_plain, row)) for row in rows]
    return Answer.of(keys=_distinct(header), groups=groups, columns={}, question=text, notes=[_NOTE])


@contextmanager
def _stopped_in_time(connection: Any) -> Iterator[None]:
    """Stop a statement that takes too long, which would block a shared server."""
    timer = Timer(_LONGEST_SECONDS, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _plain(value: Any) -> Any:
    """A value as an answer holds it: what is no number, text, date or truth value becomes text."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if value is None or isinstance(value, bool | int | float | str) or hasattr(value, "isoformat"):
        return value
    return str(value)


def _distinct(header: list[str]) -> list[str]:
    """The names of columns, each once."""
    names: list[str] = []
    for name in header:
        number = 2
        unused = name
        while unused in names:
            unused, number = f"{name}_{number}", number + 1
        names.append(unused)
    return names


def _failed_error(what: str, tables: Iterable[str]) -> Exception:
    table = exp.to_identifier(min(tables)).sql(dialect="duckdb")
    return question_error(
        "DP702",
        f"this question about public tables cannot be run: {what}",
        "it runs as it stands, in a DuckDB database that holds these tables alone, for at most a minute.",
        f"SELECT COUNT(*) FROM {table}   or  SHOW TABLES  for the columns",  # noqa: S608 - shown, not run
    )
