# SPDX-License-Identifier: Apache-2.0
"""The search for one open number: the least noise, the greatest rate, the most runs.

**Guarantee.** The number that is found keeps the target exactly as it is printed, so it can be
typed again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any

from discreet.cli.terminal import round_to_side, working
from discreet.errors import CannotCertify

if TYPE_CHECKING:
    from discreet.cli.expression import GuaranteeExpression, OpenNumber
    from discreet.privacy.guarantee import Guarantee


class Safer(Enum):
    """Which way a number has to move to protect more."""

    MORE = "more"
    LESS = "less"
    FEWER = "fewer"


EXTREMES = {Safer.MORE: "the least", Safer.LESS: "the greatest", Safer.FEWER: "the most"}
#: How near the edge the search ends, relatively.
_TOLERANCE = 1e-6


def find_number(expression: GuaranteeExpression, number: OpenNumber, target: Guarantee) -> float | int:
    """The open number of an expression, on the safe side of the target."""
    turn = _falling(number.parameter) if number.safer is Safer.LESS else float
    return edge(expression.guarantee, target, number.safer, number.name, turn)


def edge(
    family: Callable[[Any], Guarantee],
    target: Guarantee,
    safer: Safer,
    name: str,
    turn: Callable[[float], float] = float,
) -> float | int:
    """The last number that keeps the target; `turn` maps (0, ∞) to the parameter so that more is
    safer.
    """
    from discreet.privacy.calibrate import calibrate

    try:
        with working(f"searching {EXTREMES[safer]} {name}"):
            if safer is Safer.FEWER:
                return int(calibrate(family, to=target, integer=True))
            exact = float(turn(calibrate(lambda z: family(turn(z)), to=target, tolerance=_TOLERANCE)))
            return next(
                number for number in _typeable_numbers(exact, safer) if family(number).implies(target)
            )
    except CannotCertify as error:
        raise CannotCertify(
            error.code,
            f"no {name} was proved to keep {target!r}.",
            why=error.why,
            fix="raise --epsilon or --delta, or spend less on the rest",
            bracket=error.bracket,
        ) from None


def _typeable_numbers(exact: float, safer: Safer) -> list[float]:
    """Numbers at the edge, the shortest first; the exact one, which is proved, is the last resort."""
    short = float(f"{exact:.4e}")
    near = [short] if math.isclose(short, exact, rel_tol=2 * _TOLERANCE) else []
    return [*near, round_to_side(exact, upwards=safer is Safer.MORE), exact]


def _falling(parameter: str) -> Callable[[float], float]:
    """Where less is safer the search walks along a falling map that stays in range."""
    if parameter == "delta":
        return lambda z: max(math.exp(-z), 1e-300)
    if parameter == "rate":
        return lambda z: min(1.0, 1 / z)
    return lambda z: 1 / z
