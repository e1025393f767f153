# SPDX-License-Identifier: Apache-2.0
"""RemoteSession: questions to a data set on a server, with the methods and types of a Session."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any, NoReturn

from discreet import check
from discreet.client.requests import ServerRequests, connection_error, error_from
from discreet.errors import DiscreetError, ServerError
from discreet.extras import naming_extras
from discreet.ledger import Budget, Receipt
from discreet.mechanisms.mechanism import Mechanism
from discreet.privacy.guarantee import Guarantee
from discreet.session.combining import combine_released
from discreet.session.validate import Askable, QuestionCost, question_cost, question_of
from discreet.tables.algebra.types import Value
from discreet.tables.answer.answer import Answer
from discreet.tables.ask.start import Dataset
from discreet.tables.plan.preview import Preview

__all__ = ["RemoteSession"]


class RemoteSession:
    """Questions to one data set of a server, charged to the caller's seat; made by `dp.connect`.

    `data` is the data set without its rows: build questions with it, as with any other.

    **Guarantee.** As for `Session`: the server charges before it draws, and shows what it has
    stored. Every question has a key before it is sent, so a retry is paid for once. Nothing here
    holds a row.

    What would break it: a server that is not what it says.

    >>> import discreet as dp
    >>> session = dp.connect("https://dp.example.org/d/visits")         # doctest: +SKIP
    >>> session.sql("SELECT COUNT(*) FROM visits", epsilon=0.1).value   # doctest: +SKIP
    """

    def __init__(self, requests: ServerRequests, dataset: str) -> None:
        self._requests, self._base = requests, f"/v1/datasets/{dataset}"
        self._facts = requests.get(self._base)
        self.data = Dataset.from_toml(self._facts["description"])

    @check.arguments
    def sql(
        self,
        text: str,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        error: str | float | None = None,
        confidence: float | None = None,
        key: str | None = None,
        parameters: Sequence[Value] = (),
    ) -> Answer:
        """The answer to a question in SQL, as `Session.sql` gives it."""
        cost = question_cost(epsilon=epsilon, delta=delta, rho=rho, error=error, confidence=confidence)
        body = {"sql": text, **cost, "parameters": [_plain(value) for value in parameters]}
        name = key or secrets.token_hex(16)
        return _answer(self._requests.post(f"{self._base}/questions", body, key=name))

    @check.arguments
    def release(
        self,
        question: Askable,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        error: str | float | None = None,
        confidence: float | None = None,
        key: str | None = None,
    ) -> Answer:
        """The answer to an expression, which is sent as the SQL that it writes."""
        text = self._sql_of(question)
        return self.sql(
            text, epsilon=epsilon, delta=delta, rho=rho, error=error, confidence=confidence, key=key
        )

    @check.arguments
    def release_batch(
        self,
        questions: Mapping[str, tuple[Askable | str, QuestionCost]],
        *,
        after_each: Callable[[], object] = lambda: None,
    ) -> dict[str, Answer]:
        """The answers to many questions, all of them or none, as `Session.release_batch` gives
        them.
        """
        bodies = {
            key: {"sql": asked if isinstance(asked, str) else self._sql_of(asked), **cost}
            for key, (asked, cost) in questions.items()
        }
        found = self._requests.post(
            f"{self._base}/batches", {"questions": bodies}, key=next(iter(bodies), "")
        )
        answers = {key: _answer(found["answers"][key]) for key in bodies}
        for _ in answers:
            after_each()
        return answers

    @check.arguments
    def preview(
        self,
        question: Askable | str,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        error: str | float | None = None,
        confidence: float | None = None,
        parameters: Sequence[Value] = (),
    ) -> Preview:
        """The cost of a question and the margin of error of its answer. Nothing is spent."""
        cost = question_cost(epsilon=epsilon, delta=delta, rho=rho, error=error, confidence=confidence)
        text = question if isinstance(question, str) else self._sql_of(question)
        body = {"sql": text, **cost, "parameters": [_plain(value) for value in parameters]}
        found = self._requests.post(f"{self._base}/previews", body)
        return Preview.from_json(json.dumps(found["preview"]))

    @check.arguments
    def combine(self, *answers: Answer, complete: Sequence[str] = ()) -> Answer:
        """Answers to overlapping questions as one, as `Session.combine` makes it. Free."""
        return combine_released(self.data, answers, complete)

    @check.arguments
    def answer(self, key: str) -> Answer:
        """The answer that was paid for under a key of yours; free."""
        return _answer(self._requests.get(f"{self._base}/questions/{key}"))

    def budget(self) -> Budget:
        """What is spent and what remains of your allocation."""
        found = self._requests.get(f"{self._base}/budget")
        return Budget.from_json(json.dumps(found["budget"]), self._count_like)

    def _count_like(self, guarantee: Guarantee) -> float:
        found = self._requests.post(f"{self._base}/budget/like", {"guarantee": guarantee.to_json()})
        return math.inf if found["like"] is None else float(found["like"])

    def describe(self) -> str:
        """Who is protected, what is publicly known, and when answers are shown, in sentences."""
        return "\n".join([*self._facts["sentences"], self._facts["showing"]])

    def close(self) -> None:
        """End the connections."""
        self._requests.close()

    def __repr__(self) -> str:
        return f"RemoteSession({self.data.name!r}, protects {self.data.unit})"

    def __reduce__(self) -> NoReturn:
        raise _not_over_a_server_error("a session holds a token, so it is not copied.", "dp.connect(url)")

    def _sql_of(self, question: object) -> str:
        """The SQL of a question, if that says all of it."""
        if isinstance(question, Mechanism):
            raise _not_over_a_server_error(
                "a server does not draw mechanisms on data of yours.",
                "dp.Session(data, ledger=…).release(mechanism, value)   where the data are",
            )
        asked = question_of(question, self.data)
        with naming_extras():
            from discreet.tables.ask.sql import parse
        try:
            same = parse(asked.text, self.data).question.text == asked.text
        except DiscreetError:
            same = False
        if same and asked.workload is None:
            return asked.text
        raise _not_over_a_server_error(
            "this question has no form in SQL, in which a server is asked.",
            'session.sql("SELECT …", epsilon=0.1)',
        )


def _answer(body: Mapping[str, Any]) -> Answer:
    """The answer in a response; an outcome without one is raised as a session raises it."""
    if body.get("answer") is None:
        raise error_from({**body, "title": body.get("detail")})
    answer = Answer.from_json(json.dumps(body["answer"]))
    receipt = body.get("receipt")
    return answer if receipt is None else replace(answer, receipt=Receipt.from_json(json.dumps(receipt)))


def _plain(value: Value) -> bool | int | float | str | None:
    """A parameter as JSON types; dates and decimals as SQL writes them."""
    return str(value) if isinstance(value, date | Decimal) else value


def _not_over_a_server_error(what: str, instead: str) -> ServerError:
    return connection_error(
        "DP856", what, why="a question travels as SQL, and the rows stay where they are.", remedy=instead
    )
