# SPDX-License-Identifier: Apache-2.0
"""Gaussian noise on an answer that a record moves by an amount of chance.

    gaussian_mixture(noise=1.0, moves={0: 0.2, 1: 0.6, 2: 0.2})
    truncated_batches(noise=1.0, rate=0.01, batch=200, records=10_000)

**Guarantee.** `gaussian_mixture`: with the record the answer is moved by `move` sensitivities with
the stated probability, in a direction and by an event of which nothing else is told; without it it
stays. `truncated_batches`: one noisy sum over a Poisson sample of which, if it has more than
`batch` records, a uniformly random `batch` are kept.

Why it holds. A mixture of moves in one direction dominates those in several (`comonotone`).
Truncation: let K ~ Bin(n - 1, q) others be sampled. If K < B nothing is cut with or without the
record, and this is Poisson sampling. If K ≥ B, a uniform batch T of B others is seen without the
record. With it, the batch is the same T with probability 1 - π, and else T with one uniform member
replaced by the record, which moves the sum by two norms at most; π = q·E[B / (K + 1) | K ≥ B] =
P(Bin(n, q) > B)·B / (n·P(K ≥ B)). T does not depend on K, by symmetry, so H is jointly convex over
the event, T and the member: the pair is that of Poisson sampling with probability P(K < B), and
((1 - π)·N(0, σ²) + π·N(2, σ²), N(0, σ²)) with probability P(K ≥ B). Where a record is replaced,
both worlds have this T, and their own record, which is within two norms of the member.

What would break it: another n than the stated one (which is why it is in `assumes`); showing the
batch; keeping the first `batch` records of the sample and not random ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtrc

from discreet import check
from discreet.errors import BadParameter, UnsupportedGuarantee
from discreet.privacy import comonotone, divergences, families
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.pairs import Pair, dilute, dilute_other, either
from discreet.privacy.primitives import Primitive
from discreet.privacy.unit import RELATIONS, Unit, unit_of

#: Relative error of a binomial tail.
_CLOSE = 1e-10
_MOST_RECORDS = 1_000_000_000


@dataclass(frozen=True, repr=False)
class GaussianMixtureGuarantee(Primitive):
    """N(move, noise²) with a probability for each move, against N(0, noise²)."""

    noise: float
    moves: tuple[tuple[float, float], ...]

    tight = True

    def divergence(self, order: float) -> float:
        """The mean over the moves of a quasi-convex bound, or that of the greatest move."""
        return order * self.concentration()[1]

    def concentration(self) -> tuple[float, float]:
        """That of the greatest move, because divergences are quasi-convex."""
        greatest = max(move for move, _ in self.moves)
        return 0.0, (greatest / self.noise) ** 2 / 2 * (1 + 1e-15)

    def dominating(self) -> tuple[Pair, ...]:
        return comonotone.gaussian_mixture(1 / self.noise, self.moves)

    def parameters(self) -> dict[str, object]:
        return {"noise": self.noise, "moves": dict(self.moves)}


@dataclass(frozen=True, repr=False)
class TruncatedBatchesGuarantee(Primitive):
    """One noisy sum over a Poisson sample that is cut to a greatest size."""

    noise: float
    rate: float
    batch: int
    records: int

    @property
    def assumes(self) -> frozenset[str]:
        if self.unit.relation == "replace":
            return frozenset({f"there are {self.records:,} {self.unit.protects}s"})
        return frozenset({f"there are {self.records:,} {self.unit.protects}s before one is removed"})

    @property
    def overflow(self) -> tuple[float, float]:
        """P(K ≥ B), and π, which is rounded up."""
        full = float(bdtrc(self.batch - 1, self.records - 1, self.rate)) if self.batch < self.records else 0.0
        if full == 0:
            return 0.0, 0.0
        over = float(bdtrc(self.batch, self.records, self.rate)) * self.batch / self.records
        return min(1.0, full), min(self.rate, over / full * (1 + 4 * _CLOSE))

    def divergence(self, order: float) -> float:
        """Of Poisson sampling and of the full batch, mixed as the event that the batch is full is."""
        bound = order * self.concentration()[1]
        if self.unit.relation == "replace":
            return bound
        (chance, share), mu = self.overflow, 1 / self.noise
        bounds = []
        for removes in (True, False):
            parts = [
                divergences.of_diluted_gaussian(move * mu, rate, order, removes=removes) if rate > 0 else 0.0
                for move, rate in ((1, self.rate), (2, share))
            ]
            top = max(parts)
            mean = (1 - chance) * math.exp((order - 1) * (parts[0] - top)) + chance * math.exp(
                (order - 1) * (parts[1] - top)
            )
            bounds.append(top + math.log(mean * (1 + 2 * _CLOSE)) / (order - 1))
        return min(bound, max(0.0, *bounds) * (1 + 1e-12))

    def concentration(self) -> tuple[float, float]:
        """That of the move of two norms, or of four where a record is replaced, without sampling."""
        move = 4 if self.unit.relation == "replace" else 2
        return 0.0, (move / self.noise) ** 2 / 2 * (1 + 1e-15)

    def dominating(self) -> tuple[Pair, ...]:
        (chance, share), mu = self.overflow, 1 / self.noise
        if self.unit.relation == "replace":
            usual = families.antipodal_gaussian(mu, self.rate)
            return (_either(usual, families.antipodal_gaussian(2 * mu, share), chance) if chance else usual,)
        base = families.gaussian(mu)
        usual_pairs = dilute(base, self.rate), dilute_other(base, self.rate)
        if not chance:
            return usual_pairs
        twice = families.gaussian(2 * mu)
        full_pairs = dilute(twice, share), dilute_other(twice, share)
        # Both chances are rounded up, which raises P and Q together.
        return tuple(
            _either(usual, full, chance) for usual, full in zip(usual_pairs, full_pairs, strict=True)
        )

    def witness(self) -> tuple[Pair, ...]:
        """All other vectors are nothing, so that the record is in the batch or not."""
        if self.unit.relation == "replace":
            return (Pair(losses=np.zeros(1), p=np.ones(1), q=np.ones(1), symmetric=True),)
        chance, share = self.overflow
        rate = ((1 - chance) * self.rate + chance * share) * (1 - 1e-9)
        base = families.gaussian(1 / self.noise)
        return dilute(base, rate), dilute_other(base, rate)


def _either(usual: Pair, full: Pair, chance: float) -> Pair:
    """Both weights are rounded up."""
    return either(usual, full, (1 - chance * (1 - _CLOSE), chance * (1 + _CLOSE)))


@check.arguments
def gaussian_mixture(
    noise: float,
    moves: Mapping[float, float],
    *,
    unit: str | Unit = "record",
    relation: str | None = None,
) -> Guarantee:
    """The guarantee of Gaussian noise on an answer that the record moves by an amount of chance.

    `noise` is the standard deviation, `moves` maps each amount, in the same unit, to its
    probability.

    **Guarantee.** The exact curve of (Σ pᵢ·N(mᵢ, noise²), N(0, noise²)), in both directions. It
    covers vectors that move by at most these lengths (Ganesh 2024). What would break it: an answer
    that tells which of the moves it was.

    >>> mixed = gaussian_mixture(noise=1.0, moves={0: 0.99, 1: 0.01})
    >>> round(mixed.epsilon(1e-6), 4)
    0.3639
    """
    noise = check.moderate(noise=noise)
    if not isinstance(moves, Mapping) or not moves:
        raise _moves_error()
    parts = sorted(
        (check.not_negative(move=move), check.probability(probability=chance))
        for move, chance in moves.items()
    )
    if abs(math.fsum(chance for _, chance in parts) - 1) > 1e-9 or not any(m > 0 and p > 0 for m, p in parts):
        raise _moves_error()
    return GaussianMixtureGuarantee(noise, tuple(parts), unit=unit_of(unit, relation))


def _moves_error() -> BadParameter:
    return BadParameter(
        "DP106",
        "moves must map amounts to probabilities that add up to 1, and some amount must be above 0.",
        why="they are the distribution of how far one record moves the answer.",
        fix="gaussian_mixture(noise=1.0, moves={0: 0.9, 1: 0.1})",
    )


@check.arguments
def truncated_batches(
    noise: float,
    rate: float,
    batch: int,
    records: int,
    *,
    unit: str | Unit = "record",
    relation: str | None = None,
) -> Guarantee:
    """The guarantee of one noisy sum over a Poisson sample that is cut to `batch` records.

    `noise` is the standard deviation in clipping norms, also where a record is replaced.

    **Guarantee.** Holds if records are sampled independently with probability `rate`, and a
    uniformly random `batch` of them is kept if there are more. `records` is the number of records,
    before one is removed. What would break it: another number of records, or keeping the first
    ones.

    >>> step = truncated_batches(noise=1.0, rate=0.01, batch=200, records=10_000)
    >>> round((1_000 * step).epsilon(1e-6), 3)
    2.125
    """
    noise, rate = check.moderate(noise=noise), check.rate(rate=rate)
    batch, records = check.whole(batch=batch), check.whole(records=records)
    if records > _MOST_RECORDS:
        raise BadParameter(
            "DP102",
            f"records must be at most {_MOST_RECORDS:,}.",
            why="tails of the number of sampled records are not certified beyond.",
            fix=f"records={_MOST_RECORDS}",
        )
    who = unit_of(unit, relation)
    if who.relation not in RELATIONS:
        raise UnsupportedGuarantee(
            "DP202",
            f"no theorem is known for truncated batches under {who.relation}.",
            why="a blank may take the place of another record in a full batch.",
            fix='relation="add-remove"  or  relation="replace"',
        )
    return TruncatedBatchesGuarantee(noise, rate, batch, records, unit=who)
