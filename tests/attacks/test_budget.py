# SPDX-License-Identifier: Apache-2.0
"""Ways to get an answer for less than it costs: each is refused or paid for, at every door.

B-01 B-02 B-03   parameters that are no numbers          B-08   a crash between the draw and the charge
B-04 B-05        rounding                                B-10   a fork that copies the noise
B-06             a race                                  B-11   a seed
B-07             a copy of the handle                    B-15   parts that overlap
"""

from __future__ import annotations

import copy
import inspect
import math
import pickle
import threading
from fractions import Fraction

import numpy as np
import pytest

from discreet import mechanisms, privacy, testing
from discreet.errors import BadParameter, DiscreetError, LedgerError, OverBudget, UnsupportedGuarantee
from discreet.ledger import Ledger, Limit
from discreet.ledger.sqlite import SQLite
from discreet.mechanisms.query import RecordQuery
from discreet.noise.source import is_private
from tests.chance import may_fail, no_chance
from tests.ledger.workers import run
from tests.processes import run_threads

NAN, INF = math.nan, math.inf
TINY = 5e-324
ODD = [
    NAN,
    -NAN,
    INF,
    -INF,
    -1.0,
    -TINY,
    True,
    False,
    "1",
    "",
    None,
    b"1",
    1j,
    [1.0],
    np.array([1.0]),
    Ellipsis,
]


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "a.ledger", limit=Limit.filter(epsilon=1)) as opened:
        yield opened


def assert_refused(call, *arguments, **named):
    with pytest.raises(BadParameter):
        call(*arguments, **named)


# --- B-01, B-02, B-03: numbers that are none -----------------------------------------------------------------

EPSILONS = {
    "pure": privacy.pure,
    "approximate": lambda epsilon: privacy.approximate(epsilon, 1e-6),
    "randomized_response": lambda epsilon: privacy.randomized_response(epsilon=epsilon),
    "exponential": lambda epsilon: privacy.exponential(epsilon=epsilon),
    "Laplace": lambda epsilon: mechanisms.Laplace(epsilon=epsilon, sensitivity=1),
    "Gaussian": lambda epsilon: mechanisms.Gaussian(epsilon=epsilon, delta=1e-6, sensitivity=1),
    "filter": lambda epsilon: Limit.filter(epsilon=epsilon, delta=1e-6),
    "pure filter": lambda epsilon: Limit.filter(epsilon=epsilon, delta=0),
    "rho": lambda rho: Limit.filter(rho=rho),
    "mu": lambda mu: Limit.filter(mu=mu),
}


@pytest.mark.parametrize("door", EPSILONS)
@pytest.mark.parametrize("bad", [*ODD, 0, 0.0, -0.0, 10**400, -(10**400)], ids=repr)
def test_b_01_an_epsilon_that_is_no_positive_number(door, bad):
    if door == "approximate" and isinstance(bad, int | float) and bad == 0 and bad is not False:
        assert privacy.approximate(bad, 1e-6).delta(epsilon=0) == pytest.approx(
            1e-6
        )  # ε = 0 with a δ is a guarantee
    else:
        assert_refused(EPSILONS[door], bad)


@pytest.mark.parametrize("door", EPSILONS)
def test_b_01_an_epsilon_beyond_all_bounds_is_refused_or_counts(door):
    """A subnormal must not become noise of infinite size that costs nothing, nor a huge one pass for finite."""
    for extreme in (TINY, 1e308):
        try:
            made = EPSILONS[door](extreme)
        except DiscreetError:
            continue
        if isinstance(made, Limit):
            assert made.guarantee is not None
        else:
            guarantee = made if isinstance(made, privacy.Guarantee) else made.guarantee
            assert guarantee.epsilon(delta=1e-9) > 0


DELTAS = {
    "approximate": lambda delta: privacy.approximate(1.0, delta),
    "leaky": lambda delta: privacy.leaky(delta=delta),
    "epsilon": lambda delta: privacy.gaussian(noise=1.0).epsilon(delta=delta),
    "Gaussian": lambda delta: mechanisms.Gaussian(epsilon=1.0, delta=delta, sensitivity=1),
    "filter": lambda delta: Limit.filter(epsilon=1, delta=delta),
    "odometer": lambda delta: Limit.odometer(delta=delta),
}


@pytest.mark.parametrize("door", DELTAS)
@pytest.mark.parametrize("bad", [bad for bad in ODD if bad is not None] + [1, 1.0, 2.0, 1 + 1e-15], ids=repr)
def test_b_02_a_delta_that_is_no_probability_below_one(door, bad):
    assert_refused(DELTAS[door], bad)


NOISES = {
    "gaussian": lambda noise: privacy.gaussian(noise=noise),
    "laplace": lambda noise: privacy.laplace(scale=noise),
    "discrete_laplace": lambda noise: privacy.discrete_laplace(scale=noise),
    "discrete_gaussian": lambda noise: privacy.discrete_gaussian(scale=noise),
    "concentrated": lambda rho: privacy.concentrated(rho=rho),
    "Laplace": lambda scale: mechanisms.Laplace(scale=scale, sensitivity=1),
    "sensitivity": lambda sensitivity: mechanisms.Laplace(scale=1.0, sensitivity=sensitivity),
    "rate": lambda rate: privacy.gaussian(noise=1.0).sampled(rate),
}


