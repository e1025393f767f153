# SPDX-License-Identifier: Apache-2.0
"""A training run as a mechanism, so that a search for hyper-parameters can be paid for.

    candidates = [Training(plan, train(lr)) for lr in (0.1, 1.0)]
    best = select_best(candidates=candidates, score=accuracy_on_public_data, mean_runs=5)

Trying several settings on the same records and keeping the best reveals more than one run does: which one was kept is an
answer too. `select_best` runs a random number of them in secret and shows the best only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet import check
from discreet.errors import BadParameter, UnsupportedGuarantee
from discreet.learn.arguments import checked_class
from discreet.learn.torch.plan import Plan
from discreet.learn.torch.run import Run
from discreet.mechanisms.mechanism import Mechanism
from discreet.privacy.guarantee import Guarantee

__all__ = ["Training"]


@checked_class
class Training(Mechanism):
    """A function that trains on data and returns the run; what is released is the model's state.

    **Guarantee.** That of the plan. Why it holds: the run counts what it drew, and if that is not the planned guarantee or a
    part of it, nothing is released. What would break it: a function that shows or keeps anything else of the data.
    """

    def __init__(self, plan: Plan, train: Callable[[Any], Run]) -> None:
        if not isinstance(plan, Plan):
            raise BadParameter(
                "DP104",
                "plan must be a Plan.",
                why="its guarantee is what a training is charged for.",
                fix="plan = plan_of(size=60_000, batch=256, epochs=10, epsilon=3, delta=1e-5)",
            )
        self.plan, self.train = plan, check.function(train=train)
        self._guarantee = plan.guarantee

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def draw(self, data: Any) -> dict[str, Any]:
        run = self.train(data)
        spent = run.privacy if isinstance(run, Run) else None
        if spent is not None and (spent == self._guarantee or spent.implies(self._guarantee)):
            run.close()
            return {name: value.detach().clone() for name, value in run.model.state_dict().items()}
        raise UnsupportedGuarantee(
            "DP205",
            "training did not return a run that kept to its plan.",
            why="what is released would cost more than was promised, or an amount that nobody knows.",
            fix="train with the numbers of the plan:  private(…, noise=plan.noise, steps=plan.steps, …); return run",
        )
