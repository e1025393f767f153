# SPDX-License-Identifier: Apache-2.0
"""Data sets, their descriptions, and the own budget."""

from __future__ import annotations

import json
import math

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from discreet.privacy.wire import from_json
from discreet.server.config import ShowingSettings
from discreet.server.datasets import Hosted
from discreet.server.describing import column_facts, sentences_of, shown_description
from discreet.server.models import BudgetBody, ColumnBody, DatasetBody, LikeBody
from discreet.server.routes.common import AskingOf, CallerOf, JsonOnly
from discreet.server.store import Caller

__all__ = ["router", "showing_sentence"]

router = APIRouter(prefix="/v1", tags=["data sets"])


@router.get("/datasets")
def list_datasets(caller: CallerOf, asking: AskingOf) -> dict[str, list[str]]:
    """The data sets in which the caller has a role."""
    return {"datasets": [name for name in asking.datasets if caller.roles.get(name)]}


@router.get("/datasets/{dataset}", response_model=DatasetBody)
def get_dataset(dataset: str, request: Request, caller: CallerOf, asking: AskingOf) -> DatasetBody | Response:
    """The public description of a data set; as TOML with Accept: application/toml."""
    hosted = asking.dataset(caller, dataset, "read description")
    if "application/toml" in request.headers.get("accept", ""):
        return PlainTextResponse(shown_description(hosted), media_type="application/toml")
    return _body(hosted, caller, asking.seat(caller, hosted), asking.config.showing)


def _body(hosted: Hosted, caller: Caller, seat: str | None, showing: ShowingSettings) -> DatasetBody:
    data = hosted.data
    return DatasetBody(
        name=data.name,
        version=data.version,
        protects=data.unit.protects,
        relation=data.unit.relation,
        description=shown_description(hosted),
        sentences=sentences_of(data),
        tables={
            table.name: [ColumnBody.model_validate(column_facts(column)) for column in table.columns.values()]
            for table in data.tables.values()
        },
        public_tables=[table.name for table in data.tables.values() if not table.private],
        roles=sorted(caller.roles.get(data.name, frozenset())),
        seat=seat,
        showing=showing_sentence(showing),
    )


def showing_sentence(showing: ShowingSettings) -> str:
    """When answers are shown, in words."""
    if showing.fixed:
        return f"Every answer is shown {showing.deadline:g} s after its question was begun."
    return (
        f"Answers are shown {showing.tick:g} s after their question was begun, or at twice, four times, … that"
        " time: how long a question takes tells at most which of these moments came next."
    )


@router.get("/datasets/{dataset}/budget")
def get_budget(dataset: str, caller: CallerOf, asking: AskingOf) -> BudgetBody:
    """What is spent and what remains of the caller's allocation."""
    budget = asking.budget(caller, dataset)
    remaining = {word: None if amount == math.inf else amount for word, amount in budget.remaining.items()}
    return BudgetBody(
        seat=asking.store.seat_of(dataset, caller.person.id),
        spent_fraction=budget.spent_fraction,
        remaining_fraction=budget.remaining_fraction,
        remaining=remaining,
        headline=budget.headline,
        notes=[*budget.notes, *budget.fits],
        budget=json.loads(budget.to_json()),
    )


@router.post("/datasets/{dataset}/budget/like", dependencies=[JsonOnly])
def count_like(dataset: str, body: LikeBody, caller: CallerOf, asking: AskingOf) -> dict[str, float | None]:
    """How many more answers with this guarantee the caller's allocation admits; null for any
    number.
    """
    count = asking.budget(caller, dataset).like(from_json(body.guarantee))
    return {"like": None if count == math.inf else count}
