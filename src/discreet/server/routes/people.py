# SPDX-License-Identifier: Apache-2.0
"""Who asks; tokens; and, for curators, people, roles and seats."""

from __future__ import annotations

from importlib import metadata
from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import Field

from discreet.server.config import ROLES
from discreet.server.datasets import Hosted
from discreet.server.models import LinkBody, MeBody, PersonBody, RequestBody, SeatBody, TokenBody
from discreet.server.refusals import refuse
from discreet.server.routes.common import CallerOf, JsonOnly, ServicesOf
from discreet.server.services import Services
from discreet.server.store import Caller, Person, TokenRow

__all__ = ["router", "seat_bodies"]

router = APIRouter(prefix="/v1", tags=["people"])

PersonId = Annotated[str, Path(pattern=r"^p_[0-9a-f]{12}$")]


class NewPersonBody(RequestBody):
    """Somebody who is to be let in, and the role that they get in a data set."""

    name: str = Field(min_length=1, max_length=100)
    dataset: str
    role: str = "analyst"
    seat: str | None = None


class GrantBody(RequestBody):
    """A role of a person in a data set."""

    person: str
    dataset: str
    role: str


class SeatingBody(RequestBody):
    """A person for a seat; null empties it."""

    person: str | None


class NewTokenBody(RequestBody):
    """A token to be made: how long it is good, and what it may do."""

    name: str = Field("token", min_length=1, max_length=100)
    days: int = Field(90, ge=1, le=366)
    dataset: str | None = None
    roles: list[str] | None = None
    most: float | None = Field(None, gt=0)


@router.get("")
def get_version() -> dict[str, object]:
    """The version of the server and of its API."""
    return {"discreet": metadata.version("discreet"), "api": "1"}


@router.get("/me")
def get_me(caller: CallerOf, services: ServicesOf) -> MeBody:
    """Who asks, with their roles and seats."""
    names = [name for name in services.asking.datasets if caller.roles.get(name)]
    return MeBody(
        person=caller.person.id,
        name=caller.person.name,
        roles={name: sorted(caller.roles[name]) for name in names},
        seats={name: services.store.seat_of(name, caller.person.id) for name in names},
    )


@router.post("/sign-in", status_code=201, dependencies=[JsonOnly])
def sign_in(body: LinkBody, request: Request, services: ServicesOf) -> TokenBody:
    """A token for whoever has a link that works once."""
    person = services.sign_in.use_link(body.once, request.state.address)
    token, row = services.people.make_token(person.id, body.name)
    return _token_body(row).model_copy(update={"token": token})


# --- tokens -----------------------------------------------------------------------------------------


@router.get("/tokens")
def list_tokens(caller: CallerOf, services: ServicesOf) -> dict[str, list[TokenBody]]:
    """The caller's tokens, by their ids."""
    return {"tokens": [_token_body(row) for row in services.store.tokens(caller.person.id)]}


@router.post("/tokens", status_code=201, dependencies=[JsonOnly])
def make_token(body: NewTokenBody, caller: CallerOf, services: ServicesOf) -> TokenBody:
    """A new token for the caller. It can do no more than the token that asks for it, and is shown
    once.
    """
    kept = body.roles if body.roles is not None else list(ROLES)
    own = {role for roles in caller.roles.values() for role in roles}
    if not set(kept) <= set(ROLES):
        raise refuse("malformed", detail=f"roles: one of {', '.join(ROLES)}.")
    most = min((each for each in (body.most, caller.most) if each is not None), default=None)
    if body.dataset is None and len(caller.roles) == 1:
        body = body.model_copy(update={"dataset": next(iter(caller.roles))})
    if body.dataset is not None and body.dataset not in caller.roles:
        # The asking token may be for one data set, and its owner have roles in others.
        raise refuse("not found")
    scopes: dict[str, object] = {"roles": sorted(own & set(kept))}
    scopes |= {} if body.dataset is None else {"dataset": body.dataset}
    scopes |= {} if most is None else {"most": most}
    token, row = services.people.make_token(caller.person.id, body.name, days=body.days, scopes=scopes)
    return _token_body(row).model_copy(update={"token": token})


@router.delete("/tokens/{token}", status_code=204)
def revoke_token(token: str, caller: CallerOf, services: ServicesOf) -> None:
    """End a token of the caller."""
    if not services.store.revoke_token(token, caller.person.id):
        raise refuse("not found")
    services.store.log("token revoked", caller.person.id, token=token)


def _token_body(row: TokenRow) -> TokenBody:
    return TokenBody(
        id=row.id,
        name=row.name,
        made=row.made,
        expires=row.expires,
        used_on=row.used_on,
        revoked=row.revoked is not None,
    )


# --- people, roles and seats --------------------------------------------------------------------------


