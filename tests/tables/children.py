# SPDX-License-Identifier: Apache-2.0
"""Forks with a data set that is open: run as  python -m tests.tables.children SOURCE FOLDER [ADDRESS].

It runs in a process of its own, so that the fork copies nothing of pytest. The parent opens a data set and asks; a child asks
something that the parent never asked, and says what came of it; then the parent asks once more. A child that does not end
is killed, and that is said.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

import discreet as dp
from discreet.errors import DiscreetError
from tests.processes import PATIENCE, run_module

ROWS = 20_000
TOTAL, BY_WARD = "SELECT COUNT(*) FROM visits", "SELECT ward, COUNT(*) FROM visits GROUP BY ward"
WITH_DAYS = "SELECT ward, SUM(days) AS days FROM visits GROUP BY ward"


def run(source: str, folder: Path, address: str = "") -> dict[str, Any]:
    """What the parent and its child say of a source."""
    done = run_module("tests.tables.children", source, str(folder), address)
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def visits() -> pa.Table:
    people = [row // 4 for row in range(ROWS)]
    return pa.table(
        {
            "patient_id": people,
            "ward": ["abc"[one % 3] for one in people],
            "days": [row % 61 for row in range(ROWS)],
        }
    )


def _duckdb_file(folder: Path) -> Path:
    place = folder / "visits.duckdb"
    with duckdb.connect(str(place)) as made:
        made.register("rows", visits())
        made.execute("CREATE TABLE visits AS SELECT * FROM rows")
    return place


def _duckdb_connection(folder: Path) -> Any:
    return duckdb.connect(str(_duckdb_file(folder))), "visits"


def _sqlite(folder: Path) -> Path:
    import sqlite3

    place = folder / "visits.sqlite"
    with sqlite3.connect(place) as made:
        made.execute("CREATE TABLE visits (patient_id INTEGER, ward TEXT, days INTEGER)")
        made.executemany(
            "INSERT INTO visits VALUES (?, ?, ?)", zip(*visits().to_pydict().values(), strict=True)
        )
    made.close()
    return place


def _parquet(folder: Path) -> Path:
    pq.write_table(visits(), folder / "visits.parquet")
    return folder / "visits.parquet"


def _csv(folder: Path) -> Path:
    visits().to_pandas().to_csv(folder / "visits.csv", index=False)
    return folder / "visits.csv"


def _arrow_file(folder: Path) -> Path:
    with pa.ipc.new_file(folder / "visits.arrow", visits().schema) as file:
        file.write_table(visits())
    return folder / "visits.arrow"


SOURCES: dict[str, Callable[[Path], Any]] = {
    "parquet": _parquet,
    "csv": _csv,
    "arrow file": _arrow_file,
    "arrow": lambda _: visits(),
    "pandas": lambda _: visits().to_pandas(),
    "polars": lambda _: pl.DataFrame(visits()),
    "polars lazy": lambda _: pl.DataFrame(visits()).lazy(),
    "parquet in polars": _parquet,
    "duckdb file": _duckdb_file,
    "duckdb connection": _duckdb_connection,
    "sqlite": _sqlite,
    "postgres": lambda _: None,
}


def opened(source: str, place: Any) -> dp.Dataset:
    integer = {} if source == "postgres" else {"patient_id": dp.column("integer")}
    return dp.open(
        place,
        name="visits",
        table="visits" if source == "postgres" or "file" in source or source == "sqlite" else "",
        protect=dp.each("patient_id", at_most=4),
        columns={
            "ward": dp.column(values=("a", "b", "c")),
            "days": dp.column("integer", bounds=(0, 60)),
            **integer,
        },
        engine="polars" if source == "parquet in polars" else None,
    )


def outcome(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except DiscreetError as error:
        return {"code": error.code, "spent": error.spent}


def asked(session: dp.Session, text: str) -> Any:
    before = session.ledger.spent["epsilon"]
    found = outcome(lambda: [row[-3] for row in session.sql(text, epsilon=10.0).rows()])
    return {"found": found, "paid": str(session.ledger.spent["epsilon"] - before)}


def child(work: Callable[[], Any], *, ends: Callable[[int], Any]) -> Any:
    """What `work` returns in a forked child, which then ends in that way; or that it never ended."""
    out, into = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(out)
        signal.alarm(int(PATIENCE / 2))
        with os.fdopen(into, "w") as told:
            json.dump(outcome(work), told)
        ends(0)
    os.close(into)
    with os.fdopen(out) as heard:
        said = heard.read()
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return {"said": json.loads(said) if said else None, "ended": code}


def main(source: str, folder: str, address: str = "") -> None:
    place = address if source == "postgres" else SOURCES[source](Path(folder))
    data = opened(source, place)
    session = dp.Session(data, dp.Limit.filter(200.0), Path(folder) / "visits.ledger")
    report: dict[str, Any] = {"before": asked(session, TOTAL)}
    # one that ends like a program, with everything that is called at its end, and one that never does
    report["quiet"] = child(lambda: None, ends=sys.exit)
    report["child"] = child(lambda: [asked(session, BY_WARD), data.is_current()], ends=sys.exit)
    report["after"] = [asked(session, TOTAL), asked(session, WITH_DAYS)]
    # what the fix of a refusal says: open it in the child
    again = lambda: asked(dp.Session(opened(source, place), ledger=session.ledger), WITH_DAYS)  # noqa: E731
    report["again"] = child(again, ends=os._exit)
    report["current"] = data.is_current()
    data.close()
    print(json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])
