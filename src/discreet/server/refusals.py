# SPDX-License-Identifier: Apache-2.0
"""What a server refuses by itself, in words that depend on the request alone.

**Guarantee.** Every text here is constant or quotes the request and the settings. Nothing that was
read from data, and nothing about other people, is in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from discreet.errors import ServerError

__all__ = ["ServerRefusal", "refuse"]


@dataclass(frozen=True)
class RefusalText:
    """A code with its sentences."""

    code: str
    what: str
    why: str
    remedy: str


class ServerRefusal(ServerError):
    """A server refuses; `status` is the status of HTTP, and `retry` the seconds after which another
    attempt makes sense.
    """

    status: int = 400
    retry: int | None = None


_TEXTS: dict[str, tuple[int, RefusalText]] = {
    "malformed": (
        400,
        RefusalText(
            "DP851",
            "{detail}",
            "a misspelt or missing field is never replaced by a default.",
            '{{"sql": "SELECT COUNT(*) FROM visits", "epsilon": 0.1}}   as application/json',
        ),
    ),
    "no key": (
        400,
        RefusalText(
            "DP851",
            "the Idempotency-Key is not 1 to 128 of A-Z, a-z, 0-9, '.', '_' and '-'.",
            "a key makes a retry safe: the same key and question give the same answer at no further cost.",
            "Idempotency-Key: wages-1",
        ),
    ),
    "host": (
        400,
        RefusalText(
            "DP851",
            "this server does not answer under that name.",
            "a page elsewhere could otherwise ask in the name of whoever visits it.",
            "ask under the public_url of the settings",
        ),
    ),
    "not signed in": (
        401,
        RefusalText(
            "DP852",
            "this does not let you in.",
            "every question is charged to somebody, so a server has to know who asks.",
            "Authorization: Bearer dscr_…   with a token that the curator gave you and that is not over",
        ),
    ),
    "not permitted": (
        403,
        RefusalText(
            "DP853",
            "{detail}",
            "who may do what is a matter of roles, which the curator of the data set grants.",
            "ask the curator for the role {role}",
        ),
    ),
    "no seat": (
        403,
        RefusalText(
            "DP853",
            "you have no seat, and a question is charged to a seat.",
            "a seat is a part of the budget; previews are free and need none.",
            "ask the curator for a seat",
        ),
    ),
    "gaussian": (
        403,
        RefusalText(
            "DP853",
            "this question would close the pure track for everybody, which the curator does not permit.",
            "after the first Gaussian noise only the Rényi track counts, and fewer small questions fit.",
            "epsilon=0.1 without delta and rho",
        ),
    ),
    "daily": (
        403,
        RefusalText(
            "DP853",
            "this token may not spend that much in a day.",
            "the curator has set a limit for each day, beside the budget of the seat.",
            "ask tomorrow, or at a smaller cost",
        ),
    ),
    "not found": (
        404,
        RefusalText(
            "DP853",
            "there is nothing here for you.",
            "what does not exist and what is not yours look the same.",
            "GET /v1/datasets   lists what you may use",
        ),
    ),
    "paid for": (
        409,
        RefusalText(
            "DP853",
            "this question is paid for, and will be drawn.",
            "a charge is never given back.",
            "wait for its answer",
        ),
    ),
    "too large": (
        413,
        RefusalText(
            "DP854",
            "the body is larger than {limit} bytes, or took too long to arrive.",
            "a question is a short text; what is longer would keep others waiting.",
            "a shorter question",
        ),
    ),
    "wrong type": (
        415,
        RefusalText(
            "DP854",
            "the body is not application/json.",
            "a form of another site cannot send JSON unasked.",
            "Content-Type: application/json",
        ),
    ),
    "not acceptable": (
        406,
        RefusalText(
            "DP854",
            "answers are not written as {detail}.",
            "the format is decided before anything is charged.",
            "Accept: application/json   or text/csv, application/vnd.apache.parquet, "
            "application/vnd.apache.arrow.stream",
        ),
    ),
    "busy": (
        429,
        RefusalText(
            "DP855",
            "too many requests are waiting; nothing was charged.",
            "everybody shares the processors, and questions are answered in turn.",
            "ask again in {retry} s, with the same key",
        ),
    ),
    "stopping": (
        503,
        RefusalText(
            "DP855",
            "the server is not ready to answer; nothing was charged.",
            "it starts, stops, or its data are opened again.",
            "ask again in {retry} s, with the same key",
        ),
    ),
    "late plan": (
        503,
        RefusalText(
            "DP855",
            "this question takes too long to compile; nothing was charged.",
            "a very long question would keep others waiting.",
            "ask for fewer columns or groups",
        ),
    ),
    "failed": (
        500,
        RefusalText(
            "DP859",
            "the server failed; its log has the number {detail}.",
            "this is a fault of the server, and its text is not shown because it may quote data.",
            "ask again with the same key, and tell the operator that number",
        ),
    ),
}


def refuse(
    name: str, *, detail: str = "", retry: int | None = None, limit: int = 0, role: str = ""
) -> ServerRefusal:
    """The refusal of that name, with its words filled in."""
    status, text = _TEXTS[name]
    words = {"detail": detail, "retry": retry, "limit": limit, "role": role}
    error = ServerRefusal(
        text.code, text.what.format(**words), why=text.why.format(**words), fix=text.remedy.format(**words)
    )
    error.status, error.retry = status, retry
    return error
