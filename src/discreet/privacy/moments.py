# SPDX-License-Identifier: Apache-2.0
"""The moments M(z) = E e^{zL} of one privacy loss along a vertical line z = λ + it, with error
bounds.

**Guarantee.** A `Line` is the distribution of L under the tilt λ, normalised, seen through φ(t) =
M(λ + it)/M(λ). Each value of φ is off by at most the stated error, so is `log_moment`, and |φ(t)|
is below `log_bound(T)` for **every** t ≥ T.

Moments of a composition are products of moments, so no lattice is needed: `inversion` goes back
from them to δ. Here are the distributions whose moments are elementary; `quadrature` has the
sampled Gaussian.

What would break it: an exponential or a sine that is off by more than a few units in the last
place.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.privacy.logarithms import Array

Complex = NDArray[np.complexfloating[Any, Any]]

UNIT = 2.0**-53
#: How far the mass that is revealed may be off, relative to itself: a product, a sum of logarithms,
#: an exponential.
ROUNDED = 16 * UNIT
#: The greatest |sin s / s| beyond its first zero is 0.21723…
_SIDE_LOBE = 0.2173
#: Atoms times frequencies, at most.
_MOST_TERMS = 1 << 21


class Line(Protocol):
    """See the module docstring."""

    @property
    def log_moment(self) -> float:
        """log M(λ)."""

    @property
    def error(self) -> float:
        """A bound on the error of `log_moment`."""

    @property
    def centre(self) -> float:
        """About the mean of the tilted distribution."""

    @property
    def variance(self) -> float:
        """About the variance of the tilted distribution."""

    def values(self, spacing: float, count: int) -> tuple[Complex, Array | float] | None:
        """E e^{it(L - centre)} under the tilt at t = 0, spacing, …, and their errors; None if that
        is too dear.
        """

    def log_bound(self, beyond: float) -> float:
        """log of a bound on |E e^{itL}| under the tilt that holds for every t ≥ beyond."""


class RenyiMoments(Protocol):
    """M(z) of one loss, wherever it is asked for."""

    def log_moments(self, tilts: Array) -> Array:
        """About log M(λ) for λ > 0; ∞ where it is out of reach."""

    def upper_log_moments(self, tilts: Array) -> Array:
        """Never below log M(λ), and little above it."""

    def line(self, tilt: float) -> Line | None:
        """M on the line with real part `tilt` > 0; None where it is out of reach."""


def log_peak(lam: Array) -> Array:
    """log c(λ), c(λ) = λ^λ/(1+λ)^{1+λ}, the greatest e^{-λx}(1 - e^{-x})."""
    return np.asarray(-np.log1p(lam) - lam * np.log1p(1 / lam))


def log_add(log_x: float, y: float, *, upper: bool) -> float:
    """log(e^log_x + y) on the safe side of its own rounding and of y's, which may be all that a
    small e^log_x adds.
    """
    if y <= 0:
        return log_x
    total = float(np.logaddexp(log_x, math.log(y)))
    return total + (ROUNDED if upper else -ROUNDED) * (1 + abs(total))


def uniform_decay(half_widths: Array) -> Array:
    """The greatest |E e^{itU}| over all t beyond T, for U uniform; in terms of T·(half the width of
    U).
    """
    near = np.sinc(np.minimum(half_widths, math.pi) / math.pi)
    return np.asarray(np.maximum(near, np.minimum(_SIDE_LOBE, 1 / np.maximum(half_widths, 1e-9))))


@dataclass(frozen=True)
class AtomLine:
    """Finitely many losses: nothing makes |φ| small for every t."""

    losses: Array
    weights: Array
    log_moment: float
    error: float
    centre: float
    variance: float

    def values(self, spacing: float, count: int) -> tuple[Complex, float] | None:
        if count * self.losses.size > _MOST_TERMS:
            return None
        phase = np.multiply.outer(spacing * np.arange(count), self.losses - self.centre)
        values = (self.weights * np.exp(1j * phase)).sum(axis=1)
        turn = spacing * count * (float(np.sum(self.weights * np.abs(self.losses))) + abs(self.centre))
        return values, 2 * self.error + 8 * UNIT * (4 + turn)

    def log_bound(self, beyond: float) -> float:
        return 0.0


@dataclass(frozen=True)
class AtomMoments:
    """Finitely many losses with their P-masses."""

    losses: Array
    p: Array

    def log_moments(self, tilts: Array) -> Array:
        with np.errstate(divide="ignore"):
            logs = np.log(self.p) + np.multiply.outer(tilts, self.losses)
        top = logs.max(axis=1)
        return np.asarray(top + np.log(np.exp(logs - top[:, None]).sum(axis=1)))

    def upper_log_moments(self, tilts: Array) -> Array:
        return _round_up(self.log_moments(tilts))

    def line(self, tilt: float) -> Line | None:
        some = self.p > 0
        if not some.any():
            return None
        losses, logs = self.losses[some], np.log(self.p[some]) + tilt * self.losses[some]
        top = float(logs.max())
        weights = np.exp(logs - top)
        total = float(weights.sum())
        weights /= total
        centre = float(np.sum(weights * losses))
        variance = float(np.sum(weights * (losses - centre) ** 2))
        digits = float(np.sum(weights * (np.abs(logs) + np.abs(tilt * losses)))) + abs(top)
        error = 4 * UNIT * (8 + digits + math.log2(losses.size + 1))
        return AtomLine(losses, weights, top + math.log(total), error, centre, variance)


@dataclass(frozen=True)
class GaussianLine:
    """A Gaussian loss stays Gaussian under any tilt."""

    log_moment: float
    error: float
    centre: float
    variance: float

    def values(self, spacing: float, count: int) -> tuple[Complex, float] | None:
        t = spacing * np.arange(count)
        values = np.exp(-t * t * self.variance / 2).astype(complex)
        return values, 8 * UNIT * (8 + spacing * count * abs(self.centre))

    def log_bound(self, beyond: float) -> float:
        return -beyond * beyond * self.variance / 2 * (1 - 1e-12)


@dataclass(frozen=True)
class GaussianMoments:
    """N(μ, 1) against N(0, 1): M(z) = e^{z(z+1)μ²/2}."""

    mu: float

    def log_moments(self, tilts: Array) -> Array:
        return np.asarray(tilts * (tilts + 1) * (self.mu * self.mu / 2))

    def upper_log_moments(self, tilts: Array) -> Array:
        return _round_up(self.log_moments(tilts))

    def line(self, tilt: float) -> Line | None:
        square = self.mu * self.mu
        log_moment = tilt * (tilt + 1) * square / 2
        return GaussianLine(log_moment, 8 * UNIT * log_moment, (tilt + 0.5) * square, square)


@dataclass(frozen=True, eq=False)
class SlopedMoments:
    """The sum of independent losses, the i-th `counts[i]` times: in [-ε, ε] with density ∝ e^{l/2}
    and, for Laplace noise, an atom at either end.

    For each M(z)·e^{-zε} = atoms·(1 + e^{-bε}) + slope·(1 - e^{-bε})/b with b = 2z + 1 and ε =
    reach. Its density at l is slope/2·e^{(l-ε)/2}, so Laplace noise has atoms = slope = 1/2.
    """

    reach: Array
    atoms: Array
    slope: Array
    counts: Array

    @property
    def merges(self) -> str:
        return "sloped"

    def join(self, entries: list[tuple[SlopedMoments, int]]) -> list[RenyiMoments]:
        """All of them as one."""
        return [
            SlopedMoments(
                reach=np.concatenate([moments.reach for moments, _ in entries]),
                atoms=np.concatenate([moments.atoms for moments, _ in entries]),
                slope=np.concatenate([moments.slope for moments, _ in entries]),
                counts=np.concatenate([count * moments.counts for moments, count in entries]),
            )
        ]

    def log_moments(self, tilts: Array) -> Array:
        return np.asarray((self._each(tilts) * self.counts).sum(axis=1))

    def upper_log_moments(self, tilts: Array) -> Array:
        return np.asarray((_round_up(self._each(tilts)) * self.counts).sum(axis=1))

    def _each(self, tilts: Array) -> Array:
        reduced = self.reduced_moments(tilts[:, None])
        return np.asarray(np.log(reduced) + np.multiply.outer(tilts, self.reach))

    def reduced_moments(self, z: Any) -> Any:
        """M(z)·e^{-zε} of each, without cancellation."""
        b = 2 * z + 1
        fall = np.expm1(-b * self.reach)
        return self.atoms * (2 + fall) - self.slope * fall / b

    def line(self, tilt: float) -> Line | None:
        step = 1e-4 / (float(self.reach.max()) + 1)
        below, here, above = self._each(tilt + step * np.array([-1.0, 0.0, 1.0]))
        centres = (above - below) / (2 * step)
        # a distribution within ε of 0 has no more variance than this
        variance = np.maximum(self.reach**2 - centres**2, 0.0)
        return SlopedLine(
            moments=self,
            tilt=tilt,
            centres=centres,
            log_moment=float((self.counts * here).sum()),
            error=8 * UNIT * float((self.counts * (4 + 2 * tilt * self.reach)).sum()),
            centre=float((self.counts * centres).sum()),
            variance=max(float((self.counts * variance).sum()), 1e-300),
        )


@dataclass(frozen=True, eq=False)
class SlopedLine:
    """See `SlopedMoments`; `centres` are those of each loss."""

    moments: SlopedMoments
    tilt: float
    centres: Array
    log_moment: float
    error: float
    centre: float
    variance: float

    def values(self, spacing: float, count: int) -> tuple[Complex, float] | None:
        moments = self.moments
        if count * moments.reach.size > _MOST_TERMS:
            return None
        t = spacing * np.arange(count)[:, None]
        each = moments.reduced_moments(self.tilt + 1j * t) / moments.reduced_moments(np.array([self.tilt]))
        each *= np.exp(1j * (t * (moments.reach - self.centres)))
        digits = 2 + spacing * count * (3 * moments.reach + np.abs(self.centres))
        values, error = power_product(each, moments.counts, 32 * UNIT * digits)
        # the sum of the centres is rounded too
        shift = spacing * count * float((moments.counts * np.abs(self.centres)).sum())
        return values, float(error.max()) + 8 * UNIT * shift

    def log_bound(self, beyond: float) -> float:
        """Between the atoms the density is monotone: at least its lower end everywhere, and of
        little variation.
        """
        moments, rise = self.moments, 2 * self.tilt + 1
        reduced, low = moments.reduced_moments(np.array([self.tilt])), np.exp(-rise * moments.reach)
        level = moments.reach * moments.slope * low / reduced * (1 - uniform_decay(beyond * moments.reach))
        fast = (moments.atoms + moments.slope / math.hypot(rise, 2 * beyond)) * (1 + low) / reduced
        bounds = np.minimum(1 - level, fast) * (1 + 1e-12)
        return float((moments.counts * np.log(np.minimum(bounds, 1.0))).sum())


def sloped_moments(reach: float, atoms: float, slope: float) -> SlopedMoments:
    """One loss of `SlopedMoments`."""
    return SlopedMoments(np.array([reach]), np.array([atoms]), np.array([slope]), np.ones(1))


def merge(entries: list[tuple[RenyiMoments, int]]) -> list[tuple[RenyiMoments, int]]:
    """The same bag, with everything that is summed at one stroke in one entry."""
    rest: list[tuple[RenyiMoments, int]] = []
    mergeable: dict[str, list[tuple[Any, int]]] = defaultdict(list)
    for moments, count in entries:
        alike = mergeable[moments.merges] if hasattr(moments, "merges") else rest
        alike.append((moments, count))
    return [*rest, *((moments, 1) for alike in mergeable.values() for moments in alike[0][0].join(alike))]


def _round_up(log_moments: Array) -> Array:
    """Raised by more than the rounding of a plain sum."""
    return np.asarray(log_moments + 1e-11 * (1 + np.abs(log_moments)))


def power_product(values: Complex, counts: Array, errors: Array) -> tuple[Complex, Array]:
    """Π values^counts along the last axis, for numbers of size at most 1 known up to `errors`; and
    its error.

    Telescoping: exchanging one factor of size at most 1 at a time, each step costs no more than the
    error of that one.
    """
    with np.errstate(divide="ignore"):
        logs = np.minimum(np.log(np.abs(values)), 0.0)
    angles = np.angle(values)
    # x·e^{-x} < 1, so what a logarithm of size x loses in rounding is no more than a unit or two
    error = (counts * (errors + 8 * UNIT * np.abs(angles)) + 8 * UNIT).sum(axis=-1)
    return np.exp((counts * logs).sum(axis=-1) + 1j * (counts * angles).sum(axis=-1)), np.asarray(error)
