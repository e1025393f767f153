# SPDX-License-Identifier: Apache-2.0
"""Slips of people who compute with answers that they have."""

from __future__ import annotations

import pytest

from tests.mistakes.clinic import Here
from tests.mistakes.mistakes import Mistake, check_mistake, mistakes

FIRST = """
a = session.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1)
b = session.sql("SELECT ward, COUNT(*) AS n FROM visits WHERE days > 3 GROUP BY ward", epsilon=1)
total = session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
long = session.sql("SELECT days > 9 AS long, COUNT(*) AS n FROM visits GROUP BY days > 9", epsilon=1)
means = session.sql("SELECT ward, AVG(days) AS days FROM visits GROUP BY ward", epsilon=1)
both = session.sql("SELECT ward, COUNT(*) AS n, SUM(days) AS s FROM visits GROUP BY ward", epsilon=1)
cross = session.sql("SELECT ward, days > 9 AS A, COUNT(*) AS n FROM visits GROUP BY ward, days > 9", epsilon=1)
"""
WARDS = 'session.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1)'
LONG = 'session.sql("SELECT days > 9 AS long, COUNT(*) AS n FROM visits GROUP BY long", epsilon=1)'
CROSS = 'session.sql("SELECT ward, days > 9 AS long, COUNT(*) AS n FROM visits GROUP BY ward, days > 9", epsilon=1)'


@pytest.fixture
def here(visits, folder):
    return Here(data=visits)


def slip(wrong: str, code: str, fix: str, right: str) -> Mistake:
    return Mistake(wrong, code, fix, right, first=FIRST)


@mistakes(
    slip('a.share("wrad")', "DP105", "'ward'", "a.share('ward')"),
    slip('total.share("ward")', "DP105", "answer.share()", "answer = total; answer.share()"),
    slip('a / "total"', "DP104", "100 * answer", "answer = a; 100 * answer"),
    slip("a.take([7])", "DP102", "answer.take([0])", "answer = a; answer.take([0])"),
    slip("a.take(7)", "DP102", "answer.take([0])", "answer = a; answer.take([0])"),
    slip("a.to_csv(3)", "DP104", '"answer.csv"', 'a.to_csv("answer.csv")'),
    slip("a.to_parquet(None)", "DP104", '"answer.parquet"', 'a.to_parquet("answer.parquet")'),
    slip("a.to_excel(3)", "DP104", '"answer.xlsx"', 'a.to_excel("answer.xlsx")'),
    slip("dp.plot.save(a.plot(), 3)", "DP104", '"curve.svg"', 'dp.plot.save(a.plot(), "curve.svg")'),
    slip("long / a", "DP107", "GROUP BY long", f"long / {LONG}"),
    slip("total / a", "DP107", "no GROUP BY", "total / total  # with no GROUP BY"),
    slip("means / both", "DP107", "AS days", "means / means  # AS days"),
    slip("a.union(b) / b", "DP107", "a / b", "a / b"),
    slip("means.combine(means)", "DP107", "a.combine(b)", "a.combine(b)"),
    slip("a.combine(means)", "DP107", "a.combine(b)", "a.combine(b)"),
    slip("a.combine(a.take([0]))", "DP107", "a.combine(b)", "a.combine(b)"),
    slip("a.union(means)", "DP107", "a.union(b)", "a.union(b)"),
    slip('cross.pivot("ward")', "DP107", "AS", f"{CROSS}.pivot('ward')"),
)
def test_a_slip_is_answered_and_its_fix_works(mistake, here):
    check_mistake(mistake, here)
