# SPDX-License-Identifier: Apache-2.0
"""From the moments of a composition back to δ(ε): Poisson's summation formula, with every error bounded.

**Promise.** `Inverted.log_delta(ε, upper=True)` is never below log δ(ε), with `upper=False` never above it.

Why it holds. h(y) = e^{λy}·E(1 - e^{y-L})₊ = e^{λy}·δ(y) has the Fourier transform M(z)/(z(z+1)), z = λ + it, and both
are summable. So, for every period D > 0,

    Σ_m h(ε + mD) = (1/D)·Σ_n M(z_n)/(z_n(z_n + 1))·e^{-it_n·ε},     t_n = 2πn/D,

and the left side is a sum of terms that are not negative. Hence

- the right side is an upper bound of h(ε) as it stands, for any λ and D;
- it exceeds h(ε) by at most what Chernoff's bound allows the terms m ≠ 0: with any λ' > λ for those above, with any
  λ' < λ for those below, δ(y) ≤ c(λ')·e^{K(λ') - λ'y}, c(λ) = λ^λ/(1+λ)^{1+λ}; each is a geometric series;
- the terms that are left out, n > N, are at most B/t_n² each, where B bounds |M(λ + it)|/M(λ) for all t ≥ t_N;
- the error of a product of powers of numbers of size at most 1 is at most the sum of their errors.

The tilt λ puts the law where δ is decided (a saddle point), where the summands fall like a Gaussian: a few dozen of
them give ten digits, whatever the count. What would break it: a `Moments` whose stated errors are too small.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from discreet.privacy.moments import (
    UNIT,
    Array,
    Complex,
    Line,
    Moments,
    log_add,
    log_peak,
    merged,
    power_product,
)

#: log of the wanted relative accuracy of δ, and the worst that is of use.
_WANTED, _ACCEPTED = math.log(1e-10), 1e-6
#: Most frequencies.
_MOST = 4096


@dataclass(frozen=True, eq=False)
class Inverted:
    """The right side of the formula for one λ and D, divided by M(λ); see the module docstring.

    `terms` belong to t = 0, spacing, …; `error` bounds what they all leave out or get wrong, `slack` the error of K(λ).
    `others` are (λ' - λ, K(λ') + log c(λ')), one above and one below, for what the periods may add.
    """

    tilt: float
    log_moment: float
    slack: float
    centre: float
    spacing: float
    terms: Complex
    error: float
    others: tuple[tuple[float, float], ...]
    infinite: float

    def log_delta(self, epsilon: float, *, upper: bool) -> float:
        """log δ(ε), on the safe side."""
        value, _, error = self._sum(epsilon)
        scale = self.log_moment - self.tilt * epsilon
        rounding = self.slack + 4 * UNIT * (abs(self.log_moment) + abs(self.tilt * epsilon))
        if upper:
            return min(0.0, log_add(scale + rounding + math.log(max(value + error, 1e-300)), self.infinite))
        left = value - error - math.exp(min(self._alias(epsilon) - scale + rounding, 700.0))
        finite = scale - rounding + math.log(left) if left > 0 else -math.inf
        return log_add(finite, self.infinite)

    def epsilon(self, log_delta: float, start: float, *, upper: bool) -> float | None:
        """An ε on the safe side where log δ is (just) reached; None if this inversion does not get there."""
        if upper and self.log_delta(0.0, upper=True) <= log_delta:
            return 0.0
        at = start
        for _ in range(30):
            value, slope, _ = self._sum(at)
            if value <= 0 or slope >= 0:
                return None
            share = math.exp(min(0.0, self.log_moment - self.tilt * at + math.log(value)))
            found = math.log(share + self.infinite)
            move = (found - log_delta) / -slope * (share + self.infinite) / share
            at = max(0.0, at + max(-0.2, min(0.2, move * self.spacing)) / self.spacing)
            if abs(move) <= 1e-12 * (1 + at):
                break
        return self._step_outward(at, log_delta, upper=upper) if self.is_tight(at) else None

    def is_tight(self, epsilon: float) -> bool:
        """Whether both sides agree to what is of use."""
        value, _, error = self._sum(epsilon)
        alias = self._alias(epsilon) - self.log_moment + self.tilt * epsilon
        return value > 0 and error + math.exp(min(alias, 700.0)) < _ACCEPTED * value

    def _step_outward(self, at: float, log_delta: float, *, upper: bool) -> float | None:
        for nudge in (1e-12 * 8.0**power for power in range(8)):
            tried = max(0.0, at + (nudge if upper else -nudge) * (1 + at))
            value = self.log_delta(tried, upper=upper)
            if value <= log_delta if upper else value >= log_delta or tried == 0:
                return tried
        return None

    def _sum(self, epsilon: float) -> tuple[float, float, float]:
        """h(ε)/M(λ) up to its error, the slope of log δ, and the error."""
        t = self.spacing * np.arange(self.terms.size)
        turned = self.terms * np.exp(1j * (t * (self.centre - epsilon)))
        value = float(turned.real.sum())
        slope = float((t * turned.imag).sum()) / value - self.tilt if value > 0 else 0.0
        far = 8 + 4 * self.spacing * self.terms.size * (abs(self.centre) + abs(epsilon))
        return value, slope, self.error + UNIT * far * float(np.abs(self.terms).sum())

    def _alias(self, epsilon: float) -> float:
        """log of a bound on Σ_{m≠0} e^{λmD}·δ(ε + mD)."""
        period = 2 * math.pi / self.spacing
        total = -math.inf
        for away, log_moment in self.others:
            fall = abs(away) * period
            if fall <= 1e-6:
                return math.inf
            bound = log_moment - (self.tilt + away) * epsilon - fall - math.log(-math.expm1(-fall))
            total = float(np.logaddexp(total, bound))
        return total + 1e-9


class Spectrum:
    """A bag of losses with counts, each known by its moments."""

    def __init__(self, entries: list[tuple[Moments, int]], infinite: float) -> None:
        self.entries = merged(entries)
        self.infinite = infinite
        self.total = sum(count for _, count in entries)
        self._chernoff = lru_cache(maxsize=8)(self._best_chernoff)

    def log_moments(self, tilts: Array) -> Array:
        """K(λ) = Σ count·log M(λ)."""
        total = np.zeros(tilts.size)
        for moments, count in self.entries:
            total += count * moments.log_moments(tilts)
        return total

    def for_delta(self, log_delta: float) -> tuple[Inverted, float] | None:
        """An inversion for the ε of this (finite) δ, and an ε near it; None if none is good enough."""
        tilt = self._best_tilt(lambda lam, k: (k - log_delta + log_peak(lam)) / lam)
        at = np.array([tilt])
        least = float(((self.log_moments(at) - log_delta + log_peak(at)) / tilt)[0])
        made = self._inverted(tilt, max(least, 0.0), log_delta) if math.isfinite(least) else None
        return (made, max(least, 0.0)) if made else None

    def for_epsilon(self, epsilon: float) -> Inverted | None:
        """An inversion for the δ of this ε; None if none is good enough."""
        tilt, log_delta = self._chernoff(epsilon)
        # δ is below its bound by about the factor that the local limit theorem gives
        made = self._inverted(tilt, epsilon, log_delta - 4.0) if math.isfinite(log_delta) else None
        return made if made and made.is_tight(epsilon) else None

    def chernoff_log_delta(self, epsilon: float) -> float:
        """A cheap upper bound of log δ: the least Rényi bound."""
        _, log_delta = self._chernoff(epsilon)
        return min(0.0, log_add(log_delta, self.infinite))

    def _best_chernoff(self, epsilon: float) -> tuple[float, float]:
        """The best tilt, and log δ of the finite part as it bounds it."""
        tilt = self._best_tilt(lambda lam, k: k - lam * epsilon + log_peak(lam))
        at = np.array([tilt])
        return tilt, float((self._raised(at) - tilt * epsilon * (1 - 1e-15) + log_peak(at))[0])

    def _raised(self, tilts: Array) -> Array:
        """K(λ), raised by more than it may be off."""
        found = self.log_moments(tilts)
        return np.asarray(found + 1e-11 * (self.total + np.abs(found)))

    def _best_tilt(self, objective: Callable[[Array, Array], Array]) -> float:
        """Minimise a quasi-convex function of log λ on successively finer grids."""
        low, high = math.log(1e-7), math.log(1e8)
        for _ in range(4):
            grid = np.linspace(low, high, 14)
            lam = np.exp(grid)
            values = objective(lam, self.log_moments(lam))
            best = int(np.nanargmin(values))
            low, high = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
        return float(lam[best])

    def _inverted(self, tilt: float, epsilon: float, log_delta: float) -> Inverted | None:
        """The inversion at this tilt that suits an ε and a δ near the given ones."""
        lines = [(line, count) for moments, count in self.entries if (line := moments.line(tilt))]
        framed = self._period(tilt, epsilon, log_delta)
        if framed is None or len(lines) < len(self.entries):
            return None
        period, others = framed
        log_moment = math.fsum(count * line.log_moment for line, count in lines)
        wanted = _WANTED + log_delta - (log_moment - tilt * epsilon)
        spacing = 2 * math.pi / period
        found = _enough(lines, spacing, wanted)
        product = _product(lines, spacing, found[0]) if found else None
        if found is None or product is None:
            return None
        count, log_rest = found
        z = tilt + 1j * spacing * np.arange(count)
        weights = np.where(np.arange(count) > 0, 2.0, 1.0) / (z * (z + 1)) / period
        values, error = product
        rest = 2 / period * math.exp(log_rest) / (spacing**2 * (count - 1))
        sizes = [(abs(line.log_moment), line.error, count) for line, count in lines]
        return Inverted(
            tilt=tilt,
            log_moment=log_moment,
            slack=sum(count * (error + 4 * UNIT * size) for size, error, count in sizes),
            centre=math.fsum(count * line.centre for line, count in lines),
            spacing=spacing,
            terms=values * weights,
            error=rest + float(np.sum(error * np.abs(weights))),
            others=others,
            infinite=self.infinite,
        )

    def _period(
        self, tilt: float, epsilon: float, log_delta: float
    ) -> tuple[float, tuple[tuple[float, float], ...]] | None:
        """The shortest D whose neighbours add little, and the (λ' - λ, K(λ') + log c(λ')) that show it.

        None if there is no λ' above within reach, for then nothing bounds the periods above.
        """
        shares = np.concatenate([np.linspace(0.05, 0.9, 9), 1 + np.geomspace(0.02, 4.0, 14)])
        tilts = tilt * shares
        log_moments = self._raised(tilts) + log_peak(tilts)
        # without a tilt δ ≤ 1 is all there is to say
        tilts, log_moments = np.append(tilts, 0.0), np.append(log_moments, 0.0)
        need = (log_moments - tilts * epsilon - log_delta - _WANTED) / np.abs(tilts - tilt)
        below, above = (np.where(side, need, np.inf) for side in (tilts < tilt, tilts > tilt))
        period = max(float(below.min()), float(above.min()), 1 / tilt)
        if not math.isfinite(period):
            return None
        chosen = int(np.argmin(below)), int(np.argmin(above))
        return period, tuple((float(tilts[at] - tilt), float(log_moments[at])) for at in chosen)


def _enough(lines: list[tuple[Line, int]], spacing: float, wanted: float) -> tuple[int, float] | None:
    """How many frequencies leave out no more than is wanted (as a log), and a bound on all |φ| beyond them."""
    variance = math.fsum(count * line.variance for line, count in lines)
    if variance <= 0:  # so little noise in the loss that doubles do not see it
        return None
    beyond = max(4 / math.sqrt(variance), spacing)
    while beyond < _MOST * spacing:
        goal, log_bound = wanted + math.log(beyond), 0.0
        for line, count in lines:
            log_bound += count * line.log_bound(beyond)
            if log_bound < goal:
                return math.ceil(beyond / spacing) + 1, log_bound
        beyond *= 1.25
    return None


def _product(lines: list[tuple[Line, int]], spacing: float, count: int) -> tuple[Complex, Array] | None:
    """Π φ^count at each frequency, and a bound on its error."""
    found = [line.values(spacing, count) for line, _ in lines]
    known = [pair for pair in found if pair is not None]
    if len(known) < len(found):
        return None
    values = np.stack([value for value, _ in known], axis=1)
    times = np.array([float(count) for _, count in lines])
    return power_product(values, times, np.array([error for _, error in known]))
