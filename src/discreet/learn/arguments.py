# SPDX-License-Identifier: Apache-2.0
"""Calls whose arguments do not fit a signature: a coded error replaces Python's own, and nothing is
called.

    @checked_call
    def tune(estimators, X, y, *, mean_runs=10): …

**Guarantee.** Only the names and the number of the arguments decide whether a call fits, never a
value.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

from discreet.errors import BadParameter

__all__ = ["WrongArguments", "check_call", "checked_call", "checked_class"]

C = TypeVar("C", bound=type)
P = ParamSpec("P")
T = TypeVar("T")

#: Parameters that other libraries have and a private one cannot: why, and what to do.
_NOT_OFFERED = {
    "random_state": ("noise that anybody can repeat hides nothing.", "leave random_state out"),
    "seed": ("noise that anybody can repeat hides nothing.", "leave seed out"),
    "sample_weight": (
        "a record of weight w changes every sum w times as much, and no bound on the weights is declared.",
        "leave sample_weight out",
    ),
    "n_jobs": ("one fit runs in one process.", "leave n_jobs out"),
}


class WrongArguments(BadParameter, TypeError):
    """A call with an unknown argument, or without a required one. Nothing was called."""


def check_call(
    function: Callable[..., object], name: str, positional: tuple[object, ...], named: Mapping[str, object]
) -> None:
    """Refuse arguments that do not fit the signature. `positional` starts with the object if it is
    a method.
    """
    signature = _signature(function)
    try:
        signature.bind(*positional, **named)
    except TypeError as misfit:
        raise _wrong_arguments_error(signature, name, str(misfit), named) from None


def checked_call(function: Callable[P, T]) -> Callable[P, T]:
    """The same function, which raises a coded error for arguments that do not fit."""
    name = function.__qualname__.replace(".__init__", "")

    @wraps(function)
    def call(*positional: P.args, **named: P.kwargs) -> T:
        check_call(function, name, positional, named)
        return function(*positional, **named)

    return call


def checked_class(cls: C) -> C:
    """The same class, whose constructor and public methods raise a coded error for arguments that
    do not fit.
    """
    for name, value in list(vars(cls).items()):
        if inspect.isfunction(value) and (name == "__init__" or not name.startswith("_")):
            setattr(cls, name, checked_call(value))
    return cls


@lru_cache(maxsize=512)
def _signature(function: Callable[..., object]) -> inspect.Signature:
    return inspect.signature(function)


def _wrong_arguments_error(
    signature: inspect.Signature, name: str, misfit: str, named: Mapping[str, object]
) -> WrongArguments:
    known = [parameter for parameter in signature.parameters if parameter != "self"]
    takes = f"{name} takes {', '.join(known)}." if known else f"{name} takes no arguments."
    unknown = [argument for argument in named if argument not in known]
    if not unknown:
        return WrongArguments("DP107", f"{name}: {misfit}.", why=takes, fix=_example(signature, name))
    wrong = unknown[0]
    what = f"{name} has no parameter {wrong!r}."
    if wrong in _NOT_OFFERED:
        why, fix = _NOT_OFFERED[wrong]
        return WrongArguments("DP105", what, why=why, fix=fix)
    close = difflib.get_close_matches(wrong, known, 1)
    return WrongArguments(
        "DP105", what, why=takes, fix=f"write {close[0]}=" if close else f"leave {wrong} out"
    )


def _example(signature: inspect.Signature, name: str) -> str:
    """A call with all required arguments."""
    required = [
        parameter.name if parameter.kind is not parameter.KEYWORD_ONLY else f"{parameter.name}=…"
        for parameter in signature.parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and parameter.name != "self"
    ]
    return f"{name}({', '.join(required)})"
