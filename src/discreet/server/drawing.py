# SPDX-License-Identifier: Apache-2.0
"""Questions on their way: from the line to an engine, and to the tick at which their outcome is
shown.

**Guarantee.** What comes after a charge is an outcome, whatever it is: it is shown at a moment of
the schedule, and an engine takes the next question only then. Nothing here reads a row.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from discreet.errors import DiscreetError, EngineFailed
from discreet.ledger import Entry, Receipt
from discreet.ledger.receipt import NOT_DRAWN
from discreet.server.config import ShowingSettings
from discreet.server.datasets import Hosted
from discreet.server.engine import EngineOrder, EngineReply
from discreet.server.line import RETRY, WaitingLine
from discreet.server.metrics import Metrics
from discreet.server.refusals import refuse
from discreet.server.store import ServerStore
from discreet.server.ticks import GIVE_UP, show_at_tick
from discreet.session.account import refuse_not_drawn
from discreet.session.answering import step_keys
from discreet.tables.answer.answer import Answer

__all__ = ["QuestionOutcome", "QuestionsUnderWay", "SubmittedQuestion", "not_drawn_error", "paid_steps"]

Result = TypeVar("Result")

#: Seconds that charged questions have when the server stops.
_LAST_WORDS = 30.0


@dataclass(frozen=True)
class QuestionOutcome:
    """How questions ended, or where they are.

    `state` is "answered", "not drawn", "refused" (a later step, after an earlier one was paid for),
    "waiting" (in the line, nothing is charged; `before` are ahead) or "charged". `answers` are by
    the keys of the caller. `paid` says whether this request paid.
    """

    state: str
    answers: Mapping[str, Answer] = field(default_factory=dict)
    paid: bool = False
    error: DiscreetError | None = None
    before: int | None = None

    @property
    def is_final(self) -> bool:
        """Whether nothing more will come."""
        return self.state not in ("waiting", "charged")

    @property
    def answer(self) -> Answer | None:
        """The only answer."""
        return next(iter(self.answers.values()), None)


class SubmittedQuestion:
    """A question, or several together, on the way from the line to the tick."""

    def __init__(self, person: str, order: EngineOrder, names: Mapping[str, str]) -> None:
        self.person, self.order, self.names = person, order, names
        self.outcome = QuestionOutcome("waiting")
        self.refusal: DiscreetError | None = None
        self.receipt: int | None = None
        self.is_taken = False
        self._changed = asyncio.Event()

    @property
    def is_over(self) -> bool:
        """Whether it has been shown or refused."""
        return self.refusal is not None or self.outcome.is_final

    def tell(self, outcome: QuestionOutcome | DiscreetError) -> None:
        """Wake up everybody who waits for news."""
        if isinstance(outcome, QuestionOutcome):
            self.outcome = outcome
        else:
            self.refusal = outcome
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Wait for news, for some seconds at most."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), max(0.0, seconds))

    async def result(self, seconds: float) -> QuestionOutcome:
        """The outcome, or where the question is after some seconds; a refusal is raised."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while not self.is_over and loop.time() < until:
            await self.wait(until - loop.time())
        if self.refusal is not None:
            raise self.refusal
        return self.outcome


