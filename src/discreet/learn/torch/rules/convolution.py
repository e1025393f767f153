# SPDX-License-Identifier: Apache-2.0
"""Convolutions in one, two or three dimensions, with any stride, padding, dilation and groups, and
their transposes.

A convolution is a linear layer on patches: the gradient of a record is Σ_t g_t u_tᵀ with u_t the
patch under position t. Of a transposed convolution the patches are those of the gradient, and the
input takes the place of g.
"""

# ruff: noqa: PLR0917 - the arguments of a rule are those of the function of torch

from __future__ import annotations

from typing import Any

from torch import Tensor

from discreet.learn.torch.pieces.base import Dense, Piece, wide
from discreet.learn.torch.pieces.patches import PatchProducts, PatchWindow
from discreet.learn.torch.rules.use import Use

__all__ = ["convolution", "transposed_convolution"]


def convolution(
    use: Use,
    x: Tensor,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    x = use.narrow(x)
    out = use.function(x, use.value(weight), use.value(bias), stride, padding, dilation, groups)
    window = _window(tuple(weight.shape[2:]), stride, padding, dilation, groups)
    return _tap(use, out, x, weight, bias, window, transposed=False)


def transposed_convolution(
    use: Use,
    x: Tensor,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    x = use.narrow(x)
    out = use.function(
        x, use.value(weight), use.value(bias), stride, padding, output_padding, groups, dilation
    )
    window = _window(tuple(weight.shape[2:]), stride, padding, dilation, groups)
    return _tap(use, out, x, weight, bias, window, transposed=True)


def _tap(
    use: Use, out: Tensor, x: Tensor, weight: Any, bias: Any, window: PatchWindow, *, transposed: bool
) -> Tensor:
    def pieces(gradient: Tensor, *saved: Tensor) -> tuple[Piece | None, Piece | None]:
        use.fits(gradient, weight if use.watches(weight) else bias)
        of_weight = None
        if saved:
            inputs = saved[0].to(gradient.dtype)
            source, signal = (gradient, inputs) if transposed else (inputs, gradient)
            of_weight = PatchProducts(source, signal, window, transposed=transposed)
        if not use.watches(bias):
            return of_weight, None
        return of_weight, Dense(gradient.flatten(2).sum(2, dtype=wide(gradient.dtype)))

    return use.tap(out, (weight, bias), pieces, *([x] if use.watches(weight) else []))


def _window(kernel: tuple[int, ...], stride: Any, padding: Any, dilation: Any, groups: int) -> PatchWindow:
    gaps = _per_dimension(dilation, kernel)
    if padding == "same":
        whole = [gap * (size - 1) for gap, size in zip(gaps, kernel, strict=True)]
        sides = tuple((side // 2, side - side // 2) for side in whole)
    else:
        sides = tuple((side, side) for side in _per_dimension(0 if padding == "valid" else padding, kernel))
    return PatchWindow(kernel, _per_dimension(stride, kernel), sides, gaps, groups)


def _per_dimension(number: Any, kernel: tuple[int, ...]) -> tuple[int, ...]:
    """One number for each dimension of the kernel."""
    several = (number,) if isinstance(number, int) else tuple(number)
    return several * len(kernel) if len(several) == 1 else several
