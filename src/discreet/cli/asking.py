# SPDX-License-Identifier: Apache-2.0
"""What the commands share that ask a question: whose data, at what cost, on whose account."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from discreet import check
from discreet.cli.numbers import number

_COST, _ACCOUNT, _OUT = "What it may cost", "Whose account", "Output"

Data = Annotated[
    str,
    typer.Option("--data", metavar="FILE.toml", help="The description of the data set; adult is shipped."),
]
MaybeData = Annotated[
    str | None,
    typer.Option("--data", metavar="FILE.toml", help="The description of the data set; adult is shipped."),
]
Epsilon = Annotated[
    str | None, typer.Option("--epsilon", metavar="EPS", help="At most this ε.", rich_help_panel=_COST)
]
Delta = Annotated[
    str | None,
    typer.Option(
        "--delta", metavar="DELTA", help="With this δ: Gaussian noise, unknown keys.", rich_help_panel=_COST
    ),
]
Rho = Annotated[
    str | None,
    typer.Option(
        "--rho", metavar="RHO", help="Or at most this ρ (zero-concentrated).", rich_help_panel=_COST
    ),
]
Error = Annotated[
    str | None,
    typer.Option(
        "--error", metavar="ERROR", help="Or the least that keeps an error: ±50, ±2%.", rich_help_panel=_COST
    ),
]
LedgerFile = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="LEDGER",
        help="A file, or postgresql://…; else what [budget] names.",
        rich_help_panel=_ACCOUNT,
    ),
]
LimitWords = Annotated[
    str | None,
    typer.Option(
        "--limit",
        metavar="LIMIT",
        help="For a new ledger: eps=1 · eps=1,delta=1e-6 · rho=0.5 · mu=1.",
        rich_help_panel=_ACCOUNT,
    ),
]
Analyst = Annotated[
    str | None, typer.Option("--analyst", metavar="NAME", help="Who asks.", rich_help_panel=_ACCOUNT)
]
Project = Annotated[
    str | None, typer.Option("--project", metavar="NAME", help="For what.", rich_help_panel=_ACCOUNT)
]
Purpose = Annotated[
    str | None,
    typer.Option("--purpose", metavar="WORDS", help="Why, for the ledger.", rich_help_panel=_ACCOUNT),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="KEY",
        help="Asking again with the same key costs nothing.",
        rich_help_panel=_ACCOUNT,
    ),
]
Answers = Annotated[
    bool,
    typer.Option("--answers", help="Show the answers too; without it none is shown.", rich_help_panel=_OUT),
]
Anchor = Annotated[
    str | None,
    typer.Option("--anchor", metavar="HASH", help="The hash that you wrote down; a roll-back is found."),
]

_CHECKS = {"epsilon": check.positive, "delta": check.delta, "rho": check.positive}


def amounts(epsilon: str | None, delta: str | None, rho: str | None, error: str | None) -> dict[str, Any]:
    """What was stated of the cost, as numbers; an error stays in words."""
    given = {"epsilon": epsilon, "delta": delta, "rho": rho}
    stated: dict[str, Any] = {
        name: number(f"--{name}", word, _CHECKS[name], f"--{name} {_EXAMPLES[name]}")
        for name, word in given.items()
        if word is not None
    }
    return stated | ({"error": error} if error is not None else {})


_EXAMPLES = {"epsilon": "0.1", "delta": "1e-6", "rho": "0.01"}
