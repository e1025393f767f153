# SPDX-License-Identifier: Apache-2.0
"""What a question does to its own numbers is said beside them: inner clipping, and choices by noisy numbers."""

from __future__ import annotations

import pytest

import discreet as dp
from discreet.errors import DiscreetError

pa = pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")

PER_PATIENT = (
    "(SELECT patient_id, COUNT(*) AS n, SUM(days) AS s, MAX(days) AS m FROM visits GROUP BY patient_id) AS p"
)


@pytest.fixture(scope="module")
def session():
    visits = pa.table(
        {"patient_id": [1, 1, 2], "ward": ["A", "B", "A"], "days": [3.5, 4, 5], "code": ["xa", "xb", "ya"]}
    )
    data = dp.open(
        {"visits": visits},
        protect=dp.each("patient_id", at_most=20, word="patient"),
        columns={"days": dp.column(bounds=(0, 60.5)), "ward": dp.column(values=["A", "B"])},
    )
    return dp.Session(data, limit=dp.Limit.filter(epsilon=1e6, delta=0.1))


@pytest.mark.parametrize(
    ("text", "clipped"),
    [
        (f"SELECT AVG(n) FROM {PER_PATIENT}", "n to [0, 20]."),
        (f"SELECT AVG(s), SUM(n) FROM {PER_PATIENT}", "s to [0, 1210], n to [0, 20]."),
        # A condition compares the number as it is.
        (f"SELECT COUNT(*) FROM {PER_PATIENT} WHERE s > 10 AND n > 30", ""),
        # That is a value of one row, clipped like any other.
        (f"SELECT AVG(m) FROM {PER_PATIENT}", ""),
        (
            "SELECT n, COUNT(*) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY 1) AS p GROUP BY n",
            "n to [0, 20].",
        ),
        (
            "SELECT AVG(s) FROM (SELECT patient_id, SUM(days) OVER (PARTITION BY patient_id) AS s FROM visits) AS p",
            "to [0, 1210].",
        ),
        ("SELECT AVG(days) FROM visits", ""),
    ],
)
def test_inner_counts_and_sums_are_said_to_be_clipped(session, text, clipped):
    notes = [
        note for note in session.sql(text, epsilon=1).notes if "numbers of one patient are clipped" in note
    ]
    assert [clipped in note for note in notes] == ([True] if clipped else [])
    assert [note for note in session.preview(text, epsilon=1).notes if note in notes] == notes


@pytest.mark.parametrize(
    ("text", "chosen", "totals"),
    [
        ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING n > 2", "HAVING chose", False),
        (
            "SELECT ward, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS t FROM visits GROUP BY ward HAVING n > 2",
            "HAVING chose",
            True,
        ),
        (
            "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward QUALIFY RANK() OVER (ORDER BY n) = 1",
            "QUALIFY chose",
            False,
        ),
        (
            "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC LIMIT 1",
            "LIMIT chose",
            False,
        ),
        (
            "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING n > 2 ORDER BY n LIMIT 1",
            "HAVING and LIMIT chose",
            False,
        ),
        # Keys are public: a choice among them says nothing of the numbers.
        ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward LIMIT 1", "", False),
        ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING ward <> 'B'", "", False),
    ],
)
def test_a_choice_by_noisy_numbers_is_said(session, text, chosen, totals):
    notes = session.sql(text, epsilon=1).notes
    assert [note.startswith(chosen) for note in notes if "chose these groups" in note] == (
        [True] if chosen else []
    )
    assert any("that HAVING left" in note for note in notes) == totals


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (
            "SELECT SUBSTR(code, 1, 1) AS c, COUNT(*) FROM visits GROUP BY 1",
            "GROUP BY CASE SUBSTR(code, 1, 1) WHEN 'A' THEN 'A'",
        ),
        ("SELECT code AS c, COUNT(*) FROM visits GROUP BY 1", "WHERE code IN ('A', 'B')"),
    ],
)
def test_the_fix_for_private_keys_names_what_was_written(session, text, fix):
    with pytest.raises(DiscreetError) as refused:
        session.sql(text, epsilon=1)
    assert fix in refused.value.fix
    listed = refused.value.fix.split("list them:  ")[1].split("   or state")[0]
    assert len(session.sql(f"SELECT COUNT(*) FROM visits {listed}", epsilon=1)) > 0


def test_the_fix_for_several_private_keys_lists_both(session):
    with pytest.raises(DiscreetError) as refused:
        session.sql("SELECT code, UPPER(code) AS u, COUNT(*) FROM visits GROUP BY code, u", epsilon=1)
    assert "WHERE code IN ('A', 'B')   GROUP BY CASE UPPER(code) WHEN 'A'" in refused.value.fix
