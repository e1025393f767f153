# SPDX-License-Identifier: Apache-2.0
"""Files that are whole or not there.

**Guarantee.** A place is checked before anything is paid for. What is written appears under its name all at once: whoever
stops the command in the middle finds the old file, or none. Files that belong together appear when all of them are
written; only a process that is killed while they get their names leaves some of them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from discreet.errors import BadParameter, DiscreetError, MissingExtra
from discreet.paths import place_for, stem_of, unwritable

if TYPE_CHECKING:
    from discreet.tables.answer.answer import Answer

Write: TypeAlias = Callable[[Path], object]

#: The endings of tables, and what writes them.
TABLES = ("csv", "parquet", "json")
PICTURES = ("svg", "png", "pdf")
_TOO_LATE = "the file would be missed only after the answer was paid for."


def checked(path: str, endings: Iterable[str], flag: str) -> Path:
    """A place for a file of one of these kinds, in a folder that exists."""
    place, known = Path(path), tuple(endings)
    if place.suffix.removeprefix(".").lower() not in known:
        raise BadParameter(
            "DP105",
            f"{flag} must end in one of {', '.join(f'.{ending}' for ending in known)}.",
            why="the ending chooses the format.",
            fix=f"{flag} {stem_of(place, 'answer')}.{known[0]}",
        )
    return place_for(place)


def can_draw(path: Path | None) -> None:
    """Refuse a picture that could not be drawn, before an answer is paid for."""
    if path is None:
        return
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise MissingExtra.of("matplotlib", "--plot", why=_TOO_LATE)


def can_write(places: Iterable[Path]) -> None:
    """Refuse a table that could not be written, before an answer is paid for."""
    from importlib.util import find_spec

    if any(place.suffix == ".parquet" for place in places) and find_spec("pyarrow") is None:
        raise MissingExtra.of("pyarrow", "a .parquet file", why=_TOO_LATE, instead="write .csv")


def writer(answer: Answer, place: Path) -> Write:
    """What writes a table in the format that the ending of its place says."""
    kinds: dict[str, Write] = {".csv": answer.to_csv, ".parquet": answer.to_parquet}
    return kinds.get(place.suffix.lower()) or text_writer(answer.to_json() + "\n")


def write_answer(answer: Answer, place: Path) -> None:
    """A table in the format that its ending says."""
    whole(place, writer(answer, place))


def write_text(place: Path, words: str) -> None:
    """A text, all at once."""
    whole(place, text_writer(words))


def text_writer(words: str) -> Write:
    """What writes a text."""
    return lambda path: path.write_text(words, encoding="utf-8")


def whole(place: Path, write: Write) -> None:
    """Let something write a file beside the place, and move it there when it is done."""
    together({place: write})


def together(files: Mapping[Path, Write]) -> None:
    """Write each file beside its place, and move all of them there when all are done."""
    beside: dict[Path, Path] = {}
    try:
        for place, write in files.items():
            with _written_at(place):
                handle, name = tempfile.mkstemp(
                    prefix=f".{place.stem}.", suffix=place.suffix, dir=place.parent
                )
                os.close(handle)
                beside[place] = Path(name)
                write(beside[place])
                beside[place].chmod(0o644)
        for place, ready in beside.items():
            with _written_at(place):
                ready.replace(place)
    finally:
        for left in beside.values():
            left.unlink(missing_ok=True)


@contextmanager
def _written_at(place: Path) -> Iterator[None]:
    """What the system refuses is said of the place."""
    try:
        yield
    except OSError as error:
        raise unwritable(place, error.strerror or "the system refuses") from None
    except ValueError:
        raise unwritable(place, "that is no name of a file") from None


def can_make(path: str) -> Path:
    """Refuse a folder that could not be written into, or not be made, before an answer is paid for; makes nothing."""
    place = Path(path)
    with _written_at(place):
        there = next((near for near in (place, *place.absolute().parents) if near.exists()), place)
        if not there.is_dir():
            raise unwritable(place, "there is a file in its place")
        if not os.access(there, os.W_OK | os.X_OK):
            raise unwritable(place, "it is not yours")
        # the name of a folder that is not there yet has to be one that a folder can have
        place.exists()
        os.fsencode(place)
    return place


def folder(path: str) -> Path:
    """A folder to write into, made if need be."""
    place = can_make(path)
    with _written_at(place):
        place.mkdir(parents=True, exist_ok=True)
    return place


def paid(error: DiscreetError, spent: str) -> DiscreetError:
    """The same error, for something that went wrong after an answer was paid for."""
    late = copy(error)
    late.spent = spent
    return late
