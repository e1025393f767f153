# SPDX-License-Identifier: Apache-2.0
"""A question asked in Python is the question that SQL would ask."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

pytest.importorskip("sqlglot")

from discreet.errors import BadParameter, DiscreetError, RefusedQuestion
from discreet.tables.algebra.engine import ROW
from discreet.tables.algebra.sums import Filtered, Paired
from discreet.tables.ask import aggregates
from discreet.tables.ask.aggregates import count, mean, median, mode, quantile, stddev, units, variance
from discreet.tables.ask.expressions import col, greatest, least, when
from discreet.tables.ask.question import Question
from discreet.tables.ask.sql import parse
from discreet.tables.ask.start import Dataset
from discreet.tables.data.dataset import Column, Each, Table

least_of, most_of, sum_of = aggregates.min, aggregates.max, aggregates.sum
WARDS = {"ward": ["A", "B"], "beds": [10, 20]}


class Engine:
    """Only the public table can be read: whatever reaches for more fails."""

    def values(self, table, columns):
        assert table == "wards"
        return sorted(set(zip(*(WARDS[name] for name in columns), strict=True)))


def columns(*told: Column) -> dict[str, Column]:
    return {column.name: column for column in told}


VISITS = columns(
    Column("patient_id", "integer"),
    Column("age", "integer", (0, 100)),
    Column("days", "integer", (0, 60)),
    Column("cost", "real", (0, 500)),
    Column("free", "real"),
    Column("ward", "text"),
    Column("sex", "text", values=("f", "m")),
    Column("emergency", "boolean"),
    Column("day", "date", (date(2020, 1, 1), date(2026, 12, 31))),
    Column("at", "timestamp"),
    Column("order", "integer", (0, 9)),
    Column('Nørd\'s "x"', "integer", (0, 9)),
)
PATIENTS = columns(Column("patient_id", "integer"), Column("born", "integer", (1900, 2026)))
PUBLIC = columns(Column("ward", "text"), Column("beds", "integer", (0, 99)))
DATA = Dataset(
    "visits",
    {"visits": Table("visits", VISITS, "patient_id"), "wards": Table("wards", PUBLIC)},
    Each("patient_id", 20),
    Engine(),
)
CLINIC = replace(DATA, tables={**DATA.tables, "patients": Table("patients", PATIENTS, "patient_id")})


def bare(question: Question) -> Question:
    """A question without its own text and those of its aggregates."""
    named = tuple(replace(one, text="") for one in question.aggregates)
    return replace(question, text="", aggregates=named)


PAIRS = {
    "SELECT COUNT(*) FROM visits": DATA.count,
    "SELECT COUNT(free) FROM visits": lambda: DATA.count("free"),
    "SELECT COUNT(DISTINCT patient_id) FROM visits": DATA.units,
    "SELECT SUM(days) FROM visits": lambda: DATA.sum("days"),
    "SELECT AVG(CLAMP(free, 0.5, 99.25)) FROM visits": lambda: DATA.mean("free", between=(0.5, 99.25)),
    "SELECT VAR(cost) FROM visits": lambda: DATA.variance("cost"),
    "SELECT STDDEV(cost) FROM visits": lambda: DATA.stddev("cost"),
    "SELECT MEDIAN(cost) FROM visits": lambda: DATA.median("cost"),
    "SELECT QUANTILE(cost, 0.9) FROM visits": lambda: DATA.quantile("cost", 0.9),
    "SELECT MIN(days), MAX(days) FROM visits": lambda: DATA.aggregate(least_of("days"), most_of("days")),
    "SELECT MODE(sex) FROM visits": lambda: DATA.mode("sex"),
    "SELECT COUNT(*) AS n, AVG(days) AS stay FROM visits": lambda: DATA.aggregate(
        n=count(), stay=mean("days")
    ),
    "SELECT COUNT(*), AVG(days) FROM visits WHERE age >= 18 AND emergency": lambda: DATA.where(
        col("age") >= 18, col("emergency")
    ).aggregate(count(), mean("days")),
    "SELECT ward, COUNT(*) FROM visits WHERE ward IN ('A', 'O''B') GROUP BY ward": lambda: DATA.group_by(
        "ward", keys=["A", "O'B"]
    ).count(),
    "SELECT sex, SUM(cost) FROM visits GROUP BY sex": lambda: DATA.group_by("sex").sum("cost"),
    "SELECT ward, COUNT(*) FROM visits GROUP BY ward": lambda: DATA.group_by(col("ward")).count(),
    "SELECT BUCKET(age, 0, 18, 65) AS bucket, COUNT(*) FROM visits GROUP BY bucket": lambda: DATA.histogram(
        "age", edges=[0, 18, 65]
    ),
    "SELECT sex, BUCKET(age, 18) AS bucket, COUNT(*) FROM visits GROUP BY sex, bucket": lambda: DATA.group_by(
        "sex"
    ).histogram("age", [18]),
    "SELECT YEAR(day) AS year, COUNT(*) FROM visits GROUP BY YEAR(day)": lambda: DATA.group_by(
        year=col("day").year
    ).count(),
    "SELECT SUM(days * 2 + cost) FROM visits": lambda: DATA.sum(col("days") * 2 + col("cost")),
    "SELECT SUM((days + 1) * (days - 1)) FROM visits": lambda: DATA.sum(
        (col("days") + 1) * (col("days") - 1)
    ),
    "SELECT SUM(1 - days), SUM(2 * days), SUM(3 + days) FROM visits": lambda: DATA.aggregate(
        sum_of(1 - col("days")), sum_of(2 * col("days")), sum_of(3 + col("days"))
    ),
    "SELECT SUM(days / 7), SUM(days // 7), SUM(100 / CLAMP(days, 1, 60)) FROM visits": lambda: DATA.aggregate(
        sum_of(col("days") / 7), sum_of(col("days") // 7), sum_of(100 / col("days").clamp(1, 60))
    ),
    "SELECT SUM(MOD(days, 7)), SUM(ABS(-days)), SUM(FLOOR(cost)), SUM(ROUND(cost)) FROM visits": lambda: (
        DATA.aggregate(
            sum_of(col("days") % 7),
            sum_of(abs(-col("days"))),
            sum_of(col("cost").floor()),
            sum_of(col("cost").round()),
        )
    ),
    "SELECT SUM(CLAMP(days + age, 0, 100)) FROM visits": lambda: DATA.sum(col("days") + col("age"), (0, 100)),
    "SELECT SUM(LEAST(days, 9)), SUM(GREATEST(days, age)) FROM visits": lambda: DATA.aggregate(
        sum_of(least(col("days"), 9)), sum_of(greatest(col("days"), col("age")))
    ),
    "SELECT SUM(CASE WHEN age < 18 THEN 1 WHEN emergency THEN 2 ELSE 0 END) FROM visits": lambda: DATA.sum(
        when(col("age") < 18).then(1).when(col("emergency")).then(2).otherwise(0)
    ),
    "SELECT SUM(COALESCE(days, 0)) FROM visits": lambda: DATA.sum(col("days").fill_null(0)),
    "SELECT COUNT(*) FROM visits WHERE free > 0.1 OR free <= -2 OR free IS NULL": lambda: DATA.where(
        (col("free") > 0.1) | (col("free") <= -2) | col("free").is_null()
    ).count(),
    "SELECT COUNT(*) FROM visits WHERE (age < 18 OR emergency) AND (ward = 'A' OR NOT (age > 3 OR age = 1))": lambda: (
        DATA.where(
            ((col("age") < 18) | col("emergency"))
            & ((col("ward") == "A") | ~((col("age") > 3) | (col("age") == 1)))
        ).count()
    ),
    "SELECT COUNT(*) FROM visits WHERE age < 18 AND emergency OR ward = 'A' AND age > 3": lambda: DATA.where(
        ((col("age") < 18) & col("emergency")) | ((col("ward") == "A") & (col("age") > 3))
    ).count(),
    "SELECT COUNT(*) FROM visits WHERE NOT (ward = 'A') AND ward <> 'B' AND ward IS NOT NULL": lambda: (
        DATA.where(~(col("ward") == "A") & (col("ward") != "B") & col("ward").is_not_null()).count()
    ),
    "SELECT COUNT(*) FROM visits WHERE age BETWEEN -1 AND 65 AND ward LIKE 'A%'": lambda: DATA.where(
        col("age").is_between(-1, 65), col("ward").like("A%")
    ).count(),
    "SELECT COUNT(*) FROM visits WHERE emergency = TRUE AND day < DATE '2024-02-29'": lambda: DATA.where(
        col("emergency") == True,  # noqa: E712 - a formula, not a truth value
        col("day") < date(2024, 2, 29),
    ).count(),
    "SELECT COUNT(*) FROM visits WHERE at >= TIMESTAMP '2024-02-29 12:00:00'": lambda: DATA.where(
        col("at") >= datetime(2024, 2, 29, 12, tzinfo=UTC)
    ).count(),
    "SELECT COUNT(*) FROM visits WHERE ISODOW(at) = 1 AND HOUR(at) < 9 AND MINUTE(at) = 0": lambda: (
        DATA.where(col("at").weekday == 1, col("at").hour < 9, col("at").minute == 0).count()
    ),
    "SELECT COUNT(*) FROM visits WHERE MONTH(day) = 1 AND QUARTER(day) = 1 AND DAY(day) = 1": lambda: (
        DATA.where(col("day").month == 1, col("day").quarter == 1, col("day").day == 1).count()
    ),
    'SELECT SUM("order"), SUM("Nørd\'s ""x""") FROM visits': lambda: DATA.aggregate(
        sum_of("order"), sum_of('Nørd\'s "x"')
    ),
    "SELECT ward, AVG(beds) FROM visits JOIN wards USING (ward) GROUP BY ward": lambda: (
        DATA.join("wards", on="ward").group_by("ward").mean("beds")
    ),
    "SELECT COUNT(beds) FROM visits LEFT JOIN wards ON visits.ward = wards.ward": lambda: DATA.join(
        "wards", on={"visits.ward": "ward"}, keep=True
    ).count("beds"),
    "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex HAVING n > 10 AND n < 99 ORDER BY n DESC, sex LIMIT 3": lambda: (
        DATA.group_by("sex")
        .aggregate(n=count())
        .having(col("n") > 10)
        .having(col("n") < 99)
        .order_by("n", descending=True)
        .order_by("sex")
        .limit(3)
    ),
}


