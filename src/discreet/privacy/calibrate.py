# SPDX-License-Identifier: Apache-2.0
"""The least noise (or the most steps) whose guarantee still implies a target.

**Guarantee.** The result implies the target, never only nearly; it is within `tolerance` (relative)
of the best one that the accountant can prove, if the family is monotone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from discreet import check
from discreet.errors import BadParameter, CannotCertify
from discreet.exact import bisect, bisect_whole, geometric_mean
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.order import excess, implies, roughly_implies

_SMALLEST, _LARGEST = 1e-12, 1e12
_MOST_STEPS = 10**12


@check.arguments
def calibrate(
    family: Callable[[Any], Guarantee],
    to: Guarantee,
    *,
    between: tuple[float, float] | None = None,
    integer: bool = False,
    tolerance: float = 1e-6,
) -> float:
    """The least noise, or the greatest number of steps, whose guarantee still implies a target.

    **Guarantee.** `family(calibrate(family, to))` implies `to`: it is proved, never only nearly so.
    The parameter is within `tolerance` (relative) of the best one that can be proved, if the family
    is monotone. What would break it: a family that returns another guarantee at another call.

    Without `between` a greater parameter is taken to be safer (noise), and the least that will do
    is found; with `integer=True` a smaller one is taken to be safer (steps), and the most is found.
    With `between=(low, high)` the direction is found by asking at both ends.

    >>> from discreet import privacy
    >>> calibrate(lambda steps: steps * privacy.pure(0.1), to=privacy.pure(1.0), integer=True)
    10
    """
    _check_target(family, to)
    family = _validate_family(family)
    if integer:
        return _integer_edge(family, to, between)
    tolerance = check.inner_probability(tolerance=tolerance)
    safe, unsafe = _bracket(family, to, between)
    return safe if unsafe is None else _edge(family, to, safe, unsafe, tolerance)


def _edge(
    family: Callable[[Any], Guarantee], to: Guarantee, safe: float, unsafe: float, tolerance: float
) -> float:
    """Close in on the edge by chords of the excess over the logarithm of the parameter, halving now
    and then.

    Each chord is aimed a third of the tolerance to the safe side, so that two good chords close the
    bracket.
    """
    above, below = excess(family(unsafe), to), excess(family(safe), to)
    for turn in range(100):
        low, high = math.log(safe), math.log(unsafe)
        width = abs(high - low)
        if width <= tolerance:
            break
        share = 0.5
        if turn % 4 != 3 and math.isfinite(above) and math.isfinite(below):
            aside = min(0.33 * tolerance / width, 0.25) * (-1 if turn % 2 == 0 else 2)
            share = -below / (above - below) + aside
        tried = math.exp(low + (high - low) * min(max(share, 1e-6), 1 - 1e-6))
        value = excess(family(tried), to)
        if value <= 0 or (math.isinf(value) and implies(family(tried), to)):
            safe, below = tried, value
        else:
            unsafe, above = tried, value
    return safe


def _bracket(
    family: Callable[[Any], Guarantee], to: Guarantee, between: tuple[float, float] | None
) -> tuple[float, float | None]:
    """A parameter that implies the target and one that does not (None if the whole range does)."""
    if between is not None:
        low, high = check.positive(low=between[0]), check.positive(high=between[1])
        good = [end for end in (low, high) if implies(family(end), to)]
        if not good:
            raise _unreachable_error(to)
        if len(good) == 2:
            # both will do: the end that comes nearer to the target makes more of it
            return max(good, key=lambda end: excess(family(end), to)), None
        return good[0], high if good[0] == low else low
    start = _rough_edge(family, to)
    safe = start
    for factor in (1.1, 1.3, *[2.0] * 80):
        if not implies(family(safe / factor), to):
            return safe, safe / factor
        safe /= factor
        if safe < _SMALLEST:
            return safe, None
    return safe, None


def _rough_edge(family: Callable[[Any], Guarantee], to: Guarantee) -> float:
    """A parameter that implies the target, by a bound that costs little; it is near the edge, but
    not at it.
    """
    low, high = _SMALLEST, 1.0
    while not roughly_implies(family(high), to):
        low, high = high, 4 * high
        if high > _LARGEST:
            raise _unreachable_error(to)
    while high > _SMALLEST and low == _SMALLEST:
        if roughly_implies(family(high / 4), to):
            high /= 4
        else:
            low = high / 4
    if high <= low:
        return high
    # Both ends are a factor 4 apart; eight halvings of its logarithm leave less than 1 %.
    return bisect(
        lambda noise: roughly_implies(family(noise), to), yes=high, no=low, steps=8, middle=geometric_mean
    )[0]


def _integer_edge(
    family: Callable[[Any], Guarantee], to: Guarantee, between: tuple[float, float] | None
) -> int:
    low = check.whole(low=between[0]) if between is not None else 1
    high = check.whole(high=between[1]) if between is not None else None
    if implies(family(low), to):
        safe, step = low, 1
        while high is None or safe < high:
            tried = safe + step if high is None else min(high, safe + step)
            if not implies(family(tried), to):
                return bisect_whole(lambda count: implies(family(count), to), yes=safe, no=tried)
            safe, step = tried, 2 * step
            if safe > _MOST_STEPS:
                break
        return safe
    if high is None or not implies(family(high), to):
        raise _unreachable_error(to)
    return bisect_whole(lambda count: implies(family(count), to), yes=high, no=low)


def _check_target(family: object, to: object) -> None:
    if not callable(family) or not isinstance(to, Guarantee):
        raise BadParameter(
            "DP104",
            "calibrate needs a function from a parameter to a guarantee, and a guarantee to reach.",
            why="it searches the parameter whose guarantee just implies the target.",
            fix="calibrate(lambda z: 1_000 * privacy.gaussian(z), to=privacy.approximate(2, 1e-6))",
        )


def _validate_family(family: Callable[[Any], Any]) -> Callable[[Any], Guarantee]:
    """The family, which must really make guarantees."""

    def validated_family(parameter: Any) -> Guarantee:
        guarantee = family(parameter)
        _check_target(family, guarantee)
        return guarantee  # type: ignore[no-any-return]

    return validated_family


def _unreachable_error(to: Guarantee) -> CannotCertify:
    return CannotCertify(
        "DP302",
        f"no parameter in range was proved to imply {to!r}.",
        why="returning the nearest one would claim a guarantee that is not proved.",
        fix="allow a weaker target, or a wider range with  between=(low, high).",
    )
