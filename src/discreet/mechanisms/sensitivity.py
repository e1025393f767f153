# SPDX-License-Identifier: Apache-2.0
"""Global, local and smooth sensitivity: how far one record moves an answer.

    GlobalSensitivity(10)  # over all data: public
    LocalAtDistance(at=my_callback, at_most=10)  # within j changes of these data: secret
    LocalAtDistance(…).smooth(0.1)  # a SmoothBound: max over j of e^(-0.1 j) at(data, j)
    check_callback(f, my_callback, domain=[0, 1, 5], size=3)  # tries all small data sets

Let f be the answer, ~ the neighbouring relation and d its distance:

    GS = max over x ~ x' of |f(x) - f(x')|               LS(x) = max over x' ~ x of |f(x) - f(x')|
    LS(x, j) = max of LS(y) over d(x, y) <= j            SS(x, t) = max over j of e^(-t j) LS(x, j)

**Guarantee.** SS is the least function that is at least LS and t-smooth: SS(x) <= e^t SS(x') for
neighbours (Nissim, Raskhodnikova, Smith 2007). What `SmoothBound.bound` returns is at least that,
and is (t + 2**-31)-smooth, if the callback keeps two rules: at(x, 0) >= LS(x), and at(x, j) <=
at(x', j + 1) for all neighbours (smooth.proof.md, §3).

What would break it: a callback that breaks a rule; `check_callback` searches for a counterexample.
Only the global sensitivity is public. The others depend on the data and must not be released.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from discreet import check
from discreet.errors import BadParameter, UnsupportedGuarantee
from discreet.mechanisms.callbacks import call_quietly, callback_guard
from discreet.mechanisms.exact import number
from discreet.privacy.unit import RELATIONS

__all__ = [
    "GlobalSensitivity",
    "LocalAtDistance",
    "SmoothBound",
    "Universe",
    "check_callback",
    "check_smooth_bound",
]

SLACK = 2.0**-31  # the relative excess of a computed bound; it is never too small
FLOOR = 2.0**-200  # the least bound, as a share of the greatest
UP = 1.0 + 2.0**-32
LEAST_SMOOTHING, MOST_SMOOTHING = 2.0**-20, 50.0
_MAX_DATA_SETS = 20_000  # that a check may enumerate
_CLOSE = 1e-9  # rounding in a callback is not a counterexample

Data = tuple[Any, ...]
Answer = Callable[[Any], Any]
AtDistance = Callable[[Any, int], Any]


@check.named_fields
@dataclass(frozen=True)
class GlobalSensitivity:
    """How far one record moves the answer on any data: a public number.

    >>> GlobalSensitivity(10).value
    10
    """

    value: float
    relation: str = "replace"

    def __post_init__(self) -> None:
        check.positive(value=self.value)
        check.choice(RELATIONS, relation=self.relation)


@check.named_fields
@dataclass(frozen=True)
class LocalAtDistance:
    """How far one record moves the answer on data within j changes: a callback `at(data, j)`.

    `at_most` is the global sensitivity or a bound on it: public and finite. If the callback raises,
    or returns a value that is negative, infinite or not a number, the value is `at_most`: an error
    would reveal something about the data.

    >>> counts = LocalAtDistance(at=lambda records, j: 1.0, at_most=1.0)
    >>> counts.local([1, 2]), counts.at_distance([1, 2], 3)
    (1.0, 1.0)
    >>> round(counts.smooth(0.5).bound([1, 2]), 6)
    1.0
    """

    at: AtDistance
    at_most: float

    def __post_init__(self) -> None:
        check.moderate(at_most=self.at_most)

    def at_distance(self, data: object, distance: int) -> float:
        """The callback's value, or `at_most` if it has none."""
        value = number(call_quietly(self.at, data, distance))
        return min(value, float(self.at_most)) if value >= 0 else float(self.at_most)

    def local(self, data: object) -> float:
        """The local sensitivity."""
        return self.at_distance(data, 0)

    def smooth(self, smoothing: float) -> SmoothBound:
        """max over j of e^(-smoothing · j) at(data, j), as far as j can matter."""
        t = read_smoothing(smoothing)

        def smooth_bound(data: Any) -> float:
            at_most, j = float(self.at_most), 0
            bound = FLOOR * at_most
            with callback_guard():
                while math.exp(-t * j) * at_most > bound:
                    bound = max(bound, math.exp(-t * j) * self.at_distance(data, j))
                    j += 1
            return clamp_bound(bound, at_most)

        return SmoothBound(smooth_bound, t, self.at_most)


