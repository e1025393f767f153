# SPDX-License-Identifier: Apache-2.0
"""Options of the commands that ask a question: the data set, the cost, the ledger and its analyst."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from discreet import check
from discreet.cli.numbers import number
from discreet.cli.options import option, switch

if TYPE_CHECKING:
    from discreet.session import QuestionCost

_COST, _ACCOUNT, _OUT = "Cost", "Ledger", "Output"
_DATA = option("--data", "FILE.toml", "The description of the data set; adult comes with the library.")

Data = Annotated[str, _DATA]
MaybeData = Annotated[str | None, _DATA]
Epsilon = Annotated[str | None, option("--epsilon", "EPS", "Spend at most this ε (Laplace noise).", _COST)]
Delta = Annotated[
    str | None,
    option("--delta", "DELTA", "Spend at most this δ too: Gaussian noise, private keys.", _COST),
]
Rho = Annotated[str | None, option("--rho", "RHO", "Or spend at most this ρ of zero-concentrated DP.", _COST)]
Error = Annotated[
    str | None, option("--error", "ERROR", "Or the least cost for a margin of error: ±50, ±2%.", _COST)
]
LedgerFile = Annotated[
    str | None,
    option("--ledger", "LEDGER", "A file, or postgresql://…; by default the one in [budget].", _ACCOUNT),
]
LimitWords = Annotated[
    str | None,
    option("--limit", "LIMIT", "For a new ledger: eps=1 · eps=1,delta=1e-6 · rho=0.5 · mu=1.", _ACCOUNT),
]
Analyst = Annotated[
    str | None, option("--analyst", "NAME", "Who asks; their allocation is charged.", _ACCOUNT)
]
Project = Annotated[
    str | None, option("--project", "NAME", "The project; its allocation is charged.", _ACCOUNT)
]
Purpose = Annotated[str | None, option("--purpose", "WORDS", "The purpose, for the ledger.", _ACCOUNT)]
Key = Annotated[str | None, option("--key", "KEY", "Asking again with the same key costs nothing.", _ACCOUNT)]
Answers = Annotated[bool, switch("--answers", "Show the answers too.", _OUT)]
Anchor = Annotated[
    str | None, option("--anchor", "HASH", "A hash that you wrote down, to detect a rolled-back ledger.")
]


def stated_cost(epsilon: str | None, delta: str | None, rho: str | None, error: str | None) -> QuestionCost:
    """The cost that was stated, as numbers; an error stays a text."""
    cost: QuestionCost = {}
    if epsilon is not None:
        cost["epsilon"] = number("--epsilon", epsilon, check.positive, "--epsilon 0.1")
    if delta is not None:
        cost["delta"] = number("--delta", delta, check.delta, "--delta 1e-6")
    if rho is not None:
        cost["rho"] = number("--rho", rho, check.positive, "--rho 0.01")
    if error is not None:
        cost["error"] = error
    return cost
