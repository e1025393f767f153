# SPDX-License-Identifier: Apache-2.0
"""What a path means: one file, the files of a pattern, a place to write to, or an error that says
what to do instead.

**Guarantee.** No error of the operating system leaves here, and nothing inside a file is read. An
error names the path that was given, other files beside it, and no more; of an address only what
comes before `://`, because a password may follow.
"""

from __future__ import annotations

import errno
import re
import stat
from difflib import get_close_matches
from glob import glob
from os import W_OK, X_OK, PathLike, access
from pathlib import Path, PurePosixPath

from discreet.errors import BadParameter, EngineFailed

__all__ = [
    "ENDINGS",
    "as_path",
    "beside",
    "check_address",
    "expand_home",
    "files",
    "first_file",
    "one_file",
    "place_for",
    "short_path",
    "stem_of",
    "text_of",
    "unopened_error",
    "unwritable_error",
]

#: The endings of the files that can be opened as tables, the most common one first.
ENDINGS = (
    ".parquet",
    ".csv",
    ".tsv",
    ".pq",
    ".arrow",
    ".feather",
    ".ipc",
    ".duckdb",
    ".sqlite",
    ".sqlite3",
    ".db",
)
_READ = "files (.parquet, .csv, .tsv, .arrow, .duckdb, .sqlite), postgresql:// and frames of pandas, Polars, Arrow and Spark"
#: Two letters or more, so that C:/visits.csv is a path. A Path of an address has lost one of its
#: slashes.
_ADDRESS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+(?::[a-z]+)?):/(?P<rest>.*)", re.DOTALL)
#: Files that hold several tables, so that a pattern of them means nothing.
_WITH_TABLES = (".duckdb", ".sqlite", ".sqlite3", ".db")
_LONGEST = 80
_MOST_LOOKED_AT = 10_000
_WHY = "no row was read and nothing was charged."


def unopened_error(
    what: str, fix: str = "check the path, the address and the name of the table"
) -> EngineFailed:
    """The error for a source that cannot be opened."""
    return EngineFailed("DP802", what, why=_WHY, fix=fix)


def expand_home(path: str | Path) -> Path:
    """A path whose `~` is the home of whoever asks; a file that is really called so comes first."""
    target = Path(path)
    try:
        return target if _mode(target) or not str(target).startswith("~") else target.expanduser()
    except RuntimeError:
        # Nobody of that name.
        return target


def first_file(path: str | Path) -> Path:
    """A file, or the first of those that a pattern means."""
    return files(path)[0]


def files(path: str | Path) -> list[Path]:
    """A file, or all that a pattern means, in the order of their names."""
    check_address(path)
    target = expand_home(path)
    if stat.S_ISREG(_mode(target)):
        return [one_file(target)]
    matches = [Path(name) for name in sorted(_matches(target))]
    if matches and matches != [target] and all(stat.S_ISREG(_mode(each)) for each in matches):
        return [one_file(each) for each in matches]
    raise _missing_error(target, matches)


def one_file(path: Path) -> Path:
    """A file that is there, may be read and is not empty; anything else is refused with the reason."""
    if _size(path) == 0:
        raise unopened_error(
            f"{short_path(path)} is empty: it has no columns.", _instead(path, "write the file again")
        )
    return path


def text_of(path: str | Path) -> str:
    """The text of a small file that somebody wrote: a description, a release."""
    target = expand_home(path)
    _size(target)
    try:
        return target.read_text(encoding="utf-8")
    except (OSError, ValueError):
        pass
    raise unopened_error(
        f"{short_path(target)} is not UTF-8 text.",
        f"save {short_path(Path(target.name))} as UTF-8 text in an editor",
    )


def _size(path: Path) -> int:
    """How long a file is that may be read."""
    if not stat.S_ISREG(_mode(path)):
        raise _missing_error(path, [])
    try:
        with path.open("rb"):
            return path.stat().st_size
    except OSError:
        raise _forbidden_error(path) from None


def is_address(path: str | Path) -> bool:
    """Whether it is an address of something that is no file: `mysql://…`, and no folder is called
    so.
    """
    return _ADDRESS.fullmatch(str(path)) is not None and not _mode(Path(path))


def check_address(source: object) -> None:
    """Refuse an address of something that is no file, and say how its rows can be opened."""
    if not isinstance(source, str | Path):
        return
    match = _ADDRESS.fullmatch(str(source))
    if match is None or not is_address(source):
        return
    scheme, rest = match["scheme"].lower(), match["rest"].removeprefix("/")
    raise unopened_error(
        f"{scheme}:// cannot be opened as a table. What can: {_READ}.", _address_fix(scheme, rest)
    )


