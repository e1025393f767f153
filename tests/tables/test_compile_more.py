# SPDX-License-Identifier: Apache-2.0
"""Rows that count, chosen privately; and costs that follow from a stated error."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.errors import BadParameter, RefusedQuestion
from discreet.tables.answer.answer import Answer, Noisy
from discreet.tables.plan.accuracy import least_spend, read_error
from discreet.tables.plan.cap import EDGES, CapMechanism
from discreet.tables.plan.compile import compile_question
from discreet.tables.plan.spend import Spend
from discreet.tables.plan.steps import TwoSteps
from tests.tables.small import dataset, number, question

X = number(0, 10)


@pytest.mark.parametrize(("relation", "moved"), [("add-remove", 1), ("replace", 2)])
def test_a_cap_costs_its_epsilon(relation, moved):
    mechanism = CapMechanism(dataset(at_most="auto", relation=relation), epsilon=0.1)
    assert mechanism.guarantee.sensitivity == moved
    assert mechanism.guarantee.epsilon(delta=0) == 0.1
    assert mechanism.unit.relation == relation


def test_sizes_of_neighbours_differ_by_one():
    from discreet.tables.algebra.sums import UnitSizes
    from tests.tables.small import ROWS, engine

    asked = UnitSizes(ROWS, (), EDGES)
    base = np.array(engine([(("a", 1),) * 3] * 4).sizes(asked))
    for many in (0, 1, 2, 7, 4097):
        other = np.array(engine([(("a", 1),) * 3] * 4 + [(("a", 1),) * many]).sizes(asked))
        assert np.abs(other - base).sum() == (many > 0)


def test_a_cap_is_where_most_people_end():
    data = dataset([(("a", 1),) * 5] * 300, at_most="auto")
    mechanism = CapMechanism(data, epsilon=50, noise=5)  # so little noise that no luck is needed
    assert mechanism(data).value == 6
    assert mechanism._best([0] * (len(EDGES) + 1)) == 1
    assert 1 in EDGES
    assert max(EDGES) == 65536


def test_an_empty_bin_hardly_ever_survives():
    mechanism = CapMechanism(dataset(at_most="auto"), epsilon=0.5)
    q = np.exp(-0.5)
    t = mechanism.floor
    assert (len(EDGES) + 1) * q**t / (1 + q) <= 0.001 < (len(EDGES) + 1) * q ** (t - 1) / (1 + q)


def test_bad_caps_are_refused():
    for epsilon in (0, -1, float("nan"), True, "1"):
        with pytest.raises(BadParameter):
            CapMechanism(dataset(at_most="auto"), epsilon=epsilon)


@pytest.mark.parametrize(
    ("error", "epsilon"), [(1, 1.766), (2, 1.137), (5, 0.538), (10, 0.284), (50, 0.0593)]
)
def test_a_count_costs_what_its_error_needs(error, epsilon):
    found = least_spend(question(("count",)), dataset(rows_are_units=True), f"±{error}")
    assert found.epsilon == pytest.approx(epsilon, rel=3e-3)
    data = dataset(rows_are_units=True)
    assert compile_question(question(("count",)), data, found).error()["count0"] <= error
    less = Spend(epsilon=found.epsilon * 0.999)
    assert compile_question(question(("count",)), data, less).error()["count0"] > error


def test_a_mean_is_asked_in_two_steps():
    data = dataset([(("a", 3),), (("b", 4),)] * 3000)
    asked = question(("mean", X), ("count",), keys=("a", "b"))
    for delta in (None, 1e-6):
        plan = least_spend(asked, data, "±1", delta=delta, pilot=Spend(epsilon=0.5))
        assert isinstance(plan, TwoSteps)
        first = compile_question(plan.question, data, plan.pilot).draw(data)
        spend = plan.then(first).spend
        assert spend.delta == delta
        wide = least_spend(asked, data, "±2", delta=delta, pilot=Spend(epsilon=0.5)).then(first).spend
        assert wide.epsilon < spend.epsilon
    asked = question(("mean", X), keys=("a", "b"))
    plan = least_spend(asked, data, 0.2, pilot=Spend(epsilon=0.05))
    first = compile_question(plan.question, data, plan.pilot).draw(data)
    answer = compile_question(asked, data, plan.then(first).spend).draw(data)
    assert [row["mean0"] for row in answer] == pytest.approx([3, 4], abs=2)


def test_a_share_is_asked_in_two_steps():
    data = dataset([(("a", 3),)] * 4000)
    asked = question(("count",), ("sum", X))
    plan = least_spend(asked, data, "±5 %", pilot=Spend(epsilon=0.1))
    first = compile_question(plan.question, data, plan.pilot).draw(data)
    last = plan.then(first)
    answer = last.finish(compile_question(asked, data, last.spend).draw(data))
    for column in answer.columns.values():
        assert (column.hi[0] - column.lo[0]) / 2 <= 0.05 * 4200


def test_too_few_rows_are_refused_after_the_first_step():
    plan = least_spend(question(("mean", X)), dataset([(("a", 3),)]), "±0.1", pilot=Spend(epsilon=0.05))
    mean, rows = (aggregate.name for aggregate in plan.question.aggregates)
    # Of one row, with the noise of the first step.
    few = {mean: Noisy((7.0,), (0.0,), (10.0,)), rows: Noisy((7.0,), (0.0,), (90.0,))}
    with pytest.raises(RefusedQuestion) as refused:
        plan.then(Answer.of(keys=[], groups=[()], columns=few))
    assert refused.value.spent == "nothing"  # a session says what was paid


@pytest.mark.parametrize("asked", [("quantile", X, {"fraction": (1, 2)}), ("max", X), ("variance", X)])
def test_what_cannot_be_guaranteed_is_refused(asked):
    with pytest.raises(RefusedQuestion):
        least_spend(question(asked), dataset(), "±1")
    with pytest.raises(RefusedQuestion):
        least_spend(question(("mean", X)), dataset(), "±1 %")


@pytest.mark.parametrize(
    "error", ["±0", "-5", "five", "±1 percent", "", None, True, 0, -1, float("nan"), float("inf")]
)
def test_an_error_is_read_strictly(error):
    with pytest.raises(BadParameter):
        read_error(error)


def test_an_error_is_read():
    written = ["±50", "+-50", "+/- 50", "50", 50, "5e1", "±2 %", "2%"]
    assert [read_error(error) for error in written] == [(50.0, False)] * 6 + [(0.02, True)] * 2


def test_an_error_that_is_too_small_is_refused():
    with pytest.raises(BadParameter):
        least_spend(question(("sum", number(0, 1000))), dataset(), "±1e-9")
