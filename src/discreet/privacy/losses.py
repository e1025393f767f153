# SPDX-License-Identifier: Apache-2.0
"""Composition of pairs: certified δ(ε) and ε(δ) of a bag of dominating pairs.

**Promise.** `Composition.upper_epsilon(δ)` is never below, `lower_epsilon(δ)` never above the ε at which the product of
the pairs has hockey-stick divergence δ; the same for δ at given ε. This holds for every δ down to 1e-300.

How. Put e^{λL}/E e^{λL} on top of the law of each loss (an Esscher transform). Sums of tilted losses are tilted
sums, the tilted law of the sum has its bulk where δ is decided, and

    δ(ε) = e^{K(λ) - λε} · E_tilted[ w(L - ε) ],     w(x) = e^{-λx}·(1 - e^{-x})₊ ≤ c(λ) = λ^λ/(1+λ)^{1+λ}.

So an error of τ (in total mass) in the tilted law of the sum costs at most τ·c(λ)·e^{K(λ) - λε}: that product is
the Rényi bound (Canonne, Kamath, Steinke 2020, Proposition 12), within a small factor of δ itself. That is why one
FFT in double precision keeps relative accuracy at δ = 1e-100, where an untilted one is all round-off.

λ is free: any value is valid, a good one is tight. It is chosen with a coarse law, so it needs no accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.fft

from discreet.privacy.enumerate import enumerated
from discreet.privacy.lattice import DRIFT, Masses, contract, densest, knots_around, lattice_knots, spread
from discreet.privacy.pairs import Array, Pair, log_delta_of
from discreet.privacy.roots import CLOSE, root
from discreet.privacy.tilted import FAR, UNIT, TiltedLaw, convolve, log_add, log_peak

#: Tilted mass that may lie where it would be wrapped to a place that matters.
_OUTSIDE = 1e-8
#: The same without a tilt, where all of it matters, and the log δ above which none is needed.
_LEAST_OUTSIDE, _LARGE = 1e-13, math.log(0.01)
#: Relative growth of the coarse cells.
_COARSE = 1 / 8
#: Wanted and accepted error of log δ from the lattice, and the FFT sizes that they may cost.
_WANTED, _ACCEPTED = 2e-6, 4e-5
_USUAL_SIZE, _LARGEST_SIZE = 1 << 19, 1 << 20
#: How much finer the lattice of the lower bound is: merging has a larger constant than spreading.
_FINER = 4


@dataclass(frozen=True)
class _Frame:
    """Where to compute: the tilt, the range of ε in question, the window and each entry's bulk."""

    tilt: float
    start: float
    latest: float
    period: float
    centres: tuple[float, ...]
    scales: tuple[float, ...]


