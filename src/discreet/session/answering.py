# SPDX-License-Identifier: Apache-2.0
"""One answer in a session, at a stated cost or at the least cost for a stated error: compiled,
charged, drawn and stored.

**Guarantee.** Nothing is drawn before it was charged. A question that is refused is refused before
anything is charged, but for what the steps before the refusal cost; the error says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from discreet.errors import OverBudget, RefusedQuestion, UnsupportedGuarantee
from discreet.session.account import COST_OF_ANSWER, SettledAnswer, adding_spent, refuse_not_drawn
from discreet.session.compiler import QuestionCompiler, answer_from, tenth
from discreet.session.fitting import propose_admitted_cost, propose_smaller_cost
from discreet.session.suggestions import draw_histograms, with_cut_off_notes
from discreet.session.validate import OWN_KEYS, spend_of
from discreet.tables.answer.answer import Answer
from discreet.tables.ask.question import Question
from discreet.tables.ask.start import Dataset
from discreet.tables.plan.spend import Spend

if TYPE_CHECKING:
    from discreet.tables.plan.steps import TwoSteps

__all__ = ["answer_at", "answer_by_error", "choose_bounds", "spend_for_error", "step_keys"]

#: at_most="auto" is chosen at a tenth of this ε, for a question that is asked by its error.
_PILOT_EPSILON = 0.05


def answer_at(
    compiler: QuestionCompiler,
    question: Question,
    key: str | None,
    spend: Spend,
    *,
    text: str = "",
    finish: Callable[[Answer], Answer] = lambda answer: answer,
) -> Answer:
    """Compile, charge, draw, store; a stored answer is shown again and costs nothing."""
    compile_at = partial(compiler.compile, question, bound=compiler.bound_or_assumed()[0])
    try:
        mechanism = compile_at(spend)
    except RefusedQuestion as refusal:
        raise propose_admitted_cost(refusal, compiler.account, spend, compile_at) from None
    before = "what choosing at_most cost" if compiler.bound_mechanism(spend) is not None else ""
    if compiler.is_auto:
        mechanism = compiler.compile(question, spend, compiler.chosen_bound(spend))
    pending = compiler.pending_answer(mechanism, key, text=text, finish=finish)
    with adding_spent(before):
        try:
            (settled,) = compiler.account.settle(
                [pending], compiler.data.ready, compiled=True, spent=COST_OF_ANSWER
            )
        except UnsupportedGuarantee as refusal:
            raise propose_admitted_cost(refusal, compiler.account, spend, compile_at) from None
        except OverBudget as refusal:
            # By now at_most may have been chosen.
            compile_at = partial(compiler.compile, question, bound=compiler.bound_or_assumed()[0])
            raise propose_smaller_cost(refusal, compiler.account, spend, compile_at) from None
    return with_cut_off_notes(compiler, question, answer_from(settled))


def choose_bounds(
    compiler: QuestionCompiler,
    asked: Question,
    assumed: Dataset,
    needed: Mapping[str, Sequence[str]],
    cost: dict[str, Any],
) -> bool:
    """Choose the bounds that a question needs, for a tenth of its cost, if it is not refused.

    Says, too, whether that was paid now. `asked` was parsed for the data set `assumed`, which
    assumes those bounds. For a question that is asked by its error they cost as much as its first
    steps may.
    """
    checking = replace(compiler, data=assumed)
    bound, epsilon = checking.bound_or_assumed()[0], _PILOT_EPSILON
    if "error" in cost:
        checking.least_spend(asked, bound, **cost)
    else:
        spend = spend_of(cost)
        checking.compile(asked, spend, bound)
        epsilon = tenth(spend)
    paid = [draw_histograms(compiler, *each, epsilon / len(needed)) for each in needed.items()]
    return any(paid)


def answer_by_error(
    compiler: QuestionCompiler, question: Question, key: str | None, error: str | float, **options: Any
) -> Answer:
    """The answer at the least cost for an error: at once where the cost is known in advance, else
    after a pilot.

    Each of the two steps has a key of its own if the question has one. Each step is then paid once,
    even if the process is stopped and asks again. Without a key every step is new and is paid.
    """
    # The most that it may cost is no part of the question: a retry that allows more goes on from the same first step.
    stated = "".join(f", {name} {value}" for name, value in sorted(options.items()) if name != "epsilon")
    text = f"{question.text} [error {error}{stated}]"
    entry = compiler.account.find(key, text, None)
    if entry is not None:
        refuse_not_drawn(entry.answer)
        stored = answer_from(SettledAnswer(entry.answer, entry.receipt))
        return with_cut_off_notes(compiler, question, stored)
    from discreet.tables.answer.arrange import arrange
    from discreet.tables.plan.steps import LastStep

    # A question that is refused is refused here, before anything is charged.
    plan = compiler.least_spend(question, compiler.bound_or_assumed()[0], error, **options)
    first = options.get("pilot") or Spend(epsilon=_PILOT_EPSILON)
    chooses_bound = compiler.bound_mechanism(first) is not None
    with adding_spent("what choosing at_most cost" if chooses_bound else ""):
        if compiler.is_auto:
            bound = compiler.chosen_bound(first)
            plan = compiler.least_spend(question, bound, error, **options)
        if isinstance(plan, Spend):
            return answer_at(compiler, question, key, plan, text=text)
        paid: list[Spend] = []
        step_plan: TwoSteps | LastStep = plan
        while not isinstance(step_plan, LastStep):
            step = f" {step_plan.number + 1}" if step_plan.number else ""
            spend, first_key, first_text = (
                step_plan.pilot,
                _pilot_key(key, step),
                f"{text}, first step{step}",
            )
            with adding_spent(_cost_of_steps(paid)):
                pilot = answer_at(compiler, step_plan.question, first_key, spend, text=first_text)
            paid += [spend] if pilot.receipt.cost is not None else []
            with adding_spent(_cost_of_steps(paid)):
                step_plan = step_plan.then(pilot)
        if step_plan.spend is None:
            # What is released is the answer already; arranging it reads released numbers only.
            return arrange(step_plan.finish(pilot), question)
        with adding_spent(_cost_of_steps(paid)):
            return answer_at(compiler, question, key, step_plan.spend, text=text, finish=step_plan.finish)


def spend_for_error(
    compiler: QuestionCompiler, question: Question, bound: int | None, error: str | float, **options: Any
) -> tuple[Spend, str]:
    """What an error costs, as far as that is known without data, and a note about it."""
    plan = compiler.least_spend(question, bound, error, **options)
    if isinstance(plan, Spend):
        return plan, f"The least cost for an error of {error}."
    return plan.pilot, (
        f"An error of {error} needs two steps or more. The first is a small question at this cost; its noisy answer"
        f" determines the cost of the next. Together they cost at most ε = {plan.most:g}; epsilon=… allows more or less."
    )


def step_keys(key: str) -> Iterator[str]:
    """The keys under which a ledger stores the steps before the last of the question under a key,
    the first step first, without end.
    """
    yield str(_pilot_key(key, ""))
    yield from (str(_pilot_key(key, f" {number}")) for number in count(2))


def _pilot_key(key: str | None, step: str) -> str | None:
    """The key of a step before the last: no other question has it, and it is as short as any."""
    return None if key is None else f"{OWN_KEYS}first step{step} {hashlib.sha256(key.encode()).hexdigest()}"


def _cost_of_steps(paid: list[Spend]) -> str:
    """What the steps before the last cost, in words; empty if nothing was paid."""
    if not paid:
        return ""
    steps = "what the first step cost" if len(paid) == 1 else f"what the first {len(paid)} steps cost"
    if paid[0].rho is not None:
        return f"{steps} (ρ = {sum(spend.rho or 0.0 for spend in paid):g})"
    return f"{steps} (ε = {sum(spend.size for spend in paid):g})"
