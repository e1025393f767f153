# SPDX-License-Identifier: Apache-2.0
"""The pages of an auditor: the ledger, whether it is intact, the statement, and the access log.

**Guarantee.** No answer is on these pages. Verifying recomputes every hash, cost and total of the
ledger, as `discreet ledger verify` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from discreet.ledger import Entry, Statement
from discreet.privacy.show import short
from discreet.privacy.svg import tradeoff_svg
from discreet.privacy.wire import from_json
from discreet.server import texts
from discreet.server.datasets import Hosted
from discreet.server.pages.curate import statement_of, whole_budget
from discreet.server.pages.frame import Pages, anchor_of
from discreet.server.pages.views import cost_words, layer_views, learning_view
from discreet.server.refusals import refuse
from discreet.server.routes.ledger import export_ledger, verification_body
from discreet.server.routes.ledger import list_events as check_log

__all__ = ["AuditPages"]

#: Rows of a page.
_PAGE = 100
#: The statement stands alone: it has its own style, and loads nothing.
_ALONE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


class AuditPages:
    """What can be checked."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    async def ledger(self, request: Request) -> Response:
        """The entries, the newest first."""
        _, hosted = self._pages.find_dataset(request, "read ledger")
        return await self._ledger_page(request, hosted)

    async def verify(self, request: Request) -> Response:
        """Recompute the whole ledger."""
        caller, hosted, _ = await self._pages.form(request, "read ledger")
        self._pages.store.log("ledger verified", caller.person.id, hosted.name)
        found = await run_in_threadpool(verification_body, hosted)
        intact = found.ok
        verified = {
            "intact": intact,
            "words": f"{texts.many(found.rows, 'entry', 'entries')}: {'intact' if intact else 'not intact'}",
            "findings": found.sentences,
        }
        return await self._ledger_page(request, hosted, verified=verified)

    async def _ledger_page(
        self, request: Request, hosted: Hosted, *, verified: Mapping[str, Any] | None = None
    ) -> Response:
        filters = {
            name: request.query_params.get(name, "")[:200]
            for name in ("seat", "text", "from", "to", "before")
        }
        rows = await run_in_threadpool(lambda: list(_entries(hosted, filters)))
        page, more = rows[:_PAGE], len(rows) > _PAGE
        following = ""
        if more:
            query = {
                **{name: text for name, text in filters.items() if text},
                "before": str(page[-1]["number"]),
            }
            following = f"/d/{quote(hosted.name, safe='')}/ledger?{urlencode(query)}"
        return self._pages.show(
            request,
            "ledger.html",
            hosted,
            "ledger",
            rows=page,
            next=following,
            filters=filters,
            seats=list(hosted.seats),
            count=texts.many(len(hosted.ledger), "entry", "entries"),
            whole_anchor=anchor_of(hosted),
            verified=verified,
        )

    async def export(self, request: Request) -> StreamingResponse:
        """The ledger as lines of JSON, without its answers."""
        caller, hosted = self._pages.find_dataset(request, "read ledger")
        return export_ledger(hosted.name, caller, self._pages.services)

    async def statement(self, request: Request) -> Response:
        """The statement, as a page."""
        _, hosted = self._pages.find_dataset(request, "read statement")
        shown = statement_context(hosted, statement_of(hosted))
        return self._pages.show(request, "statement.html", hosted, "statement", **shown)

    async def statement_file(self, request: Request) -> Response:
        """The statement, as a file."""
        _, hosted = self._pages.find_dataset(request, "read statement")
        return statement_response(hosted, request.path_params["kind"])

    async def log(self, request: Request) -> Response:
        """The access log, for auditors of every data set of the server."""
        caller, hosted = self._pages.find_dataset(request, "read log")
        after = request.query_params.get("after", "0")
        start = int(after) if after.isdecimal() and len(after) < 16 else 0
        check_log(caller, self._pages.services, start, 1)
        events = self._pages.store.events(start, _PAGE)
        names = {person.id: person.name for person in self._pages.store.people()}
        rows = [
            {
                "number": event.number,
                "when": event.time[:19].replace("T", " "),
                "person": names.get(event.person or "", event.person or "–"),
                "dataset": event.dataset or "–",
                "what": event.what,
                "about": ", ".join(f"{name} {value}" for name, value in event.about.items()),
            }
            for event in events
        ]
        base = f"/d/{quote(hosted.name, safe='')}/log"
        following = f"{base}?after={events[-1].number}" if len(events) == _PAGE else ""
        intact = await run_in_threadpool(self._pages.store.check_events)
        return self._pages.show(request, "log.html", hosted, "log", rows=rows, next=following, intact=intact)


