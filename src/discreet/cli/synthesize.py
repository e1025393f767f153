# SPDX-License-Identifier: Apache-2.0
"""`discreet synthesize`: a synthetic copy of columns of a table, charged to the ledger and then
drawn.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet import check as validate
from discreet.cli import asking, options
from discreet.cli.files import Write, after_payment, can_write, check_path, text_writer, write_whole
from discreet.cli.numbers import number, whole
from discreet.cli.places import data_at, session_for
from discreet.cli.report import error_object, print_json
from discreet.cli.terminal import print_rows, working
from discreet.errors import BadParameter, DiscreetError

if TYPE_CHECKING:
    from discreet.session import Session
    from discreet.tables.synthetic.copy import SyntheticCopy

_ROWS, _OUT = "Rows", "Output"
_ENDINGS = ("csv", "parquet", "json")

Columns = Annotated[
    str | None,
    options.option("--columns", "A,B,C", "The columns; by default all with public values or bounds."),
]
BinWords = Annotated[
    list[str] | None,
    options.option("--bins", "COLUMN=N", "Intervals of a column: age=10, or edges: age=18:30:65."),
]
Method = Annotated[
    str, options.option("--method", "METHOD", "mixture, or aim: slower, and better for training models.")
]
Check = Annotated[
    str, options.option("--check", "SHARE", "The share of the budget that measures the copy; 0 for none.")
]
Table = Annotated[
    str | None, options.option("--table", "NAME", "The private table, if the data set has several.")
]
Rows = Annotated[
    str | None, options.option("--rows", "N", "So many rows; by default the released number.", _ROWS)
]
Seed = Annotated[str, options.option("--seed", "N", "Other rows of the same copy, at no cost.", _ROWS)]
Out = Annotated[
    str | None,
    options.option(
        "--out", "FILE", "Write the rows: .csv or .parquet; or all released numbers: .json.", _OUT
    ),
]


def synthesize(
    *,
    data: asking.Data,
    columns: Columns = None,
    bins: BinWords = None,
    table: Table = None,
    epsilon: asking.Epsilon = None,
    delta: asking.Delta = None,
    rho: asking.Rho = None,
    check: Check = "0.01",
    method: Method = "mixture",
    rows: Rows = None,
    seed: Seed = "0",
    ledger: asking.LedgerFile = None,
    limit: asking.LimitWords = None,
    analyst: asking.Analyst = None,
    project: asking.Project = None,
    purpose: asking.Purpose = None,
    key: asking.Key = None,
    out: Out = None,
    json: options.Json = False,
) -> None:
    """Make a synthetic copy: made-up rows that follow noisy tables of all pairs of columns.

    discreet synthesize --data adult --columns age,education,sex --epsilon 1 --delta 1e-6 --limit eps=1,delta=1e-6
    --out copy.csv

    The cost is written to the ledger before the copy is drawn. With --key, other --rows, --seed
    and --out cost nothing more. Exits with status 3 if the budget is too small, and with status 4
    if the copy cannot be proved private. Neither spends budget.
    """
    stated = asking.stated_cost(epsilon, delta, rho, None)
    target = None if out is None else check_path(out, _ENDINGS, "--out")
    can_write([] if target is None else [target])
    count = None if rows is None else whole("--rows", rows, _not_negative, "--rows 1000")
    share = number("--check", check, validate.not_negative, "--check 0.01")
    first = whole("--seed", seed, _not_negative, "--seed 1")
    who = {"analyst": analyst, "project": project, "purpose": purpose}
    session = session_for(data_at(data), ledger, limit, who)
    with working("measuring and fitting"):
        copy = session.synthesize(
            session.data if table is None else session.data[table],
            columns=None if columns is None else [name.strip() for name in columns.split(",")],
            bins=_parse_bins(bins or []),
            check=share,
            method=method,
            key=key,
            epsilon=stated.get("epsilon"),
            delta=stated.get("delta"),
            rho=stated.get("rho"),
        )
    _write_and_print(session, copy, target, count, first, json=json)


def _not_negative(**named: object) -> int:
    return validate.whole(at_least=0, **named)


def _parse_bins(words: list[str]) -> dict[str, int | list[float]]:
    """`age=10` is a number of intervals, `age=18:30:65` their edges."""
    bins: dict[str, int | list[float]] = {}
    for word in words:
        name, equals, value = word.partition("=")
        try:
            bins[name.strip()] = [float(edge) for edge in value.split(":")] if ":" in value else int(value)
        except ValueError:
            equals = ""
        if not equals:
            raise BadParameter(
                "DP104",
                f"--bins {word!r} does not state the intervals of a column.",
                why="each column has a number of intervals, or the edges between them.",
                fix=f"--bins {name.strip() or 'age'}=10",
            )
    return bins


def _write_and_print(
    session: Session, copy: SyntheticCopy, target: Path | None, rows: int | None, seed: int, *, json: bool
) -> None:
    """Write the rows and print what they are. The copy was paid for, so it is described even if
    writing fails.
    """
    failure: DiscreetError | None = None
    try:
        if target is not None:
            write_whole(target, _writer(copy, target, rows, seed))
    except DiscreetError as error:
        failure = after_payment(error, "the copy, which is kept in the ledger")
    if json:
        facts = _copy_facts(session, copy, None if failure else target)
        print_json(facts | ({"error": error_object(failure)} if failure else {}))
        if failure:
            raise typer.Exit(2)
        return
    print(copy.statement())
    print()
    receipt = "shown again; it was paid for before" if copy.receipt.cost is None else str(copy.receipt)
    written = [] if target is None or failure else [("wrote", str(target))]
    print_rows([("receipt", receipt), ("limit", session.budget().headline), *written])
    if failure:
        raise failure


def _writer(copy: SyntheticCopy, target: Path, rows: int | None, seed: int) -> Write:
    """What writes the copy in the format that the ending of its place says."""
    if target.suffix.lower() == ".json":
        return text_writer(copy.to_json() + "\n")
    if target.suffix.lower() == ".parquet":
        return lambda path: copy.to_parquet(path, rows=rows, seed=seed)
    return lambda path: copy.to_csv(path, rows=rows, seed=seed)


def _copy_facts(session: Session, copy: SyntheticCopy, target: Path | None) -> dict[str, object]:
    """A copy, its receipt and the budget, for JSON."""
    from discreet.ledger.overview import budget_facts

    receipt, quality = copy.receipt, copy.quality
    return {
        "command": "synthesize",
        "columns": list(copy.header),
        "rows": copy.rows,
        "quality": None if quality is None else dict(vars(quality)),
        "statement": copy.statement().splitlines(),
        "receipt": {"number": receipt.number, "time": receipt.time, "hash": receipt.hash, "key": receipt.key},
        "paid": receipt.cost is not None,
        "budget": budget_facts(session.budget()),
        "files": [] if target is None else [str(target)],
    }
