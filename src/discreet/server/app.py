# SPDX-License-Identifier: Apache-2.0
"""Puts a server together: `make_app(config)` is an ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from discreet.errors import DiscreetError
from discreet.server.asking import Asking
from discreet.server.config import ServerConfig
from discreet.server.database import open_database
from discreet.server.headers import RequestGuard
from discreet.server.metrics import Metrics
from discreet.server.pages import page_routes
from discreet.server.people import People
from discreet.server.problems import problem_response
from discreet.server.rates import OpenStreams, RateLimiter
from discreet.server.refusals import refuse
from discreet.server.routes import datasets, health, ledger, people, questions
from discreet.server.services import Services
from discreet.server.signin import SignIn
from discreet.server.store import ServerStore
from discreet.server.tokens import Keyring

__all__ = ["make_app", "make_services"]


def make_services(config: ServerConfig) -> Services:
    """What the routes of one application share; the data sets are opened when it starts."""
    config.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    store = ServerStore(open_database(config.store or config.state / "server.db"))
    keyring, metrics = Keyring.at(config.state / "secret"), Metrics()
    permissions = People(store, keyring)
    rates = config.rates
    return Services(
        config=config,
        store=store,
        people=permissions,
        sign_in=SignIn(config, store, keyring, permissions, metrics),
        asking=Asking(config, store, permissions, metrics),
        metrics=metrics,
        preview_rate=RateLimiter(rates.plans, 3 * rates.plans),
        question_rate=RateLimiter(rates.questions, 5 * rates.questions),
        streams=OpenStreams(rates.streams),
    )


def make_app(config: ServerConfig, services: Services | None = None) -> FastAPI:
    """The application of these settings. It opens data sets and ledgers when it starts.

    **Guarantee.** Whatever fails becomes a problem by RFC 9457; the text of an error that nobody
    foresaw is not shown.
    """
    config.check_binding()
    shared = services or make_services(config)

    @asynccontextmanager
    async def run(application: FastAPI) -> AsyncIterator[None]:
        try:
            await shared.asking.start()
        except DiscreetError as failure:
            # Whoever runs the application sees the reason, and not only that it did not start.
            application.state.failure = failure
            raise
        yield
        await shared.asking.stop()
        shared.store.close()

    app = FastAPI(
        title="discreet",
        version="1",
        description="Questions to private tables under a privacy budget.",
        lifespan=run,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    app.state.services = shared
    for router in (health.router, people.router, datasets.router, questions.router, ledger.router):
        app.include_router(router)
    app.router.routes.extend(page_routes(shared))
    app.add_exception_handler(DiscreetError, _refusal_response)
    app.add_exception_handler(RequestValidationError, _malformed_response)
    app.add_exception_handler(HTTPException, _status_response)
    app.add_middleware(RequestGuard, config=config, metrics=shared.metrics)
    return app


def _refusal_response(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, DiscreetError)
    request.app.state.services.metrics.count("refusals", code=error.code)
    return problem_response(error)


def _malformed_response(request: Request, error: Exception) -> JSONResponse:
    """What is wrong with a request: the place and the kind of the fault, and nothing that was sent."""
    assert isinstance(error, RequestValidationError)
    faults = [
        f"{'.'.join(map(str, fault['loc'][1:])) or 'the body'}: {fault['type'].replace('_', ' ')}"
        for fault in error.errors()
    ]
    return _refusal_response(request, refuse("malformed", detail=f"{'; '.join(faults[:5])[:500]}."))


def _status_response(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    name = "not found" if error.status_code in (404, 405) else "malformed"
    response = _refusal_response(request, refuse(name, detail="this request cannot be read."))
    if error.status_code == 405:
        response.headers.update(error.headers or {})
    return response
