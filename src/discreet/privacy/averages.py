# SPDX-License-Identifier: Apache-2.0
"""The average of independent copies of a likelihood ratio, from above and from below in convex
order.

X = dP/dQ is a random number under Q, X ≥ 0 with mean 1 (less where P has mass that Q has not), and
Z is the average of t independent copies. For every convex function f, E f(Z) is at most that of the
distribution behind `upper` and at least that of the one behind `lower`. Both hockey-stick
divergences, E(Z - γ)₊ and E(1 - γZ)₊, are such functions.

Why it holds. A distribution grows in convex order if a value is split into two with the same mean,
and falls if values are merged to their mean. Averages of independent numbers keep the order: if S ≤
S* and T ≤ T* then aS + bT ≤ aS* + bT* (condition on one of them). So one may split (or merge) after
every average, and about log₂ t averages are enough.

Values lie on 0 and on a lattice of logarithms. A split sends a value to its two neighbours; the
shares depend on the distance of the two averaged values alone, so an average is one product of
shifted vectors for each distance. What lies above the lattice is split between 0 and a point that
runs to ∞: its mean is kept as `infinite`, its mass goes to 0.

Rounding. All numbers are sums of products of positive numbers, and a share that is rounded is the
exact share of a value that is rounded. So masses and values are those of such a distribution up to
a relative error, `Law.error`; of a product it is the sum of both errors, so it grows like t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discreet.privacy.lattice import mass_between
from discreet.privacy.logarithms import Array
from discreet.privacy.pairs import Pair

#: Points of a lattice, at most. One that has become half as long is made twice as fine.
_POINTS = 6000
#: P- or Q-mass that is cut off at an end of the lattice, at most, after each average.
_CUT = 1e-26
#: Losses beyond this are not represented.
_FARTHEST = 300.0
#: The unit of rounding.
_UNIT = 2.0**-52


@dataclass(frozen=True, eq=False)
class Law:
    """Q-mass near e^(start + i·step), and in `first` the share of the mean that it holds.

    In an upper bound `first` is mass times value; in a lower one values lie anywhere near their
    point. `zero` is mass at 0, `infinite` the part of the mean that has run away.
    """

    start: float
    step: float
    mass: Array
    first: Array
    zero: float
    infinite: float
    error: float

    def pairs(self, *, upper: bool) -> tuple[Pair, Pair]:
        """(P, Q) and (Q, P), each rounded to its safe side."""
        some = (self.mass > 0) & (self.first > 0)
        p, q = self.first[some], self.mass[some]
        rest = self.zero + float(self.mass[~some].sum())
        # Both tables may be off by `error`.
        move = self.error if upper else -self.error
        removed = _rounded_pair(p, q, self.infinite, rest, move)
        return removed, _rounded_pair(q, p, rest, self.infinite, move)


def _rounded_pair(p: Array, q: Array, infinite: float, vanishing: float, move: float) -> Pair:
    losses, grown = np.log(p) - np.log(q) + 2 * move, p * (1 + move)
    return Pair(
        losses=losses,
        p=grown,
        q=grown * np.exp(-losses),
        infinite=min(1.0, infinite * (1 + move)),
        vanishing=min(1.0, vanishing * (1 + move)),
    )


def average(pair: Pair, count: int, *, upper: bool) -> Law | None:
    """A distribution above (below) that of the average of `count` copies; None if the ratio spans
    too much.
    """
    single = _single(pair, count, upper=upper)
    if single is None:
        return None
    laws = {1: single}
    for level in _levels(count):
        mixed = [_halves(laws, size, upper=upper) for size in level]
        laws = dict(zip(level, _refine(mixed, upper=upper), strict=True))
    return laws[count]


def _levels(count: int) -> list[list[int]]:
    """The sizes of the averages that are needed, smallest first: each is the sum of two from the
    level before.
    """
    levels = [[count]]
    while levels[0] != [1]:
        levels.insert(0, sorted({half for size in levels[0] for half in (size // 2, -(-size // 2)) if half}))
    return levels[1:]


def _halves(laws: dict[int, Law], size: int, *, upper: bool) -> Law:
    """The average of `size` copies from the averages of its two halves."""
    small, large = size // 2, -(-size // 2)
    if not small:
        return laws[1]
    return _mix(laws[small], laws[large], small / size, upper=upper)


# --- one copy -------------------------------------------------------------------------------------


def _single(pair: Pair, count: int, *, upper: bool) -> Law | None:
    """The ratio of the pair itself."""
    low, high = _range(pair)
    # An average with zeros may lie below all that is averaged.
    low -= math.log(count) if pair.vanishing > 0 else 0.0
    if max(-low, high) > _FARTHEST:
        return None
    # A ratio of one value only still needs a lattice around it.
    step = max(high - low, 1e-9) / (_POINTS - 2)
    start = low - step / 2 if high - low < 1e-9 else low
    losses = start + step * np.arange(_POINTS)
    p, q, error = mass_between(pair, losses)
    zero, infinite = pair.vanishing, pair.infinite
    mass, first = np.zeros(_POINTS), np.zeros(_POINTS)
    values = np.exp(losses)
    if not upper:
        # Whatever lies outside is merged with the nearest cell.
        mass[0], first[0], mass[-1], first[-1] = q[0], p[0], q[-1], p[-1]
        mass[:-1] += q[1:-1]
        first[:-1] += p[1:-1]
        return _by_mean(Law(start, step, mass, first, zero, infinite, error))
    share = np.clip((p[1:-1] / values[:-1] - q[1:-1]) / np.expm1(step), 0.0, q[1:-1])
    mass[:-1] += q[1:-1] - share
    mass[1:] += share
    mass[0] += min(p[0] / values[0], q[0])
    zero += max(q[0] - p[0] / values[0], 0.0) + q[-1]
    return Law(start, step, mass, mass * values, zero, infinite + p[-1], error)


def _range(pair: Pair) -> tuple[float, float]:
    """Losses between which there is all but a little P- and Q-mass."""
    low, high = pair.least, pair.greatest
    if pair.smooth is None:
        return low, high
    losses = np.linspace(pair.low, pair.high, 4 * _POINTS)
    _, p_above, q_below, _ = pair.smooth(losses)
    ends = losses[(q_below > _CUT) & (p_above > _CUT)]
    ends = np.concatenate([ends, pair.losses])
    return float(ends.min()), float(ends.max())


# --- averages of two ------------------------------------------------------------------------------


def _mix(left: Law, right: Law, share: float, *, upper: bool) -> Law:
    """share·S + (1 - share)·T of independent S and T on the same lattice."""
    size, step = left.mass.size, left.step
    mass, first = np.zeros(size + 1), np.zeros(size + 1)
    distances = step * np.arange(size)
    sides = [(left, right, share)] if left is right else [(left, right, share), (right, left, 1 - share)]
    for far, near, weight in sides:
        # `far` holds the greater value; the average is that value times this factor.
        factors = weight + (1 - weight) * np.exp(-distances)
        fall, up = _places(factors, step, upper=upper)
        for distance in range(0 if far is left else 1, size):
            product = far.mass[distance:] * near.mass[: size - distance]
            if left is right and distance:
                product *= 2
            at = distance - fall[distance]
            if upper:
                raised = product * up[distance]
                mass[at : at + product.size] += product - raised
                mass[at + 1 : at + 1 + product.size] += raised
                continue
            mass[at : at + product.size] += product
            moved = weight * (far.first[distance:] * near.mass[: size - distance])
            moved += (1 - weight) * (far.mass[distance:] * near.first[: size - distance])
            first[at : at + product.size] += 2 * moved if left is right and distance else moved
    mixed = Law(
        left.start,
        step,
        mass[:size],
        first[:size],
        left.zero * right.zero,
        share * left.infinite + (1 - share) * right.infinite,
        left.error + right.error + (2 * size + 64) * _UNIT,
    )
    for law, zero, weight in ((left, right.zero, share), (right, left.zero, 1 - share)):
        mixed = _with_scaled(mixed, law, zero, weight, upper=upper)
    return replace(mixed, first=mixed.mass * _values(mixed)) if upper else _by_mean(mixed)


def _places(factors: Array, step: float, *, upper: bool) -> tuple[NDArray[np.int64], Array]:
    """How many points down the lattice a factor leads, and the share that goes one point higher."""
    exact = -np.log(factors) / step
    if not upper:
        return np.rint(exact).astype(np.int64), np.zeros_like(factors)
    fall = np.ceil(exact).astype(np.int64)
    return fall, np.clip((factors * np.exp(step * fall) - 1) / math.expm1(step), 0.0, 1.0)


def _with_scaled(mixed: Law, law: Law, chance: float, weight: float, *, upper: bool) -> Law:
    """Also weight·S where the other of the two is 0, which has this chance."""
    if chance == 0:
        return mixed
    (fall,), (up,) = _places(np.array([weight]), law.step, upper=upper)
    mass, first, zero = mixed.mass.copy(), mixed.first.copy(), mixed.zero
    places, product, moved = np.arange(mass.size) - fall, chance * law.mass, chance * weight * law.first
    if not upper:
        np.add.at(mass, np.maximum(places, 0), product)
        np.add.at(first, np.maximum(places, 0), moved)
        return replace(mixed, mass=mass, first=first)
    inside = places >= 0
    np.add.at(mass, places[inside], product[inside] * (1 - up))
    np.add.at(mass, np.minimum(places[inside] + 1, mass.size - 1), product[inside] * up)
    # Below the lattice the two neighbours are 0 and its first point.
    reached = float((moved[~inside] / math.exp(law.start)).sum())
    mass[0] += reached
    zero += max(float(product[~inside].sum()) - reached, 0.0)
    return replace(mixed, mass=mass, zero=zero)


# --- the lattice ----------------------------------------------------------------------------------


def _values(law: Law) -> Array:
    return np.asarray(np.exp(law.start + law.step * np.arange(law.mass.size)))


def _by_mean(law: Law) -> Law:
    """Every cell of a lower bound at the point next to its mean."""
    some = (law.mass > 0) & (law.first > 0)
    mass, first = law.mass[some], law.first[some]
    places = np.rint((np.log(first) - np.log(mass) - law.start) / law.step).astype(np.int64)
    places = np.clip(places, 0, law.mass.size - 1)
    size = law.mass.size
    lost = float(law.mass[~some].sum())
    return replace(
        law,
        mass=np.asarray(np.bincount(places, mass, size), float),
        first=np.asarray(np.bincount(places, first, size), float),
        zero=law.zero + lost,
    )


def _refine(laws: list[Law], *, upper: bool) -> list[Law]:
    """The same laws without the ends that hold next to nothing, on a lattice as fine as has room."""
    ends = [_ends(law) for law in laws]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    laws = [_cut(law, low, high, upper=upper) for law in laws]
    while 2 * laws[0].mass.size - 1 <= _POINTS:
        laws = [_halve(law) for law in laws]
    return laws if upper else [_by_mean(law) for law in laws]


def _ends(law: Law) -> tuple[int, int]:
    """The first and the last point that are kept."""
    below, above = np.cumsum(law.mass) > _CUT, np.cumsum(law.first[::-1])[::-1] > _CUT
    low = int(np.argmax(below)) if below.any() else 0
    high = law.mass.size - 1 - int(np.argmax(above[::-1])) if above.any() else law.mass.size - 1
    return min(low, high), max(low, high)


def _cut(law: Law, low: int, high: int, *, upper: bool) -> Law:
    """The points from `low` to `high`; the others as `_single` treats what lies outside."""
    start = law.start + low * law.step
    mass, first = law.mass[low : high + 1].copy(), law.first[low : high + 1].copy()
    below, above = slice(0, low), slice(high + 1, None)
    zero, infinite = law.zero, law.infinite
    if upper:
        reached = float(law.first[below].sum()) / math.exp(start)
        mass[0] += reached
        first[0] += float(law.first[below].sum())
        zero += max(float(law.mass[below].sum()) - reached, 0.0) + float(law.mass[above].sum())
        infinite += float(law.first[above].sum())
    else:
        for end, outside in ((0, below), (-1, above)):
            mass[end] += float(law.mass[outside].sum())
            first[end] += float(law.first[outside].sum())
    return replace(law, start=start, mass=mass, first=first, zero=zero, infinite=infinite)


def _halve(law: Law) -> Law:
    """The same law on a lattice of half the step."""
    mass, first = np.zeros(2 * law.mass.size - 1), np.zeros(2 * law.mass.size - 1)
    mass[::2], first[::2] = law.mass, law.first
    return replace(law, step=law.step / 2, mass=mass, first=first)
