# SPDX-License-Identifier: Apache-2.0
"""A guarantee as a test that an attacker runs: trade-off curve, ROC, posterior, loss distribution.

Someone who sees the answer must decide between two neighbouring data sets. Every (ε, δ) that holds
forbids a corner: with false alarms α the miss rate is at least max(0, 1 - δ - e^ε·α, e^{-ε}·(1 - δ
- α)) (Wasserman, Zhou 2010). The trade-off curve is the supremum over the whole profile, so any set
of proved (ε, δ) gives a value on the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

from discreet.privacy.bag import Bag
from discreet.privacy.guarantee import Guarantee, alternatives, has_closed_form
from discreet.privacy.logarithms import Array
from discreet.privacy.pairs import Pair, dot
from discreet.privacy.routes import best_log_delta, has_pairs


@dataclass(frozen=True, eq=False)
class Roc:
    """The ROC curve of the best attacker: its detection rate at each false-alarm rate.

    **Guarantee.** No attacker detects more at any of these false-alarm rates.

    >>> from discreet import privacy
    >>> privacy.leaky(0.1).roc(points=2).detection.round(9).tolist()
    [0.1, 1.0]
    """

    false_alarm: Array
    detection: Array

    @property
    def area(self) -> float:
        """The area under the curve: the chance to order one pair of answers correctly."""
        return float(np.trapezoid(self.detection, self.false_alarm))


@dataclass(frozen=True, eq=False)
class LossDistribution:
    """The distribution of the privacy loss of the dominating worst case: `masses` at `losses`.

    **Guarantee.** It dominates the mechanism. `infinite` is the probability that everything is
    revealed.

    >>> from discreet import privacy
    >>> privacy.randomized_response(1.0).loss().losses.tolist()
    [-1.0, 1.0]
    """

    losses: Array
    masses: Array
    infinite: float

    @property
    def mean(self) -> float:
        """The expected loss, given that it is finite (a Kullback-Leibler divergence)."""
        return float(dot(self.masses, self.losses) / self.masses.sum())

    @property
    def variance(self) -> float:
        """The variance of the loss, given that it is finite."""
        return float(dot(self.masses, (self.losses - self.mean) ** 2) / self.masses.sum())


def tradeoff(guarantee: Guarantee, false_alarm: float) -> float:
    """See `Guarantee.tradeoff`."""
    return min(_bag_tradeoff(bag, false_alarm) for bag in alternatives(guarantee))


def roc(guarantee: Guarantee, points: int) -> Roc:
    """See `Guarantee.roc`; the points lie denser towards both ends."""
    false_alarm = (1 - np.cos(np.linspace(0, math.pi, points))) / 2
    curves = [_curve(bag, false_alarm) for bag in alternatives(guarantee)]
    return Roc(false_alarm, np.minimum(1.0, 1 - np.min(curves, axis=0)))


def posterior(guarantee: Guarantee, prior: float, delta: float) -> float:
    """See `Guarantee.posterior`. P(L > t) ≤ δ(s)/(1 - e^{s-t}) for every s < t, so t = ε(cδ) -
    log(1-c) will do.
    """
    if delta == 0:
        shift = guarantee.epsilon(0.0)
    else:
        shift = min(guarantee.epsilon(share * delta) - math.log1p(-share) for share in (0.5, 0.8, 0.95))
        shift = min(shift, guarantee.epsilon(0.0))
    odds = prior / (1 - prior)
    return (
        1.0 if shift > 700 else min(1.0, odds * math.exp(shift) / (1 + odds * math.exp(shift)) * (1 + 1e-14))
    )


def posterior_exceeds(guarantee: Guarantee, threshold: float, prior: float) -> float:
    """See `Guarantee.posterior_exceeds`."""
    need = math.log(threshold / (1 - threshold)) - math.log(prior / (1 - prior))
    if need <= 0:
        return 1.0
    starts = need - need * np.linspace(0.05, 1.0, 12)
    guesses = [rough_delta(guarantee, float(s)) / -math.expm1(s - need) for s in starts]
    best = float(starts[int(np.argmin(guesses))])
    reached = guarantee.delta(best) / -math.expm1(best - need)
    return min(1.0, reached, *([guarantee.delta(need)] if guarantee.epsilon(0.0) <= need else []))


def loss(guarantee: Guarantee) -> LossDistribution:
    """See `Guarantee.loss`: the alternative and direction with the greater ε at δ = 1e-6."""
    bags = alternatives(guarantee)
    compositions = [composition for bag in bags for composition in bag.compositions]
    worst = max(compositions, key=lambda composition: composition.chernoff_log_delta(1.0))
    pair = _sort_losses(worst.as_pair())
    return LossDistribution(pair.losses, pair.p, pair.infinite)


def _bag_tradeoff(bag: Bag, false_alarm: float) -> float:
    if false_alarm >= 1 or bag.failure >= 1:
        return 0.0
    if bag.gaussian is not None:
        return float(ndtr(-ndtri(false_alarm) - bag.gaussian)) * (1 - 1e-13)
    if false_alarm == 0:
        return 1 - bag.failure
    if has_closed_form(bag):
        return _along_exact_profile(bag, false_alarm)
    rough = _curve(bag, np.array([false_alarm]))[0]
    if false_alarm > 1e-5 or not has_pairs(bag):
        return float(rough)
    steep = _rough_slope(bag, false_alarm)
    return float(
        max(rough, _line(steep, math.exp(best_log_delta(bag, steep)[0]), np.array([false_alarm]))[0])
    )


def _along_exact_profile(bag: Bag, false_alarm: float) -> float:
    """The supremum of the lines: at the kinks of a profile with atoms, else by golden section."""
    assert bag.alone is not None

    def at(epsilon: float) -> float:
        delta = math.exp(best_log_delta(bag, epsilon)[0])
        return float(_line(epsilon, delta, np.array([false_alarm]))[0])

    pairs = bag.alone.pairs()
    kinks = np.unique(np.concatenate([[0.0], *(pair.losses[pair.losses > 0] for pair in pairs)]))
    best = max((at(float(epsilon)) for epsilon in _thin_out(kinks, 400)), default=0.0)
    if all(pair.smooth is None for pair in pairs):
        return max(0.0, best) * (1 - 1e-12)
    top = max(pair.greatest for pair in pairs)
    return max(0.0, best, _highest(at, 0.0, min(top, 800.0))) * (1 - 1e-12)


def _curve(bag: Bag, false_alarm: Array) -> Array:
    """The trade-off curve of a bag from the distribution of its loss, good to about 1e-12 in
    absolute terms.
    """
    if bag.gaussian is not None:
        return np.asarray(ndtr(-ndtri(false_alarm) - bag.gaussian) * (1 - 1e-13))
    epsilons, deltas = _profile(bag)
    curve = np.zeros_like(false_alarm)
    for epsilon, delta in zip(epsilons.tolist(), deltas.tolist(), strict=True):
        curve = np.maximum(curve, _line(epsilon, delta, false_alarm))
    return curve


def _profile(bag: Bag) -> tuple[Array, Array]:
    """A few hundred proved points (ε, δ), the greater of both directions."""
    if has_closed_form(bag):
        assert bag.alone is not None
        pairs = bag.alone.pairs()
        top = min(max(pair.greatest for pair in pairs), 700.0)
        kinks = np.concatenate([pair.losses[(pair.losses > 0) & (pair.losses < 700)] for pair in pairs])
        epsilons = np.unique(np.concatenate([np.linspace(0, top, 400), _thin_out(np.unique(kinks), 400)]))
        return epsilons, np.array([math.exp(best_log_delta(bag, float(epsilon))[0]) for epsilon in epsilons])
    sorted_pairs = [_sort_losses(composition.as_pair()) for composition in bag.compositions]
    epsilons = np.unique(np.concatenate([[0.0], *(_telling_losses(pair) for pair in sorted_pairs)]))
    deltas = np.max([_deltas(pair, epsilons) for pair in sorted_pairs], axis=0)
    if not has_pairs(bag):
        # a curve of divergences gives a sharper δ at ε = 0 than the pair that stands for it
        deltas[0] = min(deltas[0], math.exp(best_log_delta(bag, 0.0)[0]))
    return epsilons, deltas


def _sort_losses(pair: Pair) -> Pair:
    order = np.argsort(pair.losses, kind="stable")
    return replace(pair, losses=pair.losses[order], p=pair.p[order], q=pair.q[order])


def _telling_losses(pair: Pair) -> Array:
    """A few hundred losses that cut both distributions into equal shares, or all of them if there
    are few.
    """
    over = (pair.losses > 0) & (pair.losses < 700)
    losses = pair.losses[over]
    if losses.size <= 1000:
        return losses
    shares = np.concatenate([np.geomspace(1e-12, 1e-3, 60), np.linspace(1e-3, 1, 240)])
    picked = [
        np.searchsorted(-np.cumsum(mass[over][::-1])[::-1], -shares * mass[over].sum())
        for mass in (pair.p, pair.q)
    ]
    return np.asarray(losses[np.clip(np.concatenate(picked), 0, losses.size - 1)])


def _deltas(pair: Pair, epsilons: Array) -> Array:
    """δ at many ε ≥ 0 for atoms in increasing order, by sums from the right."""
    over = pair.losses > 0
    losses, p = pair.losses[over], pair.p[over]
    p_sum = np.append(np.cumsum(p[::-1])[::-1], 0.0)
    q_sum = np.append(np.cumsum((p * np.exp(-losses))[::-1])[::-1], 0.0)
    start = np.searchsorted(losses, epsilons, side="right")
    finite = np.maximum(p_sum[start] - np.exp(epsilons) * q_sum[start], 0.0)
    return np.asarray(np.minimum(1.0, pair.infinite + finite + 1e-14))


def _line(epsilon: float, delta: float, false_alarm: Array) -> Array:
    with np.errstate(divide="ignore"):
        # from 1 on nothing is left of the line
        scaled_alarm = np.exp(np.minimum(epsilon + np.log(false_alarm), 0.0)) * (1 + 1e-13)
    steep = 1 - delta - scaled_alarm
    return np.asarray(np.maximum(0.0, np.maximum(steep, math.exp(-epsilon) * (1 - delta - false_alarm))))


def rough_delta(guarantee: Guarantee, epsilon: float) -> float:
    """A quick upper bound of δ, for choosing where to look."""
    logs = [
        best_log_delta(bag, epsilon)[0]
        if bag.gaussian is not None or has_closed_form(bag) or not has_pairs(bag)
        else max(composition.chernoff_log_delta(epsilon) for composition in bag.compositions)
        for bag in alternatives(guarantee)
    ]
    return math.exp(max(logs))


def _rough_slope(bag: Bag, false_alarm: float) -> float:
    """The ε whose line is about the highest at a tiny false-alarm rate."""

    def at(epsilon: float) -> float:
        log_delta = max(composition.chernoff_log_delta(epsilon) for composition in bag.compositions)
        return 1 - math.exp(log_delta) - math.exp(min(epsilon, 700.0)) * false_alarm

    grid = np.linspace(0.0, -math.log(false_alarm), 40)
    return float(grid[int(np.argmax([at(float(epsilon)) for epsilon in grid]))])


def _highest(function: Callable[[float], float], low: float, high: float) -> float:
    """The greatest value of a unimodal function: a grid, then golden section around its best point."""
    grid = np.linspace(low, high, 65)
    values = [function(float(x)) for x in grid]
    at = int(np.argmax(values))
    low, high = float(grid[max(at - 1, 0)]), float(grid[min(at + 1, 64)])
    shrink = (math.sqrt(5) - 1) / 2
    for _ in range(60):
        left, right = high - shrink * (high - low), low + shrink * (high - low)
        low, high = (low, right) if function(left) >= function(right) else (left, high)
    return max(values[at], function((low + high) / 2))


def _thin_out(values: Array, count: int) -> Array:
    return values if values.size <= count else values[np.linspace(0, values.size - 1, count).astype(int)]
