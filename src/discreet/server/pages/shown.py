# SPDX-License-Identifier: Apache-2.0
"""How the outcome of a question is shown, on the question page and on the page of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from discreet.server.asking import QuestionOutcome
from discreet.server.datasets import Hosted
from discreet.server.pages.frame import Pages
from discreet.server.pages.views import AnswerView, ProblemView, reproducing_code

__all__ = ["answer_context"]


def answer_context(
    pages: Pages,
    request: Request,
    hosted: Hosted,
    outcome: QuestionOutcome,
    *,
    key: str,
    question: str = "",
    cost: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """What the template of an answer needs; `cost` is what was stated when it was asked."""
    context: dict[str, Any] = {"key": key, "question": question, "before": outcome.before}
    answer = outcome.answer
    if outcome.state == "answered" and answer is not None:
        receipt = answer.receipt
        shown = None if receipt is None else {"number": receipt.number, "hash": receipt.hash}
        code = (
            ""
            if cost is None
            else reproducing_code(address(pages, request), hosted.name, question, cost, key)
        )
        view = AnswerView.of(answer, receipt=shown, code=code, cite=_cite(hosted, receipt))
        paid = "now" if outcome.paid else "before; showing it again costs nothing"
        return {**context, "state": "answered", "answer": view, "paid": paid}
    if outcome.state == "refused" and outcome.error is not None:
        return {**context, "state": "refused", "error": ProblemView.of(outcome.error)}
    return {**context, "state": "not drawn" if outcome.state == "not drawn" else "waiting"}


def address(pages: Pages, request: Request) -> str:
    """Where people reach the server."""
    scheme = "https" if pages.config.secure else "http"
    return pages.config.public_url or f"{scheme}://{request.headers.get('host', '')}"


def _cite(hosted: Hosted, receipt: Any) -> str:
    number = "" if receipt is None else f", ledger entry #{receipt.number} (sha256:{receipt.hash})"
    dated = f", version {hosted.data.version}" if hosted.data.version else ""
    return f"Noisy statistics from {hosted.name}{dated}, released under differential privacy with discreet{number}."
