# SPDX-License-Identifier: Apache-2.0
"""What a reader gets: all of it on paper, cautions first, who drew the noise, and a registry entry that claims nothing by itself."""

from __future__ import annotations

import html
import re
from datetime import date

import numpy as np
import pandas as pd
import pytest

import discreet as dp
from discreet import privacy
from discreet.errors import BadParameter
from discreet.ledger import Ledger, Limit, Statement
from discreet.ledger.layers import ASSERTED, ENFORCED, NOT_COVERED
from discreet.ledger.registry import DECLARED, validate_declared
from tests.house.project import read, relative, source_files
from tests.ledger.test_statement import DESCRIPTION, book, forms, small
from tests.ledger.test_statement_check import LIMITS

SAID = {
    "intended_use": "planning of wards",
    "data_curator": "General Hospital",
    "publication_date": date(2026, 11, 1),
    "access_type": "Non-interactive",
    "post_processing": "rounded to tens",
    "justification": "agreed with the ethics board",
    "unprotected_quantities": "none",
    "utility": "wards of 100 patients or more are within 10 %",
    "model_name": "Central",
    "units": 1_200,
}


def sentences(facts):
    """Everything that is said in a whole sentence."""
    told = facts["words"] or {"sentences": [], "not_protected": []}
    yield from [
        facts["headline"],
        facts["claim"]["why"],
        *facts["cautions"],
        *told["sentences"],
        *told["not_protected"],
    ]
    yield from (line["words"] for layer in facts["layers"] for line in layer["lines"])
    yield from (text for part in facts["reading"] for text in part["sentences"])


def seen(page):
    """What a page shows: no style, no tags, no comments."""
    bare = re.sub(r"<style>.*?</style>|<!--.*?-->", "", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", bare)).split())


def lines(statement):
    return {line["what"]: line for layer in statement.to_dict()["layers"] for line in layer["lines"]}


# --- paper ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.kind)
def test_nothing_is_hidden_on_paper(limit):
    """An element that is closed, hidden or white on white would be lost in print."""
    statement = Statement.of(book(limit), DESCRIPTION, declared=SAID)
    page = statement.to_html()
    assert re.findall(r"<details|<dialog|\shidden|display:\s*none|visibility:\s*hidden|<template", page) == []
    assert re.findall(r"overflow:\s*hidden", re.sub(r"\.statement \.bar\{[^}]*\}", "", page)) == []
    assert re.findall(r"@media (?!screen and )\(prefers-color-scheme:\s*dark", page) == []
    shown = seen(page)
    assert [text for text in sentences(statement.to_dict()) if " ".join(text.split()) not in shown] == []
    assert ("What is not protected" in shown) == (statement.guarantee is not None)


def test_no_page_of_the_library_folds_anything_away():
    assert [relative(path) for path in source_files() if "<details" in read(path)] == []


def test_the_text_says_what_the_page_says():
    statement = Statement.of(book(), DESCRIPTION, declared=SAID)
    text = re.sub(r"\\(?=[\[`|])", "", html.unescape(statement.to_markdown()))
    assert [
        line
        for line in sentences(statement.to_dict())
        if " ".join(line.split()) not in " ".join(text.split())
    ] == []


# --- cautions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "units", "words"),
    [
        (Limit.filter(epsilon=100), None, "next to no protection"),
        (Limit.filter(epsilon=4), None, "little protection"),
        (Limit.filter(epsilon=1, delta=0.2), None, "δ = 0.2 is large"),
        (Limit.filter(epsilon=1, delta=1e-3), 1_000, "not below 1/1,000"),
        (Limit.filter(rho=50), None, "next to no protection"),
        (Limit.filter(mu=10), None, "next to no protection"),
        (Limit.plan(100 * small(1.0)), None, "next to no protection"),
        (Limit.odometer(delta=1e-6), None, "There is no limit"),
    ],
)
def test_little_protection_is_said_first_in_every_form(limit, units, words):
    statement = Statement.of(book(limit), declared=None if units is None else {"units": units})
    page, text, stored = forms(statement)
    assert [form for form in (page, text, stored) if words not in form] == []
    assert page.index(words) < page.index("Made 20")
    assert text.index(words) < text.index("## In plain words")


