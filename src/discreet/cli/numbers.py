# SPDX-License-Identifier: Apache-2.0
"""Words to numbers: the checks of the library, with errors in the words of the command line."""

from __future__ import annotations

from collections.abc import Callable

from discreet.errors import BadParameter


def number(name: str, word: str, accepts: Callable[..., float], fix: str) -> float:
    """A number that a check accepts, or the check's error in the words of the command line."""
    try:
        value = float(word)
    except ValueError:
        raise _no_number(name, word, fix) from None
    return _checked(name, value, accepts, fix)


def whole(name: str, word: str, accepts: Callable[..., float], fix: str) -> int:
    """A whole number; `1e6` is one, `2.5` is not."""
    try:
        value: float | int = int(word)
    except ValueError:
        value = number(name, word, lambda **named: next(iter(named.values())), fix)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return int(_checked(name, value, accepts, fix))


def _checked(name: str, value: float, accepts: Callable[..., float], fix: str) -> float:
    try:
        return accepts(**{name: value})
    except BadParameter as error:
        raise BadParameter(error.code, error.what, why=error.why, fix=fix) from None


def _no_number(name: str, word: str, fix: str) -> BadParameter:
    if word.startswith("--") or not word:
        return BadParameter(
            "DP107",
            f"{name} needs a value, and there is none.",
            why="the number is what the promise is computed from; there is no default for it.",
            fix=fix,
        )
    return BadParameter(
        "DP104",
        f"{name} must be a number, not {word!r}.",
        why="every bound is computed from it.",
        fix=fix,
    )
