# SPDX-License-Identifier: Apache-2.0
"""Many processes and threads charge one ledger: never above the limit, never a charge lost, in whatever order."""

from __future__ import annotations

from contextlib import suppress

import pytest

from discreet.errors import DiscreetError, OverBudget
from discreet.ledger import Ledger, Limit, State
from discreet.ledger.sqlite import SQLite
from discreet.privacy.wire import from_json
from tests.chance import no_chance
from tests.ledger.workers import BEGINNINGS, PIECE, run, writing
from tests.processes import run_threads

LIMIT = Limit.filter(epsilon=1)
FIT = 40  # pieces that fit


def assert_spent_to_the_last_piece(where, reports):
    """Exactly as many receipts as fit, all different, each in the book; and nobody was told anything but DP601."""
    receipts = [(line["number"], line["hash"]) for line in reports if "number" in line]
    assert [line for line in reports if "error" in line] == []
    assert len(receipts) == len(set(receipts)) == FIT
    with Ledger(where) as ledger:
        charged = {(entry.number, entry.hash) for entry in ledger.entries() if entry.kind == "reserved"}
        assert charged == set(receipts)
        assert ledger.spent["epsilon"] == 1
        assert ledger.verify().intact


@no_chance("ledgers draw nothing")
def test_processes_together_spend_the_limit_and_no_more_and_show_one_answer(closed_ledger):
    """Six processes ask the same question with the same key, again and again."""
    reports = run("race", where=closed_ledger, processes=6, key="k")
    assert reports[-1] == {"ended": [0] * 6}
    assert_spent_to_the_last_piece(closed_ledger, reports)
    with Ledger(closed_ledger) as ledger:
        assert {line["answer"] for line in reports if "answer" in line} == {ledger.find("k").answer}


@no_chance("ledgers draw nothing")
def test_processes_that_inherit_a_ledger_in_use_spend_the_limit_and_no_more(closed_ledger):
    reports = run("inherit", where=closed_ledger, processes=3)
    assert reports[-1] == {"ended": [0] * 3}
    assert_spent_to_the_last_piece(closed_ledger, reports)


@no_chance("ledgers draw nothing")
def test_processes_that_all_make_the_first_charge_agree_on_one_choice(where):
    """Each of them would choose another split of δ; the first row that is written chooses, and all others follow it."""
    limit = Limit.filter(epsilon=1, delta=1e-6)
    alone = {limit.chosen_filter(limit.admit(limit.start(), limit.cost(first))) for first in BEGINNINGS}
    assert len(alone) == len(BEGINNINGS)
    Ledger(where, limit=limit).close()
    reports = run("begin", where=where, processes=8)
    assert reports[-1] == {"ended": [0] * 8}
    with Ledger(where) as ledger:
        charged = [entry for entry in ledger.entries() if entry.kind == "reserved"]
        assert len(charged) + len([line for line in reports if "refused" in line]) == 8
        kept = {ledger.limit.chosen_filter(State.from_dict(entry.state)) for entry in charged}
        first = limit.admit(limit.start(), limit.cost(from_json(charged[0].guarantee)))
        assert kept == {limit.chosen_filter(first)}
        assert ledger.verify().intact
        assert not [finding for finding in ledger.verify().findings if finding.code in {"W4", "W5"}]


def test_threads_together_spend_the_limit_and_no_more(closed_ledger):
    reports = []
    with Ledger(closed_ledger) as ledger:

        def spend():
            with suppress(OverBudget):
                while True:
                    receipt = ledger.charge(PIECE)
                    reports.append({"number": receipt.number, "hash": receipt.hash})

        run_threads(*[spend] * 6)
    assert_spent_to_the_last_piece(closed_ledger, reports)


@no_chance("ledgers draw nothing")
def test_processes_that_all_make_the_ledger_make_one(where):
    reports = run("make", where=where, processes=6, limit=LIMIT.to_dict())
    assert reports[-1] == {"ended": [0] * 6}
    assert len({line["anchor"] for line in reports[:-1]}) == 1


@no_chance("ledgers draw nothing")
def test_a_fork_waits_for_a_transaction_of_another_thread(tmp_path):
    path = str(tmp_path / "a.ledger")
    Ledger(path, limit=LIMIT).close()
    reports = run("fork_in_a_transaction", where=path)
    assert {"forked_inside": False} in reports
    assert {"ended": [0]} in reports
    assert {"number": 1} in reports
    with Ledger(path) as ledger:
        assert ledger.verify().intact


@no_chance("ledgers draw nothing")
def test_a_ledger_in_memory_does_not_come_along():
    assert run("forget", limit=LIMIT.to_dict()) == [{"error": "DP607"}, {"ended": [1], "rows": 1}]


def test_a_writer_keeps_others_out_from_its_first_look_to_its_last_write(closed_ledger):
    """The interleaving that overspends: both look, then both write. It must be impossible to begin."""
    with Ledger(closed_ledger) as first, Ledger(closed_ledger) as second:
        second._store._patience = 0.001
        with writing(first._store):
            first._store.last()
            with pytest.raises(DiscreetError) as kept_out:
                second.charge(PIECE)
        assert kept_out.value.code == "DP606"
        assert len(second) == 1


def test_a_look_that_is_stale_never_becomes_a_row(tmp_path):
    """The same interleaving with a store that forgets to keep others out: the database itself refuses the second row."""

    class Careless(SQLite):
        def in_turn(self, work):
            return work()

        def begin(self):
            """Nothing: every statement is a transaction of its own."""

        def run(self, sql, *values):
            return [] if sql == "COMMIT" else super().run(sql, *values)

    path = tmp_path / "a.ledger"
    with Ledger(path, limit=LIMIT) as first, Ledger(Careless(path)) as careless:
        looked = careless._last

        def meanwhile():
            seen = looked()
            first.charge(PIECE)  # between the look and the write
            return seen

        careless._last = meanwhile
        with pytest.raises(DiscreetError) as refused:
            careless.charge(PIECE)
        assert refused.value.code == "DP602"
        assert len(first) == 2
