# SPDX-License-Identifier: Apache-2.0
"""`discreet describe`: a first description of a file, from its schema; or what a description says, and what it lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli import options
from discreet.cli.files import write_text
from discreet.cli.places import data_at, is_shipped
from discreet.cli.report import print_json
from discreet.errors import BadParameter
from discreet.paths import place_for, stem_of

File = Annotated[str, typer.Argument(metavar="FILE", help="A data file; or a description, to look at it.")]
Table = Annotated[str, typer.Option("--table", metavar="NAME", help="A table of a database file.")]
Out = Annotated[str | None, typer.Option("--out", metavar="FILE.toml", help="Write it there.")]


def describe(file: File, *, table: Table = "", out: Out = None, json: options.Json = False) -> None:
    """A description of a data file, to be completed by a person. No row is read.

    discreet describe visits.parquet --out visits.toml

    Names and types come from the schema. Bounds, categories and the privacy unit are left blank: a value that is
    read off the rows would tell about somebody. With a description, say what is known and what is missing.
    """
    if Path(file).suffix.lower() == ".toml" or is_shipped(file):
        _portrait(file, json=json)
        return
    from discreet.tables.data.describe import describe as written

    text = written(file, table)
    if out is not None:
        _keep(Path(out), text)
    if json:
        print_json({"command": "describe", "file": file, "toml": text, "out": out})
    else:
        print(f"{out}: complete it, then  discreet describe {out}" if out else text.rstrip())


def _keep(place: Path, text: str) -> None:
    if place.suffix.lower() != ".toml":
        raise BadParameter(
            "DP105",
            "--out must end in .toml.",
            why="descriptions are TOML, and are told from data by their ending.",
            fix=f"--out {stem_of(place, 'visits')}.toml",
        )
    place = place_for(place)
    if place.exists():
        raise BadParameter(
            "DP102",
            f"{place} is there already.",
            why="what a person has completed is not written over.",
            fix=f"--out {place.stem}-new.toml",
        )
    write_text(place, text)


def _portrait(file: str, *, json: bool) -> None:
    from discreet.tables.data.summary import missing

    data = data_at(file)
    if json:
        found: dict[str, Any] = {
            "command": "describe",
            "file": file,
            "description": data.public_description(),
        }
        print_json(found | {"missing": missing(data)})
    else:
        print(data.describe())
