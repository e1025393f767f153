# SPDX-License-Identifier: Apache-2.0
"""The settings of a server: `serve.toml`, or a description of one data set with settings for one
person.

    [server]     host, port, state, public_url, behind_proxy, tls_cert, tls_key, store
    [showing]    mode ("ticks" or "fixed"), tick, deadline
    [engine]     processes, memory
    [rates]      plans, questions, streams
    [[dataset]]  description, ledger, seats, share, reserved, gaussian

**Guarantee.** A key that is not in this list, or a value of the wrong type, is refused with DP858
and the nearest key is named, so a typing error never becomes a default. Passwords come from files
and from the environment (`file:…`, `env:NAME`), and are in no text that this module makes.
"""

from __future__ import annotations

import ipaddress
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from discreet.errors import ServerError

__all__ = [
    "EngineSettings",
    "HostedDescription",
    "RateSettings",
    "ServerConfig",
    "ShowingSettings",
    "config_of",
    "read_config",
]

ROLES = ("curator", "analyst", "auditor")
_UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0}
_BYTES = {"KB": 2**10, "MB": 2**20, "GB": 2**30}
_KEYS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "server": {
        "host": str,
        "port": int,
        "state": str,
        "public_url": str,
        "behind_proxy": list,
        "tls_cert": str,
        "tls_key": str,
        "store": str,
    },
    "showing": {"mode": str, "tick": str, "deadline": str},
    "engine": {"processes": int, "memory": str},
    "rates": {"plans": (int, float), "questions": (int, float), "streams": int},
    "dataset": {
        "description": str,
        "ledger": str,
        "seats": int,
        "share": (int, float),
        "reserved": bool,
        "gaussian": bool,
    },
}


@dataclass(frozen=True)
class HostedDescription:
    """A data set that a server offers: where its description lies, and how its budget is divided.

    `seats` people can sit at once, each with the fraction `share` of the budget. With `reserved`
    the fractions add up to at most 1, and each seat has a guarantee of its own.
    """

    description: Path
    ledger: str = ""
    seats: int = 1
    share: float | None = None
    reserved: bool = False
    gaussian: bool = True


@dataclass(frozen=True)
class ShowingSettings:
    """When an outcome is shown after a question was begun: on doubling ticks, or at one fixed time.

    `tick` and `deadline` are in seconds. An outcome is shown at `tick`, 2 · `tick`, 4 · `tick`, …,
    or, where `fixed`, at `deadline` and at no other time.
    """

    fixed: bool = False
    tick: float = 0.25
    deadline: float = 60.0


@dataclass(frozen=True)
class EngineSettings:
    """Engine processes for each data set, and the memory in bytes that each is made for.

    What the engine inside uses is stated in the description (`memory` and `threads`).
    """

    processes: int = 1
    memory: int | None = None


@dataclass(frozen=True)
class RateSettings:
    """Requests per second that one token may make, and streams of events that it may hold open."""

    plans: float = 10.0
    questions: float = 2.0
    streams: int = 4


@dataclass(frozen=True)
class ServerConfig:
    """Everything that a server is started with.

    `single` is true for a server that was made of one description: whoever opens the first link has
    all roles and the first seat.
    """

    state: Path
    datasets: tuple[HostedDescription, ...]
    host: str = "127.0.0.1"
    port: int = 8765
    public_url: str = ""
    behind_proxy: tuple[str, ...] = ()
    tls_cert: str = ""
    tls_key: str = ""
    store: str = ""
    showing: ShowingSettings = ShowingSettings()
    engine: EngineSettings = EngineSettings()
    rates: RateSettings = RateSettings()
    single: bool = False

    @property
    def secure(self) -> bool:
        """Whether browsers reach this server over TLS, its own or that of a proxy."""
        return bool(self.tls_cert) or self.public_url.startswith("https://")

    @property
    def host_names(self) -> frozenset[str]:
        """The names, without ports, under which requests are answered."""
        named = urlsplit(self.public_url).hostname
        own = {"127.0.0.1", "localhost", "::1"} if self.is_loopback else {self.host}
        return frozenset(own | ({named} if named else set()))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def check_binding(self) -> None:
        """Refuse to listen to other machines in plain text."""
        if not self.is_loopback and not self.tls_cert and not self.behind_proxy:
            raise settings_error(
                f"{self.host} is not this machine, and neither TLS nor a proxy is configured.",
                'behind_proxy = ["10.0.0.0/8"]   or  tls_cert and tls_key   under [server]',
                "tokens and answers would travel in plain text.",
            )


