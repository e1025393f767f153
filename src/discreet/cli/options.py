# SPDX-License-Identifier: Apache-2.0
"""What several commands share: options, a default command, and the words for how a sample is drawn."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from discreet.cli.terminal import all_digits

_ASK, _UNIT, _OUT = "What to ask", "Who is protected", "Output"

Delta = Annotated[
    str | None,
    typer.Option("--delta", metavar="DELTA", help="Show ε at this δ; 1e-6 by default.", rich_help_panel=_ASK),
]
Epsilon = Annotated[
    str | None,
    typer.Option(
        "--epsilon", metavar="EPS", help="Show δ at this ε instead; with ?, the target.", rich_help_panel=_ASK
    ),
]
TargetEpsilon = Annotated[
    str | None,
    typer.Option(
        "--epsilon",
        metavar="EPS",
        help="Find the noise or the steps for this ε (and --delta).",
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
    str, typer.Option("--unit", metavar="WORD", help="A word for the privacy unit.", rich_help_panel=_UNIT)
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object, errors too.", rich_help_panel=_OUT)]
Plot = Annotated[
    str | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Draw a figure: .svg, or .png and .pdf with matplotlib.",
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
    bool, typer.Option("--explain", help="Explain it in plain sentences.", rich_help_panel=_OUT)
]


#: The name of the command of a group that needs no name.
DEFAULT = "of"


class DefaultCommand(TyperGroup):
    """`discreet GROUP ARGUMENT` runs the default command of the group; the other commands are run by their names."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = bool(args) and args[0] in self.commands and args[0] != DEFAULT
        empty = ["--help"] if self.no_args_is_help else []
        return super().parse_args(ctx, args if known else [DEFAULT, *(args or empty)])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return "" if name == DEFAULT else name, command, rest


def sampling_words(scheme: str, rate: float, unit: str) -> str:
    """What a sampling scheme assumes, in words."""
    if scheme == "poisson":
        sample = f"each {unit} is in each sample independently, with probability {all_digits(rate)} (Poisson)"
    else:
        sample = (
            f"each sample has the same size, a fraction {all_digits(rate)} of all, drawn without replacement"
        )
    return f"{sample}; samples are fresh and secret. Batches from a shuffled list are not such samples."
