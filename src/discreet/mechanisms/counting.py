# SPDX-License-Identifier: Apache-2.0
"""Questions that count records: one count, several, a histogram.

A record adds at most 1 to any count, and to at most `at_most` of k counts, because a record that
satisfies more conditions is counted for the first `at_most` of them only. So one record moves the
vector of counts by

    relation      l1                   l2
    add-remove    at_most              √at_most
    replace       min(k, 2 at_most)    √min(k, 2 at_most)

Why it holds: what a record adds is a vector of zeros and at most `at_most` ones. Two such vectors
differ in at most min(k, 2 at_most) places, by 1 each; two that satisfy different conditions do.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from discreet import check
from discreet.errors import BadParameter
from discreet.mechanisms.callbacks import call_quietly, callback_guard
from discreet.mechanisms.exact import Function, Integers, is_true, results, rows
from discreet.mechanisms.query import WholeNumberQuery, root_above
from discreet.privacy.unit import RELATIONS


@dataclass(frozen=True, repr=False)
class Count(WholeNumberQuery):
    """How many records satisfy a condition."""

    where: Function | None = None

    @property
    def relations(self) -> tuple[str, ...]:
        return RELATIONS if self.where else ("add-remove",)

    def exact(self, records: object) -> int:
        if self.where is None:
            return len(rows(records))
        return sum(map(is_true, results(self.where, records)))

    def moves(self, relation: str, norm: int) -> Fraction:
        return Fraction(1)


@dataclass(frozen=True, repr=False)
class _CountVector(WholeNumberQuery):
    """Counts; one record adds to `at_most` of them."""

    at_most: int

    def moves(self, relation: str, norm: int) -> Fraction:
        distance = self.at_most if relation == "add-remove" else min(self.dimension, 2 * self.at_most)
        return Fraction(distance) if norm == 1 else root_above(distance)


@dataclass(frozen=True, repr=False)
class Counts(_CountVector):
    """How many records satisfy each of several conditions."""

    conditions: tuple[Function, ...]

    @property
    def dimension(self) -> int:
        return len(self.conditions)

    def exact(self, records: object) -> Integers:
        rows_of_flags = [list(map(is_true, results(condition, records))) for condition in self.conditions]
        holds = np.array(rows_of_flags, np.bool_).reshape(self.dimension, -1)
        is_counted = np.cumsum(holds, axis=0, dtype=np.int64) <= self.at_most
        return np.asarray((holds & is_counted).sum(axis=1, dtype=np.int64))


@dataclass(frozen=True, repr=False)
class Histogram(_CountVector):
    """How many records are in each of several categories."""

    categories: tuple[Hashable, ...]
    other: bool

    @property
    def dimension(self) -> int:
        return len(self.categories) + self.other

    def exact(self, records: object) -> Integers:
        counts = np.zeros(len(self.categories) + 1, np.int64)
        listed, other = rows(records), len(self.categories)
        # A record may be unhashable, or its comparison may raise.
        with callback_guard():
            bins = [call_quietly(self._bins.get, record, other, instead=other) for record in listed]
        counts += np.bincount(np.array(bins, np.int64), minlength=counts.size)
        return counts[: self.dimension]

    @cached_property
    def _bins(self) -> dict[Hashable, int]:
        return {category: index for index, category in enumerate(self.categories)}


def count(where: Function | None = None) -> Count:
    """How many records there are, or how many satisfy a condition.

    **Guarantee.** Sensitivity 1 under both relations. A condition holds if it returns True or a
    number other than zero. It does not hold if it raises or returns anything else. Without a
    condition the number of records is protected, so the relation is add-remove only.

    Why it holds: a record adds 0 or 1. What would break it: a condition that looks at more than its
    record.

    >>> adults = count(lambda age: age >= 18)
    >>> adults.sensitivity("add-remove"), adults.sensitivity("replace")
    (1.0, 1.0)
    >>> adults.geometric(epsilon=0.5).error(confidence=0.95)
    6.0
    >>> isinstance(adults.geometric(epsilon=0.5)([3, 44, 71]).value, int)
    True
    """
    return Count(None if where is None else check.function(where=where))


def counts(conditions: Sequence[Function], at_most: int | None = None) -> Counts:
    """How many records satisfy each of k conditions; a record counts for `at_most` of them.

    **Guarantee.** The sensitivities of the table at the top of this file, for all records.
    `at_most` is enforced: a record that satisfies more conditions counts for the first ones only.
    Use `at_most=1` for conditions that exclude each other. Without it a record can satisfy all k:
    the l1 sensitivity is k and the l2 sensitivity √k, under both relations.

    >>> ages = counts([lambda age: age < 18, lambda age: age >= 65], at_most=1)
    >>> ages.sensitivity("add-remove", norm=1), ages.sensitivity("replace", norm=1)
    (1.0, 2.0)
    >>> counts([bool] * 9).sensitivity("replace", norm=2)
    3.0
    >>> ages.gaussian(rho=0.1)([3, 44, 71]).value.shape
    (2,)
    """
    listed = tuple(conditions) if isinstance(conditions, Sequence) else ()
    if not listed or not all(callable(condition) for condition in listed):
        raise BadParameter(
            "DP104",
            "conditions must be a list of functions of one record.",
            why="each of them is one count.",
            fix="counts([lambda age: age < 18, lambda age: age >= 65])",
        )
    bound = len(listed) if at_most is None else min(check.whole(at_most=at_most), len(listed))
    return Counts(bound, listed)


def histogram(categories: Sequence[Hashable], *, other: bool = False) -> Histogram:
    """How many records are in each of some public categories.

    **Guarantee.** Sensitivity 1 under add-remove; under replace 2 in l1 and √2 in l2 (1 with a
    single category and no `other`). Records outside the categories are ignored, or counted in a
    last number with `other=True`. Records are compared like keys of a dict: 1, 1.0 and True are one
    category.

    Why it holds: counts with `at_most=1`. What would break it: categories that were read off the
    data, because a rare category reveals its record. `StabilityHistogram` is for private keys.

    >>> colours = histogram(["red", "green"], other=True)
    >>> colours.sensitivity("add-remove"), colours.sensitivity("replace")
    (1.0, 2.0)
    >>> colours.geometric(epsilon=1)(["red", "red", "blue", None]).value.shape
    (3,)
    """
    listed = tuple(categories) if isinstance(categories, Sequence) and not isinstance(categories, str) else ()
    if not listed or not isinstance(other, bool) or not _are_different(listed):
        raise BadParameter(
            "DP104",
            "categories must be a list of different values that can be keys of a dict; other is True or False.",
            why="each category is one count, in the order of the list.",
            fix="histogram(['red', 'green', 'blue'])",
        )
    return Histogram(1, listed, other)


def _are_different(categories: tuple[Hashable, ...]) -> bool:
    try:
        # NaN differs from itself, so it is no category.
        return len(set(categories)) == len(categories) and not any(x != x for x in categories)  # noqa: PLR0124
    except TypeError:
        return False
