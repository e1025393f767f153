# SPDX-License-Identifier: Apache-2.0
"""A training run: sampler, clipping, noise and accountant in one object, so that they cannot
disagree.

    run = private(model, optimizer, data, epsilon=3, delta=1e-5, epochs=10, batch=256)
    for x, y in run:
        losses = F.cross_entropy(model(x), y, reduction="none")   # one loss for each record
        run.backward(losses)
        optimizer.step()                                          # the private step
        optimizer.zero_grad()                                     # allowed, and not needed
    run.guarantee, run.epsilon(1e-5)

`private` makes a run, and `Run` states its guarantee.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol, Self

from torch import Tensor
from torch.nn import Module, Parameter
from torch.optim import Optimizer

from discreet import check
from discreet.errors import BadParameter, RefusedTraining
from discreet.learn.arguments import checked_class
from discreet.learn.torch import checkpoint
from discreet.learn.torch.adam import CorrectedAdam
from discreet.learn.torch.adaptive import Adaptive
from discreet.learn.torch.batches import Batch, Batches
from discreet.learn.torch.canaries import Canaries
from discreet.learn.torch.generators import Generators
from discreet.learn.torch.look import FirstLook, refuse_statistics
from discreet.learn.torch.noise import Number
from discreet.learn.torch.plan import TrainingPlan
from discreet.learn.torch.refusals import (
    UNTESTED,
    check_losses,
    no_gradient_error,
    refuse_processes,
    refuse_reentrant_checkpoints,
)
from discreet.learn.torch.report import explain, report
from discreet.learn.torch.shadow import Mixing
from discreet.learn.torch.steps import MovementCheck, PatchedOptimizer, check_parameters, settings_of
from discreet.learn.torch.sums import GradientSums
from discreet.noise.source import is_private
from discreet.privacy.guarantee import Guarantee

__all__ = ["Run", "RunParts"]


class Scheduler(Protocol):
    """Something whose `step` changes the learning rate."""

    def step(self, *arguments: Any, **named: Any) -> object:
        """One step of the schedule."""
        ...


@dataclass
class RunParts:
    """What a run is made of. `private` puts it together."""

    model: Module
    optimizers: tuple[Optimizer, ...]
    parameters: list[Parameter]
    plan: TrainingPlan
    batches: Batches
    sums: GradientSums
    clip: Number
    delta: float | None = None
    adaptive: Adaptive | None = None
    canaries: Canaries | None = None
    receipt: object = None
    assumes: tuple[str, ...] = ()
    progress: Callable[[Run], object] | None = None
    in_micro_batches: bool = False
    past: checkpoint.Past = field(default_factory=checkpoint.Past)


@dataclass
class _Turn:
    """Where the loop is within one batch."""

    batch: Batch
    #: Whether the backward pass began, and whether it came to its end.
    used: bool = False
    summed: bool = False
    stepped: set[Optimizer] = field(default_factory=set)


@checked_class
class Run:
    """Private training with your own loop, model and optimizer. `private` makes a run.

    **Guarantee.** Somebody who sees the parameters after every step, and everything that is
    computed from them, learns no more about one record than `guarantee` says. That is the guarantee
    of the noisy sums that the run drew: Poisson batches (or those that `plan` names), the gradient
    of every record clipped to `clip`, noise on the sum, and a public divisor. A step that would
    break this is refused. `level` names the arithmetic: "A" is exact whole numbers, "C" is real
    numbers, with sums and noise on a grid.

    Why it holds: Abadi et al. 2016 for the mechanism, `plan` for the accounting, `clip`, `noise`
    and `sampler` for the parts. Momentum, weight decay, schedules and averages of parameters are
    post-processing.

    What would break it: showing anything else that depends on the records, such as a training loss,
    a batch, its size, or how long a step took; a loss of one record that looks at other records; an
    optimizer or a scheduler that counts micro-batches.

    >>> import torch
    >>> from discreet.learn.torch import private
    >>> model = torch.nn.Linear(3, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> run = private(model, optimizer, torch.randn(500, 3), noise=1.0, steps=5, batch=50, size=500)
    >>> for x in run:
    ...     run.backward(model(x).square().sum(1))
    ...     optimizer.step()
    >>> run.steps, round(run.epsilon(1e-5), 3)
    (5, 2.354)
    """

    def __init__(self, parts: RunParts) -> None:
        if not isinstance(parts, RunParts):
            raise BadParameter(
                "DP104",
                "a Run is made by private(…).",
                why="private checks the model, the optimizer, the batches and the noise together.",
                fix="run = private(model, optimizer, data, …)",
            )
        self._parts, self.model, self.plan, self.past = parts, parts.model, parts.plan, parts.past
        self.clip: Number = parts.clip
        self.steps = 0
        #: Whether the last call of optimizer.step() was a real step.
        self.stepped = False
        self.private = is_private()
        self.receipt, self.canaries, self.level = parts.receipt, parts.canaries, parts.sums.level
        self.assumes, self.delta, self.parameters = parts.assumes, parts.delta, tuple(parts.parameters)
        self._known = set(map(id, self.parameters))
        self._turn: _Turn | None = None
        self._settings: dict[Optimizer, list[dict[str, Any]]] = {}
        self._below: Any = 0
        self._released = False
        self._moving = MovementCheck()
        self._closed = False
        self._look = FirstLook(self.model, parts.sums.test, parted=parts.in_micro_batches)
        self._generators = Generators()
        self._mixing = Mixing(secret_sizes=self.plan.sampling in ("poisson", "allocated"))
        self._patched = [PatchedOptimizer(optimizer, self._step) for optimizer in parts.optimizers]

    # --- the loop ------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        """The batches of all remaining steps, perhaps in micro-batches. Each needs `backward` and
        `step`.
        """
        return self.batches(self.plan.steps - self.steps)

    def batches(self, steps: int) -> Iterator[Any]:
        """The batches of the next `steps` steps: `run.batches(run.plan.per_epoch)` is about an
        epoch.
        """
        steps = check.whole(at_least=0, steps=steps)
        for _ in range(steps):
            self._check_open()
            if self.steps >= self.plan.steps:
                break
            refuse_processes()
            self._parts.sums.begin()
            self._below, self._released = 0, False
            for batch in self._generators.wrap(self._parts.batches.draw()):
                turn = self._turn = _Turn(batch)
                self.stepped = False
                self.private = self.private and is_private()
                self._look.begin()
                self._mixing.begin(batch.data, batch.rows)
                try:
                    yield batch.data
                finally:
                    self._mixing.cancel()
                self._check_finished(turn)
        self._turn = None

    def backward(self, losses: Tensor) -> None:
        """Clip the gradient of every record and add it to the sum. `losses` has one loss for each
        record.
        """
        self._check_open()
        turn = self._turn
        if turn is None or turn.used:
            raise no_gradient_error("run.backward was called without a new batch.")
        with refuse_reentrant_checkpoints():
            self._add(turn, losses)

    def _add(self, turn: _Turn, losses: Tensor) -> None:
        self._mixing.end(losses)
        self._generators.settle()
        losses = check_losses(losses, turn.batch.rows)
        if self.canaries is not None:
            losses = self.canaries.losses(losses, turn.batch.indices, turn.batch.population)
        turn.used = True
        refuse_statistics(self.model)
        self._look.end()
        weights = losses.new_zeros(turn.batch.rows) if turn.batch.blank else None
        count_below = self._parts.sums.add(losses, clip=self.clip, weights=weights)
        turn.summed = True
        if self._parts.adaptive is not None:
            self._below = self._below + 2 * count_below() - (0 if turn.batch.blank else turn.batch.rows)

    def _step(self, optimizer: Optimizer, real: Callable[[], Any], closure: Any) -> Any:
        """What `optimizer.step()` does in a run: nothing within a batch, and the private step at
        its end.
        """
        turn = self._turn
        if closure is not None:
            raise no_gradient_error("a closure computes gradients of its own.", "optimizer.step()")
        if turn is None or not turn.summed or optimizer in turn.stepped:
            raise no_gradient_error("optimizer.step() was called without a private gradient.")
        turn.stepped.add(optimizer)
        self._check_settings(optimizer, turn.batch)
        if not turn.batch.last:
            return None
        check_parameters(optimizer, self._known)
        if not self._released:
            self._release()
        result = self._move(optimizer, real)
        self.stepped = True
        if self._parts.progress is not None and len(turn.stepped) == 1:
            self._parts.progress(self)
        return result

    def _release(self) -> None:
        """Add the noise, divide by the public divisor, write `.grad`. From here on the step counts."""
        parts, plan = self._parts, self.plan
        noise = plan.noise if parts.adaptive is None else parts.adaptive.sum_noise(plan.noise, plan.batch)
        self.steps, self._released = self.steps + 1, True
        self.private = self.private and is_private()
        if self._turn is not None:
            self._turn.batch = self._turn.batch.without_records()
        if self.steps == 1 and self.tested is not True:
            warnings.warn(UNTESTED, stacklevel=4)
        parts.sums.release(noise=noise, clip=self.clip, divide=float(plan.batch))
        self._generators.finish_batch()
        for optimizer in parts.optimizers:
            if isinstance(optimizer, CorrectedAdam):
                relative = plan.relative_variance(self.steps - 1)
                optimizer.noise_variance = _variance(noise, self.clip, plan.batch) * relative
        if self.canaries is not None:
            self.canaries.note()
        if parts.adaptive is not None:
            below, self._below = self._below, 0
            self.clip = parts.adaptive.next_clip(self.clip, below, noise=plan.noise, batch=plan.batch)

    def _move(self, optimizer: Optimizer, real: Callable[[], Any]) -> Any:
        with self._parts.sums.pause(), self._moving.observe(optimizer):
            return real()

    def _check_finished(self, turn: _Turn) -> None:
        """Refuse a loop that left a batch without a step, or another loop that ran in between."""
        if self._turn is not turn or not turn.summed or not turn.stepped:
            raise no_gradient_error(
                "the loop left a batch without run.backward(losses) and optimizer.step()."
            )

    def _check_open(self) -> None:
        if self._closed:
            raise no_gradient_error(
                "this run is closed.", "run = private(model, optimizer, …)   begins another run"
            )

    def _check_settings(self, optimizer: Optimizer, batch: Batch) -> None:
        """Refuse settings that count micro-batches, whose number depends on the records."""
        if batch.first and batch.last:
            return
        settings = settings_of(optimizer)
        if not batch.first and settings != self._settings.get(optimizer):
            raise RefusedTraining(
                "DP916",
                "a setting of the optimizer changed between micro-batches of one batch.",
                why="the number of micro-batches depends on the records, and a learning rate that counts them shows that number.",
                fix="run.follow(scheduler)   or  if run.stepped: scheduler.step()",
                spent="what the steps before it cost",
            )
        self._settings[optimizer] = settings

    def follow(self, scheduler: Scheduler) -> None:
        """Let a scheduler count private steps: within a batch its `step` does nothing."""
        real = check.function(**{"scheduler.step": getattr(scheduler, "step", None)})

        def step(*arguments: Any, **named: Any) -> None:
            if self.stepped:
                real(*arguments, **named)

        scheduler.step = step  # type: ignore[method-assign]

    # --- what it cost --------------------------------------------------------------------------------

    @property
    def guarantee(self) -> Guarantee | None:
        """The guarantee of all steps so far, including those before a checkpoint. None before the
        first step.
        """
        earlier, rounds = self.past.guarantee, self._parts.batches.rounds(self.steps)
        if rounds == 0:
            return earlier
        current = self.plan.guarantee_after(rounds)
        return current if earlier is None else earlier + current

    def epsilon(self, delta: float | None = None) -> float:
        """The ε of all steps so far at this δ. The default is the `delta` that was passed to
        `private`.
        """
        delta = self.delta if delta is None else check.delta(delta=delta)
        spent = self.guarantee
        return 0.0 if spent is None else spent.epsilon(delta=check.delta(delta=delta))

    @property
    def tested(self) -> bool | None:
        """Whether the model was tested on made-up records. None before its first call."""
        return self._look.tested

    @property
    def losses_tested(self) -> bool | None:
        """Whether the losses of a batch were compared with those of a changed batch. None before
        the first comparison.
        """
        return self._mixing.tested

    def report(self) -> str:
        """What is trained, layer by layer, and how it is clipped. Available before training."""
        return report(self)

    def explain(self) -> str:
        """What the run guarantees and to whom, in numbered sentences."""
        return explain(self)

    # --- the end, and copies --------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint needs besides the model and the optimizer: steps, plan and guarantee.
        Never a key.
        """
        return checkpoint.state_of(
            steps=self.past.steps + self.steps, spent=self.guarantee, clip=float(self.clip), plan=self.plan
        )

    def close(self) -> None:
        """Restore the model and the optimizers. `private` can then begin another run on them."""
        for patched in self._patched:
            patched.close()
        self._look.close()
        self._mixing.cancel()
        self._generators.end()
        self._parts.sums.close()
        self._turn, self._closed = None, True

    def __repr__(self) -> str:
        steps = f"{self.past.steps + self.steps} of {self.past.steps + self.plan.steps} steps"
        return f"<Run of {type(self.model).__name__}: {steps}, {self.plan!r}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise RefusedTraining(
            "DP914",
            "a run was about to be copied or pickled.",
            why="a copy would use the same noise again and count its steps separately.",
            fix="torch.save(run.state_dict(), path)   and  private(…, resume=torch.load(path))",
        )


def _variance(noise: float, clip: Number, batch: int) -> Number:
    """The variance of each coordinate of a released gradient, given the gradient without noise."""
    return (clip * (noise / batch)) ** 2
