# SPDX-License-Identifier: Apache-2.0
"""The partial order of guarantees: a implies b if everything with guarantee a provably has guarantee b.

There is no `<`: most pairs of guarantees cannot be compared, and a false answer must not look like a true one. `implies`
returns True only with a proof: through b's own currency if b is a plain statement ((ε, δ), ρ, a Rényi curve), else by
matching each mechanism of a with one of b of the same kind and no more noise.
"""

from __future__ import annotations

import math

from discreet.errors import BadParameter
from discreet.privacy import primitives as known
from discreet.privacy.guarantee import Composed, Guarantee, alternatives
from discreet.privacy.sampling import Sampled
from discreet.privacy.tradeoff import rough_delta
from discreet.privacy.unit import same_unit


def implies(a: Guarantee, b: Guarantee) -> bool:
    """See `Guarantee.implies`."""
    if not isinstance(b, Guarantee):
        raise BadParameter(
            "DP104",
            "implies compares with another guarantee.",
            why="a number alone does not say which promise it is.",
            fix="guarantee.implies(privacy.approximate(1.0, 1e-6))",
        )
    same_unit([a.unit, b.unit])
    return a == b or excess(a, b) <= 0 or _matched(a, b) or _reaches(a, b)


def _reaches(a: Guarantee, b: Guarantee) -> bool:
    """The same curve read the other way round: both readings are proofs, and they round differently."""
    return isinstance(b, known.Approximate) and b.delta_ > 0 and a.epsilon(b.delta_) <= b.epsilon_


def excess(a: Guarantee, b: Guarantee) -> float:
    """How far a misses a plain statement b, on a log scale: 0 or less if a implies b; ∞ if b is no such statement."""
    match b:
        case known.Pure():
            return _log_ratio(a.epsilon(0.0), b.epsilon_)
        case known.Approximate():
            return _log_ratio(a.delta(b.epsilon_), b.delta_)
        case known.Leaky():
            return _log_ratio(a.delta(0.0), b.delta_)
        case known.Concentrated():
            return max(_beyond(bag.concentrated, bag.failure, b) for bag in alternatives(a))
        case known.Renyi():
            return max(_log_ratio(a.renyi(order), epsilon) for order, epsilon in b.points)
        case _:
            return math.inf


def roughly_implies(a: Guarantee, b: Guarantee) -> bool:
    """Whether a cheap bound already proves that a implies b; False proves nothing."""
    if isinstance(b, known.Approximate):
        return rough_delta(a, b.epsilon_) <= b.delta_
    return implies(a, b)


def _beyond(found: tuple[float, float], failure: float, b: known.Concentrated) -> float:
    if failure > b.delta_ or found[0] > b.xi:
        return math.inf
    return _log_ratio(found[1], b.rho)


def _matched(a: Guarantee, b: Guarantee) -> bool:
    """Whether each mechanism of a has its own, no more private, counterpart in b."""
    if isinstance(a, known.Gaussian | Composed) and isinstance(b, known.Gaussian | Composed):
        slopes = [[bag.gaussian for bag in alternatives(side)] for side in (a, b)]
        if all(mu is not None for side in slopes for mu in side):
            return max(slopes[0]) <= max(slopes[1])  # type: ignore[type-var,operator]
    room = dict(b.parts) if isinstance(b, Composed) else {b: 1}
    for part, count in a.parts if isinstance(a, Composed) else ((a, 1),):
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
        case (known.Gaussian(), known.Gaussian()):
            return a.noise >= b.noise
        case (known.Laplace(), known.Laplace()):
            return a.scale >= b.scale
        case (known.Exponential(), known.Exponential()):
            return a.epsilon_ <= b.epsilon_
        case (known.RandomizedResponse(), known.RandomizedResponse()):
            return a.outcomes == b.outcomes and a.epsilon_ <= b.epsilon_
        case (known.Primitive(), known.Pure()):
            return a.failure == 0 and a.worst_loss() <= b.epsilon_
        case (Sampled(), Sampled()):
            same = a.scheme == b.scheme and a.unit == b.unit and a.rate <= b.rate
            return same and a.inner.unit == b.inner.unit and implies(a.inner, b.inner)
        case _:
            return a == b


def _log_ratio(found: float, allowed: float) -> float:
    if found <= allowed:
        return -math.inf if found == 0 else math.log(found / allowed) if allowed < math.inf else -math.inf
    return math.inf if math.isinf(found) or allowed == 0 else math.log(found / allowed)
