# SPDX-License-Identifier: Apache-2.0
"""The table of rules, and how a call finds the one that answers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from discreet.learn.torch import internals
from discreet.learn.torch.rules import (
    attention,
    convolution,
    derived,
    embedding,
    fallback,
    linear,
    norms,
    recurrent,
)
from discreet.learn.torch.rules.use import Use
from discreet.learn.torch.tape import Tape

__all__ = ["dispatch"]

Rule = Callable[..., Any]

_RULES: dict[Any, Rule] = {
    functional.linear: linear.linear,
    torch.matmul: linear.matmul,
    torch.mm: linear.matmul,
    Tensor.matmul: linear.matmul,
    Tensor.mm: linear.matmul,
    Tensor.__matmul__: linear.matmul,
    torch.addmm: linear.addmm,
    **dict.fromkeys((torch.conv1d, torch.conv2d, torch.conv3d), convolution.convolution),
    **dict.fromkeys(
        (torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d),
        convolution.transposed_convolution,
    ),
    functional.embedding: embedding.embedding,
    functional.layer_norm: norms.layer_norm,
    functional.rms_norm: norms.rms_norm,
    functional.group_norm: norms.group_norm,
    functional.instance_norm: norms.instance_norm,
    functional.batch_norm: norms.batch_norm,
    torch.prelu: norms.prelu,
    functional.multi_head_attention_forward: attention.multi_head_attention,
    functional.scaled_dot_product_attention: attention.scaled_dot_product,
    torch.lstm: recurrent.lstm,
    torch.gru: recurrent.gru,
    torch.rnn_tanh: recurrent.rnn_tanh,
    torch.rnn_relu: recurrent.rnn_relu,
    torch.lstm_cell: recurrent.lstm_cell,
    torch.gru_cell: recurrent.gru_cell,
    torch.rnn_tanh_cell: recurrent.rnn_tanh_cell,
    torch.rnn_relu_cell: recurrent.rnn_relu_cell,
}
#: Functions that put a parameter at places of records.
_PLACE: dict[Any, Rule] = {
    **dict.fromkeys(
        (Tensor.expand, Tensor.expand_as, Tensor.broadcast_to, torch.broadcast_to), derived.expand
    ),
    **dict.fromkeys((Tensor.repeat, Tensor.tile, torch.tile), derived.repeat),
    Tensor.__setitem__: derived.assign,
}


def _functions(names: str, *homes: Any) -> set[Any]:
    """The functions with these names, as far as this version of torch has them."""
    return {getattr(home, name) for name in names.split() for home in homes if hasattr(home, name)}


#: Functions that work number by number.
_BY_NUMBER = _functions(
    "add sub mul div true_divide rsub where maximum minimum pow lerp", torch, Tensor
) | _functions("add_ sub_ mul_ div_ __radd__ __rsub__ __rmul__ __rtruediv__ __pow__ __rpow__", Tensor)
#: Questions about a tensor, and ways to say that no gradient is wanted.
_QUIET = _functions(
    "size dim numel stride is_contiguous is_floating_point is_complex data_ptr detach requires_grad_ "
    "element_size storage_offset __len__ __hash__ __repr__ __format__ __deepcopy__ item tolist cpu numpy "
    "__dlpack__ untyped_storage is_shared share_memory_ ndimension nelement get_device type_as",
    Tensor,
)
_LIFTS = {Tensor.unsqueeze, torch.unsqueeze, Tensor.__getitem__}


def dispatch(tape: Tape, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Answer a call that has a watched parameter among its arguments."""
    rule, use = _RULES.get(function), Use(tape, function)
    if (tape.shapes is not None or function in tape.constant_functions) and _is_constant(use, args, kwargs):
        return derived.derive(use, args, kwargs)
    # A layer and its input: nearly every call.
    if rule is not None and args and not Use.watches(args[0]):
        out = rule(use, *args, **kwargs)
        return out if out is not None else fallback.by_record(use, args, kwargs)
    if function in _QUIET:
        return function(*args, **kwargs)
    if function in _PLACE:
        return _PLACE[function](use, *args, **kwargs)
    leaves = internals.tree_leaves((args, kwargs))
    if function in _BY_NUMBER and not derived.have_no_records(leaves):
        return derived.broadcast(use, args, kwargs)
    if any(isinstance(leaf, embedding.EmbeddedRows) for leaf in leaves):
        if function in _LIFTS and args[1] in {0, None}:
            return args[0].add_record_axis()
        return _call_with(tape, function, *derived.as_records((args, kwargs)))
    if function is not functional.embedding and derived.have_no_records(leaves):
        return derived.derive(use, args, kwargs)
    out = rule(use, *args, **kwargs) if rule else None
    return out if out is not None else fallback.by_record(use, args, kwargs)


def _is_constant(use: Use, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether no tensor in a call has records, by what the guards have seen. They collect the
    shapes here.
    """
    leaves = internals.tree_leaves((args, kwargs))
    kind, shapes = use.kind(leaves), use.tape.shapes
    if shapes is not None:
        others = (leaf for leaf in leaves if not use.watches(leaf))
        sizes = (tuple(leaf.shape) if isinstance(leaf, Tensor) else leaf for leaf in others)
        shapes.setdefault(kind, []).append(tuple(size for size in sizes if isinstance(size, int | tuple)))
    is_undecided = any(isinstance(leaf, embedding.EmbeddedRows) for leaf in leaves)
    return bool(kind.axes) and use.tape.is_constant(kind) and not is_undecided


def _call_with(
    tape: Tape, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Repeat the call with other arguments. Perhaps none of them is watched any more."""
    if any(Use.watches(leaf) for leaf in internals.tree_leaves((args, kwargs))):
        return dispatch(tape, function, args, kwargs)
    return function(*args, **kwargs)
