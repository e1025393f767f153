# SPDX-License-Identifier: Apache-2.0
"""A first description of a data set, for a person to complete.

**Guarantee.** Only the schema is read (`schema.py`): names and types are filled in, everything that only the rows could
tell is left blank. Bounds and categories that are read off the data would tell an extreme or a rare value of
somebody, before any noise; a person writes them down from what is known without the data.
"""

from __future__ import annotations

from pathlib import Path

from discreet.paths import first_file
from discreet.tables.data.readers import schema
from discreet.tables.data.rules import wrong
from discreet.tables.data.toml import key_text, value_text

__all__ = ["describe"]

_HEAD = """\
# Written from the schema of {name} alone: no row was read.
# Fill in what is known without looking at the data: from a law, a form, a price list, a map.
# Lines that begin with # are proposals; open the finished file with  dp.open("{stem}.toml").

[dataset]
source = {source}
{table}name = {stem_text}
# version = "2026-01"          # a public name of this snapshot
# Whom do the data protect? Keep exactly one of these lines.
{units}
# each_row = true              # only if nobody can have two rows
# word = "person"              # what one of them is called

[limits]
# rows_per_unit = 20           # each of them contributes at most so many rows; "auto": found privately, and paid for
"""

_BLANK = "# bounds = [ , ]"
_CATEGORIES = "# values = [ ]"
_REMARKS = {
    "integer": "as  [0, 100]: values are moved between the two",
    "real": "as  [0, 500]: values are moved between the two",
    "decimal": "as  [0, 500]: values are moved between the two",
    "date": "as  [2020-01-01, 2026-12-31]: values are moved between the two",
    "timestamp": "as  [2020-01-01T00:00:00Z, 2026-12-31T23:59:59Z]: values are moved between the two",
    "text": 'as  ["north", "south"]; leave it out where the categories are not known',
}
_SOURCE = '# source = ""                  # where you know it from'


def describe(path: str | Path, table: str = "") -> str:
    """A TOML description of a file, made from its schema alone; `table` names a table of a database file."""
    place = first_file(path)
    if schema.is_database(place) and not table:
        names = schema.catalogue(place)
        if len(names) != 1:
            fix = f"--table {names[0]}   (one of {', '.join(names)})"
            raise wrong(place.name, "it has several tables.", fix)
        table = names[0]
    columns = schema.kinds(path, table)
    stem = table or place.stem
    head = _HEAD.format(
        name=place.name,
        stem=stem,
        source=value_text(str(path)),
        table=f"table = {value_text(table)}\n" if table else "",
        stem_text=value_text(stem),
        units="\n".join(_units(columns)),
    )
    is_text_file = place.suffix.lower() in schema.DELIMITERS
    return head + "".join(_column(name, kind, is_text_file) for name, kind in columns.items())


def _units(columns: dict[str, str]) -> list[str]:
    """Proposals for the unit: by the name of the column, which is all that there is to go by."""
    names = [name for name in columns if name.lower() == "id" or name.lower().endswith(("_id", " id"))]
    guesses = [f"# unit = {value_text(name)}" for name in names]
    return [_remark(guess, "a guess, from its name") for guess in guesses] or ['# unit = ""']


def _column(name: str, kind: str, is_text_file: bool) -> str:  # noqa: FBT001 - a fact about the file
    lines = [f'type = "{kind}"']
    if is_text_file:
        kinds = "or real, boolean, date, timestamp: a text file does not say"
        lines += [_remark('# type = "integer"', kinds), _remark(_BLANK, _REMARKS["integer"])]
        lines += [_remark(_CATEGORIES, _REMARKS["text"]), _SOURCE]
    elif kind in _REMARKS:
        lines += [_remark(_CATEGORIES if kind == "text" else _BLANK, _REMARKS[kind]), _SOURCE]
    elif kind == "other":
        lines += ["# a column of this type cannot be asked about"]
    return "\n".join(["", f"[columns.{key_text(name)}]", *lines, ""])


def _remark(line: str, remark: str) -> str:
    return f"{line.ljust(30)} # {remark}"
