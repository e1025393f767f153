# SPDX-License-Identifier: Apache-2.0
"""Argument checks: each returns the value it accepts, or raises a coded error.

    epsilon = check.positive(epsilon=epsilon)

Each check takes exactly one keyword argument, so that the message can name the parameter. A bool is
not a number here: `True` is refused where a number is expected, because it is nearly always a slip.
"""

from __future__ import annotations

import inspect
import math
import numbers
import os
from collections.abc import Callable, Collection
from datetime import date, datetime
from difflib import get_close_matches
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from discreet.errors import BadParameter, EngineFailed

#: Parameters beyond this (or beyond its inverse) are refused.
_TINIEST = 1e-100
#: No mechanism runs more often than this.
_MOST = 10**15

#: What to pass for a probability of a name; of other numbers 1.0 is a fair example.
_EXAMPLES = {"delta": "1e-6", "rate": "0.01", "confidence": "0.95", "rank": "0.5", "false_alarm": "0.01"}

_NUMBER_WHY = "every bound is computed from this number."


def real(**named: object) -> float:
    """A finite real number."""
    name, value = _one(named)
    example = f"{name}={_EXAMPLES.get(name, '1.0')}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise BadParameter(
            "DP104",
            f"{name} must be a number, not {_kind(value)}.",
            why=_NUMBER_WHY,
            fix=f"pass a plain number, for example {example}",
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise BadParameter(
            "DP101",
            f"{name} must be finite, not {number}.",
            why=_NUMBER_WHY,
            fix=f"pass a finite number, for example {example}",
        )
    return number


def positive(**named: object) -> float:
    """A finite number above zero."""
    return _above(named, 0.0, strict=True)


def moderate(**named: object) -> float:
    """A number above zero that arithmetic can square and invert: between 1e-100 and 1e100."""
    name, _ = _one(named)
    number = positive(**named)
    if not _TINIEST <= number <= 1 / _TINIEST:
        raise BadParameter(
            "DP102",
            f"{name} must lie between {_TINIEST:g} and {1 / _TINIEST:g}, not {number!r}.",
            why="beyond that its square or its inverse has no exact meaning in floating point.",
            fix=f"pass {name}=1.0, or change the unit that it is measured in",
        )
    return number


def not_negative(**named: object) -> float:
    """A finite number that is zero or more."""
    return _above(named, 0.0, strict=False)


def above_one(**named: object) -> float:
    """A finite number above one (a Rényi order)."""
    return _above(named, 1.0, strict=True)


def delta(**named: object) -> float:
    """A number in [0, 1): the δ of an (ε, δ) statement."""
    return _within(named, 0.0, 1.0, closed_above=False)


def probability(**named: object) -> float:
    """A number in [0, 1]."""
    return _within(named, 0.0, 1.0, closed_above=True)


def inner_probability(**named: object) -> float:
    """A number strictly between 0 and 1."""
    return _within(named, 0.0, 1.0, closed_above=False, closed_below=False)


def rate(**named: object) -> float:
    """A sampling rate in (0, 1], not below 1e-100."""
    _within(named, 0.0, 1.0, closed_above=True, closed_below=False)
    return moderate(**named)


def whole(*, at_least: int = 1, **named: object) -> int:
    """A whole number, `at_least` or more (a count, a group size, an integer sensitivity)."""
    name, value = _one(named)
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise BadParameter(
            "DP103",
            f"{name} must be a whole number, not {_kind(value)}.",
            why="a mechanism runs a whole number of times; a fraction of a run has no privacy meaning.",
            fix=f"pass an int, for example {name}={max(at_least, 10)}",
        )
    if value < at_least:
        raise BadParameter(
            "DP102",
            f"{name} must be {at_least} or more, not {int(value)}.",
            why="the guarantee of fewer runs than that is not what was asked.",
            fix=f"pass {name}={at_least} or more",
        )
    if int(value) > _MOST:
        raise BadParameter(
            "DP102",
            f"{name} must be at most {_MOST:.0e}.",
            why="nothing runs that often, and rounding errors would outgrow the answer.",
            fix=f"pass {name}={_MOST:.0e} or less",
        )
    return int(value)


