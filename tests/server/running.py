# SPDX-License-Identifier: Apache-2.0
"""A server of our own for tests: on loopback, on a port that the system chooses, ended with the test."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import uvicorn

from discreet.server.app import make_app, make_services
from discreet.server.config import HostedDescription, RateSettings, ServerConfig, ShowingSettings
from discreet.server.services import Services

ROLES = ("curator", "analyst", "auditor")

DESCRIPTION = """
[dataset]
source = "visits.parquet"
name = "visits"
version = "2026"
unit = "patient_id"
word = "patient"

[limits]
rows_per_unit = 2

[columns.ward]
values = ["A", "B"]

[columns.days]
bounds = [0, 60]

[budget]
epsilon = {epsilon}
delta = 1e-6
"""

#: Answers come at 20 ms, 40 ms, …: the schedule is that of a server, and the tests are quick.
QUICK = ShowingSettings(tick=0.02)
COUNT = "SELECT COUNT(*) FROM visits"


def write_visits(folder: Path, rows: int = 5000, epsilon: float = 100.0) -> Path:
    """Visits of `rows` patients, and their description."""
    write_rows(folder, rows)
    place = folder / "visits.toml"
    place.write_text(DESCRIPTION.format(epsilon=epsilon), encoding="utf-8")
    return place


def write_rows(folder: Path, rows: int) -> None:
    table = {
        "patient_id": list(range(rows)),
        "ward": ["A" if number % 3 else "B" for number in range(rows)],
        "days": [number % 50 for number in range(rows)],
    }
    # A new file in the place of the old one, as a nightly job does it.
    pq.write_table(pa.table(table), folder / "new.parquet")
    (folder / "new.parquet").replace(folder / "visits.parquet")


def config_for(folder: Path, description: Path, **changes: Any) -> ServerConfig:
    """Settings for tests: quick ticks, and rates that no test reaches by accident."""
    hosted = HostedDescription(description, seats=changes.pop("seats", 4), share=changes.pop("share", 1.0))
    hosted = replace(hosted, **changes.pop("hosted", {}))
    settings = {"showing": QUICK, "rates": RateSettings(1e6, 1e6, 4), "port": 0, **changes}
    return ServerConfig(folder / "state", (hosted,), **settings)


class Running:
    """A server that runs, with people in its seats and a token for each."""

    def __init__(self, services: Services, server: uvicorn.Server) -> None:
        self.services, self.server = services, server
        self.tokens: dict[str, str] = {}
        self.people: dict[str, str] = {}
        ((self.port,),) = [[one.getsockname()[1] for one in each.sockets[:1]] for each in server.servers[:1]]
        self.url = f"http://127.0.0.1:{self.port}"

    def add(
        self, name: str, *roles: str, seat: str | None = None, dataset: str = "visits", **scopes: Any
    ) -> str:
        """Somebody with a token, which is returned."""
        person = self.services.store.add_person(name)
        for role in roles or ROLES:
            self.services.store.grant(person.id, dataset, role)
        if seat is not None:
            self.services.store.take_seat(dataset, seat, person.id)
        token, _ = self.services.people.make_token(person.id, "test", scopes=scopes)
        self.tokens[name], self.people[name] = token, person.id
        return token

    def client(self, name: str | None = None, **headers: str) -> httpx.Client:
        """A client with the token of somebody."""
        known = {} if name is None else {"Authorization": f"Bearer {self.tokens[name]}"}
        return httpx.Client(base_url=self.url, headers=known | headers, timeout=120)

    def ask(self, name: str, key: str, sql: str = COUNT, **body: Any) -> httpx.Response:
        """The response to a question."""
        headers = {"Idempotency-Key": key, "Prefer": "wait=60", **body.pop("headers", {})}
        with self.client(name) as client:
            return client.post(
                "/v1/datasets/visits/questions",
                json={"sql": sql, **({"epsilon": 0.1} | body)},
                headers=headers,
            )

    @property
    def ledger(self) -> Any:
        """The ledger of the visits."""
        return self.services.asking.datasets["visits"].ledger

    @property
    def charges(self) -> int:
        """How many charges the ledger has."""
        return sum(entry.kind == "reserved" for entry in self.ledger.entries())


@contextlib.contextmanager
def serving(config: ServerConfig, people: Mapping[str, str] | None = None) -> Iterator[Running]:
    """Run a server; by default ana sits in the first seat and bo in the second, with all roles."""
    services = make_services(config)
    settings = uvicorn.Config(
        make_app(config, services),
        host="127.0.0.1",
        port=0,
        log_level="critical",
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        thread.join(0.01)
    assert server.started, "the server did not start"
    try:
        running = Running(services, server)
        for name, seat in ({"ana": "seat 1", "bo": "seat 2"} if people is None else people).items():
            running.add(name, seat=seat)
        yield running
    finally:
        server.should_exit = True
        thread.join(40)
        assert not thread.is_alive(), "the server did not stop"
