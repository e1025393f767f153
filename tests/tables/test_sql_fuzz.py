# SPDX-License-Identifier: Apache-2.0
"""Questions by the thousand: each is answered or refused with a code; what is answered is about one unit at a time."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from datetime import UTC, date, datetime

import pytest

from discreet.errors import BadParameter, DiscreetError, RefusedQuestion
from discreet.tables.algebra.types import DATE, MOMENT, NUMBER
from discreet.tables.ask.sql import parse
from tests.tables.grammar import Grammar
from tests.tables.reference import Reference, key_of, value
from tests.tables.test_sql_refused import REFUSED
from tests.tables.world import REGIONS, WARDS, world

WORLD = world()
INF, NAN = float("inf"), float("nan")

NASTY = {
    "ward": ["A", "B", "C", "Z", "", None],
    "note": ["a", "ab", "x", "A", "", None],
    "days": [0, 1, 2, 7, 59, 60, 61, -5, 2**62, -(2**63), None],
    "age": [0, 17, 18, 120, -1, 2**63 - 1, None],
    "zip": [0, 7, 99_999, 100_000, None],
    "cost": [0.0, -0.0, 0.1, 100.0, 499.99, 500.0, 1e308, -1e308, 5e-324, NAN, INF, -INF, None],
    "weight": [70.1, 70.0, 0.49999999999999994, 2.0**53, NAN, INF, -INF, None],
    "urgent": [True, False, None],
    "day": [date(2024, 1, 1), date(2024, 2, 29), date(2025, 12, 31), date(1, 1, 1), date(9999, 12, 31), None],
    "born": [date(1999, 12, 31), date(2000, 1, 1), date(1, 1, 1), None],
    "seen_at": [
        datetime(2024, 5, 1, 23, 59, tzinfo=UTC),
        datetime(2025, 1, 1),  # noqa: DTZ001 - a moment without a zone
        datetime(1, 1, 1, tzinfo=UTC),
        None,
    ],
    "blob": [None],
}
LABS = {"ward": ["A", "B", None], "value": [-1.0, 0.0, 0.5, NAN, INF, None], "kind": ["k", None]}


def tables(seed, people=4, rows=12):
    """Rows that hold everything that is hard, of a few people, one of whom is nobody."""
    chance = random.Random(seed)

    def row(columns):
        return {
            "patient_id": chance.choice([*range(people), None]),
            **{name: chance.choice(values) for name, values in columns.items()},
        }

    return {
        "visits": [row(NASTY) for _ in range(rows)],
        "labs": [row(LABS) for _ in range(rows // 2)],
        "wards": [dict(zip(("ward", "region", "beds"), ward, strict=True)) for ward in WARDS],
        "regions": [dict(zip(("region", "coast"), region, strict=True)) for region in REGIONS],
    }


UNITS = {"visits": "patient_id", "labs": "patient_id"}


def without(data, unit):
    return {
        name: [row for row in rows if name not in UNITS or row["patient_id"] != unit]
        for name, rows in data.items()
    }


def accepted(seed, count, slips=0.0):
    """Questions that are answered, among so many."""
    grammar = Grammar(seed, slips)
    for _ in range(count):
        text = grammar.question()
        try:
            yield text, parse(text, WORLD).question
        except (RefusedQuestion, BadParameter):
            continue


@pytest.mark.parametrize("seed", range(2))
def test_a_question_is_answered_or_refused_with_a_code(seed):
    grammar = Grammar(seed)
    outcomes: Counter[str] = Counter()
    for _ in range(300):
        text = grammar.question()
        try:
            parse(text, WORLD)
            outcomes["answered"] += 1
        except (RefusedQuestion, BadParameter) as error:
            outcomes[error.code] += 1
    assert outcomes["answered"] > 100, outcomes
    assert len(outcomes) > 3, "the grammar has become too tame"


SIGNS = [*list("()'\"`,;*/-+%=<>.:$?@#[]{}|\\ \n\t"), "--", "/*", "*/", "0", "1e9", "é", "ß", "і", "\u2028"]
WORDS = re.findall(
    r"\w+",
    "SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT DISTINCT UNION JOIN LEFT ON USING AS NOT AND OR IN IS NULL LIKE "
    "BETWEEN CASE WHEN THEN ELSE END CAST EXTRACT OVER FILTER WITHIN WITH RECURSIVE ALL ANY EXISTS INTERVAL DATE "
    "COUNT SUM visits wards labs ward days patient_id INTO FOR UPDATE QUALIFY WINDOW PIVOT LATERAL UNNEST VALUES "
    "TABLESAMPLE FETCH OFFSET ROLLUP TRUE DESC NULLS FIRST EXPLAIN PRIVACY DROP SET PRAGMA COPY ATTACH",
)


def changed(text, chance):
    """A text with a few words or signs taken away, doubled, swapped or put in."""
    words = text.split(" ")
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(words))
        act = chance.randrange(5)
        if act == 0:
            del words[at]
        elif act == 1:
            words.insert(at, chance.choice(WORDS))
        elif act == 2:
            words[at] = chance.choice(WORDS)
        elif act == 3:
            words[at] += chance.choice(SIGNS)
        else:
            other = chance.randrange(len(words))
            words[at], words[other] = words[other], words[at]
        if not words:
            break
    return " ".join(words)


@pytest.mark.parametrize("seed", range(2))
def test_a_damaged_question_is_answered_or_refused_with_a_code(seed):
    chance, grammar = random.Random(seed), Grammar(seed + 1_000)
    errors = []
    for base in itertools.islice(itertools.cycle([*REFUSED, *("" for _ in REFUSED)]), 500):
        text = changed(base or grammar.question(), chance)
        try:
            parse(text, WORLD)
        except (RefusedQuestion, BadParameter) as error:
            errors.append(str(error))
    assert len(errors) > 100
    assert max(map(len, errors)) < 2_000


def test_noise_is_refused_with_a_code():
    chance = random.Random(5)
    for _ in range(500):
        text = "SELECT " + "".join(chance.choice([*SIGNS, *WORDS, " "]) for _ in range(chance.randint(0, 40)))
        with pytest.raises(DiscreetError):
            parse(text, WORLD)


# --- what is answered is about one unit at a time -----------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_rows_of_a_unit_depend_on_that_unit_alone(seed):
    """Lemma C by brute force: without a unit, the rows of all others are the same, and its own are gone."""
    data = tables(seed)
    whole = Reference(data, UNITS)
    smaller = {unit: Reference(without(data, unit), UNITS) for unit in range(4)}
    tried = 0
    for text, question in accepted(seed, 90):
        rows = whole.rows(question.rows)
        assert all(unit is not None for unit, _ in rows)
        for unit, other in smaller.items():
            left = [repr(pair) for pair in rows if pair[0] != unit]
            assert sorted(left) == sorted(map(repr, other.rows(question.rows))), text
        tried += 1
    assert tried > 30


@pytest.mark.parametrize("seed", range(3))
def test_every_value_lies_within_its_type(seed):
    """Bounds are proved, so that no row, however nasty, leaves them; NULL comes only where it may."""
    reference = Reference(tables(seed, rows=40), UNITS)
    tried = 0
    for text, question in accepted(seed + 100, 90):
        parts = [one.of for one in question.aggregates if one.of is not None] + [
            key.of for key in question.keys
        ]
        for unit, row in reference.rows(question.rows):
            for part in parts:
                found, kind = value(part, row), part.type
                assert unit is not None
                assert kind.null or found is not None, text
                if found is not None and kind.kind in {NUMBER, DATE, MOMENT}:
                    assert isinstance(found, int), text
                    assert kind.low <= found <= kind.high, text
                    tried += 1
    assert tried > 500


def test_keys_that_a_type_limits_are_all_listed():
    """A list of values that comes from a type, and not from a person, leaves nothing out."""
    closed = (
        "urgent",
        "days",
        "MONTH(day)",
        "days % 3",
        "BUCKET(cost, 0, 100, 250)",
        "days > 3",
        "YEAR(day)",
    )
    reference = Reference(tables(9, rows=60), UNITS)
    for text in closed:
        question = parse(f"SELECT {text}, COUNT(*) FROM visits GROUP BY {text}", WORLD).question
        (key,) = question.keys
        assert {key_of(key.of, row) for _, row in reference.rows(question.rows)} <= set(key.values), text
