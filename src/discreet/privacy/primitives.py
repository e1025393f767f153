# SPDX-License-Identifier: Apache-2.0
"""The mechanisms that a guarantee is made of, each saying what it knows of itself.

Every function takes `relation` ("add-remove" or "replace") and `unit` (a word for whom it protects). Noise is always
measured in sensitivities under that relation: `noise` and `scale` are standard deviation and scale divided by the
greatest change of the answer between neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from discreet import check
from discreet.errors import BadParameter, UnsupportedGuarantee
from discreet.privacy import divergences, families
from discreet.privacy.bag import Part, rounded_up
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.pairs import Pair, atoms, leaked
from discreet.privacy.unit import Unit


@dataclass(frozen=True, repr=False)
class Primitive(Guarantee):
    """One mechanism. What it does not know of itself is ∞, or no pair."""

    unit: Unit = field(default=Unit(), kw_only=True)

    @property
    def failure(self) -> float:
        return 0.0

    def worst_loss(self) -> float:
        return math.inf

    def divergence(self, order: float) -> float:
        worst = self.worst_loss()
        return divergences.of_pure(worst, order) if math.isfinite(worst) else math.inf

    def concentration(self) -> tuple[float, float]:
        worst = self.worst_loss()
        return 0.0, divergences.concentrated_of_pure(worst) * (1 + 1e-15) if math.isfinite(
            worst
        ) else math.inf

    def pairs(self) -> tuple[Pair, ...]:
        return _remembered(self)

    def witness(self) -> tuple[Pair, ...]:
        return self.pairs()

    def dominating(self) -> tuple[Pair, ...]:
        """The dominating pairs: one if it is the same in both directions, (removed, added), or none."""
        return (families.randomized_response(self.worst_loss(), 2, self.failure),)

    def bags(self) -> list[tuple[tuple[Part, int], ...]]:
        return [((self, 1),)]

    def grouped(self, size: int) -> Guarantee:
        from discreet.privacy.wrapped import Group

        return Group(self, size)

    def antipodal(self, rate: float) -> Pair | None:
        """The pair under Poisson sampling when one record is replaced, if it is proved for this mechanism."""
        return None

    def stated(self) -> dict[str, Any]:
        """The parameters by the names of the constructor; `epsilon` and `delta` of a guarantee are its views."""
        return {name.rstrip("_"): getattr(self, name) for name in self.__dataclass_fields__ if name != "unit"}

    def __repr__(self) -> str:
        words = [f"{name}={value!r}" for name, value in self.stated().items()]
        default = Unit()
        if self.unit.relation != default.relation:
            words.append(f"relation={self.unit.relation!r}")
        if self.unit.protects != default.protects:
            words.append(f"unit={self.unit.protects!r}")
        return f"{_snake(type(self).__name__)}({', '.join(words)})"


@dataclass(frozen=True, repr=False)
class Pure(Primitive):
    """ε-differential privacy, and nothing else is known: randomized response is the worst case."""

    epsilon_: float

    def worst_loss(self) -> float:
        return self.epsilon_

    def grouped(self, size: int) -> Guarantee:
        return Pure(_times(self.epsilon_, size), unit=self.unit)


@dataclass(frozen=True, repr=False)
class Approximate(Primitive):
    """(ε, δ)-differential privacy, and nothing else is known: leaky randomized response is the worst case."""

    epsilon_: float
    delta_: float

    @property
    def failure(self) -> float:
        return self.delta_

    def worst_loss(self) -> float:
        return self.epsilon_

    def grouped(self, size: int) -> Guarantee:
        """(kε, δ·(e^{kε} - 1)/(e^ε - 1)): follow a chain of k neighbours."""
        growth = float(size)
        if self.epsilon_ > 0:
            log_growth = _log_expm1(size * self.epsilon_) - _log_expm1(self.epsilon_)
            growth = math.exp(min(log_growth, 700.0)) * (1 + 1e-12)
        if growth * self.delta_ >= 1:
            raise UnsupportedGuarantee(
                "DP203",
                f"nothing is promised to a group of {size}: its δ would be 1 or more.",
                why="δ grows with e^ε for every further member of the group.",
                fix="ask for a smaller group, or state the mechanism (its noise) instead of its (ε, δ).",
            )
        return Approximate(_times(self.epsilon_, size), growth * self.delta_, unit=self.unit)


@dataclass(frozen=True, repr=False)
class Concentrated(Primitive):
    """D_order ≤ ξ + ρ·order for every order, except with probability δ."""

    rho: float
    xi: float = 0.0
    delta_: float = 0.0

    @property
    def failure(self) -> float:
        return self.delta_

    def divergence(self, order: float) -> float:
        return self.xi + self.rho * order

    def concentration(self) -> tuple[float, float]:
        return self.xi, self.rho

    def dominating(self) -> tuple[Pair, ...]:
        return ()

    def witness(self) -> tuple[Pair, ...]:
        return (leaked(families.gaussian(math.sqrt(2 * self.rho) * (1 - 1e-15)), self.delta_),)

    def grouped(self, size: int) -> Guarantee:
        """k²ρ (Bun, Steinke 2016, Proposition 1.9)."""
        if self.xi or self.delta_:
            raise _no_group("concentrated with ξ or δ")
        return Concentrated(size * size * self.rho * (1 + 1e-15), unit=self.unit)


@dataclass(frozen=True, repr=False)
class Renyi(Primitive):
    """Rényi divergences at a few orders; between them the next higher one holds, since D grows with the order."""

    points: tuple[tuple[float, float], ...]

    @property
    def orders(self) -> tuple[float, ...]:
        return tuple(order for order, _ in self.points)

    def divergence(self, order: float) -> float:
        return min((epsilon for stated, epsilon in self.points if stated >= order), default=math.inf)

    def concentration(self) -> tuple[float, float]:
        return 0.0, math.inf

    def dominating(self) -> tuple[Pair, ...]:
        return ()

    def witness(self) -> tuple[Pair, ...]:
        slope = math.sqrt(min(2 * epsilon / order for order, epsilon in self.points))
        return (families.gaussian(slope * (1 - 1e-15)),)

    def grouped(self, size: int) -> Guarantee:
        raise _no_group("a Rényi curve")


@dataclass(frozen=True, repr=False)
class Laplace(Primitive):
    """Laplace noise; `scale` is in sensitivities."""

    scale: float

    def worst_loss(self) -> float:
        return rounded_up(1 / Fraction(repr(self.scale)))

    def divergence(self, order: float) -> float:
        return min(divergences.of_laplace(1 / self.scale, order) * (1 + 1e-12), self.worst_loss())

    def dominating(self) -> tuple[Pair, ...]:
        return (families.laplace(1 / self.scale),)

    def grouped(self, size: int) -> Guarantee:
        return Laplace(self.scale / size * (1 - 1e-15), unit=self.unit)

    def antipodal(self, rate: float) -> Pair | None:
        return families.antipodal_laplace(1 / self.scale, rate)


@dataclass(frozen=True, repr=False)
class Gaussian(Primitive):
    """Gaussian noise; `noise` is the standard deviation in sensitivities. It is (1/noise)-GDP."""

    noise: float

    @property
    def mu(self) -> float:
        return 1 / self.noise

    def divergence(self, order: float) -> float:
        return order / (2 * self.noise * self.noise)

    def concentration(self) -> tuple[float, float]:
        return 0.0, 1 / (2 * self.noise * self.noise)

    def dominating(self) -> tuple[Pair, ...]:
        return (families.gaussian(self.mu),)

    def grouped(self, size: int) -> Guarantee:
        return Gaussian(self.noise / size * (1 - 1e-15), unit=self.unit)

    def antipodal(self, rate: float) -> Pair | None:
        return families.antipodal_gaussian(self.mu, rate)


@dataclass(frozen=True, repr=False)
class DiscreteLaplace(Primitive):
    """Integer Laplace noise, P(z) ∝ e^{-|z|/scale}, for an answer that moves by `sensitivity`."""

    scale: float
    sensitivity: int = 1

    def worst_loss(self) -> float:
        return rounded_up(self.sensitivity / Fraction(repr(self.scale)))

    def divergence(self, order: float) -> float:
        return min(divergences.of_pair(self.pairs()[0], order), self.worst_loss())

    def dominating(self) -> tuple[Pair, ...]:
        exact = families.discrete_laplace(self.scale, self.sensitivity)
        return (exact or families.randomized_response(self.worst_loss()),)

    def grouped(self, size: int) -> Guarantee:
        return DiscreteLaplace(self.scale, self.sensitivity * size, unit=self.unit)

    def antipodal(self, rate: float) -> Pair | None:
        reach = math.ceil(700 * self.scale)
        return families.antipodal_integer(
            families.laplace_log_mass(self.scale), self.sensitivity, reach, rate
        )


@dataclass(frozen=True, repr=False)
class DiscreteGaussian(Primitive):
    """Integer Gaussian noise, P(z) ∝ e^{-z²/2·scale²}, for an answer that moves by `sensitivity`.

    Its divergences are at most those of the Gaussian (Canonne, Kamath, Steinke 2020, Theorem 14), its profile is not.
    """

    scale: float
    sensitivity: int = 1

    def divergence(self, order: float) -> float:
        return order * self.concentration()[1]

    def concentration(self) -> tuple[float, float]:
        return 0.0, (self.sensitivity / self.scale) ** 2 / 2 * (1 + 1e-15)

    def dominating(self) -> tuple[Pair, ...]:
        exact = families.discrete_gaussian(self.scale, self.sensitivity)
        return (exact,) if exact else ()

    def witness(self) -> tuple[Pair, ...]:
        # beyond the enumerable the truth is within rounding of the Gaussian; half its slope is surely below
        return self.pairs() or (families.gaussian(self.sensitivity / self.scale / 2),)

    def grouped(self, size: int) -> Guarantee:
        return DiscreteGaussian(self.scale, self.sensitivity * size, unit=self.unit)

    def antipodal(self, rate: float) -> Pair | None:
        reach = math.ceil(38 * self.scale)
        if 2 * reach > families.MOST_ATOMS:
            return None
        return families.antipodal_integer(
            families.gaussian_log_mass(self.scale), self.sensitivity, reach, rate
        )


@dataclass(frozen=True, repr=False)
class RandomizedResponse(Primitive):
    """The truth with odds e^ε against each of the other outcomes."""

    epsilon_: float
    outcomes: int = 2

    def worst_loss(self) -> float:
        return self.epsilon_

    def divergence(self, order: float) -> float:
        return min(divergences.of_pair(self.pairs()[0], order), self.epsilon_)

    def dominating(self) -> tuple[Pair, ...]:
        return (families.randomized_response(self.epsilon_, self.outcomes),)

    def grouped(self, size: int) -> Guarantee:
        return Pure(_times(self.epsilon_, size), unit=self.unit)


@dataclass(frozen=True, repr=False)
class LeakyRandomizedResponse(Approximate):
    """Randomized response that reveals its input with probability δ: the worst (ε, δ)-DP mechanism."""


@dataclass(frozen=True, repr=False)
class Leaky(Primitive):
    """Reveals its input with probability δ and says nothing otherwise."""

    delta_: float

    @property
    def failure(self) -> float:
        return self.delta_

    def worst_loss(self) -> float:
        return 0.0

    def dominating(self) -> tuple[Pair, ...]:
        return (leaked(atoms(np.ones(1), np.ones(1)), self.delta_),)

    def grouped(self, size: int) -> Guarantee:
        return Leaky(-math.expm1(size * math.log1p(-self.delta_)) * (1 + 1e-12), unit=self.unit)


@dataclass(frozen=True, repr=False)
class Exponential(Primitive):
    """The exponential mechanism: ε-DP with losses that span at most ε (bounded range)."""

    epsilon_: float

    def worst_loss(self) -> float:
        return self.epsilon_

    def divergence(self, order: float) -> float:
        return min(divergences.of_pure(self.epsilon_, order), order * self.concentration()[1])

    def concentration(self) -> tuple[float, float]:
        """ε²/8 (Cesar, Rogers 2021, Lemma 3.4), or what ε-DP alone gives."""
        return 0.0, min(self.epsilon_**2 / 8 * (1 + 1e-15), super().concentration()[1])

    def dominating(self) -> tuple[Pair, ...]:
        return (families.bounded_range(self.epsilon_),)

    def grouped(self, size: int) -> Guarantee:
        return Exponential(_times(self.epsilon_, size), unit=self.unit)


@lru_cache(maxsize=256)
def _remembered(mechanism: Primitive) -> tuple[Pair, ...]:
    return mechanism.dominating()


def pure(epsilon: float, *, relation: str = "add-remove", unit: str = "record") -> Guarantee:
    """ε-differential privacy of which nothing else is known.

    >>> (10 * pure(0.1)).epsilon(delta=0)
    1.0
    """
    return Pure(check.moderate(epsilon=epsilon), unit=Unit(unit, relation))


def approximate(
    epsilon: float, delta: float, *, relation: str = "add-remove", unit: str = "record"
) -> Guarantee:
    """(ε, δ)-differential privacy of which nothing else is known; a last resort, loose when composed."""
    epsilon, delta = check.not_negative(epsilon=epsilon), check.delta(delta=delta)
    return (
        Approximate(epsilon, delta, unit=Unit(unit, relation))
        if delta
        else pure(epsilon, relation=relation, unit=unit)
    )


def concentrated(
    rho: float, xi: float = 0.0, *, relation: str = "add-remove", unit: str = "record"
) -> Guarantee:
    """(ξ, ρ)-zero-concentrated differential privacy."""
    rho, xi = check.moderate(rho=rho), check.not_negative(xi=xi)
    return Concentrated(rho, xi, unit=Unit(unit, relation))


def approximate_concentrated(
    delta: float, rho: float, *, relation: str = "add-remove", unit: str = "record"
) -> Guarantee:
    """δ-approximate ρ-zero-concentrated differential privacy."""
    return Concentrated(check.moderate(rho=rho), 0.0, check.delta(delta=delta), unit=Unit(unit, relation))


def renyi_point(
    order: float, epsilon: float, *, relation: str = "add-remove", unit: str = "record"
) -> Guarantee:
    """Rényi differential privacy at one order."""
    return renyi_curve(
        {check.above_one(order=order): check.moderate(epsilon=epsilon)}, relation=relation, unit=unit
    )


def renyi_curve(
    points: Mapping[float, float], *, relation: str = "add-remove", unit: str = "record"
) -> Guarantee:
    """Rényi differential privacy at several orders, {order: ε}."""
    if not isinstance(points, Mapping) or not points:
        raise BadParameter(
            "DP104",
            "points must map orders to ε, and hold at least one.",
            why="the curve is all that is known of the mechanism.",
            fix="renyi_curve({2: 0.1, 8: 0.6})",
        )
    checked = (
        (check.above_one(order=order), check.moderate(epsilon=epsilon)) for order, epsilon in points.items()
    )
    return Renyi(tuple(sorted(checked)), unit=Unit(unit, relation))


def laplace(scale: float, *, relation: str = "add-remove", unit: str = "record") -> Guarantee:
    """Laplace noise of `scale` sensitivities: (1/scale)-DP."""
    return Laplace(check.moderate(scale=scale), unit=Unit(unit, relation))


def gaussian(noise: float, *, relation: str = "add-remove", unit: str = "record") -> Guarantee:
    """Gaussian noise of standard deviation `noise` sensitivities (also its rounding to integers).

    >>> round(gaussian(noise=1.0).epsilon(delta=1e-6), 6)
    4.886554
    """
    return Gaussian(check.moderate(noise=noise), unit=Unit(unit, relation))


def discrete_laplace(
    scale: float, sensitivity: int = 1, *, relation: str = "add-remove", unit: str = "record"
) -> Guarantee:
    """Integer Laplace noise with an integer sensitivity."""
    scale, sensitivity = check.moderate(scale=scale), check.whole(sensitivity=sensitivity)
    return DiscreteLaplace(scale, sensitivity, unit=Unit(unit, relation))


def discrete_gaussian(
    scale: float, sensitivity: int = 1, *, relation: str = "add-remove", unit: str = "record"
) -> Guarantee:
    """Integer Gaussian noise (scale = σ) with an integer sensitivity; not the same curve as `gaussian`."""
    scale, sensitivity = check.moderate(scale=scale), check.whole(sensitivity=sensitivity)
    return DiscreteGaussian(scale, sensitivity, unit=Unit(unit, relation))


def randomized_response(
    epsilon: float, outcomes: int = 2, *, relation: str = "add-remove", unit: str = "record"
) -> Guarantee:
    """Randomized response over two or more outcomes."""
    epsilon, outcomes = check.moderate(epsilon=epsilon), check.whole(at_least=2, outcomes=outcomes)
    return RandomizedResponse(epsilon, outcomes, unit=Unit(unit, relation))


def leaky(delta: float, *, relation: str = "add-remove", unit: str = "record") -> Guarantee:
    """A mechanism that reveals its input with probability δ: (0, δ)-DP."""
    return Leaky(check.inner_probability(delta=delta), unit=Unit(unit, relation))


def leaky_randomized_response(
    epsilon: float, delta: float, *, relation: str = "add-remove", unit: str = "record"
) -> Guarantee:
    """Randomized response that reveals its input with probability δ."""
    epsilon, delta = check.moderate(epsilon=epsilon), check.inner_probability(delta=delta)
    return LeakyRandomizedResponse(epsilon, delta, unit=Unit(unit, relation))


def exponential(epsilon: float, *, relation: str = "add-remove", unit: str = "record") -> Guarantee:
    """The exponential mechanism (also the Gumbel form of report-noisy-max) calibrated to ε."""
    return Exponential(check.moderate(epsilon=epsilon), unit=Unit(unit, relation))


def _times(epsilon: float, size: int) -> float:
    return rounded_up(size * Fraction(repr(epsilon)))


def _log_expm1(x: float) -> float:
    return x + math.log(-math.expm1(-x))


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def _no_group(what: str) -> UnsupportedGuarantee:
    return UnsupportedGuarantee(
        "DP203",
        f"no verified theorem gives group privacy for {what}.",
        why="the orders that remain for a group depend on constants that are not proved here.",
        fix="state the mechanism itself, for example gaussian(noise=…), and group that.",
    )
