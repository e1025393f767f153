# SPDX-License-Identifier: Apache-2.0
"""Classes that a user declared, and the one of them that a record belongs to.

    classes = declared_classes(["b", "a"])
    members(["a", "b", "x"], classes, rows=3)      # True where a row has the label of that column

**Guarantee.** A row is in one class at most, the one that its label equals, whatever the labels of other rows are. A
label that equals no class, or that cannot be compared, leaves its row out; no label is an error or a warning. A column
whose declared type rules out every class (texts for numbers, numbers for texts) is refused, by that type alone.

Why it holds: numbers are compared exactly, so that no rounding makes two classes one; other labels are looked up in a
dictionary, which has one class for a key. A label that cannot be hashed or compared is not in it.

What would break it: classes that were read off the data.

>>> members([1, "1", None, 1.0], declared_classes([0, 1]), rows=4)[:, 1].tolist()
[True, False, False, True]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import BadParameter
from discreet.learn.reading import as_column, columns_of
from discreet.mechanisms.callbacks import call_quietly, callback_guard

__all__ = ["declared_classes", "members"]

Bools = npt.NDArray[np.bool_]

_FIXES = {
    "numbers": "declare the classes as the numbers that they are in the data:  classes=[0, 1]",
    "texts": "declare the classes as the texts that they are in the data:  classes=['no', 'yes']",
    "bytes": "decode the labels:  y.astype(str)",
}


def declared_classes(classes: Any) -> npt.NDArray[Any]:
    """The labels that a user declared, in order: two or more, all different."""
    if classes is None:
        raise BadParameter(
            "DP107",
            "classes are missing.",
            why="which labels occur in the data is itself private.",
            fix="classes=[0, 1], every label that there can be",
        )
    try:
        sorted(classes)  # before numpy makes texts of numbers among texts
        labels = np.sort(np.asarray(classes))
        labels = labels.astype(np.float64) if labels.dtype == np.longdouble else labels
        different = len(set(labels.tolist()))
    except (TypeError, ValueError):
        labels, different = np.empty(0), 0
    if labels.ndim != 1 or labels.dtype.kind not in "biufUSO" or not 2 <= len(labels) == different:
        raise BadParameter(
            "DP104",
            "classes must be a list of two or more different labels, all numbers or all texts.",
            why="a classifier has to choose between them, and they are kept in order.",
            fix="classes=[0, 1]",
        )
    return labels


def members(y: Any, classes: npt.NDArray[Any], rows: int) -> Bools:
    """One column for each class; a row whose label was not declared belongs to none, and is left out."""
    _refuse_another_type(y, classes)
    labels = as_column(y, rows)
    if labels.dtype.kind in "biuf" and classes.dtype.kind in "biuf":
        with np.errstate(all="ignore"):  # a warning would tell of a label
            return np.stack([_equal(labels, label) for label in classes.tolist()], axis=1)
    places = {label: at for at, label in enumerate(classes.tolist()) if label == label}  # noqa: PLR0124 - not NaN
    with callback_guard():  # what cannot be hashed or compared equals no class
        found = np.array(
            [call_quietly(_place, label, places, instead=-1) for label in labels.tolist()], np.int64
        )
    return np.asarray(found[:, None] == np.arange(len(classes)))


def _refuse_another_type(y: Any, classes: npt.NDArray[Any]) -> None:
    """A column of texts where classes are numbers, or the other way round: no row could have a class."""
    declared, wanted = _family(y), _family(classes)
    if declared and wanted and declared != wanted:
        raise BadParameter(
            "DP104",
            f"the labels are {declared} by their type, and the classes are {wanted}.",
            why="no label equals a class, so every row would be left out and the fit would be noise at full price.",
            fix=_FIXES[declared],
        )


def _family(column: Any) -> str | None:
    """What the declared type of a column lets it hold; None where the type says nothing, as that of a list."""
    if hasattr(column, "columns"):
        (column, *more) = columns_of(column) or [None]
        if more:
            return None
    declared = getattr(column, "dtype", getattr(column, "type", None))
    kind = getattr(declared, "kind", None)
    if kind in ("b", "i", "u", "f"):
        return "numbers"
    name = str(declared).lower()
    if kind == "S" or name.startswith(("binary", "large_binary")):
        return "bytes"
    if kind in ("U", "T") or name.startswith(("string", "str", "large_string")):
        return "texts"
    return "numbers" if name.startswith(("int", "uint", "float", "double", "bool")) else None


def _equal(labels: npt.NDArray[Any], label: float) -> Bools:
    """Which labels are exactly this number, whatever their types."""
    if labels.dtype.kind == "f":
        wide = labels.astype(np.promote_types(labels.dtype, np.float64), copy=False)
        if isinstance(label, int) and int(wide.dtype.type(label)) != label:
            return np.zeros(len(labels), bool)
        return np.asarray(wide == wide.dtype.type(label))
    if label != label // 1:
        return np.zeros(len(labels), bool)
    whole = labels.astype(np.uint8) if labels.dtype.kind == "b" else labels
    ends = np.iinfo(whole.dtype)
    if not ends.min <= label <= ends.max:
        return np.zeros(len(labels), bool)
    return np.asarray(whole == whole.dtype.type(int(label)))


def _place(label: Any, places: dict[Any, int]) -> int:
    """Where the class of this label stands, -1 if there is none."""
    return places.get(label.item() if isinstance(label, np.generic) else label, -1)
