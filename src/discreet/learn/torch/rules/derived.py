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

__all__ = ["as_records", "broadcast", "derive", "expand", "have_no_records", "show_to_records"]


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


def show_to_records(use: Use, argument: Any, shape: Sequence[int]) -> Any:
    """A parameter as every record sees it; other arguments as they are."""
    if not use.watches(argument):
        return argument
    if isinstance(argument, Derived) and not argument.grows(shape):
        return argument.as_records()
    value = use.value(argument)

    def make(gradient: Tensor) -> Contributions:
        return _contributions(argument, _by_record(use, argument, gradient, value.shape))

    parameters = argument.parameters if isinstance(argument, Derived) else [argument]
    return use.tape.expand(value, shape, parameters, make)


def _by_record(use: Use, argument: Any, gradient: Tensor, shape: Sequence[int]) -> Tensor:
    """The gradient of every record at its copy of the value: what broadcasting repeated is added
    up.
    """
    records = use.fits(gradient, argument)
    padded = (1,) * (gradient.dim() - len(shape)) + tuple(shape)
    if padded[0] != 1:
        raise not_by_record_error(use.name(argument), "it is not the same for every record")
    repeated = [
        axis for axis, size in enumerate(padded) if axis > 0 and size == 1 and gradient.shape[axis] > 1
    ]
    if repeated:
        gradient = gradient.sum(repeated, keepdim=True)
    return gradient.reshape(records, *shape)


def as_records(arguments: Any) -> Any:
    """Arguments in which rows that were looked up are rows of records."""
    return internals.tree_map(
        lambda leaf: leaf.as_records() if isinstance(leaf, EmbeddedRows) else leaf, arguments
    )


def _contributions(argument: Any, gradients: Tensor) -> Contributions:
    return (
        argument.contributions(gradients) if isinstance(argument, Derived) else [(argument, Dense(gradients))]
    )
