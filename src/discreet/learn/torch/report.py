# SPDX-License-Identifier: Apache-2.0
"""A run in words: what is trained, layer by layer, and what is promised, in numbered sentences. Public numbers only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.learn.torch.refusals import UNTESTED, UNTRIED

if TYPE_CHECKING:
    from discreet.learn.torch.run import Run

__all__ = ["explain", "report"]

_LEVELS = {
    "A": "Level A: gradients are whole numbers, their sums are exact, and the noise has exactly its law.",
    "C": "Level C: the promise is one of real arithmetic; sums and noise are on a grid, so low bits tell nothing.",
}
_BATCHES = {
    "poisson": "Each step draws its batch afresh and in secret: every {unit} is in it with probability {rate:.6g}.",
    "fixed": "Each step draws {batch} of the {unit}s afresh and in secret, every choice being equally likely.",
    "full": "Each step uses every {unit}.",
    "loader": "Batches come from a loader; each {unit} is in one of an epoch at most, and nothing is gained from chance.",
}
_BANDED = (
    "Each {unit} belongs in secret to one of {bands} groups. Steps go round the groups; each draws its batch afresh and in secret, every "
    "{unit} of the group being in it with probability {rate:.6g}."
)
_CORRELATED = "Each step takes back a part of the noise of the {lags} before it; that noise is kept in memory, and never stored."


def report(run: Run) -> str:
    """One line for every layer that has parameters of its own, and what they add up to."""
    rows = [("layer", "kind", "parameters", "")]
    trained = {id(parameter) for parameter in run.parameters}
    seen: set[int] = set()
    for name, module in run.model.named_modules():
        own = [parameter for parameter in module.parameters(recurse=False) if id(parameter) not in seen]
        seen |= {id(parameter) for parameter in own}
        if own:
            moves = sum(p.numel() for p in own if id(p) in trained)
            still = sum(p.numel() for p in own if id(p) not in trained)
            words = f"{still:,} frozen" if still else ""
            rows.append((name or "model", type(module).__name__, f"{moves:,}", words))
    total = sum(parameter.numel() for parameter in run.parameters)
    rows.append(("all", "", f"{total:,}", ""))
    wide = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [f"{a:<{wide[0]}}  {b:<{wide[1]}}  {c:>{wide[2]}}  {d}".rstrip() for a, b, c, d in rows]
    return "\n".join([*lines, "", *_numbers(run)])


def _numbers(run: Run) -> list[str]:
    plan = run.plan
    kept = 8 * (plan.bands - 1) * sum(parameter.numel() for parameter in run.parameters)
    held = (
        [f"{plan.bands} bands: the noise of {plan.bands - 1} steps is kept, {kept:,} bytes"] if kept else []
    )
    return [
        f"{plan.steps:,} steps, about {plan.per_epoch:,} in an epoch; batches of {plan.batch:,} {plan.unit}s on average",
        f"noise: {plan.noise:.6g} × the clipping norm on a sum, {plan.noise / plan.batch:.3g} × on its mean",
        *held,
        f"the whole run: {plan.guarantee!r}",
    ]


def explain(run: Run) -> str:
    """The promise of the run so far, for somebody who was in the data."""
    plan = run.plan
    said = [
        f"Training has taken {run.past.steps + run.steps:,} steps; {plan.steps - run.steps:,} more are planned.",
        (_BANDED if plan.bands > 1 else _BATCHES[plan.sampling]).format(**vars(plan) | {"rate": plan.rate}),
        f"The gradient of each {plan.unit} is clipped, and noise of {plan.noise:.6g} times the clipping norm hides their sum.",
        *([_CORRELATED.format(lags=plan.bands - 1)] if plan.bands > 1 else []),
        f"The sum is divided by {plan.batch:,}, whatever the size of the batch, which stays secret.",
        _LEVELS[run.level],
        *_promised(run),
        *(f"This takes for granted that {words}." for words in run.assumes),
        *([UNTESTED] if run.tested is False or (run.steps and not run.tested) else []),
        *([UNTRIED] if run.losses_tested is False else []),
        "Whatever else is shown is not covered: training losses, batches, and how long a step took.",
    ]
    if not run.private:
        said.append("NOT PRIVATE: noise or batches came from a repeatable source.")
    return "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(said, 1))


def _promised(run: Run) -> list[str]:
    spent = run.privacy
    if spent is None:
        return ["Nothing has been released yet."]
    words = [f"The parameters so far keep {spent!r}, for {spent.unit}."]
    if run.delta is not None:
        words.append(f"That is ε = {spent.epsilon(delta=run.delta):.4g} at δ = {run.delta:g}.")
    return words
