# SPDX-License-Identifier: Apache-2.0
"""Composition of pairs: certified δ(ε) and ε(δ) of a bag of dominating pairs.

**Guarantee.** `Composition.upper_epsilon(δ)` is never below, `lower_epsilon(δ)` never above the ε
at which the product of the pairs has hockey-stick divergence δ; the same for δ at given ε. This
holds for every δ down to 1e-300.

How. Put e^{λL}/E e^{λL} on top of the distribution of each loss (an Esscher transform). Sums of
tilted losses are tilted sums, the tilted distribution of the sum has its bulk where δ is decided,
and

    δ(ε) = e^{K(λ) - λε} · E_tilted[ w(L - ε) ],     w(x) = e^{-λx}·(1 - e^{-x})₊ ≤ c(λ) = λ^λ/(1+λ)^{1+λ}.

So an error of τ (in total mass) in the tilted distribution of the sum costs at most τ·c(λ)·e^{K(λ)
- λε}: that product is the Rényi bound (Canonne, Kamath, Steinke 2020, Proposition 12), within a
small factor of δ itself. That is why one FFT in double precision keeps relative accuracy at δ =
1e-100, where an untilted one is all round-off.

λ is free: any value is valid, a good one is tight. It is chosen with a coarse distribution, so it
needs no accuracy.

Where the moments of every pair are known, none of this is needed: `inversion` gets δ from them,
faster and closer.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property, partial

import numpy as np
import scipy.fft
from scipy.special import xlogy

from discreet.privacy.coarse import LEAST_OUTSIDE, Coarse, Frame, any_infinite
from discreet.privacy.inversion import Spectrum
from discreet.privacy.jumps import Jumps, jumps_of
from discreet.privacy.lattice import DRIFT, Masses, contract, densest, lattice_knots, spread
from discreet.privacy.logarithms import Array, log_choose
from discreet.privacy.moments import ROUNDED, UNIT, AtomMoments, RenyiMoments
from discreet.privacy.pairs import Pair, dot, log_delta_of
from discreet.privacy.roots import CLOSE, root
from discreet.privacy.tilted import FAR, TiltedDistribution, convolve

#: Wanted and accepted error of log δ from the lattice, and the FFT sizes that they may cost.
_WANTED, _ACCEPTED = 2e-6, 4e-5
_USUAL_SIZE, _LARGEST_SIZE = 640_000, 1 << 20
#: Cells of equal width around the bulk, at most, for all entries together.
_DENSE = 1 << 14
#: Losses of one mechanism, and of all, beyond which this computes nothing and proves nothing.
_UNTOLD, _UNTOLD_IN_ALL = 1e7, 1e16
#: Compositions with no more outcomes than this are listed, which is exact where an FFT is not.
_MOST_LISTED = 100_000
#: How much finer the lattice of the lower bound is: merging has a larger constant than spreading.
_FINER = 4


class Composition:
    """A bag of pairs with counts, in one direction of the neighbouring relation."""

    def __init__(self, entries: list[tuple[Pair, int]]) -> None:
        self.entries = entries
        self.total = sum(count for _, count in entries)
        self.listed = enumerate_outcomes(entries)
        #: whether the last upper bound came from a lattice, so that another theorem may be closer
        self.is_rough = False
        self.infinite = any_infinite([pair.infinite for pair, _ in entries], [count for _, count in entries])
        widest = max(max(pair.greatest, -pair.least) for pair, _ in entries)
        self.is_untold = self.listed is None and (widest > _UNTOLD or self.greatest > _UNTOLD_IN_ALL)

    @cached_property
    def coarse(self) -> Coarse:
        """The bag on a few hundred losses."""
        return Coarse(self.entries)

    @cached_property
    def spectrum(self) -> Spectrum | None:
        """The moments of the bag, if all of them are known and it is not made of atoms alone."""
        known = [(_moments(pair), count) for pair, count in self.entries]
        if all(pair.smooth is None for pair, _ in self.entries):
            return None
        entries = [(moments, count) for moments, count in known if moments is not None]
        return Spectrum(entries, self.infinite) if len(entries) == len(known) else None

    @cached_property
    def jumps(self) -> Jumps | None:
        """The rare large losses of the bag, if nothing but sampled Gaussians is in it."""
        alone = self.spectrum is not None and len(self.spectrum.entries) == 1 and self.infinite == 0
        return jumps_of(*self.spectrum.entries[0]) if self.spectrum and alone else None

    def chernoff_log_delta(self, epsilon: float) -> float:
        """A certified, cheap upper bound of log δ."""
        if self.is_untold:
            return 0.0
        log_delta = self.spectrum.chernoff_log_delta(epsilon) if self.spectrum else 0.0
        return log_delta if log_delta < 0 else self.coarse.chernoff_log_delta(epsilon)

    def stays_within(self, epsilon: float, log_delta: float) -> bool:
        """Whether it is proved, at little cost, that log δ(ε) is no more than that."""
        if self.chernoff_log_delta(epsilon) <= log_delta:
            return True
        inverted = self.spectrum.for_epsilon(epsilon) if self.spectrum else None
        return inverted is not None and inverted.log_delta(epsilon, upper=True) <= log_delta

    @property
    def greatest(self) -> float:
        """The greatest finite total loss."""
        return math.fsum(count * pair.greatest for pair, count in self.entries)

    def upper_epsilon(self, delta: float) -> float:
        """A certified upper bound on ε(δ)."""
        if self.is_untold:
            return math.inf
        if self.listed:
            return self._listed_epsilon(delta, 1.0)
        epsilon, close = _close_epsilon(self, delta, upper=True)
        if close:
            return epsilon
        self.is_rough = True
        return min(_rough_epsilon(self, delta, upper=True), self._epsilon(delta, upper=True), epsilon)

    def lower_epsilon(self, delta: float) -> float:
        """A certified lower bound on ε(δ)."""
        if self.is_untold:
            return 0.0
        if self.listed:
            return self._listed_epsilon(delta, -1.0) * (1 - 3 * CLOSE)
        epsilon, close = _close_epsilon(self, delta, upper=False)
        if not close:
            rough = _rough_epsilon(self, delta, upper=False)
            epsilon = max(rough, self._epsilon(delta, upper=False), epsilon)
        return max(self._epsilon_from_top(delta), epsilon)

    def upper_log_delta(self, epsilon: float) -> float:
        """A certified upper bound on log δ(ε)."""
        if self.is_untold:
            return 0.0
        if self.listed:
            return log_delta_of(self.listed, epsilon) + self._listing_error
        inverted = self.spectrum.for_epsilon(epsilon) if self.spectrum else None
        if inverted:
            return inverted.log_delta(epsilon, upper=True)
        by_jumps = self.jumps.log_delta(epsilon, upper=True) if self.jumps else None
        if by_jumps is not None and self.jumps and self.jumps.is_tight(epsilon):
            return by_jumps
        frame = self.coarse.frame_for_epsilon(epsilon)
        rough = min(self.distribution(frame, upper=True).log_delta(epsilon), self.chernoff_log_delta(epsilon))
        return rough if by_jumps is None else min(rough, by_jumps)

    def lower_log_delta(self, epsilon: float) -> float:
        """A certified lower bound on log δ(ε)."""
        if self.is_untold:
            return -math.inf
        if self.listed:
            return log_delta_of(self.listed, epsilon) - self._listing_error
        inverted = self.spectrum.for_epsilon(epsilon) if self.spectrum else None
        if inverted:
            return inverted.log_delta(epsilon, upper=False)
        by_jumps = self.jumps.log_delta(epsilon, upper=False) if self.jumps else None
        if by_jumps is not None and self.jumps and self.jumps.is_tight(epsilon):
            return by_jumps
        rough = self.distribution(self.coarse.frame_for_epsilon(epsilon), upper=False).log_delta(epsilon)
        return rough if by_jumps is None else max(rough, by_jumps)

    @property
    def _listing_error(self) -> float:
        """How far log δ of the listed outcomes may be off: logarithms of factorials and of long
        sums.
        """
        return CLOSE + 16 * UNIT * (math.lgamma(self.total + 1.0) + self.greatest)

    def _listed_epsilon(self, delta: float, side: float) -> float:
        assert self.listed is not None
        if _is_revealed(self.infinite, delta, side):
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
        log_share = math.log(delta) - log_mass if delta > 0 else -math.inf
        share = math.exp(min(log_share, 0.0)) * (1 + 1e-12 * (1 + abs(log_mass)))
        return max(0.0, (self.greatest + math.log1p(-share)) * (1 - 1e-14)) if share < 1 else 0.0

    def _epsilon(self, delta: float, *, upper: bool) -> float:
        if delta <= self.infinite:
            return math.inf if _is_revealed(self.infinite, delta, 1.0 if upper else -1.0) else 0.0
        log_delta = math.log(delta)
        if upper and self.chernoff_log_delta(0.0) <= log_delta:
            return 0.0
        frame = self.coarse.frame_for_delta(math.log(delta - self.infinite))
        for _ in range(3 if upper else 2):
            distribution = self.distribution(frame, upper=upper)
            if frame.start <= 0 and distribution.log_delta(0.0) <= log_delta:
                return 0.0
            guess = frame.latest - 1 / frame.tilt if frame.tilt else (frame.start + frame.latest) / 2
            epsilon = distribution.epsilon(log_delta, max(guess, 0.0))
            if epsilon > distribution.first + 2 * distribution.step or not frame.tilt:
                return epsilon
            # the Rényi bound was further off than the window allowed for: look lower
            frame = self.coarse.frame(frame.tilt, frame.start - 20 / frame.tilt, frame.latest)
        return epsilon

    def distribution(self, frame: Frame, *, upper: bool) -> TiltedDistribution:
        """The tilted distribution of the sum, dominating (`upper`) or dominated."""
        finer = 1 if upper else _FINER
        step, size, origins = self._lattice(frame, 8 if self.total == 1 else finer)
        discretise = spread if upper else contract
        masses, indices = [], []
        parts = zip(self.entries, frame.centres, frame.scales, origins, strict=True)
        for (pair, _), centre, scale, origin in parts:
            few = upper and self.total > 1
            flat = min(4 * scale, _DENSE * step / len(self.entries)) if few else 6 * scale
            index = lattice_knots(pair, centre, flat, step, origin)
            masses.append(discretise(pair, origin + step * index))
            indices.append(index)
        tilted, log_moment, rounding = self._tilt(masses, frame.tilt)
        tilted_sum, error = convolve(tilted, indices, self.coarse.counts, size)
        offset = sum(count * origin for count, origin in zip(self.coarse.counts, origins, strict=True))
        start = math.floor((frame.start - offset) / step)
        first, period = offset + start * step, size * step
        sign = 1.0 if upper else -1.0
        above = self._tail(masses, frame, log_moment, first + period, side=1.0)
        wraps_from = frame.latest + FAR / frame.tilt - period if frame.tilt else first
        below = 0.0 if upper else self._tail(masses, frame, log_moment, wraps_from, side=-1.0)
        return TiltedDistribution(
            tilt=frame.tilt,
            log_moment=log_moment + sign * (self.total * DRIFT + 8 * UNIT * abs(log_moment)),
            first=first,
            step=step,
            masses=np.roll(tilted_sum, -(start % size)),
            error=error + rounding,
            missed=above,
            wrapped=above + below,
            latest=frame.latest,
            infinite=any_infinite([m.infinite for m in masses], self.coarse.counts),
            drift=self.total * DRIFT + 8 * UNIT * (abs(first) + period),
            upper=upper,
        )

    def _tilt(self, masses: list[Masses], tilt: float) -> tuple[list[Array], float, float]:
        """Each distribution under the tilt, K(λ), and a bound on the total error that rounding
        leaves in the sum.
        """
        tilted, log_moment, rounding = [], 0.0, 0.0
        for distribution, count in zip(masses, self.coarse.counts, strict=True):
            exponent = distribution.log_p + tilt * distribution.losses
            top = float(exponent.max())
            weights = np.exp(exponent - top)
            mass = float(weights.sum())
            weights /= mass
            log_moment += count * (top + math.log(mass))
            some = weights > 0
            digits = np.abs(exponent[some]) + np.abs(distribution.log_p[some])
            rounding += count * 4 * UNIT * (4 + float(dot(weights[some], digits)))
            tilted.append(weights)
        return tilted, log_moment, rounding

    def _tail(
        self, masses: list[Masses], frame: Frame, log_moment: float, at: float, *, side: float
    ) -> float:
        """Tilted mass of the sum beyond `at`, above (side 1) or below (side -1), by Chernoff's
        bound.
        """
        rates = side * np.geomspace(0.1, 6.0, 12) * (6.0 / self.coarse.scale(frame))
        bound = self.coarse.log_moments(frame.tilt + rates, masses) - log_moment - rates * at
        return math.exp(min(0.0, float(bound.min())))

    def untilted_distribution(self) -> TiltedDistribution:
        """The distribution of the loss itself, dominating; good to about 1e-12 in absolute terms."""
        return self.distribution(self.coarse.bulk(0.0, LEAST_OUTSIDE), upper=True)

    def as_pair(self) -> Pair:
        """The composition as one pair of atoms; what was not computed exactly counts as revealed."""
        if self.listed:
            return self.listed
        distribution = self.untilted_distribution()
        losses, p, infinite = distribution.plain()
        some = p > 0
        return _atoms(losses[some], p[some], infinite)

    def _lattice(self, frame: Frame, finer: int) -> tuple[float, int, list[float]]:
        """Step, FFT size and the origin of each entry's lattice."""
        alone = _with_spacing(self.entries[0][0]) if len(self.entries) == 1 else Pair()
        if alone.smooth is None and frame.period < _LARGEST_SIZE * alone.spacing:
            return alone.spacing, _fft_size(frame.period / alone.spacing + 16), [alone.least]
        per_step = frame.period * max(frame.tilt, 2 / self.coarse.scale(frame)) * math.sqrt(self.total / 12)
        wanted, accepted = per_step / math.sqrt(_WANTED), per_step / math.sqrt(_ACCEPTED)
        usual = _USUAL_SIZE if len(self.entries) <= 8 else _USUAL_SIZE // 4
        size = int(min(max(wanted, 1 << 12), max(accepted, usual), _LARGEST_SIZE))
        size = min(finer * size, max(size, 2 * _LARGEST_SIZE))
        step = frame.period / _fft_size(size)
        if alone.spacing > 0:
            ratio = alone.spacing / step
            step = alone.spacing / math.ceil(ratio) if ratio > 1 else alone.spacing * math.floor(1 / ratio)
            return step, _fft_size(frame.period / step + 1), [alone.least]
        parts = zip(self.entries, frame.centres, strict=True)
        return step, _fft_size(size), [densest(pair, centre, step) for (pair, _), centre in parts]


