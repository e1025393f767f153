# SPDX-License-Identifier: Apache-2.0
"""What a training run will do, in public numbers, and the guarantee that follows from them.

    plan = plan_of(size=60_000, batch=256, epochs=10, epsilon=3, delta=1e-5)
    plan.noise, plan.steps, plan.guarantee

**Guarantee.** `guarantee_after(rounds)` is the guarantee of that many noisy sums of clipped
gradients over batches that are drawn as `sampling` says. Noise is measured in clipping norms,
whatever the relation: one more record moves the sum by one clipping norm, a replaced record by two.

Why it holds, for each way to make batches:

- "poisson": every record is in a batch independently with probability `rate`; `privacy.sampling`
  has the theorem;
- "poisson" with `bands`: every record is in one of `bands` groups, steps take the groups in turn,
  and the noise of steps is correlated; for a record, `bands` steps are one round
  (`banded.proof.md`);
- "fixed": `batch` of n records without replacement, n public; `privacy.sampling` again;
- "allocated": at the beginning of an epoch every record draws one of its steps; an epoch is one
  round, and `privacy.allocation` has the theorem;
- "full": every record is in every batch, so nothing is sampled and Gaussian steps compose exactly;
- "loader": batches that somebody else makes. Each record is in at most one batch of an epoch, so
  for a record an epoch is one Gaussian step. Sampling does not amplify it: shuffled batches are not
  Poisson samples.

What would break it: steps that are drawn in another way than the plan says. So `Run` draws them
itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from discreet import check, privacy
from discreet.errors import BadParameter
from discreet.exact import exactly
from discreet.learn.arguments import checked_call, checked_class
from discreet.learn.torch import bands as bands_of
from discreet.privacy.calibrate import calibrate
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.unit import RELATIONS, Unit

__all__ = ["SAMPLINGS", "TrainingPlan", "plan_of"]

SAMPLINGS = ("poisson", "fixed", "full", "allocated")
_ALLOCATED, _LOADER = "allocated", "loader"
#: The most bands that "auto" chooses: each costs as much memory as the sums.
_MOST_BANDS = 64


@checked_class
@dataclass(frozen=True)
class TrainingPlan:
    """The public numbers of a run: `steps` in all, `per_epoch` of them in an epoch. `plan_of` makes
    a checked plan.

    **Guarantee.** `guarantee` is that of the whole plan. Why it holds, and what would break it: see
    the head of `plan.py`.

    >>> plan_of(size=60_000, batch=256, epochs=10, noise=1.0).guarantee_after(2)
    2 * gaussian(noise=1.0).sampled(0.004266666666666667)
    """

    sampling: str
    relation: str
    unit: str
    size: int
    batch: int
    steps: int
    per_epoch: int
    noise: float
    bands: int = 1

    def __post_init__(self) -> None:
        """Refuse values that no plan can have. `plan_of` checks whether they fit together."""
        check.choice((*SAMPLINGS, _LOADER), sampling=self.sampling)
        check.choice(("add-remove", "replace"), relation=self.relation)
        check.positive(noise=self.noise)
        check.whole(at_least=0, steps=self.steps)
        for name in ("size", "batch", "per_epoch", "bands"):
            check.whole(**{name: getattr(self, name)})

    @cached_property
    def rate(self) -> float:
        """The probability that a record is in a batch of its turn. Poisson batches are drawn at
        this rate or a little below.
        """
        if self.sampling in ("full", _LOADER):
            return 1.0
        if self.sampling == _ALLOCATED:
            return 1 / self.per_epoch
        exact_rate = Fraction(self.bands * self.batch, self.size)
        rate = float(exact_rate)
        # Fixed batches are drawn at the exact rate, so there the float is rounded up.
        is_below = self.sampling == "fixed" and Fraction(rate) < exact_rate
        return math.nextafter(rate, 1.0) if is_below else rate

    @property
    def rounds(self) -> int:
        """How often `one_round` is paid for: every step, every turn of all bands, or every epoch of
        a loader or an allocation.
        """
        return self.rounds_of(self.steps)

    def rounds_of(self, steps: int) -> int:
        """How many rounds the first `steps` steps begin."""
        return -(-steps // (self.per_epoch if self.sampling in (_ALLOCATED, _LOADER) else self.bands))

    @property
    def error(self) -> float:
        """The root mean square error of running sums of gradients that is due to noise, in clipping
        norms.
        """
        return self.noise * bands_of.prefix_error(self.bands, self.steps)

    def relative_variance(self, step: int) -> float:
        """The variance of the noise of a step, counted from zero, relative to independent noise."""
        return 1.0 if self.bands == 1 else self._variances[step]

    @cached_property
    def _variances(self) -> list[float]:
        return [float(variance) for variance in bands_of.variances(self.bands, self.steps)]

    def one_round(self) -> Guarantee:
        """The guarantee of one noisy sum, or of all sums of an epoch."""
        if self.sampling in SAMPLINGS[:2]:
            scheme = "poisson" if self.sampling == "poisson" else "without-replacement"
            return privacy.gaussian(self.noise, unit=self.unit).sampled(self.rate, scheme, self.relation)
        if self.sampling == _ALLOCATED:
            return privacy.gaussian(self.noise, unit=self.unit).allocated(self.per_epoch)
        # One record leaves and another comes, so the sum moves by two clipping norms.
        if self.relation == "replace":
            return privacy.gaussian(self.noise / 2, relation="replace", unit=self.unit)
        return privacy.gaussian(self.noise, unit=self.unit)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the whole plan."""
        return self.guarantee_after(self.rounds)

    def guarantee_after(self, rounds: int) -> Guarantee:
        """The guarantee of the first `rounds` rounds."""
        return rounds * self.one_round()


