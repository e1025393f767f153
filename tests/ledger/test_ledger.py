# SPDX-License-Identifier: Apache-2.0
"""Charging, committing and finding, on every store."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
from fractions import Fraction

import pytest

from discreet import privacy, testing
from discreet.errors import BadParameter, LedgerDamaged, LedgerError, OverBudget, UnitMismatch
from discreet.ledger import Asker, Ledger, Limit, Receipt
from discreet.ledger.overview import budget_facts
from discreet.ledger.sqlite import SQLite
from discreet.noise.source import is_private
from discreet.privacy.unit import Unit
from tests.refusals import refusal

TENTH = privacy.pure(0.1)


# --- charging ---------------------------------------------------------------------------------------------


def test_ten_tenths_fit_and_the_eleventh_is_refused_and_leaves_no_trace(ledger, where):
    receipts = [ledger.charge(TENTH) for _ in range(10)]
    rows = len(ledger)
    with pytest.raises(OverBudget) as refused:
        ledger.charge(TENTH)
    assert refused.value.code == "DP601"
    assert [receipt.number for receipt in receipts] == list(range(1, 11))
    assert len(ledger) == rows == 11
    assert ledger.spent["epsilon"] == 1
    assert ledger.budget().spent_fraction == 1
    with Ledger(where) as again:
        assert again.spent == ledger.spent


def test_a_refusal_leaves_the_way_free_for_what_fits(ledger, where):
    ledger.charge(privacy.pure(0.9))
    assert refusal(ledger.charge, privacy.pure(0.2)).code == "DP601"
    with Ledger(where) as other:
        assert other.charge(TENTH).number == 2
    assert refusal(ledger.charge, TENTH).code == "DP601"


@pytest.mark.parametrize(
    "limit",
    [
        Limit.filter(epsilon=1, delta=1e-6),
        Limit.filter(rho=0.5),
        Limit.filter(mu=1.0),
        Limit.plan(4 * privacy.gaussian(10.0) + TENTH),
        Limit.odometer(delta=1e-6),
        Limit.filter(epsilon=1, delta=1e-6, analysts={"ana": 0.5}, reserved=True),
        Limit.filter(epsilon=1, delta=1e-6, window="week", lifetime=Limit.odometer(delta=1e-6)),
    ],
    ids=lambda limit: type(limit).__name__,
)
def test_every_kind_of_limit_can_be_kept(limit, tmp_path):
    path = tmp_path / "a.ledger"
    asked = privacy.gaussian(10.0)
    analyst = "ana" if "shares" in limit.to_dict() else None
    with Ledger(path, limit=limit) as ledger:
        for _ in range(2):
            ledger.commit(ledger.charge(asked, asker=Asker(analyst=analyst)), "[1]")
    with Ledger(path, limit=limit) as again:
        found = again.verify()
        assert (found.intact, found.findings) == (True, ())
        assert found.spent == found.recomputed
        assert again.spent != limit.start()
        assert again.guarantee == 2 * asked
        assert str(again)


def test_what_was_charged_is_there_when_the_ledger_is_opened_again(ledger, where):
    receipt = ledger.charge(
        TENTH,
        question="how many?",
        key="k",
        asker=Asker(analyst="ana", project="p", purpose="health"),
        mechanism="Laplace",
    )
    with Ledger(where) as again:
        first, entry = again.entries()
    assert first.kind == "open"
    assert first.about["limit"] == Limit.filter(epsilon=1).to_dict()
    assert (entry.number, entry.hash, entry.time) == (receipt.number, receipt.hash, receipt.time)
    said = (entry.question, entry.key, entry.analyst, entry.project, entry.purpose, entry.mechanism)
    assert said == ("how many?", "k", "ana", "p", "health", "Laplace")
    assert privacy.from_json(entry.guarantee) == TENTH
    assert entry.receipt == receipt


def test_a_second_handle_sees_what_the_first_has_spent(ledger, where):
    with Ledger(where) as other:
        for handle in [ledger, other] * 5:
            handle.charge(TENTH)
        assert refusal(other.charge, TENTH).code == "DP601"
        assert ledger.anchor() == other.anchor()


def test_the_guarantee_of_the_book_is_the_sum_of_its_charges(ledger):
    assert ledger.guarantee is None
    for _ in range(3):
        ledger.charge(TENTH)
    ledger.charge(privacy.pure(0.5))
    assert ledger.guarantee == 3 * TENTH + privacy.pure(0.5)


def test_each_analyst_is_charged_to_their_allocation(where):
    limit = Limit.filter(epsilon=1, analysts={"ana": 0.3, "bob": 0.7})
    with Ledger(where, limit=limit) as ledger:
        for _ in range(3):
            ledger.charge(TENTH, asker=Asker(analyst="ana"))
        assert refusal(ledger.charge, TENTH, asker=Asker(analyst="ana")).code == "DP601"
        ledger.charge(TENTH, asker=Asker(analyst="bob"))
        assert ledger.budget(asker=Asker(analyst="ana")).like(TENTH) == 0
        assert ledger.budget(asker=Asker(analyst="bob")).like(TENTH) == 6


def test_a_window_renews_and_a_clock_that_goes_back_does_not(where, monkeypatch):
    clock = iter(["2030-01-01", "2030-01-31", "2030-02-01", "2030-01-31", "2030-01-31"])
    limit = Limit.filter(epsilon=1, window="month", lifetime=Limit.filter(epsilon=5))
    with Ledger(where, limit=limit) as ledger:
        monkeypatch.setattr("discreet.ledger.chain.now", lambda: f"{next(clock)}T00:00:00.000000+00:00")
        most = privacy.pure(1.0)
        ledger.charge(most)
        assert refusal(ledger.charge, TENTH).code == "DP601"
        ledger.charge(most)
        assert refusal(ledger.charge, TENTH).code == "DP601"
        assert ledger.spent["lifetime/epsilon"] == 2


# --- what is refused ----------------------------------------------------------------------------------------


def test_another_unit_is_refused(ledger):
    for other in (privacy.pure(0.1, unit="patient"), privacy.pure(0.1, relation="replace")):
        with pytest.raises(UnitMismatch) as refused:
            ledger.charge(other)
        assert refused.value.code == "DP201"
    assert len(ledger) == 1


def test_noise_that_can_be_repeated_is_refused(ledger):
    with testing.seeded(1):
        assert refusal(ledger.charge, TENTH, private=is_private()).code == "DP605"
    for odd in (0, None, "yes"):
        assert refusal(ledger.charge, TENTH, private=odd).code == "DP104"
    assert len(ledger) == 1


@pytest.mark.parametrize("bad", [1.0, "pure", None, True, [TENTH]])
def test_only_guarantees_are_charged(ledger, bad):
    assert refusal(ledger.charge, bad).code == "DP104"
    assert len(ledger) == 1


def test_a_guarantee_that_cannot_be_written_down_is_refused(ledger):
    class Mine(type(TENTH)):
        """Somebody's own kind of guarantee, which no later release could read."""

    assert refusal(ledger.charge, Mine(0.1)).code == "DP203"
    assert len(ledger) == 1


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("question", 7, "DP104"),
        ("question", "x" * 1_000_001, "DP102"),
        ("key", "", "DP102"),
        ("key", "x" * 201, "DP102"),
        ("key", "a\0b", "DP102"),
        ("key", "\ud800", "DP102"),
        ("key", 7, "DP104"),
        ("analyst", b"ana", "DP104"),
        ("analyst", "a\nb", "DP102"),
        ("project", "", "DP102"),
        ("purpose", 1.5, "DP104"),
        ("mechanism", object(), "DP104"),
    ],
)
def test_words_are_words(ledger, field, value, code):
    named = {field: value}
    if field in {"analyst", "project", "purpose"}:
        named = {"asker": Asker(**named)}
    assert refusal(ledger.charge, TENTH, **named).code == code
    assert len(ledger) == 1


