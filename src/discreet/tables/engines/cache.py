# SPDX-License-Identifier: Apache-2.0
"""A small cache: what was prepared for one question and may serve the next ones."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

__all__ = ["PreparedCache"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

#: So many values are kept; the least recently used one is dropped first.
_CAPACITY: Final = 3


class PreparedCache(Generic[K, V]):
    """Values by key; `release` is called with each value that is dropped."""

    def __init__(self, release: Callable[[V], object]) -> None:
        self._values: OrderedDict[K, V] = OrderedDict()
        self._release = release

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key, made if it is missing."""
        if key not in self._values:
            while len(self._values) >= _CAPACITY:
                self._release(self._values.popitem(last=False)[1])
            self._values[key] = make()
        self._values.move_to_end(key)
        return self._values[key]

    def keys(self) -> tuple[K, ...]:
        """All keys, the least recently used one first."""
        return tuple(self._values)

    def find(self, key: K) -> V | None:
        """The value of a key, or None."""
        return self._values.get(key)

    def drop(self, key: K) -> None:
        """Drop one value."""
        self._release(self._values.pop(key))

    def clear(self) -> None:
        """Drop all values."""
        while self._values:
            self._release(self._values.popitem()[1])
