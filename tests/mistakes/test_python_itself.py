# SPDX-License-Identifier: Apache-2.0
"""Slips that Python refuses before the library is asked: its message names the word, and nothing is read or spent."""

from __future__ import annotations

import pytest

from tests.mistakes.clinic import SECRETS, Here

COUNT = '"SELECT COUNT(*) FROM visits"'


@pytest.fixture
def here(visits, folder):
    return Here(data=visits)


@pytest.mark.parametrize(
    ("slip", "word"),
    [
        ("dp.Session(data, epsilon=1)", "epsilon"),
        (f"session.sql({COUNT}, 1)", "positional"),
        (f"data.sql({COUNT})", "sql"),
        ('data.groupby("ward").count()', "groupby"),
        ('data.mean("days", bounds=(0, 60))', "bounds"),
        ('dp.each("patient_id", atmost=20)', "atmost"),
        ("dp.Laplace(1, 1)", "positional"),
        ("dp.Laplace(epsilon=1, sensitivity=1, seed=3)", "seed"),
        ("dp.Gaussian(sigma=1, sensitivity=1)", "sigma"),
        ("float(data.count())", "Prepared"),
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