@pytest.mark.parametrize("text", PAIRS)
def test_both_ways_ask_the_same(text):
    asked = PAIRS[text]()
    assert bare(asked.question) == bare(parse(text, DATA).question)


@pytest.mark.parametrize("text", PAIRS)
def test_what_is_recorded_can_be_asked_again(text):
    asked = PAIRS[text]()
    assert parse(asked.text, DATA).question == asked.question


def test_private_tables_meet_on_the_unit():
    asked = CLINIC["visits"].join("patients").mean("born")
    text = "SELECT AVG(born) FROM visits JOIN patients ON visits.patient_id = patients.patient_id"
    assert bare(asked.question) == bare(parse(text, CLINIC).question)
    assert isinstance(asked.question.rows, Paired)


def test_several_private_tables_need_a_name():
    with pytest.raises(RefusedQuestion, match='data\\["visits"\\]'):
        CLINIC.count()
    with pytest.raises(RefusedQuestion) as public:
        CLINIC["wards"]
    assert public.value.code == "DP701"
    assert CLINIC["patients"].count().question.rows.table == "patients"


def test_groups_of_several_columns_are_known_jointly():
    listed = [("f", True), ("m", None)]
    asked = DATA.group_by("sex", "emergency", keys=listed).count().question
    assert asked.combinations == tuple(listed)
    assert [key.values for key in asked.keys] == [("f", "m"), (True, None)]
    assert isinstance(asked.rows, Filtered)


