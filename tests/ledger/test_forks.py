# SPDX-License-Identifier: Apache-2.0
"""Threads that fork at the same time, while others charge: nobody waits for ever, and nothing is lost or spent twice."""

from __future__ import annotations

import os
import threading

import pytest

from discreet import privacy
from discreet.errors import DiscreetError
from discreet.ledger import Ledger, Limit
from discreet.mechanisms import AdaptiveQueries, SparseVector
from tests.chance import no_chance
from tests.ledger.workers import run
from tests.processes import PATIENCE

pytestmark = no_chance("asks who was charged and who waits, never what was drawn")

LIMIT = Limit.filter(epsilon=1)
FORKS = 4


def test_threads_that_fork_at_the_same_time_wait_for_nobody_for_ever(where, tmp_path):
    others = [str(tmp_path / f"{name}.ledger") for name in "bc"]
    for place in (where, *others):
        Ledger(place, limit=LIMIT).close()
    said = run("fork_storm", where=where, others=others, forks=FORKS)
    assert said[-1] == {"ended": [0] * (9 * FORKS), "intact": [True] * 3}


def test_a_fork_from_inside_of_a_transaction_ends_it_and_blocks_nobody(where):
    Ledger(where, limit=LIMIT).close()
    said = run("fork_inside", where=where)
    assert {"within": [0]} in said
    assert {"beside": [0]} in said
    assert {"error": "DP606"} in said
    assert said[-1]["intact"]


@pytest.mark.parametrize("kind", ["sparse vector", "analysis"])
def test_a_conversation_is_refused_in_a_child_also_while_a_thread_of_the_parent_asks(kind):
    if kind == "sparse vector":
        conversation = SparseVector(epsilon=1, sensitivity=1, threshold=10).open()
        ask = lambda: conversation.ask(0)  # noqa: E731
    else:
        conversation = AdaptiveQueries(epsilon=1, records=10, queries=5).open([0] * 10)
        ask = lambda: conversation.ask(lambda _: 0.5)  # noqa: E731
    held, over = threading.Event(), threading.Event()

    def hold():
        with conversation._lock:
            held.set()
            over.wait(PATIENCE)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(PATIENCE)
    process = os.fork()
    if not process:
        threading.Timer(PATIENCE, lambda: os._exit(9)).start()
        try:
            ask()
        except DiscreetError:
            os._exit(0)
        finally:
            os._exit(1)
    over.set()
    thread.join(PATIENCE)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0


def test_a_guarantee_survives():
    """The fork above left this process as it was."""
    with Ledger(":memory:", limit=LIMIT) as ledger:
        assert ledger.charge(privacy.pure(0.1)).number == 1
