# SPDX-License-Identifier: Apache-2.0
"""`discreet describe`: drafts a description of a file from its schema, or shows what a description
still lacks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli import options
from discreet.cli.files import write_text
from discreet.cli.places import data_at, is_shipped
from discreet.cli.report import print_json
from discreet.errors import BadParameter
from discreet.paths import place_for, stem_of

File = Annotated[str, typer.Argument(metavar="FILE", help="A data file, or a description (.toml) to check.")]
Table = Annotated[str, options.option("--table", "NAME", "A table of a database file.")]
Out = Annotated[str | None, options.option("--out", "FILE.toml", "Write the description to this file.")]


def describe(file: File, *, table: Table = "", out: Out = None, json: options.Json = False) -> None:
    """Draft the description of a data file, or check a description. Reads no row.

    discreet describe visits.parquet --out visits.toml

    Names and types come from the schema. You complete the bounds, the categories and the privacy
    unit, because values that are read off the rows would reveal them. With a description, shows
    what is known and what is missing.
    """
    if Path(file).suffix.lower() == ".toml" or is_shipped(file):
        _check_description(file, json=json)
        return
    from discreet.tables.data.describe import describe as draft_description

    text = draft_description(file, table)
    if out is not None:
        _save(Path(out), text)
    if json:
        print_json({"command": "describe", "file": file, "toml": text, "out": out})
    else:
        print(f"{out}: complete it, then  discreet describe {out}" if out else text.rstrip())


def _save(path: Path, text: str) -> None:
    if path.suffix.lower() != ".toml":
        raise BadParameter(
            "DP105",
            "--out must end in .toml.",
            why="descriptions are TOML files, recognised by their ending.",
            fix=f"--out {stem_of(path, 'visits')}.toml",
        )
    path = place_for(path)
    if path.exists():
        raise BadParameter(
            "DP102",
            f"{path} already exists.",
            why="discreet never overwrites a description.",
            fix=f"--out {path.stem}-new.toml",
        )
    write_text(path, text)


def _check_description(file: str, *, json: bool) -> None:
    from discreet.tables.data.summary import missing

    data = data_at(file)
    if json:
        facts: dict[str, object] = {
            "command": "describe",
            "file": file,
            "description": data.public_description(),
        }
        print_json(facts | {"missing": missing(data)})
    else:
        print(data.describe())
