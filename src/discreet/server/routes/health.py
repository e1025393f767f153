# SPDX-License-Identifier: Apache-2.0
"""Whether the server is alive and ready, and what it has counted."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from discreet.server.refusals import refuse
from discreet.server.routes.common import ServicesOf

__all__ = ["router"]

router = APIRouter()


@router.get("/healthz", tags=["health"])
async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"state": "alive"}


@router.get("/readyz", tags=["health"])
async def readyz(services: ServicesOf) -> Response:
    """Questions are taken."""
    asking = services.asking
    ready = bool(asking.datasets) and not asking.is_stopping
    # An engine that was ended is started by the next question. When one ends may depend on rows, so
    # it is not told here, before the tick; nor are the names of data sets, as this needs no token.
    return JSONResponse({"state": "ready" if ready else "not ready"}, 200 if ready else 503)


@router.get("/metrics", tags=["health"])
async def metrics(request: Request, services: ServicesOf) -> PlainTextResponse:
    """Counters and gauges for Prometheus, for this machine only; nothing in them depends on rows."""
    if services.config.behind_proxy or (
        request.client and request.client.host not in ("127.0.0.1", "::1", "testclient")
    ):
        raise refuse("not found")
    hosted = services.asking.datasets.values()
    gauges = {
        "spent_fraction": {each.name: each.ledger.budget().spent_fraction for each in hosted},
        "ledger_rows": {each.name: float(len(each.ledger)) for each in hosted},
    }
    return PlainTextResponse(services.metrics.text(gauges), media_type="text/plain; version=0.0.4")
