# SPDX-License-Identifier: Apache-2.0
"""What a user passes, read as arrays: features, targets, labels, and the bounds and classes that
are declared for them.

    as_matrix(X)                                    # rows and features, dense or sparse
    as_target(y, rows=3)                            # one number for each row
    classes = declared_classes(["b", "a"])
    class_membership(y, classes, rows=3)            # True where a row has the label of that column
    feature_bounds((0, [1, 90]), features=2)        # low and high ends of each feature

**Guarantee.** How a record is read depends on that record and on the schema alone. The schema is
the type of an array or of a frame's column, and the number of columns. It is public, and only the
schema is ever refused. No value causes an error or a warning. In a list, and where the declared
type is "any object", a value that is not a number becomes NaN. In a list of rows the first row sets
the number of features, which is public. An element that is not a row, or has another length,
becomes a row of NaN. A masked array of NumPy is refused by its type, whether or not anything in it
is masked: its owner has hidden the values under the mask.

A row belongs to one class at most: the one that its label equals, whatever the labels of other rows
are. A label that equals no class, or that cannot be compared, leaves its row out. A column whose
declared type rules out every class (texts for numbers, numbers for texts) is refused by that type
alone.

Why it holds: values of a declared numeric type are cast one by one. Everything else is read element
by element; NumPy never chooses one type for all, because one record with a text would then turn
every number into a text. Numeric labels are compared exactly, so that no rounding merges two
classes. Other labels are looked up in a dictionary, which holds one class for each key; a label
that cannot be hashed or compared is not in it.

What would break it: a frame whose column types were guessed from its values, where one odd record
changes the type; classes or bounds that were read off the data.

>>> as_matrix([[1, "secret"], [None, 2.5]])
array([[1. , nan],
       [nan, 2.5]])
>>> class_membership([1, "1", None, 1.0], declared_classes([0, 1]), rows=4)[:, 1].tolist()
[True, False, False, True]
"""

from __future__ import annotations

import numbers
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, TypeAlias, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.errors import BadParameter
from discreet.learn.arrays import Bools, Ints, Reals, RowTable, Values
from discreet.mechanisms.callbacks import call_quietly, callback_guard
from discreet.mechanisms.exact import number

__all__ = [
    "Bounds",
    "ColumnKey",
    "Matrix",
    "NamedBounds",
    "Target",
    "as_column",
    "as_columns",
    "as_floats",
    "as_matrix",
    "as_target",
    "bounds_pair",
    "class_membership",
    "column_position",
    "declared_classes",
    "feature_bounds",
    "numeric_column",
    "numeric_ends",
    "target_interval",
    "value_numbers",
]


T = TypeVar("T", bound=RowTable)


class FrameLike(Protocol):
    """A frame of pandas, polars or pyarrow."""

    @property
    def columns(self) -> Collection[object]:
        """Its columns, or their names."""


class SparseLike(Protocol):
    """A sparse table of SciPy, which has no types of its own."""

    def toarray(self) -> object:
        """The same table, dense."""


#: Features: an array, a list of rows, a frame or a sparse table.
Matrix: TypeAlias = npt.ArrayLike | FrameLike | SparseLike
#: Labels or targets: one value for each row.
Target: TypeAlias = npt.ArrayLike | FrameLike
#: The low and the high end, each one number or one number for each feature.
Bounds: TypeAlias = tuple[npt.ArrayLike, npt.ArrayLike]

#: A column, by its name or its position.
ColumnKey: TypeAlias = str | int
#: The low and the high end of each column, by name or position.
NamedBounds: TypeAlias = Mapping[ColumnKey, tuple[float, float]]


#: Kinds of NumPy types that are numbers, and the beginnings of the names of such types elsewhere.
_NUMBERS = "biuf"
_NAMES = ("int", "uint", "float", "double", "halffloat", "decimal", "bool", "object")
#: The largest bound, and the smallest half width of bounds.
_FARTHEST = 1e100
_NARROWEST = 1e-100

_FIXES = {
    "numbers": "declare the classes as numbers, as they are in the data:  classes=[0, 1]",
    "texts": "declare the classes as texts, as they are in the data:  classes=['no', 'yes']",
    "bytes": "decode the labels:  y.astype(str)",
}
_VALUES = {"numbers": "[0, 1]", "texts": "['no', 'yes']", "bytes": "[b'no', b'yes']"}