def settings_error(what: str, remedy: str, why: str = "") -> ServerError:
    """The error (DP858) for settings that cannot be used."""
    return ServerError("DP858", what, why=why or "settings that are misread protect nobody.", fix=remedy)


def config_of(description: str | Path, *, state: str | Path | None = None, port: int = 8765) -> ServerConfig:
    """Settings for one person on this machine, from the description of a data set alone."""
    place = Path(description)
    folder = Path(state) if state is not None else place.resolve().parent / f"{place.stem}-server"
    return ServerConfig(folder, (HostedDescription(place.resolve()),), port=port, single=True)


def read_config(path: str | Path) -> ServerConfig:
    """The settings in a file; a description of a data set makes settings for one person."""
    place = Path(path)
    try:
        content = tomllib.loads(place.read_text(encoding="utf-8"))
    except OSError:
        raise settings_error(f"{place.name} cannot be read.", "discreet serve serve.toml") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
        raise settings_error(
            f"{place.name} is not TOML.", '[server]   host = "127.0.0.1"   port = 8765'
        ) from None
    # A key of its own tells the settings of a server from the description of a data set.
    if isinstance(content.get("dataset"), Mapping) and "server" not in content:
        return config_of(place)
    return _config(content, place.resolve().parent)


def _config(content: Mapping[str, object], folder: Path) -> ServerConfig:
    _refuse_unknown("the file", content, _KEYS)
    server = _section(content, "server")
    hosted = content.get("dataset")
    if not isinstance(hosted, list) or not hosted:
        raise settings_error("no data set is named.", '[[dataset]]   description = "visits.toml"')
    datasets = tuple(_read_dataset(each, folder) for each in hosted)
    if len({each.description for each in datasets}) < len(datasets):
        raise settings_error("two data sets have one description.", "leave one [[dataset]] out")
    for network in server.get("behind_proxy", ()):
        _check_network(network)
    if bool(server.get("tls_cert")) != bool(server.get("tls_key")):
        raise settings_error("tls_cert and tls_key belong together.", 'tls_key = "server.key"')
    return ServerConfig(
        state=folder / str(server.get("state", "discreet-server")),
        datasets=datasets,
        host=server.get("host", "127.0.0.1"),
        port=server.get("port", 8765),
        public_url=str(server.get("public_url", "")).rstrip("/"),
        behind_proxy=tuple(server.get("behind_proxy", ())),
        tls_cert=_path(folder, server.get("tls_cert")),
        tls_key=_path(folder, server.get("tls_key")),
        store=secret_of(server.get("store", "")),
        showing=_showing(_section(content, "showing")),
        engine=_engine(_section(content, "engine")),
        rates=RateSettings(**_positive("rates", _section(content, "rates"))),
    )


def _read_dataset(section: object, folder: Path) -> HostedDescription:
    entry = _read_section("[[dataset]]", section, _KEYS["dataset"])
    if "description" not in entry:
        raise settings_error("a data set has no description.", 'description = "visits.toml"')
    entry["description"] = (folder / entry["description"]).resolve()
    entry["ledger"] = secret_of(entry.get("ledger", ""))
    if not 1 <= entry.get("seats", 1) <= 1000:
        raise settings_error("seats must be from 1 to 1,000.", "seats = 20")
    share = entry.get("share")
    if share is not None and not 0 < share <= 1:
        raise settings_error("share is a fraction of the budget, above 0 and up to 1.", "share = 0.1")
    return HostedDescription(**entry)


