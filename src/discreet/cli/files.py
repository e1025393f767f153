# SPDX-License-Identifier: Apache-2.0
"""Files that appear whole or not at all.

**Guarantee.** A path is checked before anything is paid for. A file appears under its name all at
once: a command that is stopped in the middle leaves the old file, or none. Files that belong
together appear when all of them are written; only a process that is killed while they get their
names leaves some of them.
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
from discreet.paths import place_for, stem_of, unwritable_error

if TYPE_CHECKING:
    from discreet.tables.answer.answer import Answer

Write: TypeAlias = Callable[[Path], object]

#: The endings of tables and of figures.
TABLES = ("csv", "parquet", "json")
FIGURES = ("svg", "png", "pdf")
_TOO_LATE = "otherwise the command would fail after the answer was paid for."


def check_path(path: str, endings: Iterable[str], flag: str) -> Path:
    """The path of a file with one of these endings, in a folder that exists."""
    target, known = Path(path), tuple(endings)
    if target.suffix.removeprefix(".").lower() not in known:
        raise BadParameter(
            "DP105",
            f"{flag} must end in one of {', '.join(f'.{ending}' for ending in known)}.",
            why="the ending chooses the format.",
            fix=f"{flag} {stem_of(target, 'answer')}.{known[0]}",
        )
    return place_for(target)


def can_draw(path: Path | None) -> None:
    """Refuse a figure that could not be drawn, before an answer is paid for."""
    if path is None:
        return
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise MissingExtra.of("matplotlib", "--plot", why=_TOO_LATE)


def can_write(places: Iterable[Path]) -> None:
    """Refuse a table that could not be written, before an answer is paid for."""
    from importlib.util import find_spec

    if any(target.suffix == ".parquet" for target in places) and find_spec("pyarrow") is None:
        raise MissingExtra.of("pyarrow", "a .parquet file", why=_TOO_LATE, instead="write .csv")


def writer(answer: Answer, target: Path) -> Write:
    """What writes a table in the format that the ending of its place says."""
    kinds: dict[str, Write] = {".csv": answer.to_csv, ".parquet": answer.to_parquet}
    return kinds.get(target.suffix.lower()) or text_writer(answer.to_json() + "\n")


def write_answer(answer: Answer, target: Path) -> None:
    """A table in the format that its ending says."""
    write_whole(target, writer(answer, target))


def write_text(target: Path, words: str) -> None:
    """A text, all at once."""
    write_whole(target, text_writer(words))


def text_writer(words: str) -> Write:
    """What writes a text."""
    return lambda path: path.write_text(words, encoding="utf-8")


def write_whole(target: Path, write: Write) -> None:
    """Let `write` write a file beside the path, and move it there when it is done."""
    write_together({target: write})


def write_together(files: Mapping[Path, Write]) -> None:
    """Write each file beside its path, and move all of them there when all are done."""
    beside: dict[Path, Path] = {}
    try:
        for target, write in files.items():
            with _naming_path(target):
                handle, name = tempfile.mkstemp(
                    prefix=f".{target.stem}.", suffix=target.suffix, dir=target.parent
                )
                os.close(handle)
                beside[target] = Path(name)
                write(beside[target])
                beside[target].chmod(0o644)
        for target, ready in beside.items():
            with _naming_path(target):
                ready.replace(target)
    finally:
        for unfinished in beside.values():
            unfinished.unlink(missing_ok=True)


@contextmanager
def _naming_path(target: Path) -> Iterator[None]:
    """An error of the operating system names the path."""
    try:
        yield
    except OSError as error:
        raise unwritable_error(target, error.strerror or "the system refuses") from None
    except ValueError:
        raise unwritable_error(target, "that is not a valid file name") from None


def can_make(path: str) -> Path:
    """Refuse a folder that cannot be made or written into, before an answer is paid for; makes
    nothing.
    """
    target = Path(path)
    with _naming_path(target):
        there = next((near for near in (target, *target.absolute().parents) if near.exists()), target)
        if not there.is_dir():
            raise unwritable_error(target, "there is a file in its place")
        if not os.access(there, os.W_OK | os.X_OK):
            raise unwritable_error(target, "you may not write there")
        # The name of a folder that does not exist yet has to be one that a folder can have.
        target.exists()
        os.fsencode(target)
    return target


def folder(path: str) -> Path:
    """A folder to write into, made if need be."""
    target = can_make(path)
    with _naming_path(target):
        target.mkdir(parents=True, exist_ok=True)
    return target


def after_payment(error: DiscreetError, spent: str) -> DiscreetError:
    """The same error, for a failure after an answer was paid for."""
    same_error = copy(error)
    same_error.spent = spent
    return same_error
