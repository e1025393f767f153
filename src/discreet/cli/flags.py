# SPDX-License-Identifier: Apache-2.0
"""Every flag that describes a mechanism, in one table: the help, the checks and the search are read from it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, cast

import typer

from discreet import check
from discreet.cli.numbers import number, whole
from discreet.errors import BadParameter

#: Stands for the number that is looked for.
HOLE = "?"


class Safer(Enum):
    """Which way a number has to move to protect more, which is how `?` is searched."""

    MORE = "more"
    LESS = "less"
    FEWER = "fewer"


@dataclass(frozen=True)
class Slot:
    """One number in the value of a flag."""

    name: str
    accepts: Callable[..., float]
    safer: Safer | None = None
    optional: bool = False
    whole: bool = False


@dataclass(frozen=True)
class Flag:
    """A flag whose value is one number, or a few with commas between."""

    name: str
    slots: tuple[Slot, ...]
    help: str
    example: str
    maker: str = ""

    @property
    def metavar(self) -> str:
        first, *others = (f"[,{slot.name}]" if slot.optional else f",{slot.name}" for slot in self.slots)
        return first.lstrip(",") + "".join(others)


_NOISE = Slot("NOISE", check.positive, Safer.MORE)
_SCALE = Slot("SCALE", check.positive, Safer.MORE)
_EPS = Slot("EPS", check.positive, Safer.LESS)
_SENS = Slot("SENS", check.whole, optional=True, whole=True)
_COUNT = Slot("K", check.whole, Safer.FEWER, whole=True)

MECHANISMS = {
    flag.name: flag
    for flag in (
        Flag("--gaussian", (_NOISE,), "Gaussian noise: standard deviation / sensitivity.", "1.0", "gaussian"),
        Flag("--laplace", (_SCALE,), "Laplace noise: scale / sensitivity.", "10", "laplace"),
        Flag("--pure", (_EPS,), "Any ε-DP mechanism.", "0.5", "pure"),
        Flag(
            "--approximate",
            (Slot("EPS", check.not_negative, Safer.LESS), Slot("DELTA", check.delta, Safer.LESS)),
            "Any (ε, δ)-DP mechanism.",
            "0.5,1e-7",
            "approximate",
        ),
        Flag(
            "--concentrated",
            (Slot("RHO", check.positive, Safer.LESS),),
            "Any ρ-zCDP mechanism.",
            "0.1",
            "concentrated",
        ),
        Flag(
            "--renyi",
            (Slot("ORDER", check.above_one), _EPS),
            "Rényi DP at one order.",
            "8,0.5",
            "renyi_point",
        ),
        Flag("--exponential", (_EPS,), "Exponential mechanism calibrated to ε.", "0.5", "exponential"),
        Flag("--randomized-response", (_EPS,), "One answer of two.", "1.0", "randomized_response"),
        Flag("--discrete-laplace", (_SCALE, _SENS), "Integer Laplace noise.", "10,1", "discrete_laplace"),
        Flag("--discrete-gaussian", (_SCALE, _SENS), "Integer Gaussian noise.", "3,2", "discrete_gaussian"),
        Flag(
            "--leaky",
            (Slot("DELTA", check.inner_probability, Safer.LESS),),
            "Reveals its input with probability δ.",
            "1e-7",
            "leaky",
        ),
    )
}

CHANGES = {
    flag.name: flag
    for flag in (
        Flag(
            "--sampled",
            (Slot("RATE", check.rate, Safer.LESS),),
            "It sees a fresh secret sample of the units.",
            "0.01",
        ),
        Flag("--times", (_COUNT,), "It is run K times.", "1000"),
        Flag("--group", (_COUNT,), "It protects K units at once.", "3"),
    )
}

SCHEME = "--scheme"


def read(flag: Flag, text: str) -> tuple[float | int | None, ...]:
    """The numbers in the value of a flag; None where `?` stands, and where an optional one is left out nothing."""
    words = [word.strip() for word in text.split(",")]
    needed = sum(not slot.optional for slot in flag.slots)
    if not needed <= len(words) <= len(flag.slots):
        raise BadParameter(
            "DP107",
            f"{flag.name} takes {flag.metavar}, not {text!r}.",
            why="a number too few or too many describes another mechanism.",
            fix=f"{flag.name} {flag.example}",
        )
    return tuple(_number(flag, slot, word) for slot, word in zip(flag.slots, words, strict=False))


def _number(flag: Flag, slot: Slot, word: str) -> float | int | None:
    if word == HOLE and slot.safer is not None:
        return None
    name = flag.name if len(flag.slots) == 1 else f"{slot.name} of {flag.name}"
    reader = whole if slot.whole else number
    return reader(name, word, slot.accepts, f"{flag.name} {flag.example}")


def with_mechanisms(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command every flag of the table in place of its `**flags`, so that the help lists them all."""
    signature = inspect.signature(command, eval_str=True)
    own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    panels = (("A mechanism", MECHANISMS), ("What applies to the mechanism before it", CHANGES))
    listed = [
        _parameter(flag.name, flag.metavar, flag.help, panel)
        for panel, table in panels
        for flag in table.values()
    ]
    listed.append(
        _parameter(
            SCHEME, "SCHEME", "Of the --sampled before it: poisson or without-replacement.", panels[1][0]
        )
    )
    cast("Any", command).__signature__ = signature.replace(parameters=[*own[:1], *listed, *own[1:]])
    return command


def _parameter(name: str, metavar: str, words: str, panel: str) -> inspect.Parameter:
    option = typer.Option(name, metavar=metavar, help=words, rich_help_panel=panel, show_default=False)
    return inspect.Parameter(
        name.strip("-").replace("-", "_"),
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[list[str] | None, option],
    )