def choice(allowed: Collection[str], **named: object) -> str:
    """One of a few words."""
    name, value = _one(named)
    if not isinstance(value, str) or value not in allowed:
        words = ", ".join(repr(word) for word in allowed)
        raise BadParameter(
            "DP105",
            f"{name} must be one of {words}.",
            why="each choice has its own theorem; an unknown one has none.",
            # Which relation, or which unit, is meant is not ours to decide, so all are listed.
            fix="pass " + "  or  ".join(f"{name}={word!r}" for word in allowed),
        )
    return value


def flag(**named: object) -> bool:
    """True or False, and nothing that is only like them."""
    name, value = _one(named)
    if isinstance(value, bool):
        return value
    raise BadParameter(
        "DP104",
        f"{name} must be True or False, not {_kind(value)}.",
        why="it changes what is guaranteed, so it is never guessed.",
        fix=f"{name}=False",
    )


def day(**named: object) -> date:
    """A day, as a date or a text in ISO form."""
    name, value = _one(named)
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        return date.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        raise BadParameter(
            "DP104",
            f"{name} must be a day, such as '2026-02-01', not {_kind(value)}.",
            why="periods begin and end on days.",
            fix=f'{name}="2026-02-01"',
        ) from None


def function(**named: object) -> Callable[..., Any]:
    """Something that can be called."""
    name, value = _one(named)
    if callable(value):
        return cast(Callable[..., Any], value)
    raise BadParameter(
        "DP104",
        f"{name} must be a function, not {_kind(value)}.",
        why="it is evaluated when the answer is drawn.",
        fix=f"{name}=lambda value: value",
    )


def _above(named: dict[str, object], floor: float, *, strict: bool) -> float:
    name, _ = _one(named)
    number = real(**named)
    if number > floor or (not strict and number == floor):
        return number
    words = f"above {floor:g}" if strict else f"{floor:g} or more"
    raise BadParameter(
        "DP102",
        f"{name} must be {words}, not {number!r}.",
        why="outside that range the theorem behind this quantity does not hold.",
        fix=f"pass {name}={floor + 1:g}",
    )


def _within(
    named: dict[str, object], low: float, high: float, *, closed_above: bool, closed_below: bool = True
) -> float:
    name, _ = _one(named)
    number = real(**named)
    fits_below = number > low or (closed_below and number == low)
    fits_above = number < high or (closed_above and number == high)
    if fits_below and fits_above:
        return number
    interval = f"{'[' if closed_below else '('}{low:g}, {high:g}{']' if closed_above else ')'}"
    raise BadParameter(
        "DP102",
        f"{name} must lie in {interval}, not {number!r}.",
        why="it is a probability, and outside that range it guarantees nothing.",
        fix=f"pass {name}={_EXAMPLES.get(name, '0.01')}",
    )


def _one(named: dict[str, object]) -> tuple[str, object]:
    ((name, value),) = named.items()
    return name, value


def _kind(value: object) -> str:
    return f"{type(value).__name__}" if not isinstance(value, float | int) else f"{value!r}"


def random_bytes(count: int) -> bytes:
    """Bytes from the operating system's generator; DP805 if it gives none."""
    try:
        return os.urandom(count)
    except (OSError, RuntimeError):
        raise EngineFailed(
            "DP805",
            "the operating system gives no random bits.",
            why="noise that can be guessed protects nobody.",
            fix="let this process read from the system's generator (getrandom, /dev/urandom), and ask again.",
        ) from None


# --- how a function is called ---------------------------------------------------------------------

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Kind = TypeVar("Kind")