@router.get("/datasets/{dataset}/people")
def list_people(dataset: str, caller: CallerOf, services: ServicesOf) -> dict[str, list[PersonBody]]:
    """Everybody who has a role in the data set."""
    services.asking.dataset(caller, dataset, "read people")
    found = []
    for person in services.store.people():
        roles = services.store.roles(person.id)
        if roles.get(dataset):
            found.append(PersonBody(id=person.id, name=person.name, roles={dataset: sorted(roles[dataset])}))
    return {"people": found}


@router.post("/people", status_code=201, dependencies=[JsonOnly])
def add_person(body: NewPersonBody, caller: CallerOf, services: ServicesOf) -> dict[str, str]:
    """Let somebody in: a new person with a role, and a link that works once within a day."""
    hosted = _check_curator(services, caller, body.dataset, body.role)
    if body.seat is not None and body.seat not in hosted.seats:
        raise refuse("not found")
    person = services.store.add_person(body.name)
    services.store.grant(person.id, body.dataset, body.role, caller.person.id)
    if body.seat is not None:
        services.store.take_seat(body.dataset, body.seat, person.id, caller.person.id)
    services.store.log("person added", caller.person.id, body.dataset, added=person.id, role=body.role)
    link = services.people.make_link(person.id, minutes=24 * 60)
    return {"id": person.id, "name": person.name, "link": link}


@router.delete("/people/{person}", status_code=204)
def remove_person(person: PersonId, caller: CallerOf, services: ServicesOf) -> None:
    """End everything that somebody may do, if the caller is curator wherever they have a role."""
    found = _find_person(services, person)
    for dataset in services.store.roles(found.id):
        services.asking.dataset(caller, dataset, "change people")
    if not services.store.roles(found.id):
        raise refuse("not found")
    services.store.remove_person(found.id)
    services.store.log("person removed", caller.person.id, None, removed=found.id)


@router.post("/grants", status_code=201, dependencies=[JsonOnly])
def grant_role(body: GrantBody, caller: CallerOf, services: ServicesOf) -> GrantBody:
    """Give somebody a role."""
    _check_curator(services, caller, body.dataset, body.role)
    person = _find_person(services, body.person)
    services.store.grant(person.id, body.dataset, body.role, caller.person.id)
    services.store.log("role granted", caller.person.id, body.dataset, to=person.id, role=body.role)
    return body


@router.delete("/grants/{dataset}/{person}/{role}", status_code=204)
def revoke_role(dataset: str, person: PersonId, role: str, caller: CallerOf, services: ServicesOf) -> None:
    """Take a role away."""
    _check_curator(services, caller, dataset, role)
    services.store.revoke_grant(_find_person(services, person).id, dataset, role)
    services.store.log("role revoked", caller.person.id, dataset, of=person, role=role)


@router.get("/datasets/{dataset}/seats")
def list_seats(dataset: str, caller: CallerOf, services: ServicesOf) -> dict[str, list[SeatBody]]:
    """The seats, who sits there, and what is spent of each allocation."""
    return {"seats": seat_bodies(services, services.asking.dataset(caller, dataset, "read people"))}


@router.put("/datasets/{dataset}/seats/{seat}", dependencies=[JsonOnly])
def put_in_seat(
    dataset: str, seat: str, body: SeatingBody, caller: CallerOf, services: ServicesOf
) -> list[SeatBody]:
    """Let somebody sit in a seat, or nobody. What was spent from the seat stays spent."""
    hosted = services.asking.dataset(caller, dataset, "change people")
    if seat not in hosted.seats:
        raise refuse("not found")
    if body.person is None:
        services.store.vacate_seat(dataset, seat)
    else:
        services.store.take_seat(dataset, seat, _find_person(services, body.person).id, caller.person.id)
    services.store.log("seat changed", caller.person.id, dataset, seat=seat, sitting=body.person)
    return seat_bodies(services, hosted)


def seat_bodies(services: Services, hosted: Hosted) -> list[SeatBody]:
    """Every seat of a data set, as a response."""
    sitting = {seat.name: seat.person for seat in services.store.seats(hosted.name)}
    return [
        SeatBody(
            name=name, person=sitting.get(name), spent_fraction=hosted.session(name).budget().spent_fraction
        )
        for name in hosted.seats
    ]


def _check_curator(services: Services, caller: Caller, dataset: str, role: str) -> Hosted:
    """The data set in which the caller may change people, and a role that there is."""
    hosted = services.asking.dataset(caller, dataset, "change people")
    if role not in ROLES:
        raise refuse("malformed", detail=f"role: one of {', '.join(ROLES)}.")
    return hosted


def _find_person(services: Services, person: str) -> Person:
    found = services.store.person(person)
    if found is None:
        raise refuse("not found")
    return found
