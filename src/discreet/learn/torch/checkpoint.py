# SPDX-License-Identifier: Apache-2.0
"""What a run leaves in a checkpoint, and what a run that is resumed makes of it.

**Guarantee.** A resumed run goes on counting: its `privacy` is the sum of what was run before and of what it runs, whatever the
parameters were then and are now. If that would exceed the (ε, δ) that was asked for, it is refused before it starts. The key of the
noise is not in a checkpoint, and every process has its own.

What would break it: two runs that are resumed from one checkpoint and both shown: each counts itself and what was before, and
what both reveal is the sum of both. With `session=` what is left to run is charged anew, so there it is paid for.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from discreet.errors import DiscreetError, RefusedTraining
from discreet.learn.torch.plan import Plan
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.wire import from_json

if TYPE_CHECKING:
    from discreet.learn.torch.run import Run

__all__ = ["Past", "past_of", "rest_of", "state_of"]

_VERSION = 1


@dataclass(frozen=True)
class Past:
    """What was done before."""

    steps: int = 0
    guarantee: Guarantee | None = None
    clip: float | None = None
    bands: int = 1


def state_of(run: Run) -> dict[str, Any]:
    """Plain numbers and words, which `torch.save` and JSON can hold."""
    spent = run.privacy
    return {
        "discreet": _VERSION,
        "steps": run.past.steps + run.steps,
        "guarantee": None if spent is None else spent.to_json(),
        "clip": float(run.clip),
        "plan": asdict(run.plan),
    }


def past_of(state: Any) -> Past:
    """What a checkpoint says of the past; of none, that there was none."""
    if state is None:
        return Past()
    try:
        if not isinstance(state, dict) or state["discreet"] != _VERSION:
            raise KeyError
        told, bands = state["guarantee"], dict(state["plan"]).get("bands", 1)
        spent = None if told is None else from_json(told)
        return Past(int(state["steps"]), spent, float(state["clip"]), int(bands))
    except (KeyError, TypeError, ValueError, OverflowError, DiscreetError):
        raise _unfit("this is not what run.state_dict() returned.", "resume=torch.load(path)") from None


def rest_of(plan: Plan, past: Past, target: Guarantee | None) -> Plan:
    """The plan for the steps that are left, if what was run before leaves room for them."""
    if past.steps == 0:
        return plan
    if plan.bands > 1 or past.bands > 1:
        raise _unfit(
            "a run with bands is not resumed: its noise goes on from noise that is never stored.",
            "bands=1 in both runs, or a new run without resume=",
        )
    if past.steps >= plan.steps:
        raise _unfit(
            "all steps of this run were taken before.", "epochs=20   plans a longer run, with more noise"
        )
    rest = replace(plan, steps=plan.steps - past.steps)
    total = rest.guarantee if past.guarantee is None else past.guarantee + rest.guarantee
    if target is not None and not total.implies(target):
        raise _unfit(
            "what was run before and what is left would exceed the epsilon and delta that were asked for.",
            "resume with the parameters of the first run, or pass noise= and read run.privacy",
        )
    return rest


def _unfit(what: str, fix: str) -> RefusedTraining:
    return RefusedTraining(
        "DP914",
        what,
        why="a run that is resumed must count what was run before, or its promise is about a part of it only.",
        fix=fix,
    )
