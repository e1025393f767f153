# SPDX-License-Identifier: Apache-2.0
"""Objects that print as the expression that made them.

    repr(Laplace(epsilon=1, sensitivity=1))    # "Laplace(epsilon=1, sensitivity=1)"

**Guarantee.** Only classes of `mechanisms` and `graphs` print their arguments: those are public.
A class of somebody else may hold data, and prints as Python prints every object. A function prints
as its name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import partial, wraps
from types import MethodType
from typing import Any

__all__ = ["CallRepr"]

_PUBLIC = ("discreet.mechanisms.", "discreet.graphs.")


class CallRepr:
    """Base of the classes that remember the arguments of their constructor.

    >>> from discreet.mechanisms import Laplace
    >>> Laplace(epsilon=1, sensitivity=1)
    Laplace(epsilon=1, sensitivity=1)
    """

    _call: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        if "__init__" in vars(cls) and cls.__module__.startswith(_PUBLIC):
            cls.__init__ = _remember_call(cls.__init__)  # type: ignore[method-assign]

    def __repr__(self) -> str:
        if not type(self).__module__.startswith(_PUBLIC):
            return object.__repr__(self)
        args, named = self._call
        if is_dataclass(self):
            named = {field.name: getattr(self, field.name) for field in fields(self) if field.repr}
        return f"{type(self).__name__}({_arguments(args, named)})"


def _remember_call(constructor: Callable[..., None]) -> Callable[..., None]:
    @wraps(constructor)
    def remember(self: CallRepr, *args: object, **named: object) -> None:
        # The constructor of the class itself runs before that of its base, so the first call is
        # kept.
        vars(self).setdefault("_call", (args, named))
        constructor(self, *args, **named)

    return remember


def _arguments(args: tuple[Any, ...], named: dict[str, Any]) -> str:
    return ", ".join([*map(_source, args), *(f"{name}={_source(value)}" for name, value in named.items())])


def _source(value: Any) -> str:
    """The source of an argument. A callable may hold data, so it is shown by its name alone."""
    if isinstance(value, partial):
        return f"partial({_arguments((value.func, *value.args), value.keywords)})"
    if isinstance(value, MethodType) and type(value.__self__).__module__.startswith(_PUBLIC):
        return f"{value.__self__!r}.{value.__name__}"
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        items = ", ".join(map(_source, value))
        return f"[{items}]" if isinstance(value, list) else f"({items}{',' * (len(value) == 1)})"
    if callable(value) and not type(value).__module__.startswith(_PUBLIC):
        return str(getattr(value, "__name__", "…"))
    return repr(value)
