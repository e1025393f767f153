# SPDX-License-Identifier: Apache-2.0
"""No luck in the tests: noise is repeated, unless a test says how likely it is to fail by chance.

    def test_a_group_is_shown(): ...                       # the same noise in every run, chosen by the test's name

    @may_fail(2 * ALPHA, "one distribution fits, one does not")     # fresh noise in every run
    def test_the_noise_follows_its_distribution(): ...

**Guarantee**: a test without `may_fail` fails in every run or in none, as far as noise goes; the others fail a sound
library with probability at most what they state, each at most `EACH`, and all that are collected together at most
`ALL`. `scripts/chances.py` prints the list and the sum.

Why it holds: while a test runs, the system's source of this thread gives words of AES in counter mode under keys that
are made from the test's name; a fixture that several tests share has a name of its own. Words cannot be repeated in
another thread, in a forked child or in another Python, because their order is not ours: a test that draws there, or
starts another Python, has to state its chance, and an error says so if it does not. The source goes on calling
itself private, so ledgers take what it gives: this is for the inside of the tests only, and no part of the library.

What would break it: a value drawn once and kept for later tests (a cache, a module's own variable) belongs to whichever
test ran first. `--noise-seed=N` repeats the whole run with other words: a test whose assertion leaves
the noise too little room fails for some N, however well it does with the words it usually gets.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import mmap
import os
import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.audit import draws
from discreet.noise import source

EACH = 1e-9  # the most that one run of one test may state for one assertion
ALL = 1e-6  # the most that all tests of `make test` may state together


def may_fail(bound: float, why: str) -> Any:
    """Mark a test, or with `pytestmark` a file, whose noise is fresh: the probability that it fails by chance."""
    assert 0 <= bound <= ALL, bound
    assert why, "say what the chance is made of"
    return pytest.mark.chance(bound, why)


def no_chance(why: str) -> Any:
    """Mark a test that draws fresh noise, or may, and passes whatever the noise is."""
    return may_fail(0.0, why)


def stated(item: pytest.Item) -> tuple[float, str] | None:
    """What the test says of itself; the nearest mark counts."""
    mark = item.get_closest_marker("chance")
    return None if mark is None else (mark.args[0], mark.args[1])


class Repeated:
    """Stands in for the words of the system's source, and notices who draws where it cannot be repeated."""

    def __init__(self, name: str) -> None:
        self.drawn = False
        self._process, self._thread = os.getpid(), threading.get_ident()
        # shared with forked children: the one thing that they can tell their parent without its help
        self._elsewhere = mmap.mmap(-1, 1)
        blocks = itertools.count()
        self._stream = source._Stream(lambda: hashlib.sha384(f"{next(blocks)} {name}".encode()).digest())

    def words(self, count: int) -> Any:
        if (os.getpid(), threading.get_ident()) != (self._process, self._thread):
            if not _any_answer_will_do():
                self._elsewhere[0] = 1
            return source.SystemSource.words(source._system, count)
        self.drawn = True
        return self._stream.words(count)

    @property
    def elsewhere(self) -> bool:
        return bool(self._elsewhere[0])


def _any_answer_will_do() -> bool:
    """Two rules of `check_mechanism` draw in threads and in a child, and ask only that an answer comes."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_qualname.startswith(("works_in_threads", "works_after_a_fork")):
            return True
        frame = frame.f_back
    return False


@contextmanager
def repeated(name: str) -> Iterator[Repeated]:
    """The system's source, and the generators that tests use for data, give the words of `name` inside the block."""
    now = Repeated(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source._system, "words", now.words)
        # how many processes an audit asks for depends on how busy the machine is
        patch.setattr(draws, "_WORTH_IT", math.inf)
        _seed_others(name, patch)
        yield now


def _seed_others(name: str, patch: pytest.MonkeyPatch) -> None:
    """The generators of Python, numpy and torch, which tests use for data and models; the library does not."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4])
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - scikit-learn's checks use it
    # torch.manual_seed would note a whole stack for each kind of device that this machine lacks, before every test
    if (generator := getattr(sys.modules.get("torch"), "default_generator", None)) is not None:
        generator.manual_seed(seed)
    seeds, with_seed = itertools.count(seed), np.random.default_rng
    patch.setattr(
        np.random, "default_rng", lambda given=None: with_seed(next(seeds) if given is None else given)
    )


class Pythons:
    """Counts the Pythons that this process starts; what they draw cannot be repeated from here."""

    def __init__(self) -> None:
        self.started = 0
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in {"subprocess.Popen", "os.posix_spawn", "os.exec"}:
            self.started += "python" in Path(os.fsdecode(arguments[0] or "")).name


def risk(bound: float) -> None:
    """For helpers that compute the chance of their own assertions: no test may risk more than it states."""
    assert bound <= EACH, "one assertion may not fail by chance so often"
    _RISKED.append(bound)


def risked() -> float:
    """What was risked since this was last asked."""
    found = total(_RISKED)
    _RISKED.clear()
    return found


def total(chances: list[float]) -> float:
    """The union bound, which needs no independence."""
    return math.fsum(chances)


_RISKED: list[float] = []
