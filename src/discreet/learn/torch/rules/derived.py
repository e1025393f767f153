# SPDX-License-Identifier: Apache-2.0
"""Parameters that are no layer's weight: tokens, positions, scales, added or multiplied into every record.

A value made of parameters alone has no records. It gets them when it is broadcast against a tensor that has: then
each record sees its own copy, and the gradient at the copy is the gradient of the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from discreet.learn.torch.rules.embedding import Looked
from discreet.learn.torch.rules.piece import Dense
from discreet.learn.torch.rules.use import Use
from discreet.learn.torch.tape import Found, not_by_record
from discreet.learn.torch.watched import Derived, Watched, is_watched

__all__ = ["alone", "broadcast", "derived", "expanded", "settled", "shown"]


def alone(leaves: Sequence[Any]) -> bool:
    """Whether no argument can have records: all tensors are made of parameters, or are single numbers."""
    return all(_is_constant(leaf) for leaf in leaves if isinstance(leaf, Tensor))


def _is_constant(tensor: Tensor) -> bool:
    if isinstance(tensor, Looked):
        return False
    return is_watched(tensor) or tensor.dim() == 0


def derived(use: Use, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a function of parameters, with its own graph back to them."""
    flat, shape = tree_flatten((args, kwargs))
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
    args, kwargs = tree_unflatten(flat, shape)

    def marked(result: Any) -> Any:
        if not isinstance(result, Tensor) or not result.requires_grad:
            return result
        made = result.detach().as_subclass(Derived)
        made.tape, made.dispatch = use.tape, (parameters[0]).dispatch
        made.value, made.parameters, made.leaves = result, parameters, leaves
        return made

    return tree_map(marked, use.function(*args, **kwargs))


def broadcast(use: Use, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function that works number by number: parameters are shown to every record first."""
    tensors = [argument for argument in (*args, *kwargs.values()) if isinstance(argument, Tensor)]
    shape = torch.broadcast_tensors(*map(use.value, tensors))[0].shape  # type: ignore[no-untyped-call]
    args = tuple(shown(use, argument, shape) for argument in args)
    return use.function(*args, **{name: shown(use, argument, shape) for name, argument in kwargs.items()})


def expanded(use: Use, value: Any, *sizes: Any, **named: Any) -> Tensor:
    """`expand`, `expand_as`, `broadcast_to`: the record is the first axis of the result."""
    shape = use.function(value.detach(), *sizes, **named).shape
    made: Tensor = shown(use, value, shape)
    return made


def shown(use: Use, argument: Any, shape: Sequence[int]) -> Any:
    """A parameter as every record sees it; other arguments as they are."""
    if not use.watches(argument):
        return argument
    if isinstance(argument, Derived) and not argument.grows(shape):
        return argument.settled()
    value = use.value(argument)

    def make(gradient: Tensor) -> Found:
        return _traced(argument, _by_record(use, argument, gradient, value.shape))

    parameters = argument.parameters if isinstance(argument, Derived) else [argument]
    return use.tape.spread(value, shape, parameters, make)


def _by_record(use: Use, argument: Any, gradient: Tensor, shape: Sequence[int]) -> Tensor:
    """The gradient of every record at its copy of the value: what broadcasting repeated is added up."""
    records = use.fits(gradient, argument)
    padded = (1,) * (gradient.dim() - len(shape)) + tuple(shape)
    if padded[0] != 1:
        raise not_by_record(use.name(argument), "it is not the same for every record")
    repeated = [
        axis for axis, size in enumerate(padded) if axis > 0 and size == 1 and gradient.shape[axis] > 1
    ]
    if repeated:
        gradient = gradient.sum(repeated, keepdim=True)
    return gradient.reshape(records, *shape)


def settled(arguments: Any) -> Any:
    """Arguments in which rows that were looked up are rows of records."""
    return tree_map(lambda leaf: leaf.settled() if isinstance(leaf, Looked) else leaf, arguments)


def _traced(argument: Any, gradients: Tensor) -> Found:
    return argument.traced(gradients) if isinstance(argument, Derived) else [(argument, Dense(gradients))]
