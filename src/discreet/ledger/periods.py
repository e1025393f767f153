# SPDX-License-Identifier: Apache-2.0
"""The rows of a stream: paid for when the stream was opened, stored one by one, shown after that.

    ledger.add_period("weekly visits", 0, row)      # returns the row to show

**Guarantee.** A period of a stream has one row for ever. The row that was stored first counts, in
this process and in every other; rows come in the order of their periods. None of them is charged.

Why it holds: one writer at a time looks for the row of the period, and adds it if there is none, in
one transaction. What would break it: showing a row that this has not returned.
"""

from __future__ import annotations

from discreet import check
from discreet.errors import LedgerError
from discreet.ledger.asker import Asker
from discreet.ledger.receipt import entry_of
from discreet.ledger.store import Store
from discreet.ledger.turn import Turn, key_reused_error

__all__ = ["STREAM", "add_period", "period_key", "stored_periods"]

#: What the row of a charge says of its mechanism if it opens a stream.
STREAM = "Stream"


def period_key(key: str, period: int) -> str:
    """The key of the row of a period."""
    return f"{key} · {period}"


def add_period(turn: Turn, key: str, period: int, text: str, asker: Asker) -> str:
    """Add the row of a period; if there is one, that is the one that counts."""
    check.whole(at_least=0, period=period)
    answered = turn.store.answer_for_key(key)
    opening = None if answered is None else entry_of(answered)
    if opening is None or opening.mechanism != STREAM:
        raise _no_stream_error()
    if (opening.analyst, opening.project) != (asker.analyst, asker.project):
        raise key_reused_error()
    stored = turn.store.period_with_key(period_key(key, period))
    if stored is not None:
        return entry_of(stored).answer or ""
    if period and turn.store.period_with_key(period_key(key, period - 1)) is None:
        raise _out_of_order_error()
    turn.add_uncharged(
        "period", key=period_key(key, period), answer=text, stream=opening.number, question=opening.question
    )
    return text


def stored_periods(store: Store, key: str) -> list[str]:
    """The rows of a stream that are stored, the first period first."""
    texts: list[str] = []
    while (row := store.period_with_key(period_key(key, len(texts)))) is not None:
        texts.append(entry_of(row).answer or "")
    return texts


def _no_stream_error() -> LedgerError:
    return LedgerError(
        "DP610",
        "no stream was paid for under this key.",
        why="the rows of a stream are paid for together, when it is opened.",
        fix='session.stream("SELECT COUNT(*) FROM visits", every="week", periods=52, epsilon=1, delta=1e-6)',
    )


def _out_of_order_error() -> LedgerError:
    return LedgerError(
        "DP610",
        "the row of an earlier period is missing.",
        why="each row of a stream builds on the rows before it.",
        fix="stream.release()   which publishes all periods that are over, in their order",
    )