def declared_classes(classes: npt.ArrayLike | None) -> Values:
    """The labels that a user declared, sorted: two or more, all different."""
    if classes is None:
        raise BadParameter(
            "DP107",
            "classes are missing.",
            why="which labels occur in the data is itself private, so they must be declared.",
            fix="pass classes=[0, 1], with every label that can occur",
        )
    try:
        # sorting fails for numbers among texts, which NumPy would turn into texts
        sorted(classes)  # type: ignore[type-var,arg-type]
        labels = np.sort(np.asarray(classes))
        labels = labels.astype(np.float64) if labels.dtype == np.longdouble else labels
        different = len(set(labels.tolist()))
    except (TypeError, ValueError):
        labels, different = np.empty(0), 0
    if labels.ndim != 1 or labels.dtype.kind not in "biufUSO" or not 2 <= len(labels) == different:
        raise BadParameter(
            "DP104",
            "classes must be a list of two or more different labels, all numbers or all texts.",
            why="a classifier chooses between them, and keeps them sorted.",
            fix="classes=[0, 1]",
        )
    return labels


def class_membership(y: Target, classes: Values, rows: int) -> Bools:
    """One column for each class. A row whose label was not declared belongs to no class and is left
    out.
    """
    _refuse_another_type(y, classes)
    return _membership(as_column(y, rows), classes)


def value_numbers(column: object, values: Values, name: str | int) -> Ints:
    """The number of each value of a category among the declared ones; one more for all others."""
    kind, declared = _label_kind(column), _label_kind(values)
    if kind and declared and kind != declared:
        raise BadParameter(
            "DP104",
            f"column {name!r} has a type of {kind}, but its declared values are {declared}.",
            why="no row can equal a value. Every row would count as missing, and the fit would ignore the column at full cost.",
            fix=f"declare them as {kind}, as they are in the data:  categories={{{name!r}: {_VALUES[kind]}}}",
        )
    is_member = _membership(_column_array(column), values)
    return np.where(is_member.any(axis=1), is_member.argmax(axis=1), len(values)).astype(np.int64)


def _membership(labels: Values, classes: Values) -> Bools:
    if labels.dtype.kind in "biuf" and classes.dtype.kind in "biuf":
        # A warning would reveal a label.
        with np.errstate(all="ignore"):
            return np.stack([_equals(labels, label) for label in classes.tolist()], axis=1)
    # a NaN among the classes equals no label, not even itself
    index_of = {label: index for index, label in enumerate(classes.tolist()) if label == label}  # noqa: PLR0124
    # a label that cannot be hashed or compared equals no class
    with callback_guard():
        indices = np.array(
            [call_quietly(_class_index, label, index_of, instead=-1) for label in labels.tolist()], np.int64
        )
    return np.asarray(indices[:, None] == np.arange(len(classes)))


def _refuse_another_type(y: Target, classes: Values) -> None:
    """Refuse a column of texts where classes are numbers, and the reverse: no row could have a
    class.
    """
    labels, declared = _label_kind(y), _label_kind(classes)
    if labels and declared and labels != declared:
        raise BadParameter(
            "DP104",
            f"the labels have a type of {labels}, but the classes are {declared}.",
            why="no label can equal a class. Every row would be left out, and the fit would be noise at full cost.",
            fix=_FIXES[labels],
        )


def _label_kind(column: object) -> str | None:
    """What the declared type of a column can hold; None where the type does not say, as with a
    list.
    """
    if _is_frame(column):
        (column, *other_columns) = _frame_columns(column) or [None]
        if other_columns:
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


def _equals(labels: Values, label: float) -> Bools:
    """Which labels are exactly this number, whatever their types."""
    if labels.dtype.kind == "f":
        floats = labels.astype(np.promote_types(labels.dtype, np.float64), copy=False)
        if isinstance(label, int) and int(floats.dtype.type(label)) != label:
            return np.zeros(len(labels), bool)
        return np.asarray(floats == floats.dtype.type(label))
    if label != label // 1:
        return np.zeros(len(labels), bool)
    whole = labels.astype(np.uint8) if labels.dtype.kind == "b" else labels
    ends = np.iinfo(str(whole.dtype))
    if not ends.min <= label <= ends.max:
        return np.zeros(len(labels), bool)
    return np.asarray(whole == whole.dtype.type(int(label)))


