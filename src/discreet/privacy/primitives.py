# SPDX-License-Identifier: Apache-2.0
"""The mechanisms that a guarantee is made of, each saying what it knows of itself; `constructors`
checks and makes them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.errors import UnsupportedGuarantee
from discreet.exact import binary_above, exactly
from discreet.privacy import divergences, families
from discreet.privacy.bag import BagItem
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.pairs import Pair, atoms, leak
from discreet.privacy.unit import Unit


@dataclass(frozen=True, repr=False)
class Primitive(Guarantee):
    """One mechanism. What it does not know of itself is ∞, or no pair.

    Two things stand behind lower bounds. `witness`: the pairs of one mechanism that has this
    description, at one pair of neighbours; products of them bound compositions from below. `tight`:
    whether every point of the curve of `pairs` is attained (or approached) by some mechanism of
    this description, which may be another one at each point.
    """

    unit: Unit = field(default=Unit(), kw_only=True)

    @property
    def tight(self) -> bool:
        """See the class; a mechanism that does not say so claims no more than its witness shows."""
        return False

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
        return _cached_pairs(self)

    def witness(self) -> tuple[Pair, ...]:
        return self.pairs()

    def dominating(self) -> tuple[Pair, ...]:
        """The dominating pairs: one if it is the same in both directions, (removed, added), or
        none.
        """
        return (families.randomized_response(self.worst_loss(), 2, self.failure),)

    def bags(self) -> list[tuple[tuple[BagItem, int], ...]]:
        return [((self, 1),)]

    def _group_of(self, size: int) -> Guarantee:
        from discreet.privacy.groups import GroupGuarantee

        return GroupGuarantee(self, size)

    def antipodal(self, rate: float) -> Pair | None:
        """The pair under Poisson sampling when one record is replaced, if it is proved for this
        mechanism.
        """
        return None

    def parameters(self) -> dict[str, Any]:
        """The parameters by the names of the constructor; `epsilon` and `delta` of a guarantee are
        its views.
        """
        return {name.rstrip("_"): getattr(self, name) for name in self.__dataclass_fields__ if name != "unit"}

    def __repr__(self) -> str:
        words = [f"{name}={value!r}" for name, value in self.parameters().items()]
        return f"{_constructor_name(type(self).__name__)}({', '.join([*words, *self._unit_words()])})"

    def _unit_words(self) -> list[str]:
        """The relation and the unit as arguments, where they are not those of every constructor."""
        words = {"relation": self.unit.relation, "unit": self.unit.protects}
        default = {"relation": Unit().relation, "unit": Unit().protects}
        return [f"{name}={word!r}" for name, word in words.items() if word != default[name]]


@dataclass(frozen=True, repr=False)
class PureGuarantee(Primitive):
    """ε-differential privacy, and nothing else is known: randomized response is the worst case."""

    epsilon_: float

    tight = True

    def worst_loss(self) -> float:
        return self.epsilon_

    def antipodal(self, rate: float) -> Pair | None:
        return families.antipodal_geometric(self.epsilon_, 1, rate)


@dataclass(frozen=True, repr=False)
class ApproximateGuarantee(Primitive):
    """(ε, δ)-differential privacy, and nothing else is known: leaky randomized response is the
    worst case.
    """

    epsilon_: float
    delta_: float

    tight = True

    @property
    def failure(self) -> float:
        return self.delta_

    def worst_loss(self) -> float:
        return self.epsilon_

    def _group_of(self, size: int) -> Guarantee:
        group = super()._group_of(size)
        assert isinstance(group, Primitive)
        if group.failure >= 1:
            raise UnsupportedGuarantee(
                "DP203",
                f"a group of {size} has no guarantee: its δ would be 1 or more.",
                why="δ grows with e^ε for every further member of the group.",
                fix="ask for a smaller group, or state the mechanism (its noise) instead of its (ε, δ).",
            )
        return group


@dataclass(frozen=True, repr=False)
class ConcentratedGuarantee(Primitive):
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
        # Gaussian noise with μ²/2 = ρ has D_order = ρ·order (Bun, Steinke 2016).
        return (leak(families.gaussian(math.sqrt(2 * self.rho) * (1 - 1e-15)), self.delta_),)

    def _group_of(self, size: int) -> Guarantee:
        """k²ρ (Bun, Steinke 2016, Proposition 1.9)."""
        if self.xi or self.delta_:
            raise _no_group_error("concentrated with ξ or δ")
        return ConcentratedGuarantee(size * size * self.rho * (1 + 1e-15), unit=self.unit)


@dataclass(frozen=True, repr=False)
class RenyiGuarantee(Primitive):
    """Rényi divergences at a few orders; between them the next higher one holds, since D grows with
    the order.
    """

    points: tuple[tuple[float, float], ...]

    @property
    def orders(self) -> tuple[float, ...]:
        return tuple(order for order, _ in self.points)

    def divergence(self, order: float) -> float:
        return min(
            (epsilon for known_order, epsilon in self.points if known_order >= order), default=math.inf
        )

    def concentration(self) -> tuple[float, float]:
        return 0.0, math.inf

    def dominating(self) -> tuple[Pair, ...]:
        return ()

    def witness(self) -> tuple[Pair, ...]:
        # Gaussian noise has D_order = order·μ²/2; this μ keeps all stated points.
        slope = math.sqrt(min(2 * epsilon / order for order, epsilon in self.points))
        return (families.gaussian(slope * (1 - 1e-15)),)

    def _group_of(self, size: int) -> Guarantee:
        raise _no_group_error("a Rényi curve")


@dataclass(frozen=True, repr=False)
class LaplaceGuarantee(Primitive):
    """Laplace noise; `scale` is in sensitivities."""

    scale: float

    tight = True

    def worst_loss(self) -> float:
        return binary_above(1 / exactly(self.scale))

    def divergence(self, order: float) -> float:
        return min(divergences.of_laplace(1 / self.scale, order) * (1 + 1e-12), self.worst_loss())

    def dominating(self) -> tuple[Pair, ...]:
        return (families.laplace(1 / self.scale),)

    def _group_of(self, size: int) -> Guarantee:
        return LaplaceGuarantee(self.scale / size * (1 - 1e-15), unit=self.unit)

    def antipodal(self, rate: float) -> Pair | None:
        return families.antipodal_laplace(1 / self.scale, rate)


@dataclass(frozen=True, repr=False)
class GaussianGuarantee(Primitive):
    """Gaussian noise; `noise` is the standard deviation in sensitivities. It is (1/noise)-GDP."""

    noise: float

    tight = True

    @property
    def mu(self) -> float:
        return 1 / self.noise

    def divergence(self, order: float) -> float:
        return order / (2 * self.noise * self.noise)

    def concentration(self) -> tuple[float, float]:
        return 0.0, 1 / (2 * self.noise * self.noise)

    def dominating(self) -> tuple[Pair, ...]:
        return (families.gaussian(self.mu),)

    def _group_of(self, size: int) -> Guarantee:
        return GaussianGuarantee(self.noise / size * (1 - 1e-15), unit=self.unit)

    def antipodal(self, rate: float) -> Pair | None:
        return families.antipodal_gaussian(self.mu, rate)


@dataclass(frozen=True, repr=False)
class DiscreteLaplaceGuarantee(Primitive):
    """Integer Laplace noise, P(z) ∝ e^{-|z|/scale}, for an answer that moves by `sensitivity`."""

    scale: float
    sensitivity: int = 1

    def worst_loss(self) -> float:
        return binary_above(self.sensitivity / exactly(self.scale))

    @property
    def tight(self) -> bool:
        """Unless there are too many outcomes to list."""
        return self.sensitivity <= families.MOST_ATOMS

    def divergence(self, order: float) -> float:
        return min(divergences.of_pair(self.pairs()[0], order), self.worst_loss())

    def dominating(self) -> tuple[Pair, ...]:
        exact = families.discrete_laplace(self.scale, self.sensitivity)
        return (exact or families.randomized_response(self.worst_loss()),)

    def witness(self) -> tuple[Pair, ...]:
        """Of too many outcomes only tell whether the answer is 0 or less, the greatest or more, or
        between.
        """
        return self.pairs() if self.tight else (families.three_way_laplace(self.worst_loss()),)

    def _group_of(self, size: int) -> Guarantee:
        return DiscreteLaplaceGuarantee(self.scale, self.sensitivity * size, unit=self.unit)

    def antipodal(self, rate: float) -> Pair | None:
        return families.antipodal_geometric(1 / self.scale, self.sensitivity, rate)


@dataclass(frozen=True, repr=False)
class DiscreteGaussianGuarantee(Primitive):
    """Integer Gaussian noise, P(z) ∝ e^{-z²/2·scale²}, for an answer that moves by `sensitivity`.

    Its divergences are at most those of the Gaussian (Canonne, Kamath, Steinke 2020, Theorem 14),
    its profile is not.
    """

    scale: float
    sensitivity: int = 1

    def divergence(self, order: float) -> float:
        return order * self.concentration()[1]

    def concentration(self) -> tuple[float, float]:
        return 0.0, (self.sensitivity / self.scale) ** 2 / 2 * (1 + 1e-15)

    tight = True

    def dominating(self) -> tuple[Pair, ...]:
        exact = families.discrete_gaussian(self.scale, self.sensitivity)
        return (exact,) if exact else ()

    def witness(self) -> tuple[Pair, ...]:
        # beyond the enumerable the truth is within rounding of the Gaussian; half its slope is
        # surely below
        return self.pairs() or (families.gaussian(self.sensitivity / self.scale / 2),)

    def _group_of(self, size: int) -> Guarantee:
        return DiscreteGaussianGuarantee(self.scale, self.sensitivity * size, unit=self.unit)

    def antipodal(self, rate: float) -> Pair | None:
        reach = math.ceil(38 * self.scale)
        if 2 * reach > families.MOST_ATOMS:
            return None
        return families.antipodal_integer(
            families.gaussian_log_mass(self.scale), self.sensitivity, reach, rate
        )


@dataclass(frozen=True, repr=False)
class RandomizedResponseGuarantee(Primitive):
    """The truth with odds e^ε against each of the other outcomes."""

    epsilon_: float
    outcomes: int = 2

    tight = True

    def worst_loss(self) -> float:
        return self.epsilon_

    def divergence(self, order: float) -> float:
        return min(divergences.of_pair(self.pairs()[0], order), self.epsilon_)

    def dominating(self) -> tuple[Pair, ...]:
        return (families.randomized_response(self.epsilon_, self.outcomes),)


@dataclass(frozen=True, repr=False)
class LeakyRandomizedResponseGuarantee(ApproximateGuarantee):
    """Randomized response that reveals its input with probability δ: the worst (ε, δ)-DP mechanism."""


@dataclass(frozen=True, repr=False)
class LeakyGuarantee(Primitive):
    """Reveals its input with probability δ and says nothing otherwise."""

    delta_: float

    tight = True
    #: It often stands for a part of a step, such as a noisy count that is shown if it is large, and
    #: a group of units can make that part far more likely than its share of the noise tells.
    is_part_of_a_step = True

    @property
    def failure(self) -> float:
        return self.delta_

    def worst_loss(self) -> float:
        return 0.0

    def dominating(self) -> tuple[Pair, ...]:
        return (leak(atoms(np.ones(1), np.ones(1)), self.delta_),)


@dataclass(frozen=True, repr=False)
class ExponentialGuarantee(Primitive):
    """The exponential mechanism: ε-DP with losses that span at most ε (bounded range)."""

    epsilon_: float

    tight = True

    def worst_loss(self) -> float:
        return self.epsilon_

    def divergence(self, order: float) -> float:
        return min(divergences.of_range(self.epsilon_, order), order * self.concentration()[1])

    def concentration(self) -> tuple[float, float]:
        """ε²/8 (Cesar, Rogers 2021, Lemma 3.4), or what ε-DP alone gives."""
        return 0.0, min(self.epsilon_**2 / 8 * (1 + 1e-15), super().concentration()[1])

    def dominating(self) -> tuple[Pair, ...]:
        return (families.bounded_range(self.epsilon_),)

    def witness(self) -> tuple[Pair, ...]:
        """Each point of the curve has its own worst scores; two options that change places have
        these losses: ±ε/2.
        """
        return (families.randomized_response(self.epsilon_ / 2),)

    def _group_of(self, size: int) -> Guarantee:
        return ExponentialGuarantee(exact_times(self.epsilon_, size), unit=self.unit)


@lru_cache(maxsize=256)
def _cached_pairs(mechanism: Primitive) -> tuple[Pair, ...]:
    return mechanism.dominating()


def exact_times(epsilon: float, size: int) -> float:
    """So many times a decimal number, rounded up."""
    return binary_above(size * exactly(float(epsilon)))


def _constructor_name(class_name: str) -> str:
    """`laplace` of `LaplaceGuarantee`."""
    word = class_name.removesuffix("Guarantee")
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in word).lstrip("_")


def _no_group_error(what: str) -> UnsupportedGuarantee:
    return UnsupportedGuarantee(
        "DP203",
        f"no verified theorem gives group privacy for {what}.",
        why="the orders that remain for a group depend on constants that are not proved here.",
        fix="state the mechanism itself, for example gaussian(noise=…), and group that.",
    )
