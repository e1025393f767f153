# SPDX-License-Identifier: Apache-2.0
"""Adaptive questions, the reusable hold-out, and what privacy says of the population: exactly on small cases."""

from __future__ import annotations

import copy
import itertools
import math
import multiprocessing
import pickle

import numpy as np
import pytest

from discreet import errors, privacy, testing
from discreet.mechanisms import AdaptiveQueries, Thresholdout, expected_gap, population_error
from discreet.mechanisms.analysis import _total
from tests.chance import no_chance
from tests.processes import PATIENCE

REPLACE = {"relation": "replace"}


def queries(**changed):
    return AdaptiveQueries(**({"records": 100, "queries": 5, "epsilon": 1.0} | changed))


def quarter(_):
    return 0.25


def tenth(_):
    return 0.1


def holdout(**changed):
    given = {"records": 100, "threshold": 0.1, "overfits": 2, "queries": 50, "epsilon": 1.0}
    return Thresholdout(**(given | changed))


# --- what is guaranteed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 3, 100, 12_345])
def test_the_guarantee_is_never_more_than_was_asked_for(count):
    laplace = queries(queries=count, epsilon=0.7)
    assert 0.7 * (1 - 1e-9) <= laplace.guarantee.epsilon(delta=0) <= 0.7
    zcdp = queries(queries=count, epsilon=None, rho=0.03)
    assert 0.03 * (1 - 1e-9) <= zcdp.guarantee.concentrated() <= 0.03
    point = queries(queries=count, epsilon=1.0, delta=1e-6)
    assert 1e-6 * (1 - 1e-3) <= point.guarantee.delta(1.0) <= 1e-6
    held = holdout(overfits=count, queries=count, epsilon=0.7)
    assert 0.7 * (1 - 1e-9) <= held.guarantee.epsilon(delta=0) <= 0.7
    for rule in (laplace, zcdp, point, held):
        assert rule.unit == privacy.Unit("record", "replace")
    assert laplace.guarantee_at(3) == laplace.guarantee.group(3)


def test_the_cost_of_the_hold_out_is_two_overfits_over_scale_and_records():
    """2B/(s·n) with s the scale of an answer's noise in units of the mean; Lap(2s) and Lap(4s) for the rest."""
    rule = holdout(records=1_000, overfits=7, epsilon=1.4)
    s = rule.answer_noise.scale / (rule.records << rule._bits)
    assert 2 * 7 / (s * 1_000) == pytest.approx(rule.guarantee.epsilon(delta=0), rel=1e-9)
    assert rule.line_noise.scale == 2 * rule.answer_noise.scale
    assert rule.question_noise.scale == 4 * rule.answer_noise.scale


def laplace_mass(scale, reach):
    z = np.arange(-reach, reach + 1)
    mass = np.exp(-np.abs(z) / scale)
    return z, mass * (1 - math.exp(-1 / scale)) / (1 + math.exp(-1 / scale))


def test_a_round_of_the_hold_out_on_every_neighbour():
    """The exact distribution of which of three questions ends a round, for all pairs of gaps that a neighbour can cause."""
    D, s, T = 1, 1.5, 1
    rho, p_rho = laplace_mass(2 * s, 90)
    nu, p_nu = laplace_mass(4 * s, 180)
    cdf = np.cumsum(p_nu)

    def at_least(threshold):
        """P(ν ≥ t) for each t."""
        index = np.clip(np.asarray(threshold) + 180, 0, nu.size)
        return 1 - np.append(0.0, cdf)[index]

    def law(gaps):
        quiet = np.ones_like(p_rho)
        ends = []
        for gap in gaps:
            stays = at_least(gap - T - rho)
            ends.append((p_rho * quiet * (1 - stays)).sum())
            quiet = quiet * stays
        return np.array([*ends, (p_rho * quiet).sum()])

    bound, worst = D / (2 * s) + 2 * D / (4 * s), 0.0
    for gaps in itertools.product(range(4), repeat=3):
        for moves in itertools.product((-D, 0, D), repeat=3):
            other = [abs(gap + move) for gap, move in zip(gaps, moves, strict=True)]
            worst = max(worst, float(np.log(law(gaps) / law(other)).max()))
    assert 0.5 * bound < worst <= bound + 1e-9


# --- conversations ------------------------------------------------------------------------------------------


def test_answers_are_near_the_mean_and_within_the_stated_error():
    rule = queries(records=400, queries=20, epsilon=20.0)
    with testing.seeded(5), rule.open(list(range(400))) as talk:
        for cut in range(20):
            answer = talk.ask(lambda record, cut=cut: record < 20 * cut)
            assert abs(answer - cut / 20) <= rule.error(1 - 1e-6)
    assert talk.closed
    assert not talk.private