@check.named_fields
@dataclass(frozen=True)
class SmoothBound:
    """A smooth upper bound on the local sensitivity: one record changes it by at most e^smoothing.

    **Guarantee.** None of its own: the caller states that `bound` is at least the local sensitivity
    and smooth. `check_smooth_bound` tries it on small data. `at_most` is the global sensitivity or
    a bound on it.

    >>> SmoothBound(lambda records: 1.0, smoothing=0.1, at_most=1.0).smoothing
    0.1
    """

    bound: Callable[[Any], float]
    smoothing: float
    at_most: float

    def __post_init__(self) -> None:
        read_smoothing(self.smoothing)
        check.moderate(at_most=self.at_most)


@dataclass(frozen=True)
class Universe:
    """All data sets of `size` records of a small domain; under "add-remove" of up to `size`
    records.

    Data sets are sorted tuples: the answer is a function of a bag.

    >>> tiny = Universe([0, 1], size=2)
    >>> list(tiny.all())
    [(0, 0), (0, 1), (1, 1)]
    >>> tiny.local(sum)[(0, 1)]
    1.0
    """

    domain: Sequence[Any]
    size: int
    relation: str = "replace"

    def __post_init__(self) -> None:
        check.whole(size=self.size)
        check.choice(RELATIONS, relation=self.relation)
        if math.comb(len(self.domain) + self.size, self.size) > _MAX_DATA_SETS:
            raise BadParameter(
                "DP102",
                f"this domain and size make more than {_MAX_DATA_SETS} data sets.",
                why="the check tries every data set.",
                fix="domain=[0, 1, 5], size=3",
            )

    def all(self) -> Iterator[Data]:
        """Every data set."""
        sizes = [self.size] if self.relation == "replace" else range(self.size + 1)
        for size in sizes:
            yield from itertools.combinations_with_replacement(self.domain, size)

    def neighbours(self, data: Data) -> Iterator[Data]:
        """Every data set of the universe that differs in one record."""
        shorter = {data[:i] + data[i + 1 :] for i in range(len(data))}
        if self.relation == "add-remove":
            yield from shorter
        bases: Iterable[Data] = (
            shorter if self.relation == "replace" else ([data] if len(data) < self.size else [])
        )
        order = {record: index for index, record in enumerate(self.domain)}
        for base, record in itertools.product(bases, self.domain):
            yield tuple(sorted((*base, record), key=order.__getitem__))

    def local(self, f: Answer) -> dict[Data, float]:
        """The local sensitivity of every data set, by trying all neighbours."""
        values = {data: float(f(list(data))) for data in self.all()}
        return {
            data: max((abs(values[data] - values[other]) for other in self.neighbours(data)), default=0.0)
            for data in values
        }

    def local_at_distance(self, f: Answer, furthest: int) -> list[dict[Data, float]]:
        """LS(·, 0), LS(·, 1), …, each the greatest value of the level before over all neighbours."""
        levels = [self.local(f)]
        for _ in range(furthest):
            last = levels[-1]
            levels.append({x: max([last[x], *(last[y] for y in self.neighbours(x))]) for x in last})
        return levels