def _atoms(losses: Array, p: Array, infinite: float) -> Pair:
    q = np.exp(np.minimum(np.log(p) - losses, 0.0))
    return Pair(losses=losses, p=p, q=q, infinite=infinite, vanishing=infinite)


def _is_revealed(infinite: float, delta: float, side: float) -> bool:
    """Whether no less than δ is revealed anyway, given that what is revealed is rounded."""
    return delta <= infinite * (1 + side * ROUNDED)


def _close_epsilon(composition: Composition, delta: float, *, upper: bool) -> tuple[float, bool]:
    """By the moments, or by jumps where those are not close; and whether that is close to the
    truth.
    """
    if composition.spectrum is None or delta <= composition.infinite:
        return (math.inf if upper else 0.0), False
    inverted = composition.spectrum.epsilon(delta, upper=upper)
    if inverted is not None and (composition.spectrum.is_tight or composition.jumps is None):
        return inverted, True
    jumped = composition.jumps.epsilon(delta, upper=upper) if composition.jumps else None
    known = [epsilon for epsilon in (inverted, jumped) if epsilon is not None]
    epsilon = min(known, default=math.inf) if upper else max(known, default=0.0)
    close = jumped is not None and composition.jumps is not None and composition.jumps.is_tight(jumped)
    return epsilon, close or inverted is not None


