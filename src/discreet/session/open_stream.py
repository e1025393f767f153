# SPDX-License-Identifier: Apache-2.0
"""Opens streams, and finds those that a ledger holds.

**Guarantee.** A stream is charged in full before its first row is drawn, once: opening it again,
with the same question, periods and cost, finds the same stream, and anything else under its name is
refused (DP604).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from discreet import check, clock
from discreet.errors import BadParameter, DiscreetError, LedgerError
from discreet.ledger import Charge, Entry, Receipt
from discreet.ledger.periods import STREAM
from discreet.ledger.turn import key_reused_error
from discreet.ledger.window import WindowedLimit
from discreet.privacy.guarantee import Guarantee
from discreet.session.account import PendingAnswer
from discreet.session.compiler import QuestionCompiler
from discreet.session.stream import Stream
from discreet.session.stream_file import stream_file
from discreet.session.validate import OWN_KEYS, question_of
from discreet.streams.participation import Participation
from discreet.tables.answer.answer import Answer
from discreet.tables.ask.question import Question
from discreet.tables.plan.spend import Spend

if TYPE_CHECKING:
    from discreet.tables.streams.plan import StreamPlan

__all__ = ["StreamRequest", "find_stream", "names_of_streams", "open_stream", "plan_of"]

_PREFIX = f"{OWN_KEYS}stream "
#: The longest name: with a prefix and the number of a period it is a key of the ledger.
_LONGEST = 150
#: A stream whose end is not known is built for so many times the periods that are expected.
_OPEN_ENDED = 10


@dataclass(frozen=True)
class StreamRequest:
    """A stream as it is asked for, before anything is charged."""

    question: object
    every: str
    periods: int
    spend: Spend
    name: str | None = None
    start: date | str | None = None
    time: str | None = None
    per_unit: Participation | Mapping[str, int] | None = None
    best_for: str | int = "totals"
    open_ended: bool = False


def plan_of(compiler: QuestionCompiler, request: StreamRequest) -> tuple[str, StreamPlan]:
    """The name of a stream, and its plan; nothing is charged."""
    from discreet.streams.choice import check_measure
    from discreet.streams.factor import check_periods
    from discreet.tables.streams.calendar import Calendar, first_day_of
    from discreet.tables.streams.plan import plan_stream

    question = _question(compiler, request.question)
    name = _name(request.name, question)
    periods = check_periods(request.periods)
    if check.flag(open_ended=request.open_ended):
        periods = check_periods(_OPEN_ENDED * periods)
    start = request.start
    if start is None:
        # A stream that is found again began when it was opened.
        entry = _opening(compiler, name)
        start = (
            first_day_of(request.every, clock.today())
            if entry is None
            else str(json.loads(entry.answer or "{}").get("start"))
        )
    calendar = Calendar(request.every, check.day(start=start), periods)
    plan = plan_stream(
        question,
        compiler.data,
        request.spend,
        calendar,
        request.time,
        _participation(request.per_unit),
        check_measure(request.best_for),
    )
    return name, plan


def open_stream(
    compiler: QuestionCompiler,
    request: StreamRequest,
    file: str | Path | None,
    timed: Callable[[Callable[[], Answer]], Answer],
) -> Stream:
    """The stream, charged unless it was opened before."""
    from discreet.tables.streams.stored import plan_to_dict

    name, plan = plan_of(compiler, request)
    account, key = compiler.account, f"{_PREFIX}{name}"
    text = _question_text(plan)
    if isinstance(account.ledger.limit, WindowedLimit):
        raise _windowed_error(plan.question.text)
    entry = account.find(key, text, plan.guarantee)
    secrets = stream_file(account.ledger, file, new=entry is None)
    stored = json.dumps(
        {**plan_to_dict(plan), "file": secrets.fingerprint}, ensure_ascii=False, separators=(",", ":")
    )
    pending = PendingAnswer(Charge(plan.guarantee, text, key, STREAM), lambda: stored, str)
    (settled,) = account.settle(
        [pending], compiler.data.ready, compiled=True, spent="what the whole stream costs"
    )
    secrets.record(account.ledger.anchor())
    return _stream(
        compiler,
        name,
        str(settled.text),
        question=plan.question,
        guarantee=plan.guarantee,
        receipt=settled.receipt,
        file=file,
        timed=timed,
    )


def find_stream(
    compiler: QuestionCompiler,
    name: str,
    file: str | Path | None,
    timed: Callable[[Callable[[], Answer]], Answer],
) -> Stream:
    """A stream that the ledger holds, by its name."""
    entry = _opening(compiler, _name(name, None))
    receipt = None if entry is None else entry.receipt
    if entry is None or receipt is None:
        names = names_of_streams(compiler)
        raise LedgerError(
            "DP610",
            f"the ledger has no stream {name!r}.",
            why="a stream is paid for when it is opened.",
            fix=f"session.find_stream({names[0]!r})"
            if names
            else 'session.stream("SELECT COUNT(*) FROM visits", every="week", periods=52, epsilon=1, delta=1e-6)',
        )
    # Refused for whoever did not open it.
    compiler.account.find(f"{_PREFIX}{name}", entry.question or "", None)
    return _stream(
        compiler,
        name,
        str(entry.answer),
        question=_question(compiler, json.loads(str(entry.answer))["question"]),
        guarantee=receipt.guarantee,
        receipt=receipt,
        file=file,
        timed=timed,
    )


def names_of_streams(compiler: QuestionCompiler) -> list[str]:
    """The names of the streams of this analyst, the first one first."""
    asker = compiler.account.asker
    return [
        entry.key.removeprefix(_PREFIX)
        for entry in compiler.account.ledger.entries()
        if entry.kind == "committed"
        and entry.mechanism == STREAM
        and entry.key is not None
        and entry.key.startswith(_PREFIX)
        and (entry.analyst, entry.project) == (asker.analyst, asker.project)
    ]


def _stream(
    compiler: QuestionCompiler,
    name: str,
    text: str,
    *,
    question: Question,
    guarantee: Guarantee,
    receipt: Receipt | None,
    file: str | Path | None,
    timed: Callable[[Callable[[], Answer]], Answer],
) -> Stream:
    """The stream that the ledger describes, with the file that it was opened with."""
    from discreet.tables.streams.stored import plan_from_dict

    stored = json.loads(text)
    try:
        plan = plan_from_dict(stored, question, compiler.data, guarantee)
    except ValueError as error:
        if isinstance(error, DiscreetError):
            raise
        raise key_reused_error("for a stream with other columns or groups, or by a newer version") from None
    account = compiler.account
    secrets = stream_file(account.ledger, file, new=False)
    if secrets.fingerprint != stored["file"]:
        raise LedgerError(
            "DP610",
            "the stream was opened with another stream file.",
            why="its digests were made with the secret of that file.",
            fix=f"name the stream file that it was opened with:  session.find_stream({name!r}, file='visits.streams')",
        )
    return Stream(
        name,
        key=f"{_PREFIX}{name}",
        plan=plan,
        data=compiler.data,
        account=account,
        file=secrets,
        receipt=receipt,
        timed=timed,
    )


def _opening(compiler: QuestionCompiler, name: str) -> Entry | None:
    """The stored description of a stream."""
    return compiler.account.ledger.find_for_all(f"{_PREFIX}{name}")


def _question(compiler: QuestionCompiler, asked: object) -> Question:
    if not isinstance(asked, str):
        return question_of(asked, compiler.data)
    from discreet.tables.ask.sql import parse

    parsed = parse(asked, compiler.data)
    if parsed.explain:
        raise BadParameter(
            "DP107",
            "EXPLAIN PRIVACY asks for a preview, and a stream is charged.",
            why="a preview is free, so it has its own method.",
            fix=f"session.preview_stream({parsed.question.text!r}, every='week', periods=52, epsilon=1, delta=1e-6)",
        )
    return parsed.question


def _question_text(plan: StreamPlan) -> str:
    """The question of the charge: everything that must be the same for it to be the same stream."""
    calendar = plan.calendar
    figures = {"totals": "totals", "periods": f"single {calendar.every}s"}.get(
        str(plan.measure), f"windows of {plan.measure}"
    )
    bound = plan.participation.describe(plan.unit.protects, calendar.every)
    return (
        f"{plan.question.text} [a stream of {calendar.periods} {calendar.every}s from {calendar.start}, by {plan.time}; best for "
        f"{figures}; {bound[0].lower()}{bound[1:]}]"
    )


def _name(name: object, question: Question | None) -> str:
    if name is None and question is not None:
        text = " ".join(question.text.split())
        if len(text) <= _LONGEST and text.isprintable():
            return text
        return f"{text[:100]}… {hashlib.sha256(text.encode()).hexdigest()[:8]}"
    if isinstance(name, str) and 0 < len(name) <= _LONGEST and name.isprintable() and name.strip() == name:
        return name
    raise BadParameter(
        "DP102",
        f"the name of a stream has 1 to {_LONGEST} printable characters.",
        why="its rows are found in the ledger by this name.",
        fix='name="weekly visits"',
    )


def _windowed_error(question: str) -> LedgerError:
    return LedgerError(
        "DP610",
        "a stream cannot be opened under a limit that begins anew with each window.",
        why="it is charged in one window and published in later ones, where nothing would be charged for its rows.",
        fix=f"ask in each window:  session.sql({question!r}, epsilon=0.1)",
    )


def _participation(stated: Participation | Mapping[str, int] | None) -> Participation | None:
    if stated is None or isinstance(stated, Participation):
        return stated
    names = {"rows", "periods", "apart"}
    if isinstance(stated, Mapping) and set(stated) <= names:
        return Participation(**stated)
    raise BadParameter(
        "DP104",
        "per_unit says how many rows of one unit count, as a Participation or a mapping.",
        why="the noise is made for that many rows of one unit in the whole stream.",
        fix="per_unit=dp.streams.Participation(rows=3)   or   per_unit={'periods': 4, 'apart': 13}",
    )
