# SPDX-License-Identifier: Apache-2.0
"""Records by place, as the batches that a training loop sees.

Data are tensors (`(x, y)`, or a TensorDataset), which are indexed where they lie, or any data set with a length, whose
records are collated one by one. A *blank* is a record of zeros of the public shape: it stands in where a batch has no
record, so that the loop runs as always, and counts for nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch.utils._pytree import tree_leaves
from torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    TensorDataset,
    default_collate,
)

from discreet import check
from discreet.errors import BadParameter, RefusedTraining
from discreet.learn.torch.generators import Draws
from discreet.learn.torch.sampler import Places

__all__ = ["Records", "check_loader", "records_of", "refuse_mixing"]


class Records(Protocol):
    """Something that has records."""

    def __len__(self) -> int: ...

    def batch(self, places: Places, blanks: int) -> Any:
        """The records at these places, and so many blanks after them."""
        ...


class _Tensors:
    """Tensors whose first axis counts records."""

    def __init__(self, tensors: tuple[torch.Tensor, ...], *, alone: bool) -> None:
        self._tensors, self._alone = tensors, alone

    def __len__(self) -> int:
        return int(self._tensors[0].shape[0])

    def batch(self, places: Places, blanks: int) -> Any:
        if places.size == len(self) and not blanks:  # places ascend, so these are all of them, as they lie
            found = self._tensors
        else:
            index = torch.from_numpy(places)
            found = tuple(_rows(tensor, index, blanks) for tensor in self._tensors)
        return found[0] if self._alone else found


class _Items:
    """A data set that gives records one by one."""

    def __init__(self, items: Any, collate: Callable[[list[Any]], Any] | None, example: Any) -> None:
        self._items, self._collate = items, collate or default_collate
        self._example, self._tried = example, False

    def __len__(self) -> int:
        return len(self._items)

    def batch(self, places: Places, blanks: int) -> Any:
        if self._example is None:  # not before a record is wanted, which is after it is paid for
            self._example = self._items[0]
        filling = [_blank(self._example)] * blanks if blanks else []
        records = [self._items[int(place)] for place in places]
        if len(records) > 1 and not self._tried:
            refuse_mixing(self._collate, records[:3])
            self._tried = True
        return self._collate(records + filling)


def records_of(data: Any, collate: Callable[[list[Any]], Any] | None = None, example: Any = None) -> Records:
    """The records of a data set."""
    if isinstance(data, torch.Tensor):
        return _Tensors((data,), alone=True)
    if isinstance(data, TensorDataset):
        data = data.tensors
    if isinstance(data, tuple | list) and data and all(isinstance(part, torch.Tensor) for part in data):
        if len({part.shape[0] if part.ndim else -1 for part in data}) == 1 and data[0].ndim:
            return _Tensors(tuple(data), alone=False)
        raise _no_records("tensors of one data set must have the same length.")
    has_places = hasattr(data, "__len__") and hasattr(data, "__getitem__")
    if isinstance(data, IterableDataset | str | bytes) or not has_places:
        raise _no_records("data must have a length and give records by their place.")
    if collate is not None:
        check.function(collate=collate)
    refuse_twice(data)
    if len(data) == 0 and example is None:
        raise _no_records("an empty data set says nothing about the shape of a record; pass example=.")
    return _Items(data, collate, example)


def check_loader(loader: DataLoader[Any]) -> None:
    """Refuse a loader that may give a record more than once in an epoch, or of which that cannot be known.

    What it is made of is public: the kind of its sampler, not what that draws.
    """
    refuse_twice(loader.dataset)
    sampler: Any = loader.sampler
    known = type(sampler) is SequentialSampler or (
        type(sampler) is RandomSampler
        and not sampler.replacement
        and len(sampler) <= len(sampler.data_source)
    )
    plain = loader.batch_size is not None and isinstance(loader.dataset, Dataset)
    if (
        known
        and plain
        and sampler.data_source is loader.dataset
        and not isinstance(loader.dataset, IterableDataset)
    ):
        return
    raise RefusedTraining(
        "DP913",
        "this loader makes batches in a way that no theorem here covers.",
        why="a record that comes twice in an epoch costs twice, and the loader does not say whether one does.",
        fix="private(model, optimizer, loader.dataset, …)   draws batches itself, and gains from their being secret",
    )


def refuse_twice(data: Any) -> None:
    """Refuse a data set that is known to have a record in several places: it would be drawn, and clipped, for each of them."""
    whole: set[int] = set()
    parts: dict[int, set[int]] = {}
    for root, places in _sources(data):
        taken = parts.setdefault(id(root), set())
        again = id(root) in whole or (taken if places is None else not taken.isdisjoint(places))
        if again or (places is not None and len(set(places)) != len(places)):
            raise RefusedTraining(
                "DP913",
                "the data set has the same records in several places.",
                why="a record that is there twice is drawn twice, and moves a sum by two clipping norms where one is promised.",
                fix="pass each data set once; epochs=20 instead of 10 shows every record twice as often",
            )
        taken.update(() if places is None else places)
        whole |= {id(root)} if places is None else set()


def _sources(data: Any) -> Iterator[tuple[Any, Sequence[int] | None]]:
    """The data sets that one is put together from, and which of their records it has; None is all of them."""
    if isinstance(data, ConcatDataset):
        for part in data.datasets:
            yield from _sources(part)
    elif isinstance(data, Subset) and not isinstance(data.dataset, ConcatDataset | Subset):
        yield data.dataset, [int(place) for place in data.indices]
    elif isinstance(data, Subset):
        yield data, [int(place) for place in data.indices]
    else:
        yield data, None


def refuse_mixing(collate: Callable[[list[Any]], Any], records: list[Any]) -> None:
    """Refuse a function that makes a batch of records if what it makes of one changes when the others are copies of it."""
    draws = Draws()
    for place in (0, len(records) - 1):
        made = []
        for given in (records, [records[place]] * len(records)):
            draws.again()
            try:
                made.append(tree_leaves(collate(copy.deepcopy(given))))
            except Exception:  # noqa: BLE001 - what it says to copies is no verdict
                return
        if not all(_same_row(one, other, place, len(records)) for one, other in zip(*made, strict=False)):
            raise RefusedTraining(
                "DP922",
                "the function that makes batches mixes records: what it makes of one changes with the others.",
                why="one record then changes the gradients of all others, so clipping each of them bounds nothing.",
                fix="collate=torch.utils.data.default_collate   or one that makes each row from its own record",
                spent="what the plan costs, if it was charged",
            )
    draws.again()


def _same_row(one: Any, other: Any, place: int, count: int) -> bool:
    """Whether a row is the same in two batches, which may be padded to different lengths, in front or behind."""
    if not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)):
        return True
    if one.shape[:1] != (count,) or other.shape[:1] != (count,) or one.dim() != other.dim():
        return True
    one, other = one[place], other[place]
    common = [min(pair) for pair in zip(one.shape, other.shape, strict=True)]
    ends = (
        [slice(0, size) for size in common],
        [slice(-size, None) if size else slice(0) for size in common],
    )
    return any(
        torch.allclose(one[end], other[end], rtol=1e-5, atol=1e-6, equal_nan=True) for end in map(tuple, ends)
    )


def _rows(tensor: torch.Tensor, places: torch.Tensor, blanks: int) -> torch.Tensor:
    found = tensor.index_select(0, places.to(tensor.device, non_blocking=True))
    return torch.cat([found, tensor.new_zeros(blanks, *tensor.shape[1:])]) if blanks else found


def _blank(example: Any) -> Any:
    """The same kind of thing, of zeros."""
    if isinstance(example, torch.Tensor):
        return torch.zeros_like(example)
    if isinstance(example, np.ndarray | np.generic):
        return np.zeros_like(example)
    if isinstance(example, dict):
        return {name: _blank(part) for name, part in example.items()}
    if isinstance(example, tuple | list):
        parts = [_blank(part) for part in example]
        return type(example)(*parts) if hasattr(example, "_fields") else type(example)(parts)
    return type(example)()  # 0, 0.0, "", False


def _no_records(what: str) -> BadParameter:
    return BadParameter(
        "DP104",
        what,
        why="every step draws records of its own, by their places.",
        fix="private(model, optimizer, TensorDataset(x, y), …)",
    )
