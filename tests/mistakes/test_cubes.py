# SPDX-License-Identifier: Apache-2.0
"""Slips of people who ask for many tables at once, and who read them."""

from __future__ import annotations

import pytest

from tests.mistakes.clinic import Here
from tests.mistakes.mistakes import Mistake, check_mistake, mistakes

FIRST = """
cube = session.sql("SELECT ward, days > 45 AS long, COUNT(*) AS n, AVG(days) AS d FROM visits GROUP BY CUBE (ward, long)", rho=0.1)
ages = session.release(data.ranges("days", by="ward").count(), rho=0.1)
sums = session.release(data.ranges("days").sum("days"), rho=0.1)
a = session.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", rho=0.1)
b = session.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", rho=0.1)
some = session.sql("SELECT ward, COUNT(*) AS n FROM visits WHERE days > 45 GROUP BY ward", rho=0.1)
top = session.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC LIMIT 1", rho=0.1)
total = session.sql("SELECT SUM(days) AS n FROM visits", rho=0.1)
long = session.sql("SELECT days > 45 AS long, COUNT(*) AS n FROM visits GROUP BY long", rho=0.1)
longer = session.sql("SELECT days > 50 AS long, COUNT(*) AS n FROM visits GROUP BY long", rho=0.1)
both = session.sql("SELECT COUNT(*) AS n, SUM(days) AS s FROM visits", rho=0.1)
turned = session.sql("SELECT SUM(days) AS s, COUNT(*) AS n FROM visits", rho=0.1)
cells = "SELECT ward, days, BUCKET(cost, 100, 200, 300) AS c, COUNT(*) AS n FROM visits GROUP BY ward, days, c"
large = session.sql(cells, rho=0.1)
"""
RANGES = 'session.release(data.ranges("days").count(), rho=0.1)'


@pytest.fixture
def here(visits, folder):
    return Here(data=visits)


def slip(wrong: str, code: str, fix: str, right: str) -> Mistake:
    return Mistake(wrong, code, fix, right, first=FIRST)


def asked(grouping: str, aggregate: str = "COUNT(*)") -> str:
    """A question with these grouping sets."""
    return f'session.sql("SELECT {aggregate} FROM visits {grouping}", rho=0.1)'


def sql(wrong: str, code: str, fix: str, right: str) -> Mistake:
    """A mistake in GROUP BY."""
    corrected = asked(right)
    return Mistake(asked(wrong), code, fix, corrected if fix in corrected else f"{corrected}  # {fix}")


SUMS = ", ".join(f"days + {days}" for days in range(13))
CELLS = "days, days + 1, ward, CLAMP(cost, 0, 500) DIV 1"


@mistakes(
    slip('cube["wrad"]', "DP105", "'ward', 'long'", "cube['ward', 'long']"),
    slip('cube["ward", "ward"]', "DP105", "cube['ward', 'long']", "cube['ward', 'long']"),
    slip('cube.covariance("d", {}, {})', "DP105", "'n'", "cube.covariance('n', {}, {})"),
    slip('cube.covariance("n", {"ward": "Z"}, {})', "DP105", "cube['ward']", "cube['ward']"),
    slip("ages.between(70, 80)", "DP102", "cube.between(0, 60)", "cube = ages; cube.between(0, 60)"),
    slip("sums.quantile(0.5)", "DP107", "COUNT(*)", f"{RANGES}.quantile(0.5)  # COUNT(*)"),
    slip("cube.cumulative()", "DP107", "session.release(data.ranges(", f"{RANGES}.cumulative()"),
    slip(
        'cube.share_of("ward", of=("long",))',
        "DP105",
        "cube.share_of('ward', of=())",
        "cube.share_of('ward', of=())",
    ),
    slip(
        "ages.nonnegative(consistent=True)",
        "DP107",
        "cube.nonnegative()",
        "cube = ages; cube.nonnegative()",
    ),
    slip(
        "cube.whole_numbers()",
        "DP107",
        "session.release(data.rollup(",
        'session.release(data.rollup("ward").count(), rho=0.1).whole_numbers()',
    ),
)
def test_a_slip_with_a_cube_is_answered_and_its_fix_works(mistake, here):
    check_mistake(mistake, here)


@mistakes(
    slip(
        "session.combine(a)",
        "DP104",
        "session.combine(first, second)",
        "first, second = a, b; session.combine(first, second)",
    ),
    slip(
        "session.combine(a, some)",
        "DP107",
        "the same FROM and WHERE",
        "session.combine(a, b)  # the same FROM and WHERE",
    ),
    slip(
        "session.combine(a, top)",
        "DP107",
        "without HAVING, QUALIFY and LIMIT",
        "session.combine(a, b)  # without HAVING, QUALIFY and LIMIT",
    ),
    slip(
        "session.combine(a, total)",
        "DP107",
        "the same counts and sums",
        "session.combine(a, b)  # the same counts and sums",
    ),
    slip("session.combine(long, longer)", "DP107", "AS …", "session.combine(long, long)  # AS …"),
    slip("session.combine(both, turned)", "DP107", "alike", "session.combine(both, both)  # alike"),
    slip(
        'session.combine(a, b, complete=("wrad",))',
        "DP105",
        "complete=('ward',)",
        "session.combine(a, b, complete=('ward',))",
    ),
    slip(
        "session.combine(large, large)", "DP107", "smaller tables", "session.combine(a, b)  # smaller tables"
    ),
    slip(
        "session.combine(ages, ages)",
        "DP107",
        "cube.total",
        "cube = ages; session.combine(cube.total, cube.total)",
    ),
    slip("session.combine(a, a.nonnegative())", "DP107", "rho=…", "session.combine(a, b)  # rho=…"),
)
def test_a_slip_in_merging_is_answered_and_its_fix_works(mistake, here):
    check_mistake(mistake, here)


