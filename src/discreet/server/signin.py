# SPDX-License-Identifier: Apache-2.0
"""Signing in with a browser: one-time links and tokens become a cookie, and every form proves that
it came from a page of this server.

**Guarantee.** A session begins with a token or a link that the store knows, and with a new id, so an
id that somebody else planted is worth nothing. The store holds keyed hashes only. A request that
changes something is refused unless the browser says that it came from this very origin, in both of
the headers in which browsers say so, and unless it has the form token of its own session.

Why it holds: a page elsewhere can send a form here, but it can neither read the form token nor
choose `Origin` and `Sec-Fetch-Site`. What would break it: a script of somebody else on a page of
this server, which `headers.py` prevents; a proxy that rewrites these headers.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from discreet.server.people import People
from discreet.server.refusals import refuse
from discreet.server.store import LONGEST, Caller, Person, ServerStore
from discreet.server.tokens import Keyring

__all__ = ["SignIn", "Visitor"]

#: Where a browser says that a request came from: a page of this origin, or the person themselves.
_OWN = ("same-origin", "none")


@dataclass(frozen=True)
class Visitor:
    """Who looks at a page: somebody who has signed in, or nobody."""

    caller: Caller | None

    @property
    def id(self) -> str:
        """Their id; "" for nobody."""
        return "" if self.caller is None else self.caller.person.id

    @property
    def name(self) -> str:
        """Their name; "" for nobody."""
        return "" if self.caller is None else self.caller.person.name

    def roles(self, dataset: str) -> list[str]:
        """Their roles in a data set."""
        granted = frozenset() if self.caller is None else self.caller.roles.get(dataset, frozenset())
        return [role for role in ("analyst", "curator", "auditor") if role in granted]


class SignIn:
    """Sessions of browsers. `https` says that browsers reach the server by HTTPS."""

    def __init__(self, people: People, store: ServerStore, keyring: Keyring, *, https: bool) -> None:
        self._people, self._store, self._keyring, self._https = people, store, keyring, https

    @property
    def cookie(self) -> str:
        """The name of the cookie of a session; with `__Host-` no other host can plant one."""
        return "__Host-discreet" if self._https else "discreet"

    @property
    def _form_cookie(self) -> str:
        return f"{self.cookie}-form"

    def visitor(self, request: Request) -> Visitor:
        """Whose session a request belongs to."""
        session = request.cookies.get(self.cookie)
        kept = None if not session else self._store.session(self._keyring.hash_of("session", session))
        return Visitor(None if kept is None else self._people.caller_of(kept[0]))

    def require_visitor(self, request: Request) -> Caller:
        """Whose session a request belongs to; without one it is refused (DP852)."""
        caller = self.visitor(request).caller
        if caller is None:
            raise refuse("not signed in")
        return caller

    def person_of_token(self, token: str) -> Person:
        """Whose token it is; refused with one text, whatever is wrong with it."""
        return self._people.caller_of_token(token.strip()).person

    def person_of_link(self, text: str) -> Person:
        """Whom a one-time link lets in; nobody twice."""
        person = self._store.use_link(self._keyring.hash_of("link", text))
        if person is None:
            raise refuse("not signed in")
        return person

    def begin(self, request: Request, response: Response, person: Person) -> None:
        """Begin a session, with a new id; the one that the browser had ends."""
        self._end_session(request)
        session = secrets.token_urlsafe(32)
        digest = self._keyring.hash_of("session", session)
        self._store.add_session(digest, person.id, self._keyring.hash_of("form", session))
        self._store.log("signed in", person.id)
        self._set_cookie(response, self.cookie, session, int(LONGEST.total_seconds()))
        response.delete_cookie(self._form_cookie, path="/", secure=self._https)

    def end(self, request: Request, response: Response) -> None:
        """Sign out."""
        caller = self.visitor(request).caller
        if caller is not None:
            self._store.log("signed out", caller.person.id)
        self._end_session(request)
        response.delete_cookie(self.cookie, path="/", secure=self._https, httponly=True, samesite="lax")

    def _end_session(self, request: Request) -> None:
        if session := request.cookies.get(self.cookie):
            self._store.end_session(self._keyring.hash_of("session", session))

    def _set_cookie(self, response: Response, name: str, text: str, seconds: int | None) -> None:
        response.set_cookie(
            name, text, max_age=seconds, path="/", secure=self._https, httponly=True, samesite="lax"
        )

    # --- forms --------------------------------------------------------------------------------------

    def form_token(self, request: Request) -> str:
        """What a form of this page has to bring back; without a session it hangs on a cookie of its
        own.
        """
        own = request.cookies.get(self.cookie) or request.cookies.get(self._form_cookie)
        if not own:
            own = getattr(request.state, "form_id", "") or secrets.token_urlsafe(32)
            request.state.form_id = own
        return self._keyring.hash_of("form", own)

    def keep_form(self, request: Request, response: Response) -> None:
        """Give the browser the cookie that `form_token` made, if it made one."""
        if own := getattr(request.state, "form_id", ""):
            self._set_cookie(response, self._form_cookie, own, None)

    async def require_own_form(self, request: Request) -> FormData:
        """The fields of a form that a page of this server sent; any other is refused (DP853)."""
        scheme = "https" if self._https else "http"
        origin = f"{scheme}://{request.headers.get('host', '')}"
        comes_from_here = (
            request.headers.get("sec-fetch-site") in _OWN and request.headers.get("origin") == origin
        )
        own = request.cookies.get(self.cookie) or request.cookies.get(self._form_cookie)
        if not comes_from_here or not own:
            raise refuse("foreign form")
        form = await request.form(max_files=0, max_fields=2000, max_part_size=2**18)
        token = form.get("csrf")
        if not isinstance(token, str) or not hmac.compare_digest(
            token.encode(), self._keyring.hash_of("form", own).encode()
        ):
            raise refuse("foreign form")
        return form
