# SPDX-License-Identifier: Apache-2.0
"""`discreet statement` needs the ledger alone, and `discreet statement verify` exits with 0 or 5."""

from __future__ import annotations

import json

import pytest

from discreet.ledger import Ledger
from tests.cli import visits
from tests.ledger.test_statement import book, small

ABOUT = (
    '[statement]\nintended_use = "planning of wards"\npublication_date = 2026-11-01\nunits = 1200\ntier = 1\n'
)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    book(where=tmp_path / "a.ledger").close()
    (tmp_path / "about.toml").write_text(ABOUT, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("form", ["html", "md", "json"])
def test_what_was_written_is_verified(discreet, here, form):
    assert discreet(f"statement a.ledger --about about.toml --out told.{form}").code == 0
    done = discreet(f"statement verify told.{form} a.ledger")
    assert (done.code, done.err) == (0, "")
    assert "true as of entry 3, the last one" in " ".join(done.words.split())
    assert "planning of wards" in done.words
    with Ledger(here / "a.ledger") as ledger:
        ledger.charge(small(), question="later")
    later = discreet(f"statement verify told.{form} a.ledger --json")
    assert (later.code, later.object["holds"], later.object["later"]) == (0, True, 1)
    place = here / f"told.{form}"
    place.write_text(place.read_text(encoding="utf-8").replace("ε = 1 for", "ε = 0.1 for"), encoding="utf-8")
    changed = discreet(f"statement verify told.{form} a.ledger --json")
    assert (changed.code, changed.object["holds"]) == (5, False)
    assert {one["kind"] for one in changed.object["differences"]} == {"changed"}
    assert discreet(f"statement verify told.{form} a.ledger").code == 5


def test_what_a_person_says_is_in_the_registry_entry(discreet, here):
    found = json.loads(discreet("statement a.ledger --about about.toml --json").out)
    assert found["registry"]["basic"]["publication_date"] == "2026-11-01"
    assert found["registry"]["administrative"]["tier"] == 1
    assert found["unit"]["number"] == 1200


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("statement verify no.html a.ledger", 2, "DP105"),
        ("statement verify about.toml a.ledger", 2, "DP105"),
        ("statement verify a.ledger a.ledger", 2, "DP105"),
        ("statement verify about.toml no.ledger", 2, "DP603"),
        ("statement verify about.toml", 2, "DP107"),
        ("statement", 2, "DP107"),
        ("statement a.ledger --about no.toml", 2, "DP105"),
        ("statement a.ledger --about a.ledger", 2, "DP105"),
        ("statement a.ledger --about wrong.toml", 2, "DP403"),
        ("statement a.ledger --about field.toml", 2, "DP403"),
    ],
)
def test_what_cannot_be_read_is_refused(discreet, here, line, code, message):
    (here / "wrong.toml").write_text("units = 3\n", encoding="utf-8")
    (here / "field.toml").write_text("[statement]\ncurator = 'x'\n", encoding="utf-8")
    done = discreet(line)
    assert (done.code, done.err[:5]) == (code, message)


def test_a_release_file_says_what_a_person_knows(discreet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    visits.make(tmp_path)
    release = (tmp_path / "release.toml").read_text(encoding="utf-8")
    (tmp_path / "release.toml").write_text(f"{release}\n[statement]\ntier = 4\n", encoding="utf-8")
    refused = discreet("release release.toml --out tables")
    assert (refused.code, refused.err[:5]) == (2, "DP403")
    assert not (tmp_path / "visits.ledger").exists()
    (tmp_path / "release.toml").write_text(f"{release}\n{ABOUT}", encoding="utf-8")
    assert discreet("release release.toml --out tables").code == 0
    told = json.loads((tmp_path / "tables" / "statement.json").read_text(encoding="utf-8"))
    assert told["registry"]["basic"]["intended_use"] == "planning of wards"
    for form in ("html", "md", "json"):
        assert discreet(f"statement verify tables/statement.{form} visits.ledger").code == 0


def test_data_that_are_gone_lead_back_to_the_ledger(discreet, here):
    (here / "visits.toml").write_text(
        '[dataset]\nsource = "gone.parquet"\nname = "visits"\nunit = "patient_id"\n[limits]\nrows_per_unit = 2\n',
        encoding="utf-8",
    )
    done = discreet("statement a.ledger --data visits.toml")
    assert (done.code, done.err[:5]) == (2, "DP802")
    assert "discreet statement a.ledger " in done.err
    assert discreet("statement a.ledger").code == 0


def test_the_help_names_both(discreet):
    assert "discreet statement verify" in " ".join(discreet("statement --help").out.split())
    assert "status 5" in " ".join(discreet("statement verify --help").out.split())
