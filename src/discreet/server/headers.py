# SPDX-License-Identifier: Apache-2.0
"""The headers that every response has: what a browser may load, frame, store and tell others.

**Guarantee.** No response leaves without a content security policy that admits no script and no
style of another origin, no inline script, and no style attribute. An inline style sheet needs the
nonce of its response, which is drawn afresh for each. A response is stored by nobody, unless its
own code says otherwise.

Why it holds: the headers are added at the one place that every response passes. What would break
it: a server before this one that removes them.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["SecurityHeaders"]

_FEATURES = (
    "accelerometer", "camera", "display-capture", "encrypted-media", "geolocation", "gyroscope",
    "magnetometer", "microphone", "midi", "payment", "publickey-credentials-get", "screen-wake-lock", "usb",
)  # fmt: skip
#: A year.
_HSTS = "max-age=31536000"


class SecurityHeaders:
    """Adds the headers to every response of an application, as plain ASGI.

    `form_targets` are origins beside this one to which a form may lead, such as a provider of
    identity; `https` says that people reach the server by HTTPS only. The nonce is
    `request.state.nonce`.
    """

    def __init__(self, app: ASGIApp, *, form_targets: Sequence[str] = (), https: bool = False) -> None:
        self._app, self._form_targets, self._https = app, tuple(form_targets), https

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        nonce = secrets.token_urlsafe(18)
        scope.setdefault("state", {})["nonce"] = nonce

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers(nonce).items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)

    def _headers(self, nonce: str) -> dict[str, str]:
        """The headers, by name; a response may have one of its own instead."""
        headers = {
            "Content-Security-Policy": content_security_policy(nonce, self._form_targets),
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            # With "no-referrer" browsers send `Origin: null` even to this server, and forms need it.
            "Referrer-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Permissions-Policy": ", ".join(f"{feature}=()" for feature in _FEATURES),
            "Cache-Control": "no-store",
        }
        return headers | ({"Strict-Transport-Security": _HSTS} if self._https else {})


def content_security_policy(nonce: str, form_targets: Sequence[str] = ()) -> str:
    """The policy of a page.

    >>> content_security_policy("abc").split("; ")[:3]
    ["default-src 'none'", "script-src 'self'", "style-src 'self' 'nonce-abc'"]
    """
    return "; ".join(
        [
            "default-src 'none'",
            "script-src 'self'",
            f"style-src 'self' 'nonce-{nonce}'",
            "img-src 'self' data:",
            "font-src 'self'",
            "connect-src 'self'",
            " ".join(["form-action 'self'", *form_targets]),
            "base-uri 'none'",
            "frame-ancestors 'none'",
        ]
    )
