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
def test_a_charge_is_whole_or_not_there_after_a_kill_at_any_statement(closed_ledger):
    reports = run("crash", where=closed_ledger)
    ended = {report["point"]: report["ended"] for report in reports if "ended" in report}
    state = {report["point"]: report for report in reports if "intact" in report}
    receipts = {
        report["point"]: (report["number"], report["hash"]) for report in reports if "number" in report
    }
    answers = {report["point"] for report in reports if "answer" in report}

    last = max(ended)
    assert {ended[point] for point in ended if point < last} == {KILLED}
    assert ended[last] == 0
    assert last >= 2 * 10, "too few statements for a charge and a commit: the kills miss some"
    assert all(report["intact"] for report in state.values())
    assert receipts.keys() > answers > set()

    for before, after in pairwise([{"reserved": 0, "committed": 0, "spent": "0"}, *state.values()]):
        point = after["point"]
        charged = after["reserved"] - before["reserved"]
        paid = Fraction(after["spent"]) - Fraction(before["spent"])
        assert charged in {0, 1}
        assert paid == Fraction(1, 40) * charged
        # it could have drawn: it has paid
        if point in receipts:
            assert charged == 1
        if point in answers:
            assert after["committed"] == before["committed"] + 1
    with Ledger(closed_ledger) as ledger:
        rows = {(entry.number, entry.hash) for entry in ledger.entries() if entry.kind == "reserved"}
        assert set(receipts.values()) <= rows
        for point in answers:
            assert ledger.find(f"point {point}").answer == "drawn"


@no_chance("ledgers draw nothing")
def test_a_ledger_is_whole_or_not_there_after_a_kill_while_it_is_made(where):
    reports = run("make_and_crash", where=where, limit=Limit.filter(epsilon=1).to_dict(), step=20)
    assert reports[-1]["ended"] == 0
    assert {report["ended"] for report in reports[:-1]} == {KILLED}
    assert len(reports) > 30
    assert all(report["intact"] and report["rows"] in {0, 1} for report in reports)
    assert [report["rows"] for report in reports] == sorted(report["rows"] for report in reports)


@no_chance("ledgers draw nothing")
def test_a_receipt_that_was_handed_out_is_in_the_ledger_whenever_its_process_is_killed(closed_ledger):
    reports = run("kill_at_any_time", where=closed_ledger, kills=8)
    receipts = {(report["number"], report["hash"]) for report in reports}
    assert len(receipts) == len(reports) > 8
    with Ledger(closed_ledger) as ledger:
        rows = {(entry.number, entry.hash) for entry in ledger.entries() if entry.kind == "reserved"}
        assert receipts <= rows
        assert ledger.spent["epsilon"] == Fraction(len(rows), 40) <= 1
        assert ledger.verify().intact
        # each kill leaves at most one charge whose receipt nobody saw
        assert len(rows) - len(receipts) <= 8


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
