# SPDX-License-Identifier: Apache-2.0
"""Which folders does the code walk through? Traces five walks and prints them, call by call.

    .venv/bin/python scripts/walks.py                # all five, folder by folder
    .venv/bin/python scripts/walks.py question       # one of them
    .venv/bin/python scripts/walks.py --files        # file by file

A line is a visit: a call into another folder, with the files that were used there. It stands below its caller. Calls of
the same folder that follow each other are one visit, and so are visits of two or three folders in turn; returning to a
caller is none. A folder that is visited after it was left has been entered again; the last line counts how often.
Helpers that everybody uses (`check`, `errors` and the like) are left out, and so is the language in which all folders of
`tables` speak (`tables/algebra`): an expression that tells its bounds leads nowhere.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType

import discreet as dp

PACKAGE = Path(dp.__file__).parent
HELPERS = {"check.py", "errors.py", "exact.py", "extras.py", "paths.py", "forks.py", "__init__.py"}
#: Everybody speaks it, and it imports no folder that a question goes through.
LANGUAGE = "tables/algebra/"


@dataclass
class Visit:
    """A call into a folder, until it returns."""

    folder: str
    files: dict[str, None] = field(default_factory=dict)
    inner: list[Visit] = field(default_factory=list)

    def entered(self, folder: str) -> Visit:
        """The visit of a folder that is called from this one; it goes on if it was the last."""
        if not self.inner or self.inner[-1].folder != folder:
            self.inner.append(Visit(folder))
        return self.inner[-1]

    def simplify(self) -> None:
        """Visits of the same folders in turn become one visit of each."""
        inner: list[Visit] = []
        for visit in self.inner:
            inner.append(visit)
            for length in (1, 2, 3):
                first, second = inner[-2 * length : -length], inner[-length:]
                if [one.folder for one in first] == [one.folder for one in second]:
                    for one, other in zip(first, second, strict=True):
                        one.files |= other.files
                        one.inner += other.inner
                    del inner[-length:]
                    break
        self.inner = inner
        for visit in inner:
            visit.simplify()

    def lines(self, indent: int = 0) -> Iterator[str]:
        """This visit and those below it."""
        yield f"{'  ' * indent}{self.folder:<{max(1, 34 - 2 * indent)}} {' '.join(self.files)}"
        for visit in self.inner:
            yield from visit.lines(indent + 1)

    def all(self) -> Iterator[Visit]:
        """This visit and those below it."""
        yield self
        for visit in self.inner:
            yield from visit.all()


class Walk:
    """Collects the visits of one call."""

    def __init__(self, *, by_file: bool) -> None:
        self.top = Visit("(caller)")
        self._stack: list[tuple[FrameType, Visit]] = []
        self._places: dict[CodeType, tuple[str, str] | None] = {}
        self._by_file = by_file

    def run(self, work: Callable[[], object]) -> Visit:
        """The visits of `work`."""
        sys.setprofile(self._saw)
        try:
            work()
        finally:
            sys.setprofile(None)
        return self.top

    def _saw(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            place = self._place(frame.f_code)
            if place is None:
                return
            folder, file = place
            here = self._stack[-1][1] if self._stack else self.top
            visit = here if here.folder == folder else here.entered(folder)
            visit.files[file] = None
            self._stack.append((frame, visit))
        elif event == "return" and self._stack and self._stack[-1][0] is frame:
            self._stack.pop()

    def _place(self, code: CodeType) -> tuple[str, str] | None:
        if code not in self._places:
            path = Path(code.co_filename)
            name = path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else ""
            is_step = bool(name) and name not in HELPERS and not name.startswith(LANGUAGE)
            is_step = is_step and code.co_name != "<module>"
            self._places[code] = self._named(Path(name)) if is_step else None
        return self._places[code]

    def _named(self, path: Path) -> tuple[str, str]:
        if self._by_file or len(path.parts) == 1:
            return path.with_suffix("").as_posix(), path.stem
        return "/".join(path.parent.parts[:2]), path.stem


def trace(work: Callable[[], object], *, by_file: bool = False) -> Visit:
    """The visits of some work, simplified."""
    top = Walk(by_file=by_file).run(work)
    top.simplify()
    return top


def main(arguments: list[str]) -> int:
    by_file = "--files" in arguments
    wanted = [name for name in arguments if not name.startswith("-")] or list(WALKS)
    for name in wanted:
        print(f"\n{name}: {(WALKS[name].__doc__ or '').strip()}\n")
        with tempfile.TemporaryDirectory() as folder:
            try:
                work = WALKS[name](Path(folder))
            except ImportError as missing:
                print(f"  skipped: {missing.name} is not installed.")
                continue
            top = trace(work, by_file=by_file)
        for visit in top.inner:
            print("\n".join(visit.lines(1)))
        visits = Counter(visit.folder for visit in top.all())
        again = {folder: count - 1 for folder, count in visits.items() if count > 1}
        print(f"\n  entered again: {sum(again.values())}")
        print("  " + ", ".join(f"{folder} {count}" for folder, count in sorted(again.items())))
    return 0


def question(folder: Path) -> Callable[[], object]:
    """session.sql(…) on the Adult data that come with the library."""
    from discreet.data import path

    data = dp.open(path("adult.toml"))
    session = dp.Session(data, limit=dp.Limit.filter(epsilon=1), ledger=folder / "adult.ledger")
    text = "SELECT education, COUNT(*), AVG(age) FROM adult GROUP BY education"
    return lambda: session.sql(text, epsilon=0.1)


def view(_: Path) -> Callable[[], object]:
    """(1000 * guarantee).epsilon(delta): what a thousand steps of DP-SGD amount to."""
    guarantee = dp.privacy.gaussian(noise=1.0).sampled(0.01)
    return lambda: (1000 * guarantee).epsilon(delta=1e-5)


def fit(_: Path) -> Callable[[], object]:
    """LogisticRegression(…).fit(X, y)."""
    import numpy as np

    from discreet.learn import LogisticRegression

    numbers = np.arange(2000)
    rows = np.stack([np.cos(numbers), np.sin(numbers)], axis=1)
    model = LogisticRegression(epsilon=1.0, delta=1e-6, bounds=(-1, 1), classes=[False, True])
    return lambda: model.fit(rows, rows[:, 0] > 0)


def step(_: Path) -> Callable[[], object]:
    """One step of training with `learn.torch.private`."""
    import torch

    from discreet.learn.torch import private

    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.linspace(-1, 1, 600).reshape(200, 3)
    run = private(model, optimizer, (x, (x[:, 0] > 0).long()), noise=2.0, steps=1, batch=50, size=200)

    def work() -> None:
        for inputs, targets in run:
            run.backward(torch.nn.functional.cross_entropy(model(inputs), targets, reduction="none"))
            optimizer.step()

    return work


def charge(folder: Path) -> Callable[[], object]:
    """ledger.charge(guarantee)."""
    ledger = dp.Ledger(folder / "visits.ledger", limit=dp.Limit.filter(epsilon=1, delta=1e-6))
    guarantee = dp.privacy.gaussian(noise=20.0)
    return lambda: ledger.charge(guarantee)


WALKS: dict[str, Callable[[Path], Callable[[], object]]] = {
    "question": question,
    "view": view,
    "fit": fit,
    "step": step,
    "charge": charge,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
