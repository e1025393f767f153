# SPDX-License-Identifier: Apache-2.0
"""Where to compute: the tilt, the window and the bulk of each distribution, from coarse
distributions that cost little.

Nothing here needs accuracy: any tilt and any window give a valid result, good ones give a tight
result. Only `chernoff_log_delta` is itself a bound, and the coarse distributions dominate, so it is
on the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from discreet.privacy.lattice import DRIFT, Masses, knots_around, spread
from discreet.privacy.logarithms import Array
from discreet.privacy.moments import log_add, log_peak
from discreet.privacy.pairs import Pair, dot
from discreet.privacy.tilted import FAR

#: Tilted mass that may lie where it would be wrapped to a place that matters.
_OUTSIDE = 1e-8
#: The same without a tilt, where all of it matters, and the log δ above which none is needed.
LEAST_OUTSIDE, _LARGE = 1e-13, math.log(0.01)
#: So many terms of moments are in memory at once.
_AT_ONCE = 1 << 17
#: Relative growth of the coarse cells.
_COARSE = 1 / 8


@dataclass(frozen=True)
class Frame:
    """Where to compute: the tilt, the range of ε in question, the window and each entry's bulk."""

    tilt: float
    start: float
    latest: float
    period: float
    centres: tuple[float, ...]
    scales: tuple[float, ...]


