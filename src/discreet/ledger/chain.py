# SPDX-License-Identifier: Apache-2.0
"""Rows that hold on to each other: canonical JSON, and the hash that each row carries of the one
before.

The body of a row is one line of JSON with everything that the row says, the hash of the row before
it, and the hash of its answer; the row's own hash is the SHA-256 of that line. The answer lies
beside the body, so that reading the last row stays cheap however long the answers are.

**Guarantee.** A row that was changed after it was written, taken out, put in, or moved, breaks the
chain at that row, unless every row after it is computed anew: then the hash of the last row (the
anchor) is another one. Two texts with the same SHA-256 are not known to anybody.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from typing import Any, NamedTuple

from discreet.errors import LedgerDamaged
from discreet.json_types import JsonFacts
from discreet.ledger.split import split_body

#: What the first row names as the hash of the row before it.
NOTHING = "0" * 64
#: What a row may say besides what every row has.
SAID = (
    "about", "analyst", "cost", "guarantee", "key", "mechanism", "project", "purpose", "question", "settles",
)  # fmt: skip
#: What only those rows say that have something to say: what was written before it could be said
#: stays readable.
SAID_BY_SOME = ("compiled", "describes", "description", "held", "in_session", "stream")


class LedgerRow(NamedTuple):
    """A row as it is stored. The columns beside `body` repeat what is in it, so that it can be
    found.
    """

    number: int
    kind: str
    key: str | None
    settles: int | None
    body: str
    hash: str
    answer: str | None


def canonical(value: object) -> str:
    r"""The one way to write a value as JSON, in ASCII.

    >>> canonical({"b": [1, None], "a": "ε"})
    '{"a":"\\u03b5","b":[1,null]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(text: str) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@cache
def version() -> str:
    """The release that writes."""
    return metadata.version("discreet")


def now() -> str:
    """The time that a row carries: what the clock of this machine says, in UTC."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def next_row(
    last: LedgerRow | None,
    kind: str,
    *,
    time: str,
    state: JsonFacts,
    answer: str | None = None,
    **said: Any,
) -> LedgerRow:
    """The row that comes after `last` (the first one, if that is None) and says this."""
    beside = None if answer is None else canonical(answer)
    number = 0 if last is None else last.number + 1
    body: dict[str, Any] = (
        {name: said.get(name) for name in SAID}
        | {
            "number": number,
            "previous": NOTHING if last is None else last.hash,
            "kind": kind,
            "time": time,
            "state": state,
            "answer": None if beside is None else digest(beside),
            "version": version(),
        }
        | {name: said[name] for name in SAID_BY_SOME if said.get(name)}
    )
    line = canonical(body)
    return LedgerRow(number, kind, body["key"], body["settles"], line, digest(line), beside)


def read_row(
    row: LedgerRow,
    *,
    whole: bool = True,
    split: Callable[[str], dict[str, Any] | None] = split_body,
) -> dict[str, Any]:
    """What the body of a row says, after everything was checked that one row can tell; `whole`
    includes its answer.

    `split` is `split_body`, or that of a `BodySplitter`, which gives costs that nobody may change.
    """
    try:
        known = split(row.body)
        body: dict[str, Any] = json.loads(row.body) if known is None else known
        columns = (body["number"], body["kind"], body["key"], body["settles"])
        intact = (
            digest(row.body) == row.hash
            and (known is not None or canonical(body) == row.body)
            and columns == (row.number, row.kind, row.key, row.settles)
            and isinstance(body["previous"], str)
            and (not whole or body["answer"] == (None if row.answer is None else digest(row.answer)))
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        intact = False
    if not intact:
        raise damaged_error(f"row {_number_text(row.number)} is not what was written.")
    return body


def answer_of(row: LedgerRow) -> str | None:
    """The answer of a row that `read_row` has found intact."""
    if row.answer is None:
        return None
    answer: str = json.loads(row.answer)
    return answer


def damaged_error(what: str) -> LedgerDamaged:
    """The error for a ledger that is not what was written."""
    return LedgerDamaged(
        "DP602",
        f"the ledger is damaged: {what}",
        why="what was spent is known only from its rows; with one of them changed or missing, nothing more can be guaranteed.",
        fix="keep the file, and charge nothing more. A copy forgets what was charged after it was made: go on with one only if "
        "it holds the last anchor that you wrote down, and nothing was charged since:  Ledger('copy.ledger', anchor='…'). "
        "Otherwise treat the whole budget as spent.",
    )


def _number_text(number: object) -> str:
    return str(number) if isinstance(number, int) else "?"
