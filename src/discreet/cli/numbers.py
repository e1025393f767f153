# SPDX-License-Identifier: Apache-2.0
"""Words to numbers: the checks of the library, with errors that name the flag."""

from __future__ import annotations

from collections.abc import Callable

from discreet.errors import BadParameter


def number(name: str, word: str, accepts: Callable[..., float], fix: str) -> float:
    """A number that a check accepts, or the error of the check with the flag as its Fix."""
    try:
        value = float(word)
    except ValueError:
        raise _number_error(name, word, fix) from None
    return _check_number(name, value, accepts, fix)


def whole(name: str, word: str, accepts: Callable[..., float], fix: str) -> int:
    """A whole number; `1e6` is one, `2.5` is not."""
    try:
        value: float | int = int(word)
    except ValueError:
        value = number(name, word, lambda **named: next(iter(named.values())), fix)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return int(_check_number(name, value, accepts, fix))


def _check_number(name: str, value: float, accepts: Callable[..., float], fix: str) -> float:
    try:
        return accepts(**{name: value})
    except BadParameter as error:
        raise BadParameter(error.code, error.what, why=error.why, fix=fix) from None


def _number_error(name: str, word: str, fix: str) -> BadParameter:
    if word.startswith("--") or not word:
        return BadParameter(
            "DP107",
            f"{name} needs a value, and there is none.",
            why="the guarantee is computed from this number; there is no default for it.",
            fix=fix,
        )
    return BadParameter(
        "DP104",
        f"{name} must be a number, not {word!r}.",
        why="every bound is computed from it.",
        fix=fix,
    )
