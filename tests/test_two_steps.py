# SPDX-License-Identifier: Apache-2.0
"""An error that is known only after a first step: both steps are paid once, and together they cost no more than was allowed."""

from __future__ import annotations

import re
from dataclasses import replace

import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import BadParameter, DiscreetError, LedgerError, RefusedQuestion
from discreet.tables.plan.spend import Spend

MEAN, TOTAL = "SELECT AVG(days) AS m FROM visits", "SELECT COUNT(*) AS n FROM visits"
ROWS = pa.table({"p": [n // 3 for n in range(900)], "days": [n % 50 for n in range(900)]})


def opened(at_most=3):
    return dp.open(
        ROWS, dp.each("p", at_most=at_most), name="visits", columns={"days": dp.column(bounds=(0, 50))}
    )


def session(data=None, epsilon=100.0, **more):
    return dp.Session(data or opened(), dp.Limit.filter(epsilon), **more)


def charged(one):
    return [entry for entry in one.ledger.entries() if entry.kind == "reserved"]


def spent(one):
    return float(one.ledger.spent["epsilon"])


def crashing(place, at):
    """A session whose engine fails when it is asked for the `at`-th time."""
    plain, left = opened(), [at]

    class Engine:
        name = plain.engine.name

        def __getattr__(self, name):
            return getattr(plain.engine, name)

        def sums(self, asked):
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            return plain.engine.sums(asked)

    return session(replace(plain, engine=Engine()), ledger=place)


@pytest.mark.parametrize("error", ["±3", "±4 %"])
@pytest.mark.parametrize("at", [1, 2])
def test_a_process_that_dies_in_either_step_pays_each_once(tmp_path, at, error):
    asked = MEAN if error == "±3" else TOTAL
    words = {"error": error, "pilot": Spend(epsilon=0.2), "key": "monday"}
    with pytest.raises(KeyboardInterrupt):
        crashing(tmp_path / "a.ledger", at).sql(asked, **words)
    again = session(ledger=tmp_path / "a.ledger")
    answer = again.sql(asked, **words)
    assert len(charged(again)) == 2
    assert [entry.held for entry in charged(again)] == [True, True]
    third = session(ledger=tmp_path / "a.ledger")
    assert third.sql(asked, **words).rows() == answer.rows()
    assert len(charged(third)) == 2


def test_without_a_key_every_question_is_new():
    one = session()
    for count in (2, 4):
        one.sql(MEAN, error="±3", pilot=Spend(epsilon=0.2))
        assert len(charged(one)) == count


def test_both_steps_cost_no_more_than_is_allowed_and_who_allows_more_goes_on():
    one = session()
    words = {"error": "±0.5", "pilot": Spend(epsilon=1.0), "key": "monday"}
    with pytest.raises(RefusedQuestion) as refused:
        one.sql(MEAN, epsilon=1.1, **words)
    assert (refused.value.code, refused.value.spent) == ("DP707", "what the first step cost (ε = 1)")
    assert spent(one) == 1.0
    with pytest.raises(RefusedQuestion) as again:
        one.sql(MEAN, epsilon=1.1, **words)
    assert again.value.spent == "nothing"
    assert str(again.value).splitlines()[:3] == str(refused.value).splitlines()[:3]
    needed = float(re.search(r"epsilon=([0-9.]+)", refused.value.fix)[1])
    less = needed - 1e-4
    with pytest.raises(RefusedQuestion):
        one.sql(MEAN, epsilon=less, **words)
    one.sql(MEAN, epsilon=needed, **words)
    assert len(charged(one)) == 2
    assert spent(one) <= needed


def test_a_cap_that_is_not_stated_is_said_in_the_preview_and_kept():
    one = session()
    said = str(one.preview(MEAN, error="±0.1"))
    assert "at most ε = 1" in said
    with pytest.raises(RefusedQuestion) as refused:
        one.sql(MEAN, error="±0.1", pilot=Spend(epsilon=0.2))
    assert refused.value.code == "DP707"
    assert "at most 4 is allowed" in str(refused.value)
    assert spent(one) == 0.2


@pytest.mark.parametrize("epsilon", [0.0002, 0.0005])
def test_a_first_step_that_leaves_nothing_is_not_begun(epsilon):
    one = session()
    with pytest.raises(RefusedQuestion) as refused:
        one.sql(MEAN, error="±3", epsilon=epsilon)
    assert (refused.value.code, refused.value.spent) == ("DP707", "nothing")
    assert spent(one) == 0
    needed = float(re.search(r"epsilon=([0-9.]+)", refused.value.fix)[1])
    one.preview(MEAN, error="±3", epsilon=needed)


def test_one_step_is_refused_before_anything_is_paid():
    one = session()
    for ask in (one.sql, one.preview):
        with pytest.raises(RefusedQuestion) as refused:
            ask(TOTAL, error="±5", epsilon=0.01)
        assert (refused.value.code, refused.value.spent) == ("DP707", "nothing")
    needed = float(re.search(r"epsilon=([0-9.]+)", refused.value.fix)[1])
    one.sql(TOTAL, error="±5", epsilon=needed)
    assert spent(one) <= needed


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "1", True])
def test_a_cap_is_a_number(epsilon):
    one = session()
    with pytest.raises(BadParameter):
        one.sql(MEAN, error="±3", epsilon=epsilon)
    assert spent(one) == 0


def test_what_was_paid_before_is_said_whatever_fails():
    one = session(opened("auto"), epsilon=0.0053)
    with pytest.raises(DiscreetError) as refused:
        one.sql(MEAN, error="±3")
    assert (refused.value.code, refused.value.spent) == ("DP601", "what choosing at_most cost")
    two = session(opened("auto"), epsilon=1.2)
    with pytest.raises(DiscreetError) as refused:
        two.sql(MEAN, error="±0.2", pilot=Spend(epsilon=1.0))
    assert refused.value.spent == "what the first step cost (ε = 1), and what choosing at_most cost"


def census(people=40_000):
    rows = pa.table({"p": list(range(people)), "days": [n % 50 for n in range(people)]})
    return dp.open(rows, dp.each("p", at_most=1), name="visits", columns={"days": dp.column(bounds=(0, 50))})


@pytest.mark.parametrize(("asked", "error"), [(MEAN, "±0.5"), (TOTAL, "±2 %")])
def test_first_steps_are_small_beside_the_last(asked, error):
    one = session(census())
    answer = one.sql(asked, error=error, key="monday")
    *first, last = [dp.privacy.from_json(entry.guarantee).epsilon(delta=0) for entry in charged(one)]
    assert first[0] == 0.0005
    assert sum(first) <= last
    # A third of what a first step of ε = 0.05 alone would cost.
    assert spent(one) <= 0.017
    (low, high) = answer.interval
    exact = 24.5 if asked == MEAN else 40_000
    assert abs(answer.value - exact) <= (0.5 if asked == MEAN else 800)
    assert (high - low) / 2 <= (0.5 if asked == MEAN else 0.02 * answer.value * 1.02)
    assert one.sql(asked, error=error, key="monday").rows() == answer.rows()
    assert len(charged(one)) == len(first) + 1


def test_first_steps_that_find_nobody_stop_and_say_what_they_cost():
    one = session(census(people=30))
    with pytest.raises(RefusedQuestion) as refused:
        one.sql(MEAN, error="±0.5")
    assert refused.value.code == "DP706"
    assert spent(one) <= 0.05
    assert f"(ε = {spent(one):g})" in refused.value.spent


@pytest.mark.parametrize("key", ["discreet: at_most", "discreet: first step 1"])
def test_nobody_takes_a_key_of_the_session(key):
    """Under such a key an answer would stand in the place of everybody's at_most."""
    one = session(opened("auto"))
    for work in (
        lambda: one.sql(TOTAL, epsilon=1, key=key),
        lambda: one.release_batch({key: (TOTAL, {"epsilon": 1})}),
        lambda: one.charge(dp.Laplace(epsilon=1, sensitivity=1).guarantee, question="q", key=key),
        lambda: one.release(dp.Laplace(epsilon=1, sensitivity=1), 3, key=key),
    ):
        with pytest.raises(BadParameter) as refused:
            work()
        assert refused.value.code == "DP102"
    assert spent(one) == 0


def test_a_key_of_another_question_is_refused_before_the_first_step():
    one = session()
    one.sql(TOTAL, epsilon=1, key="monday")
    with pytest.raises(LedgerError) as refused:
        one.sql(MEAN, error="±3", key="monday")
    assert refused.value.code == "DP604"
    assert len(charged(one)) == 1


@pytest.mark.parametrize(("asked", "error"), [(MEAN, "±3"), (TOTAL, "±4 %")])
def test_a_first_step_that_is_precise_enough_is_the_answer(asked, error):
    one = session(census())
    words = {"error": error, "pilot": Spend(epsilon=1.0), "key": "monday"}
    answer = one.sql(asked, **words)
    assert answer.header == ["m", "m_lo", "m_hi"] if asked == MEAN else ["n", "n_lo", "n_hi"]
    assert answer.value == pytest.approx(24.5 if asked == MEAN else 40_000, rel=1e-2)
    assert (len(charged(one)), spent(one)) == (1, 1.0)
    again = one.sql(asked, **words)
    assert again.rows() == answer.rows()
    assert len(charged(one)) == 1
    with pytest.raises(LedgerError):
        one.sql(TOTAL if asked == MEAN else MEAN, error="±7 %" if asked == MEAN else "±7", key="monday")
    assert spent(one) == 1.0


def test_the_answer_of_a_first_step_is_arranged_as_the_question_says():
    one = session(census())
    text = (
        "SELECT days >= 25 AS late, AVG(days) + 1 AS m FROM visits WHERE days IS NOT NULL "
        "GROUP BY days >= 25 ORDER BY m DESC LIMIT 1"
    )
    answer = one.sql(text, error="±5", pilot=Spend(epsilon=1.0))
    assert len(charged(one)) == 1
    assert answer.rows()[0][:2] == (True, pytest.approx(38, abs=1))


def test_counts_of_the_first_step_are_averaged_with_those_of_the_last():
    one = session(census(people=3000), epsilon=10)
    answer = one.sql(TOTAL, error="±1 %", pilot=Spend(epsilon=0.1), key="monday")
    first, last = charged(one)
    assert any("weighted mean" in note for note in answer.notes)
    cost = [dp.privacy.from_json(entry.guarantee).epsilon(delta=0) for entry in (first, last)]
    assert answer.guarantee.epsilon(delta=0) == pytest.approx(sum(cost))
    # One release alone, as precise, would cost more than the last of two.
    alone = one.preview(TOTAL, error=str((answer.interval[1] - answer.interval[0]) / 2)).cost
    assert cost[1] < 0.95 * alone.epsilon(delta=0)
    assert one.sql(TOTAL, error="±1 %", pilot=Spend(epsilon=0.1), key="monday").rows() == answer.rows()
