# SPDX-License-Identifier: Apache-2.0
"""Parameters that are no layer's weight: tokens, positions, scales, added or multiplied into every
record.

A value made of parameters alone has no records. It gets them when it is broadcast against a tensor
that has: then each record sees its own copy, and the gradient at the copy is the gradient of the
record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from discreet.learn.torch import internals
from discreet.learn.torch.pieces.base import Dense
from discreet.learn.torch.rules.embedding import EmbeddedRows
from discreet.learn.torch.rules.use import Use
from discreet.learn.torch.tape import Contributions, not_by_record_error
from discreet.learn.torch.watched import Derived, Watched, is_watched

__all__ = [
    "as_records",
    "assign",
    "broadcast",
    "derive",
    "expand",
    "have_no_records",
    "repeat",
    "show_to_records",
]


def have_no_records(leaves: Sequence[Any]) -> bool:
    """Whether no argument can have records: all tensors are made of parameters, or are single
    numbers.
    """
    return all(_is_constant(leaf) for leaf in leaves if isinstance(leaf, Tensor))


def _is_constant(tensor: Tensor) -> bool:
    if isinstance(tensor, EmbeddedRows):
        return False
    return is_watched(tensor) or tensor.dim() == 0


def derive(use: Use, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a function of parameters, with its own graph back to them."""
    flat, shape = internals.tree_flatten((args, kwargs))
    parameters: list[Watched] = []
    leaves: list[Tensor] = []
    for index, argument in enumerate(flat):
        if isinstance(argument, Derived):
            parameters += argument.parameters
            leaves += argument.leaves
            flat[index] = argument.value
        elif type(argument) is Watched:
            parameters.append(argument)
            leaves.append(argument.detach().requires_grad_())
            flat[index] = leaves[-1]
    args, kwargs = internals.tree_unflatten(flat, shape)

    def mark(result: Any) -> Any:
        if not isinstance(result, Tensor) or not result.requires_grad:
            return result
        made = result.detach().as_subclass(Derived)
        made.tape, made.dispatch = use.tape, (parameters[0]).dispatch
        made.value, made.parameters, made.leaves = result, parameters, leaves
        return made

    return internals.tree_map(mark, use.function(*args, **kwargs))


def broadcast(use: Use, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function that works number by number: parameters are shown to every record first."""
    tensors = [argument for argument in (*args, *kwargs.values()) if isinstance(argument, Tensor)]
    shape = torch.broadcast_tensors(*map(use.value, tensors))[0].shape  # type: ignore[no-untyped-call]
    args = tuple(show_to_records(use, argument, shape) for argument in args)
    return use.function(
        *args, **{name: show_to_records(use, argument, shape) for name, argument in kwargs.items()}
    )


def expand(use: Use, value: Any, *sizes: Any, **named: Any) -> Tensor:
    """`expand`, `expand_as`, `broadcast_to`: the record is the first axis of the result."""
    shape = use.function(value.detach(), *sizes, **named).shape
    made: Tensor = show_to_records(use, value, shape)
    return made


def repeat(use: Use, value: Any, *sizes: Any) -> Any:
    """`repeat` and `tile` as often as there are records, if the guards have seen that this number
    follows theirs: the first axis of the result has all positions of the first record, then those
    of the second.
    """
    times = sizes[0] if isinstance(sizes[0], Sequence) else sizes
    if use.tape.learned.shapes.get(use.kind((value, *sizes))) is not False:
        return derive(use, (value, *sizes), {})
    inner = use.value(value)
    count, *others = (1,) * (inner.dim() - len(times)) + tuple(times)
    if len(times) > inner.dim() or any(time != 1 for time in others):
        raise not_by_record_error(use.name(value), "it is repeated along several axes")
    made: Tensor = show_to_records(use, value, (count, *inner.shape))
    return made.flatten(0, 1)


def assign(use: Use, target: Any, index: Any, value: Any) -> None:
    """`target[mask] = value`: a token in the places that a mask of each record names."""
    is_mask = isinstance(index, Tensor) and index.dtype == torch.bool
    if use.watches(target) or not is_mask or value.dim() > target.dim() - index.dim():
        name = use.name(value if use.watches(value) else target)
        raise not_by_record_error(name, "it is assigned to places other than those of a mask of records")
    mask = index.reshape(*index.shape, *[1] * (target.dim() - index.dim()))
    with internals.DisableTorchFunctionSubclass():
        target.copy_(torch.where(mask, show_to_records(use, value, target.shape), target))


def show_to_records(use: Use, argument: Any, shape: Sequence[int]) -> Any:
    """A parameter as every record sees it; other arguments as they are."""
    if not use.watches(argument):
        return argument
    if isinstance(argument, Derived) and not argument.grows(shape):
        return argument.as_records()
    value = use.value(argument)

    def make(gradient: Tensor) -> Contributions:
        copies = Dense(_by_copy(use, argument, gradient, value.shape)).merge(use.tape.records)
        return _contributions(argument, copies.dense())

    parameters = argument.parameters if isinstance(argument, Derived) else [argument]
    return use.tape.expand(value, shape, parameters, make)


def _by_copy(use: Use, argument: Any, gradient: Tensor, shape: Sequence[int]) -> Tensor:
    """The gradient at every copy of the value along the first axis: what broadcasting repeated
    along other axes is added up.
    """
    copies = use.fits(gradient, argument)
    padded = (1,) * (gradient.dim() - len(shape)) + tuple(shape)
    if padded[0] != 1:
        raise not_by_record_error(use.name(argument), "it is not the same for every record")
    repeated = [
        axis for axis, size in enumerate(padded) if axis > 0 and size == 1 and gradient.shape[axis] > 1
    ]
    if repeated:
        gradient = gradient.sum(repeated, keepdim=True)
    return gradient.reshape(copies, *shape)


def as_records(arguments: Any) -> Any:
    """Arguments in which rows that were looked up are rows of records."""
    return internals.tree_map(
        lambda leaf: leaf.as_records() if isinstance(leaf, EmbeddedRows) else leaf, arguments
    )


def _contributions(argument: Any, gradients: Tensor) -> Contributions:
    return (
        argument.contributions(gradients) if isinstance(argument, Derived) else [(argument, Dense(gradients))]
    )