@pytest.mark.parametrize("door", NOISES)
@pytest.mark.parametrize("bad", [*ODD, 0, 0.0], ids=repr)
def test_b_03_noise_that_is_none(door, bad):
    assert_refused(NOISES[door], bad)


@pytest.mark.parametrize("steps", [0, -1, 1.0, 2.5, NAN, INF, True, "2", None, 10**400], ids=repr)
def test_b_03_steps_that_are_no_count(steps):
    if steps is None:
        with pytest.raises((BadParameter, TypeError)):
            steps * privacy.gaussian(noise=1.0)
    else:
        assert_refused(lambda: steps * privacy.gaussian(noise=1.0))
    assert_refused(privacy.gaussian(noise=1.0).group, steps)


# --- B-04, B-05: rounding --------------------------------------------------------------------------------------


def test_b_04_many_tiny_charges_add_up(ledger):
    """Each is lost in a float that holds 1; together they are not."""
    ledger.charge(privacy.pure(1 - 1e-15))
    tiny = privacy.pure(1e-17)
    assert 1.0 - 1e-15 + 1e-17 == 1.0 - 1e-15
    for _ in range(3):
        ledger.charge(tiny)
    assert ledger.spent["epsilon"] == 1 - Fraction(1, 10**15) + Fraction(3, 10**17)
    assert ledger.budget().like(tiny) == 97
    ledger.charge(97 * tiny)
    for last in (tiny, privacy.pure(1e-90)):
        with pytest.raises(OverBudget):
            ledger.charge(last)


@pytest.mark.parametrize(("piece", "fit"), [(0.1, 10), (0.2, 5), (0.7, 1), (1 / 3, 3), (0.01, 100)])
def test_b_05_what_fits_by_its_decimals_fits_and_the_next_does_not(piece, fit):
    """A third prints as 0.3333333333333333, and three of those are below 1."""
    with Ledger(":memory:", limit=Limit.filter(epsilon=1)) as ledger:
        for _ in range(fit):
            ledger.charge(privacy.pure(piece))
        with pytest.raises(OverBudget):
            ledger.charge(privacy.pure(piece))
        assert ledger.spent["epsilon"] <= 1


def test_b_05_no_slack_hides_in_the_comparison(ledger):
    ledger.charge(privacy.pure(0.9))
    with pytest.raises(OverBudget):
        ledger.charge(privacy.pure(0.1000000000000001))
    ledger.charge(privacy.pure(0.1))
    assert ledger.spent["epsilon"] == 1


# --- B-06: races (tests/ledger/test_concurrency.py has them on every store) --------------------------------------


@no_chance("ledgers draw nothing")
def test_b_06_processes_cannot_overspend(tmp_path):
    path = _made(tmp_path)
    receipts = [line["number"] for line in run("race", where=path, processes=4) if "number" in line]
    assert len(receipts) == len(set(receipts)) == 40
    with Ledger(path) as ledger:
        assert ledger.spent["epsilon"] == 1


def test_b_06_threads_that_start_together_cannot_overspend_in_memory():
    barrier = threading.Barrier(8)
    admitted = []
    with Ledger(":memory:", limit=Limit.filter(epsilon=1)) as ledger:

        def spend():
            barrier.wait()
            for _ in range(4):
                try:
                    admitted.append(ledger.charge(privacy.pure(0.1)).number)
                except OverBudget:
                    return

        run_threads(*[spend] * 8)
        assert sorted(admitted) == list(range(1, 11))
        assert ledger.verify().intact


# --- B-07: copies -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, pickle.dumps, lambda it: it.__reduce_ex__(4)])
@pytest.mark.parametrize("place", [":memory:", "file"])
def test_b_07_a_handle_is_not_copied(clone, place, tmp_path):
    where = place if place == ":memory:" else tmp_path / "a.ledger"
    with Ledger(where, limit=Limit.filter(epsilon=1)) as ledger:
        with pytest.raises(LedgerError) as refused:
            clone(ledger)
        assert refused.value.code == "DP607"


@pytest.mark.parametrize("clone", [copy.deepcopy, pickle.dumps])
def test_b_07_nor_is_what_holds_it(clone, ledger):
    for holder in ([ledger], {"budget": ledger}, ledger.charge):
        with pytest.raises(LedgerError) as refused:
            clone(holder)
        assert refused.value.code == "DP607"


@no_chance("ledgers draw nothing")
def test_b_07_a_fork_shares_the_book_or_is_refused(tmp_path):
    said = run("inherit", where=_made(tmp_path), processes=2)
    assert len({line["number"] for line in said if "number" in line}) == 40
    memory = run("forget", limit=Limit.filter(epsilon=1).to_dict())
    assert {"error": "DP607"} in memory


def test_b_07_a_second_ledger_on_the_same_file_is_the_same_budget(ledger):
    with Ledger(ledger.where) as second:
        second.charge(privacy.pure(0.9))
    with pytest.raises(OverBudget):
        ledger.charge(privacy.pure(0.2))


