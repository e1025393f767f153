# SPDX-License-Identifier: Apache-2.0
"""`discreet query`: one question in SQL. It is charged to the ledger, and then answered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import asking, options
from discreet.cli.files import PICTURES, TABLES, can_draw, can_write, checked, paid, whole, write_answer
from discreet.cli.places import data_at, session_for
from discreet.cli.report import error_object, print_json
from discreet.cli.terminal import print_rows, working
from discreet.errors import DiscreetError

if TYPE_CHECKING:
    from discreet.session import Session
    from discreet.tables.answer.answer import Answer

Sql = Annotated[
    str, typer.Argument(metavar="SQL", help="SELECT … GROUP BY …; EXPLAIN PRIVACY SELECT … only plans.")
]
Out = Annotated[
    str | None,
    typer.Option(
        "--out", metavar="FILE", help="Write the table: .csv, .parquet or .json.", rich_help_panel="Output"
    ),
]
Plot = Annotated[
    str | None,
    typer.Option("--plot", metavar="FILE", help="Draw it: .svg, .png or .pdf.", rich_help_panel="Output"),
]


def query(
    sql: Sql,
    *,
    data: asking.Data,
    epsilon: asking.Epsilon = None,
    delta: asking.Delta = None,
    rho: asking.Rho = None,
    error: asking.Error = None,
    ledger: asking.LedgerFile = None,
    limit: asking.LimitWords = None,
    analyst: asking.Analyst = None,
    project: asking.Project = None,
    purpose: asking.Purpose = None,
    key: asking.Key = None,
    out: Out = None,
    plot: Plot = None,
    json: options.Json = False,
) -> None:
    """The answer to a question, with an interval for every number. The cost is in the ledger before it is drawn.

    discreet query "SELECT sex, COUNT(*) FROM adult GROUP BY sex" --data adult --epsilon 0.1 --ledger adult.ledger
    --limit eps=1,delta=1e-6

    Exit code 3: the limit would be exceeded. 4: the question is not one that can be proved private. Nothing is spent by either.
    """
    stated = asking.amounts(epsilon, delta, rho, error)
    table = None if out is None else checked(out, TABLES, "--out")
    picture = None if plot is None else checked(plot, PICTURES, "--plot")
    can_write([] if table is None else [table])
    can_draw(picture)
    who = {"analyst": analyst, "project": project, "purpose": purpose}
    explains = [word.upper() for word in sql.split()[:2]] == ["EXPLAIN", "PRIVACY"]
    session = session_for(data_at(data), ledger, limit, who, only_looking=explains)
    with working("asking"):
        answer = session.sql(sql, key=key, **stated)
    if explains:
        from discreet.cli.plan import show

        show(session, answer, stated, who, json=json)
    else:
        _hand_out(session, answer, table, picture, json=json)


def _hand_out(
    session: Session, answer: Answer, table: Path | None, picture: Path | None, *, json: bool
) -> None:
    """The answer was paid for: it is shown whatever happens to the files."""
    written: list[str] = []
    failure: DiscreetError | None = None
    try:
        written.extend(map(str, _written(answer, table, picture)))
    except DiscreetError as error:
        failure = paid(error, "the answer, which is shown and kept in the ledger")
    if json:
        found = {"command": "query", **answered(session, answer), "files": written}
        print_json(found | ({"error": error_object(failure)} if failure else {}))
        if failure:
            raise typer.Exit(2)
        return
    print(answer)
    print()
    print_rows([*account_rows(session, answer), *(("wrote", place) for place in written)])
    if failure:
        raise failure


def _written(answer: Answer, table: Path | None, picture: Path | None) -> Iterator[Path]:
    if table is not None:
        write_answer(answer, table)
        yield table
    if picture is not None:
        from discreet import plot as pictures

        whole(picture, lambda place: pictures.save(answer.plot(), place))
        yield picture


def answered(session: Session, answer: Answer) -> dict[str, Any]:
    """An answer, its receipt and what is left, for JSON."""
    from discreet.ledger.overview import budget

    receipt = answer.receipt
    return {
        "answer": answer.to_dict(),
        "rows": [{name: _plain(cell) for name, cell in row.items()} for row in answer],
        "receipt": {"number": receipt.number, "time": receipt.time, "hash": receipt.hash, "key": receipt.key},
        "paid": receipt.cost is not None,
        "budget": budget(session.budget()),
        "like_this": _like(session, answer),
    }


def account_rows(session: Session, answer: Answer) -> list[tuple[str, str]]:
    """What the answer cost, and what is left."""
    again = "shown again: it was paid for before" if answer.receipt.cost is None else str(answer.receipt)
    budget, like = session.budget(), _like(session, answer)
    more = "" if like is None else f"; {like:,} more like this would fit"
    return [("receipt", again), ("limit", f"{budget.headline}{more}")]


def _like(session: Session, answer: Answer) -> int | None:
    if answer.guarantee is None:
        return None
    count = session.budget().like(answer.guarantee)
    return None if count == float("inf") else int(count)


def _plain(cell: Any) -> Any:
    return cell if cell is None or isinstance(cell, bool | int | float | str) else str(cell)