def test_any_text_comes_back_as_it_was(ledger):
    odd = "ε\0\ud800'; DROP TABLE ledger_entries; -- %s ? 🦉"
    receipt = ledger.charge(TENTH, question=odd, asker=Asker(purpose=odd), key="k'; --%s?")
    ledger.commit(receipt, odd)
    entry = ledger.find("k'; --%s?", odd)
    assert (entry.question, entry.purpose, entry.answer) == (odd, odd, odd)
    assert ledger.verify().intact


# --- answers --------------------------------------------------------------------------------------------------


def test_a_committed_answer_is_found_again_for_nothing(ledger, where):
    receipt = ledger.charge(TENTH, question="q", key="k")
    assert ledger.find("k", "q") is None
    assert ledger.commit(receipt, "[41]") == "[41]"
    spent = ledger.spent
    with Ledger(where) as again:
        found = again.find("k", "q")
    assert (found.answer, found.settles, found.receipt.cost) == ("[41]", receipt.number, None)
    assert ledger.spent == spent
    assert ledger.find("another") is None


def test_an_answer_is_kept_once(ledger):
    receipt = ledger.charge(TENTH)
    assert ledger.commit(receipt, "first") == "first"
    assert ledger.commit(receipt, "second") == "first"
    silent = ledger.charge(TENTH)
    assert ledger.commit(silent) is None
    assert ledger.commit(silent, "too late") is None
    assert len(ledger) == 5


