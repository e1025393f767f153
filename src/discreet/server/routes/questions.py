# SPDX-License-Identifier: Apache-2.0
"""Previews, questions, batches of questions, and one's own answers."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from discreet.privacy.show import least_epsilon
from discreet.privacy.wire import from_json
from discreet.server.asking import QuestionOutcome, QuestionPreview
from discreet.server.datasets import QuestionRecord
from discreet.server.formats import CSV, JSON, choose_format, write_answer
from discreet.server.models import (
    AnswerBody,
    BatchBody,
    PreviewBody,
    PreviewColumnBody,
    QuestionBody,
    QuestionItem,
)
from discreet.server.refusals import refuse
from discreet.server.routes.common import AskingOf, CallerOf, JsonOnly, ServicesOf
from discreet.server.store import Caller
from discreet.tables.answer.answer import Answer

__all__ = ["answer_body", "preview_body", "question_item", "router"]

router = APIRouter(prefix="/v1/datasets/{dataset}", tags=["questions"])

_WAIT, _LONGEST_WAIT = 20.0, 60.0
#: Seconds between comments in a stream of events.
_HEARTBEAT = 15.0


def _wait(
    prefer: Annotated[str | None, Header(description="wait=20: the seconds to wait for an answer")] = None,
) -> float:
    match = re.search(r"wait=(\d{1,4})\b", prefer or "")
    return _WAIT if match is None else min(float(match[1]), _LONGEST_WAIT)


IdempotencyKey = Annotated[str | None, Header(alias="Idempotency-Key", max_length=200)]
WaitSeconds = Annotated[float, Depends(_wait)]


@router.post("/previews", dependencies=[JsonOnly])
async def preview_question(
    dataset: str, body: QuestionBody, caller: CallerOf, services: ServicesOf
) -> PreviewBody:
    """The cost and the margin of error of a question. Nothing is spent and no row is read."""
    services.preview_rate.take(caller.by + caller.person.id)
    return preview_body(await services.asking.preview(caller, dataset, body))


def preview_body(found: QuestionPreview) -> PreviewBody:
    """A preview as a response."""
    preview, budget = found.preview, found.budget
    facts = preview.to_dict()
    return PreviewBody(
        question=preview.question,
        epsilon=str(facts["epsilon"]),
        delta=preview.delta,
        groups=preview.groups,
        columns=[PreviewColumnBody(**vars(column)) for column in preview.columns],
        notes=list(preview.notes),
        cheaper=list(preview.cheaper),
        fits=found.fits,
        like_this=found.like_this,
        used=None if budget is None else budget.spent_fraction,
        key=found.key,
        preview=json.loads(preview.to_json()),
    )


@router.post(
    "/questions",
    dependencies=[JsonOnly],
    response_model=AnswerBody,
    responses={201: {"model": AnswerBody}, 202: {"model": AnswerBody}},
)
async def ask_question(
    dataset: str,
    request: Request,
    body: QuestionBody,
    caller: CallerOf,
    services: ServicesOf,
    *,
    wait: WaitSeconds,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """The answer to a question, charged to the seat of the caller before it is drawn.

    201 if this request paid, 200 if the answer was there already, 202 with a Location if it is not
    shown yet. After a charge the status is always one of these.
    """
    kind = choose_format(request.headers.get("accept"))
    services.question_rate.take(caller.by + caller.person.id)
    if idempotency_key is None:
        raise refuse("no key")
    outcome = await services.asking.ask(caller, dataset, body, idempotency_key, wait=wait)
    # How many more answers fit is counted one by one; meanwhile the loop must wake up at ticks.
    respond = partial(_response, services.asking, caller, dataset, idempotency_key, outcome, kind=kind)
    return await asyncio.to_thread(respond)


@router.post("/batches", dependencies=[JsonOnly])
async def ask_batch(
    dataset: str, body: BatchBody, caller: CallerOf, services: ServicesOf, wait: WaitSeconds
) -> JSONResponse:
    """The answers to several questions by their keys: all of them are charged and drawn, or none."""
    services.question_rate.take(caller.by + caller.person.id)
    shared = {"purpose": body.purpose, "project": body.project}
    bodies = {key: each.model_copy(update=shared) for key, each in body.questions.items()}
    outcome = await services.asking.ask_together(caller, dataset, bodies, wait=wait)
    answers = await asyncio.to_thread(
        lambda: {
            key: _body(
                services.asking, caller, dataset, key, outcome, answer=outcome.answers.get(key)
            ).model_dump()
            for key in bodies
        }
    )
    facts = {"state": outcome.state, "paid": outcome.paid, "answers": answers}
    headers = {} if outcome.is_final else {"Retry-After": "1"}
    return JSONResponse(facts, _status(outcome), headers=headers)


@router.get("/questions")
async def list_questions(
    dataset: str,
    caller: CallerOf,
    asking: AskingOf,
    after: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 100,
) -> dict[str, object]:
    """The caller's questions, the oldest first; `next` is the number after which the list goes on."""
    hosted = asking.dataset(caller, dataset, "read own answers")
    own = [record for record in asking.records(caller, hosted) if record.number > after]
    page = own[:limit]
    following = page[-1].number if len(own) > limit else None
    return {"questions": [question_item(record).model_dump() for record in page], "next": following}


