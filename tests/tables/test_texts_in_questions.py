# SPDX-License-Identifier: Apache-2.0
"""Functions of texts, square roots, parameters and GROUP BY ALL: what they mean, and what of them is public."""

from __future__ import annotations

import math
import random
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dp
from discreet.errors import BadParameter, DiscreetError, RefusedQuestion
from discreet.tables.algebra.expr import Read
from discreet.tables.algebra.types import NUMBER, Type
from discreet.tables.ask import build
from discreet.tables.ask.sql import parse
from tests.tables.reference import value
from tests.tables.world import world

duckdb = pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")

WORLD = world()
TEXTS = [
    "",
    " ",
    "a",
    "A",
    "  ab ",
    "stra\u00dfe",
    "\u0130I\u0131i",
    "\t a",
    "\u00a0x\u00a0",
    "\U0001f600b",
    "O'Neil",
    "%_\\",
    None,
]
SAME = [
    "note || '-' || ward",
    "TRIM(note)",
    "SUBSTR(note, 2)",
    "SUBSTR(note, 1, 2)",
    "SUBSTRING(note, 3, 0)",
    "LEFT(note, 1)",
    "LENGTH(note)",
    "CONCAT(note, '-', ward)",
    "CASE WHEN note ILIKE 'A%' THEN 1 ELSE 0 END",
    "CASE WHEN note NOT ILIKE '%E' THEN 1 ELSE 0 END",
    "CASE WHEN STARTS_WITH(note, '%_') THEN 1 ELSE 0 END",
    "CASE WHEN ENDS_WITH(note, 'a') THEN 1 ELSE 0 END",
    "CASE WHEN CONTAINS(note, 'eil') THEN 1 ELSE 0 END",
    "UPPER(ward || 'z')",
    "CASE WHEN LOWER(ward) = 'a' THEN 1 ELSE 0 END",
]


def of_count(text):
    return parse(f"SELECT COUNT({text}) FROM visits", WORLD).question.aggregates[0].of


@pytest.mark.parametrize("text", SAME)
def test_a_function_of_a_text_means_what_it_means_in_sql(text):
    rows = [(note, ward) for note in TEXTS for ward in ("A", "b", None)]
    table = pa.table(
        {
            name: pa.array(cells, pa.string())
            for name, cells in zip(("note", "ward"), zip(*rows, strict=True), strict=True)
        }
    )
    with duckdb.connect() as connection:
        connection.register("visits", table)
        theirs = connection.execute(
            f"SELECT {text.replace('TRIM(note)', 'TRIM(note, chr(32))')} FROM visits"
        ).fetchall()
    ours = [
        value(of_count(text), {("visits", "note"): note, ("visits", "ward"): ward}) for note, ward in rows
    ]
    assert ours == [cell for (cell,) in theirs]


def test_only_the_letters_of_ascii_change_their_case():
    upper = of_count("UPPER(note)")
    assert value(upper, {("visits", "note"): "stra\u00dfe \u00e9"}) == "STRA\u00dfE \u00e9"
    lower = of_count("LOWER(note)")
    assert value(lower, {("visits", "note"): "\u0130I"}) == "\u0130i"


def test_a_function_of_listed_values_has_public_groups():
    def groups(key, where="TRUE"):
        return (
            parse(f"SELECT {key}, COUNT(*) FROM visits WHERE {where} GROUP BY 1", WORLD)
            .question.keys[0]
            .values
        )

    assert groups("LOWER(ward)") == ("a", "b", "c", None)
    assert groups("LOWER(ward)", "ward IS NOT NULL") == ("a", "b", "c")
    assert groups("ward || '!'", "ward <> 'B'") == ("A!", "C!")
    assert groups("SUBSTR(ward, 2)", "ward = 'A'") == ("",)
    assert groups("LENGTH(ward)") == (1, None)
    assert groups("UPPER(note)") is None
    assert groups("FLOOR(SQRT(days))", "days IS NOT NULL") == tuple(range(8))


@given(st.integers(-(2**50), 2**50), st.integers(0, 2**50), st.integers(0, 30), st.data())
def test_a_root_is_rounded_down_and_within_its_bounds(low, width, places, data):
    read = Read("visits", "x", Type(NUMBER, low, min(low + width, 2**50), places, null=False))
    of = build.root(read)
    cell = data.draw(st.integers(read.of.low, read.of.high))
    found = value(of, {("visits", "x"): cell / 2**places if cell.bit_length() < 53 else cell})
    if cell < 0:
        assert found is None
        return
    assert of.type.low <= found <= of.type.high
    scale, exact = 4**of.places, cell / 2**places
    assert found**2 <= exact * scale < (found + 1) ** 2 + scale * 2.0**-20 * max(exact, 1)


def test_a_root_of_too_large_numbers_is_refused():
    with pytest.raises(RefusedQuestion) as caught:
        build.root(Read("visits", "x", Type(NUMBER, 0, 2**60, 0)))
    assert caught.value.code == "DP705"
    assert build.root(Read("visits", "x", Type(NUMBER, 0, 2**60, 20))).type.bounds[1] <= 2**20


