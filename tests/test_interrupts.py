# SPDX-License-Identifier: Apache-2.0
"""Whoever is stopped at any statement of a session or an engine pays nothing more when they ask again, and sees one answer.

A tracer raises KeyboardInterrupt (or MemoryError) where a statement is reached for the first time; every statement that the same
work reaches when it is left alone is tried in turn, each on a data set, a session and a ledger of its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import DiscreetError, EngineFailed
from discreet.tables.plan.spend import Spend

#: Where statements are interrupted: those that do something. Those of the ledger have tests of their own.
SESSION = frozenset(map(str, (Path(dp.__file__).parent / "session").glob("*.py")))
WORKING = ("base", "sql_engine", "in_duckdb", "in_polars", "temporary", "cache", "packing")
TABLES = Path(dp.__file__).parent / "tables"
ENGINE = frozenset(
    map(str, (TABLES / "algebra/frozen.py", *(TABLES / f"engines/{name}.py" for name in WORKING)))
)
BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
MEAN = "SELECT AVG(days) AS m FROM visits"
LATER = "SELECT SUM(days) AS s FROM visits"
ROWS = pa.table(
    {
        "p": [n // 3 for n in range(600)],
        "ward": ["ab"[n % 2] for n in range(600)],
        "days": [n % 50 for n in range(600)],
    }
)


def opened(engine="duckdb", at_most=3):
    return dp.open(
        ROWS,
        dp.each("p", at_most=at_most),
        name="visits",
        columns={"ward": dp.column(values=("a", "b")), "days": dp.column(bounds=(0, 50))},
        engine=engine,
    )


def session(data):
    return dp.Session(data, dp.Limit.filter(100.0))


def one(asked):
    return asked.sql(BY_WARD, epsilon=0.5, key="monday").rows()


def many(asked):
    both = {"monday": (BY_WARD, {"epsilon": 0.5}), "tuesday": (LATER, {"epsilon": 0.25})}
    return [answer.rows() for answer in asked.release_batch(both).values()]


def two_steps(asked):
    return asked.sql(MEAN, error="±8", pilot=Spend(epsilon=5.0), key="monday").rows()


def charges(asked):
    return sum(entry.kind == "reserved" for entry in asked.ledger.entries())


class Stop:
    """Raises at one statement, the first time that it is reached; or, without one, remembers all that are."""

    def __init__(self, files, point=None, error=KeyboardInterrupt):
        self.files, self.point, self.error, self.points, self.done = files, point, error, {}, False

    def __call__(self, frame, event, _):
        code = frame.f_code
        # a module is executed once, when it is imported
        if code.co_filename not in self.files or code.co_name == "<module>":
            return None
        if event == "line" and not self.done:
            at = code.co_filename, frame.f_lineno
            self.points[at] = None
            if at == self.point:
                self.done = True
                raise self.error
        return self

    def __enter__(self):
        sys.settrace(self)
        return self

    def __exit__(self, *_):
        sys.settrace(None)


def points_of(work, asked, files):
    with Stop(files) as seen:
        work(asked)
    assert len(seen.points) > 50, "the tracer has to see what is done"
    return list(seen.points), charges(asked)


def pays_once(work, asked, files, point, due):
    """Stopped there, and asked again."""
    with Stop(files, point) as stop, pytest.raises(KeyboardInterrupt):
        work(asked)
    assert stop.done, point
    answer = work(asked)
    assert charges(asked) == due, point
    assert work(asked) == answer, point
    assert charges(asked) == due, point
    asked.sql(LATER, epsilon=0.5)
    return True


@pytest.mark.parametrize(
    ("work", "at_most"),
    [
        (one, 3),
        (one, "auto"),
        (many, 3),
        (two_steps, 3),
        pytest.param(many, "auto", marks=pytest.mark.slow),
        pytest.param(two_steps, "auto", marks=pytest.mark.slow),
    ],
)
def test_a_call_that_is_stopped_in_a_session_pays_once_and_sees_one_answer(work, at_most):
    data = opened(at_most=at_most)
    work(session(data))  # what is imported, and remembered, is so from here on
    points, due = points_of(work, session(data), SESSION)
    for point in points:
        assert pays_once(work, session(data), SESSION, point, due)


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_a_call_that_is_stopped_in_an_engine_pays_once_and_sees_one_answer(engine):
    one(session(opened(engine)))
    points, due = points_of(one, session(opened(engine)), ENGINE)
    for point in points:
        with opened(engine) as data:
            assert pays_once(one, session(data), ENGINE, point, due)


def test_an_error_anywhere_after_the_charge_is_its_outcome_and_is_paid_once():
    """Memory that runs out is no interruption: that it did may depend on what was drawn."""
    data = opened("polars")
    one(session(data))
    points, due = points_of(one, session(data), SESSION | ENGINE)
    for point in points:
        asked = session(data)
        with Stop(SESSION | ENGINE, point, MemoryError), pytest.raises((MemoryError, DiscreetError)):
            one(asked)
        try:
            first = one(asked)
        except EngineFailed as kept:
            assert (kept.code, kept.spent) == ("DP801", "nothing"), point  # noqa: PT017 - either way
        else:
            assert one(asked) == first, point
        assert charges(asked) == due, point
