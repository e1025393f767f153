# SPDX-License-Identifier: Apache-2.0
"""Ask one accountant one question in this process, and print what it cost as one line of JSON.

    python measure.py ask_autodp "autodp" 4a-1e-05 --limit 60 --repeats 3

Importing the library is not counted. Memory is the growth of the peak resident set during the first
computation. Time is the least of the repeats: more of them for fast computations, one for slow ones.
Threads are left as a user has them: a library that spins up threads for nothing pays for them here.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import cases

_MEGABYTE = 1024 * 1024
_ADDRESS_SPACE = 16 * 1024 * _MEGABYTE  # keeps one greedy library from taking the machine down
_WORTH_REPEATING = 1.0  # seconds: above this one measurement is steady enough
_QUICK, _MANY = 0.01, 20  # below so many seconds, so many repeats


class TimedOut(BaseException):
    """Not an Exception, so that no library can swallow it."""


def main() -> None:
    """Measure, and print a JSON object with either `value` or `error`."""
    arguments = _arguments()
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, resource.RLIM_INFINITY))
    module = importlib.import_module(arguments.module)
    case = cases.BY_KEY[arguments.case]
    ask: Callable[[cases.Case], Any] = module.ACCOUNTANTS[arguments.accountant]
    try:
        report = _measure(lambda: ask(case), arguments.limit, arguments.repeats)
    except TimedOut:
        report = {"error": f"time-out, {arguments.limit:.0f} s"}
    except cases.Unsupported as reason:
        report = {"unsupported": str(reason)}
    except Exception as error:  # noqa: BLE001 - whatever a peer raises is its answer, and is reported as such
        report = {"error": f"{type(error).__name__}: {_first_line(error)}"}
    sys.stdout.flush()
    print("\n" + json.dumps(report))


def _measure(compute: Callable[[], Any], limit: float, repeats: int) -> dict[str, Any]:
    gc.collect()
    before = _reset_peak()
    with _limited(limit):
        value, cpu, wall = _timed(compute)
    growth, cold = max(0.0, _peak() - before), cpu
    for _ in range(_more(cpu, repeats)):
        _, again_cpu, again_wall = _timed(compute)
        cpu, wall = min(cpu, again_cpu), min(wall, again_wall)
    return {"value": value, "cold": cold, "cpu": cpu, "wall": wall, "megabytes": growth}


def _more(cpu: float, repeats: int) -> int:
    """How often to repeat what took `cpu` seconds the first time: microseconds need many to be steady."""
    if repeats == 1 or cpu > _WORTH_REPEATING:
        return 0
    return _MANY if cpu < _QUICK else repeats - 1


@contextlib.contextmanager
def _limited(limit: float) -> Iterator[None]:
    """Raise TimedOut after `limit` seconds of CPU.

    A timer of the system that counts CPU would make its CPU clock coarse, so a wall timer looks at the
    clock every second instead.
    """

    def look(_signal: int, _frame: object) -> None:
        if time.process_time() - start > limit:
            raise TimedOut

    start = time.process_time()
    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, 1.0, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _timed(compute: Callable[[], Any]) -> tuple[Any, float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    value = compute()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return (list(map(float, value)) if isinstance(value, tuple) else float(value)), cpu, wall


def _reset_peak() -> float:
    """Forget the peak of the imports where the system can, and give the megabytes to subtract."""
    with contextlib.suppress(OSError):  # then the peak of the imports is the floor: growth below it is unseen
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _peak()


def _peak() -> float:
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / _MEGABYTE
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0][:120]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module")
    parser.add_argument("accountant")
    parser.add_argument("case", choices=sorted(cases.BY_KEY))
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--repeats", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
