# SPDX-License-Identifier: Apache-2.0
"""Ledgers of every kind of limit, and statements of them, that an earlier state of this release wrote, are read today.

`ledgers/*.sql` are dumps of SQLite files, `expected.json` what the code that wrote them said of each, and `*.json`, `*.md` and
`*.html` statements that it made. They stay as they are: what is changed is the code that reads them.
"""

from __future__ import annotations

import json
import math
import sqlite3
from pathlib import Path

import pytest

from discreet import privacy
from discreet.ledger import Asker, Entry, Ledger, Limit, chain, verify_statement

LEDGERS = Path(__file__).with_name("ledgers")
EXPECTED = json.loads((LEDGERS / "expected.json").read_text(encoding="utf-8"))
STATEMENTS = sorted(
    path.name
    for path in LEDGERS.iterdir()
    if path.suffix in {".json", ".md", ".html"} and path.stem in EXPECTED
)


@pytest.fixture
def restore(tmp_path, monkeypatch):
    """Makes the SQLite file of a dump, and sets the clock to when it was dumped."""

    def restored(name: str) -> Path:
        monkeypatch.setattr(chain, "now", lambda: EXPECTED[name]["now"])
        path = tmp_path / f"{name}.ledger"
        with sqlite3.connect(path) as connection:
            connection.executescript((LEDGERS / f"{name}.sql").read_text(encoding="utf-8"))
        connection.close()
        return path

    return restored


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_ledger_is_opened_and_verified(name, restore):
    expected = EXPECTED[name]
    with Ledger(restore(name), limit=Limit.from_dict(expected["limit"]), unit="patient") as ledger:
        verification = ledger.verify(anchor=expected["anchor"])
        assert verification.intact
        assert not [finding for finding in verification.findings if finding.code in {"W4", "W5"}]
        assert (len(ledger), ledger.anchor()) == (expected["rows"], expected["anchor"])
        assert ledger.limit.to_dict() == expected["limit"]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_it_shows_what_was_spent_and_what_remains(name, restore):
    expected = EXPECTED[name]
    with Ledger(restore(name)) as ledger:
        assert ledger.spent.to_dict() == expected["spent"]
        for view in expected["views"].values():
            budget = ledger.budget(Asker(**view["who"]))
            assert [
                {"total": str(track.total), "spent": str(track.spent), "remaining": str(track.remaining)}
                for track in budget.tracks
            ] == view["tracks"]
            assert budget.spent_fraction == view["spent_fraction"]
            assert budget.remaining_fraction == view["remaining_fraction"]
            assert {
                unit: None if amount == math.inf else amount for unit, amount in budget.remaining.items()
            } == view["remaining"]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_it_guarantees_what_it_did(name, restore):
    expected = EXPECTED[name]
    with Ledger(restore(name)) as ledger:
        spent, limit = ledger.guarantee, ledger.limit.guarantee_for(ledger.unit)
        assert (None if spent is None else spent.to_json()) == expected["guarantee"]
        assert (None if limit is None else limit.to_json()) == expected["limit_guarantee"]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_its_answers_are_found_and_it_is_charged_again(name, restore):
    expected = EXPECTED[name]
    with Ledger(restore(name)) as ledger:
        for key, answer in expected["answers"].items():
            found = ledger.find_for_all(key)
            assert isinstance(found, Entry)
            assert found.answer == answer
        rows, guarantee = len(ledger), privacy.gaussian(400.0, unit="patient")
        if name in {"basic", "pure", "windows-shares", "windows-alone"}:
            guarantee = privacy.pure(0.001, unit="patient")
        receipt = ledger.charge(
            guarantee, question="one more?", key="one more", asker=Asker(**expected["people"][0])
        )
        assert ledger.commit(receipt, "[7]") == "[7]"
        assert len(ledger) == rows + 2
        assert ledger.spent != expected["spent"]
        assert ledger.verify(anchor=expected["anchor"]).intact


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_is_verified(name, restore):
    text = (LEDGERS / name).read_text(encoding="utf-8")
    with Ledger(restore(Path(name).stem)) as ledger:
        check = verify_statement(text, ledger)
        assert check.holds, str(check)


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_that_was_changed_is_not(name, restore):
    text = (LEDGERS / name).read_text(encoding="utf-8")
    with Ledger(restore(Path(name).stem)) as ledger:
        for old, new in [
            ("1e-06", "1e-09"),
            ("0.05", "0.04"),
            ("patient", "visit"),
            ("enforced", "asserted"),
        ]:
            if old in text:
                head, _, tail = text.partition(old)
                assert not verify_statement(head + new + tail, ledger).holds, (old, new)
