# SPDX-License-Identifier: Apache-2.0
"""What a run stores in a checkpoint, and how a run is resumed from one.

**Guarantee.** A resumed run goes on counting: its `guarantee` is the sum of what was run before and
of what it runs, whatever the parameters were then and are now. If that would exceed the (ε, δ) that
was asked for, the run is refused before it starts. The key of the noise is not in a checkpoint;
every process has its own.

What would break it: two runs that are resumed from one checkpoint and are both shown. Each counts
itself and what was run before, but together they reveal the sum of both. A `session` is charged
anew for the remaining steps, so with a session both are paid for.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from discreet.errors import DiscreetError, RefusedTraining
from discreet.learn.torch.plan import TrainingPlan
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.wire import from_json

__all__ = ["Past", "past_of", "remaining_plan", "state_of"]

_VERSION = 1


@dataclass(frozen=True)
class Past:
    """What was run before a checkpoint."""

    steps: int = 0
    guarantee: Guarantee | None = None
    clip: float | None = None
    bands: int = 1


def state_of(*, steps: int, spent: Guarantee | None, clip: float, plan: TrainingPlan) -> dict[str, Any]:
    """The state of a run as plain numbers and words, which `torch.save` and JSON can hold."""
    return {
        "discreet": _VERSION,
        "steps": steps,
        "guarantee": None if spent is None else spent.to_json(),
        "clip": clip,
        "plan": asdict(plan),
    }


def past_of(state: object) -> Past:
    """What was run before, by a checkpoint; without a checkpoint, nothing."""
    if state is None:
        return Past()
    try:
        if not isinstance(state, dict) or state["discreet"] != _VERSION:
            raise KeyError
        wire, bands = state["guarantee"], dict(state["plan"]).get("bands", 1)
        spent = None if wire is None else from_json(wire)
        return Past(int(state["steps"]), spent, float(state["clip"]), int(bands))
    except (KeyError, TypeError, ValueError, OverflowError, DiscreetError):
        raise _unfit_error(
            "resume is not what run.state_dict() returned.", "resume=torch.load(path)"
        ) from None


def remaining_plan(plan: TrainingPlan, past: Past, target: Guarantee | None) -> TrainingPlan:
    """The plan for the remaining steps, if what was run before leaves room for them."""
    if past.steps == 0:
        return plan
    if plan.bands > 1 or past.bands > 1:
        raise _unfit_error(
            "a run with bands cannot be resumed: its noise depends on earlier noise, which is never stored.",
            "bands=1 in both runs, or a new run without resume=",
        )
    if past.steps >= plan.steps:
        raise _unfit_error(
            "all steps of this run were taken before the checkpoint.",
            "epochs=20   plans a longer run, with more noise",
        )
    remaining = replace(plan, steps=plan.steps - past.steps)
    total = remaining.guarantee if past.guarantee is None else past.guarantee + remaining.guarantee
    if target is not None and not total.implies(target):
        raise _unfit_error(
            "what was run before and the remaining steps together exceed the epsilon and delta that were passed.",
            "resume with the parameters of the first run, or pass noise= and read run.guarantee",
        )
    return remaining


def _unfit_error(what: str, fix: str) -> RefusedTraining:
    return RefusedTraining(
        "DP914",
        what,
        why="a resumed run must count what was run before; otherwise its guarantee covers only a part of it.",
        fix=fix,
    )