# --- B-08: crashes (tests/ledger/test_crash.py kills at every statement) ------------------------------------------


@no_chance("ledgers draw nothing")
def test_b_08_the_charge_is_on_disk_before_anything_can_be_drawn(tmp_path):
    said = run("kill_at_any_time", where=_made(tmp_path), kills=4)
    with Ledger(tmp_path / "a.ledger") as ledger:
        charged = {(entry.number, entry.hash) for entry in ledger.entries() if entry.kind == "reserved"}
    assert {(line["number"], line["hash"]) for line in said} <= charged


def test_b_08_the_receipt_comes_after_the_commit(tmp_path):
    done = []

    class Watched(SQLite):
        def execute(self, sql, values):
            found = super().execute(sql, values)
            done.append(sql.split()[0])
            return found

    with Ledger(Watched(tmp_path / "a.ledger"), limit=Limit.filter(epsilon=1)) as ledger:
        done.clear()
        ledger.charge(privacy.pure(0.1))
        assert done[-1] == "COMMIT"


@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError, ValueError])
def test_b_08_a_draw_that_fails_is_paid_for(ledger, failure):
    def draw():
        raise failure

    with pytest.raises(failure):
        ledger.commit(ledger.charge(privacy.pure(0.5)), draw())
    assert ledger.spent["epsilon"] == Fraction(1, 2)


def test_b_08_nothing_gives_back():
    public = {name for name in dir(Ledger) if not name.startswith("_")}
    assert not [
        name
        for name in public
        if any(word in name for word in ("refund", "release", "reset", "undo", "cancel"))
    ]
    assert {name for name in public if "spend" in name or "delete" in name} == set()


# --- B-10, B-11: noise that comes twice ----------------------------------------------------------------------------


@may_fail(6 * (1 / 200_000) ** 8, "six pairs of eight draws, each equal with chance 1 / (2 · 100 · 1000)")
def test_b_10_a_fork_draws_its_own_noise():
    said = run("draw", processes=3)
    drawn = [tuple(line["drawn"]) for line in said if "drawn" in line]
    assert len(drawn) == 4
    assert len(set(drawn)) == 4


def test_b_11_a_seeded_answer_cannot_be_charged(ledger):
    with testing.seeded(7):
        release = mechanisms.Laplace(epsilon=0.1, sensitivity=1)(41)
        assert not release.private
        for private in (release.private, is_private()):
            with pytest.raises(LedgerError) as refused:
                ledger.charge(release.guarantee, private=private)
            assert refused.value.code == "DP605"
    assert len(ledger) == 1


def test_b_11_no_public_call_takes_a_seed():
    for package in (mechanisms, privacy):
        for name in package.__all__:
            thing = getattr(package, name)
            if callable(thing):
                parameters = inspect.signature(thing).parameters
                assert not {"seed", "random_state", "rng", "generator"} & set(parameters), name
    for method in ("charge", "commit", "find", "__init__"):
        assert "seed" not in inspect.signature(getattr(Ledger, method)).parameters


# --- B-15: parts that overlap ----------------------------------------------------------------------------------------


def test_b_15_questions_about_parts_are_added_unless_their_tree_says_that_they_are_disjoint(ledger):
    part = privacy.pure(0.3)
    ledger.charge(part, question="how many under 40?")
    ledger.charge(part, question="how many from 40 on?")
    assert ledger.spent["epsilon"] == Fraction(6, 10)  # words prove nothing
    ledger.charge(privacy.parallel(part, part), question="how many by age?")
    assert ledger.spent["epsilon"] == Fraction(9, 10)


def test_b_15_a_replaced_record_sits_in_two_parts():
    part = privacy.pure(0.3)
    both = privacy.parallel(part, part, relation="replace")
    with Ledger(":memory:", limit=Limit.filter(epsilon=1), unit=both.unit) as ledger:
        ledger.charge(both)
        assert ledger.spent["epsilon"] >= Fraction(6, 10)
    with pytest.raises(UnsupportedGuarantee):
        privacy.parallel(privacy.pure(0.3, relation="replace"), privacy.pure(0.3, relation="replace"))


def test_b_15_conditions_that_may_overlap_are_not_taken_for_a_histogram():
    conditions = [lambda age: age < 40, lambda age: age < 60, lambda age: age < 80]
    overlapping = mechanisms.queries.counts(conditions)
    disjoint = mechanisms.queries.histogram(["young", "old"])
    assert isinstance(overlapping, RecordQuery)
    assert overlapping.laplace(scale=3).guarantee.epsilon(delta=0) == pytest.approx(
        1, rel=0.01
    )  # three can change at once
    assert disjoint.laplace(scale=3).guarantee.epsilon(delta=0) == pytest.approx(1 / 3, rel=0.01)
    assert_refused(mechanisms.queries.histogram, ["young", "young"])


def _made(folder):
    path = str(folder / "a.ledger")
    Ledger(path, limit=Limit.filter(epsilon=1)).close()
    return path
