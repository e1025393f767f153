# SPDX-License-Identifier: Apache-2.0
"""Certified bounds on the integral of e^{E(x)}, cell by cell, where E is made of monotone terms.

**Guarantee.** `Cells.most` is never below and `Cells.least` never above the integral over each cell
(as logarithms, up to rounding of a few parts in 10^12, which `SLACK` covers); `beyond` bounds what
lies outside all cells.

Why it holds. E = u·log r(x) + v·log r(-x) - x²/2 + log χ(x). In a cell of width w the slope of the
first three is between the least and the greatest of its parts, so they stay within w/2·|slope| of
the mean of both ends; χ falls. Outside the last edges the slope is at least `RATE` inwards, so the
integral is at most the value at the edge divided by it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from discreet.privacy.logarithms import Array, log_sum

#: How fast the integrand falls beyond the outermost edges; e^{-9.5²/2} = 2.5e-20.
RATE = 9.5
#: What rounding may do to the logarithm of a bound.
SLACK = 1e-9
#: Width of the cells where the mass is, and how they grow where there is none.
_WIDTH, _GROWTH = 1 / 16, 0.1
#: Places to try, and shares of the way from the first to the last.
_AWAY, _SHARES = np.concatenate([[0.0], np.geomspace(1e-2, 1e12, 256)]), np.linspace(0.0, 1.0, 96)


class Ratio(Protocol):
    """r(x) = dP/dQ at x for x drawn from Q = N(0, 1): one row for each mechanism, none of them
    falling.

    r must be a mixture of e^{cx} with c ≥ 0, so that |r(x + iy)| ≤ r(x).
    """

    @property
    def steepness(self) -> Array:
        """The greatest slope of log r, one row for each mechanism; also the greatest c."""

    def log_ratio(self, x: Array) -> tuple[Array, Array]:
        """log r(x), and its slope as a share of `steepness`, which grows with x."""

    def digits(self, x: Array, log_ratio: Array, slope: Array) -> Array:
        """How many units in the last place `log_ratio` may be off at each x."""

    def log_beyond(self, cut: Cut, side: float) -> Array:
        """log ∫ r(side·x)·(1 - χ(x)) dN(x): the mass that the cut takes away, one number for each
        mechanism.
        """

    def some(self, rows: NDArray[np.int64]) -> Ratio:
        """Some of the rows."""

    def __hash__(self) -> int:
        """What is computed from it alone is remembered."""


@dataclass(frozen=True)
class Cut:
    """χ(x) = Φ((at - x)/width): the share of the outcome x that is kept; the rest counts as lost."""

    at: float = math.inf
    width: float = 1.0

    def log_kept(self, x: Array) -> Array:
        return np.zeros(x.shape) if self.is_open else np.asarray(log_ndtr((self.at - x) / self.width))

    def lost_share(self, x: Array) -> Array:
        return np.zeros(x.shape) if self.is_open else np.asarray(ndtr((x - self.at) / self.width))

    @property
    def spread(self) -> float:
        """The standard deviation of x plus an independent N(0, width²), which decides whether it is
        lost.
        """
        return math.hypot(1.0, self.width)

    @property
    def is_open(self) -> bool:
        """Whether everything is kept."""
        return math.isinf(self.at)


class Cells:
    """See the module docstring; `u` and `v` are the real parts of the powers."""

    def __init__(self, ratio: Ratio, u: float, v: float, cut: Cut, fastest: float) -> None:
        self.ratio, self.u, self.v = ratio, u, v
        # the slopes that powers and turns may have in a strip; see `growth`
        power = float(ratio.steepness.max()) * (3 * (abs(u) + abs(v)) + 2.2 * fastest * (2 if v else 1))
        self.edges = _edges(ratio, u, v, cut, power)
        self.up, self.up_slope = ratio.log_ratio(self.edges)
        self.down, self.down_slope = np.zeros_like(self.up), np.zeros_like(self.up)
        if v:
            self.down, self.down_slope = ratio.log_ratio(-self.edges)
        self.log_kept = cut.log_kept(self.edges)
        self.upper, self.lower, self.beyond = self._bounds()
        self.log_total = log_sum(self.lower)

    def _bounds(self) -> tuple[Array, Array, Array]:
        x, steep = self.edges, self.ratio.steepness
        exponent = self.u * self.up + self.v * self.down - x * x / 2
        rises = (self.u * steep * self.up_slope, -self.v * steep * self.down_slope)
        fastest = sum(np.maximum(rise[:, :-1], rise[:, 1:]) for rise in rises) - x[:-1]
        slowest = sum(np.minimum(rise[:, :-1], rise[:, 1:]) for rise in rises) - x[1:]
        width = np.diff(x)
        variation = width / 2 * np.maximum(np.abs(fastest), np.abs(slowest))
        middle = (exponent[:, :-1] + exponent[:, 1:]) / 2
        terms = (self.u * self.up, self.v * self.down, np.minimum(-x * x / 2, 0.0)[None, :])
        top = sum(np.maximum(term[:, :-1], term[:, 1:]) for term in terms)
        bottom = sum(np.minimum(term[:, :-1], term[:, 1:]) for term in terms)
        # x² is least inside the cell only if that is where 0 is, and there is an edge at 0
        upper = np.minimum(middle + variation, top) + self.log_kept[:-1] + np.log(width)
        lower = np.maximum(middle - variation, bottom) + self.log_kept[1:] + np.log(width)
        beyond = (exponent + self.log_kept)[:, [0, -1]] - math.log(RATE)
        return upper, lower, beyond

    def growth(self, y: float, fastest: float) -> float:
        """log of the greatest ratio, over all mechanisms, of ∫|integrand at x + iy| to the integral
        at y = 0.

        With θ = steepness·|y| ≤ π/3 and s the slope, r(x + iy)/r(x) is a mean of e^{iφ} with φ in
        [0, θ] and sθ the mean of φ. Cosine and sine are concave there, so its real part is at least
        1 - s(1 - cos θ), its size at most 1, its imaginary part at most sin sθ; that gives its
        angle. For |e^{-(x+iy)²/2}| and |χ(x + iy)| see `Rule`.
        """
        theta = self.ratio.steepness * y
        up = self._strip(self.up_slope, theta, fastest, self.u)
        down = self._strip(self.down_slope, theta, fastest, self.v) if self.v else np.zeros_like(up)
        inner = self.upper + np.maximum(up[:, :-1], up[:, 1:]) + np.maximum(down[:, :-1], down[:, 1:])
        outer = self.beyond + up[:, [0, -1]] + down[:, [0, -1]]
        total = log_sum(np.concatenate([inner, outer], axis=1))
        return float(np.max(total - self.log_total)) + SLACK

    @staticmethod
    def _strip(slope: Array, theta: Array, fastest: float, power: float) -> Array:
        """The logarithm of what a power of r may gain in the strip."""
        lowest = -2 * slope * np.sin(theta / 2) ** 2
        gained = -max(-power, 0.0) * np.log1p(lowest) if power < 0 else np.zeros_like(slope)
        return gained + fastest * np.arctan2(np.sin(slope * theta), 1 + lowest) if fastest else gained

    def reach(self, log_share: float, step: float, *, right: bool) -> tuple[float, float]:
        """Where nodes may end on one side, and a bound on the share of all nodes that are `step`
        apart beyond it.

        A cell holds no more nodes than its width over the step, and one.
        """
        crowd = np.log1p(step / np.diff(self.edges))
        shares = np.concatenate([self.beyond[:, :1], self.upper + crowd, self.beyond[:, 1:]], axis=1)
        shares = np.exp(np.minimum((shares - self.log_total[:, None]).max(axis=0), 700.0))
        outside = np.cumsum(shares[::-1] if right else shares)
        last = max(int(np.searchsorted(outside, math.exp(log_share))) - 1, 0)
        edge = self.edges[-1 - last] if right else self.edges[last]
        return abs(float(edge)), float(outside[last]) * (1 + SLACK) * (1 + step * RATE)


def _edges(ratio: Ratio, u: float, v: float, cut: Cut, power: float) -> Array:
    """Edges that cover the mass finely and go on until everything provably falls."""
    left, right = (RATE + shift(ratio, -side) for side in (u, v))
    right_far = RATE + power
    if not cut.is_open:
        right, right_far = cut.at + 1, max(cut.at + 1, cut.at + cut.width**2 * (RATE + power))
    elif u > 0:
        right = RATE + u * float(ratio.steepness.max())
    left_far = RATE + power if (u < 0 or v) else RATE
    inner = np.arange(-math.ceil(left / _WIDTH), math.ceil(right / _WIDTH) + 1) * _WIDTH
    steepness = float(ratio.steepness.max())
    # r grows until its greatest slope is reached, and must not grow much in any one cell
    grows = _half_slope(ratio)
    below, above = (
        _outward(-inner[0], left_far, steepness, grows),
        _outward(inner[-1], right_far, steepness, grows),
    )
    return np.concatenate([-below[::-1], inner, above])


@lru_cache(maxsize=16)
def _half_slope(ratio: Ratio) -> float:
    """A place from which on the slope of every log r is at least half of its greatest."""
    return float(np.max(_AWAY[np.argmax(ratio.log_ratio(_AWAY)[1] >= 0.5, axis=1)]))


def _outward(start: float, end: float, steepness: float, grows: float) -> Array:
    """Ever wider steps from a start to beyond an end, none so wide that r grows by more than a
    quarter while it grows.
    """
    edges = [start]
    while edges[-1] < end:
        width = _WIDTH + _GROWTH * (edges[-1] - start)
        edges.append(edges[-1] + (min(width, 0.25 / steepness) if edges[-1] < grows else width))
    return np.array(edges[1:])


def shift(ratio: Ratio, power: float) -> float:
    """A distance y from which on the slope of log r(x)^{-power} towards -∞ is at most y; 0 for
    powers below 0.
    """
    if power <= 0:
        return 0.0
    steepest = power * ratio.steepness
    farthest = max(float(steepest.max()), 1e-3) * (1 + 1e-9)
    away = np.concatenate([[0.0], 1e-3 * (farthest / 1e-3) ** _SHARES])
    falls = np.all(steepest * ratio.log_ratio(-away)[1] <= away, axis=0)
    return float(away[np.argmax(falls)])
