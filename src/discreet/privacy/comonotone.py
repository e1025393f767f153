# SPDX-License-Identifier: Apache-2.0
"""Pairs of a group of units on a Poisson sample: so many of the k units are in the sample as coins
decide.

**Guarantee.** Let h_j be a bound on the profile of the mechanism for j units, with or without them:
H_γ(M(x ∪ j units)‖M(x)) ≤ h_j(γ) for all γ ≥ 0, and p_j = C(k, j)·q^j·(1-q)^(k-j). Each function
returns a pair (P, Q) that dominates the mechanism on a Poisson(q) sample of the data with all k
units (P) against the data with none of them (Q).

Why it holds. Condition on the coins of everybody else (H is jointly convex). Then P = Σ_S p_S·M(x ∪
S), Q = M(x), and for all numbers γ_S with Σ p_S·γ_S = γ

    (Σ p_S·(dM_S - γ_S·dQ))₊ ≤ Σ p_S·(dM_S - γ_S·dQ)₊,     so     H_γ(P‖Q) ≤ Σ_j p_j·h_j(γ_j)   with γ_j = γ_|S|.

The least of these bounds is the profile of the *comonotone* pair: the likelihood ratios Z_j of the
single profiles, all increasing functions of one variable under Q, and Z = Σ p_j·Z_j; with γ_j = Z_j
at the same point every inequality is an equality. It holds for all γ ≥ 0, so (Q, P) dominates the
other direction, and products dominate compositions.

It is attained by noise on a number, if each unit may move the number by the same amount in the same
direction and the likelihood ratio grows along the line: then M_j is the noise moved by j. That is
the Gaussian, Laplace and discrete case.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from discreet.privacy import families
from discreet.privacy.cells import Cut
from discreet.privacy.lattice import knots_around, spread
from discreet.privacy.logarithms import Array, log1mexp, log_choose
from discreet.privacy.moments import Line, RenyiMoments
from discreet.privacy.pairs import Pair, atoms
from discreet.privacy.quadrature import SampledSum

#: Standard deviations after which a Gaussian tail is below 1e-305.
_REACH = 37.4
#: A probability that adds nothing to any number.
_UNLIKELY = 1e-300
#: Terms of one sum over units and points that are worked on at a time.
_CHUNK = 1 << 22
#: For more units than this the moments would take many seconds; then compositions are put on a
#: lattice.
_MOST_MOMENTS = 100


def log_binomial(rate: float, size: int) -> Array:
    """log p_j for j = 0 … k."""
    j = np.arange(size + 1, dtype=float)
    if rate == 1.0:
        return np.where(j == size, 0.0, -np.inf)
    return np.asarray(log_choose(size, j) + j * math.log(rate) + (size - j) * math.log1p(-rate))


@dataclass(frozen=True, eq=False)
class GaussianShifts:
    """N(jμ, 1) with probability p_j, against N(0, 1): the loss L(x) = log Σ p_j·e^(jμx - j²μ²/2)
    grows with x.
    """

    mu: float
    rate: float
    size: int

    @cached_property
    def log_weights(self) -> Array:
        """log p_j."""
        return log_binomial(self.rate, self.size)

    @cached_property
    def shifts(self) -> Array:
        """Where the parts lie, in units of μ."""
        return np.arange(self.size + 1, dtype=float)

    @property
    def farthest(self) -> float:
        """The greatest shift."""
        return float(self.shifts[-1])

    def loss(self, x: Array) -> tuple[Array, Array]:
        """L(x), and its slope in units of k·μ, which grows from 0 to 1."""
        j = self.shifts
        fixed = self.log_weights - (j * self.mu) ** 2 / 2
        chunks = [
            self._log_sum(j, fixed, chunk) for chunk in np.array_split(x, 1 + x.size * j.size // _CHUNK)
        ]
        return np.concatenate([loss for loss, _ in chunks]), np.concatenate([slope for _, slope in chunks])

    def _log_sum(self, j: Array, fixed: Array, x: Array) -> tuple[Array, Array]:
        logs = fixed + np.multiply.outer(x, j * self.mu)
        top = logs.max(axis=1, keepdims=True, initial=-np.inf)
        terms = np.exp(logs - top)
        total = terms.sum(axis=1)
        near = top[:, 0] + np.log(total)
        # close to 0 the sum is close to 1, and only what is added to 1 keeps its digits
        small = np.abs(near) < 0.5
        rise = logs[small] - self.log_weights
        far = np.exp(logs[small]) - np.exp(self.log_weights)
        added = np.where(rise > 1, far, np.exp(self.log_weights) * np.expm1(np.minimum(rise, 1.0)))
        near[small] = np.log1p(added.sum(axis=1))
        return near, (terms * j).sum(axis=1) / total / self.farthest

    def log_ratios(self, x: float) -> Array:
        """log Z_j at x."""
        j = self.shifts
        return np.asarray(j * self.mu * x - (j * self.mu) ** 2 / 2)

    def log_profile(self, count: int, epsilon: float) -> float:
        """log h_j at e^ε, of Gaussian noise moved by `count`."""
        return families.gaussian_log_delta(float(self.shifts[count]) * self.mu, epsilon)

    def point(self, loss: Array) -> Array:
        """The x with L(x) = loss, by Newton's steps inside a bracket that bisection narrows."""
        x = np.interp(loss, self._table[1], self._table[0])
        low, high = np.full(loss.size, self._table[0][0]), np.full(loss.size, self._table[0][-1])
        open_ones = np.arange(loss.size)
        for _ in range(120):
            at = x[open_ones]
            value, slope = self.loss(at)
            above = value >= loss[open_ones]
            left = low[open_ones] = np.where(above, low[open_ones], at)
            right = high[open_ones] = np.where(above, at, high[open_ones])
            with np.errstate(divide="ignore", invalid="ignore"):
                step = at - (value - loss[open_ones]) / (slope * self.farthest * self.mu)
            next_point = np.where((step >= left) & (step <= right), step, (left + right) / 2)
            x[open_ones] = next_point
            open_ones = open_ones[np.abs(next_point - at) > 4e-16 * (1 + np.abs(at))]
            if open_ones.size == 0:
                break
        return x

    @cached_property
    def _table(self) -> tuple[Array, Array]:
        x = np.linspace(-_REACH - 1, _REACH + 1 + self.farthest * self.mu, 1 << 13)
        return x, self.loss(x)[0]

    def masses(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """P(≤ x), P(> x), Q(≤ x), Q(> x)."""
        j, weights = self.shifts, np.exp(self.log_weights)
        p_le, p_gt = np.zeros_like(x), np.zeros_like(x)
        for count, weight in zip(j.tolist(), weights.tolist(), strict=True):
            p_le += weight * ndtr(x - count * self.mu)
            p_gt += weight * ndtr(count * self.mu - x)
        return p_le, p_gt, ndtr(x), ndtr(-x)


class GaussianMixture(GaussianShifts):
    """The same with any shifts and weights: N(s_j·μ, 1) with probability p_j, s_j ≥ 0."""

    def __init__(self, mu: float, parts: Sequence[tuple[float, float]]) -> None:
        super().__init__(mu, 0.0, 0)
        weights: dict[float, float] = {}
        for shift, weight in parts:
            weights[shift] = weights.get(shift, 0.0) + weight
        # A part that does not move at all, however unlikely, keeps the loss bounded from below.
        weights[0.0] = weights.get(0.0, 0.0) + _UNLIKELY
        self.__dict__["shifts"] = np.array(sorted(weights))
        self.__dict__["log_weights"] = np.log([weights[shift] for shift in sorted(weights)])


def gaussian_mixture(mu: float, parts: Sequence[tuple[float, float]]) -> tuple[Pair, Pair]:
    """(removed, added) for a mixture of moved Gaussians, of (shift, probability), against N(0, 1)."""
    mixture = GaussianMixture(mu, parts)
    low, high = mixture.loss(np.array([-_REACH, _REACH + mixture.farthest * mu]))[0].tolist()
    return _with_profiles(
        Profiles(mixture, least=float(mixture.log_weights[0]), greatest=math.inf),
        Pair(low=low, high=high),
        Pair(low=-high, high=-low),
    )


class GroupRatio:
    """r(x) = e^L(x) of Gaussian shifts, for `quadrature`: a mixture of e^(cx) with c = 0, μ, …, kμ."""

    def __init__(self, shifts: GaussianShifts) -> None:
        self.shifts = shifts
        self.steepness: Array = np.array([[shifts.size * shifts.mu]])

    def log_ratio(self, x: Array) -> tuple[Array, Array]:
        loss, slope = self.shifts.loss(x)
        return loss[None, :], slope[None, :]

    def digits(self, x: Array, log_ratio: Array, slope: Array) -> Array:
        """The term without any unit is exact, save for its weight; others have factorials, weights
        and shifts in them.

        Close to 0 the loss is summed as Σ p_j·(e^(…) - 1), so the weights p_j count even where
        those terms have vanished.
        """
        size, rate = self.shifts.size, self.shifts.rate
        steep = size * self.shifts.mu
        share = np.minimum(size * slope - math.expm1(size * math.log1p(-rate)), 1.0)
        fixed = 16 + 8 * math.lgamma(size + 2.0) - 4 * size * math.log(rate) + 4 * steep * steep
        inner = fixed + 4 * steep * np.abs(x)
        floor = -4 * size * math.log1p(-rate)
        return np.asarray(floor + 2 * np.abs(log_ratio) + share * inner)

    def log_beyond(self, cut: Cut, side: float) -> Array:
        j = np.arange(self.shifts.size + 1.0)
        terms = self.shifts.log_weights + log_ndtr((side * j * self.shifts.mu - cut.at) / cut.spread)
        return np.array([_log_sum(terms)])

    def some(self, rows: NDArray[np.int64]) -> GroupRatio:
        """There is one row, and it stands for itself."""
        return self


@dataclass(frozen=True)
class GroupMoments:
    """The moments of Gaussian shifts, in one direction."""

    mu: float
    rate: float
    size: int
    kind: str

    @property
    def merges(self) -> str:
        """Only runs of the same mechanism are summed at one stroke."""
        return repr(self)

    def join(self, entries: list[tuple[GroupMoments, int]]) -> list[RenyiMoments]:
        ratio = GroupRatio(GaussianShifts(self.mu, self.rate, self.size))
        return [SampledSum(ratio, np.array([float(sum(count for _, count in entries))]), self.kind)]

    def log_moments(self, tilts: Array) -> Array:
        return self.join([(self, 1)])[0].log_moments(tilts)

    def upper_log_moments(self, tilts: Array) -> Array:
        return self.join([(self, 1)])[0].upper_log_moments(tilts)

    def line(self, tilt: float) -> Line | None:
        return self.join([(self, 1)])[0].line(tilt)


def gaussian(mu: float, rate: float, size: int) -> tuple[Pair, Pair]:
    """(removed, added) for Gaussian noise: (Σ p_j·N(jμ, 1), N(0, 1)), and the same seen from the
    other side.

    For vectors: the sum of j vectors of length 1 at most is no longer than j, and h_j is that of a
    move by j.
    """
    shifts = GaussianShifts(mu, rate, size)
    low, high = shifts.loss(np.array([-_REACH, _REACH + size * mu]))[0].tolist()
    has_moments = size <= _MOST_MOMENTS
    removed, added = (
        GroupMoments(mu, rate, size, kind) if has_moments else None for kind in ("removed", "added")
    )
    return _with_profiles(
        Profiles(shifts, least=size * math.log1p(-rate), greatest=math.inf),
        Pair(low=low, high=high, moments=removed),
        Pair(low=-high, high=-low, moments=added),
    )


class Shifts(Protocol):
    """Noise that j units move by j, with probability p_j."""

    @property
    def log_weights(self) -> Array:
        """log p_j."""

    def log_ratios(self, x: float) -> Array:
        """log Z_j at x."""

    def log_profile(self, count: int, epsilon: float) -> float:
        """log h_j at e^ε."""

    def point(self, loss: Array) -> Array:
        """The x with this loss."""

    def masses(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """P(≤ x), P(> x), Q(≤ x), Q(> x)."""


@dataclass(frozen=True, eq=False)
class Profiles:
    """Σ p_j·h_j(γ_j) at the γ_j that belong to one point of the line; no two terms cancel.

    The loss lies between `least` and `greatest`.
    """

    shifts: Shifts
    least: float
    greatest: float

    def log_delta_removed(self, epsilon: float) -> float:
        """log H(P‖Q) at e^ε."""
        if epsilon >= self.greatest:
            return -math.inf
        if epsilon <= self.least:
            return log1mexp(epsilon)
        ratios = self._ratios(epsilon)
        return float(np.logaddexp.reduce(self.shifts.log_weights + self._profiles(ratios)))

    def log_delta_added(self, epsilon: float) -> float:
        """log H(Q‖P) at e^ε: with γ = e^ε it is γ·Σ p_j·γ_j·H(Q_j‖P_j) at 1/γ_j."""
        if -epsilon <= self.least:
            return -math.inf
        if -epsilon >= self.greatest:
            return log1mexp(epsilon)
        ratios = self._ratios(-epsilon)
        logs = self.shifts.log_weights + ratios + self._profiles(-ratios)
        return epsilon + float(np.logaddexp.reduce(logs))

    def masses_removed(self, loss: Array) -> tuple[Array, Array, Array, Array]:
        """The cumulative masses of (P, Q)."""
        return self.shifts.masses(self.shifts.point(loss))

    def masses_added(self, loss: Array) -> tuple[Array, Array, Array, Array]:
        """The cumulative masses of (Q, P)."""
        p_le, p_gt, q_le, q_gt = self.shifts.masses(self.shifts.point(-loss))
        return q_gt, q_le, p_gt, p_le

    def _ratios(self, loss: float) -> Array:
        return self.shifts.log_ratios(float(self.shifts.point(np.array([loss]))[0]))

    def _profiles(self, ratios: Array) -> Array:
        """log h_j(e^ratio); with none of the units nothing is seen."""
        later = enumerate(ratios.tolist()[1:], 1)
        return np.array([-math.inf, *(self.shifts.log_profile(j, ratio) for j, ratio in later)])


def _with_profiles(profiles: Profiles, removed: Pair, added: Pair) -> tuple[Pair, Pair]:
    """Both directions, with their cumulative masses and their curves."""
    return (
        replace(removed, smooth=profiles.masses_removed, log_delta=profiles.log_delta_removed),
        replace(added, smooth=profiles.masses_added, log_delta=profiles.log_delta_added),
    )


@dataclass(frozen=True, eq=False)
class LaplaceShifts:
    """Laplace noise of scale 1/ε around j with probability p_j, against the same around 0.

    The loss moves between 0 and k and is constant outside. Between the whole numbers m and m+1 the
    ratio is A + B·e^(2εx) with A = Σ_{j≤m} p_j·e^(εj) and B = Σ_{j>m} p_j·e^(-εj).
    """

    epsilon: float
    rate: float
    size: int

    @cached_property
    def log_weights(self) -> Array:
        return log_binomial(self.rate, self.size)

    def log_ratios(self, x: float) -> Array:
        """log Z_j at x."""
        return np.asarray(self.epsilon * (abs(x) - np.abs(x - np.arange(self.size + 1.0))))

    def log_profile(self, count: int, epsilon: float) -> float:
        """log h_j at e^ε, of Laplace noise moved by `count`."""
        return families.laplace_log_delta(count * self.epsilon, epsilon)

    @cached_property
    def knots(self) -> Array:
        """The loss at 0, 1, …, k."""
        return np.array([_log_sum(self.log_weights + self.log_ratios(m)) for m in range(self.size + 1)])

    @cached_property
    def _log_rising(self) -> Array:
        """log B + 2εm for each m below k."""
        terms = self.log_weights - self.epsilon * np.arange(self.size + 1.0)
        return np.array([_log_sum(terms[m + 1 :]) + 2 * self.epsilon * m for m in range(self.size)])

    def point(self, loss: Array) -> Array:
        """The x in [0, k] with this loss."""
        cell = np.clip(np.searchsorted(self.knots, loss, side="right") - 1, 0, self.size - 1)
        start = self.knots[cell]
        # by logarithms: of a large group B may be far below the least double
        with np.errstate(divide="ignore", over="ignore"):
            log_share = np.log(np.expm1(np.maximum(loss - start, 0.0))) + start - self._log_rising[cell]
        return np.asarray(cell + np.minimum(np.logaddexp(0.0, log_share) / (2 * self.epsilon), 1.0))

    def masses(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """P[0, x], P[x, k], Q[0, x], Q[x, k]."""
        p_le, p_gt = np.zeros_like(x), np.zeros_like(x)
        for count, weight in enumerate(np.exp(self.log_weights).tolist()):
            below, above = _laplace_between(self.epsilon, x, float(count), self.size)
            p_le, p_gt = p_le + weight * below, p_gt + weight * above
        return p_le, p_gt, *_laplace_between(self.epsilon, x, 0.0, self.size)


def laplace(epsilon: float, rate: float, size: int) -> tuple[Pair, Pair]:
    """(removed, added) for Laplace noise of scale 1/ε."""
    shifts = LaplaceShifts(epsilon, rate, size)
    least, greatest = float(shifts.knots[0]), float(shifts.knots[-1])
    ends, q = shifts.knots[[0, -1]], np.array([0.5, math.exp(-epsilon * size) / 2])
    p = q * np.exp(ends)
    return _with_profiles(
        Profiles(shifts, least, greatest),
        Pair(losses=ends, p=p, q=q, low=least, high=greatest),
        Pair(losses=-ends, p=q, q=p, low=-greatest, high=-least),
    )


def _laplace_between(epsilon: float, x: Array, centre: float, size: int) -> tuple[Array, Array]:
    """Masses of Laplace noise around `centre` on [0, x] and on [x, size], without cancellation."""
    near, far = np.minimum(x, centre), np.maximum(x, centre)
    below = np.exp(epsilon * (near - centre)) * -np.expm1(-epsilon * near) - np.expm1(
        -epsilon * (far - centre)
    )
    above = np.exp(epsilon * (centre - far)) * -np.expm1(-epsilon * (size - far)) - np.expm1(
        epsilon * (near - centre)
    )
    return below / 2, above / 2


def is_listable(scale: float, shift: int) -> bool:
    """Whether integer Gaussian noise that moves so far has few enough outcomes."""
    return 2 * (_REACH * scale + 3) + shift <= families.MOST_ATOMS


def discrete_gaussian(scale: float, shift: int, rate: float, size: int) -> tuple[Pair, Pair]:
    """(removed, added) for integer Gaussian noise that j units move by j·shift; see `is_listable`."""
    reach = math.ceil(_REACH * scale) + 2
    log_mass, log_weights = families.gaussian_log_mass(scale), log_binomial(rate, size)
    z = np.arange(-reach, reach + shift * size + 1, dtype=float)
    moves = [weight + log_mass(z - j * shift) for j, weight in enumerate(log_weights.tolist())]
    log_p, log_q = np.logaddexp.reduce(moves, axis=0), log_mass(z)
    removed = Pair(losses=log_p - log_q, p=np.exp(log_p), q=np.exp(log_q))
    return removed, Pair(losses=-removed.losses, p=removed.q, q=removed.p)


def geometric(epsilon: float, shift: int, rate: float, size: int) -> tuple[Pair, Pair]:
    """(removed, added) for integer Laplace noise of scale 1/ε: below 0 and above k·shift the loss
    is constant.
    """
    reach = shift * size
    centres = np.arange(size + 1) * float(shift)
    z = np.arange(reach + 1, dtype=float)
    inner, edge = math.tanh(epsilon / 2), 1 / (1 + math.exp(-epsilon))
    ends = (z == 0) | (z == reach)
    p, losses = np.zeros(z.size), np.full(z.size, -np.inf)
    for log_weight, centre in zip(log_binomial(rate, size).tolist(), centres.tolist(), strict=True):
        # from 0 down and from k·shift up the masses are those of a whole geometric tail
        away = epsilon * np.abs(z - centre)
        p += np.exp(log_weight - away)
        losses = np.logaddexp(losses, log_weight - away + epsilon * np.abs(z))
    p *= np.where(ends, edge, inner)
    q = np.exp(-epsilon * np.abs(z)) * np.where(ends, edge, inner)
    return Pair(losses=losses, p=p, q=q), Pair(losses=-losses, p=q, q=p)


def couple(profiles: list[Pair], log_weights: Array) -> tuple[Pair, Pair]:
    """(removed, added) from one pair for each number of units, 1 … k: their ratios are put in one
    order.

    From the greatest ratio down each distribution is cut where any of them jumps; a cell of Q-mass
    m has P-mass m·Σ p_j·Z_j. Where the Q-mass of a distribution ends before 1 its ratio is 0.
    """
    weights = np.exp(log_weights)
    falling_ratios = [_falling(pair) for pair in profiles]
    ends = np.unique(np.concatenate([[1.0], *(cumulative for _, cumulative, _ in falling_ratios)]))
    ends = ends[(ends > 0.0) & (ends <= 1.0)]
    mass = np.diff(ends, prepend=0.0)
    p = weights[0] * mass
    for weight, (ratios, cumulative, _) in zip(weights[1:], falling_ratios, strict=True):
        cell = np.minimum(np.searchsorted(cumulative, ends, side="left"), ratios.size - 1)
        # what is missing by rounding alone belongs to the last ratio
        lacks = ends > cumulative[-1] + 1e-12
        p = p + np.where(lacks, 0.0, weight * np.exp(ratios[cell] + np.log(mass)))
    infinite = float(np.sum(weights[1:] * np.array([lost for _, _, lost in falling_ratios])))
    pair = atoms(p, mass)
    removed = Pair(losses=pair.losses, p=pair.p, q=pair.q, infinite=infinite, vanishing=pair.vanishing)
    added = Pair(losses=-pair.losses, p=pair.q, q=pair.p, infinite=pair.vanishing, vanishing=infinite)
    return removed, added


def _falling(pair: Pair) -> tuple[Array, Array, float]:
    """The losses of a pair from the greatest down, the Q-mass from the top to each of them, and
    what is revealed.
    """
    if pair.smooth is not None:
        width = (pair.greatest - pair.least) * 1e-4
        masses = spread(pair, knots_around(0.0, pair.least, pair.greatest, width, 1 / 256))
        q = masses.p * np.exp(-masses.losses)
        pair = Pair(losses=masses.losses, p=masses.p, q=q, infinite=masses.infinite)
    order = np.argsort(-pair.losses, kind="stable")
    return pair.losses[order], np.cumsum(pair.q[order]), pair.infinite


def _log_sum(logs: Array) -> float:
    return float(np.logaddexp.reduce(logs)) if logs.size else -math.inf
