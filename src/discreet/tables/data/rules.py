# SPDX-License-Identifier: Apache-2.0
"""Validates the description of a column, field by field. Every error is DP403.

**Guarantee.** A description that passes can be trusted by the compiler: bounds are two finite
values of the kind of the column, in increasing order; values are distinct and of that kind; and the
bounds fit into 64 bits on the grid. Everything else is refused before any row is read.
"""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from discreet.errors import BadDescription
from discreet.tables.algebra.types import WIDEST, days, micros

__all__ = [
    "EXAMPLES",
    "KINDS",
    "bounds_of",
    "closest",
    "description_error",
    "kind_of",
    "nearest",
    "places_of",
    "same_names_error",
    "truth_of",
    "values_of",
    "word_of",
]

KINDS = ("integer", "real", "decimal", "text", "boolean", "date", "timestamp", "other")
NUMBERS = ("integer", "real", "decimal")

#: Synonyms of the kinds.
_ALSO = {
    "int": "integer",
    "float": "real",
    "double": "real",
    "number": "real",
    "numeric": "decimal",
    "string": "text",
    "str": "text",
    "category": "text",
    "bool": "boolean",
    "datetime": "timestamp",
}
_MOST_PLACES = 62
_MOST_VALUES = 100_000
#: What a column of each kind may state, as it is written in a description.
EXAMPLES = {
    "integer": "bounds = [0, 60]",
    "real": "bounds = [0, 500]",
    "decimal": "bounds = [0, 500]",
    "date": "bounds = [2020-01-01, 2026-12-31]",
    "timestamp": "bounds = [2020-01-01T00:00:00Z, 2026-12-31T23:59:59Z]",
    "text": 'values = ["north", "south"]',
}


def same_names_error(where: str) -> BadDescription:
    """The refusal of two columns that SQL takes for one."""
    return description_error(
        where, "two of its columns differ only in upper and lower case.", "rename one of them"
    )


def description_error(where: str, what: str, fix: str, why: str = "") -> BadDescription:
    """The error (DP403) for a wrong description."""
    why = why or "every guarantee is computed from the description, so nothing in it is guessed."
    return BadDescription("DP403", f"{where}: {what}", why=why, fix=fix)


def nearest(word: str, known: Iterable[str]) -> str:
    """The most similar known word, or all of them."""
    words = [str(one) for one in known]
    close = difflib.get_close_matches(str(word), words, n=1, cutoff=0.5)
    return close[0] if close else " | ".join(words)


def closest(word: Any, known: Iterable[str]) -> str:
    """The most similar known word, or the first one, for a fix that can be pasted."""
    words = list(known)
    return (difflib.get_close_matches(str(word), words, n=1, cutoff=0.5) or words)[0]


def word_of(where: str, value: Any) -> str:
    """A non-empty text."""
    if isinstance(value, str) and value.strip():
        return value
    raise description_error(
        where, "it must be a text, and not empty.", f'{where.rsplit(maxsplit=1)[-1]} = "visits"'
    )


def kind_of(where: str, kind: Any) -> str:
    """One of KINDS; a few synonyms are accepted."""
    word = _ALSO.get(kind, kind) if isinstance(kind, str) else kind
    if word in KINDS:
        return str(word)
    near = closest(kind, [*KINDS, *_ALSO])
    fix = f'type = "{near}",  in Python  dp.column("{near}")   (one of {", ".join(KINDS)})'
    raise description_error(where, "it must be a known type of column.", fix)


def bounds_of(where: str, kind: str, bounds: Any) -> tuple[Any, Any] | None:
    """Validated bounds: two values of the kind, the lower one first."""
    if bounds is None:
        return None
    if kind not in EXAMPLES or kind == "text":
        fix = 'if it holds numbers:  type = "integer",  in Python  dp.column("integer", …);  else remove its bounds'
        raise description_error(where, f"a column of type {kind} cannot have bounds.", fix)
    example = EXAMPLES[kind]
    if isinstance(bounds, str) or not isinstance(bounds, list | tuple) or len(bounds) != 2:
        raise description_error(where, "bounds must be two values, the lower one first.", example)
    low, high = (_value(where, kind, end, example) for end in bounds)
    if not low < high:
        turned = example if low == high else f"bounds = [{bounds[1]}, {bounds[0]}]"
        raise description_error(where, "the lower bound must be below the upper one.", turned)
    if max(abs(_size(kind, end)) for end in (low, high)) > WIDEST:
        raise description_error(
            where, "bounds must lie within ±2^62.", example, "sums are computed in 64-bit whole numbers."
        )
    return low, high


def values_of(where: str, kind: str, values: Any) -> tuple[Any, ...] | None:
    """Validated values: distinct categories of the kind. Real numbers cannot be categories, because
    groups are compared exactly.
    """
    if values is None:
        return None
    example = EXAMPLES["text"] if kind == "text" else "values = [1, 2, 3]"
    if kind in {"real", "decimal", "timestamp", "other"}:
        raise description_error(
            where, f"a column of type {kind} cannot have values.", "group by a bucket of it instead"
        )
    if (
        isinstance(values, str)
        or not isinstance(values, list | tuple | set | frozenset | range)
        or not values
    ):
        raise description_error(where, "values must be a list of categories, and not empty.", example)
    if len(values) > _MOST_VALUES:
        raise description_error(
            where,
            f"values may list at most {_MOST_VALUES} categories.",
            "leave values out; key selection finds the frequent ones",
        )
    checked = [_value(where, kind, value, example) for value in values]
    if len(set(checked)) < len(checked):
        raise description_error(where, "values list a category twice.", example)
    return tuple(sorted(checked) if isinstance(values, set | frozenset) else checked)


def places_of(where: str, kind: str, places: Any, bounds: tuple[Any, Any] | None) -> int | None:
    """Validated binary places; the bounds must fit into 64 bits on that grid."""
    if places is None:
        return None
    fix = "leave places out; a fine grid is chosen from the bounds"
    if kind not in {"real", "decimal"}:
        raise description_error(where, "only a column of type real or decimal can have places.", fix)
    if isinstance(places, bool) or not isinstance(places, int) or not 0 <= places <= _MOST_PLACES:
        raise description_error(where, f"places must be a whole number from 0 to {_MOST_PLACES}.", fix)
    if bounds and max(abs(Fraction(str(end))) for end in bounds) * 2**places > WIDEST:
        raise description_error(where, "the bounds do not fit into 64 bits with this many places.", fix)
    return places


def truth_of(where: str, value: Any) -> bool:
    """True or False."""
    if isinstance(value, bool):
        return value
    key = where.rsplit(maxsplit=1)[-1]
    raise description_error(where, "it must be true or false.", f"{key} = true   (in Python:  {key}=True)")


def _value(where: str, kind: str, value: Any, example: str) -> Any:
    fits = {
        "integer": isinstance(value, numbers.Integral) and not isinstance(value, bool),
        "real": _is_finite(value),
        "decimal": _is_finite(value),
        "text": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "date": isinstance(value, date) and not isinstance(value, datetime),
        "timestamp": isinstance(value, datetime),
    }[kind]
    if not fits:
        raise description_error(
            where, f"it has a value that is not of type {kind}, or is not finite.", example
        )
    return int(value) if kind == "integer" else value


def _is_finite(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    return isinstance(value, numbers.Integral) or math.isfinite(value)


def _size(kind: str, end: Any) -> Fraction:
    if kind == "date":
        return Fraction(days(end))
    return Fraction(micros(end)) if kind == "timestamp" else Fraction(str(end))
