# SPDX-License-Identifier: Apache-2.0
"""Which keys may be named when the keys themselves are private, and how many have them.

    StabilityHistogram(epsilon=1, delta=1e-6)({"flu": 812, "plague": 1}).value       # {"flu": 811}, say
    PartitionSelection(epsilon=1, delta=1e-6, at_most=3)(pairs).value                # ["flu", "gout"]

The data are either a mapping from each key to the number of users who have it, where **each user counts at most once
for a key and in at most `at_most` keys**; or (user, key) pairs, of which each user keeps at most `at_most` keys, chosen
afresh at random by no other rule.

**Guarantee.** (ε, δ)-differential privacy for one user more or less, with the keys that are named, their number, their
order and their counts all taken into account. A key that only one user has is named with probability δ₁ at most,
where 1 - (1 - δ₁)^at_most <= δ; the tail of the whole-number noise is computed exactly and rounded up.

Why it holds: partition.proof.md. What would break it: counts of rows instead of users, a key that was put in with no
user (it is never named), or a second, fresh count of the keys that were named.

Keys and users are taken for their canonical forms (canonical.py), and keys are shown in that form: 1, 1.0 and True are one
key, shown as 1; one instant in two time zones is one key, shown in UTC. So a key never shows how one of its users
spelt it. What has no canonical form (NaN, an object of another type) is no key and no user, None is no user, and a row
that is no pair is left out, all without a word: an error would tell that there is such a row. In a mapping a number of users
is rounded down, what is no number counts as 0, and keys of one form count as the one with more users. Neither the
suppressed keys nor their number are released.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from typing import Any, cast

import numpy as np

from discreet import check, noise, privacy
from discreet.errors import BadParameter, UnsupportedGuarantee
from discreet.exact import bisect_whole, exactly, float_above
from discreet.mechanisms.callbacks import call_quietly, callback_guard
from discreet.mechanisms.canonical import NOTHING, canonical_each, exact_ratio, public_order
from discreet.mechanisms.distributions import GaussianDistribution, LaplaceDistribution
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism
from discreet.mechanisms.truncated import TruncatedLaplace
from discreet.noise.enclosure import exp_minus
from discreet.noise.scales import LARGEST, Scales
from discreet.privacy.calibrate import calibrate
from discreet.privacy.guarantee import Guarantee

__all__ = ["PartitionSelection", "StabilityHistogram"]

_DOWN = 1 - 1e-12  # far more than the rounding of expm1 and log1p
_NOISES = ("truncated", "laplace", "gaussian")
_LONGEST = 10**5  # entries of a table of chances
_MOST_USERS = 10**18  # what a larger number counts as
_MOST_CASES = 200  # ways in which a user's keys can be nobody else's, each of which is looked at


class _Keys(Mechanism):
    """What both have in common: who may be counted, and in which order keys leave."""

    def __init__(self, delta: Any, at_most: Any, relation: str) -> None:
        self.delta = check.inner_probability(delta=delta)
        self.at_most = check.whole(at_most=at_most)
        if relation == "replace":
            raise UnsupportedGuarantee(
                "DP203",
                "keys are named under add-remove only.",
                why="a user who is replaced leaves some keys and enters others, which this proof does not cover.",
                fix="leave out relation=, at epsilon / 2 and delta / (1 + exp(epsilon / 2)): who is replaced is one less and one more",
            )

    @abstractmethod
    def chance(self, users: int) -> float:
        """The probability that a key of so many users is named."""

    @abstractmethod
    def _select_keys(self, counts: dict[Any, int]) -> dict[Any, Any]:
        """The keys that are named, with their noisy counts if they have any."""

    def draw(self, data: object) -> dict[Any, Any] | list[Any]:
        counts = _count_users(data) if isinstance(data, Mapping) else _bound_contributions(data, self.at_most)
        shown = self._select_keys(counts)
        return {key: shown[key] for key in sorted(shown, key=public_order)}

    def users_needed(self, confidence: float = 0.5) -> int:
        """How many users a key needs to be named with this confidence.

        >>> StabilityHistogram(epsilon=1, delta=1e-5).users_needed(), PartitionSelection(epsilon=1, delta=1e-5).users_needed()
        (12, 12)
        """
        check.inner_probability(confidence=confidence)
        few, enough = 0, 1
        while self.chance(enough) < confidence:
            few, enough = enough, 2 * enough
        return bisect_whole(lambda users: self.chance(users) >= confidence, yes=enough, no=few)


class StabilityHistogram(_Keys):
    """Noisy counts of the keys whose noisy count reaches a threshold; the others are not mentioned.

    **Guarantee.** (ε, δ)-differential privacy with `epsilon`, δ-approximate ρ-concentrated privacy with `rho`. The noise is
    "truncated" Laplace noise, which names a key as often as any (ε, δ)-private rule does at its δ; "laplace"; or
    "gaussian", which is the best where `at_most` is large, and the one for `rho`.

    Why it holds: Korolova, Kenthapadi, Mishra, Ntoulas 2009; Desfontaines, Voss, Gipson 2022; partition.proof.md.

    >>> visits = StabilityHistogram(epsilon=1, delta=1e-6)
    >>> visits.threshold
    15
    >>> list(visits({"flu": 900, "gout": 700, "plague": 1}).value)[:2]
    ['flu', 'gout']
    """

    def __init__(
        self,
        *,
        delta: float,
        epsilon: float | None = None,
        rho: float | None = None,
        at_most: int = 1,
        noise: str | None = None,
        relation: str = "add-remove",
        unit: str = "user",
    ) -> None:
        super().__init__(delta, at_most, relation)
        self.noise = _noise_of(epsilon, rho, noise)
        self.distribution: TruncatedLaplace | LaplaceDistribution | GaussianDistribution
        if rho is not None:
            rho, leak = check.moderate(rho=rho), self.delta
            self.distribution = GaussianDistribution(_deviation_for(rho, self.at_most))
            self._guarantee = privacy.approximate_concentrated(leak, rho, relation=relation, unit=unit)
        else:
            epsilon = check.moderate(epsilon=epsilon)
            self.distribution, leak = self._noise_for(epsilon)
            self._guarantee = privacy.approximate(epsilon, self.delta, relation=relation, unit=unit)
        Scales(
            exactly(self.distribution.scale)
        )  # refuses, now and not while drawing, what cannot be drawn exactly
        self.threshold = self.distribution.tail_bound(2 * _for_one_key(leak, self.at_most)) + 2
        if isinstance(self.distribution, TruncatedLaplace):
            self.threshold = self.distribution.limit + 1

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def chance(self, users: int) -> float:
        missing = self.threshold - check.whole(users=users)
        return (
            self.distribution.tail(missing) / 2
            if missing > 0
            else 1 - self.distribution.tail(1 - missing) / 2
        )

    def error(self, confidence: float = CONFIDENCE) -> float:
        """How far a count is off, at most: for each key, the chance that it is named and further off is the rest."""
        return float(self.distribution.tail_bound(1 - check.inner_probability(confidence=confidence)))

    def interval(
        self, value: object, confidence: float = CONFIDENCE
    ) -> tuple[dict[Any, int], dict[Any, int]]:
        """Between which whole numbers the users of each key that is named lie, each with this confidence."""
        off, counts = int(self.error(confidence)), cast(Mapping[Any, int], value)
        low = {key: max(1, count - off) for key, count in counts.items()}
        return low, {key: max(1, count + off) for key, count in counts.items()}

    def _select_keys(self, counts: dict[Any, int]) -> dict[Any, int]:
        noises = self.distribution.draw(len(counts)).tolist()
        noisy = {key: count + extra for (key, count), extra in zip(counts.items(), noises, strict=True)}
        return {key: count for key, count in noisy.items() if count >= self.threshold}

    def _noise_for(
        self, epsilon: float
    ) -> tuple[TruncatedLaplace | LaplaceDistribution | GaussianDistribution, float]:
        """The noise, and how much of δ is left for keys that only one user has."""
        if self.noise == "gaussian":
            return _gaussian(epsilon, self.delta, self.at_most)
        laplace = LaplaceDistribution(float_above(self.at_most / exactly(epsilon)))
        if self.noise == "laplace":
            return laplace, self.delta
        return TruncatedLaplace.for_leak(laplace.scale, _for_one_key(self.delta, self.at_most)), self.delta


class PartitionSelection(_Keys):
    """The keys that enough users have, without counts, named with the greatest probability that (ε, δ) allows.

    **Guarantee.** (ε, δ)-differential privacy; for at_most=1 no (ε, δ)-private rule that treats keys alike names a key of
    any number of users with a greater probability, but for rounding downwards in the 100th bit.

    Why it holds: Desfontaines, Voss, Gipson 2022: π(n) = min(e^ε π(n-1) + δ, 1 - e^{-ε}(1 - π(n-1) - δ), 1);
    partition.proof.md. For several keys per user each takes its share of ε and δ.

    >>> keys = PartitionSelection(epsilon=1, delta=1e-5)
    >>> round(keys.chance(10), 6), keys({"flu": 900, "gout": 700}).value
    (0.128183, ['flu', 'gout'])
    """

    error_unit = "users"

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        at_most: int = 1,
        relation: str = "add-remove",
        unit: str = "user",
    ) -> None:
        super().__init__(delta, at_most, relation)
        self.epsilon = check.moderate(epsilon=epsilon)
        self._guarantee = privacy.approximate(self.epsilon, self.delta, relation=relation, unit=unit)
        share = exactly(self.epsilon) / self.at_most
        self._chances, self._one = _best_chances(share, _for_one_key(self.delta, self.at_most))

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def chance(self, users: int) -> float:
        return float(self._chance(check.whole(users=users)))

    def error(self, confidence: float = CONFIDENCE) -> float:
        """The most users that a suppressed key can have; a key with one more is shown with this confidence."""
        return float(self.users_needed(confidence) - 1)

    def draw(self, data: object) -> list[Any]:
        return list(super().draw(data))

    def _chance(self, users: int) -> Fraction:
        return Fraction(self._chances[users], self._one) if users < len(self._chances) else Fraction(1)

    def _select_keys(self, counts: dict[Any, int]) -> dict[Any, Any]:
        alike = defaultdict(list)
        for key, count in counts.items():
            alike[min(count, len(self._chances))].append(key)
        return {
            key: None
            for count, keys in alike.items()
            for key, head in zip(keys, noise.bernoulli(self._chance(count), len(keys)), strict=True)
            if head
        }


def _for_one_key(delta: float, at_most: int) -> float:
    """The δ₁ of one key with 1 - (1 - δ₁)^at_most <= δ, rounded down."""
    return -math.expm1(math.log1p(-delta) / at_most) * _DOWN


def _deviation_for(rho: float, at_most: int) -> float:
    """The least σ with at_most / 2σ² <= ρ: so many counts move by one each."""
    sigma = math.sqrt(at_most / (2 * rho))
    while Fraction(at_most) > 2 * exactly(rho) * exactly(sigma) ** 2:
        sigma = math.nextafter(sigma, math.inf)
    return sigma


def _gaussian(epsilon: float, delta: float, at_most: int) -> tuple[GaussianDistribution, float]:
    """Noise for all of δ where the cases are proved to share it, one by one; else for half of it."""
    distribution = GaussianDistribution(_gaussian_scale(epsilon, delta, at_most))
    if at_most <= _MOST_CASES and _worst_case(distribution, epsilon, delta, at_most) <= delta:
        return distribution, delta
    return GaussianDistribution(_gaussian_scale(epsilon, delta / 2, at_most)), delta / 2


def _worst_case(distribution: GaussianDistribution, epsilon: float, leak: float, at_most: int) -> float:
    """The greatest δ at ε if some of the user's keys are nobody else's and the rest are shared: see the proof, §3."""
    one = _for_one_key(leak, at_most)
    lone = [-math.expm1(count * math.log1p(-one)) for count in range(1, at_most)]
    shared = [_delta_of(distribution, epsilon, at_most - count) for count in range(1, at_most)]
    return max((d + (1 - d) * rest for d, rest in zip(lone, shared, strict=True)), default=0.0) / _DOWN


def _delta_of(distribution: GaussianDistribution, epsilon: float, moved: int) -> float:
    """The δ at ε if so many counts move by one each."""
    return distribution.guarantee_for(math.sqrt(moved) * (1 + 1e-15), moved, "add-remove", "user").delta(
        epsilon
    )


def _gaussian_scale(epsilon: float, delta: float, at_most: int) -> float:
    """A deviation at which `at_most` counts that move by one each are (ε, δ)-private together."""
    target = privacy.approximate(epsilon, delta)
    sigma = calibrate(privacy.gaussian, to=target, tolerance=1e-9) * math.sqrt(at_most)
    while _delta_of(GaussianDistribution(sigma), epsilon, at_most) > delta:
        sigma *= 1 + 1e-12
    return sigma


def _best_chances(epsilon: Fraction, delta: float) -> tuple[list[int], int]:
    """The chances of keys with 0, 1, 2, … users while they are below one, as multiples of 1/one, rounded down."""
    bits = 128 - math.frexp(delta)[1]
    one = 1 << bits
    shrink = min(exp_minus(epsilon, bits)[1], one)  # e^{-ε}, rounded up
    grow = (one << bits) // shrink  # e^ε, rounded down
    extra = math.floor(Fraction(delta) * one)
    chances = [0]
    while chances[-1] < one:
        if len(chances) > _LONGEST:
            raise _too_long_error()
        last = chances[-1]
        upper = one - -(-shrink * max(0, one - last - extra) >> bits)
        chances.append(min((grow * last >> bits) + extra, upper, one))
    return chances[:-1], one


def _noise_of(epsilon: Any, rho: Any, noise: Any) -> str:
    if (epsilon is None) == (rho is None) or (rho is not None and noise not in {None, "gaussian"}):
        raise BadParameter(
            "DP107",
            "the amount of noise must be stated in one way: epsilon, or rho with Gaussian noise.",
            why="two statements could contradict each other, and Laplace noise is not measured in rho.",
            fix="StabilityHistogram(epsilon=1.0, delta=1e-6)",
        )
    if rho is not None:
        return "gaussian"
    return "truncated" if noise is None else check.choice(_NOISES, noise=noise)


def _count_users(data: Mapping[Any, Any]) -> dict[Any, int]:
    """The keys that somebody has. Of keys with one form the greater number counts: a user moves that by one at most."""
    counts: dict[Any, int] = {}
    forms = canonical_each(data)
    for form, users in zip(forms, map(_users, data.values()), strict=True):
        if form is not NOTHING and users >= 1:
            counts[form] = max(users, counts.get(form, 0))
    return counts


def _users(value: Any) -> int:
    """The number of users as a whole number: rounded down, which no user moves by more than one."""
    number = exact_ratio(value)
    if number is None:
        return 0
    return math.floor(min(max(number, 0), _MOST_USERS))


def _bound_contributions(data: Any, at_most: int) -> dict[Any, int]:
    """How many users have each key, where no user has more than `at_most`: a choice of each user's own."""
    listed = _pairs(data)
    users, keys = canonical_each(user for user, _ in listed), canonical_each(key for _, key in listed)
    held = {
        (user, key): None
        for user, key in zip(users, keys, strict=True)
        if user is not None and user is not NOTHING and key is not NOTHING
    }
    kept: Counter[Any] = Counter()
    counts: Counter[Any] = Counter()
    # a random order of all pairs is a random order of each user's own, independent of the others
    for user, key in _shuffle(held):
        if kept[user] < at_most:
            kept[user] += 1
            counts[key] += 1
    return dict(counts)


