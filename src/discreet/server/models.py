# SPDX-License-Identifier: Apache-2.0
"""What requests and responses of the API hold. Requests refuse unknown fields."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "AnswerBody",
    "BatchBody",
    "BudgetBody",
    "ColumnBody",
    "DatasetBody",
    "EntryBody",
    "LikeBody",
    "LinkBody",
    "MeBody",
    "PersonBody",
    "PreviewBody",
    "PreviewColumnBody",
    "ProblemBody",
    "QuestionBody",
    "QuestionItem",
    "SeatBody",
    "TokenBody",
    "VerificationBody",
]

_Wire = dict[str, Any]


class RequestBody(BaseModel):
    """A body of a request: unknown fields and wrong types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class QuestionBody(RequestBody):
    """A question in SQL and what it may cost: `epsilon`, `epsilon` with `delta`, `rho`, or `error`;
    with an error, `epsilon` is the most that it may cost.
    """

    sql: str = Field(min_length=1, max_length=100_000)
    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    error: str | float | None = None
    confidence: float | None = None
    parameters: list[bool | int | float | str | None] = Field(default_factory=list, max_length=1000)
    purpose: str | None = Field(None, max_length=500)
    project: str | None = Field(None, max_length=200)
    fresh: bool = False

    @property
    def cost(self) -> dict[str, Any]:
        """The amounts that are stated."""
        amounts = {name: getattr(self, name) for name in ("epsilon", "delta", "rho", "error", "confidence")}
        return {name: amount for name, amount in amounts.items() if amount is not None}


class BatchBody(RequestBody):
    """Questions by name that are answered all together, or not at all."""

    questions: dict[str, QuestionBody] = Field(min_length=1, max_length=200)
    purpose: str | None = Field(None, max_length=500)
    project: str | None = Field(None, max_length=200)


class LikeBody(RequestBody):
    """A guarantee in wire form."""

    guarantee: str = Field(max_length=100_000)


class LinkBody(RequestBody):
    """A link that lets somebody in once, to be exchanged for a token."""

    once: str = Field(max_length=200)
    name: str = Field("token", min_length=1, max_length=100)


class ColumnBody(BaseModel):
    """What is publicly known of a column."""

    name: str
    kind: str
    bounds: list[Any] | None = None
    values: list[Any] | None = None
    null: bool = True
    source: str | None = None


class DatasetBody(BaseModel):
    """A data set, as it is publicly described; `description` is TOML without places of files."""

    name: str
    version: str
    protects: str
    relation: str
    description: str
    sentences: list[str]
    tables: dict[str, list[ColumnBody]]
    public_tables: list[str]
    roles: list[str]
    seat: str | None
    showing: str
    made_up: bool = False


class PreviewColumnBody(BaseModel):
    """The noise and the margin of error of one column, in words."""

    name: str
    text: str
    noise: str
    error: str


class PreviewBody(BaseModel):
    """The cost and the margin of error of an answer before it is drawn; nothing was spent.

    `preview` is the whole preview in wire form. `like_this` says how many such answers the own
    budget admits, null if any number; `fits` is false where it admits none. `used` is the fraction
    of the own budget that is spent, and `then` the fraction after this answer.
    """

    question: str
    epsilon: str
    delta: float | None
    groups: str
    columns: list[PreviewColumnBody]
    notes: list[str]
    cheaper: list[str]
    fits: bool
    like_this: int | None
    used: float | None
    key: str
    preview: _Wire


class BudgetBody(BaseModel):
    """What is spent and what remains of the own allocation; `budget` is the whole in wire form."""

    seat: str | None
    spent_fraction: float
    remaining_fraction: float
    remaining: dict[str, float | None]
    headline: str
    notes: list[str]
    budget: _Wire


class AnswerBody(BaseModel):
    """How a question ended, or where it is: `state` is "answered", "not drawn", "refused" (a later
    step, after an earlier one was paid for), "waiting" or "charged".
    """

    state: str
    key: str
    paid: bool = False
    answer: _Wire | None = None
    receipt: _Wire | None = None
    used: float | None = None
    like_this: int | None = None
    code: str | None = None
    detail: str | None = None
    why: str | None = None
    fix: str | None = None
    spent: str | None = None
    before: int | None = None
    made_up: bool = False


class QuestionItem(BaseModel):
    """A question in the list of one's own."""

    key: str
    number: int
    time: str
    question: str
    purpose: str | None
    state: str
    epsilon: str | None


class MeBody(BaseModel):
    """Who asks: the person, their roles and their seats, by data set."""

    person: str
    name: str
    roles: dict[str, list[str]]
    seats: dict[str, str | None]


class PersonBody(BaseModel):
    """Somebody who may sign in."""

    id: str
    name: str
    roles: dict[str, list[str]]


class SeatBody(BaseModel):
    """A seat, who sits there, and the fraction of its allocation that is spent."""

    name: str
    person: str | None
    spent_fraction: float | None


class TokenBody(BaseModel):
    """A token by its id; `token` itself is shown once, when it is made."""

    id: str
    name: str
    made: str
    expires: str
    used_on: str | None
    revoked: bool
    token: str | None = None


class EntryBody(BaseModel):
    """A row of the ledger without its answer."""

    number: int
    kind: str
    time: str
    analyst: str | None
    project: str | None
    purpose: str | None
    question: str | None
    mechanism: str | None
    guarantee: str | None
    spent_fraction: float | None
    answered: int | None
    hash: str


class VerificationBody(BaseModel):
    """What a check of the whole ledger found."""

    ok: bool
    rows: int
    anchor: str
    sentences: list[str]


class ProblemBody(BaseModel):
    """A refusal, by RFC 9457."""

    type: str
    title: str
    status: int
    code: str
    why: str
    fix: str
    spent: str
    fits: dict[str, float] | None = None
    retry_after: int | None = None
