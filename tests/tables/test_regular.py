# SPDX-License-Identifier: Apache-2.0
"""Regular expressions: what is accepted means what Python's `re` means; everything else is refused."""

from __future__ import annotations

import contextlib
import itertools
import random
import re

import pytest

import discreet as dp
from discreet.errors import RefusedQuestion
from discreet.tables.algebra.expr import Read
from discreet.tables.algebra.types import TEXT, Type
from discreet.tables.ask.regular import matches_regular
from discreet.tables.ask.sql import parse
from tests.tables.reference import value
from tests.tables.world import world

TERM = Read("visits", "t", Type(TEXT))
TEXTS = ["".join(signs) for n in range(5) for signs in itertools.product("ab1", repeat=n)]
TEXTS += [
    "I21.4",
    "I2",
    "xI20",
    "a\n",
    "\n1",
    "a_b",
    "100%",
    "ä1",
    "A-3",
    "a.b",
    "(a)",
    "٣",
    "\U0001f600b",
    "a\\b",
]

PATTERNS = [
    "",
    "a",
    "^a",
    "a$",
    "^a$",
    "^$",
    "a|b1",
    "^(a|b)1?$",
    "^I2[0-5]",
    r"^I2[0-5](\.\d)?$",
    r"\d",
    "^[a-b]{2,3}$",
    "a.b",
    "a.*b",
    "^a.+1$",
    "(?:ab|b){1,2}1",
    "^.{3}$",
    r"^a_b|^\d{3}%$",
    r"a\.b|\(a\)",
    "[-ab]1$",
    "^[]a]",
    "^a??b",
    "(a|)(b|)1",
    "^..$",
    "^[A-Z]-[0-9]$",
    "a{0}b",
    ".{2,}1",
]


def as_python(pattern):
    return re.compile(pattern.replace("\\d", "[0-9]").replace("$", r"\Z"), re.DOTALL)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_means_what_it_means_elsewhere(pattern):
    condition, exact = matches_regular(TERM, pattern), as_python(pattern)
    for text in TEXTS:
        assert value(condition, {("visits", "t"): text}) is (exact.search(text) is not None), text
    assert value(condition, {("visits", "t"): None}) is None


def random_pattern(chance, depth=2):
    def atom():
        if depth and chance.random() < 0.3:
            return f"({random_pattern(chance, depth - 1)})"
        return chance.choice(["a", "b", "1", ".", "[ab]", r"\d", "[a-b1]"])

    def item():
        made = atom()
        repeats = ["", "", "?", "{2}", "{0,2}"] + (["*", "+"] if made == "." else [])
        return made + chance.choice(repeats)

    sequences = [
        "".join(item() for _ in range(chance.randint(0, 3))) for _ in range(chance.choice([1, 1, 2]))
    ]
    if depth == 2:
        sequences = [chance.choice(["", "^"]) + one + chance.choice(["", "$"]) for one in sequences]
    return "|".join(sequences)


def test_patterns_at_random():
    chance, accepted = random.Random(3), 0
    for _ in range(400):
        pattern = random_pattern(chance)
        condition = None
        with contextlib.suppress(RefusedQuestion):
            condition = matches_regular(TERM, pattern)
        if condition is None:
            continue
        accepted += 1
        exact = as_python(pattern)
        for text in chance.sample(TEXTS, 12):
            assert value(condition, {("visits", "t"): text}) is (exact.search(text) is not None), (
                pattern,
                text,
            )
    assert accepted > 200


REFUSED = [
    "a*", "(ab)+", "[a-z]*", "a{2,}", "[^a]", r"\w", r"\bx", r"\s", "(?i)a", "(?=a)", "a**", "*a", "(a", "a)", "[a",
    "a{x}", "a{3,1}", "a{99}", "a^b", "a$b", "(^a)?", "[b-a]", "[a-Z]", "[[:alpha:]]", "a]", "a}", "\\", "[é-ü]",
    "[a-z][a-z][a-z]", "x_[ab]_.*_", "(((a|b)|(c|d)){9}){9}", "^.*_", "\\1(a)",
]  # fmt: skip


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_engines_read_differently_is_refused(pattern):
    with pytest.raises(RefusedQuestion) as refused:
        matches_regular(TERM, pattern)
    assert refused.value.code == "DP705"


@pytest.mark.parametrize(
    "written", ["REGEXP_MATCHES(note, '{}')", "REGEXP_LIKE(note, '{}')", "note RLIKE '{}'"]
)
def test_it_is_a_condition_of_sql(written):
    data = world()
    asked = parse(f"SELECT COUNT(*) FROM visits WHERE {written.format('^a')}", data).question
    assert asked.rows == parse("SELECT COUNT(*) FROM visits WHERE note LIKE 'a%'", data).question.rows
    for text in ("REGEXP_MATCHES(days, 'a')", "REGEXP_MATCHES(note, note)", "REGEXP_MATCHES(note, 'a', 'i')"):
        with pytest.raises(RefusedQuestion):
            parse(f"SELECT COUNT(*) FROM visits WHERE {text}", data)
    assert (
        parse(data["visits"].where(dp.col("note").matches("^a")).count().text, data).question.rows
        == asked.rows
    )
