# SPDX-License-Identifier: Apache-2.0
"""What a user passed as features or as a target, read as arrays.

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

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.errors import BadParameter
from discreet.mechanisms.callbacks import call_quietly, callback_guard
from discreet.mechanisms.exact import number

__all__ = ["as_column", "as_floats", "as_matrix", "as_target", "columns_of"]

Reals = npt.NDArray[np.float64]

_NUMBERS = "biuf"  # the kinds of numpy types that are numbers
_NAMES = ("int", "uint", "float", "double", "halffloat", "decimal", "bool", "object")  # of other types


def as_matrix(values: Any) -> Any:
    """A table of numbers as it lies in memory, dense or CSR."""
    _refuse_masked(values)
    if sparse.issparse(values):
        matrix: Any = sparse.csr_array(_declared(values))
    elif hasattr(values, "columns"):
        matrix = _of_frame(values)
    else:
        matrix = _numbers(_rows(values))
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
    alone = columns_of(values) if hasattr(values, "columns") else [values]
    column = _elements(alone[0]) if len(alone) == 1 else np.empty(())
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
    return as_floats(_numbers(as_column(values, rows)))


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


def _rows(values: Any) -> npt.NDArray[Any]:
    """An array as it is; a list of rows as an array of its elements."""
    if not _is_list(values):
        return np.asarray(values)
    with callback_guard():
        rows = [call_quietly(_row, row) for row in values]
    width = next((len(row) for row in rows if row is not None), None)
    if width is None:
        return _objects(list(values))
    missing = [None] * width
    filled = [row if row is not None and len(row) == width else missing for row in rows]
    return _objects([value for row in filled for value in row]).reshape(len(rows), width)


def _row(row: Any) -> list[Any] | None:
    """The features of one row; None where it is no row."""
    listed = row.tolist() if hasattr(row, "tolist") else row
    return list(listed) if _is_list(listed) else None


def _elements(values: Any) -> npt.NDArray[Any]:
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
    with callback_guard():
        return _objects([call_quietly(_alone, value) for value in values])


def _alone(value: Any) -> Any:
    """The only element of a row of one; anything else as it is."""
    return value[0] if isinstance(value, list | tuple) and len(value) == 1 else value


def _of_frame(frame: Any) -> npt.NDArray[Any]:
    """The columns of a frame, each read by the type that it was declared to have."""
    columns = columns_of(frame)
    for name, column in zip(getattr(frame, "column_names", frame.columns), columns, strict=True):
        if not _may_hold_numbers(column):
            raise BadParameter(
                "DP104",
                f"the column {str(name)!r} of X must hold numbers, by its type.",
                why="every feature is scaled by its bounds.",
                fix="encode categories as numbers with a public list of them, or leave the column out",
            )
    if not columns or all(isinstance(getattr(column, "dtype", None), np.dtype) for column in columns):
        return _numbers(np.asarray(frame))
    return np.stack([as_floats(_numbers(np.asarray(column))) for column in columns], axis=1)


def columns_of(frame: Any) -> list[Any]:
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


def _numbers(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array of numbers as it is; of objects, each by itself."""
    if array.dtype.kind != "O":
        return np.asarray(_declared(array))
    with np.errstate(all="ignore"), callback_guard():  # a warning would tell of a value
        return np.array([number(value) for value in array.ravel()], np.float64).reshape(array.shape)


def _declared(values: Any) -> Any:
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
