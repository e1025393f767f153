# SPDX-License-Identifier: Apache-2.0
"""`discreet serve` and `discreet people`: a server for private tables, and who may use it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli import options
from discreet.cli.places import is_shipped
from discreet.cli.report import print_json
from discreet.cli.terminal import print_rows
from discreet.extras import naming_extras

if TYPE_CHECKING:
    from discreet.server import ServerConfig

_SERVER = "Server"
Settings = Annotated[
    str,
    typer.Argument(
        metavar="FILE.toml", help="Settings of a server, or the description of one data set; or adult."
    ),
]
State = Annotated[
    str | None,
    options.option("--state", "FOLDER", "Where a server of one data set keeps its state.", _SERVER),
]
Port = Annotated[int | None, options.option("--port", "PORT", "The port; 0 chooses a free one.", _SERVER)]
Folder = Annotated[str, typer.Argument(metavar="FOLDER", help="A folder that does not exist yet.")]
PersonName = Annotated[str, typer.Argument(metavar="NAME", help="The name of the person.")]
DatasetName = Annotated[str, options.option("--dataset", "NAME", "The data set.", _SERVER)]
RoleName = Annotated[str, options.option("--role", "ROLE", "curator, analyst or auditor.", _SERVER)]
SeatName = Annotated[
    str | None, options.option("--seat", "SEAT", "The seat to which questions are charged.", _SERVER)
]


def serve(settings: Settings, *, state: State = None, port: Port = None, json: options.Json = False) -> None:
    """Serve private tables to people who may not see the rows.

    discreet serve adult.toml

    With the description of one data set the server listens to this machine only, and prints a link
    and a token for you. With settings (serve.toml) it serves an organisation.
    """
    with naming_extras():
        from discreet.server import start
    config = _config(settings, state, port)

    def announce(facts: dict[str, str]) -> None:
        if json:
            print_json({"command": "serve", **facts})
            return
        # Whole lines, which can be copied however narrow the terminal is.
        print(f"serves   {facts['url']}")
        if "enter" in facts:
            print(f"open     {facts['enter']}")
        if "token" in facts:
            print(f"token    {facts['token']}")
        print("stop     Ctrl-C", flush=True)

    start.serve(config, announce)


def check(settings: Settings, *, json: options.Json = False) -> None:
    """Read the settings and the descriptions, and open no port and no data."""
    with naming_extras():
        from discreet.server import start
    config = _config(settings, None, None)
    config.check_binding()
    names = start.dataset_names(config)
    if json:
        print_json({"command": "serve check", "datasets": names})
    else:
        print_rows([("settings", "fine"), ("data sets", ", ".join(names))])


def backup(settings: Settings, folder: Folder, *, json: options.Json = False) -> None:
    """Copy the store and the ledgers of a server, which may run meanwhile, into a new folder."""
    with naming_extras():
        from discreet.server import start
    names = start.back_up(_config(settings, None, None), Path(folder))
    if json:
        print_json({"command": "serve backup", "files": names})
    else:
        print_rows([("copied", ", ".join(names)), ("folder", folder)])


def add_person(
    settings: Settings,
    name: PersonName,
    *,
    dataset: DatasetName,
    role: RoleName = "analyst",
    seat: SeatName = None,
    json: options.Json = False,
) -> None:
    """Let somebody in, on the machine of the server: prints a link that works once within a day."""
    with naming_extras():
        from discreet.server import start
    config = _config(settings, None, None)
    person, link = start.let_in(config, name, dataset, role=role, seat=seat)
    place = f"{config.public_url or f'http://{config.host}:{config.port}'}/enter?once={link}"
    if json:
        print_json({"command": "people add", "id": person.id, "link": place})
    else:
        print(f"person   {person.id}")
        print(f"link     {place}")


def list_people(settings: Settings, *, json: options.Json = False) -> None:
    """List who may use a server, with their roles and seats."""
    with naming_extras():
        from discreet.server import start
    config = _config(settings, None, None)
    with start.open_people(config) as (store, _):
        found = [
            {
                "id": person.id,
                "name": person.name,
                "roles": {name: sorted(roles) for name, roles in store.roles(person.id).items()},
                "seats": {name: store.seat_of(name, person.id) for name in store.roles(person.id)},
            }
            for person in store.people()
        ]
    if json:
        print_json({"command": "people list", "people": found})
        return
    print_rows([(str(each["id"]), f"{each['name']}  {each['roles']}  {each['seats']}") for each in found])


def _config(settings: str, state: str | None, port: int | None) -> ServerConfig:
    from discreet.server import config_of, read_config

    if is_shipped(settings):
        from discreet import data

        config = config_of(data.path(f"{settings}.toml"), state=state or f"{settings}-server")
    else:
        config = read_config(settings)
    if state is not None:
        config = replace(config, state=Path(state))
    return config if port is None else replace(config, port=port)