class QuestionsUnderWay:
    """The questions of all data sets that wait or are drawn."""

    def __init__(self, showing: ShowingSettings, store: ServerStore, metrics: Metrics) -> None:
        self._showing, self._store, self._metrics = showing, store, metrics
        self._lines: dict[str, WaitingLine[SubmittedQuestion]] = {}
        self._questions: dict[tuple[str, frozenset[str]], SubmittedQuestion] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="question")

    def start(self, hosted: Hosted) -> None:
        """Let the engines of a data set work."""
        line = self._lines[hosted.name] = WaitingLine()
        for number, (watcher, _) in enumerate(hosted.engines):
            watcher.on_reopened = partial(self._note_reopened, hosted)
            self._tasks.append(asyncio.create_task(self._work_on(hosted, line, number)))

    async def stop(self) -> None:
        """Refuse what waits, and let what is charged end."""
        under_way = [question for question in self._questions.values() if not question.is_over]
        for question in under_way:
            if question.receipt is None and not question.is_taken:
                question.tell(refuse("stopping", retry=RETRY))
        drawing = [question.result(_LAST_WORDS) for question in under_way if not question.is_over]
        await asyncio.gather(*drawing, return_exceptions=True)
        for task in self._tasks:
            task.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def find(self, dataset: str, keys: frozenset[str]) -> SubmittedQuestion | None:
        """The question with these keys, if it is on its way."""
        return self._questions.get((dataset, keys))

    def questions(self, dataset: str, person: str) -> list[SubmittedQuestion]:
        """The questions of a person that are on their way in a data set."""
        under_way = list(self._questions.items())
        return [
            question
            for (name, _), question in under_way
            if name == dataset and question.person == person and not question.is_over
        ]

    def add(self, hosted: Hosted, question: SubmittedQuestion) -> None:
        """Line a question up; refused if too many wait."""
        self._lines[hosted.name].join(question)
        self._questions[hosted.name, frozenset(question.names)] = question

    def leave(self, dataset: str, question: SubmittedQuestion) -> bool:
        """Take a question out of the line; whether it was still there."""
        if not self._lines[dataset].leave(question):
            return False
        self._questions.pop((dataset, frozenset(question.names)), None)
        question.tell(refuse("not found"))
        return True

    def position(self, dataset: str, question: SubmittedQuestion) -> int | None:
        """How many are drawn before it; None once it has its turn."""
        with contextlib.suppress(ValueError):
            return self._lines[dataset].before(question)
        return None

    async def _work_on(self, hosted: Hosted, line: WaitingLine[SubmittedQuestion], number: int) -> None:
        """Let one engine answer one question after the other."""
        while True:
            question = await line.take()
            question.is_taken = True
            try:
                if not question.is_over:
                    await self._draw(hosted, number, question)
            except Exception:  # noqa: BLE001 - one question must not end the work on all others
                if question.receipt is None:
                    question.tell(refuse("stopping", retry=RETRY))
            finally:
                line.finish(question)
                self._questions.pop((hosted.name, frozenset(question.names)), None)

    async def _draw(self, hosted: Hosted, number: int, question: SubmittedQuestion) -> None:
        """Hand a question to an engine, and show how it ended at a tick."""
        loop = asyncio.get_running_loop()
        watcher, thread = hosted.engines[number]
        showing, started = self._showing, loop.time()
        deadline = showing.deadline * GIVE_UP if showing.fixed else showing.deadline

        def tell(receipt: int) -> None:
            loop.call_soon_threadsafe(self._note_charge, hosted, question, receipt)

        reply = loop.run_in_executor(thread, watcher.run, question.order, deadline, tell)
        ended = await show_at_tick(showing, reply, started)
        question.tell(await self.in_thread(partial(_outcome_of, hosted, question, ended)))
        if ended.charged:
            self._store.keep_anchor(hosted.name, len(hosted.ledger) - 1, hosted.ledger.anchor())

    def _note_charge(self, hosted: Hosted, question: SubmittedQuestion, receipt: int) -> None:
        if question.receipt is None:
            self._metrics.count("charges", dataset=hosted.name)
        question.receipt = receipt
        question.tell(QuestionOutcome("charged", paid=True))

    def _note_reopened(self, hosted: Hosted, toml: str) -> None:
        if hosted.describe_again(toml):
            self._store.save_description(hosted.name, toml, None)
        self._store.log("data opened again", None, hosted.name)

    async def in_thread(self, work: Callable[[], Result]) -> Result:
        """The result of work that takes a while, done in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _outcome_of(
    hosted: Hosted, question: SubmittedQuestion, reply: EngineReply
) -> QuestionOutcome | DiscreetError:
    if reply.state == "answered":
        answers, paid = {}, False
        for key, (text, receipt_text) in reply.answers.items():
            receipt = None if receipt_text is None else Receipt.from_json(receipt_text)
            paid = paid or (receipt is not None and receipt.cost is not None)
            answers[question.names[key]] = replace(Answer.from_json(text), receipt=receipt)
        return QuestionOutcome("answered", answers, paid=paid)
    if reply.state == "not drawn":
        return QuestionOutcome("not drawn", paid=reply.charged, error=not_drawn_error())
    if reply.state == "refused" and reply.error is not None:
        # A later step was refused: what it follows from was paid for, so that it is an outcome too.
        stepped = reply.charged or any(True for key in question.names for _ in paid_steps(hosted, key))
        return QuestionOutcome("refused", paid=reply.charged, error=reply.error) if stepped else reply.error
    return refuse("stopping", retry=RETRY)


def paid_steps(hosted: Hosted, key: str) -> Iterator[Entry]:
    """The steps before the last of a question that have an outcome in the ledger."""
    for step in step_keys(key):
        entry = hosted.ledger.find_for_all(step)
        if entry is None:
            return
        yield entry


def not_drawn_error() -> EngineFailed:
    """That a question was paid for and not drawn, in constant words."""
    try:
        refuse_not_drawn(NOT_DRAWN)
    except EngineFailed as failure:
        failure.spent = "what this answer costs"
        return failure
    raise AssertionError
