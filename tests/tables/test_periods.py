# SPDX-License-Identifier: Apache-2.0
"""A person in a period as the privacy unit: the same numbers as a column that names the unit, on every engine."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta

import pytest

import discreet as dp
from discreet.errors import DiscreetError
from discreet.tables.algebra.sums import BoundedSums, MassScheme, NormScheme, Private, RowScheme
from tests.tables.small import number

pa = pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")

START = date(2025, 12, 20)
PERIODS = {
    "day": lambda day: day,
    "week": lambda day: day - timedelta(days=day.weekday()),
    "month": lambda day: day.replace(day=1),
    "quarter": lambda day: day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
    "year": lambda day: day.replace(month=1, day=1),
}


def made(seed: int, users: list[object], rows: int = 400) -> pa.Table:
    draw = random.Random(seed)
    moments = [
        datetime(2025, 12, 20, tzinfo=UTC)
        + timedelta(hours=draw.randrange(24 * 120), microseconds=draw.randrange(3))
        for _ in range(rows)
    ]
    # Some belong to nobody: no user, or no time.
    days = [None if draw.random() < 0.05 else moment.date() for moment in moments]
    return pa.table(
        {
            "user_id": [None if draw.random() < 0.05 else draw.choice(users) for _ in range(rows)],
            "seen_on": pa.array(days, pa.date32()),
            "seen_at": pa.array(
                [None if day is None else moment for day, moment in zip(days, moments, strict=True)],
                pa.timestamp("us", "UTC"),
            ),
            "x": [draw.randrange(10) for _ in range(rows)],
        }
    )


def with_unit(table: pa.Table, per: str) -> pa.Table:
    """The same rows with a column that names the unit, computed here."""
    units = [
        None if user is None or day is None else f"{user} in {PERIODS[per](day)}"
        for user, day in zip(table["user_id"].to_pylist(), table["seen_on"].to_pylist(), strict=True)
    ]
    return table.append_column("unit", pa.array(units, pa.string()))


SCHEMES = {
    "rows": (RowScheme(2, 1 << 20), 0),
    "norm": (NormScheme(3, 1 << 20, (1, 2, 1)), 1),
    "mass": (MassScheme(9, 1 << 20), 0),
}


def sums(data: dp.Dataset, scheme: str):
    of = Private("v")
    x = number(0, 9)
    read = type(x)("v", "x", x.of)
    bounded, present = SCHEMES[scheme]
    return data.engine.sums(BoundedSums(of, (read,), (read, read), bounded, present=present))


def opened(table, engine, protect):
    return dp.open(
        {"v": table},
        protect=protect,
        columns={"v": {"x": dp.column("integer", bounds=(0, 9))}},
        engine=engine,
    )


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize("per", PERIODS)
@pytest.mark.parametrize(
    "users", [[1, 2, -3, 2**40], ["Ann", "ann", "Ann 20250", "", "é"]], ids=["number", "text"]
)
def test_the_sums_are_those_of_a_column_that_names_the_unit(engine, per, users):
    pytest.importorskip(engine)
    table = made(7, users)
    named = opened(with_unit(table, per), engine, dp.each("unit", at_most=2))
    for when in ("seen_on", "seen_at"):
        divided = opened(table, engine, dp.each("user_id", at_most=2, per=per, when=when))
        for scheme in SCHEMES:
            assert sums(divided, scheme) == sums(named, scheme), (when, scheme)


def test_postgres_and_spark_divide_units_alike(postgres_database, spark_session):
    from pyspark.sql.pandas.types import from_arrow_schema

    psycopg = __import__("psycopg")
    table = made(8, ["Ann", "ann", "é"])
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    truth = opened(table, "duckdb", dp.each("user_id", at_most=2, per="week", when="seen_at"))
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("CREATE TABLE v (user_id text, seen_on date, seen_at timestamptz, x bigint)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO v VALUES (%s, %s, %s, %s)", rows)
        frame = spark_session.createDataFrame(rows, from_arrow_schema(table.schema))
        for source in ((connection, "v"), frame):
            for when in ("seen_at", "seen_on"):
                data = dp.open({"v": source}, protect=dp.each("user_id", at_most=2, per="week", when=when))
                for scheme in SCHEMES:
                    assert sums(data, scheme) == sums(truth, scheme), (data.engine.name, when, scheme)


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_no_user_day_moves_the_sums_further_than_its_bound(engine):
    pytest.importorskip(engine)
    draw, fine = random.Random(3), 1 << 20
    days = [START, START + timedelta(days=1)]
    reached = 0.0
    for _ in range(25):
        rows = [
            (draw.choice([1, 2]), draw.choice(days), draw.randrange(3)) for _ in range(draw.randrange(1, 8))
        ]
        for unit in {(user, day) for user, day, _ in rows}:
            tables = [
                pa.table(
                    {
                        "user_id": pa.array([row[0] for row in some], pa.int64()),
                        "seen_on": pa.array([row[1] for row in some], pa.date32()),
                        "x": pa.array([row[2] for row in some], pa.int64()),
                    }
                )
                for some in (rows, [row for row in rows if row[:2] != unit])
            ]
            whole, without = (
                sums(opened(table, engine, dp.each("user_id", at_most=2, per="day")), "rows")
                for table in tables
            )
            moved = sum(
                abs(whole.get(group, (0, 0))[0] - without.get(group, (0, 0))[0])
                for group in {*whole, *without}
            )
            assert moved <= 2 * 9 * fine
            reached = max(reached, moved / fine)
            # Rows of the same user on the other day count as before.
            others = [row for row in rows if row[:2] != unit]
            if not others:
                assert not any(map(any, without.values()))
    assert reached >= 3, "the example is too small to show anything"


def test_a_whole_user_may_move_them_further_and_is_said_to():
    days = [START + timedelta(days=number) for number in range(5)]
    table = pa.table({"user_id": [1] * 5, "seen_on": pa.array(days, pa.date32()), "x": [9] * 5})
    data = opened(table, "duckdb", dp.each("user_id", at_most=1, per="day"))
    assert str(data.unit) == "one user_id-day added or removed"
    assert "protected as a group of as many units, and no more" in data.describe()
    session = dp.Session(data, limit=dp.Limit.filter(epsilon=1e7))
    answer = session.sql("SELECT COUNT(*) FROM v", epsilon=1e6)
    assert round(answer.value) == 5
    # One day costs ε = 1e6, all five cost five times that.
    assert answer.guarantee.group(5).epsilon(delta=0) == pytest.approx(5e6)
    assert "user_id-day" in str(session.sql("SELECT COUNT(*) FROM v", epsilon=1).guarantee.unit)


def test_rows_that_a_key_leads_to_have_the_day_of_their_owner():
    orders = pa.table(
        {"user_id": [1, 1, 2], "oid": [10, 11, 12], "on_day": pa.array([START, START, START], pa.date32())}
    )
    items = pa.table({"order_id": [10, 10, 11, 12], "price": [1, 2, 3, 4]})
    data = dp.open(
        {"orders": orders, "items": items},
        protect=dp.each("user_id", at_most=2, per="day", links={"items": "order_id -> orders.oid"}),
        columns={"items": {"price": dp.column(bounds=(0, 9))}},
    )
    session = dp.Session(data, limit=dp.Limit.filter(epsilon=1e9))
    # Three items of user 1 on one day count as two.
    assert round(session.sql("SELECT COUNT(*) FROM items", epsilon=1e6).value) == 3


@pytest.fixture
def divided():
    data = opened(made(5, [1, 2, 3]), "duckdb", dp.each("user_id", at_most=3, per="day", when="seen_on"))
    return dp.Session(data, limit=dp.Limit.filter(epsilon=100))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(DISTINCT user_id) FROM v",
        "SELECT AVG(n) FROM (SELECT user_id, COUNT(*) AS n FROM v GROUP BY user_id) AS t",
        "SELECT COUNT(*) FROM v AS a JOIN v AS b USING (user_id)",
        "SELECT COUNT(*) FROM v WHERE user_id IN (SELECT user_id FROM v WHERE x > 3)",
        "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY seen_at) AS n FROM v) AS t WHERE n = 1",
    ],
)
def test_what_puts_the_rows_of_a_user_together_is_refused(divided, text):
    with pytest.raises(DiscreetError) as refused:
        divided.sql(text, epsilon=1)
    assert (refused.value.code, refused.value.spent) == ("DP703", "nothing")
    divided.sql(refused.value.fix.split("   or ")[0], epsilon=1)


def test_a_description_in_toml_says_it_too(tmp_path):
    import pyarrow.parquet as pq

    pq.write_table(made(5, [1, 2, 3]), tmp_path / "v.parquet")
    data = dp.open(tmp_path / "v.parquet", dp.each("user_id", at_most=3, per="month", when="seen_at"))
    (tmp_path / "v.toml").write_text(data.to_toml(), encoding="utf-8")
    again = dp.open(tmp_path / "v.toml")
    assert again.protect == data.protect
    assert again.public_description() == data.public_description()
    assert again.public_description()["per"] == "month"
    assert repr(eval(repr(data.protect), {"dp": dp})) == repr(data.protect)
    assert (
        dp.tables.Dataset.from_toml(data.to_toml()).describe().splitlines()[1:3]
        == again.describe().splitlines()[1:3]
    )


WRONG = {
    "two times": (dp.each("user_id", at_most=1, per="day"), {}, "seen_on"),
    "no such time": (dp.each("user_id", at_most=1, per="day", when="x"), {}, "seen_on"),
    "a time of another table": (
        dp.each("user_id", at_most=1, per="day", when={"w": "seen_on"}),
        {},
        "seen_on",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_unclear_time_is_refused_with_one_that_works(name):
    protect, columns, right = WRONG[name]
    with pytest.raises(DiscreetError) as refused:
        dp.open({"v": made(5, [1, 2])}, protect=protect, columns=columns)
    assert refused.value.fix == f'when={{"v": "{right}"}}'
    assert dp.open({"v": made(5, [1, 2])}, dp.each("user_id", at_most=1, per="day", when={"v": right}))


def test_wrong_periods_and_units_that_engines_write_differently_are_refused():
    for call in (
        lambda: dp.each("user_id", at_most=1, per="hour"),
        lambda: dp.each("user_id", at_most=1, when="seen_on"),
        lambda: dp.each("user_id", at_most=1, per="day", when=""" """),
        lambda: dp.open({"v": made(5, [1.5])}, dp.each("user_id", at_most=1, per="day", when="seen_on")),
        lambda: dp.open(
            {"v": made(5, [1]).drop(["seen_on", "seen_at"])}, dp.each("user_id", at_most=1, per="day")
        ),
        lambda: dp.open(
            {"v": made(5, [date(2020, 1, 1)])}, dp.each("user_id", at_most=1, per="day", when="seen_on")
        ),
    ):
        with pytest.raises(DiscreetError) as refused:
            call()
        assert refused.value.spent == "nothing"


def test_several_units_are_refused_with_one_of_them():
    table = made(5, [1, 2])
    pairs = [
        [dp.each("user_id", at_most=2), dp.each("x", at_most=5)],
        [dp.each("user_id", at_most=2, per="day", when="seen_on"), dp.each("user_id", at_most=20)],
        (dp.each("user_id", at_most=2), dp.each_row()),
    ]
    for protect in pairs:
        with pytest.raises(DiscreetError) as refused:
            dp.open({"v": table}, protect=protect)
        assert refused.value.code == "DP107"
        chosen = eval(refused.value.fix.removeprefix("protect="), {"dp": dp})
        assert dp.open({"v": table}, protect=chosen).unit.protects == "user_id"


def weights_by_patients(rows, at_most):
    sizes = Counter(patient for patient, _ in rows)
    return [min(1, at_most / sizes[patient]) for patient, _ in rows]


def test_a_bound_for_one_unit_destabilises_the_other():
    """Why several units are refused: weights that go by patients move with a doctor who leaves, without limit."""
    at_most = 2
    for patients in (10, 100):
        # Each patient has one row with the doctor who leaves, and two with another one.
        rows = [
            (patient, doctor)
            for patient in range(patients)
            for doctor in ("leaves", f"a{patient}", f"a{patient}")
        ]

        others = [
            weight
            for weight, row in zip(weights_by_patients(rows, at_most), rows, strict=True)
            if row[1] != "leaves"
        ]
        left = weights_by_patients([row for row in rows if row[1] != "leaves"], at_most)
        moved = sum(abs(a - b) for a, b in zip(others, left, strict=True))
        assert moved == pytest.approx(patients * 2 / 3), "it grows with the number of patients"


def test_streams_bound_a_person_over_all_periods(divided):
    with pytest.raises(DiscreetError) as refused:
        divided.stream("SELECT COUNT(*) FROM v", every="week", periods=4, epsilon=1, time="seen_on")
    assert refused.value.spent == "nothing"


def test_the_unit_of_a_ledger_is_the_user_day(tmp_path):
    table = made(5, [1, 2, 3])
    path = tmp_path / "v.ledger"
    first = opened(table, "duckdb", dp.each("user_id", at_most=3, per="day", when="seen_on"))
    dp.Session(first, dp.Limit.filter(epsilon=1), path).sql("SELECT COUNT(*) FROM v", epsilon=0.1)
    for protect in (
        dp.each("user_id", at_most=3),
        dp.each("user_id", at_most=3, per="month", when="seen_on"),
        dp.each("user_id", at_most=3, per="day", when="seen_at"),
    ):
        data = opened(table, "duckdb", protect)
        with pytest.raises(DiscreetError) as refused:
            dp.Session(data, dp.Limit.filter(epsilon=1), path).sql("SELECT COUNT(*) FROM v", epsilon=0.1)
        assert refused.value.code in {"DP201", "DP608"}
    dp.Session(first, dp.Limit.filter(epsilon=1), path).sql("SELECT COUNT(*) FROM v", epsilon=0.1)
