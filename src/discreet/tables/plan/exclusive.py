# SPDX-License-Identifier: Apache-2.0
"""Which columns no row can count in together, such as COUNT(*) FILTER (WHERE sex = 'M') and one for
'F'.

**Guarantee.** `are_exclusive(a, b)` is True only if no row makes both conditions TRUE, whatever the
values in the row are. So at most one of two columns with these conditions is not 0 in any row.

Why it holds: a condition that is TRUE makes each of its conjuncts TRUE. Two conjuncts about the
same expression name the values that it may have, as a set or an interval; the expression has one
value in a row. If the two have no value in common, both cannot be TRUE (compile.proof.md, § 2).

What would break it: an engine that evaluates one expression twice in a row with two results, or
finds two different texts equal. Both are excluded by `algebra/sums.py` and `engines/dialect.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.tables.algebra.expr import Case, Compare, Constant, Expr, IsIn, IsNull, Logic, Not, Read
from discreet.tables.algebra.types import Value

__all__ = ["are_exclusive", "exclusive_sets", "row_condition"]

#: Up to this many columns are compared with each other.
_MOST = 400


def row_condition(of: Expr | None, *, zero_counts: bool = True) -> Expr | None:
    """A condition that is TRUE in every row in which an expression is not NULL; None if none is
    known.

    Where a 0 adds nothing, `zero_counts` is False, and the condition may exclude rows with 0 too.
    """
    if not isinstance(of, Case) or len(of.whens) != 1 or not isinstance(of.otherwise, Constant):
        return None
    nothing = (None,) if zero_counts else (None, 0)
    return of.whens[0][0] if of.otherwise.value in nothing else None


def exclusive_sets(conditions: Sequence[Expr | None]) -> list[list[int]]:
    """The places of conditions, in sets of which any two are exclusive; each place is in one set."""
    sets: list[list[int]] = []
    for place, condition in enumerate(conditions):
        joined = condition is not None and len(conditions) <= _MOST
        known = (
            places
            for places in sets
            if joined and all(_excludes(conditions[other], condition) for other in places)
        )
        places = next(known, None)
        if places is None:
            sets.append([place])
        else:
            places.append(place)
    return sets


def _excludes(one: Expr | None, other: Expr | None) -> bool:
    return one is not None and other is not None and are_exclusive(one, other)


def are_exclusive(one: Expr, other: Expr) -> bool:
    """Whether it is proved that no row makes both conditions TRUE."""
    if isinstance(one, Logic) and one.op == "or":
        return all(are_exclusive(item, other) for item in one.items)
    if isinstance(other, Logic) and other.op == "or":
        return all(are_exclusive(one, item) for item in other.items)
    return any(
        a.of == b.of and not a.meets(b)
        for a in map(_allowed_values, _conjuncts(one))
        for b in map(_allowed_values, _conjuncts(other))
        if a is not None and b is not None
    )


def _conjuncts(condition: Expr) -> list[Expr]:
    if isinstance(condition, Logic) and condition.op == "and":
        return [part for item in condition.items for part in _conjuncts(item)]
    return [condition]


@dataclass(frozen=True)
class _AllowedValues:
    """The values of an expression at which a condition can be TRUE.

    Either those `among` a finite set, or those from `low` to `high` (None: without an end) that are
    not `without`. `null` says whether it can be TRUE where the expression is NULL.
    """

    of: Expr
    among: frozenset[Value] | None = None
    low: int | None = None
    high: int | None = None
    without: frozenset[Value] = frozenset()
    null: bool = False

    def meets(self, other: _AllowedValues) -> bool:
        """Whether some value is allowed by both."""
        if self.null and other.null:
            return True
        if self.among is None and other.among is None:
            # Between two ends that cross there is nothing; what is left out is not looked at.
            return not (_is_above(self.low, other.high) or _is_above(other.low, self.high))
        if self.among is None:
            return other.meets(self)
        return any(other._allows(value) for value in self.among)

    def _allows(self, value: Value) -> bool:
        if self.among is not None:
            return value in self.among
        if value in self.without:
            return False
        if not isinstance(value, int):
            # Only whole numbers have ends; of other values nothing is excluded.
            return True
        return not (_is_above(self.low, value) or _is_above(value, self.high))


def _is_above(end: int | None, other: int | None) -> bool:
    return end is not None and other is not None and end > other


#: The end of an interval that a comparison with a constant sets, in cells.
_ENDS = {"<": ("high", -1), "<=": ("high", 0), ">": ("low", 1), ">=": ("low", 0)}
_NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def _allowed_values(condition: Expr) -> _AllowedValues | None:
    """What one condition says of the values of one expression; None if that is not known."""
    if isinstance(condition, IsIn):
        return _AllowedValues(condition.of, frozenset(condition.values))
    if isinstance(condition, IsNull):
        return _AllowedValues(condition.of, frozenset(), null=True)
    if isinstance(condition, Read):
        return _AllowedValues(condition, frozenset({True}))
    if isinstance(condition, Not):
        return _allowed_by_not(condition.of)
    if isinstance(condition, Compare) and isinstance(condition.right, Constant):
        return _read_comparison(condition.op, condition.left, condition.right.value)
    return None


def _allowed_by_not(condition: Expr) -> _AllowedValues | None:
    """The same for NOT, which is TRUE where its condition is FALSE."""
    if isinstance(condition, IsNull):
        return _AllowedValues(condition.of)
    if isinstance(condition, IsIn):
        return _AllowedValues(condition.of, without=frozenset(condition.values))
    if isinstance(condition, Read):
        return _AllowedValues(condition, frozenset({False}))
    if isinstance(condition, Compare) and isinstance(condition.right, Constant):
        return _read_comparison(_NEGATED[condition.op], condition.left, condition.right.value)
    return None


def _read_comparison(op: str, of: Expr, value: Value) -> _AllowedValues | None:
    if value is None:
        return None
    if op == "=":
        return _AllowedValues(of, frozenset({value}))
    if op == "<>":
        return _AllowedValues(of, without=frozenset({value}))
    if not isinstance(value, int):
        return None
    side, step = _ENDS[op]
    return _AllowedValues(of, low=value + step) if side == "low" else _AllowedValues(of, high=value + step)
