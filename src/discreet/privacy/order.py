# SPDX-License-Identifier: Apache-2.0
"""The partial order of guarantees: a implies b if everything with guarantee a provably has
guarantee b.

There is no `<`: most pairs of guarantees cannot be compared, and a false answer must not look like
a true one. `implies` returns True only with a proof: through b's own currency if b is a plain
statement ((ε, δ), ρ, a Rényi curve), else by matching each mechanism of a with one of b of the same
kind and no more noise.
"""

from __future__ import annotations

import math

from discreet.errors import BadParameter
from discreet.privacy import primitives as known
from discreet.privacy.guarantee import ComposedGuarantee, Guarantee, alternatives
from discreet.privacy.sampling import SampledGuarantee
from discreet.privacy.tradeoff import rough_delta
from discreet.privacy.unit import same_unit


def implies(a: Guarantee, b: Guarantee) -> bool:
    """See `Guarantee.implies`."""
    if not isinstance(b, Guarantee):
        raise BadParameter(
            "DP104",
            "implies compares with another guarantee.",
            why="a number alone does not say which guarantee it is.",
            fix="guarantee.implies(privacy.approximate(1.0, 1e-6))",
        )
    same_unit([a.unit, b.unit])
    return a == b or excess(a, b) <= 0 or _has_counterparts(a, b) or _reaches(a, b)


def _reaches(a: Guarantee, b: Guarantee) -> bool:
    """The same curve read the other way round: both readings are proofs, and they round
    differently.
    """
    return isinstance(b, known.ApproximateGuarantee) and b.delta_ > 0 and a.epsilon(b.delta_) <= b.epsilon_


def excess(a: Guarantee, b: Guarantee) -> float:
    """How far a misses a plain statement b, on a log scale: 0 or less if a implies b; ∞ if b is no
    such statement.
    """
    match b:
        case known.PureGuarantee():
            return _log_ratio(a.epsilon(0.0), b.epsilon_)
        case known.ApproximateGuarantee():
            return _log_ratio(a.delta(b.epsilon_), b.delta_)
        case known.LeakyGuarantee():
            return _log_ratio(a.delta(0.0), b.delta_)
        case known.ConcentratedGuarantee():
            return max(_beyond(bag.concentrated, bag.failure, b) for bag in alternatives(a))
        case known.RenyiGuarantee():
            return max(_log_ratio(a.renyi(order), epsilon) for order, epsilon in b.points)
        case _:
            return math.inf


def roughly_implies(a: Guarantee, b: Guarantee) -> bool:
    """Whether a cheap bound already proves that a implies b; False proves nothing."""
    if isinstance(b, known.ApproximateGuarantee):
        return rough_delta(a, b.epsilon_) <= b.delta_
    return implies(a, b)


def _beyond(bound: tuple[float, float], failure: float, b: known.ConcentratedGuarantee) -> float:
    if failure > b.delta_ or bound[0] > b.xi:
        return math.inf
    return _log_ratio(bound[1], b.rho)


def _has_counterparts(a: Guarantee, b: Guarantee) -> bool:
    """Whether each mechanism of a has its own, no more private, counterpart in b."""
    if isinstance(a, known.GaussianGuarantee | ComposedGuarantee) and isinstance(
        b, known.GaussianGuarantee | ComposedGuarantee
    ):
        slopes = [[bag.gaussian for bag in alternatives(side)] for side in (a, b)]
        if all(mu is not None for side in slopes for mu in side):
            return max(slopes[0]) <= max(slopes[1])  # type: ignore[type-var,operator]
    room = dict(b.parts) if isinstance(b, ComposedGuarantee) else {b: 1}
    for part, count in a.parts if isinstance(a, ComposedGuarantee) else ((a, 1),):
        needed = count
        for other in sorted(room, key=lambda candidate: candidate != part):
            if needed and _no_less_private(part, other):
                used = min(needed, room[other])
                room[other] -= used
                needed -= used
        if needed:
            return False
    return True


def _no_less_private(a: Guarantee, b: Guarantee) -> bool:
    """Two mechanisms of one kind, compared by their parameters."""
    match a, b:
        case (known.GaussianGuarantee(), known.GaussianGuarantee()):
            return a.noise >= b.noise
        case (known.LaplaceGuarantee(), known.LaplaceGuarantee()):
            return a.scale >= b.scale
        case (known.ExponentialGuarantee(), known.ExponentialGuarantee()):
            return a.epsilon_ <= b.epsilon_
        case (known.RandomizedResponseGuarantee(), known.RandomizedResponseGuarantee()):
            return a.outcomes == b.outcomes and a.epsilon_ <= b.epsilon_
        case (known.Primitive(), known.PureGuarantee()):
            return a.failure == 0 and a.worst_loss() <= b.epsilon_
        case (SampledGuarantee(), SampledGuarantee()):
            same = a.scheme == b.scheme and a.unit == b.unit and a.rate <= b.rate
            return same and a.inner.unit == b.inner.unit and implies(a.inner, b.inner)
        case _:
            return a == b


def _log_ratio(value: float, allowed: float) -> float:
    if value <= allowed:
        return -math.inf if value == 0 else math.log(value / allowed) if allowed < math.inf else -math.inf
    return math.inf if math.isinf(value) or allowed == 0 else math.log(value / allowed)
