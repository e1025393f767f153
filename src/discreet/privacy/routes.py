# SPDX-License-Identifier: Apache-2.0
"""Every composition theorem of the field as a named route from a bag to (ε, δ).

**Guarantee.** Each route returns an upper bound of the truth, or ∞ where its theorem says nothing.
They differ in how tight they are, and `Guarantee.compare` shows all of them side by side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from discreet.privacy import divergences, families
from discreet.privacy.bag import Bag
from discreet.privacy.logarithms import log_or_minus_infinity
from discreet.privacy.losses import Composition
from discreet.privacy.pairs import Pair, is_closed, log_delta_of
from discreet.privacy.roots import CLOSE, root

#: Optimal composition of equal mechanisms is a sum of as many terms.
_MOST_TERMS = 10_000
#: Different mechanisms whose Rényi curves are added where nothing better is at hand.
_MOST_CURVES = 64


@dataclass(frozen=True)
class Route:
    """A theorem: `epsilon(bag, δ)` and, where it is used, `log_delta(bag, ε)`; both upper bounds."""

    name: str
    theorem: str
    epsilon: Callable[[Bag, float], float]
    log_delta: Callable[[Bag, float], float] | None = None
    applies: Callable[[Bag], bool] = bool


def _basic(bag: Bag, delta: float) -> float:
    """Parameters add. A mechanism without a greatest loss enters with ε(δ') at its share δ' of the
    slack.
    """
    if delta < bag.failure:
        return math.inf
    open_ended = sum(count for part, count in bag.entries if math.isinf(part.worst_loss()))
    if not open_ended:
        return bag.worst_loss
    share = (delta - bag.failure) / open_ended
    if share <= 0:
        return math.inf
    losses = [
        count
        * (part.worst_loss() if math.isfinite(part.worst_loss()) else best_epsilon(Bag([(part, 1)]), share))
        for part, count in bag.entries
    ]
    return math.fsum(losses) * (1 + CLOSE)


def _basic_log_delta(bag: Bag, epsilon: float) -> float:
    return log_or_minus_infinity(bag.failure) if epsilon >= bag.worst_loss else 0.0


def _advanced_epsilon(bag: Bag, delta: float) -> float:
    return _sub_gaussian(
        bag, delta, lambda epsilon: epsilon * math.expm1(epsilon) if epsilon < 700 else math.inf
    )


def _advanced_notes(bag: Bag, delta: float) -> float:
    return _sub_gaussian(bag, delta, lambda epsilon: epsilon * epsilon / 2)


def _sub_gaussian(bag: Bag, delta: float, drift: Callable[[float], float]) -> float:
    """√(2·log(1/δ')·Σε²) + Σ drift(ε), δ' = δ - Σδᵢ."""
    slack = delta - math.fsum(count * part.failure for part, count in bag.entries)
    if slack <= 0 or math.isinf(bag.worst_loss):
        return math.inf
    squares = math.fsum(count * part.worst_loss() ** 2 for part, count in bag.entries)
    drifts = math.fsum(count * drift(part.worst_loss()) for part, count in bag.entries)
    return (math.sqrt(2 * -math.log(slack) * squares) + drifts) * (1 + CLOSE)


def _optimal(bag: Bag, delta: float) -> float:
    """Each mechanism as the worst one with its (ε, δ): a sum over subsets, in closed form if all
    are equal.
    """
    if math.isinf(bag.worst_loss) or delta < bag.failure:
        return math.inf
    points = {(part.worst_loss(), part.failure) for part, _ in bag.entries}
    if len(points) == 1 and bag.count <= _MOST_TERMS:
        ((epsilon, failure),) = points
        if delta <= -math.expm1(bag.count * math.log1p(-failure)):
            # All of δ is spent on failing, and what does not fail has the sum of the losses.
            return bag.worst_loss
        profile = partial(families.optimal_composition_log_delta, epsilon, failure, bag.count)
        return min(bag.worst_loss, root(profile, math.log(delta) - closeness(bag), bag.worst_loss))
    if delta <= bag.failure:
        return bag.worst_loss if delta == bag.failure else math.inf
    return min(bag.worst_loss, _worst_case(bag).upper_epsilon(delta))


def _optimal_log_delta(bag: Bag, epsilon: float) -> float:
    if math.isinf(bag.worst_loss):
        return 0.0
    points = {(part.worst_loss(), part.failure) for part, _ in bag.entries}
    if len(points) == 1 and bag.count <= _MOST_TERMS:
        ((worst, failure),) = points
        return families.optimal_composition_log_delta(worst, failure, bag.count, epsilon) + closeness(bag)
    return _worst_case(bag).upper_log_delta(epsilon)


def _worst_case(bag: Bag) -> Composition:
    entries = [
        (families.randomized_response(p.worst_loss(), 2, p.failure), count) for p, count in bag.entries
    ]
    return Composition(entries)


def _concentrated_epsilon(bag: Bag, delta: float) -> float:
    slack, (xi, rho) = _slack(bag, delta), bag.concentrated
    if slack <= 0 or math.isinf(rho):
        return math.inf
    return (xi + rho + 2 * math.sqrt(rho * -math.log(slack))) * (1 + CLOSE)


def _concentrated_tight(bag: Bag, delta: float) -> float:
    xi, rho = bag.concentrated
    return _least_over_orders(
        lambda order: xi + rho * order, _slack(bag, delta), divergences.improved_epsilon
    )


def _renyi_basic(bag: Bag, delta: float) -> float:
    return _least_over_orders(bag.renyi, _slack(bag, delta), divergences.basic_epsilon, _stated_orders(bag))


def _renyi_improved(bag: Bag, delta: float) -> float:
    return _least_over_orders(
        bag.renyi, _slack(bag, delta), divergences.improved_epsilon, _stated_orders(bag)
    )


def _renyi_optimal(bag: Bag, delta: float) -> float:
    """The improved bound finds the order; the exact conversion, which costs more, is used around
    it.
    """
    slack = _slack(bag, delta)
    if slack <= 0:
        return math.inf
    log_slack = math.log(slack)
    orders = _orders_around(lambda order: divergences.improved_epsilon(bag.renyi(order), order, log_slack))
    values = [
        divergences.optimal_epsilon(bag.renyi(o), o, log_slack) for o in [*orders, *_stated_orders(bag)]
    ]
    return max(0.0, min(values)) * (1 + CLOSE)


def _renyi_log_delta(bag: Bag, epsilon: float) -> float:
    """The improved bound, minimised over orders."""

    def at(order: float) -> float:
        lam = order - 1
        return lam * (bag.renyi(order) - epsilon) + lam * math.log(lam) - order * math.log(order)

    return _after_failure(bag, min(0.0, _minimum(at, _stated_orders(bag))) * (1 - CLOSE) + CLOSE)


def _renyi_optimal_log_delta(bag: Bag, epsilon: float) -> float:
    def improved_log_delta(order: float) -> float:
        lam = order - 1
        return lam * (bag.renyi(order) - epsilon) + lam * math.log(lam) - order * math.log(order)

    orders = [*_orders_around(improved_log_delta), *_stated_orders(bag)]
    least = min(divergences.optimal_log_delta(bag.renyi(order), order, epsilon) for order in orders)
    return _after_failure(bag, min(0.0, least) * (1 - CLOSE) + CLOSE)


def _after_failure(bag: Bag, log_delta: float) -> float:
    """log(failure + (1 - failure)·δ)."""
    if not bag.failure:
        return min(0.0, log_delta)
    if bag.failure >= 1:
        return 0.0
    return min(
        0.0, float(np.logaddexp(log_or_minus_infinity(bag.failure), math.log1p(-bag.failure) + log_delta))
    )


def _gaussian(bag: Bag, delta: float) -> float:
    mu = bag.gaussian
    if mu is None:
        return math.inf
    if delta == 0:
        return math.inf
    return root(lambda at: families.gaussian_log_delta(mu, at), math.log(delta) - CLOSE, None)


def _gaussian_log_delta(bag: Bag, epsilon: float) -> float:
    return 0.0 if bag.gaussian is None else families.gaussian_log_delta(bag.gaussian, epsilon) + CLOSE


def _closed_form_epsilon(bag: Bag, delta: float) -> float:
    pair_list = _closed_pairs(bag)
    if not pair_list or bag.alone is None:
        return math.inf
    if delta <= bag.failure:
        return bag.worst_loss if delta == bag.failure else math.inf
    highest = bag.worst_loss if math.isfinite(bag.worst_loss) else None
    target = math.log(delta) - closeness(bag)
    roots = [root(partial(log_delta_of, pair), target, highest) for pair in pair_list]
    return min(max(roots), bag.worst_loss)


def _closed_log_delta(bag: Bag, epsilon: float) -> float:
    pair_list = _closed_pairs(bag)
    return max(log_delta_of(pair, epsilon) for pair in pair_list) + closeness(bag) if pair_list else 0.0


def _closed_pairs(bag: Bag) -> list[Pair]:
    """The pairs of a single mechanism: its profile needs no composition."""
    return list(bag.alone.pairs()) if bag.alone is not None else []


def closeness(bag: Bag) -> float:
    """How far log δ of an exact route may be off, either way."""
    if bag.count > 1:
        # three log-gamma functions of the count, each good to a few units in the last place
        return CLOSE + 16 * 2.0**-53 * math.lgamma(bag.count + 1.0)
    return CLOSE if all(is_closed(pair) for pair in _closed_pairs(bag)) else 1e-9


def _losses(bag: Bag, delta: float) -> float:
    if not has_pairs(bag):
        return math.inf
    if delta <= bag.failure:
        return bag.worst_loss if delta == bag.failure else math.inf
    first, *others = bag.compositions
    epsilon = first.upper_epsilon(delta)
    for other in others:
        # often a cheap bound already shows that this direction asks for less
        if math.isfinite(epsilon) and not other.stays_within(epsilon, math.log(delta)):
            epsilon = max(epsilon, other.upper_epsilon(delta))
    return epsilon


def _losses_log_delta(bag: Bag, epsilon: float) -> float:
    if not has_pairs(bag) or bag.failure >= 1:
        return 0.0
    first, *others = bag.compositions
    log_delta = first.upper_log_delta(epsilon)
    for other in others:
        if not other.chernoff_log_delta(epsilon) <= log_delta:
            log_delta = max(log_delta, other.upper_log_delta(epsilon))
    return log_delta


def has_pairs(bag: Bag) -> bool:
    """Whether at least one mechanism is known better than by a Rényi curve."""
    return any(getattr(part, "mu", None) is not None or part.pairs() for part, _ in bag.entries)


def is_binary(bag: Bag) -> bool:
    """Whether the bag is one kind of (leaky) randomized response, for which optimal composition is
    exact.
    """
    if len(bag.entries) != 1 or not 1 < bag.count <= _MOST_TERMS:
        return False
    pair_list = bag.entries[0][0].pairs()
    return len(pair_list) == 1 and pair_list[0].smooth is None and pair_list[0].losses.size == 2


def _has_worst_loss(bag: Bag) -> bool:
    return math.isfinite(bag.worst_loss)


def _has_curve(bag: Bag) -> bool:
    return any(math.isfinite(bag.renyi(order)) for order in [1.001, *_stated_orders(bag)])


def _has_line(bag: Bag) -> bool:
    return math.isfinite(bag.concentrated[1])


ROUTES = (
    Route("basic", "parameters add (Dwork et al. 2006)", _basic, _basic_log_delta),
    Route(
        "advanced", "Dwork, Rothblum, Vadhan 2010, Theorem III.3", _advanced_epsilon, None, _has_worst_loss
    ),
    Route(
        "advanced (notes)",
        "ε√(2k·log 1/δ) + kε²/2: ε-DP is (ε²/2)-zCDP (Bun, Steinke 2016)",
        _advanced_notes,
        None,
        _has_worst_loss,
    ),
    Route(
        "optimal",
        "Kairouz, Oh, Viswanath 2015; Murtagh, Vadhan 2016",
        _optimal,
        _optimal_log_delta,
        _has_worst_loss,
    ),
    Route("zcdp", "Bun, Steinke 2016, Proposition 1.3", _concentrated_epsilon, None, _has_line),
    Route("zcdp tight", "Canonne, Kamath, Steinke 2020, Corollary 13", _concentrated_tight, None, _has_line),
    Route("renyi basic", "Mironov 2017, Proposition 3", _renyi_basic, None, _has_curve),
    Route(
        "renyi improved",
        "Canonne, Kamath, Steinke 2020, Proposition 12",
        _renyi_improved,
        _renyi_log_delta,
        _has_curve,
    ),
    Route(
        "renyi optimal",
        "the worst pair of two outcomes at each order",
        _renyi_optimal,
        _renyi_optimal_log_delta,
        _has_curve,
    ),
    Route(
        "gdp",
        "Dong, Roth, Su 2022, Corollary 2.13",
        _gaussian,
        _gaussian_log_delta,
        lambda bag: bag.gaussian is not None,
    ),
    Route(
        "closed form",
        "the profile of one mechanism",
        _closed_form_epsilon,
        _closed_log_delta,
        lambda bag: bool(_closed_pairs(bag)),
    ),
    Route(
        "loss distribution",
        "Zhu, Dong, Wang 2022, Theorem 10; certified Fourier inversion",
        _losses,
        _losses_log_delta,
        has_pairs,
    ),
)
BY_NAME = {route.name: route for route in ROUTES}


def promising_routes(bag: Bag) -> list[Route]:
    """The routes that can be the tightest for this bag: an exact one alone, else all that might
    win.
    """
    if bag.gaussian is not None:
        return [BY_NAME["gdp"]]
    if _closed_pairs(bag):
        return [BY_NAME["closed form"]]
    if is_binary(bag):
        return [BY_NAME["optimal"]]
    names = ["basic"] if math.isfinite(bag.worst_loss) else []
    names += ["loss distribution"] if has_pairs(bag) else ["zcdp tight", "renyi improved", "renyi optimal"]
    return [BY_NAME[name] for name in names]


def best_epsilon(bag: Bag, delta: float) -> float:
    """The least ε over the chosen routes."""
    return best_route(bag, delta)[0]


def best_route(bag: Bag, delta: float) -> tuple[float, Route]:
    """The least ε and the route that gave it; a Rényi bound is the last resort."""
    candidates = [
        (route.epsilon(bag, delta), index, route) for index, route in enumerate(promising_routes(bag))
    ]
    if delta > bag.failure and (all(math.isinf(epsilon) for epsilon, _, _ in candidates) or _is_rough(bag)):
        for route in (BY_NAME["renyi improved"], BY_NAME["renyi optimal"]):
            candidates.append((route.epsilon(bag, delta), len(candidates), route))
    epsilon, _, route = min(candidates)
    return max(0.0, epsilon), route


def _is_rough(bag: Bag) -> bool:
    """Whether a lattice was needed although great losses are rare: then another theorem may be
    closer.
    """
    if "compositions" not in bag.__dict__ or len(bag.entries) > _MOST_CURVES:
        return False
    rough = [composition.spectrum for composition in bag.compositions if composition.is_rough]
    return any(spectrum is not None and spectrum.is_cuttable for spectrum in rough)


def best_log_delta(bag: Bag, epsilon: float) -> tuple[float, Route]:
    """The least log δ and the route that gave it."""
    routes = [route for route in promising_routes(bag) if route.log_delta is not None] or [
        BY_NAME["renyi improved"]
    ]
    if not has_pairs(bag):
        names = ["renyi improved", "renyi optimal", *(["basic"] if math.isfinite(bag.worst_loss) else [])]
        routes = [BY_NAME[name] for name in names]
    candidates = [
        (route.log_delta(bag, epsilon), index, route) for index, route in enumerate(routes) if route.log_delta
    ]
    log_delta, _, route = min(candidates)
    return min(0.0, log_delta), route


def _slack(bag: Bag, delta: float) -> float:
    """The δ' with failure + (1 - failure)·δ' = δ."""
    return (delta - bag.failure) / (1 - bag.failure) if bag.failure < 1 else 0.0


def _stated_orders(bag: Bag) -> list[float]:
    return [order for part, _ in bag.entries for order in getattr(part, "orders", ())]


def _least_over_orders(
    curve: Callable[[float], float],
    slack: float,
    convert: Callable[[float, float, float], float],
    orders: list[float] | None = None,
) -> float:
    if slack <= 0:
        return math.inf
    log_slack = math.log(slack)
    value = _minimum(lambda order: convert(curve(order), order, log_slack), orders or [])
    return max(0.0, value) * (1 + CLOSE)


def _minimum(function: Callable[[float], float], orders: list[float]) -> float:
    """The least value over orders: any order is valid, so a grid refined around its best point is
    enough.
    """
    return min(function(order) for order in [*orders, *_orders_around(function)])


def _orders_around(function: Callable[[float], float]) -> list[float]:
    """A few orders around the one where a function is least."""
    low, high = math.log(1e-4), math.log(1e7)
    for _ in range(8):
        grid = np.linspace(low, high, 14)
        at = int(np.nanargmin([function(1 + math.exp(x)) for x in grid]))
        low, high = grid[max(at - 1, 0)], grid[min(at + 1, grid.size - 1)]
    best = grid[at]
    return [1 + math.exp(best + shift) for shift in (-0.2, -0.1, 0.0, 0.1, 0.2)]


__all__ = [
    "BY_NAME",
    "CLOSE",
    "ROUTES",
    "Route",
    "best_epsilon",
    "best_log_delta",
    "best_route",
    "has_pairs",
]
