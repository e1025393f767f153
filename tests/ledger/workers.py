# SPDX-License-Identifier: Apache-2.0
"""Processes that charge a ledger, and are killed: run as  python -m tests.ledger.workers TASK ARGUMENTS.

A task forks children and writes what happened as lines of JSON. It runs in a process of its own, so that the fork
copies nothing of pytest; a child writes each receipt with one `write`, as soon as it has it.
"""

from __future__ import annotations

import faulthandler
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from discreet import privacy
from discreet.errors import DiscreetError, OverBudget
from discreet.ledger import Charge, Ledger, Receipt
from discreet.ledger.opening import store_at
from discreet.ledger.postgres import PostgreSQL
from discreet.ledger.receipt import entry_of
from discreet.ledger.sqlite import SQLite
from discreet.ledger.store import Store
from tests.processes import PATIENCE, run_module

PIECE = privacy.pure(0.025)  # forty of these are 1
TINY = privacy.pure(1e-6)


def run(task: str, **arguments: Any) -> list[dict[str, Any]]:
    """What a task says, line by line."""
    done = run_module("tests.ledger.workers", task, json.dumps(arguments))
    return [json.loads(line) for line in done.stdout.splitlines()]


@contextmanager
def writing(store: Store) -> Iterator[None]:
    """The only writer, for as long as a test likes."""
    with store.lock:
        store.begin()
        try:
            yield
            store.run("COMMIT")
        finally:
            store.abandon()


def say(**what: Any) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


