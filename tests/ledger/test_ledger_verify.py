# SPDX-License-Identifier: Apache-2.0
"""Everything recomputed: what is found, and what counts as damage."""

from __future__ import annotations

import pytest

from discreet import privacy
from discreet.errors import LedgerDamaged
from discreet.ledger import Cost, Ledger, Limit, State, chain
from discreet.ledger.costs import CostRow
from discreet.ledger.sqlite import _SCHEMA
from tests.ledger.workers import writing

TENTH = privacy.pure(0.1)
LIMIT = Limit.filter(epsilon=1)


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "a.ledger", limit=LIMIT) as opened:
        yield opened


def codes(verification):
    return [finding.code for finding in verification.findings]


def forge(ledger, kind="reserved", *, charged=TENTH, spent=None, **said):
    """A row with a right hash that says something wrong, as whoever can write to the file can make it."""
    cost = LIMIT.cost(charged)
    if kind == "reserved":
        said = {"guarantee": charged.to_json(), "cost": cost.to_dict(), **said}
    state = {"delta": "0", "epsilon": "1/10"} if spent is None else spent
    with writing(ledger._store):
        last = ledger._store.last()
        ledger._store.append(
            chain.next_row(last, kind, **{"time": chain.now(), "state": state, "question": "", **said})
        )


def test_a_sound_book_has_no_findings(ledger):
    for number in range(3):
        ledger.commit(ledger.charge(TENTH, key=f"k{number}"), "[1]")
    found = ledger.verify(anchor=ledger.anchor())
    assert (found.intact, found.entries, found.findings) == (True, 7, ())
    assert found.spent == found.recomputed == LIMIT.budget(ledger.spent)
    assert found.anchor == ledger.anchor()
    assert found
    assert "7 entries · hash chain intact" in str(found)


def test_an_index_that_was_changed_is_damage(ledger, tmp_path):
    ledger.commit(ledger.charge(TENTH, key="visits by ward"), "[1]")
    ledger.close()
    file = tmp_path / "a.ledger"
    content = file.read_bytes()
    places = [at for at in range(len(content)) if content.startswith(b"visits by ward", at)]
    caught = 0
    for at in places:  # in the rows and in the indexes, wherever they lie
        file.write_bytes(content[:at] + b"w" + content[at + 1 :])
        try:
            caught += not Ledger(file).verify().intact
        except LedgerDamaged:
            caught += 1
    assert caught == len(places) > 4


@pytest.fixture
def rewritten(ledger, monkeypatch):
    """A way to change old rows of a ledger of five; opening looks at the last two only."""
    for _ in range(4):
        ledger.charge(TENTH)
    monkeypatch.setattr("discreet.ledger.opening.CHECKED", 2)
    monkeypatch.setattr("discreet.ledger.store._PAGE", 2)
    triggers = [sql for sql in _SCHEMA if "TRIGGER ledger_never" in sql]

    def change(sql, *values):
        for trigger in triggers:
            ledger._store.run(f"DROP TRIGGER {trigger.split()[2]}")
        ledger._store.run(sql, *values)
        for trigger in triggers:
            ledger._store.run(trigger)
        return ledger

    return change


def test_the_whole_chain_is_walked_not_only_its_end(rewritten):
    book = rewritten("UPDATE ledger_entries SET body = replace(body, '1/10', '1/99') WHERE number = 1")
    with Ledger(book._store) as again:
        found = again.verify()
    assert not found.intact
    assert "row 1 is not what was written" in str(found)


def test_a_row_that_was_written_anew_with_its_hash_is_found(rewritten, ledger):
    row = ledger._store.at(1)
    body = row.body.replace('"question":""', '"question":"another"')
    sql = "UPDATE ledger_entries SET body = ?, hash = ? WHERE number = 1"
    book = rewritten(sql, body, chain.digest(body))
    with Ledger(book._store) as again:
        found = again.verify()
    assert [finding.text for finding in found.findings if finding.code == "DP602"] == [
        "the ledger is damaged: row 2 does not follow the one before it."
    ]