def _showing(section: dict[str, Any]) -> ShowingSettings:
    mode = section.get("mode", "ticks")
    if mode not in ("ticks", "fixed"):
        raise settings_error(
            f"answers cannot be shown in the mode {mode!r}.", 'mode = "ticks"   or  mode = "fixed"'
        )
    tick = _amount("tick", section.get("tick", "250ms"), _UNITS)
    deadline = _amount("deadline", section.get("deadline", "60s"), _UNITS)
    if not 0.001 <= tick <= deadline <= 3600:
        raise settings_error("tick and deadline are out of range.", 'tick = "250ms"   deadline = "60s"')
    return ShowingSettings(mode == "fixed", tick, deadline)


def _engine(section: dict[str, Any]) -> EngineSettings:
    memory = section.get("memory")
    amounts = _positive("engine", {key: value for key, value in section.items() if key != "memory"})
    size = None if memory is None else int(_amount("memory", str(memory), _BYTES))
    return EngineSettings(memory=size, **amounts)


def _positive(name: str, section: dict[str, Any]) -> dict[str, Any]:
    for key, value in section.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and not 0 < value < 1e9:
            raise settings_error(f"{key} under [{name}] is out of range.", f"{key} = 1")
    return section


def _amount(name: str, text: str, units: Mapping[str, float]) -> float:
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\s*", text)
    if match and match[2] in units:
        return float(match[1]) * units[match[2]]
    words = " or ".join(f'{name} = "2{unit}"' for unit in units)
    raise settings_error(f"{name} is not an amount with its unit.", words)


def _check_network(network: object) -> None:
    try:
        ipaddress.ip_network(str(network))
    except ValueError:
        raise settings_error(
            "behind_proxy is not a list of networks.", 'behind_proxy = ["10.0.0.0/8"]'
        ) from None


def _section(content: Mapping[str, object], name: str) -> dict[str, Any]:
    return _read_section(f"[{name}]", content.get(name, {}), _KEYS[name])


def _read_section(where: str, section: object, keys: Mapping[str, type | tuple[type, ...]]) -> dict[str, Any]:
    if not isinstance(section, Mapping):
        raise settings_error(f"{where} is not a section.", where)
    _refuse_unknown(where, section, keys)
    for key, value in section.items():
        kinds = keys[key]
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise settings_error(f"{key} under {where} has the wrong type.", f"{key} = {_example(kinds)}")
    return dict(section)


def _example(kinds: type | tuple[type, ...]) -> str:
    examples = {str: '"…"', int: "1", bool: "true", list: "[]", dict: "{}"}
    return examples.get(kinds if isinstance(kinds, type) else kinds[0], "1")


def _refuse_unknown(
    where: str, section: Mapping[str, object], known: Mapping[str, object] | Sequence[str]
) -> None:
    for key in section:
        if key not in known:
            near = get_close_matches(str(key), list(known), n=1, cutoff=0.0)
            raise settings_error(
                f"{where} has no key {key!r}.", f"{near[0]} = …   (one of {', '.join(known)})"
            )


def _path(folder: Path, value: object) -> str:
    return "" if not value else str(folder / str(value))


def secret_of(value: object) -> str:
    """A setting, or what `env:NAME` or `file:PATH` stands for."""
    text = str(value)
    if text.startswith("env:"):
        found = os.environ.get(text[4:])
        if not found:
            raise settings_error(f"the environment has no {text[4:]}.", f"export {text[4:]}=…")
        return found
    return _read_secret(Path(text[5:])) if text.startswith("file:") else text


def _read_secret(place: Path) -> str:
    try:
        return place.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise settings_error(
            f"the file {place.name} with a secret cannot be read.", f"chmod 600 {place.name}"
        ) from None
