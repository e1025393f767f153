# SPDX-License-Identifier: Apache-2.0
"""The ledger, its statement, and the access log, for curators and auditors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse

from discreet.ledger import Entry, Statement
from discreet.ledger.costs import State
from discreet.server.datasets import Hosted
from discreet.server.models import EntryBody, VerificationBody
from discreet.server.refusals import refuse
from discreet.server.routes.common import AskingOf, CallerOf, ServicesOf

__all__ = ["entry_bodies", "router", "verification_body"]

router = APIRouter(prefix="/v1", tags=["ledger"])

After = Annotated[int | None, Query(ge=0)]
PageLimit = Annotated[int, Query(ge=1, le=200)]


@router.get("/datasets/{dataset}/ledger/entries")
def list_entries(
    dataset: str, caller: CallerOf, asking: AskingOf, after: After = None, limit: PageLimit = 100
) -> dict[str, object]:
    """Rows of the ledger after a number, without answers."""
    hosted = asking.dataset(caller, dataset, "read ledger")
    page = entry_bodies(hosted, after, limit)
    following = page[-1].number if len(page) == limit else None
    return {"entries": [entry.model_dump() for entry in page], "next": following}


def entry_bodies(hosted: Hosted, after: int | None, limit: int) -> list[EntryBody]:
    """Rows of the ledger after a number, as responses."""
    return [_entry_body(hosted, entry) for entry in hosted.ledger.entries(after=after, limit=limit)]


def _entry_body(hosted: Hosted, entry: Entry) -> EntryBody:
    spent = hosted.ledger.limit.budget(State.from_dict(entry.state)).spent_fraction
    return EntryBody(
        number=entry.number,
        kind=entry.kind,
        time=entry.time,
        analyst=entry.analyst,
        project=entry.project,
        purpose=entry.purpose,
        question=entry.question,
        mechanism=entry.mechanism,
        guarantee=entry.guarantee,
        spent_fraction=spent,
        answered=entry.settles,
        hash=entry.hash,
    )


@router.get("/datasets/{dataset}/ledger/export")
def export_ledger(dataset: str, caller: CallerOf, services: ServicesOf) -> StreamingResponse:
    """The ledger as lines of JSON without its answers: each with its body and its hash."""
    hosted = services.asking.dataset(caller, dataset, "read ledger")
    services.store.log("ledger exported", caller.person.id, dataset)

    def lines() -> Iterator[str]:
        for line in hosted.ledger.export():
            fields = json.loads(line)
            yield json.dumps({"body": fields["body"], "hash": fields["hash"]}) + "\n"

    return StreamingResponse(lines(), media_type="application/x-ndjson")


@router.get("/datasets/{dataset}/ledger/anchor")
def get_anchor(dataset: str, caller: CallerOf, asking: AskingOf) -> dict[str, object]:
    """The hash of the last row: whoever writes it down notices a ledger that was put back."""
    ledger = asking.dataset(caller, dataset, "read ledger").ledger
    return {"number": len(ledger) - 1, "anchor": ledger.anchor()}


@router.post("/datasets/{dataset}/ledger/verification")
def verify_ledger(dataset: str, caller: CallerOf, services: ServicesOf) -> VerificationBody:
    """Recompute every hash, cost and total of the ledger."""
    hosted = services.asking.dataset(caller, dataset, "read ledger")
    services.store.log("ledger verified", caller.person.id, dataset)
    return verification_body(hosted)


def verification_body(hosted: Hosted) -> VerificationBody:
    """What a check of the whole ledger found."""
    found = hosted.ledger.verify()
    return VerificationBody(
        ok=found.intact, rows=found.entries, anchor=found.anchor, sentences=str(found).splitlines()
    )


@router.get("/datasets/{dataset}/statement")
def get_statement(dataset: str, request: Request, caller: CallerOf, asking: AskingOf) -> Response:
    """The privacy statement: HTML, Markdown or JSON by Accept."""
    hosted = asking.dataset(caller, dataset, "read statement")
    statement = Statement.of(hosted.ledger, hosted.data.public_description())
    accept = request.headers.get("accept", "*/*")
    if "text/html" in accept:
        return HTMLResponse(statement.to_html())
    if "text/markdown" in accept:
        return PlainTextResponse(statement.to_markdown(), media_type="text/markdown")
    return Response(statement.to_json(), media_type="application/json")


@router.get("/events")
def list_events(
    caller: CallerOf, services: ServicesOf, after: Annotated[int, Query(ge=0)] = 0, limit: PageLimit = 100
) -> dict[str, object]:
    """Lines of the access log, for auditors of every data set of the server."""
    names = services.asking.datasets
    if not names or not all(caller.may(name, "auditor") for name in names):
        raise refuse("not permitted", detail="the access log is about all data sets.", role="auditor")
    page = services.store.events(after, limit)
    following = page[-1].number if len(page) == limit else None
    return {"events": [vars(event) for event in page], "next": following}
