# SPDX-License-Identifier: Apache-2.0
"""Questions in Python, as people write them who have used data frames before."""

from __future__ import annotations

import pytest

from tests.mistakes.clinic import Here
from tests.mistakes.mistakes import Mistake, check_mistake, mistakes


@pytest.fixture
def here(visits, two_tables):
    return Here(data=visits, clinic=two_tables)


def released(question: str) -> str:
    """What a beginner does with a question."""
    return f"session.release({question}, epsilon=1)"


def slip(wrong: str, code: str, fix: str, right: str) -> Mistake:
    return Mistake(released(wrong), code, fix, released(right))


BOTH = '(col("days") >= 3) & (col("days") < 9)'
NAMED = 'data.group_by("ward").aggregate(n=count())'


#: What SQLAlchemy cannot write as SQL.
UNWRITTEN = """
class Statement:
    __module__ = "sqlalchemy.sql"
    def compile(self, **words):
        raise ValueError("a value")
session.release(Statement(), epsilon=1)
"""


@mistakes(
    Mistake(
        UNWRITTEN,
        "DP702",
        'session.sql("SELECT COUNT(*) FROM visits", epsilon=0.1)',
        'session.sql("SELECT COUNT(*) FROM visits", epsilon=0.1)',
    ),
    Mistake(
        'session.sql("SELECT COUNT(*) FROM visits WHERE days > ?", parameters=[3, 4], epsilon=1)',
        "DP104",
        'session.sql("SELECT COUNT(*) FROM visits WHERE days > ?", parameters=[3], epsilon=0.1)',
    ),
    slip('data.mean("dais")', "DP701", "days", 'data.mean("days")'),
    slip('data.mean("weight")', "DP104", "between=(0, 500)", 'data.mean("weight", between=(0, 500))'),
    slip('data.mean("days", between=(60, 0))', "DP705", "0, 60)", 'data.mean("days", between=(0, 60))'),
    slip('data.mean("days", between=60)', "DP104", "between=(0, 60)", 'data.mean("days", between=(0, 60))'),
    slip(
        'data.mean("days", between=("0", "60"))',
        "DP104",
        "between=(0, 500)",
        'data.mean("days", between=(0, 500))',
    ),
    slip('data.group_by("wards").count()', "DP701", "ward", 'data.group_by("ward").count()'),
    slip('data.group_by("patient_id").count()', "DP706", ".units()", "data.units()"),
    slip('data.where(col("patient_id") == 7).count()', "DP706", ".units()", "data.units()"),
    slip(
        'data.group_by("cost").count()',
        "DP704",
        "edges=[10, 20, 50]",
        'data.histogram("cost", edges=[10, 20, 50])',
    ),
    slip("data.group_by().count()", "DP107", 'data.group_by("ward"', 'data.group_by("ward").count()'),
    slip('data.group_by(["ward"]).count()', "DP104", 'col("days")', 'data.group_by(col("days")).count()'),
    slip(
        'data.group_by("ward", keys="A").count()',
        "DP104",
        "['A']",
        "data.group_by(\"ward\", keys=['A']).count()",
    ),
    slip(
        'data.group_by("ward", keys=["A", "A"]).count()',
        "DP704",
        'keys=["A", "B"]',
        'data.group_by("ward", keys=["A", "B"]).count()',
    ),
    slip(
        'data.group_by(col("came_on").month).count()',
        "DP107",
        "data.group_by(year=",
        'data.group_by(year=col("came_on").month).count()',
    ),
    slip('data.where("days > 3").count()', "DP104", 'col("days") > 3', 'data.where(col("days") > 3).count()'),
    slip(
        'data.where(col("days") >= 3 and col("days") < 9).count()',
        "DP705",
        BOTH,
        f"data.where({BOTH}).count()",
    ),
    slip('data.where(3 <= col("days") < 9).count()', "DP705", BOTH, f"data.where({BOTH}).count()"),
    slip(
        'data.where(col("days") >= 3 & col("days") < 9).count()', "DP705", BOTH, f"data.where({BOTH}).count()"
    ),
    slip(
        'data.where(not col("days") > 3).count()',
        "DP705",
        '~(col("days") > 3)',
        'data.where(~(col("days") > 3)).count()',
    ),
    slip(
        'data.where(col("days") in [1, 2]).count()',
        "DP705",
        'col("days").is_in([1, 2])',
        'data.where(col("days").is_in([1, 2])).count()',
    ),
    slip(
        'data.where(col("ward").is_in("A")).count()',
        "DP104",
        "['A']",
        "data.where(col(\"ward\").is_in(['A'])).count()",
    ),
    slip(
        'data.where(col("days") == None).count()',
        "DP705",
        ".is_null()",
        'data.where(col("days").is_null()).count()',
    ),
    slip(
        'data.where(col("came_on") > 2026).count()',
        "DP705",
        "datetime.date(2026, 1, 1)",
        'data.where(col("came_on") > datetime.date(2026, 1, 1)).count()',
    ),
    slip(
        "data.where(lambda row: row.days > 3).count()",
        "DP104",
        'col("days") > 3',
        'data.where(col("days") > 3).count()',
    ),
    slip(
        'data.sum(col("days") / col("cost"))',
        "DP705",
        ".clamp(1, 1000)",
        'data.sum(col("days") / col("cost").clamp(1, 1000))',
    ),
    slip('data.quantile("days", 90)', "DP102", "rank=0.5", 'data.quantile("days", rank=0.5)'),
    slip('data.mode("name")', "DP706", 'values=["A", "B"]', 'data.mode("name", values=["A", "B"])'),
    slip(
        'data.join("wards").count()',
        "DP703",
        '.join("wards", on="ward")',
        'data.join("wards", on="ward").count()',
    ),
    slip(
        'data.join(table, on="ward").count()',
        "DP701",
        '.join("wards", on="ward")',
        'data.join("wards", on="ward").count()',
    ),
    slip('data.aggregate({"days": "mean"})', "DP104", NAMED, NAMED),
    slip("data.aggregate(count)", "DP104", "aggregate(n=count()", "data.aggregate(n=count())"),
    slip(
        'data.group_by("ward").count().having(col("n") > 3)',
        "DP701",
        "count",
        'data.group_by("ward").count().having(col("count") > 3)',
    ),
    slip(
        'data.group_by("ward").count().limit(1.5)',
        "DP103",
        "most=10",
        'data.group_by("ward").count().limit(most=10)',
    ),
    slip('data.group_by("ward")', "DP104", "data.count()", "data.count()"),
    Mistake(
        "dp.Session(clinic, Limit.filter(1)).release(clinic.count(), epsilon=1)",
        "DP701",
        '["visits"].count()',
        'dp.Session(clinic, Limit.filter(1)).release(clinic["visits"].count(), epsilon=1)',
    ),
    Mistake(
        'session.release("SELECT COUNT(*) FROM visits", epsilon=0.1)',
        "DP104",
        'session.sql("SELECT COUNT(*) FROM visits", epsilon=0.1)',
    ),
    Mistake(
        "session.sql(data.count(), epsilon=0.1)",
        "DP104",
        'session.sql("SELECT COUNT(*) FROM visits", epsilon=0.1)',
    ),
)
def test_asking_in_python(mistake, here):
    error = check_mistake(mistake, here)
    assert error.what
