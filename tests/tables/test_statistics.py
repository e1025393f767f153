# SPDX-License-Identifier: Apache-2.0
"""Statistics that are computed from several aggregates: their meaning, their intervals, their cost."""

from __future__ import annotations

import numpy as np
import pytest

import discreet as dp
from discreet.tables.ask.sql import parse
from tests.chance import may_fail

duckdb = pytest.importorskip("duckdb")
pl = pytest.importorskip("polars")

PEOPLE = 2_000


@pytest.fixture(scope="module")
def frame():
    draw = np.random.default_rng(5)
    x = draw.integers(0, 60, PEOPLE)
    y = np.round(x * 0.7 + draw.normal(0, 8, PEOPLE)) / 1
    return pl.DataFrame(
        {
            "id": np.arange(PEOPLE) // 2,
            "x": x,
            "y": [None if n % 7 == 0 else float(value) for n, value in enumerate(y)],
            "w": np.round(draw.random(PEOPLE) * 64) / 8,
            "g": [("a", "b", "c")[n % 3] for n in range(PEOPLE)],
            "rare": x >= 58,
            "never": x > 60,
        }
    )


@pytest.fixture(scope="module")
def data(frame):
    return dp.open(
        frame,
        protect=dp.each("id", at_most=2),
        name="t",
        columns={
            "x": dp.column(bounds=(0, 60)),
            "y": dp.column(bounds=(-64, 64)),
            "w": dp.column(bounds=(0, 8)),
            "g": dp.column(values=["a", "b", "c"]),
        },
    )


@pytest.fixture(scope="module")
def session(data):
    return dp.Session(data, limit=dp.Limit.filter(epsilon=1e9, delta=1e-6))


STATISTICS = [
    "VAR_SAMP(y)",
    "STDDEV_SAMP(x)",
    "COVAR_POP(y, x)",
    "COVAR_SAMP(y, x)",
    "CORR(y, x)",
    "CORR(x, w)",
    "REGR_SLOPE(y, x)",
    "REGR_INTERCEPT(y, x)",
    "REGR_R2(y, x)",
    "REGR_COUNT(y, x)",
    "REGR_AVGX(y, x)",
    "REGR_AVGY(y, x)",
    "REGR_SXX(y, x)",
    "REGR_SYY(y, x)",
    "REGR_SXY(y, x)",
    "COVAR_POP(x, x + w)",
    "SUM(w * x) / SUM(w)",
    "BOOL_OR(rare)",
    "BOOL_OR(never)",
    "BOOL_AND(never)",
    "BOOL_AND(NOT never)",
    "SQRT(AVG(x))",
    "LN(COUNT(*))",
    "EXP(AVG(w))",
    "POWER(AVG(x), -0.5)",
    "POWER(AVG(y) - 30, 2)",
]


@pytest.mark.parametrize("rest", ["", " FILTER (WHERE x > 5)"], ids=["all", "filtered"])
def test_they_mean_what_sql_means(session, frame, rest):
    asked = [text for text in STATISTICS if not rest or text.count("(") == 1]
    items = ", ".join(f"{text}{rest} AS c{place}" for place, text in enumerate(asked))
    text = f"SELECT g, {items} FROM t GROUP BY g ORDER BY g"
    answer = session.sql(text, epsilon=1e7)
    connection = duckdb.connect()
    connection.register("t", frame.to_arrow())
    exact = connection.execute(text).fetchall()
    for place, statistic in enumerate(asked):
        found = answer.columns[f"c{place}"].values
        assert found == pytest.approx([row[1 + place] for row in exact], rel=2e-3, abs=1e-4), statistic


@may_fail(
    1e-10, "eight statistics with an error far inside of intervals of 1 - 5 %/k for k parts, forty times"
)
def test_intervals_hold(session, frame):
    """The intervals of statistics are wider than they need be, as each part holds with more than 95 %."""
    names = [
        "VAR_SAMP(x)",
        "COVAR_POP(w, x)",
        "COVAR_SAMP(w, x)",
        "CORR(w, x)",
        "REGR_R2(w, x)",
        "REGR_SXX(w, x)",
    ]
    text = f"SELECT {', '.join(f'{name} AS c{place}' for place, name in enumerate(names))} FROM t"
    connection = duckdb.connect()
    connection.register("t", frame.to_arrow())
    exact = connection.execute(text).fetchone()
    assert exact is not None
    held = np.zeros(len(names))
    runs = 40
    for run in range(runs):
        answer = session.sql(text, epsilon=2, key=f"run {run}")
        for place in range(len(names)):
            column = answer.columns[f"c{place}"]
            assert column.lo[0] <= column.values[0] <= column.hi[0]
            held[place] += column.lo[0] - 1e-3 <= exact[place] <= column.hi[0] + 1e-3
    # If each held with 95 %, fewer than 20 of 40 would have a chance below 1e-14.
    assert held.min() >= 20
    column = session.sql("SELECT CORR(w, x) AS c FROM t", epsilon=1e-3, key="little").columns["c"]
    # A variance of 0 by noise has no correlation.
    assert (column.lo[0], column.hi[0]) == ((None, None) if column.values[0] is None else (-1, 1))


