# SPDX-License-Identifier: Apache-2.0
"""A guarantee: an immutable tree that says what was run; every number is a view of it.

Read this first. There are three kinds of node:

- a *primitive* (`discreet.privacy.primitives`): one mechanism, which implements whatever it knows
  of itself;
- `ComposedGuarantee`: a counted bag of guarantees, in no order;
- *wrapped*: `SampledGuarantee`, `AllocatedGuarantee`, `ParallelGuarantee`, `GroupGuarantee`.

`a + b` is the guarantee of running both, where the question put to the second may depend on the
answer of the first, but not its parameters; `10 * a` of ten runs. Neither computes anything. Views
convert once, at the end, and take the least of all bounds that hold.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import ItemsView, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Literal, overload

from discreet import check
from discreet.errors import BadParameter, CannotCertify, UnsupportedGuarantee
from discreet.privacy.bag import Bag, BagItem
from discreet.privacy.bound import Bound, Comparison
from discreet.privacy.roots import CLOSE
from discreet.privacy.routes import (
    BY_NAME,
    ROUTES,
    Route,
    best_log_delta,
    best_route,
    closeness,
    is_binary,
)
from discreet.privacy.unit import Unit, same_unit

if TYPE_CHECKING:
    from discreet.privacy.explain import Explanation
    from discreet.privacy.gdp import GaussianFit
    from discreet.privacy.tradeoff import LossDistribution, Roc

#: The least number above zero.
_LEAST = math.ulp(0.0)
#: More alternatives than this (products of `Parallel` parts) are not enumerated.
_MOST_BAGS = 256


class Guarantee(ABC):
    """What a mechanism guarantees to one protected unit, whatever else the attacker knows.

    **Guarantee.** Every view is on the safe side: `epsilon`, `delta`, `advantage`, `renyi`,
    `concentrated` are never below the truth, `tradeoff` never above it, and `bound` holds on both
    sides. They hold for adaptively chosen questions with parameters fixed in advance (Zhu, Dong,
    Wang 2022, Theorem 10); post-processing never weakens them.

    >>> from discreet import privacy
    >>> train = 1_000 * privacy.gaussian(noise=1.0).sampled(rate=0.01) + privacy.laplace(scale=10)
    >>> round(train.epsilon(delta=1e-6), 3)
    2.163
    """

    @property
    @abstractmethod
    def unit(self) -> Unit:
        """Who is protected, under which neighbouring relation."""

    @property
    def assumes(self) -> frozenset[str]:
        """What the description takes for granted; empty for the built-in mechanisms."""
        return frozenset()

    @property
    def group_size(self) -> int:
        """How many units it is known to be about: more than one for a group whose noise was not
        rescaled.
        """
        return 1

    @property
    def is_part_of_a_step(self) -> bool:
        """Whether it is one part of a step, so that the guarantee of a group has to be computed for
        the whole step.
        """
        return False

    @abstractmethod
    def bags(self) -> list[tuple[tuple[BagItem, int], ...]]:
        """The alternatives of the tree, as bags of mechanisms; the guarantee is the worst of them."""

    @abstractmethod
    def _group_of(self, size: int) -> Guarantee:
        """The guarantee for a group of that many units (two or more)."""

    def _group_apart(self, size: int) -> Guarantee:
        """The guarantee at that distance (two or more); where nothing is sampled it is that of a
        group.
        """
        return self._group_of(size)

    # --- algebra ----------------------------------------------------------------------------------

    def __add__(self, other: Guarantee) -> Guarantee:
        return compose([(self, 1), (other, 1)]) if isinstance(other, Guarantee) else NotImplemented

    def __rmul__(self, count: int) -> Guarantee:
        return compose([(self, check.whole(count=count))])

    def __mul__(self, count: int) -> Guarantee:
        return self.__rmul__(count)

    @check.arguments
    def sampled(self, rate: float, scheme: str = "poisson", relation: str | None = None) -> Guarantee:
        """The mechanism on a secret, fresh random sample of the units; see
        `discreet.privacy.sampling`.
        """
        from discreet.privacy.sampling import sample

        return sample(self, rate, scheme, relation)

    @check.arguments
    def allocated(self, steps: int, times: int = 1) -> Guarantee:
        """One epoch in which each unit takes part in `times` secret, random runs out of `steps`;
        see `discreet.privacy.allocation`.
        """
        from discreet.privacy.allocation import allocate

        return allocate(self, steps, times)

    @check.arguments
    def group(self, size: int) -> Guarantee:
        """The guarantee for `size` units that join or leave together (a household, the rows of one
        person).
        """
        size = check.whole(size=size)
        return self if size == 1 else self._group_of(size)

    def at_distance(self, size: int) -> Guarantee:
        """The guarantee for any two data sets that are `size` neighbours apart, some units joining
        and some leaving.
        """
        size = check.whole(size=size)
        return self if size == 1 else self._group_apart(size)

    # --- views ------------------------------------------------------------------------------------

    @check.arguments
    def epsilon(self, delta: float, route: str | None = None) -> float:
        """The least ε that is proved at δ, rounded up; ∞ if there is none."""
        return _epsilon(self, check.delta(delta=delta), _route_by_name(route))[0]

    @check.arguments
    def delta(self, epsilon: float) -> float:
        """The least δ that is proved at ε, rounded up."""
        log_delta, _ = _log_delta(self, check.not_negative(epsilon=epsilon))
        if log_delta == -math.inf:
            return 0.0
        # A δ that is not zero stays positive.
        return min(1.0, max(math.exp(log_delta) * (1 + 1e-15), _LEAST))

    @check.arguments
    def bound(
        self, delta: float | None = None, epsilon: float | None = None, route: str | None = None
    ) -> Bound:
        """Certified bounds on ε at a given δ, or on δ at a given ε."""
        if (delta is None) == (epsilon is None):
            raise BadParameter(
                "DP107",
                "bound needs either delta or epsilon.",
                why="the curve of a guarantee is read at one point, given by one of its two coordinates.",
                fix="guarantee.bound(delta=1e-6)",
            )
        if epsilon is not None and route is not None:
            raise BadParameter(
                "DP107",
                "a route can be chosen for ε at a given δ, not for δ at a given ε.",
                why="most composition theorems are stated that way round.",
                fix="guarantee.bound(delta=1e-6, route='renyi improved')",
            )
        if delta is not None:
            delta = check.delta(delta=delta)
            upper, used = _epsilon(self, delta, _route_by_name(route))
            lower = min(upper, _lower_epsilon(self, delta)) if upper > 0 else 0.0
        else:
            upper = self.delta(check.not_negative(epsilon=epsilon))
            used = _log_delta(self, float(epsilon or 0.0))[1]
            lower = min(upper, _lower_delta(self, float(epsilon or 0.0)))
        return Bound(lower, upper, used.name, used.theorem, self.assumes)

    @check.arguments
    def compare(self, delta: float) -> Comparison:
        """Every route that applies, with its ε at δ and its theorem, the tightest first."""
        delta = check.delta(delta=delta)
        lower = _lower_epsilon(self, delta)
        rows = []
        for route in ROUTES:
            upper = max(route.epsilon(bag, delta) for bag in _numeric(self))
            if math.isfinite(upper):
                rows.append(
                    Bound(min(lower, upper), max(0.0, upper), route.name, route.theorem, self.assumes)
                )
        if not rows:
            upper, route = _epsilon(self, delta, None)
            rows.append(Bound(lower, upper, route.name, route.theorem, self.assumes))
        return Comparison(delta, tuple(sorted(rows, key=lambda row: row.upper)))

    @check.arguments
    def renyi(self, order: float) -> float:
        """The Rényi divergence of that order, both directions; ∞ where there is no finite one."""
        order = check.above_one(order=order)
        return max(bag.renyi(order) if bag.failure == 0 else math.inf for bag in _numeric(self))

    @check.arguments
    def concentrated(self) -> float:
        """The least proved ρ of zero-concentrated differential privacy; ∞ if there is none."""
        bounds = [(bag.concentrated, bag.failure) for bag in _numeric(self)]
        return max(rho if xi == 0 and failure == 0 else math.inf for (xi, rho), failure in bounds)

    @overload
    def gdp(self, *, delta: float = ..., regret: Literal[False] = ...) -> float: ...

    @overload
    def gdp(self, *, delta: float = ..., regret: Literal[True]) -> GaussianFit: ...

    @check.arguments
    def gdp(self, *, delta: float = 0.0, regret: bool = False) -> float | GaussianFit:
        """The least proved μ of Gaussian differential privacy, with δ(ε) ≤ δ_μ(ε) + `delta` for
        every ε; ∞ if there is none.

        With `regret=True` also how far the curve is from that of N(0, 1) against N(μ, 1).
        """
        from discreet.privacy.gdp import fit

        found = fit(self, check.delta(delta=delta))
        return found if check.flag(regret=regret) else found.mu

    @check.arguments
    def advantage(self) -> float:
        """The total variation distance: how much better than guessing an attacker can do."""
        return self.delta(0.0)

    @check.arguments
    def tradeoff(self, false_alarm: float) -> float:
        """The attacker's least miss rate at a false-alarm rate."""
        from discreet.privacy.tradeoff import tradeoff

        return tradeoff(self, check.probability(false_alarm=false_alarm))

    @check.arguments
    def roc(self, points: int = 201) -> Roc:
        """The attacker's best detection rate for every false-alarm rate."""
        from discreet.privacy.tradeoff import roc

        return roc(self, check.whole(at_least=2, points=points))

    def posterior(self, prior: float = 0.5, delta: float = 0.0) -> float:
        """The greatest posterior probability that an attacker with this prior reaches, save with
        probability δ.
        """
        from discreet.privacy.tradeoff import posterior

        return posterior(self, check.inner_probability(prior=prior), check.delta(delta=delta))

    def posterior_exceeds(self, threshold: float, prior: float = 0.5) -> float:
        """A bound on the probability that the posterior exceeds a threshold, for an attacker with
        this prior.
        """
        from discreet.privacy.tradeoff import posterior_exceeds

        prior = check.inner_probability(prior=prior)
        return posterior_exceeds(self, check.inner_probability(threshold=threshold), prior)

    @check.arguments
    def loss(self) -> LossDistribution:
        """The privacy-loss distribution of the (dominating) worst case."""
        from discreet.privacy.tradeoff import loss

        return loss(self)

    @check.arguments
    def implies(self, other: Guarantee) -> bool:
        """Whether everything with this guarantee provably has the other one too."""
        from discreet.privacy.order import implies

        return implies(self, other)

    # --- storage and display ----------------------------------------------------------------------

    @check.arguments
    def explain(self, *, units: int | None = None) -> Explanation:
        """What it means for one protected unit, in plain sentences with numbers from the curve.

        `units` is the public number of protected units, if there is one: a δ that is not below
        1/units is no protection.
        """
        from discreet.privacy.explain import explain

        return explain(self, units)

    def to_json(self) -> str:
        """A versioned description that `privacy.from_json` reads back to an equal guarantee."""
        from discreet.privacy.wire import to_json

        return to_json(self)

    def __str__(self) -> str:
        from discreet.privacy.show import text

        return text(self)

    def _repr_html_(self) -> str:
        from discreet.privacy.show import html

        return html(self)


