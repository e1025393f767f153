# SPDX-License-Identifier: Apache-2.0
"""My answers: the list, one of them, and its files.

**Guarantee.** A person sees their own answers and nobody else's: names of answers are made of who
has signed in, and never of what a request says.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from discreet.privacy.wire import from_json
from discreet.server import texts
from discreet.server.datasets import Hosted, QuestionRecord
from discreet.server.formats import ARROW, CSV, JSON, PARQUET, write_answer
from discreet.server.pages.frame import Pages, is_fragment
from discreet.server.pages.shown import answer_context
from discreet.server.pages.views import AnswerView, cost_words
from discreet.server.people import PERMISSIONS
from discreet.server.refusals import refuse
from discreet.server.store import Caller
from discreet.tables.answer.answer import Answer

__all__ = ["AnswerPages"]

#: Answers of a download, and rows of the list.
_MOST, _LISTED = 100, 500
_KINDS = {"csv": CSV, "parquet": PARQUET, "arrow": ARROW, "json": JSON}


class AnswerPages:
    """The pages of answers that were paid for."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    async def overview(self, request: Request) -> Response:
        """The list, the newest first."""
        caller, hosted = self._pages.find_dataset(request, "read own answers")
        text = request.query_params.get("text", "")[:200]
        records = reversed(self._pages.asking.records(caller, hosted))
        rows = [_list_row(record) for record in records if _contains(record, text)][:_LISTED]
        return self._pages.show(request, "answers.html", hosted, "answers", rows=rows, text=text)

    async def show(self, request: Request) -> Response:
        """One answer, or where its question is."""
        caller, hosted = self._pages.find_dataset(request, "read own answers")
        key = request.path_params["key"]
        outcome = self._pages.asking.outcome(caller, hosted.name, key)
        if outcome.state in ("waiting", "charged"):
            question = self._pages.asking.question_of(caller, hosted.name, key)
            if question is not None:
                outcome = await question.result(10.0)
        record = self._record(caller, hosted, key)
        question_text = (
            outcome.answer.question
            if outcome.answer is not None
            else ""
            if record is None
            else record.question
        )
        context = answer_context(self._pages, request, hosted, outcome, key=key, question=question_text)
        can_ask = self._pages.asking.seat(caller, hosted) is not None and caller.may(
            hosted.name, *PERMISSIONS["ask"]
        )
        frame: dict[str, Any] = {
            "answer": None,
            "error": None,
            "made_up": False,
            "can_ask": can_ask,
            "examples": [],
        }
        return self._pages.show(
            request,
            "_answer.html" if is_fragment(request) else "answer.html",
            hosted,
            "answers",
            **{**frame, **context},
            heading="Answer" if record is None or not record.purpose else f"Answer: {record.purpose}",
        )

    def _record(self, caller: Caller, hosted: Hosted, key: str) -> QuestionRecord | None:
        return next((each for each in self._pages.asking.records(caller, hosted) if each.key == key), None)

    async def download(self, request: Request) -> Response:
        """An answer as a file; or its first chart."""
        caller, hosted = self._pages.find_dataset(request, "read own answers")
        key, kind = request.path_params["key"], request.path_params["kind"]
        answer = self._pages.asking.outcome(caller, hosted.name, key).answer
        if answer is None or kind not in {*_KINDS, "svg"}:
            raise refuse("not found")
        name = f"{_plain(hosted.name)}-{key[:16]}.{kind}"
        if kind == "svg":
            charts = AnswerView.of(answer).charts
            if not charts:
                raise refuse("not found")
            return _file(charts[0].svg.encode(), "image/svg+xml", name)
        spreadsheet = request.query_params.get("for") == "spreadsheet"
        return _file(write_answer(answer, _KINDS[kind], spreadsheet=spreadsheet), _KINDS[kind], name)

    async def download_selected(self, request: Request) -> Response:
        """Several answers in one file: a CSV file for each, and what they cost."""
        caller, hosted, form = await self._pages.form(request, "read own answers")
        keys = list(dict.fromkeys(str(key) for key in form.getlist("key")))[:_MOST]
        answers = {key: self._pages.asking.outcome(caller, hosted.name, key).answer for key in keys}
        drawn = {key: answer for key, answer in answers.items() if answer is not None}
        if not drawn:
            return RedirectResponse(f"/d/{quote(hosted.name, safe='')}/answers", 303)
        return _file(_archive(hosted.name, drawn), "application/zip", f"{_plain(hosted.name)}-answers.zip")


def _archive(dataset: str, answers: dict[str, Answer]) -> bytes:
    """A zip file with the answers; their names are numbers, because questions are no names."""
    place = io.BytesIO()
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        about = []
        for number, (key, answer) in enumerate(answers.items(), 1):
            name = f"answer-{number}.csv"
            archive.writestr(name, write_answer(answer, CSV))
            cost = None if answer.guarantee is None else cost_words(answer.guarantee)
            receipt = None if answer.receipt is None else answer.receipt.number
            about.append(
                {
                    "file": name,
                    "key": key,
                    "question": answer.question,
                    "cost": cost,
                    "ledger_entry": receipt,
                    "notes": list(answer.all_notes()),
                }
            )
        archive.writestr("about.json", json.dumps({"dataset": dataset, "answers": about}, indent=1))
    return place.getvalue()


def _file(content: bytes, kind: str, name: str) -> Response:
    return Response(
        content, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )


def _plain(name: str) -> str:
    """A name that is safe in a header and on every disk.

    >>> _plain('a"b/ü')
    'a-b--'
    """
    return "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name)[:40]


def _contains(record: QuestionRecord, text: str) -> bool:
    return text.casefold() in f"{record.question} {record.purpose or ''}".casefold()


def _list_row(record: QuestionRecord) -> dict[str, Any]:
    return {
        "key": record.key,
        "number": record.number,
        "when": record.time[:16].replace("T", " "),
        "question": record.question,
        "purpose": record.purpose or "",
        "cost": "–" if record.guarantee is None else cost_words(from_json(record.guarantee)),
        "state": texts.STATES[record.state],
        "is_answered": record.state == "answered",
    }
