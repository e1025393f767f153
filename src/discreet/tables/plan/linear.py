# SPDX-License-Identifier: Apache-2.0
"""Counts, sums, means and variances as functions of linear sums: whole numbers, added up row by
row.

The summed features depend on the noise:

    Laplace    mean      Σ(x − L), Σ(U − x)                    a row adds U − L to both together, whatever x is
               variance  Σ(U − x)², 2Σ(x − L)(U − x), Σ(x − L)²       and (U − L)² to these three
    Gaussian   mean      Σ1, Σy            y = 2x − L − U      centred, so that one row is as short as it can be
               variance  Σ1, Σy, Σ(2y² − (U − L)²)

L and U are the bounds of x, exactly, in cells of a whole-number grid. Rows in which x is NULL add
zero to every sum.

Columns that no row counts in together, such as COUNT(*) FILTER (WHERE sex = 'M') and one for 'F',
have one block, or one part of the norm: together they cost what GROUP BY sex costs.

**Guarantee.** `FeatureLayout.features` are whole numbers on grid 0. Their absolute values in one
row never exceed `reach`, and the absolute values of one block together never exceed `width`. The
estimators are functions of the noisy sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from discreet.errors import RefusedQuestion
from discreet.tables.algebra.expr import Arithmetic, Case, Constant, Expr, IsNull, Quotient
from discreet.tables.algebra.types import NUMBER, Type
from discreet.tables.ask.question import Aggregate
from discreet.tables.plan.exclusive import exclusive_sets, row_condition
from discreet.tables.plan.intervals import LinearForm, combine_forms

__all__ = [
    "LINEAR",
    "ColumnMoments",
    "ColumnRequest",
    "FeatureBlock",
    "FeatureLayout",
    "gaussian_layout",
    "laplace_layout",
    "requested_columns",
    "whole",
]

#: The aggregates that are functions of linear sums.
LINEAR = ("count", "count_of", "sum", "mean", "variance", "stddev")
_SQUARED = {"variance", "stddev"}
_CENTRED = {"mean", *_SQUARED}
#: A square has twice the bits; rounding to 2^-12 of the range adds 5e-9 of its square.
_SQUARED_BITS = 12
#: The share of Σy beside Σ(2y² − (U − L)²).
_FIRST_MOMENT = 0.4


@dataclass(frozen=True)
class ColumnRequest:
    """The kinds of aggregates of one expression; `of` is None for the rows themselves."""

    of: Expr | None
    kinds: frozenset[str]

    @property
    def needs_count(self) -> bool:
        return bool(self.kinds & (_CENTRED | {"count", "count_of"}))

    @property
    def needs_values(self) -> bool:
        return bool(self.kinds & (_CENTRED | {"sum"}))

    @property
    def squared(self) -> bool:
        return bool(self.kinds & _SQUARED)

    @property
    def condition(self) -> Expr | None:
        """A condition that is TRUE in every row in which its features are not 0, if one is known."""
        return row_condition(self.of, zero_counts=self.needs_count)

    @property
    def width(self) -> tuple[object, ...]:
        """What determines the width of its block: equal for blocks of equal width, on every grid."""
        if not self.needs_values or self.of is None:
            return ()
        kind = self.of.type
        return (kind.low, kind.high, kind.places, self.needs_count, self.squared)


@dataclass(frozen=True)
class ColumnMoments:
    """The sums of one column as linear forms of the coordinates: of rows, of x and of squares about
    the middle.

    `total` is Σ(x − middle), or Σx where `middle` is 0 and there is no count. `half` is half the
    width of the bounds, and `step` the width of a cell.
    """

    count: LinearForm | None = None
    total: LinearForm | None = None
    squares: LinearForm | None = None
    middle: Fraction = Fraction(0)
    half: Fraction = Fraction(0)
    step: Fraction = Fraction(1)


@dataclass(frozen=True)
class FeatureBlock:
    """Features whose absolute values in one row add up to at most `width`.

    For a single feature, `span` is the greatest distance between the values of two rows, with 0
    among the values.
    """

    places: tuple[int, ...]
    width: int
    span: int


@dataclass
class FeatureLayout:
    """Features, how far one row moves them, how they share the precision, and how to read them.

    `rows` is the form of COUNT(*), if the question asks for it. `present` is the share of "has a
    row in this group". `signed` says whether a feature can be negative.
    """

    features: list[Expr] = field(default_factory=list)
    reach: list[int] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    conditions: list[Expr | None] = field(default_factory=list)
    blocks: list[FeatureBlock] = field(default_factory=list)
    moments: dict[Expr | None, ColumnMoments] = field(default_factory=dict)
    rows: LinearForm = field(default_factory=dict)
    present: float = 0.0
    signed: bool = False

    @property
    def exclusive(self) -> list[list[int]]:
        """The places of all features, in sets of which at most one is not 0 in any row."""
        return exclusive_sets(self.conditions)

    def add(self, feature: Expr, reach: int, share: float = 1.0, condition: Expr | None = None) -> int:
        """Append a feature and return its place; it is 0 in rows in which its condition is not
        TRUE.
        """
        self.conditions.append(condition)
        self.features.append(feature)
        self.reach.append(reach)
        self.shares.append(share)
        self.signed = self.signed or feature.type.low < 0
        return len(self.features) - 1


def requested_columns(aggregates: Sequence[Aggregate]) -> list[ColumnRequest]:
    """The kinds that each expression is asked for, in the order of the question."""
    kinds_by_column: dict[Expr | None, set[str]] = {}
    for aggregate in aggregates:
        if aggregate.kind in LINEAR:
            _check_summable(aggregate)
            kinds_by_column.setdefault(aggregate.of, set()).add(aggregate.kind)
    # COUNT(*) is COUNT(x) of a column that is never NULL and that is asked for another sum anyway.
    never_null = [
        of
        for of, kinds in kinds_by_column.items()
        if of is not None and not of.type.null and kinds - {"count_of"}
    ]
    if None in kinds_by_column and never_null:
        kinds_by_column[never_null[0]].add("count")
        del kinds_by_column[None]
    return [ColumnRequest(of, frozenset(kinds)) for of, kinds in kinds_by_column.items()]


def laplace_layout(columns: Sequence[ColumnRequest], bits: int) -> FeatureLayout:
    """The features for Laplace noise, in blocks that share ε; values have at most `bits` bits."""
    layout = FeatureLayout()
    for column in columns:
        if not column.needs_values:
            place = layout.add(_row_indicator(column.of), 1, condition=column.condition)
            layout.blocks.append(FeatureBlock((place,), 1, 1))
            layout.moments[column.of] = ColumnMoments(count={place: Fraction(1)})
        elif not column.needs_count:
            _add_sum(layout, column, bits)
        elif column.squared:
            _add_three(layout, column, bits)
        else:
            _add_two(layout, column, bits)
    layout.blocks = _merge_exclusive(layout.blocks, columns)
    return _with_row_count(layout, columns)


def _merge_exclusive(blocks: Sequence[FeatureBlock], columns: Sequence[ColumnRequest]) -> list[FeatureBlock]:
    """The blocks of the columns; those of one width that no row counts in together are one block."""
    by_width: dict[tuple[object, ...], list[int]] = {}
    for place, column in enumerate(columns):
        by_width.setdefault(column.width, []).append(place)
    merged: dict[int, FeatureBlock] = {}
    for places in by_width.values():
        for exclusive in exclusive_sets([columns[place].condition for place in places]):
            merged_blocks = [blocks[places[at]] for at in exclusive]
            features = tuple(feature for block in merged_blocks for feature in block.places)
            merged[places[exclusive[0]]] = replace(merged_blocks[0], places=features)
    return [merged[place] for place in sorted(merged)]


def gaussian_layout(columns: Sequence[ColumnRequest], bits: int, *, units: bool = False) -> FeatureLayout:
    """The features for Gaussian noise, with their shares of the precision (compile.proof.md, § 5).

    `units` adds a coordinate that says whether a unit has a row in a group.
    """
    layout = FeatureLayout()
    families: dict[Expr | None, list[ColumnRequest]] = {}
    for column in columns:
        never_null = column.of is None or not column.of.type.null
        families.setdefault(None if never_null and column.needs_count else column.of, []).append(column)
    for rows_of, family in families.items():
        _add_family(layout, rows_of, family, bits)
    total = sum(layout.shares) + units
    layout.present = units / total
    layout.shares = [share / total for share in layout.shares]
    return _with_row_count(layout, columns)


def _add_family(
    layout: FeatureLayout, rows_of: Expr | None, family: Sequence[ColumnRequest], bits: int
) -> None:
    """Add columns that are NULL in the same rows, with one count for all of them."""
    valued = [column for column in family if column.needs_values]
    means = sum(bool(column.kinds & _CENTRED) for column in valued)
    counted: LinearForm | None = None
    share = 0.0
    if any(column.needs_count for column in family):
        # Beside m means the count gets 1 part in 2 + 2√m.
        share = 1.0 / (2 + 2 * means**0.5) if means else 1.0 / (1 + len(valued))
        weight = len(valued) + (not means)
        condition = row_condition(rows_of)
        counted = {layout.add(_row_indicator(rows_of), 1, share * weight, condition): Fraction(1)}
    for column in family:
        if not column.needs_values:
            layout.moments[column.of] = ColumnMoments(count=counted)
        elif counted is None or not column.kinds & _CENTRED:
            _add_sum(layout, column, bits, 1.0 if not means else 1.0 - share)
            layout.moments[column.of] = replace(layout.moments[column.of], count=counted)
        else:
            _add_centred(layout, column, bits, counted, 1.0 - share)


def _add_sum(layout: FeatureLayout, column: ColumnRequest, bits: int, share: float = 1.0) -> None:
    x, step = _coarse(column, bits, from_zero=True)
    low, high = min(x.type.low, 0), max(x.type.high, 0)
    place = layout.add(x, max(-low, high, 1), share, column.condition)
    layout.blocks.append(FeatureBlock((place,), max(-low, high, 1), max(high - low, 1)))
    layout.moments[column.of] = ColumnMoments(total={place: step}, step=step)


def _add_two(layout: FeatureLayout, column: ColumnRequest, bits: int) -> None:
    x, step = _coarse(column, bits)
    low, high = _ends(x)
    width = high - low
    above, below = layout.add(_minus(x, whole(low)), width), layout.add(_minus(whole(high), x), width)
    layout.blocks.append(FeatureBlock((above, below), width, width))
    layout.moments[column.of] = ColumnMoments(
        count={above: Fraction(1, width), below: Fraction(1, width)},
        total={above: step / 2, below: -step / 2},
        middle=step * Fraction(low + high, 2),
        half=step * Fraction(width, 2),
        step=step,
    )


def _add_three(layout: FeatureLayout, column: ColumnRequest, bits: int) -> None:
    x, step = _coarse(column, bits)
    low, high = _ends(x)
    square = (high - low) ** 2
    above, below = _minus(x, whole(low)), _minus(whole(high), x)
    a = layout.add(_times(below, below), square)
    b = layout.add(_times(whole(2), _times(above, below)), square)
    c = layout.add(_times(above, above), square)
    layout.blocks.append(FeatureBlock((a, b, c), square, square))
    row, slope, quarter = Fraction(1, square), step / (2 * (high - low)), step**2 / 4
    layout.moments[column.of] = ColumnMoments(
        count={a: row, b: row, c: row},
        total={c: slope, a: -slope},
        squares={a: quarter, b: -quarter, c: quarter},
        middle=step * Fraction(low + high, 2),
        half=step * Fraction(high - low, 2),
        step=step,
    )


def _add_centred(
    layout: FeatureLayout, column: ColumnRequest, bits: int, counted: LinearForm, share: float
) -> None:
    x, step = _coarse(column, bits)
    low, high = _ends(x)
    width = high - low
    y = _minus(_times(whole(2), _minus(x, whole(low))), whole(width))
    of_first = share * (_FIRST_MOMENT if column.squared else 1.0)
    first = layout.add(y, width, of_first, column.condition)
    squares: LinearForm | None = None
    if column.squared:
        z = _minus(_times(whole(2), _times(y, y)), whole(width**2))
        second = layout.add(z, width**2, share * (1 - _FIRST_MOMENT), column.condition)
        squares = combine_forms((step**2 / 8, {second: Fraction(1)}), (step**2 / 8 * width**2, counted))
    layout.moments[column.of] = ColumnMoments(
        count=counted,
        total={first: step / 2},
        squares=squares,
        middle=step * Fraction(low + high, 2),
        half=step * Fraction(width, 2),
        step=step,
    )


def _with_row_count(layout: FeatureLayout, columns: Sequence[ColumnRequest]) -> FeatureLayout:
    """The layout with COUNT(*), read off the rows or off a column that is never NULL."""
    for column in columns:
        if "count" in column.kinds:
            layout.rows = layout.moments[column.of].count or {}
    return layout


def _row_indicator(of: Expr | None) -> Expr:
    """1 for every row, or 1 for every row in which an expression is not NULL."""
    if of is None or not of.type.null:
        return whole(1)
    return Case(((IsNull(of), whole(0)),), whole(1))


def _coarse(column: ColumnRequest, bits: int, *, from_zero: bool = False) -> tuple[Expr, Fraction]:
    """x in whole cells of a grid on which it spans at most 2^bits, and the width of a cell."""
    assert column.of is not None
    x, kind = column.of, column.of.type
    extent = max(kind.high, 0) - min(kind.low, 0) if from_zero else kind.high - kind.low
    shift = max(0, extent.bit_length() - (min(bits, _SQUARED_BITS) if column.squared else bits))
    if not kind.places and not shift:
        return x, Fraction(1)
    if shift:
        # Half a cell is added, so that rounding down gives the nearest cell.
        x = Arithmetic("+", x, _cells(1 << (shift - 1), kind.places))
    return Quotient(x, _cells(1 << shift, kind.places)), Fraction(1 << shift, 1 << kind.places)


def _ends(x: Expr) -> tuple[int, int]:
    """The bounds of x; a column with a single possible value gets an upper bound one cell higher."""
    return x.type.low, max(x.type.high, x.type.low + 1)


def _cells(value: int, places: int) -> Constant:
    return Constant(value, Type(NUMBER, value, value, places, null=False))


def whole(value: int) -> Constant:
    """A public whole number."""
    return _cells(value, 0)


def _times(left: Expr, right: Expr) -> Expr:
    return Arithmetic("*", left, right)


def _minus(left: Expr, right: Expr) -> Expr:
    return Arithmetic("-", left, right)


def _check_summable(aggregate: Aggregate) -> None:
    of = aggregate.of
    if aggregate.kind in {"sum", "mean", *_SQUARED} and (of is None or of.type.kind != NUMBER):
        raise RefusedQuestion(
            "DP706",
            f"{aggregate.text or aggregate.kind} needs numbers that can be added up.",
            why="only numbers with public bounds have sums.",
            fix="COUNT(*), or  SUM(CASE WHEN … THEN 1 ELSE 0 END)",
        )
