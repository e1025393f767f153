# SPDX-License-Identifier: Apache-2.0
"""Drafts the description of a data set for a person to complete.

**Guarantee.** Only the schema is read (`schema.py`). Names and types are filled in; bounds and
values stay blank. If they were computed from the data, they would reveal an extreme or a rare value
without noise. A person fills them in from public knowledge.
"""

from __future__ import annotations

from pathlib import Path

from discreet.paths import first_file
from discreet.tables.data.readers import schema
from discreet.tables.data.rules import description_error, same_names_error
from discreet.tables.data.toml import key_text, value_text

__all__ = ["describe"]

_HEAD = """\
# Drafted from the schema of {name}; no row was read.
# Fill in what is publicly known without looking at the data: from a law, a form, a price list, a map.
# Lines that start with # are suggestions. Open the finished file with  dp.open("{stem}.toml").

[dataset]
source = {source}
{table}name = {stem_text}
# version = "2026-01"          # the public name of this snapshot
# The privacy unit: keep exactly one of these lines.
{units}
# each_row = true              # only if nobody can have two rows
# word = "person"              # the name of a unit in texts

[limits]
# rows_per_unit = 20           # rows that one unit may contribute; "auto" chooses it privately, for a cost
"""

_BLANK = "# bounds = [ , ]"
_CATEGORIES = "# values = [ ]"
_REMARKS = {
    "integer": "for example [0, 100]; values outside are clipped",
    "real": "for example [0, 500]; values outside are clipped",
    "decimal": "for example [0, 500]; values outside are clipped",
    "date": "for example [2020-01-01, 2026-12-31]; values outside are clipped",
    "timestamp": "for example [2020-01-01T00:00:00Z, 2026-12-31T23:59:59Z]; values outside are clipped",
    "text": 'for example ["north", "south"]; leave it out if the categories are not public',
}
_SOURCE = '# source = ""                  # where this knowledge comes from'


def describe(path: str | Path, table: str = "") -> str:
    """A draft of the TOML description of a file, from its schema; `table` names a table of a
    database file.
    """
    place = first_file(path)
    if schema.is_database(place) and not table:
        names = schema.catalogue(place)
        if len(names) != 1:
            fix = f"--table {names[0]}   (one of {', '.join(names)})"
            raise description_error(place.name, "it has several tables; one must be chosen.", fix)
        table = names[0]
    columns = schema.kinds(path, table)
    if len({name.casefold() for name in columns}) < len(columns):
        raise same_names_error(table or place.name)
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
    return head + "".join(_column(name, kind, is_text_file=is_text_file) for name, kind in columns.items())


def _units(columns: dict[str, str]) -> list[str]:
    """Suggestions for the privacy unit, guessed from the names of columns."""
    names = [name for name in columns if name.lower() == "id" or name.lower().endswith(("_id", " id"))]
    guesses = [f"# unit = {value_text(name)}" for name in names]
    return [_remark(guess, "a guess from its name") for guess in guesses] or ['# unit = ""']


def _column(name: str, kind: str, *, is_text_file: bool) -> str:
    lines = [f'type = "{kind}"']
    if is_text_file:
        kinds = "or real, boolean, date, timestamp; a text file does not declare types"
        lines += [_remark('# type = "integer"', kinds), _remark(_BLANK, _REMARKS["integer"])]
        lines += [_remark(_CATEGORIES, _REMARKS["text"]), _SOURCE]
    elif kind in _REMARKS:
        lines += [_remark(_CATEGORIES if kind == "text" else _BLANK, _REMARKS[kind]), _SOURCE]
    elif kind == "other":
        lines += ["# columns of this type cannot be used"]
    return "\n".join(["", f"[columns.{key_text(name)}]", *lines, ""])


def _remark(line: str, remark: str) -> str:
    return f"{line.ljust(30)} # {remark}"
