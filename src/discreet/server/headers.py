# SPDX-License-Identifier: Apache-2.0
"""What is checked and set for every request: host, size of the body, security headers, metrics.

**Guarantee.** A request under another host name is refused, so that a page elsewhere cannot reach a
server on this machine. A body that is too large or too slow is cut off. Every response forbids
scripts, frames and requests that are not this server's, and is stored by nobody, but for static
files. This is plain ASGI, so streams pass through it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from discreet.errors import DiscreetError
from discreet.server.config import ServerConfig
from discreet.server.metrics import Metrics
from discreet.server.problems import note_failure, problem_response
from discreet.server.refusals import ServerRefusal, refuse

__all__ = ["MOST_BYTES", "RequestGuard"]

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BYTES = 256 * 1024
#: Seconds that a body may take to arrive.
_BODY_TIME = 15.0
_FIXED = {
    "X-Content-Type-Options": "nosniff",
    # With "no-referrer" a browser sends `Origin: null` to this server, too, and every form is refused.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "X-Frame-Options": "DENY",
}


class RequestGuard:
    """Stands before the application."""

    def __init__(self, application: Application, config: ServerConfig, metrics: Metrics) -> None:
        self._application, self._config, self._metrics = application, config, metrics
        self._proxies = tuple(map(ipaddress.ip_network, config.behind_proxy))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        nonce = secrets.token_urlsafe(16)
        scope.setdefault("state", {})["nonce"] = nonce
        scope["state"]["address"] = self._address(scope)
        begun = refusing = False

        body = _LimitedBody(receive)

        async def guarded_send(message: Message) -> None:
            nonlocal begun
            if body.refusal is not None and not begun and not refusing:
                # What the application makes of a body that was cut off is not shown.
                return
            if message["type"] == "http.response.start":
                begun = True
                self._count(scope, message["status"])
                message["headers"] = [*message["headers"], *self._headers(scope, message, nonce)]
            await send(message)

        try:
            self._check_host(scope)
            await self._application(scope, body.receive, guarded_send)
            if body.refusal is not None and not begun:
                raise body.refusal
        except DiscreetError as refusal:
            if begun:
                raise
            refusing = True
            await problem_response(refusal)(scope, receive, guarded_send)
        except Exception as failure:  # noqa: BLE001 - its text may quote anything, and is not shown
            noted = note_failure(failure)
            refusing = True
            if not begun:
                await problem_response(body.refusal or noted)(scope, receive, guarded_send)

    def _check_host(self, scope: Scope) -> None:
        host = _header(scope, b"host") or ""
        name = urlsplit(f"//{host}").hostname or ""
        if not self._config.is_loopback and not self._config.public_url:
            return
        if name not in self._config.host_names:
            raise refuse("host")

    def _address(self, scope: Scope) -> str:
        """Where a request comes from; what a proxy says counts only if the proxy is one of ours."""
        address = scope["client"][0] if scope.get("client") else ""
        forwarded = _header(scope, b"x-forwarded-for")
        if not forwarded:
            return address
        try:
            trusted = any(ipaddress.ip_address(address) in network for network in self._proxies)
        except ValueError:
            trusted = False
        return forwarded.rpartition(",")[2].strip() if trusted else address

    def _count(self, scope: Scope, status: int) -> None:
        route = getattr(scope.get("route"), "path", "other")
        self._metrics.count("requests", route=route, status=str(status))

    def _headers(self, scope: Scope, message: Message, nonce: str) -> list[tuple[bytes, bytes]]:
        headers = {
            **_FIXED,
            "Content-Security-Policy": (
                f"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; "
                f"font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
            ),
        }
        present = {name.lower() for name, _ in message["headers"]}
        if b"cache-control" not in present:
            headers["Cache-Control"] = "no-store"
        if self._config.tls_cert:
            headers["Strict-Transport-Security"] = "max-age=31536000"
        encoded = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        # A response may have a policy of its own: a statement stands alone, with its own style.
        return [(name, value) for name, value in encoded if name not in present]


class _LimitedBody:
    """A body that is cut off where it is too long or too slow."""

    def __init__(self, receive: Receive) -> None:
        self._receive, self._size, self._complete = receive, 0, False
        #: Why the body was cut off, if it was.
        self.refusal: ServerRefusal | None = None
        self._until = asyncio.get_running_loop().time() + _BODY_TIME

    async def receive(self) -> Message:
        if self._complete:
            return await self._receive()
        try:
            remaining = self._until - asyncio.get_running_loop().time()
            message = await asyncio.wait_for(self._receive(), max(0.0, remaining))
        except TimeoutError:
            raise self._refuse() from None
        self._size += len(message.get("body", b""))
        if self._size > MOST_BYTES:
            raise self._refuse()
        self._complete = not message.get("more_body", False)
        return message

    def _refuse(self) -> ServerRefusal:
        self.refusal = refuse("too large", limit=MOST_BYTES)
        return self.refusal


def _header(scope: Scope, wanted: bytes) -> str | None:
    values = [value for name, value in scope["headers"] if name == wanted]
    return values[-1].decode("latin-1") if values else None
