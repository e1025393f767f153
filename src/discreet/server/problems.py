# SPDX-License-Identifier: Apache-2.0
"""Errors as responses: `application/problem+json` by RFC 9457, with code, why, fix and spent.

**Guarantee.** A status before a charge depends on the request, the description and the ledger. An
error that nobody foresaw becomes a constant text and a number for the log of the server.
"""

from __future__ import annotations

import secrets
import sys
import traceback

from starlette.responses import JSONResponse

from discreet.errors import DiscreetError, OverBudget
from discreet.server.models import ProblemBody
from discreet.server.refusals import ServerRefusal, refuse

__all__ = ["note_failure", "problem_of", "problem_response", "status_of"]

_ERRORS = "https://discreet.dev/errors/"
_CONFLICTS = {"DP601", "DP608", "DP610", "DP611"}
_UNAVAILABLE = {"DP501", "DP602", "DP603", "DP606", "DP607", "DP801", "DP802", "DP803", "DP804", "DP805"}
#: Seconds after which something that is unavailable is asked again.
_RETRY = 20


def status_of(error: DiscreetError) -> int:
    """The status of HTTP for an error that cost nothing."""
    if isinstance(error, ServerRefusal):
        return error.status
    if error.code in _CONFLICTS:
        return 409
    return 503 if error.code in _UNAVAILABLE else 422


def problem_of(error: DiscreetError) -> ProblemBody:
    """An error as a body."""
    status = status_of(error)
    retry = error.retry if isinstance(error, ServerRefusal) else _RETRY if status == 503 else None
    fits = dict(error.fits) if isinstance(error, OverBudget) and error.fits else None
    words = {"type": f"{_ERRORS}{error.code}", "title": error.what, "status": status, "code": error.code}
    words |= {"why": error.why, "fix": error.fix, "spent": error.spent}
    return ProblemBody.model_validate({**words, "fits": fits, "retry_after": retry})


def problem_response(error: DiscreetError) -> JSONResponse:
    """An error as a response."""
    body = problem_of(error)
    headers = {} if body.retry_after is None else {"Retry-After": str(body.retry_after)}
    if body.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(
        body.model_dump(exclude_none=True),
        body.status,
        headers=headers,
        media_type="application/problem+json",
    )


def note_failure(failure: BaseException) -> ServerRefusal:
    """What to show for an error that nobody foresaw; the log has where it happened, and no text of
    it, which may quote a request.
    """
    number = secrets.token_hex(4)
    frames = traceback.extract_tb(failure.__traceback__)
    places = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames[-6:]))
    print(f"failure {number}: {type(failure).__name__} in {places}", file=sys.stderr)
    return refuse("failed", detail=number)