def test_null_is_a_group_only_where_it_is_listed():
    assert DATA.group_by("ward", keys=["A", None]).count().question.keys[0].values == ("A", None)
    assert DATA.group_by("ward", keys=["A"]).count().question.keys[0].values == ("A",)
    assert DATA.group_by("ward", keys=[None]).count().question.keys[0].values == (None,)


def test_the_keys_of_a_formula_may_be_listed():
    child = when(col("age") < 18).then("child").otherwise("adult")
    asked = DATA.group_by(who=child, keys=["adult"]).units().question
    assert (asked.keys[0].name, asked.keys[0].values) == ("who", ("adult",))


def test_a_mode_may_list_its_values():
    asked = DATA.mode("ward", values=["A", "B"]).question
    assert asked.aggregates[0].values == ("A", "B")
    several = DATA.aggregate(a=mode("ward", ["A"]), n=count()).question
    assert several.aggregates[0].values == ("A",)
    for twice in ((mode("ward", ["A"]), mode("ward", ["B"])), (mode(col("ward"), ["A"]),)):
        with pytest.raises(BadParameter):
            DATA.aggregate(*twice)


def test_where_every_row_is_a_unit_units_are_rows():
    rows = replace(DATA, tables={"visits": Table("visits", VISITS, ROW)}, protect=Each(None))
    assert rows.units().question.aggregates[0].kind in {"count", "units"}


def test_every_word_returns_a_new_question():
    start = DATA.where(col("age") >= 18)
    children = start.where(col("age") < 21)
    assert start.count().question != children.count().question
    assert start.count().text == "SELECT COUNT(*) FROM visits WHERE age >= 18"
    counted = start.count()
    counted.having(col("count") > 3)
    assert counted.question.having is None