def test_a_row_that_is_missing_far_back_is_noticed_on_opening(rewritten):
    book = rewritten("DELETE FROM ledger_entries WHERE number = 1")
    assert not book.verify().intact
    with pytest.raises(LedgerDamaged):
        Ledger(book._store)


# --- worth knowing ------------------------------------------------------------------------------------------


def test_w1_a_charge_without_an_answer(ledger):
    ledger.charge(TENTH)
    first, second = ledger.charge(TENTH, key="k"), ledger.charge(TENTH, key="k")
    ledger.commit(second, "[1]")
    ledger.commit(first, "[2]")
    found = ledger.verify()
    assert found.intact
    assert codes(found) == ["W1", "W1"]
    assert {finding.text for finding in found.findings} == {
        "no answer was kept for #1: charged, and perhaps seen",
        "no answer was kept for #2: charged, and another charge with the same key was quicker",
    }


def test_long_lists_are_cut(tmp_path):
    with Ledger(tmp_path / "b.ledger", limit=LIMIT) as ledger:
        for _ in range(10):
            ledger.charge(TENTH)
        (found,) = ledger.verify().findings
    assert found.text.startswith("no answer was kept for #1, #2, #3, #4, #5, #6, #7, #8 and 2 more")


def test_w2_a_window_that_ended(tmp_path, monkeypatch):
    limit = Limit.filter(epsilon=1, window="month", lifetime=Limit.filter(epsilon=5))
    with Ledger(tmp_path / "b.ledger", limit=limit) as ledger:
        for day in ("2030-01-01", "2030-01-02", "2030-02-01"):
            monkeypatch.setattr(chain, "now", lambda day=day: f"{day}T00:00:00.000000+00:00")
            ledger.commit(ledger.charge(TENTH), "[1]")
        found = ledger.verify()
    assert found.intact
    assert [finding.code for finding in found.findings if finding.code != "W9"] == ["W2"]
    assert "began at #5" in str(found)


def test_w3_rows_of_another_version_are_named(ledger, monkeypatch):
    monkeypatch.setattr(chain, "version", lambda: "0.0.7")
    ledger.commit(ledger.charge(TENTH), "[1]")
    monkeypatch.undo()
    found = ledger.verify()
    assert found.intact
    assert codes(found) == ["W3"]
    assert "version 0.0.7 wrote #1, #2" in str(found)


@pytest.mark.parametrize(("stored", "code"), [("2/10", "W4"), ("1/20", "W5")])
def test_w4_and_w5_a_cost_that_today_is_lower_or_greater(ledger, monkeypatch, stored, code):
    other = Cost.from_dict({"ways": [[{"row": "plain", "amounts": {"delta": "0", "epsilon": stored}}]]})
    with monkeypatch.context() as then:
        then.setattr(type(LIMIT), "cost", lambda *_: other)
        ledger.commit(ledger.charge(TENTH), "[1]")
    found = ledger.verify()
    assert found.intact
    assert codes(found) == [code]
    assert found.spent == LIMIT.budget(State.from_dict({"delta": "0", "epsilon": stored}))
    assert found.recomputed == LIMIT.budget(State.from_dict({"delta": "0", "epsilon": "1/10"}))


def test_w5_that_does_not_fit_any_more(ledger, monkeypatch):
    little = Cost.from_dict({"ways": [[{"row": "plain", "amounts": {"delta": "0", "epsilon": "1/100"}}]]})
    with monkeypatch.context() as then:
        then.setattr(type(LIMIT), "cost", lambda *_: little)
        for _ in range(11):
            ledger.commit(ledger.charge(TENTH), "[1]")
    found = ledger.verify()
    assert found.recomputed is None
    assert "beyond the limit" in str(found)


def test_w9_rows_whose_clock_went_backwards_are_named(ledger, monkeypatch):
    monkeypatch.setattr(chain, "now", lambda: "2001-01-01T00:00:00.000000+00:00")
    ledger.commit(ledger.charge(TENTH), "[1]")
    found = ledger.verify()
    assert found.intact
    assert codes(found) == ["W9"]
    assert "at #1, #2" in str(found)