def test_the_error_covers_all_answers_at_once():
    rule = queries(records=50, queries=7, epsilon=2.0)
    cells = math.floor((rule.error(0.9) - 2.0**-rule._bits) * 50 * 2**rule._bits)
    assert (1 - rule.distribution.tail(cells + 1)) ** 7 >= 0.9
    assert (1 - rule.distribution.tail(math.floor(0.9 * cells))) ** 7 < 0.95
    assert rule.error(0.99) > rule.error(0.9)


@pytest.mark.parametrize(
    "rule", [queries(), queries(epsilon=None, rho=0.1), queries(epsilon=1.0, delta=1e-6)]
)
def test_a_conversation_ends_after_its_questions(rule):
    talk = rule.open([0] * 100)
    answers = [talk.ask(lambda record: record) for _ in range(5)]
    assert all(0 <= answer <= 1 for answer in answers)
    assert talk.closed
    with pytest.raises(errors.UnsupportedGuarantee) as caught:
        talk.ask(lambda record: record)
    assert caught.value.code == "DP203"


def test_the_hold_out_echoes_the_training_set_until_it_disagrees():
    rule = holdout(records=1_000, threshold=0.2, overfits=2, queries=100, epsilon=100.0)
    with testing.seeded(2):
        talk = rule.open(train=[0, 1], holdout=[1] * 1_000)
        assert [talk.ask(quarter) for _ in range(20)] == [0.25] * 20
        assert talk.overfits == 2
        assert talk.ask(lambda record: record) == pytest.approx(1.0, abs=0.02)
        assert talk.overfits == 1
        assert talk.ask(lambda record: 1 - record) == pytest.approx(0.0, abs=0.02)
    assert talk.closed
    with pytest.raises(errors.UnsupportedGuarantee):
        talk.ask(quarter)


def test_the_line_is_drawn_afresh_after_an_overfit():
    rule = holdout(records=100, threshold=0.0, overfits=3, queries=50, epsilon=1.0)
    with testing.seeded(4):
        talk = rule.open(train=[0], holdout=[1] * 100)
        lines = [talk._line]
        while not talk.closed:
            before = talk.overfits
            talk.ask(lambda record: record)
            if talk.overfits < before:
                lines.append(talk._line)
    assert len(lines) == len(set(lines)) == 4


def test_the_error_of_the_hold_out_covers_both_kinds_of_answers():
    rule = holdout(records=500, threshold=0.1, overfits=5, queries=40, epsilon=50.0)
    with testing.seeded(9):
        talk = rule.open(train=[0.3, 0.4], holdout=[record / 500 for record in range(500)])
        for power in range(1, 40):
            if talk.closed:
                break
            truth = sum((record / 500) ** (power / 10) for record in range(500)) / 500
            answer = talk.ask(lambda record, power=power: record ** (power / 10))
            assert abs(answer - truth) <= rule.error(1 - 1e-6)
        assert talk.overfits < 5
    assert rule.error(0.95) >= 0.1


# --- bad questions and bad records --------------------------------------------------------------------------


def test_a_record_that_breaks_the_question_counts_as_one_half():
    def fussy(record):
        if record == 0:
            raise ValueError("a secret record")
        return {1: math.nan, 2: math.inf, 3: "x", 4: None, 5: -7.0, 6: 9.0, 7: 0.5}[record]

    counts_as = [0.5, 0.5, 1.0, 0.5, 0.5, 0.0, 1.0, 0.5]
    for record, value in enumerate(counts_as):
        assert _total(fussy, (record,), bits=10) == 1024 * value
    with queries(records=8, epsilon=1e4).open(list(range(8))) as talk:
        assert talk.ask(fussy) == pytest.approx(sum(counts_as) / 8, abs=0.05)


def test_what_cannot_be_opened_is_refused():
    for bad in ([0] * 99, [], "x" * 100, None, 7):
        with pytest.raises(errors.BadParameter):
            queries().open(bad)
        with pytest.raises(errors.BadParameter):
            holdout().open(train=[1], holdout=bad)
    with pytest.raises(errors.BadParameter):
        holdout().open(train=[], holdout=[0] * 100)
    with pytest.raises(errors.BadParameter):
        queries().open([0] * 100).ask(0.5)


@pytest.mark.parametrize(
    "bad",
    [
        {"records": 0},
        {"records": 10.5},
        {"queries": 0},
        {"queries": True},
        {"epsilon": None},
        {"epsilon": -1.0},
        {"epsilon": math.nan},
        {"epsilon": "1"},
        {"delta": 1.0},
        {"rho": 0.1},
        {"epsilon": None, "delta": 1e-6},
        {"epsilon": 1e-50},
    ],
)
def test_bad_parameters_are_refused(bad):
    with pytest.raises(errors.BadParameter):
        queries(**bad)
    if "rho" not in bad and "delta" not in bad:
        with pytest.raises(errors.BadParameter):
            holdout(**bad)


