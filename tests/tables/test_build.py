# SPDX-License-Identifier: Apache-2.0
"""Expressions built of small numbers, on every grid: each value is the exact one, rounded down, and within its type."""

from __future__ import annotations

import itertools
import math
from datetime import UTC, date, datetime
from fractions import Fraction

import pytest

from discreet.errors import RefusedQuestion
from discreet.tables.algebra import expr as e
from discreet.tables.algebra.types import DATE, NUMBER, TEXT, TRUTH, WIDEST, Type
from discreet.tables.ask import build, compare
from tests.tables.reference import value

F = Fraction


def number(name, low, high, places=0):
    return e.Read("t", name, Type(NUMBER, low, high, places))


def cases(*reads):
    """Every row of some small columns."""
    spans = [range(read.of.low, read.of.high + 1) for read in reads]
    for cells in itertools.product(*spans):
        row = {
            ("t", read.column): F(cell, 2**read.of.places) for read, cell in zip(reads, cells, strict=True)
        }
        yield row, [row["t", read.column] for read in reads]


def exact(built, row):
    cells = value(built, row)
    assert cells is None or built.type.low <= cells <= built.type.high
    return None if cells is None else F(cells, 2**built.type.places)


GRIDS = [(-3, 4, 0), (1, 5, 0), (-5, -1, 1), (-2, 3, 2)]


@pytest.mark.parametrize(("one", "other"), list(itertools.product(GRIDS, GRIDS)))
def test_arithmetic_is_exact(one, other):
    a, b = number("a", *one), number("b", *other)
    for row, (x, y) in cases(a, b):
        assert exact(build.arithmetic("+", a, b), row) == x + y
        assert exact(build.arithmetic("-", a, b), row) == x - y
        assert exact(build.arithmetic("*", a, b), row) == x * y
        assert exact(build.extreme("least", [a, b]), row) == min(x, y)
        assert exact(build.extreme("greatest", [a, b, F(1, 2)]), row) == max(x, y, F(1, 2))
        assert exact(build.case([(compare.compare(">", a, b), a)], b), row) == max(x, y)
        assert value(compare.compare("<", a, b), row) is (x < y)
        assert value(compare.compare("=", a, b), row) is (x == y)


@pytest.mark.parametrize(("one", "other"), list(itertools.product(GRIDS, GRIDS)))
def test_a_quotient_is_rounded_down_and_null_at_zero(one, other):
    a, b = number("a", *one), number("b", *other)
    if b.of.places and b.of.low <= 0 <= b.of.high:
        with pytest.raises(RefusedQuestion):
            build.quotient(a, b)
        return
    real, whole = build.quotient(a, b), build.quotient(a, b, whole=True)
    for row, (x, y) in cases(a, b):
        if y == 0:
            assert exact(real, row) is exact(whole, row) is None
            continue
        assert exact(real, row) == F(math.floor(x / y * 2**real.type.places), 2**real.type.places)
        assert x / y - exact(real, row) < F(1, 2**16)
        assert exact(whole, row) == math.floor(x / y)


@pytest.mark.parametrize("one", GRIDS)
def test_functions_of_one_number_are_exact(one):
    a = number("a", *one)
    for row, (x,) in cases(a):
        assert exact(build.absolute(a), row) == abs(x)
        assert exact(build.floor(a), row) == math.floor(x)
        assert exact(build.clamp(a, F(-1), F(3, 2)), row) == min(max(x, F(-1)), F(3, 2))
        assert exact(build.bucket(a, [F(-1), F(1, 2), F(2)]), row) == sum(
            edge <= x for edge in (-1, F(1, 2), 2)
        )
        assert exact(build.coalesce([build.NULL, a, F(1, 4)]), row) == x
        assert exact(build.arithmetic("-", F(1, 4), a), row) == F(1, 4) - x
        if not a.of.places:
            assert exact(build.modulo(a, F(3)), row) == x % 3


@pytest.mark.parametrize("written", [F(n, 4) for n in range(-9, 10)])
@pytest.mark.parametrize("op", ["=", "<>", "<", "<=", ">", ">="])
def test_whole_numbers_are_compared_exactly_with_any_number(op, written):
    a = number("a", -3, 3)
    for row, (x,) in cases(a):
        meant = {
            "=": x == written,
            "<>": x != written,
            "<": x < written,
            "<=": x <= written,
            ">": x > written,
        }
        assert value(compare.compare(op, a, written), row) is meant.get(op, x >= written)
        mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op)
        assert compare.compare(mirrored, written, a) == compare.compare(op, a, written)
        assert value(compare.is_in(a, [written, F(2)]), row) is (x in (written, 2))


