# SPDX-License-Identifier: Apache-2.0
"""Do the tests that draw fresh noise pass every time? Runs each of them many times, and prints who failed and how long.

    .venv/bin/python scripts/repeat.py 30                      # whatever may fail by chance
    .venv/bin/python scripts/repeat.py 30 tests/statistical    # some files; any options of pytest
    .venv/bin/python scripts/repeat.py 30 --all                # also tests that fork, start threads, or ask a clock

All other tests draw the same noise in every run (tests/chance.py), so that repeating them says nothing new about noise.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


class Rounds:
    """Runs the collected tests that state a chance, `rounds` times over, and counts what comes of them."""

    def __init__(self, rounds: int, *, unlikely_only: bool) -> None:
        self.rounds, self.unlikely_only = rounds, unlikely_only
        self.failures: Counter[str] = Counter()
        self.passes = self.done = 0
        self.began = self.round_began = time.monotonic()
        self.per_round = 0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        marked = [item for item in items if self._wanted(item)]
        config.hook.pytest_deselected(items=[item for item in items if not self._wanted(item)])
        self.per_round = len(marked)
        items[:] = marked * self.rounds

    def _wanted(self, item: pytest.Item) -> bool:
        mark = item.get_closest_marker("chance")
        return mark is not None and (mark.args[0] > 0 or not self.unlikely_only)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failures[report.nodeid] += 1
        elif report.when == "call":
            self.passes += report.passed

    def pytest_runtest_logfinish(self) -> None:
        self.done += 1
        if self.done % self.per_round == 0:
            now = time.monotonic()
            number, failed = self.done // self.per_round, self.failures.total()
            print(f"\nround {number}: {failed} failures so far, {now - self.round_began:.0f} s", flush=True)
            self.round_began = now

    def summary(self) -> str:
        lines = [f"{times:4d} × {name}" for name, times in self.failures.most_common()]
        seconds = time.monotonic() - self.began
        total = f"{self.rounds} rounds of {self.per_round} tests: {self.passes} passes, "
        return "\n".join([*lines, f"{total}{self.failures.total()} failures, {seconds:.0f} s"])


def main(rounds: str, *options: str) -> int:
    sys.path.insert(0, str(ROOT))
    repeated = Rounds(int(rounds), unlikely_only="--all" not in options)
    code = pytest.main(["-n0", *(option for option in options if option != "--all")], plugins=[repeated])
    print(repeated.summary())
    return int(code)


if __name__ == "__main__":
    if len(sys.argv) < 2 or not sys.argv[1].isdigit():
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
