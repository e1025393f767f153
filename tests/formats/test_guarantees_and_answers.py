# SPDX-License-Identifier: Apache-2.0
"""What was written before stays readable: guarantees, answers and descriptions, stored by an earlier state of the library.

The files beside this one were written once and are never written again. A change that cannot read them, or reads
another meaning in them, breaks what people have stored.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import discreet as dp
from discreet import privacy
from discreet.tables.answer.answer import Answer

HERE = Path(__file__).parent
STORED = json.loads((HERE / "guarantees.json").read_text(encoding="utf-8"))
ANSWERS = json.loads((HERE / "answers.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("stored", STORED["guarantees"], ids=lambda stored: stored["name"])
def test_a_stored_guarantee_means_what_it_meant(stored):
    guarantee = privacy.from_json(stored["json"])
    assert guarantee.to_json() == stored["json"]
    assert repr(guarantee) == stored["repr"]
    for delta, epsilon in zip(STORED["delta"], stored["epsilon"], strict=True):
        expected = math.inf if epsilon is None else epsilon
        assert guarantee.epsilon(delta=delta) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("text", ANSWERS)
def test_a_stored_answer_is_shown_as_it_was(text):
    answer = Answer.from_json(text)
    assert json.loads(answer.to_json()) == json.loads(text)
    stored = json.loads(text)
    frame = answer.to_pandas()
    for name, column in stored["columns"].items():
        assert frame[name].tolist() == column["values"]
        assert frame[f"{name}_lo"].tolist() == column["lo"]
        assert frame[f"{name}_hi"].tolist() == column["hi"]
    assert answer.guarantee == privacy.from_json(json.dumps(stored["guarantee"]))


def test_a_stored_file_keeps_its_notes_and_its_guarantee():
    from pyarrow import parquet

    stored = json.loads(ANSWERS[0])
    metadata = parquet.read_schema(HERE / "answer.parquet").metadata
    assert privacy.from_json(metadata[b"discreet.guarantee"].decode()) == privacy.from_json(
        json.dumps(stored["guarantee"])
    )


def test_a_stored_description_opens_with_its_limit():
    data = dp.open(HERE / "clinic.toml")
    visits = data.tables["visits"]
    assert str(data.unit) == "one patient added or removed"
    assert visits.columns["days"].bounds == (0, 60)
    assert visits.columns["ward"].values == ("north", "south")
    session = dp.Session(data, analyst="ana")
    answer = session.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=0.1)
    assert answer.to_pandas()["ward"].tolist() == ["north", "south"]
    with pytest.raises(dp.errors.OverBudget):  # half of ε = 1 belongs to ana
        session.sql("SELECT COUNT(*) FROM visits", epsilon=0.5)
