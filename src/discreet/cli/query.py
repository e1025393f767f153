# SPDX-License-Identifier: Apache-2.0
"""`discreet query`: one question in SQL, charged to the ledger and then answered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli import asking, options
from discreet.cli.files import (
    FIGURES,
    TABLES,
    after_payment,
    can_draw,
    can_write,
    check_path,
    write_answer,
    write_whole,
)
from discreet.cli.places import data_at, session_for
from discreet.cli.report import error_object, print_json
from discreet.cli.terminal import print_rows, working
from discreet.errors import DiscreetError

if TYPE_CHECKING:
    from discreet.session import Session
    from discreet.tables.answer.answer import Answer

Sql = Annotated[
    str, typer.Argument(metavar="SQL", help="SELECT … GROUP BY …; EXPLAIN PRIVACY SELECT … shows the plan.")
]
Out = Annotated[
    str | None,
    options.option("--out", "FILE", "Write the table: .csv, .parquet or .json.", "Output"),
]
Plot = Annotated[
    str | None,
    options.option("--plot", "FILE", "Draw it: .svg, .png or .pdf.", "Output"),
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
    """Answer a question in SQL, with a confidence interval for every number.

    discreet query "SELECT sex, COUNT(*) FROM adult GROUP BY sex" --data adult --epsilon 0.1
        --ledger adult.ledger --limit eps=1,delta=1e-6

    The cost is written to the ledger before the answer is drawn. Exits with status 3 if the budget
    is too small, and with status 4 if the question cannot be proved private. Neither spends budget.
    """
    stated = asking.stated_cost(epsilon, delta, rho, error)
    table = None if out is None else check_path(out, TABLES, "--out")
    figure = None if plot is None else check_path(plot, FIGURES, "--plot")
    can_write([] if table is None else [table])
    can_draw(figure)
    who = {"analyst": analyst, "project": project, "purpose": purpose}
    explains = [word.upper() for word in sql.split()[:2]] == ["EXPLAIN", "PRIVACY"]
    session = session_for(data_at(data), ledger, limit, who, read_only=explains)
    if explains:
        from discreet.cli.plan import show_preview

        show_preview(session, session.preview(sql, **stated), stated, who, json=json)
        return
    with working("asking"):
        answer = session.sql(sql, key=key, **stated)
    _print_and_write(session, answer, table, figure, json=json)


def _print_and_write(
    session: Session, answer: Answer, table: Path | None, figure: Path | None, *, json: bool
) -> None:
    """Print the answer and write the files; it was paid for, so it is shown even if writing fails."""
    files: list[str] = []
    failure: DiscreetError | None = None
    try:
        files.extend(map(str, _write_files(answer, table, figure)))
    except DiscreetError as error:
        failure = after_payment(error, "the answer, which is shown and kept in the ledger")
    if json:
        facts = {"command": "query", **answer_facts(session, answer), "files": files}
        print_json(facts | ({"error": error_object(failure)} if failure else {}))
        if failure:
            raise typer.Exit(2)
        return
    print(answer)
    print()
    print_rows([*account_rows(session, answer), *(("wrote", target) for target in files)])
    if failure:
        raise failure


def _write_files(answer: Answer, table: Path | None, figure: Path | None) -> Iterator[Path]:
    if table is not None:
        write_answer(answer, table)
        yield table
    if figure is not None:
        from discreet import plot as charts

        write_whole(figure, lambda target: charts.save(answer.plot(), target))
        yield figure


def answer_facts(session: Session, answer: Answer) -> dict[str, object]:
    """An answer, its receipt and the budget, for JSON."""
    from discreet.ledger.overview import budget_facts

    receipt = answer.receipt
    return {
        "answer": answer.to_dict(),
        "rows": [{name: _json_cell(cell) for name, cell in row.items()} for row in answer],
        "receipt": {"number": receipt.number, "time": receipt.time, "hash": receipt.hash, "key": receipt.key},
        "paid": receipt.cost is not None,
        "budget": budget_facts(session.budget()),
        "like_this": _similar_answers(session, answer),
    }


def account_rows(session: Session, answer: Answer) -> list[tuple[str, str]]:
    """What the answer cost, and the budget."""
    receipt = "shown again; it was paid for before" if answer.receipt.cost is None else str(answer.receipt)
    budget, like = session.budget(), _similar_answers(session, answer)
    more = "" if like is None else f"; {like:,} more like this would fit"
    return [("receipt", receipt), ("limit", f"{budget.headline}{more}")]


def _similar_answers(session: Session, answer: Answer) -> int | None:
    if answer.guarantee is None:
        return None
    count = session.budget().like(answer.guarantee)
    return None if count == float("inf") else int(count)


def _json_cell(cell: object) -> bool | int | float | str | None:
    return cell if cell is None or isinstance(cell, bool | int | float | str) else str(cell)