def _rough_epsilon(composition: Composition, delta: float, *, upper: bool) -> float:
    """By the moments, where a share of δ pays for what is cut off."""
    if composition.spectrum is None or delta <= composition.infinite:
        return math.inf if upper else 0.0
    return composition.spectrum.rough_epsilon(delta, upper=upper)


def _moments(pair: Pair) -> RenyiMoments | None:
    """The moments of a pair; those of atoms are plain sums."""
    return AtomMoments(pair.losses, pair.p) if pair.smooth is None else pair.moments


def _with_spacing(pair: Pair) -> Pair:
    """Two atoms always lie on a lattice."""
    if pair.smooth is None and pair.losses.size == 2:
        return replace(pair, spacing=float(np.ptp(pair.losses)))
    return pair


def _fft_size(least: float) -> int:
    return int(scipy.fft.next_fast_len(max(64, math.ceil(least)), real=True))


def enumerate_outcomes(entries: list[tuple[Pair, int]]) -> Pair | None:
    """The product of the pairs as one pair of atoms, or None if it has too many."""
    if any(pair.smooth is not None for pair, _ in entries) or _outcome_count(entries) > _MOST_LISTED:
        return None
    losses, log_p, log_safe = np.zeros(1), np.zeros(1), 0.0
    for pair, count in entries:
        more, log_more = _repeated_outcomes(pair, count)
        losses = (losses[:, None] + more[None, :]).ravel()
        log_p = (log_p[:, None] + log_more[None, :]).ravel()
        log_safe += count * math.log1p(-pair.infinite) if pair.infinite < 1 else -math.inf
    p = np.exp(log_p)
    infinite = -math.expm1(log_safe)
    return Pair(losses=losses, p=p, q=np.exp(log_p - losses), infinite=infinite, vanishing=infinite)