def test_two_processes_with_the_same_key_show_the_same_answer(ledger, where):
    with Ledger(where) as other:
        mine, theirs = (handle.charge(TENTH, question="q", key="k") for handle in (ledger, other))
        assert other.commit(theirs, "theirs") == "theirs"
        assert ledger.commit(mine, "mine") == "theirs"
        assert ledger.find("k").answer == "theirs"
    assert ledger.spent["epsilon"] == Fraction(1, 5)  # both drew, so both paid


def test_a_charge_without_an_answer_stays_spent_and_a_retry_pays_again(ledger, where):
    ledger.charge(TENTH, question="q", key="k")
    with Ledger(where) as later:
        assert later.find("k", "q") is None
        later.commit(later.charge(TENTH, question="q", key="k"), "[1]")
        assert later.spent["epsilon"] == Fraction(1, 5)
        assert later.find("k", "q").answer == "[1]"


@pytest.mark.parametrize(
    "other",
    [
        {"question": "p"},
        {"guarantee": privacy.pure(0.2)},
        {"asker": Asker("ana")},
        {"asker": Asker(project="p")},
    ],
)
@pytest.mark.parametrize("committed", [True, False])
def test_a_key_stands_for_one_question(ledger, other, committed):
    asked = {"guarantee": TENTH, "question": "q", "key": "k"}
    receipt = ledger.charge(**asked)
    if committed:
        ledger.commit(receipt, "[1]")
    rows = len(ledger)
    assert refusal(ledger.charge, **{**asked, **other}).code == "DP604"
    assert refusal(ledger.find, "k", **other).code == "DP604"
    assert (ledger.find("k", "q", guarantee=TENTH) is not None) is committed
    assert refusal(ledger.find, "k", guarantee="pure").code == "DP104"
    assert len(ledger) == rows


def test_an_answer_needs_the_receipt_of_this_ledger(ledger, tmp_path):
    with Ledger(tmp_path / "b.ledger", limit=Limit.filter(epsilon=1)) as other:
        stranger = other.charge(TENTH)
    ours = ledger.charge(TENTH)
    forged = Receipt(0, ours.hash, ours.time, TENTH, ours.cost)
    huge = Receipt(2**70, ours.hash, ours.time, TENTH, ours.cost)
    ledger.commit(ours, "[1]")
    shown_again = list(ledger.entries())[-1].receipt
    for bad in (stranger, forged, huge, shown_again, None, ours.number):
        assert refusal(ledger.commit, bad, "x").code == "DP603"
    with pytest.raises(BadParameter) as refused:
        ledger.commit(ours, 41)
    assert refused.value.code == "DP104"


# --- opening ----------------------------------------------------------------------------------------------------


def test_a_ledger_belongs_to_its_limit_unit_and_data_set(where):
    limit = Limit.filter(epsilon=1, delta=1e-6)
    with Ledger(where, limit=limit, unit=Unit("patient", "replace"), dataset="visits 2030"):
        pass
    with Ledger(where, limit=limit, unit=Unit("patient", "replace"), dataset="visits 2030") as same:
        assert (same.limit, same.unit, same.dataset) == (limit, Unit("patient", "replace"), "visits 2030")
    for other in (
        {"limit": Limit.filter(epsilon=2, delta=1e-6)},
        {"limit": Limit.filter(epsilon=1)},
        {"unit": "patient"},
        {"unit": Unit("visit", "replace")},
        {"dataset": "visits 2031"},
    ):
        assert refusal(Ledger, where, **other).code == "DP603"


def test_no_ledger_is_made_without_a_limit(where, tmp_path):
    assert refusal(Ledger, where).code == "DP603"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("bad", [None, 7, "", "a\0b", b"a.ledger"])
def test_a_place_is_a_path_or_an_address(bad):
    assert refusal(Ledger, bad, limit=Limit.filter(epsilon=1)).code == "DP104"


