# SPDX-License-Identifier: Apache-2.0
"""Questions to a server, from the request to the tick: what the API and the pages call.

**Guarantee.** Until a question is handed to an engine, everything here follows from the request,
the public description and the ledger: this process has no rows. An engine charges before it draws.
What comes after a charge is an outcome: it is shown at a moment of the schedule (`ticks.py`), and
never as a status that depends on rows. A question under the same key is paid for once.

Why it holds: a session on the description without rows finds a stored answer, or refuses the
question, or stops where a row would be needed (DP803); only then the question is lined up for an
engine.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from discreet.errors import DiscreetError, EngineFailed
from discreet.extras import naming_extras
from discreet.ledger import Budget
from discreet.ledger.receipt import NOT_DRAWN
from discreet.ledger.turn import key_reused_error
from discreet.privacy.wire import from_json
from discreet.server.config import ServerConfig
from discreet.server.datasets import Hosted, QuestionRecord, open_datasets
from discreet.server.drawing import (
    QuestionOutcome,
    QuestionsUnderWay,
    SubmittedQuestion,
    not_drawn_error,
    paid_steps,
)
from discreet.server.engine import EngineOrder
from discreet.server.line import RETRY
from discreet.server.metrics import Metrics
from discreet.server.models import QuestionBody
from discreet.server.people import People
from discreet.server.refusals import refuse
from discreet.server.store import Caller, ServerStore
from discreet.session import Session
from discreet.tables.answer.answer import Answer
from discreet.tables.plan.preview import Preview

__all__ = ["Asking", "QuestionOutcome", "QuestionPreview", "SubmittedQuestion", "default_key", "ledger_key"]

_KEY = re.compile(r"[A-Za-z0-9._-]{1,128}")
#: Seconds that compiling a question for its preview may take.
_PREVIEW_TIME = 5.0


@dataclass(frozen=True)
class QuestionPreview:
    """A preview with what it means for the own budget.

    `like_this` is None for any number, and `key` the key under which the same question at the same
    cost is asked by default.
    """

    preview: Preview
    fits: bool
    like_this: int | None
    budget: Budget | None
    key: str


class Asking:
    """The data sets of a server, and what people may ask of them."""

    def __init__(self, config: ServerConfig, store: ServerStore, people: People, metrics: Metrics) -> None:
        self.config, self.store, self.people, self.metrics = config, store, people, metrics
        self.datasets: dict[str, Hosted] = {}
        self.is_stopping = False
        self._one_look = asyncio.Lock()
        self._under_way = QuestionsUnderWay(config.showing, store, metrics)
        # Previews have threads of their own, so that a slow one keeps no request waiting.
        self._previews = ThreadPoolExecutor(2, thread_name_prefix="preview")

    async def start(self) -> None:
        """Open all data sets."""
        self.datasets = await open_datasets(self.config, self.store)
        for hosted in self.datasets.values():
            self._under_way.start(hosted)

    async def stop(self) -> None:
        """Refuse what waits, let what is charged end, and close the data sets."""
        self.is_stopping = True
        await self._under_way.stop()
        for hosted in self.datasets.values():
            self.store.keep_anchor(hosted.name, len(hosted.ledger) - 1, hosted.ledger.anchor())
            hosted.close()
        self._previews.shutdown(wait=False, cancel_futures=True)

    # --- before the charge ------------------------------------------------------------------------

    def dataset(self, caller: Caller, dataset: str, action: str) -> Hosted:
        """The data set, if the caller may do this in it."""
        self.people.require(caller, dataset, action)
        if dataset not in self.datasets:
            raise refuse("not found")
        return self.datasets[dataset]

    def seat(self, caller: Caller, hosted: Hosted) -> str | None:
        """The seat of the caller."""
        return self.store.seat_of(hosted.name, caller.person.id)

    def budget(self, caller: Caller, dataset: str) -> Budget:
        """What is spent and what remains of the caller's allocation."""
        hosted = self.dataset(caller, dataset, "preview")
        return self._session(caller, hosted, required=True).budget()

    async def preview(self, caller: Caller, dataset: str, body: QuestionBody) -> QuestionPreview:
        """The cost and the margin of error of a question. Nothing is spent."""
        hosted = self.dataset(caller, dataset, "preview")
        self.metrics.count("previews", dataset=dataset)
        work = asyncio.get_running_loop().run_in_executor(self._previews, self._preview, caller, hosted, body)
        try:
            return await asyncio.wait_for(work, _PREVIEW_TIME)
        except TimeoutError:
            raise refuse("late plan", retry=RETRY) from None

    def _preview(self, caller: Caller, hosted: Hosted, body: QuestionBody) -> QuestionPreview:
        session = self._session(caller, hosted, body)
        preview = session.preview(body.sql, parameters=tuple(body.parameters), **body.cost)
        key = default_key(hosted, preview, body)
        if self.seat(caller, hosted) is None:
            return QuestionPreview(preview, False, None, None, key)
        budget = session.budget()
        like = budget.like(preview.cost)
        return QuestionPreview(preview, like >= 1, None if like == float("inf") else int(like), budget, key)

    def _session(
        self, caller: Caller, hosted: Hosted, body: QuestionBody | None = None, *, required: bool = False
    ) -> Session:
        """A session of the caller's seat on the description without rows."""
        seat = self.seat(caller, hosted)
        if seat is None and required:
            raise refuse("no seat")
        return hosted.session(
            seat, None if body is None else body.project, None if body is None else body.purpose
        )

    # --- asking -----------------------------------------------------------------------------------

    async def ask(
        self, caller: Caller, dataset: str, body: QuestionBody, key: str, *, wait: float = 20.0
    ) -> QuestionOutcome:
        """The answer to a question under a key of the caller, or where the question is after `wait`
        seconds.
        """
        return await self.ask_together(caller, dataset, {key: body}, wait=wait, batch=False)

    async def ask_together(
        self,
        caller: Caller,
        dataset: str,
        bodies: Mapping[str, QuestionBody],
        *,
        wait: float = 20.0,
        batch: bool = True,
        prefix: str | None = None,
    ) -> QuestionOutcome:
        """The answers to questions under their keys, all or none."""
        hosted = self.dataset(caller, dataset, "ask")
        if self.seat(caller, hosted) is None:
            raise refuse("no seat")
        names = {ledger_key(caller, key, prefix): key for key in bodies}
        question = self._same_question(hosted, caller, bodies, names)
        if question is None:
            if self.is_stopping:
                raise refuse("stopping", retry=RETRY)
            probe = partial(self._look, caller, hosted, bodies, names, batch=batch)
            # What a token may still spend must not change between a look and the line.
            async with nullcontext() if caller.most is None else self._one_look:
                outcome = await self._under_way.in_thread(probe)
                if isinstance(outcome, QuestionOutcome):
                    return outcome
                question = self._same_question(hosted, caller, bodies, names)
                if question is None:
                    question = SubmittedQuestion(caller.person.id, outcome, names)
                    self._under_way.add(hosted, question)
        return self._with_position(hosted, question, await question.result(wait))

    def _look(
        self,
        caller: Caller,
        hosted: Hosted,
        bodies: Mapping[str, QuestionBody],
        names: Mapping[str, str],
        *,
        batch: bool,
    ) -> QuestionOutcome | EngineOrder:
        """The stored answer, or what an engine is to do; refusals cost nothing."""
        first = next(iter(bodies.values()))
        seat = self.seat(caller, hosted)
        keys = dict(zip(bodies, names, strict=True))
        questions = {
            keys[name]: (body.sql, body.cost, tuple(body.parameters)) for name, body in bodies.items()
        }
        order = EngineOrder(questions, seat, first.project, first.purpose, batch)
        session = hosted.session(seat, first.project, first.purpose)
        try:
            if batch:
                pairs = {key: (sql, cost) for key, (sql, cost, _) in questions.items()}
                stored = session.release_batch(pairs)  # type: ignore[arg-type]  # costs are checked there
            else:
                ((key, (sql, cost, parameters)),) = questions.items()
                stored = {key: session.sql(sql, key=key, parameters=parameters, **cost)}
        except EngineFailed as failure:
            if failure.code == "DP801":
                return QuestionOutcome("not drawn", error=failure)
            if failure.code != "DP803":
                raise
            return replace(order, epsilon=self._check_permits(caller, hosted, session, bodies))
        except DiscreetError as refusal:
            if not any(True for key in names for _ in paid_steps(hosted, key)):
                raise
            return QuestionOutcome("refused", error=refusal)
        return QuestionOutcome("answered", {names[key]: answer for key, answer in stored.items()})

    def _check_permits(
        self, caller: Caller, hosted: Hosted, session: Session, bodies: Mapping[str, QuestionBody]
    ) -> float:
        """Refuse what the curator has switched off, or what a token may not spend in a day; the ε
        that the questions may cost, if it matters.
        """
        if hosted.settings.gaussian and caller.most is None:
            return 0.0
        with naming_extras():
            from discreet.tables.ask.sql.public import public_question
        costs = []
        for body in bodies.values():
            if public_question(body.sql, hosted.data, tuple(body.parameters)) is not None:
                continue
            preview = session.preview(body.sql, parameters=tuple(body.parameters), **body.cost)
            if not hosted.settings.gaussian and any(map(_closes_pure_track, preview.notes)):
                raise refuse("gaussian")
            costs.append(preview.cost.epsilon(delta=1e-6))
        if caller.most is not None and self._spent_today(caller, hosted) + sum(costs) > caller.most:
            raise refuse("daily")
        return sum(costs)

    def _spent_today(self, caller: Caller, hosted: Hosted) -> float:
        """What the caller has spent today, and may spend with questions that are on their way."""
        today, under_way = self.store.now()[:10], self._under_way.questions(hosted.name, caller.person.id)
        counted = {key for question in under_way if question.order.epsilon for key in question.names.values()}
        return sum(question.order.epsilon for question in under_way) + sum(
            epsilon_of(record.guarantee)
            for record in self.records(caller, hosted)
            if record.time.startswith(today) and record.guarantee and record.key not in counted
        )

    def _same_question(
        self, hosted: Hosted, caller: Caller, bodies: Mapping[str, QuestionBody], names: Mapping[str, str]
    ) -> SubmittedQuestion | None:
        """The same question, if it is on its way; another one under its key is refused."""
        question = self._under_way.find(hosted.name, frozenset(names))
        if question is None or question.person != caller.person.id:
            return None
        asked = [(body.sql, body.cost, tuple(body.parameters)) for body in bodies.values()]
        if asked != list(question.order.questions.values()):
            raise key_reused_error()
        return question

    def _with_position(
        self, hosted: Hosted, question: SubmittedQuestion, outcome: QuestionOutcome
    ) -> QuestionOutcome:
        if outcome.state != "waiting":
            return outcome
        return replace(outcome, before=self._under_way.position(hosted.name, question))

    # --- what was asked ---------------------------------------------------------------------------

    def records(self, caller: Caller, hosted: Hosted) -> list[QuestionRecord]:
        """The caller's questions in the ledger, the oldest first, under the keys of the caller."""
        start = ledger_key(caller, "x")[:-1]
        return [
            replace(record, key=record.key.removeprefix(start))
            for record in list(hosted.records().values())
            if record.key.startswith(start)
        ]

    def question_of(self, caller: Caller, dataset: str, key: str) -> SubmittedQuestion | None:
        """A question of the caller that is on its way."""
        self.dataset(caller, dataset, "read own answers")
        return self._under_way.find(dataset, frozenset({ledger_key(caller, key)}))

    def outcome(self, caller: Caller, dataset: str, key: str) -> QuestionOutcome:
        """How a question of the caller ended, or where it is; one that was never charged is not
        found.
        """
        hosted = self.dataset(caller, dataset, "read own answers")
        question = self.question_of(caller, dataset, key)
        if question is not None and not question.is_over:
            return self._with_position(hosted, question, question.outcome)
        name = ledger_key(caller, key)
        entry = hosted.ledger.find_for_all(name)
        if entry is not None and entry.answer != NOT_DRAWN and entry.receipt is not None:
            answer = replace(Answer.from_json(str(entry.answer)), receipt=entry.receipt)
            return QuestionOutcome("answered", {key: answer})
        steps = list(paid_steps(hosted, name))
        if any(step is not None and step.answer == NOT_DRAWN for step in (entry, *steps)):
            return QuestionOutcome("not drawn", error=not_drawn_error())
        if hosted.ledger.find_pending(name) is not None or steps:
            return QuestionOutcome("charged")
        raise refuse("not found")

    def cancel(self, caller: Caller, dataset: str, key: str) -> None:
        """Leave the line, if nothing was charged."""
        question = self.question_of(caller, dataset, key)
        if question is None or question.is_over:
            self.outcome(caller, dataset, key)
            raise refuse("paid for")
        if not self._under_way.leave(dataset, question):
            raise refuse("paid for")

    def similar(self, caller: Caller, dataset: str, answer: Answer) -> tuple[float, int | None]:
        """The fraction of the own budget that is spent, and how many more answers like this fit."""
        budget = self.budget(caller, dataset)
        like = float("inf") if answer.guarantee is None else budget.like(answer.guarantee)
        return budget.spent_fraction, None if like == float("inf") else int(like)


def _closes_pure_track(note: str) -> bool:
    """Whether a note of a preview says that the question closes a pure track, of all or of a seat."""
    return note.startswith("This closes the ") and "pure track of the budget" in note


def ledger_key(caller: Caller, key: str, prefix: str | None = None) -> str:
    """The key in the ledger: that of another person can be neither read nor met by chance."""
    if not _KEY.fullmatch(key):
        raise refuse("no key")
    return f"{prefix or f'q/{caller.person.id}'}/{key}"


def default_key(hosted: Hosted, preview: Preview, body: QuestionBody) -> str:
    """The key of a question that has none: the same for the same question at the same cost."""
    facts = [hosted.data.version, preview.question, body.cost, body.parameters, body.project]
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:40]


@lru_cache(maxsize=10_000)
def epsilon_of(guarantee: str) -> float:
    """The ε of a guarantee in wire form at δ = 1e-6."""
    return from_json(guarantee).epsilon(delta=1e-6)
