# SPDX-License-Identifier: Apache-2.0
"""Signing in with a browser: one-time links and tokens make sessions, and forms carry a token of
their session.

**Guarantee.** A link works once. A session id is new at each sign-in, random, and stored only as a
keyed hash. A session that a token began may do what the token may, and ends with it. What does not
let somebody in is refused in one text, whatever is wrong with it. A form is taken only from a page
of this server: the browser says that the request comes from here, and the form token follows from
the session and the secret of the server.
"""

from __future__ import annotations

import hmac
from urllib.parse import urlsplit

from discreet.server.config import ServerConfig
from discreet.server.metrics import Metrics
from discreet.server.people import People
from discreet.server.rates import RateLimiter
from discreet.server.refusals import ServerRefusal, refuse
from discreet.server.store import Caller, Person, ServerStore
from discreet.server.tokens import Keyring, looks_like_token, new_token

__all__ = ["SignIn"]


class SignIn:
    """Sessions of browsers."""

    def __init__(
        self, config: ServerConfig, store: ServerStore, keyring: Keyring, people: People, metrics: Metrics
    ) -> None:
        self._config, self._store, self._keyring = config, store, keyring
        self._people, self._metrics = people, metrics
        self._rate = RateLimiter(5 / 60, 5)

    @property
    def cookie(self) -> str:
        """The name of the cookie; with its prefix a browser takes it over TLS only."""
        return "__Host-discreet" if self._config.secure else "discreet"

    def enter(self, secret: str, address: str) -> str:
        """A new session id for whoever has a one-time link or a token."""
        self._rate.take(address)
        row = None
        if looks_like_token(secret):
            row = self._store.token(self._keyring.hash_of("token", secret))
        person = self._link_person(secret) if row is None else self._store.person(row.person)
        if person is None:
            raise self._refusal()
        return self.begin(person, None if row is None else row.id)

    def use_link(self, link: str, address: str) -> Person:
        """Whom a one-time link lets in; it is used up."""
        self._rate.take(address)
        person = self._link_person(link)
        if person is None:
            raise self._refusal()
        self._metrics.count("sign_ins", outcome="done")
        self._store.log("signed in", person.id)
        return person

    def _link_person(self, link: str) -> Person | None:
        return self._store.use_link(self._keyring.hash_of("link", link)) if looks_like_token(link) else None

    def _refusal(self) -> ServerRefusal:
        self._metrics.count("sign_ins", outcome="refused")
        self._store.log("sign-in refused")
        return refuse("not signed in")

    def begin(self, person: Person, token: str | None = None) -> str:
        """A new session id for a person whose identity was checked, by a token of that id if any."""
        session = new_token()
        self._store.add_session(self._keyring.hash_of("session", session), person.id, token)
        self._metrics.count("sign_ins", outcome="done")
        self._store.log("signed in", person.id)
        return session

    def caller(self, session: str | None) -> Caller | None:
        """Whose session it is; None if it is over or unknown."""
        if not session or not looks_like_token(session):
            return None
        found = self._store.session(self._keyring.hash_of("session", session))
        return None if found is None else self._people.caller_of(*found)

    def end(self, session: str) -> None:
        """Sign out."""
        self._store.end_session(self._keyring.hash_of("session", session))

    def form_token(self, session: str) -> str:
        """What every form of this session carries."""
        return self._keyring.hash_of("form", session)

    def check_form(
        self, session: str, token: str, *, origin: str | None, fetch_site: str | None, host: str
    ) -> None:
        """Refuse a form that does not come from a page of this server in this session."""
        same_site = fetch_site in (None, "same-origin", "none")
        same_origin = origin is None or urlsplit(origin).netloc == host
        named = origin is not None or fetch_site is not None
        if not (same_site and same_origin and named) or not hmac.compare_digest(
            token, self.form_token(session)
        ):
            raise refuse(
                "not permitted", detail="this form does not come from a page of this server.", role="analyst"
            )