def test_other_arguments_are_checked(tmp_path):
    path = tmp_path / "a.ledger"
    assert refusal(Ledger, path, limit=1.0).code == "DP104"
    assert refusal(Ledger, path, limit=Limit.filter(epsilon=1), unit=7).code == "DP104"
    assert refusal(Ledger, path, limit=Limit.filter(epsilon=1), dataset=7).code == "DP104"
    assert not path.exists()


def test_an_anchor_tells_whether_its_row_is_still_there(ledger, where):
    anchor = ledger.anchor()
    ledger.charge(TENTH)
    with Ledger(where, anchor=anchor) as known:
        assert known.verify(anchor=anchor).intact
        elsewhere = known.verify(anchor="0" * 64)
    assert not elsewhere.intact
    assert refusal(Ledger, where, anchor="0" * 64).code == "DP602"
    for bad in ("abc", 7, anchor.upper(), anchor[:63]):
        assert refusal(ledger.verify, anchor=bad).code == "DP102"


def test_a_copy_is_refused(ledger):
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LedgerError) as refused:
            attempt(ledger)
        assert refused.value.code == "DP607"


# --- for people ---------------------------------------------------------------------------------------------------


def test_it_says_what_it_is(ledger, where):
    ledger.charge(TENTH)
    assert "2 rows" in repr(ledger)
    assert "one record added or removed" in str(ledger)
    assert ledger._repr_html_().startswith("<ul><li>")
    assert bool(ledger)
    assert "forgets everything" not in str(ledger)
    with Ledger(":memory:", limit=Limit.filter(epsilon=1), dataset="visits") as memory:
        assert "forgets everything" in str(memory)
        assert "in visits" in str(memory)


def test_a_receipt_shows_where_to_look(ledger):
    receipt = ledger.charge(TENTH)
    assert str(receipt).startswith("#1 · 20")
    assert receipt.hash[:16] in str(receipt)


def test_the_export_can_be_checked_with_nothing_but_a_hash(ledger):
    ledger.commit(ledger.charge(TENTH, key="k"), "[1]")
    before = "0" * 64
    lines = list(map(json.loads, ledger.export()))
    for line in lines:
        body = json.loads(line["body"])
        assert hashlib.sha256(line["body"].encode()).hexdigest() == line["hash"]
        assert body["previous"] == before
        before = line["hash"]
    assert [line["answer"] for line in lines] == [None, None, "[1]"]
    assert before == ledger.anchor()


def test_a_ledger_in_memory_keeps_its_rows_when_it_lets_go():
    with Ledger(":memory:", limit=Limit.filter(epsilon=1)) as ledger:
        ledger.charge(TENTH)
    assert len(ledger) == 2


def test_what_a_process_has_seen_cannot_be_taken_back_from_it(tmp_path):
    """The file keeps its place and is put back to an older copy while it is in use."""
    path = tmp_path / "a.ledger"
    with Ledger(path, limit=Limit.filter(epsilon=1)) as ledger:
        ledger.charge(TENTH)
        older = path.read_bytes()
        ledger.charge(TENTH)
        path.write_bytes(older)
        with pytest.raises(LedgerDamaged):
            ledger.charge(TENTH)
        with pytest.raises(LedgerDamaged):
            ledger.budget()


def test_a_store_may_be_handed_over(tmp_path):
    store = SQLite(tmp_path / "a.ledger")
    with Ledger(store, limit=Limit.filter(epsilon=1)) as ledger:
        assert ledger.where == store.place


def test_what_is_left_is_said_in_answers_like_the_last_one(where):
    """With the keys that it had to find, and with keys that are declared; a share sees its own questions only."""
    question = privacy.leaky(1e-7) + privacy.laplace(10)
    limit = Limit.filter(epsilon=1, delta=1e-6, leaks=0.75, analysts={"ana": 1, "bo": 1})
    with Ledger(where, limit=limit) as ledger:
        assert ledger.budget().fits == ()
        ledger.charge(question, asker=Asker(analyst="ana"))
        ledger.charge(privacy.pure(0.2), asker=Asker(analyst="bo"))
        assert ledger.budget().fits == (), "nobody asks for all of them"
        assert ledger.budget(asker=Asker(analyst="bo")).fits == ("3 more answers like the last one fit",)
        found, declared = ledger.budget(asker=Asker(analyst="ana")).fits
        assert found == "6 more answers like the last one fit, with keys found by key selection"
        assert declared == "7 more answers like the last one fit, with declared keys (no δ)"
        assert declared in str(ledger.budget(asker=Asker(analyst="ana")))
        assert declared in budget_facts(ledger.budget(asker=Asker(analyst="ana")))["notes"]
