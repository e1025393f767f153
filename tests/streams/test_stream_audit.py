# SPDX-License-Identifier: Apache-2.0
"""Whole streams against what they claim: attacked on neighbouring data, and checked for the coverage of their intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from discreet.audit import audit, batched
from discreet.streams import Participation
from discreet.tables.answer.noisy import CONFIDENCE
from discreet.tables.ask.sql import parse
from discreet.tables.plan.spend import Spend
from discreet.tables.streams.calendar import Calendar
from discreet.tables.streams.plan import plan_stream
from discreet.tables.streams.published import PublishedRows
from discreet.tables.streams.row import StreamRow
from tests.chance import may_fail
from tests.statistical.constants import ALPHA
from tests.streams.world import START, data

PERIODS = 8
TRIALS = 40_000


def planned(bound: Participation, spend: Spend, measure="totals"):
    opened = data()
    question = parse("SELECT COUNT(*) AS n FROM visits", opened).question
    calendar = Calendar("week", START, PERIODS)
    return plan_stream(question, opened, spend, calendar, participation=bound, measure=measure)


def encoded(plan, sums: list[int]) -> np.ndarray:
    reach = plan.layout.reach[0]
    return np.array([plan.factor.encode([reach * x for x in sums[: t + 1]]) for t in range(PERIODS)])


def rows_of(plan, *, draws: int = 1):
    """All rows of many streams at once; a fault shows each row `draws` times."""

    def draw(sums, count):
        noise = plan.distributions[0].draw((count, PERIODS, draws))
        return (encoded(plan, sums)[None, :, None] + noise).reshape(count, -1).astype(float)

    return batched(draw)


CASES = [
    (Participation(1), Spend(rho=1), [5] * PERIODS, [6, *[5] * (PERIODS - 1)]),
    (Participation(periods=3), Spend(rho=0.5), [5] * PERIODS, [6, 6, 6, *[5] * (PERIODS - 3)]),
    (Participation(1), Spend(epsilon=1.5), [5] * PERIODS, [*[5] * (PERIODS - 1), 6]),
]


@pytest.mark.parametrize(("bound", "spend", "x", "neighbour"), CASES, ids=lambda value: repr(value)[:40])
@may_fail(ALPHA, "the confidence of an audit")
def test_a_whole_stream_keeps_its_claim(bound, spend, x, neighbour):
    plan = planned(bound, spend)
    moved = encoded(plan, neighbour) - encoded(plan, x)
    if plan.noise == "gaussian":
        # The pair is the worst one: it moves the rows by the whole sensitivity.
        assert math.isclose(
            float(np.sum(moved.astype(float) ** 2)), plan.participation.squared_sensitivity(plan.factor)
        )
    report = audit(rows_of(plan), x, neighbour, claim=plan.guarantee, trials=TRIALS, confidence=1 - ALPHA)
    assert not report.refutes()


@pytest.mark.parametrize(("bound", "spend", "x", "neighbour"), CASES, ids=lambda value: repr(value)[:40])
def test_a_stream_that_draws_each_row_twice_is_refuted(bound, spend, x, neighbour):
    plan = planned(bound, spend)
    report = audit(rows_of(plan, draws=2), x, neighbour, claim=plan.guarantee, trials=TRIALS)
    assert report.refutes()


def covered(plan, ranges, count: int, *, together: bool) -> int:
    """How often the intervals of these ranges contain the exact sums, all of them."""
    sums = [5, 0, 100, 3, 3, 3, 50, 1]
    base, hits = encoded(plan, sums), 0
    noise = plan.distributions[0].draw((count, PERIODS))
    for at in range(count):
        rows = tuple(StreamRow(t, (), ((int(base[t]) + int(noise[at, t]),),), "") for t in range(PERIODS))
        answer = PublishedRows(plan, rows).over(ranges, together=together)
        column = answer.columns["n"]
        true = [sum(sums[first : last + 1]) for first, last in ranges]
        hits += all(low <= value <= high for low, value, high in zip(column.lo, true, column.hi, strict=True))
    return hits


@pytest.mark.parametrize("spend", [Spend(epsilon=1.0), Spend(rho=0.05)], ids=["laplace", "gaussian"])
@pytest.mark.parametrize(
    ("ranges", "together"),
    [
        ([(0, 5)], False),
        ([(2, 4)], False),
        ([(t, t) for t in range(PERIODS)], True),
        ([(0, t) for t in range(PERIODS)], True),
    ],
    ids=["total", "window", "all periods", "all totals"],
)
@may_fail(2 * ALPHA, "a binomial number of intervals that hold, from below, and of too many")
def test_intervals_hold_as_often_as_they_say(spend, ranges, together):
    count = 400
    hits = covered(planned(Participation(1), spend), ranges, count, together=together)
    assert hits >= binom.ppf(ALPHA, count, CONFIDENCE)
    if not together:
        # They are not far too wide either.
        assert hits < binom.ppf(1 - ALPHA, count, CONFIDENCE) + 1