#: Plans that were pickled before the class was renamed name it so.
Plan = TrainingPlan


@checked_call
def plan_of(
    *,
    size: int,
    batch: int | None = None,
    epochs: float | None = None,
    steps: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    noise: float | None = None,
    sampling: str = "poisson",
    relation: str | None = None,
    unit: str = "record",
    per_epoch: int | None = None,
    bands: int | str = 1,
) -> TrainingPlan:
    """A checked plan of a run. Without `noise` it has the least noise that (`epsilon`, `delta`)
    allows.

    `bands="auto"` tries 1, 2, 4 … 64 bands and takes the number with the least `error` for
    (`epsilon`, `delta`).

    **Guarantee.** The whole plan implies (`epsilon`, `delta`), if they are given. Why it holds: the
    noise is found by `calibrate`, which rounds towards more noise. What would break it: numbers
    that are not those of the data.

    >>> plan = plan_of(size=60_000, batch=256, epochs=10, epsilon=3, delta=1e-5)
    >>> plan.steps, plan.guarantee.epsilon(delta=1e-5) <= 3
    (2344, True)
    """
    loader = per_epoch is not None
    sampling = _LOADER if loader else check.choice(SAMPLINGS, sampling=sampling)
    size = check.whole(size=size)
    batch = size if batch is None and sampling == "full" else check.whole(batch=_require("batch", batch, 256))
    if batch > size and sampling != "full":
        raise _contradiction_error(
            f"a batch of {batch} cannot be drawn from {size} records", "batch=256, size=60_000"
        )
    epoch = None if per_epoch is None else check.whole(per_epoch=per_epoch)
    steps_per_epoch = epoch or (1 if sampling == "full" else max(1, round(size / batch)))
    exact_epoch = Fraction(size, batch) if sampling in SAMPLINGS[:2] else Fraction(steps_per_epoch)
    step_count = _count_steps(epochs, steps, exact_epoch)
    who = Unit(unit, _choose_relation(relation, sampling))
    plan = TrainingPlan(
        sampling, who.relation, who.protects, size, batch, step_count, steps_per_epoch, noise=1.0
    )
    if bands != "auto":
        plan = _with_bands(plan, check.whole(bands=bands))
        return replace(plan, noise=_noise_multiplier(plan, epsilon, delta, noise))
    if noise is not None:
        raise _contradiction_error(
            "bands='auto' needs epsilon and delta, because the best number of bands depends on them",
            "epsilon=3, delta=1e-5   or  bands=8",
        )
    return _least_error(plan, epsilon, delta)


