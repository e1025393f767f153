# SPDX-License-Identifier: Apache-2.0
"""`dp.connect`: where a server is, which data set is meant, and the token for it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import urlsplit

from discreet import check
from discreet.client.remote import RemoteSession
from discreet.client.requests import ServerRequests, connection_error
from discreet.errors import ServerError

__all__ = ["connect", "parse_url", "remember_token", "token_for"]

_LOOPBACK = {"127.0.0.1", "localhost", "::1"}
_EXAMPLE = "https://dp.example.org/d/visits"


@check.arguments
def connect(url: str, token: str | None = None) -> RemoteSession:
    """A session with a data set of a server: `url` is its page, as
    `https://dp.example.org/d/visits`.

    The token is `token`, or that of the environment (DISCREET_TOKEN), or the one that `discreet
    login` has kept for the server. If the server has a single data set for you, its address is
    enough.

    **Guarantee.** A question is charged by the server, before it draws. Its key is made before the
    first attempt, so no retry pays twice. The token travels over TLS, or within this machine.

    What would break it: a server that is not what it says; its operator can read the data.

    >>> import discreet as dp
    >>> dp.connect("dp.example.org/d/visits", token="dscr_…")
    Traceback (most recent call last):
    ...
    discreet.errors.ServerError: DP857 ...
    """
    server, dataset = parse_url(url)
    requests = ServerRequests(server, token or token_for(server))
    try:
        return RemoteSession(requests, dataset or _only_dataset(requests))
    except BaseException:
        requests.close()
        raise


def parse_url(url: str) -> tuple[str, str]:
    """The address of a server, and the name of the data set if there is one.

    >>> parse_url("https://dp.example.org/d/visits")
    ('https://dp.example.org', 'visits')
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
        raise connection_error(
            "DP857",
            f"{url!r} is not the address of a data set.",
            why="it says which server is asked, and about which data set.",
            remedy=_fixed_address(url),
        )
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise connection_error(
            "DP857",
            "http:// is plain text, and this server is another machine.",
            why="everybody on the way could read the token and the answers.",
            remedy=f"https://{parts.netloc}{parts.path}",
        )
    before, found, dataset = parts.path.rpartition("/d/")
    folder = before if found else parts.path.rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{folder}", dataset.strip("/") if found else ""


def _fixed_address(url: str) -> str:
    if "://" in url or not url.strip() or any(mark in url for mark in "?@ "):
        return _EXAMPLE
    local = url.partition(":")[0].partition("/")[0] in _LOOPBACK
    return f"http{'' if local else 's'}://{url}"


def token_for(server: str) -> str:
    """The token of the environment, or the one that was kept for a server."""
    token = os.environ.get("DISCREET_TOKEN") or _tokens().get(server)
    if token:
        return token
    raise connection_error(
        "DP857",
        f"there is no token for {server}.",
        why="every question is charged to somebody, so a server has to know who asks.",
        remedy=f'discreet login {server}   or  dp.connect("{server}/d/visits", token="dscr_…")',
    )


def remember_token(server: str, token: str) -> Path:
    """Keep a token for a server in a file that nobody else may read; the file."""
    place = _place()
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    tokens = {**_tokens(), server: token}
    new = place.with_name(f"{place.name}.new")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(tokens, file, indent=2)
    new.replace(place)
    return place


def _tokens() -> dict[str, str]:
    try:
        found = json.loads(_place().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(server): str(token) for server, token in found.items()} if isinstance(found, dict) else {}


def _place() -> Path:
    folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(folder).expanduser() / "discreet" / "tokens.json"


def _only_dataset(requests: ServerRequests) -> str:
    names = requests.get("/v1/datasets")["datasets"]
    if len(names) == 1:
        return str(names[0])
    raise _several_error(names)


def _several_error(names: list[str]) -> ServerError:
    return connection_error(
        "DP857",
        f"the server has {len(names)} data sets for you.",
        why="a session is about one of them.",
        remedy="  or  ".join(f'dp.connect(".../d/{name}")' for name in names) or "ask the curator for a role",
    )
