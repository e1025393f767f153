# SPDX-License-Identifier: Apache-2.0
"""A training run as a mechanism, so that a search for hyper-parameters can be paid for.

    candidates = [Training(plan, train(lr)) for lr in (0.1, 1.0)]
    best = select_best(candidates=candidates, score=accuracy_on_public_data, mean_runs=5)

Trying several settings on the same records and keeping the best reveals more than one run does,
because the choice depends on the records too. `select_best` runs a random number of candidates in
secret and shows only the best.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from discreet import check
from discreet.errors import BadParameter, UnsupportedGuarantee
from discreet.learn.arguments import checked_class
from discreet.learn.torch.plan import TrainingPlan
from discreet.learn.torch.run import Run
from discreet.mechanisms.mechanism import Mechanism
from discreet.privacy.guarantee import Guarantee

__all__ = ["Training"]


@checked_class
class Training(Mechanism):
    """A training function as a mechanism: it trains on data and returns its run, and the state of
    the model is released.

    **Guarantee.** That of the plan. Why it holds: the run counts what it drew, and nothing is
    released unless that is the planned guarantee or a part of it. What would break it: a function
    that shows or keeps anything else of the data.

    >>> from discreet.learn.torch import plan_of
    >>> plan = plan_of(size=100, batch=10, steps=2, noise=4.0)
    >>> Training(plan, train=print).guarantee == plan.guarantee
    True
    """

    def __init__(self, plan: TrainingPlan, train: Callable[[Any], Run]) -> None:
        if not isinstance(plan, TrainingPlan):
            raise BadParameter(
                "DP104",
                "plan must be a TrainingPlan.",
                why="the guarantee of the plan is that of the mechanism.",
                fix="plan = plan_of(size=60_000, batch=256, epochs=10, epsilon=3, delta=1e-5)",
            )
        self.plan, self.train = plan, check.function(train=train)
        self._guarantee = plan.guarantee

    def __repr__(self) -> str:
        name = getattr(self.train, "__qualname__", repr(self.train))
        return f"Training({self.plan!r}, train={name})"

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def draw(self, data: object) -> dict[str, Tensor]:
        """Train on the data and release the state of the model, if the run kept to the plan."""
        run = self.train(data)
        spent = run.guarantee if isinstance(run, Run) else None
        if spent is not None and (spent == self._guarantee or spent.implies(self._guarantee)):
            run.close()
            return {name: value.detach().clone() for name, value in run.model.state_dict().items()}
        raise UnsupportedGuarantee(
            "DP205",
            "training did not return a run that kept to its plan.",
            why="the released state would cost more than the plan says, or an unknown amount.",
            fix="train with the numbers of the plan:  private(…, noise=plan.noise, steps=plan.steps, …); return run",
        )
