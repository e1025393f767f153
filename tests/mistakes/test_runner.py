# SPDX-License-Identifier: Apache-2.0
"""The runner itself: it sees every way in which an error can fail a beginner. And there are a hundred mistakes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from discreet.errors import BadParameter
from tests.mistakes import (
    test_asking_expressions,
    test_asking_sql,
    test_command_line,
    test_describing,
    test_ledgers,
    test_mechanisms,
    test_opening,
    test_spending,
)
from tests.mistakes.mistakes import Mistake, check_mistake

TOPICS = (
    test_opening,
    test_describing,
    test_asking_sql,
    test_asking_expressions,
    test_spending,
    test_ledgers,
    test_mechanisms,
    test_command_line,
)
SLIP = Mistake("wrong", "DP102", "epsilon=1")


def place(*, code="DP102", fix="pass epsilon=1", spent="nothing", said="", paid=0, works=True):
    """Where `wrong` is refused in that way, and the fix works or does not."""
    book = []

    def run(text):
        if text == "wrong":
            book.extend("x" * paid)
            raise BadParameter(code, f"epsilon must be above 0{said}.", why="it must.", fix=fix, spent=spent)
        if not works:
            raise KeyError(text)

    return SimpleNamespace(run=run, spent=lambda: len(book), secrets=frozenset({"Quill07"}))


def test_a_good_error_passes():
    assert check_mistake(SLIP, place()).code == "DP102"


@pytest.mark.parametrize(
    "wrong",
    [
        {"code": "DP101"},
        {"fix": "see the manual"},
        {"spent": "what this answer costs"},
        {"said": ", not Quill07"},
        {"paid": 1},
        {"works": False},
    ],
)
def test_a_bad_error_does_not(wrong):
    with pytest.raises((AssertionError, KeyError)):
        check_mistake(SLIP, place(**wrong))


@pytest.mark.parametrize(
    "said",
    [
        {"right": "rho=1"},
        {"right": "wrong"},
        {"left_out": "nothing of it"},
        {"code": "DP999", "right": "epsilon=1"},
    ],
)
def test_a_mistake_holds_its_fix(said):
    with pytest.raises(AssertionError):
        Mistake(**{"wrong": "wrong", "code": "DP102", "fix": "epsilon=1", **said})


def test_there_are_a_hundred():
    marks = [
        mark for topic in TOPICS for test in vars(topic).values() for mark in getattr(test, "pytestmark", ())
    ]
    several = [one for mark in marks for one in mark.args[1] if isinstance(one, Mistake)]
    assert len(several) >= 100
    assert len({(one.wrong, one.first) for one in several}) == len(several)