def test_a_hold_out_needs_a_threshold_and_overfits():
    for bad in ({"threshold": -0.1}, {"threshold": 1.5}, {"threshold": math.nan}, {"overfits": 0}):
        with pytest.raises(errors.BadParameter):
            holdout(**bad)


def test_later_changes_of_the_data_do_not_matter():
    data = [0] * 100
    talk = queries(epsilon=1e4).open(data)
    data[:] = [1] * 100
    assert talk.ask(lambda record: record) < 0.1


def test_a_conversation_cannot_be_doubled():
    talk = queries().open([0] * 100)
    for double in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(errors.UnsupportedGuarantee):
            double(talk)


def ask_elsewhere(talk, answers):
    try:
        answers.put(talk.ask(lambda record: record))
    except errors.UnsupportedGuarantee as error:
        answers.put(error.code)


@no_chance("the answer is a refusal")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_a_conversation_stays_in_its_process():
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=ask_elsewhere, args=(queries().open([0] * 100), answers))
    child.start()
    assert answers.get(timeout=PATIENCE) == "DP203"
    child.join()


# --- the population, exactly on a small world -----------------------------------------------------------------

POPULATION = np.array([0.5, 0.3, 0.2])  # three kinds of people
SAMPLES = list(itertools.product(range(3), repeat=3))  # every sample of three
CHANCES = np.array([math.prod(POPULATION[list(sample)]) for sample in SAMPLES])
QUESTIONS = [np.array(q) for q in ([1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0.5, 0])]


def transcripts(epsilon):
    """P(transcript | sample): randomized response of each record, in order, shuffled by nobody."""
    keep = math.exp(epsilon) / (math.exp(epsilon) + 2)
    table = np.full((3, 3), (1 - keep) / 2)
    np.fill_diagonal(table, keep)
    return np.array(
        [[math.prod(table[x, y] for x, y in zip(s, t, strict=True)) for t in SAMPLES] for s in SAMPLES]
    )


def neighbours():
    for a, b in itertools.permutations(range(len(SAMPLES)), 2):
        if sum(x != y for x, y in zip(SAMPLES[a], SAMPLES[b], strict=True)) == 1:
            yield a, b


def on_sample(question):
    return np.array([np.mean(question[list(sample)]) for sample in SAMPLES])


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_stability_bounds_the_expected_gap(epsilon):
    """The analyst picks, for each transcript, the question whose posterior mean is furthest above the population's."""
    law = transcripts(epsilon)
    stability = max(np.abs(law[a] - law[b]).sum() / 2 for a, b in neighbours())
    joint = CHANCES[:, None] * law
    gaps = np.array(
        [
            [joint[:, t] @ on_sample(q) - joint[:, t].sum() * (q @ POPULATION) for q in QUESTIONS]
            for t in range(len(SAMPLES))
        ]
    )
    worst = gaps.max(axis=1).sum()
    assert 0 < worst <= stability + 1e-12
    assert stability <= expected_gap(privacy.randomized_response(epsilon, 3, **REPLACE)) + 1e-12


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("point", [0.0, 0.1, 0.5])
def test_the_posterior_stays_near_the_population(epsilon, point):
    """Step 2 of the proof: E[h], E[k] ≤ δ, and the total variation is at most (e^ε - 1 + h + k)/(e^ε + 1)."""
    law = transcripts(epsilon)
    grown = math.exp(point)
    delta = max(np.maximum(law[a] - grown * law[b], 0).sum() for a, b in neighbours())
    joint = CHANCES[:, None] * law
    seen = joint.sum(axis=0)
    for place in range(3):
        marginal = (
            np.array([joint[[s[place] == kind for s in SAMPLES]].sum(axis=0) for kind in range(3)]) / seen
        )
        h = np.maximum(marginal - grown * POPULATION[:, None], 0).sum(axis=0)
        k = np.maximum(POPULATION[:, None] - grown * marginal, 0).sum(axis=0)
        distance = np.abs(marginal - POPULATION[:, None]).sum(axis=0) / 2
        assert seen @ h <= delta + 1e-12
        assert seen @ k <= delta + 1e-12
        assert np.all(distance <= (grown - 1 + h + k) / (grown + 1) + 1e-12)
        assert np.all(distance <= math.tanh(epsilon / 2) + 1e-12)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_the_theorem_holds_for_every_choice(epsilon):
    """Theorem 2 with exact probabilities: answers are the debiased, clipped means of the noisy records."""
    law = transcripts(epsilon)
    joint = CHANCES[:, None] * law
    keep = math.exp(epsilon) / (math.exp(epsilon) + 2)
    noisy = np.array([[np.mean(q[list(t)]) for q in QUESTIONS] for t in SAMPLES])
    totals = np.array([q.sum() for q in QUESTIONS])
    answers = np.clip((noisy - (1 - keep) / 2 * totals) / (keep - (1 - keep) / 2), 0, 1)
    on_samples = np.array([on_sample(q) for q in QUESTIONS]).T
    sample_gap = np.abs(answers[None, :, :] - on_samples[:, None, :]).max(axis=2)
    truth_gap = np.abs(answers - np.array([q @ POPULATION for q in QUESTIONS])).max(axis=1)
    seen = joint.sum(axis=0)
    for alpha, c, point, d in itertools.product((0.1, 0.4), (0.05, 0.3), (0.0, 0.3, epsilon), (0.01, 0.2)):
        beta = joint[sample_gap > alpha].sum()
        delta = max(np.maximum(law[a] - math.exp(point) * law[b], 0).sum() for a, b in neighbours())
        bound = alpha + c + (math.expm1(point) + 2 * d) / (math.exp(point) + 1)
        assert seen[truth_gap > bound].sum() <= beta / c + delta / d + 1e-12


