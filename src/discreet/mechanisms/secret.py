# SPDX-License-Identifier: Apache-2.0
"""A value that was read from private data and cannot be shown by accident.

    loss = per_instance_loss(mechanism, answer, answer_without)  # Secret: <secret: what one record loses>
    loss.reveal(because="debugging on synthetic data")  # the number

**Guarantee.** The value leaves by `reveal` alone. Printing, formatting, comparing, computing,
iterating, pickling, copying and turning into JSON either show "<secret: …>" or raise DP206; no text
that they produce depends on the value.

Why it holds: the value lives in the closure of a function, not in an attribute, and every other
operation is one that `object` has by itself, or is refused below. What would break it: a debugger,
which is not an accident.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NoReturn, TypeVar

from discreet.errors import BadParameter, UnsupportedGuarantee
from discreet.mechanisms.callbacks import call_quietly

__all__ = ["Secret"]

Value = TypeVar("Value")

_REASON = 10  # letters that a reason has, at least


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise UnsupportedGuarantee(
        "DP206",
        "a secret value was about to be used as if it were public.",
        why="it was computed from private data without noise, and no guarantee covers it.",
        fix="secret.reveal(because='it never leaves this machine')",
    )


class Secret(Generic[Value]):
    """A value behind a door that must be opened on purpose.

    **Guarantee.** As above. `apply` computes with what is inside, and its result is a secret again.

    >>> loss = Secret(0.25, "what Ann loses")
    >>> print(f"{loss} {[loss]}")
    <secret: what Ann loses> [<secret: what Ann loses>]
    >>> float(loss)
    Traceback (most recent call last):
    discreet.errors.UnsupportedGuarantee: DP206  a secret value was about to be used as if it were public...
    >>> loss.apply(lambda epsilon: 4 * epsilon).reveal(because="the data are made up")
    1.0
    """

    __slots__ = ("__weakref__", "_open", "meaning")

    def __init__(self, value: Value, meaning: str) -> None:
        self.meaning = str(meaning)
        self._open: Callable[[], Value] = lambda: value

    def reveal(self, *, because: str) -> Value:
        """The value, for whoever states a reason of ten letters or more."""
        if not isinstance(because, str) or len(because.strip()) < _REASON:
            raise BadParameter(
                "DP104",
                "reveal needs a reason in words.",
                why="whoever reads the code must see why a value without noise may be seen here.",
                fix="secret.reveal(because='it never leaves this machine')",
            )
        return self._open()

    def apply(self, function: Callable[[Value], Any], meaning: str | None = None) -> Secret[Any]:
        """A function of the value, as a secret; of what the function raises only that it did is
        told.
        """
        failed = object()
        result = call_quietly(function, self._open(), instead=failed)
        if result is failed:
            raise UnsupportedGuarantee(
                "DP206",
                "the function of a secret value failed, and its error is not shown.",
                why="the text of the error could hold the value.",
                fix="try the function on a public value of the same kind",
            )
        return Secret(result, self.meaning if meaning is None else meaning)

    def __repr__(self) -> str:
        return f"<secret: {self.meaning}>"

    def __format__(self, _: str) -> str:
        return repr(self)

    __bool__ = __float__ = __int__ = __index__ = __complex__ = __round__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __pow__ = __rpow__ = __neg__ = __abs__ = _refuse
    __len__ = __iter__ = __getitem__ = __contains__ = __call__ = _refuse
    __array__ = __reduce_ex__ = __copy__ = __deepcopy__ = _refuse
    __hash__ = _refuse  # a hash shows whether two are equal
