# SPDX-License-Identifier: Apache-2.0
"""Linear layers, by whatever name they are called: linear, matmul, addmm."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from discreet.learn.torch.pieces.base import Piece
from discreet.learn.torch.pieces.outer import Outer, Signal, bias_piece
from discreet.learn.torch.rules.use import Use

__all__ = ["addmm", "linear", "matmul"]


def linear(use: Use, x: Any, weight: Any, bias: Any = None) -> Tensor:
    """x Wᵀ + b."""
    x = use.narrow(x)
    if x.dim() < 3:
        out = functional.linear(x, use.value(weight), use.value(bias))
        return _tap(use, out, x, weight, bias, transposed=False)
    # As a matrix: a product of more axes is a view of a matrix, and a view cannot be tapped.
    out = functional.linear(x.flatten(0, -2), use.value(weight), use.value(bias))
    shape = (*x.shape[:-1], out.shape[-1])
    return _tap(use, out, x, weight, bias, transposed=False, shape=shape).view(shape)


def matmul(use: Use, x: Any, weight: Any) -> Tensor | None:
    """x W, where W is a matrix and x is not made of parameters; other products have no rule here."""
    if use.watches(x) or weight.dim() != 2 or x.dim() < 2:
        return None
    x = use.narrow(x)
    return _tap(use, torch.matmul(x, use.value(weight)), x, weight, None, transposed=True)


def addmm(use: Use, bias: Any, x: Any, weight: Any, *, beta: float = 1, alpha: float = 1) -> Tensor | None:
    """x W + b."""
    if use.watches(x) or (beta, alpha) != (1, 1) or bias.dim() != 1:
        return None
    x = use.narrow(x)
    out = torch.addmm(use.value(bias), x, use.value(weight))
    return _tap(use, out, x, weight, bias, transposed=True)


def _tap(
    use: Use,
    out: Tensor,
    x: Tensor,
    weight: Any,
    bias: Any,
    *,
    transposed: bool,
    shape: tuple[int, ...] | None = None,
) -> Tensor:
    """Tap an output that will be seen in another `shape`, perhaps."""

    def pieces(gradient: Tensor, *saved: Tensor) -> tuple[Piece | None, Piece | None]:
        gradient = gradient if shape is None else gradient.reshape(shape)
        records = use.fits(gradient, weight if use.watches(weight) else bias)
        signal = Signal(_by_record(gradient, records))
        of_weight = None
        if saved:
            inputs = _by_record(saved[0], records)
            inputs = inputs if inputs.dtype == gradient.dtype else inputs.to(gradient.dtype)
            of_weight = Outer(inputs, signal, transposed=transposed)
        return of_weight, bias_piece(signal) if use.watches(bias) else None

    return use.tap(out, (weight, bias), pieces, *([x] if use.watches(weight) else []))


def _by_record(values: Tensor, records: int) -> Tensor:
    """(records, positions, features), or (records, features) as they are."""
    if values.dim() == 2 and values.shape[0] == records:
        return values
    return values.reshape(records, -1, values.shape[-1])
