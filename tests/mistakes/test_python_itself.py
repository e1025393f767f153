# SPDX-License-Identifier: Apache-2.0
"""Slips that Python refuses before the library is asked: its message names the word, and nothing is read or spent."""

from __future__ import annotations

import pytest

from discreet.errors import DiscreetError
from tests.mistakes.clinic import SECRETS

COUNT = '"SELECT COUNT(*) FROM visits"'


@pytest.mark.parametrize(
    ("slip", "word"),
    [
        (f"data.sql({COUNT})", "sql"),
        ('data.groupby("ward").count()', "groupby"),
        ("float(data.count())", "AggregateQuery"),
        ("len(data)", "Dataset"),
    ],
)
def test_python_says_it(slip, word, here):
    before = here.spent()
    with pytest.raises((TypeError, AttributeError)) as refused:
        here.run(slip)
    assert word in str(refused.value)
    assert not any(secret in str(refused.value) for secret in SECRETS)
    assert here.spent() == before


@pytest.mark.parametrize(
    ("slip", "code", "word"),
    [
        ("dp.Session(data, epsilon=1)", "DP105", "epsilon"),
        (f"session.sql({COUNT}, 1)", "DP107", "without a name"),
        (f"session.sql({COUNT}, epsilom=1)", "DP105", "epsilon="),
        (f"session.preview({COUNT}, epsilom=1)", "DP105", "epsilon="),
        ('data.mean("days", bounds=(0, 60))', "DP105", "bounds"),
        ('dp.each("patient_id", atmost=20)', "DP105", "at_most="),
        ("dp.Laplace(1, 1)", "DP107", "without a name"),
        ("dp.Laplace(epsilon=1)", "DP107", "sensitivity"),
        ("dp.Laplace(epsilon=1, sensitivity=1, seed=3)", "DP105", "seed"),
        ("dp.Gaussian(sigma=1, sensitivity=1)", "DP105", "sigma"),
        ("dp.Gaussian(epsilon=1, sensitivity=1)", "DP107", "delta"),
        ("privacy.approximate(1)", "DP107", "delta"),
        ("privacy.gaussian(nois=1)", "DP105", "noise="),
        ("dp.Unit(protect='patient')", "DP105", "protects="),
    ],
)
def test_the_library_says_it_with_a_code(slip, code, word, here):
    before = here.spent()
    with pytest.raises(DiscreetError) as refused:
        here.run(slip)
    assert refused.value.code == code, str(refused.value)
    assert word in str(refused.value)
    assert not any(secret in str(refused.value) for secret in SECRETS)
    assert here.spent() == before