def _pairs(data: Any) -> list[Any]:
    """The rows that are pairs; a row that is none names nobody."""
    if isinstance(data, str | bytes) or not isinstance(data, Collection | zip | np.ndarray):
        raise BadParameter(
            "DP104",
            "the data must map keys to numbers of users, or be a list of (user, key) pairs.",
            why="without knowing who has which key nobody's share can be bounded.",
            fix="[('ann', 'flu'), ('ben', 'gout')]",
        )
    with callback_guard():
        found = [call_quietly(_pair, row) for row in data]
    return [pair for pair in found if pair is not None]


def _pair(row: Any) -> tuple[Any, Any] | None:
    user, key = row
    return (user, key) if isinstance(row, tuple | list | np.ndarray) else None


def _shuffle(keys: Iterable[Any]) -> list[Any]:
    """All orders are equally likely: lots are drawn until no two are alike."""
    listed = list(keys)
    lots = noise.uniform(LARGEST, len(listed))
    while np.unique(lots).size < len(listed):
        lots = noise.uniform(LARGEST, len(listed))
    return [listed[place] for place in np.argsort(lots).tolist()]


def _too_long_error() -> BadParameter:
    return BadParameter(
        "DP102",
        "epsilon is too small, for this delta and at_most, to list the chances of all numbers of users.",
        why="each number of users has a chance of its own, and there would be more than a hundred thousand.",
        fix="StabilityHistogram(epsilon=…, delta=…), which needs no list",
    )
