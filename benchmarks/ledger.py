# SPDX-License-Identifier: Apache-2.0
"""The ledger measured: what a charge costs, and whether anything is lost when processes race and are killed.

    python benchmarks/ledger.py                            # a file and a server of our own, 64 processes, 10,000 charges each
    python benchmarks/ledger.py --charges 1000             # fewer
    python benchmarks/ledger.py --verify --rows 5000       # only how long a long ledger takes to verify; quick
    python benchmarks/ledger.py --write                    # and keep the tables in benchmarks/RESULTS.md

Each process charges until the limit refuses, and writes down every receipt as soon as it has it. Meanwhile processes are
killed (SIGKILL) at random times, and replaced. At the end: exactly as much was spent as there are charges in the book,
every receipt that was written down is in it, and the total is the limit, and not more.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE / "peers")]

import report as tables  # noqa: E402

from discreet import privacy  # noqa: E402
from discreet.errors import OverBudget  # noqa: E402
from discreet.ledger import Asker, Ledger, Limit, chain  # noqa: E402
from tests.ledger.workers import writing  # noqa: E402
from tests.postgres import missing, server  # noqa: E402

PIECE = privacy.pure(0.001)
ALONE = 300  # charges of one process that nobody disturbs


def main() -> None:
    options = _options()
    lines = []
    for line in _page(options):
        print(line, flush=True)
        lines.append(line)
    if options.write:
        tables.replace_section(HERE / "RESULTS.md", "Ledger", lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--charges", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=64)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--rows", type=int, default=100_000, help="rows of the ledgers that are verified")
    parser.add_argument("--verify", action="store_true", help="measure nothing but the verification")
    parser.add_argument("--folder", help="where the file lies (default: the folder for temporary files)")
    parser.add_argument("--write", action="store_true")
    return parser.parse_args()


def _page(options: argparse.Namespace) -> Iterator[str]:
    yield from tables.heading(f"python benchmarks/ledger.py {shlex.join(sys.argv[1:])}".strip())
    yield from () if options.verify else _charging(options)
    yield from _verifying(options)


def _charging(options: argparse.Namespace) -> Iterator[str]:
    yield ""
    yield f"One process, {ALONE} charges, milliseconds. The last column is a bare INSERT with the same durability."
    yield ""
    yield "| store | p50 | p99 | charges/s | × bare INSERT |"
    yield "|---|--:|--:|--:|--:|"
    yield _alone("memory (no disk: the arithmetic)", ":memory:", None)
    for name, place, bare in _places(options.folder):
        with place() as where:
            yield _alone(name, where, bare)
    yield ""
    yield f"{options.processes} processes on one ledger, {options.kills} of them killed, {options.charges:,} charges fit:"
    yield ""
    yield "| store | charges/s | p50 ms | p99 ms | longest ms | killed | in the book | receipts | verified in s |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for name, place, _ in _places(options.folder):
        with place() as where:
            yield _together(name, where, options)
    yield ""
    yield "Checked each time: total = sum of the charges in the book = the limit; every receipt is in the book; chain intact."


def _places(folder: str | None) -> Iterator[tuple[str, Callable, Callable[[str], Callable[[], object]]]]:
    @contextmanager
    def file() -> Iterator[str]:
        with tempfile.TemporaryDirectory(dir=folder) as inside:
            yield str(Path(inside) / "a.ledger")

    yield "SQLite", file, _bare_sqlite
    if reason := missing():
        print(reason, file=sys.stderr)
    else:
        yield "PostgreSQL", lambda: server(fsync="on"), _bare_postgres


def _alone(name: str, where: str, bare: Callable[[str], Callable[[], object]] | None) -> str:
    with Ledger(where, limit=Limit.filter(epsilon=10 * ALONE)) as ledger:
        ledger.charge(PIECE)
        insert = bare(where) if bare else None
        times, peer = [], []
        for _ in range(ALONE):  # by turns, so that both meet the same disk
            times.append(_timed(lambda: ledger.charge(PIECE, question="how many?")))
            if insert is not None:
                peer.append(_timed(insert))
    ratio = f"{_middle(times) / _middle(peer):.2f}" if peer else ""
    return (
        f"| {name} | {_ms(_middle(times))} | {_ms(_late(times))} | {len(times) / sum(times):.0f} | {ratio} |"
    )


def _bare_sqlite(where: str) -> Callable[[], object]:
    connection = sqlite3.connect(f"{where}.bare", isolation_level=None)
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, body TEXT)")
    return lambda: connection.execute("INSERT INTO rows (body) VALUES (?)", ("x" * 1000,))


def _bare_postgres(where: str) -> Callable[[], object]:
    import psycopg

    connection = psycopg.connect(where, autocommit=True)
    connection.execute("CREATE TABLE rows (number bigserial PRIMARY KEY, body text)")
    return lambda: connection.execute("INSERT INTO rows (body) VALUES (%s)", ("x" * 1000,))


def _timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


# --- every row recomputed ------------------------------------------------------------------------------------

GAUSSIAN = privacy.gaussian(noise=1e5)
LIFE = Limit.filter(epsilon=5, delta=1e-5)
HALVES = {"ana": 0.5, "bo": 0.5}
VERIFIED = (
    ("ε", "pure", Limit.filter(epsilon=1), privacy.pure(1e-6), False),
    ("ε", "pure, with answers", Limit.filter(epsilon=1), privacy.pure(1e-6), True),
    ("(ε, δ)", "pure", Limit.filter(epsilon=1, delta=1e-6), privacy.pure(1e-6), False),
    ("(ε, δ)", "Laplace", Limit.filter(epsilon=1, delta=1e-6), privacy.laplace(scale=1e6), False),
    ("(ε, δ)", "Gaussian", Limit.filter(epsilon=1, delta=1e-6), GAUSSIAN, False),
    ("(ε, δ)", "Gaussian, with answers", Limit.filter(epsilon=1, delta=1e-6), GAUSSIAN, True),
    ("ρ", "Gaussian", Limit.filter(rho=1), GAUSSIAN, False),
    ("μ", "Gaussian", Limit.filter(mu=1), GAUSSIAN, False),
    ("plan", "Gaussian", Limit.plan(200_000 * GAUSSIAN), GAUSSIAN, False),
    ("odometer", "Gaussian", Limit.odometer(delta=1e-6), GAUSSIAN, False),
    ("ε, each month", "pure", Limit.filter(epsilon=1, window="month"), privacy.pure(1e-6), False),
    (
        "(ε, δ), each month and for life",
        "Gaussian",
        Limit.filter(epsilon=1, delta=1e-6, window="month", lifetime=LIFE),
        GAUSSIAN,
        False,
    ),
    (
        "(ε, δ), allocations",
        "Gaussian",
        Limit.filter(epsilon=1, delta=1e-6, analysts=HALVES),
        GAUSSIAN,
        False,
    ),
    (
        "the same, each month and for life",
        "Gaussian",
        Limit.filter(epsilon=1, delta=1e-6, window="month", lifetime=LIFE, analysts=HALVES),
        GAUSSIAN,
        False,
    ),
)


def _verifying(options: argparse.Namespace) -> Iterator[str]:
    yield ""
    yield f"`Ledger.verify`, a file of {options.rows:,} rows and one more: CPU seconds, the least of three runs."
    yield ""
    yield "| limit | charges | CPU s | CPU s for 100,000 rows |"
    yield "|---|---|--:|--:|"
    for name, charges, limit, piece, answered in VERIFIED:
        with tempfile.TemporaryDirectory(dir=options.folder) as inside:
            took = _verified(Path(inside) / "a.ledger", limit, piece, options.rows, answered=answered)
        yield f"| {name} | {charges} | {took:.2f} | {took / options.rows * 100_000:.2f} |"


def _verified(file: Path, limit: Limit, piece: privacy.Guarantee, rows: int, *, answered: bool) -> float:
    with Ledger(file, limit=limit) as ledger:
        _filled(ledger, piece, rows, answered=answered)
        times = []
        for _ in range(3):
            begin = time.process_time()
            found = ledger.verify()
            times.append(time.process_time() - begin)
            assert found.intact, str(found)
            assert found.entries == rows + 1
    return min(times)


def _filled(ledger: Ledger, piece: privacy.Guarantee, rows: int, *, answered: bool) -> None:
    """The rows that so many charges would write, in one transaction: a confirmation of the disk for each takes hours."""
    limit, cost = ledger.limit, ledger.limit.cost(piece)
    said = {"guarantee": piece.to_json(), "cost": cost.to_dict(), "question": "how many?", "in_session": True}
    state, store = limit.start(), ledger._store  # noqa: SLF001 - what is measured is reading, not writing
    with writing(store):
        last = store.last()
        for number in range(1, rows + 1):
            if answered and number % 2 == 0:
                what = {"settles": number - 1, "answer": "[17]", "key": last.key}
                last = chain.next_row(last, "committed", time=chain.now(), state=state.to_dict(), **what)
            else:
                analyst = ("ana", "bo")[number % 2]
                state = limit.admit(state, cost, asker=Asker(analyst), now=chain.now())
                what = said | {"key": f"question {number}", "analyst": analyst}
                last = chain.next_row(last, "reserved", time=chain.now(), state=state.to_dict(), **what)
            store.append(last)


# --- many processes, killed ---------------------------------------------------------------------------------


def _together(name: str, where: str, options: argparse.Namespace) -> str:
    limit = Limit.filter(epsilon=Fraction(options.charges, 1000))
    Ledger(where, limit=limit).close()
    begin = time.perf_counter()
    told, killed = _race(where, options)
    took = time.perf_counter() - begin
    times = sorted(line["took"] for line in told)
    rows, verifying = _checked(where, told, limit)
    cells = [f"{rows / took:.0f}", _ms(_middle(times)), _ms(_late(times)), _ms(times[-1]), f"{killed}"]
    return f"| {name} | {' | '.join(cells)} | {rows:,} | {len(told):,} | {verifying:.1f} |"


def _race(where: str, options: argparse.Namespace) -> tuple[list[dict], int]:
    """Every receipt that was written down, and how many processes were killed."""
    reading, writing = os.pipe()
    running = {_worker(where, writing) for _ in range(options.processes)}
    due = sorted(random.sample(range(options.charges), min(options.kills, options.charges)))
    told: list[dict] = []
    killed = 0
    with os.fdopen(reading) as lines:
        try:
            while running:
                line = json.loads(lines.readline())
                if "number" in line:
                    told.append(line)
                elif line["end"] in running:  # and was not killed after it wrote this
                    running.discard(_ended(line["end"]))
                if due and len(told) > due[0]:
                    due.pop(0)
                    victim = random.choice(sorted(running))
                    running.discard(_killed(victim))
                    running.add(_worker(where, writing))
                    killed += 1
        finally:
            for left in running:
                _killed(left)
            os.close(writing)
        # a process that was killed may have left lines that nobody has read yet
        told += [line for line in map(json.loads, lines) if "number" in line]
    return told, killed


def _killed(process: int) -> int:
    os.kill(process, signal.SIGKILL)
    return _ended(process)


def _worker(where: str, writing: int) -> int:
    """Fork a process that charges until the limit refuses; each line that it writes is written whole or not at all."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        ledger = Ledger(where)
        while True:
            begin = time.perf_counter()
            try:
                receipt = ledger.charge(PIECE, question="how many?")
            except OverBudget:
                break
            line = {"number": receipt.number, "hash": receipt.hash, "took": time.perf_counter() - begin}
            os.write(writing, json.dumps(line).encode() + b"\n")
        code = 0
    except Exception:  # noqa: BLE001 - whatever it is, the parent has to hear of it
        traceback.print_exc()
    finally:
        os.write(writing, json.dumps({"end": os.getpid(), "code": code}).encode() + b"\n")
        os._exit(code)


def _ended(process: int) -> int:
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert status in {0, -signal.SIGKILL}, f"a process ended with {status}"
    return process


def _checked(where: str, told: list[dict], limit: Limit) -> tuple[int, float]:
    """How many charges are in the book, after everything was checked; and the seconds that a verification takes."""
    with Ledger(where) as ledger:
        book = {entry.number: entry.hash for entry in ledger.entries() if entry.kind == "reserved"}
        spent = ledger.spent["epsilon"]
        total = Fraction(limit.to_dict()["epsilon"])
        begin = time.perf_counter()
        found = ledger.verify()
        took = time.perf_counter() - begin
    assert found.intact, str(found)
    assert len({line["number"] for line in told}) == len(told), "a receipt was handed out twice"
    assert all(book.get(line["number"]) == line["hash"] for line in told), "a receipt is not in the book"
    assert spent == len(book) * Fraction(1, 1000), "the total is not the sum of the charges"
    assert spent == total, f"{spent} of {total} was spent"
    return len(book), took


def _middle(times: list[float]) -> float:
    return sorted(times)[len(times) // 2]


def _late(times: list[float]) -> float:
    return sorted(times)[int(0.99 * len(times))]


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.2f}"


if __name__ == "__main__":
    main()
