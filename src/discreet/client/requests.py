# SPDX-License-Identifier: Apache-2.0
"""Requests to a server: retried where that is safe, and with errors as they were raised over there.

**Guarantee.** Only requests that cost nothing, or have a key, are sent again: a key is paid for
once, however often it arrives. A token is sent to its server alone, over TLS or within this
machine.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from discreet import errors
from discreet.errors import DiscreetError, OverBudget, ServerError
from discreet.extras import naming_extras

if TYPE_CHECKING:
    import httpx

__all__ = ["ServerRequests", "connection_error", "error_from"]

#: Attempts, and the seconds before the second one and before any later one at most.
_ATTEMPTS, _FIRST_PAUSE, _LONGEST_PAUSE = 5, 0.2, 3.0
#: Seconds for which an answer that is on its way is awaited.
_PATIENCE = 900.0
_AGAIN = {429, 502, 503, 504}
#: The class of an error by how its code begins; the longest beginning counts.
_CLASSES: dict[str, type[DiscreetError]] = {
    "DP1": errors.BadParameter,
    "DP2": errors.UnsupportedGuarantee,
    "DP201": errors.UnitMismatch,
    "DP3": errors.CannotCertify,
    "DP4": errors.BadDescription,
    "DP5": errors.MissingExtra,
    "DP6": errors.LedgerError,
    "DP601": errors.OverBudget,
    "DP602": errors.LedgerDamaged,
    "DP7": errors.RefusedQuestion,
    "DP8": errors.EngineFailed,
    "DP85": errors.ServerError,
    "DP9": errors.RefusedTraining,
}


class ServerRequests:
    """Requests to one server with one token."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        with naming_extras():
            import httpx
        self._failure: type[Exception] = httpx.TransportError
        self._sleep = sleep
        self._client = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            timeout=httpx.Timeout(90.0, connect=10.0),
            transport=transport,
        )

    def get(self, path: str) -> Any:
        """What is at a path, as JSON types."""
        return self._send("GET", path, None, "")[1]

    def post(self, path: str, body: Mapping[str, Any], *, key: str = "") -> Any:
        """The response to a body; one that is on its way is awaited."""
        until = time.monotonic() + _PATIENCE
        while True:
            status, content = self._send("POST", path, body, key)
            if status != 202:
                return content
            if time.monotonic() > until:
                raise _unknown_error(key)

    def close(self) -> None:
        """End the connections."""
        self._client.close()

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None, key: str) -> tuple[int, Any]:
        """The status and the content of a response; a refusal is raised as it was over there."""
        pause, refusal = _FIRST_PAUSE, None
        for attempt in range(_ATTEMPTS):
            if attempt:
                self._sleep(pause * (0.5 + secrets.randbelow(1000) / 2000))
                pause = min(2 * pause, _LONGEST_PAUSE)
            try:
                headers = {"Idempotency-Key": key} if key else {}
                response = self._client.request(method, path, json=body, headers=headers)
                content = response.json()
            except (self._failure, ValueError):
                refusal = None
                continue
            if response.status_code < 400:
                return response.status_code, content
            refusal = error_from(content)
            if response.status_code not in _AGAIN:
                break
            pause = max(pause, min(float(response.headers.get("retry-after", 0)), _LONGEST_PAUSE))
        raise refusal or _unknown_error(key)


def error_from(problem: Any) -> DiscreetError:
    """The error that a problem (RFC 9457) describes, of the class that it had."""
    fields = problem if isinstance(problem, Mapping) else {}
    code = str(fields.get("code", "DP859"))
    prefix = max((each for each in _CLASSES if code.startswith(each)), key=len, default="DP85")
    texts = {name: str(fields.get(name, "the server did not state it.")) for name in ("why", "fix")}
    what = str(fields.get("title", fields.get("detail", "the server refused without a reason.")))
    error = _CLASSES[prefix](code, what, **texts)
    error.spent = str(fields.get("spent", "nothing"))
    fits = fields.get("fits")
    if isinstance(error, OverBudget) and isinstance(fits, Mapping):
        error.fits = {str(name): float(amount) for name, amount in fits.items()}
    return error


def connection_error(code: str, what: str, *, why: str, remedy: str) -> ServerError:
    """A refusal of the client itself."""
    return ServerError(code, what, why=why, fix=remedy)


def _unknown_error(key: str) -> ServerError:
    error = connection_error(
        "DP857",
        "the server cannot be reached, or does not answer in time.",
        why="nothing is known of what it did: a question that arrived may have been charged.",
        remedy=f"ask again with  key={key!r}, which is paid for once" if key else "ask again",
    )
    error.spent = "unknown" if key else "nothing"
    return error
