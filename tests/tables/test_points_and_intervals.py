# SPDX-License-Identifier: Apache-2.0
"""A released number lies inside its own interval, in every view; and an interval is never cut below what it guarantees."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.tables.answer.answer import Answer, Noisy
from discreet.tables.plan.compile import compile_question
from discreet.tables.plan.spend import Spend
from tests.tables.small import dataset, number, question

pa = pytest.importorskip("pyarrow")

X, SIGNED, FINE = number(0, 60), number(-7, 100), number(-3 * 2**20, 2**20, places=20)
EVERY = [
    ("count",),
    ("units",),
    *((kind, of) for kind in ("count_of", "sum", "mean", "variance", "stddev") for of in (X, SIGNED, FINE)),
]
SPENDS = [Spend(epsilon=1e-3), Spend(epsilon=900.0), Spend(rho=1e-5), Spend(rho=400.0), Spend(1.0, 1e-6)]
WHO = [{"rows_are_units": True}, {"at_most": 3}, {"at_most": 3, "relation": "replace"}]


def estimates():
    """Every way in which an aggregate is read off noisy sums."""
    for spend, who, keys in product(SPENDS, WHO, (None, ("a", "b"))):
        for kind in EVERY:
            mechanism = compile_question(question(kind, keys=keys), dataset(**who), spend)
            for part in mechanism.stages:
                for estimate in part.estimates.values():
                    yield len(part.distributions), estimate


ESTIMATES = list(estimates())
SUMS = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-6, 2.0**40, -(2.0**40)]),
    st.integers(-(2**44), 2**44).map(float),
    st.integers(-300, 300).map(float),
)


def inside(column: Noisy) -> bool:
    """Whether every number that has an interval is in it."""
    each = zip(column.values, column.lo, column.hi, strict=True)
    return all(lo is None or hi is None or lo <= x <= hi for x, lo, hi in each)


def views(answer: Answer):
    """The answer and everything that it can be turned into."""
    seen = [answer, answer.nonnegative(), answer.round(), answer.nonnegative().round()]
    return [*seen, *(Answer.from_json(one.to_json()) for one in seen)]


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_whatever_the_noisy_sums_are_a_number_is_inside_and_the_interval_is_no_narrower(data):
    places, estimate = data.draw(st.sampled_from(ESTIMATES))
    sums = np.array([data.draw(st.lists(SUMS, min_size=places, max_size=places)) for _ in range(3)])
    column = estimate.noisy(sums)
    low, high = estimate.ends(sums, 1 - CONFIDENCE)
    assert inside(column)
    assert all(lo <= end for lo, end in zip(column.lo, low, strict=True))
    assert all(hi >= end for hi, end in zip(column.hi, high, strict=True))
    assert all(map(math.isfinite, (*column.values, *column.lo, *column.hi)))
    wide = column.interval(0.999)
    assert inside(Noisy(column.values, *wide))
    answer = Answer.of(keys=["at"], groups=[(0,), (1,), (2,)], columns={"x": column})
    assert all(inside(view.columns["x"]) for view in views(answer))
    _assert_texts_hold(column, answer)


def _assert_texts_hold(column: Noisy, answer: Answer) -> None:
    """What people read: the point between its ends, and ends that are no narrower than the released ones."""
    for at, cells in enumerate(answer._cells()):
        shown, lo, hi = map(float, cells[1:])
        assert lo <= shown <= hi
        if abs(column.lo[at]) < 1e15 > abs(column.hi[at]) and column.lo[at] < column.hi[at]:
            assert lo <= column.lo[at] or isinstance(column.lo[at], int)
            assert hi >= column.hi[at] or isinstance(column.hi[at], int)


# --- questions, on both engines ---------------------------------------------------------------------

ROWS = {
    "empty": {"who": [], "ward": [], "x": [], "days": []},
    "one row": {"who": [1], "ward": ["a"], "x": [59.5], "days": [60]},
    "few": {
        "who": [1, 1, 1, 1, 2, 3],
        "ward": ["a", "b", "c", "a", "a", "b"],
        "x": [0.0, 60.0, None, 1.5, 60.0, 60.0],
        "days": [0, 60, 7, None, 60, 1],
    },
}
KINDS = {"who": pa.int64(), "ward": pa.string(), "x": pa.float64(), "days": pa.int64()}
QUESTION = """
    SELECT {key} COUNT(*) AS n, COUNT(x) AS known, COUNT(DISTINCT who) AS people, SUM(x) AS total, SUM(days) AS whole,
      AVG(x) AS average, VARIANCE(x) AS spread, STDDEV(days) AS deviation, MEDIAN(x) AS middle, MIN(days) AS least,
      MAX(x) AS most, QUANTILE(days, 0.9) AS high, SUM(x) / COUNT(*) AS ratio, COUNT(*) + COUNT(x) AS more,
      COUNT(*) - 2 * COUNT(x) AS fewer, ABS(COUNT(*) - 3) AS off, 100 * COUNT(x) / COUNT(*) AS percent
    FROM visits {group}"""


def opened(engine: str, rows: dict[str, list]):
    table = pa.table({name: pa.array(rows[name], kind) for name, kind in KINDS.items()})
    source = table if engine == "duckdb" else pytest.importorskip("polars").from_arrow(table)
    columns = {
        "ward": dp.column(values=("a", "b", "c")),
        "x": dp.column(bounds=(0, 60)),
        "days": dp.column(bounds=(0, 60)),
    }
    return dp.open(source, protect=dp.each("who", at_most=2), columns=columns, name="visits")


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_every_released_number_is_inside_its_interval(engine, rows):
    data = opened(engine, ROWS[rows])
    session = dp.Session(data, limit=dp.Limit.filter(epsilon=1e5, delta=1e-2))
    for key, group in (("", ""), ("ward,", "GROUP BY ward")):
        text = QUESTION.format(key=key, group=group)
        for spend in ({"epsilon": 0.01}, {"epsilon": 500.0}, {"epsilon": 0.1, "delta": 1e-6}, {"rho": 1e-3}):
            answer = session.sql(text, **spend)
            for view in views(answer):
                assert {name for name, column in view.columns.items() if not inside(column)} == set()


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_rounding_makes_every_number_of_things_whole_and_leaves_the_others(engine):
    session = dp.Session(opened(engine, ROWS["few"]), limit=dp.Limit.filter(epsilon=1e5, delta=1e-2))
    answer = session.sql(QUESTION.format(key="ward,", group="GROUP BY ward"), epsilon=0.5)
    seen = answer.round()
    things = {"n", "known", "people", "whole", "more", "fewer", "off"}
    for name in things:
        column = seen.columns[name]
        assert all(isinstance(x, int) for x in (*column.values, *column.lo, *column.hi)), name
        released = answer.columns[name]
        assert all(new <= old for new, old in zip(column.lo, released.lo, strict=True))
        assert all(new >= old for new, old in zip(column.hi, released.hi, strict=True))
    rest = {name for name in answer.columns if name not in things}
    assert all(seen.columns[name] == answer.columns[name] for name in rest)


def test_no_view_shows_a_zero_with_a_sign():
    answer = Answer.of(
        keys=[],
        groups=[()],
        columns={
            "total": Noisy((-3.5,), (-3.5,), (-0.001,), nonnegative=True),
            "n": Noisy((-0.2,), (-1.0,), (2.0,)),
        },
    )
    assert "-0 " not in f"{answer.nonnegative()} "
    assert str(answer.nonnegative()).splitlines()[1].split()[:3] == ["0", "0", "0"]
    assert math.copysign(1, answer.nonnegative().columns["total"].values[0]) == 1


@pytest.mark.parametrize(
    ("released", "shown"),
    [
        ((505.39712, 475.4401, 535.3549), ("505", "475", "536")),
        ((3.14159265, 3.1, 3.2), ("3.142", "3.100", "3.200")),
        ((0.000123456, 0.0001, 0.00015), ("0.000123", "0.000100", "0.000150")),
        ((12, 10, 14), ("12", "10", "14")),
        ((5.0, 5.0, 5.0), ("5", "5", "5")),
        ((2.0e20, 1.0e20, 3.0e20), ("2e+20", "1e+20", "3e+20")),
        ((1.23456789, None, None), ("1.23457", "–", "–")),
    ],
)
def test_a_number_has_the_digits_that_its_margin_leaves(released, shown):
    x, lo, hi = released
    answer = Answer.of(keys=[], groups=[()], columns={"x": Noisy((x,), (lo,), (hi,))})
    assert tuple(next(iter(answer._cells()))) == shown