def question_item(record: QuestionRecord) -> QuestionItem:
    """A question of the ledger as a line of a list."""
    return QuestionItem(
        key=record.key,
        number=record.number,
        time=record.time,
        question=record.question,
        purpose=record.purpose,
        state=record.state,
        epsilon=None if record.guarantee is None else least_epsilon(from_json(record.guarantee)),
    )


@router.get("/questions/{key}", response_model=AnswerBody)
async def get_question(
    dataset: str, key: str, request: Request, caller: CallerOf, asking: AskingOf
) -> Response:
    """An answer of the caller, or where the question is; one that was never charged is not found."""
    kind = choose_format(request.headers.get("accept"))
    return _response(asking, caller, dataset, key, asking.outcome(caller, dataset, key), kind=kind)


@router.delete("/questions/{key}", status_code=204)
async def leave_line(dataset: str, key: str, caller: CallerOf, asking: AskingOf) -> None:
    """Leave the line, if nothing was charged yet."""
    asking.cancel(caller, dataset, key)


@router.get("/questions/{key}/events")
async def follow_question(
    dataset: str, key: str, caller: CallerOf, services: ServicesOf
) -> StreamingResponse:
    """Server-sent events: waiting, charged, and at the tick answer, not-drawn or refused."""
    asking = services.asking
    asking.outcome(caller, dataset, key)
    services.streams.open(caller.person.id)

    async def events() -> AsyncIterator[str]:
        try:
            async for text in _events(caller, asking, dataset, key):
                yield text
        finally:
            services.streams.close(caller.person.id)

    return StreamingResponse(events(), media_type="text/event-stream")


async def _events(caller: Caller, asking: AskingOf, dataset: str, key: str) -> AsyncIterator[str]:
    """Events until the outcome, or until the caller may no longer follow it."""
    last = ""
    while True:
        if not asking.people.still_signed_in(caller):
            return
        outcome = asking.outcome(caller, dataset, key)
        name = {"not drawn": "not-drawn", "answered": "answer"}.get(outcome.state, outcome.state)
        facts: dict[str, object] = {"before": outcome.before} if outcome.state == "waiting" else {}
        if outcome.is_final:
            facts = {"key": key, "state": outcome.state}
        text = f"event: {name}\ndata: {json.dumps(facts)}\n\n"
        yield text if text != last else ": still here\n\n"
        last = text
        if outcome.is_final:
            return
        question = asking.question_of(caller, dataset, key)
        await (asyncio.sleep(_HEARTBEAT) if question is None else question.wait(_HEARTBEAT))


def _response(
    asking: AskingOf, caller: Caller, dataset: str, key: str, outcome: QuestionOutcome, *, kind: str
) -> Response:
    place = f"/v1/datasets/{dataset}/questions/{key}"
    headers = {"Location": place} if outcome.paid or not outcome.is_final else {}
    if not outcome.is_final:
        headers["Retry-After"] = "1"
    status, answer = _status(outcome), outcome.answer
    if answer is not None and kind != JSON:
        headers["Discreet-Paid"] = "true" if outcome.paid else "false"
        if kind == CSV:
            headers["Link"] = f'<{place}>; rel="describedby"'
            headers["Content-Disposition"] = f'attachment; filename="{key}.csv"'
        spreadsheet = kind == CSV
        return Response(write_answer(answer, kind, spreadsheet=spreadsheet), status, headers, media_type=kind)
    body = answer_body(asking, caller, dataset, key, outcome)
    return JSONResponse(body.model_dump(exclude_none=True), status, headers=headers)


def _status(outcome: QuestionOutcome) -> int:
    """A success always; it says whether this request paid, and nothing about how that ended."""
    if not outcome.is_final:
        return 202
    return 201 if outcome.paid else 200


def answer_body(
    asking: AskingOf, caller: Caller, dataset: str, key: str, outcome: QuestionOutcome
) -> AnswerBody:
    """An outcome as a response."""
    return _body(asking, caller, dataset, key, outcome, answer=outcome.answer)


def _body(
    asking: AskingOf,
    caller: Caller,
    dataset: str,
    key: str,
    outcome: QuestionOutcome,
    *,
    answer: Answer | None,
) -> AnswerBody:
    body = AnswerBody(state=outcome.state, key=key, paid=outcome.paid, before=outcome.before)
    if outcome.error is not None:
        error = outcome.error
        words = {
            "code": error.code,
            "detail": error.what,
            "why": error.why,
            "fix": error.fix,
            "spent": error.spent,
        }
        body = body.model_copy(update=words)
    if answer is None:
        return body
    found: dict[str, object] = {"answer": json.loads(answer.to_json())}
    if answer.receipt is not None:
        found["receipt"] = json.loads(answer.receipt.to_json())
    if asking.store.seat_of(dataset, caller.person.id) is not None:
        found["used"], found["like_this"] = asking.similar(caller, dataset, answer)
    return body.model_copy(update=found)