def _outcome_count(entries: list[tuple[Pair, int]]) -> float:
    logs = [
        math.log(count + 1) if pair.losses.size == 2 else count * math.log(max(pair.losses.size, 1))
        for pair, count in entries
    ]
    return math.exp(min(math.fsum(logs), 100.0))


def _repeated_outcomes(pair: Pair, count: int) -> tuple[Array, Array]:
    """Losses and log masses of `count` draws: a binomial distribution for two atoms, else every
    sequence.
    """
    if pair.losses.size < 2:
        loss, p = (float(pair.losses[0]), float(pair.p[0])) if pair.losses.size else (0.0, 0.0)
        return np.array([count * loss]), np.array([count * math.log(p) if p > 0 else -np.inf])
    with np.errstate(divide="ignore"):
        log_p = np.log(pair.p)
    if pair.losses.size == 2:
        second = np.arange(count + 1.0)
        first = count - second
        total = first * pair.losses[0] + second * pair.losses[1]
        return np.asarray(total), np.asarray(
            log_choose(count, second) + xlogy(first, pair.p[0]) + xlogy(second, pair.p[1])
        )
    losses, logs = np.zeros(1), np.zeros(1)
    for _ in range(count):
        losses = (losses[:, None] + pair.losses[None, :]).ravel()
        logs = (logs[:, None] + log_p[None, :]).ravel()
    return losses, logs
