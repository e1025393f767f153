# SPDX-License-Identifier: Apache-2.0
"""The distribution of a sum of losses under an exponential tilt, on one period of a lattice, with
its error bounds.

**Guarantee.** `log_delta` of a distribution with `upper` set is never below the truth, otherwise
never above it.

The FFT computes the distribution modulo its period D. With window [a, a+D) and w(x) = e^{-λx}(1 -
e^{-x})₊ ≤ c(λ):

- wrapping only adds mass, so the upper value misses at most the mass above a+D, whose weight is at
  most e^{-λ(a+D-ε)};
- the lower value must not count what was wrapped in: mass above ε+D (what lies between a+D and ε+D
  lands below ε, where w is zero), mass below ε + 20/λ - D, each with weight c(λ) at most, and
  e^{-20} for the rest. Without a tilt (λ = 0, c = 1) the window holds all but a negligible mass,
  and all of what is outside is counted.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from discreet.privacy.logarithms import Array
from discreet.privacy.moments import UNIT, log_add, log_peak
from discreet.privacy.pairs import dot

#: Weight, as a power of e, below which wrapped mass is not looked at more closely.
FAR = 20.0

#: Length of the short tables of exponentials.
_TABLE = 512

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TiltedDistribution:
    """See the module docstring. `missed`, `wrapped` bound tilted mass; `error` bounds all
    round-off.
    """

    tilt: float
    log_moment: float
    first: float
    step: float
    masses: Array
    error: float
    missed: float
    wrapped: float
    latest: float
    infinite: float
    drift: float
    upper: bool

    @property
    def last(self) -> float:
        """The end of the window."""
        return self.first + self.step * self.masses.size

    def plain(self) -> tuple[Array, Array, float]:
        """Losses, masses and infinite mass of an untilted distribution; errors count as infinite."""
        losses = self.first + self.drift + self.step * np.arange(self.masses.size)
        noise = self.masses <= max(self.error, UNIT) / self.masses.size
        lost = self.error + self.missed + float(self.masses[noise].sum())
        masses = np.where(noise, 0.0, self.masses) * math.exp(min(self.log_moment, 0.0))
        return losses[~noise], masses[~noise], min(1.0, self.infinite + lost)

    def log_delta(self, epsilon: float) -> float:
        """log δ(ε), on the safe side."""
        return self._log_delta_and_slope(epsilon)[0]

    def epsilon(self, log_delta: float, start: float) -> float:
        """An ε on the safe side at which log δ is (just) reached: Newton's steps, then small steps
        outward.
        """
        if not self.upper and self.error + self.wrapped > 0.01:
            return 0.0
        at = self._newton(log_delta, start, stride=16, tolerance=1e-6)
        at = self._newton(log_delta, at, stride=1, tolerance=1e-9)
        return self._step_outward(at, log_delta)

    def _newton(self, log_delta: float, start: float, stride: int, tolerance: float) -> float:
        """A root by Newton's steps inside a bracket; with a stride it is only a good start."""
        low, high, at = self.first, self.last, start
        for _ in range(40):
            value, slope = self._log_delta_and_slope(at, stride)
            low, high = (at, high) if value > log_delta else (low, at)
            guess = at + (value - log_delta) / slope
            guess = guess if low < guess < high else (low + high) / 2
            change, at = abs(guess - at), guess
            if change <= tolerance * (1 + abs(at)):
                break
        return at

    def _step_outward(self, at: float, log_delta: float) -> float:
        """The first ε on the safe side of `at` where the bound provably holds."""
        for nudge in (1e-11 * 16.0**power for power in range(8)):
            tried = max(0.0, at + (nudge if self.upper else -nudge) * (1 + abs(at)))
            value = self.log_delta(tried)
            if value <= log_delta if self.upper else value >= log_delta:
                return tried
        return math.inf if self.upper else 0.0

    def _log_delta_and_slope(self, epsilon: float, stride: int = 1) -> tuple[float, float]:
        at = epsilon - self.drift if self.upper else epsilon + self.drift
        over, under = self._weigh(at, stride)
        if self.upper:
            over += (self.error + (at < self.first)) * peak(self.tilt)
            over += self.missed * math.exp(-self.tilt * max(0.0, self.last - at))
        elif self.first <= at <= self.latest:
            over -= (self.error + self.wrapped) * peak(self.tilt) + (math.exp(-FAR) if self.tilt else 0.0)
        else:
            over = 0.0
        log_finite = self.log_moment - self.tilt * at + math.log(over) if over > 0 else -math.inf
        slope = under / over if over > 0 and under > 0 else self.tilt + 1.0
        return min(0.0, log_add(log_finite, self.infinite, upper=self.upper)), slope

    def _weigh(self, at: float, stride: int) -> tuple[float, float]:
        """E w(L - at) over the window, and the same with 1 - e^{-x} replaced by e^{-x}.

        With a stride, roughly: every stride-th point counts for its neighbours too.
        """
        start = max(0, math.floor((at - self.first) / self.step) + 1)
        stop = self.masses.size
        if start >= stop:
            return 0.0, 0.0
        stop = min(stop, start + 1 + int(min(40.0 / (max(self.tilt, 1e-12) * self.step), 1e12)))
        count = -(-(stop - start) // stride)
        nearest = self.first - at + self.step * start
        here = self.masses[start:stop:stride] * _powers(self.tilt * self.step * stride, count)
        here *= stride * math.exp(-self.tilt * nearest)
        decay = _powers(self.step * stride, count) * math.exp(-nearest)
        cut = float(self.masses[stop:].sum()) * math.exp(-40.0) if self.upper else 0.0
        return (dot(here, 1.0 - decay)) + cut, (dot(here, decay))


def _powers(rate: float, count: int) -> Array:
    """e^{-rate·j} for j = 0, …, count - 1, as products of two short tables: exponentials are dear."""
    coarse = np.exp(-rate * _TABLE * np.arange(-(-count // _TABLE)))
    return np.asarray(np.multiply.outer(coarse, np.exp(-rate * np.arange(_TABLE))).ravel()[:count])


def convolve(tilted: list[Array], indices: list[Index], counts: list[int], size: int) -> tuple[Array, float]:
    """The distribution of the sum of `counts` copies of each index, modulo `size`, and a bound on
    its total error.

    Round-off: an FFT is off by at most `relative` times the norm (Higham 2002, Theorem 24.2; the
    constant here is about ten times the proved one), a power multiplies that by the count, and |·|₁
    ≤ √size·|·|₂.
    """
    singles, repeated = _dense(tilted, indices, counts, size)
    merged, merge_error = _merge_short(singles, size)
    relative = 32 * UNIT * math.log2(size)
    spectrum, work = np.ones(size // 2 + 1, complex), 0.0
    for start, weights, count in merged + repeated:
        folded = np.bincount(np.mod(start + np.arange(weights.size), size), weights, size).astype(float)
        spectrum *= _whole_power(scipy.fft.rfft(folded), count)
        work += count * (relative * _norm(folded) + 8 * UNIT)
    distribution = scipy.fft.irfft(spectrum, size)
    error = math.sqrt(size) * (work + relative) * max(_norm(distribution), 1 / math.sqrt(size))
    return np.maximum(distribution, 0.0), error + merge_error


def _norm(x: Array) -> float:
    return math.sqrt(dot(x, x))


Piece = tuple[int, Array, int]


def _dense(
    tilted: list[Array], indices: list[Index], counts: list[int], size: int
) -> tuple[list[Piece], list[Piece]]:
    """Each distribution as an array over consecutive indices; those to be used once apart from the
    repeated ones.
    """
    singles: list[Piece] = []
    repeated: list[Piece] = []
    for weights, index, count in zip(tilted, indices, counts, strict=True):
        first, length = int(index[0]), int(index[-1] - index[0]) + 1
        if length > size:
            piece = (0, np.bincount(np.mod(index, size), weights, size).astype(float), count)
        else:
            piece = (first, np.bincount(index - first, weights, length).astype(float), count)
        (singles if count == 1 else repeated).append(piece)
    return singles, repeated


def _merge_short(pieces: list[Piece], size: int) -> tuple[list[Piece], float]:
    """Convolve short distributions pairwise, shortest first, so that the long FFT is done for few
    of them.
    """
    heap = [(weights.size, number, start, weights) for number, (start, weights, _) in enumerate(pieces)]
    heapq.heapify(heap)
    error, number = 0.0, len(heap)
    while len(heap) > 1 and heap[0][0] + heap[1][0] <= size // 4:
        first, second = heapq.heappop(heap), heapq.heappop(heap)
        length = first[0] + second[0] - 1
        padded = scipy.fft.next_fast_len(length, real=True)
        product = scipy.fft.rfft(first[3], padded) * scipy.fft.rfft(second[3], padded)
        merged = np.maximum(scipy.fft.irfft(product, padded)[:length], 0.0)
        error += math.sqrt(padded) * 128 * UNIT * math.log2(padded + 2)
        heapq.heappush(heap, (length, number, first[2] + second[2], merged))
        number += 1
    return [(start, weights, 1) for _, _, start, weights in heap], error


def _whole_power(spectrum: NDArray[np.complex128], count: int) -> NDArray[np.complex128]:
    """spectrum**count, computed only where it is not negligible (below e^-100)."""
    if count == 1:
        return spectrum
    with np.errstate(divide="ignore"):
        log_size = count * np.log(np.abs(spectrum))
    out = np.zeros_like(spectrum)
    keep = log_size > -100.0
    out[keep] = np.exp(log_size[keep] + 1j * (count * np.angle(spectrum[keep])))
    return out


def peak(lam: float) -> float:
    """c(λ); 1 for λ = 0."""
    return math.exp(float(log_peak(np.array([lam]))[0])) if lam > 0 else 1.0
