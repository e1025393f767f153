# SPDX-License-Identifier: Apache-2.0
"""Moments of the Poisson-sampled Gaussian, by the trapezoidal rule on the real line, with a proof of its error.

With r(x) = 1 - q + q·e^{μx - μ²/2} and x drawn from N(0, 1), every moment here is E r(x)^u · r(-x)^v:

    removed:  u = z + 1, v = 0       added:  u = -z, v = 0       replaced:  u = z + 1, v = -z

**Promise.** `Line.values` and `log_moment` are within the stated error, relative to M(λ); `log_bound` holds for all t.

Why it holds. At x + iy with |μy| < π the point r is a sum of positive multiples of 1 and e^{iμy}; so its angle is at
most μ|y|, its size at most r(x) and at least r(x)·cos(μy/2). Hence on that line the integrand is at most

    e^{g} times the one at t = 0,   g = y²/2 + m·μ|y|·|t| - n·log cos(μy/2),

m = 1 (2 if replaced), n the negative powers in u and v together, and the rule with step h is off by at most
2·e^g/(e^{2πy/h} - 1), relative to M(λ) (Trefethen, Weideman 2014, Theorem 5.1). The nodes reach 9.5 further than the
point where the outward slope of the powers is at most |x|: from there on the integrand falls like e^{-9.5|x|}, or faster.

For `log_bound` the density of the loss is bounded from below on small cells by products of monotone factors. A step
function that rises to one peak and falls is a mixture of uniform laws, and for those |φ| is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from discreet.privacy.moments import UNIT, Array, Complex, GaussianMoments, Line, Moments, narrowed

#: Nodes end this many standard deviations after the bulk; e^{-9.5²/2} = 2.5e-20.
_REACH = 9.5
#: The rule may be off by 2·e^-42 = 1e-18.
_EXACT = 42.0
#: Half-widths of strips to try, as shares of the widest.
_STRIPS = np.geomspace(0.01, 0.98, 24)
#: Distances to try, as shares of one that will surely do.
_SHARES = np.linspace(0.0, 1.0, 65)
#: Width of the cells in which the density is bounded from below.
_CELL = 1 / 16
#: The greatest shift of the bulk, in standard deviations, and the most terms of all sums of one line.
_FARTHEST, _MOST_TERMS = 300.0, 1 << 21
#: Frequencies are split as this many times a plus b, so that few exponentials are needed.
_BLOCK = 16


@dataclass(frozen=True)
class SampledGaussian:
    """The Gaussian of slope μ on a Poisson sample; see the module docstring for the three `kind`s."""

    mu: float
    rate: float
    kind: str = "removed"

    def log_moments(self, tilts: Array) -> Array:
        reachable = tilts < self.greatest_tilt
        found = np.full(tilts.size, np.inf)
        if reachable.any():
            nodes = Nodes(Rule(self, float(tilts[reachable].max()), 0.0))
            logs = nodes.exponent(tilts[reachable])
            top = logs.max(axis=1)
            total = np.exp(logs - top[:, None]).sum(axis=1)
            found[reachable] = top + np.log(total) + math.log(nodes.rule.step / math.sqrt(2 * math.pi))
        return found

    def line(self, tilt: float) -> Line | None:
        return SampledLine(self, tilt) if tilt < self.greatest_tilt else None

    def powers(self, tilt: Array | float) -> tuple[Array | float, Array | float]:
        """The real parts of u and v."""
        if self.kind == "added":
            return -tilt, 0.0 * tilt
        return tilt + 1.0, (-tilt if self.kind == "replaced" else 0.0 * tilt)

    @property
    def greatest_tilt(self) -> float:
        """Beyond it there would be too many nodes: the bulk is far out, or (when added) narrow."""
        return (1 if self.kind != "added" else 4) * _FARTHEST / self.mu - 1

    @property
    def sides(self) -> tuple[float, float]:
        """The loss is sides·(log r(x), log r(-x))."""
        return {"removed": (1.0, 0.0), "added": (-1.0, 0.0), "replaced": (1.0, -1.0)}[self.kind]

    def shift(self, power: float) -> float:
        """A distance y from which on the slope of log r(x)^{-power} towards -∞ is at most y; 0 for powers below 0."""
        if power <= 0:
            return 0.0
        away = _SHARES * (power * self.mu)
        slopes = power * self.mu * self.log_ratio(-away)[1]
        return float(away[np.argmax(slopes <= away)])

    def log_ratio(self, x: Array) -> tuple[Array, Array]:
        """log r(x), and its slope in units of μ, which grows from 0 to 1."""
        rise = self.mu * x - self.mu * self.mu / 2
        with np.errstate(over="ignore", divide="ignore"):
            odds = (1 - self.rate) / self.rate * np.exp(-rise)
            near = math.log1p(-self.rate) + np.log1p(1 / odds)
            far = rise + math.log(self.rate) + np.log1p(odds)
        return np.where(odds > 1, near, far), np.asarray(1 / (1 + odds))


def swapped(moments: Moments | None) -> Moments | None:
    """The moments of (Q, P), which are M(-1 - z), if they are known."""
    if not isinstance(moments, SampledGaussian):
        return None
    return replace(moments, kind={"removed": "added", "added": "removed"}[moments.kind])


def diluted(moments: Moments | None, rate: float) -> Moments | None:
    """The moments of ((1-rate)·Q + rate·P, Q), if they are known."""
    return SampledGaussian(moments.mu, rate) if isinstance(moments, GaussianMoments) else None


class Rule:
    """Step and reach of the trapezoidal rule for one tilt (or all smaller ones) and all t up to `fastest`."""

    def __init__(self, law: SampledGaussian, tilt: float, fastest: float) -> None:
        self.law = law
        self.u, self.v = (float(power) for power in law.powers(tilt))
        self.step = self._widest_step(fastest)
        left, right = law.shift(-self.u), law.shift(-self.v) + max(self.u, 0.0) * law.mu
        self.left, self.right = (math.ceil((_REACH + bulk) / self.step) for bulk in (left, right))

    def _widest_step(self, fastest: float) -> float:
        """The greatest h for which some strip proves that the rule is exact to 2·e^-42."""
        y = _STRIPS * min(math.pi / self.law.mu, 12.0)
        negative = max(-self.u, 0.0) + max(-self.v, 0.0)
        turns = self.law.mu * fastest * (2.0 if self.law.sides[1] else 1.0)
        growth = y * y / 2 + turns * y - negative * np.log(np.cos(self.law.mu * y / 2))
        return float(np.max(2 * math.pi * y / (growth + _EXACT))) * (1 - 1e-9)


class Nodes:
    """What the integrand is made of at each node of a rule."""

    def __init__(self, rule: Rule) -> None:
        self.rule, self.law = rule, rule.law
        self.x = rule.step * np.arange(-rule.left, rule.right + 1)
        self.up, self.up_slope = self.law.log_ratio(self.x)
        mirrored = self.law.sides[1] != 0
        self.down, self.down_slope = self.law.log_ratio(-self.x) if mirrored else (0 * self.x, 0 * self.x)
        self.losses = self.law.sides[0] * self.up + self.law.sides[1] * self.down

    def exponent(self, tilts: Array) -> Array:
        """The logarithm of the integrand at t = 0, for each tilt and node."""
        u, v = self.law.powers(tilts)
        return np.asarray(
            np.multiply.outer(u, self.up) + np.multiply.outer(v, self.down) - self.x * self.x / 2
        )

    def missing(self, weights: Array) -> float:
        """The sum of all weights beyond the last nodes: there they fall by e^{-9.5·step} each, or faster."""
        fall = math.exp(-self.rule.step * _REACH)
        return float(weights[0] + weights[-1]) * fall / (1 - fall) * (1 + 1e-9)

    @property
    def digits(self) -> tuple[Array, Array]:
        """How many units the logarithms of r(x) and r(-x) may be off at each node, save for a small factor."""
        floor = -math.log1p(-self.law.rate)
        inner = 4 - 2 * math.log(self.law.rate) + 2 * np.abs(self.law.mu * self.x) + 2 * self.law.mu**2
        return (
            floor + np.abs(self.up) + self.up_slope * inner,
            floor + np.abs(self.down) + self.down_slope * inner,
        )

    def rounding(self, weights: Array) -> float:
        """A bound on the relative error of the weighted sum: few units for every digit in an exponent."""
        up, down = self.digits
        inside = self.x**2 + 2 * (abs(self.rule.u) * up + abs(self.rule.v) * down)
        return 4 * UNIT * (8 + math.log2(self.x.size) + float(np.sum(weights * inside)))


class SampledLine:
    """The sampled Gaussian under one tilt."""

    def __init__(self, law: SampledGaussian, tilt: float) -> None:
        self.law, self.tilt = law, tilt
        nodes, weights, self.log_moment, self.error = self._weighed(Rule(law, tilt, 0.0))
        self.centre = float(np.sum(weights * nodes.losses))
        self.variance = float(np.sum(weights * (nodes.losses - self.centre) ** 2))

    def _weighed(self, rule: Rule) -> tuple[Nodes, Array, float, float]:
        """Nodes, normalised weights, log M(λ) and the error of both."""
        nodes = Nodes(rule)
        logs = nodes.exponent(np.array([self.tilt]))[0]
        top = float(logs.max())
        weights = np.exp(logs - top)
        total = float(weights.sum())
        weights /= total
        log_moment = top + math.log(total) + math.log(rule.step / math.sqrt(2 * math.pi))
        error = 2 * math.exp(-_EXACT) + nodes.missing(weights) + nodes.rounding(weights)
        return nodes, weights, log_moment, error + 4 * UNIT * (abs(top) + 4)

    def values(self, spacing: float, count: int) -> tuple[Complex, float] | None:
        rows = -(-count // _BLOCK)
        rule = Rule(self.law, self.tilt, spacing * rows * _BLOCK)
        if (rule.left + rule.right) * rows * _BLOCK > _MOST_TERMS:
            return None
        nodes, weights, _, error = self._weighed(rule)
        away = nodes.losses - self.centre
        coarse = np.exp(1j * np.multiply.outer(spacing * _BLOCK * np.arange(rows), away)) * weights
        fine = np.exp(1j * np.multiply.outer(spacing * np.arange(_BLOCK), away))
        values = np.einsum("aj,bj->ab", coarse, fine).ravel()[:count]
        turn = float(np.sum(weights * sum(nodes.digits))) + abs(self.centre)
        return values, 2 * error + 16 * UNIT * (1 + spacing * rows * _BLOCK * turn)

    def log_bound(self, beyond: float) -> float:
        masses, widths = self._layers
        still = float(np.sum(masses * (1 - narrowed(beyond * widths / 2))))
        return math.log1p(-min(still * (1 - 1e-9), 1 - 1e-9))

    @cached_property
    def _layers(self) -> tuple[Array, Array]:
        """Uniform laws whose mixture lies below the tilted law of the loss: their masses and widths."""
        losses, density = self._floor()
        peak = int(np.argmax(density))
        left, right = np.minimum.accumulate(density[peak::-1]), np.minimum.accumulate(density[peak:])
        levels = np.sort(np.concatenate([left, right]))[::-1]
        first = peak + 1 - np.searchsorted(-left, -levels, side="right")
        last = peak + np.searchsorted(-right, -levels, side="right")
        widths = losses[last] - losses[first]
        return np.maximum(levels - np.append(levels[1:], 0.0), 0.0) * widths, widths

    def _floor(self) -> tuple[Array, Array]:
        """Cell ends along the loss, and a lower bound of its tilted density in each cell.

        In a cell every power of r is monotone, x² is convex, and dL/dx is at most its two slopes' greatest values.
        """
        rule = Rule(self.law, self.tilt, 0.0)
        x = np.arange(-rule.left * rule.step, rule.right * rule.step, _CELL)
        up, up_slope = self.law.log_ratio(x)
        down, down_slope = self.law.log_ratio(-x) if self.law.sides[1] else (0 * x, 0 * x)
        least = sum(np.minimum(term[:-1], term[1:]) for term in (rule.u * up, rule.v * down, -x * x / 2))
        steepest = self.law.mu * (up_slope[1:] + down_slope[:-1])
        log_scale = self.log_moment + math.log(2 * math.pi) / 2
        density = np.exp(least - log_scale) / np.maximum(steepest, 1e-300)
        losses = self.law.sides[0] * up + self.law.sides[1] * down
        return (losses, density) if losses[-1] > losses[0] else (losses[::-1], density[::-1])
