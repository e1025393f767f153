# SPDX-License-Identifier: Apache-2.0
"""Amplification by sampling: one function for each (scheme, relation), each with its theorem.

**Guarantee.** The sample is secret and drawn afresh for each run. "poisson": every unit is in the
sample independently with probability `rate`. "without-replacement": a sample of fixed size m out of
n, `rate` = m/n, n public. Batches made by shuffling are neither, and get no amplification here.

What would break it: showing the sample, re-using it, dividing by the secret number of records, or
accounting one scheme with the formula of another (ε 1.6 against 12.9 for one and the same training
run).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from discreet import check
from discreet.errors import UnsupportedGuarantee
from discreet.privacy import divergences, families
from discreet.privacy.bag import Bag, greatest_of
from discreet.privacy.guarantee import ComposedGuarantee, Guarantee, only_bag
from discreet.privacy.pairs import Pair, dilute, dilute_other, mask, symmetrise
from discreet.privacy.primitives import Primitive
from discreet.privacy.unit import UNIT_RELATIONS, Unit

SCHEMES = ("poisson", "without-replacement")


@dataclass(frozen=True, repr=False)
class SampledGuarantee(Primitive):
    """A mechanism that sees a random sample of the units."""

    inner: Guarantee
    rate: float
    scheme: str = "poisson"

    @property
    def assumes(self) -> frozenset[str]:
        return self.inner.assumes

    @property
    def failure(self) -> float:
        return self.rate * self._base_bag.failure

    def worst_loss(self) -> float:
        worst = self._base_bag.worst_loss
        if math.isinf(worst):
            return math.inf
        if self._keeps_epsilon:
            return worst
        far = worst + math.log(self.rate + (1 - self.rate) * math.exp(-worst))
        amplified = math.log1p(self.rate * math.expm1(worst)) if worst < 30 else far
        if self._theorem is _poisson_replace:
            amplified = min(amplified, max(pair.greatest for pair in self.pairs()))
        return amplified * (1 + 4e-16)

    def divergence(self, order: float) -> float:
        base = self._base_bag
        worst = super().divergence(order)
        if self.pairs() and all(pair.infinite == 0 for pair in self.pairs()):
            if base.gaussian is not None and self._theorem is _poisson_add_remove:
                bounds = (
                    divergences.of_diluted_gaussian(base.gaussian, self.rate, order, removes=removes)
                    for removes in (True, False)
                )
                return min(worst, max(bounds), base.renyi(order))
            return min(
                worst, max(divergences.of_pair(pair, order) for pair in self.pairs()), base.renyi(order)
            )
        if self._theorem is _poisson_add_remove:
            return min(worst, divergences.of_sampled_curve(base.renyi, self.rate, order))
        return min(worst, base.renyi(order))

    def concentration(self) -> tuple[float, float]:
        """Sampling never raises a Rényi divergence (joint quasi-convexity), but does not lower ρ in
        general.
        """
        xi, rho = self._base_bag.concentrated
        worst = super().concentration()
        return (xi, rho) if rho < worst[1] else worst

    def dominating(self) -> tuple[Pair, ...]:
        base = self._base
        if self._theorem is _poisson_replace and (pair := self._antipodal):
            return (pair,)
        pairs = pairs_of(base)
        return self._theorem(pairs, self.rate) if pairs else ()

    @property
    def tight(self) -> bool:
        """Attained where the base is, save for a replaced record under Poisson sampling.

        - Poisson, add-remove: by data of one record, (1-q)·Q + qP against Q.
        - Poisson, known under replace only: by a mechanism that says whether its sample is empty.
        - Fixed size: by data in which all other records are equal, so that the sample has the
          record or is as without it.
        - Poisson, replaced: additive noise and ε-privacy have an exact pair
          (`families.antipodal_gaussian`); the general rule takes the worst of two mixtures that no
          mechanism need have at once.
        """
        if self._theorem is _poisson_replace:
            return self._antipodal is not None and self._antipodal.infinite == 0
        base = only_bag(self._base)
        if base.alone is None or not getattr(base.alone, "tight", False):
            return False
        # what dominates both directions of a lopsided pair at once need not be attained at any
        # point
        return self._theorem is _poisson_add_remove or all(pair.symmetric for pair in base.alone.pairs())

    def witness(self) -> tuple[Pair, ...]:
        """One mechanism with one pair of neighbours, for each theorem; see `tight`."""
        if self._theorem is _poisson_add_remove:
            return self._theorem(base_witness(self.inner), self.rate)
        if self._theorem is _poisson_replace_only:
            return tuple(mask(pair, self.rate) for pair in base_witness(self.inner))
        if self._theorem is _poisson_replace:
            pair = self._antipodal
            # what was not listed counts as revealed in an upper bound, and not at all here
            return (replace(pair, infinite=0.0, vanishing=0.0),) if pair else _one_way(self.inner, self.rate)
        return _one_way(self._base, self.rate)

    @property
    def _antipodal(self) -> Pair | None:
        return self.inner.antipodal(self.rate) if isinstance(self.inner, Primitive) else None

    def _group_of(self, size: int) -> Guarantee:
        """All units join or leave together: for Poisson samples the comonotone pair, else a chain
        of neighbours.
        """
        from discreet.privacy.groups import GroupGuarantee, sampled_group

        return (sampled_group if self._theorem is _poisson_add_remove and self.pairs() else GroupGuarantee)(
            self, size
        )

    def _group_apart(self, size: int) -> Guarantee:
        """Some join and some leave: a chain of neighbours."""
        from discreet.privacy.groups import GroupGuarantee

        return self if size == 1 else GroupGuarantee(self, size)

    @property
    def _theorem(self) -> Callable[[tuple[Pair, ...], float], tuple[Pair, ...]]:
        return _THEOREMS[self.scheme, self.inner.unit.relation, self.unit.relation][0]

    @property
    def _base(self) -> Guarantee:
        """The guarantee that the theorem starts from: for two units if it needs a replaced one and
        has a removed one.
        """
        doubled = _THEOREMS[self.scheme, self.inner.unit.relation, self.unit.relation][1]
        return self.inner.at_distance(2) if doubled else self.inner

    @property
    def _base_bag(self) -> Bag:
        return only_bag(self._base)

    @property
    def _keeps_epsilon(self) -> bool:
        return self._theorem is _poisson_replace_only

    def __repr__(self) -> str:
        words = [repr(self.rate)]
        words += [f"scheme={self.scheme!r}"] if self.scheme != "poisson" else []
        words += (
            [f"relation={self.unit.relation!r}"] if self.unit.relation != self.inner.unit.relation else []
        )
        inner = f"({self.inner!r})" if isinstance(self.inner, ComposedGuarantee) else repr(self.inner)
        return f"{inner}.sampled({', '.join(words)})"


def sample(inner: Guarantee, rate: float, scheme: str, relation: str | None) -> Guarantee:
    """See `Guarantee.sampled`."""
    rate = check.rate(rate=rate)
    scheme = check.choice(SCHEMES, scheme=scheme)
    relation = check.choice(
        UNIT_RELATIONS, relation=relation if relation is not None else inner.unit.relation
    )
    if (scheme, inner.unit.relation, relation) not in _THEOREMS:
        raise UnsupportedGuarantee(
            "DP202",
            f"no theorem turns a {inner.unit.relation} guarantee into a {relation} one by {scheme} sampling.",
            why="a replace guarantee says nothing about a record that is missing from the sample.",
            fix="state the mechanism under add-remove, for example gaussian(noise=…), and sample that.",
        )
    plain = (scheme, inner.unit.relation, relation) == ("poisson", "add-remove", "add-remove")
    if (
        plain
        and isinstance(inner, SampledGuarantee)
        and inner.scheme == "poisson"
        and inner.inner.unit == inner.unit
    ):
        # a Poisson sample of a Poisson sample is one, at the product of the rates
        return sample(inner.inner, inner.rate * rate, scheme, relation)
    if len(inner.bags()) > 1:
        raise UnsupportedGuarantee(
            "DP202",
            "a parallel composition cannot be sampled as a whole.",
            why="the theorem needs one worst pair of answers, and each part has its own.",
            fix="sample each part:  parallel(a.sampled(rate), b.sampled(rate)).",
        )
    if rate == 1.0 and relation == inner.unit.relation:
        return inner
    return SampledGuarantee(inner, rate, scheme, unit=Unit(inner.unit.protects, relation))


def _poisson_add_remove(base: tuple[Pair, ...], rate: float) -> tuple[Pair, ...]:
    """Removed: ((1-q)Q + qP, Q). Added: (P, (1-q)P + qQ). By joint convexity over the other
    records' samples.
    """
    return dilute(base[0], rate), dilute_other(base[-1], rate)


def _poisson_replace(base: tuple[Pair, ...], rate: float) -> tuple[Pair, ...]:
    """H_γ ≤ q·H_γ'(two units), γ' = 1 + (γ-1)/q, γ ≥ 1 (advanced joint convexity, Balle, Barthe,
    Gaboardi 2018).

    Additive log-concave noise and ε-privacy have exact pairs instead:
    `families.antipodal_gaussian`.
    """
    return _fixed_size_replace(base, rate)


def _poisson_replace_only(base: tuple[Pair, ...], rate: float) -> tuple[Pair, ...]:
    """H_γ ≤ q·H_γ: the replaced record is in the sample with probability q, and nothing else is
    known.
    """
    return (mask(greatest_of(base), rate),)


def _fixed_size_replace(base: tuple[Pair, ...], rate: float) -> tuple[Pair, ...]:
    """H_γ = q·H_γ'(base under replace) for γ ≥ 1 and its mirror image below, for every step on its
    own.
    """
    return (symmetrise(dilute(greatest_of(base), rate)),)


def _fixed_size_add_remove(base: tuple[Pair, ...], rate: float) -> tuple[Pair, ...]:
    """m of n+1 against m of n records: as Poisson, with the base pair of a replaced record."""
    pair = greatest_of(base)
    return dilute(pair, rate), dilute_other(pair, rate)


#: (scheme, relation of the base, relation of the result) ↦ (theorem, whether the base is taken for
#: two units)
_THEOREMS = {
    ("poisson", "add-remove", "add-remove"): (_poisson_add_remove, False),
    # A blank in the sample is as no record in it.
    ("poisson", "add-remove", "zero-out"): (_poisson_add_remove, False),
    ("poisson", "zero-out", "zero-out"): (_poisson_add_remove, False),
    ("poisson", "add-remove", "replace"): (_poisson_replace, True),
    ("poisson", "replace", "replace"): (_poisson_replace_only, False),
    ("without-replacement", "replace", "replace"): (_fixed_size_replace, False),
    ("without-replacement", "add-remove", "replace"): (_fixed_size_replace, True),
    ("without-replacement", "replace", "add-remove"): (_fixed_size_add_remove, False),
    ("without-replacement", "add-remove", "add-remove"): (_fixed_size_add_remove, True),
}


def base_witness(base: Guarantee) -> tuple[Pair, ...]:
    """The pairs of a mechanism with the guarantee of the base, or with that of one of its parts."""
    bag = only_bag(base)
    if bag.gaussian is not None:
        return (families.gaussian(bag.gaussian * (1 - 1e-13)),)
    return max((part.witness() for part, _ in bag.entries), key=lambda pairs: pairs[0].exceeds(0.0)[0])


def _one_way(base: Guarantee, rate: float) -> tuple[Pair, ...]:
    """One record replaced by another, always in the same role: what an actual data set can show."""
    pair = base_witness(base)[0]
    return dilute(pair, rate), dilute_other(pair, rate)


def pairs_of(base: Guarantee) -> tuple[Pair, ...]:
    """The pairs of one mechanism, or of a composition that is run on one sample."""
    bag = only_bag(base)
    if bag.gaussian is not None:
        return (families.gaussian(bag.gaussian * (1 + 1e-13 * (bag.count > 1))),)
    if bag.alone is not None:
        return bag.alone.pairs()
    if not any(part.pairs() for part, _ in bag.entries):
        return ()
    return tuple(composition.as_pair() for composition in bag.compositions)
