# SPDX-License-Identifier: Apache-2.0
"""Every place in the library where a fix is written down is one whose fix is applied by a test, or is on a list that only shrinks.

`not_applied.txt` lists the sites whose fix no mistake applies yet, or none can: prose, other machines, other versions. A new error
needs a `Mistake`; a mistake for an old one takes its line off the list.
"""

from __future__ import annotations

import ast
import contextlib
import shutil
import sqlite3
from pathlib import Path

import pytest

import discreet as dp
from discreet.errors import BadParameter, DiscreetError
from tests.mistakes import (
    test_answers,
    test_asking_dates,
    test_asking_expressions,
    test_asking_sql,
    test_command_line,
    test_copies,
    test_cubes,
    test_describing,
    test_guarantees,
    test_learning,
    test_ledgers,
    test_mechanisms,
    test_opening,
    test_own_names,
    test_releasing,
    test_serving,
    test_spending,
    test_streams,
    test_unstated,
)
from tests.mistakes.clinic import Asked, Described, Here
from tests.mistakes.mistakes import Mistake
from tests.mistakes.sites import _in_file, sites, watching
from tests.mistakes.test_command_line import Shell, charged  # noqa: F401 - a fixture
from tests.mistakes.test_own_names import ORDERS, both, orders  # noqa: F401 - fixtures
from tests.mistakes.test_releasing import ReleaseShell

LISTED = Path(__file__).with_name("not_applied.txt")
#: How many sites were on the list when it was last shortened: it never grows.
MOST = 502


def told(topic):
    """The mistakes of a topic, each of which is applied there."""
    marks = [mark for test in vars(topic).values() for mark in getattr(test, "pytestmark", ())]
    return [one for mark in marks for one in mark.args[1] if isinstance(one, Mistake)]


@pytest.fixture(scope="module")
def places(visits, two_tables, unknown_cap, orders, both):  # noqa: F811
    """How the place of each topic is made."""

    def of_orders(_):
        place = Here(data=orders, both=both)
        place.words["orders_table"] = ORDERS
        return place

    return [
        (told(test_asking_sql), lambda _: Asked(data=two_tables)),
        (told(test_asking_dates), lambda _: Asked(data=test_asking_dates.dated_visits())),
        (told(test_asking_expressions), lambda _: Here(data=visits, clinic=two_tables)),
        (told(test_answers), lambda _: Here(data=visits)),
        (told(test_cubes), lambda _: Here(data=visits)),
        (told(test_copies), lambda _: Here(data=visits)),
        (told(test_unstated), lambda _: Here(data=visits)),
        (told(test_spending), lambda _: Here(data=visits, auto=unknown_cap)),
        (told(test_ledgers), lambda _: Here(data=visits)),
        (told(test_serving), lambda _: Here(data=visits)),
        (told(test_streams), lambda _: Here(data=visits, auto=unknown_cap)),
        (told(test_mechanisms), lambda _: Here(data=visits)),
        (told(test_guarantees), lambda _: Here(data=visits)),
        (told(test_opening), lambda _: Here(data=visits)),
        (told(test_describing), Described),
        (told(test_learning), lambda _: Here(data=visits)),
        (told(test_command_line), lambda _: Shell()),
        (list(test_releasing.FILES), lambda _: ReleaseShell()),
        (list(test_releasing.COPIES), lambda _: Shell()),
        (list(test_own_names.SQL), lambda _: Asked(data=both)),
        (list(test_own_names.PYTHON), of_orders),
    ]


@pytest.fixture(scope="module")
def applied(places, charged, tmp_path_factory):  # noqa: F811
    """The sites at which the mistakes are refused."""
    with watching() as found:
        for several, place in places:
            for mistake in several:
                folder = tmp_path_factory.mktemp("fix")
                shutil.copytree(charged, folder, dirs_exist_ok=True)
                if not isinstance(place(folder), Shell):
                    (folder / "visits.ledger").unlink()
                with contextlib.closing(sqlite3.connect(folder / "clinic.sqlite")) as database:
                    database.execute("CREATE TABLE visits (patient_id INTEGER, days INTEGER)")
                    database.execute("CREATE TABLE beds (patient_id INTEGER)")
                with contextlib.chdir(folder):
                    here = place(folder)
                    if mistake.first:
                        here.run(mistake.first)
                    with pytest.raises(DiscreetError):
                        here.run(mistake.wrong)
    return found


def test_every_fix_is_applied_or_listed(applied):
    listed = LISTED.read_text(encoding="utf-8").splitlines()
    missing = [str(site) for site in sites() if str(site) not in applied]
    assert sorted(missing) == sorted(listed), "a Mistake for what is new, and no line for what is applied"


def test_the_list_only_shrinks():
    listed = LISTED.read_text(encoding="utf-8").splitlines()
    assert len(listed) == len(set(listed)) == MOST


def test_a_site_is_found_and_an_error_noted():
    tree = ast.parse(
        "def f(fix):\n    raise E(fix=fix)\nclass A:\n    def g(self):\n        f('x')\n        E(fix='y')"
    )
    assert [str(one) for one in _in_file("a.py", tree, frozenset({"f"}))] == ["a.py A.g 1", "a.py A.g 2"]
    with watching() as found:
        BadParameter("DP102", "what", why="why", fix="fix")
        assert found == set()
        with pytest.raises(DiscreetError):
            dp.column("integer", bounds=(9, 1))
    assert any(site.startswith("tables/data/rules.py bounds_of") for site in found)
