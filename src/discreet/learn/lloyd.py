# SPDX-License-Identifier: Apache-2.0
"""One noisy step of Lloyd's algorithm in whole numbers, and centres to begin with.

**Guarantee.** A step is one Gaussian mechanism with its noise multiplier, whatever the centres are, as long as
they follow from what was released before (joint.proof.md, 2).

Why it holds: a row of R cells at most adds α to the size of its cluster, in units of R, and itself to the
sum: together of norm R√(1 + α²). Two rows in one cluster differ by 2R at most, in different clusters by √2
R√(1 + α²). The nearest centre is found by comparing whole numbers below 2**53, so it does not depend on where
a row stands.

The constants were chosen among some forty variants on eight synthetic sets and on iris and wine, at ε = 0.1,
0.5, 1 and 4. Seeds spread over the box, without any release, did worse at every ε, and much worse where
clusters fill a small part of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import qmc

from discreet import noise as exact
from discreet.learn.ball import Centred
from discreet.learn.features import within
from discreet.mechanisms.distributions import exactly

__all__ = ["BITS", "Space", "lloyd_sensitivity", "lloyd_step", "seeds"]

Reals = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]

BITS = 18  # a row in steps of 2**-18 of the ball: single precision holds it
_REACH = 1.5  # rows further from the mean than so many standard deviations are moved to that distance
_SURE = 2.0  # spreads of the noise by which the variance is raised for that
_EDGE = 0.5  # of the largest eigenvalue of the noise is taken off the variances of the first centres
_INERTIA = 8.0  # spreads of the noise: a cluster of so many rows moves half of the way
_DIRECTIONS = 1_000  # in which the first centres differ, at most
_UP = 1 + 1e-12


@dataclass(frozen=True)
class Space:
    """A smaller ball inside a ball of 2**BITS cells: its middle and its radius, both in whole cells."""

    middle: Reals
    radius: int

    @classmethod
    def around(cls, found: Centred) -> Space:
        """The ball that holds most rows, by their released mean and covariance."""
        width = len(found.mean)
        slack = _SURE * found.spread * math.sqrt(width) / found.count
        reach = _REACH * math.sqrt(max(float(np.trace(found.covariance)), 0.0) + slack)
        middle = np.rint(found.mean * 2.0**BITS)
        return cls(middle, math.ceil(2**BITS * min(reach, 1 + float(np.linalg.norm(found.mean)))))

    def cells(self, rows: Reals) -> Floats:
        """Rows of whole numbers as seen from the middle, not longer than the radius."""
        seen = rows - self.middle
        lengths = np.sqrt(
            np.einsum("ij,ij->i", seen, seen)
        )  # of whole numbers, so it does not depend on the order
        seen *= (self.radius / np.maximum(lengths, self.radius))[:, None]
        return within(seen, float(self.radius) ** 2).astype(np.float32)

    def units(self, centres: Reals) -> Reals:
        """Centres in cells of this ball as parts of the greater one."""
        return (self.middle + centres) / 2.0**BITS


def lloyd_sensitivity(relation: str) -> tuple[float, float]:
    """How far a row of length 1 moves (α · size, sum), and α."""
    if relation == "add-remove":
        return math.sqrt(1.25) * _UP, 0.5
    return 2.0 * _UP, 1.0  # both pairs in one cluster and pairs in two reach 2: this α is free


def lloyd_step(rows: Sequence[Floats], centres: Reals, space: Space, *, noise: float, relation: str) -> Reals:
    """The next centres in cells of the ball, from noisy sizes and sums; a small cluster moves little."""
    centres = np.rint(_inside(centres, space.radius))
    sizes, sums = _sums(rows, centres)
    moved, weight = lloyd_sensitivity(relation)
    spread = noise * moved
    noisy = sizes + exact.rounded_gaussian(exactly(spread / weight * _UP), sizes.shape)
    total = sums + exact.rounded_gaussian(exactly(spread * space.radius), sums.shape)
    count = np.maximum(noisy, 0)[:, None]
    held = _INERTIA * spread
    return _inside((np.where(count > 0, total, 0) + held * centres) / (count + held), space.radius)


def _sums(rows: Sequence[Floats], centres: Reals) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The size and the sum of each cluster, exactly; of equally near centres the first counts."""
    sizes, sums = np.zeros(len(centres), np.int64), np.zeros(centres.shape, np.int64)
    half = (centres * centres).sum(axis=1)
    for block in rows:
        wide = block.astype(np.float64)
        nearest = (2 * (wide @ centres.T) - half).argmax(axis=1)
        inside = np.zeros((len(wide), len(centres)))
        inside[np.arange(len(wide)), nearest] = 1.0
        sizes += inside.sum(axis=0).astype(np.int64)
        sums += (inside.T @ wide).astype(np.int64)
    return sizes, sums


def _inside(centres: Reals, radius: float) -> Reals:
    lengths = np.linalg.norm(centres, axis=1)
    return np.asarray(centres * (radius / np.maximum(lengths, radius))[:, None])


def seeds(found: Centred, count: int) -> Reals:
    """First centres in cells, as seen from the mean: Sobol points under a normal law of that covariance."""
    values, vectors = np.linalg.eigh(found.covariance)
    edge = math.sqrt(2 * len(values)) * found.spread / found.count
    likely = np.maximum(values - _EDGE * edge, 0.0)[::-1][:_DIRECTIONS]
    points = (
        qmc.Sobol(len(likely), scramble=False).fast_forward(1).random(count)
    )  # the first point is a corner
    return np.asarray((ndtri(points) * np.sqrt(likely)) @ vectors[:, ::-1][:, : len(likely)].T * 2.0**BITS)
