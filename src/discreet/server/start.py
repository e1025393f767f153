# SPDX-License-Identifier: Apache-2.0
"""Starts a server and says how to reach it; people are let in, and the state is copied, beside it.

**Guarantee.** A server listens to this machine only, unless TLS or a proxy is configured. What lets
people in is printed once, on the terminal of whoever starts it. A copy of the state is consistent,
and one that is put back later than a newer one was seen is refused, because it would forget
charges.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import uvicorn

from discreet.errors import DiscreetError
from discreet.ledger import Ledger
from discreet.server.app import make_app, make_services
from discreet.server.config import ROLES, ServerConfig, settings_error
from discreet.server.database import open_database
from discreet.server.people import People
from discreet.server.services import Services
from discreet.server.store import Person, ServerStore
from discreet.server.tokens import Keyring
from discreet.tables.data.toml import read as read_description

__all__ = ["back_up", "dataset_names", "let_in", "open_people", "serve"]

Announce = Callable[[dict[str, str]], None]
#: Files of a copy of the state, besides the ledgers.
_STORE, _SECRET, _MANIFEST = "server.db", "secret", "manifest.json"


def serve(config: ServerConfig, announce: Announce) -> None:
    """Run a server until it is told to stop; `announce` gets the addresses once it is ready."""
    config.check_binding()
    services = make_services(config)
    app = make_app(config, services)
    settings = uvicorn.Config(
        app,
        host=config.host,
        port=config.port,
        ssl_certfile=config.tls_cert or None,
        ssl_keyfile=config.tls_key or None,
        log_level="critical",
        access_log=False,
        server_header=False,
        # Who asks is read from the connection, and what a proxy adds is checked in `headers.py`.
        proxy_headers=False,
        timeout_graceful_shutdown=45,
        h11_max_incomplete_event_size=16 * 1024,
    )
    server = _AnnouncingServer(settings)
    has_pages = any(getattr(route, "path", "") == "/enter" for route in app.routes)
    server.on_ready = lambda port: announce(_addresses(config, services, port, has_pages=has_pages))
    try:
        server.run()
    except SystemExit:
        # uvicorn exits where a data set cannot be opened; the reason was kept.
        failure = getattr(app.state, "failure", None)
        if isinstance(failure, DiscreetError):
            raise failure from None
        raise settings_error(
            f"port {config.port} of {config.host} cannot be used.", "port = 0   chooses a free one"
        ) from None
    failure = getattr(app.state, "failure", None)
    if isinstance(failure, DiscreetError):
        raise failure


class _AnnouncingServer(uvicorn.Server):
    """A server that tells when it is ready, and on which port."""

    on_ready: Callable[[int], None]

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup(sockets)  # type: ignore[arg-type]  # they are sockets
        if self.started:
            self.on_ready(self.servers[0].sockets[0].getsockname()[1])


def _addresses(config: ServerConfig, services: Services, port: int, *, has_pages: bool) -> dict[str, str]:
    """Where the server is reached; for one person with a link and a token that let them in."""
    host = f"[{config.host}]" if ":" in config.host else config.host
    url = config.public_url or f"{'https' if config.tls_cert else 'http'}://{host}:{port}"
    if not config.single:
        return {"url": url}
    (hosted,) = services.asking.datasets.values()
    people = services.store.people()
    person = people[0] if people else services.store.add_person("owner")
    for role in ROLES:
        services.store.grant(person.id, hosted.name, role)
    if services.store.seat_of(hosted.name, person.id) is None:
        services.store.take_seat(hosted.name, hosted.seats[0], person.id)
    token, _ = services.people.make_token(person.id, "start", days=1)
    facts = {"url": url, "dataset": hosted.name, "token": token}
    return facts | (
        {"enter": f"{url}/enter?once={services.people.make_link(person.id)}"} if has_pages else {}
    )


# --- people -----------------------------------------------------------------------------------------


@contextmanager
def open_people(config: ServerConfig) -> Iterator[tuple[ServerStore, People]]:
    """The people of a server, on its machine, whether it runs or not."""
    config.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    store = ServerStore(open_database(config.store or config.state / _STORE))
    try:
        yield store, People(store, Keyring.at(config.state / _SECRET))
    finally:
        store.close()


def dataset_names(config: ServerConfig) -> list[str]:
    """The names of the data sets, from their descriptions; nothing is opened."""
    return [read_description(each.description).name for each in config.datasets]


def let_in(
    config: ServerConfig, name: str, dataset: str, *, role: str, seat: str | None = None
) -> tuple[Person, str]:
    """A new person with a role in a data set, and a link that lets them in once within a day."""
    known = dataset_names(config)
    if dataset not in known:
        raise settings_error(f"there is no data set {dataset}.", f"--dataset {known[0]}")
    if role not in ROLES:
        raise settings_error(f"{role} is not a role.", f"--role {ROLES[1]}   (one of {', '.join(ROLES)})")
    with open_people(config) as (store, people):
        person = store.add_person(name)
        store.grant(person.id, dataset, role)
        if seat is not None:
            store.take_seat(dataset, seat, person.id)
        store.log("person added", None, dataset, added=person.id, role=role)
        return person, people.make_link(person.id, minutes=24 * 60)


# --- backup -----------------------------------------------------------------------------------------


def back_up(config: ServerConfig, folder: Path) -> list[str]:
    """Copy the store, the secret and the ledgers that are files into a new folder; their names.

    A server may run meanwhile: each file is copied in one transaction, the store first, so that the
    ledgers are never older than the anchors in it.
    """
    if folder.exists():
        raise settings_error(f"{folder} exists already.", "a new folder for each copy")
    if config.store:
        raise settings_error("the store is in PostgreSQL.", "pg_dump --schema discreet_server")
    folder.mkdir(mode=0o700, parents=True)
    _copy_database(config.state / _STORE, folder / _STORE)
    shutil.copy2(config.state / _SECRET, folder / _SECRET)
    anchors = {}
    for place in sorted(config.state.glob("*.ledger")):
        _copy_database(place, folder / place.name)
        anchors[place.name] = Ledger(folder / place.name).anchor()
    names = sorted(path.name for path in folder.iterdir() if path.suffix in {".db", ".ledger"})
    hashes = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
    manifest = {"anchors": anchors, "sha256": hashes}
    (folder / _MANIFEST).write_text(json.dumps(manifest, indent=2), encoding="utf-8")
    return names


def _copy_database(source: Path, target: Path) -> None:
    if not source.exists():
        raise settings_error(f"{source.name} does not exist.", "start the server once")
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
    target.chmod(0o600)
