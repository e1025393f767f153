# SPDX-License-Identifier: Apache-2.0
"""A fixed response time: whatever becomes of a question, it returns at the same moment after it was asked.

The clock is a fake one that the engine moves on, so nothing here waits for time to pass.
"""

from __future__ import annotations

import threading

import pytest

import discreet as dp
from discreet import errors, mechanisms, testing
from discreet.session.response import ResponseTime, SystemClock
from tests.chance import no_chance
from tests.test_session import COUNT, data, session, spent, watched

pytestmark = no_chance("answers are drawn in a thread, and only their time, keys and costs are looked at")

TIME = 2.0


class FakeClock:
    """Time moves when it is told to; who sleeps wakes at once, and it is then."""

    def __init__(self):
        self.time, self.woken, self.events, self.hangs = 100.0, [], [], False

    def now(self):
        return self.time

    def wait(self, done, until):
        self.events.append(done)
        if self.hangs:
            return False
        done.wait()
        return self.time <= until

    def sleep(self, until):
        self.woken.append(until)
        self.time = until


def timed(took=0.5, epsilon=1.0, then=None, **more):
    """A session whose engine takes so long; its clock and its engine."""
    clock = FakeClock()

    def work():
        clock.time += took
        if then is not None:
            then()

    described, engine = watched(work)
    one = session(epsilon, data=described, **more)
    one._response = ResponseTime("2s", clock)
    return one, clock, engine


def fail():
    raise RuntimeError("row 17: Ann")


def outcome(work):
    try:
        return type(work()).__name__
    except errors.DiscreetError as refused:
        return refused.code


QUESTIONS = {
    "an answer": (lambda one: one.sql(COUNT, epsilon=0.1), "Answer"),
    "an answer by its error": (lambda one: one.sql(COUNT, error="±500"), "Answer"),
    "a cost without an answer": (lambda one: one.sql(f"EXPLAIN PRIVACY {COUNT}", epsilon=0.1), "DP107"),
    "several answers": (lambda one: one.release_batch({"a": (COUNT, {"epsilon": 0.1})}), "dict"),
    "a mechanism": (
        lambda one: one.release(mechanisms.Laplace(epsilon=0.1, sensitivity=1, unit="patient_id"), 7),
        "Release",
    ),
    "too much": (lambda one: one.sql(COUNT, epsilon=50), "DP601"),
    "no such column": (lambda one: one.sql("SELECT SUM(nothing) FROM visits", epsilon=0.1), "DP701"),
    "no amount": (lambda one: one.sql(COUNT), "DP107"),
}


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("took", [0.0, 0.5, TIME])
def test_every_outcome_comes_at_the_same_time(name, took):
    ask, expected = QUESTIONS[name]
    one, clock, _ = timed(took if name != "an answer by its error" else took / 2)
    assert outcome(lambda: ask(one)) == expected
    assert clock.woken == [100.0 + TIME]


def test_a_failure_of_the_engine_comes_at_the_same_time():
    one, clock, _ = timed(then=fail)
    assert outcome(lambda: one.sql(COUNT, epsilon=0.1)) == "DP801"
    assert clock.woken == [102.0]


def test_an_answer_that_is_kept_comes_at_the_same_time():
    one, clock, engine = timed()
    first = one.sql(COUNT, epsilon=0.1, key="once")
    second = one.sql(COUNT, epsilon=0.1, key="once")
    assert first.to_json() == second.to_json()
    assert engine.asked == 1
    assert clock.woken == [102.0, 104.0]


def test_what_is_late_ends_the_session_and_tells_nothing_more():
    one, clock, engine = timed(took=2.001)
    with pytest.raises(errors.EngineFailed) as late:
        one.sql(COUNT, epsilon=0.1)
    assert late.value.code == "DP804"
    assert clock.woken == [102.0]
    assert 0 < spent(one) <= 0.1
    before, asked = spent(one), engine.asked
    for number, (ask, _) in enumerate(QUESTIONS.values(), 1):
        assert outcome(lambda ask=ask: ask(one)) == "DP804"
        assert clock.woken[-1] == 102.0 + TIME * number
    assert (spent(one), engine.asked) == (before, asked)


def test_how_late_it_was_cannot_be_told():
    texts = set()
    for took in (2.001, 50.0, 1e6):
        one, clock, _ = timed(took)
        with pytest.raises(errors.EngineFailed) as late:
            one.sql(COUNT, epsilon=0.1, key="mine")
        texts.add(str(late.value))
        assert clock.woken == [102.0]
    assert len(texts) == 1


