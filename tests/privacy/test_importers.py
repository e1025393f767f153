# SPDX-License-Identifier: Apache-2.0
"""Records of other accountants become the guarantees that they describe, or are refused."""

from __future__ import annotations

import json
import math
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import pytest

from discreet import privacy
from discreet.errors import BadDescription, BadParameter, UnsupportedGuarantee

STEP = {"class_name": "GaussianDpEvent", "noise_multiplier": 1.0}
SAMPLED = {"class_name": "PoissonSampledDpEvent", "sampling_probability": 0.01, "event": STEP}
RUN = {"class_name": "SelfComposedDpEvent", "event": SAMPLED, "count": 100}


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"class_name": f"{kind}DpEvent", **fields}


@dataclass
class GaussianDpEvent:
    noise_multiplier: float


@dataclass
class ComposedDpEvent:
    events: list[Any]


@pytest.mark.parametrize(
    ("record", "guarantee"),
    [
        (STEP, privacy.gaussian(1.0)),
        (RUN, 100 * privacy.gaussian(1.0).sampled(0.01)),
        (event("Laplace", noise_multiplier=2.0), privacy.laplace(2.0)),
        (event("ZC", rho=0.1, xi=0.0), privacy.concentrated(0.1)),
        (
            event("Composed", events=[STEP, RUN, event("NoOp")]),
            privacy.gaussian(1.0) + 100 * privacy.gaussian(1.0).sampled(0.01),
        ),
        (
            event("SampledWithoutReplacement", source_dataset_size=100, sample_size=5, event=STEP),
            privacy.gaussian(1.0).sampled(0.05, "without-replacement"),
        ),
        (
            event(
                "MixtureOfGaussians", standard_deviation=2.0, sensitivities=[0, 1], sampling_probs=[0.4, 0.6]
            ),
            privacy.gaussian_mixture(2.0, {0: 0.4, 1: 0.6}),
        ),
        (
            event(
                "TruncatedSubsampledGaussian",
                dataset_size=4,
                sampling_probability=0.5,
                truncated_batch_size=2,
                noise_multiplier=1.0,
            ),
            privacy.truncated_batches(1.0, 0.5, 2, 4),
        ),
        (
            event("RepeatAndSelect", event=STEP, mean=10.0, shape=0.0),
            privacy.selected(privacy.gaussian(1.0), 10),
        ),
    ],
)
def test_events_under_add_remove(record: dict[str, Any], guarantee: privacy.Guarantee) -> None:
    assert privacy.from_dp_accounting(record, relation="add-remove") == guarantee
    assert privacy.from_dp_accounting(json.dumps(record), relation="add-remove") == guarantee


def test_objects_and_named_tuples() -> None:
    expected = 2 * privacy.gaussian(1.5)
    objects = ComposedDpEvent([GaussianDpEvent(1.5), GaussianDpEvent(1.5)])
    assert privacy.from_dp_accounting(objects, relation="add-remove") == expected
    wrapper = namedtuple("_Wrapper", ["module_name", "class_name", "noise_multiplier"])  # noqa: PYI024
    named = wrapper("dp_accounting.dp_event", b"GaussianDpEvent", 1.5)
    outer = ComposedDpEvent([named, named])
    assert privacy.from_dp_accounting(outer, relation="add-remove") == expected


def test_a_replaced_record_moves_a_sum_by_two_norms() -> None:
    assert privacy.from_dp_accounting(STEP, relation="replace") == privacy.gaussian(0.5, relation="replace")
    replaced = privacy.from_dp_accounting(SAMPLED, relation="replace")
    assert replaced == privacy.gaussian(1.0).sampled(0.01, relation="replace")
    blanked = privacy.from_dp_accounting(SAMPLED, relation="zero-out", unit="patient")
    assert blanked == privacy.gaussian(1.0, unit="patient").sampled(0.01, relation="zero-out")


