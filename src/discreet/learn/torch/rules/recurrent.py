# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers, written out step by step, so that their linear layers have the rule of linear
layers.

The weight between steps is used once for every step; the uses are joined before the norm is taken.
Slower than the fused kernels that torch has for them, and the same up to rounding.
"""

# ruff: noqa: PLR0917, FBT001 - the arguments of a rule are those of the function of torch

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from discreet.learn.torch.rules.linear import linear
from discreet.learn.torch.rules.use import Use

__all__ = ["gru", "gru_cell", "lstm", "lstm_cell", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell"]

#: Makes the next state from the part of the input, the last state and the weights.
Step = Callable[[Use, Tensor, tuple[Tensor, ...], Sequence[Any]], tuple[Tensor, ...]]


def _lstm_step(
    use: Use, from_input: Tensor, state: tuple[Tensor, ...], weights: Sequence[Any]
) -> tuple[Tensor, ...]:
    hidden, cell = state
    gates = from_input + linear(use, hidden, weights[1], weights[3])
    enter, forget, new, leave = gates.chunk(4, -1)
    cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
    hidden = leave.sigmoid() * cell.tanh()
    return (linear(use, hidden, weights[4]) if len(weights) > 4 else hidden), cell


def _gru_step(
    use: Use, from_input: Tensor, state: tuple[Tensor, ...], weights: Sequence[Any]
) -> tuple[Tensor, ...]:
    (hidden,) = state
    reset, update, new = from_input.chunk(3, -1)
    of_reset, of_update, of_new = linear(use, hidden, weights[1], weights[3]).chunk(3, -1)
    update = (update + of_update).sigmoid()
    new = (new + (reset + of_reset).sigmoid() * of_new).tanh()
    return ((1 - update) * new + update * hidden,)


def _tanh_step(
    use: Use, from_input: Tensor, state: tuple[Tensor, ...], weights: Sequence[Any]
) -> tuple[Tensor, ...]:
    return ((from_input + linear(use, state[0], weights[1], weights[3])).tanh(),)


def _relu_step(
    use: Use, from_input: Tensor, state: tuple[Tensor, ...], weights: Sequence[Any]
) -> tuple[Tensor, ...]:
    return ((from_input + linear(use, state[0], weights[1], weights[3])).relu(),)


def _layers(step: Step) -> Callable[..., tuple[Tensor, ...] | None]:
    def layer_rule(
        use: Use,
        x: Tensor,
        first: Any,
        weights: Any,
        has_biases: Any,
        layers: Any,
        dropout: Any,
        train: Any,
        bidirectional: Any,
        batch_first: Any,
    ) -> tuple[Tensor, ...] | None:
        """torch's call for sequences of one length; packed sequences have no rule, because they mix
        records.
        """
        if isinstance(first, Tensor) and not first.is_floating_point():
            return None
        states = tuple(first) if isinstance(first, list | tuple) else (first,)
        x = x if batch_first else x.transpose(0, 1)
        ways, ends = 1 + bool(bidirectional), []
        weights_per_way = len(weights) // (layers * ways)
        for layer in range(layers):
            outs = []
            for way in range(ways):
                index = layer * ways + way
                first_weight = index * weights_per_way
                way_weights = _in_order(
                    weights[first_weight : first_weight + weights_per_way], bool(has_biases)
                )
                out, end = _sequence(
                    use, step, x, tuple(state[index] for state in states), way_weights, backwards=way == 1
                )
                outs.append(out)
                ends.append(end)
            x = torch.cat(outs, -1)
            if dropout and train and layer < layers - 1:
                x = functional.dropout(x, dropout)
        last = tuple(torch.stack(parts) for parts in zip(*ends, strict=True))
        return x if batch_first else x.transpose(0, 1), *last

    return layer_rule


def _in_order(weights: Sequence[Any], has_biases: bool) -> list[Any]:
    """Weight of the input, of the state, their biases or None, and the projection if there is one."""
    if has_biases:
        return list(weights)
    return [*weights[:2], None, None, *weights[2:]]


def _sequence(
    use: Use, step: Step, x: Tensor, state: tuple[Tensor, ...], weights: Sequence[Any], *, backwards: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    from_input = linear(use, x, weights[0], weights[2])
    outs: list[Tensor] = []
    positions = range(x.shape[1])
    for position in reversed(positions) if backwards else positions:
        state = step(use, from_input[:, position], state, weights)
        outs.append(state[0])
    return torch.stack(outs[::-1] if backwards else outs, 1), state


def _cell(step: Step) -> Callable[..., Any]:
    def layer_rule(use: Use, x: Tensor, first: Any, *weights: Any) -> Any:
        several = isinstance(first, list | tuple)
        padded = [*weights, *[None] * (4 - len(weights))]
        state = step(use, linear(use, x, padded[0], padded[2]), tuple(first) if several else (first,), padded)
        return state if several else state[0]

    return layer_rule


lstm, gru, rnn_tanh, rnn_relu = (_layers(step) for step in (_lstm_step, _gru_step, _tanh_step, _relu_step))
lstm_cell, gru_cell, rnn_tanh_cell, rnn_relu_cell = (
    _cell(step) for step in (_lstm_step, _gru_step, _tanh_step, _relu_step)
)
