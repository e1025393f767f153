# SPDX-License-Identifier: Apache-2.0
"""Rényi curves: divergences of the standard mechanisms, and conversions to (ε, δ).

A curve is a function order ↦ D_order that holds in both directions. Conversions are stated for one
order; the routes minimise over orders. All of them are upper bounds; the last one is exact for one
order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from discreet.privacy.lattice import knots_around, spread
from discreet.privacy.logarithms import Array, log_choose
from discreet.privacy.pairs import Pair

if TYPE_CHECKING:
    from discreet.privacy.comonotone import GaussianShifts

Curve = Callable[[float], float]

#: A curve computed by quadrature is raised by this, many times its error.
_SAFE = 1e-11


def of_pure(epsilon: float, order: float) -> float:
    """The largest D_order of any ε-DP mechanism, attained by randomized response.

    [log cosh((order - 1/2)ε) - log cosh(ε/2)] / (order - 1).
    """
    far, near = _log_cosh((order - 0.5) * epsilon), _log_cosh(epsilon / 2)
    # near order 1 both nearly cancel
    return min(epsilon, (far - near + 1e-15 * (far + near)) / (order - 1))


def concentrated_of_pure(epsilon: float) -> float:
    """ε-DP implies ρ-zCDP with ρ = ε·tanh(ε/2); equality for randomized response as the order tends
    to 1.
    """
    return epsilon * math.tanh(epsilon / 2)


def of_range(epsilon: float, order: float) -> float:
    """The largest D_order of any mechanism whose losses span at most ε (bounded range), as of the
    exponential mechanism.

    The worst pairs have two outcomes, with losses t and t - ε for some t in [0, ε] (Dong, Durfee,
    Rogers 2020), and probability p = (e^ε - e^t)/(e^ε - 1) of the first. With k = order - 1 the
    moment p·e^{kt} + (1-p)·e^{k(t-ε)} is e^{kt}·(A - B·e^t), A = (e^ε - e^{-kε})/(e^ε - 1), B = (1
    - e^{-kε})/(e^ε - 1): greatest at e^t = kA/(order·B), where it is e^{kt}·A/order. ε²·order/8
    (Cesar, Rogers 2021) is a bound too, and the better one where the terms above cancel.
    """
    simple = min(of_pure(epsilon, order), order * epsilon**2 / 8 * (1 + 1e-15))
    k = order - 1
    log_a = _log_missing(order * epsilon) - _log_missing(epsilon)
    log_b = _log_missing(k * epsilon) - _log_missing(epsilon) - epsilon
    at = math.log(k / order) + log_a - log_b
    exact = at + (log_a - math.log(order)) / k
    # each logarithm is good to a few units of its last place, and what is left of them may be far
    # smaller
    size = epsilon + sum(abs(_log_missing(x)) for x in (epsilon, k * epsilon, order * epsilon))
    lost = 4e-15 * (size + math.log(order) + abs(math.log(k)) + 1) * (1 + 1 / k)
    return min(simple, max(exact, 0.0) + lost)


def _log_missing(x: float) -> float:
    """log(1 - e^{-x})."""
    return math.log(-math.expm1(-x))


def of_laplace(epsilon: float, order: float) -> float:
    """Mironov 2017, Proposition 6."""
    lam = order - 1
    if order * epsilon < 1:
        # both terms nearly cancel: work with what is left, and round up by the error that can
        # remain
        up = order / (2 * order - 1) * math.expm1(lam * epsilon)
        down = lam / (2 * order - 1) * math.expm1(-order * epsilon)
        return (math.log1p(max(0.0, up + down)) * (1 + 1e-15) + 1e-15 * up) / lam
    up = math.log(order / (2 * order - 1)) + lam * epsilon
    down = math.log(lam / (2 * order - 1)) - order * epsilon
    return (float(np.logaddexp(up, down)) + 1e-15 * (1 + abs(up))) / lam


def of_two_gaussians(shift: float, ratio: float, order: float) -> float:
    """D_order of N(0, ratio²) against N(shift, 1); infinite from some order on if ratio > 1."""
    mixed = order + (1 - order) * ratio * ratio
    if mixed <= 0:
        return math.inf
    log_term = (math.log(mixed) / 2 - (1 - order) * math.log(ratio)) / (1 - order)
    return order * shift * shift / (2 * mixed) + log_term


def of_diluted_gaussian(mu: float, rate: float, order: float, *, removes: bool) -> float:
    """The Poisson-sampled Gaussian in one direction, by the trapezoidal rule on the real line.

    With r(x) = 1 - q + q·e^{μx - μ²/2}: log E r^order under N(0, 1) (a record is removed), or log E
    r^{1-order} (added). The integrand is analytic in a strip of half-width π/μ, where the rule
    converges like e^{-2π·width/step} (Trefethen, Weideman 2014), so a step of an eighth of it is
    exact to rounding.
    """
    width = min(math.pi / mu, 3.0)
    step = min(width / 8, 0.125)
    power = order if removes else 1 - order
    top = 12.0 + (max(order, 1.0) * mu if removes else mu)
    count = math.ceil((top + 40.0) / step)
    if count > 2_000_000:
        return math.inf
    x = -40.0 + step * np.arange(count + math.ceil(40.0 / step))
    log_ratio = np.logaddexp(math.log1p(-rate), math.log(rate) + mu * x - mu * mu / 2)
    logs = power * log_ratio - x * x / 2
    return _by_trapezia(logs, step, order)


def of_gaussian_shifts(shifts: GaussianShifts, order: float, *, removes: bool) -> float:
    """The same for a group of units: r(x) = Σ p_j·e^{jμx - j²μ²/2} is analytic without zeros in a
    strip of half-width π/kμ.
    """
    steepest = shifts.size * shifts.mu
    step = min(math.pi / steepest / 8, 0.125)
    top = 12.0 + (max(order, 1.0) * steepest if removes else steepest)
    first, last = -math.ceil(40.0 / step), math.ceil((top + 40.0) / step)
    if (last - first) * (shifts.size + 1) > 50_000_000:
        return math.inf
    x = step * np.arange(first, last)
    logs = (order if removes else 1 - order) * shifts.loss(x)[0] - x * x / 2
    return _by_trapezia(logs, step, order)


def _by_trapezia(logs: Array, step: float, order: float) -> float:
    """D_order from the logarithms of √(2π) times the integrand at points `step` apart, rounded up."""
    peak = float(logs.max())
    log_mean = peak + math.log(float(np.exp(logs - peak).sum()) * step / math.sqrt(2 * math.pi))
    return (max(0.0, log_mean) * (1 + _SAFE) + 4e-15) / (order - 1)


def of_pair(pair: Pair, order: float) -> float:
    """D_order of any pair: exact for atoms, from a dominating discretisation for a smooth part."""
    if pair.infinite > 0:
        return math.inf
    if pair.smooth is None:
        return _log_mean_exp(pair.p, (order - 1) * pair.losses) / (order - 1)
    centre = 0.0
    for growth in (1 / 8, 1 / 512):
        masses = spread(
            pair, knots_around(centre, pair.least, pair.greatest, (pair.greatest - pair.least) * 1e-9, growth)
        )
        logs = masses.log_p + (order - 1) * masses.losses
        top = float(logs.max())
        weights = np.exp(logs - top)
        centre = float(masses.losses[np.searchsorted(np.cumsum(weights), weights.sum() / 2)])
    return max(0.0, top + math.log(float(weights.sum()))) / (order - 1) * (1 + _SAFE)


def of_unfailing(pair: Pair, order: float) -> float:
    """D_order of a pair of tables without what is lost, where both distributions lose the same: (P,
    Q) given that the loss is finite.

    If P and Q each have mass δ where the other has none, P = (1-δ)·P̂ + δ·P̃ and Q = (1-δ)·Q̂ +
    δ·Q̃ with P̂, Q̂ the distributions given that the loss is finite, and the loss of (P̂, Q̂) is
    that of (P, Q): both masses are divided by 1 - δ.
    """
    return _log_mean_exp(pair.p / (1 - pair.infinite), (order - 1) * pair.losses) / (order - 1)


def concentrated_of_unfailing(pair: Pair) -> float:
    """The least ρ with D_order ≤ ρ·order at every order, rounded up by about 1e-4; the pair is that
    of `of_unfailing`.

    With t = order - 1 and K(t) = log E e^{tL}, ρ is the supremum of K(t)/(t(t+1)). K is convex, so
    between two points it lies below a + b·t, their chord, and a ≤ 0 because K(0) = 0; then (a +
    b·t)/(t(t+1)) rises up to t = (|a| + √(a² + |a|b))/b and falls after it. Before the first point
    K(t)/t only grows; after the last one D ≤ max L.
    """
    greatest = pair.greatest
    # ρ is at least this.
    half = of_unfailing(pair, 2.0) / 2
    if greatest <= 0 or half <= greatest * 1e-9:
        return concentrated_of_pure(greatest)
    t = np.geomspace(1e-4 / (1 + greatest), greatest / half, 600)
    K = np.array([at * of_unfailing(pair, 1 + at) for at in t.tolist()])
    slope = np.diff(K) / np.diff(t)
    below = np.maximum(0.0, slope * t[:-1] - K[:-1])
    top = (below + np.sqrt(below * (below + slope))) / np.maximum(slope, 1e-300)
    at = np.clip(top, t[:-1], t[1:])
    inside = (K[:-1] + slope * (at - t[:-1])) / (at * (at + 1))
    return float(max(K[0] / t[0], inside.max(), greatest / (1 + t[-1]))) * (1 + 1e-9)


def of_sampled_curve(curve: Curve, rate: float, order: float) -> float:
    """Poisson sampling of a mechanism known only by its curve (add-remove), at the next whole
    order.

    Removal: E((1-q) + q·r)^n expanded by the binomial theorem, E r^j ≤ e^{(j-1)·curve(j)}; exact
    for any base. Addition: the loss -log(1 - q + q·e^{-L}) never exceeds -log(1 - q).
    """
    whole = max(2, math.ceil(order))
    if whole > 100_000:
        return curve(order)
    j = np.arange(whole + 1, dtype=float)
    moments = np.array([0.0, 0.0] + [(i - 1) * curve(float(i)) for i in range(2, whole + 1)])
    logs = log_choose(whole, j) + (whole - j) * math.log1p(-rate) + j * math.log(rate) + moments
    top = float(logs.max())
    if math.isinf(top):
        return min(curve(order), math.inf)
    removed = (top + math.log(float(np.exp(logs - top).sum()))) / (whole - 1)
    return max(removed, min(curve(order), -math.log1p(-rate))) * (1 + _SAFE)


def basic_epsilon(divergence: float, order: float, log_delta: float) -> float:
    """ε = D + log(1/δ)/(order - 1) (Mironov 2017, Proposition 3)."""
    return divergence - log_delta / (order - 1)


def improved_epsilon(divergence: float, order: float, log_delta: float) -> float:
    """Canonne, Kamath, Steinke 2020, Proposition 12."""
    lam = order - 1
    return divergence + (-log_delta + lam * math.log(lam) - order * math.log(order)) / lam


def optimal_epsilon(divergence: float, order: float, log_delta: float) -> float:
    """The least ε that D_order ≤ divergence allows at δ: the worst pair has two outcomes (data
    processing).

    With u = p/q and v = (1-p)/(1-q) on the curve D_order = divergence, the worst ε has e^ε = (1 -
    1/order)·(u^order - v^order)/(u^{order-1} - v^{order-1}). The curve is walked through v, and
    δ(e^ε) is convex, so interpolating between two of its points never understates.
    """
    upper = improved_epsilon(divergence, order, log_delta)
    if not 0 < divergence < math.inf or log_delta < -600 or order * divergence > 300 or order < 1.01:
        return upper
    low, high = -40.0, math.log(1 - 1e-9)
    best = upper
    for _ in range(6):
        log_v = np.linspace(low, high, 65)
        log_gamma, delta = _binary_curve(divergence, order, log_v)
        target = math.exp(log_delta)
        above = np.flatnonzero((delta[:-1] >= target) & (delta[1:] < target))
        if above.size == 0:
            above = np.flatnonzero((delta[:-1] < target) & (delta[1:] >= target))
        if above.size == 0:
            return best
        at = int(above[0])
        best = min(upper, _chord(log_gamma[at], delta[at], log_gamma[at + 1], delta[at + 1], target))
        low, high = float(log_v[at]), float(log_v[at + 1])
    return max(0.0, best) * (1 + 1e-12)


def optimal_log_delta(divergence: float, order: float, epsilon: float) -> float:
    """The greatest log δ at ε that D_order ≤ divergence allows; see `optimal_epsilon`."""
    lam = order - 1
    upper = min(0.0, lam * (divergence - epsilon) + lam * math.log(lam) - order * math.log(order))
    if not 0 < divergence < math.inf or upper < -600 or order * divergence > 300 or order < 1.01:
        return upper
    low, high = -40.0, math.log(1 - 1e-9)
    for _ in range(6):
        log_v = np.linspace(low, high, 65)
        log_gamma, delta = _binary_curve(divergence, order, log_v)
        inside = np.flatnonzero((log_gamma[:-1] - epsilon) * (log_gamma[1:] - epsilon) <= 0)
        if inside.size == 0:
            return upper
        at = int(inside[0])
        low, high = float(log_v[at]), float(log_v[at + 1])
    ends = np.exp(log_gamma[at : at + 2] - epsilon)
    share = (1.0 - ends[0]) / (ends[1] - ends[0]) if ends[1] != ends[0] else 0.0
    interpolated = float(delta[at] + share * (delta[at + 1] - delta[at]))
    return min(upper, math.log(interpolated) + 1e-12) if interpolated > 0 else upper


def _binary_curve(divergence: float, order: float, log_v: Array) -> tuple[Array, Array]:
    """For each v the u with D_order = divergence, then log e^ε and δ there."""
    log_m = (order - 1) * divergence
    # on the curve q·u^order ≤ e^log_m with q ≥ (1-v)/u, so u^{order-1} ≤ e^log_m/(1-v)
    low, high = np.zeros_like(log_v), (log_m - np.log(-np.expm1(log_v))) / (order - 1) + 1e-9

    def log_share(log_u: Array) -> Array:
        """log q, q = (1-v)/(u-v)."""
        return np.asarray(np.log(-np.expm1(log_v)) - log_u - np.log(-np.expm1(log_v - log_u)))

    for _ in range(80):
        log_u = (low + high) / 2
        log_q = log_share(log_u)
        rest = np.log1p(-np.minimum(np.exp(log_q), 1 - 1e-16))
        value = np.logaddexp(log_q + order * log_u, rest + order * log_v)
        low, high = np.where(value < log_m, log_u, low), np.where(value < log_m, high, log_u)
    log_u = high
    log_q = log_share(log_u)
    gap = log_v - log_u
    log_gamma = (
        math.log1p(-1 / order) + log_u + np.log(-np.expm1(order * gap)) - np.log(-np.expm1((order - 1) * gap))
    )
    return log_gamma, np.exp(log_q + log_u) - np.exp(log_gamma + log_q)


def _chord(log_a: float, delta_a: float, log_b: float, delta_b: float, target: float) -> float:
    """log γ where the chord of δ(γ) between two points meets the target."""
    if delta_a == delta_b:
        return max(log_a, log_b)
    share = (delta_a - target) / (delta_a - delta_b)
    return (
        float(np.logaddexp(log_a + np.log1p(-share), log_b + np.log(share)))
        if 0 < share < 1
        else max(log_a, log_b)
    )


def _log_cosh(x: float) -> float:
    if abs(x) < 1:
        return math.log1p(2 * math.sinh(x / 2) ** 2)
    return abs(x) + math.log1p(math.exp(-2 * abs(x))) - math.log(2)


def _log_mean_exp(p: Array, exponent: Array) -> float:
    """log Σ p·e^exponent for probabilities p, rounded up, with care where the sum is nearly 1."""
    some = p > 0
    p, exponent = p[some], exponent[some]
    top = float(exponent.max())
    if top < 0.5:
        parts = p * np.expm1(exponent)
        return math.log1p(max(0.0, float(parts.sum()))) + 1e-15 * float(np.abs(parts).sum())
    log_mean = top + math.log(float(np.sum(p * np.exp(exponent - top))))
    # rare great losses may leave a mean next to 1, whose logarithm has lost digits
    return max(0.0, log_mean) * (1 + _SAFE) + 1e-15 * (4 + top)