@check.arguments
def check_callback(
    f: Answer, ls_at_distance: AtDistance, domain: Sequence[Any], *, size: int = 3, relation: str = "replace"
) -> None:
    """Tries a local-sensitivity-at-distance callback on all small data; raises DP205 if it is
    wrong.

    **Guarantee.** If it raises, the callback is wrong: the text names a rule and data of *your*
    domain that break it. If it does not raise, the callback keeps the rules on all data of that
    domain and size. Larger data need a proof.

    >>> import statistics
    >>> def gap(x, j):
    ...     y = [0] * 9 + sorted(x) + [10] * 9
    ...     k = 8 + (len(x) + 1) // 2
    ...     return max(y[k + l] - y[k + l - j - 1] for l in range(j + 2))
    >>> check_callback(statistics.median_low, gap, domain=[0, 3, 10], size=3)
    """
    universe = Universe(tuple(domain), size, relation)
    local = universe.local(f)
    bounds = {x: [_stated_value(ls_at_distance, x, j) for j in range(size + 2)] for x in local}
    for x in local:
        if not all(0 <= value < math.inf for value in bounds[x]):
            raise _wrong_callback_error("it is not a finite number that is zero or more", x)
        if _exceeds(local[x], bounds[x][0]):
            raise _wrong_callback_error("at distance 0 it is below the local sensitivity", x)
        if any(_exceeds(a, b) for a, b in itertools.pairwise(bounds[x])):
            raise _wrong_callback_error("it falls as the distance grows", x)
        for y in universe.neighbours(x):
            if any(_exceeds(a, b) for a, b in zip(bounds[x], bounds[y][1:], strict=False)):
                raise _wrong_callback_error("it exceeds a neighbour's value at one step more", x, y)


@check.arguments
def check_smooth_bound(
    f: Answer, bound: SmoothBound, domain: Sequence[Any], *, size: int = 3, relation: str = "replace"
) -> None:
    """Tries a smooth bound on all small data: it is at least the local sensitivity, and smooth.

    **Guarantee.** If it raises DP205, the bound is wrong on data of your domain. If it does not
    raise, the bound is right on all data of that domain and size. Larger data need a proof.

    >>> bound = SmoothBound(lambda records: 1.0, 0.1, at_most=1.0)
    >>> check_smooth_bound(sum, bound, domain=[0, 1], size=3)
    """
    universe = Universe(tuple(domain), size, relation)
    local = universe.local(f)
    values = {x: number(call_quietly(bound.bound, list(x))) for x in local}
    factor = math.exp(bound.smoothing)
    for x, value in values.items():
        if not 0 < value < math.inf:
            raise _wrong_callback_error("it is not a finite number above zero", x)
        if _exceeds(local[x], value):
            raise _wrong_callback_error("it is below the local sensitivity", x)
        for y in universe.neighbours(x):
            if _exceeds(value, factor * values[y]):
                raise _wrong_callback_error("it changes by more than e^smoothing between neighbours", x, y)


def clamp_bound(value: float, at_most: float) -> float:
    """The value clipped to [FLOOR · at_most, at_most] and rounded up; a floor keeps a bound smooth."""
    return max(min(value, at_most), FLOOR * at_most) * UP


def read_smoothing(smoothing: Any) -> float:
    """The validated smoothing parameter t."""
    t = check.positive(smoothing=smoothing)
    if not LEAST_SMOOTHING <= t <= MOST_SMOOTHING:
        raise BadParameter(
            "DP102",
            f"smoothing must lie between 2**-20 and {MOST_SMOOTHING:g}, not {t!r}.",
            why="a smaller one gives the global sensitivity, slowly; with a greater one no noise is private.",
            fix="smoothing=0.1",
        )
    return t


def _stated_value(callback: AtDistance, data: Data, distance: int) -> float:
    try:
        return number(callback(list(data), distance))
    except Exception as error:
        raise _wrong_callback_error("it raises an error", data) from error


def _exceeds(value: float, limit: float) -> bool:
    return value > limit * (1 + _CLOSE) + _CLOSE * 1e-6


def _wrong_callback_error(rule: str, data: Data, neighbour: Data | None = None) -> UnsupportedGuarantee:
    where = f"on {list(data)!r}" + ("" if neighbour is None else f" and its neighbour {list(neighbour)!r}")
    return UnsupportedGuarantee(
        "DP205",
        f"the sensitivity is wrong {where} of the domain: {rule}.",
        why="the noise would be too small for some data, and the guarantee would be false.",
        fix="derive LS(x, j) = max of LS(y) over all y within j changes of x, or a bound above it",
    )
