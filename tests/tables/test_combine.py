# SPDX-License-Identifier: Apache-2.0
"""Merged answers: the estimates of generalised least squares, each with an interval that holds."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import discreet as dp
from discreet.errors import BadParameter
from tests.chance import may_fail

SEX, RACE = ("f", "m"), ("x", "y", "z")
CELLS = list(product(SEX, RACE))
COUNTS = dict(zip(CELLS, (5, 12, 7, 20, 3, 9), strict=True))


def data():
    rows = [cell for cell, count in COUNTS.items() for _ in range(count)]
    table = pa.table(
        {
            "id": list(range(len(rows))),
            "sex": [sex for sex, _ in rows],
            "race": [race for _, race in rows],
            "x": [1] * len(rows),
        }
    )
    columns = {
        "sex": dp.column(values=list(SEX)),
        "race": dp.column(values=list(RACE)),
        "x": dp.column(bounds=(0, 4)),
    }
    return dp.open({"people": table}, protect=dp.each("id", at_most=1), columns=columns)


DATA = data()


def session():
    return dp.Session(DATA, limit=dp.Limit.filter(rho=1000))


def dense_estimates(queries, values, variances):
    """Weighted least squares on the table over all keys."""
    weights = 1 / np.sqrt(np.array(variances))
    best, *_ = np.linalg.lstsq(queries * weights[:, None], np.array(values) * weights, rcond=None)
    return best


def test_the_merged_numbers_are_those_of_least_squares():
    asked = session()
    by_sex = asked.release(DATA.group_by("sex").count(), rho=0.05)
    by_both = asked.release(DATA.group_by("sex", "race").count(), rho=0.02)
    total = asked.release(DATA.count(), rho=0.1)
    merged = asked.combine(total, by_sex, by_both, complete=("sex", "race"))
    queries = np.array(
        [[1.0] * 6]
        + [[float(sex == each) for each, _ in CELLS] for (sex,) in by_sex.groups]
        + [[float(cell == group) for cell in CELLS] for group in by_both.groups]
    )
    answers = (total, by_sex, by_both)
    values = [value for answer in answers for value in answer.columns["count"].values]
    deviations = [answer.columns["count"].deviation for answer in answers for _ in answer.groups]
    best = dense_estimates(queries, values, np.square(deviations))
    assert np.allclose(merged.columns["count"].values, queries @ best, atol=1e-6)
    assert merged.keys == ("sex", "race", "grouping")
    for answer, rows in ((total, range(1)), (by_sex, range(1, 3))):
        width = answer.columns["count"].hi[0] - answer.columns["count"].lo[0]
        assert all(
            merged.columns["count"].hi[row] - merged.columns["count"].lo[row] < width + 1 for row in rows
        )


def test_keys_that_may_have_other_values_tie_nothing_together():
    asked = session()
    by_sex = asked.release(DATA.group_by("sex").count(), rho=0.05)
    by_both = asked.release(DATA.group_by("sex", "race").count(), rho=0.02)
    merged = asked.combine(by_sex, by_both)
    together = [*by_sex.columns["count"].values, *by_both.columns["count"].values]
    assert np.allclose(merged.columns["count"].values, together, atol=1e-6)


def test_a_repeated_question_is_a_weighted_mean():
    asked = session()
    once, more = (asked.release(DATA.group_by("sex").sum("x"), rho=rho) for rho in (0.02, 0.06))
    merged = asked.combine(once, more)
    assert merged.keys == ("sex",)
    for row in range(2):
        a, b = (each.columns["sum_x"].values[row] for each in (once, more))
        assert math.isclose(merged.columns["sum_x"].values[row], (a + 3 * b) / 4, rel_tol=1e-3, abs_tol=0.05)
    # Merged with itself an answer stays as it is.
    assert np.allclose(asked.combine(once, once).columns["sum_x"].values, once.columns["sum_x"].values)


def test_cubes_are_merged_with_tables():
    asked = session()
    cube = asked.release(DATA.cube("sex", "race").count(), rho=0.05)
    by_sex = asked.release(DATA.group_by("sex").count(), rho=0.05)
    merged = asked.combine(by_sex, cube, complete=("sex", "race"))
    rows = {row[:2]: row[3:] for row in merged.rows()}
    for sex in SEX:
        parts = sum(rows[sex, race][0] for race in RACE)
        assert math.isclose(parts, rows[sex, None][0], abs_tol=1e-6)
        (of_cube,) = (row for row in cube["sex"] if row["sex"] == sex)
        assert rows[sex, None][2] - rows[sex, None][1] < of_cube["count_hi"] - of_cube["count_lo"] + 1


@pytest.mark.parametrize("cost", [{"rho": 0.02}, {"epsilon": 0.5}], ids=["gaussian", "laplace"])
@may_fail(1e-9, "three numbers, each with a binomial tail")
def test_merged_intervals_cover_and_narrower_ones_do_not(cost):
    runs, hits, narrow = 60, np.zeros(3), np.zeros(3)
    asked = session()
    first = DATA.group_by("sex").count()
    second = DATA.group_by("sex", "race").count()
    for _ in range(runs):
        merged = asked.combine(
            asked.release(first, **cost), asked.release(second, **cost), complete=("race",)
        )
        for place, (row, exact) in enumerate(((0, 24), (1, 32), (2, 5))):
            value, low, high = merged.rows()[row][3:]
            hits[place] += low <= exact <= high
            half = (high - value) if low == 0 else (high - low) / 2
            narrow[place] += abs(value - exact) <= half / 4
    assert (hits >= binom.ppf(1e-10, runs, 0.95)).all()
    assert (narrow <= binom.ppf(1 - 1e-10, runs, 0.6)).all()


class TestRefusals:
    def test_what_cannot_be_merged_is_refused(self):
        asked = session()
        by_sex = asked.release(DATA.group_by("sex").count(), rho=0.1)
        wrong = [
            (by_sex,),
            (by_sex, "the other"),
            (by_sex, asked.release(DATA.where(dp.col("x") > 0).group_by("sex").count(), rho=0.1)),
            (by_sex, asked.release(DATA.group_by("sex").sum("x"), rho=0.1)),
            (by_sex, asked.release(DATA.group_by("sex").count().limit(1), rho=0.1)),
            (by_sex, by_sex.nonnegative()),
            (by_sex, asked.release(DATA.cube("sex").count(), epsilon=0.1)),
        ]
        for answers in wrong:
            with pytest.raises(BadParameter, match=r"DP10[47]"):
                asked.combine(*answers)
        with pytest.raises(BadParameter, match="DP105"):
            asked.combine(by_sex, by_sex, complete=("age",))

    def test_it_costs_nothing(self):
        asked = session()
        answers = [asked.release(DATA.group_by("sex").count(), rho=0.1) for _ in range(2)]
        spent = asked.budget().spent_fraction
        asked.combine(*answers)
        assert asked.budget().spent_fraction == spent
