# SPDX-License-Identifier: Apache-2.0
"""The public values of a key, from its type, its description or a public table; None if nobody
declared them.

**Guarantee.** Only the description, the question and public tables are read. Values of the data
that are not in the list belong to no group of the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.tables.ask.columns import public_values
from discreet.tables.ask.start import Dataset
from discreet.tables.data.expr import Case, Coalesce, Constant, Expr, Read
from discreet.tables.data.types import MOMENT, TRUTH, python_value

__all__ = ["MOST", "domain"]

#: A range of whole numbers, or of days, with more values than this is not listed.
MOST = 1_000

_Known = Mapping[tuple[str, str], tuple[Any, ...]]


def domain(expr: Expr, dataset: Dataset, known: _Known, optional: frozenset[str]) -> tuple[Any, ...] | None:
    """The public values of an expression; `known` has the values that WHERE and joins leave to
    columns.

    `optional` names the public tables of left joins, whose columns can be NULL.
    """
    if isinstance(expr, Constant):
        return (_value(expr.value, expr),)
    if isinstance(expr, Read):
        return _column(expr, dataset, known, optional)
    if isinstance(expr, Case):
        branches = [*(value for _, value in expr.whens), expr.otherwise]
        return _union([domain(branch, dataset, known, optional) for branch in branches])
    if isinstance(expr, Coalesce):
        lists = [domain(item, dataset, known, optional) for item in expr.items]
        united = _union(lists)
        return united if united is None or expr.type.null else tuple(v for v in united if v is not None)
    return _values_of_type(expr)


def _column(read: Read, dataset: Dataset, known: _Known, optional: frozenset[str]) -> tuple[Any, ...] | None:
    table = dataset.tables[read.table]
    listed = table.columns[read.column].values
    at = (read.table, read.column)
    if at in known:
        both = tuple(value for value in listed or () if value in known[at])
        return both or known[at]
    if table.private:
        stated = listed if listed is not None else _values_of_type(read)
        missing = read.table in optional and stated is not None and None not in stated
        return (*stated, None) if missing and stated is not None else stated
    values = [value for (value,) in public_values(dataset, read.table, (read.column,))]
    if read.table in optional and None not in values:
        values.append(None)
    return tuple(values)


def _values_of_type(expr: Expr) -> tuple[Any, ...] | None:
    """All values of a type, if there are few."""
    kind = expr.type
    missing = (None,) if kind.null else ()
    if kind.kind == TRUTH:
        return (False, True, *missing)
    if not kind.is_ordered or kind.places or kind.kind == MOMENT or kind.high - kind.low >= MOST:
        return None
    return (*(python_value(cell, kind) for cell in range(kind.low, kind.high + 1)), *missing)


def _union(lists: list[tuple[Any, ...] | None]) -> tuple[Any, ...] | None:
    """Each value once, in order, with NULL last."""
    values: dict[Any, None] = {}
    for listed in lists:
        if listed is None:
            return None
        values.update(dict.fromkeys(listed))
    missing = None in values
    return (*(value for value in values if value is not None), *((None,) if missing else ()))


def _value(cell: Any, expr: Expr) -> Any:
    return python_value(cell, expr.type) if expr.type.is_ordered and cell is not None else cell
