# SPDX-License-Identifier: Apache-2.0
"""A statement is made again from its ledger: whatever was changed, dropped or added is found, and later entries are told apart."""

from __future__ import annotations

import copy
import json
import re
import sqlite3

import pytest

from discreet import privacy
from discreet.errors import BadDescription, BadParameter, LedgerDamaged
from discreet.ledger import Asker, Ledger, Limit, Statement, chain, statement_check, verify_statement
from tests.ledger.test_statement import DESCRIPTION, book, small

FORMS = {
    "html": lambda made: made.to_html(),
    "md": lambda made: made.to_markdown(),
    "json": lambda made: made.to_json(),
}
DECLARED = {"intended_use": "planning of wards", "units": 1_200, "publication_date": "2026-11-01"}


@pytest.fixture(autouse=True)
def made_once(monkeypatch):
    """What a ledger gives for the same words is the same, so it is made once and not for every change of a page."""
    known, made_with, to_html = {}, Statement.made_with, Statement.to_html

    def remembered(ledger, making):
        key = ledger.anchor(), json.dumps(making.to_dict(), sort_keys=True)
        if key not in known:
            known[key] = made_with(ledger, making)
        return known[key]

    def page(statement):
        key = id(statement)
        if key not in known:
            known[key] = to_html(statement), statement
        return known[key][0]

    monkeypatch.setattr(statement_check.Statement, "made_with", remembered)
    monkeypatch.setattr(statement_check.Statement, "to_html", page)


@pytest.fixture(scope="module")
def ledger():
    made = book(Limit.filter(epsilon=1, delta=1e-6))
    made.charge(small(), question="drawn elsewhere", asker=Asker(analyst="bo"))
    return made


def written(ledger, form, **more):
    return FORMS[form](Statement.of(ledger, DESCRIPTION, declared=DECLARED, **more))


def is_refused(text, ledger):
    """Whether a page is not believed: it differs, or it is no statement at all."""
    try:
        return not verify_statement(text, ledger).holds
    except (BadParameter, BadDescription):
        return True


LIMITS = [
    Limit.filter(epsilon=1),
    Limit.filter(rho=0.5),
    Limit.filter(mu=1),
    Limit.filter(epsilon=1, analysts={"ana": 0.5, "bo": 0.25}),
    Limit.filter(epsilon=1, delta=1e-6, window="month", lifetime=Limit.filter(epsilon=5, delta=1e-5)),
    Limit.filter(epsilon=1, window="month"),
    Limit.plan(3 * small()),
    Limit.odometer(delta=1e-6),
]


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.kind)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("answers", [False, True])
def test_a_statement_holds_whatever_the_limit_and_however_it_was_made(limit, form, answers):
    ledger = book(limit)
    found = verify_statement(written(ledger, form, answers=answers), ledger)
    assert (found.holds, found.form, found.later, found.differences) == (True, form, 0, ())
    assert found.verdict == f"The statement is true as of entry {len(ledger) - 1}, the last one."
    assert any("planning of wards" in line for line in found.asserted)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("limit", LIMITS[:1] + LIMITS[3:6] + LIMITS[7:], ids=lambda limit: limit.kind)
def test_later_entries_make_it_no_less_true(form, limit):
    ledger = book(limit)
    text = written(ledger, form)
    ledger.charge(small(), question="a later one", asker=Asker(analyst="ana"))
    ledger.commit(ledger.charge(small(0.05), question="and another", asker=Asker(analyst="ana")), "{}")
    found = verify_statement(text, ledger)
    assert (found.holds, found.later, found.rows) == (True, 3, len(ledger) - 3)
    assert "true as of entry" in found.verdict
    assert "3 rows were added" in found.verdict


def other_digits(text):
    return re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), text)


def test_every_piece_of_a_page_is_compared(ledger):
    """Each piece of text with other digits, and each piece, tags too, left out; of equal pieces the first."""
    pieces = re.split(r"(<[^>]*>)", written(ledger, "html"))
    places = {
        piece: at for at, piece in reversed(list(enumerate(pieces))) if piece.strip() and piece[:4] != "<!--"
    }
    changed = [
        (at, other) for piece, at in places.items() for other in (other_digits(piece), "") if other != piece
    ]
    believed = [
        (pieces[at], other)
        for at, other in changed
        if not is_refused("".join([*pieces[:at], other, *pieces[at + 1 :]]), ledger)
    ]
    assert believed == []
    assert len(changed) > 300


