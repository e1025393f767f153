# SPDX-License-Identifier: Apache-2.0
"""What several commands share: options, a default command, and the words for how a sample is drawn."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperGroup

from discreet.cli.terminal import all_digits

_ASK, _UNIT, _OUT = "What to ask", "Who is protected", "Output"


def option(name: str, metavar: str, text: str, panel: str | None = None) -> Any:
    """An option that takes a value."""
    return typer.Option(name, metavar=metavar, help=escape(text), rich_help_panel=panel)


def switch(name: str, text: str, panel: str | None = None) -> Any:
    """An option that is given or not."""
    return typer.Option(name, help=escape(text), rich_help_panel=panel)


def add_command(group: typer.Typer, name: str, function: Callable[..., None]) -> None:
    """Add a command whose help is its docstring, with each paragraph as one line.

    Typer would break the lines of a paragraph where the docstring breaks them.
    """
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    text = "\n\n".join(" ".join(paragraph.split("\n")) for paragraph in paragraphs)
    group.command(name, help=escape(text))(function)


Delta = Annotated[str | None, option("--delta", "DELTA", "Show ε at this δ; 1e-6 by default.", _ASK)]
Epsilon = Annotated[
    str | None, option("--epsilon", "EPS", "Show δ at this ε instead; with ?, the target.", _ASK)
]
TargetEpsilon = Annotated[
    str | None, option("--epsilon", "EPS", "Find the noise or the steps for this ε (and --delta).", _ASK)
]
Route = Annotated[
    str | None, option("--route", "ROUTE", "Use only this theorem; --compare lists them.", _ASK)
]
Compare = Annotated[bool, switch("--compare", "Add a table of every route that applies.", _ASK)]
Bracket = Annotated[bool, switch("--bound", "Show the certified lower bound too.", _ASK)]
Relation = Annotated[str, option("--relation", "RELATION", "add-remove or replace.", _UNIT)]
UnitName = Annotated[str, option("--unit", "WORD", "A word for the privacy unit.", _UNIT)]
Json = Annotated[bool, switch("--json", "Print one JSON object, errors too.", _OUT)]
Plot = Annotated[
    str | None, option("--plot", "FILE", "Draw a figure: .svg, or .png and .pdf with matplotlib.", _OUT)
]
PlotKind = Annotated[
    str | None,
    option(
        "--plot-kind",
        "KIND",
        "tradeoff, roc, epsilon-delta, loss or race; all but the first two need matplotlib.",
        _OUT,
    ),
]
Explain = Annotated[bool, switch("--explain", "Explain the guarantee in plain sentences.", _OUT)]


#: The name of the command of a group that needs no name.
DEFAULT = "of"


class DefaultCommand(TyperGroup):
    """`discreet GROUP ARGUMENT` runs the default command of the group; the other commands are run
    by their names.
    """

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
