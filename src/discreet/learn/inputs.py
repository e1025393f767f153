# SPDX-License-Identifier: Apache-2.0
"""Classes that a user declared, and the one of them that a record belongs to.

    classes = declared_classes(["b", "a"])
    class_membership(["a", "b", "x"], classes, rows=3)      # True where a row has the label of that column

**Guarantee.** A row is in one class at most, the one that its label equals, whatever the labels of other rows are. A
label that equals no class, or that cannot be compared, leaves its row out; no label is an error or a warning. A column
whose declared type rules out every class (texts for numbers, numbers for texts) is refused, by that type alone.

Why it holds: numbers are compared exactly, so that no rounding makes two classes one; other labels are looked up in a
dictionary, which has one class for a key. A label that cannot be hashed or compared is not in it.

What would break it: classes that were read off the data.

>>> class_membership([1, "1", None, 1.0], declared_classes([0, 1]), rows=4)[:, 1].tolist()
[True, False, False, True]

What a user passed as features or as a target, read as arrays.

    as_matrix(X)              # rows and features: a frame, an array, a sparse table or a list of rows
    as_column(y, rows=3)      # one value for each row, as it is
    as_target(y, rows=3)      # one number for each row

**Guarantee.** What a record is read as depends on that record and on the schema alone. The schema is what was declared
of all records: the type of an array or of a frame's column, and the number of columns; it is public, and the only
thing that is refused. No value is an error or a warning: in a list, and where the declared type is "any object",
what is no number is NaN. In a list of rows the number of features is that of the first row, and is public; a row that is none, or of
another length, is a row of NaN. A masked array of numpy is refused by its type, whether or not anything in it is masked: what
lies under a mask is no value, and reading it as one would use what its owner took out.

Why it holds: values of a declared type of numbers are cast one by one. Everything else is read element by element,
never by letting numpy choose one type for all, which would make a text of every number where one record is a text.

What would break it: a frame whose column types were guessed from its values, where one odd record changes the type.

>>> as_matrix([[1, "secret"], [None, 2.5]])
array([[1. , nan],
       [nan, 2.5]])
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.errors import BadParameter
from discreet.mechanisms.callbacks import guarded, quietly
from discreet.mechanisms.exact import number

__all__ = [
    "as_column",
    "as_floats",
    "as_matrix",
    "as_target",
    "class_membership",
    "declared_classes",
    "feature_bounds",
    "frame_columns",
    "target_interval",
]


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


def class_membership(y: Any, classes: npt.NDArray[Any], rows: int) -> Bools:
    """One column for each class; a row whose label was not declared belongs to none, and is left out."""
    _refuse_another_type(y, classes)
    labels = as_column(y, rows)
    if labels.dtype.kind in "biuf" and classes.dtype.kind in "biuf":
        with np.errstate(all="ignore"):  # a warning would tell of a label
            return np.stack([_equals(labels, label) for label in classes.tolist()], axis=1)
    places = {label: at for at, label in enumerate(classes.tolist()) if label == label}  # noqa: PLR0124 - not NaN
    with guarded():  # what cannot be hashed or compared equals no class
        found = np.array(
            [quietly(_class_index, label, places, instead=-1) for label in labels.tolist()], np.int64
        )
    return np.asarray(found[:, None] == np.arange(len(classes)))


def _refuse_another_type(y: Any, classes: npt.NDArray[Any]) -> None:
    """A column of texts where classes are numbers, or the other way round: no row could have a class."""
    declared, wanted = _label_kind(y), _label_kind(classes)
    if declared and wanted and declared != wanted:
        raise BadParameter(
            "DP104",
            f"the labels are {declared} by their type, and the classes are {wanted}.",
            why="no label equals a class, so every row would be left out and the fit would be noise at full price.",
            fix=_FIXES[declared],
        )


def _label_kind(column: Any) -> str | None:
    """What the declared type of a column lets it hold; None where the type says nothing, as that of a list."""
    if hasattr(column, "columns"):
        (column, *more) = frame_columns(column) or [None]
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


def _equals(labels: npt.NDArray[Any], label: float) -> Bools:
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


def _class_index(label: Any, places: dict[Any, int]) -> int:
    """Where the class of this label stands, -1 if there is none."""
    return places.get(label.item() if isinstance(label, np.generic) else label, -1)


Reals = npt.NDArray[np.float64]

_NUMBERS = "biuf"  # the kinds of numpy types that are numbers
_NAMES = ("int", "uint", "float", "double", "halffloat", "decimal", "bool", "object")  # of other types


def as_matrix(values: Any) -> Any:
    """A table of numbers as it lies in memory, dense or CSR."""
    _refuse_masked(values)
    if sparse.issparse(values):
        matrix: Any = sparse.csr_array(_require_numeric_type(values))
    elif hasattr(values, "columns"):
        matrix = _frame_values(values)
    else:
        matrix = _as_numbers(_row_array(values))
    if matrix.ndim != 2:
        raise BadParameter(
            "DP104",
            f"X must have two dimensions, rows and features, not {matrix.ndim}. Reshape your data.",
            why="each row is one record, and each column one feature with bounds of its own.",
            fix="X.reshape(-1, 1) if there is one feature, X.reshape(1, -1) if there is one record",
        )
    if matrix.shape[1] == 0:
        raise BadParameter(
            "DP102",
            "X has 0 feature(s) while a minimum of 1 is required.",
            why="there is nothing to learn from.",
            fix="pass at least one column",
        )
    return matrix


def as_column(values: Any, rows: int) -> npt.NDArray[Any]:
    """One value for each row, whatever it is. Only the shape is looked at."""
    if values is None:
        raise BadParameter(
            "DP107",
            "this estimator requires y to be passed, but the target y is None.",
            why="there is nothing to predict.",
            fix="fit(X, y)",
        )
    _refuse_masked(values)
    alone = frame_columns(values) if hasattr(values, "columns") else [values]
    column = _column_array(alone[0]) if len(alone) == 1 else np.empty(())
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1 or len(column) != rows:
        raise BadParameter(
            "DP104",
            "y must hold one value for each row of X; the shapes are inconsistent.",
            why="a record is a row and its target together.",
            fix="y.ravel(), with as many values as X has rows",
        )
    return column


def as_target(values: Any, rows: int) -> Reals:
    """One number for each row."""
    return as_floats(_as_numbers(as_column(values, rows)))


def as_floats(block: Any) -> Reals:
    """A dense float64 copy of rows; a NaN of whatever kind is one that no later arithmetic warns of."""
    with np.errstate(all="ignore"):  # a warning would tell of a value
        floats = np.array(block.toarray() if sparse.issparse(block) else block, np.float64)
        floats[np.isnan(floats)] = np.nan
    return floats


def _refuse_masked(values: Any) -> None:
    """By the type alone: an error that depends on the mask would tell of a record."""
    if isinstance(values, np.ma.MaskedArray):
        raise BadParameter(
            "DP104",
            "the data must not be a masked array.",
            why="its mask would be lost, and what lies under it would be read as if it were there.",
            fix="X.filled(np.nan): NaN counts as the middle of its bounds; for labels y.filled(-1), which is no class",
        )


def _row_array(values: Any) -> npt.NDArray[Any]:
    """An array as it is; a list of rows as an array of its elements."""
    if not _is_list(values):
        return np.asarray(values)
    with guarded():
        rows = [quietly(_row_values, row) for row in values]
    width = next((len(row) for row in rows if row is not None), None)
    if width is None:
        return _objects(list(values))
    missing = [None] * width
    filled = [row if row is not None and len(row) == width else missing for row in rows]
    return _objects([value for row in filled for value in row]).reshape(len(rows), width)


def _row_values(row: Any) -> list[Any] | None:
    """The features of one row; None where it is no row."""
    listed = row.tolist() if hasattr(row, "tolist") else row
    return list(listed) if _is_list(listed) else None


def _column_array(values: Any) -> npt.NDArray[Any]:
    """A column as an array: of its own type where numpy has that type, of objects otherwise."""
    kind = getattr(values, "dtype", None)
    if not isinstance(values, np.ndarray) and not isinstance(kind, np.dtype):
        for listed in ("to_list", "to_pylist"):  # polars, pandas; pyarrow
            if hasattr(values, listed):
                return _objects(getattr(values, listed)())
        if hasattr(kind, "na_value"):  # an array of pandas
            return _objects(values.tolist())
    if not _is_list(values):
        return np.asarray(values)
    with guarded():
        return _objects([quietly(_unwrap, value) for value in values])


def _unwrap(value: Any) -> Any:
    """The only element of a row of one; anything else as it is."""
    return value[0] if isinstance(value, list | tuple) and len(value) == 1 else value


def _frame_values(frame: Any) -> npt.NDArray[Any]:
    """The columns of a frame, each read by the type that it was declared to have."""
    columns = frame_columns(frame)
    for name, column in zip(getattr(frame, "column_names", frame.columns), columns, strict=True):
        if not _may_hold_numbers(column):
            raise BadParameter(
                "DP104",
                f"the column {str(name)!r} of X must hold numbers, by its type.",
                why="every feature is scaled by its bounds.",
                fix="encode categories as numbers with a public list of them, or leave the column out",
            )
    if not columns or all(isinstance(getattr(column, "dtype", None), np.dtype) for column in columns):
        return _as_numbers(np.asarray(frame))
    return np.stack([as_floats(_as_numbers(np.asarray(column))) for column in columns], axis=1)


def frame_columns(frame: Any) -> list[Any]:
    """The columns of a frame of pandas, of polars or of pyarrow."""
    if hasattr(frame, "iloc"):
        return [frame.iloc[:, at] for at in range(frame.shape[1])]
    return list(frame.get_columns() if hasattr(frame, "get_columns") else frame.columns)


def _may_hold_numbers(column: Any) -> bool:
    """Whether the type of a column is one of numbers, or says nothing of what it holds."""
    declared: Any = getattr(column, "dtype", None) or getattr(column, "type", None)
    if hasattr(declared, "kind"):
        return declared.kind in _NUMBERS or declared == np.dtype(object)
    return str(declared).lower().startswith(_NAMES)


def _as_numbers(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array of numbers as it is; of objects, each by itself."""
    if array.dtype.kind != "O":
        return np.asarray(_require_numeric_type(array))
    with np.errstate(all="ignore"), guarded():  # a warning would tell of a value
        return np.array([number(value) for value in array.ravel()], np.float64).reshape(array.shape)


