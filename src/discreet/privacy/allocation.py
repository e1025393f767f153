# SPDX-License-Identifier: Apache-2.0
"""Random allocation: in each epoch every record takes part in a few secret steps of its own.

    gaussian(noise=1.0).allocated(steps=100)              # one epoch: in one of 100 steps
    10 * gaussian(noise=1.0).allocated(steps=100)         # ten epochs, allocated afresh
    gaussian(noise=1.0).allocated(steps=100, times=5)     # in 5 of 100 steps

**Guarantee.** It holds if each record draws its steps uniformly, in secret, independently of all
other records and of the answers ("balls and bins"). One step is what `.allocated` is called on.

Why it holds: allocation.proof.md. In short: the answers are post-processing of t independent draws,
one of which, at the secret step, comes from P and all others from Q, against t draws from Q. So the
likelihood ratio is an average of t independent copies of dP/dQ, and `averages` bounds it on both
sides in convex order. A few steps out of many are that many blocks with one step each.

What would break it: batches of a fixed size cut from a shuffled list, where the place of a record
tells about the places of others; showing who was in which step; one allocation for several epochs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from discreet import check
from discreet.errors import BadParameter, UnsupportedGuarantee
from discreet.privacy import averages, families
from discreet.privacy.bag import BagItem
from discreet.privacy.guarantee import ComposedGuarantee, Guarantee, only_bag
from discreet.privacy.mixtures import TruncatedBatchesGuarantee
from discreet.privacy.pairs import Pair
from discreet.privacy.primitives import Primitive
from discreet.privacy.sampling import SampledGuarantee, base_witness, pairs_of
from discreet.privacy.unit import Unit

#: With more steps than this rounding errors, which grow with their number, would be felt.
_MOST_STEPS = 1_000_000


@dataclass(frozen=True, repr=False)
class AllocationBlock(Primitive):
    """One secret step out of `steps`; `share` says how many of these blocks there are in how many
    steps, where they stand for an allocation to several.
    """

    inner: Guarantee
    steps: int
    share: tuple[int, int]

    @property
    def assumes(self) -> frozenset[str]:
        return self.inner.assumes

    @property
    def failure(self) -> float:
        """As of one step: the secret step is run once."""
        return only_bag(self.inner).failure

    def worst_loss(self) -> float:
        """An average is no greater than the greatest of what is averaged."""
        return only_bag(self.inner).worst_loss

    def divergence(self, order: float) -> float:
        """That of the step, because divergences are quasi-convex."""
        return min(super().divergence(order), only_bag(self.inner).renyi(order))

    def concentration(self) -> tuple[float, float]:
        """That of the step."""
        xi, rho = only_bag(self.inner).concentrated
        worst = super().concentration()
        return (xi, rho) if rho < worst[1] else worst

    def dominating(self) -> tuple[Pair, ...]:
        base = pairs_of(self.inner)
        law = averages.average(base[0], self.steps, upper=True)
        return law.pairs(upper=True) if law is not None else base

    def witness(self) -> tuple[Pair, ...]:
        """One step: the merged average. Several: the sum of all answers, if they are Gaussian."""
        times, steps = self.share
        if times == 1:
            return _merged_pairs(self.inner, self.steps)
        mu = only_bag(self.inner).gaussian
        return (families.gaussian(mu * math.sqrt(times / steps) * (1 - 1e-13)),) if mu else (_NOTHING,)


#: What an answer that does not depend on the data tells.
_NOTHING = families.randomized_response(0.0)


@lru_cache(maxsize=64)
def _merged_pairs(inner: Guarantee, steps: int) -> tuple[Pair, ...]:
    law = averages.average(base_witness(inner)[0], steps, upper=False)
    return law.pairs(upper=False) if law is not None else (_NOTHING,)


@dataclass(frozen=True, repr=False)
class AllocatedGuarantee(Guarantee):
    """One epoch of random allocation: each record is in `times` of `steps` runs of a mechanism."""

    inner: Guarantee
    steps: int
    times: int = 1

    @property
    def unit(self) -> Unit:
        return self.inner.unit

    @property
    def assumes(self) -> frozenset[str]:
        return self.inner.assumes

    def bags(self) -> list[tuple[tuple[BagItem, int], ...]]:
        share = (self.times, self.steps)
        block = AllocationBlock(self.inner, self.steps // self.times, share, unit=self.unit)
        return [((block, self.times),)]

    def _group_of(self, size: int) -> Guarantee:
        """A chain of neighbours."""
        from discreet.privacy.groups import GroupGuarantee

        return GroupGuarantee(self, size)

    def __repr__(self) -> str:
        inner = f"({self.inner!r})" if isinstance(self.inner, ComposedGuarantee) else repr(self.inner)
        times = f", times={self.times}" if self.times > 1 else ""
        return f"{inner}.allocated({self.steps}{times})"


def allocate(inner: Guarantee, steps: int, times: int) -> Guarantee:
    """See `Guarantee.allocated`."""
    steps, times = check.whole(steps=steps), check.whole(times=times)
    if times > steps or steps > _MOST_STEPS:
        raise BadParameter(
            "DP102",
            f"times={times} of steps={steps} cannot be allocated."
            if times > steps
            else f"steps must be at most {_MOST_STEPS:,}, not {steps:,}.",
            why="a record takes part at most once in a step."
            if times > steps
            else "the error of rounding grows with the number of steps.",
            fix=f"steps={min(max(steps, times), _MOST_STEPS)}, times={min(steps, times, _MOST_STEPS)}",
        )
    if inner.unit.relation == "replace":
        raise _no_theorem_error(
            "a replace guarantee cannot be allocated.",
            why="it says nothing about the steps that a record is not in.",
            fix="state the mechanism under add-remove, for example gaussian(noise=…), and allocate that.",
        )
    if len(inner.bags()) > 1:
        raise _no_theorem_error(
            "a parallel composition cannot be allocated as a whole.",
            why="the theorem needs one worst pair of answers, and each part has its own.",
            fix=f"allocate each part:  parallel(a.allocated(steps={steps}), b.allocated(steps={steps})).",
        )
    if any(_counts_records(part) for bag in inner.bags() for part, _ in bag):
        raise _no_theorem_error(
            "batches of a public size cannot be allocated.",
            why="how many records take part in a run is secret, and their theorem needs that number.",
            fix="state the mechanism without its batches, for example gaussian(noise=…), and allocate that.",
        )
    if not pairs_of(inner):
        raise _no_theorem_error(
            "a guarantee of which only a Rényi curve is known cannot be allocated.",
            why="the theorem averages likelihood ratios, and a curve does not have them.",
            fix="state the mechanism itself, for example gaussian(noise=…), and allocate that.",
        )
    if steps // times == 1:
        return times * inner
    return AllocatedGuarantee(inner, steps, times)


def _counts_records(part: BagItem) -> bool:
    """Whether the theorem of a mechanism is about a public number of records."""
    if isinstance(part, SampledGuarantee):
        return part.scheme != "poisson"
    return isinstance(part, TruncatedBatchesGuarantee)


def _no_theorem_error(what: str, why: str, fix: str) -> UnsupportedGuarantee:
    return UnsupportedGuarantee("DP202", what, why=why, fix=fix)
