# SPDX-License-Identifier: Apache-2.0
"""`discreet account`: the guarantee of mechanisms that are written as an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from discreet import check
from discreet.cli import options, report
from discreet.cli.expression import HOLE, GuaranteeExpression, in_shell, read_expression
from discreet.cli.figures import draw_figure
from discreet.cli.numbers import number
from discreet.cli.search import EXTREMES, find_number
from discreet.cli.terminal import all_digits
from discreet.errors import BadParameter

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee

#: The δ of a question that states none; it is printed with every ε.
_DEFAULT_DELTA = 1e-6

Mechanisms = Annotated[
    str, typer.Argument(metavar="EXPRESSION", help="What was run, as an expression of discreet.privacy.")
]


def account(
    mechanisms: Mechanisms,
    *,
    delta: options.Delta = None,
    epsilon: options.Epsilon = None,
    route: options.Route = None,
    compare: options.Compare = False,
    bound: options.Bracket = False,
    relation: options.Relation = "add-remove",
    unit: options.UnitName = "record",
    json: options.Json = False,
    explain: options.Explain = False,
    plot: options.Plot = None,
    plot_kind: options.PlotKind = None,
) -> None:
    """Compute the guarantee of mechanisms that run together.

    discreet account "1000 * gaussian(1).sampled(0.01) + laplace(10)" --delta 1e-6

    The mechanisms are gaussian, laplace, pure, approximate, concentrated, renyi, exponential,
    randomized_response, discrete_laplace, discrete_gaussian, leaky and others of discreet.privacy.
    Combine them with .sampled(rate), .group(size), + and *.

    Write ? for one number, with a target, to find the least noise or the most runs:

    discreet account "1000 * gaussian(?).sampled(0.01)" --epsilon 2 --delta 1e-6

    For a training run with DP-SGD:  discreet account dpsgd --help
    """
    expression = read_expression(mechanisms, relation=relation, unit=unit)
    target = _target(expression, epsilon, delta)
    question = _account_question(delta, None if target else epsilon, route, compare=compare)
    calibrated: dict[str, object] | None = None
    rows = []
    if target is not None and expression.open_number is not None:
        value = find_number(expression, expression.open_number, target)
        calibrated = {"flag": HOLE, "parameter": expression.open_number.parameter, "value": value}
        rows = [_found_row(expression, value, epsilon, question)]
        expression = expression.with_number(value)
    guarantee = expression.guarantee()
    facts = report.facts("account", guarantee, question)
    facts["calibrated"] = calibrated
    facts["explanation"] = report.explanation(guarantee) if explain else None
    facts["plot"] = draw_figure(guarantee, plot, plot_kind, question.delta)
    if json:
        report.print_json(facts)
    else:
        report.print_answer(facts, [*rows, *_run_rows(expression, facts)], bracket=bound)


def _target(expression: GuaranteeExpression, epsilon: str | None, delta: str | None) -> Guarantee | None:
    """The guarantee that an open number has to reach; None if no number is open."""
    if expression.open_number is None:
        return None
    if epsilon is None:
        raise BadParameter(
            "DP107",
            f"a number is written as {HOLE}, and no target is stated.",
            why="every number would do without a target, and a target is an ε at a δ.",
            fix=f"{in_shell(expression.text)} --epsilon 1 --delta 1e-6",
        )
    from discreet.privacy.constructors import approximate

    greatest = number("--epsilon", epsilon, check.positive, "--epsilon 1")
    at = _DEFAULT_DELTA if delta is None else number("--delta", delta, check.delta, "--delta 1e-6")
    return approximate(greatest, at, relation=expression.relation, unit=expression.unit)


def _account_question(
    delta: str | None, epsilon: str | None, route: str | None, *, compare: bool
) -> report.AccountQuestion:
    if epsilon is None:
        at = _DEFAULT_DELTA if delta is None else number("--delta", delta, check.delta, "--delta 1e-6")
        return report.AccountQuestion(at, None, route, compare)
    others = {"--delta": delta is not None, "--route": route is not None, "--compare": compare}
    clash = next((name for name, stated in others.items() if stated), None)
    if clash is not None:
        raise BadParameter(
            "DP107",
            f"--epsilon asks for δ, and {clash} belongs to a question about ε.",
            why="the curve of a guarantee is read at one point, given by one of its two coordinates.",
            fix=f"leave out --epsilon, or leave out {clash}; with a number written as {HOLE} both state the target",
        )
    return report.AccountQuestion(None, number("--epsilon", epsilon, check.not_negative, "--epsilon 1.0"))


def _found_row(
    expression: GuaranteeExpression, value: float, epsilon: str | None, question: report.AccountQuestion
) -> tuple[str, str]:
    opening = expression.open_number
    assert opening is not None
    assert epsilon is not None
    assert question.delta is not None
    target = f"ε = {all_digits(float(epsilon))} at δ = {all_digits(question.delta)}"
    return "found", f"{EXTREMES[opening.safer]} {opening.name} is {all_digits(value)}, for {target}"


def _run_rows(expression: GuaranteeExpression, facts: report.AccountFacts) -> list[tuple[str, str]]:
    """What was run, how it samples, and the line that checks a number that was found."""
    again = f"{in_shell(expression.text)} --delta {all_digits(facts['delta'])}"
    again += f" --relation {expression.relation}" if expression.relation != "add-remove" else ""
    again += f" --unit {expression.unit}" if expression.unit != "record" else ""
    return [
        ("what was run", facts["what"]),
        *(
            ("sampling", options.sampling_words(scheme, rate, expression.unit))
            for scheme, rate in expression.samplings()
        ),
        *([("to check", again)] if facts["calibrated"] else []),
    ]