def _require_numeric_type(values: Any) -> Any:
    """Values whose type says that they are numbers."""
    if values.dtype.kind in _NUMBERS:
        return values
    raise BadParameter(
        "DP104",
        "the data must be numbers. Complex data not supported, neither is text.",
        why="every feature is scaled by its bounds.",
        fix="encode categories as numbers with a public list of them, such as OneHotEncoder(categories=…)",
    )


def _objects(values: Any) -> npt.NDArray[Any]:
    """A list as an array of the very same objects."""
    return np.fromiter(values, dtype=object, count=len(values))


def _is_list(values: Any) -> bool:
    return isinstance(values, Sequence) and not isinstance(values, str | bytes)


_FARTHEST = 1e100  # of a bound


_NARROWEST = 1e-100  # of half the distance of two bounds


def feature_bounds(bounds: Any, features: int) -> tuple[Reals, Reals]:
    """The lower and upper bounds of each feature."""
    try:
        low, high = (np.broadcast_to(_as_reals(end), (features,)) for end in bounds)
    except (TypeError, ValueError):
        raise BadParameter(
            "DP104",
            f"bounds must be (low, high), each one number or {features} numbers.",
            why="every feature is clipped to bounds that are known without the data.",
            fix="bounds=(0, 1), or bounds=([0, 18], [1, 90]) with one entry per feature",
        ) from None
    if not (np.abs([low, high]) <= _FARTHEST).all():
        raise BadParameter(
            "DP101",
            f"bounds must be finite, and not beyond {_FARTHEST:g}.",
            why="noise is in proportion to their width.",
            fix="bounds=(0, 1)",
        )
    if not (low < high).all():
        raise BadParameter(
            "DP102",
            "every lower bound must be below its upper bound.",
            why="between equal bounds nothing can be learned, and the data may not be asked for others.",
            fix="bounds=(0, 1)",
        )
    if not (high / 2 - low / 2 >= _NARROWEST).all():
        raise BadParameter(
            "DP102",
            f"bounds must be {2 * _NARROWEST:g} or more apart.",
            why="features are divided by the distance, and coefficients too, whose squares would have no meaning.",
            fix="bounds=(0, 1), in another unit of the feature",
        )
    return low, high


def _as_reals(end: Any) -> Reals:
    """A bound, or several, as floats; an infinity where an int is too large."""
    listed = np.array(end, object)
    if not all(isinstance(value, numbers.Real) and not isinstance(value, bool) for value in listed.flat):
        raise TypeError
    return np.array([number(value) for value in listed.flat], np.float64).reshape(listed.shape)


def target_interval(target_bounds: Any) -> tuple[float, float]:
    """The declared bounds of a target."""
    if target_bounds is None:
        raise BadParameter(
            "DP107",
            "target_bounds are missing.",
            why="one target without limit moves a model without limit, and limits read off the data leak it.",
            fix="target_bounds=(0, 100)",
        )
    low, high = feature_bounds(target_bounds, 1)
    return float(low[0]), float(high[0])
