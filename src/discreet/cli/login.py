# SPDX-License-Identifier: Apache-2.0
"""`discreet login`: keep a token for a server, so that `dp.connect` finds it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from discreet.cli import options
from discreet.cli.report import print_json
from discreet.cli.terminal import print_rows
from discreet.extras import naming_extras

Server = Annotated[
    str, typer.Argument(metavar="URL", help="The address of a server, or of a data set there.")
]


def login(server: Server, *, json: options.Json = False) -> None:
    """Keep a token, or exchange a link that works once for a token, and keep that.

    discreet login https://dp.example.org

    The token or the link is read from the terminal, so that it is in no history of commands.
    """
    with naming_extras():
        from discreet.client.opening import parse_url, remember_token
        from discreet.client.requests import ServerRequests
    place, _ = parse_url(server)
    secret = _read_secret()
    requests = ServerRequests(place, secret)
    try:
        if "once=" in secret or _is_refused(requests):
            link = secret.rpartition("once=")[2].strip()
            secret = str(requests.post("/v1/sign-in", {"once": link, "name": "login"})["token"])
            requests.close()
            requests = ServerRequests(place, secret)
        who = requests.get("/v1/me")
    finally:
        requests.close()
    file = remember_token(place, secret)
    if json:
        print_json({"command": "login", "person": who["person"], "file": str(file)})
    else:
        print_rows([("signed in", f"{who['name']} ({who['person']})"), ("kept in", str(file))])


def _read_secret() -> str:
    if sys.stdin.isatty():
        return str(typer.prompt("token or link", hide_input=True)).strip()
    return sys.stdin.readline().strip()


def _is_refused(requests: object) -> bool:
    from discreet.client.requests import ServerRequests
    from discreet.errors import ServerError

    assert isinstance(requests, ServerRequests)
    try:
        requests.get("/v1/me")
    except ServerError as refusal:
        if refusal.code == "DP852":
            return True
        raise
    return False