def test_discrete_laplace_and_randomized_response() -> None:
    noisy = privacy.from_dp_accounting(
        event("DiscreteLaplace", noise_parameter=0.1, sensitivity=2), relation="add-remove"
    )
    assert 0.2 <= noisy.epsilon(0.0) <= 0.2 * (1 + 1e-12)
    record = event("RandomizedResponse", noise_parameter=0.5, num_buckets=4)
    told = privacy.from_dp_accounting(record, relation="replace")
    # The truth has the chance 0.5 + 0.125, any other answer 0.125.
    assert math.log(5) <= told.epsilon(0.0) <= math.log(5) * (1 + 1e-12)
    with pytest.raises(UnsupportedGuarantee):
        privacy.from_dp_accounting(record, relation="add-remove")


@pytest.mark.parametrize(("leaves", "nodes"), [(1, 1), (3, 2), (4, 3), ([2, 9], 4)])
def test_a_tree_is_as_many_answers_as_it_has_levels(leaves: int | list[int], nodes: int) -> None:
    record = event("SingleEpochTreeAggregation", noise_multiplier=2.0, step_counts=leaves)
    tree = privacy.from_dp_accounting(record, relation="zero-out")
    assert tree == nodes * privacy.gaussian(2.0, relation="zero-out")
    with pytest.raises(UnsupportedGuarantee):
        privacy.from_dp_accounting(record, relation="add-remove")


@pytest.mark.parametrize(
    "record",
    [
        event("NonPrivate"),
        event("Unsupported"),
        event("SampledWithReplacement", source_dataset_size=9, sample_size=3, event=STEP),
        event("RandomizedResponse", noise_parameter=0.0, num_buckets=2),
        42,
    ],
)
def test_what_has_no_theorem_is_refused(record: object) -> None:
    with pytest.raises(UnsupportedGuarantee):
        privacy.from_dp_accounting(record, relation="replace")


@pytest.mark.parametrize(
    "record",
    [
        "{",
        event("NoOp"),
        event("Gaussian"),
        event("Composed", events=STEP),
        event("Composed", events=[]),
        {"class_name": "SelfComposedDpEvent", "event": STEP, "count": 0},
        event("SampledWithoutReplacement", source_dataset_size=5, sample_size=6, event=STEP),
    ],
)
def test_damaged_records_are_refused(record: object) -> None:
    with pytest.raises(BadDescription):
        privacy.from_dp_accounting(record, relation="add-remove")


@pytest.mark.parametrize("noise", [0.0, -1.0, math.nan, "1", None, True])
def test_numbers_are_checked(noise: object) -> None:
    with pytest.raises(BadParameter):
        privacy.from_dp_accounting(event("Gaussian", noise_multiplier=noise), relation="add-remove")
    with pytest.raises(BadParameter):
        privacy.from_opacus([(noise, 0.01, 10)])


def test_the_relation_is_stated() -> None:
    with pytest.raises(BadParameter):
        privacy.from_dp_accounting(STEP, relation="either")
    nested: dict[str, Any] = STEP
    for _ in range(100):
        nested = event("Composed", events=[nested])
    with pytest.raises(BadDescription, match="nested"):
        privacy.from_dp_accounting(nested, relation="add-remove")


def test_histories_of_opacus() -> None:
    history = [(1.0, 0.01, 500), (1.0, 0.01, 500), (2.0, 0.02, 10)]
    expected = 1000 * privacy.gaussian(1.0).sampled(0.01) + 10 * privacy.gaussian(2.0).sampled(0.02)

    class Accountant:
        def __init__(self) -> None:
            self.history = history

    for given in (
        history,
        {"history": history, "mechanism": "rdp"},
        Accountant(),
        json.loads(json.dumps(history)),
    ):
        assert privacy.from_opacus(given) == expected
    for damaged in ([], {}, None, [(1.0, 0.01)], "history", [(1.0, 0.01, 10, 3)]):
        with pytest.raises(BadDescription):
            privacy.from_opacus(damaged)
    for wrong in ([(1.0, 2.0, 10)], [(1.0, 0.01, 0)], [(1.0, 0.01, 2.5)]):
        with pytest.raises(BadParameter):
            privacy.from_opacus(wrong)