def _class_index(label: object, index_of: dict[object, int]) -> int:
    """The position of the class with this label, or -1."""
    return index_of.get(label.item() if isinstance(label, np.generic) else label, -1)


def as_matrix(values: Matrix) -> RowTable:
    """A table of numbers as it lies in memory, dense or in CSR format."""
    _refuse_masked(values)
    if sparse.issparse(values):
        matrix: RowTable = sparse.csr_array(_require_numeric_type(values))
    elif _is_frame(values):
        matrix = _frame_values(values)
    else:
        matrix = _as_numbers(_row_array(values))
    if matrix.ndim != 2:
        raise BadParameter(
            "DP104",
            f"X must have two dimensions, rows and features, not {matrix.ndim}. Reshape your data.",
            why="each row is one record, and each column is one feature with its own bounds.",
            fix="use X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one record",
        )
    if matrix.shape[1] == 0:
        raise BadParameter(
            "DP102",
            "X has 0 feature(s) while a minimum of 1 is required.",
            why="without a feature there is nothing to learn from.",
            fix="pass at least one column",
        )
    return matrix


def as_columns(values: Matrix) -> list[object]:
    """The columns of a table, each of its own type; not yet read."""
    _refuse_masked(values)
    if not sparse.issparse(values) and _is_frame(values):
        columns = _frame_columns(values)
        if not columns:
            # refused by its shape alone
            as_matrix(np.zeros((0, 0)))
        return columns
    table = as_floats(as_matrix(values)) if sparse.issparse(values) else _row_array(values)
    if table.ndim != 2 or not table.shape[1]:
        # refused by its shape alone
        as_matrix(np.zeros(table.shape))
    return [table[:, index] for index in range(table.shape[1])]


def numeric_column(column: object, name: str | int) -> Reals:
    """A column as numbers; what is no number is NaN. A column of another type is refused by its
    type.
    """
    if isinstance(column, np.ndarray) and column.dtype.kind == "c":
        _require_numeric_type(column)
    if not _may_hold_numbers(column):
        raise BadParameter(
            "DP104",
            f"the type of column {name!r} of X must be numeric.",
            why="every feature is scaled by its bounds, unless its values are declared.",
            fix=f"categories={{{name!r}: ['no', 'yes']}}, with every value that can occur, or leave the column out",
        )
    return as_floats(_as_numbers(_column_array(column)))


def as_column(values: Target | None, rows: int) -> Values:
    """One value for each row, of any kind. Only the shape is validated."""
    if values is None:
        raise BadParameter(
            "DP107",
            "this estimator requires y to be passed, but the target y is None.",
            why="a supervised model learns to predict a target.",
            fix="fit(X, y)",
        )
    _refuse_masked(values)
    columns = _frame_columns(values) if _is_frame(values) else [values]
    column = _column_array(columns[0]) if len(columns) == 1 else np.empty(())
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1 or len(column) != rows:
        raise BadParameter(
            "DP104",
            "y must hold one value for each row of X; the shapes are inconsistent.",
            why="a record is a row together with its target.",
            fix="pass y.ravel(), with as many values as X has rows",
        )
    return column


def as_target(values: Target | None, rows: int) -> Reals:
    """One number for each row."""
    return as_floats(_as_numbers(as_column(values, rows)))


def as_floats(block: RowTable) -> Reals:
    """A dense float64 copy of rows, in which every NaN is a quiet one: no later arithmetic warns of
    it.
    """
    # A warning would reveal a value.
    with np.errstate(all="ignore"):
        dense = block if isinstance(block, np.ndarray) else block.toarray()
        floats = np.array(dense, np.float64)
        floats[np.isnan(floats)] = np.nan
    return floats


