# SPDX-License-Identifier: Apache-2.0
"""Charges that belong together: all of them or none, whoever comes between and wherever the process is killed."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from discreet import privacy
from discreet.ledger import Asker, Charge, Entry, Ledger, Limit, Receipt
from discreet.ledger.released import release_lines
from tests.chance import no_chance
from tests.ledger.workers import run
from tests.refusals import refusal

KILLED = -9
NOTHING_OR_ALL = [[], ["reserved"] * 3, ["reserved"] * 3 + ["committed"] * 3]
TENTH = privacy.pure(0.1)


def wanted(*amounts, name="r"):
    return [Charge(privacy.pure(one), f"q{n}", key=f"{name}{n}") for n, one in enumerate(amounts)]


def worth_knowing(ledger):
    """What a check finds, but for the settings of the server that tests run on."""
    found = ledger.verify()
    assert found.intact
    return [finding.text for finding in found.findings if finding.code != "W6"]


# --- all or none ------------------------------------------------------------------------------------------


def test_together_they_are_rows_like_others(ledger, where):
    receipts = ledger.charge_all(wanted(0.2, 0.3), asker=Asker(analyst="ana", purpose="health"))
    assert [(one.number, one.key, one.cost is not None) for one in receipts] == [
        (1, "r0", True),
        (2, "r1", True),
    ]
    assert ledger.commit_all(zip(receipts, ["[1]", "[2]"], strict=True)) == ["[1]", "[2]"]
    assert ledger.spent["epsilon"] == Fraction(1, 2)
    with Ledger(where) as again:
        kinds = [(entry.kind, entry.key, entry.analyst, entry.held) for entry in again.entries()]
        assert kinds[1:] == [
            ("reserved", "r0", "ana", True),
            ("reserved", "r1", "ana", True),
            ("committed", "r0", "ana", False),
            ("committed", "r1", "ana", False),
        ]
        found = again.verify()
        assert worth_knowing(again) == []
        assert found.spent == found.recomputed
        assert [json.loads(line)["answer"] for line in again.export()] == [None, None, None, "[1]", "[2]"]


def test_what_does_not_fit_together_leaves_no_trace_and_says_what_is_left(ledger):
    ledger.charge(privacy.pure(0.3))
    error = refusal(ledger.charge_all, wanted(0.4, 0.4))
    assert (error.code, error.spent) == ("DP601", "nothing")
    assert "these queries together do not fit" in error.what
    assert "these queries together" in error.what
    assert "0.7" in error.what  # of everything that is left, not of what the first of them would leave
    assert len(ledger) == 2
    assert ledger.spent["epsilon"] == Fraction(3, 10)


@pytest.mark.parametrize(
    ("last", "code"),
    [
        (Charge(privacy.pure(0.1, unit="patient"), key="r1"), "DP201"),
        (Charge(TENTH, "another", key="taken"), "DP604"),
        (Charge(TENTH, 7), "DP104"),
        (Charge("pure(0.1)"), "DP104"),
        (TENTH, "DP104"),
    ],
)
def test_if_the_last_one_is_refused_none_is_charged(ledger, last, code):
    ledger.charge(TENTH, question="one", key="taken")
    assert refusal(ledger.charge_all, [Charge(TENTH, key="r0"), last]).code == code
    assert len(ledger) == 2


def test_what_can_be_repeated_is_refused(ledger):
    assert refusal(ledger.charge_all, wanted(0.1), private=False).code == "DP605"
    assert len(ledger) == 1


# --- asking again -----------------------------------------------------------------------------------------


def test_asking_again_before_the_answer_pays_nothing_and_after_it_shows_it(ledger, where):
    first = ledger.charge_all(wanted(0.2, 0.3))
    with Ledger(where) as other:
        second = other.charge_all(wanted(0.2, 0.3))
        assert [(one.number, one.hash, one.cost) for one in second] == [
            (1, first[0].hash, None),
            (2, first[1].hash, None),
        ]
        assert other.commit_all(zip(second, ["[1]", "[2]"], strict=True)) == ["[1]", "[2]"]
    # whoever drew too, under the same charge, shows what was kept first
    assert ledger.commit_all(zip(first, ["[3]", "[4]"], strict=True)) == ["[1]", "[2]"]
    third = ledger.charge_all(wanted(0.2, 0.3))
    assert [one.answer for one in third] == ["[1]", "[2]"]
    assert all(isinstance(one, Entry) for one in third)
    assert ledger.spent["epsilon"] == Fraction(1, 2)
    assert len(ledger) == 5


def test_a_release_that_has_grown_pays_for_what_is_new(ledger):
    ledger.charge_all(wanted(0.2, 0.3))
    grown = ledger.charge_all(wanted(0.2, 0.3, 0.4))
    assert [one.cost is None for one in grown] == [True, True, False]
    assert ledger.spent["epsilon"] == Fraction(9, 10)


def test_the_same_key_twice_is_one_charge(ledger):
    twice = ledger.charge_all([*wanted(0.2), *wanted(0.2)])
    assert [one.number for one in twice] == [1, 1]
    assert ledger.commit_all(zip(twice, ["[1]", "[2]"], strict=True)) == ["[1]", "[1]"]


def test_without_a_key_every_call_pays(ledger):
    for _ in range(2):
        ledger.charge_all([Charge(TENTH)])
    assert ledger.spent["epsilon"] == Fraction(2, 10)


def test_a_charge_that_may_have_been_shown_is_never_drawn_under_again(ledger):
    """What `charge` has charged is not held: its draw may have been seen before it was committed."""
    ledger.charge(TENTH, question="q0", key="r0")
    assert ledger.find_pending("r0") is None
    (receipt,) = ledger.charge_all(wanted(0.1))
    assert receipt.cost is not None
    assert ledger.find_pending("r0") == Receipt(receipt.number, receipt.hash, receipt.time, TENTH, None, "r0")
    assert ledger.spent["epsilon"] == Fraction(2, 10)


def test_what_somebody_else_has_paid_for_is_not_shown(where):
    limit = Limit.filter(epsilon=1, analysts={"ana": 0.5, "bob": 0.5}, reserved=True)
    with Ledger(where, limit=limit) as ledger:
        ledger.charge_all(wanted(0.1), asker=Asker(analyst="ana"))
        assert refusal(ledger.charge_all, wanted(0.1), asker=Asker(analyst="bob")).code == "DP604"


def test_what_waits_for_an_answer_is_said(ledger):
    ledger.charge_all(wanted(0.2, 0.3))
    (finding,) = worth_knowing(ledger)
    assert "answers it for nothing" in finding
    lines = release_lines(list(ledger.entries()), ledger.limit)
    assert [line["status"] for line in lines] == ["charged; not answered yet"] * 2


def test_an_answer_that_is_no_text_is_refused(ledger):
    receipts = ledger.charge_all(wanted(0.1))
    assert refusal(ledger.commit_all, [(receipts[0], None)]).code == "DP104"
    assert refusal(ledger.commit_all, [("#1", "[1]")]).code == "DP603"


# --- races and kills --------------------------------------------------------------------------------------


@pytest.fixture
def made(where):
    Ledger(where, limit=Limit.filter(epsilon=1)).close()
    return where


@no_chance("ledgers draw nothing")
def test_processes_that_charge_triples_never_leave_a_part_of_one(made):
    """Forty pieces fit, so thirteen triples do, and the last piece stays."""
    said = run("race_together", where=made, processes=4, same=False)
    assert said[-1] == {"ended": [0] * 4}
    with Ledger(made) as ledger:
        charged = [entry.key for entry in ledger.entries() if entry.kind == "reserved"]
        triples = [charged[at : at + 3] for at in range(0, len(charged), 3)]
        assert len(triples) == 13
        for one in triples:
            name = one[0].rpartition(",")[0]
            assert one == [f"{name}, part {part}" for part in range(3)]
        assert ledger.spent["epsilon"] == Fraction(39, 40)
        assert worth_knowing(ledger) == []


@no_chance("ledgers draw nothing")
def test_processes_that_release_the_same_pay_once_and_show_the_same(made):
    said = run("race_together", where=made, processes=4, same=True)
    assert said[-1] == {"ended": [0] * 4}
    shown = {}
    for line in said:
        if "name" in line:
            shown.setdefault(line["name"], set()).add(tuple(line["shown"]))
    assert len(shown) == 13
    assert all(len(answers) == 1 for answers in shown.values())
    with Ledger(made) as ledger:
        assert ledger.spent["epsilon"] == Fraction(39, 40)
        assert worth_knowing(ledger) == []


@no_chance("ledgers draw nothing")
def test_charges_together_are_whole_or_not_there_after_a_kill_at_any_statement(where):
    Ledger(where, limit=Limit.filter(epsilon=10)).close()
    said = run("crash_together", where=where)
    ended = {line["point"]: line["ended"] for line in said if "ended" in line}
    shown = {line["point"]: line["shown"] for line in said if "shown" in line}
    after = {line["point"]: line for line in said if "again" in line}
    last = max(ended)
    assert [ended[point] for point in range(last + 1)] == [KILLED] * last + [0]
    assert last >= 2 * 20, "too few statements for three charges and three commits: the kills miss some"
    for point in range(last + 1):
        kinds, paid = after[point]["kinds"], Fraction(after[point]["paid"])
        assert kinds in NOTHING_OR_ALL
        assert paid == (0 if kinds else Fraction(3, 40))
        if point in shown:  # somebody could have seen it: it is what whoever asks again sees
            assert shown[point] == after[point]["again"]
            assert kinds == NOTHING_OR_ALL[2]
    assert [
        kinds for kinds in NOTHING_OR_ALL if any(line["kinds"] == kinds for line in after.values())
    ] == NOTHING_OR_ALL
    with Ledger(where) as ledger:
        assert worth_knowing(ledger) == []
        assert ledger.spent["epsilon"] == Fraction(3 * (last + 1), 40)


def test_several_that_need_more_delta_than_is_left_are_told_so(where):
    with Ledger(where, limit=Limit.filter(epsilon=1, delta=1e-6, leaks=0.1)) as ledger:
        wanted = [Charge(privacy.approximate(0.1, 4e-8), f"question {number}") for number in range(3)]
        error = refusal(ledger.charge_all, wanted)
    assert "these queries together need more δ than remains" in error.what
    assert "smaller delta" in error.fix
    assert "epsilon" not in error.fix