@dataclass(frozen=True, repr=False, eq=False)
class ComposedGuarantee(Guarantee):
    """Several guarantees, each with a count, in no order."""

    counts: dict[Guarantee, int]

    @property
    def parts(self) -> ItemsView[Guarantee, int]:
        return self.counts.items()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposedGuarantee) and self.counts == other.counts

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(frozenset(self.parts))

    @property
    def unit(self) -> Unit:
        # `compose` has checked that all agree
        return next(iter(self.counts)).unit

    @property
    def assumes(self) -> frozenset[str]:
        return frozenset().union(*(part.assumes for part, _ in self.parts))

    @property
    def group_size(self) -> int:
        return min(part.group_size for part, _ in self.parts)

    def bags(self) -> list[tuple[tuple[BagItem, int], ...]]:
        combined: list[Counter[BagItem]] = [Counter()]
        for part, count in sorted(self.parts, key=repr):
            choices = _repeat(part.bags(), count)
            if len(choices) == 1:
                for bag in combined:
                    bag.update(choices[0])
                continue
            if len(combined) * len(choices) > _MOST_BAGS:
                raise _too_many_error("the parallel parts of this composition")
            combined = [bag + extra for bag in combined for extra in choices]
        return [tuple(bag.items()) for bag in combined]

    def _group_of(self, size: int) -> Guarantee:
        if any(part.is_part_of_a_step for part, _ in self.parts):
            return _group_of_whole(self, size)
        return compose([(part.group(size), count) for part, count in self.parts])

    def _group_apart(self, size: int) -> Guarantee:
        if any(part.is_part_of_a_step for part, _ in self.parts):
            return _group_of_whole(self, size)
        return compose([(part.at_distance(size), count) for part, count in self.parts])

    def __repr__(self) -> str:
        terms = sorted((f"{count} * {part!r}" if count > 1 else repr(part)) for part, count in self.parts)
        return " + ".join(terms)