def arguments(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A function whose misspelt, missing and surplus arguments are refused with a code and the name
    that was meant.

    A call that Python itself would refuse with a TypeError never began, so nothing was computed.
    What the function raises is not touched, and no value that was passed is in the message: it may
    be private.

    >>> arguments(positive)(1.0)
    Traceback (most recent call last):
    discreet.errors.BadParameter: DP107  positive takes no argument without a name...
    """

    @wraps(function)
    def call(*args: Parameters.args, **named: Parameters.kwargs) -> Result:
        try:
            return function(*args, **named)
        except TypeError:
            error = _argument_error(function, args, named)
            if error is None:
                raise
        raise error

    return call


def named_fields(kind: type[Kind]) -> type[Kind]:
    """A class that is made as `arguments` calls a function; it stands above `@dataclass`."""
    kind.__init__ = arguments(kind.__init__)  # type: ignore[method-assign]
    return kind


def _argument_error(
    function: Callable[..., Any], args: tuple[object, ...], named: Collection[str]
) -> BadParameter | None:
    """What is wrong with the names of a call; None if nothing is, and the error came from inside."""
    parameters = list(inspect.signature(function).parameters.values())
    listed = {parameter.name: parameter for parameter in parameters if parameter.name not in {"self", "cls"}}
    title, kinds = _title(function), {parameter.kind for parameter in parameters}
    positional = [name for name, parameter in listed.items() if parameter.kind in _BY_PLACE]
    count = len(args) - (len(parameters) - len(listed))
    # A function that takes any name checks them itself.
    unknown = [] if inspect.Parameter.VAR_KEYWORD in kinds else [name for name in named if name not in listed]
    if unknown:
        return _unknown_argument_error(title, unknown[0], listed)
    if count > len(positional) and inspect.Parameter.VAR_POSITIONAL not in kinds:
        return _nameless_argument_error(
            title, positional, [name for name in listed if name not in {*positional, *named}]
        )
    filled = {*positional[:count], *named}
    needed = [
        name
        for name, parameter in listed.items()
        if parameter.default is parameter.empty and parameter.kind not in _SEVERAL
    ]
    missing = [name for name in needed if name not in filled]
    twice = [name for name in named if name in positional[:count]]
    if not missing and not twice:
        return None
    example = _EXAMPLES.get(missing[0], _CALLED_WITH.get(missing[0], "…")) if missing else "…"
    return BadParameter(
        "DP107",
        f"{title} needs {', '.join(missing)}." if missing else f"{title} was given {twice[0]} twice.",
        why="there is no default for what a guarantee is computed from, and nothing is ignored.",
        fix=f"{title}({(missing or twice)[0]}={example}{', …' if len(listed) > 1 else ''})",
    )


def _unknown_argument_error(title: str, name: str, listed: Collection[str]) -> BadParameter:
    near = get_close_matches(name, listed, n=1, cutoff=0.5)
    example = "".join(_EXAMPLES.get(match, _CALLED_WITH.get(match, "…")) for match in near)
    return BadParameter(
        "DP105",
        f"{title} has no argument {name!r}.",
        why="a misspelt name would leave the default in place and change the guarantee.",
        fix=f"{near[0]}={example}   (did you mean this?)" if near else f"one of: {', '.join(listed)}",
    )


def _nameless_argument_error(title: str, places: list[str], others: list[str]) -> BadParameter:
    taken = f"only {', '.join(places)}" if places else "no argument"
    return BadParameter(
        "DP107",
        f"{title} takes {taken} without a name.",
        why="numbers without names are easily swapped by mistake.",
        fix=f"{title}({', '.join(f'{name}=…' for name in [*places, *others][:3])})",
    )


_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_SEVERAL = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
#: Values to show where one is missing.
_CALLED_WITH = {
    "epsilon": "1.0",
    "sensitivity": "1",
    "rho": "0.1",
    "scale": "10",
    "noise": "1.0",
    "count": "3",
}


def _title(function: Callable[..., Any]) -> str:
    """What a function is called by those who call it: a class by its own name."""
    *_, owner, name = ["", *function.__qualname__.split(".")]
    return owner if name == "__init__" else name
