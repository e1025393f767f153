# SPDX-License-Identifier: Apache-2.0
"""Functions without a rule: the gradient of every record by torch.func, for functions that keep
records apart.

The call is repeated for one record at a time, all records at once (vmap), and differentiated there.
It is slower and takes memory for the gradient of every record, but it needs to know nothing about
the function except that the first axis of its inputs and of its output is the record. The guards
test that.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from discreet.learn.torch import internals
from discreet.learn.torch.pieces.base import Dense, Piece
from discreet.learn.torch.rules.use import Use
from discreet.learn.torch.tape import not_by_record_error

__all__ = ["by_record"]


def by_record(use: Use, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of the call, tapped so that each record's gradient is found by differentiating it
    alone.
    """
    flat, shape = internals.tree_flatten((args, kwargs))
    watched = [index for index, leaf in enumerate(flat) if use.watches(leaf)]
    unwatched = [
        index for index, leaf in enumerate(flat) if isinstance(leaf, Tensor) and index not in watched
    ]
    arguments, tensors = [flat[index] for index in watched], [flat[index] for index in unwatched]
    plain = [use.value(leaf) for leaf in flat]
    args, kwargs = internals.tree_unflatten(plain, shape)
    out = use.function(*args, **kwargs)
    if not isinstance(out, Tensor):
        raise not_by_record_error(use.name(arguments[0]), f"there is no rule for {_name(use)}")
    if not out.is_floating_point():
        return out
    axes = _axes(use, out, arguments, tensors)

    def call(weights: Sequence[Tensor], rows: Sequence[Tensor]) -> Tensor:
        filled = list(plain)
        for index, value in [*zip(watched, weights, strict=True), *zip(unwatched, rows, strict=True)]:
            filled[index] = value
        args, kwargs = internals.tree_unflatten(filled, shape)
        result: Tensor = use.function(*args, **kwargs)
        return result

    def pieces(gradient: Tensor, *tensors: Tensor) -> list[Piece]:
        use.fits(gradient, arguments[0])
        weights = [use.value(argument) for argument in arguments]

        def one_record(signal: Tensor, *rows: Tensor) -> Any:
            single = [row if axis is None else row[None] for row, axis in zip(rows, axes, strict=True)]
            pull = torch.func.vjp(lambda *weights: call(weights, single), *weights)[1]
            return pull(signal[None])

        with warnings.catch_warnings():
            # torch warns that vmap is slow for some functions, and this path is known to be slow.
            warnings.simplefilter("ignore", UserWarning)
            gradients = torch.func.vmap(one_record, in_dims=(0, *axes))(gradient, *tensors)
        return [Dense(gradient) for gradient in gradients]

    # A copy, because the function may have kept its result for its own backward pass, and a tap writes into it.
    return use.tap(out.clone(), arguments, pieces, *tensors)


def _axes(use: Use, out: Tensor, arguments: Sequence[Any], tensors: Sequence[Tensor]) -> list[int | None]:
    """Which tensors have the record as their first axis: as the guards have seen it, and never by
    its length alone.
    """
    records = out.shape[0] if out.dim() else 0
    lengths = [tensor.shape[0] if tensor.dim() else -1 for tensor in tensors]
    keys = [(use.function, use.name(arguments[0]), index, len(tensors)) for index in range(len(tensors))]
    seen = use.tape.learned.axes
    if use.tape.learning:
        for key, length in zip(keys, lengths, strict=True):
            seen.setdefault(key, set()).add((records, length))
    has_records = [
        _is_record(seen.get(key), records, length, sure=use.tape.learning or lengths.count(records) < 2)
        for key, length in zip(keys, lengths, strict=True)
    ]
    if None in has_records:
        raise not_by_record_error(
            use.name(arguments[0]), f"which inputs of {_name(use)} have records is not known"
        )
    return [0 if record else None for record in has_records]


def _is_record(seen: set[tuple[int, int]] | None, records: int, length: int, *, sure: bool) -> bool | None:
    """Whether an axis counts records; None if that is not known. It is known if it was seen with
    two numbers of records.
    """
    if length != records:
        may_be_constant = (
            seen is None
            or len({count for count, _ in seen}) < 2
            or any(count != size for count, size in seen)
        )
        return False if may_be_constant else None
    if seen is None or len({count for count, _ in seen}) < 2:
        return True if sure else None
    if all(count == size for count, size in seen):
        return True
    return False if {size for _, size in seen} == {length} else None


def _name(use: Use) -> str:
    return str(getattr(use.function, "__name__", "this function"))
