# SPDX-License-Identifier: Apache-2.0
"""What the routes share: the services, and who asks."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import Depends, Header, Request

from discreet.server.asking import Asking
from discreet.server.refusals import refuse
from discreet.server.services import Services
from discreet.server.store import Caller

__all__ = ["AskingOf", "CallerOf", "JsonOnly", "ServicesOf", "services_of"]


def services_of(request: Request) -> Services:
    """The services of the application."""
    services: Services = request.app.state.services
    return services


def asking_of(request: Request) -> Asking:
    """The data sets, and what may be asked."""
    return services_of(request).asking


def caller_of(
    request: Request, authorization: Annotated[str | None, Header(description="Bearer dscr_…")] = None
) -> Caller:
    """Whose token it is; cookies and addresses are not looked at."""
    kind, _, token = (authorization or "").partition(" ")
    if kind.lower() != "bearer":
        raise refuse("not signed in")
    return services_of(request).people.caller_of_token(token.strip())


def check_json(request: Request) -> None:
    """Refuse a body that is not JSON: a form of another site can send any other type unasked."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise refuse("wrong type")


ServicesOf: TypeAlias = Annotated[Services, Depends(services_of)]
AskingOf: TypeAlias = Annotated[Asking, Depends(asking_of)]
CallerOf: TypeAlias = Annotated[Caller, Depends(caller_of)]
JsonOnly = Depends(check_json)
