# SPDX-License-Identifier: Apache-2.0
"""No fix changes who is protected: every one that the other tests here provoke, and every one that is written anywhere."""

from __future__ import annotations

import ast
import re

import pyarrow as pa
import pytest

import discreet as dp
from discreet import graphs, privacy
from discreet.errors import DiscreetError
from discreet.ledger import Ledger, Limit
from tests.house.project import read, relative, source_files
from tests.mistakes.mistakes import weakened

#: Words that no fix has: they would count the same people twice, or other people in their place.
NEVER = re.compile(
    r"another\.ledger|(new|fresh|second) ledger|(delete|remove) (the|this|your) ledger|"
    r"(smaller|greater|larger) at_most|or +protect=dp\.each_row\(\)"
)


def fixes(text):
    """Every text that is handed over as a fix."""
    for node in ast.walk(ast.parse(text)):
        named = (
            [word.value for word in node.keywords if word.arg == "fix"] if isinstance(node, ast.Call) else []
        )
        if isinstance(node, ast.Assign) and any(
            isinstance(to, ast.Name) and to.id == "fix" for to in node.targets
        ):
            named.append(node.value)
        for value in named:
            yield "".join(
                part.value
                for part in ast.walk(value)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )


@pytest.mark.parametrize("path", source_files(), ids=relative)
def test_no_fix_that_is_written_down_forgets_what_was_spent(path):
    assert [fix for fix in fixes(read(path)) if NEVER.search(fix)] == []


def test_the_rules_see_a_fix_that_weakens():
    assert list(fixes("f(fix=f'a{b}c')")) == ["ac"]
    assert NEVER.search("take a file of its own:  ledger='another.ledger'")
    assert weakened('protect=dp.each("oid", at_most=…)', 'dp.each("uid", at_most=3)') == ["oid"]
    assert weakened('protect=dp.each("uid", at_most=9)', 'dp.each("uid", at_most=3)') == ["9"]
    assert weakened("relation='replace'", "privacy.pure(1)") == ["replace"]
    assert weakened("relation='replace', only if who takes part may be known", "privacy.pure(1)") == []
    assert weakened("relation='add-remove'", "privacy.pure(1, relation='replace')") == ["add-remove"]
    assert weakened("protect=dp.each_row()", 'dp.each("uid", at_most=3)') == ["each_row"]
    assert weakened("take a fresh ledger", "") != []
    assert weakened('protect=dp.each("patient_id", at_most=…)', 'dp.each("Patient ID", at_most=3)') == []
    assert weakened("pass relation='add-remove'  or  relation='replace'", "relation='swap'") == []


@pytest.mark.parametrize("unit", ["uid", "u", "order", "OLD", "id"])
def test_a_missing_unit_is_not_exchanged_for_a_similar_one(unit):
    orders = pa.table({"oid": [1, 2, 3], "old": [1, 1, 2], "order_id": [1, 2, 3]})
    with pytest.raises(DiscreetError) as refused:
        dp.open({"orders": orders}, protect=dp.each(unit, at_most=3))
    assert ("each(" in refused.value.fix) is (unit == "OLD")
    assert weakened(refused.value.fix, f'dp.each("{unit}", at_most=3)') == []


@pytest.mark.parametrize(
    "wrong",
    [
        "Ledger('patients.ledger', limit=limit, unit='visit', dataset='visits')",
        "Ledger('patients.ledger', limit=limit, dataset='visits of June')",
        "dp.Session(by_visit, ledger=Ledger('patients.ledger'))",
        "dp.Session(by_visit, ledger='patients.ledger')",
        "dp.Session(replaced, ledger='patients.ledger')",
        "dp.Session(by_row, ledger='patients.ledger')",
        "Ledger('patients.ledger').charge(privacy.pure(0.1, unit='visit'))",
        "Ledger('patients.ledger').charge(privacy.pure(0.1, unit='patient', relation='replace'))",
        "privacy.pure(1, unit='patient') + privacy.pure(1, unit='visit')",
        "graphs.EdgeCount(epsilon=1, unit='person')",
        "dp.mechanisms.PartitionSelection(epsilon=1, delta=1e-6, relation='replace')",
        "dp.open(visits)",
    ],
)
def test_a_fix_keeps_whom_the_ledger_protects(wrong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    limit = Limit.filter(epsilon=1)
    visits = pa.table({"patient": [1, 1, 2], "visit": [1, 2, 3]})
    Ledger("patients.ledger", limit=limit, unit="patient", dataset="visits").charge(
        privacy.pure(0.1, unit="patient")
    )
    opened = {
        "by_visit": dp.each("visit", at_most=1),
        "replaced": dp.each("patient", at_most=1, relation="replace"),
        "by_row": dp.each_row(),
    }
    words = {name: dp.open({"visits": visits}, protect, name="visits") for name, protect in opened.items()}
    words |= {
        "dp": dp,
        "privacy": privacy,
        "graphs": graphs,
        "Ledger": Ledger,
        "limit": limit,
        "visits": visits,
    }
    with pytest.raises(DiscreetError) as refused:
        eval(wrong, words)
    stated = {"by_row": "each_row", "replaced": ""}.get(wrong[11:].partition(",")[0], wrong)
    ledger = "unit='patient', relation='add-remove' " if "patients" in wrong else ""
    assert weakened(refused.value.fix, ledger + stated.replace("relation='replace'", "")) == [], str(
        refused.value
    )
    if "patients" in wrong:
        assert "visit'" not in refused.value.fix
