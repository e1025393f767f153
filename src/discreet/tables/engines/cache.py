# SPDX-License-Identifier: Apache-2.0
"""What was made for a question and may serve the next ones; only the latest few are kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

__all__ = ["PreparedCache"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

#: More than this many are forgotten, the one first that was not used for longest.
_MOST: Final = 3


class PreparedCache(Generic[K, V]):
    """Things by their key; `forget` is called with each one that goes."""

    def __init__(self, forget: Callable[[V], object]) -> None:
        self._cached_pairs: OrderedDict[K, V] = OrderedDict()
        self._forget = forget

    def __contains__(self, key: K) -> bool:
        return key in self._cached_pairs

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The thing of a key, made if it is not there."""
        if key not in self._cached_pairs:
            while len(self._cached_pairs) >= _MOST:
                self._forget(self._cached_pairs.popitem(last=False)[1])
            self._cached_pairs[key] = make()
        self._cached_pairs.move_to_end(key)
        return self._cached_pairs[key]

    def keys(self) -> tuple[K, ...]:
        """The keys of all things that are there."""
        return tuple(self._cached_pairs)

    def find(self, key: K) -> V | None:
        """The thing of a key, if it is there."""
        return self._cached_pairs.get(key)

    def forget(self, key: K) -> None:
        """Forget one of them."""
        self._forget(self._cached_pairs.pop(key))

    def clear(self) -> None:
        """Forget all of them."""
        while self._cached_pairs:
            self._forget(self._cached_pairs.popitem()[1])
