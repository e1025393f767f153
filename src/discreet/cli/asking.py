# SPDX-License-Identifier: Apache-2.0
"""Options of the commands that ask a question: the data set, the cost, the ledger and its analyst."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from discreet import check
from discreet.cli.numbers import number

_COST, _ACCOUNT, _OUT = "Cost", "Ledger", "Output"

Data = Annotated[
    str,
    typer.Option(
        "--data", metavar="FILE.toml", help="The description of the data set; adult comes with the library."
    ),
]
MaybeData = Annotated[
    str | None,
    typer.Option(
        "--data", metavar="FILE.toml", help="The description of the data set; adult comes with the library."
    ),
]
Epsilon = Annotated[
    str | None,
    typer.Option("--epsilon", metavar="EPS", help="At most this ε (Laplace noise).", rich_help_panel=_COST),
]
Delta = Annotated[
    str | None,
    typer.Option(
        "--delta", metavar="DELTA", help="With this δ: Gaussian noise, private keys.", rich_help_panel=_COST
    ),
]
Rho = Annotated[
    str | None,
    typer.Option(
        "--rho", metavar="RHO", help="Or at most this ρ of zero-concentrated DP.", rich_help_panel=_COST
    ),
]
Error = Annotated[
    str | None,
    typer.Option(
        "--error",
        metavar="ERROR",
        help="Or the least cost for a margin of error: ±50, ±2%.",
        rich_help_panel=_COST,
    ),
]
LedgerFile = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="LEDGER",
        help="A file, or postgresql://…; by default the one in [budget].",
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
    str | None,
    typer.Option(
        "--analyst", metavar="NAME", help="Who asks; charged to their allocation.", rich_help_panel=_ACCOUNT
    ),
]
Project = Annotated[
    str | None,
    typer.Option(
        "--project", metavar="NAME", help="The project; charged to its allocation.", rich_help_panel=_ACCOUNT
    ),
]
Purpose = Annotated[
    str | None,
    typer.Option(
        "--purpose", metavar="WORDS", help="Why; written into the ledger.", rich_help_panel=_ACCOUNT
    ),
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
    typer.Option("--answers", help="Show the answers too.", rich_help_panel=_OUT),
]
Anchor = Annotated[
    str | None,
    typer.Option(
        "--anchor", metavar="HASH", help="A hash that you wrote down, to detect a rolled-back ledger."
    ),
]

_CHECKS = {"epsilon": check.positive, "delta": check.delta, "rho": check.positive}


def stated_cost(epsilon: str | None, delta: str | None, rho: str | None, error: str | None) -> dict[str, Any]:
    """The cost that was stated, as numbers; an error stays a text."""
    words = {"epsilon": epsilon, "delta": delta, "rho": rho}
    stated: dict[str, Any] = {
        name: number(f"--{name}", word, _CHECKS[name], f"--{name} {_EXAMPLES[name]}")
        for name, word in words.items()
        if word is not None
    }
    return stated | ({"error": error} if error is not None else {})


_EXAMPLES = {"epsilon": "0.1", "delta": "1e-6", "rho": "0.01"}
