# SPDX-License-Identifier: Apache-2.0
"""Checks a distance function on every small data set and all of its neighbours.

check_distance(query, distance, domain=[0, 1, 5], bound=1, most=4)  # a proposed bound
check_distance(winner, distance, domain="abc", most=5)  # a value that must not change at all
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

from discreet import check
from discreet.errors import BadParameter, UnsupportedGuarantee
from discreet.exact import as_ratio, widest
from discreet.mechanisms.callbacks import call_quietly
from discreet.mechanisms.canonical import canonical
from discreet.mechanisms.stability import answer_of, distance_of
from discreet.noise.scales import Number
from discreet.privacy.unit import RELATIONS

__all__ = ["check_distance"]

_MAX_DATA_SETS = 200_000

Records = tuple[Any, ...]


@check.arguments
def check_distance(
    query: Callable[[list[Any]], Any],
    distance: Callable[[list[Any]], Any],
    *,
    domain: Iterable[Any],
    bound: Number | None = None,
    most: int = 4,
    relation: str = "add-remove",
) -> int:
    """Tries the distance on every bag of at most `most` records of a small domain.

    **Guarantee.** If it raises DP205, the text has a counterexample: two neighbours whose distances
    differ by more than 1, or whose answers differ by more than `bound` (at all, in their canonical
    forms, if it is None) although a distance is not 0. Otherwise it returns the number of pairs of
    neighbours that it tried. A distance that keeps both conditions on *all* data is safe, even if
    it is smaller than the true one (propose.proof.md).

    What it cannot see: larger data sets, and records that are not in the domain.

    >>> def spread(x): return max(x, default=0) - min(x, default=0)
    >>> def safe(x): return 0
    >>> check_distance(spread, safe, domain=[0, 1, 9], bound=1)
    60
    >>> check_distance(spread, len, domain=[0, 1, 9], bound=1)
    Traceback (most recent call last):
    discreet.errors.UnsupportedGuarantee: DP205  the distance of [0] is 1, but its neighbour [0, 9] has an answer that is...
    """
    check.choice(RELATIONS, relation=relation)
    letters = list(domain)
    limit = None if bound is None else _limit(bound)
    if math.comb(len(letters) + check.whole(most=most), most) > _MAX_DATA_SETS:
        raise _too_many_error()
    known: dict[Records, tuple[Any, int]] = {}

    def look_up(letter_numbers: Records) -> tuple[Any, int]:
        if letter_numbers not in known:
            records = [letters[number] for number in letter_numbers]
            answer = canonical(call_quietly(query, records)) if limit is None else answer_of(query, records)
            known[letter_numbers] = answer, distance_of(distance, records)
        return known[letter_numbers]

    pairs = 0
    for data, neighbour in _neighbours(len(letters), most, relation):
        (answer, at), (other_answer, other_at) = look_up(data), look_up(neighbour)
        pairs += 1
        if abs(at - other_at) > 1:
            words = f"is at distance {_distance_text(other_at)}"
            raise _wrong_distance_error(letters, data, at, (neighbour, words))
        if (at or other_at) and _differ(answer, other_answer, limit):
            words = "has an answer that is too different"
            if at:
                raise _wrong_distance_error(letters, data, at, (neighbour, words))
            raise _wrong_distance_error(letters, neighbour, other_at, (data, words))
    return pairs


def _neighbours(letters: int, most: int, relation: str) -> Iterator[tuple[Records, Records]]:
    """Every pair of neighbours once, smallest first, as sorted places in the domain."""
    for size in range(most if relation == "add-remove" else most + 1):
        for records in combinations_with_replacement(range(letters), size):
            yield from ((records, other) for other in _around(records, letters, relation))


def _around(records: Records, letters: int, relation: str) -> Iterator[Records]:
    if relation == "add-remove":
        for letter in range(letters):
            yield tuple(sorted((*records, letter)))
        return
    for index in sorted({records.index(letter) for letter in records}):
        for letter in range(records[index] + 1, letters):
            yield tuple(sorted((*records[:index], letter, *records[index + 1 :])))


def _limit(bound: Any) -> Fraction:
    check.not_negative(bound=bound)
    return widest(bound)


def _differ(answer: Any, other: Any, limit: Fraction | None) -> bool:
    return bool(answer != other) if limit is None else abs(as_ratio(answer) - as_ratio(other)) > limit


def _distance_text(distance: int) -> str:
    return str(distance) if distance < 10**15 else "infinity"


def _wrong_distance_error(
    letters: list[Any], places: Records, at: int, neighbour: tuple[Records, str]
) -> UnsupportedGuarantee:
    first, second = ([letters[place] for place in records] for records in (places, neighbour[0]))
    return UnsupportedGuarantee(
        "DP205",
        f"the distance of {first} is {_distance_text(at)}, but its neighbour {second} {neighbour[1]}.",
        why="neighbours have distances that differ by at most 1, and both are 0 if their answers differ too much.",
        fix="correct the distance; 0 is always safe",
    )


def _too_many_error() -> BadParameter:
    return BadParameter(
        "DP102",
        f"there are more than {_MAX_DATA_SETS:,} data sets of that many records.",
        why="the check tries every data set.",
        fix="most=3, or a smaller domain",
    )
