# SPDX-License-Identifier: Apache-2.0
"""Multi-head attention: linear layers around a product of records with themselves.

torch computes it in one call, inside which no layer is seen. Here it is written out, with the
record as the first axis, so that its linear layers have the rule of linear layers. The result is
the same up to rounding.
"""

# ruff: noqa: PLR0917, FBT001, FBT002, ARG001 - the arguments of a rule are those of the function of torch

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from discreet.learn.torch.rules.derived import show_to_records
from discreet.learn.torch.rules.linear import linear
from discreet.learn.torch.rules.use import Use

__all__ = ["multi_head_attention", "scaled_dot_product"]


def multi_head_attention(
    use: Use,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout: float,
    out_proj_weight: Any,
    out_proj_bias: Any,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None] | None:
    """(positions, records, features) in and out, as torch has it."""
    if query.dim() != 3 or static_k is not None or static_v is not None:
        return None
    sources = _record_first(query, key, value)
    if use_separate_proj_weight:
        q, k, v = _project_apart(use, sources, (q_proj_weight, k_proj_weight, v_proj_weight), in_proj_bias)
    else:
        q, k, v = _project_packed(use, sources, in_proj_weight, in_proj_bias)
    k, v = _extend(use, k, bias_k, add_zero_attn), _extend(use, v, bias_v, add_zero_attn)
    mask = None
    if attn_mask is not None or key_padding_mask is not None:
        mask = _mask(attn_mask, key_padding_mask, q, k, heads)
    q, k, v = (part.reshape(*part.shape[:2], heads, -1).transpose(1, 2) for part in (q, k, v))
    mixed, weights = _attend(q, k, v, mask, dropout if training else 0.0, need_weights)
    out = linear(use, mixed.transpose(1, 2).flatten(2), out_proj_weight, out_proj_bias).transpose(0, 1)
    if weights is not None and average_attn_weights:
        weights = weights.mean(1)
    return out, weights


def scaled_dot_product(
    use: Use, query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None, *rest: Any, **named: Any
) -> Tensor | None:
    """A bias of positions that is made of parameters is shown to every record."""
    if any(map(use.watches, (query, key, value))):
        return None
    bias = show_to_records(use, attn_mask, (*query.shape[:-1], key.shape[-2]))
    attended: Tensor = use.function(query, key, value, bias, *rest, **named)
    return attended


def _record_first(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The record as first axis. Arguments that are the same tensor stay the same tensor."""
    q = query.transpose(0, 1)
    k = q if key is query else key.transpose(0, 1)
    return q, k, k if value is key else value.transpose(0, 1)


def _project_packed(
    use: Use, sources: tuple[Tensor, Tensor, Tensor], weight: Any, bias: Any
) -> tuple[Tensor, ...]:
    """Three projections with one weight. The positions of different sources are concatenated."""
    distinct: list[Tensor] = []
    for source in sources:
        if not any(source is earlier for earlier in distinct):
            distinct.append(source)
    joint = distinct[0] if len(distinct) == 1 else torch.cat(distinct, 1)
    pieces = linear(use, joint, weight, bias).split_with_sizes([source.shape[1] for source in distinct], 1)
    indices = [next(i for i, tensor in enumerate(distinct) if tensor is source) for source in sources]
    return tuple(pieces[index].chunk(3, -1)[part] for part, index in enumerate(indices))


def _project_apart(
    use: Use, sources: tuple[Tensor, Tensor, Tensor], weights: tuple[Any, Any, Any], bias: Any
) -> tuple[Tensor, ...]:
    """Three projections with weights of their own and one bias for all three."""
    projected = [linear(use, source, weight) for source, weight in zip(sources, weights, strict=True)]
    if bias is None:
        return tuple(projected)
    records = projected[0].shape[0]
    biases = show_to_records(use, bias, (records, 1, bias.shape[0])).chunk(3, -1)
    return tuple(part + own_bias for part, own_bias in zip(projected, biases, strict=True))


def _extend(use: Use, sequence: Tensor, extra: Any, zero: bool) -> Tensor:
    """One more position for a bias, and one for a zero, if they are asked for."""
    shape = (sequence.shape[0], 1, sequence.shape[2])
    if extra is not None:
        sequence = torch.cat(
            [sequence, show_to_records(use, extra, shape) if use.watches(extra) else extra.expand(shape)], 1
        )
    return torch.cat([sequence, sequence.new_zeros(shape)], 1) if zero else sequence


def _mask(attention: Tensor | None, padding: Tensor | None, q: Tensor, k: Tensor, heads: int) -> Tensor:
    """One mask of numbers to add, which can be broadcast to (records, heads, positions, positions)."""
    records, extra = q.shape[0], k.shape[1]
    whole = q.new_zeros(())
    if attention is not None:
        added = _as_numbers(attention, q)
        added = added.view(records, heads, *added.shape[1:]) if added.dim() == 3 else added
        whole = whole + functional.pad(added, (0, extra - added.shape[-1]))
    if padding is not None:
        added = _as_numbers(padding, q)
        whole = whole + functional.pad(added, (0, extra - added.shape[-1]))[:, None, None, :]
    return whole


def _as_numbers(mask: Tensor, like: Tensor) -> Tensor:
    """A mask as numbers to add: what is masked by True gets -inf."""
    if mask.dtype != torch.bool:
        return mask.to(like.dtype)
    return torch.zeros_like(mask, dtype=like.dtype).masked_fill_(mask, -math.inf)


def _attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    dropout: float,
    need_weights: bool,
) -> tuple[Tensor, Tensor | None]:
    if not need_weights:
        return functional.scaled_dot_product_attention(q, k, v, mask, dropout), None
    scores = (q * math.sqrt(1.0 / q.shape[-1])) @ k.mT
    weights = torch.softmax(scores if mask is None else scores + mask, dim=-1)
    if dropout > 0:
        weights = functional.dropout(weights, dropout)
    return weights @ v, weights
