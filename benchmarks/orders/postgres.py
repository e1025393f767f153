# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server of our own, a child of this process, with the orders loaded; for those who need a data base."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import time
from pathlib import Path

import psycopg2
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

_COLUMNS = "user_id bigint, region text, product text, amount double precision"
_SETTINGS = {"listen_addresses": "", "shared_buffers": "512MB", "work_mem": "256MB", "fsync": "off"}
_PATIENCE = 60.0  # seconds that the server may take to wake up


def start(path: str) -> None:
    """The server runs, and has the rows, before anything is measured."""
    folder = Path(path).resolve().parent / "postgres"
    account = _account()
    if not (folder / "loaded").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        if account:
            shutil.chown(folder, account, account)
        _run("initdb", "-D", str(folder / "base"), "--username=benchmark", "--auth=trust")
    settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
    command = [_program("postgres"), "-D", str(folder / "base"), "-k", str(folder), *settings]
    server = subprocess.Popen(command, user=account, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    atexit.register(_stop, server)
    _wait(path)
    if not (folder / "loaded").exists():
        _load(path)
        (folder / "loaded").touch()


def connected(path: str) -> psycopg2.extensions.connection:
    folder = Path(path).resolve().parent / "postgres"
    return psycopg2.connect(host=str(folder), user="benchmark", dbname="postgres")


def _load(path: str) -> None:
    text = Path(path).with_suffix(".csv")
    pacsv.write_csv(pq.read_table(path), text, pacsv.WriteOptions(include_header=False))
    with connected(path) as connection, connection.cursor() as cursor, text.open(encoding="utf-8") as lines:
        cursor.execute(f"CREATE TABLE orders ({_COLUMNS})")
        cursor.copy_expert("COPY orders FROM STDIN (FORMAT csv)", lines)
    text.unlink()
    connection.autocommit = True
    connection.cursor().execute("VACUUM ANALYZE orders")


def _wait(path: str) -> None:
    began = time.perf_counter()
    while True:
        try:
            connected(path).close()
        except psycopg2.OperationalError:
            if time.perf_counter() - began > _PATIENCE:
                raise
            time.sleep(0.1)
        else:
            return


def _stop(server: subprocess.Popen) -> None:
    server.terminate()
    server.wait()


def _account() -> str | None:
    """PostgreSQL refuses to run as root."""
    return "postgres" if os.getuid() == 0 else None


def _run(program: str, *arguments: str) -> None:
    command = [_program(program), *arguments]
    subprocess.run(command, user=_account(), check=True, capture_output=True)


def _program(name: str) -> str:
    """On the path, or where Debian hides it."""
    hidden = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = shutil.which(name) or (str(hidden[-1]) if hidden else None)
    if found is None:
        raise FileNotFoundError(f"PostgreSQL's {name} is not installed")
    return found
