# SPDX-License-Identifier: Apache-2.0
"""Describes a run: what is trained, layer by layer, and its guarantee, in numbered sentences.
Public numbers only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.learn.torch.refusals import UNTESTED, UNTRIED

if TYPE_CHECKING:
    from discreet.learn.torch.run import Run

__all__ = ["explain", "report"]

_LEVELS = {
    "A": "Level A: gradients are whole numbers, their sums are exact, and the noise has exactly its distribution.",
    "C": "Level C: the guarantee is one of real arithmetic. Sums and noise are on a grid, so low bits reveal nothing.",
}
_BATCHES = {
    "poisson": "Each step draws a new secret batch: every {unit} is in it with probability {rate:.6g}.",
    "fixed": "Each step draws a new secret batch of {batch} {unit}s. Every choice is equally likely.",
    "allocated": "In each epoch every {unit} draws in secret one of its {per_epoch} steps, and takes part in that step only.",
    "full": "Each step uses every {unit}.",
    "loader": "Batches come from a loader. Each {unit} is in at most one batch of an epoch, and sampling does not amplify the guarantee.",
}
_BANDED = (
    "Each {unit} belongs in secret to one of {bands} groups. Steps take the groups in turn. Each step draws a new secret batch: every "
    "{unit} of its group is in it with probability {rate:.6g}."
)
_CORRELATED = "Each step takes back a part of the noise of the {lags} steps before it. That noise is kept in memory and never stored."


def report(run: Run) -> str:
    """A table with a line for every layer that has parameters, and what they add up to."""
    rows = [("layer", "kind", "parameters", "")]
    trained = {id(parameter) for parameter in run.parameters}
    seen: set[int] = set()
    for name, module in run.model.named_modules():
        parameters = [p for p in module.parameters(recurse=False) if id(p) not in seen]
        seen |= {id(parameter) for parameter in parameters}
        if parameters:
            trained_count = sum(p.numel() for p in parameters if id(p) in trained)
            frozen_count = sum(p.numel() for p in parameters if id(p) not in trained)
            remark = f"{frozen_count:,} frozen" if frozen_count else ""
            rows.append((name or "model", type(module).__name__, f"{trained_count:,}", remark))
    total = sum(parameter.numel() for parameter in run.parameters)
    rows.append(("all", "", f"{total:,}", ""))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}  {d}".rstrip() for a, b, c, d in rows]
    return "\n".join([*lines, "", *_numbers(run)])


def _numbers(run: Run) -> list[str]:
    plan = run.plan
    lags = plan.bands - 1
    noise_bytes = 8 * lags * sum(parameter.numel() for parameter in run.parameters)
    bands = [f"{plan.bands} bands: the noise of {lags} steps is kept, {noise_bytes:,} bytes"] if lags else []
    return [
        f"{plan.steps:,} steps, about {plan.per_epoch:,} in an epoch; batches of {plan.batch:,} {plan.unit}s on average",
        f"noise: {plan.noise:.6g} × the clipping norm on a sum, {plan.noise / plan.batch:.3g} × on its mean",
        *bands,
        f"the whole run: {plan.guarantee!r}",
    ]


def explain(run: Run) -> str:
    """The guarantee of the run so far, for a person whose record was in the data."""
    plan = run.plan
    sentences = [
        f"Training has taken {run.past.steps + run.steps:,} steps; {plan.steps - run.steps:,} more are planned.",
        (_BANDED if plan.bands > 1 else _BATCHES[plan.sampling]).format(**vars(plan) | {"rate": plan.rate}),
        f"The gradient of each {plan.unit} is clipped, and noise of {plan.noise:.6g} times the clipping norm is added to their sum.",
        *([_CORRELATED.format(lags=plan.bands - 1)] if plan.bands > 1 else []),
        f"The sum is divided by {plan.batch:,}. The size of the batch stays secret.",
        _LEVELS[run.level],
        *_guarantee_sentences(run),
        *(f"This assumes that {assumption}." for assumption in run.assumes),
        *([UNTESTED] if run.tested is False or (run.steps and not run.tested) else []),
        *([UNTRIED] if run.losses_tested is False else []),
        "Nothing else is covered: not training losses, not batches, not how long a step took.",
    ]
    if not run.private:
        sentences.append("NOT PRIVATE: noise or batches came from a repeatable source.")
    return "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(sentences, 1))


def _guarantee_sentences(run: Run) -> list[str]:
    spent = run.guarantee
    if spent is None:
        return ["Nothing has been released yet."]
    sentences = [f"The parameters so far have the guarantee {spent!r}, for {spent.unit}."]
    if run.delta is not None:
        sentences.append(f"That is ε = {spent.epsilon(delta=run.delta):.4g} at δ = {run.delta:g}.")
    return sentences
