# SPDX-License-Identifier: Apache-2.0
"""What a server remembers besides its ledgers: people, roles, seats, tokens, sessions, anchors
and the access log.

**Guarantee.** Nothing here was computed from rows: answers are in ledgers only. Of tokens, links
and sessions there are keyed hashes only (`tokens.py`). The access log is append-only and chained by
hashes, so a line that was changed or removed is noticed (`check_events`).
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from discreet.server.config import ROLES
from discreet.server.database import Cell, Database

__all__ = ["AccessEvent", "Caller", "Person", "Seat", "ServerStore", "TokenRow"]

_NOTHING = "0" * 64
#: Sessions end after this without a request, and after this in any case.
IDLE, LONGEST = timedelta(hours=8), timedelta(days=7)


@dataclass(frozen=True)
class Person:
    """Somebody who may sign in."""

    id: str
    name: str


@dataclass(frozen=True)
class Seat:
    """An allocation of the budget of a data set, and who sits there now."""

    dataset: str
    name: str
    person: str


@dataclass(frozen=True)
class TokenRow:
    """A token, without the token: by its id, with what it may do."""

    id: str
    person: str
    name: str
    scopes: Mapping[str, object]
    made: str
    expires: str
    used_on: str | None
    revoked: str | None


@dataclass(frozen=True)
class AccessEvent:
    """A line of the access log."""

    number: int
    time: str
    person: str | None
    dataset: str | None
    what: str
    about: Mapping[str, object]


@dataclass(frozen=True)
class Caller:
    """Who makes a request: a person, the roles that they have in each data set, and the token or
    session that says so.

    `most` is the greatest ε that the token may spend in a day, if there is one.
    """

    person: Person
    roles: Mapping[str, frozenset[str]]
    by: str = "session"
    most: float | None = None

    def may(self, dataset: str, *roles: str) -> bool:
        """Whether they have one of the roles in the data set."""
        return bool(self.roles.get(dataset, frozenset()) & set(roles))


class ServerStore:
    """The tables of the store, by what is asked of them."""

    def __init__(self, database: Database, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._database, self._clock = database, now

    def close(self) -> None:
        """End the connection."""
        self._database.close()

    def now(self) -> str:
        """The time, as it is written here."""
        return _text(self._clock())

    # --- people -----------------------------------------------------------------------------------

    def add_person(self, name: str, *, issuer: str | None = None, subject: str | None = None) -> Person:
        """Somebody new; with issuer and subject, whom a provider vouches for."""
        person = Person(f"p_{secrets.token_hex(6)}", name)
        self._run(
            "INSERT INTO people (id, name, issuer, subject, added) VALUES (?, ?, ?, ?, ?)",
            (person.id, name, issuer, subject, self.now()),
        )
        return person

    def person(self, identity: str) -> Person | None:
        """The person of that id, if they have not gone."""
        rows = self._run("SELECT id, name FROM people WHERE id = ? AND gone IS NULL", (identity,))
        return Person(*map(str, rows[0])) if rows else None

    def person_of(self, issuer: str, subject: str) -> Person | None:
        """The person whom a provider calls `subject`."""
        rows = self._run(
            "SELECT id, name FROM people WHERE issuer = ? AND subject = ? AND gone IS NULL", (issuer, subject)
        )
        return Person(*map(str, rows[0])) if rows else None

    def people(self) -> list[Person]:
        """Everybody who may sign in."""
        return [
            Person(str(identity), str(name))
            for identity, name in self._run(
                "SELECT id, name FROM people WHERE gone IS NULL ORDER BY added, id"
            )
        ]

    def remove_person(self, identity: str) -> None:
        """End everything that a person may do; what they asked stays in the ledgers."""
        with self._database.alone():
            now = self.now()
            self._run("UPDATE people SET gone = ? WHERE id = ?", (now, identity))
            self._run("UPDATE grants SET until = ? WHERE person = ? AND until IS NULL", (now, identity))
            self._run("UPDATE seats SET until = ? WHERE person = ? AND until IS NULL", (now, identity))
            self._run("UPDATE tokens SET revoked = ? WHERE person = ? AND revoked IS NULL", (now, identity))
            self._run("DELETE FROM sessions WHERE person = ?", (identity,))

    # --- roles and seats --------------------------------------------------------------------------

    def grant(self, person: str, dataset: str, role: str, by: str | None = None) -> None:
        """Give a role in a data set; a role that they have already stays."""
        assert role in ROLES
        with self._database.alone():
            if role not in self.roles(person).get(dataset, frozenset()):
                values = (person, dataset, role, by, self.now())
                self._run(
                    "INSERT INTO grants (person, dataset, role, granted_by, since) VALUES (?, ?, ?, ?, ?)",
                    values,
                )

    def revoke_grant(self, person: str, dataset: str, role: str) -> None:
        """Take a role away."""
        self._run(
            "UPDATE grants SET until = ? WHERE person = ? AND dataset = ? AND role = ? AND until IS NULL",
            (self.now(), person, dataset, role),
        )

    def roles(self, person: str) -> dict[str, frozenset[str]]:
        """The roles of a person, by data set."""
        found: dict[str, set[str]] = {}
        for dataset, role in self._run(
            "SELECT dataset, role FROM grants WHERE person = ? AND until IS NULL", (person,)
        ):
            found.setdefault(str(dataset), set()).add(str(role))
        return {dataset: frozenset(roles) for dataset, roles in found.items()}

    def seats(self, dataset: str) -> list[Seat]:
        """Who sits where in a data set; an empty seat is not listed."""
        rows = self._run(
            "SELECT seat, person FROM seats WHERE dataset = ? AND until IS NULL ORDER BY since, seat",
            (dataset,),
        )
        return [Seat(dataset, str(seat), str(person)) for seat, person in rows]

    def seat_of(self, dataset: str, person: str) -> str | None:
        """The seat in which a person sits."""
        return next((seat.name for seat in self.seats(dataset) if seat.person == person), None)

    def take_seat(self, dataset: str, seat: str, person: str, by: str | None = None) -> None:
        """Let a person sit in a seat; whoever sat there, and where this person sat, is vacated.

        The seat keeps what was spent from it.
        """
        with self._database.alone():
            now = self.now()
            self._run(
                "UPDATE seats SET until = ? WHERE dataset = ? AND (seat = ? OR person = ?) AND until IS NULL",
                (now, dataset, seat, person),
            )
            self._run(
                "INSERT INTO seats (dataset, seat, person, granted_by, since) VALUES (?, ?, ?, ?, ?)",
                (dataset, seat, person, by, now),
            )

    def vacate_seat(self, dataset: str, seat: str) -> None:
        """Let nobody sit in a seat."""
        self._run(
            "UPDATE seats SET until = ? WHERE dataset = ? AND seat = ? AND until IS NULL",
            (self.now(), dataset, seat),
        )

    # --- tokens, links, sessions ------------------------------------------------------------------

    def add_token(
        self, digest: str, person: str, name: str, scopes: Mapping[str, object], days: int
    ) -> TokenRow:
        """Remember a token by its hash, for some days."""
        made = self._clock()
        row = TokenRow(
            f"t_{secrets.token_hex(6)}",
            person,
            name,
            dict(scopes),
            _text(made),
            _text(made + timedelta(days=days)),
            None,
            None,
        )
        self._run(
            "INSERT INTO tokens (hash, id, person, name, scopes, made, expires) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (digest, row.id, person, name, json.dumps(dict(scopes)), row.made, row.expires),
        )
        return row

    def token(self, digest: str) -> TokenRow | None:
        """The token of that hash, if it is neither over nor revoked; today is noted as a day of
        use.
        """
        rows = self._run(
            f"SELECT {_TOKEN_FIELDS} FROM tokens WHERE hash = ? AND revoked IS NULL AND expires > ?",
            (digest, self.now()),
        )
        if not rows:
            return None
        row, today = _token(rows[0]), self.now()[:10]
        if row.used_on != today:
            self._run("UPDATE tokens SET used_on = ? WHERE hash = ?", (today, digest))
        return row

    def tokens(self, person: str) -> list[TokenRow]:
        """The tokens of a person, also those that are over."""
        rows = self._run(f"SELECT {_TOKEN_FIELDS} FROM tokens WHERE person = ? ORDER BY made, id", (person,))
        return [_token(row) for row in rows]

    def token_of_id(self, identity: str) -> TokenRow | None:
        """The token of that id, if it is neither over nor revoked."""
        rows = self._run(
            f"SELECT {_TOKEN_FIELDS} FROM tokens WHERE id = ? AND revoked IS NULL AND expires > ?",
            (identity, self.now()),
        )
        return _token(rows[0]) if rows else None

    def revoke_token(self, identity: str, person: str) -> bool:
        """End a token of a person; whether there was one."""
        if not any(row.id == identity for row in self.tokens(person)):
            return False
        self._run("UPDATE tokens SET revoked = ? WHERE id = ? AND revoked IS NULL", (self.now(), identity))
        return True

    def add_link(self, digest: str, person: str, minutes: int) -> None:
        """Remember a link that lets a person in once."""
        until = _text(self._clock() + timedelta(minutes=minutes))
        self._run("INSERT INTO links (hash, person, expires) VALUES (?, ?, ?)", (digest, person, until))

    def use_link(self, digest: str) -> Person | None:
        """Whom a link lets in, if nobody has used it before and it is not over."""
        with self._database.alone():
            rows = self._run(
                "SELECT person FROM links WHERE hash = ? AND used IS NULL AND expires > ?",
                (digest, self.now()),
            )
            self._run("UPDATE links SET used = ? WHERE hash = ? AND used IS NULL", (self.now(), digest))
        return self.person(str(rows[0][0])) if rows else None

    def add_session(self, digest: str, person: str, token: str | None = None) -> None:
        """Remember a session of a browser by the hash of its id, and the id of the token that began
        it.
        """
        now = self._clock()
        self._run("DELETE FROM sessions WHERE expires < ?", (_text(now),))
        values = (digest, person, token, _text(now), _text(now), _text(now + LONGEST))
        self._run("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?)", values)

    def session(self, digest: str) -> tuple[Person, str | None] | None:
        """Whose session it is, if it is not over, and the id of the token that began it."""
        rows = self._run(
            "SELECT person, seen, token FROM sessions WHERE hash = ? AND expires > ? AND seen > ?",
            (digest, self.now(), _text(self._clock() - IDLE)),
        )
        if not rows:
            return None
        identity, seen = map(str, rows[0][:2])
        # A minute is fine enough, and a write for every request is not.
        if seen[:16] != self.now()[:16]:
            self._run("UPDATE sessions SET seen = ? WHERE hash = ?", (self.now(), digest))
        person = self.person(identity)
        return None if person is None else (person, _or_none(rows[0][2]))

    def end_session(self, digest: str) -> None:
        """Sign out."""
        self._run("DELETE FROM sessions WHERE hash = ?", (digest,))

    # --- descriptions and anchors -----------------------------------------------------------------

    def save_description(self, dataset: str, toml: str, by: str | None) -> int:
        """Write a version of a description if it differs from the last; its number."""
        digest = hashlib.sha256(toml.encode()).hexdigest()
        with self._database.alone():
            rows = self._run(
                "SELECT version, sha256 FROM descriptions WHERE dataset = ? ORDER BY version DESC LIMIT 1",
                (dataset,),
            )
            if rows and rows[0][1] == digest:
                return int(rows[0][0] or 0)
            version = int(rows[0][0] or 0) + 1 if rows else 1
            values = (dataset, version, toml, digest, by, self.now())
            self._run("INSERT INTO descriptions VALUES (?, ?, ?, ?, ?, ?)", values)
        return version

    def keep_anchor(self, dataset: str, number: int, digest: str) -> None:
        """Write down the hash of the last row of a ledger."""
        with self._database.alone():
            self._run("DELETE FROM anchors WHERE dataset = ? AND number = ?", (dataset, number))
            self._run("INSERT INTO anchors VALUES (?, ?, ?, ?)", (dataset, number, digest, self.now()))

    def last_anchor(self, dataset: str) -> tuple[int, str, str] | None:
        """The number, hash and time of the last anchor of a ledger; None if it was never opened
        here.
        """
        rows = self._run(
            "SELECT number, hash, time FROM anchors WHERE dataset = ? ORDER BY number DESC LIMIT 1",
            (dataset,),
        )
        return (int(rows[0][0] or 0), str(rows[0][1]), str(rows[0][2])) if rows else None

    # --- the access log ---------------------------------------------------------------------------

    def log(
        self, what: str, person: str | None = None, dataset: str | None = None, **about: str | int | None
    ) -> None:
        """Add a line to the access log."""
        with self._database.alone():
            rows = self._run("SELECT number, hash FROM events ORDER BY number DESC LIMIT 1")
            number, previous = (int(rows[0][0] or 0) + 1, str(rows[0][1])) if rows else (1, _NOTHING)
            line = (number, self.now(), person, dataset, what, json.dumps(about, sort_keys=True), previous)
            self._run("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*line, _line_hash(line)))

    def events(self, after: int = 0, limit: int = 100) -> list[AccessEvent]:
        """Lines of the access log after a number."""
        rows = self._run(
            "SELECT number, time, person, dataset, what, about FROM events WHERE number > ? ORDER BY number LIMIT ?",
            (after, limit),
        )
        return [
            AccessEvent(
                int(number or 0),
                str(time),
                _or_none(person),
                _or_none(dataset),
                str(what),
                json.loads(str(about)),
            )
            for number, time, person, dataset, what, about in rows
        ]

    def check_events(self) -> bool:
        """Whether every line of the access log is as it was written, and none is missing."""
        previous, expected = _NOTHING, 1
        for line in self._all_events():
            if line[0] != expected or line[6] != previous or line[7] != _line_hash(line[:7]):
                return False
            previous, expected = str(line[7]), expected + 1
        return True

    def _all_events(self) -> Iterator[tuple[Cell, ...]]:
        after = 0
        while rows := self._run("SELECT * FROM events WHERE number > ? ORDER BY number LIMIT 1000", (after,)):
            yield from rows
            after = int(rows[-1][0] or 0)

    def _run(self, statement: str, values: Sequence[Cell] = ()) -> list[tuple[Cell, ...]]:
        return self._database.run(statement, values)


_TOKEN_FIELDS = "id, person, name, scopes, made, expires, used_on, revoked"  # noqa: S105 - names of columns


def _token(row: tuple[Cell, ...]) -> TokenRow:
    identity, person, name, scopes, *rest = row
    return TokenRow(str(identity), str(person), str(name), json.loads(str(scopes)), *rest)  # type: ignore[arg-type]


def _or_none(cell: Cell) -> str | None:
    return None if cell is None else str(cell)


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _line_hash(line: Sequence[Cell]) -> str:
    return hashlib.sha256(json.dumps(list(line), ensure_ascii=True).encode()).hexdigest()