def _address_fix(scheme: str, rest: str) -> str:
    where = rest.partition("?")[0]
    name = PurePosixPath(where).name
    name = name if PurePosixPath(name).suffix.lower() in {*ENDINGS, ".toml"} else "visits.parquet"
    if scheme == "file":
        return f"dp.open({'/' + where.lstrip('/')!r}, protect=…)"
    if scheme in _DATABASES:
        return f"dp.open({where.removeprefix('/') or _DATABASES[scheme]!r}, table='visits', protect=…)"
    if "postgres" in scheme:
        user, at, host = where.rpartition("@")
        return f"dp.open('postgresql://{user.partition(':')[0]}{at}{host}', table='visits', protect=…)"
    if scheme in _DOWNLOADED:
        protection = "" if name.endswith(".toml") else ", protect=…"
        return f"copy it to this machine, then  dp.open({name!r}{protection})"
    return (
        "read the table with its own client, then  dp.open(frame, protect=…);  "
        "or save it as Parquet:  dp.open('visits.parquet', protect=…)"
    )


#: Databases that are files, and what one is called.
_DATABASES = {"sqlite": "visits.db", "duckdb": "visits.duckdb"}
#: What can be copied as a file.
_DOWNLOADED = {
    "http",
    "https",
    "ftp",
    "sftp",
    "s3",
    "s3a",
    "gs",
    "gcs",
    "az",
    "azure",
    "abfs",
    "abfss",
    "adl",
    "hdfs",
    "r2",
}


def beside(path: Path) -> str:
    """The file that was probably meant, or what to look at."""
    folder, name = short_path(path.parent), short_path(Path(path.name))
    if not stat.S_ISDIR(_mode(path.parent)):
        return f"give the whole path of {name}: there is no folder {folder}"
    there = [each for each in _list_folder(path.parent) if stat.S_ISREG(_mode(each))]
    known = [each.name for ending in (*ENDINGS, ".toml") for each in there if each.suffix.lower() == ending]
    same = [other for other in known if Path(other).suffix.lower() == path.suffix.lower()]
    alike = [other for other in known if Path(other).stem == path.name.partition(".")[0]]
    near = get_close_matches(path.name, same, n=1, cutoff=0.8) or alike
    near = near or get_close_matches(path.name, known, n=1, cutoff=0.7)
    if near:
        return f"is  {path.with_name(near[0])}  meant?"
    return f"give the whole path of {name}" + (f"; {folder} has  {'  '.join(known[:5])}" if known else "")


def is_folder(target: Path) -> bool:
    """Whether there is a folder; False for a path that no folder can have."""
    try:
        return target.is_dir()
    except (OSError, ValueError):
        return False


def _missing_error(target: Path, matches: list[Path]) -> EngineFailed:
    """Why there is no file, as far as the operating system tells."""
    named, mode = short_path(target), _mode(target)
    if "\0" in str(target) or not _can_be_encoded(str(target)):
        plain = "".join(sign for sign in str(target) if sign.isprintable()) or "visits.parquet"
        return unopened_error(
            f"{named} cannot be the name of a file: it has a sign that no name has.",
            f"dp.open({plain!r}, protect=…)",
        )
    if stat.S_ISDIR(mode):
        return unopened_error(f"{named} is a folder, and not a file.", _inside(target))
    if stat.S_ISLNK(mode):
        return unopened_error(
            f"{named} is a link to a file that is not there.",
            _instead(target, "put the file back, or make the link again"),
        )
    if mode:
        return unopened_error(
            f"{named} is a pipe or a device, and not a file.", _instead(target, "save the rows as a file")
        )
    if matches:
        return unopened_error(
            f"{named} means folders as well as files.", _inside(Path(*_without_pattern(target)))
        )
    reason = _refusal(target)
    if reason == errno.ENAMETOOLONG:
        return unopened_error(f"{named} is longer than a path can be.", "give the path of a file that exists")
    if reason in {errno.EACCES, errno.EPERM}:
        return _forbidden_error(target)
    return unopened_error(f"there is no file {named}.", beside(target))


def _forbidden_error(target: Path) -> EngineFailed:
    named = short_path(target)
    return unopened_error(
        f"{named} may not be read by this user.", f"chmod u+r {named}   or ask whoever owns it or its folder"
    )


def _inside(folder: Path) -> str:
    """A pattern that means some files of a folder and nothing else."""
    shallow = _list_folder(folder)
    for pattern, there in (("*", shallow), ("**/*", _below(shallow))):
        for ending in ENDINGS:
            same = [each for each in there if each.name.endswith(ending) and not each.name.startswith(".")]
            if same and all(stat.S_ISREG(_mode(each)) for each in same):
                example = same[0] if ending in _WITH_TABLES else folder / f"{pattern}{ending}"
                return f"dp.open({str(example)!r}, protect=…)"
    return f"name a file: {short_path(folder)} has none that can be opened ({', '.join(ENDINGS)})"


