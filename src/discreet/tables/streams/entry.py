# SPDX-License-Identifier: Apache-2.0
"""Private keys of a stream: a key appears in the first period in which its noisy count of rows
reaches a threshold.

**Guarantee.** Of the keys that one unit alone has rows for, in a period, none appears, except with
probability δ. Apart from that, the keys reveal as much as noisy counts of the kept rows of all
periods and keys.

Why it holds: participation.proof.md, § 5. What would break it: a test of a key in a period without
rows for it; a count that the published rows share.
"""

from __future__ import annotations

from dataclasses import dataclass

from discreet.exact import bisect_whole
from discreet.mechanisms.distributions import (
    GaussianDistribution,
    LaplaceDistribution,
    NoiseDistribution,
    upper_tail,
)

__all__ = ["KeyEntry", "entry_threshold"]

#: Up to here each number of rows is looked at by itself; beyond, ranges that double.
_EACH = 256
#: Rounds down by more than the rounding errors of the tails.
_DOWN = 1 - 1e-9


@dataclass(frozen=True)
class KeyEntry:
    """The test that a key has to pass: a threshold for its noisy count of rows in one period."""

    distribution: NoiseDistribution
    threshold: int

    def passing(self, counts: list[int]) -> list[bool]:
        """Which of these counts, all above 0, reach the threshold with their noise."""
        noise = self.distribution.draw(len(counts)).tolist() if counts else []
        return [count + extra >= self.threshold for count, extra in zip(counts, noise, strict=True)]

    def to_dict(self) -> dict[str, object]:
        """As plain JSON types."""
        kind = "gaussian" if isinstance(self.distribution, GaussianDistribution) else "laplace"
        return {"noise": kind, "scale": self.distribution.scale, "threshold": self.threshold}

    @classmethod
    def from_dict(cls, stored: dict[str, object]) -> KeyEntry:
        """What `to_dict` wrote."""
        kind = GaussianDistribution if stored["noise"] == "gaussian" else LaplaceDistribution
        return cls(kind(float(str(stored["scale"]))), int(str(stored["threshold"])))


def entry_threshold(distribution: NoiseDistribution, rows: int, delta: float) -> int:
    """A θ, about the least, with rows · max_{1≤c≤rows} P(noise >= θ - c)/c <= δ."""

    def leak(threshold: int) -> float:
        chances = (upper_tail(distribution, threshold - many) / few for few, many in _ranges(rows))
        return rows * max(chances)

    low = high = rows + 1
    while leak(high) > delta * _DOWN:
        low, high = high, 2 * high
    if low == high:
        return high
    return bisect_whole(lambda threshold: leak(threshold) <= delta * _DOWN, yes=high, no=low)


def _ranges(most: int) -> list[tuple[int, int]]:
    """Ranges that cover 1 to `most`: single numbers first, then ranges that double."""
    ranges, few = [], 1
    while few <= most:
        many = few if few <= _EACH else min(most, 2 * few)
        ranges.append((few, many))
        few = many + 1
    return ranges