# --- damage: right hashes, wrong content -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "row",
    [
        pytest.param({"spent": {"delta": "0", "epsilon": "0"}}, id="a charge that adds nothing"),
        pytest.param({"spent": {"delta": "0", "epsilon": "1/20"}}, id="a charge that adds too little"),
        pytest.param({"spent": {}}, id="no total"),
        pytest.param({"spent": {"delta": "0", "epsilon": "x"}}, id="a total that is no number"),
        pytest.param({"cost": None}, id="no cost"),
        pytest.param({"cost": {"ways": 7}}, id="a cost that cannot be read"),
        pytest.param({"guarantee": "{}"}, id="a guarantee that cannot be read"),
        pytest.param({"guarantee": None}, id="no guarantee"),
        pytest.param(
            {"charged": privacy.pure(2.0), "spent": {"delta": "0", "epsilon": "2"}}, id="above the limit"
        ),
        pytest.param({"kind": "open", "spent": {"delta": "0", "epsilon": "0"}}, id="a second beginning"),
        pytest.param({"kind": "refund", "spent": {"delta": "0", "epsilon": "0"}}, id="an unknown kind"),
        pytest.param(
            {"kind": "committed", "spent": {"delta": "0", "epsilon": "0"}, "settles": 9},
            id="an answer to nothing",
        ),
        pytest.param(
            {"kind": "committed", "spent": {"delta": "0", "epsilon": "0"}, "settles": None},
            id="an answer to none",
        ),
        pytest.param(
            {"kind": "committed", "spent": {"delta": "0", "epsilon": "1/2"}, "settles": 0},
            id="an answer that changes the total",
        ),
        pytest.param({"time": 7}, id="a time that is none"),
    ],
)
def test_a_row_that_does_not_follow_is_damage(ledger, row):
    forge(ledger, **row)
    found = ledger.verify()
    assert not found.intact
    assert not found
    assert "DP602" in codes(found)
    assert "DAMAGED" in str(found)


def test_a_forged_row_that_is_right_is_no_damage(ledger):
    """The helper above is sound: what makes those rows damage is what they say."""
    forge(ledger)
    assert ledger.verify().intact


def test_a_total_that_goes_back_is_damage(ledger):
    ledger.charge(TENTH)
    receipt = ledger.charge(TENTH)
    forge(ledger, "committed", spent={"delta": "0", "epsilon": "1/10"}, settles=receipt.number)
    assert not ledger.verify().intact


def test_costs_are_compared_way_by_way():
    from discreet.ledger.verify import _not_above

    def cost(*ways, lifetime=None):
        amounts = [Cost.from_dict({"ways": [[{"row": name, "amounts": of}]]}).ways[0] for name, of in ways]
        return Cost(tuple(amounts), lifetime)

    plain, dearer = cost(("plain", {"a": "1", "b": "2"})), cost(("plain", {"a": "1", "b": "3"}))
    assert isinstance(plain.rows[0], CostRow)
    assert _not_above(plain, dearer)
    assert not _not_above(dearer, plain)
    assert not _not_above(cost(("other", {"a": "0"})), plain)
    assert not _not_above(cost(("plain", {"a": "1", "b": "2", "c": "1"})), plain)
    assert _not_above(
        cost(*[("plain", {"a": "1"})], lifetime=plain), cost(("plain", {"a": "1"}), lifetime=dearer)
    )
    assert not _not_above(plain, cost(("plain", {"a": "1", "b": "2"}), lifetime=plain))


@pytest.mark.parametrize("rows", [None, 3, 100])
def test_progress_ends_with_everything(ledger, monkeypatch, rows):
    monkeypatch.setattr("discreet.ledger.verify._REPORTED", 2)
    for _ in range(4):
        ledger.charge(TENTH)
    told = []
    found = ledger.verify(rows=rows, progress=lambda done, whole: told.append((done, whole)))
    assert told[-1] == (found.entries, found.entries)
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert found == ledger.verify(rows=rows)
