# SPDX-License-Identifier: Apache-2.0
"""`discreet plan`: what a question, or a whole release, would cost and how wrong it would be. Spends nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import asking, options
from discreet.cli.places import data_at, session_for
from discreet.cli.previews import Fit, budget_facts, budget_rows, first_choice, fits
from discreet.cli.report import print_json
from discreet.cli.terminal import print_rows, print_table, working
from discreet.errors import BadParameter

if TYPE_CHECKING:
    from discreet.cli.releases import Job
    from discreet.session import Session

What = Annotated[str, typer.Argument(metavar="SQL|RELEASE.toml", help="A question, or a file of many.")]


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
    """Show the cost and the margin of error of a query without reading data or spending budget. Exits with status 3 if it does not fit.

    discreet plan "SELECT sex, COUNT(*) FROM adult GROUP BY sex" --data adult --epsilon 0.1

    discreet plan release.toml
    """
    stated = asking.amounts(epsilon, delta, rho, error)
    if Path(what).suffix.lower() == ".toml":
        _nothing_beside({"--data": data, "--analyst": analyst, "--project": project, **stated})
        _release(what, ledger, limit, json=json)
        return
    if data is None:
        raise _no_data()
    who = {"analyst": analyst, "project": project}
    session = session_for(data_at(data), ledger, limit, who, only_looking=True)
    show(session, session.preview(what, **stated), stated, who, json=json)


def show(
    session: Session, preview: Any, stated: dict[str, Any], who: dict[str, str | None], *, json: bool
) -> None:
    """A preview, and what it means for what is left."""
    costs = [*(first_choice(session, stated) if "error" not in stated else []), preview.cost]
    fit = fits(session, costs, who["analyst"], who["project"])
    if json:
        print_json({"command": "plan", **preview.to_dict(), "budget": budget_facts(session, fit, costs)})
    else:
        print_rows([*preview.lines(), *budget_rows(session, fit, costs), ("spent", "nothing")])
    _leave(fit, json=json)


def _release(file: str, ledger: str | None, limit: str | None, *, json: bool) -> None:
    from discreet.cli.releases import read

    release = read(Path(file))
    session = session_for(
        data_at(release.data), ledger or release.ledger, limit, release.who, only_looking=True
    )
    with working("planning"):
        jobs = release.jobs(session)
        costs = _pending(session, jobs)
        fit = fits(session, costs, release.who["analyst"], release.who["project"])
    found = {"command": "plan", "release": release.name, "tables": [job.to_dict() for job in jobs]}
    if json:
        print_json(found | {"budget": budget_facts(session, fit, costs) if costs else None})
    else:
        _print_release(session, jobs, fit, costs)
    _leave(fit, json=json)


def _pending(session: Session, jobs: list[Job]) -> list[Any]:
    """What has to be paid for: everything that was not paid for under its key before."""
    missing = [job for job in jobs if not job.paid]
    return [*(first_choice(session, missing[0].spend) if missing else []), *(job.cost for job in missing)]


def _print_release(session: Session, jobs: list[Job], fit: Fit, costs: list[Any]) -> None:
    rows = [
        [job.name if at == 0 else "", column.name, column.error, job.words if at == 0 else ""]
        for job in jobs
        for at, column in enumerate(job.preview.columns)
    ]
    print_table(["table", "column", "error (95 %)", "cost"], rows, numbers=set())
    print()
    groups = [(f"groups of {job.name}", job.preview.groups) for job in jobs]
    budget = (
        budget_rows(session, fit, costs) if costs else [("cost", "nothing: every table was paid for before")]
    )
    print_rows([*groups, *budget, ("spent", "nothing")])


def _leave(fit: Fit, *, json: bool) -> None:
    if fit.refusal is None:
        return
    if json:
        raise typer.Exit(3)
    raise fit.refusal


def _nothing_beside(given: dict[str, Any]) -> None:
    twice = [name for name, value in given.items() if value is not None]
    if twice:
        raise BadParameter(
            "DP107",
            f"{twice[0].removeprefix('--')} is given, but the release file says what is asked and at what cost.",
            why="one of the two would be silently ignored.",
            fix="write it into the file, under [release]",
        )


def _no_data() -> BadParameter:
    return BadParameter(
        "DP107",
        "--data is missing: whom would the answer be about?",
        why="the noise depends on the privacy unit, and on the bounds that are stated.",
        fix='discreet plan "SELECT COUNT(*) FROM adult" --data adult --epsilon 0.1',
    )
