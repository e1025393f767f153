# SPDX-License-Identifier: Apache-2.0
"""Units with several rows in a cube: the norm of their tables, beside the number of their rows."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.exact import exactly
from discreet.tables.algebra.sums import BoundedSums, MarginScheme, RowScheme
from discreet.tables.ask.question import Key
from discreet.tables.plan import margins
from discreet.tables.plan.margins import table_coefficients
from discreet.tables.workloads.residuals import closure_of
from tests.tables.small import WARD, dataset, number, people, weighted
from tests.tables.test_cube import CUBE, X, asked, noise_of, shift, sparse, squared, stage_of

G = Key("g", WARD, ("a", "b"))
VALUES = (0, 1, 2)
COUNT = asked(("count",))


def heavy(stage):
    """All units with more rows than are counted in full, up to two more."""
    rows = stage.strategy.scope.contribution.rows
    return people(VALUES, most=rows + 2, at_least=rows + 1)


def weight_of(stage, person):
    """The weight of each of its rows, by the sum of all cells of the first feature."""
    return Fraction(sum(sums[0] for sums in weighted(stage.sums, person).values()), len(person) * stage.fine)


@pytest.mark.parametrize("sets", [CUBE, ((), (0,), (0, 1)), ((0,), (1,))], ids=["cube", "rollup", "one way"])
@pytest.mark.parametrize("aggregate", ["count", "sum"])
@pytest.mark.parametrize("rows", [1, 2])
def test_no_unit_with_many_rows_moves_the_tables_further_than_the_noise_is_made_for(sets, aggregate, rows):
    aggregates = {"count": [("count",)], "sum": [("sum", number(-2, 2))]}[aggregate]
    stage = stage_of(asked(*aggregates, sets=sets), dataset(at_most=rows))
    assert isinstance(stage.sums.scheme, MarginScheme)
    allowed = 1 / exactly(noise_of(stage)) ** 2
    lengths = [squared(shift(stage, person)) for person in heavy(stage)]
    assert max(lengths) <= allowed
    # Whoever has many rows in several cells moves them as far as one with `rows` rows in one cell, but for rounding.
    # The total is measured less than once where it follows from two tables: it is left out of the norm.
    has_all = all(value > 0 for value in table_coefficients(stage.noise.measurements[0]).values())
    assert max(lengths) >= allowed * Fraction(97 if has_all else 75, 100)


def test_a_norm_that_is_a_tenth_too_large_is_found_out(monkeypatch):
    whole = margins._whole_scheme

    def wider(*words):
        scheme = whole(*words)
        return replace(scheme, most=scheme.most * 11 // 10)

    monkeypatch.setattr(margins, "_whole_scheme", wider)
    stage = stage_of(COUNT, dataset(at_most=1))
    allowed = 1 / exactly(noise_of(stage)) ** 2
    assert max(squared(shift(stage, person)) for person in heavy(stage)) > allowed


def test_a_table_that_is_left_out_of_the_norm_is_found_out(monkeypatch):
    whole = margins._whole_scheme
    monkeypatch.setattr(
        margins,
        "_whole_scheme",
        lambda features, tables, *more: whole(
            features, {keys: values for keys, values in tables.items() if keys}, *more
        ),
    )
    stage = stage_of(asked(("count",), sets=((), (0, 1))), dataset(at_most=1))
    allowed = 1 / exactly(noise_of(stage)) ** 2
    assert max(squared(shift(stage, person)) for person in heavy(stage)) > allowed


@pytest.mark.parametrize("aggregate", ["count", "sum", "positive"])
def test_no_replaced_unit_with_many_rows_moves_them_further(aggregate):
    aggregates = {"count": [("count",)], "sum": [("sum", number(-2, 5))], "positive": [("sum", number(0, 5))]}
    stage = stage_of(asked(*aggregates[aggregate]), dataset(at_most=1, relation="replace"))
    few = [(), *people(VALUES, most=1, at_least=1)]
    vectors = [
        np.array(shift(stage, person), float) for person in [*few, *people(VALUES, most=3, at_least=2)]
    ]
    greatest = max(float(((one - other) ** 2).sum()) for one, other in itertools.combinations(vectors, 2))
    assert greatest <= 1 / float(noise_of(stage)) ** 2 * (1 + 1e-9)
    assert isinstance(stage.sums.scheme, MarginScheme) == (aggregate != "sum")


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_no_unit_is_weighed_less_than_by_its_rows_and_some_more(relation):
    stage = stage_of(COUNT, dataset(at_most=2, relation=relation))
    scheme = stage.sums.scheme
    weights = [(weight_of(stage, person), len(person)) for person in heavy(stage)]
    by_rows = [Fraction(scheme.rows * scheme.fine // many, scheme.fine) for _, many in weights]
    assert all(weight >= least for (weight, _), least in zip(weights, by_rows, strict=True))
    # Four rows in four cells are weighed a fifth more than by their number.
    assert max(weight / least for (weight, _), least in zip(weights, by_rows, strict=True)) > Fraction(6, 5)


@pytest.mark.parametrize("sets", [CUBE, ((0,), (1,)), ((0, 1),)])
def test_the_coefficients_add_up_to_what_is_measured(sets):
    stage = stage_of(asked(("count",), sets=sets), dataset(at_most=3))
    (measurement,) = stage.noise.measurements
    coefficients = table_coefficients(measurement)
    for person in people(VALUES, most=2, at_least=1):
        cells = sparse(stage, weighted(stage.sums, person), 0)
        system = measurement.layout.system
        tables = {keys: cells.totals(keys, system.shape(keys)) for keys in coefficients}
        expected = sum(
            value * int((np.asarray(tables[keys]) ** 2).sum()) for keys, value in coefficients.items()
        )
        length = squared(shift(stage, person))
        assert length <= expected <= length * (1 + Fraction(1, 10**40))


def wide(count):
    """Keys with a few values each, all pairs of which are asked for."""
    keys = tuple(
        Key(f"k{place}", number(0, 3 + place % 2), tuple(range(4 + place % 2))) for place in range(count)
    )
    return keys, closure_of(itertools.combinations(range(count), 2))


def test_many_tables_are_bounded_by_those_of_one_key():
    keys, sets = wide(7)
    stage = stage_of(asked(("count",), sets=sets, keys=keys), dataset(at_most=2))
    scheme = stage.sums.scheme
    assert isinstance(scheme, MarginScheme)
    assert all(len(margin.keys) <= 1 for margin in scheme.margins)
    # All of the keys read the same column here, so a unit's rows are in one cell or in cells that share no value.
    allowed = 1 / exactly(noise_of(stage)) ** 2
    lengths = [squared(shift(stage, person)) for person in people((0, 1, 2), ("a",), most=5, at_least=3)]
    assert max(lengths) <= allowed
    signed = stage_of(
        asked(("sum", number(-2, 5, places=1)), sets=sets, keys=keys), dataset(at_most=2)
    ).sums.scheme
    assert isinstance(signed, RowScheme)


def test_one_row_for_each_unit_needs_no_norm():
    assert isinstance(stage_of(COUNT, dataset(rows_are_units=True)).sums.scheme, RowScheme)
    assert isinstance(stage_of(COUNT, dataset(at_most=2)).sums, BoundedSums)


def test_the_key_with_one_value_is_in_no_table():
    keys = (Key("g", WARD, ("a",)), X)
    stage = stage_of(asked(("count",), sets=CUBE, keys=keys), dataset(at_most=1))
    scheme = stage.sums.scheme
    assert {margin.keys for margin in scheme.margins} == {(), (1,)}
    allowed = 1 / exactly(noise_of(stage)) ** 2
    assert max(squared(shift(stage, person)) for person in heavy(stage)) <= allowed
