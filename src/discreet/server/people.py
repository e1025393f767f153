# SPDX-License-Identifier: Apache-2.0
"""Who may do what: the one table of permissions, and how a request becomes a caller.

**Guarantee.** A caller comes from a token or a session of the store and from nothing else in a
request. What a role does not permit is refused; a data set in which somebody has no role looks to
them like one that does not exist.
"""

from __future__ import annotations

from discreet.server.config import ROLES
from discreet.server.refusals import refuse
from discreet.server.store import Caller, Person, ServerStore, TokenRow
from discreet.server.tokens import Keyring, looks_like_token, new_token

__all__ = ["PERMISSIONS", "People"]

#: Which roles permit an action in a data set.
PERMISSIONS: dict[str, tuple[str, ...]] = {
    "read description": ROLES,
    "preview": ROLES,
    "ask": ("curator", "analyst"),
    "read own answers": ("curator", "analyst"),
    "read ledger": ("curator", "auditor"),
    "read statement": ("curator", "auditor"),
    "read people": ("curator", "auditor"),
    "change people": ("curator",),
    "read log": ("auditor",),
}


class People:
    """Signing in with tokens and one-time links, and asking for permission."""

    def __init__(self, store: ServerStore, keyring: Keyring) -> None:
        self._store, self._keyring = store, keyring

    def caller_of_token(self, token: str) -> Caller:
        """Whose token it is; refused with one text, whatever is wrong with it."""
        row = self._store.token(self._keyring.hash_of("token", token)) if looks_like_token(token) else None
        person = None if row is None else self._store.person(row.person)
        if row is None or person is None:
            raise refuse("not signed in")
        return self._caller(person, row)

    def caller_of(self, person: Person, token: str | None = None) -> Caller | None:
        """A person who has signed in with a browser: with a one-time link, or with a token of that
        id. Then they may do what the token may, as long as it is good.
        """
        if token is None:
            return Caller(person, self._store.roles(person.id))
        row = self._store.token_of_id(token)
        return None if row is None else self._caller(person, row)

    def _caller(self, person: Person, row: TokenRow) -> Caller:
        roles = self._store.roles(person.id)
        dataset, kept = row.scopes.get("dataset"), row.scopes.get("roles")
        if dataset is not None:
            roles = {name: granted for name, granted in roles.items() if name == dataset}
        if isinstance(kept, list):
            roles = {name: granted & set(kept) for name, granted in roles.items()}
        most = row.scopes.get("most")
        return Caller(person, roles, row.id, float(most) if isinstance(most, int | float) else None)

    def still_signed_in(self, caller: Caller) -> bool:
        """Whether the token of a caller has been revoked or is over since they came."""
        return not caller.by.startswith("t_") or self._store.token_of_id(caller.by) is not None

    def make_token(
        self, person: str, name: str, *, days: int = 90, scopes: dict[str, object] | None = None
    ) -> tuple[str, TokenRow]:
        """A new token for a person, which is shown now and never again."""
        token = new_token()
        row = self._store.add_token(self._keyring.hash_of("token", token), person, name, scopes or {}, days)
        self._store.log("token made", person, token=row.id)
        return token, row

    def make_link(self, person: str, minutes: int = 10) -> str:
        """A text that lets a person in once, within some minutes."""
        text = new_token()
        self._store.add_link(self._keyring.hash_of("link", text), person, minutes)
        return text

    def require(self, caller: Caller, dataset: str, action: str) -> None:
        """Refuse what the roles of the caller do not permit."""
        roles = PERMISSIONS[action]
        if not caller.may(dataset, *ROLES):
            raise refuse("not found")
        if not caller.may(dataset, *roles):
            raise refuse("not permitted", detail=f"your roles do not permit to {action}.", role=roles[0])
