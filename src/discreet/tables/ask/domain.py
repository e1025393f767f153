# SPDX-License-Identifier: Apache-2.0
"""The public values that keys can have: from types, descriptions, public tables and conditions.

**Guarantee.** Only the description, the question and public tables are read. The list holds every
value that a key can have in a row whose columns keep to their description; for a key of one column
with listed values, or of one column of whole numbers or dates, it holds no other.

Why it holds: a key is cut into parts (`_parts_of`) that each have few values: columns, or wider
terms whose type bounds them. Every combination of their values is tried. A combination is left out
only where a condition, evaluated on it exactly, is not TRUE. A column that is clamped to its bounds
stands for the values beyond them too, so conditions cannot exclude an end unless they exclude all
that lies beyond it (`_ends`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from discreet.errors import RefusedQuestion
from discreet.tables.algebra import civil
from discreet.tables.algebra import expr as e
from discreet.tables.algebra.evaluate import Assignment, Values, evaluate
from discreet.tables.algebra.expr import Case, Coalesce, Constant, Expr, Read
from discreet.tables.algebra.sums import sorted_groups
from discreet.tables.algebra.types import (
    DATE,
    MOMENT,
    NUMBER,
    TEXT,
    TRUTH,
    WIDEST,
    Type,
    days,
    micros,
    python_value,
)
from discreet.tables.ask.columns import public_values
from discreet.tables.ask.conditions import Ends, ends_by, may_hold_beyond, needed_columns, rebuild
from discreet.tables.ask.start import Dataset

__all__ = ["MOST", "Facts", "domain", "joint_domain", "shared_parts"]

#: A derived list with more values than this is not public: key selection finds the frequent ones.
MOST = 1_000
#: So many combinations of values are tried.
_TRIED = 1 << 17

_Known = Mapping[tuple[str, str], tuple[Any, ...]]


@dataclass(frozen=True)
class Facts:
    """What is publicly known of the rows of a question.

    `known` has the values that lists in WHERE and joins leave to columns, `optional` the public
    tables of left joins, and each of `conditions` is TRUE in every row.
    """

    dataset: Dataset
    conditions: tuple[Expr, ...] = ()
    known: _Known = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    declared: dict[tuple[str, str], Values | None] = field(default_factory=dict, compare=False, repr=False)

    def ends(self, expr: Expr) -> Ends:
        """Between which cells conditions leave an ordered expression."""
        low, high = -WIDEST, WIDEST
        for condition in self.conditions:
            stated_ends = ends_by(condition, expr)
            if stated_ends is not None:
                low, high = max(low, stated_ends[0]), min(high, stated_ends[1])
        return low, high

    def is_present(self, read: Read) -> bool:
        """Whether a condition excludes that a column is NULL."""
        return any((read.table, read.column) in needed_columns(condition) for condition in self.conditions)


def domain(expr: Expr, facts: Facts) -> tuple[Any, ...] | None:
    """The public values of an expression, NULL last; None if nobody declared them or they are many."""
    if isinstance(expr, Constant):
        return (_python(expr.value, expr.type),)
    values = joint_domain((expr,), facts)
    if values is None:
        return _branches(expr, facts)
    listed = tuple(value for (value,) in values)
    if not isinstance(expr, Case):
        return listed
    # In the order of the branches, as far as they are constants.
    branches = [
        value for value in (*(then for _, then in expr.whens), expr.otherwise) if isinstance(value, Constant)
    ]
    first = dict.fromkeys(_python(value.value, value.type) for value in branches)
    missing = (None,) if None in listed else ()
    unlisted = (value for value in listed if value not in first and value is not None)
    return (*(value for value in first if value in listed and value is not None), *unlisted, *missing)


def joint_domain(exprs: Sequence[Expr], facts: Facts) -> list[tuple[Any, ...]] | None:
    """The combinations of values that several expressions can have in one row."""
    search = _DomainSearch(facts, exprs)
    parts = search.merge([search.parts_of(expr) for expr in exprs])
    if parts is None:
        return None
    assignment = search.allowed_combinations(parts)
    columns = [evaluate(expr, assignment).to_list() for expr in exprs]
    rows = dict.fromkeys(zip(*columns, strict=True))
    if len(rows) > MOST and not search.has_list:
        return None
    rows_of_values = [
        tuple(_python(cell, expr.type) for cell, expr in zip(row, exprs, strict=True)) for row in rows
    ]
    is_listed = [isinstance(expr, Read) and search.is_listed(expr) for expr in exprs]
    possible = [
        row
        for row in rows_of_values
        if not any(listed and part is None for listed, part in zip(is_listed, row, strict=True))
    ]
    return possible if any(is_listed) else sorted_groups(possible)


def shared_parts(exprs: Sequence[Expr], facts: Facts) -> list[list[int]]:
    """The places of expressions whose values depend on each other, because they share a part."""
    search = _DomainSearch(facts, exprs)
    groups: list[tuple[set[Expr | tuple[str, str]], list[int]]] = []
    for place, expr in enumerate(exprs):
        own_parts, places = {_name(part) for part in search.parts_of(expr) or ()}, [place]
        disjoint = []
        for parts, other_places in groups:
            if parts & own_parts:
                own_parts, places = own_parts | parts, other_places + places
            else:
                disjoint.append((parts, other_places))
        groups = [*disjoint, (own_parts, places)]
    return sorted(sorted(places) for _, places in groups)


def _branches(expr: Expr, facts: Facts) -> tuple[Any, ...] | None:
    """The values of all branches of a CASE or COALESCE, each once, with NULL last."""
    if isinstance(expr, Case):
        items = [*(value for _, value in expr.whens), expr.otherwise]
    elif isinstance(expr, Coalesce):
        items = list(expr.items)
    else:
        return None
    lists = [domain(item, facts) for item in items]
    values = dict.fromkeys(value for listed in lists if listed is not None for value in listed)
    if None in lists:
        return None
    missing = None in values and expr.type.null
    return (*(value for value in values if value is not None), *((None,) if missing else ()))


class _DomainSearch:
    """Cuts expressions into parts with few values, and tries the combinations."""

    def __init__(self, facts: Facts, exprs: Sequence[Expr]) -> None:
        self.facts, self.exprs = facts, exprs
        self._found: dict[Expr, Values | None] = {}
        # Whether a list that somebody declared is among the values, however long it is.
        self.has_list = False

    # --- parts ---------------------------------------------------------------------------------------

    def parts_of(self, expr: Expr) -> tuple[Expr, ...] | None:
        """The parts with few values from which an expression is computed; None if there are none."""
        if isinstance(expr, Constant):
            return ()
        if isinstance(expr, Read):
            return None if self.candidates(expr) is None else (expr,)
        inner = self.merge([self.parts_of(part) for part in expr.parts])
        if inner is not None:
            return inner
        return None if self.candidates(expr) is None else (expr,)

    def merge(self, lists: Sequence[tuple[Expr, ...] | None]) -> tuple[Expr, ...] | None:
        """All parts, each column once, if their combinations are few."""
        parts: dict[Any, Expr] = {}
        for listed in lists:
            if listed is None:
                return None
            for part in listed:
                parts[_name(part)] = _wider(parts.get(_name(part)), part)
        sizes = [len(values.null) for part in parts.values() if (values := self.candidates(part)) is not None]
        few = len(sizes) == len(parts) and (len(sizes) == 1 or math.prod(sizes) <= _TRIED)
        return tuple(parts.values()) if few else None

    def candidates(self, part: Expr) -> Values | None:
        """The values of one part, if they are few; conditions on it alone are applied later."""
        if part not in self._found:
            listed = self._list_of(part) if isinstance(part, Read) else None
            self._found[part] = self._of_type(part) if listed is None else listed
        return self._found[part]

    def is_listed(self, read: Read) -> bool:
        """Whether a list says what values a column has, so that NULL belongs to none of them."""
        if (read.table, read.column) in self.facts.known:
            return True
        sure = self.facts.dataset.tables[read.table].private and read.table not in self.facts.optional
        return sure and self._list_of(read) is not None

    def _list_of(self, read: Read) -> Values | None:
        at, declared = (read.table, read.column), self.facts.declared
        if at not in declared:
            values = self._declared_values(read)
            declared[at] = None if values is None else _values(values, read)
        return declared[at]

    def _declared_values(self, read: Read) -> list[Any] | None:
        """The values of a description, of a list in WHERE, of a joined table or of a public table."""
        table = self.facts.dataset.tables.get(read.table)
        if table is None:
            return None
        column, at = table.columns[read.column], (read.table, read.column)
        if at in self.facts.known:
            both = [value for value in column.values or () if value in self.facts.known[at]]
            return [*(both or self.facts.known[at]), *self._missing(read)]
        if table.private:
            return None if column.values is None else [*column.values, *self._missing(read)]
        try:
            values = [value for (value,) in public_values(self.facts.dataset, read.table, (read.column,))]
        except RefusedQuestion:
            return None
        if not all(_is_of(value, read.of) for value in values):
            return None
        return [*values, None] if read.table in self.facts.optional and None not in values else values

    def _missing(self, read: Read) -> list[None]:
        return [None] if read.of.null and not self.facts.is_present(read) else []

    def _of_type(self, part: Expr) -> Values | None:
        """All values of a type between the ends that conditions leave, if there are few."""
        kind = _narrow(part, self.facts).type
        if kind.is_ordered and not isinstance(part, Read):
            low, high = (min(max(end, kind.low), kind.high) for end in self.facts.ends(part))
            kind = replace(kind, low=low, high=max(low, high))
        null = [True] if kind.null else []
        if kind.kind == TRUTH:
            cells: NDArray[Any] = np.array([False, True, *(False for _ in null)])
        else:
            listed = self._cells(part, kind)
            if listed is None:
                return None
            cells = np.array([*listed, *(0 for _ in null)], dtype=np.int64)
        missing = np.zeros(len(cells), dtype=np.bool_)
        missing[len(cells) - len(null) :] = True
        return Values(cells, missing)

    def _cells(self, part: Expr, kind: Type) -> Sequence[int] | None:
        """All cells of a type, or one for each way in which they compare with the constants beside
        them.
        """
        if not kind.is_ordered:
            return None
        if not kind.places and (kind.high - kind.low) // _step(part) < _TRIED:
            return range(kind.low, kind.high + 1, _step(part))
        if not isinstance(part, Read):
            return None
        edges: set[int] = {kind.low, kind.high}
        for expr in (*self.exprs, *self.facts.conditions):
            edges_of_part = _compared_with(expr, part)
            if edges_of_part is None:
                return None
            edges |= edges_of_part
        cells_near_edges = {
            min(max(edge + step, kind.low), kind.high) for edge in edges for step in (-1, 0, 1)
        }
        return sorted(cells_near_edges) if len(cells_near_edges) <= MOST else None

    # --- combinations --------------------------------------------------------------------------------

    def allowed_combinations(self, parts: Sequence[Expr]) -> Assignment:
        """All combinations of the values of parts that no condition excludes."""
        lists = [cast("Values", self.candidates(part)) for part in parts]
        self.has_list = any(isinstance(part, Read) and self._list_of(part) is not None for part in parts)
        sizes = [len(values.null) for values in lists]
        length = int(np.prod(sizes, dtype=np.int64))
        places = np.unravel_index(np.arange(length), sizes) if sizes else ()
        values_tried = [values.take(at) for values, at in zip(lists, places, strict=True)]
        assignment = _assignment(parts, values_tried, length)
        is_allowed = np.ones(length, dtype=np.bool_)
        for condition in self.facts.conditions:
            if assignment.covers(condition):
                holds = evaluate(condition, assignment)
                # Where a column stands for all values beyond its bounds, the condition says nothing.
                pairs = zip(parts, values_tried, strict=True)
                unsure = [self._stands_for_more(part, values, condition) for part, values in pairs]
                is_allowed &= reduce(np.logical_or, unsure, holds.cells & ~holds.null)
        chosen = np.flatnonzero(is_allowed)
        return _assignment(parts, [values.take(chosen) for values in values_tried], len(chosen))

    def _stands_for_more(self, part: Expr, values: Values, condition: Expr) -> NDArray[np.bool_]:
        """Where a column is at a bound, and a condition may be TRUE for values beyond it."""
        stands_for_more = np.zeros(len(values.null), dtype=np.bool_)
        if not isinstance(part, Read) or not part.of.is_ordered or self._list_of(part) is not None:
            return stands_for_more
        low, high = self.facts.ends(part)
        for bound, beyond in (
            (part.of.low, (low, part.of.low - 1)),
            (part.of.high, (part.of.high + 1, high)),
        ):
            if beyond[0] <= beyond[1] and may_hold_beyond(condition, part, beyond):
                stands_for_more |= (values.cells == bound) & ~values.null
        return stands_for_more


def _assignment(parts: Sequence[Expr], values: Sequence[Values], length: int) -> Assignment:
    pairs = list(zip(parts, values, strict=True))
    columns = {_name(part): tried for part, tried in pairs if isinstance(part, Read)}
    return Assignment(columns, {part: tried for part, tried in pairs if not isinstance(part, Read)}, length)


def _name(part: Expr) -> Any:
    """A column by its name and grid, because its bounds differ where it is read; another part by
    itself.
    """
    return (part.table, part.column, part.of.places) if isinstance(part, Read) else part


def _wider(read: Expr | None, other_read: Expr) -> Expr:
    """The wider of two ways to read a column."""
    if read is None or not isinstance(read, Read) or not isinstance(other_read, Read):
        return other_read
    a, b = read.of, other_read.of
    both = Type(a.kind, min(a.low, b.low), max(a.high, b.high), a.places, a.null or b.null)
    return Read(read.table, read.column, both)


def _compared_with(expr: Expr, column: Read) -> set[int] | None:
    """The constants that a column is compared with, and the ends of its readings; None if it is
    used otherwise.
    """
    if isinstance(expr, Read):
        return None if _name(expr) == _name(column) else set()
    edges: set[int] = set()
    for part in expr.parts:
        if not isinstance(part, Read) or _name(part) != _name(column):
            edges_of_part = _compared_with(part, column)
            if edges_of_part is None:
                return None
            edges |= edges_of_part
            continue
        edges |= {part.of.low, part.of.high}
        constants = [other for other in expr.parts if isinstance(other, Constant)]
        if isinstance(expr, e.Compare) and len(constants) == 1 and constants[0].value is not None:
            edges.add(constants[0].value)
        elif isinstance(expr, e.IsIn):
            edges |= set(expr.values)
        elif isinstance(expr, e.Bucket):
            edges |= set(expr.edges)
        elif not isinstance(expr, e.IsNull):
            return None
    return edges


def _step(part: Expr) -> int:
    """How far the values of a part lie from each other."""
    length = civil.TRUNCATED[part.part] if isinstance(part, e.Truncated) else None
    return length if length is not None and part.type.kind == MOMENT else 1


def _values(values: Sequence[Any], read: Read) -> Values:
    """Python values as cells."""
    kind: Any = {TEXT: object, TRUTH: np.bool_}.get(read.of.kind, np.int64)
    cells = np.empty(len(values), dtype=kind)
    hole = {TEXT: "", TRUTH: False}.get(read.of.kind, 0)
    cells[:] = [hole if value is None else _cell(value, read.of) for value in values]
    return Values(cells, np.array([value is None for value in values], dtype=np.bool_))


def _is_of(value: Any, kind: Type) -> bool:
    """Whether a value of a public table is of the kind that its description says."""
    if value is None:
        return True
    if kind.kind == NUMBER:
        return isinstance(value, int) and not isinstance(value, bool) and not kind.places
    return isinstance(value, {TEXT: str, TRUTH: bool}.get(kind.kind, object))


def _cell(value: Any, kind: Type) -> Any:
    if kind.kind == DATE:
        return days(value)
    return micros(value) if kind.kind == MOMENT else value


def _python(cell: Any, kind: Type) -> Any:
    return python_value(cell, kind) if kind.is_ordered and cell is not None else cell


def _narrow(expr: Expr, facts: Facts) -> Expr:
    """An expression whose columns have the bounds that conditions leave them: for its type only."""
    if not isinstance(expr, Read):
        return rebuild(expr, lambda part: _narrow(part, facts))
    old, null = expr.of, expr.of.null and not facts.is_present(expr)
    if not old.is_ordered:
        return Read(expr.table, expr.column, old.with_null(null))
    low, high = (min(max(end, old.low), old.high) for end in facts.ends(expr))
    return Read(expr.table, expr.column, Type(old.kind, low, max(low, high), old.places, null))
