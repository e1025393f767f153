# SPDX-License-Identifier: Apache-2.0
"""Every mechanism answers whatever one record is: no error, no warning, no word, and a value of the same form."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pytest

from discreet import mechanisms as m
from discreet import smooth
from discreet.errors import DiscreetError
from discreet.mechanisms import analysis, local, prediction, ptr, queries
from discreet.mechanisms.conformance import _form
from discreet.mechanisms.instance import per_instance_losses
from discreet.mechanisms.mechanism import Refusal
from discreet.mechanisms.proposals import ProposedLogSpread, ProposedOrderStatistic
from discreet.mechanisms.sensitivity import LocalAtDistance, SmoothBound
from tests.mechanisms.examples import AGES, BOUNDED, EXAMPLES, PROPOSED, SEARCHED
from tests.mechanisms.odd import ERRORS, ODD, SECRET

BETWEEN = (0, 100)
ROWS = [[0.5, 0.5], [0.1, -0.3], [0.0, 1.0]]


def of_records(mechanism, records=AGES):
    return mechanism, list(records)


RECORDS = {
    "counts": of_records(queries.counts([bool, callable], at_most=1).geometric(epsilon=1)),
    "histogram with others": of_records(queries.histogram(["a", 1, None], other=True).geometric(epsilon=1)),
    "sum": of_records(queries.sum(BETWEEN).gaussian(rho=0.1)),
    "sized mean": of_records(queries.mean(BETWEEN, size=len(AGES)).laplace(epsilon=1)),
    "variance": of_records(queries.variance(BETWEEN).laplace(epsilon=1)),
    "sized variance": of_records(queries.variance(BETWEEN, size=len(AGES)).laplace(epsilon=1)),
    "statistical query": of_records(queries.statistical(bool, size=len(AGES)).laplace(epsilon=1)),
    "unbounded sum": of_records(m.UnboundedSum(epsilon=1.0)),
    "optimised unary": of_records(local.OptimisedUnary(epsilon=1, outcomes=4)),
    "propose a median": of_records(
        ProposedOrderStatistic(0.5, bounds=BETWEEN, step=1).release(bound=5, **PROPOSED)
    ),
    "search a spread": of_records(
        ProposedLogSpread(bounds=BETWEEN, step=1).search(bounds=[0.1, 1], **SEARCHED)
    ),
    "prediction variance": of_records(prediction.prediction_variance([1.0, 0.5], **BOUNDED), ROWS * 5),
    "choice under a bound": of_records(
        m.HighProbabilityBound(lambda data: [len(data), 1], len, mechanism=m.NoisyMax, **BOUNDED)
    ),
    "whole numbers under a bound": of_records(
        m.HighProbabilityBound(lambda data: data[-1], len, mechanism=m.Geometric, **BOUNDED)
    ),
    "propose the last": of_records(
        ptr.release(lambda data: data[-1], lambda data: data[-1], bound=1, **PROPOSED)
    ),
    "stable last": of_records(m.StableMode(epsilon=1, delta=1e-3)),
    "pairs": of_records(m.StabilityHistogram(epsilon=1, delta=1e-3), [(user, "a") for user in range(30)]),
    "keys of pairs": of_records(m.PartitionSelection(epsilon=1, delta=1e-3), [(1, "a"), (2, "a")]),
}
LAST = smooth.Custom(
    lambda records: records[-1], LocalAtDistance(lambda records, _: records[-1], 1.0), 0.0, 1.0
)
LAST_BOUND = smooth.Custom(
    lambda records: records[-1], SmoothBound(lambda records: records[-1], 0.1, 1.0), 0.0, 1.0
)
STATISTICS = {
    "smooth median": (smooth.OrderStatistic(BETWEEN, q=0.5), AGES),
    "smooth trimmed mean": (smooth.TrimmedMean(BETWEEN), AGES),
    "smooth range": (smooth.InterquantileRange(BETWEEN), AGES),
    "smooth reciprocal": (smooth.Reciprocal(bool), AGES),
    "smooth prediction": (smooth.PredictionVariance((1.0, 0.5), -9.0, 9.0), ROWS),
    "smooth custom": (LAST, AGES),
    "smooth custom bound": (LAST_BOUND, AGES),
}
SMOOTH = {
    name: (
        smooth.SmoothMechanism(
            statistic, smooth.SmoothBudget(epsilon=1.0), family=smooth.SmoothCauchy(), smoothing=0.1
        ),
        list(data),
    )
    for name, (statistic, data) in STATISTICS.items()
}


def with_odd(data, odd):
    """The data with one record that is odd: the last of several, or the only one."""
    if isinstance(data, Mapping):
        return {**data, "gout": odd}
    if isinstance(data, list):
        return [*data[:-1], odd]
    return odd


def form_of(value):
    """What can be seen of a value; of a list, or of keys, what is seen of any of its parts is their own affair."""
    return Refusal if isinstance(value, Refusal) else _form(value)


def released(call, *arguments):
    """What a call releases, if it prints nothing and warns of nothing; its text holds no secret."""
    out = io.StringIO()
    with warnings.catch_warnings(), redirect_stdout(out), redirect_stderr(out):
        warnings.simplefilter("error")
        release = call(*arguments)
        text = str(release)
    assert not out.getvalue()
    assert SECRET not in text
    return release


def forms(call, data):
    return {form_of(released(call, data).value)} - {Refusal}


CALLS = {name: (mechanism, data) for name, (mechanism, data, _) in EXAMPLES.items()}
CALLS |= RECORDS | SMOOTH
CALLS.pop("stable value")  # its value is any canonical form: see test_stable.py


@pytest.mark.parametrize("name", CALLS)
def test_one_odd_record_makes_no_difference_to_the_form_of_an_answer(name):
    call, data = CALLS[name]
    usual = forms(call, data)
    for kind, odd in ODD.items():
        if isinstance(data, Mapping) or not _is_row(data, odd):
            seen = forms(call, with_odd(data, odd))
            assert not usual or len(usual | seen) == len(usual), kind


def _is_row(data, odd):
    """Where the data are one number, a row of several is another public shape."""
    alone = isinstance(odd, np.ndarray) and odd.ndim == 0
    return not isinstance(data, list) and isinstance(odd, list | tuple | np.ndarray) and not alone


@pytest.mark.parametrize(
    "name", ["stable value", "stability histogram", "partition selection", "stable mode"]
)
@pytest.mark.parametrize("kind", ODD)
def test_odd_keys_and_values_are_answered(name, kind):
    mechanism, odd = EXAMPLES[name][0], ODD[kind]
    if name == "stable value":
        mechanism = m.StableValue(lambda data: data[-1], lambda _: 99, epsilon=1, delta=1e-3)
    released(mechanism, [*[("u", "a")] * 3, odd])
    released(mechanism, [("u", odd), (odd, "a"), (odd, odd)])
    try:
        counts = {odd: 900, "a": 900}
    except BaseException:  # noqa: BLE001 - not every object can be a key of a dict
        return
    if name.endswith(("histogram", "selection")):
        assert "a" in released(mechanism, counts).value


@pytest.mark.parametrize("error", ERRORS)
def test_no_callback_ends_a_call(error):
    """Every place where a caller's function sees records, with a function that raises on one of them."""

    def on_record(record):
        if record == AGES[7]:
            raise error(f"{SECRET}: {record}")
        return 1

    def on_data(data, *_):
        raise error(f"{SECRET}: {data}")

    calls = [
        queries.count(on_record).geometric(epsilon=1),
        queries.counts([on_record, bool]).geometric(epsilon=1),
        queries.sum(BETWEEN, of=on_record).laplace(epsilon=1),
        queries.mean(BETWEEN, of=on_record).laplace(epsilon=1),
        queries.statistical(on_record, size=len(AGES)).laplace(epsilon=1),
        m.HighProbabilityBound(on_data, on_data, **BOUNDED),
        m.HighProbabilityBound(on_data, len, mechanism=m.ExponentialMechanism, **BOUNDED),
        ptr.release(on_data, on_data, bound=1, **PROPOSED),
        ptr.search(on_data, on_data, bounds=[1, 2], **SEARCHED),
        m.StableValue(on_data, on_data, epsilon=1, delta=1e-3),
        m.select_best(m.Laplace(epsilon=1, sensitivity=1, dimension=len(AGES)), on_data, mean_runs=2),
        lambda data: m.choose(on_data, [1, 2, 3], data, epsilon=1, sensitivity=1),
        lambda data: m.choose(on_data, [1, 2, 3], data, epsilon=1, sensitivity=1, vectorised=True),
        lambda data: smooth.reciprocal(data, where=on_record, epsilon=1.0),
        lambda data: smooth.release(
            on_data, data, sensitivity=LocalAtDistance(on_data, 1.0), between=(0, 1), epsilon=1.0
        ),
        lambda data: per_instance_losses(m.Laplace(epsilon=1, sensitivity=1), on_data, data),
        analysis.AdaptiveQueries(records=len(AGES), queries=1, epsilon=1).open(AGES).ask,
    ]
    for call in calls[:-1]:
        released(call, AGES)
    assert 0 <= calls[-1](on_record) <= 1
    rule = analysis.Thresholdout(records=len(AGES), threshold=0.1, overfits=1, queries=9, epsilon=1)
    with rule.open(train=AGES, holdout=AGES) as conversation:
        assert 0 <= conversation.ask(on_record) <= 1


@pytest.mark.parametrize("error", ERRORS)
def test_a_function_of_a_secret_does_not_show_it(error):
    def show(value):
        raise error(f"{SECRET}: {value}")

    with pytest.raises(DiscreetError) as refused:
        ptr.Secret(0.25, "what Ann loses").apply(show)
    assert SECRET not in str(refused.value)
    assert refused.value.__context__ is None
