# SPDX-License-Identifier: Apache-2.0
"""The dominating pairs of the standard mechanisms, each with the theorem that makes it one.

Every function returns a `Pair` for distance 1 in its own unit (noise or scale over sensitivity).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from discreet.privacy.logarithms import Array, log1mexp, log_choose, log_or_minus_infinity
from discreet.privacy.moments import GaussianMoments, sloped_moments
from discreet.privacy.pairs import Pair, atoms
from discreet.privacy.quadrature import SampledGaussian

#: Standard deviations after which a Gaussian tail is below 1e-305.
_REACH = 37.4
#: More atoms than this are not enumerated; such mechanisms are accounted by their Rényi curve.
MOST_ATOMS = 300_000


def gaussian(mu: float) -> Pair:
    """N(μ, 1) against N(0, 1): μ = sensitivity / standard deviation (Dong, Roth, Su 2022, Theorem
    2.7).
    """

    def smooth(loss: Array) -> tuple[Array, Array, Array, Array]:
        above, below = loss / mu - mu / 2, loss / mu + mu / 2
        return ndtr(above), ndtr(-above), ndtr(below), ndtr(-below)

    half = mu * mu / 2
    return Pair(
        smooth=smooth,
        low=half - mu * _REACH,
        high=half + mu * _REACH,
        symmetric=True,
        log_delta=lambda epsilon: gaussian_log_delta(mu, epsilon),
        moments=GaussianMoments(mu),
    )


def gaussian_log_delta(mu: float, epsilon: float) -> float:
    """log of Φ(-ε/μ + μ/2) - e^ε Φ(-ε/μ - μ/2), by Mills ratios so that nothing cancels far out.

    (Balle, Wang 2018, Theorem 8.)
    """
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if near < 0 and mu > 1e-2:
        # here δ is not small: Φ(-near) ≥ 1/2, and the plain difference loses at most a few digits
        log_near, log_far = float(log_ndtr(-near)), epsilon + float(log_ndtr(-far))
        return log_near + math.log(-math.expm1(log_far - log_near)) if log_far < log_near else -math.inf
    mills = _mills_gap(near, mu)
    return -near * near / 2 - math.log(2 * math.pi) / 2 + math.log(mills) if mills > 0 else -math.inf


def _mills_gap(near: float, mu: float) -> float:
    """m(near) - m(near + μ) for the Mills ratio m(t) = √(π/2)·erfcx(t/√2)."""
    if mu > 1e-2 * (1 + near):
        root = math.sqrt(0.5)
        return math.sqrt(math.pi / 2) * float(erfcx(near * root) - erfcx((near + mu) * root))
    # -m' = 1 - t·m(t) > 0 is smooth; ten-point Gauss-Legendre over [near, near + μ] is exact to
    # rounding
    nodes, weights = np.polynomial.legendre.leggauss(10)
    t = near + mu * (nodes + 1) / 2
    return float(np.sum(weights * _mills_slope(t)) * mu / 2)


def _mills_slope(t: Array) -> Array:
    """1 - t·m(t): for large t by its continued fraction, where the difference would cancel."""
    plain = 1.0 - t * math.sqrt(math.pi / 2) * erfcx(t * math.sqrt(0.5))
    tail = np.zeros_like(t)
    for level in range(60, 0, -1):
        tail = level / (t + tail)
    # m(t) = 1/(t + c), c = 1/(t + 2/(t + 3/…)), so 1 - t·m(t) = c/(t + c)
    return np.where(t > 4.0, tail / (t + tail), plain)


def laplace(epsilon: float) -> Pair:
    """Laplace noise of scale 1/ε at distance 1: losses in [-ε, ε] with an atom at either end."""
    floor = math.exp(-epsilon)

    def smooth(loss: Array) -> tuple[Array, Array, Array, Array]:
        up, down = (loss + epsilon) / 2, (epsilon - loss) / 2
        return (
            _growth(up, epsilon) / 2,
            -np.expm1(-down) / 2,
            -np.expm1(-up) / 2,
            _growth(down, epsilon) / 2,
        )

    return Pair(
        losses=np.array([-epsilon, epsilon]),
        p=np.array([floor / 2, 0.5]),
        q=np.array([0.5, floor / 2]),
        smooth=smooth,
        low=-epsilon,
        high=epsilon,
        symmetric=True,
        spacing=2 * epsilon,
        log_delta=lambda at: laplace_log_delta(epsilon, at),
        moments=sloped_moments(epsilon, 0.5, 0.5),
    )


def laplace_log_delta(epsilon: float, at: float) -> float:
    """log of 1 - e^{(at - ε)/2}, the profile of Laplace noise of scale 1/ε."""
    return log_or_minus_infinity(-math.expm1(min(at - epsilon, 0.0) / 2)) if at > -epsilon else log1mexp(at)


def _growth(x: Array, epsilon: float) -> Array:
    """e^{-ε}·(e^x - 1) for 0 ≤ x ≤ ε, without overflow."""
    near = math.exp(-epsilon) * np.expm1(np.minimum(x, 1.0))
    return np.where(x < 1.0, near, np.exp(np.maximum(x, 1.0) - epsilon) - math.exp(-epsilon))


def bounded_range(epsilon: float) -> Pair:
    """The exponential mechanism: losses of one pair of neighbours span at most ε (Dong, Durfee,
    Rogers 2020).

    The profile (1 - e^{(e-ε)/2})² / (1 - e^{-ε}) is the supremum over all such pairs, and is itself
    a pair.
    """
    scale = 1.0 / -math.expm1(-epsilon)

    def smooth(loss: Array) -> tuple[Array, Array, Array, Array]:
        up, down = (loss + epsilon) / 2, (epsilon - loss) / 2
        return (
            scale * _growth(up, epsilon),
            -scale * np.expm1(-down),
            -scale * np.expm1(-up),
            scale * _growth(down, epsilon),
        )

    def log_delta(eps: float) -> float:
        if eps <= -epsilon:
            return log1mexp(eps)
        return 2 * log_or_minus_infinity(-math.expm1(min(eps - epsilon, 0.0) / 2)) + math.log(scale)

    return Pair(
        smooth=smooth,
        low=-epsilon,
        high=epsilon,
        symmetric=True,
        log_delta=log_delta,
        moments=sloped_moments(epsilon, 0.0, scale),
    )


def randomized_response(epsilon: float, outcomes: int = 2, delta: float = 0.0) -> Pair:
    """Tell the truth with odds e^ε against each lie; with probability δ reveal all.

    Two outcomes give the pair that dominates every (ε, δ)-DP mechanism (Kairouz, Oh, Viswanath
    2015).
    """
    total = math.exp(-epsilon) * (outcomes - 1) + 1.0
    truth, lie = (1 - delta) / total, (1 - delta) * math.exp(-epsilon) / total
    others = (outcomes - 2) * lie
    middle = outcomes > 2
    return Pair(
        losses=np.array([-epsilon, 0.0, epsilon] if middle else [-epsilon, epsilon]),
        p=np.array([lie, others, truth] if middle else [lie, truth]),
        q=np.array([truth, others, lie] if middle else [truth, lie]),
        infinite=delta,
        vanishing=delta,
        symmetric=True,
        spacing=epsilon if middle else 2 * epsilon,
    )


def discrete_laplace(scale: float, sensitivity: int) -> Pair | None:
    """Integer noise with P(z) ∝ e^{-|z|/scale}, moved by an integer: one atom for each step
    between.
    """
    if sensitivity > MOST_ATOMS:
        return None
    shape = math.exp(-1.0 / scale)
    inner = np.arange(1, sensitivity, dtype=float)
    # z ≤ 0 all have the least loss, z ≥ sensitivity the greatest; P is centred at `sensitivity`
    centre, edge = -math.expm1(-1.0 / scale) / (1 + shape), 1.0 / (1 + shape)
    p = np.concatenate(
        [[math.exp(-sensitivity / scale) * edge], centre * np.exp((inner - sensitivity) / scale), [edge]]
    )
    losses = (2 * np.arange(sensitivity + 1) - sensitivity) / scale
    return Pair(losses=losses, p=p, q=p[::-1].copy(), symmetric=True, spacing=2.0 / scale)


def three_way_laplace(loss: float) -> Pair:
    """What any Laplace noise, moved by `loss` scales, tells of three things: the least loss, the
    greatest, or neither.

    For the least and the greatest the masses are e^{-loss}·c and c with c ≥ 1/2, for continuous and
    integer noise alike.
    """
    low, high = math.exp(-loss) / 2, 0.5
    rest = 1.0 - low - high
    losses = np.array([-loss, 0.0, loss])
    return Pair(
        losses=losses,
        p=np.array([low, rest, high]),
        q=np.array([high, rest, low]),
        symmetric=True,
        spacing=loss,
    )


def discrete_gaussian(scale: float, sensitivity: int) -> Pair | None:
    """Integer noise with P(z) ∝ e^{-z²/(2·scale²)}, moved by an integer; its curve is not the
    Gaussian one.
    """
    reach = math.ceil(_REACH * scale) + sensitivity + 2
    if 2 * reach > MOST_ATOMS:
        return None
    z = np.arange(-reach, reach + 1, dtype=float)
    log_p = -((z - sensitivity) ** 2) / (2 * scale * scale)
    log_q = -(z**2) / (2 * scale * scale)
    log_total = math.log(float(np.sum(np.exp(-(z**2) / (2 * scale * scale)))))
    p, q = np.exp(log_p - log_total), np.exp(log_q - log_total)
    return Pair(
        losses=sensitivity * (2 * z - sensitivity) / (2 * scale * scale),
        p=p,
        q=q,
        symmetric=True,
        spacing=sensitivity / (scale * scale),
    )


def two_gaussians(shift: float, ratio: float) -> Pair:
    """N(0, ratio²) against N(shift, 1): the loss is a parabola, so each level is crossed twice."""
    if ratio == 1.0:
        return gaussian(abs(shift))
    curve = (1.0 - 1.0 / (ratio * ratio)) / 2
    vertex = shift / (2 * curve)
    bottom = -math.log(ratio) + shift * shift / 2 - curve * vertex * vertex

    def smooth(loss: Array) -> tuple[Array, Array, Array, Array]:
        half = np.sqrt(np.maximum((loss - bottom) / curve, 0.0))
        left, right = vertex - half, vertex + half
        p_in, p_out = _between(left / ratio, right / ratio)
        q_in, q_out = _between(left - shift, right - shift)
        return (p_in, p_out, q_in, q_out) if curve > 0 else (p_out, p_in, q_out, q_in)

    far = max(abs(vertex - _REACH * ratio), abs(vertex + _REACH * ratio), _REACH * ratio + abs(vertex))
    top = bottom + curve * far * far

    def log_delta(epsilon: float) -> float:
        """∫(p - e^ε q) over {loss > ε}: outside two roots if ratio > 1, between them otherwise."""
        square = (epsilon - bottom) / curve
        if square <= 0:
            return log1mexp(epsilon) if curve > 0 else -math.inf
        half = math.sqrt(square)
        intervals = (
            [(vertex + half, 1.0, far), (vertex - half, -1.0, far)]
            if curve > 0
            else [(vertex - half, 1.0, 2 * half)]
        )
        log_integrals = [_integral(interval, shift, ratio, epsilon) for interval in intervals]
        return float(np.logaddexp.reduce(log_integrals))

    return Pair(smooth=smooth, low=min(bottom, top), high=max(bottom, top), log_delta=log_delta)


def _integral(interval: tuple[float, float, float], shift: float, ratio: float, epsilon: float) -> float:
    """log of ∫(p - e^ε q) over (start, sign, length), by Gauss-Legendre on panels that grow from
    the root, where it is zero.
    """
    start, sign, length = interval
    nodes, weights = np.polynomial.legendre.leggauss(16)
    edges = np.concatenate([[0.0], length * np.geomspace(1e-6, 1.0, 80)])
    x = (edges[:-1, None] + np.diff(edges)[:, None] * (nodes + 1) / 2).ravel()
    w = (np.diff(edges)[:, None] * weights / 2).ravel()
    at = start + sign * x
    log_p = -(at**2) / (2 * ratio * ratio) - math.log(ratio) - math.log(2 * math.pi) / 2
    loss = -math.log(ratio) - at**2 / (2 * ratio * ratio) + (at - shift) ** 2 / 2
    logs = log_p + _log_array(-np.expm1(np.minimum(epsilon - loss, 0.0))) + np.log(w)
    peak = float(logs.max())
    return peak + math.log(float(np.exp(logs - peak).sum())) if peak > -math.inf else -math.inf


def _between(left: Array, right: Array) -> tuple[Array, Array]:
    """The mass of N(0, 1) inside and outside an interval, each without cancellation."""
    inside = np.where(left > 0, ndtr(-left) - ndtr(-right), ndtr(right) - ndtr(left))
    return np.maximum(inside, 0.0), ndtr(left) + ndtr(-right)


def antipodal_gaussian(mu: float, rate: float) -> Pair:
    """((1-q)N(0)+qN(μ), (1-q)N(0)+qN(-μ)): Poisson sampling when one record is replaced.

    Why it dominates: for any test region S take the half-line of the same mass under N(0). By
    Neyman and Pearson no region has more mass under any N(a), |a| ≤ μ, and none less under any
    N(a'), |a'| ≤ μ, than that half-line has under N(μ) and N(-μ); the mass under N(0) is unchanged.
    So H_γ is largest here for every γ. Conditioning on the other sampled records only moves the
    origin, and H_γ is jointly convex.
    """
    keep = 1.0 - rate
    log_odds = math.log(keep / rate) + mu * mu / 2 if rate < 1 else -math.inf

    def smooth(loss: Array) -> tuple[Array, Array, Array, Array]:
        x = (loss / 2 + _arcsinh_scaled(loss / 2, log_odds)) / mu
        p_le, p_gt = keep * ndtr(x) + rate * ndtr(x - mu), keep * ndtr(-x) + rate * ndtr(mu - x)
        q_le, q_gt = keep * ndtr(x) + rate * ndtr(x + mu), keep * ndtr(-x) + rate * ndtr(-mu - x)
        return p_le, p_gt, q_le, q_gt

    x = _REACH + mu
    high = float(np.logaddexp(math.log(keep or 1e-300), math.log(rate) + mu * x - mu * mu / 2))
    moments = SampledGaussian(mu, rate, "replaced") if rate < 1 else GaussianMoments(2 * mu)
    return Pair(smooth=smooth, low=-high - 1, high=high + 1, symmetric=True, moments=moments)


def _arcsinh_scaled(half: Array, log_factor: float) -> Array:
    """arcsinh(e^log_factor · sinh(half)), without overflow."""
    if log_factor == -math.inf:
        return half * 0.0
    size = np.abs(half)
    big = log_factor + size + np.log(-np.expm1(-2 * np.maximum(size, 1e-300))) - math.log(2)
    with np.errstate(over="ignore"):
        small = np.arcsinh(np.exp(np.minimum(big, 300.0)))
    return np.asarray(np.sign(half) * np.where(big > 300.0, big + math.log(2), small))


def antipodal_integer(log_mass: Callable[[Array], Array], shift: int, reach: int, rate: float) -> Pair | None:
    """The same for log-concave integer noise, whose likelihood ratios are monotone too."""
    if 2 * (reach + shift) > MOST_ATOMS:
        return None
    z = np.arange(-reach - shift, reach + shift + 1, dtype=float)
    still = (1.0 - rate) * np.exp(log_mass(z))
    pair = atoms(still + rate * np.exp(log_mass(z - shift)), still + rate * np.exp(log_mass(z + shift)))
    lost = max(0.0, 1.0 - float(pair.p.sum()))
    return Pair(losses=pair.losses, p=pair.p, q=pair.q, infinite=lost, vanishing=lost, symmetric=True)


def antipodal_geometric(epsilon: float, shift: int, rate: float) -> Pair | None:
    """The same for integer Laplace noise of scale 1/ε, whose loss is constant beyond either centre.

    With shift 1 it is the worst case of all ε-private mechanisms: without the record a region has
    some mass α, with one record it has g(α) at most, with the other 1 - g(1-α) at least, and
    half-lines of this noise have both at once.
    """
    if 2 * shift > MOST_ATOMS:
        return None
    z = np.arange(-shift, shift + 1, dtype=float)
    # beyond the centres the masses are those of a whole geometric tail
    ends = np.abs(z) == shift
    height = np.where(ends, 1.0 / (1.0 + math.exp(-epsilon)), math.tanh(epsilon / 2))
    still, up, down = (np.exp(-epsilon * np.abs(z - centre)) * height for centre in (0.0, shift, -shift))
    pair = atoms((1.0 - rate) * still + rate * up, (1.0 - rate) * still + rate * down)
    return Pair(losses=pair.losses, p=pair.p, q=pair.q, symmetric=True)


def antipodal_laplace(epsilon: float, rate: float) -> Pair:
    """The same for Laplace noise of scale 1/ε: between the centres the loss moves, outside it is
    constant.
    """
    keep, floor = 1.0 - rate, math.exp(-epsilon)
    odds = math.log(keep / (rate * floor)) if rate < 1 else -math.inf
    top = math.log(keep + rate / floor) - math.log(keep + rate * floor)

    def smooth(loss: Array) -> tuple[Array, Array, Array, Array]:
        # for x ≥ 0 the loss is log(keep + rate·floor·e^{2εx}) - log(keep + rate·floor); odd in x
        size = np.minimum(np.abs(loss), top)
        double = np.log1p((1.0 + math.exp(odds)) * np.expm1(size))
        x = np.sign(loss) * np.minimum(double / (2 * epsilon), 1.0)
        still, right, left = (_laplace_between(epsilon, x, centre) for centre in (0.0, 1.0, -1.0))
        p_le, p_gt = (keep * s + rate * r for s, r in zip(still, right, strict=True))
        q_le, q_gt = (keep * s + rate * m for s, m in zip(still, left, strict=True))
        return p_le, p_gt, q_le, q_gt

    high_p, high_q = (keep * floor + rate) / 2, (keep * floor + rate * floor * floor) / 2
    return Pair(
        losses=np.array([-top, top]),
        p=np.array([high_q, high_p]),
        q=np.array([high_p, high_q]),
        smooth=smooth,
        low=-top,
        high=top,
        symmetric=True,
    )


def _laplace_between(epsilon: float, x: Array, centre: float) -> tuple[Array, Array]:
    """Masses of Laplace noise around `centre` on [-1, x] and on [x, 1]."""

    def cumulative(at: Array | float) -> Array:
        away = np.asarray(at, float) - centre
        return np.where(
            away < 0,
            np.exp(epsilon * np.minimum(away, 0)) / 2,
            1 - np.exp(-epsilon * np.maximum(away, 0)) / 2,
        )

    below, above = cumulative(x) - cumulative(-1.0), cumulative(1.0) - cumulative(x)
    return np.maximum(below, 0.0), np.maximum(above, 0.0)


def gaussian_log_mass(scale: float) -> Callable[[Array], Array]:
    """log P(z) of discrete Gaussian noise."""
    reach = math.ceil(_REACH * scale) + 2
    z = np.arange(-reach, reach + 1, dtype=float)
    norm = math.log(float(np.sum(np.exp(-(z**2) / (2 * scale * scale)))))
    return lambda at: -(at**2) / (2 * scale * scale) - norm


def optimal_composition_log_delta(epsilon: float, delta: float, count: int, at: float) -> float:
    """log δ at ε = `at` of `count` copies of an (ε, δ)-DP mechanism (Kairouz, Oh, Viswanath 2015,
    Theorem 3.3).

    A sum over the number of times that randomized response told the truth; terms far below the
    largest are bounded by a geometric series, so the value is an upper bound up to rounding.
    """
    threshold = max(0, math.floor((at / epsilon + count) / 2) + 1) if epsilon > 0 else count + 1
    if threshold > count:
        log_finite = -math.inf
    else:
        last = min(count, threshold + 4_000_000)
        truths = np.arange(threshold, last + 1, dtype=float)
        log_p = (
            log_choose(count, truths)
            - truths * math.log1p(math.exp(-epsilon))
            - (count - truths) * float(np.logaddexp(0.0, epsilon))
        )
        gap = (2 * truths - count) * epsilon - at
        terms = log_p + _log_array(-np.expm1(-gap))
        top = float(np.max(terms))
        log_finite = top + math.log(float(np.sum(np.exp(terms - top)))) if top > -math.inf else -math.inf
    log_safe = count * math.log1p(-delta)
    revealed = -math.expm1(log_safe)
    total = revealed + math.exp(log_safe + log_finite) if log_finite > -745 or revealed else 0.0
    return math.log(total) if total > 0 else log_safe + log_finite


def _log_array(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(x, 0.0))