def _with_bands(plan: TrainingPlan, bands: int) -> TrainingPlan:
    if bands > 1 and plan.sampling != "poisson":
        raise _contradiction_error(
            "noise with bands needs Poisson batches", "sampling='poisson'   or  bands=1"
        )
    if bands * plan.batch > plan.size and bands > 1:
        raise _contradiction_error(
            f"a batch of {plan.batch} cannot be drawn from one of {bands} groups of {plan.size} records",
            f"bands={plan.size // plan.batch}",
        )
    return replace(plan, bands=bands)


def _least_error(plan: TrainingPlan, epsilon: float | None, delta: float | None) -> TrainingPlan:
    """Double the bands as long as that reduces the error."""
    best = replace(plan, noise=_noise_multiplier(plan, epsilon, delta, None))
    max_bands = min(plan.size // plan.batch, plan.steps, _MOST_BANDS) if plan.sampling == "poisson" else 1
    while 2 * best.bands <= max_bands:
        wider = replace(plan, bands=2 * best.bands)
        wider = replace(wider, noise=_noise_multiplier(wider, epsilon, delta, None))
        if wider.error >= best.error:
            break
        best = wider
    return best


def _choose_relation(relation: str | None, sampling: str) -> str:
    """One more record can be a neighbour only where the number of records does not show."""
    if sampling == _ALLOCATED and relation == "replace":
        raise _contradiction_error(
            "allocated batches have no theorem for a replaced record", "sampling='poisson'"
        )
    if sampling in ("poisson", "full", _ALLOCATED):
        return check.choice(RELATIONS, relation="add-remove" if relation is None else relation)
    if relation is None or check.choice(RELATIONS, relation=relation) == "replace":
        return "replace"
    raise _contradiction_error(
        f"{sampling} batches show how many records there are, so relation='add-remove' cannot hold",
        "sampling='poisson'",
    )


def _count_steps(epochs: float | None, steps: int | None, epoch: Fraction) -> int:
    """The number of steps, rounded up to cover the epochs."""
    if (epochs is None) == (steps is None):
        raise _contradiction_error("pass either epochs or steps, which say how long to train", "epochs=10")
    if steps is not None:
        return check.whole(steps=steps)
    return check.whole(steps=math.ceil(exactly(check.positive(epochs=epochs)) * epoch))


def _noise_multiplier(
    plan: TrainingPlan, epsilon: float | None, delta: float | None, noise: float | None
) -> float:
    if noise is not None:
        if epsilon is not None:
            raise _contradiction_error(
                "noise and epsilon are both passed", "epsilon=3, delta=1e-5   or  noise=1.0"
            )
        if delta is not None:
            check.delta(delta=delta)
        return check.moderate(noise=noise)
    if epsilon is None or delta is None:
        raise _contradiction_error("neither noise nor epsilon and delta are passed", "epsilon=3, delta=1e-5")
    target = privacy.approximate(
        check.positive(epsilon=epsilon),
        check.inner_probability(delta=delta),
        relation=plan.relation,
        unit=plan.unit,
    )
    return calibrate(lambda z: replace(plan, noise=z).guarantee, to=target)


def _require(name: str, value: Any, example: int) -> Any:
    if value is not None:
        return value
    raise _contradiction_error(f"{name} is missing", f"{name}={example}")


def _contradiction_error(what: str, fix: str) -> BadParameter:
    return BadParameter(
        "DP107",
        f"{what}.",
        why="the guarantee of a run follows from its batches, its noise and its steps.",
        fix=fix,
    )
