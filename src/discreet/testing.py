# SPDX-License-Identifier: Apache-2.0
"""For tests only: repeatable draws, which are never private, walks over every possible draw, and
other days.

    with testing.seeded(7):
        ...                       # every result drawn here is stamped NOT PRIVATE
    with testing.today("2026-02-02"):
        ...                       # streams take it for that day

A thread started inside the block does not inherit it and draws from the system's source, so a seed
never leaks into code that did not ask for it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from datetime import date
from fractions import Fraction
from typing import TypeVar

from discreet import check
from discreet.clock import fake_day
from discreet.noise import source as _source
from discreet.noise.source import ScriptedSource, ScriptEnded, SeededSource, Source

__all__ = ["ScriptEnded", "ScriptedSource", "SeededSource", "seeded", "today", "using", "walk"]

Outcome = TypeVar("Outcome", bound=Hashable)


@contextmanager
def seeded(seed: int | str) -> Iterator[Source]:
    """Draw repeatable words inside the block; `noise.source.is_private()` is False there.

    **Guarantee.** Whatever is released inside the block says that it is not private, and no ledger
    accepts it.

    >>> import discreet as dp
    >>> with seeded(7):
    ...     one = dp.Laplace(scale=2.0, sensitivity=1)(10)
    >>> with seeded(7):
    ...     two = dp.Laplace(scale=2.0, sensitivity=1)(10)
    >>> one.value == two.value, one.private
    (True, False)
    """
    with using(SeededSource(seed)) as swapped:
        yield swapped


@contextmanager
def using(source: Source) -> Iterator[Source]:
    """Draw from `source` inside the block, in this thread or task only.

    >>> from discreet import noise
    >>> with using(SeededSource(1)):
    ...     first = noise.discrete_laplace(5.0)
    >>> with using(SeededSource(1)):
    ...     first == noise.discrete_laplace(5.0)
    True
    """
    token = _source._current.set(source)  # noqa: SLF001 - the one door by which a test comes in
    try:
        yield source
    finally:
        _source._current.reset(token)  # noqa: SLF001


@contextmanager
def today(day: date | str) -> Iterator[date]:
    """Streams take it for that day inside the block, in this thread or task only.

    >>> from discreet import clock
    >>> with today("2026-02-02"):
    ...     clock.today().isoformat()
    '2026-02-02'
    """
    chosen = check.day(day=day)
    token = fake_day.set(chosen)
    try:
        yield chosen
    finally:
        fake_day.reset(token)


def walk(sampler: Callable[[Source], Outcome], depth: int) -> tuple[dict[Outcome, Fraction], Fraction]:
    """The exact probability of each outcome that `depth` fair bits or fewer decide, and what they
    leave open.

    `sampler` is run on every string of bits that it can ask for, so it must ask for few at a time.
    The true probability of an outcome lies between what is returned for it and that plus the rest.

    >>> chances, undecided = walk(lambda source: source.bits(1), depth=1)
    >>> chances[0], chances[1], undecided
    (Fraction(1, 2), Fraction(1, 2), Fraction(0, 1))
    """
    decided: dict[Outcome, Fraction] = {}
    rest = Fraction(0)
    pending: list[tuple[int, ...]] = [()]
    while pending:
        script = pending.pop()
        scripted = ScriptedSource(script)
        try:
            outcome = sampler(scripted)
        except ScriptEnded:
            if len(script) == depth:
                rest += Fraction(1, 2**depth)
            else:
                pending += [(*script, 0), (*script, 1)]
        else:
            decided[outcome] = decided.get(outcome, Fraction(0)) + Fraction(1, 2**scripted.used)
    return decided, rest
