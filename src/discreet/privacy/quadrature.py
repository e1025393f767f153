# SPDX-License-Identifier: Apache-2.0
"""Moments of Poisson-sampled Gaussians, by the trapezoidal rule on the real line, with a proof of
its error.

With r(x) = 1 - q + q·e^{μx - μ²/2} and x drawn from N(0, 1), every moment here is E
χ(x)·r(x)^u·r(-x)^v:

    removed:  u = z + 1, v = 0       added:  u = -z, v = 0       replaced:  u = z + 1, v = -z

χ(x) = Φ((c - x)/τ) leaves out what (almost) never happens. Without it a large tilt would find
nothing but outcomes fifty standard deviations away. What it takes from P and from Q is in `lost`,
and `inversion` says what that costs.

**Guarantee.** `SampledLine.values` and `log_moment` are within the stated error; `raised` and
`log_bound` are never too small.

Why it holds. On the line x + iy the integrand is at most e^{y²/2 + y²/2τ²} times what
`Cells.growth` says, since |e^{-(x+iy)²/2}| = e^{y²/2}·e^{-x²/2} and Φ(a + ib) is an integral of the
Gaussian density along the line, e^{b²/2} times as large at most. If g is the logarithm of all this,
the rule with step h is off by at most 2·e^g/(e^{2πy/h} - 1), relative to M(λ) (Trefethen, Weideman
2014, Theorem 5.1). Nodes end where `Cells.reach` says that nothing is left.

Many steps have moments next to 1, so M - 1 and φ - 1 are what is summed, with no 1 in it that could
swallow the digits.

For `log_bound` the density of the loss is bounded from below on small cells. A step function that
rises to one peak and falls is a mixture of uniform distributions, and for those |φ| is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from discreet.exact import bisect
from discreet.privacy.cells import RATE, Cells, Cut, Ratio, shift
from discreet.privacy.logarithms import Array, log_sum
from discreet.privacy.moments import UNIT, Complex, GaussianMoments, Line, RenyiMoments, uniform_decay

#: All rules of a sum together may be off by 2·e^-34 = 3e-15, but one alone by no less than 2·e^-46
#: = 2e-20, and leave out nodes with as little.
_EXACT, _MOST_EXACT = 34.0, 46.0
#: Half-widths of strips to try, as shares of the widest.
_STRIPS = np.geomspace(1.0, 0.02, 10)
#: Below this exponent M - 1 is summed, above it log M.
_LARGE = 300.0
#: The farthest that mass may lie, in standard deviations; the most nodes; the most terms of all
#: sums of one line.
_FARTHEST, _MOST_NODES, _MOST_TERMS = 600.0, 1 << 15, 1 << 33
#: Nodes of a rule without a proof that only far tilts need, at most.
_MOST_ROUGH = 1 << 12
#: Numbers in one temporary array, at most.
_AT_ONCE = 1 << 20
#: Mechanisms that share one rule, at most, and how many stand for all where nothing is proved.
_TOGETHER, _FEW = 1 << 9, 32


_OPEN = Cut()


@dataclass(frozen=True, eq=False)
class Dilution:
    """r(x) = 1 - q + q·e^{μx - μ²/2}, one row for each mechanism."""

    mu: Array
    rate: Array

    @property
    def steepness(self) -> Array:
        return self.mu

    def log_ratio(self, x: Array) -> tuple[Array, Array]:
        floor = np.log1p(-self.rate)
        log_odds = self.mu * x + (np.log(self.rate) - floor - self.mu * self.mu / 2)
        small = np.exp(-np.abs(log_odds))
        log_ratio = floor + (np.maximum(log_odds, 0.0) + np.log1p(small))
        return log_ratio, np.where(log_odds > 0, 1.0, small) / (1 + small)

    def digits(self, x: Array, log_ratio: Array, slope: Array) -> Array:
        inner = 4 - 2 * np.log(self.rate) + 2 * np.abs(self.mu * x) + 2 * self.mu**2
        return np.asarray(-np.log1p(-self.rate) + np.abs(log_ratio) + slope * inner)

    def log_beyond(self, cut: Cut, side: float) -> Array:
        absent = np.log1p(-self.rate) + log_ndtr(-cut.at / cut.spread)
        present = np.log(self.rate) + log_ndtr((side * self.mu - cut.at) / cut.spread)
        return np.asarray(np.logaddexp(absent, present)[:, 0])

    def join(self, others: Sequence[Dilution]) -> Dilution:
        rows = [self, *others]
        return Dilution(np.concatenate([r.mu for r in rows]), np.concatenate([r.rate for r in rows]))

    def some(self, rows: NDArray[np.int64]) -> Dilution:
        return Dilution(self.mu[rows], self.rate[rows])


@dataclass(frozen=True)
class SampledGaussian:
    """The Gaussian of slope μ on a Poisson sample; see the module docstring for the three `kind`s."""

    mu: float
    rate: float
    kind: str = "removed"

    @property
    def merges(self) -> str:
        return f"sampled, {self.kind}"

    def join(self, entries: list[tuple[SampledGaussian, int]]) -> list[RenyiMoments]:
        """One sum for all of them (or a few, if there are very many), those alike next to each
        other.
        """
        ordered = sorted(entries, key=lambda entry: (entry[0].mu, entry[0].rate))
        return [_sum(ordered[start : start + _TOGETHER]) for start in range(0, len(ordered), _TOGETHER)]

    def log_moments(self, tilts: Array) -> Array:
        return _sum([(self, 1)]).log_moments(tilts)

    def upper_log_moments(self, tilts: Array) -> Array:
        return _sum([(self, 1)]).upper_log_moments(tilts)

    def line(self, tilt: float) -> Line | None:
        return _sum([(self, 1)]).line(tilt)


@lru_cache(maxsize=64)
def _alone(mechanism: SampledGaussian) -> Dilution:
    return Dilution(np.array([[mechanism.mu]]), np.array([[mechanism.rate]]))


def _sum(entries: list[tuple[SampledGaussian, int]]) -> SampledSum:
    first, *others = (_alone(mechanism) for mechanism, _ in entries)
    counts = np.array([float(count) for _, count in entries])
    return SampledSum(first.join(others), counts, entries[0][0].kind)


@dataclass(frozen=True, eq=False)
class SampledSum:
    """The sum of independent losses of one `kind`, each `counts` times, all cut alike."""

    ratio: Ratio
    counts: Array
    kind: str
    cut: Cut = _OPEN

    def powers(self, tilt: float) -> tuple[float, float]:
        """The real parts of u and v."""
        if self.kind == "added":
            return -tilt, 0.0
        return tilt + 1.0, (-tilt if self.kind == "replaced" else 0.0)

    @property
    def sides(self) -> tuple[float, float]:
        """The loss is sides·(log r(x), log r(-x))."""
        return {"removed": (1.0, 0.0), "added": (-1.0, 0.0), "replaced": (1.0, -1.0)}[self.kind]

    @cached_property
    def lost(self) -> tuple[float, float]:
        """log of what the cut takes from P and from Q, over all mechanisms, rounded up."""
        if self.cut.is_open:
            return -math.inf, -math.inf
        log_counts, none = np.log(self.counts), log_ndtr(-self.cut.at / self.cut.spread)
        p = self.ratio.log_beyond(self.cut, 1.0)
        q = self.ratio.log_beyond(self.cut, -1.0) if self.sides[1] else np.full(p.size, none)
        return float(log_sum(log_counts + p)) + 1e-9, float(log_sum(log_counts + q)) + 1e-9

    @property
    def needs_cut(self) -> bool:
        """Whether great losses are possible; when added the loss is bounded."""
        return self.kind != "added"

    def cut_to(self, log_p: float, log_q: float, width: float) -> SampledSum | None:
        """The same with about the least cut that loses no more than that; None if it is out of
        reach.
        """
        if not self.needs_cut:
            return self

        def loses_little(at: float) -> bool:
            lost_p, lost_q = replace(self, cut=Cut(at, width)).lost
            return lost_p <= log_p and lost_q <= log_q

        low, high = 0.0, 16.0
        while not loses_little(high):
            if high > _FARTHEST:
                return None
            low, high = high, 2 * high
        steps = math.ceil(math.log2((high - low) / 0.05))
        return replace(self, cut=Cut(bisect(loses_little, yes=high, no=low, steps=steps)[0], width))

    def log_moments(self, tilts: Array) -> Array:
        """Σ count·log M(λ), about (of very many mechanisms a few stand for all); ∞ where it is out
        of reach.
        """
        if self.counts.size > _FEW:
            return self._few.log_moments(tilts)
        log_moments = np.full(tilts.size, np.inf)
        table = None
        for tilt in sorted(set(tilts), reverse=True):
            table = self._table(float(tilt))
            if table is not None:
                break
        if table is not None:
            some = tilts <= tilt
            parts = [table.log_moments(part) * self.counts for part in _pieces(tilts[some], table.size)]
            log_moments[some] = np.concatenate([part.sum(axis=1) for part in parts])
        return log_moments

    def upper_log_moments(self, tilts: Array) -> Array:
        """Never below Σ count·log M(λ)."""
        log_moments = np.full(tilts.size, np.inf)
        for at, tilt in enumerate(tilts):
            line = self.line(float(tilt))
            if line is not None:
                log_moments[at] = line.log_moment + line.error
        return log_moments

    def line(self, tilt: float) -> SampledLine | None:
        rule = Rule(self, tilt, 0.0)
        # where next to nothing is kept, what is taken from 1 may leave less than rounding does
        with np.errstate(all="ignore"):
            line = SampledLine(self, tilt, rule) if rule.is_in_reach else None
        return line if line is not None and math.isfinite(line.log_moment + line.error) else None

    @cached_property
    def _few(self) -> SampledSum:
        """Mechanisms are in order, so each may stand for its neighbours."""
        groups = np.array_split(np.arange(self.counts.size), _FEW)
        rows = np.array([group[group.size // 2] for group in groups])
        return replace(
            self,
            ratio=self.ratio.some(rows),
            counts=np.array([float(self.counts[group].sum()) for group in groups]),
        )

    @cached_property
    def _reached(self) -> dict[str, Any]:
        """The last table with its tilt, and the least tilt known to be out of reach."""
        return {"tilt": 0.0, "table": None, "out": math.inf}

    def _table(self, tilt: float) -> QuadratureTable | None:
        """Nodes for this tilt and all smaller ones; None if it is out of reach."""
        known = self._reached
        if tilt >= known["out"]:
            return None
        if not tilt <= known["tilt"] <= 16 * tilt:
            rule = Rough(self, tilt)
            if not rule.is_in_reach:
                known["out"] = tilt
                return None
            known["tilt"], known["table"] = tilt, QuadratureTable(self, rule)
        table: QuadratureTable = known["table"]
        return table


def _pieces(tilts: Array, size: int) -> list[Array]:
    """The tilts in pieces for which one array is not too large."""
    count = min(tilts.size, math.ceil(tilts.size * size / _AT_ONCE))
    return [tilts] if count <= 1 else np.array_split(tilts, count)


def swap(moments: RenyiMoments | None) -> RenyiMoments | None:
    """The moments of (Q, P), which are M(-1 - z), if they are known."""
    if not isinstance(moments, SampledGaussian):
        return None
    return replace(moments, kind={"removed": "added", "added": "removed"}[moments.kind])


def dilute(moments: RenyiMoments | None, rate: float) -> RenyiMoments | None:
    """The moments of ((1-rate)·Q + rate·P, Q), if they are known."""
    return SampledGaussian(moments.mu, rate) if isinstance(moments, GaussianMoments) else None


class Rough:
    """Step and reach of the trapezoidal rule for one tilt and about for all smaller ones, without a
    proof.
    """

    def __init__(self, sampled: SampledSum, tilt: float) -> None:
        u, v = sampled.powers(tilt)
        cut, steep = sampled.cut, float(sampled.ratio.steepness.max())
        left, right = shift(sampled.ratio, -u), shift(sampled.ratio, -v)
        bends = 1.0 + steep * max(left, right)
        left, right = RATE + left, RATE + right + max(u, 0.0) * steep
        if not cut.is_open:
            bulk = (cut.at + max(u, 0.0) * steep * cut.width**2) / cut.spread**2
            right = min(right, max(cut.at, bulk) + RATE * cut.width / cut.spread)
            bends += cut.width**-2
        self.step = 0.7 / math.sqrt(bends)
        if u < 0 or v:
            self.step = min(self.step, 0.4 / steep)
        self.left, self.right = math.ceil(left / self.step), math.ceil(right / self.step)
        #: far tilts may take this many nodes besides those that even small ones need
        few = (2 * RATE + (0.0 if cut.is_open else cut.at)) / self.step
        self.is_in_reach = self.left + self.right < min(2 * few + _MOST_ROUGH, _MOST_NODES)


class Rule:
    """Step and reach of the trapezoidal rule for one tilt (about, for all smaller ones) and all t
    up to `fastest`.
    """

    def __init__(self, sampled: SampledSum, tilt: float, fastest: float) -> None:
        self.u, self.v = sampled.powers(tilt)
        self.exact = min(_EXACT + math.log(float(sampled.counts.sum())), _MOST_EXACT)
        self.cells = Cells(sampled.ratio, self.u, self.v, sampled.cut, fastest)
        self.step = self._widest_step(sampled, fastest)
        ends = [self.cells.reach(-self.exact, self.step, right=right) for right in (False, True)]
        (left, before), (right, after) = ends
        if not fastest:
            # 1 = ∫ dN(x) is taken from M, and smaller tilts have the tail of P on the side of
            # lesser losses
            left, right = max(left, RATE), max(right, RATE)
        self.left, self.right = math.ceil(left / self.step), math.ceil(right / self.step)
        self.error = 4 * math.exp(-self.exact) + before + after

    @property
    def is_in_reach(self) -> bool:
        """Whether there are few enough nodes, and little beyond them."""
        return self.left + self.right < _MOST_NODES and self.error < 1e4 * math.exp(-self.exact)

    def _widest_step(self, sampled: SampledSum, fastest: float) -> float:
        """The greatest h for which some strip proves that the rule is exact to 2·e^-exact."""
        widest = min(math.pi / 3 / float(sampled.ratio.steepness.max()), 12.0)
        flat = 1.0 if sampled.cut.is_open else 1.0 + sampled.cut.width**-2
        # wider strips than this gain nothing
        widest = min(widest, math.sqrt(2 * self.exact / flat))
        best = 0.0
        for y in widest * _STRIPS:
            gain = self.cells.growth(float(y), fastest) if fastest or self.u < 0 or self.v else 0.0
            step = 2 * math.pi * y / (y * y / 2 * flat + gain + self.exact)
            # what y is divided by is convex, so there is one peak
            if step < best:
                break
            best = step
        return best * (1 - 1e-9)


class QuadratureTable:
    """What the integrands are made of at each node of a rule, one row for each mechanism."""

    def __init__(self, sampled: SampledSum, rule: Rule | Rough) -> None:
        self.sampled = sampled
        self.x = rule.step * np.arange(-rule.left, rule.right + 1)
        self.up, self.up_slope = sampled.ratio.log_ratio(self.x)
        self.down = sampled.ratio.log_ratio(-self.x) if sampled.sides[1] else None
        self.losses = sampled.sides[0] * self.up - (self.down[0] if self.down is not None else 0.0)
        self.size = self.up.size
        self.log_base = -self.x * self.x / 2 + math.log(rule.step / math.sqrt(2 * math.pi))
        self.log_weight = self.log_base + sampled.cut.log_kept(self.x)
        self.lost = np.exp(self.log_base) * sampled.cut.lost_share(self.x)

    def exponents(self, tilts: Array) -> Array:
        """u·log r(x) + v·log r(-x) for each tilt, mechanism and node."""
        start = 0.0 if self.sampled.kind == "added" else self.up
        return np.asarray(tilts[:, None, None] * self.losses + start)

    def log_moments(self, tilts: Array) -> Array:
        """About log M(λ) for each tilt and mechanism."""
        return log_sum(self.exponents(tilts) + self.log_weight)

    def exact_log_moments(self, tilt: float) -> Array:
        """log M(λ) for each mechanism."""
        exponents = self.exponents(np.array([tilt]))[0]
        logs = exponents + self.log_weight
        if float(logs.max()) >= _LARGE:
            return log_sum(logs)
        excess = self.excesses(exponents, logs).sum(axis=-1) - float(np.sum(self.lost))
        return np.where(excess > -0.5, np.log1p(np.maximum(excess, -0.5)), log_sum(logs))

    def excesses(self, exponents: Array, logs: Array) -> Array:
        """The terms of M - 1, save for what is cut off."""
        near = np.exp(self.log_weight) * np.expm1(np.minimum(exponents, 1.0))
        far = np.exp(logs) - np.exp(self.log_weight)
        return np.where(exponents < 1, near, far)

    @cached_property
    def digits(self) -> Array:
        """Units in the last place of the losses (and of everything raised to a power) at each node."""
        units = self.sampled.ratio.digits(self.x, self.up, self.up_slope)
        if self.down is not None:
            units = units + self.sampled.ratio.digits(-self.x, *self.down)
        return units

    def weights(self, tilt: float) -> Array:
        """The tilted masses of the nodes, one row for each mechanism."""
        logs = self.exponents(np.array([tilt]))[0] + self.log_weight
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def units(self, tilt: float) -> Array:
        """How many units each weight may be off, relative to itself (save for one factor that they
        all share).
        """
        u, v = self.sampled.powers(tilt)
        cut = 0.0 if self.sampled.cut.is_open else 4 + 4 * np.abs(self.sampled.cut.log_kept(self.x))
        return np.asarray(8 + self.x**2 + cut + 2 * (abs(u) + abs(v)) * self.digits)


class SampledLine:
    """A sum of sampled Gaussians under one tilt."""

    def __init__(self, sampled: SampledSum, tilt: float, rule: Rule) -> None:
        self.sampled, self.tilt, self.rule = sampled, tilt, rule
        table = QuadratureTable(sampled, rule)
        self.log_moments = table.exact_log_moments(tilt)
        self.log_moment = math.fsum(sampled.counts * self.log_moments)
        self.error = float(np.sum(sampled.counts * self._errors(table)))
        self._table = table

    @cached_property
    def _places(self) -> tuple[Array, Array]:
        """About the mean and the variance of each loss."""
        weights, losses = self._table.weights(self.tilt), self._table.losses
        centres = (weights * losses).sum(axis=1)
        return centres, (weights * (losses - centres[:, None]) ** 2).sum(axis=1)

    @property
    def centres(self) -> Array:
        return self._places[0]

    @cached_property
    def centre(self) -> float:
        return math.fsum(self.sampled.counts * self.centres)

    @cached_property
    def variance(self) -> float:
        return float(np.sum(self.sampled.counts * self._places[1]))

    def _errors(self, table: QuadratureTable) -> Array:
        """How far each log M(λ) may be off: rounding of what is summed, the rule, what lies beyond
        the nodes.

        M - 1 is a sum of terms that are off by few units for every digit in their exponents; a sum
        of n terms adds n.
        """
        exponents = table.exponents(np.array([self.tilt]))[0]
        logs, scale = exponents + table.log_weight, self.log_moments[:, None]
        units = table.units(self.tilt) + table.x.size
        if float(logs.max()) < _LARGE:
            sizes = np.abs(table.excesses(exponents, logs)) * np.exp(-scale)
            powers = 2 * sum(map(abs, self.sampled.powers(self.tilt))) * table.digits
            lost = table.units(0.0) * table.lost * np.exp(-scale)
            errors = (sizes * units + np.exp(logs - scale) * powers + lost).sum(axis=1)
        else:
            errors = (np.exp(logs - scale) * units).sum(axis=1) + 8
        return np.asarray(2 * UNIT * (errors + 2 * np.abs(self.log_moments)) + 2 * self.rule.error)

    def values(self, spacing: float, count: int) -> tuple[Complex, Array] | None:
        block = math.isqrt(count - 1) + 1
        fastest = spacing * block * block
        rule = Rule(self.sampled, self.tilt, fastest)
        nodes = rule.left + rule.right + 1
        if not rule.is_in_reach or nodes * block * block * self.sampled.counts.size > _MOST_TERMS:
            return None
        table = QuadratureTable(self.sampled, rule)
        weights, away = table.weights(self.tilt), table.losses - self.centres[:, None]
        sizes, angles, turns = np.zeros((3, block, block))
        for times, row, turn in zip(self.sampled.counts, weights, spacing * away, strict=True):
            size, angle = _log1p(_turn_sums(row, turn, block))
            sizes += times * size
            angles += times * angle
            turns += times * np.abs(angle)
        values = (np.exp(np.minimum(sizes, 0.0)) * np.exp(1j * angles)).ravel()[:count]
        errors = self._value_errors(table, rule, weights, np.abs(away), spacing * np.arange(count))
        return values, errors + 16 * UNIT * (1 + turns.ravel()[:count])

    def _value_errors(
        self, table: QuadratureTable, rule: Rule, weights: Array, away: Array, t: Array
    ) -> Array:
        """How far Π(E e^{it(L - centre)})^count may be off at each t: each term of E(e^{…} - 1)
        relative to its own size.

        The products of `_turn_sums` cost a few units for each halving of the block, a sum of n
        terms n.
        """
        units = table.units(self.tilt)
        # all weights may be off by a common factor
        shared = (weights * units).sum(axis=1, keepdims=True)
        relative = 4 * (table.x.size + 64) + units + shared
        shifts = 2 * (weights * table.digits).sum(axis=1) + 4 * np.abs(self.centres)
        greatest, rise = 2 * (weights * relative).sum(axis=1), (weights * away * relative).sum(axis=1)
        counts, total = self.sampled.counts, np.zeros(t.size)
        for times, top, slope, move in zip(counts, greatest, rise, shifts, strict=True):
            total += times * (np.minimum(top, slope * t) + move * t)
        return np.asarray(2 * UNIT * total + 4 * rule.error * float(counts.sum()))

    def log_bound(self, beyond: float) -> float:
        """Each φ is below 1 by what the uniform distributions of its `_layers` take away."""
        masses, widths = self._layers
        still = (masses * (1 - uniform_decay(beyond * widths / 2))).sum(axis=1) - 1e-15
        bounds = np.log1p(-np.minimum(np.maximum(still, 0.0) * (1 - 1e-9), 1 - 1e-9))
        return float((self.sampled.counts * bounds).sum())

    @cached_property
    def _layers(self) -> tuple[Array, Array]:
        """Uniform distributions whose mixture lies below the tilted distribution of each loss:
        their masses and widths, a row for each loss.
        """
        losses, densities = self._floor()
        layers = [_uniform_mixture(row, density) for row, density in zip(losses, densities, strict=True)]
        return np.array([masses for masses, _ in layers]), np.array([widths for _, widths in layers])

    def _floor(self) -> tuple[Array, Array]:
        """Cell ends along the loss, and a lower bound of its tilted density in each cell: mass by
        greatest length.
        """
        cells, steep = self.rule.cells, self.sampled.ratio.steepness
        log_scale = self.log_moments[:, None] + math.log(2 * math.pi) / 2
        steepest = steep * (cells.up_slope[:, 1:] + cells.down_slope[:, :-1]) * np.diff(cells.edges)
        density = np.exp(cells.lower - log_scale - 1e-9) / np.maximum(steepest, 1e-300)
        losses = self.sampled.sides[0] * cells.up + self.sampled.sides[1] * cells.down
        return (losses, density) if self.sampled.sides[0] > 0 else (losses[:, ::-1], density[:, ::-1])


def _uniform_mixture(ends: Array, density: Array) -> tuple[Array, Array]:
    """The greatest step function with one peak below a density, as masses and widths of uniform
    distributions.
    """
    peak = int(np.argmax(density))
    left, right = np.minimum.accumulate(density[peak::-1]), np.minimum.accumulate(density[peak:])
    levels = np.sort(np.concatenate([left, right]))[::-1]
    first = peak + 1 - np.searchsorted(-left, -levels, side="right")
    last = peak + np.searchsorted(-right, -levels, side="right")
    widths = ends[last] - ends[first]
    return np.maximum(levels - np.append(levels[1:], 0.0), 0.0) * widths, widths


def _turn_sums(weights: Array, turn: Array, block: int) -> Complex:
    """Σ weights·(e^{in·turn} - 1) for n = 0, …, block² - 1, as a square.

    With E(n) = e^{in·turn} - 1 it is E(n + m) = E(n) + E(m) + E(n)·E(m), so few exponentials are
    needed.
    """
    coarse, fine = _ladder(block * turn, block), _ladder(turn, block)
    weighed = coarse * weights
    # not by BLAS, whose threads cost far more than they save here
    products = np.einsum("aj,bj->ab", weighed, fine)
    return np.asarray(weighed.sum(axis=1)[:, None] + (fine * weights).sum(axis=1) + products)


def _ladder(turn: Array, count: int) -> Complex:
    """e^{in·turn} - 1 for n = 0, …, count - 1, by doubling."""
    rows = np.zeros((count, turn.size), complex)
    done = 1
    while done < count:
        more = min(done, count - done)
        step = -2 * np.sin(done * turn / 2) ** 2 + 1j * np.sin(done * turn)
        rows[done : done + more] = rows[:more] + step + rows[:more] * step
        done += more
    return rows


def _log1p(value: Complex) -> tuple[Array, Array]:
    """log|1 + value|, to few units of the value itself, and its angle."""
    square = 2 * value.real + value.real**2 + value.imag**2
    with np.errstate(divide="ignore"):
        size = np.where(square > -0.5, np.log1p(np.maximum(square, -0.5)) / 2, np.log(np.abs(1 + value)))
    return np.asarray(size), np.arctan2(value.imag, 1 + value.real)
