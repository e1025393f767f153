# SPDX-License-Identifier: Apache-2.0
"""COUNT(DISTINCT x): exact numbers on small tables, how far a unit moves them, and its noise."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.exact import exactly
from discreet.tables.algebra.sums import GroupScheme
from discreet.tables.plan.compile import compile_question
from discreet.tables.plan.distinct_values import DistinctValues
from discreet.tables.plan.spend import Spend
from tests.tables.small import dataset, engine, number, people, question

X = number(0, 3)
VALUES = (0, 1, 3, None)
PEOPLE = list(people(VALUES, most=3))
#: What the others have: nothing, one value, all of them, and units with more values than count.
BASES = [
    (),
    ((("a", 0),),),
    ((("a", 0), ("a", 1)), (("b", 3),)),
    ((("a", 0), ("a", 1), ("b", 3)), (("a", 3), ("b", 1), ("b", 0))),
    tuple(((ward, x),) for ward in "ab" for x in VALUES),
]
SPENDS = {"laplace": Spend(epsilon=1.0), "gaussian": Spend(rho=0.5)}


def stage(keys, relation, spend, at_most=2):
    asked = question(("distinct", X), keys=keys)
    (found,) = compile_question(asked, dataset(at_most=at_most, relation=relation), spend).stages
    assert isinstance(found, DistinctValues)
    return found


def numbers(part, table, groups):
    exact = part.exact(engine(table), groups)
    return np.array([exact.get(group, (0,))[0] for group in groups], float)


def distances(part, groups, relation, norm):
    """The greatest distance between the numbers of neighbours, over all bases and all units."""
    for base in BASES:
        start = numbers(part, base, groups)
        moved = [numbers(part, (*base, person), groups) for person in PEOPLE if person]
        pairs = itertools.combinations(moved, 2) if relation == "replace" else ((start, one) for one in moved)
        yield max(np.linalg.norm(one - other, norm) for one, other in pairs)


@pytest.mark.parametrize("spend", SPENDS)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("keys", [None, ("a", "b")], ids=["total", "groups"])
def test_no_unit_moves_the_numbers_further_than_promised(keys, relation, spend):
    part = stage(keys, relation, SPENDS[spend])
    groups = [()] if keys is None else [("a",), ("b",)]
    found = max(distances(part, groups, relation, 1 if spend == "laplace" else 2))
    (noise,) = part.distributions
    if spend == "laplace":
        promised = Fraction(part.guarantee.sensitivity)
        assert Fraction(part.guarantee.sensitivity) / exactly(noise.scale) <= 1
    else:
        promised = exactly(noise.scale) / exactly(part.guarantee.noise)
    assert found <= promised * (1 + Fraction(1, 10**9))
    assert found >= promised * Fraction(65, 100)


def test_values_that_all_count_in_full_move_too_far():
    """The mutant: every pair of unit and value has the weight one."""
    part = stage(None, "add-remove", SPENDS["laplace"])
    everybody = replace(part.sums, scheme=GroupScheme(10**6, part.sums.scheme.fine, norm=1, full=10**3))
    mutant = replace(part, sums=everybody)
    assert max(distances(mutant, [()], "add-remove", 1)) > part.guarantee.sensitivity


@pytest.mark.parametrize("keys", [None, ("a", "b")], ids=["total", "groups"])
def test_the_number_is_exact_where_nobody_has_more_values_than_count(keys):
    part = stage(keys, "add-remove", SPENDS["laplace"], at_most=3)
    groups = [()] if keys is None else [("a",), ("b",)]
    fine = part.sums.scheme.fine
    for table in itertools.islice(itertools.combinations(PEOPLE[::5], 3), 300):
        rows = [row for person in table for row in person]
        exact = [len({x for g, x in rows if x is not None and group in ((), (g,))}) for group in groups]
        assert list(numbers(part, table, groups)) == [fine * one for one in exact]


def test_it_is_never_above_the_exact_number():
    part = stage(None, "add-remove", SPENDS["laplace"], at_most=1)
    for table in itertools.islice(itertools.combinations(PEOPLE[::7], 3), 200):
        exact = len({x for person in table for _, x in person if x is not None})
        assert numbers(part, table, [()])[0] <= part.sums.scheme.fine * exact


@pytest.fixture(scope="module")
def session():
    pl = pytest.importorskip("polars")
    rows = [(n // 3, n % 50, "abc"[n % 3], n / 8, n * 10**12) for n in range(600)]
    frame = pl.DataFrame(rows, ["id", "x", "g", "real", "order"], orient="row")
    data = dp.open(
        frame,
        protect=dp.each("id", at_most=3),
        name="t",
        columns={"g": dp.column(values=["a", "b", "c"]), "x": dp.column(bounds=(0, 49))},
    )
    return dp.Session(data, limit=dp.Limit.filter(epsilon=1e9, delta=1e-6))


ASKED = {
    "SELECT COUNT(DISTINCT x) FROM t": [50],
    "SELECT COUNT(DISTINCT g) FROM t": [3],
    "SELECT COUNT(DISTINCT x + 1) FROM t WHERE x > 9": [40],
    "SELECT g, COUNT(DISTINCT x) FILTER (WHERE x < 9) AS n FROM t GROUP BY g": [9, 9, 9],
    # Whole numbers need no bounds to be told apart.
    'SELECT COUNT(DISTINCT "order") FROM t': [600],
    "SELECT COUNT(DISTINCT CASE WHEN x > 25 THEN g END) FROM t": [3],
    "SELECT COUNT(DISTINCT FLOOR(x / 10)) / COUNT(DISTINCT g) FROM t": [5 / 3],
}


@pytest.mark.parametrize("text", ASKED)
def test_it_means_what_sql_means(session, text):
    answer = session.sql(text, epsilon=1e6)
    (column,) = answer.columns.values()
    assert column.values == pytest.approx(ASKED[text], abs=0.01)


def test_private_keys_and_values_together(session):
    answer = session.sql(
        "SELECT x % 5 AS k, COUNT(DISTINCT g) AS n FROM t WHERE x % 5 <> 2 GROUP BY k",
        epsilon=1e4,
        delta=1e-6,
    )
    assert answer.columns["n"].values == pytest.approx([3] * 4, abs=0.01)
    assert any("adds at most 3 values" in note for note in answer.notes)


def test_a_stated_error_is_kept(session):
    answer = session.sql("SELECT COUNT(DISTINCT x) AS n FROM t", error="±5")
    (low, high) = answer.interval
    assert high - low <= 10.01


@pytest.mark.parametrize(
    ("text", "code"),
    {
        "SELECT COUNT(DISTINCT real) FROM t": "DP704",
        "SELECT COUNT(DISTINCT x, g) FROM t": "DP706",
        "SELECT COUNT(DISTINCT nothing) FROM t": "DP701",
        "SELECT SUM(DISTINCT x) FROM t": "DP706",
    }.items(),
)
def test_what_cannot_be_told_apart_is_refused(session, text, code):
    before = session.budget().spent_fraction
    with pytest.raises(dp.errors.DiscreetError) as refused:
        session.sql(text, epsilon=1)
    assert refused.value.code == code
    assert session.budget().spent_fraction == before