def test_population_error_is_one_of_the_choices_of_the_theorem():
    rule = queries(records=20_000, queries=3, epsilon=0.1)
    found = rule.population_error(0.95)
    by_hand = min(rule.error(1 - 0.05 * c) + c for c in np.geomspace(1e-4, 0.5, 200)) + math.tanh(0.05)
    assert found == pytest.approx(by_hand, rel=0.05)
    assert rule.error(0.95) < found < 0.1
    assert rule.expected_gap() == rule.guarantee.advantage() <= math.tanh(0.05) + 1e-12
    gaussian = queries(records=200_000, queries=20, epsilon=None, rho=1e-4)
    assert gaussian.error(0.95) < gaussian.population_error(0.95) < 0.2
    assert queries(records=10).population_error(0.95) == 1.0
    assert holdout(records=100_000, epsilon=0.05).population_error(0.9) < 0.5


def test_the_population_needs_the_replace_relation():
    with pytest.raises(errors.UnsupportedGuarantee):
        expected_gap(privacy.pure(0.1))
    with pytest.raises(errors.UnsupportedGuarantee):
        population_error(privacy.pure(0.1), tenth, 0.95)
    with pytest.raises(errors.BadParameter):
        population_error(privacy.pure(0.1, **REPLACE), tenth, 1.0)


# --- the demonstration: what overfitting does, and what the hold-out does about it ------------------------------


def vote(features, chosen):
    """A majority vote of the chosen features, each with the sign that it had in training."""
    weights = np.zeros(features)
    for index, sign in chosen:
        weights[index] = sign
    return lambda record: float((record[:-1] @ weights > 0) == (record[-1] > 0))


def agrees(index):
    return lambda record: float(record[index] * record[-1] > 0)


def study(ask, train_ask, features, records):
    """Keep the features that agree with the label on the training set and, says `ask`, on the hold-out; then vote."""
    chosen = []
    for index in range(features):
        seen, held = train_ask(agrees(index)) - 0.5, ask(agrees(index)) - 0.5
        if seen * held > 0 and min(abs(seen), abs(held)) > 0.5 / math.sqrt(records):
            chosen.append((index, math.copysign(1, seen)))
    return vote(features, chosen)


def test_a_hold_out_that_is_asked_in_private_does_not_mislead():
    """Labels are coin flips, so no model is right more than half the time; the plain hold-out guarantees 58 % or more."""
    records, features = 500, 300
    rng = np.random.default_rng(20)
    train, held, fresh = rng.choice([-1.0, 1.0], size=(3, records, features + 1))

    def mean(data):
        return lambda question: sum(map(question, data)) / len(data)

    naive = study(mean(held), mean(train), features, records)
    guaranteed, truth = mean(held)(naive), mean(fresh)(naive)
    assert guaranteed > 0.58
    assert abs(truth - 0.5) < 0.06

    rule = Thresholdout(records=records, threshold=0.1, overfits=10, queries=features + 1, epsilon=16)
    with testing.seeded(20), rule.open(train=list(train), holdout=list(held)) as talk:
        careful = study(talk.ask, mean(train), features, records)
        told = talk.ask(careful)
    assert abs(told - 0.5) < guaranteed - 0.5
    assert abs(told - mean(fresh)(careful)) < 0.06