def _below(folders: list[Path]) -> list[Path]:
    """Everything below some folders; nothing if that is too much to look at."""
    below_all, waiting = list(folders), list(folders)
    while waiting and len(below_all) < _MOST_LOOKED_AT:
        target = waiting.pop()
        below = _list_folder(target) if stat.S_ISDIR(_mode(target)) and not target.is_symlink() else []
        below_all += below
        waiting += below
    return [] if waiting else sorted(below_all)


def _instead(target: Path, otherwise: str) -> str:
    """Another file beside it, if one has nearly the same name; or what is to be done."""
    near = beside(target)
    return near if near.startswith("is ") and f"  {target}  " not in near else otherwise


def _without_pattern(target: Path) -> list[str]:
    """The parts of a path before the first that is a pattern."""
    parts = list(target.parts)
    first = next((at for at, part in enumerate(parts) if re.search(r"[*?\[]", part)), len(parts))
    return parts[:first] or ["."]


def _matches(pattern: Path) -> list[str]:
    try:
        return glob(str(pattern), recursive=True)  # noqa: PTH207 - it may be absolute
    except (OSError, ValueError, re.error, RecursionError):
        return []


def _list_folder(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except (OSError, ValueError):
        return []


def _mode(target: Path) -> int:
    """The mode of what is there; of a link that leads nowhere that of the link itself; 0 where
    there is nothing to see.
    """
    for look in (target.stat, target.lstat):
        try:
            return look().st_mode
        except (OSError, ValueError):
            continue
    return 0


def _refusal(target: Path) -> int:
    """Why nothing can be seen there."""
    try:
        target.lstat()
    except OSError as error:
        return error.errno or 0
    except ValueError:
        return 0
    return 0


def _can_be_encoded(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def short_path(path: str | Path) -> str:
    """A path for a message: on one line, printable, not too long; of an address only its beginning.

    >>> short_path("mysql://ana:secret@host/clinic")
    'mysql://…'
    """
    address = _ADDRESS.fullmatch(str(path))
    if address is not None:
        return f"{address['scheme']}://…"
    text = "".join(sign if sign.isprintable() else "?" for sign in str(path))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}…{text[-_LONGEST // 2 :]}"


# --- places to write to ---------------------------------------------------------------------------


def as_path(path: str | Path, example: str = "answer.csv") -> Path:
    """The path that was passed; `example` shows one where something else was."""
    if isinstance(path, str | PathLike):
        return Path(path)
    raise BadParameter(
        "DP104",
        f"a path is a text or a Path, not {type(path).__name__}.",
        why="the result needs a file to be written to.",
        fix=f'"{example}"',
    )


def place_for(path: str | Path, example: str = "answer.csv") -> Path:
    """A place for a file, in a folder that exists and may be written into; nothing is written yet."""
    target = expand_home(as_path(path, example))
    mode, folder = _mode(target), _mode(target.parent)
    if _ADDRESS.fullmatch(str(path)) and not folder:
        raise unwritable_error(path, "it is an address, not a file")
    if not target.name or stat.S_ISDIR(mode):
        raise unwritable_error(path, "it is a folder")
    if "\0" in str(target) or not _can_be_encoded(str(target)) or _refusal(target) == errno.ENAMETOOLONG:
        raise unwritable_error(path, "it is not a valid file name")
    if not stat.S_ISDIR(folder) or not access(target.parent, W_OK | X_OK):
        raise unwritable_error(path, "there is no such folder, or it is not yours")
    return target


def stem_of(path: str | Path, otherwise: str) -> str:
    """The name of a file without its ending, to be proposed with another one."""
    stem = "".join(sign for sign in Path(path).stem if sign.isprintable())
    is_name = 0 < len(stem) <= _LONGEST and not _ADDRESS.fullmatch(str(path)) and stem not in {"..", "~"}
    return stem if is_name else otherwise


def unwritable_error(path: str | Path, reason: str) -> BadParameter:
    """The error for a place that cannot be written."""
    name = "".join(sign for sign in Path(path).name if sign.isprintable())
    name = name if 0 < len(name) <= _LONGEST and not _ADDRESS.fullmatch(str(path)) else "answer.csv"
    return BadParameter(
        "DP102",
        f"{short_path(path)} cannot be written: {reason}.",
        why="the result needs a file to be written to.",
        fix=f"{name}  in a folder that exists and is yours",
    )
