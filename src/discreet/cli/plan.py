# SPDX-License-Identifier: Apache-2.0
"""`discreet plan`: the cost and the margin of error of a question or a whole release. Spends
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import asking, options
from discreet.cli.places import data_at, session_for
from discreet.cli.previews import BudgetFit, budget_facts, budget_rows, first_choice, fits
from discreet.cli.release_copies import unpaid_copies
from discreet.cli.release_streams import unpaid_streams
from discreet.cli.report import print_json
from discreet.cli.terminal import print_rows, print_table, working
from discreet.errors import BadParameter
from discreet.paths import is_folder

if TYPE_CHECKING:
    from discreet.cli.releases import TableJob
    from discreet.privacy.guarantee import Guarantee
    from discreet.session import QuestionCost, Session
    from discreet.tables.plan.preview import Preview

What = Annotated[
    str,
    typer.Argument(metavar="SQL|RELEASE.toml", help="A question, a release file, or a folder of .sql files."),
]


def plan(
    what: What,
    *,
    data: asking.MaybeData = None,
    epsilon: asking.Epsilon = None,
    delta: asking.Delta = None,
    rho: asking.Rho = None,
    error: asking.Error = None,
    ledger: asking.LedgerFile = None,
    limit: asking.LimitWords = None,
    analyst: asking.Analyst = None,
    project: asking.Project = None,
    json: options.Json = False,
) -> None:
    """Show the cost and the margin of error of a query without reading data or spending budget.

    discreet plan "SELECT sex, COUNT(*) FROM adult GROUP BY sex" --data adult --epsilon 0.1

    discreet plan release.toml

    Exits with status 3 if the budget is too small.
    """
    stated = asking.stated_cost(epsilon, delta, rho, error)
    if Path(what).suffix.lower() == ".toml" or is_folder(Path(what)):
        _refuse_flags_beside_file({"--data": data, "--analyst": analyst, "--project": project, **stated})
        _plan_release(what, ledger, limit, json=json)
        return
    if data is None:
        raise _missing_data_error()
    who = {"analyst": analyst, "project": project}
    session = session_for(data_at(data), ledger, limit, who, read_only=True)
    show_preview(session, session.preview(what, **stated), stated, who, json=json)


def show_preview(
    session: Session, preview: Preview, stated: QuestionCost, who: dict[str, str | None], *, json: bool
) -> None:
    """Print a preview, and what the cost means for the budget."""
    costs = [*(first_choice(session, stated) if "error" not in stated else []), preview.cost]
    fit = fits(session, costs, who["analyst"], who["project"])
    if json:
        print_json({"command": "plan", **preview.to_dict(), "budget": budget_facts(session, fit, costs)})
    else:
        print_rows([*preview.lines(), *budget_rows(session, fit, costs), ("spent", "nothing")])
    _exit_if_refused(fit, json=json)


def _plan_release(file: str, ledger: str | None, limit: str | None, *, json: bool) -> None:
    from discreet.cli.releases import read_release

    release = read_release(Path(file))
    session = session_for(data_at(release.data), ledger or release.ledger, limit, release.who, read_only=True)
    with working("planning"):
        jobs = release.jobs(session)
        unpaid = unpaid_streams(session, release.streams) + unpaid_copies(session, release.copies)
        costs = [*unpaid, *_unpaid_costs(session, jobs)]
        copies = {section.name: section.preview(session) for section in release.copies}
        streams = {section.name: section.preview(session) for section in release.streams}
        fit = fits(session, costs, release.who["analyst"], release.who["project"])
    facts: dict[str, Any] = {
        "command": "plan",
        "release": release.name,
        "tables": [job.to_dict() for job in jobs],
    }
    facts |= {"streams": {name: preview.errors for name, preview in streams.items()}} if streams else {}
    facts |= {"copies": {name: preview.to_dict() for name, preview in copies.items()}} if copies else {}
    if json:
        print_json(facts | {"budget": budget_facts(session, fit, costs) if costs else None})
    else:
        for name, preview in (*streams.items(), *copies.items()):
            print(f"{name}\n{preview}\n")
        _print_release(session, jobs, fit, costs)
    _exit_if_refused(fit, json=json)


def _unpaid_costs(session: Session, jobs: list[TableJob]) -> list[Guarantee]:
    """The costs that were not paid under their keys before."""
    missing = [job for job in jobs if not job.paid]
    return [*(first_choice(session, missing[0].spend) if missing else []), *(job.cost for job in missing)]


def _print_release(session: Session, jobs: list[TableJob], fit: BudgetFit, costs: list[Guarantee]) -> None:
    rows = [
        [job.name if at == 0 else "", column.name, column.error, job.words if at == 0 else ""]
        for job in jobs
        for at, column in enumerate(job.preview.columns)
    ]
    if rows:
        print_table(["table", "column", "error (95 %)", "cost"], rows, numbers=set())
        print()
    groups = [(f"groups of {job.name}", job.preview.groups) for job in jobs]
    budget = (
        budget_rows(session, fit, costs) if costs else [("cost", "nothing: every table was paid for before")]
    )
    print_rows([*groups, *budget, ("spent", "nothing")])


def _exit_if_refused(fit: BudgetFit, *, json: bool) -> None:
    if fit.refusal is None:
        return
    if json:
        raise typer.Exit(3)
    raise fit.refusal


def _refuse_flags_beside_file(flags: Mapping[str, object]) -> None:
    twice = [name for name, value in flags.items() if value is not None]
    if twice:
        raise BadParameter(
            "DP107",
            f"{twice[0].removeprefix('--')} is given, but the release file states the questions and their cost.",
            why="one of the two would be ignored.",
            fix="write it into the file, under [release]",
        )


def _missing_data_error() -> BadParameter:
    return BadParameter(
        "DP107",
        "--data is missing.",
        why="the noise depends on the privacy unit and the bounds in the description of the data set.",
        fix='discreet plan "SELECT COUNT(*) FROM adult" --data adult --epsilon 0.1',
    )
