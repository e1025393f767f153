# SPDX-License-Identifier: Apache-2.0
"""The statements of `corpus/*.sql`, and how an answer is compared with that of plain DuckDB.

    -- Visits by ward                       a name, on a line of its own, after an empty line
    -- @delta                               its groups are found privately
    SELECT ward, COUNT(*) FROM visits GROUP BY ward;

    -- The oldest patient
    -- @refused DP706 COUNT(*)              the code of the refusal, and words of its Fix that the next question contains
    SELECT patient_id, COUNT(*) FROM visits GROUP BY 1;
    -- @instead                             what the Fix leads to: it is answered
    SELECT COUNT(*) FROM visits;

`@near 0.5` states how far a number may be from plain DuckDB, because the question means an approximate one there (a quantile that
lies between two values). `@plain` begins the same question in the words of DuckDB.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "corpus"
HUGE = 1e6
NEAR = 2e-3


@dataclass(frozen=True)
class Statement:
    """A statement with its expected outcome."""

    shape: str
    name: str
    text: str
    instead: str = ""
    plain: str = ""
    code: str = ""
    fix: str = ""
    near: float = NEAR
    delta: bool = False

    @property
    def asked(self) -> str:
        """The question that is answered."""
        return self.instead or self.text

    @property
    def truth(self) -> str:
        """The same in the words of DuckDB."""
        return self.plain or self.asked


def statements() -> list[Statement]:
    """All of them, in the order of the files."""
    return [one for path in sorted(FOLDER.glob("*.sql")) for one in _read(path)]


def _read(path: Path) -> Iterator[Statement]:
    blocks = path.read_text(encoding="utf-8").split("\n\n")
    for block in blocks:
        lines = block.strip().splitlines()
        # A block of comments only is for readers.
        if all(line.startswith("--") for line in lines):
            continue
        yield _statement(path.stem, lines)


def _statement(shape: str, lines: list[str]) -> Statement:
    name, facts, texts, part = "", dict[str, Any](), {"text": "", "instead": "", "plain": ""}, "text"
    for line in lines:
        if not line.startswith("-- "):
            texts[part] += line + "\n"
            continue
        if not line.startswith("-- @"):
            name = line[3:]
            continue
        word, _, value = line[4:].partition(" ")
        if word in texts:
            part = word
        elif word == "refused":
            facts["code"], _, facts["fix"] = value.partition(" ")
        else:
            facts[word] = float(value) if word == "near" else True
    return Statement(shape, name, **{key: text.strip() for key, text in texts.items()}, **facts)


# --- equal to plain DuckDB ---------------------------------------------------------------------------


def differences(
    answer: Any, header: list[str], truth: list[tuple[Any, ...]], near: float = NEAR
) -> list[str]:
    """What is wrong with an answer; nothing, if it equals that of plain DuckDB.

    Groups that plain DuckDB does not show, because they have no rows, must be empty.
    """
    # The answer names the table of each row of a cube; plain DuckDB leaves that to the reader.
    keyed = [place for place, name in enumerate(answer.keys) if name != "grouping" or name in header]
    order = [*(answer.keys[place] for place in keyed), *answer.columns]
    at = _places(order, header)
    if at is None:
        return [f"columns {order} where plain DuckDB has {header}"]
    keys = len(keyed)
    shown = {
        tuple(_plain(group[place]) for place in keyed): [
            column.values[row] for column in answer.columns.values()
        ]
        for row, group in enumerate(answer.groups)
    }
    wrong = []
    for line in truth:
        row = [_plain(line[place]) for place in at]
        group = tuple(row[:keys])
        if group not in shown:
            wrong.append(f"no row for {group}")
            continue
        numbers = shown.pop(group)
        wrong += [
            f"{name} of {group}: {number} instead of {true}"
            for name, number, true in zip(order[keys:], numbers, row[keys:], strict=True)
            if not same(_plain(number), true, near)
        ]
    wrong += [f"{group} has no rows and shows {row}" for group, row in shown.items() if not _nothing(row)]
    return wrong


def _places(order: list[str], header: list[str]) -> list[int] | None:
    """Where the columns of an answer are in the table of DuckDB: by name, the rest in their order."""
    if len(order) != len(header):
        return None
    named = {name: header.index(name) for name in order if header.count(name) == 1}
    rest = iter(place for place in range(len(header)) if place not in named.values())
    return [named[name] if name in named else next(rest) for name in order]


def _nothing(row: list[Any]) -> bool:
    """Whether a row is that of an empty group: it has a count or a sum of 0, or no number at all."""
    return any(value is None or (not isinstance(value, str) and abs(value) < NEAR) for value in row)


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, date) and not isinstance(value, datetime):
        # DuckDB truncates a date to a moment.
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return value


def same(number: Any, true: Any, near: float) -> bool:
    """Whether a released number is the true one up to the grid and noise of a huge ε; the sum of no rows is 0."""
    if true is None or (isinstance(true, float) and math.isnan(true)):
        return number is None or number == 0
    if isinstance(true, bool) or not isinstance(true, int | float):
        return bool(number == true)
    return number is not None and abs(float(number) - float(true)) <= near * max(1.0, abs(float(true)))