@mistakes(
    Mistake("data.cube()", "DP107", 'data.cube("ward").count()'),
    Mistake("data.marginals(5)", "DP102", 'data.marginals(order=1, columns=["ward"]).count()'),
    Mistake(
        'data.cube("ward", objective=3)',
        "DP104",
        'objective="worst"',
        'data.cube("ward", objective="worst").count()',
    ),
    Mistake(
        'session.release(data.ranges("days").count(), epsilon=1)',
        "DP107",
        "delta=1e-6",
        'session.release(data.ranges("days").count(), epsilon=1, delta=1e-6)',
    ),
    sql("GROUP BY RANGES(days, ward)", "DP704", "GROUP BY RANGES(days)", "GROUP BY RANGES(days)"),
    sql(
        "GROUP BY CUBE (ward, RANGES(days))",
        "DP704",
        "GROUP BY RANGES(days), CUBE (",
        "GROUP BY RANGES(days), CUBE (ward)",
    ),
    sql("GROUP BY CUBE ()", "DP704", "GROUP BY CUBE (", "GROUP BY CUBE (ward)"),
    sql("GROUP BY MARGINALS(1)", "DP704", "GROUP BY MARGINALS(", "GROUP BY MARGINALS(1, ward)"),
    sql(f"GROUP BY CUBE ({CELLS})", "DP704", "coarser buckets", "GROUP BY CUBE (BUCKET(days, 30, 60), ward)"),
    sql(
        f"GROUP BY CUBE ({SUMS})",
        "DP706",
        "GROUP BY MARGINALS(",
        "GROUP BY MARGINALS(1, days + 0, days + 1)",
    ),
    sql(
        "GROUP BY CUBE (ward) WITH (objective = 'best')",
        "DP706",
        "(objective = 'each')",
        "GROUP BY CUBE (ward) WITH (objective = 'each')",
    ),
    sql("GROUP BY RANGES(ward)", "DP704", "GROUP BY ward", "GROUP BY ward"),
    sql(
        "GROUP BY RANGES(came_on)",
        "DP704",
        "WHERE came_on BETWEEN",
        "WHERE came_on BETWEEN DATE '2031-05-01' AND DATE '2031-05-28' GROUP BY RANGES(came_on)",
    ),
    sql(
        "GROUP BY RANGES(days), CUBE (days, ward)",
        "DP704",
        "leave days out",
        "GROUP BY RANGES(days), CUBE (ward)",
    ),
    sql("GROUP BY ward WITH (objective = 'worst')", "DP706", "leave the objective out", "GROUP BY ward"),
    sql(
        "GROUP BY CUBE (ward) WITH (objective = 'wrad: 1')",
        "DP701",
        "use ward",
        "GROUP BY CUBE (ward) WITH (objective = 'ward: 1')",
    ),
    sql(
        "GROUP BY GROUPING SETS ((ward, days + 1)) WITH (objective = 'ward: 1')",
        "DP706",
        "leave its weight out",
        "GROUP BY GROUPING SETS ((ward, days + 1))",
    ),
    sql(
        "GROUP BY CUBE (name)",
        "DP704",
        "WHERE name IN ('A', 'B')",
        "WHERE name IN ('A', 'B') GROUP BY CUBE (name)",
    ),
    Mistake(
        'session.sql("SELECT COUNT(*) FROM visits GROUP BY CUBE (came_on, ward)", rho=0.1, delta=1e-6)',
        "DP704",
        "WHERE came_on IN (DATE '2026-01-01', DATE '2026-01-02')",
        asked("WHERE came_on IN (DATE '2026-01-01', DATE '2026-01-02') GROUP BY CUBE (came_on, ward)"),
    ),
    Mistake(
        asked("GROUP BY CUBE (ward)", "MEDIAN(days)"),
        "DP706",
        "a question of its own",
        'session.sql("SELECT ward, MEDIAN(days) FROM visits GROUP BY ward", epsilon=1)  # a question of its own',
    ),
    Mistake(
        asked("GROUP BY CUBE (ward)", "GROUPING(days), COUNT(*)"),
        "DP706",
        "GROUPING(ward)",
        asked("GROUP BY CUBE (ward)", "GROUPING(ward), COUNT(*)"),
    ),
)
def test_a_slip_in_asking_for_many_tables_is_answered_and_its_fix_works(mistake, here):
    check_mistake(mistake, here)