def test_null_goes_through_everything_but_where_a_rule_says_otherwise():
    a, row = number("a", 0, 9), {("t", "a"): None}
    for built in (
        build.arithmetic("+", a, F(1)),
        build.quotient(a, F(3)),
        build.absolute(a),
        build.clamp(a, F(1), F(2)),
        build.bucket(a, [F(1)]),
        build.modulo(a, F(3)),
        build.extreme("least", [a, F(3)]),
        compare.compare("<", a, F(3)),
        compare.compare("=", a, F(1, 2)),
        compare.compare("<>", a, F(1, 2)),
        compare.is_in(a, [F(3)]),
        compare.is_in(a, [F(1, 2)]),
        build.as_number(compare.compare("<", a, F(3))),
    ):
        assert built.type.null
        assert value(built, row) is None
    assert value(build.coalesce([a, F(3)]), row) == 3
    assert value(compare.is_truth(compare.compare("<", a, F(3)), True), row) is False


def test_wide_columns_are_compared_on_the_finer_grid():
    """A whole number that would not fit there is moved to the widest that does."""
    whole, real = number("a", -WIDEST, WIDEST), number("b", -WIDEST, WIDEST, 20)
    built = compare.compare("<", whole, real)
    assert value(built, {("t", "a"): 3, ("t", "b"): F(7, 2)}) is True
    assert value(built, {("t", "a"): 4, ("t", "b"): F(7, 2)}) is False
    assert value(built, {("t", "a"): 2**61, ("t", "b"): F(7, 2)}) is False


def test_factors_that_would_not_fit_are_coarsened_to_a_billionth():
    a = number("a", 0, 2**40, 30)
    built = build.arithmetic("*", a, a)
    row = {("t", "a"): F(1000)}
    assert built.type.reach <= WIDEST
    assert abs(exact(built, row) - 10**6) < 10**6 * F(1, 10**8)
    with pytest.raises(RefusedQuestion):
        build.arithmetic("*", number("a", 0, 2**40), number("b", 0, 2**40))


def test_a_quotient_of_wide_numbers_has_as_many_places_as_there_is_room_for():
    a, b = number("a", 0, 2**20), number("b", 2**40, 2**41, 40)
    built = build.quotient(a, b)
    assert built.type.places == 1
    assert (a.of.high << built.shift) <= WIDEST
    assert exact(built, {("t", "a"): 10, ("t", "b"): F(3, 2)}) == F(13, 2)
    with pytest.raises(RefusedQuestion):
        build.quotient(number("a", 0, WIDEST), number("b", 1, 9, 5))


def test_a_written_number_that_a_grid_cannot_hold_is_refused():
    with pytest.raises(RefusedQuestion, match="too close to 0"):
        build.arithmetic("*", number("a", 0, 9), F(1, 10**30))


def test_written_numbers_stay_exact():
    assert build.arithmetic("+", F(1, 10), F(2, 10)) == F(3, 10)
    assert build.quotient(F(1), F(3)) == F(1, 3)
    assert build.quotient(F(7), F(2), whole=True) == 3
    assert build.absolute(F(-1, 3)) == F(1, 3)
    assert build.extreme("least", [F(1, 3), F(1, 4)]) == F(1, 4)
    assert build.clamp(F(5), F(0), F(1)) == 1
    assert build.floor(F(-1, 2)) == -1
    assert build.modulo(F(7), F(3)) == 1
    assert compare.compare("<", F(1), F(2)) == build.TRUE
    assert value(compare.is_in(F(1), [F(1), F(2)]), {}) is True


def test_constants_have_the_type_of_their_value():
    assert build.constant("x").type.kind == TEXT
    assert build.constant(True) is build.TRUE
    assert build.constant(None) is build.NULL
    assert build.constant(date(1970, 1, 3)).value == 2
    assert build.constant(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)).value == 10**6
    assert build.constant(0.5) == F(1, 2)
    assert build.kind_of(compare.as_date("2026-01-31")) == DATE
    assert build.kind_of(build.FALSE) == TRUTH


@pytest.mark.parametrize("text", ["2026-02-30", "", "31.1.2026", "20260132"])
def test_days_that_are_none(text):
    for read in (compare.as_date, compare.as_moment):
        with pytest.raises(RefusedQuestion) as caught:
            read(text)
        assert caught.value.code == "DP705"
