# SPDX-License-Identifier: Apache-2.0
"""One mechanism each, from parameters that are checked.

Every function takes `unit`, whom the guarantee protects: a `Unit`, or a word for one, beside which `relation` is
"add-remove" (the default) or "replace". Noise is always measured in sensitivities under that relation: `noise` and `scale` are standard deviation and scale divided by the
greatest change of the answer between neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping

from discreet import check
from discreet.errors import BadParameter
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.primitives import (
    ApproximateGuarantee,
    ConcentratedGuarantee,
    DiscreteGaussianGuarantee,
    DiscreteLaplaceGuarantee,
    ExponentialGuarantee,
    GaussianGuarantee,
    LaplaceGuarantee,
    LeakyGuarantee,
    LeakyRandomizedResponseGuarantee,
    PureGuarantee,
    RandomizedResponseGuarantee,
    RenyiGuarantee,
)
from discreet.privacy.unit import Unit, unit_of


@check.arguments
def pure(epsilon: float, *, unit: str | Unit = "record", relation: str | None = None) -> Guarantee:
    """ε-differential privacy of which nothing else is known.

    >>> (10 * pure(0.1)).epsilon(delta=0)
    1.0
    """
    return PureGuarantee(check.moderate(epsilon=epsilon), unit=unit_of(unit, relation))


@check.arguments
def approximate(
    epsilon: float, delta: float, *, unit: str | Unit = "record", relation: str | None = None
) -> Guarantee:
    """(ε, δ)-differential privacy of which nothing else is known; a last resort, loose when composed."""
    epsilon, delta = check.not_negative(epsilon=epsilon), check.delta(delta=delta)
    return (
        ApproximateGuarantee(epsilon, delta, unit=unit_of(unit, relation))
        if delta
        else pure(epsilon, relation=relation, unit=unit)
    )


@check.arguments
def concentrated(
    rho: float, xi: float = 0.0, *, unit: str | Unit = "record", relation: str | None = None
) -> Guarantee:
    """(ξ, ρ)-zero-concentrated differential privacy."""
    rho, xi = check.moderate(rho=rho), check.not_negative(xi=xi)
    return ConcentratedGuarantee(rho, xi, unit=unit_of(unit, relation))


@check.arguments
def approximate_concentrated(
    delta: float, rho: float, *, unit: str | Unit = "record", relation: str | None = None
) -> Guarantee:
    """δ-approximate ρ-zero-concentrated differential privacy."""
    return ConcentratedGuarantee(
        check.moderate(rho=rho), 0.0, check.delta(delta=delta), unit=unit_of(unit, relation)
    )


@check.arguments
def renyi_point(
    order: float, epsilon: float, *, unit: str | Unit = "record", relation: str | None = None
) -> Guarantee:
    """Rényi differential privacy at one order."""
    return renyi_curve(
        {check.above_one(order=order): check.moderate(epsilon=epsilon)}, relation=relation, unit=unit
    )


@check.arguments
def renyi_curve(
    points: Mapping[float, float], *, unit: str | Unit = "record", relation: str | None = None
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
    return RenyiGuarantee(tuple(sorted(checked)), unit=unit_of(unit, relation))


@check.arguments
def laplace(scale: float, *, unit: str | Unit = "record", relation: str | None = None) -> Guarantee:
    """Laplace noise of `scale` sensitivities: (1/scale)-DP."""
    return LaplaceGuarantee(check.moderate(scale=scale), unit=unit_of(unit, relation))


@check.arguments
def gaussian(noise: float, *, unit: str | Unit = "record", relation: str | None = None) -> Guarantee:
    """Gaussian noise of standard deviation `noise` sensitivities (also its rounding to integers).

    >>> round(gaussian(noise=1.0).epsilon(delta=1e-6), 6)
    4.886554
    """
    return GaussianGuarantee(check.moderate(noise=noise), unit=unit_of(unit, relation))


@check.arguments
def discrete_laplace(
    scale: float, sensitivity: int = 1, *, unit: str | Unit = "record", relation: str | None = None
) -> Guarantee:
    """Integer Laplace noise with an integer sensitivity."""
    scale, sensitivity = check.moderate(scale=scale), check.whole(sensitivity=sensitivity)
    return DiscreteLaplaceGuarantee(scale, sensitivity, unit=unit_of(unit, relation))


@check.arguments
def discrete_gaussian(
    scale: float, sensitivity: int = 1, *, unit: str | Unit = "record", relation: str | None = None
) -> Guarantee:
    """Integer Gaussian noise (scale = σ) with an integer sensitivity; not the same curve as `gaussian`."""
    scale, sensitivity = check.moderate(scale=scale), check.whole(sensitivity=sensitivity)
    return DiscreteGaussianGuarantee(scale, sensitivity, unit=unit_of(unit, relation))


@check.arguments
def randomized_response(
    epsilon: float, outcomes: int = 2, *, unit: str | Unit = "record", relation: str | None = None
) -> Guarantee:
    """Randomized response over two or more outcomes."""
    epsilon, outcomes = check.moderate(epsilon=epsilon), check.whole(at_least=2, outcomes=outcomes)
    return RandomizedResponseGuarantee(epsilon, outcomes, unit=unit_of(unit, relation))


@check.arguments
def leaky(delta: float, *, unit: str | Unit = "record", relation: str | None = None) -> Guarantee:
    """A mechanism that reveals its input with probability δ: (0, δ)-DP."""
    return LeakyGuarantee(check.inner_probability(delta=delta), unit=unit_of(unit, relation))


@check.arguments
def leaky_randomized_response(
    epsilon: float, delta: float, *, unit: str | Unit = "record", relation: str | None = None
) -> Guarantee:
    """Randomized response that reveals its input with probability δ."""
    epsilon, delta = check.moderate(epsilon=epsilon), check.inner_probability(delta=delta)
    return LeakyRandomizedResponseGuarantee(epsilon, delta, unit=unit_of(unit, relation))


@check.arguments
def exponential(epsilon: float, *, unit: str | Unit = "record", relation: str | None = None) -> Guarantee:
    """The exponential mechanism (also the Gumbel form of report-noisy-max) calibrated to ε."""
    return ExponentialGuarantee(check.moderate(epsilon=epsilon), unit=unit_of(unit, relation))
