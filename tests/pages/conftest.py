# SPDX-License-Identifier: Apache-2.0
"""A server of one small data set on loopback, with people of every role, for the tests of its pages.

It runs in a thread, and draws in the engine process that every server has. One serves all tests of a process.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from html import unescape
from pathlib import Path

import pytest

duckdb = pytest.importorskip("duckdb")
httpx = pytest.importorskip("httpx")
uvicorn = pytest.importorskip("uvicorn")
pytest.importorskip("fastapi")
pytest.importorskip("jinja2")

from discreet.server.app import make_app, make_services  # noqa: E402 - after what it needs was found
from discreet.server.config import RateSettings, ShowingSettings, config_of  # noqa: E402
from discreet.server.services import Services  # noqa: E402

#: What must never become a part of a page.
EVIL = "<script>alert('x')</script>"
#: Set to make the pictures of the documentation anew, with a ward of a better name.
PICTURES = os.environ.get("DISCREET_PICTURES") == "1"
#: A name of a ward, in the data and in their description.
EVIL_WARD = "C" if PICTURES else "<b id=evil>W</b>"
EPSILON = 3.0 if PICTURES else 60.0
DESCRIPTION = f"""
[dataset]
source = "visits.parquet"
name = "visits"
version = "{2026 if PICTURES else EVIL}"
unit = "patient_id"
word = "patient"

[limits]
rows_per_unit = 1

[budget]
epsilon = {EPSILON}
delta = 1e-6

[columns.patient_id]
type = "integer"

[columns.ward]
type = "text"
values = ["A", "B", "{EVIL_WARD}"]
source = "{"the hospital" if PICTURES else EVIL}"

[columns.age]
type = "integer"
bounds = [0, 100]
source = "the registry"

[columns.cost]
type = "number"
"""


@dataclass
class Site:
    """A running server: its address, and a token for each person."""

    address: str
    services: Services
    tokens: dict[str, str] = field(default_factory=dict)
    people: dict[str, str] = field(default_factory=dict)

    def browser(self, person: str | None = None) -> Browser:
        """Somebody with cookies, who has signed in; attempts so far are forgotten."""
        self.services.sign_in._rate._buckets.clear()
        browser = Browser(self.address)
        if person is not None:
            sent = browser.submit("/enter", "/enter", token=self.tokens[person], next="/")
            assert sent.status_code == 303, sent.text
        return browser


class Browser(httpx.Client):
    """What a browser does with pages and forms, without scripts."""

    def __init__(self, address: str) -> None:
        super().__init__(base_url=address, timeout=120, limits=httpx.Limits(max_keepalive_connections=0))

    def submit(
        self, page: str, action: str, *, headers: dict[str, str] | None = None, **fields: object
    ) -> httpx.Response:
        """Open a page, and send a form of it."""
        opened = self.get(page)
        token = re.search(r'name="csrf" value="([^"]*)"', opened.text)
        assert token is not None, opened.text
        origin = {
            "Origin": str(self.base_url).rstrip("/"),
            "Sec-Fetch-Site": "same-origin",
            **(headers or {}),
        }
        return self.post(action, data={"csrf": token[1], **fields}, headers=origin)


def words_of(page: httpx.Response | str) -> str:
    """What a reader of a page sees."""
    text = page if isinstance(page, str) else page.text
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split())


PEOPLE = {"ana": ("analyst",), "bo": ("analyst",), "cy": ("curator",), "au": ("auditor",), "no": ()}


@contextlib.contextmanager
def serve(folder: Path, **settings: object) -> Iterator[Site]:
    """A server in a thread; `settings` are those of the data set."""
    rows = (
        f"SELECT range AS patient_id, ['A', 'B', '{EVIL_WARD}'][1 + range % 3] AS ward, range % 100 AS age, "
        "1.5 AS cost FROM range(3000)"
    )
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({rows}) TO '{folder / 'visits.parquet'}'")
    (folder / "visits.toml").write_text(DESCRIPTION, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = config_of(folder / "visits.toml", state=folder / "state", port=port)
    # Answers come at 20 ms, 40 ms, …: the schedule is that of a server, and the tests are quick.
    config = replace(
        config,
        datasets=(replace(config.datasets[0], **{"seats": 4, **settings}),),
        showing=ShowingSettings(tick=0.02),
        rates=RateSettings(1e6, 1e6, 4),
    )
    services = make_services(config)
    site = Site(f"http://127.0.0.1:{port}", services)
    for name, roles in PEOPLE.items():
        person = services.store.add_person(
            f"{name.title()} {EVIL}" if name == "bo" and not PICTURES else name.title()
        )
        site.people[name] = person.id
        for role in roles:
            services.store.grant(person.id, "visits", role)
        site.tokens[name] = services.people.make_token(person.id, "test")[0]
    for number, name in enumerate(["ana", "bo"], 1):
        services.store.take_seat("visits", f"seat {number}", site.people[name])
    server = uvicorn.Server(uvicorn.Config(make_app(config, services), port=port, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        _wait_until_ready(site, server, thread)
        yield site
    finally:
        server.should_exit = True
        thread.join()


def _wait_until_ready(site: Site, server: uvicorn.Server, thread: threading.Thread) -> None:
    """Until the data set is open."""
    while not server.started:
        thread.join(0.05)
        assert thread.is_alive(), "the server ended before it was ready"
    assert httpx.get(f"{site.address}/healthz").status_code == 200


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The server of all tests of pages."""
    folder = tmp_path_factory.mktemp("site")
    with serve(folder) as running:
        yield running
    shutil.rmtree(folder, ignore_errors=True)
