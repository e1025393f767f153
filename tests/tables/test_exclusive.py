# SPDX-License-Identifier: Apache-2.0
"""Conditions that no row makes TRUE together: what is proved is compared with every value that a row can have."""

from __future__ import annotations

import itertools

import pytest

from discreet.tables.algebra.expr import Case, Compare, Constant, IsIn, IsNull, Like, Logic, Not, Read
from discreet.tables.algebra.types import NUMBER, TEXT, TRUTH, Type
from discreet.tables.plan.exclusive import are_exclusive, exclusive_sets, row_condition
from tests.tables.reference import value

X, Y = Read("t", "x", Type(NUMBER, 0, 4)), Read("t", "y", Type(NUMBER, 0, 4))
SEX, TRUE = Read("t", "sex", Type(TEXT)), Read("t", "yes", Type(TRUTH))


def number(cells):
    return Constant(cells, Type(NUMBER, cells, cells, null=False))


def text(written):
    return Constant(written, Type(TEXT, null=False))


SIMPLE = [
    *(Compare(op, X, number(cells)) for op in ("=", "<>", "<", "<=", ">", ">=") for cells in (1, 2, 3)),
    *(IsIn(X, values) for values in ((1,), (1, 2), (3, 4), (0, 4))),
    IsNull(X),
    Not(IsNull(X)),
    Not(IsIn(X, (1, 2))),
    Not(Compare("<", X, number(2))),
    Compare("=", Y, number(1)),
    Compare("=", SEX, text("M")),
    Compare("=", SEX, text("F")),
    Compare("<>", SEX, text("M")),
    IsIn(SEX, ("M", "F")),
    Like(SEX, "M%"),
    TRUE,
    Not(TRUE),
]
RANGES = [
    Logic("and", (Compare(">=", X, number(a)), Compare("<", X, number(b))))
    for a, b in ((0, 2), (2, 3), (3, 5))
]
EITHER = [
    Logic("or", (Compare("=", X, number(1)), Compare("=", X, number(4)))),
    Logic("or", (SIMPLE[0], TRUE)),
]
CONDITIONS = [*SIMPLE, *RANGES, *EITHER]
CELLS = (None, 0, 1, 2, 3, 4)
ROWS = [
    {("t", "x"): x, ("t", "y"): y, ("t", "sex"): sex, ("t", "yes"): yes}
    for x, y, sex, yes in itertools.product(CELLS, (None, 1, 2), (None, "M", "F", "m"), (None, True, False))
]


def test_what_is_proved_is_true_for_every_row():
    seen = {
        place: [value(condition, row) is True for row in ROWS] for place, condition in enumerate(CONDITIONS)
    }
    found = 0
    for one, other in itertools.product(seen, repeat=2):
        both = any(a and b for a, b in zip(seen[one], seen[other], strict=True))
        proved = are_exclusive(CONDITIONS[one], CONDITIONS[other])
        assert not (proved and both), (CONDITIONS[one], CONDITIONS[other])
        found += proved
    assert found > 200


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (SIMPLE[0], Compare("=", X, number(2))),
        (RANGES[0], RANGES[1]),
        (RANGES[1], RANGES[2]),
        (Compare("=", SEX, text("M")), Compare("<>", SEX, text("M"))),
        (IsIn(SEX, ("M", "D")), Compare("=", SEX, text("F"))),
        (IsNull(X), Compare(">", X, number(0))),
        (TRUE, Not(TRUE)),
        (EITHER[0], Compare("=", X, number(2))),
        (Logic("and", (TRUE, RANGES[0])), Logic("and", (SIMPLE[-3], RANGES[2]))),
    ],
)
def test_usual_ways_to_split_rows_are_recognised(one, other):
    assert are_exclusive(one, other)
    assert are_exclusive(other, one)


def test_what_is_not_proved_is_taken_to_overlap():
    for one, other in [
        (X_IS_1, Compare("=", Y, number(2))),
        (Like(SEX, "M%"), Like(SEX, "F%")),
        (X_IS_1, X_IS_1),
    ]:
        assert not are_exclusive(one, other)


X_IS_1 = Compare("=", X, number(1))


def test_columns_are_put_into_sets():
    conditions = [Compare("=", X, number(cells)) for cells in (0, 1, 2)]
    assert exclusive_sets([*conditions, None, conditions[0], RANGES[2]]) == [[0, 1, 2, 5], [3], [4]]
    many = [Compare("=", X, number(cells)) for cells in range(500)]
    assert exclusive_sets(many) == [[place] for place in range(500)]


def test_the_condition_of_a_filter_is_found():
    nothing, zero = Constant(None, Type(NUMBER, 0, 0)), number(0)
    filtered, summed = Case(((X_IS_1, Y),), nothing), Case(((X_IS_1, Y),), zero)
    assert row_condition(filtered) == row_condition(summed, zero_counts=False) == X_IS_1
    # A mean counts the rows with 0.
    assert row_condition(summed) is None
    assert row_condition(Y) is row_condition(None) is None
    assert row_condition(Case(((X_IS_1, Y), (TRUE, Y)), nothing)) is None
    assert row_condition(Case(((X_IS_1, Y),), number(1)), zero_counts=False) is None
