# SPDX-License-Identifier: Apache-2.0
"""A training run: sampler, clipping, noise and accountant in one object, so that they cannot disagree.

run = private(model, optimizer, data, epsilon=3, delta=1e-5, epochs=10, batch=256)
for x, y in run:
    loss = F.cross_entropy(model(x), y, reduction="none")     # one loss for each record
    run.backward(loss)
    optimizer.step()                                          # the private step
    optimizer.zero_grad()                                     # allowed, and not needed
run.privacy, run.epsilon(1e-5)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn, Self

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
from discreet.learn.torch.moving import Watch
from discreet.learn.torch.noise import Number
from discreet.learn.torch.plan import Plan
from discreet.learn.torch.processes import refuse_processes
from discreet.learn.torch.refusals import (
    UNTESTED,
    check_losses,
    no_gradient,
    refusing_reentrant_checkpoints,
)
from discreet.learn.torch.shadow import Mixing
from discreet.learn.torch.steps import Patched, check_parameters, settings_of
from discreet.learn.torch.sums import Sums
from discreet.noise.source import is_private
from discreet.privacy.guarantee import Guarantee

__all__ = ["Parts", "Run"]


@dataclass
class Parts:
    """What a run is made of; `private` puts it together."""

    model: Module
    optimizers: tuple[Optimizer, ...]
    parameters: list[Parameter]
    plan: Plan
    batches: Batches
    sums: Sums
    clip: Number
    delta: float | None = None
    adaptive: Adaptive | None = None
    canaries: Canaries | None = None
    receipt: Any = None
    assumes: tuple[str, ...] = ()
    progress: Callable[[Run], None] | None = None
    parted: bool = False  # whether batches may come in micro-batches
    past: checkpoint.Past = field(default_factory=checkpoint.Past)


@dataclass
class _Turn:
    """Where the loop is within one batch."""

    batch: Batch
    used: bool = False
    summed: bool = False  # whether the backward pass came to its end
    stepped: set[Optimizer] = field(default_factory=set)


@checked_class
class Run:
    """Private training with the loop, the model and the optimizer that were there before.

    **Guarantee.** Whoever sees the parameters after every step, and everything that is computed from them, learns no more about
    one record than `privacy` says, which is the guarantee of the noisy sums that were really drawn: Poisson batches (or those that
    `plan` names), every record's gradient clipped to `clip`, noise on the sum, and a public divisor. A step that would not be
    so is refused. `level` says in which arithmetic: "A" exact whole numbers; "C" real numbers, with sums and noise on a grid.

    Why it holds: Abadi et al. 2016 for the mechanism, `plan` for the accounting, `clip`, `noise` and `sampler` for the parts;
    momentum, weight decay, schedules and averages of parameters are post-processing.

    What would break it: showing anything else that depends on the records: a training loss, a batch, its size, how long a step
    took; a loss of one record that looks at the others; an optimizer or a scheduler that counts micro-batches.

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

    def __init__(self, parts: Parts) -> None:
        if not isinstance(parts, Parts):
            raise BadParameter(
                "DP104",
                "a Run is not made by hand.",
                why="its model, optimizer, batches and noise are checked together.",
                fix="run = private(model, optimizer, data, …)",
            )
        self._parts, self.model, self.plan, self.past = parts, parts.model, parts.plan, parts.past
        self.clip: Number = parts.clip
        self.steps = 0
        self.stepped = False  # whether the last call of optimizer.step() was a real step
        self.private = is_private()
        self.receipt, self.canaries, self.level = parts.receipt, parts.canaries, parts.sums.level
        self.assumes, self.delta, self.parameters = parts.assumes, parts.delta, tuple(parts.parameters)
        self._known = set(map(id, self.parameters))
        self._turn: _Turn | None = None
        self._settings: dict[Optimizer, Any] = {}
        self._below: Any = 0
        self._released = False
        self._moving = Watch()
        self._closed = False
        self._look = FirstLook(self.model, parts.sums.test, parted=parts.parted)
        self._generators = Generators()
        self._mixing = Mixing(secret_sizes=self.plan.sampling == "poisson")
        self._patched = [Patched(optimizer, self._step) for optimizer in parts.optimizers]

    # --- the loop ------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        """The batches of all steps that are left, in micro-batches; every one wants `backward` and `step`."""
        return self.batches(self.plan.steps - self.steps)

    def batches(self, steps: int) -> Iterator[Any]:
        """The batches of so many steps, of those that are left: `run.batches(run.plan.per_epoch)` is about an epoch."""
        steps = check.whole(at_least=0, steps=steps)
        for _ in range(steps):
            self._check_open()
            if self.steps >= self.plan.steps:
                break
            refuse_processes()
            self._parts.sums.begin()
            self._below, self._released = 0, False
            for batch in self._generators.around(self._parts.batches.draw()):
                turn = self._turn = _Turn(batch)
                self.stepped = False
                self.private = self.private and is_private()
                self._look.begin()
                self._mixing.begin(batch.shown, batch.rows)
                try:
                    yield batch.shown
                finally:
                    self._mixing.cancel()
                self._finished(turn)
        self._turn = None

    def backward(self, losses: Tensor) -> None:
        """One backward pass: every record's gradient, clipped, is added to the sum. Wants one loss for each record."""
        self._check_open()
        turn = self._turn
        if turn is None or turn.used:
            raise no_gradient("run.backward was called without a fresh batch.")
        with refusing_reentrant_checkpoints():
            self._added(turn, losses)

    def _added(self, turn: _Turn, losses: Tensor) -> None:
        self._mixing.end(losses)
        self._generators.settle()
        losses = check_losses(losses, turn.batch.rows)
        if self.canaries is not None:
            losses = self.canaries.losses(losses, turn.batch.places, turn.batch.population)
        turn.used = True
        refuse_statistics(self.model)
        self._look.end()
        weights = losses.new_zeros(turn.batch.rows) if turn.batch.blank else None
        count_below = self._parts.sums.add(losses, clip=self.clip, weights=weights)
        turn.summed = True
        if self._parts.adaptive is not None:
            self._below = self._below + 2 * count_below() - (0 if turn.batch.blank else turn.batch.rows)

    def _step(self, optimizer: Optimizer, real: Callable[[], Any], closure: Any) -> Any:
        """What `optimizer.step()` does now: nothing within a batch, and the private step at its end."""
        turn = self._turn
        if closure is not None:
            raise no_gradient("a step with a closure computes gradients of its own.", "optimizer.step()")
        if turn is None or not turn.summed or optimizer in turn.stepped:
            raise no_gradient("optimizer.step() was called without a private gradient.")
        turn.stepped.add(optimizer)
        self._check_settings(optimizer, turn.batch)
        if not turn.batch.last:
            return None
        check_parameters(optimizer, self._known)
        if not self._released:
            self._release()
        result = self._moved(optimizer, real)
        self.stepped = True
        if self._parts.progress is not None and len(turn.stepped) == 1:
            self._parts.progress(self)
        return result

    def _release(self) -> None:
        """Noise, the public divisor, `.grad`; from here on the step counts."""
        parts, plan = self._parts, self.plan
        noise = plan.noise if parts.adaptive is None else parts.adaptive.split(plan.noise, plan.batch)
        self.steps, self._released = self.steps + 1, True
        self.private = self.private and is_private()
        if self._turn is not None:
            self._turn.batch = self._turn.batch.without_records()
        if self.steps == 1 and self.tested is not True:
            warnings.warn(UNTESTED, stacklevel=4)
        parts.sums.release(noise=noise, clip=self.clip, divide=float(plan.batch))
        self._generators.over()
        for optimizer in parts.optimizers:
            if isinstance(optimizer, CorrectedAdam):
                wide = plan.widening(self.steps - 1)
                optimizer.noise_variance = _variance(noise, self.clip, plan.batch) * wide
        if self.canaries is not None:
            self.canaries.note()
        if parts.adaptive is not None:
            below, self._below = self._below, 0
            self.clip = parts.adaptive.next(self.clip, below, noise=plan.noise, batch=plan.batch)

    def _moved(self, optimizer: Optimizer, real: Callable[[], Any]) -> Any:
        with self._parts.sums.paused(), self._moving.looking_at(optimizer):
            return real()

    def _finished(self, turn: _Turn) -> None:
        """Between two batches: the loop must have done what it was given the batch for, and no other loop was in between."""
        if self._turn is not turn or not turn.summed or not turn.stepped:
            raise no_gradient("a batch was left without run.backward(loss) and optimizer.step().")

    def _check_open(self) -> None:
        if self._closed:
            raise no_gradient("this run is closed.", "private(model, optimizer, …) begins another")

    def _check_settings(self, optimizer: Optimizer, batch: Batch) -> None:
        """Within one batch nothing may count micro-batches: their number depends on the records."""
        if batch.first and batch.last:
            return
        now = settings_of(optimizer)
        if not batch.first and now != self._settings.get(optimizer):
            raise RefusedTraining(
                "DP916",
                "a setting of the optimizer changed between micro-batches of one batch.",
                why="how many micro-batches there are depends on the records, and a learning rate that counts them shows it.",
                fix="run.follow(scheduler)   or  if run.stepped: scheduler.step()",
                spent="what the steps before it cost",
            )
        self._settings[optimizer] = now

    def follow(self, scheduler: Any) -> None:
        """Let a scheduler keep the time of private steps: within a batch its `step` does nothing."""
        real = check.function(**{"scheduler.step": getattr(scheduler, "step", None)})

        def step(*arguments: Any, **named: Any) -> None:
            if self.stepped:
                real(*arguments, **named)

        scheduler.step = step

    # --- what it cost --------------------------------------------------------------------------------

    @property
    def privacy(self) -> Guarantee | None:
        """The guarantee of the steps that were taken, also before a checkpoint; None before the first."""
        before, rounds = self.past.guarantee, self._parts.batches.rounds(self.steps)
        if rounds == 0:
            return before
        now = self.plan.guarantee_after(rounds)
        return now if before is None else before + now

    def epsilon(self, delta: float | None = None) -> float:
        """The ε of the steps that were taken, at δ; by default the δ that was asked for."""
        if delta is not None:
            check.delta(delta=delta)
        at = self.delta if delta is None else delta
        spent = self.privacy
        return 0.0 if spent is None else spent.epsilon(delta=check.delta(delta=at))

    @property
    def tested(self) -> bool | None:
        """Whether the model was tested on made-up records; None before it was called."""
        return self._look.tested

    @property
    def losses_tested(self) -> bool | None:
        """Whether losses of a batch were compared with those of a changed one; None before there was one to compare."""
        return self._mixing.tested

    def report(self) -> str:
        """Layer by layer, what is trained and how it is clipped, before anything is trained."""
        from discreet.learn.torch.report import report

        return report(self)

    def explain(self) -> str:
        """What the run promises and to whom, in numbered plain sentences."""
        from discreet.learn.torch.report import explain

        return explain(self)

    # --- its end, and copies --------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must hold besides the model and the optimizer: steps, plan, guarantee. Never a key."""
        return checkpoint.state_of(self)

    def close(self) -> None:
        """Give model and optimizers back as they were."""
        for patched in self._patched:
            patched.close()
        self._look.close()
        self._mixing.cancel()
        self._generators.end()
        self._parts.sums.close()
        self._turn, self._closed = None, True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise RefusedTraining(
            "DP914",
            "a run was about to be copied or pickled.",
            why="a copy would use the same noise again, and count its steps for itself.",
            fix="torch.save(run.state_dict(), path)   and  private(…, resume=torch.load(path))",
        )


def _variance(noise: float, clip: Number, batch: int) -> Number:
    """Of each coordinate of a released gradient, given the gradient without noise."""
    return (clip * (noise / batch)) ** 2
