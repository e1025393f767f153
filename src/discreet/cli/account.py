# SPDX-License-Identifier: Apache-2.0
"""`discreet account`: what mechanisms promise together, composed in the order of their flags."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import typer
from typer.core import TyperGroup

from discreet import check
from discreet.cli import options, report
from discreet.cli.flags import HOLE, with_mechanisms
from discreet.cli.numbers import number
from discreet.cli.pictures import plotted
from discreet.cli.search import Found, search
from discreet.cli.terminal import whole_of
from discreet.cli.terms import Recipe, Step, check_values, in_order, steps
from discreet.errors import BadParameter

_WORDS = "discreet.words"
#: The δ of a question that names none; it is printed with every ε.
_DEFAULT_DELTA = 1e-6


class Ordered(TyperGroup):
    """Keeps the words as they were written, because options are handed over without their order."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        check_values(args, [name for option in self.params if not _is_switch(option) for name in option.opts])
        ctx.meta[_WORDS] = list(args)
        return super().parse_args(ctx, args)


@with_mechanisms
def account(
    ctx: typer.Context,
    *,
    delta: options.Delta = None,
    epsilon: options.Epsilon = None,
    for_epsilon: options.ForEpsilon = None,
    route: options.Route = None,
    compare: options.Compare = False,
    bound: options.Bracket = False,
    relation: options.Relation = "add-remove",
    unit: options.UnitName = "record",
    json: options.Json = False,
    explain: options.Explain = False,
    plot: options.Plot = None,
    plot_kind: options.PlotKind = None,
    **_flags: Any,
) -> None:
    """What mechanisms promise together.

    Each mechanism starts a term; --sampled, --times and --group after it apply to it, in order:

    discreet account --gaussian 1.0 --sampled 0.01 --times 1000 --laplace 10 --delta 1e-6

    Write ? for one number and give --for-epsilon to find the least noise, or the most runs, that keep a target:

    discreet account --gaussian '?' --sampled 0.01 --times 1000 --for-epsilon 1 --delta 1e-6
    """
    if ctx.invoked_subcommand is not None:
        _nothing_before(ctx)
        return
    if not ctx.meta[_WORDS]:
        ctx.get_help()
        return
    recipe = Recipe(steps(_flags_in_order(ctx)), unit, relation)
    question = _question(delta, epsilon, route, compare=compare)
    recipe, calibrated, words = _calibrated(recipe, question, for_epsilon)
    found = report.facts("account", recipe.guarantee, question)
    found["calibrated"] = asdict(calibrated) if calibrated else None
    found["explanation"] = report.explained(recipe.guarantee, asked=explain)
    found["plot"] = plotted(recipe.guarantee, plot, plot_kind, question.delta)
    if json:
        report.print_json(found)
    else:
        report.print_answer(found, [*words, *_what_was_run(recipe, found)], bracket=bound)


def _is_switch(option: Any) -> bool:
    return bool(getattr(option, "is_flag", False))


def _flags_in_order(ctx: typer.Context) -> list[tuple[str, str]]:
    switches = {name for option in ctx.command.params if _is_switch(option) for name in option.opts}
    return list(in_order(ctx.meta[_WORDS], switches))


def _nothing_before(ctx: typer.Context) -> None:
    """A flag before the name of a command would be read and dropped."""
    first, command = ctx.meta[_WORDS][0], ctx.invoked_subcommand
    if first != command:
        raise BadParameter(
            "DP107",
            f"{first} stands before {command}, which has flags of its own.",
            why="a mechanism named there would not be counted.",
            fix=f"write every flag after it; see  discreet account {command} --help",
        )


def _question(delta: str | None, epsilon: str | None, route: str | None, *, compare: bool) -> report.Question:
    if epsilon is None:
        at = _DEFAULT_DELTA if delta is None else number("--delta", delta, check.delta, "--delta 1e-6")
        return report.Question(at, None, route, compare)
    others = {"--delta": delta is not None, "--route": route is not None, "--compare": compare}
    clash = next((name for name, given in others.items() if given), None)
    if clash is not None:
        raise BadParameter(
            "DP107",
            f"--epsilon asks for δ, and {clash} belongs to a question about ε.",
            why="the curve of a guarantee is read at one point, given by one of its two coordinates.",
            fix=f"leave out --epsilon, or leave out {clash}",
        )
    return report.Question(None, number("--epsilon", epsilon, check.not_negative, "--epsilon 1.0"))


def _calibrated(
    recipe: Recipe, question: report.Question, for_epsilon: str | None
) -> tuple[Recipe, Found | None, list[tuple[str, str]]]:
    """The recipe without open numbers; if one was open, what was found, and what to say of it."""
    if for_epsilon is not None and question.delta is not None:
        from discreet.privacy.constructors import approximate

        epsilon = number("--for-epsilon", for_epsilon, check.positive, "--for-epsilon 1")
        target = approximate(epsilon, question.delta, relation=recipe.relation, unit=recipe.unit)
        recipe, found, words = search(recipe, target)
        return (
            recipe,
            found,
            [("found", f"{words}, for ε = {whole_of(epsilon)} at δ = {whole_of(question.delta)}")],
        )
    if for_epsilon is None and not recipe.holes():
        return recipe, None, []
    raise BadParameter(
        "DP107",
        f"a number written as '{HOLE}' is found with --for-epsilon and --delta.",
        why="without a target every number would do, and a target is an ε at a δ.",
        fix=f"--gaussian '{HOLE}' --for-epsilon 1 --delta 1e-6",
    )


def _what_was_run(recipe: Recipe, found: dict[str, Any]) -> list[tuple[str, str]]:
    samples = [step for step in recipe.steps if step.flag.name == "--sampled"]
    again = f"discreet account {recipe.line()} --delta {whole_of(found['delta'])}"
    return [
        ("what was run", found["what"]),
        *(("sampling", _drawn(step, recipe.unit)) for step in samples),
        *([("to check", again)] if found["calibrated"] else []),
    ]


def _drawn(step: Step, unit: str) -> str:
    return options.sampling_words(step.scheme or "poisson", float(step.values[0] or 0), unit)
