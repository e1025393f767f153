# SPDX-License-Identifier: Apache-2.0
"""A session charges before it draws, and nothing comes out that was not paid for."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet import errors, mechanisms, privacy, testing
from discreet.ledger.released import release_lines
from discreet.mechanisms.mechanism import Refusal
from discreet.session import limit_of
from discreet.tables.plan.cap import CapMechanism
from tests.refusals import assert_refused

WARDS = ("a", "b", "c")
COUNT = "SELECT ward, COUNT(*) FROM visits GROUP BY ward"


def visits(people=200, rows_each=3):
    rows = [(p, WARDS[p % 3], (7 * p + r) % 61) for p in range(people) for r in range(rows_each)]
    person, ward, days = zip(*rows, strict=True)
    return pa.table({"patient_id": person, "ward": ward, "days": days})


def data(protect=None, **more):
    return dp.open(
        visits(),
        name="visits",
        protect=protect or dp.each("patient_id", at_most=3),
        columns={"ward": dp.column(values=WARDS), "days": dp.column(bounds=(0, 60))},
        **more,
    )


def session(epsilon=1.0, delta=None, **more):
    return dp.Session(more.pop("data", None) or data(), limit=dp.Limit.filter(epsilon, delta), **more)


class Watched:
    """An engine that tells what it was asked, and can be made to fail."""

    def __init__(self, inner, then=None):
        self.inner, self.asked, self.then = inner, 0, then
        self.name = inner.name

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def sums(self, asked):
        self.asked += 1
        if self.then is not None:
            self.then()
        return self.inner.sums(asked)


def watched(then=None):
    plain = data()
    engine = Watched(plain.engine, then)
    return replace(plain, engine=engine), engine


def spent(one):
    return one.ledger.spent["epsilon"]


# --- charge first -------------------------------------------------------------------------------------


def test_an_answer_is_charged_kept_and_near_the_truth():
    one = session()
    answer = one.sql(COUNT, epsilon=1)
    assert answer.groups == (("a",), ("b",), ("c",))
    for value, exact in zip(answer.columns["count"].values, (201, 201, 198), strict=True):
        assert abs(value - exact) < 3 * 40  # P(|Laplace noise| > 40 scales) < 1e-17
    assert answer.guarantee.epsilon(delta=0) <= 1
    assert [entry.kind for entry in one.ledger.entries()] == ["open", "reserved", "committed"]
    assert answer.receipt.number == 1
    assert answer.private


def test_what_fails_after_the_charge_stays_charged_and_says_nothing_of_the_data():
    def fail():
        raise RuntimeError("Could not convert string 'Ana Smith'")

    described, _ = watched(fail)
    one = session(data=described)
    error = assert_refused("DP801", lambda: one.sql(COUNT, epsilon=0.25))
    assert "Ana" not in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None
    assert 0 < spent(one) <= 0.25


def test_the_charge_is_written_before_the_engine_is_asked():
    seen = []
    described, _ = watched(lambda: seen.append(len(one.ledger)))
    one = session(data=described)
    one.sql(COUNT, epsilon=0.25)
    assert set(seen) == {2}


def test_ten_times_a_tenth_fits_and_the_eleventh_draws_nothing():
    described, engine = watched()
    one = session(data=described)
    for _ in range(10):
        one.sql(COUNT, epsilon=0.1)
    asked = engine.asked
    error = assert_refused("DP601", lambda: one.sql(COUNT, epsilon=0.1))
    assert error.spent == "nothing"
    assert engine.asked == asked
    assert spent(one) <= 1


def test_a_repeatable_source_is_refused():
    one = session()
    with testing.seeded(1):
        assert assert_refused("DP605", lambda: one.sql(COUNT, epsilon=0.1))
    assert spent(one) == 0


def test_a_session_is_no_value_to_copy():
    one = session()
    for work in (lambda: copy.copy(one), lambda: copy.deepcopy(one), lambda: pickle.dumps(one)):
        assert assert_refused("DP607", work)


# --- keys -----------------------------------------------------------------------------------------------


def test_a_retry_gives_the_same_answer_and_pays_nothing(tmp_path):
    place = tmp_path / "visits.ledger"
    first = session(ledger=place).sql(COUNT, epsilon=0.5, key="monday")
    again = session(ledger=place)
    before = spent(again)
    assert again.sql(COUNT, epsilon=0.5, key="monday").rows() == first.rows()
    assert spent(again) == before
    assert again.sql(COUNT, epsilon=0.5).rows() != first.rows()


def test_a_key_stands_for_one_question_at_one_price():
    one = session()
    one.sql(COUNT, epsilon=0.25, key="monday")
    assert assert_refused("DP604", lambda: one.sql("SELECT COUNT(*) FROM visits", epsilon=0.25, key="monday"))
    assert assert_refused("DP604", lambda: one.sql(COUNT, epsilon=0.3, key="monday"))


# --- asking by error --------------------------------------------------------------------------------------


def test_the_least_loss_that_keeps_an_error_is_found():
    one = session(epsilon=10.0)
    answer = one.sql("SELECT COUNT(*) FROM visits", error="±20")
    low, high = answer.interval
    assert high - low <= 40.01
    assert one.preview("SELECT COUNT(*) FROM visits", error="±20").cost == answer.guarantee


def test_an_error_of_a_mean_takes_two_steps_that_are_both_paid():
    one = session(epsilon=50.0)
    asked = "SELECT AVG(CLAMP(days, 0, 60)) AS m FROM visits"
    assert "two steps" in str(one.preview(asked, error="±0.5", pilot=dp_spend(1.0)))
    answer = one.sql(asked, error="±0.5", pilot=dp_spend(1.0), key="m")
    assert answer.header == ["m", "m_lo", "m_hi"]
    assert sum(entry.kind == "reserved" for entry in one.ledger.entries()) == 2
    before = spent(one)
    assert one.sql(asked, error="±0.5", pilot=dp_spend(1.0), key="m").value == answer.value
    assert spent(one) == before


def dp_spend(epsilon):
    from discreet.tables.plan.spend import Spend

    return Spend(epsilon=epsilon)


# --- at_most="auto" ------------------------------------------------------------------------------------


def test_a_cap_is_chosen_once_and_paid_once():
    one = session(epsilon=30.0, data=data(protect=dp.each("patient_id", at_most="auto")))
    assert "not chosen yet" in str(one.preview(COUNT, epsilon=10))
    assert len(one.ledger) == 1
    one.sql(COUNT, epsilon=10)
    one.sql(COUNT, epsilon=10)
    charged = [entry.mechanism for entry in one.ledger.entries() if entry.kind == "reserved"]
    assert charged.count(CapMechanism.__name__) == 1
    assert charged[0] == CapMechanism.__name__
    assert "not chosen yet" not in str(one.preview(COUNT, epsilon=10))


def test_a_refusal_says_what_had_been_paid_before_it():
    auto = session(epsilon=1.05, data=data(protect=dp.each("patient_id", at_most="auto")))
    assert assert_refused("DP601", lambda: auto.sql(COUNT, epsilon=1)).spent == "what choosing at_most cost"
    assert assert_refused("DP601", lambda: auto.sql(COUNT, epsilon=1)).spent == "nothing"
    two_steps = session(epsilon=1.01)
    asked = "SELECT AVG(CLAMP(days, 0, 60)) AS m FROM visits"
    error = assert_refused("DP601", lambda: two_steps.sql(asked, error="±1", pilot=dp_spend(1.0)))
    assert error.spent.startswith("what the first step cost (ε = ")
    assert "Spent  what the first step cost (ε = " in str(error)


def test_a_cap_is_not_shared_where_shares_are_reserved(tmp_path):
    described = data(protect=dp.each("patient_id", at_most="auto"))
    limit = dp.Limit.filter(40, 1e-6, analysts={"ana": 0.5, "ben": 0.5}, reserved=True)
    for analyst in ("ana", "ben"):
        dp.Session(described, limit, tmp_path / "shared.ledger", analyst=analyst).sql(COUNT, epsilon=1)
    entries = dp.Ledger(tmp_path / "shared.ledger").entries()
    charged = [entry.analyst for entry in entries if entry.mechanism == CapMechanism.__name__]
    assert charged == ["ana", "ana", "ben", "ben"]  # reserved and committed, for each


# --- many at once -----------------------------------------------------------------------------------------

TOTAL = "SELECT COUNT(*) FROM visits"
BOTH = {"wards": (COUNT, {"epsilon": 0.3}), "total": (TOTAL, {"epsilon": 0.2})}


def test_many_are_charged_before_the_first_is_drawn_and_kept_before_any_is_shown(tmp_path):
    seen = []
    described, _ = watched(lambda: seen.append([entry.kind for entry in one.ledger.entries()]))
    one = session(data=described, ledger=tmp_path / "visits.ledger")
    answers = one.release_batch(BOTH)
    assert [kinds == ["open", "reserved", "reserved"] for kinds in seen] == [True] * len(seen) != []
    assert list(answers) == list(BOTH)
    assert [answer.receipt.number for answer in answers.values()] == [1, 2]
    assert all(answer.receipt.cost is not None for answer in answers.values())
    assert spent(one) <= 0.5
    again = session(ledger=tmp_path / "visits.ledger").release_batch(BOTH)
    assert {key: answer.rows() for key, answer in again.items()} == {
        key: answer.rows() for key, answer in answers.items()
    }
    assert [answer.receipt.cost for answer in again.values()] == [None, None]
    assert len(one.ledger) == 5


def test_many_that_do_not_fit_together_draw_nothing():
    described, engine = watched()
    one = session(data=described)
    error = assert_refused("DP601", lambda: one.release_batch({**BOTH, "again": (COUNT, {"epsilon": 0.6})}))
    assert error.spent == "nothing"
    assert (spent(one), engine.asked, len(one.ledger)) == (0, 0, 1)


@pytest.mark.parametrize(
    ("last", "code"),
    [
        (("SELECT patient_id FROM visits", {"epsilon": 0.1}), "DP706"),
        (("SELECT AVG(days) FROM visits", {"error": "±1"}), "DP107"),
        ((f"EXPLAIN PRIVACY {COUNT}", {"epsilon": 0.1}), "DP107"),
        ((COUNT, {"rho": 0.1, "error": "±1"}), "DP107"),
        ((COUNT, {"epsilon": 0.1, "error": "±1"}), "DP707"),
        ((COUNT, {"cost": 0.1}), "DP105"),
        ((COUNT, {}), "DP107"),
        ((7, {"epsilon": 0.1}), "DP104"),
        (COUNT, "DP104"),
    ],
)
def test_many_of_which_the_last_is_refused_cost_nothing(last, code):
    described, engine = watched()
    one = session(data=described)
    refused = assert_refused(code, lambda: one.release_batch({**BOTH, "last": last}))
    assert refused.spent == "nothing"
    assert (engine.asked, len(one.ledger)) == (0, 1)


@pytest.mark.parametrize("nothing", [{}, [], None, "wards"])
def test_nothing_is_not_released_together(nothing):
    assert assert_refused("DP104", lambda: session().release_batch(nothing))


def test_after_a_crash_the_same_keys_draw_for_the_same_charge(tmp_path):
    """Stopped after the first of two draws: both are charged, neither was seen, and a retry answers both for nothing."""
    drawn = []

    def stop():
        drawn.append(1)
        if len(drawn) == 2:
            raise KeyboardInterrupt

    described, _ = watched(stop)
    one = session(data=described, ledger=tmp_path / "visits.ledger")
    with pytest.raises(KeyboardInterrupt):
        one.release_batch(BOTH)
    paid = spent(one)
    assert [entry.kind for entry in one.ledger.entries()] == ["open", "reserved", "reserved"]
    answers = session(ledger=tmp_path / "visits.ledger").release_batch(BOTH)
    assert [len(answer) for answer in answers.values()] == [3, 1]
    assert [answer.receipt.cost for answer in answers.values()] == [None, None]
    assert spent(one) == paid > 0
    assert one.ledger.verify().findings == ()


def test_an_error_while_many_are_drawn_is_their_outcome_and_none_is_drawn_again_for_it():
    """An error may depend on noise: to see it as often as one likes, for one payment, would tell more than was paid for."""
    failing = [True]

    def fail():
        if failing:
            raise RuntimeError("Could not convert string 'Ana Smith'")

    described, engine = watched(fail)
    one = session(data=described)
    error = assert_refused("DP801", lambda: one.release_batch(BOTH))
    assert "what all of these answers cost" in error.spent
    assert "Ana" not in str(error)
    asked, paid = engine.asked, spent(one)
    failing.clear()
    assert_refused("DP801", lambda: one.release_batch(BOTH))
    assert (engine.asked, spent(one)) == (asked, paid)
    fresh = {f"{key} again": what for key, what in BOTH.items()}
    assert len(one.release_batch(fresh)) == len(BOTH)
    assert spent(one) > paid
    assert one.ledger.verify().findings == ()


class Panic(BaseException):
    """As some engines have it: an error that is no Exception."""


def failing(error):
    """A description whose engine fails until the list is emptied, and the list."""
    why = [error]

    def fail():
        if why:
            raise why[0]

    return watched(fail)[0], why


def test_an_error_that_is_no_exception_is_an_outcome_too():
    described, why = failing(Panic("Could not convert string 'Ana Smith'"))
    one = session(data=described)
    error = assert_refused("DP801", lambda: one.release_batch(BOTH))
    assert "Ana" not in str(error)
    why.clear()
    assert_refused("DP801", lambda: one.release_batch(BOTH))
    lines = release_lines(list(one.ledger.entries()), one.ledger.limit)
    assert {line["status"] for line in lines} == {"charged; could not be drawn"}


def test_one_that_could_not_be_drawn_stops_new_ones_before_they_are_charged():
    described, why = failing(RuntimeError())
    one = session(data=described)
    assert_refused("DP801", lambda: one.release_batch(BOTH))
    why.clear()
    paid, rows = spent(one), len(one.ledger)
    error = assert_refused("DP801", lambda: one.release_batch({**BOTH, "new": (COUNT, {"epsilon": 0.1})}))
    assert error.spent == "nothing"
    assert (spent(one), len(one.ledger)) == (paid, rows)


def test_a_single_question_whose_key_failed_elsewhere_meanwhile_says_so(tmp_path):
    broken, _ = failing(RuntimeError())
    other = session(data=broken, ledger=tmp_path / "visits.ledger")
    only = {"wards": BOTH["wards"]}
    met = []

    def meanwhile():
        if not met:
            met.append(assert_refused("DP801", lambda: other.release_batch(only)))

    one = session(data=watched(meanwhile)[0], ledger=tmp_path / "visits.ledger")
    error = assert_refused("DP801", lambda: one.sql(COUNT, epsilon=0.3, key="wards"))
    assert met
    assert error.spent == "what this answer costs"


def test_who_fails_while_another_answers_shows_the_answers(tmp_path):
    other = session(ledger=tmp_path / "visits.ledger")
    kept = []

    def lose():
        if not kept:
            kept.append(other.release_batch(BOTH))
        raise RuntimeError

    one = session(data=watched(lose)[0], ledger=tmp_path / "visits.ledger")
    answers = one.release_batch(BOTH)
    assert {key: answer.rows() for key, answer in answers.items()} == {
        key: answer.rows() for key, answer in kept[0].items()
    }


def test_a_progress_bar_that_breaks_loses_nothing():
    one = session()

    def broken():
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        one.release_batch(BOTH, after_each=broken)
    paid = spent(one)
    assert len(one.release_batch(BOTH)) == len(BOTH)
    assert spent(one) == paid


def test_of_two_sessions_that_release_the_same_both_show_what_was_kept_first(tmp_path):
    other = session(ledger=tmp_path / "visits.ledger")
    shown = []
    described, _ = watched(lambda: shown or shown.append(other.release_batch(BOTH)))
    one = session(data=described, ledger=tmp_path / "visits.ledger")
    answers = one.release_batch(BOTH)
    assert [answer.rows() for answer in answers.values()] == [answer.rows() for answer in shown[0].values()]
    assert len(one.ledger) == 5


def test_many_with_a_cap_to_choose_are_begun_only_if_all_fit():
    described = data(protect=dp.each("patient_id", at_most="auto"))
    tight = session(epsilon=0.51, data=described)
    assert_refused("DP601", lambda: tight.release_batch(BOTH))
    assert len(tight.ledger) == 1
    fits = session(epsilon=0.54, data=described)
    assert len(fits.release_batch(BOTH)["wards"]) == 3
    charged = [entry.mechanism for entry in fits.ledger.entries() if entry.kind == "reserved"]
    assert charged == ["CapMechanism", "TableMechanism", "TableMechanism"]


def test_a_seeded_source_releases_nothing_together():
    one = session()
    with testing.seeded(1):
        assert assert_refused("DP605", lambda: one.release_batch(BOTH))
    assert len(one.ledger) == 1


# --- previews spend nothing -----------------------------------------------------------------------------


def test_a_preview_touches_no_data_and_spends_nothing():
    described, engine = watched()
    one = session(data=described)
    shown = [
        one.preview(COUNT, epsilon=0.1),
        one.preview(f"EXPLAIN PRIVACY {COUNT}", epsilon=0.1),
        one.preview(described.group_by("ward").count(), epsilon=0.1),
    ]
    assert len({str(preview.cost) for preview in shown}) == 1
    assert engine.asked == 0
    assert len(one.ledger) == 1


@pytest.mark.parametrize(
    ("text", "amounts", "fix"),
    [
        (f"EXPLAIN PRIVACY {COUNT}", {"epsilon": 0.1}, f'session.preview("{COUNT}", epsilon=0.1)'),
        (f"explain  privacy {COUNT};", {}, f'session.preview("{COUNT}", epsilon=0.1)'),
        (f"EXPLAIN PRIVACY {COUNT} WITH (rho = 0.01)", {}, f'session.preview("{COUNT}", rho=0.01)'),
        (
            "EXPLAIN PRIVACY SELECT COUNT(*) FROM visits WHERE ward = 'a'",
            {"epsilon": 0.5, "delta": 1e-6},
            "session.preview(\"SELECT COUNT(*) FROM visits WHERE ward = 'a'\", epsilon=0.5, delta=1e-6)",
        ),
        (f"EXPLAIN PRIVACY {COUNT}", {"error": "±50"}, f"session.preview(\"{COUNT}\", error='±50')"),
    ],
)
def test_a_preview_is_not_an_answer_and_the_fix_shows_it(text, amounts, fix):
    one = session(delta=1e-5)
    refused = assert_refused("DP107", lambda: one.sql(text, **amounts))
    assert (refused.fix, refused.spent) == (fix, "nothing")
    preview = eval(refused.fix, {"session": one})
    assert str(preview) == str(one.preview(text, **(amounts or ({} if "WITH" in text else {"epsilon": 0.1}))))
    assert len(one.ledger) == 1


# --- other mechanisms ----------------------------------------------------------------------------------


def test_a_mechanism_is_charged_like_a_question():
    one = session(data=data(protect=dp.each("patient_id", at_most=3, word="patient")))
    mechanism = dp.Laplace(epsilon=0.25, sensitivity=1, unit="patient")
    release = one.release(mechanism, 42, key="laplace")
    assert one.release(mechanism, 42, key="laplace").value == release.value
    assert release.interval[0] < release.value < release.interval[1]
    assert release.receipt.number == 1
    assert spent(one) == pytest.approx(0.25)
    vector = one.release(
        dp.Laplace(epsilon=0.25, sensitivity=1, unit="patient", dimension=3), [1, 2, 3], key="v"
    )
    assert vector.value.shape == (3,)


def test_a_refusal_of_a_mechanism_is_paid_for_and_kept():
    class Shy(mechanisms.Mechanism):
        guarantee = privacy.pure(0.5, unit="patient_id")

        def draw(self, data):
            return Refusal("not stable")

    one = session()
    assert one.release(Shy(), [], key="shy").refused
    assert one.release(Shy(), [], key="shy").refused
    assert spent(one) == 0.5


def test_a_guarantee_about_somebody_else_is_refused():
    one = session()
    assert assert_refused("DP201", lambda: one.release(dp.Laplace(epsilon=0.25, sensitivity=1), 42))
    assert assert_refused("DP201", lambda: one.charge(privacy.pure(0.1), question="a training run"))
    receipt = one.charge(privacy.pure(0.1, unit="patient_id"), question="a training run")
    assert receipt.number == 1


# --- the account ------------------------------------------------------------------------------------------


def test_what_is_left_is_said_in_numbers_and_words():
    one = session()
    one.sql(COUNT, epsilon=0.25)
    assert one.budget().spent_fraction == pytest.approx(0.25)
    said = one.describe()
    assert "one patient_id added or removed" in said
    assert "in memory" in said
    assert said.splitlines()[0].startswith("1. ")
    assert one._repr_html_().count("<li>") == len(said.splitlines())
    assert "visits" in repr(one)


def test_a_description_brings_its_own_budget(tmp_path):
    budget = {"epsilon": 0.5, "ledger": str(tmp_path / "own.ledger"), "per_analyst": {"ana": 0.5}}
    one = dp.Session(data(budget=budget), analyst="ana")
    one.sql(COUNT, epsilon=0.25)
    assert assert_refused("DP601", lambda: one.sql(COUNT, epsilon=0.25))
    assert (tmp_path / "own.ledger").exists()


def test_a_budget_becomes_a_limit():
    assert limit_of({}) is None
    assert limit_of({"epsilon": 1, "delta": 1e-6}) == dp.Limit.filter(1, 1e-6)
    assert limit_of({"rho": 0.5, "window": "none"}) == dp.Limit.filter(rho=0.5)
    monthly = limit_of({"epsilon": 1, "window": "month", "lifetime": {"epsilon": 5}})
    assert monthly == dp.Limit.filter(1, window="month", lifetime=dp.Limit.filter(5))
    assert assert_refused("DP107", lambda: limit_of({"epsilon": 1, "per_analyst": 0.25}))


def test_a_session_without_any_limit_is_refused():
    assert assert_refused("DP603", lambda: dp.Session(data()))


# --- wrong input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spend", "code"),
    [
        ({}, "DP107"),
        ({"epsilon": 0}, "DP102"),
        ({"epsilon": -1}, "DP102"),
        ({"epsilon": float("nan")}, "DP101"),
        ({"epsilon": float("inf")}, "DP101"),
        ({"epsilon": True}, "DP104"),
        ({"epsilon": "1"}, "DP104"),
        ({"epsilon": 1, "rho": 1}, "DP107"),
        ({"epsilon": 1, "delta": 1}, "DP102"),
        ({"epsilon": 1, "delta": -1}, "DP102"),
        ({"eps": 1}, "DP105"),
        ({"error": "about"}, "DP104"),
        ({"error": -5}, "DP102"),
    ],
)
def test_a_cost_that_makes_no_sense_is_refused_and_nothing_is_spent(spend, code):
    one = session()
    assert assert_refused(code, lambda: one.sql(COUNT, **spend))
    assert assert_refused(code, lambda: one.preview(COUNT, **spend))
    assert len(one.ledger) == 1


def test_what_is_no_question_and_no_data_set_is_refused():
    one = session()
    assert assert_refused("DP104", lambda: one.release(42, epsilon=0.1))
    assert assert_refused("DP104", lambda: one.preview(None, epsilon=0.1))
    assert assert_refused("DP104", lambda: dp.Session("visits.parquet", limit=dp.Limit.filter(1)))


PER_PERSON = {"sensitivity": 1, "unit": "patient_id"}


@pytest.mark.parametrize(
    ("mechanism", "values"),
    [
        (mechanisms.Laplace(epsilon=0.1, dimension=2, **PER_PERSON), [1.0, 2.0, 3.0]),
        (mechanisms.Laplace(epsilon=0.1, dimension=2, **PER_PERSON), 1.0),
        (mechanisms.Geometric(epsilon=0.1, **PER_PERSON), np.array([0.5, 1.0])),
    ],
)
def test_what_a_mechanism_can_never_be_run_on_costs_nothing(mechanism, values):
    one = session()
    before = len(one.ledger)
    with pytest.raises(errors.BadParameter) as refused:
        one.release(mechanism, values)
    assert (refused.value.spent, len(one.ledger)) == ("nothing", before)


def test_a_vector_through_a_session_is_what_it_is_without_one():
    mechanism = mechanisms.Laplace(epsilon=0.1, **PER_PERSON)
    released, alone = session().release(mechanism, [1.0, 2.0, 3.0]), mechanism([1.0, 2.0, 3.0])
    assert released.value.shape == alone.value.shape == (3,)
    assert (released.error, released.guarantee) == (alone.error, alone.guarantee)