class Composition:
    """A bag of pairs with counts, in one direction of the neighbouring relation."""

    def __init__(self, entries: list[tuple[Pair, int]]) -> None:
        self.entries = entries
        self.total = sum(count for _, count in entries)
        self.listed = enumerated(entries)
        self._coarse = [spread(pair, _coarse_knots(pair)) for pair, _ in entries]
        self.infinite = _any_infinite([pair.infinite for pair, _ in entries], self._counts)

    @property
    def _counts(self) -> list[int]:
        return [count for _, count in self.entries]

    @property
    def greatest(self) -> float:
        """The greatest finite total loss."""
        return math.fsum(count * pair.greatest for pair, count in self.entries)

    def upper_epsilon(self, delta: float) -> float:
        """A certified upper bound on ε(δ)."""
        return self._listed_epsilon(delta, 1.0) if self.listed else self._epsilon(delta, upper=True)

    def lower_epsilon(self, delta: float) -> float:
        """A certified lower bound on ε(δ)."""
        if self.listed:
            return self._listed_epsilon(delta, -1.0) * (1 - 3 * CLOSE)
        return max(self._epsilon_from_top(delta), self._epsilon(delta, upper=False))

    def upper_log_delta(self, epsilon: float) -> float:
        """A certified upper bound on log δ(ε)."""
        if self.listed:
            return log_delta_of(self.listed, epsilon) + self._listing_error
        frame = self._frame_for_epsilon(epsilon)
        return min(self.law(frame, upper=True).log_delta(epsilon), self.chernoff_log_delta(epsilon))

    def lower_log_delta(self, epsilon: float) -> float:
        """A certified lower bound on log δ(ε)."""
        if self.listed:
            return log_delta_of(self.listed, epsilon) - self._listing_error
        return self.law(self._frame_for_epsilon(epsilon), upper=False).log_delta(epsilon)

    @property
    def _listing_error(self) -> float:
        """How far log δ of the listed outcomes may be off: logarithms of factorials and of long sums."""
        return CLOSE + 16 * UNIT * (math.lgamma(self.total + 1.0) + self.greatest)

    def _listed_epsilon(self, delta: float, side: float) -> float:
        assert self.listed is not None
        if delta <= self.infinite:
            return math.inf
        target = math.log(delta) - side * self._listing_error
        return root(partial(log_delta_of, self.listed), target, self.greatest * (1 + 1e-15))

    def _epsilon_from_top(self, delta: float) -> float:
        """From the outcome with the greatest loss alone: δ(ε) ≥ P(top)·(1 - e^{ε - top})."""
        log_mass = 0.0
        for pair, count in self.entries:
            at_top = float(pair.p[pair.losses >= pair.greatest].sum())
            if at_top == 0:
                return 0.0
            log_mass += count * math.log(at_top)
        share = delta * math.exp(min(-log_mass, 700.0)) * (1 + 1e-12 * (1 + abs(log_mass)))
        return max(0.0, (self.greatest + math.log1p(-share)) * (1 - 1e-14)) if share < 1 else 0.0

    def _epsilon(self, delta: float, *, upper: bool) -> float:
        if delta <= self.infinite:
            return math.inf
        log_delta = math.log(delta)
        frame = self._frame_for_delta(math.log(delta - self.infinite))
        for _ in range(4):
            law = self.law(frame, upper=upper)
            if frame.start <= 0 and law.log_delta(0.0) <= log_delta:
                return 0.0
            guess = frame.latest - 1 / frame.tilt if frame.tilt else (frame.start + frame.latest) / 2
            found = law.epsilon(log_delta, max(guess, 0.0))
            if found > law.first + 2 * law.step or not upper or not frame.tilt:
                return found
            # the Rényi bound was further off than the window allowed for: look lower
            frame = self._frame(frame.tilt, frame.start - 40 / frame.tilt, frame.latest)
        return found

    def log_moments(self, tilts: Array, masses: list[Masses] | None = None) -> Array:
        """K(λ) = Σ count·log E e^{λL} for each λ: an upper bound of (order - 1)·Rényi when λ ≥ 0."""
        total = np.zeros(tilts.size)
        for count, law in zip(self._counts, masses or self._coarse, strict=True):
            logs = law.log_p[None, :] + tilts[:, None] * law.losses[None, :]
            top = logs.max(axis=1)
            total += count * (top + np.log(np.sum(np.exp(logs - top[:, None]), axis=1)))
        return total

    def chernoff_log_delta(self, epsilon: float) -> float:
        """A certified, cheap upper bound of log δ: the least Rényi bound that the coarse law gives."""
        lam = np.array([self._search(lambda lam, k: k - lam * epsilon + log_peak(lam))])
        finite = float((self.log_moments(lam) - lam * epsilon + log_peak(lam))[0])
        slack = 1e-12 * (1 + abs(finite)) + self.total * DRIFT * (1 + float(lam[0]))
        infinite = _any_infinite([law.infinite for law in self._coarse], self._counts)
        return min(0.0, log_add(finite + slack, infinite))

    def law(self, frame: _Frame, *, upper: bool) -> TiltedLaw:
        """The tilted law of the sum, dominating (`upper`) or dominated."""
        finer = 1 if upper else _FINER
        step, size, origins = self._lattice(frame, 8 if self.total == 1 else finer)
        discretise = spread if upper else contract
        masses, indices = [], []
        parts = zip(self.entries, frame.centres, frame.scales, origins, strict=True)
        for (pair, _), centre, scale, origin in parts:
            index = lattice_knots(pair, centre, 6 * scale, step, origin)
            masses.append(discretise(pair, origin + step * index))
            indices.append(index)
        tilted, log_moment, rounding = self._tilt(masses, frame.tilt)
        law, error = convolve(tilted, indices, self._counts, size)
        offset = sum(count * origin for count, origin in zip(self._counts, origins, strict=True))
        start = math.floor((frame.start - offset) / step)
        first, period = offset + start * step, size * step
        sign = 1.0 if upper else -1.0
        above = self._tail(masses, frame, log_moment, first + period, side=1.0)
        wraps_from = frame.latest + FAR / frame.tilt - period if frame.tilt else first
        below = 0.0 if upper else self._tail(masses, frame, log_moment, wraps_from, side=-1.0)
        return TiltedLaw(
            tilt=frame.tilt,
            log_moment=log_moment + sign * (self.total * DRIFT + 8 * UNIT * abs(log_moment)),
            first=first,
            step=step,
            masses=np.roll(law, -(start % size)),
            error=error + rounding,
            missed=above,
            wrapped=above + below,
            latest=frame.latest,
            infinite=_any_infinite([m.infinite for m in masses], self._counts),
            drift=self.total * DRIFT + 8 * UNIT * (abs(first) + period),
            upper=upper,
        )

    def _tilt(self, masses: list[Masses], tilt: float) -> tuple[list[Array], float, float]:
        """Each law under the tilt, K(λ), and a bound on the total error that rounding leaves in the sum."""
        tilted, log_moment, rounding = [], 0.0, 0.0
        for law, count in zip(masses, self._counts, strict=True):
            exponent = law.log_p + tilt * law.losses
            top = float(exponent.max())
            weights = np.exp(exponent - top)
            mass = float(weights.sum())
            weights /= mass
            log_moment += count * (top + math.log(mass))
            some = weights > 0
            digits = np.abs(exponent[some]) + np.abs(law.log_p[some])
            rounding += count * 4 * UNIT * (4 + float(np.dot(weights[some], digits)))
            tilted.append(weights)
        return tilted, log_moment, rounding

    def _tail(
        self, masses: list[Masses], frame: _Frame, log_moment: float, at: float, *, side: float
    ) -> float:
        """Tilted mass of the sum beyond `at`, above (side 1) or below (side -1), by Chernoff's bound."""
        rates = side * np.geomspace(0.1, 6.0, 12) * (6.0 / self._scale(frame))
        bound = self.log_moments(frame.tilt + rates, masses) - log_moment - rates * at
        return math.exp(min(0.0, float(bound.min())))

    def _scale(self, frame: _Frame) -> float:
        variance = sum(count * scale * scale for count, scale in zip(self._counts, frame.scales, strict=True))
        return math.sqrt(max(variance, 1e-300))

    def _frame_for_delta(self, log_delta: float) -> _Frame:
        if log_delta > _LARGE:
            return self._bulk(0.0, _LEAST_OUTSIDE)
        tilt = self._refined(lambda lam, k: (k - log_delta + log_peak(lam)) / lam)
        at = np.array([tilt])
        least = float(((self.log_moments(at) - log_delta + log_peak(at)) / tilt)[0])
        return self._narrowest(tilt, least - 8 / tilt, max(least, 0.0) + 1 / tilt)

    def _frame_for_epsilon(self, epsilon: float) -> _Frame:
        tilt = self._refined(lambda lam, k: k - lam * epsilon + log_peak(lam))
        if self.chernoff_log_delta(epsilon) > _LARGE:
            frame = self._bulk(0.0, _LEAST_OUTSIDE)
            return replace(
                frame, start=min(frame.start, epsilon - frame.period / 64), latest=max(frame.latest, epsilon)
            )
        return self._narrowest(tilt, epsilon - 0.1 / tilt, epsilon + 0.1 / tilt)

    def _refined(self, objective: Callable[[Array, Array], Array]) -> float:
        """The best tilt, with the coarse laws refined wherever a cell is wide for it."""
        tilt = self._search(objective)
        for _ in range(8):
            if not self._refine(tilt):
                break
            tilt = self._search(objective)
        return tilt

    def _refine(self, tilt: float) -> bool:
        """Add knots around the tilted bulk of each law whose cells there span more than a factor e in weight."""
        changed = False
        for i, law in enumerate(self._coarse):
            pair = self.entries[i][0]
            weights = law.tilted(tilt)
            at = int(np.searchsorted(np.cumsum(weights), 0.5))
            width = law.losses[min(at + 1, weights.size - 1)] - law.losses[max(at - 1, 0)]
            if pair.smooth is not None and width * tilt > 2 and width > 1e-6 * (pair.greatest - pair.least):
                extra = knots_around(float(law.losses[at]), pair.least, pair.greatest, 0.1 / tilt, _COARSE)
                self._coarse[i] = spread(pair, np.unique(np.concatenate([law.losses, extra])))
                changed = True
        return changed

    def _narrowest(self, tilt: float, start: float, latest: float) -> _Frame:
        """A slightly smaller tilt has a lighter upper tail, so a shorter period may do; take the shortest."""
        best = self._frame(tilt, start, latest)
        if len(self.entries) > 8:
            return best
        scale = self._scale(best)
        for shift in (0.5, 1.0, 1.5, 2.0):
            lower = tilt - shift / scale
            if lower > 0.3 * tilt:
                other = self._frame(lower, start, latest)
                best = other if other.period < best.period else best
        return best

    def _frame(self, tilt: float, start: float, latest: float) -> _Frame:
        bulk = self._bulk(tilt, _OUTSIDE)
        return replace(
            bulk,
            start=start,
            latest=latest,
            period=max(bulk.latest - start, latest + FAR / tilt - bulk.start),
        )

    def _bulk(self, tilt: float, outside: float) -> _Frame:
        """Centre and width of each entry, and an interval that misses only `outside` on either side."""
        centres, scales = [], []
        for law in self._coarse:
            weights = law.tilted(tilt)
            mean = float(np.dot(weights, law.losses))
            scales.append(math.sqrt(float(np.dot(weights, (law.losses - mean) ** 2))))
            centres.append(float(law.losses[int(np.searchsorted(np.cumsum(weights), 0.5))]))
        frame = _Frame(tilt, 0.0, 0.0, 0.0, tuple(centres), tuple(scales))
        need = math.log(1 / outside)
        rates = np.geomspace(0.1, 6.0, 16) * (math.sqrt(2 * need) / self._scale(frame))
        here = float(self.log_moments(np.array([tilt]))[0])
        high = float(np.min((self.log_moments(tilt + rates) - here + need) / rates))
        low = float(np.max(-(self.log_moments(tilt - rates) - here + need) / rates))
        return replace(frame, start=low, latest=high, period=max(high - low, 1e-300))

    def untilted(self) -> TiltedLaw:
        """The law of the loss itself, dominating; good to about 1e-12 in absolute terms."""
        return self.law(self._bulk(0.0, _LEAST_OUTSIDE), upper=True)

    def as_pair(self) -> Pair:
        """The composition as one pair of atoms; what was not computed exactly counts as revealed."""
        if self.listed:
            return self.listed
        law = self.untilted()
        losses, p, infinite = law.plain()
        some = p > 0
        losses, p = losses[some], p[some]
        return Pair(losses=losses, p=p, q=p * np.exp(-losses), infinite=infinite, vanishing=infinite)

    def _lattice(self, frame: _Frame, finer: int) -> tuple[float, int, list[float]]:
        """Step, FFT size and the origin of each entry's lattice."""
        alone = _with_spacing(self.entries[0][0]) if len(self.entries) == 1 else Pair()
        if alone.smooth is None and 0 < frame.period < _LARGEST_SIZE * alone.spacing:
            return alone.spacing, _fft_size(frame.period / alone.spacing + 16), [alone.least]
        per_step = frame.period * max(frame.tilt, 2 / self._scale(frame)) * math.sqrt(self.total / 12)
        wanted, accepted = per_step / math.sqrt(_WANTED), per_step / math.sqrt(_ACCEPTED)
        size = finer * int(min(max(wanted, 1 << 12), max(accepted, _USUAL_SIZE), _LARGEST_SIZE))
        step = frame.period / _fft_size(size)
        if alone.spacing > 0:
            ratio = alone.spacing / step
            step = alone.spacing / math.ceil(ratio) if ratio > 1 else alone.spacing * math.floor(1 / ratio)
            return step, _fft_size(frame.period / step + 1), [alone.least]
        parts = zip(self.entries, frame.centres, strict=True)
        return step, _fft_size(size), [densest(pair, centre, step) for (pair, _), centre in parts]

    def _search(self, objective: Callable[[Array, Array], Array]) -> float:
        """Minimise a quasi-convex function of log λ on successively finer grids."""
        low, high = -16.0, 18.0
        for _ in range(4):
            grid = np.linspace(low, high, 14)
            lam = np.exp(grid)
            values = objective(lam, self.log_moments(lam))
            best = int(np.nanargmin(values))
            low, high = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
        return float(lam[best])


def _with_spacing(pair: Pair) -> Pair:
    """Two atoms always lie on a lattice."""
    if pair.smooth is None and pair.losses.size == 2:
        return replace(pair, spacing=float(np.ptp(pair.losses)))
    return pair


def _fft_size(least: float) -> int:
    return int(scipy.fft.next_fast_len(max(64, math.ceil(least)), real=True))


def _any_infinite(infinite: list[float], counts: list[int]) -> float:
    """The probability that at least one loss is infinite: 1 - Π(1 - δᵢ)^count."""
    if any(delta >= 1 for delta in infinite):
        return 1.0
    return -math.expm1(sum(count * math.log1p(-delta) for delta, count in zip(infinite, counts, strict=True)))


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