def compose(parts: Iterable[tuple[Guarantee, int]]) -> Guarantee:
    """One guarantee for all of them, flattened; a single mechanism that ran once stays what it is."""
    parts = list(parts)
    same_unit([part.unit for part, _ in parts])
    counts: dict[Guarantee, int] = {}
    for part, count in parts:
        if isinstance(part, ComposedGuarantee) and count == 1 and not counts:
            # A copy hashes nothing again, so long sums are quick to build.
            counts = part.counts.copy()
            continue
        for inner, times in part.parts if isinstance(part, ComposedGuarantee) else ((part, 1),):
            counts[inner] = counts.get(inner, 0) + count * times
    if len(counts) == 1 and next(iter(counts.values())) == 1:
        return next(iter(counts))
    return ComposedGuarantee(counts)


def only_bag(guarantee: Guarantee) -> Bag:
    """The mechanisms of a guarantee that has no alternatives."""
    (entries,) = guarantee.bags()
    return Bag(list(entries))


def _group_of_whole(whole: Guarantee, size: int) -> Guarantee:
    from discreet.privacy.groups import GroupGuarantee

    if len(whole.bags()) > 1:
        raise UnsupportedGuarantee(
            "DP203",
            "no verified theorem gives group privacy for this composition.",
            why="it may reveal something with a small probability that depends on its other parts, and has alternatives.",
            fix="group each alternative on its own.",
        )
    return whole if size == 1 else GroupGuarantee(whole, size)