def test_an_integer_of_fifty_bits_has_an_exact_root():
    chance = random.Random(2)
    for _ in range(2_000):
        root = chance.randrange(2**25)
        for number in (root * root - 1, root * root, root * root + 1):
            if number >= 0:
                assert math.floor(math.sqrt(float(number))) == math.isqrt(number)


REFUSED = [
    "LENGTH(days)",
    "UPPER(NULL)",
    "days || ward",
    "SUBSTR(ward, 0)",
    "SUBSTR(ward, -1)",
    "SUBSTR(ward, days)",
    "SUBSTR(ward, 1, -1)",
    "SQRT(ward)",
    "LEFT(ward)",
    "TRIM(ward, 'x')",
    "SUBSTR(ward, 1.5)",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_proved_is_refused(text):
    with pytest.raises(DiscreetError) as caught:
        of_count(text)
    assert caught.value.fix


def asked(text, parameters):
    return parse(text, WORLD, parameters).question


def test_a_parameter_is_a_value_in_its_place():
    text = "SELECT BUCKET(days, ?, 20) AS b, SUM(CLAMP(age, ?, 99)) FROM visits WHERE ward = ? AND day >= ? GROUP BY b HAVING COUNT(*) > ? LIMIT ?"
    written = asked(text, [10, 18, "O'B -- ?", date(2024, 3, 1), 7, 5])
    plain = "SELECT BUCKET(days, 10, 20) AS b, SUM(CLAMP(age, 18, 99)) FROM visits WHERE ward = 'O''B -- ?' AND day >= DATE '2024-03-01' GROUP BY b HAVING COUNT(*) > 7 LIMIT 5"
    expected = parse(plain, WORLD).question
    assert (written.rows, written.keys, written.aggregates, written.having, written.limit) == (
        expected.rows,
        expected.keys,
        expected.aggregates,
        expected.having,
        expected.limit,
    )
    assert parse(written.text, WORLD).question.rows == expected.rows
    assert "'O''B -- ?'" in written.text


def test_a_question_mark_in_a_text_is_no_parameter():
    assert asked("SELECT COUNT(*) FROM visits WHERE note = '?' AND days > ? -- ?", [3]).text.count("'?'") == 1


@pytest.mark.parametrize(
    "parameters", [[1, 2], "3", [object()], [float("nan")], [dp.col("days")], {"a": 1}, [[1]], 3, None]
)
def test_parameters_that_do_not_fit_are_refused(parameters):
    with pytest.raises((BadParameter, RefusedQuestion)) as caught:
        asked("SELECT COUNT(*) FROM visits WHERE days > ?", parameters)
    assert caught.value.code in {"DP104", "DP702", "DP705"}


def test_a_parameter_changes_nothing_but_a_value():
    hostile = "x' OR 1 = 1; DROP TABLE visits --"
    rows = asked("SELECT COUNT(*) FROM visits WHERE note = ?", [hostile]).rows
    assert rows == asked(f"SELECT COUNT(*) FROM visits WHERE note = {dp_quoted(hostile)}", []).rows
    with pytest.raises(RefusedQuestion):
        asked("SELECT COUNT(*) FROM ?", ["visits"])


def dp_quoted(text):
    return "'" + text.replace("'", "''") + "'"


def test_a_session_answers_and_previews_with_parameters():
    data = dp.open(dp.data.path("adult.toml"))
    session = dp.Session(data, limit=dp.Limit.filter(epsilon=10))
    text = "SELECT COUNT(*) AS n FROM adult WHERE age >= ?"
    assert session.preview(text, epsilon=1, parameters=[18]).cost.epsilon(delta=0) == 1
    first = session.sql(text, epsilon=1, parameters=[18], key="a")
    assert session.sql(text, epsilon=1, parameters=[18], key="a").rows() == first.rows()
    with pytest.raises(DiscreetError):
        session.sql(text, epsilon=1, parameters=[19], key="a")
    with pytest.raises(DiscreetError) as caught:
        session.sql(text, epsilon=1, parameters=[])
    assert caught.value.code == "DP702"


def test_group_by_all_groups_by_everything_that_is_no_aggregate():
    one = parse(
        "SELECT ward, MONTH(day) AS m, COUNT(*) AS n, SUM(days) / COUNT(*) FROM visits GROUP BY ALL", WORLD
    ).question
    other = parse(
        "SELECT ward, MONTH(day) AS m, COUNT(*) AS n, SUM(days) / COUNT(*) FROM visits GROUP BY ward, m",
        WORLD,
    ).question
    assert (one.keys, one.aggregates, one.outputs) == (other.keys, other.aggregates, other.outputs)
    assert parse("SELECT COUNT(*) FROM visits GROUP BY ALL", WORLD).question.keys == ()