def _refuse_masked(values: object) -> None:
    """Refuse a masked array by its type alone: an error that depends on the mask would tell of a
    record.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise BadParameter(
            "DP104",
            "the data must not be a masked array.",
            why="the mask would be lost, and the values under it would be read as data.",
            fix="X.filled(np.nan), where NaN counts as the middle of its bounds; y.filled(-1) for labels, where -1 is no class",
        )


def _row_array(values: object) -> Values:
    """An array unchanged; a list of rows as an array of its elements."""
    if not _is_list(values):
        return np.asarray(values)
    with callback_guard():
        rows = [call_quietly(_row_values, row) for row in values]
    width = next((len(row) for row in rows if row is not None), None)
    if width is None:
        return _objects(list(values))
    missing = [None] * width
    filled = [row if row is not None and len(row) == width else missing for row in rows]
    return _objects([value for row in filled for value in row]).reshape(len(rows), width)


def _row_values(row: object) -> list[object] | None:
    """The features of one row, or None if it is not a row."""
    listed = row.tolist() if hasattr(row, "tolist") else row
    return list(listed) if _is_list(listed) else None


def _column_array(values: object) -> Values:
    """A column as an array: of its own type where numpy has that type, of objects otherwise."""
    dtype = getattr(values, "dtype", None)
    if not isinstance(values, np.ndarray) and not isinstance(dtype, np.dtype):
        # polars and pandas; pyarrow
        for method in ("to_list", "to_pylist"):
            if hasattr(values, method):
                return _objects(getattr(values, method)())
        # An array of pandas.
        if hasattr(dtype, "na_value") and hasattr(values, "tolist"):
            return _objects(values.tolist())
    if not _is_list(values):
        return np.asarray(values)
    with callback_guard():
        return _objects([call_quietly(_unwrap, value) for value in values])


def _unwrap(value: object) -> object:
    """The only element of a row with one element; anything else unchanged."""
    return value[0] if isinstance(value, list | tuple) and len(value) == 1 else value


def _is_frame(values: object) -> TypeGuard[FrameLike]:
    return hasattr(values, "columns")


def _frame_values(frame: FrameLike) -> Values:
    """The columns of a frame, each read by the type that it was declared to have."""
    columns = _frame_columns(frame)
    for name, column in zip(getattr(frame, "column_names", frame.columns), columns, strict=True):
        if not _may_hold_numbers(column):
            raise BadParameter(
                "DP104",
                f"the type of column {str(name)!r} of X must be numeric.",
                why="every feature is scaled by its bounds.",
                fix="encode categories as numbers by a public list of them, or leave the column out",
            )
    if not columns or all(isinstance(getattr(column, "dtype", None), np.dtype) for column in columns):
        return _as_numbers(np.asarray(frame))
    return np.stack([as_floats(_as_numbers(np.asarray(column))) for column in columns], axis=1)


def _frame_columns(frame: FrameLike) -> list[object]:
    """The columns of a frame of pandas, of polars or of pyarrow."""
    if hasattr(frame, "iloc"):
        return [frame.iloc[:, index] for index in range(len(frame.columns))]
    return list(frame.get_columns() if hasattr(frame, "get_columns") else frame.columns)


def _may_hold_numbers(column: object) -> bool:
    """Whether the type of a column is one of numbers, or says nothing of what it holds."""
    declared = getattr(column, "dtype", None) or getattr(column, "type", None)
    kind = getattr(declared, "kind", None)
    if kind is not None:
        return kind in _NUMBERS or bool(declared == np.dtype(object))
    return str(declared).lower().startswith(_NAMES)


def _as_numbers(array: Values) -> Values:
    """An array of numbers unchanged; an array of objects converted one by one."""
    if array.dtype.kind != "O":
        return np.asarray(_require_numeric_type(array))
    # A warning would reveal a value.
    with np.errstate(all="ignore"), callback_guard():
        return np.array([number(value) for value in array.ravel()], np.float64).reshape(array.shape)


def _require_numeric_type(values: T) -> T:
    """Values whose type is numeric; any other type is refused."""
    if values.dtype.kind in _NUMBERS:
        return values
    raise BadParameter(
        "DP104",
        "the data must be numbers. Complex data not supported, neither is text.",
        why="every feature is scaled by its bounds.",
        fix="encode categories as numbers by a public list of them, such as OneHotEncoder(categories=…)",
    )


def _objects(values: Sequence[object]) -> Values:
    """A list as an array of the same objects."""
    return np.fromiter(values, dtype=object, count=len(values))


def _is_list(values: object) -> TypeGuard[Sequence[object]]:
    return isinstance(values, Sequence) and not isinstance(values, str | bytes)


def feature_bounds(bounds: Bounds, features: int) -> tuple[Reals, Reals]:
    """The lower and upper bound of each feature."""
    try:
        low, high = (np.broadcast_to(_as_reals(end), (features,)) for end in bounds)
    except (TypeError, ValueError):
        raise BadParameter(
            "DP104",
            f"bounds must be a pair (low, high); each end is one number or {features} numbers.",
            why="every feature is clipped to bounds that are known without looking at the data.",
            fix="bounds=(0, 1), or bounds=([0, 18], [1, 90]) with one entry per feature",
        ) from None
    if not (np.abs([low, high]) <= _FARTHEST).all():
        raise BadParameter(
            "DP101",
            f"bounds must be finite and at most {_FARTHEST:g} in size.",
            why="the noise is proportional to the width of the bounds.",
            fix="bounds=(0, 1)",
        )
    if not (low < high).all():
        raise BadParameter(
            "DP102",
            "every lower bound must be below its upper bound.",
            why="a feature between equal bounds is constant, and nothing can be learned from it.",
            fix="bounds=(0, 1)",
        )
    if not (high / 2 - low / 2 >= _NARROWEST).all():
        raise BadParameter(
            "DP102",
            f"the bounds of a feature must be at least {2 * _NARROWEST:g} apart.",
            why="features and coefficients are divided by that distance, and would overflow.",
            fix="bounds=(0, 1), after a change of the unit of the feature",
        )
    return low, high


def _as_reals(end: object) -> Reals:
    """One bound or several as floats; an int that is too large becomes an infinity."""
    listed = np.array(end, object)
    if not all(isinstance(value, numbers.Real) and not isinstance(value, bool) for value in listed.flat):
        raise TypeError
    return np.array([number(value) for value in listed.flat], np.float64).reshape(listed.shape)


def target_interval(target_bounds: Bounds | None) -> tuple[float, float]:
    """The declared low and high end of a target."""
    if target_bounds is None:
        raise BadParameter(
            "DP107",
            "target_bounds are missing.",
            why="one unbounded target could move the model without limit, and bounds read off the data would leak it.",
            fix="pass target_bounds=(0, 100)",
        )
    low, high = feature_bounds(target_bounds, 1)
    return float(low[0]), float(high[0])


def bounds_pair(bounds: Bounds | NamedBounds, names: Sequence[ColumnKey]) -> Bounds:
    """Bounds by column as a pair of lists, in the order of the columns; a pair is returned
    unchanged.
    """
    if not isinstance(bounds, Mapping):
        return bounds
    ends = numeric_ends(bounds, names, range(len(names)))
    return [ends[index][0] for index in range(len(names))], [ends[index][1] for index in range(len(names))]


def numeric_ends(
    bounds: Bounds | NamedBounds | None, names: Sequence[ColumnKey], numeric: Sequence[int]
) -> dict[int, tuple[float, float]]:
    """The low and the high end of each of the columns at the positions `numeric`."""
    if not numeric:
        return {}
    if bounds is None:
        each = ", ".join(f"{names[index]!r}: (0, 1)" for index in numeric)
        raise BadParameter(
            "DP107",
            "bounds are missing.",
            why="every feature is clipped to bounds that are known without looking at the data.",
            fix=f"bounds={{{each}}}" if len(numeric) <= 8 else "bounds=(0, 1)",
        )
    if not isinstance(bounds, Mapping):
        low, high = feature_bounds(bounds, len(names))
        return {index: (float(low[index]), float(high[index])) for index in numeric}
    named = {column_position(key, names, "bounds"): ends for key, ends in bounds.items()}
    missing = [names[index] for index in numeric if index not in named]
    if missing:
        raise BadParameter(
            "DP107",
            f"bounds are missing for column {missing[0]!r}.",
            why="every feature is clipped to bounds that are known without looking at the data.",
            fix=f"add {missing[0]!r}: (0, 1) to bounds, or leave the column out",
        )
    out = {}
    for index in numeric:
        low, high = feature_bounds(named[index], 1)
        out[index] = (float(low[0]), float(high[0]))
    return out


def column_position(key: object, names: Sequence[ColumnKey], option: str) -> int:
    """The position of a column that an option names."""
    if isinstance(key, int | str) and not isinstance(key, bool):
        if key in names:
            return list(names).index(key)
        if isinstance(key, int) and 0 <= key < len(names):
            return key
    listed = ", ".join(repr(name) for name in names[:8])
    raise BadParameter(
        "DP105",
        f"{option} names a column {key!r}, which X does not have.",
        why=f"the columns of X are {listed}{', …' if len(names) > 8 else ''}.",
        fix=f"name one of them: {names[0]!r}",
    )