def _repeat(alternatives: list[tuple[tuple[BagItem, int], ...]], count: int) -> list[Counter[BagItem]]:
    """Every way to run `count` times what may each time be one of the alternatives."""
    bags = [Counter(dict(bag)) for bag in alternatives]
    if len(bags) == 1:
        return [_times(bags[0], count)]
    if math.comb(count + len(bags) - 1, len(bags) - 1) > _MOST_BAGS:
        raise _too_many_error(f"{count} runs of a parallel composition")
    combinations = [_times(bags[0], first) for first in range(count + 1)]
    totals = list(range(count + 1))
    for bag in bags[1:-1]:
        pairs = [
            (base + _times(bag, more), used + more)
            for base, used in zip(combinations, totals, strict=True)
            for more in range(count - used + 1)
        ]
        combinations, totals = [base for base, _ in pairs], [used for _, used in pairs]
    return [base + _times(bags[-1], count - used) for base, used in zip(combinations, totals, strict=True)]


def _too_many_error(what: str) -> UnsupportedGuarantee:
    return UnsupportedGuarantee(
        "DP203",
        f"{what} have too many combinations.",
        why="a record may sit in a different part each time, and every combination must be checked.",
        fix="replace parallel(…) by its most expensive part, which implies it.",
    )


def _times(bag: Counter[BagItem], count: int) -> Counter[BagItem]:
    return Counter({part: count * times for part, times in bag.items() if count})


@lru_cache(maxsize=256)
def _numeric(guarantee: Guarantee) -> tuple[Bag, ...]:
    """The alternatives, ready for numerics; remembered, because views share the work."""
    return tuple(Bag(list(entries)) for entries in guarantee.bags())