def test_every_line_of_a_text_is_compared(ledger):
    lines = written(ledger, "md").splitlines()
    changed = [
        (at, other)
        for at, line in enumerate(lines)
        for other in ([other_digits(line)], [f"{line}x"], [line, "more"], [])
        if other != [line] and (line or other)
    ]
    believed = [
        (lines[at], other)
        for at, other in changed
        if not is_refused("\n".join([*lines[:at], *other, *lines[at + 1 :]]), ledger)
    ]
    assert believed == []
    assert len(changed) > 300


def leaves(value, path=()):
    """Every place of an object, those of its parts included."""
    yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        yield from leaves(part, (*path, name))


def test_every_value_of_an_object_is_compared(ledger):
    told = json.loads(written(ledger, "json"))
    believed = []
    for path in [path for path in leaves(told) if path]:
        for change in ("drop", "other"):
            changed = copy.deepcopy(told)
            inside = changed
            for name in path[:-1]:
                inside = inside[name]
            value = inside[path[-1]]
            if change == "drop":
                del inside[path[-1]]
            elif isinstance(value, bool):
                inside[path[-1]] = not value
            else:
                inside[path[-1]] = value + 1 if isinstance(value, int | float) else "other"
            if not is_refused(json.dumps(changed), ledger):
                believed.append((path, change))
    assert believed == []


def test_what_is_equal_and_looks_otherwise_is_no_difference(ledger):
    told = json.loads(written(ledger, "json"))
    assert verify_statement(json.dumps(told, indent=None, sort_keys=True), ledger).holds
    page = written(ledger, "md")
    assert verify_statement("\ufeff" + page.replace("\n", "\r\n") + "\n\n", ledger).holds


def test_a_name_that_stands_twice_is_no_statement(ledger):
    text = written(ledger, "json")
    assert is_refused(text.replace("{", '{"headline": "ε = 0.1",', 1), ledger)


def test_a_dropped_entry_a_changed_figure_and_an_added_line_are_told_apart(ledger):
    told = json.loads(written(ledger, "json"))
    dropped = {**told, "released": told["released"][1:]}
    found = verify_statement(json.dumps(dropped), ledger)
    assert ("missing", "entry 1: SELECT COUNT(*) FROM visits") in [
        (d.kind, d.ledger) for d in found.differences
    ]
    changed = {**told, "headline": "ε = 0.1"}
    (only,) = verify_statement(json.dumps(changed), ledger).differences
    assert (only.kind, only.statement) == ("changed", "headline: ε = 0.1")
    (only,) = verify_statement(json.dumps({**told, "seal": "approved"}), ledger).differences
    assert (only.kind, only.statement) == ("added", "seal: approved")
    lines = written(ledger, "md").splitlines()
    row = next(line for line in lines if line.startswith("| #1 "))
    (only,) = verify_statement("\n".join(line for line in lines if line != row), ledger).differences
    assert (only.kind, only.ledger[:10]) == ("missing", row[:10])
    again = "\n".join(line.replace("ε = 1 at", "ε = 0.1 at") for line in lines)
    assert {d.kind for d in verify_statement(again, ledger).differences} == {"changed"}


@pytest.mark.parametrize("form", FORMS)
def test_another_ledger_or_one_that_was_put_back_is_found(form, tmp_path):
    where, copied = tmp_path / "a.ledger", tmp_path / "b.ledger"
    first = book(where=where)
    first.close()
    copied.write_bytes(where.read_bytes())
    with Ledger(where) as later:
        later.charge(small())
        text = written(later, form)
    assert verify_statement(text, Ledger(where)).holds
    cut = verify_statement(text, Ledger(copied))
    assert [d.kind for d in cut.differences] == ["added"]
    assert "put back or cut off" in str(cut)
    other = verify_statement(text, book(where=tmp_path / "c.ledger"))
    assert not other.holds
    assert "this is the ledger" in str(other)