def test_numbers_are_written_as_they_print():
    assert "0.1" in DATA.where(col("free") < 0.1).count().text
    assert "-2.50" in DATA.where(col("free") < Decimal("-2.50")).count().text
    numpy = pytest.importorskip("numpy")
    assert DATA.where(col("age") < numpy.int64(7)).count().text.endswith("age < 7")
    assert repr(numpy.int64(7) + col("age")) == "7 + age"
    assert repr(numpy.float64(0.5) < col("age")) == "age > 0.5"


REFUSALS = {
    "DP104": [
        lambda: DATA.mean("free"),
        lambda: DATA.mean("days", between=3),
        lambda: DATA.mean("days", between=("a", "b")),
        lambda: DATA.mean("days", between=(float("nan"), 1)),
        lambda: DATA.where(col("age") < float("inf")),
        lambda: DATA.where(col("age") < object()),
        lambda: col(3),
        lambda: col(""),
        lambda: DATA.group_by("ward", keys="AB"),
        lambda: DATA.group_by("ward", keys=[]),
        lambda: DATA.mode("ward", values="AB"),
        lambda: col("ward").is_in("AB"),
        DATA.aggregate,
        lambda: DATA.aggregate(n="count"),
        lambda: DATA.quantile("cost", True),
        lambda: DATA.quantile("cost", "half"),
        lambda: DATA.join("wards", on="ward", keep="yes"),
    ],
    "DP102": [
        lambda: DATA.quantile("cost", 0),
        lambda: DATA.quantile("cost", 1.5),
        lambda: DATA.count().limit(0),
    ],
    "DP103": [lambda: DATA.count().limit(2.5)],
    "DP107": [
        DATA.group_by,
        lambda: DATA.group_by("ward").group_by("sex"),
        lambda: DATA.group_by(col("age") + 1),
        lambda: when(col("age") < 1).otherwise(3),
        lambda: when(col("age") < 1).then(1).then(2),
        lambda: when(col("age") < 1).when(col("age") < 2),
    ],
    "DP701": [
        lambda: DATA.mean("dayz"),
        lambda: DATA.where(col("beds") > 3).count(),
        lambda: DATA.join("ward", on="ward"),
        lambda: DATA.join("wards", on="sex").count(),
        lambda: DATA["nothing"],
    ],
    "DP703": [lambda: DATA.join("wards")],
    "DP704": [
        lambda: DATA.group_by("ward", keys=["A", "A"]).count(),
        lambda: DATA.group_by("ward", "sex", keys=["A"]).count(),
        lambda: DATA.group_by("cost").count(),
    ],
    "DP705": [
        lambda: bool(col("age") > 3),
        lambda: 0 < col("age") < 9,
        lambda: DATA.where((col("age") > 3) and (col("age") < 9)),
        lambda: DATA.where(col("ward") > "A").count(),
        lambda: DATA.where(col("age") == "A").count(),
        lambda: DATA.where(col("age") + 1).count(),
        lambda: DATA.sum("ward"),
        lambda: DATA.sum(col("days") / col("cost")),
        lambda: DATA.sum(col("days") * 10**30),
        lambda: DATA.group_by("ward", keys=["A", 1]).count(),
    ],
    "DP706": [
        lambda: DATA.sum("patient_id"),
        lambda: DATA.where(col("patient_id") == 7).count(),
        lambda: DATA.group_by("patient_id", keys=[7]).count(),
        lambda: DATA.group_by("patient_id").count(),
        lambda: DATA.mode("ward"),
        lambda: DATA.count().having(col("age") > 3),
    ],
}


@pytest.mark.parametrize(
    ("code", "at"), [(code, at) for code, asks in REFUSALS.items() for at in range(len(asks))]
)
def test_what_cannot_be_proved_is_refused_where_it_is_asked(code, at):
    with pytest.raises(DiscreetError) as refused:
        REFUSALS[code][at]()
    assert refused.value.code == code
    assert refused.value.spent == "nothing"


def test_missing_bounds_come_with_a_line_for_python_too():
    with pytest.raises(BadParameter, match=r"between=\(0, 500\)"):
        DATA.mean("free")


def test_all_aggregates_have_both_forms():
    wanted = [count(), units(), sum_of("days"), mean("days"), variance("days"), stddev("days")]
    wanted += [median("days"), quantile("days", 0.25), least_of("days"), most_of("days"), mode("sex")]
    kinds = [one.kind for one in DATA.aggregate(*wanted).question.aggregates]
    assert kinds == [
        "count",
        "units",
        "sum",
        "mean",
        "variance",
        "stddev",
        "quantile",
        "quantile",
        "min",
        "max",
        "mode",
    ]


def test_a_formula_shows_itself_as_sql():
    assert repr((col("a") + 1) * col("date")) == '(a + 1) * "date"'
    assert "WHERE age >= 18" in repr(DATA.where(col("age") >= 18).count())
