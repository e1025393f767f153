# SPDX-License-Identifier: Apache-2.0
"""How likely is it that a test fails by chance? Lists every test that draws fresh noise, and the sum.

    .venv/bin/python scripts/chances.py            # what `make test` runs
    .venv/bin/python scripts/chances.py -m slow    # other tests; any options of pytest

A test that is not listed repeats its noise (tests/chance.py). The bounds are added: the union bound needs no independence.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


class Chances:
    """Collects what the tests state."""

    def __init__(self) -> None:
        self.stated: dict[tuple[str, float, str], int] = defaultdict(int)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            mark = item.get_closest_marker("chance")
            if mark is not None:
                self.stated[item.nodeid.partition("[")[0], *mark.args] += 1


def main(options: list[str]) -> int:
    sys.path.insert(0, str(ROOT))
    found = Chances()
    with contextlib.redirect_stdout(io.StringIO()):
        code = pytest.main(["--collect-only", "-qq", *options], plugins=[found])
    if code:
        print("the tests could not be collected; run  make test  to see why", file=sys.stderr)
        return int(code)
    total = 0.0
    for (name, bound, why), times in sorted(found.stated.items(), key=lambda row: -row[0][1] * row[1]):
        total += times * bound
        print(f"{times:4d} × {bound:8.2g}   {name}   ({why})")
    drawn = sum(times for (_, bound, _), times in found.stated.items() if bound)
    print(f"\n{drawn} tests may fail by chance; together with probability at most {total:.2g}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
