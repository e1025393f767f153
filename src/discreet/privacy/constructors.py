# SPDX-License-Identifier: Apache-2.0
"""The guarantee of one mechanism each, from validated parameters.

Every function takes `unit`, whom the guarantee protects: a `Unit`, or a word for one, beside which
`relation` is "add-remove" (the default) or "replace". Noise is always measured in sensitivities
under that relation: `noise` and `scale` are standard deviation and scale divided by the greatest
change of the answer between neighbours.
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
    """The guarantee of a mechanism that is ε-differentially private, and of which nothing else is
    known.

    **Guarantee.** Covers every ε-DP mechanism: randomized response is the worst of them (Kairouz,
    Oh, Viswanath 2015).

    >>> (10 * pure(0.1)).epsilon(delta=0)
    1.0
    """
    return PureGuarantee(check.moderate(epsilon=epsilon), unit=unit_of(unit, relation))


@check.arguments
def approximate(
    epsilon: float, delta: float, *, unit: str | Unit = "record", relation: str | None = None
) -> Guarantee:
    """The guarantee of a mechanism that is (ε, δ)-differentially private, and of which nothing else
    is known.

    **Guarantee.** Covers every (ε, δ)-DP mechanism: leaky randomized response is the worst of them
    (Kairouz, Oh, Viswanath 2015). Composition is loose, because the noise itself is unknown; state
    the mechanism where you can.

    >>> approximate(1.0, 1e-6).epsilon(delta=1e-6)
    1.0
    """
    epsilon, delta = check.not_negative(epsilon=epsilon), check.delta(delta=delta)
    return (
        ApproximateGuarantee(epsilon, delta, unit=unit_of(unit, relation))
        if delta
        else pure(epsilon, relation=relation, unit=unit)
    )


@check.arguments
def concentrated(
    rho: float,
    xi: float = 0.0,
    delta: float = 0.0,
    *,
    unit: str | Unit = "record",
    relation: str | None = None,
) -> Guarantee:
    """The guarantee of a mechanism that is δ-approximately (ξ, ρ)-zero-concentrated differentially
    private.

    **Guarantee.** Except with probability δ, D_α ≤ ξ + ρα for every Rényi order α > 1 (Bun, Steinke
    2016, Definition 8.1).

    >>> round((3 * concentrated(rho=0.1)).concentrated(), 9)
    0.3
    """
    rho, xi, delta = check.moderate(rho=rho), check.not_negative(xi=xi), check.delta(delta=delta)
    return ConcentratedGuarantee(rho, xi, delta, unit=unit_of(unit, relation))


@check.arguments
def approximate_concentrated(
    delta: float, rho: float, *, unit: str | Unit = "record", relation: str | None = None
) -> Guarantee:
    """The guarantee of a mechanism that is δ-approximately ρ-zero-concentrated differentially
    private.

    **Guarantee.** Except with probability δ, D_α ≤ ρα for every Rényi order α > 1 (Bun, Steinke
    2016, Definition 8.1).

    >>> approximate_concentrated(delta=1e-6, rho=0.1).epsilon(delta=1e-7)
    inf
    """
    return concentrated(rho, delta=delta, unit=unit, relation=relation)


@check.arguments
def renyi_point(
    order: float, epsilon: float, *, unit: str | Unit = "record", relation: str | None = None
) -> Guarantee:
    """The guarantee of a mechanism whose Rényi divergence is known at one order.

    **Guarantee.** D_α ≤ ε at α = `order`, in both directions (Mironov 2017). Lower orders have the
    same bound, because the divergence grows with the order; of higher orders nothing is known.

    >>> renyi_point(order=8, epsilon=0.5).renyi(order=4)
    0.5
    """
    return renyi_curve(
        {check.above_one(order=order): check.moderate(epsilon=epsilon)}, relation=relation, unit=unit
    )


@check.arguments
def renyi_curve(
    points: Mapping[float, float], *, unit: str | Unit = "record", relation: str | None = None
) -> Guarantee:
    """The guarantee of a mechanism whose Rényi divergences are known at several orders, {order: ε}.

    **Guarantee.** D_α ≤ ε at each of the orders, in both directions (Mironov 2017); between two of
    them the bound of the next higher order holds.

    >>> renyi_curve({2: 0.1, 8: 0.6}).renyi(order=3)
    0.6
    """
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
    """The guarantee of Laplace noise whose scale is `scale` sensitivities.

    **Guarantee.** It is (1/scale)-DP (Dwork, McSherry, Nissim, Smith 2006), and the curve for δ > 0
    is the exact one of the Laplace distribution. What would break it: an answer that moves by more
    than the sensitivity.

    >>> laplace(scale=2).epsilon(delta=0)
    0.5
    """
    return LaplaceGuarantee(check.moderate(scale=scale), unit=unit_of(unit, relation))


@check.arguments
def gaussian(noise: float, *, unit: str | Unit = "record", relation: str | None = None) -> Guarantee:
    """The guarantee of Gaussian noise whose standard deviation is `noise` sensitivities, or of its
    rounding to integers.

    **Guarantee.** It is (1/noise)-Gaussian DP, and the curve is exact (Dong, Roth, Su 2022; Balle,
    Wang 2018). Rounding is post-processing. Noise that is drawn from the *discrete* Gaussian has
    another curve: see `discrete_gaussian`.

    >>> round(gaussian(noise=1.0).epsilon(delta=1e-6), 6)
    4.886554
    """
    return GaussianGuarantee(check.moderate(noise=noise), unit=unit_of(unit, relation))


@check.arguments
def discrete_laplace(
    scale: float, sensitivity: int = 1, *, unit: str | Unit = "record", relation: str | None = None
) -> Guarantee:
    """The guarantee of integer Laplace (geometric) noise for an answer with an integer sensitivity.

    **Guarantee.** It is (sensitivity/scale)-DP (Ghosh, Roughgarden, Sundararajan 2009), with the
    exact curve for δ > 0.

    >>> discrete_laplace(scale=4, sensitivity=2).epsilon(delta=0)
    0.5
    """
    scale, sensitivity = check.moderate(scale=scale), check.whole(sensitivity=sensitivity)
    return DiscreteLaplaceGuarantee(scale, sensitivity, unit=unit_of(unit, relation))


@check.arguments
def discrete_gaussian(
    scale: float, sensitivity: int = 1, *, unit: str | Unit = "record", relation: str | None = None
) -> Guarantee:
    """The guarantee of integer Gaussian noise, P(z) ∝ e^(-z²/2·scale²), for an answer with an
    integer sensitivity.

    **Guarantee.** It is (sensitivity/scale)²/2-zCDP (Canonne, Kamath, Steinke 2020), with the exact
    curve of the discrete distribution where its outcomes can be listed. That curve is not the one
    of `gaussian`.

    >>> round(discrete_gaussian(scale=2).concentrated(), 9)
    0.125
    """
    scale, sensitivity = check.moderate(scale=scale), check.whole(sensitivity=sensitivity)
    return DiscreteGaussianGuarantee(scale, sensitivity, unit=unit_of(unit, relation))


@check.arguments
def randomized_response(
    epsilon: float, outcomes: int = 2, *, unit: str | Unit = "record", relation: str | None = None
) -> Guarantee:
    """The guarantee of randomized response over two or more outcomes.

    **Guarantee.** The truth is e^ε times as likely as each other outcome, so it is ε-DP (Warner
    1965; Kairouz, Oh, Viswanath 2016), with the exact curve for δ > 0.

    >>> randomized_response(1.0).epsilon(delta=0)
    1.0
    """
    epsilon, outcomes = check.moderate(epsilon=epsilon), check.whole(at_least=2, outcomes=outcomes)
    return RandomizedResponseGuarantee(epsilon, outcomes, unit=unit_of(unit, relation))


@check.arguments
def leaky(delta: float, *, unit: str | Unit = "record", relation: str | None = None) -> Guarantee:
    """The guarantee of a mechanism that reveals its input with probability δ and nothing otherwise.

    **Guarantee.** It is (0, δ)-DP. It often stands for the part of a step that may fail.

    >>> leaky(1e-3).epsilon(delta=1e-3)
    0.0
    """
    return LeakyGuarantee(check.inner_probability(delta=delta), unit=unit_of(unit, relation))


@check.arguments
def leaky_randomized_response(
    epsilon: float, delta: float, *, unit: str | Unit = "record", relation: str | None = None
) -> Guarantee:
    """The guarantee of randomized response that also reveals its input with probability δ.

    **Guarantee.** It is (ε, δ)-DP, and the worst mechanism that is (Kairouz, Oh, Viswanath 2015,
    Theorem 3.2).

    >>> leaky_randomized_response(1.0, 1e-3).epsilon(delta=1e-3)
    1.0
    """
    epsilon, delta = check.moderate(epsilon=epsilon), check.inner_probability(delta=delta)
    return LeakyRandomizedResponseGuarantee(epsilon, delta, unit=unit_of(unit, relation))


@check.arguments
def exponential(epsilon: float, *, unit: str | Unit = "record", relation: str | None = None) -> Guarantee:
    """The guarantee of the exponential mechanism calibrated to ε, or of report-noisy-max with
    Gumbel noise.

    **Guarantee.** It is ε-DP, and its losses span at most ε (bounded range), hence ε²/8-zCDP
    (Cesar, Rogers 2021, Lemma 3.4). What would break it: a score that moves by more than its
    sensitivity.

    >>> round(exponential(1.0).concentrated(), 9)
    0.125
    """
    return ExponentialGuarantee(check.moderate(epsilon=epsilon), unit=unit_of(unit, relation))
