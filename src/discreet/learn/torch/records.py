# SPDX-License-Identifier: Apache-2.0
"""Records by index, as batches for a training loop.

Data are tensors (`(x, y)`, or a TensorDataset), which are indexed where they lie, or any data set
with a length, whose records are collated one by one. A *blank* is a record of zeros of the public
shape: it stands in where a batch has no record, so that the loop runs as always, and contributes
nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import torch
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
from discreet.learn.torch import internals
from discreet.learn.torch.generators import Draws
from discreet.learn.torch.sampler import Indices

__all__ = ["RecordSource", "Records", "TrainingData", "check_loader", "records_of", "refuse_mixing"]


class RecordSource(Protocol):
    """A data set with a length that returns records by index."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> object: ...


#: What `private` trains on.
TrainingData = torch.Tensor | Sequence[torch.Tensor] | Dataset[Any] | DataLoader[Any] | RecordSource


class Records(Protocol):
    """Something that has records."""

    def __len__(self) -> int: ...

    def batch(self, indices: Indices, blanks: int) -> Any:
        """The records at these indices, and that many blanks after them."""
        ...


class _Tensors:
    """Tensors whose first axis counts records."""

    def __init__(self, tensors: tuple[torch.Tensor, ...], *, alone: bool) -> None:
        self._tensors, self._alone = tensors, alone

    def __len__(self) -> int:
        return int(self._tensors[0].shape[0])

    def batch(self, indices: Indices, blanks: int) -> Any:
        # Indices ascend, so as many indices as records are all of them, in order.
        if indices.size == len(self) and not blanks:
            rows = self._tensors
        else:
            selected = torch.from_numpy(indices)
            rows = tuple(_rows(tensor, selected, blanks) for tensor in self._tensors)
        return rows[0] if self._alone else rows


class _Items:
    """A data set that gives records one by one."""

    def __init__(self, items: Any, collate: Callable[[list[Any]], Any] | None, example: Any) -> None:
        self._items, self._collate = items, collate or default_collate
        self._example, self._tried = example, False

    def __len__(self) -> int:
        return len(self._items)

    def batch(self, indices: Indices, blanks: int) -> Any:
        # A record is read only now, in the first batch, because the plan is charged before that.
        if self._example is None:
            self._example = self._items[0]
        filling = [_blank(self._example)] * blanks if blanks else []
        records = [self._items[int(index)] for index in indices]
        if len(records) > 1 and not self._tried:
            refuse_mixing(self._collate, records[:3])
            self._tried = True
        return self._collate(records + filling)


def records_of(
    data: Any, collate: Callable[[list[Any]], object] | None = None, example: object = None
) -> Records:
    """The records of a data set."""
    if isinstance(data, torch.Tensor):
        return _Tensors((data,), alone=True)
    if isinstance(data, TensorDataset):
        data = data.tensors
    if isinstance(data, tuple | list) and data and all(isinstance(part, torch.Tensor) for part in data):
        if len({part.shape[0] if part.ndim else -1 for part in data}) == 1 and data[0].ndim:
            return _Tensors(tuple(data), alone=False)
        raise _no_records_error("the tensors of a data set must have the same length.")
    has_places = hasattr(data, "__len__") and hasattr(data, "__getitem__")
    if isinstance(data, IterableDataset | str | bytes) or not has_places:
        raise _no_records_error("data must have a length and return records by index.")
    if collate is not None:
        check.function(collate=collate)
    refuse_repeated_records(data)
    if len(data) == 0 and example is None:
        raise _no_records_error(
            "the data set is empty, so the shape of a record is not known; pass example=."
        )
    return _Items(data, collate, example)


def check_loader(loader: DataLoader[Any]) -> None:
    """Refuse a loader unless it is known to give each record at most once in an epoch.

    Only public facts are used: the kind of its sampler, not what the sampler draws.
    """
    refuse_repeated_records(loader.dataset)
    sampler: Any = loader.sampler
    reads_each_once = type(sampler) is SequentialSampler or (
        type(sampler) is RandomSampler
        and not sampler.replacement
        and len(sampler) <= len(sampler.data_source)
    )
    makes_plain_batches = loader.batch_size is not None and isinstance(loader.dataset, Dataset)
    if (
        reads_each_once
        and makes_plain_batches
        and sampler.data_source is loader.dataset
        and not isinstance(loader.dataset, IterableDataset)
    ):
        return
    raise RefusedTraining(
        "DP913",
        "this loader makes batches in a way that no theorem here covers.",
        why="a record that comes twice in an epoch costs twice, and the loader does not show whether one does.",
        fix="private(model, optimizer, loader.dataset, …)   draws secret batches, which cost less",
    )


