# SPDX-License-Identifier: Apache-2.0
"""Where an error comes from, and what would halve it: every rewrite is applied, and leaves what it says."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import BadParameter, DiscreetError

PEOPLE = np.repeat(np.arange(900), np.arange(900) % 6 + 1)
ROWS = pa.table({"p": PEOPLE, "x": PEOPLE % 100, "g": [f"g{n % 3}" for n in PEOPLE]})
G = dp.column(values=["g0", "g1", "g2"], null=False)


def opened(at_most=3, **more):
    columns = {"x": dp.column(bounds=(0, 49)), "g": G}
    return dp.open(ROWS, dp.each("p", at_most=at_most, **more), name="visits", columns=columns)


def session(data=None):
    return dp.Session(data or opened(), dp.Limit.filter(epsilon=100, delta=1e-3))


def margins(one, text, **spend):
    found = {}
    for column in one.preview(text, **spend).columns:
        matched = re.fullmatch(r"±([\d.e+]+)", column.error)
        if matched:
            found[column.name] = float(matched[1])
    return found


BOTH = "SELECT COUNT(*) AS n, SUM(x) AS s FROM visits"


@pytest.mark.parametrize(
    ("text", "spend"),
    [
        (BOTH, {"epsilon": 0.5}),
        (BOTH, {"epsilon": 0.5, "delta": 1e-6}),
        (BOTH, {"rho": 0.01}),
        ("SELECT g, COUNT(*) AS n FROM visits GROUP BY g", {"epsilon": 0.5}),
        ("SELECT AVG(x) AS m FROM visits", {"epsilon": 0.5}),
        ("SELECT MEDIAN(x) AS m FROM visits", {"epsilon": 0.5}),
    ],
    ids=str,
)
def test_every_rewrite_leaves_the_margin_that_it_says(text, spend):
    one = session()
    explained = one.explain_error(text, **spend)
    assert explained.rewrites[0].halves
    assert [each.ratio for each in explained.rewrites] == sorted(each.ratio for each in explained.rewrites)
    old = margins(one, text, **spend)
    for rewrite in explained.rewrites:
        new = applied(rewrite.change, text, spend)
        assert set(rewrite.margins) == set(new) & set(old)
        for name, (before, after) in rewrite.margins.items():
            assert before == pytest.approx(old[name], rel=1e-3)
            assert after == pytest.approx(new[name], rel=1e-3)
            assert after <= before * rewrite.ratio * 1.01
    # The plain budget is always a way.
    assert any(re.match(r"(epsilon|rho)=", each.change) and each.halves for each in explained.rewrites)


def applied(change, text, spend):
    name, _, value = change.partition("=")
    if name in {"epsilon", "rho"}:
        return margins(session(), text, **{**spend, name: float(value)})
    if name == "at_most":
        return margins(session(opened(at_most=int(value))), text, **spend)
    if name == "delta":
        return margins(session(), text, **{**spend, "delta": float(value.removesuffix(" too"))})
    dropped = change.removeprefix("without ")
    rest = (
        re.sub(re.escape(dropped) + r" AS \w+(, )?", "", text)
        .replace(",  FROM", " FROM")
        .replace(", FROM", " FROM")
    )
    return margins(session(), rest, **spend)


def test_what_bounds_cut_off_is_known_once_it_was_paid_for():
    one = session()
    text = "SELECT SUM(x) AS s FROM visits"
    before = one.explain_error(text, epsilon=1)
    assert (before.columns[0].bound, before.columns[0].clipped) == (None, None)
    assert "session.suggest_bounds" in str(before)
    one.suggest_bounds("visits", ["x"], epsilon=10)
    answer = one.sql(text, epsilon=1)
    spent = one.budget().spent_fraction
    explained = one.explain_error(text, epsilon=1, answer=answer)
    assert one.budget().spent_fraction == spent
    (column,) = explained.columns
    # Of 21 rows of six people those beyond three: 3 + 2 + 1. Half of the people have values above 49.
    assert column.clipped == pytest.approx(0.5, abs=0.05)
    assert column.bound == pytest.approx(abs(answer.value) * (6 / 21) / (15 / 21), rel=0.3)
    assert column.noise == pytest.approx(float(one.preview(text, epsilon=1).columns[0].error[1:]), rel=1e-3)


def test_an_answer_says_the_margin_of_a_mean():
    one = session()
    text = "SELECT AVG(x) AS m FROM visits"
    assert one.explain_error(text, epsilon=1).columns[0].noise is None
    answer = one.sql(text, epsilon=1)
    half = (answer.interval[1] - answer.interval[0]) / 2
    assert one.explain_error(text, epsilon=1, answer=answer).columns[0].noise == pytest.approx(half)


def test_suppressed_groups_are_named_as_a_source():
    data = dp.open(ROWS, dp.each("p", at_most=3), name="visits", columns={"x": dp.column(bounds=(0, 49))})
    explained = session(data).explain_error(
        "SELECT g, COUNT(*) AS n FROM visits GROUP BY g", epsilon=1, delta=1e-6
    )
    assert "are shown" in explained.columns[0].suppression
    assert not session().explain_error(BOTH, epsilon=1).columns[0].suppression


def test_rows_that_are_units_have_no_bias_of_a_bound():
    data = dp.open(ROWS, dp.each_row(), name="visits")
    (column,) = session(data).explain_error("SELECT COUNT(*) AS n FROM visits", epsilon=1).columns
    assert column.bound == 0


@pytest.mark.parametrize(
    "words", [{}, {"epsilon": 0}, {"epsilon": float("nan")}, {"rho": -1}, {"epsilon": 1, "rho": 1}]
)
def test_a_wrong_cost_is_refused(words):
    with pytest.raises(BadParameter):
        session().explain_error(BOTH, **words)


def test_a_refused_question_is_refused():
    with pytest.raises(DiscreetError):
        session().explain_error("SELECT g, COUNT(*) FROM visits GROUP BY nowhere", epsilon=1)
