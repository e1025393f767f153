# SPDX-License-Identifier: Apache-2.0
"""Sums are cut by what is summed and not by rows; means keep weights that go by rows; quotients stay of one kind."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from discreet.tables import engines
from discreet.tables.algebra.sums import BoundedSums, Filtered, MassScheme, NormScheme, Private, RowScheme
from discreet.tables.ask.released import PublicValue, ReleasedColumn, ReleasedOperation, quotient_columns
from discreet.tables.ask.sql import parse
from discreet.tables.engines.down_weighted import can_separate
from discreet.tables.plan.compile import compile_question
from discreet.tables.plan.spend import Spend
from tests.tables.reference import Reference
from tests.tables.small import dataset, engine, number, question
from tests.tables.test_conformance import Compare, Quotient, whole, word
from tests.tables.test_conformance import number as column
from tests.tables.world import world

X = number(0, 500)
SPENDS = {"pure": Spend(epsilon=1), "both": Spend(epsilon=1, delta=1e-6), "rho": Spend(rho=0.1)}
MANY = (("a", 3),) * 40  # forty small rows: 120 in all, where ten rows can be 5000


def exact(mechanism, table):
    """Each number without noise, group by group; only those that are linear."""
    found = {}
    for part in mechanism.stages:
        sums = part.exact(engine(table))
        for name, estimate in part.estimates.items():
            if estimate.form is not None:
                found[name] = {
                    key: sum(weight * row[place] for place, weight in estimate.form.items())
                    for key, row in sums.items()
                }
    return found


@pytest.mark.parametrize("spend", SPENDS.values(), ids=SPENDS)
def test_many_small_rows_are_summed_in_full_and_counted_in_part(spend):
    asked = question(("sum", X), ("count",), ("mean", X), keys=("a", "b"))
    mechanism = compile_question(asked, dataset(at_most=10), spend)
    (kept,) = exact(mechanism, (MANY,))["sum0"].values()
    assert kept == 120
    (counted,) = exact(mechanism, (MANY,))["count1"].values()
    assert 9.5 < counted <= 12
    large = (("a", 500),) * 40
    (kept,) = exact(mechanism, (large,))["sum0"].values()
    assert 4990 < kept <= 5000


@pytest.mark.parametrize("spend", SPENDS.values(), ids=SPENDS)
def test_a_mean_is_that_of_rows_with_equal_weights(spend):
    table = (MANY, (("a", 100),) * 4, (("a", 7), ("b", 9)))
    mechanism = compile_question(
        question(("sum", X), ("mean", X), keys=("a", "b")), dataset(at_most=10), spend
    )
    (part,) = (part for part in mechanism.stages if "mean1" in part.estimates)
    moments, row = part.estimates["mean1"].moments, part.exact(engine(table))[("a",)]

    def value(form):
        return sum(weight * row[place] for place, weight in form.items())

    mean = value(moments.total) / value(moments.count) + moments.middle
    rows = value(moments.count)
    assert mean == pytest.approx((3 * (rows - 5) + 407) / rows, rel=2e-3)


@pytest.mark.parametrize("spend", SPENDS.values(), ids=SPENDS)
def test_a_quotient_is_made_of_numbers_that_are_bounded_alike(spend):
    asked = question(("sum", X), ("count",), keys=("a", "b"))
    together = replace(asked, quotients=frozenset({"sum0", "count1"}))
    found = exact(compile_question(together, dataset(at_most=10), spend), (MANY,))
    assert found["sum0"][("a",)] == pytest.approx(3 * found["count1"][("a",)], rel=1e-9)
    apart = exact(compile_question(asked, dataset(at_most=10), spend), (MANY,))
    assert apart["sum0"][("a",)] > 9 * apart["count1"][("a",)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT ward, SUM(days) / COUNT(*) FROM visits GROUP BY ward", {"sum_days", "count"}),
        (
            "SELECT SUM(days) AS s FROM visits GROUP BY ward HAVING SUM(days) > 5 * COUNT(*)",
            {"s", "count"},
        ),
        ("SELECT SUM(days) AS s FROM visits GROUP BY ward ORDER BY SUM(days) / COUNT(*)", {"s", "count"}),
        ("SELECT ward, SUM(days) / 7, COUNT(*) FROM visits GROUP BY ward", set()),
        ("SELECT ward, SUM(days) - COUNT(*) FROM visits GROUP BY ward HAVING COUNT(*) > 3", set()),
    ],
)
def test_quotients_are_found_in_sql(text, names):
    assert parse(text, world()).question.quotients == names


def test_what_is_divided_is_found_wherever_it_stands():
    ratio = ReleasedOperation(
        "/", (ReleasedColumn("a"), ReleasedOperation("+", (ReleasedColumn("b"), PublicValue(1))))
    )
    assert quotient_columns(
        ReleasedOperation("round", (ReleasedOperation("*", (PublicValue(100), ratio)),))
    ) == {"a", "b"}
    assert quotient_columns(ReleasedOperation("/", (ReleasedColumn("a"), PublicValue(2)))) == set()
    assert quotient_columns(ReleasedColumn("a")) == set()


def test_the_notes_name_what_is_cut_off():
    asked = question(("sum", X), ("mean", X), keys=("a", "b"))
    notes = " ".join(compile_question(asked, dataset(at_most=10), SPENDS["pure"]).notes)
    assert "scaled down to what 10 rows at the bound can add" in notes
    assert "so other numbers give these rows less weight" in notes
    rows = " ".join(compile_question(asked, dataset(rows_are_units=True), SPENDS["pure"]).notes)
    assert "down-weighted" not in rows
    assert "scaled down" not in rows


def test_where_rows_are_units_a_sum_comes_with_the_mean():
    asked = question(("sum", X), ("mean", X), ("count",), keys=("a", "b"))
    (part,) = compile_question(asked, dataset(rows_are_units=True), SPENDS["pure"]).stages
    assert set(part.estimates) == {"sum0", "mean1", "count2"}


@pytest.mark.parametrize(
    ("sums", "keys", "scheme"),
    [
        ([X], None, MassScheme),
        ([number(-2, 5)], None, RowScheme),
        ([X, number(1, 5)], None, RowScheme),
        ([number(-2, 5)], ("a", "b"), MassScheme),
    ],
    ids=["one sign", "both signs", "two", "groups"],
)
def test_a_replaced_total_has_the_bound_that_needs_less_noise(sums, keys, scheme):
    asked = question(*(("sum", one) for one in sums), keys=keys)
    (part,) = compile_question(asked, dataset(at_most=2, relation="replace"), SPENDS["pure"]).stages
    assert isinstance(part.sums.scheme, scheme)


@pytest.mark.parametrize("counts", [(11, 0), (12, 5), (7, 8), (30, 1), (100, 100)])
def test_a_count_is_down_weighted_no_more_than_it_must_be(counts):
    """Whole steps of a row each would cost up to a fifth: 10 / (⌊√(11²)⌋ + 2) is 0.77 and not 0.91."""
    mechanism = compile_question(question(("count",), keys=("a", "b")), dataset(at_most=10), SPENDS["rho"])
    person = (("a", 1),) * counts[0] + (("b", 1),) * counts[1]
    found = exact(mechanism, (person,))["count0"]
    for key, many in zip("ab", counts, strict=True):
        wanted = many * min(1, 10 / math.hypot(*counts))
        assert wanted * 0.99 - 1e-9 <= found.get((key,), Fraction(0)) <= wanted * (1 + 1e-12)


# --- DuckDB adds up those who are not down-weighted as one ----------------------------------------------

AMOUNT = Quotient(column("y", 0, 5000, table="long"), whole(10))
ROWS = Private("long")


def long_table():
    """Most people have little, every seventh has much; names are texts."""
    rows = [
        {"who": f"p{who}", "g": "abc"[(who + place) % 3], "y": (who * 37 + place * 91) % 900}
        for who in range(60)
        for place in range(1 + who % 9 * (20 if who % 7 == 0 else 1))
    ]
    rows += [{"who": "p0", "g": None, "y": None}, {"who": None, "g": "a", "y": 5000}]
    return rows


@pytest.fixture(scope="module")
def both():
    pytest.importorskip("duckdb")
    arrow = pytest.importorskip("pyarrow")
    rows, units = long_table(), {"long": "who"}
    return engines.duckdb({"long": arrow.Table.from_pylist(rows)}, units=units), Reference(
        {"long": rows}, units
    )


@pytest.mark.parametrize(
    "scheme", [MassScheme(2000, 4096), MassScheme(1, 64), MassScheme(10**9, 64), NormScheme(60, 4096, (25,))]
)
@pytest.mark.parametrize("keys", [(word("g", "long"),), ()], ids=["groups", "total"])
def test_sums_of_the_few_and_the_many_are_those_of_all(both, scheme, keys):
    duck, reference = both
    some = Filtered(ROWS, Compare(">", column("y", 0, 5000, table="long"), whole(40)))
    for rows in (ROWS, some):
        asked = BoundedSums(rows, keys, (AMOUNT,), scheme)
        assert can_separate(asked)
        assert duck.sums(asked) == duck.sums(asked) == reference.sums(asked)
        mean = BoundedSums(rows, keys, (AMOUNT, whole(1)), RowScheme(3, 4096))
        assert duck.sums(mean) == reference.sums(mean)


def test_what_was_staged_for_a_sum_serves_the_mean(both):
    duck, reference = both
    rows, keys = (
        Filtered(ROWS, Compare("<", column("y", 0, 5000, table="long"), whole(700))),
        (word("g", "long"),),
    )
    asked = BoundedSums(rows, keys, (AMOUNT,), MassScheme(500, 64))
    assert duck.sums(asked) == reference.sums(asked)
    before = duck._temporary.made
    mean = BoundedSums(rows, keys, (AMOUNT, whole(1)), RowScheme(3, 64))
    assert duck.sums(mean) == reference.sums(mean)
    assert duck._temporary.made == before + 1, "one pass, and no second reading"
    wide = BoundedSums(
        rows, keys, (column("y", -(2**62), 2**62, table="long"),), RowScheme(3, 64)
    )  # read otherwise
    assert duck.sums(wide) == reference.sums(wide)


def test_only_sums_that_are_never_negative_are_separated():
    negative = column("y", -1, 5, table="long")
    assert not can_separate(BoundedSums(ROWS, (), (negative,), MassScheme(5, 64)))
    assert not can_separate(BoundedSums(ROWS, (), (whole(1),), NormScheme(5, 64, (1,))))
    assert not can_separate(BoundedSums(ROWS, (), (AMOUNT,), RowScheme(5, 64)))
    assert not can_separate(BoundedSums(ROWS, (), (AMOUNT,), NormScheme(5, 64, (1, 1)), present=3))
    assert not can_separate(BoundedSums(ROWS, (), (column("y", 0, 2**62, table="long"),), MassScheme(5, 64)))