def statement_context(hosted: Hosted, statement: Statement) -> dict[str, Any]:
    """What the template of a statement shows."""
    # Plain JSON, whose shape the statement states.
    facts: dict[str, Any] = dict(statement.to_dict())
    guarantee = statement.guarantee
    released = len(facts["released"])
    return {
        "facts": facts,
        "learn": learning_view(facts["words"]),
        "layers": layer_views(facts["layers"]),
        "protects": facts["unit"]["words"],
        "curve": "" if guarantee is None else tradeoff_svg({"": guarantee}, size=320),
        "budget": whole_budget(hosted),
        "released": f"{texts.many(released, 'answer')}. The files list each with its mechanism and its cost.",
        "base": f"/d/{quote(hosted.name, safe='')}/statement",
        "made_with": facts["making"]["version"],
    }


def statement_response(hosted: Hosted, kind: str) -> Response:
    """The statement as a file: HTML, Markdown or JSON."""
    statement = statement_of(hosted)
    if kind == "html":
        return Response(
            statement.to_html(), media_type="text/html", headers={"Content-Security-Policy": _ALONE}
        )
    if kind == "md":
        return PlainTextResponse(statement.to_markdown(), media_type="text/markdown; charset=utf-8")
    if kind == "json":
        return Response(statement.to_json(), media_type="application/json")
    raise refuse("not found")


def _entries(hosted: Hosted, filters: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The entries that pass the filters, the newest first; one more than fits on a page."""
    before = filters["before"]
    number = int(before) if before.isdecimal() and len(before) < 16 else len(hosted.ledger)
    left = _PAGE + 1
    while number > 0 and left > 0:
        start = max(0, number - 500)
        block = list(hosted.ledger.entries(after=start - 1 if start else None, limit=number - start))
        for entry in reversed(block):
            if left > 0 and _passes(entry, filters):
                left -= 1
                yield _shown_entry(entry)
        number = start


def _passes(entry: Entry, filters: Mapping[str, str]) -> bool:
    words = f"{entry.question or ''} {entry.purpose or ''} {entry.project or ''}".casefold()
    day = entry.time[:10]
    return (
        filters["seat"] in {"", entry.analyst}
        and filters["text"].casefold() in words
        and (not filters["from"] or filters["from"] <= day)
        and (not filters["to"] or day <= filters["to"])
    )


_WHAT = {"open": "opened", "committed": "answer kept", "reserved": "charged", "charged": "charged"}


def _shown_entry(entry: Entry) -> dict[str, Any]:
    kept = entry.kind == "committed"
    guarantee = None if kept or entry.guarantee is None else from_json(entry.guarantee)
    return {
        "number": entry.number,
        "when": entry.time[:19].replace("T", " "),
        "what": f"{_WHAT.get(entry.kind, entry.kind)}{f' for #{entry.settles}' if kept else ''}",
        "who": entry.analyst or "–",
        "purpose": entry.purpose or "",
        "question": "" if kept else entry.question or "",
        "mechanism": "" if guarantee is None else short(guarantee),
        "cost": "" if guarantee is None else cost_words(guarantee),
        "hash": entry.hash,
    }
