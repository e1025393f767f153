# SPDX-License-Identifier: Apache-2.0
"""Dominating pairs: two distributions (P, Q), seen through the privacy loss L = log dP/dQ.

**Guarantee.** Everything the accountant knows of a mechanism is here. A pair *dominates* a
mechanism if H_γ(M(x)‖M(x')) ≤ H_γ(P‖Q) for every γ ≥ 0 and every ordered pair of neighbours in one
direction; then products of pairs dominate adaptive compositions (Zhu, Dong, Wang 2022, Theorem 10).
A `Pair` only stores where the mass of P and of Q lies along the loss axis, which is all that any
view depends on.

A pair has up to four parts: atoms (losses with positive mass), a smooth part (given by its
cumulative masses), the P-mass where Q has none (`infinite`, loss +∞) and the Q-mass where P has
none (`vanishing`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from discreet.privacy import quadrature
from discreet.privacy.logarithms import Array
from discreet.privacy.moments import RenyiMoments

#: P(L ≤ l), P(L > l), Q(L ≤ l), Q(L > l) of the smooth part; each of the four with relative
#: accuracy.
Cumulative = Callable[[Array], tuple[Array, Array, Array, Array]]

_NONE = np.zeros(0)


def _nothing() -> Array:
    return _NONE


def dot(x: Array, y: Array) -> float:
    """Σ x·y without BLAS, whose threads cost more than they save on vectors that are used once."""
    return float((x * y).sum())


@dataclass(frozen=True, eq=False)
class Pair:
    """Two distributions on the loss axis; see the module docstring.

    `low`, `high`: the smooth part has no P-mass worth 1e-305 outside them. `symmetric`: (Q, P) is
    the same pair, so both directions agree. `log_delta`: log H_{e^ε} in closed form, if there is
    one. `spacing`: all atoms are multiples of it above the least loss (0: they are not on a
    lattice). `moments`: E e^{zL} over all of P but the infinite part, if it can be computed as
    such.
    """

    losses: Array = field(default_factory=_nothing)
    p: Array = field(default_factory=_nothing)
    q: Array = field(default_factory=_nothing)
    smooth: Cumulative | None = None
    low: float = 0.0
    high: float = 0.0
    infinite: float = 0.0
    vanishing: float = 0.0
    symmetric: bool = False
    log_delta: Callable[[float], float] | None = None
    spacing: float = 0.0
    moments: RenyiMoments | None = None

    @property
    def least(self) -> float:
        """The least loss that has mass."""
        ends = [*([self.low] if self.smooth else []), *([self.losses.min()] if self.losses.size else [])]
        return float(min(ends, default=0.0))

    @property
    def greatest(self) -> float:
        """The greatest finite loss that has mass."""
        ends = [*([self.high] if self.smooth else []), *([self.losses.max()] if self.losses.size else [])]
        return float(max(ends, default=0.0))

    def exceeds(self, loss: float) -> tuple[float, float]:
        """P(L > loss) and Q(L > loss), the infinite part apart."""
        over = self.losses > loss
        p, q = float(self.p[over].sum()), float(self.q[over].sum())
        if self.smooth is not None and loss < self.high:
            _, p_gt, _, q_gt = self.smooth(np.array([max(loss, self.low)]))
            p, q = p + float(p_gt[0]), q + float(q_gt[0])
        return p, q


def atoms(p: Array, q: Array) -> Pair:
    """The pair of two probability tables on the same outcomes."""
    p, q = np.asarray(p, float), np.asarray(q, float)
    both = (p > 0) & (q > 0)
    return Pair(
        losses=np.log(p[both]) - np.log(q[both]),
        p=p[both],
        q=q[both],
        infinite=float(p[q == 0].sum()),
        vanishing=float(q[p == 0].sum()),
    )


def swap(pair: Pair) -> Pair:
    """(Q, P): the same mechanism with the neighbours exchanged; the loss changes sign."""
    if pair.symmetric:
        return pair
    smooth = pair.smooth

    def mirror(loss: Array) -> tuple[Array, Array, Array, Array]:
        assert smooth is not None
        p_le, p_gt, q_le, q_gt = smooth(-loss)
        return q_gt, q_le, p_gt, p_le

    return Pair(
        losses=-pair.losses,
        p=pair.q,
        q=pair.p,
        smooth=mirror if smooth is not None else None,
        low=-pair.high,
        high=-pair.low,
        infinite=pair.vanishing,
        vanishing=pair.infinite,
        spacing=pair.spacing,
        moments=quadrature.swap(pair.moments),
    )


def dilute(pair: Pair, rate: float) -> Pair:
    """((1-rate)·Q + rate·P, Q): what remains of P when the record is only present with probability
    `rate`.

    The loss becomes log(1 - rate + rate·e^L), an increasing function, so the masses move but never
    mix.
    """
    if rate == 1.0:
        return pair
    smooth, keep = pair.smooth, 1.0 - rate
    # Q is now part of P, and where Q has its losses P may have had none
    low = min(pair.low, -pair.high) if pair.symmetric else pair.low

    def shift_losses(loss: Array) -> tuple[Array, Array, Array, Array]:
        assert smooth is not None
        p_le, p_gt, q_le, q_gt = smooth(np.clip(_undilute(loss, rate), low, pair.high))
        return keep * q_le + rate * p_le, keep * q_gt + rate * p_gt, q_le, q_gt

    hidden = pair.vanishing > 0
    base = pair.log_delta
    return Pair(
        losses=np.append(_dilute(pair.losses, rate), np.log1p(-rate) if hidden else _NONE),
        p=np.append(keep * pair.q + rate * pair.p, keep * pair.vanishing if hidden else _NONE),
        q=np.append(pair.q, pair.vanishing if hidden else _NONE),
        smooth=shift_losses if smooth is not None else None,
        low=float(_dilute(np.array([low]), rate)[0]),
        high=float(_dilute(np.array([pair.high]), rate)[0]),
        infinite=rate * pair.infinite,
        log_delta=(lambda eps: _diluted_log_delta(base, eps, rate)) if base is not None else None,
        moments=quadrature.dilute(pair.moments, rate),
    )


def dilute_other(pair: Pair, rate: float) -> Pair:
    """(P, (1-rate)·P + rate·Q): the direction in which the record is added, so Q is the one to lose
    it.
    """
    if rate == 1.0:
        return pair
    base = pair.log_delta
    mixed = swap(dilute(swap(pair), rate))
    if base is None:
        return mixed

    def log_delta(epsilon: float) -> float:
        """H_γ(P ‖ (1-q)P + qQ) = s·H_{γq/s}(P‖Q), s = 1 - γ(1-q); zero once s ≤ 0."""
        grown = np.exp(min(epsilon, 700.0))
        share = rate * grown - np.expm1(min(epsilon, 700.0))
        return float(np.log(share) + base(epsilon + np.log(rate) - np.log(share))) if share > 0 else -np.inf

    return replace(mixed, log_delta=log_delta)


def leak(pair: Pair, delta: float) -> Pair:
    """The pair with probability 1 - δ, and everything revealed otherwise."""
    mixture = mask(pair, 1.0 - delta)
    return replace(
        mixture,
        losses=mixture.losses[:-1],
        p=mixture.p[:-1],
        q=mixture.q[:-1],
        infinite=mixture.infinite + delta,
        vanishing=mixture.vanishing + delta,
    )


def mask(pair: Pair, rate: float) -> Pair:
    """The pair with probability `rate`, and an answer that says nothing otherwise (loss 0)."""
    smooth = pair.smooth

    def thin(loss: Array) -> tuple[Array, Array, Array, Array]:
        assert smooth is not None
        p_le, p_gt, q_le, q_gt = smooth(loss)
        return rate * p_le, rate * p_gt, rate * q_le, rate * q_gt

    return Pair(
        losses=np.append(pair.losses, 0.0),
        p=np.append(rate * pair.p, 1.0 - rate),
        q=np.append(rate * pair.q, 1.0 - rate),
        smooth=thin if smooth is not None else None,
        low=pair.low,
        high=pair.high,
        infinite=rate * pair.infinite,
        vanishing=rate * pair.vanishing,
        symmetric=pair.symmetric,
    )


def either(first: Pair, second: Pair, weights: tuple[float, float]) -> Pair:
    """The first pair or the second, with these probabilities, where the answer tells which. Both
    are smooth; weights that are rounded up raise P and Q together.
    """
    parts = [(pair, weight * (1 + 1e-14)) for pair, weight in zip((first, second), weights, strict=True)]

    def smooth(loss: Array) -> tuple[Array, Array, Array, Array]:
        total = [np.zeros_like(loss) for _ in range(4)]
        for pair, weight in parts:
            assert pair.smooth is not None
            for at, mass in enumerate(pair.smooth(np.clip(loss, pair.low, pair.high))):
                total[at] = total[at] + weight * mass
        return total[0], total[1], total[2], total[3]

    def log_delta(epsilon: float) -> float:
        logs = [np.log(weight) + log_delta_of(pair, epsilon) for pair, weight in parts if weight > 0]
        return float(np.logaddexp.reduce(logs))

    closed = first.log_delta is not None and second.log_delta is not None
    return Pair(
        smooth=smooth,
        low=min(first.low, second.low),
        high=max(first.high, second.high),
        symmetric=first.symmetric and second.symmetric,
        log_delta=log_delta if closed else None,
    )


def symmetrise(pair: Pair) -> Pair:
    """The pair whose profile is H_γ(pair) for γ ≥ 1 and its mirror image γ·H_{1/γ} + 1 - γ below.

    This dominates a mechanism in both directions at once if `pair` dominates it for every γ ≥ 1.
    The masses with positive loss are kept, their mirror images added, and the rest of both
    distributions sits at loss 0.
    """
    up = pair.losses > 0
    p_over, q_over = pair.exceeds(0.0)
    rest = max(0.0, 1.0 - p_over - q_over - pair.infinite)
    smooth = pair.smooth if pair.smooth is not None and pair.high > 0 else None
    zero = np.array([max(0.0, pair.low)])

    def fold(loss: Array) -> tuple[Array, Array, Array, Array]:
        assert smooth is not None
        _, p_total, _, q_total = smooth(zero)
        right = np.maximum(np.abs(loss), zero)
        p_near, p_far, q_near, q_far = smooth(right)
        p0, _, q0, _ = smooth(zero)
        negative = loss < 0
        p_between, q_between = np.maximum(p_near - p0, 0.0), np.maximum(q_near - q0, 0.0)
        return (
            np.where(negative, q_far, q_total + p_between),
            np.where(negative, q_between + p_total, p_far),
            np.where(negative, p_far, p_total + q_between),
            np.where(negative, p_between + q_total, q_far),
        )

    base = pair.log_delta
    return Pair(
        losses=np.concatenate([pair.losses[up], -pair.losses[up], [0.0]]),
        p=np.concatenate([pair.p[up], pair.q[up], [rest]]),
        q=np.concatenate([pair.q[up], pair.p[up], [rest]]),
        smooth=fold if smooth is not None else None,
        low=-pair.high,
        high=pair.high,
        infinite=pair.infinite,
        vanishing=pair.infinite,
        symmetric=True,
        log_delta=(lambda eps: _mirrored_log_delta(base, eps)) if base is not None else None,
    )


def log_delta_of(pair: Pair, epsilon: float) -> float:
    """log H_{e^ε}(P‖Q), by the closed form if there is one, else from the masses (see `is_closed`)."""
    if pair.log_delta is not None:
        return pair.log_delta(epsilon)
    over = pair.losses > epsilon
    total = pair.infinite + float(np.sum(pair.p[over] * -np.expm1(epsilon - pair.losses[over])))
    if pair.smooth is not None and epsilon < pair.high:
        total += _smooth_delta(pair, epsilon)
    return float(np.log(total)) if total > 0 else -np.inf


def is_closed(pair: Pair) -> bool:
    """Whether `log_delta_of` is exact up to rounding; by quadrature it is good to about ten digits."""
    return pair.log_delta is not None or pair.smooth is None


def _smooth_delta(pair: Pair, epsilon: float) -> float:
    """∫ e^{-t}·P(L > ε + t) dt, which equals E(1 - e^{ε-L})₊ and has no term to cancel."""
    assert pair.smooth is not None
    start = max(epsilon, pair.low)
    length = min(pair.high - start, 750.0)
    nodes, weights = np.polynomial.legendre.leggauss(16)
    edges = np.concatenate([[0.0], length * np.geomspace(1e-9, 1.0, 160)])
    t = (edges[:-1, None] + np.diff(edges)[:, None] * (nodes + 1) / 2).ravel()
    w = (np.diff(edges)[:, None] * weights / 2).ravel()
    head = -np.expm1(epsilon - start)
    _, p_gt, _, _ = pair.smooth(np.append(start + t, start))
    return float(np.exp(epsilon - start) * np.sum(w * np.exp(-t) * p_gt[:-1]) + head * p_gt[-1])


def _mirrored_log_delta(base: Callable[[float], float], epsilon: float) -> float:
    """H_γ for γ ≥ 1; below, H_γ = γ·H_{1/γ} + 1 - γ."""
    if epsilon >= 0:
        return base(epsilon)
    return float(np.log(np.exp(epsilon + base(-epsilon)) - np.expm1(epsilon)))


def _dilute(loss: Array, rate: float) -> Array:
    with np.errstate(over="ignore"):
        near = np.log1p(rate * np.expm1(np.minimum(loss, 30.0)))
    far = loss + np.log(rate + (1.0 - rate) * np.exp(-np.maximum(loss, 30.0)))
    return np.where(loss < 30.0, near, far)


def _undilute(loss: Array, rate: float) -> Array:
    """The loss before dilution; -inf at and below the floor log(1 - rate)."""
    inside = np.maximum(np.expm1(np.minimum(loss, 30.0)) / rate, -1.0)
    with np.errstate(divide="ignore"):
        near = np.log1p(inside)
    far = loss - np.log(rate) + np.log1p(-(1.0 - rate) * np.exp(-np.maximum(loss, 30.0)))
    return np.where(loss < 30.0, near, far)


def _diluted_log_delta(base: Callable[[float], float], epsilon: float, rate: float) -> float:
    """H_γ((1-q)Q + qP ‖ Q) = q·H_γ'(P‖Q), γ' = 1 + (γ-1)/q; it is 1 - γ when γ' ≤ 0."""
    before = float(_undilute(np.array([epsilon]), rate)[0])
    if np.isneginf(before):
        return float(np.log(-np.expm1(epsilon)))
    return float(np.log(rate)) + base(before)
