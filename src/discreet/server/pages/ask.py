# SPDX-License-Identifier: Apache-2.0
"""The question page: what a question would cost, and its answer.

**Guarantee.** Showing the cost spends nothing and reads nothing. A question that is asked again
with the same cost has the same key, so it shows the answer that was paid for; only who asks for a
new answer pays again.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from discreet.errors import DiscreetError
from discreet.server.asking import QuestionOutcome, QuestionPreview
from discreet.server.datasets import Hosted
from discreet.server.models import QuestionBody
from discreet.server.pages.frame import Pages, is_fragment
from discreet.server.pages.home import budget_of
from discreet.server.pages.shown import answer_context
from discreet.server.pages.views import (
    BudgetView,
    PlanView,
    ProblemView,
    example_questions,
    schema_of,
    table_views,
)
from discreet.server.people import PERMISSIONS
from discreet.server.problems import status_of
from discreet.server.refusals import refuse
from discreet.server.store import Caller

__all__ = ["AskPages"]


@dataclass(frozen=True)
class AskedForm:
    """What the form says: the question, and how exact or how dear it may be."""

    sql: str = ""
    how: str = "error"
    error: str = ""
    epsilon: str = ""
    delta: str = ""
    purpose: str = ""
    fresh: str = ""
    again: str = ""

    @classmethod
    def of(cls, form: FormData) -> AskedForm:
        """The fields, as texts."""
        fields = {name: form.get(name) for name in cls.__dataclass_fields__}
        return cls(**{name: value.strip() for name, value in fields.items() if isinstance(value, str)})

    def body(self) -> QuestionBody:
        """The question, as the API takes it; what is no number is refused (DP851)."""
        if not 1 <= len(self.sql) <= 100_000 or len(self.purpose) > 200:
            raise refuse(
                "malformed", detail="the question has 1 to 100,000 letters, and the purpose at most 200."
            )
        cost: dict[str, Any] = {}
        if self.how == "epsilon":
            cost["epsilon"] = _number("ε", self.epsilon)
            if self.delta:
                cost["delta"] = _number("δ", self.delta)
        else:
            if not self.error:
                raise refuse("malformed", detail="state a margin of error, such as 50 or 2 %.")
            cost["error"] = f"±{self.error.lstrip('±')}"
        return QuestionBody(sql=self.sql, purpose=self.purpose or None, **cost)

    def key(self, default: str) -> str:
        """The key of the question: the same for the same question, unless a new answer is wanted.

        What makes it new was written into the form by the server, so that a form that is sent twice
        is paid once.
        """
        if self.fresh != "yes":
            return default
        if not re.fullmatch(r"[A-Za-z0-9_-]{8,40}", self.again):
            raise refuse("malformed", detail="the form has no number of its own.")
        return f"{default}-{self.again}"


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise refuse("malformed", detail=f"{name} is not a number.") from None


class AskPages:
    """The page on which questions are asked."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    async def show(self, request: Request) -> Response:
        """The empty page, or one with the question of the address."""
        caller, hosted = self._pages.find_dataset(request, "preview")
        asked = AskedForm(sql=request.query_params.get("sql", "")[:100_000])
        return self._page(request, caller, hosted, asked)

    async def plan(self, request: Request) -> Response:
        """What a question would cost."""
        caller, hosted, form = await self._pages.form(request, "preview")
        self._pages.services.preview_rate.take(f"page {caller.person.id}")
        asked, plan, problem, status = AskedForm.of(form), None, None, 200
        try:
            preview = await self._pages.asking.preview(caller, hosted.name, asked.body())
            plan = _plan(preview)
        except DiscreetError as error:
            problem, status = problem_at(error, asked.sql), status_of(error)
        if is_fragment(request):
            return self._pages.show(request, "_plan.html", plan=plan, problem=problem)
        return self._page(request, caller, hosted, asked, plan=plan, problem=problem, status=status)

    async def ask(self, request: Request) -> Response:
        """Ask, and show the answer; or where the question is."""
        caller, hosted, form = await self._pages.form(request, "ask")
        self._pages.services.question_rate.take(f"page {caller.person.id}")
        asked = AskedForm.of(form)
        try:
            body = asked.body()
            preview = await self._pages.asking.preview(caller, hosted.name, body)
            key = asked.key(preview.key)
            outcome = await self._pages.asking.ask(caller, hosted.name, body, key)
        except DiscreetError as error:
            problem = problem_at(error, asked.sql)
            return self._result(
                request,
                caller,
                hosted,
                asked,
                {"state": "refused", "error": problem},
                status=status_of(error),
            )
        if not is_fragment(request):
            return RedirectResponse(f"/d/{quote(hosted.name, safe='')}/answers/{quote(key)}", 303)
        return self._result(
            request,
            caller,
            hosted,
            asked,
            self._context(request, hosted, asked, outcome, key=key),
            status=200,
        )

    def _context(
        self, request: Request, hosted: Hosted, asked: AskedForm, outcome: QuestionOutcome, *, key: str
    ) -> dict[str, Any]:
        body = asked.body()
        return answer_context(
            self._pages, request, hosted, outcome, key=key, question=body.sql, cost=body.cost
        )

    def _result(
        self,
        request: Request,
        caller: Caller,
        hosted: Hosted,
        asked: AskedForm,
        context: dict[str, Any],
        *,
        status: int,
    ) -> Response:
        """The answer, or a refusal: as a part of the page, or as a page."""
        if not is_fragment(request):
            return self._page(request, caller, hosted, asked, answer=context, status=status)
        budget = budget_of(self._pages, caller, hosted)
        return self._pages.show(
            request,
            "asked.html",
            hosted,
            budget=budget,
            examples=[],
            again=secrets.token_urlsafe(12),
            **{**_NO_ANSWER, **context},
        )

    def _page(
        self,
        request: Request,
        caller: Caller,
        hosted: Hosted,
        asked: AskedForm,
        *,
        plan: PlanView | None = None,
        problem: ProblemView | None = None,
        answer: dict[str, Any] | None = None,
        status: int = 200,
    ) -> Response:
        budget: BudgetView | None = budget_of(self._pages, caller, hosted)
        return self._pages.show(
            request,
            "ask.html",
            hosted,
            "ask",
            status=status,
            asked=asked,
            plan=plan,
            problem=problem,
            budget=budget,
            can_ask=budget is not None and caller.may(hosted.name, *PERMISSIONS["ask"]),
            about={"tables": table_views(hosted.data)},
            schema=schema_of(hosted.data),
            examples=example_questions(hosted.data),
            again=secrets.token_urlsafe(12),
            out_of_band=False,
            **{**_NO_ANSWER, **(answer or {})},
        )


_NO_ANSWER: dict[str, Any] = {
    "state": "",
    "answer": None,
    "error": None,
    "key": "",
    "question": "",
    "paid": "",
    "made_up": False,
    "before": None,
}


def _plan(preview: QuestionPreview) -> PlanView:
    part = None
    if preview.budget is not None:
        part = _part_of(preview)
    like = None if preview.budget is None else preview.like_this
    endless = preview.budget is not None and preview.like_this is None
    return PlanView.of(preview.preview, part=part, like=float("inf") if endless else like)


def _part_of(preview: QuestionPreview) -> float | None:
    """The fraction of what remains that the question uses, as the number of those that fit says."""
    if not preview.like_this:
        return None
    assert preview.budget is not None
    return min(1.0, preview.budget.remaining_fraction / preview.like_this)


_QUOTED = re.compile(r"'([^']{1,200})'")


def problem_at(error: DiscreetError, sql: str) -> ProblemView:
    """A refusal, with the place in the question of the name that it quotes."""
    view = ProblemView.of(error)
    for name in _QUOTED.findall(error.what):
        for number, line in enumerate(sql.split("\n"), 1):
            found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", line)
            if found:
                return view.at({"line": number, "from": found.start() + 1, "to": found.end() + 1})
    return view
