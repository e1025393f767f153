# SPDX-License-Identifier: Apache-2.0
"""kill -9 anywhere: the book is whole, what was handed out is in it, and nothing that was drawn is free."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from discreet.ledger import Ledger, Limit
from discreet.ledger.store import Store
from tests.chance import no_chance
from tests.ledger.workers import killing, run

KILLED = -9


@no_chance("ledgers draw nothing")
def test_killed_before_and_after_every_statement(made):
    said = run("crash", where=made)
    ended = {line["point"]: line["ended"] for line in said if "ended" in line}
    state = {line["point"]: line for line in said if "intact" in line}
    receipts = {line["point"]: (line["number"], line["hash"]) for line in said if "number" in line}
    answers = {line["point"] for line in said if "answer" in line}

    last = max(ended)
    assert {ended[point] for point in ended if point < last} == {KILLED}
    assert ended[last] == 0
    assert last >= 2 * 10, "too few statements for a charge and a commit: the kills miss some"
    assert all(line["intact"] for line in state.values())
    assert receipts.keys() > answers > set()

    for before, after in pairwise([{"reserved": 0, "committed": 0, "spent": "0"}, *state.values()]):
        point = after["point"]
        charged = after["reserved"] - before["reserved"]
        paid = Fraction(after["spent"]) - Fraction(before["spent"])
        assert charged in {0, 1}
        assert paid == Fraction(1, 40) * charged
        if point in receipts:  # it could have drawn: it has paid
            assert charged == 1
        if point in answers:
            assert after["committed"] == before["committed"] + 1
    with Ledger(made) as ledger:
        rows = {(entry.number, entry.hash) for entry in ledger.entries() if entry.kind == "reserved"}
        assert set(receipts.values()) <= rows
        for point in answers:
            assert ledger.find(f"point {point}").answer == "drawn"


@no_chance("ledgers draw nothing")
def test_killed_while_it_is_made(where):
    said = run("make_and_crash", where=where, limit=Limit.filter(epsilon=1).to_dict(), step=20)
    assert said[-1]["ended"] == 0
    assert {line["ended"] for line in said[:-1]} == {KILLED}
    assert len(said) > 30
    assert all(line["intact"] and line["rows"] in {0, 1} for line in said)
    assert [line["rows"] for line in said] == sorted(line["rows"] for line in said)


@no_chance("ledgers draw nothing")
def test_a_receipt_that_was_handed_out_is_in_the_ledger_whenever_its_process_is_killed(made):
    said = run("kill_at_any_time", where=made, kills=8)
    receipts = {(line["number"], line["hash"]) for line in said}
    assert len(receipts) == len(said) > 8
    with Ledger(made) as ledger:
        rows = {(entry.number, entry.hash) for entry in ledger.entries() if entry.kind == "reserved"}
        assert receipts <= rows
        assert ledger.spent["epsilon"] == Fraction(len(rows), 40) <= 1
        assert ledger.verify().intact
        assert len(rows) - len(receipts) <= 8  # each kill leaves at most one charge whose receipt nobody saw


def test_the_store_that_kills_counts_every_statement(monkeypatch):
    killed = []
    monkeypatch.setattr("os.kill", lambda *what: killed.append(what[1]))

    class Silent(Store):
        begin = abandon = close = exists = make = check = place = None

        def execute(self, sql, values):
            return []

    store = killing(Silent)()
    store.left = 2
    store.run("BEGIN")
    assert killed == []
    store.run("COMMIT")
    assert killed == [9, 9]