@lru_cache(maxsize=4096)
def _epsilon(guarantee: Guarantee, delta: float, route: Route | None) -> tuple[float, Route]:
    if route is None:
        bags = _numeric(guarantee)
        epsilon, route = max((best_route(bag, delta) for bag in bags), key=lambda result: result[0])
        if math.isinf(epsilon) and delta > max(bag.failure for bag in bags):
            raise CannotCertify(
                "DP301",
                f"no finite ε could be certified at δ = {delta:g}.",
                why="there is one, but it lies beyond what double precision can prove.",
                fix="ask for a greater δ, or split the composition.",
                bracket=(_lower_epsilon(guarantee, delta), math.inf),
            )
        return float(epsilon), route
    if not all(route.applies(bag) for bag in _numeric(guarantee)):
        raise UnsupportedGuarantee(
            "DP204",
            f"the route {route.name!r} says nothing about this guarantee.",
            why="its theorem needs what some mechanism here does not have (a greatest loss, a finite curve, …).",
            fix="leave route out, or look at  guarantee.compare(delta=…)  for the routes that apply.",
        )
    return max(0.0, *(float(route.epsilon(bag, delta)) for bag in _numeric(guarantee))), route


@lru_cache(maxsize=4096)
def _log_delta(guarantee: Guarantee, epsilon: float) -> tuple[float, Route]:
    results = [best_log_delta(bag, epsilon) for bag in _numeric(guarantee)]
    return max(results, key=lambda result: result[0])


@lru_cache(maxsize=4096)
def _lower_epsilon(guarantee: Guarantee, delta: float) -> float:
    """A certified lower bound: the best that is proved of any alternative and direction."""
    bounds = []
    for bag in _numeric(guarantee):
        exact = _exact(bag)
        if exact is not None:
            # the exact route aims closeness above δ; ask it for a δ so much greater, and a little
            # more
            eased = min(delta * math.exp(3 * closeness(bag)), 1 - 1e-16)
            bounds.append(exact.epsilon(bag, eased) * (1 - 3 * CLOSE))
        elif delta == 0 and bag.failure == 0:
            worst = max(composition.greatest for composition in bag.witnesses)
            bounds.append(math.inf if math.isinf(bag.worst_loss) else worst * (1 - 3 * CLOSE))
        else:
            bounds.append(_greatest_lower_epsilon(bag, delta))
    return max(0.0, *bounds)


def _greatest_lower_epsilon(bag: Bag, delta: float) -> float:
    """Over the directions, skipping one that a cheap upper bound shows to be behind."""
    best = 0.0
    for composition in bag.witnesses:
        if delta == 0 and composition.infinite == 0:
            best = max(best, composition.greatest * (1 - 3 * CLOSE))
        elif (
            best == 0
            or delta <= composition.infinite
            or composition.chernoff_log_delta(best) > math.log(delta)
        ):
            best = max(best, composition.lower_epsilon(delta))
    return best


@lru_cache(maxsize=4096)
def _lower_delta(guarantee: Guarantee, epsilon: float) -> float:
    logs = []
    for bag in _numeric(guarantee):
        exact = _exact(bag)
        if any(composition.infinite >= 1 for composition in bag.witnesses):
            logs.append(0.0)
        elif exact is not None and exact.log_delta is not None:
            logs.append(exact.log_delta(bag, epsilon) - 3 * closeness(bag))
        else:
            logs += [composition.lower_log_delta(epsilon) for composition in bag.witnesses]
    return math.exp(max(logs))


def alternatives(guarantee: Guarantee) -> tuple[Bag, ...]:
    """The alternatives of a tree, ready for numerics."""
    return _numeric(guarantee)


def has_closed_form(bag: Bag) -> bool:
    """Whether the bag is one mechanism with a pair, so that its proved curve is cheap to read."""
    return bag.gaussian is None and bag.alone is not None and bool(bag.alone.pairs())


def _exact(bag: Bag) -> Route | None:
    """The route whose value is the truth up to rounding, if there is one."""
    if bag.gaussian is not None:
        return BY_NAME["gdp"]
    # whoever does not say that the curve is attained may know only one that lies above it
    if not all(getattr(part, "tight", False) for part, _ in bag.entries):
        return None
    if is_binary(bag):
        return BY_NAME["optimal"]
    return BY_NAME["closed form"] if has_closed_form(bag) else None


def _route_by_name(route: str | None) -> Route | None:
    return BY_NAME[check.choice(BY_NAME, route=route)] if route is not None else None
