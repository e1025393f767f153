# SPDX-License-Identifier: Apache-2.0
"""Private keys: which keys may be released, and how many users have each.

    StabilityHistogram(epsilon=1, delta=1e-6)({"flu": 812, "plague": 1}).value  # {"flu": 811}, say
    PartitionSelection(epsilon=1, delta=1e-6, at_most=3)(pairs).value           # ["flu", "gout"]

The data take one of two forms:

- A mapping from each key to its number of users. **Each user counts at most once for a key, and in
  at most `at_most` keys**; the caller sees to it.
- (user, key) pairs. Of each user at most `at_most` keys count, chosen at random for each release.

**Guarantee.** (ε, δ)-differential privacy for one user added or removed. It covers which keys are
released, their number, their order and their counts. A key of a single user is released with
probability at most δ₁, where 1 - (1 - δ₁)^at_most <= δ. The tail of the whole-number noise is
exact and rounded up.

Why it holds: partition.proof.md. What would break it: counts of rows instead of users; a fresh
count of the keys that were released. A key without users is never released.

Two values are the same key or user if their canonical forms are equal (canonical.py). Keys are
released in that form: 1, 1.0 and True are one key, released as 1. So a key never shows how one of
its users spelt it. No row raises an error, because an error would reveal the row:

- A value without a canonical form (NaN, an object of another type) is neither a key nor a user.
- None is not a user, and a row that is not a pair is ignored.
- In a mapping, a number of users is rounded down, and a value that is not a number counts as 0.
  Of keys with one form the greater number counts.

Neither the suppressed keys nor their number is released.
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
from discreet.mechanisms.amount import CONCENTRATED, PURE, one_amount
from discreet.mechanisms.callbacks import call_quietly, callback_guard
from discreet.mechanisms.canonical import NOTHING, canonical_each, exact_ratio, public_order
from discreet.mechanisms.distributions import (
    GaussianDistribution,
    LaplaceDistribution,
    TruncatedLaplace,
    upper_tail,
)
from discreet.mechanisms.mechanism import CONFIDENCE, REPLACE_AS_TWO_CHANGES, Mechanism
from discreet.noise.enclosure import exp_minus
from discreet.noise.scales import LARGEST, Scales
from discreet.privacy.calibrate import calibrate
from discreet.privacy.guarantee import Guarantee

__all__ = ["PartitionSelection", "StabilityHistogram"]

_DOWN = 1 - 1e-12  # far more than the rounding of expm1 and log1p
_NOISES = ("truncated", "laplace", "gaussian")
_MOST_CHANCES = 10**5  # entries of a table of chances
_MOST_USERS = 10**18  # larger numbers of users count as this one
_MOST_CASES = 200  # numbers of unique keys of one user that are examined one by one


class _KeySelection(Mechanism):
    """The contribution bound and the public order of the released keys."""

    def __init__(self, delta: float, at_most: int, relation: str) -> None:
        self.delta = check.inner_probability(delta=delta)
        self.at_most = check.whole(at_most=at_most)
        if relation == "replace":
            raise UnsupportedGuarantee(
                "DP203",
                "private keys are released under the relation 'add-remove' only.",
                why="replacing a user changes two sets of keys at once, and the proof covers one.",
                fix=REPLACE_AS_TWO_CHANGES,
            )

    @abstractmethod
    def chance(self, users: int) -> float:
        """The probability that a key with this number of users is released."""

    @abstractmethod
    def _select_keys(self, counts: dict[Any, int]) -> dict[Any, Any]:
        """The keys to release, with their noisy counts if there are any."""

    def draw(self, data: object) -> dict[Any, Any] | list[Any]:
        counts = _count_users(data) if isinstance(data, Mapping) else _bound_contributions(data, self.at_most)
        released = self._select_keys(counts)
        return {key: released[key] for key in sorted(released, key=public_order)}

    def users_needed(self, confidence: float = 0.5) -> int:
        """How many users a key needs to be released with this confidence.

        >>> StabilityHistogram(epsilon=1, delta=1e-5).users_needed()
        12
        >>> PartitionSelection(epsilon=1, delta=1e-5).users_needed()
        12
        """
        check.inner_probability(confidence=confidence)
        few, enough = 0, 1
        while self.chance(enough) < confidence:
            few, enough = enough, 2 * enough
        return bisect_whole(lambda users: self.chance(users) >= confidence, yes=enough, no=few)


class StabilityHistogram(_KeySelection):
    """The keys whose noisy count reaches a threshold, with that count; other keys are suppressed.

    Use it for keys with counts; `PartitionSelection` releases keys alone, and more of them.

    **Guarantee.** (ε, δ)-differential privacy with `epsilon`, δ-approximate ρ-concentrated privacy
    with `rho`. Three kinds of noise:

    - "truncated" Laplace noise, the default, releases a key as often as any (ε, δ)-private rule at
      the δ of one key.
    - "laplace" noise has no limit.
    - "gaussian" noise is the smallest where `at_most` is large, and the only one for `rho`.

    Why it holds: Korolova, Kenthapadi, Mishra, Ntoulas 2009; Desfontaines, Voss, Gipson 2022;
    partition.proof.md.

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
        self.noise = _noise_name(epsilon, rho, noise)
        self.distribution: TruncatedLaplace | LaplaceDistribution | GaussianDistribution
        if rho is not None:
            rho, delta_for_keys = check.moderate(rho=rho), self.delta
            self.distribution = GaussianDistribution(_deviation_for(rho, self.at_most))
            self._guarantee = privacy.approximate_concentrated(self.delta, rho, relation=relation, unit=unit)
        else:
            epsilon = check.moderate(epsilon=epsilon)
            self.distribution, delta_for_keys = self._noise_for(epsilon)
            self._guarantee = privacy.approximate(epsilon, self.delta, relation=relation, unit=unit)
        # A scale that cannot be drawn exactly is refused here, before any draw.
        Scales(exactly(self.distribution.scale))
        if isinstance(self.distribution, TruncatedLaplace):
            self.threshold = self.distribution.limit + 1
        else:
            delta_for_one_key = _delta_for_one_key(delta_for_keys, self.at_most)
            # P(1 + noise >= threshold) <= δ₁: noise is symmetric, so a tail bound at 2δ₁ is
            # one-sided at δ₁.
            self.threshold = self.distribution.tail_bound(2 * delta_for_one_key) + 2

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def chance(self, users: int) -> float:
        return upper_tail(self.distribution, self.threshold - check.whole(users=users))

    def error(self, confidence: float = CONFIDENCE) -> float:
        """The margin of error of each count: for each key, it is exceeded with probability 1 -
        confidence.
        """
        return float(self.distribution.tail_bound(1 - check.inner_probability(confidence=confidence)))

    def interval(
        self, value: object, confidence: float = CONFIDENCE
    ) -> tuple[dict[Any, int], dict[Any, int]]:
        """For each released key, the whole numbers between which its number of users lies."""
        error, counts = int(self.error(confidence)), cast(Mapping[Any, int], value)
        low = {key: max(1, count - error) for key, count in counts.items()}
        return low, {key: max(1, count + error) for key, count in counts.items()}

    def _select_keys(self, counts: dict[Any, int]) -> dict[Any, int]:
        noises = self.distribution.draw(len(counts)).tolist()
        noisy = {key: count + extra for (key, count), extra in zip(counts.items(), noises, strict=True)}
        return {key: count for key, count in noisy.items() if count >= self.threshold}

    def _noise_for(
        self, epsilon: float
    ) -> tuple[TruncatedLaplace | LaplaceDistribution | GaussianDistribution, float]:
        """The noise, and the part of δ that remains for keys of a single user."""
        if self.noise == "gaussian":
            return _gaussian_noise(epsilon, self.delta, self.at_most)
        laplace = LaplaceDistribution(float_above(self.at_most / exactly(epsilon)))
        if self.noise == "laplace":
            return laplace, self.delta
        return TruncatedLaplace.for_leak(
            laplace.scale, _delta_for_one_key(self.delta, self.at_most)
        ), self.delta