@pytest.mark.parametrize(("epsilon", "delta", "units"), [(1, 1e-6, 100_000), (0.5, 0.0, 10), (2, 1e-9, None)])
def test_no_caution_where_there_is_none_to_give(epsilon, delta, units):
    limit = Limit.filter(epsilon=epsilon, delta=delta) if delta else Limit.filter(epsilon=epsilon)
    assert Statement.of(book(limit), declared=units and {"units": units}).to_dict()["cautions"] == []


@pytest.mark.parametrize("units", [None, 50])
@pytest.mark.parametrize("delta", [0.0, 1e-9, 0.02, 0.5])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.5, 20.0, 100.0])
def test_a_guarantee_explains_how_little_it_protects(epsilon, delta, units):
    told = privacy.approximate(epsilon, delta, unit="patient").explain(units=units)
    weak = epsilon > 3 or delta >= 0.02
    assert bool(told.cautions) == weak
    assert all(f"Caution: {text}" in str(told) for text in told.cautions)
    assert all(html.escape(text) in told._repr_html_() for text in told.cautions)
    assert told.to_dict()["cautions"] == list(told.cautions)
    assert any("1/50" in text for text in told.cautions) == (units is not None and delta >= 0.02)


@pytest.mark.parametrize("units", [0, -1, 1.5, "many", float("nan"), True])
def test_the_number_of_units_is_a_whole_number(units):
    with pytest.raises(BadParameter, match=r"DP10[23]"):
        privacy.pure(1.0).explain(units=units)
    with pytest.raises(BadParameter, match=r"DP10[23]"):
        Statement.of(book(), declared={"units": units})


# --- who drew the noise --------------------------------------------------------------------------------


def visits(tmp_path):
    ids = np.arange(400) % 100
    pd.DataFrame({"patient_id": ids, "days": ids % 7}).to_parquet(tmp_path / "visits.parquet")
    return dp.open(tmp_path / "visits.parquet", protect=dp.each("patient_id", at_most=4, word="patient"))


def test_only_what_a_session_drew_is_enforced(tmp_path):
    where = tmp_path / "v.ledger"
    session = dp.Session(visits(tmp_path), limit=Limit.filter(epsilon=1), ledger=where)
    session.sql("SELECT COUNT(*) FROM visits", epsilon=0.1)
    session.release_batch({"a": ("SELECT COUNT(*) FROM visits", {"epsilon": 0.1})})
    session.release(dp.Laplace(epsilon=0.1, sensitivity=1, unit="patient"), 3.0)
    before = lines(session.statement())
    assert (
        before["noise"]["mark"]
        == before["charge first"]["mark"]
        == before["floating point"]["mark"]
        == ENFORCED
    )
    assert "drawn elsewhere" not in before
    session.charge(small(), question="a training run")
    session.ledger.charge(small(), question="another program", mechanism="Laplace")
    statement = session.statement()
    drawn = {line["question"]: line["noise"] for line in statement.to_dict()["released"]}
    assert drawn == {
        "SELECT COUNT(*) FROM visits": "drawn in a session",
        "Laplace": "drawn in a session",
        "a training run": "asserted",
        "another program": "asserted",
    }
    after = lines(statement)
    assert after["drawn elsewhere"]["mark"] == ASSERTED
    assert after["noise"]["words"].startswith("of the 3 drawn in a session: ")
    session.ledger.close()
    (tmp_path / "visits.parquet").unlink()
    alone = Statement.of(Ledger(where)).to_dict()
    assert alone["description"]["column"] == "patient_id"
    assert alone["layers"] == statement.to_dict()["layers"]


