# SPDX-License-Identifier: Apache-2.0
"""From the moments of a composition back to δ(ε): Poisson's summation formula, with every error
bounded.

**Guarantee.** `Inversion.log_delta(ε, upper=True)` is never below log δ(ε), with `upper=False`
never above it.

Why it holds. h(y) = e^{λy}·E(1 - e^{y-L})₊ = e^{λy}·δ(y) has the Fourier transform M(z)/(z(z+1)), z
= λ + it, and both are summable. So, for every period D > 0,

    Σ_m h(ε + mD) = (1/D)·Σ_n M(z_n)/(z_n(z_n + 1))·e^{-it_n·ε},     t_n = 2πn/D,

and the left side is a sum of terms that are not negative. Hence

- the right side is an upper bound of h(ε) as it stands, for any λ and D;
- it exceeds h(ε) by at most what Chernoff's bound allows the terms m ≠ 0: with any λ' > λ for those
  above, with any λ' < λ for those below, δ(y) ≤ c(λ')·e^{K(λ') - λ'y}, c(λ) = λ^λ/(1+λ)^{1+λ}; each
  is a geometric series;
- the terms that are left out, n > N, are at most B/t_n² each, where B bounds |M(λ + it)|/M(λ) for
  all t ≥ t_N;
- the error of a product of powers of numbers of size at most 1 is at most the sum of their errors;
- where some of P and Q was cut off, P ≥ P̂ and Q ≥ Q̂, so (P̂ - γQ̂)₊ - γ(Q - Q̂) ≤ (P - γQ)₊ ≤ (P̂
  - γQ̂)₊ + (P - P̂).

The tilt λ puts the distribution where δ is decided (a saddle point), where the summands fall like a
Gaussian: a few dozen of them give ten digits, whatever the count. What would break it: a
`RenyiMoments` whose stated errors are too small.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.exact import bisect
from discreet.privacy.logarithms import Array
from discreet.privacy.moments import (
    UNIT,
    Complex,
    Line,
    RenyiMoments,
    log_add,
    log_peak,
    merge,
    power_product,
)

#: log of the wanted relative accuracy of δ, and the worst that is of use.
_WANTED, _ACCEPTED, _USEFUL = math.log(1e-10), 1e-5, 1e-3
#: Most frequencies.
_MOST = 1 << 18
#: How softly to cut (see `quadrature`), and log of the share of δ that may be cut off: tried in
#: turn.
_CUTS = tuple(
    (width, math.log(share)) for width, share in ((1.0, 1e-10), (0.05, 1e-6), (0.0125, 1e-6), (0.003, 1e-5))
)
_Softness = tuple[float, float] | None
#: Shares of δ that may pay for what is cut off where nothing closer is found.
_SHARES = (0.03, 0.3, 0.7, 0.95)
#: log of the least δ.
_LEAST = -690.0
#: Tilts to try, and their neighbours, as shares of the one with the best Rényi bound.
_TILTS = np.array([1.0, 0.85, 0.7, 0.6, 0.5])
_NEIGHBOURS = np.concatenate([np.linspace(0.05, 1.0, 20), 1 + np.geomspace(0.02, 4.0, 12)])
#: By how much, as a log, the share of δ may be less than at the best tilt.
_HIDDEN = 4.0
#: A tilted distribution with a greater variance, in units of 1/λ², is not like a Gaussian: it takes
#: many frequencies.
_EASY = 500.0


@dataclass(frozen=True, eq=False)
class Inversion:
    """The right side of the formula for one λ and D, divided by M(λ); see the module docstring.

    `terms` belong to t = 0, spacing, …; `error` bounds what they all leave out or get wrong,
    `slack` the error of K(λ). `others` are (λ' - λ, K(λ') + log c(λ')), one above and one below,
    for what the periods may add. `lost` are the logarithms of what was cut off from P and from Q.
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
    lost: tuple[float, float] = (-math.inf, -math.inf)

    def log_delta(self, epsilon: float, *, upper: bool) -> float:
        """log δ(ε), on the safe side."""
        value, _, error = self._sum(epsilon)
        scale = self.log_moment - self.tilt * epsilon
        rounding = self.slack + 4 * UNIT * (abs(self.log_moment) + abs(self.tilt * epsilon))
        if upper:
            finite = scale + rounding + math.log(max(value + error, 1e-300))
            return min(0.0, log_add(float(np.logaddexp(finite, self.lost[0])), self.infinite, upper=True))
        left = value - error - math.exp(min(self._alias(epsilon) - scale + rounding, 700.0))
        left -= math.exp(min(self.lost[1] + epsilon - scale + rounding, 700.0))
        finite = scale - rounding + math.log(left) if left > 0 else -math.inf
        return log_add(finite, self.infinite, upper=False)

    def epsilon(self, log_delta: float, start: float, *, upper: bool) -> float | None:
        """An ε on the safe side where log δ is (just) reached; None if this inversion does not get
        there.
        """
        if upper and self.log_delta(0.0, upper=True) <= log_delta:
            return 0.0
        at = start
        for _ in range(30):
            value, slope, _ = self._sum(at)
            if value <= 0 or slope >= 0:
                return None
            share = math.exp(min(0.0, self.log_moment - self.tilt * at + math.log(value)))
            log_delta_here = math.log(share + self.infinite)
            move = (log_delta_here - log_delta) / -slope * (share + self.infinite) / share
            at = max(0.0, at + max(-0.2, min(0.2, move * self.spacing)) / self.spacing)
            if abs(move) <= 1e-12 * (1 + at):
                break
        return self._step_outward(at, log_delta, upper=upper) if self.unsure(at) < _USEFUL else None

    def is_tight(self, epsilon: float) -> bool:
        """Whether both sides agree to what is wanted."""
        return self.unsure(epsilon) < _ACCEPTED

    def unsure(self, epsilon: float) -> float:
        """By how much, relative to δ, the two sides may differ."""
        value, _, error = self._sum(epsilon)
        scale = self.log_moment - self.tilt * epsilon
        unsure = error + sum(
            math.exp(min(log_part - scale, 700.0))
            for log_part in (self._alias(epsilon), self.lost[0], self.lost[1] + epsilon)
        )
        return unsure / value if value > 0 else math.inf

    def _step_outward(self, at: float, log_delta: float, *, upper: bool) -> float | None:
        """The first of ever farther places that is on the safe side, and then one half as far off
        as often as that is.
        """
        side, unit, nudge = (1.0 if upper else -1.0), 1 / self.tilt + at, 1e-12
        while not self._is_safe(max(0.0, at + side * nudge * unit), log_delta, upper=upper):
            nudge *= 8
            if nudge > 1:
                return None
        while nudge > 1e-12 and self._is_safe(max(0.0, at + side * nudge / 2 * unit), log_delta, upper=upper):
            nudge /= 2
        return max(0.0, at + side * nudge * unit)

    def _is_safe(self, epsilon: float, log_delta: float, *, upper: bool) -> bool:
        value = self.log_delta(epsilon, upper=upper)
        return value <= log_delta if upper else value >= log_delta or epsilon == 0

    def safe_epsilon(self, log_delta: float, highest: float, *, upper: bool) -> float:
        """An ε on the safe side where log δ is proved to be reached, by halving; ∞ (or 0) if there
        is none up to `highest`.
        """
        low, high = 0.0, highest
        # whatever is not a number proves nothing
        if upper and not self.log_delta(high, upper=True) <= log_delta:
            return math.inf
        if upper:
            return bisect(lambda at: self.log_delta(at, upper=True) <= log_delta, yes=high, no=low, steps=40)[
                0
            ]
        return bisect(lambda at: self.log_delta(at, upper=False) > log_delta, yes=low, no=high, steps=40)[0]

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

    def __init__(
        self,
        entries: list[tuple[RenyiMoments, int]],
        infinite: float,
        lost: tuple[float, float] = (-math.inf, -math.inf),
    ) -> None:
        self.entries = merge(entries)
        self.infinite, self.lost = infinite, lost
        #: whether the last ε is as close as is wanted
        self.is_tight = False
        self._aimed = lru_cache(maxsize=8)(self._aim)
        self.for_delta = lru_cache(maxsize=8)(self._for_delta)

    def log_moments(self, tilts: Array) -> Array:
        """About K(λ) = Σ count·log M(λ)."""
        total = np.zeros(tilts.size)
        for moments, count in self.entries:
            total += count * moments.log_moments(tilts)
        return total

    def epsilon(self, delta: float, *, upper: bool) -> float | None:
        """An ε on the safe side of that of δ; None if no inversion is good enough."""
        bounds: list[float] = []
        self.is_tight = False
        for softness, easy in self._attempts:
            aimed = self.for_delta(math.log(delta - self.infinite), softness, easy=easy)
            if aimed is None:
                continue
            inversion, start = aimed
            at = inversion.epsilon(math.log(delta), start, upper=upper)
            if at is None:
                continue
            # 0 is below every ε, but it is of no use unless it is the truth.
            is_useful = upper or at > 0 or inversion.log_delta(0.0, upper=True) <= math.log(delta)
            self.is_tight = is_useful and inversion.is_tight(at)
            if self.is_tight:
                return at
            bounds += [at] if is_useful else []
        if not bounds:
            return None
        return min(bounds) if upper else max(bounds)

    def rough_epsilon(self, delta: float, *, upper: bool) -> float:
        """An ε on the safe side of that of δ, where a share of δ pays for what is cut off; ∞ (or 0)
        if there is none.
        """
        bounds = [math.inf if upper else 0.0]
        finite = math.log(delta - self.infinite)
        for share in _SHARES if self.is_cuttable else ():
            target, epsilon = finite + math.log1p(-share if upper else share), 0.0
            for _ in range(1 if upper else 2):
                cut = self.cut(finite, epsilon, (_CUTS[2][0], math.log(share)), only="p" if upper else "q")
                tilt, epsilon = cut.least_epsilon(target) if cut else (1.0, math.inf)
            if cut is not None and math.isfinite(epsilon):
                inversion = cut.invert(tilt, epsilon, target)
                bounds += (
                    [inversion.safe_epsilon(math.log(delta), 1.01 * epsilon, upper=upper)]
                    if inversion
                    else []
                )
        return min(bounds) if upper else max(bounds)

    @property
    def _attempts(self) -> list[tuple[_Softness, bool]]:
        """How to cut: first not at all, then where that makes it easy, then whatever it takes."""
        if not self.is_cuttable:
            return [(None, False)]
        return [(None, True), *((softness, easy) for easy in (True, False) for softness in _CUTS)]

    def _for_delta(
        self, log_delta: float, softness: _Softness = None, *, easy: bool = False
    ) -> tuple[Inversion, float] | None:
        """An inversion for the ε of this (finite) δ, and an ε near it; None if there is none.

        What is cut from Q counts e^ε times, so the place of the cut depends on ε.
        """
        epsilon, cut = 0.0, self
        for _ in range(3):
            candidate = self.cut(log_delta, epsilon, softness)
            if candidate is None:
                return None
            cut = candidate
            tilt, epsilon = cut.least_epsilon(log_delta)
            if not math.isfinite(epsilon):
                return None
            if softness is None or cut.lost[1] + epsilon <= log_delta + softness[1] + 1.0:
                break
        inversion = cut.invert(tilt, epsilon, log_delta, easy=easy)
        return (inversion, epsilon) if inversion else None

    def for_epsilon(self, epsilon: float) -> Inversion | None:
        """An inversion for the δ of this ε; None if none is good enough."""
        best: Inversion | None = None
        for softness, easy in self._attempts:
            cut, tilt, log_delta = self._aimed(epsilon, softness)
            if not math.isfinite(log_delta):
                continue
            # δ is below its bound by about the factor that the local limit theorem gives
            inversion = cut.invert(tilt, epsilon, log_delta - 4.0, easy=easy)
            if inversion and inversion.unsure(epsilon) < (best.unsure(epsilon) if best else _USEFUL):
                best = inversion
                if inversion.is_tight(epsilon):
                    break
        return best

    def chernoff_log_delta(self, epsilon: float) -> float:
        """A cheap upper bound of log δ: the least Rényi bound of what is not cut off."""
        log_delta_bound = 0.0
        for softness in (None, _CUTS[1]) if self.is_cuttable else (None,):
            cut, tilt, log_delta = self._aimed(epsilon, softness)
            log_delta_bound = min(
                log_delta_bound, cut.renyi_log_delta(tilt, epsilon) if math.isfinite(log_delta) else 0.0
            )
        return log_delta_bound

    def renyi_log_delta(self, tilt: float, epsilon: float) -> float:
        """log δ of everything, as one tilt bounds it."""
        at = np.array([tilt])
        finite = float((self._upper_log_moments(at) - tilt * epsilon * (1 - 1e-15) + log_peak(at))[0])
        return log_add(float(np.logaddexp(finite, self.lost[0])), self.infinite, upper=True)

    @property
    def is_cuttable(self) -> bool:
        """Whether a cut makes any difference."""
        return any(getattr(moments, "needs_cut", False) for moments, _ in self.entries)

    def cut(self, log_delta: float, epsilon: float, softness: _Softness, only: str = "pq") -> Spectrum | None:
        """The same without what almost never happens, given δ and ε; None if that is out of reach.

        An upper bound needs little to be lost `only` of P, a lower one only of Q.
        """
        if softness is None or not self.is_cuttable:
            return self
        width, log_share = softness
        cuttable = sum(hasattr(moments, "cut_to") for moments, _ in self.entries)
        log_allowed = log_delta + log_share - math.log(cuttable)
        parts: list[tuple[RenyiMoments, int]] = []
        lost: list[tuple[float, float]] = []
        for moments, count in self.entries:
            cut_to = getattr(moments, "cut_to", None)
            allowed = (log_allowed if "p" in only else 0.0, log_allowed - epsilon if "q" in only else 0.0)
            part: Any = cut_to(*allowed, width) if cut_to else moments
            if part is None:
                return None
            parts.append((part, count))
            lost += [part.lost] if cut_to else []
        p, q = (float(np.logaddexp.reduce(logs)) + 1e-12 for logs in zip(*lost, strict=True))
        return Spectrum(parts, self.infinite, (p, q))

    def least_epsilon(self, log_delta: float) -> tuple[float, float]:
        """The tilt whose Rényi bound gives the least ε, and about that ε (not below 0)."""
        tilt = _best_tilt(self, lambda lam, k: (k - log_delta + log_peak(lam)) / lam)
        at = np.array([tilt])
        return tilt, max(0.0, float(((self.log_moments(at) - log_delta + log_peak(at)) / tilt)[0]))

    def _aim(self, epsilon: float, softness: _Softness) -> tuple[Spectrum, float, float]:
        """What to cut off for this ε, the best tilt then, and about log δ.

        Less can be cut off the smaller δ is, and a good tilt needs much to be cut off; so δ is
        approached from above.
        """
        best = (self, 1.0, math.inf)
        log_delta = _LEAST
        for _ in range(8):
            cut = self.cut(log_delta, epsilon, softness)
            if cut is None:
                break
            tilt = _best_tilt(cut, lambda lam, k: k - lam * epsilon + log_peak(lam))
            at = np.array([tilt])
            log_delta = min(0.0, float((cut.log_moments(at) - tilt * epsilon + log_peak(at))[0]))
            if log_delta > best[2] - 1.0:
                break
            best = (cut, tilt, log_delta)
            if cut is self:
                break
        return best

    def _upper_log_moments(self, tilts: Array) -> Array:
        """K(λ), rounded up."""
        total = np.zeros(tilts.size)
        for moments, count in self.entries:
            total += count * moments.upper_log_moments(tilts)
        return np.asarray(total + 1e-12 * np.abs(total))

    def invert(
        self, tilt: float, epsilon: float, log_delta: float, *, easy: bool = False
    ) -> Inversion | None:
        """The inversion at this tilt that suits an ε and a δ near the given ones (`easy`: only if
        that takes little).
        """
        if easy and _curvature(self, tilt) > _EASY:
            return None
        frame = self._frame(tilt, epsilon, log_delta)
        if frame is None:
            return None
        tilt, period, others = frame
        lines = [(line, count) for moments, count in self.entries if (line := moments.line(tilt))]
        if len(lines) < len(self.entries):
            return None
        log_moment = math.fsum(count * line.log_moment for line, count in lines)
        wanted = _WANTED + log_delta - (log_moment - tilt * epsilon)
        spacing = 2 * math.pi / period
        frequencies = _enough(lines, spacing, wanted)
        product = _product(lines, spacing, frequencies[0]) if frequencies else None
        if frequencies is None or product is None:
            return None
        count, log_rest = frequencies
        z = tilt + 1j * spacing * np.arange(count)
        weights = np.where(np.arange(count) > 0, 2.0, 1.0) / (z * (z + 1)) / period
        values, error = product
        rest = 2 / period * math.exp(log_rest) / (spacing**2 * (count - 1))
        sizes = [(abs(line.log_moment), line.error, count) for line, count in lines]
        return Inversion(
            tilt=tilt,
            log_moment=log_moment,
            slack=sum(count * (error + 4 * UNIT * size) for size, error, count in sizes),
            centre=math.fsum(count * line.centre for line, count in lines),
            spacing=spacing,
            terms=values * weights,
            error=rest + float(np.sum(error * np.abs(weights))),
            others=others,
            infinite=self.infinite,
            lost=self.lost,
        )

    def _frame(
        self, best: float, epsilon: float, log_delta: float
    ) -> tuple[float, float, tuple[tuple[float, float], ...]] | None:
        """The tilt and the shortest D whose neighbours add little, and the (λ' - λ, K(λ') + log
        c(λ')) that show it.

        The tilt with the best Rényi bound may spread the distribution over two far places, of which
        a lesser one sees only that where δ is decided. None if there is no λ' above within reach,
        for then nothing bounds the periods above.
        """
        tilts = best * np.concatenate([_TILTS, _NEIGHBOURS])
        log_moments = self.log_moments(tilts)
        # δ as a share of M(λ)·e^{-λε}, which must not become so small that rounding hides it
        shares = (tilts * epsilon - log_moments)[: _TILTS.size]
        hidden = ~(shares >= shares[0] - _HIDDEN)
        log_moments = log_moments + log_peak(tilts)
        # without a tilt δ ≤ 1 is all there is to say
        tilts, log_moments = np.append(tilts, 0.0), np.append(log_moments, 0.0)
        away = tilts - best * _TILTS[:, None]
        need = (log_moments - tilts * epsilon - log_delta - _WANTED) / np.maximum(np.abs(away), 1e-2 * best)
        sides = [np.where(side, need, np.inf) for side in (away < -1e-2 * best, away > 1e-2 * best)]
        periods = np.where(hidden, np.inf, np.maximum(*(side.min(axis=1) for side in sides)))
        at = int(np.argmin(periods))
        tilt, period = float(best * _TILTS[at]), float(periods[at])
        if not math.isfinite(period):
            return None
        chosen = tilts[[int(np.argmin(side[at])) for side in sides]]
        positive = chosen > 0
        proved = np.zeros(2)
        proved[positive] = self._upper_log_moments(chosen[positive]) + log_peak(chosen[positive])
        others = tuple(
            (float(other - tilt), float(bound)) for other, bound in zip(chosen, proved, strict=True)
        )
        return tilt, max(period, 1 / tilt) * (1 + 1e-6), others


def _best_tilt(spectrum: Spectrum, objective: Callable[[Array, Array], Array]) -> float:
    """Minimise a quasi-convex function of log λ on successively finer grids."""
    low, high = math.log(1e-7), math.log(1e12)
    for _ in range(4):
        grid = np.linspace(low, high, 14)
        lam = np.exp(grid)
        values = objective(lam, spectrum.log_moments(lam))
        best = int(np.nanargmin(values))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
    return float(lam[best])


def _curvature(spectrum: Spectrum, tilt: float) -> float:
    """About the variance of the tilted distribution, in units of 1/λ²; ∞ where it is out of reach."""
    below, here, above = spectrum.log_moments(tilt * np.array([0.99, 1.0, 1.01]))
    if not math.isfinite(above):
        return math.inf
    return float(below + above - 2 * here) / 0.01**2


def _enough(lines: list[tuple[Line, int]], spacing: float, wanted: float) -> tuple[int, float] | None:
    """How many frequencies leave out no more than is wanted (as a log), and a bound on all |φ|
    beyond them.
    """
    variance = math.fsum(count * line.variance for line, count in lines)
    # The noise in the loss is too small for doubles.
    if variance <= 0:
        return None
    beyond = max(6 / math.sqrt(variance), spacing)
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
    factors = [line.values(spacing, count) for line, _ in lines]
    known_factors = [pair for pair in factors if pair is not None]
    if len(known_factors) < len(factors):
        return None
    values = np.stack([value for value, _ in known_factors], axis=1)
    errors = np.stack([np.broadcast_to(error, count) for _, error in known_factors], axis=1)
    return power_product(values, np.array([float(times) for _, times in lines]), errors)