@pytest.mark.parametrize("then", [None, fail])
def test_a_late_failure_looks_like_a_late_answer(then):
    one, _, _ = timed(took=3, then=then)
    with pytest.raises(errors.EngineFailed) as late:
        one.sql(COUNT, epsilon=0.1, key="mine")
    assert late.value.code == "DP804"
    assert late.value.__context__ is None


def test_the_fix_shows_the_late_answer_for_nothing_more():
    gate = threading.Event()
    one, clock, engine = timed(then=gate.wait)
    clock.hangs = True
    with pytest.raises(errors.EngineFailed) as late:
        one.sql(COUNT, epsilon=0.1)
    gate.set()
    clock.events[0].wait()
    paid = spent(one)
    code, words = late.value.fix.split("   and ask it the same again with ")
    names = {"dp": dp, "session": one}
    exec(code, names)
    names["session"]._response = ResponseTime(20, FakeClock())
    answer = eval(f"session.sql(COUNT, epsilon=0.1, {words})", {**names, "COUNT": COUNT})
    assert answer.groups == (("a",), ("b",), ("c",))
    assert engine.asked == 1
    assert spent(one) == paid


def test_a_question_that_was_asked_before_the_session_ended_is_late_too():
    one, clock, _ = timed()
    inner = clock.wait

    def meanwhile(done, until):
        one._response._late = True
        return inner(done, until)

    clock.wait = meanwhile
    assert outcome(lambda: one.sql(COUNT, epsilon=0.1)) == "DP804"


def test_nobody_is_called_back_before_it_is_time():
    one, clock, _ = timed()
    called = []
    one.release_batch({"a": (COUNT, {"epsilon": 0.1})}, after_each=lambda: called.append(clock.time))
    assert called == []


def test_without_a_response_time_nothing_changes():
    plain = session()
    threads = threading.active_count()
    plain.sql(COUNT, epsilon=0.1)
    plain.release_batch({"a": (COUNT, {"epsilon": 0.1})}, after_each=lambda: threads)
    assert threading.active_count() == threads
    assert list(plain.ledger.entries())[1].key is None
    assert "after it was asked" not in plain.describe()


def test_a_session_says_its_response_time():
    assert "Every question returns 2 s after it was asked" in session(response_time="2s").describe()


def test_a_seeded_source_is_refused_as_ever():
    one, _, _ = timed()
    with testing.seeded(1):
        assert outcome(lambda: one.sql(COUNT, epsilon=0.1)) == "DP605"


def test_who_interrupts_is_not_kept_waiting():
    one, clock, _ = timed()

    def interrupt(done, _until):
        done.wait()
        raise KeyboardInterrupt

    clock.wait = interrupt
    with pytest.raises(KeyboardInterrupt):
        one.sql(COUNT, epsilon=0.1)
    assert clock.woken == []


@pytest.mark.parametrize(
    ("stated", "seconds"), [(2, 2.0), (0.5, 0.5), ("2s", 2.0), ("500 ms", 0.5), ("1min", 60.0)]
)
def test_times_can_be_said_in_words(stated, seconds):
    assert ResponseTime(stated).seconds == seconds


@pytest.mark.parametrize(
    "stated",
    [
        0,
        -1,
        float("nan"),
        float("inf"),
        1e9,
        True,
        "2",
        "2 hours",
        "-2s",
        "0s",
        "",
        "1e3s",
        "nans",
        b"2s",
        [2],
        {},
    ],
)
def test_what_is_no_time_is_refused_before_a_ledger_is_made(stated, tmp_path):
    with pytest.raises(errors.BadParameter) as refused:
        session(response_time=stated, ledger=tmp_path / "a.ledger")
    assert refused.value.code == "DP102"
    assert not (tmp_path / "a.ledger").exists()


def test_the_clock_of_this_machine_does_not_wait_for_what_is_over():
    clock, event = SystemClock(), threading.Event()
    assert not clock.wait(event, clock.now() - 1)
    event.set()
    assert clock.wait(event, clock.now() - 1)
    before = clock.now()
    clock.sleep(before - 1)
    assert clock.now() >= before


def test_a_real_clock_keeps_an_answer_back():
    """A lower bound on time only: no machine is too slow for it."""
    one = dp.Session(data(), limit=dp.Limit.filter(epsilon=1), response_time=60)
    clock = SystemClock()
    one._response = ResponseTime(60, clock)
    slept = []
    clock.sleep = slept.append
    asked = clock.now()
    one.sql(COUNT, epsilon=0.1)
    assert len(slept) == 1
    assert slept[0] >= asked + 60