def refuse_repeated_records(data: object) -> None:
    """Refuse a data set that is known to have a record in several places. It would be drawn for
    each of them.
    """
    whole: set[int] = set()
    parts: dict[int, set[int]] = {}
    for root, indices in _sources(data):
        earlier_indices = parts.setdefault(id(root), set())
        is_repeated = id(root) in whole or (
            earlier_indices if indices is None else not earlier_indices.isdisjoint(indices)
        )
        if is_repeated or (indices is not None and len(set(indices)) != len(indices)):
            raise RefusedTraining(
                "DP913",
                "the data set has the same records in several places.",
                why="a record that is there twice moves a sum by two clipping norms, but the guarantee assumes one.",
                fix="pass each data set once; epochs=20 instead of 10 shows every record twice as often",
            )
        earlier_indices.update(() if indices is None else indices)
        whole |= {id(root)} if indices is None else set()


def _sources(data: Any) -> Iterator[tuple[Any, Sequence[int] | None]]:
    """The data sets that a data set consists of, and the indices of their records that it has. None
    means all.
    """
    if isinstance(data, ConcatDataset):
        for part in data.datasets:
            yield from _sources(part)
    elif isinstance(data, Subset) and not isinstance(data.dataset, ConcatDataset | Subset):
        yield data.dataset, [int(index) for index in data.indices]
    elif isinstance(data, Subset):
        yield data, [int(index) for index in data.indices]
    else:
        yield data, None


def refuse_mixing(collate: Callable[[list[Any]], Any], records: list[Any]) -> None:
    """Refuse a collate function if its row for one record changes when the other records become
    copies of it.
    """
    draws = Draws()
    for index in (0, len(records) - 1):
        batches = []
        for batch in (records, [records[index]] * len(records)):
            draws.repeat()
            try:
                batches.append(internals.tree_leaves(collate(copy.deepcopy(batch))))
            # An error on copies says nothing about the function.
            except Exception:  # noqa: BLE001
                return
        pairs = zip(*batches, strict=False)
        if not all(_same_row(first, second, index, len(records)) for first, second in pairs):
            raise RefusedTraining(
                "DP922",
                "the function that makes batches mixes records: its row for one record changes with the others.",
                why="one record then changes the gradients of all others, so clipping each gradient bounds nothing.",
                fix="collate=torch.utils.data.default_collate   or one that makes each row from its own record",
                spent="what the plan costs, if it was charged",
            )
    draws.repeat()


def _same_row(first: Any, second: Any, index: int, count: int) -> bool:
    """Whether a row is the same in two batches, which may be padded to different lengths at either
    end.
    """
    if not (isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor)):
        return True
    if first.shape[:1] != (count,) or second.shape[:1] != (count,) or first.dim() != second.dim():
        return True
    first, second = first[index], second[index]
    common = [min(pair) for pair in zip(first.shape, second.shape, strict=True)]
    ends = (
        [slice(0, size) for size in common],
        [slice(-size, None) if size else slice(0) for size in common],
    )
    return any(
        torch.allclose(first[end], second[end], rtol=1e-5, atol=1e-6, equal_nan=True)
        for end in map(tuple, ends)
    )


def _rows(tensor: torch.Tensor, indices: torch.Tensor, blanks: int) -> torch.Tensor:
    rows = tensor.index_select(0, indices.to(tensor.device, non_blocking=True))
    return torch.cat([rows, tensor.new_zeros(blanks, *tensor.shape[1:])]) if blanks else rows


def _blank(example: Any) -> Any:
    """A record of the same kind, with zeros in place of all numbers."""
    if isinstance(example, torch.Tensor):
        return torch.zeros_like(example)
    if isinstance(example, np.ndarray | np.generic):
        return np.zeros_like(example)
    if isinstance(example, dict):
        return {name: _blank(part) for name, part in example.items()}
    if isinstance(example, tuple | list):
        parts = [_blank(part) for part in example]
        return type(example)(*parts) if hasattr(example, "_fields") else type(example)(parts)
    # 0, 0.0, "" or False.
    return type(example)()


def _no_records_error(what: str) -> BadParameter:
    return BadParameter(
        "DP104",
        what,
        why="every step draws records by index.",
        fix="private(model, optimizer, TensorDataset(x, y), …)",
    )