def test_truth_is_said_only_where_it_is_sure(session):
    # Three rows of one person are hidden, two hundred rows are not.
    text = "SELECT BOOL_OR(x = 59 AND w = 0) AS few, BOOL_OR(x > 5) AS many, BOOL_AND(x < 59) AS most FROM t"
    answer = session.sql(text, epsilon=1)
    assert [answer.columns[name].values[0] for name in ("few", "many", "most")] == [False, True, False]
    assert answer.columns["many"].lo == (None,)


def test_parts_are_shared_and_paid_once(data):
    def parts(text):
        return [(one.kind, one.name) for one in parse(f"SELECT {text} FROM t", data).question.aggregates]

    assert len(parts("CORR(w, x), COVAR_POP(w, x), REGR_SLOPE(w, x)")) == len(parts("CORR(w, x)")) == 5
    assert parts("VAR_SAMP(x), AVG(x), VAR_POP(x)")[0] == ("variance", "variance_x")
    assert len(parts("VAR_SAMP(x), AVG(x), VAR_POP(x)")) == 3


def test_a_mode_counts_rows():
    frame = pl.DataFrame({"id": [1, 2, 3, 4, 4, 4, 5, 5, 5], "v": ["few"] * 3 + ["many"] * 6})
    data = dp.open(
        frame, protect=dp.each("id", at_most=3), name="t", columns={"v": dp.column(values=["few", "many"])}
    )
    session = dp.Session(data, limit=dp.Limit.filter(epsilon=1e9))
    assert session.sql("SELECT MODE(v) FROM t", epsilon=1e4).value == "many"


def test_lists_of_ranks_are_columns(session):
    answer = session.sql(
        "SELECT QUANTILE_CONT(x, [0.25, 0.5, 0.995]) AS q, PERCENTILE_CONT([0.1]) WITHIN GROUP (ORDER BY w)"
        " FILTER (WHERE x > 3) FROM t",
        epsilon=1e5,
    )
    assert list(answer.columns)[:3] == ["q_25", "q_50", "q_99_5"]
    assert len(answer.columns) == 4
    written = (
        "SELECT QUANTILE(x, 0.25) AS q_25, QUANTILE(x, 0.5) AS q_50, QUANTILE(x, 0.995) AS q_99_5 FROM t"
    )
    assert session.sql(written, epsilon=1e5).columns["q_50"].values == pytest.approx(
        answer.columns["q_50"].values, abs=1
    )


def test_the_most_frequent_values(session, data):
    answer = session.sql("SELECT APPROX_TOP_K(g, 2) AS ward FROM t", epsilon=1e5)
    assert answer.header == ["ward", "count", "count_lo", "count_hi"]
    assert [row[:2] for row in answer.rows()] == [("a", pytest.approx(667)), ("b", pytest.approx(667))]
    written = "SELECT g AS ward, COUNT(*) AS count FROM t GROUP BY 1 ORDER BY 2 DESC LIMIT 2"
    one, other = (parse(text, data).question for text in (answer.question, written))
    assert (one.keys, one.order, one.limit) == (other.keys, other.order, other.limit)


@pytest.mark.parametrize("asked", ["COVAR_POP(w, x)", "GEOMEAN(x)", "BOOL_OR(rare)", "SQRT(COUNT(*))"])
def test_an_error_of_its_parts_is_not_its_error(session, asked):
    before = session.budget().spent_fraction
    with pytest.raises(dp.errors.RefusedQuestion) as refused:
        session.sql(f"SELECT {asked} FROM t", error="±1")
    assert refused.value.code == "DP706"
    assert session.budget().spent_fraction == before


REFUSED = {
    "SELECT CORR(x) FROM t": "DP706",
    "SELECT CORR(x, y, w) FROM t": "DP706",
    "SELECT CORR(x, g) FROM t": "DP705",
    "SELECT VAR_SAMP(DISTINCT x) FROM t": "DP706",
    "SELECT VAR_SAMP(x, y) FROM t": "DP706",
    "SELECT BOOL_OR(x) FROM t": "DP705",
    "SELECT COUNT(*) FROM t WHERE BOOL_OR(rare)": "DP706",
    "SELECT POWER(COUNT(*), x) FROM t": "DP705",
    "SELECT QUANTILE_CONT(x, []) FROM t": "DP706",
    "SELECT QUANTILE_CONT(x, [0.5, 0.5]) FROM t": "DP706",
    "SELECT QUANTILE_CONT(x, [0.5, 1]) FROM t": "DP706",
    "SELECT APPROX_TOP_K(g, 0) FROM t": "DP705",
    "SELECT APPROX_TOP_K(g) FROM t": "DP706",
    "SELECT APPROX_TOP_K(g, 2) FROM t GROUP BY g": "DP706",
    "SELECT g, APPROX_TOP_K(g, 2) FROM t GROUP BY g": "DP706",
    "SELECT AVG(c) FROM (SELECT id, CORR(x, y) AS c FROM t GROUP BY id)": "DP706",
}


@pytest.mark.parametrize("text", REFUSED)
def test_other_forms_are_refused(session, text):
    before = session.budget().spent_fraction
    with pytest.raises(dp.errors.DiscreetError) as refused:
        session.sql(text, epsilon=1)
    assert refused.value.code == REFUSED[text]
    assert refused.value.fix
    assert session.budget().spent_fraction == before
