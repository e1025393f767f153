# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C anywhere: the ledger goes on, nobody is kept out, nothing is half charged, and no answer is free."""

from __future__ import annotations

import fcntl
import gc
import os
import threading
from fractions import Fraction
from pathlib import Path

import pytest

from discreet import privacy
from discreet.ledger import Charge, Ledger, Limit, Receipt, sqlite
from discreet.ledger.opening import store_at
from tests.ledger.events import Happening
from tests.processes import PATIENCE

PIECE, COST = privacy.pure(0.5), Fraction(1, 2)
LIMIT = Limit.filter(epsilon=10**6)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """What is on disk is not the subject here, and thousands of charges would wait for it."""
    unsafe = tuple(setting.replace("EXTRA", "OFF") for setting in sqlite._SETTINGS)
    monkeypatch.setattr(sqlite, "_SETTINGS", unsafe)


@pytest.fixture
def book(where):
    with Ledger(where, limit=LIMIT) as ledger:
        yield ledger


def interrupted(error):
    def strike():
        raise error

    return strike


def at_every_event(call, error=KeyboardInterrupt, step=1):
    """Interrupt a call at its first event, and at every `step`-th after it, until it is not interrupted; yields each number.

    The exception is kept until the check is over, as an interactive session keeps it: frames and generators stay alive.
    """
    for number in range(0, 100_000, step):
        happening = Happening(number, interrupted(error))
        try:
            happening.during(lambda number=number: call(number))
        except error as kept:  # noqa: F841 - keeps the frames
            yield number
        else:
            assert not happening.happened or error is not KeyboardInterrupt, "an interrupt was swallowed"
            if not happening.happened:
                assert number > 50, "too few events for a call: the interrupts miss some"
                return
            yield number


def folder_is_free(ledger):
    """Whether nobody stands in line for the folder of a file."""
    if not Path(ledger.where).is_absolute():
        return True
    handle = os.open(Path(ledger.where).parent, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def charged(ledger):
    """How many charges there are, from another thread, which an abandoned lock would keep out."""
    found = []
    thread = threading.Thread(target=lambda: found.append(ledger.spent["epsilon"]), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert found, "a lock was left behind"
    assert found[0] % COST == 0
    return int(found[0] / COST)


@pytest.fixture
def others(where, book):
    """Somebody else with the same ledger, who is not patient."""
    store = store_at(where)
    store._patience = 5.0
    with Ledger(store) as ledger:
        yield ledger


ERRORS = [KeyboardInterrupt, MemoryError]  # no Exception, and one


@pytest.mark.parametrize("error", ERRORS)
def test_a_charge_is_made_or_not(book, others, error):
    known = 0
    for number in at_every_event(lambda number: book.charge(PIECE, question="q", key=f"k{number}"), error):
        assert folder_is_free(book)
        now = charged(book)
        assert now - known in {0, 1}
        known = now + 2
        others.charge(PIECE)  # nobody is kept out
        assert book.charge(PIECE, question="q", key=f"k{number}").cost is not None
        assert charged(book) == known
    assert book.verify().intact


def test_a_commit_keeps_the_answer_or_not_and_then_asking_again_shows_one(book, others):
    receipts = {}

    def commit(number):
        book.commit(receipts[number], "drawn")

    def receipts_first(number):
        receipts[number] = book.charge(PIECE, key=f"k{number}")

    receipts_first(0)
    for number in at_every_event(commit):
        assert folder_is_free(book)
        kept = others.find(f"k{number}")
        assert kept is None or kept.answer == "drawn"
        shown = book.commit(receipts[number], "drawn again")
        assert shown == ("drawn again" if kept is None else "drawn")
        assert others.find(f"k{number}").answer == shown
        receipts_first(number + 1)
        others.charge(PIECE)
    assert book.verify().intact


def test_what_is_charged_together_is_never_charged_twice(book, others, request):
    def ask(number):
        wanted = [Charge(PIECE, f"q{part}", key=f"{number}/{part}") for part in range(2)]
        found = book.charge_all(wanted)
        due = [(one, f"answer {one.number}") for one in found if isinstance(one, Receipt)]
        shown = iter(book.commit_all(due))
        return [next(shown) if isinstance(one, Receipt) else one.answer for one in found]

    known = 0
    # a server takes minutes for all of them; between its statements it runs what is tried at every event with a file
    step = 1 if request.node.callspec.id == "sqlite" else 5
    for number in at_every_event(ask, step=step):
        assert folder_is_free(book)
        now = charged(book)
        assert now - known in {0, 2}
        shown = ask(number)  # for nothing, if it was charged
        assert ask(number) == shown
        others.charge(PIECE)
        known += 3
        assert charged(book) == known
    assert book.verify().intact


def test_a_refusal_that_is_interrupted_writes_nothing(book, others):
    beyond = privacy.pure(10.0**7)
    with pytest.raises(Exception, match="DP601"):
        book.charge(beyond)

    def refused(_):
        with pytest.raises(Exception, match="DP601"):
            book.charge(beyond)

    for known, _ in enumerate(at_every_event(refused)):
        assert folder_is_free(book)
        assert charged(book) == known
        others.charge(PIECE)


def test_a_look_that_is_interrupted_keeps_nobody_out(book, others):
    receipt = book.charge(PIECE, key="k")
    book.commit(receipt, "drawn")

    def look(_):
        book.close()
        return book.find("k").answer, book.budget(), len(book), book.anchor(), list(book.entries())

    known = 1
    for _ in at_every_event(look):
        assert charged(book) == known
        others.charge(PIECE)
        known += 1
        if known == 400:  # reading takes longer with every row; what follows is the same again
            break
        assert look(0)[0] == "drawn"


# on a server each of some thousand openings makes a schema
@pytest.mark.parametrize("kind", ["file", pytest.param("server", marks=pytest.mark.slow)])
def test_an_opening_that_is_interrupted_leaves_a_whole_ledger_or_none(kind, tmp_path, request):
    from tests.postgres import schema

    made = {}

    def place(number):
        if number not in made:
            here = tmp_path / f"{number}"
            here.mkdir(exist_ok=True)
            is_file = kind == "file"
            made[number] = (
                str(here / "a.ledger") if is_file else schema(request.getfixturevalue("postgres_dsn"))
            )
        return made[number]

    place(0)
    gc.freeze()  # what other tests have left behind is not searched a thousand times
    request.addfinalizer(gc.unfreeze)
    for number in at_every_event(lambda number: Ledger(place(number), limit=LIMIT).close()):
        gc.collect()
        with Ledger(place(number), limit=LIMIT) as ledger:
            assert len(ledger) == 1
            assert folder_is_free(ledger)
            assert ledger.charge(PIECE).number == 1
            if kind == "file":
                assert [path.name for path in Path(ledger.where).parent.iterdir()] == ["a.ledger"]
        place(number + 1)