def test_a_row_that_was_exchanged_is_found(tmp_path):
    """A copy that went on otherwise has other rows under the same numbers."""
    where, copied = tmp_path / "a.ledger", tmp_path / "b.ledger"
    book(where=where).close()
    copied.write_bytes(where.read_bytes())
    with Ledger(where) as one, Ledger(copied) as other:
        one.charge(small(), question="what was asked")
        other.charge(small(), question="what is said now")
        text = written(one, "json")
        found = verify_statement(text, other)
    assert not found.holds
    assert any("what is said now" in str(d) for d in found.differences)


def test_a_damaged_ledger_verifies_nothing(tmp_path):
    where = tmp_path / "a.ledger"
    made = book(where=where)
    text = written(made, "md")
    made.close()
    with sqlite3.connect(where) as file:
        for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            file.execute(f"DROP TRIGGER {name}")
        file.execute("UPDATE ledger_entries SET body = replace(body, 'COUNT', 'COUMT') WHERE number = 1")
    with pytest.raises(LedgerDamaged):
        verify_statement(text, Ledger(where))


def test_another_version_is_refused_with_a_line_to_paste(ledger, monkeypatch):
    text = written(ledger, "html")
    monkeypatch.setattr(chain, "version", lambda: "9.9.9")
    with pytest.raises(BadDescription, match="DP402") as caught:
        verify_statement(text, ledger)
    assert caught.value.fix.startswith("pip install discreet==")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"making": 1}',
        '{"making": {"rows": 0}}',
        "# Privacy statement",
        "<!doctype html><p>x</p>",
        "\0",
    ],
)
def test_what_is_no_statement_is_refused(text, ledger):
    with pytest.raises(BadParameter, match="DP105"):
        verify_statement(text, ledger)


@pytest.mark.parametrize("text", [None, b"{}", 3])
def test_a_statement_is_text(text, ledger):
    with pytest.raises(BadParameter, match="DP104"):
        verify_statement(text, ledger)


def test_words_that_could_end_the_hidden_block_do_not(ledger):
    evil = "--> <script>alert(1)</script> <!-- discreet statement {} -->"
    for form, write in FORMS.items():
        text = write(Statement.of(ledger, declared={"intended_use": evil}))
        assert verify_statement(text, ledger).holds
        assert form == "json" or "<script" not in text


@pytest.mark.parametrize("form", FORMS)
def test_a_question_that_looks_like_the_hidden_block_is_only_a_question(form, tmp_path):
    ledger = book()
    lookalike = Statement.of(book()).provenance.block()
    ledger.charge(
        small(),
        question=lookalike,
        asker=Asker(analyst="a -->", purpose="line\n# a heading\n\n<!-- discreet statement {} -->"),
    )
    text = written(ledger, form)
    assert verify_statement(text, ledger).holds
    assert form != "md" or "\n# a heading" not in text
    ledger.charge(small(), question="SELECT 1\r\nFROM a\rWHERE\n\n\u2028 b  \n", asker=Asker(purpose="\r\n"))
    kept = tmp_path / "told"
    kept.write_text(written(ledger, form), encoding="utf-8")
    assert verify_statement(kept.read_text(encoding="utf-8"), ledger).holds


def test_a_page_of_something_else_is_refused_in_a_moment(ledger):
    lines = written(ledger, "md").splitlines()
    long = "\n".join([lines[0], *(f"line {number}" for number in range(200_000)), *lines[-1:]])
    assert not verify_statement(long, ledger).holds


def test_what_was_charged_under_a_description_needs_no_data(tmp_path):
    """The ledger is enough: the description comes from its rows, and is the same as if it had been given."""
    ledger = Ledger(
        tmp_path / "a.ledger",
        limit=Limit.filter(epsilon=1),
        unit="patient",
        dataset="visits",
        description=DESCRIPTION,
    )
    ledger.charge(privacy.pure(0.1, unit="patient"), question="q", description=DESCRIPTION, compiled=True)
    alone, given = Statement.of(ledger).to_dict(), Statement.of(ledger, DESCRIPTION).to_dict()
    assert alone["description"] == given["description"]
    assert (alone["described"]["given"], given["described"]["given"]) == (None, "recorded")
    assert given["making"]["given_facts"] is None