def child(work: Callable[[], None]) -> int:
    """Fork a process that does some work and ends; returns its number."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        work()
        code = 0
    except DiscreetError as error:
        say(error=error.code)
    except Exception:  # noqa: BLE001 - whatever it is, the exit code tells
        traceback.print_exc()
    finally:
        os._exit(code)


def wait(*processes: int) -> list[int]:
    """How each of them ended: an exit code, or the negative number of the signal that killed it."""
    return [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes]


# --- races ----------------------------------------------------------------------------------------------


def spend(ledger: Ledger, key: str | None = None) -> None:
    """Charge, draw and commit until the limit refuses."""
    while True:
        try:
            receipt = ledger.charge(PIECE, question="q", key=key)
        except OverBudget:
            return
        say(number=receipt.number, hash=receipt.hash)
        if key is not None:
            say(answer=ledger.commit(receipt, f"drawn by {os.getpid()}"))


def race(where: str, processes: int, key: str | None = None) -> None:
    """Each process opens the ledger for itself."""
    say(ended=wait(*[child(lambda: spend(Ledger(where), key)) for _ in range(processes)]))


#: Questions for which the candidates of a limit on (1, 1e-6) split δ differently: all, half, nine tenths, three quarters.
BEGINNINGS = (
    privacy.approximate(0.1, 1e-7),
    privacy.concentrated(0.001),
    privacy.approximate(0.125, 1.1e-7),
    privacy.pure(0.3),
)


def begin(where: str, processes: int) -> None:
    """Each process waits for the others, and then makes a first charge of its own; all price it before any is charged."""
    ready, go = os.pipe(), os.pipe()

    def work(number: int) -> None:
        ledger = Ledger(where)
        ledger.limit.cost(BEGINNINGS[number % len(BEGINNINGS)])
        os.write(ready[1], b"x")
        os.read(go[0], 1)
        try:
            ledger.charge(BEGINNINGS[number % len(BEGINNINGS)], question=str(number))
        except OverBudget:
            say(refused=number)

    children = [child(lambda number=number: work(number)) for number in range(processes)]  # type: ignore[misc]
    for _ in children:
        os.read(ready[0], 1)
    os.write(go[1], b"x" * processes)
    say(ended=wait(*children))


def triple(name: str) -> list[Charge]:
    """Three pieces that belong together."""
    return [Charge(PIECE, f"question {part}", key=f"{name}, part {part}") for part in range(3)]


def answered_together(ledger: Ledger, name: str) -> list[str | None]:
    """Charge three pieces together, draw, commit them together; what is shown."""
    found = ledger.charge_all(triple(name))
    say(charged=name, paid=[isinstance(one, Receipt) and one.cost is not None for one in found])
    due = [(one, f"drawn by {os.getpid()}, {n}") for n, one in enumerate(found) if isinstance(one, Receipt)]
    shown = iter(ledger.commit_all(due))
    return [next(shown) if isinstance(one, Receipt) else one.answer for one in found]


def race_together(where: str, processes: int, same: bool) -> None:  # noqa: FBT001 - read from JSON
    """Each process charges triples until the limit refuses: its own ones, or all of them the same."""

    def work(process: int) -> None:
        ledger = Ledger(where)
        for number in range(40):
            name = f"{number}" if same else f"{process}/{number}"
            try:
                shown = answered_together(ledger, name)
            except OverBudget:
                return
            say(name=name, shown=shown)

    say(ended=wait(*[child(lambda process=process: work(process)) for process in range(processes)]))


def inherit(where: str, processes: int) -> None:
    """The processes inherit a ledger that is in use."""
    ledger = Ledger(where)
    receipt = ledger.charge(PIECE)
    say(number=receipt.number, hash=receipt.hash)
    children = [child(lambda: spend(ledger)) for _ in range(processes)]
    spend(ledger)
    say(ended=wait(*children))


def forget(limit: dict[str, Any]) -> None:
    """A ledger in memory, used in a child."""
    from discreet.ledger import Limit

    ledger = Ledger(":memory:", limit=Limit.from_dict(limit))
    say(ended=wait(child(lambda: spend(ledger))), rows=len(ledger))


def make(where: str, processes: int, limit: dict[str, Any]) -> None:
    """The processes find no ledger, and each makes one."""
    from discreet.ledger import Limit

    def work() -> None:
        say(anchor=Ledger(where, limit=Limit.from_dict(limit)).anchor())

    say(ended=wait(*[child(work) for _ in range(processes)]))


def fork_in_a_transaction(where: str) -> None:
    """One thread is in the middle of a transaction while another forks; the child charges."""
    ledger = Ledger(where)
    entered, forked, release = threading.Event(), threading.Event(), threading.Event()

    def hold() -> None:
        with writing(ledger._store):
            entered.set()
            release.wait()

    def fork() -> None:
        process = child(lambda: say(number=ledger.charge(PIECE).number))
        forked.set()
        say(ended=wait(process))

    holder, forker = threading.Thread(target=hold), threading.Thread(target=fork)
    holder.start()
    entered.wait()
    forker.start()
    say(forked_inside=forked.wait(0.3))
    release.set()
    holder.join()
    forker.join()


def fork_storm(where: str, others: list[str], forks: int) -> None:  # noqa: C901 - one storm
    """Threads fork, in three ways, while others charge and open ledgers; every child charges one of them."""
    faulthandler.dump_traceback_later(PATIENCE, exit=True)  # whoever waits for ever is shown, and ends
    ledgers = [Ledger(place) for place in (where, *others)]
    over = threading.Event()
    ended: list[int] = []

    def fork_by_hand(number: int) -> None:
        for _ in range(forks):
            ended.extend(wait(child(lambda: say(number=ledgers[number % len(ledgers)].charge(TINY).number))))

    def fork_by_multiprocessing(number: int) -> None:
        for _ in range(forks):
            process = multiprocessing.get_context("fork").Process(
                target=lambda: ledgers[number % len(ledgers)].charge(TINY)
            )
            process.start()
            process.join()
            ended.append(process.exitcode or 0)

    def fork_by_subprocess(_: int) -> None:
        for _ in range(forks):
            done = subprocess.run(["true"], preexec_fn=lambda: None, check=False)
            ended.append(done.returncode)

    def charge(number: int) -> None:
        while not over.is_set():
            ledgers[number % len(ledgers)].charge(TINY)
            Ledger(where).close()

    ways = (fork_by_hand, fork_by_multiprocessing, fork_by_subprocess)
    forkers = [threading.Thread(target=way, args=(n,)) for n in range(3) for way in ways]
    chargers = [threading.Thread(target=charge, args=(n,)) for n in range(2)]
    for thread in (*forkers, *chargers):
        thread.start()
    for thread in forkers:
        thread.join()
    over.set()
    for thread in chargers:
        thread.join()
    say(ended=ended, intact=[ledger.verify().intact for ledger in ledgers])


def fork_inside(where: str) -> None:
    """Forks from inside of a transaction, as a signal handler can, while another thread forks."""
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    ledger = Ledger(where)
    inside, other = threading.Event(), threading.Event()

    def fork_beside() -> None:
        inside.wait()
        other.set()
        say(beside=wait(child(lambda: say(number=ledger.charge(TINY).number))))

    def work() -> None:
        inside.set()
        other.wait()
        say(within=wait(child(lambda: None)))
        ledger._store.last()

    thread = threading.Thread(target=fork_beside)
    thread.start()
    try:
        ledger._store.write(work)
    except DiscreetError as error:
        say(error=error.code)
    thread.join()
    say(rows=len(ledger), again=ledger.charge(TINY).number, intact=ledger.verify().intact)


def draw(processes: int) -> None:
    """Parent and children draw noise from what they have in common."""
    from discreet.mechanisms import Laplace

    laplace = Laplace(epsilon=0.01, sensitivity=1)
    laplace(0)  # the buffer is filled before the forks

    def work() -> None:
        say(drawn=[int(laplace(0).value * 1000) for _ in range(8)])

    children = [child(work) for _ in range(processes)]
    work()
    say(ended=wait(*children))


# --- kills ------------------------------------------------------------------------------------------------


def killing(base: type[Store]) -> type[Store]:
    """A store that kills its own process before or after one of its statements."""

    class Killing(base):  # type: ignore[misc, valid-type]
        left: int | None = None

        def execute(self, sql: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
            self.tick()
            found = super().execute(sql, values)
            self.tick()
            return found

        def tick(self) -> None:
            if self.left is not None:
                self.left -= 1
                if self.left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

    return Killing


def crash(where: str) -> None:
    """Kill a charge and its commit at every point, one child for each."""
    for point in _until_survived(where):
        with Ledger(where) as ledger:
            kinds = [entry.kind for entry in ledger.entries()]
            found = ledger.verify()
            say(
                point=point,
                intact=found.intact,
                reserved=kinds.count("reserved"),
                committed=kinds.count("committed"),
                spent=str(ledger.spent["epsilon"]),
            )


def crash_together(where: str) -> None:
    """Kill three charges and their commits at every point; then ask again with the same keys."""

    def work(ledger: Ledger, point: int) -> None:
        say(point=point, shown=answered_together(ledger, f"point {point}"))

    rows = 1
    for point in _until_survived(where, work):
        with Ledger(where) as ledger:
            new = list(map(entry_of, ledger._store.rows(rows)))
            before = ledger.spent["epsilon"]
            again = answered_together(ledger, f"point {point}")
            say(
                point=point,
                kinds=[entry.kind for entry in new],
                again=again,
                paid=str(ledger.spent["epsilon"] - before),
            )
            rows = len(ledger)


def _pay_once(ledger: Ledger, point: int) -> None:
    receipt = ledger.charge(PIECE, key=f"point {point}")
    say(point=point, number=receipt.number, hash=receipt.hash)
    say(point=point, answer=ledger.commit(receipt, "drawn"))


def _until_survived(where: str, pay: Callable[[Ledger, int], None] = _pay_once) -> Iterator[int]:
    store = killing(SQLite if isinstance(store_at(where), SQLite) else PostgreSQL)

    def work(point: int) -> None:
        armed: Any = store(where)  # type: ignore[call-arg]
        ledger = Ledger(armed)
        armed.left = point
        pay(ledger, point)
        armed.left = None

    for point in range(200):
        (ended,) = wait(child(lambda point=point: work(point)))
        say(point=point, ended=ended)
        yield point
        if ended == 0:
            return


def make_and_crash(where: str, limit: dict[str, Any], step: int) -> None:
    """Kill the making of a ledger at every so many events; whoever comes next makes it, or finds it whole."""
    from discreet.ledger import Limit
    from tests.ledger.events import Happening

    def work(point: int) -> None:
        dies = Happening(point, lambda: os.kill(os.getpid(), signal.SIGKILL))
        dies.during(lambda: Ledger(where, limit=Limit.from_dict(limit)))

    for point in range(0, 100_000, step):
        (ended,) = wait(child(lambda point=point: work(point)))
        found = store_at(where)
        whole = found.exists()
        found.close()
        if whole:
            with Ledger(where) as ledger:
                say(point=point, ended=ended, rows=len(ledger), intact=ledger.verify().intact)
        else:
            say(point=point, ended=ended, rows=0, intact=True)
        if ended == 0:
            return


def kill_at_any_time(where: str, kills: int) -> None:
    """Kill a process right after it has handed out a receipt: it is somewhere in the middle of the next charge."""
    for round_ in range(kills):
        reading, writing = os.pipe()

        def work(pipe: int = writing) -> None:
            os.dup2(pipe, 1)
            spend(Ledger(where))

        process = child(work)
        os.close(writing)
        with os.fdopen(reading) as lines:
            told = [lines.readline() for _ in range(1 + round_ % 3)]
            os.kill(process, signal.SIGKILL)
            told += lines.readlines()  # what it still wrote before it died
        wait(process)
        for line in told:
            if line.endswith("\n"):
                os.write(1, line.encode())


TASKS = {
    task.__name__: task
    for task in (
        race,
        begin,
        race_together,
        inherit,
        forget,
        draw,
        make,
        fork_in_a_transaction,
        fork_storm,
        fork_inside,
        crash,
        crash_together,
        make_and_crash,
        kill_at_any_time,
    )
}

if __name__ == "__main__":
    TASKS[sys.argv[1]](**json.loads(sys.argv[2]))