def test_a_ledger_of_charges_from_elsewhere_enforces_no_noise():
    ledger = Ledger(":memory:", limit=Limit.filter(epsilon=1), unit="patient", dataset="visits")
    assert lines(Statement.of(ledger))["noise"]["mark"] == NOT_COVERED
    ledger.charge(small(), question="imported", mechanism="DiscreteLaplace")
    found = lines(Statement.of(ledger))
    assert found["noise"]["mark"] == found["drawn elsewhere"]["mark"] == ASSERTED
    assert not {"charge first", "floating point"} & set(found)
    page, text, _ = forms(Statement.of(ledger))
    assert "<td>asserted</td>" in page
    assert "| asserted |" in text


# --- the registry --------------------------------------------------------------------------------------


def test_the_registry_entry_has_the_fields_of_the_registry_and_claims_no_tier():
    entry = Statement.of(book(), DESCRIPTION).to_dict()["registry"]
    assert list(entry) == [*DECLARED, "asserted", "missing"]
    assert entry["asserted"] == []
    assert entry["administrative"] == {
        "evidence_sources": None,
        "status": None,
        "registry_authors": None,
        "tier": None,
    }
    assert entry["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0, "delta": 0.0, "rho": None}
    assert entry["privacy_loss"]["privacy_unit"] == "patient"
    assert (
        "2 × pure(epsilon=0.1, unit='patient') (drawn in a session)" in entry["implementation"]["mechanisms"]
    )
    assert entry["implementation"]["composition"]
    person = ("basic.publication_date", "dp_variant.unprotected_quantities", "deployment_model.access_type",
              "implementation.post_processing", "implementation.justification", "administrative.tier")  # fmt: skip
    assert [field for field in person if field not in entry["missing"]] == []
    assert (
        Statement.of(book(Limit.filter(rho=0.5))).to_dict()["registry"]["privacy_loss"]["privacy_parameters"][
            "rho"
        ]
        == 0.5
    )


def test_what_a_person_says_is_theirs():
    statement = Statement.of(book(), declared={**SAID, "tier": 2})
    entry = statement.to_dict()["registry"]
    said = {
        f"{section}.{name}"
        for section, names in DECLARED.items()
        for name in names
        if name in {*SAID, "tier"}
    }
    assert set(entry["asserted"]) == said
    assert not said & set(entry["missing"])
    assert (entry["basic"]["publication_date"], entry["administrative"]["tier"]) == ("2026-11-01", 2)
    page, text, _ = forms(statement)
    assert "| basic.intended_use | planning of wards | asserted |" in text
    assert "Utility (asserted): wards of 100 patients" in page
    assert "number of patients, asserted: 1200" in page


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("words", "DP104"),
        ({"epsilon": 0.1}, "DP105"),
        ({"intended use": "x"}, "DP105"),
        ({"intended_use": ""}, "DP104"),
        ({"intended_use": 3}, "DP104"),
        ({"intended_use": "x" * 20_001}, "DP102"),
        ({"publication_date": "1.11.2026"}, "DP104"),
        ({"publication_date": 2026}, "DP104"),
        ({"tier": 0}, "DP105"),
        ({"tier": "gold"}, "DP105"),
        ({"units": 0}, "DP102"),
    ],
)
def test_a_field_that_is_not_one_is_refused(said, code):
    with pytest.raises(BadParameter, match=code):
        validate_declared(said)


# --- what else a reader asks ---------------------------------------------------------------------------


def test_no_digest_of_the_data_and_every_other_one(tmp_path):
    session = dp.Session(visits(tmp_path), limit=Limit.filter(epsilon=1), ledger=tmp_path / "v.ledger")
    session.sql("SELECT COUNT(*) FROM visits", epsilon=0.1)
    found = {part["title"]: part["sentences"] for part in session.statement().to_dict()["reading"]}
    assert [title for title, said in found.items() if not said] == []
    digests = " ".join(found["Digests"])
    assert session.ledger.anchor() in digests
    assert next(iter(session.ledger.versions())) in digests
    assert re.search(r"source files sha256 [0-9a-f]{64}", digests)
    assert "Data: no digest." in digests
    assert any("contributes at most 4 rows" in text for text in found["Known bias"])
    assert any("discreet statement verify" in text for text in found["How to verify this statement"])
