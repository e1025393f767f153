# SPDX-License-Identifier: Apache-2.0
"""The game on mechanisms whose privacy is known exactly, and on functions that behave badly."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest

from discreet import privacy, testing
from discreet.audit import audit, audit_bits, batched, draws
from discreet.audit.draws import _workers
from discreet.audit.game import _AuditPlan, _parts
from discreet.errors import BadParameter
from discreet.mechanisms import Geometric, Laplace
from discreet.mechanisms.mechanism import Refusal
from tests.chance import may_fail, no_chance
from tests.statistical.constants import ALPHA

SURE = 1 - ALPHA


def coin(epsilon):
    """Randomized response."""
    truth = 1 / (1 + math.exp(-epsilon))
    return batched(lambda bit, count: np.where(np.random.default_rng().random(count) < truth, bit, 1 - bit))


def test_the_bounds_come_close_to_the_truth_and_stay_below():
    report = audit(coin(1.0), 0, 1, claim=privacy.pure(1.0), confidence=SURE)
    assert 0.9 < report.epsilon_at_least() < 1.0
    assert report.epsilon_at_least(0.2) < report.epsilon_at_least(0.1) < report.epsilon_at_least()
    assert not report.refutes()
    assert report.refutes(privacy.pure(0.9))
    assert not report.refutes(privacy.randomized_response(1.0))
    assert report.refutes(privacy.gaussian(3.0))


def test_a_gaussian_is_measured_in_its_own_unit():
    draw = batched(lambda data, count: data + np.random.default_rng().normal(0, 1, count))
    report = audit(draw, 0.0, 1.0, claim=privacy.gaussian(1.0), confidence=SURE, look_at="values")
    assert 0.85 < report.mu_at_least < 1.0
    assert not report.refutes()
    assert report.refutes(privacy.gaussian(1.3))


def test_the_direction_that_leaks_less_is_looked_at_too():
    def one_way(bit, count):
        """An outcome of probability 1/20 that only the first input has, and then only the second."""
        rare = np.random.default_rng().random(count) < 0.05
        return np.where(rare & (bit == 0), 2, 1)

    for pair in ((0, 1), (1, 0)):
        report = audit(batched(one_way), *pair, claim=privacy.pure(1.0))
        assert report.refutes()
        assert report.epsilon_at_least() > 4


def test_outputs_that_never_differ_prove_nothing():
    report = audit(lambda _: "same", 0, 1, trials=200, claim=privacy.pure(1e-3))
    assert report.epsilon_at_least() == report.mu_at_least == 0
    assert not report.refutes()
    assert "no event told the inputs apart" in str(report)


def test_one_call_after_another_is_the_same_game():
    report = audit(lambda data: Refusal("no") if data else 1, 0, 1, trials=400, claim=privacy.pure(1.0))
    assert report.refutes()
    assert "Refusal" in report.witness.words


def test_the_own_guarantee_is_the_claim_of_a_mechanism():
    mechanism = Laplace(epsilon=0.5, sensitivity=2)
    assert audit(mechanism, 0, 2, trials=200).claim == mechanism.guarantee
    assert audit(mechanism, 0, 2, trials=200, claim=privacy.pure(3.0)).claim == privacy.pure(3.0)
    vector = audit(mechanism, [0, 0], [2, 0], trials=200)
    assert vector.claim == mechanism.with_dimension(2).guarantee


def test_a_release_counts_by_its_value():
    report = audit(Geometric(epsilon=1, sensitivity=1), 0, 30, trials=400, claim=privacy.pure(1.0))
    called = audit(Geometric(epsilon=1, sensitivity=1).__call__, 0, 30, trials=400, claim=privacy.pure(1.0))
    assert report.refutes()
    assert called.refutes()
    assert "value" in called.witness.words


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e300, 1.7e308])
def test_numbers_of_any_size_are_looked_at(size):
    flips = batched(
        lambda data, n: np.where(np.random.default_rng().random((n, 2)) < 0.5, -size, size) * (1 - 2 * data)
    )
    assert audit(flips, 0, 1, trials=400, claim=privacy.pure(0.1)).epsilon_at_least() < 1
    signs = batched(lambda data, n: np.full((n, 2), size if data else -size))
    assert audit(signs, 0, 1, trials=400, claim=privacy.pure(0.1)).refutes()


def test_many_cells_are_looked_at():
    def noisy(data, count):
        values = np.random.default_rng().normal(0, 1, (count, 150))
        values[:, 140] += 3 * data
        return values

    report = audit(batched(noisy), 0, 1, trials=2_000, claim=privacy.gaussian(1.0), look_at="values")
    assert report.refutes()
    assert all("140" in event.words for event in report.events)


def test_an_exception_on_one_input_is_an_outcome():
    report = audit(lambda data: 1 / data, 0, 1, trials=200, claim=privacy.pure(1.0))
    assert report.refutes()
    assert any("ExceptionOutcome" in event.words for event in report.events)


def test_an_exception_on_every_run_is_an_error_without_its_text():
    def fails(data):
        raise RuntimeError(f"secret {data}")

    with pytest.raises(BadParameter) as caught:
        audit(fails, 41, 42, trials=100)
    assert caught.value.code == "DP107"
    assert "RuntimeError" in str(caught.value)
    assert "41" not in str(caught.value)


def test_the_error_probability_is_shared_out_once():
    for claim in (None, privacy.pure(1.0)):
        plan = _AuditPlan(1e-3, claim)
        spent = 2 * plan.events * plan.of_event + 2 * plan.of_band + 2 * 64 * plan.of_point
        assert spent == pytest.approx(1e-3)
    report = audit(coin(1.0), 0, 1, trials=400)
    assert report.shares["in all"] == pytest.approx(1e-3)


@pytest.mark.parametrize("trials", [100, 101, 4_003])
def test_what_is_measured_was_not_looked_at(trials):
    parts = [set(range(trials)[part]) for part in _parts(trials)]
    assert set().union(*parts) == set(range(trials))
    assert sum(map(len, parts)) == trials
    assert len(parts[2]) >= trials / 2


@may_fail(
    math.comb(6, 2) * math.exp(-1) ** 1_000, "two of six chunks of 1,000 draws agree; no draw has more mass"
)
def test_runs_in_several_processes_are_fresh():
    chunks = draws.draw_all(Geometric(epsilon=1, sensitivity=1).draw, (0, 0), 3_000, 2, None)
    assert len({tuple(chunk) for side in chunks for chunk in side}) == 6


@no_chance("only how far it has come is looked at")
def test_the_progress_of_several_processes_is_told():
    seen = []
    audit(
        Laplace(epsilon=1, sensitivity=1),
        0,
        1,
        trials=3_000,
        workers=2,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen[-1] == (6_000, 6_000)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


class Own(Laplace):
    """A mechanism from elsewhere, which might bring its own generator."""


@no_chance("nothing is drawn")
def test_only_mechanisms_of_the_library_are_drawn_in_several_processes_unasked():
    ours, long = Laplace(epsilon=1, sensitivity=1), 1e9
    assert _workers(ours, None, long) == os.cpu_count()
    assert _workers(ours, None, 0.1) == 1
    assert _workers(Own(epsilon=1, sensitivity=1), None, long) == 1
    assert _workers(lambda data: data, None, long) == 1
    assert _workers(len, 3, 0.1) == 3
    with pytest.raises(BadParameter, match="cannot be sent"):
        _workers(lambda data: data, 2, 0.1)
    with testing.seeded(7):
        assert _workers(ours, None, long) == 1


def test_runs_keep_their_order_and_their_input(monkeypatch):
    monkeypatch.setattr(draws, "as_completed", lambda waiting: reversed(list(waiting)))
    for workers in (1, 2):
        outputs = draws.draw_all(abs, (-1, -2), 2_500, workers, None)
        assert (
            [len(chunk) for chunk in outputs[0]] == [len(chunk) for chunk in outputs[1]] == [1000, 1000, 500]
        )
        assert [set(chunk) for chunk in outputs[0]] == [{1}] * 3
        assert [set(chunk) for chunk in outputs[1]] == [{2}] * 3


def test_a_seed_is_not_lost_to_other_processes():
    mechanism = Geometric(epsilon=1, sensitivity=1)
    with testing.seeded(7):
        first = audit(mechanism, 0, 1, trials=200)
    with testing.seeded(7):
        second = audit(mechanism, 0, 1, trials=200)
    assert [e.often.hits for e in first.events] == [e.often.hits for e in second.events]


def test_bits_alone_do_not_see_the_value():
    shifted = batched(lambda data, count: np.rint(np.random.default_rng().laplace(data, 100, count)) * 0.5)
    assert audit_bits(shifted, 0.0, 1.0, trials=4_000).epsilon_at_least() < 1
    cut = batched(lambda data, count: data + np.zeros(count))
    assert audit_bits(cut, 0.5, 0.25, trials=400).epsilon_at_least() > 2


def test_a_report_is_read_by_people_and_programs():
    report = audit(coin(2.0), 0, 1, trials=4_000, claim=privacy.pure(1.0))
    text = str(report)
    assert "REFUTED" in text
    assert "pure(epsilon=1.0)" in text
    assert "REFUTED" in report._repr_html_()
    found = json.loads(report.to_json())
    assert found["refuted"] is True
    assert found["epsilon_at_least"] == report.epsilon_at_least()
    assert privacy.from_json(json.dumps(found["claim"])) == privacy.pure(1.0)
    assert len(found["roc"]["false_alarm"]) == report.roc.false_alarm.size
    with pytest.raises(BadParameter, match="no claim"):
        audit(coin(2.0), 0, 1, trials=400).refutes()


def test_the_certified_curve_is_below_the_measured_one():
    roc = audit(coin(1.0), 0, 1, trials=4_000).roc
    assert (roc.detection_at_least <= roc.detection).all()
    assert (roc.false_alarm_at_most >= roc.false_alarm).all()
    at = np.linspace(0, 1, 11)
    assert (np.diff(roc.certified_detection(at)) >= 0).all()
    assert (roc.certified_detection(at) <= np.interp(at, roc.false_alarm, roc.detection) + 1e-12).all()


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"trials": 99}, "DP102"),
        ({"trials": 1e5}, "DP103"),
        ({"confidence": 1.0}, "DP102"),
        ({"confidence": math.nan}, "DP101"),
        ({"claim": 1.0}, "DP104"),
        ({"look_at": "all"}, "DP105"),
        ({"workers": 0}, "DP102"),
    ],
)
def test_bad_settings_are_refused(settings, code):
    with pytest.raises(BadParameter) as caught:
        audit(lambda data: data, 0, 1, **{"trials": 100, **settings})
    assert caught.value.code == code


def test_what_cannot_be_run_is_refused():
    with pytest.raises(BadParameter, match="a mechanism or a function"):
        audit(3, 0, 1, trials=100)
    with pytest.raises(BadParameter, match="asked for 100 outputs"):
        audit(batched(lambda *_: [1]), 0, 1, trials=100)


@no_chance("what is audited has no noise")
@pytest.mark.parametrize("first", ["import discreet.audit", "from discreet.audit import audit"])
def test_the_package_is_the_function(first):
    program = (
        f"{first}\nimport discreet as dp\n"
        "assert dp.audit(len, [1], [], trials=200).epsilon_at_least() > 1\n"
        "from discreet.audit import worst_pair\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
