# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction

import pytest

from discreet.errors import BadParameter, DiscreetError, RefusedQuestion
from discreet.tables.algebra.expr import Read
from discreet.tables.algebra.sums import Filtered, Private
from discreet.tables.algebra.types import DATE, MOMENT, NUMBER, TEXT, TRUTH, WIDEST
from discreet.tables.ask.columns import (
    bounded_column,
    cell_of,
    column_of,
    exact_number,
    grid_places,
    rows_of,
    similar_names,
    unbounded_column,
)
from discreet.tables.data.dataset import Column, Table
from tests.tables.world import TABLES

VISITS = TABLES["visits"]


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (0, 500),
        (-1, 1),
        (0, Fraction(1, 10)),
        (10**6, 10**6 + Fraction(1, 10**6)),
        (0, 10**12),
        (-(2**40), 2**40),
    ],
)
def test_a_grid_is_fine_where_a_double_is_and_never_too_fine(low, high):
    places = grid_places(Fraction(low), Fraction(high))
    width, reach = Fraction(high) - low, max(abs(Fraction(low)), abs(Fraction(high)))
    assert places >= 0
    assert reach * 2**places <= 2**52 or places == 0
    if reach * 2**places < 2**53 and places:
        assert width * 2**places <= 2**24
        assert width * 2 ** (places + 1) > 2**24 or reach * 2 ** (places + 1) > 2**52


def test_whole_numbers_have_cells_of_one_and_real_ones_what_their_column_says():
    assert bounded_column(VISITS, "days").of == bounded_column(VISITS, "days", (0, 60)).of
    assert bounded_column(VISITS, "days").type.places == 0
    told = Table("t", {"x": Column("x", "real", (0, 1), places=4)})
    assert (bounded_column(told, "x").type.high, bounded_column(told, "x").type.places) == (16, 4)


def test_ends_are_rounded_down_as_values_are():
    """0.1 is no binary fraction: the end lies in the cell of the value, so that a value at the end is not cut."""
    table = Table("t", {"x": Column("x", "real", (0, 0.1))})
    kind = bounded_column(table, "x").type
    assert kind.high == cell_of(Fraction("0.1"), kind.places)
    assert kind.bounds[1] <= Fraction("0.1") < kind.bounds[1] + Fraction(1, 2**kind.places)


def test_whole_numbers_lie_between_their_bounds_even_where_these_are_not_whole():
    kind = bounded_column(VISITS, "age", (Fraction(1, 2), Fraction(7, 2))).type
    assert (kind.low, kind.high) == (1, 3)


@pytest.mark.parametrize(
    ("column", "kind"),
    [("note", TEXT), ("urgent", TRUTH), ("day", DATE), ("seen_at", MOMENT), ("days", NUMBER)],
)
def test_each_kind_of_column_is_read_as_its_own(column, kind):
    assert bounded_column(VISITS, column).type.kind == kind
    assert unbounded_column(VISITS, column).type.kind == kind


def test_dates_have_the_bounds_of_their_column_or_of_the_calendar():
    assert bounded_column(VISITS, "day").type.bounds == ((date(2024, 1, 1) - date(1970, 1, 1)).days, 20453)
    assert bounded_column(VISITS, "born").type.low == (date(1, 1, 1) - date(1970, 1, 1)).days
    assert bounded_column(VISITS, "born", ("2000-01-01", datetime(2001, 1, 1, tzinfo=UTC))).type.bounds == (
        10957,
        11323,
    )
    assert (
        bounded_column(VISITS, "seen_at", ("2000-01-01T00:00:00", date(2000, 1, 2))).type.low
        == 946_684_800_000_000
    )


def test_a_condition_sees_numbers_as_they_are():
    assert unbounded_column(VISITS, "days").type.bounds == (-WIDEST, WIDEST)
    assert unbounded_column(VISITS, "cost").type.places == bounded_column(VISITS, "cost").type.places
    assert unbounded_column(VISITS, "weight").type.places == 20


def test_a_number_without_bounds_says_both_places_where_they_can_be_written():
    with pytest.raises(BadParameter) as caught:
        bounded_column(VISITS, "weight", text="AVG(weight)")
    assert caught.value.code == "DP104"
    assert "AVG(weight) needs bounds, and none are declared." in str(caught.value)
    assert "bounds = [0, 500]" in caught.value.fix
    assert "AVG(CLAMP(weight, 0, 500))" in caught.value.fix
    with pytest.raises(BadParameter, match=r"CLAMP\(age, 0, 500\)"):
        bounded_column(VISITS, "age")


@pytest.mark.parametrize(
    "bounds",
    [
        (1, 0),
        (float("nan"), 1),
        (0, float("inf")),
        (True, 3),
        ("a", "b"),
        (0, 2**63),
        (Decimal("NaN"), Decimal(1)),
    ],
)
def test_bounds_that_are_none_are_refused(bounds):
    with pytest.raises(DiscreetError) as caught:
        bounded_column(VISITS, "weight", bounds)
    assert caught.value.code in {"DP104", "DP107", "DP705"}


@pytest.mark.parametrize("bounds", [("x", "y"), (1, 2), ("2000-13-01", "2001-01-01")])
def test_bounds_of_dates_are_dates(bounds):
    for column in ("day", "seen_at"):
        with pytest.raises(BadParameter):
            bounded_column(VISITS, column, bounds)


def test_a_column_that_nothing_is_known_of_is_refused():
    with pytest.raises(RefusedQuestion) as caught:
        bounded_column(VISITS, "blob")
    assert caught.value.code == "DP705"
    with pytest.raises(RefusedQuestion, match="use day or days") as caught:
        column_of(VISITS, "Dayz")
    assert caught.value.code == "DP701"


def test_names_that_may_have_been_meant():
    assert similar_names("dayss", ["days", "cost"]) == "days"
    assert similar_names("zzz", ["days", "cost"]) == "one of days, cost"
    assert similar_names("zzz", ["days"]) == "days"
    assert similar_names("zzz", []) == "another name"


def test_what_is_never_null_is_made_so():
    made = rows_of(VISITS, {})
    assert isinstance(made, Filtered)
    assert made.rows == Private("visits")
    assert isinstance(made.condition.of.of, Read)
    assert (made.condition.of.of.column, made.condition.of.of.type.null) == ("urgent", True)
    assert rows_of(TABLES["labs"], {}) == Private("labs")
    two = Table("t", {"a": Column("a", "text", null=False), "b": Column("b", "real", null=False)}, "a")
    assert rows_of(two, {}).condition.of.of.column == "b", "rows without a unit are dropped by the engine"


def test_a_float_is_the_decimal_that_it_prints_as():
    assert exact_number(0.1) == Fraction(1, 10)
    assert exact_number(Decimal("0.25")) == Fraction(1, 4)
    assert exact_number(3) == 3