class PartitionSelection(_KeySelection):
    """Key selection without counts, with the greatest probability that (ε, δ) allows.

    Use it if the keys are all you need; `StabilityHistogram` also releases a count for each.

    **Guarantee.** (ε, δ)-differential privacy. For at_most=1 the selection is optimal: no (ε,
    δ)-private rule that treats keys alike releases a key with a greater probability, whatever its
    number of users. (Probabilities are rounded down in the 100th bit.)

    Why it holds: Desfontaines, Voss, Gipson 2022: π(n) = min(e^ε π(n-1) + δ, 1 - e^{-ε}(1 - π(n-1)
    - δ), 1); partition.proof.md. With several keys per user, each key gets an equal part of ε and
      δ.

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
        self._chances, self._denominator = _optimal_chances(
            exactly(self.epsilon) / self.at_most, _delta_for_one_key(self.delta, self.at_most)
        )

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def chance(self, users: int) -> float:
        return float(self._chance(check.whole(users=users)))

    def error(self, confidence: float = CONFIDENCE) -> float:
        """The most users a key can have without being released with at least this confidence."""
        return float(self.users_needed(confidence) - 1)

    def draw(self, data: object) -> list[Any]:
        return list(super().draw(data))

    def _chance(self, users: int) -> Fraction:
        if users >= len(self._chances):
            return Fraction(1)
        return Fraction(self._chances[users], self._denominator)

    def _select_keys(self, counts: dict[Any, int]) -> dict[Any, Any]:
        keys_by_users = defaultdict(list)
        for key, users in counts.items():
            keys_by_users[min(users, len(self._chances))].append(key)
        return {
            key: None
            for users, keys in keys_by_users.items()
            for key, is_released in zip(keys, noise.bernoulli(self._chance(users), len(keys)), strict=True)
            if is_released
        }


def _delta_for_one_key(delta: float, at_most: int) -> float:
    """The δ₁ of one key with 1 - (1 - δ₁)^at_most <= δ, rounded down."""
    return -math.expm1(math.log1p(-delta) / at_most) * _DOWN


def _deviation_for(rho: float, at_most: int) -> float:
    """The least σ with at_most / 2σ² <= ρ: `at_most` counts move by one each."""
    sigma = math.sqrt(at_most / (2 * rho))
    while Fraction(at_most) > 2 * exactly(rho) * exactly(sigma) ** 2:
        sigma = math.nextafter(sigma, math.inf)
    return sigma


def _gaussian_noise(epsilon: float, delta: float, at_most: int) -> tuple[GaussianDistribution, float]:
    """Noise for all of δ if each case is proved to fit into δ; else noise for one half of δ."""
    distribution = GaussianDistribution(_gaussian_scale(epsilon, delta, at_most))
    if at_most <= _MOST_CASES and _worst_case(distribution, epsilon, delta, at_most) <= delta:
        return distribution, delta
    return GaussianDistribution(_gaussian_scale(epsilon, delta / 2, at_most)), delta / 2


def _worst_case(distribution: GaussianDistribution, epsilon: float, delta: float, at_most: int) -> float:
    """The greatest δ at ε over the numbers of keys that only this user has: partition.proof.md, §3."""
    delta_for_one_key = _delta_for_one_key(delta, at_most)
    unique = [-math.expm1(count * math.log1p(-delta_for_one_key)) for count in range(1, at_most)]
    shared = [_delta_of_counts(distribution, epsilon, at_most - count) for count in range(1, at_most)]
    return max((u + (1 - u) * s for u, s in zip(unique, shared, strict=True)), default=0.0) / _DOWN


def _delta_of_counts(distribution: GaussianDistribution, epsilon: float, counts: int) -> float:
    """The δ at ε if this number of counts move by one each."""
    l2_distance = math.sqrt(counts) * (1 + 1e-15)
    return distribution.guarantee_for(l2_distance, counts, "add-remove", "user").delta(epsilon)


def _gaussian_scale(epsilon: float, delta: float, at_most: int) -> float:
    """A deviation at which `at_most` counts are (ε, δ)-private together if each moves by one."""
    target = privacy.approximate(epsilon, delta)
    sigma = calibrate(privacy.gaussian, to=target, tolerance=1e-9) * math.sqrt(at_most)
    while _delta_of_counts(GaussianDistribution(sigma), epsilon, at_most) > delta:
        sigma *= 1 + 1e-12
    return sigma


def _optimal_chances(epsilon: Fraction, delta: float) -> tuple[list[int], int]:
    """Numerators, rounded down, and denominator of the chances of keys with 0, 1, 2, … users, while
    below 1.

    Each is the greatest chance that the one before it allows (Desfontaines, Voss, Gipson 2022):
    π(n) = min(e^ε π(n-1) + δ, 1 - e^{-ε}(1 - π(n-1) - δ), 1).
    """
    bits = 128 - math.frexp(delta)[1]
    unit = 1 << bits
    exp_minus_up = min(exp_minus(epsilon, bits)[1], unit)
    exp_down = (unit << bits) // exp_minus_up
    delta_down = math.floor(Fraction(delta) * unit)
    chances = [0]
    while chances[-1] < unit:
        if len(chances) > _MOST_CHANCES:
            raise _too_long_error()
        last = chances[-1]
        upper = unit - -(-exp_minus_up * max(0, unit - last - delta_down) >> bits)
        chances.append(min((exp_down * last >> bits) + delta_down, upper, unit))
    return chances[:-1], unit


def _noise_name(epsilon: float | None, rho: float | None, noise: str | None) -> str:
    one_amount({"epsilon": epsilon, "rho": rho}, PURE, CONCENTRATED)
    if rho is None:
        return "truncated" if noise is None else check.choice(_NOISES, noise=noise)
    if noise not in {None, "gaussian"}:
        raise BadParameter(
            "DP107",
            "rho needs Gaussian noise.",
            why="rho does not measure Laplace noise.",
            fix="leave out noise=",
        )
    return "gaussian"


def _count_users(data: Mapping[Any, Any]) -> dict[Any, int]:
    """The users of each key. Of keys with one form the greatest number counts: one user moves it by
    1 at most.
    """
    counts: dict[Any, int] = {}
    forms = canonical_each(data)
    for form, users in zip(forms, map(_users, data.values()), strict=True):
        if form is not NOTHING and users >= 1:
            counts[form] = max(users, counts.get(form, 0))
    return counts


def _users(value: Any) -> int:
    """The number of users, rounded down: one user moves it by 1 at most."""
    number = exact_ratio(value)
    if number is None:
        return 0
    return math.floor(min(max(number, 0), _MOST_USERS))


def _bound_contributions(data: Any, at_most: int) -> dict[Any, int]:
    """How many users have each key, with `at_most` keys of each user chosen at random."""
    listed = _pairs(data)
    users, keys = canonical_each(user for user, _ in listed), canonical_each(key for _, key in listed)
    distinct = {
        (user, key): None
        for user, key in zip(users, keys, strict=True)
        if user is not None and user is not NOTHING and key is not NOTHING
    }
    keys_of_user: Counter[Any] = Counter()
    counts: Counter[Any] = Counter()
    # A random order of all pairs orders the keys of each user at random, independently of other
    # users.
    for user, key in _shuffle(distinct):
        if keys_of_user[user] < at_most:
            keys_of_user[user] += 1
            counts[key] += 1
    return dict(counts)


def _pairs(data: Any) -> list[Any]:
    """The rows that are pairs."""
    if isinstance(data, str | bytes) or not isinstance(data, Collection | zip | np.ndarray):
        raise BadParameter(
            "DP104",
            "the data must map keys to numbers of users, or be a list of (user, key) pairs.",
            why="the contribution of a user can be bounded only if each key comes with its users.",
            fix="[('ann', 'flu'), ('ben', 'gout')]",
        )
    with callback_guard():
        pairs = [call_quietly(_pair, row) for row in data]
    return [pair for pair in pairs if pair is not None]


def _pair(row: Any) -> tuple[Any, Any] | None:
    user, key = row
    return (user, key) if isinstance(row, tuple | list | np.ndarray) else None


def _shuffle(keys: Iterable[Any]) -> list[Any]:
    """The keys in an order that is exactly uniform: lots are drawn again until all are different."""
    listed = list(keys)
    lots = noise.uniform(LARGEST, len(listed))
    while np.unique(lots).size < len(listed):
        lots = noise.uniform(LARGEST, len(listed))
    return [listed[index] for index in np.argsort(lots).tolist()]


def _too_long_error() -> BadParameter:
    return BadParameter(
        "DP102",
        "epsilon is too small for this delta and at_most.",
        why=f"the selection lists a chance for each number of users, {_MOST_CHANCES:,} at most.",
        fix="StabilityHistogram(epsilon=…, delta=…), which needs no list",
    )
