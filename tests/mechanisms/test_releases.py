# SPDX-License-Identifier: Apache-2.0
"""A release carries all that its mechanism knows of the value, whoever drew it; and the value lies inside its interval."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet
from discreet import mechanisms as m
from discreet.ledger import Ledger, Limit
from discreet.ledger.description import Description
from discreet.mechanisms import queries
from discreet.mechanisms.combine import both
from discreet.mechanisms.mechanism import Mechanism
from discreet.session.account import SessionAccount
from tests.mechanisms.examples import EXAMPLES

SOURCES = sorted(Path(discreet.__file__).parent.rglob("*.py"))


#: Mechanisms whose error grows with the number of candidates or questions, which is public.
SIZED = {
    *("exponential mechanism", "noisy max", "top k", "permute and flip"),
    *("sparse vector", "sparse vector with numbers", "above threshold"),
}


def account(mechanism: Mechanism) -> SessionAccount:
    """A fresh ledger for whoever the mechanism protects."""
    limit = Limit.filter(epsilon=1e4, delta=0.5)
    ledger = Ledger(":memory:", limit=limit, unit=mechanism.unit, dataset="d")
    return SessionAccount(ledger, None, None, None, Description.of({"name": "d"}))


def test_only_the_mechanism_itself_builds_a_release():
    built = [
        (path.name, node.lineno)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", getattr(node.func, "attr", "")) == "Release"
        if "cli" not in path.parts  # a release of the command line is a file of questions
    ]
    assert [name for name, _ in built] == ["mechanism.py"], built


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_ledger_hands_on_what_the_mechanism_says(name):
    mechanism, data, _ = EXAMPLES[name]
    direct, charged = mechanism(data), account(mechanism).release(mechanism, data, None)
    assert charged.receipt is not None
    assert charged.private == direct.private
    assert charged.guarantee == direct.guarantee
    if charged.refused or direct.refused:
        return
    assert charged.error_unit == direct.error_unit == mechanism.error_unit
    assert repr(charged.error) == repr(direct.error)
    assert (charged.interval is None) == (direct.interval is None)
    assert [line for line, _ in charged._lines()] == [line for line, _ in direct._lines()]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_error_of_a_release_depends_on_nothing_but_the_length_of_the_data(name):
    mechanism, data, neighbour = EXAMPLES[name]
    if isinstance(data, list) and not hasattr(data[0], "__len__"):
        neighbour = [data[0]] * len(data)  # as far away as data of the same length can be
    first, second = mechanism(data), mechanism(neighbour)
    if first.refused or second.refused:
        return
    alike = not hasattr(data, "__len__") or len(data) == len(neighbour)
    assert repr(first.error) == repr(second.error) or not alike
    if name not in SIZED:
        assert repr(first.error) == repr(mechanism.error())


def test_noise_whose_size_is_secret_shows_no_error():
    for data in ([1.0] * 50, [0.0] * 25 + [100.0] * 25):
        release = m.smooth.median(data, bounds=(0, 100), epsilon=1.0)
        assert (release.error, release.interval) == (None, None)


def test_an_error_in_records_says_so_through_a_ledger_and_in_company():
    median = m.Median(bounds=(0, 100), epsilon=1.0, step=1)
    charged = account(median).release(median, [3.0, 4.0, 5.0], None)
    assert f"{charged.error:.6g} records" in str(charged)
    assert both(median, median).error_unit == "records"
    mixed = both(median, m.ExponentialMechanism(epsilon=1, sensitivity=1))
    assert mixed.error_unit == "(records, below the best score)"
    assert (
        both(m.Laplace(epsilon=1, sensitivity=1), median).error_unit == "(in the unit of the value, records)"
    )


def pairs(value: Any, low: Any, high: Any):
    """Numbers with their ends, out of whatever they are packed in."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from pairs(inner, low[key], high[key])
    elif isinstance(value, tuple) and not hasattr(value, "bound"):
        for three in zip(value, low, high, strict=True):
            yield from pairs(*three)
    else:
        number = getattr(value, "value", value)
        yield from zip(*(np.atleast_1d(part).tolist() for part in (number, low, high)), strict=True)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_value_lies_inside_its_interval(name):
    mechanism, data, _ = EXAMPLES[name]
    for _ in range(20):
        release = mechanism(data)
        if release.refused or release.interval is None:
            continue
        assert all(lo <= x <= hi for x, lo, hi in pairs(release.value, *release.interval))


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 300.0])
@pytest.mark.parametrize("records", [[], [0.0], [60.0] * 5, [0.0, 30.0, 60.0] * 50], ids=len)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_a_query_lies_inside_its_interval_however_few_the_records_and_large_the_noise(
    records, epsilon, relation
):
    asked = [queries.count(), queries.sum((0, 60)), queries.mean((0, 60)), queries.variance((0, 60))]
    for query in asked:
        if relation not in query.relations:
            continue
        mechanism = query.laplace(epsilon=epsilon, relation=relation)
        for _ in range(20):
            release = mechanism(records)
            assert all(lo <= x <= hi for x, lo, hi in pairs(float(release.value), *release.interval))
