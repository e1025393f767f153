# SPDX-License-Identifier: Apache-2.0
"""Compositions in which a few rare, large losses decide δ next to a great many small ones.

Take the outcome x of each step to be a *jump* with probability 1 - χ(x), χ(x) = Φ((c - x)/τ), and
*small* otherwise. Both have the loss log r(x), so with P = χP + (1 - χ)P =: B + J and j counting
the jumps among k steps

    δ(ε) = Σ_j C(k, j)·∫ J^{*j}(dl)·h_{k-j}(ε - l),     h_n(y) = H_{e^y}(B^n ‖ (χQ)^n).

Every term is positive: none has to be found as the small difference of large ones, as a single tilt
would have it.

**Guarantee.** `Jumps.log_delta(ε, upper=True)` is never below log δ(ε), with `upper=False` never
above it.

Why it holds. δ is an integral over P of an increasing function of the total loss, so more mass and
larger losses raise it.

- *Masses.* x is cut into cells in which χ falls: its value at either end is a bound. Q and P of a
  cell are normal masses.
- *Losses* go to a lattice by `lattice.spread_cells` (dominating) and `lattice.contract_cells`
  (dominated).
- *How many.* (k-J)^j/j! ≤ C(k, j) ≤ k^j/j! for j ≤ J. So the sum of all jumps is exp of their
  measure as a power series, T_i = Σ_m (m/i)·ν_m·T_{i-m}; more than J of them have mass ≤
  ν^{J+1}/(J+1)!·e^ν, and sums beyond the lattice at most what Chernoff's bound says. Both count as
  revealed above and as nothing below.
- *Which h.* Forgetting a small step is post-processing: h_{n+1}(y) ≥ (1-m_P)·h_n(y + η), where m_P,
  m_Q are the masses of jumps in one step and η = log((1-m_Q)/(1-m_P)). So h_k stands for all
  h_{k-j} above, and h_{k-J} below.
- *h itself* comes from `inversion` at a ladder of tilts, the best at each y. It falls, and is
  convex in γ = e^y: far below the bulk it lies under the chord to γ = 0, where it is the mass of
  B^k, and always above that mass less γ.
- *Jumps beyond the lattice* are one such chord at most (two of them count as revealed), so their P-
  and Q-mass is enough.

What would break it: normal masses or sums of positive numbers less accurate than `_SLACK` allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr, ndtr

from discreet.privacy.inversion import Inversion, Spectrum
from discreet.privacy.lattice import contract_cells, spread_cells
from discreet.privacy.logarithms import Array
from discreet.privacy.moments import RenyiMoments, log_peak
from discreet.privacy.quadrature import Dilution, SampledSum

#: Jumps expected in all, the width τ, and the most jumps at once (J).
_EXPECTED, _WIDTH, _MOST_JUMPS = 0.3, 0.003, 64
#: Cells of the lattice for each ε, how many ε it is long, and a loss so much above ε that it is as
#: bad as any.
_FINE, _LONG, _FAR = 1000, 3, 12.0
#: Cells in which χ changes.
_CHANGES = 1 << 11
#: Tilts of the ladder, in units of one over the standard deviation of the bulk, and how far from
#: its centre each is used.
_LADDER, _NEAR = (0.3, 1.5, *range(4, 40, 3)), 5.0
#: Relative error of sums of positive products along a lattice of up to 32,000 points, one for each
#: number of jumps (64 at most), and of everything before them: 64 · 32,000 · 2⁻⁵³ is 3e-10 for each
#: of the two factors, and this is far more.
_SLACK = 1e-7
#: Relative error of the masses of a cell.
_CLOSE = 1e-11
#: δ below this is out of reach of doubles, ε above this of the lattice.
_LEAST, _FARTHEST = 1e-280, 100.0
#: The coarsest lattice, the tilt that stands for none, and how much wider than the bulk a tilted
#: one may be.
_COARSEST, _UNTILTED, _UNLIKE = 0.004, 1e-3, 10.0
#: Different mechanisms, at most, and by how much log δ of both sides may differ.
_MOST_KINDS, _USEFUL = 16, 0.02


@dataclass(frozen=True, eq=False)
class Bulk:
    """h of the small losses: an inversion for each tilt, and logarithms of the masses of B^n and
    (χQ)^n.
    """

    ladder: tuple[tuple[Inversion, float], ...]
    log_p: float
    log_q: float

    def profile(self, y: Array, *, upper: bool) -> Array:
        """h at falling y, on the safe side."""
        heights = np.full(y.size, 1.0 if upper else 0.0)
        better = np.minimum if upper else np.maximum
        for inversion, deviation in self.ladder:
            some = np.abs(y - inversion.centre) <= _NEAR * deviation
            if some.any():
                heights[some] = better(heights[some], np.exp(_log_profile(inversion, y[some], upper=upper)))
        if not upper:
            plain = math.exp(self.log_p) * (1 - 1e-12) - np.exp(np.minimum(y, 1.0) + self.log_q) * (1 + 1e-12)
            return np.asarray(np.maximum.accumulate(np.maximum(heights, plain)))
        inversion, deviation = self.ladder[0]
        joint = np.array([inversion.centre - _NEAR * deviation])
        height_at_joint, share = (
            float(np.exp(_log_profile(inversion, joint, upper=True))[0]),
            np.exp(np.minimum(y - joint, 0.0)),
        )
        mass = math.exp(self.log_p) * (1 + 1e-12)
        chord = np.where(y <= joint, mass + share * (min(height_at_joint, mass) - mass), 1.0)
        heights = np.minimum(np.minimum(heights, chord), self._above(y))
        return np.asarray(np.minimum.accumulate(heights[::-1])[::-1])

    def _above(self, y: Array) -> Array:
        """Above the centre of a tilted distribution h is less than there, however far apart the
        points in question are.
        """
        centres, bounds = self._centres
        return np.append(1.0, np.minimum.accumulate(bounds))[np.searchsorted(centres, y)]

    @cached_property
    def _centres(self) -> tuple[Array, Array]:
        centres = np.sort([inversion.centre for inversion, _ in self.ladder])
        logs = np.min([_log_profile(inversion, centres, upper=True) for inversion, _ in self.ladder], axis=0)
        return centres, np.exp(logs)


def _log_profile(inversion: Inversion, y: Array, *, upper: bool) -> Array:
    return np.array([inversion.log_delta(float(at), upper=upper) for at in y])


class Jumps:
    """A composition of sampled Gaussians, of which records are removed; see the module docstring."""

    def __init__(self, steps: SampledSum, ratio: Dilution) -> None:
        self.steps, self.ratio = steps, ratio
        self.p = np.exp(ratio.log_beyond(steps.cut, 1.0))
        self.q = np.full(self.p.size, math.exp(log_ndtr(-steps.cut.at / steps.cut.spread)))
        #: the greatest mass of jumps in one step, and η
        self.share = float(self.p.max()) * (1 + 1e-12)
        self.drop = max(0.0, float(np.max(np.log1p(-self.q) - np.log1p(-self.p)))) * (1 + 1e-9)

    def log_delta(self, epsilon: float, *, upper: bool) -> float | None:
        """log δ(ε), on the safe side; None if it is out of reach."""
        bulk = self.bulks[upper]
        if bulk is None or not 0 <= epsilon <= _FARTHEST:
            return None
        log_delta = self.sums(bulk, max(epsilon, bulk.ladder[0][1]), upper=upper).log_delta(epsilon)
        return log_delta if not upper or log_delta > math.log(_LEAST) else None

    def is_tight(self, epsilon: float) -> bool:
        """Whether both sides agree at ε, up to what is of use."""
        upper, lower = (self.log_delta(epsilon, upper=side) for side in (True, False))
        return upper is not None and lower is not None and upper - lower <= _USEFUL

    def epsilon(self, delta: float, *, upper: bool) -> float | None:
        """An ε on the safe side of that of δ; None if it is out of reach."""
        bulk, target = self.bulks[upper], math.log(delta)
        if bulk is None or delta < 1e3 * _LEAST:
            return None
        scale = bulk.ladder[0][1] * math.sqrt(max(1.0, -2 * target))
        bracket = _bracket(lambda at: self.sums(bulk, at, upper=upper).log_delta(at) - target, scale)
        if bracket is None:
            return None
        sums = self.sums(bulk, bracket[1], upper=upper)
        low, high = _narrow(lambda at: sums.log_delta(at) - target, *bracket)
        return high if upper else low

    @cached_property
    def bulks(self) -> dict[bool, Bulk | None]:
        """For upper bounds (of all steps) and for lower ones (of all but J of each kind)."""
        return {True: self._bulk(self.steps.counts), False: self._bulk(self.steps.counts - _MOST_JUMPS)}

    def _bulk(self, counts: Array) -> Bulk | None:
        steps = replace(self.steps, counts=counts)
        spectrum, ladder, unit = Spectrum([(steps, 1)], 0.0), [], 0.0
        for rung in (0.0, *_LADDER):
            line = steps.line(rung / unit if rung else _UNTILTED)
            if line is None or line.variance <= 0:
                break
            deviation = math.sqrt(line.variance)
            unit = unit or deviation
            if deviation > _UNLIKE * unit:
                break
            tilt = line.tilt
            log_delta = line.log_moment - tilt * line.centre + float(log_peak(np.array([tilt]))[0]) - 4
            inversion = spectrum.invert(tilt, line.centre, log_delta) if rung else None
            ladder += [(inversion, deviation)] if inversion else []
        log_p, log_q = (float(np.sum(counts * np.log1p(-mass))) for mass in (self.p, self.q))
        return Bulk(tuple(ladder), log_p, log_q) if ladder else None

    def sums(self, bulk: Bulk, scale: float, *, upper: bool) -> JumpSums:
        """The sums of jumps, for ε of about this size."""
        step = min(scale / _FINE, _COARSEST)
        knots = step * np.arange(math.ceil(min(_LONG * scale, scale + _FAR) / step) + 1)
        p, q = self._cells(knots, upper=upper)
        size, total = knots.size + min(knots.size, math.ceil(_FAR / step)), float(p.sum())
        many = total + (_MOST_JUMPS + 1) * math.log(total) - math.lgamma(_MOST_JUMPS + 2)
        if upper:
            single = spread_cells(p[1:-1], q[1:-1], knots)
            single[0] += p[0]
            revealed = math.exp(many) + p[-1] ** 2 / 2 * math.exp(p[-1])
            revealed += math.exp(_log_farther(single, step, size))
            masses = _compound(single, size)
        else:
            single, revealed = contract_cells(p[1:-1], q[1:-1], knots), math.exp(many)
            masses = _compound(single, size) * (1 - self.share) ** _MOST_JUMPS
        return JumpSums(
            bulk=bulk,
            step=step,
            masses=masses,
            beyond=(float(p[-1]), float(q[-1])),
            reach=float(knots[-1]),
            revealed=revealed * (1 + _SLACK),
            drift=_MOST_JUMPS * (self.drop + 1e-13 * min(1.0, float(knots[-1]))),
            grown=1 / (1 - self.share),
            upper=upper,
        )

    def _cells(self, knots: Array, *, upper: bool) -> tuple[Array, Array]:
        """P- and Q-mass of all jumps below the first knot, in each cell and beyond the last, on the
        safe side.
        """
        cut = self.steps.cut
        changes = cut.at + cut.width * np.linspace(-14, 14, _CHANGES)
        p, q = np.zeros((2, knots.size + 1))
        for mu, rate, count in zip(
            self.ratio.mu[:, 0], self.ratio.rate[:, 0], self.steps.counts, strict=True
        ):
            ends = (np.log((np.expm1(knots) + rate) / rate) + mu * mu / 2) / mu
            edges = np.concatenate([[-np.inf], np.sort(np.concatenate([ends, changes])), [np.inf]])
            weight = cut.lost_share(edges[1:] if upper else edges[:-1])
            weight *= count / (1 - self.share) if upper else count - _MOST_JUMPS
            absent, present = weight * _normal(edges), weight * _normal(edges - mu)
            cell = np.searchsorted(ends, edges[1:], side="left")
            q += np.bincount(cell, absent, knots.size + 1)
            p += np.bincount(cell, (1 - rate) * absent + rate * present, knots.size + 1)
        side = 1 if upper else -1
        return p * (1 + side * _CLOSE), q * (1 - side * _CLOSE)


@dataclass(frozen=True, eq=False)
class JumpSums:
    """The measure of the sum of all jumps on a lattice, and the P- and Q-mass of single jumps that
    reach `beyond` it.

    `revealed` is mass of which nothing more is known, `drift` how far sums of losses may be off,
    `grown` what one more step takes at most.
    """

    bulk: Bulk
    step: float
    masses: Array
    beyond: tuple[float, float]
    reach: float
    revealed: float
    drift: float
    grown: float
    upper: bool

    def log_delta(self, epsilon: float) -> float:
        """log δ(ε), on the safe side."""
        p, q = self.beyond
        level, slope = self._chord(epsilon)
        total = self._within(epsilon) + max(0.0, level * p - slope * q * math.exp(epsilon))
        if self.upper:
            return min(0.0, math.log((total + self.revealed) * (1 + _SLACK) + _LEAST / 2))
        total -= self.revealed
        return math.log(total) + math.log1p(-_SLACK) if total > 0 else -math.inf

    def _within(self, epsilon: float) -> float:
        """δ(ε) of everything but the jumps beyond the lattice and what is revealed."""
        shift = -self.drift if self.upper else self.drift
        y = epsilon + shift - self.step * np.arange(self.masses.size)
        return float(np.sum(self.masses * self.bulk.profile(y, upper=self.upper)))

    def _chord(self, epsilon: float) -> tuple[float, float]:
        """Together with a jump beyond the lattice, the profile of all the rest is at most (at
        least) a - b·γ: a and b.
        """
        if not self.upper:
            return float(self.masses.sum()) * math.exp(self.bulk.log_p) * (1 - _SLACK) - self.revealed, 1.0
        height_at_reach = (self._within(epsilon - self.reach) + self.revealed) * (1 + _SLACK) * self.grown
        return 1.0, max(0.0, 1.0 - height_at_reach) * math.exp(self.reach - epsilon)


def jumps_of(moments: RenyiMoments, count: int) -> Jumps | None:
    """The jumps of a sum of sampled Gaussians; None if it is none, or if a jump is not rare in it."""
    if (
        count > 1
        or not isinstance(moments, SampledSum)
        or moments.kind != "removed"
        or not isinstance(moments.ratio, Dilution)
    ):
        return None
    if moments.counts.size > _MOST_KINDS or float(moments.counts.min()) < 4 * _MOST_JUMPS:
        return None
    cut = moments.cut_to(math.log(_EXPECTED), 0.0, _WIDTH)
    return Jumps(cut, moments.ratio) if cut is not None else None


def _bracket(over: Callable[[float], float], scale: float) -> tuple[float, float] | None:
    """Some ε where a falling function is above 0 and some, little greater, where it is not; None if
    there are none.
    """
    low, high = 0.0, math.inf
    for _ in range(40):
        if scale > _FARTHEST:
            return None
        if over(scale) > 0:
            low = scale
        else:
            high = scale
        if high <= 1.3 * low:
            return low, high
        scale = math.sqrt(low * high) if low and math.isfinite(high) else scale * (2.0 if low else 0.5)
    return None


def _narrow(over: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """A bracket of the root of a falling function, narrowed by false position and halving in turn."""
    above, below = over(low), over(high)
    for turn in range(40):
        if high - low <= 1e-6 * high or not above > 0 >= below:
            break
        share = above / (above - below) if turn % 3 < 2 and math.isfinite(above) else 0.5
        # a little beyond the chord, to the side that moves less
        middle = low + (high - low) * min(max(share, 0.01), 0.99)
        value = over(middle)
        low, above, high, below = (middle, value, high, below) if value > 0 else (low, above, middle, value)
    return low, high


def _compound(masses: Array, size: int) -> Array:
    """exp of a measure on 0, 1, … under convolution, as far as `size`."""
    sums = np.zeros(size)
    sums[0] = math.exp(masses[0])
    weighted = (np.arange(masses.size) * masses)[:0:-1]
    for at in range(1, size):
        few = min(at, weighted.size)
        sums[at] = float((weighted[weighted.size - few :] * sums[at - few : at]).sum()) / at
    return sums


def _log_farther(masses: Array, step: float, size: int) -> float:
    """log of a bound on the measure of sums at or beyond `size` steps."""
    losses, end = np.arange(masses.size) * step, size * step
    rates = np.geomspace(1e-2, 600.0, 100) / end
    moments = np.array([float((masses * np.exp(rate * losses)).sum()) for rate in rates])
    return float(np.min(moments - rates * end))


def _normal(edges: Array) -> Array:
    """Normal masses between edges, from the nearer tail."""
    left, right = edges[:-1], edges[1:]
    far = left > 0
    return np.asarray(np.maximum(ndtr(np.where(far, -left, right)) - ndtr(np.where(far, -right, left)), 0.0))
