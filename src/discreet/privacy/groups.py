# SPDX-License-Identifier: Apache-2.0
"""What several units have when they join or leave together: a household, the rows of one person.

Two questions are told apart. `guarantee.group(k)` compares the data with k units and without them:
all k join, or all k leave. `guarantee.at_distance(k)` compares any two data sets that are k
additions and removals apart, in any mix, so that `at_distance(2)` covers one unit that is replaced
by another. For noise that is added to an answer they are the same; under sampling the first is
smaller, and proved exactly (`comonotone`).

**Guarantee.** `GroupGuarantee` covers both. Its proof needs only what one step of a chain x₀, x₁,
…, x_k has: if H_γ(M(x_i)‖M(x_{i+1})) ≤ h(γ) for both directions, then for all γ_1 … γ_k the
distributions at both ends have H ≤ Σ_i h(γ_i)·Π_{j>i} γ_j at γ = Π γ_i (put P_i(S) ≤ γ_i·P_{i-1}(S)
+ h(γ_i) into one another).

Where only (ε, δ) is known the least of these bounds over γ_i = e^{±ε} is attained: noise on a
number for which half-lines are the best tests (Awan, Vadhan 2023) has exactly it, and for δ = 0
that is the geometric mechanism, integer Laplace noise of scale 1/ε moved by k. Note that it is less
than what kε-privacy alone would allow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.errors import UnsupportedGuarantee
from discreet.privacy import comonotone, divergences, families
from discreet.privacy.bag import Bag, pair_of_profile
from discreet.privacy.guarantee import ComposedGuarantee, Guarantee, only_bag
from discreet.privacy.logarithms import Array
from discreet.privacy.pairs import Pair, log_delta_of, symmetrise
from discreet.privacy.primitives import (
    ApproximateGuarantee,
    DiscreteGaussianGuarantee,
    DiscreteLaplaceGuarantee,
    GaussianGuarantee,
    LaplaceGuarantee,
    Primitive,
    PureGuarantee,
    exact_times,
)
from discreet.privacy.sampling import SampledGuarantee, base_witness, pairs_of

#: Units in a group up to which their mixture is listed; it has a part for each number of them that
#: is sampled.
_MOST_TOGETHER = 10_000
#: Exponents up to 700 make an exponential wrong by so much, at most.
_CLOSE = 2e-13


@dataclass(frozen=True, repr=False, init=False)
class GroupGuarantee(Primitive):
    """A chain of `size` neighbours, when the mechanism has no noise of its own to rescale."""

    inner: Guarantee
    size: int

    def __init__(self, inner: Guarantee, size: int) -> None:
        object.__setattr__(self, "inner", inner)
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "unit", inner.unit)

    @property
    def assumes(self) -> frozenset[str]:
        return self.inner.assumes

    @property
    def group_size(self) -> int:
        return self.size * self.inner.group_size

    @property
    def tight(self) -> bool:
        """Attained if nothing but (ε, δ) is known; see the module docstring."""
        return type(self.inner) in (PureGuarantee, ApproximateGuarantee) and self.size <= families.MOST_ATOMS

    @property
    def failure(self) -> float:
        if self.bag.failure == 0:
            return 0.0
        if math.isfinite(self.bag.worst_loss):
            return float(chain(self.bag.worst_loss, self.bag.failure, self.size)[1].min())
        return max(pair.infinite for pair in self.pairs())

    @cached_property
    def bag(self) -> Bag:
        """What one unit has."""
        return only_bag(self.inner)

    def worst_loss(self) -> float:
        return exact_times(self.bag.worst_loss, self.size) if math.isfinite(self.bag.worst_loss) else math.inf

    def divergence(self, order: float) -> float:
        bound = min(super().divergence(order), order * self.concentration()[1])
        pairs = self.pairs()
        if all(pair.infinite == 0 and pair.smooth is None for pair in pairs) and pairs:
            return min(bound, max(divergences.of_pair(pair, order) for pair in pairs))
        return bound

    def concentration(self) -> tuple[float, float]:
        xi, rho = self.bag.concentrated
        # what is known of the rest when something may be lost does not chain from neighbour to
        # neighbour
        chains = xi == 0 and self.bag.failure == 0
        grown = self.size**2 * rho * (1 + 1e-15) if chains else math.inf
        return 0.0, min(grown, super().concentration()[1])

    def dominating(self) -> tuple[Pair, ...]:
        if isinstance(self.inner, PureGuarantee):
            exact = families.discrete_laplace(1 / self.inner.epsilon_, self.size)
            return (exact or families.randomized_response(self.worst_loss()),)
        inner = pairs_of(self.inner)
        if not inner:
            return ()
        known_apart = (
            not isinstance(self.inner, ApproximateGuarantee) and max(pair.greatest for pair in inner) > 0
        )
        curves = [self._equal_steps(inner)] if known_apart else []
        if math.isfinite(self.bag.worst_loss):
            curves.append(chain(self.bag.worst_loss, self.bag.failure, self.size))
        knots = np.concatenate([at for at, _ in curves])
        deltas = np.concatenate([delta for _, delta in curves])
        order = np.lexsort((deltas, knots))
        knots, first = np.unique(knots[order], return_index=True)
        return (symmetrise(pair_of_profile(knots, deltas[order][first])),)

    def witness(self) -> tuple[Pair, ...]:
        return self.pairs() if self.tight else base_witness(self.inner)

    def _group_of(self, size: int) -> Guarantee:
        return GroupGuarantee(self.inner, self.size * size)

    def _equal_steps(self, inner: tuple[Pair, ...]) -> tuple[Array, Array]:
        """The bound with all γ_i equal: δ(ε/k)·(1 + e^{ε/k} + … + e^{(k-1)ε/k}) at ε."""
        top = self.size * max(pair.greatest for pair in inner)
        knots = np.concatenate([[0.0], np.geomspace(top * 1e-6, top, 2000)])
        each = knots / self.size
        logs = [
            max(log_delta_of(pair, at) for pair in inner) + log_growth(at, self.size) for at in each.tolist()
        ]
        return knots, np.exp(np.minimum(np.array(logs) + 1e-9, 0.0))

    def __repr__(self) -> str:
        inner = f"({self.inner!r})" if isinstance(self.inner, ComposedGuarantee) else repr(self.inner)
        return f"{inner}.group({self.size})"


def sampled_group(step: SampledGuarantee, size: int) -> GroupGuarantee:
    """Units that all join or leave together, exactly; a chain of neighbours, which is looser, if
    they are very many.
    """
    return SampledGroupGuarantee(step, size) if size <= _MOST_TOGETHER else GroupGuarantee(step, size)


@dataclass(frozen=True, repr=False, init=False)
class SampledGroupGuarantee(GroupGuarantee):
    """Units that all join or all leave the data of which a Poisson sample is taken; see
    `comonotone`.
    """

    @property
    def step(self) -> SampledGuarantee:
        """The mechanism for one unit."""
        assert isinstance(self.inner, SampledGuarantee)
        return self.inner

    @property
    def tight(self) -> bool:
        """Attained by units that move the answer alike, if the noise is known or nothing but (ε, δ)
        is.
        """
        return self._base_mu is None and self._is_attained

    @property
    def _is_attained(self) -> bool:
        base = self.step.inner
        match base:
            case DiscreteLaplaceGuarantee():
                return base.sensitivity * self.size <= families.MOST_ATOMS
            case DiscreteGaussianGuarantee():
                return comonotone.is_listable(base.scale, base.sensitivity * self.size)
            case GaussianGuarantee() | LaplaceGuarantee():
                return True
        return type(base) in (PureGuarantee, ApproximateGuarantee) and self.size <= families.MOST_ATOMS

    @property
    def _base_mu(self) -> float | None:
        """The slope of several Gaussian answers to one sample."""
        base = only_bag(self.step.inner)
        return base.gaussian if base.alone is None else None

    @property
    def failure(self) -> float:
        return max(pair.infinite for pair in self.pairs()) * (1 + 1e-15) if self.step.failure else 0.0

    def divergence(self, order: float) -> float:
        bound = min(Primitive.divergence(self, order), order * self.concentration()[1])
        pairs = self.pairs()
        if any(pair.infinite for pair in pairs):
            return bound
        mu = only_bag(self.step.inner).gaussian
        if mu is not None:
            shifts = comonotone.GaussianShifts(mu * (1 + 1e-13), self.step.rate, self.size)
            bounds = (
                divergences.of_gaussian_shifts(shifts, order, removes=removes) for removes in (True, False)
            )
            return min(bound, max(bounds))
        return min(bound, max(divergences.of_pair(pair, order) for pair in pairs))

    def dominating(self) -> tuple[Pair, ...]:
        return self._pairs(1 + 1e-13) or super().dominating()

    def witness(self) -> tuple[Pair, ...]:
        return self._pairs(1 - 1e-13) if self.tight or self._base_mu is not None else self.step.witness()

    def _group_of(self, size: int) -> Guarantee:
        return sampled_group(self.step, self.size * size)

    def _group_apart(self, size: int) -> Guarantee:
        return GroupGuarantee(self.inner, self.size * size)

    def _pairs(self, rounding: float) -> tuple[Pair, ...]:
        """`rounding` is for the slope of several Gaussian answers, which is a root of a sum."""
        base, rate, size = self.step.inner, self.step.rate, self.size
        if self._base_mu is not None:
            return comonotone.gaussian(self._base_mu * rounding, rate, size)
        match base:
            case _ if not self._is_attained:
                pass
            case GaussianGuarantee():
                return comonotone.gaussian(base.mu, rate, size)
            case LaplaceGuarantee():
                return comonotone.laplace(1 / base.scale, rate, size)
            case PureGuarantee():
                return comonotone.geometric(base.epsilon_, 1, rate, size)
            case DiscreteLaplaceGuarantee():
                return comonotone.geometric(1 / base.scale, base.sensitivity, rate, size)
            case DiscreteGaussianGuarantee():
                return comonotone.discrete_gaussian(base.scale, base.sensitivity, rate, size)
        members = [_members(base, count) for count in range(1, size + 1)]
        known = [pair for pair in members if pair is not None]
        weights = comonotone.log_binomial(rate, size)
        return comonotone.couple(known, weights) if len(known) == size else ()


def _members(base: Guarantee, count: int) -> Pair | None:
    """The pair of so many units in the sample, when they are in it (P) or not (Q)."""
    try:
        return next(iter(pairs_of(base.group(count))), None)
    except UnsupportedGuarantee:
        # So many units have no guarantee.
        return Pair(infinite=1.0, vanishing=1.0, symmetric=True)


def chain(epsilon: float, delta: float, size: int) -> tuple[Array, Array]:
    """Bounds (ε', δ') for a chain of (ε, δ)-private steps: for each b ≤ k/2 with γ_i = e^ε k-b
    times, then e^-ε b times.

    At ε' = (k-2b)·ε that gives δ' = 1 - e^{-bε} + δ·(e^{-bε}·(1 + … + e^{(k-b-1)ε}) + e^{-ε} + … +
    e^{-bε}). A curve is convex in e^ε, so between ε and -ε it is below the chord; that is its value
    at 0 if k is odd.
    """
    if epsilon == 0:
        return np.zeros(1), np.array([min(1.0, size * delta * (1 + 1e-15))])
    if size > families.MOST_ATOMS:
        revealed = math.exp(min(0.0, math.log(delta) + log_growth(epsilon, size) + _CLOSE)) if delta else 0.0
        return np.array([0.0, size * epsilon]), np.array([1.0, revealed])
    b = np.arange(size // 2 + size % 2 + 1, dtype=float)
    fall = -np.expm1(-b * epsilon)
    log_grown = (
        (size - 2 * b) * epsilon - epsilon + np.log(np.expm1(-(size - b) * epsilon) / math.expm1(-epsilon))
    )
    with np.errstate(over="ignore"):
        lost = delta * (np.exp(log_grown) + fall * math.exp(-epsilon) / -math.expm1(-epsilon))
    # a knot is rounded up, so that nothing is read beyond it
    knots = (size - 2 * b) * epsilon * (1 + 4e-16)
    deltas = np.minimum((fall + lost) * (1 + _CLOSE), 1.0)
    if size % 2:
        # from e^ε down to 1 is this share of the way to e^-ε
        deltas[-1] = deltas[-2] + (deltas[-1] - deltas[-2]) / (1 + math.exp(-epsilon))
        knots[-1] = 0.0
    return knots[::-1], np.minimum.accumulate(deltas[::-1])


def log_growth(epsilon: float, size: int) -> float:
    """log(1 + e^ε + … + e^{(size-1)ε})."""
    if epsilon == 0:
        return math.log(size)
    return (size - 1) * epsilon + math.log(math.expm1(-size * epsilon) / math.expm1(-epsilon))
