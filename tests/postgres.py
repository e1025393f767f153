# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server for tests: started on first use, on a Unix socket in a temporary folder, and ended with the tests.

    def test_something(postgres_dsn):          # one server for each test process, the database "postgres"
    def test_something(postgres_database):     # a fresh, empty database on that server, for this test alone

    with server() as dsn: ...                  # outside pytest; schema(dsn) is an empty schema in its database

Nothing listens on the network, and only the processes that were started here are ended. PostgreSQL refuses to run as
root; there it runs as the user `postgres` (or `nobody`). Where it is not installed the tests are skipped:
`scripts/postgres.sh` installs it.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.processes import PATIENCE


class NoPostgres(Exception):
    """Why this machine cannot run a server."""


@contextmanager
def server(**settings: str) -> Iterator[str]:
    """Run a server of our own; yields its address. Settings are those of postgresql.conf, `fsync="on"` for example.

    A test never loses power, so by default nothing is forced to disk.
    """
    programs, user = _programs(), _user()
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        _initialise(programs, folder, user)
        process = _start(programs, folder, user, {"fsync": "off", **settings})
        try:
            dsn = f"postgresql://postgres@/postgres?host={quote(str(folder), safe='')}"
            _wait(process, folder, dsn)
            yield dsn
        finally:
            _stop(process)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def database(dsn: str, encoding: str = "UTF8") -> Iterator[str]:
    """A new, empty database on the server; dropped at the end."""
    import psycopg

    name = f"test_{os.getpid()}_{next(_NUMBERS)}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'")
    try:
        yield dsn.replace("@/postgres?", f"@/{name}?")
    finally:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def schema(dsn: str) -> str:
    """The address of a new, empty schema in that database: much cheaper than a database, for tests that need no more."""
    import psycopg

    name = f"s_{os.getpid()}_{next(_NUMBERS)}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{dsn}&options=-csearch_path%3D{name}"


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    """The address of a server that is shared by the tests of this process."""
    pytest.importorskip("psycopg")
    if reason := missing():
        pytest.skip(reason)
    with server() as dsn:
        yield dsn


@pytest.fixture
def postgres_database(postgres_dsn: str) -> Iterator[str]:
    """The address of a database that belongs to this test."""
    with database(postgres_dsn) as dsn:
        yield dsn


def missing() -> str:
    """Why this machine cannot run a server; empty if it can."""
    try:
        _programs(), _user()
    except NoPostgres as reason:
        return str(reason)
    return ""


_NUMBERS = itertools.count()


def _programs() -> Path:
    """The folder with `initdb` and `postgres`: on the path, or where Debian keeps it."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise NoPostgres("PostgreSQL is not installed: run scripts/postgres.sh")


def _user() -> pwd.struct_passwd | None:
    """Whom to run as: ourselves, or an unprivileged user if we are root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise NoPostgres("PostgreSQL does not run as root, and there is no user postgres or nobody")


def _as(user: pwd.struct_passwd | None) -> dict[str, object]:
    return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def _initialise(programs: Path, folder: Path, user: pwd.struct_passwd | None) -> None:
    words = [
        programs / "initdb",
        "-D",
        folder / "data",
        "-U",
        "postgres",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--no-sync",
    ]
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, cwd=folder, env=_environment(), **_as(user)
    )
    assert done.returncode == 0, done.stderr


def _start(
    programs: Path, folder: Path, user: pwd.struct_passwd | None, settings: dict[str, str]
) -> subprocess.Popen[bytes]:
    given = {
        "listen_addresses": "",
        "unix_socket_directories": str(folder),
        "max_connections": "120",
        "shared_buffers": "16MB",
        **settings,
    }
    words = [programs / "postgres", "-D", folder / "data"]
    for name, value in given.items():
        words += ["-c", f"{name}={value}"]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            words,
            stdout=log,
            stderr=log,
            cwd=folder,
            env=_environment(),
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
            **_as(user),
        )


def _end_with_parent() -> None:
    """Ask the kernel to stop the server (SIGINT: fast shutdown) if the tests are killed."""
    death_signal = 1  # PR_SET_PDEATHSIG
    ctypes.CDLL(None).prctl(death_signal, signal.SIGINT)


def _wait(process: subprocess.Popen[bytes], folder: Path, dsn: str) -> None:
    import psycopg

    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        if (folder / ".s.PGSQL.5432").exists():
            with suppress(psycopg.OperationalError):
                psycopg.connect(dsn, connect_timeout=60).close()
                return
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
    raise AssertionError((folder / "log").read_text(encoding="utf-8", errors="replace"))


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)  # fast shutdown: ends connections, then the server
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
