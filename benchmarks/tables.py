# SPDX-License-Identifier: Apache-2.0
"""Private tables against those of other libraries: time, memory, and how far the answers are from the truth.

    python benchmarks/tables.py                                 # five questions, 1e6 rows, everybody (half an hour)
    python benchmarks/tables.py --rows 1e6 1e7                  # two sizes (hours: some of them take a while)
    python benchmarks/tables.py --rows 1e8                      # from 1e8 on, only those that live in DuckDB
    python benchmarks/tables.py --only Q1 --libraries opendp    # what matches these patterns
    python benchmarks/tables.py --no-peers                      # discreet and the queries without privacy
    python benchmarks/tables.py --write                         # and keep the tables in benchmarks/RESULTS.md

Each (library, question) runs in a process of its own, in the environment of that library, which is made on first use;
the data are made once. Every user is protected with all rows, 10 of which count, at ε = 1 for a whole question.
What fails or takes too long is printed as such. The files in benchmarks/orders say what is asked, and how.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "orders"), str(HERE / "peers")]

import environments  # noqa: E402
import pages  # noqa: E402
import report  # noqa: E402
from judge import Measured, Result  # noqa: E402
from libraries import LIBRARIES, Library  # noqa: E402
from questions import QUESTIONS, Question  # noqa: E402

HUGE = 100_000_000  # rows from which on only those are asked that can be expected to answer
OTHER = {"Q3": "Q1"}  # what is asked before a question that comes with another grouping; Q3 before all others


def main() -> None:
    """Ask, print the tables, and keep them if told to."""
    options = _options()
    results: list[Result] = []
    # An interrupted run still prints what it has.
    with suppress(KeyboardInterrupt):
        for rows in options.rows:
            path = _data(rows)
            for question in QUESTIONS.values():
                if re.search(options.only, question.key):
                    results.append(Result(question, rows))
                    for library in _asked(options, rows):
                        results[-1].measured.append(_measured(library, question, path, options))
    command = f"python benchmarks/tables.py {shlex.join(sys.argv[1:])}".strip()
    lines = [*report.heading(command), "", *pages.page([one for one in results if one.measured], options)]
    print("\n".join(lines))
    if options.write:
        report.replace_section(HERE / "RESULTS.md", "Tables", lines)


def _data(rows: int) -> Path:
    """The file, made in a process of its own: this one stays small."""
    command = [str(environments.python_of("discreet")), str(HERE / "orders" / "data.py"), str(rows)]
    return Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())


def _asked(options: argparse.Namespace, rows: int) -> Iterator[Library]:
    yield LIBRARIES[0]  # the truth
    for library in LIBRARIES[1:]:
        peer = library.environment != "discreet"
        too_much = rows >= HUGE and not library.huge
        if re.search(options.libraries, library.name) and not (peer and options.no_peers) and not too_much:
            yield library


def _measured(library: Library, question: Question, path: Path, options: argparse.Namespace) -> Measured:
    print(f"{question.key}, {path.parent.name} rows: {library.name} …", file=sys.stderr, flush=True)
    variant = ("--variant", library.variant)
    repeats = ("--repeats", str(options.repeats), "--seconds", str(options.seconds))
    found = _run(library, question, path, options, *variant, *repeats)
    if "answers" not in found:
        trouble = found.get("unsupported") or f"**failed**: {found['error']}"
        return Measured(library, trouble=trouble.replace("|", "/"))
    regrouped = {}
    if library.keeps:
        after = ("--after", OTHER.get(question.key, "Q3"))
        regrouped = _run(library, question, path, options, *variant, *after)
    return Measured(
        library,
        first=tuple(found["first"]),
        later=found["later"] and tuple(found["later"]),
        regrouped=tuple(regrouped["later"]) if "later" in regrouped else None,
        megabytes=found["megabytes"],
        answers=found["answers"],
    )


def _run(library: Library, question: Question, path: Path, options: argparse.Namespace, *more: str) -> dict:
    """One process, one question; what goes wrong comes back as {"error": …}."""
    try:
        python = environments.python_of(library.environment)
    except (environments.CannotInstall, OSError) as error:
        return {"error": str(error)}
    script = str(HERE / "orders" / "measure.py")
    command = [str(python), script, library.module, question.key, str(path), *more]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    process = subprocess.Popen(command, **pipes)
    try:
        output, complaints = process.communicate(timeout=options.limit)
    except subprocess.TimeoutExpired:
        return {"error": f"time-out, {options.limit:.0f} s"}
    finally:
        if process.poll() is None:  # too slow, or this run was interrupted
            os.killpg(process.pid, signal.SIGKILL)  # and all that it started: it leads a group of its own
            process.wait()
    if process.returncode:
        reason = (complaints.strip().splitlines() or [f"exit status {process.returncode}"])[-1]
        return {"error": reason[:160]}
    return json.loads(output.strip().splitlines()[-1])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=_count, nargs="+", default=[1_000_000], help="sizes of the table")
    parser.add_argument("--only", default="", metavar="PATTERN", help="questions whose key matches this")
    parser.add_argument(
        "--libraries", default="", metavar="PATTERN", help="libraries whose name matches this"
    )
    parser.add_argument("--no-peers", action="store_true", help="discreet, and queries without privacy")
    parser.add_argument("--repeats", type=int, default=5, help="answers to judge a library by")
    parser.add_argument("--seconds", type=float, default=60.0, help="no further repeat after so many seconds")
    parser.add_argument("--limit", type=float, default=600.0, help="time-out of one process, seconds")
    parser.add_argument("--write", action="store_true", help="keep the tables in benchmarks/RESULTS.md")
    return parser.parse_args()


def _count(text: str) -> int:
    return int(float(text))


if __name__ == "__main__":
    main()