class Coarse:
    """A bag of pairs, each as a distribution on a few hundred losses that dominates it."""

    def __init__(self, entries: list[tuple[Pair, int]]) -> None:
        self.entries = entries
        self.counts = [count for _, count in entries]
        self.total = sum(self.counts)
        self.distributions = [_coarse_distribution(pair) for pair, _ in entries]

    def log_moments(self, tilts: Array, masses: list[Masses] | None = None) -> Array:
        """K(λ) = Σ count·log E e^{λL} for each λ: an upper bound of (order - 1)·Rényi when λ ≥ 0."""
        total = np.zeros(tilts.size)
        for count, distribution in zip(self.counts, masses or self.distributions, strict=True):
            at_once = max(1, _AT_ONCE // max(1, distribution.losses.size))
            for first in range(0, tilts.size, at_once):
                some = slice(first, first + at_once)
                logs = distribution.log_p[None, :] + tilts[some, None] * distribution.losses[None, :]
                top = logs.max(axis=1)
                logs -= top[:, None]
                total[some] += count * (top + np.log(np.sum(np.exp(logs, out=logs), axis=1)))
        return total

    def chernoff_log_delta(self, epsilon: float) -> float:
        """A certified, cheap upper bound of log δ: the least Rényi bound that the coarse
        distribution gives.
        """
        lam = np.array([self._search(lambda lam, k: k - lam * epsilon + log_peak(lam))])
        finite = float((self.log_moments(lam) - lam * epsilon + log_peak(lam))[0])
        slack = 1e-12 * (1 + abs(finite)) + self.total * DRIFT * (1 + float(lam[0]))
        infinite = any_infinite([distribution.infinite for distribution in self.distributions], self.counts)
        return min(0.0, log_add(finite + slack, infinite, upper=True))

    def scale(self, frame: Frame) -> float:
        variance = sum(count * scale * scale for count, scale in zip(self.counts, frame.scales, strict=True))
        return math.sqrt(max(variance, 1e-300))

    def frame_for_delta(self, log_delta: float) -> Frame:
        if log_delta > _LARGE:
            return self.bulk(0.0, LEAST_OUTSIDE)
        tilt = self._search_refined(lambda lam, k: (k - log_delta + log_peak(lam)) / lam)
        at = np.array([tilt])
        least = float(((self.log_moments(at) - log_delta + log_peak(at)) / tilt)[0])
        return self._narrowest(tilt, least - 8 / tilt, max(least, 0.0) + 1 / tilt)

    def frame_for_epsilon(self, epsilon: float) -> Frame:
        tilt = self._search_refined(lambda lam, k: k - lam * epsilon + log_peak(lam))
        if self.chernoff_log_delta(epsilon) > _LARGE:
            frame = self.bulk(0.0, LEAST_OUTSIDE)
            return replace(
                frame, start=min(frame.start, epsilon - frame.period / 64), latest=max(frame.latest, epsilon)
            )
        return self._narrowest(tilt, epsilon - 0.1 / tilt, epsilon + 0.1 / tilt)

    def _search_refined(self, objective: Callable[[Array, Array], Array]) -> float:
        """The best tilt, with the coarse distributions refined wherever a cell is wide for it."""
        tilt = self._search(objective)
        for _ in range(8):
            if not self._refine(tilt):
                break
            tilt = self._search(objective)
        return tilt

    def _refine(self, tilt: float) -> bool:
        """Add knots around the tilted bulk of each distribution whose cells there span more than a
        factor e in weight.
        """
        changed = False
        for i, distribution in enumerate(self.distributions):
            pair = self.entries[i][0]
            weights = distribution.tilt_masses(tilt)
            at = int(np.searchsorted(np.cumsum(weights), 0.5))
            width = distribution.losses[min(at + 1, weights.size - 1)] - distribution.losses[max(at - 1, 0)]
            if pair.smooth is not None and width * tilt > 2 and width > 1e-6 * (pair.greatest - pair.least):
                extra = knots_around(
                    float(distribution.losses[at]), pair.least, pair.greatest, 0.1 / tilt, _COARSE
                )
                self.distributions[i] = spread(pair, np.unique(np.concatenate([distribution.losses, extra])))
                changed = True
        return changed

    def _narrowest(self, tilt: float, start: float, latest: float) -> Frame:
        """A slightly smaller tilt has a lighter upper tail, so a shorter period may do; take the
        shortest.
        """
        best = self.frame(tilt, start, latest)
        if len(self.entries) > 8:
            return best
        scale = self.scale(best)
        for shift in (0.5, 1.0, 1.5, 2.0):
            lower = tilt - shift / scale
            if lower > 0.3 * tilt:
                other = self.frame(lower, start, latest)
                best = other if other.period < best.period else best
        return best

    def frame(self, tilt: float, start: float, latest: float) -> Frame:
        bulk = self.bulk(tilt, _OUTSIDE)
        return replace(
            bulk,
            start=start,
            latest=latest,
            period=max(bulk.latest - start, latest + FAR / tilt - bulk.start, 1e-9 * (1 + abs(latest))),
        )

    def bulk(self, tilt: float, outside: float) -> Frame:
        """Centre and width of each entry, and an interval that misses only `outside` on either
        side.
        """
        centres, scales = [], []
        for distribution in self.distributions:
            weights = distribution.tilt_masses(tilt)
            mean = float(dot(weights, distribution.losses))
            scales.append(math.sqrt(float(dot(weights, (distribution.losses - mean) ** 2))))
            centres.append(float(distribution.losses[int(np.searchsorted(np.cumsum(weights), 0.5))]))
        frame = Frame(tilt, 0.0, 0.0, 0.0, tuple(centres), tuple(scales))
        need = math.log(1 / outside)
        rates = np.geomspace(0.1, 6.0, 16) * (math.sqrt(2 * need) / self.scale(frame))
        here = float(self.log_moments(np.array([tilt]))[0])
        high = float(np.min((self.log_moments(tilt + rates) - here + need) / rates))
        low = float(np.max(-(self.log_moments(tilt - rates) - here + need) / rates))
        return replace(frame, start=low, latest=high, period=max(high - low, 1e-9 * (1 + abs(high))))

    def _search(self, objective: Callable[[Array, Array], Array]) -> float:
        """Minimise a quasi-convex function of log λ on successively finer grids."""
        widest = max(pair.greatest - pair.least for pair, _ in self.entries)
        low, high = -16.0, 18.0 - min(0.0, math.log(max(widest, 1e-300)))
        points = 14 if len(self.entries) <= 8 else 8
        for _ in range(4 if high < 30 else 6):
            grid = np.linspace(low, high, points)
            lam = np.exp(grid)
            values = objective(lam, self.log_moments(lam))
            best = int(np.nanargmin(values))
            low, high = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
        return float(lam[best])


def any_infinite(infinite: list[float], counts: list[int]) -> float:
    """The probability that at least one loss is infinite: 1 - Π(1 - δᵢ)^count."""
    if any(delta >= 1 for delta in infinite):
        return 1.0
    safe = math.fsum(count * math.log1p(-delta) for delta, count in zip(infinite, counts, strict=True))
    return -math.expm1(safe)


@lru_cache(maxsize=2048)
def _coarse_distribution(pair: Pair) -> Masses:
    """Remembered, because both directions of a composition share their symmetric pairs."""
    return spread(pair, _coarse_knots(pair))


def _coarse_knots(pair: Pair) -> Array:
    """Knots for choosing tilt and window: geometric around 0 and around the median."""
    least, greatest = pair.least, pair.greatest
    finest = max((greatest - least) * 1e-9, 1e-300)
    around_zero = knots_around(0.0, min(least, 0.0), max(greatest, 0.0), finest, _COARSE)
    median = 0.0
    if pair.smooth is not None:
        below = pair.smooth(np.clip(around_zero, least, greatest))[0]
        median = float(around_zero[min(int(np.searchsorted(below, 0.5 * below[-1])), around_zero.size - 1)])
    median = min(max(median, least), greatest)
    knots = np.concatenate(
        [around_zero, knots_around(median, least, greatest, finest, _COARSE), [least, greatest]]
    )
    return np.unique(knots)
