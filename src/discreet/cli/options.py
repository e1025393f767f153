# SPDX-License-Identifier: Apache-2.0
"""The options that several commands share, and the words for how a sample is drawn."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.cli.terminal import whole_of

_ASK, _UNIT, _OUT = "What to ask", "Whom it protects", "Output"

Delta = Annotated[
    str | None, typer.Option("--delta", metavar="DELTA", help="Give ε at this δ.", rich_help_panel=_ASK)
]
Epsilon = Annotated[
    str | None,
    typer.Option("--epsilon", metavar="EPS", help="Give δ at this ε instead.", rich_help_panel=_ASK),
]
ForEpsilon = Annotated[
    str | None,
    typer.Option(
        "--for-epsilon",
        metavar="EPS",
        help="Find the number that keeps this ε (and --delta).",
        rich_help_panel=_ASK,
    ),
]
Route = Annotated[
    str | None,
    typer.Option(
        "--route", metavar="ROUTE", help="Use only this theorem; --compare lists them.", rich_help_panel=_ASK
    ),
]
Compare = Annotated[
    bool, typer.Option("--compare", help="Add a table of every route that applies.", rich_help_panel=_ASK)
]
Bracket = Annotated[
    bool, typer.Option("--bound", help="Show the certified lower bound too.", rich_help_panel=_ASK)
]
Relation = Annotated[
    str, typer.Option("--relation", metavar="RELATION", help="add-remove or replace.", rich_help_panel=_UNIT)
]
UnitName = Annotated[
    str, typer.Option("--unit", metavar="WORD", help="A word for who is protected.", rich_help_panel=_UNIT)
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object, errors too.", rich_help_panel=_OUT)]
Plot = Annotated[
    str | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Draw a picture: .svg, or .png and .pdf with matplotlib.",
        rich_help_panel=_OUT,
    ),
]
PlotKind = Annotated[
    str | None,
    typer.Option(
        "--plot-kind",
        metavar="KIND",
        help="tradeoff, roc, epsilon-delta, loss or race; all but the first two need matplotlib.",
        rich_help_panel=_OUT,
    ),
]
Explain = Annotated[
    bool, typer.Option("--explain", help="Say in plain sentences what it means.", rich_help_panel=_OUT)
]


def sampling_words(scheme: str, rate: float, unit: str) -> str:
    """What a sampling scheme takes for granted, in words."""
    if scheme == "poisson":
        drawn = f"each {unit} is in each sample independently, with probability {whole_of(rate)} (Poisson)"
    else:
        drawn = f"each sample has the same size, a share {whole_of(rate)} of all, drawn without replacement"
    return f"{drawn}; samples are fresh and secret. Batches from a shuffled list are not such samples."
