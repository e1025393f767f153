# SPDX-License-Identifier: Apache-2.0
"""A plan guarantees what its batches and its noise give, under the relation that they allow."""

from __future__ import annotations

import math

import pytest

from discreet import privacy
from discreet.errors import BadParameter
from discreet.learn.torch.plan import plan_of

PLAIN = {"size": 1000, "batch": 100, "steps": 7, "noise": 2.0}


def test_poisson_batches_have_the_guarantee_of_poisson_samples():
    assert plan_of(**PLAIN).guarantee == 7 * privacy.gaussian(2.0).sampled(0.1)
    replaced = plan_of(**PLAIN, relation="replace")
    assert replaced.guarantee == 7 * privacy.gaussian(2.0).sampled(0.1, relation="replace")


def test_fixed_batches_have_the_guarantee_of_samples_without_replacement():
    wanted = privacy.gaussian(2.0).sampled(0.1, "without-replacement", "replace")
    assert plan_of(**PLAIN, sampling="fixed").guarantee == 7 * wanted


def test_full_batches_compose_exactly():
    full = plan_of(size=1000, steps=7, noise=2.0, sampling="full")
    assert full.batch == 1000
    assert full.guarantee == 7 * privacy.gaussian(2.0)
    replaced = plan_of(size=1000, steps=7, noise=2.0, sampling="full", relation="replace")
    assert replaced.guarantee == 7 * privacy.gaussian(1.0, relation="replace")


def test_a_loader_pays_for_every_epoch_and_gains_nothing():
    loaded = plan_of(size=1000, batch=100, epochs=3, noise=2.0, per_epoch=10)
    assert (loaded.steps, loaded.rounds) == (30, 3)
    assert loaded.guarantee == 3 * privacy.gaussian(1.0, relation="replace")
    assert [loaded.rounds_of(steps) for steps in (0, 1, 10, 11)] == [0, 1, 1, 2]


@pytest.mark.parametrize(
    "settings",
    [
        {"size": 60_000, "batch": 256, "epochs": 2},
        {"size": 500, "batch": 50, "epochs": 3, "sampling": "fixed"},
        {"size": 500, "steps": 4, "sampling": "full"},
        {"size": 500, "batch": 50, "epochs": 3, "relation": "replace"},
        {"size": 500, "batch": 50, "epochs": 3, "per_epoch": 10},
    ],
)
def test_the_least_noise_that_keeps_epsilon_and_delta(settings):
    made = plan_of(**settings, epsilon=2, delta=1e-5)
    assert 1.99 < made.guarantee.epsilon(1e-5) <= 2


def test_epochs_are_covered_whole():
    assert plan_of(size=1000, batch=300, epochs=1, noise=1.0).steps == 4
    assert plan_of(size=1000, batch=100, epochs=0.3, noise=1.0).steps == 3
    assert plan_of(size=1000, batch=300, epochs=1, noise=1.0).per_epoch == 3


ODD = [0, -1, math.nan, math.inf, True, "3", None, 1j]


@pytest.mark.parametrize("name", ["size", "batch", "steps", "noise", "epsilon", "delta", "epochs"])
@pytest.mark.parametrize("bad", ODD, ids=repr)
def test_numbers_that_are_none_are_refused(name, bad):
    stated = {"size": 1000, "batch": 100, "steps": 7, "noise": 2.0}
    if name in {"epsilon", "delta"}:
        stated = {"size": 1000, "batch": 100, "steps": 7, "epsilon": 1.0, "delta": 1e-5}
    if name == "epochs":
        stated.pop("steps")
    with pytest.raises(BadParameter):
        plan_of(**(stated | {name: bad}))


@pytest.mark.parametrize(
    "settings",
    [
        PLAIN | {"batch": 1001},
        PLAIN | {"epochs": 3},
        PLAIN | {"epsilon": 1.0, "delta": 1e-5},
        {"size": 1000, "batch": 100, "steps": 7},
        {"size": 1000, "batch": 100, "steps": 7, "epsilon": 1.0},
        {"size": 1000, "batch": 100, "noise": 1.0},
        PLAIN | {"sampling": "fixed", "relation": "add-remove"},
        PLAIN | {"per_epoch": 10, "relation": "add-remove"},
        PLAIN | {"sampling": "shuffled"},
        PLAIN | {"relation": "neighbour"},
        PLAIN | {"noise": 1e-200},
    ],
)
def test_contradictions_are_refused(settings):
    with pytest.raises(BadParameter):
        plan_of(**settings)
