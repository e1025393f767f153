# SPDX-License-Identifier: Apache-2.0
"""Layers that scale and shift: layer, group, instance and root-mean-square norms, and PReLU.

out = x̂·w + b with x̂ a function of one record. The gradient of a record is Σ_t g_t·x̂_t for w and
Σ_t g_t for b: as small as the parameter, so it is kept whole. x̂ is made again in the backward
pass, not kept.
"""

# ruff: noqa: PLR0917, FBT001, FBT002 - the arguments of a rule are those of the function of torch

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from discreet.errors import RefusedTraining
from discreet.learn.torch.passes import affine_sums, kernels
from discreet.learn.torch.pieces.base import Dense, Piece, wide
from discreet.learn.torch.rules.use import Use

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "prelu", "rms_norm"]


def layer_norm(
    use: Use, x: Tensor, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    """The forward pass also returns mean and scale, so that x̂ follows without computing them
    again.
    """
    x, w, b = _widen(x, use.value(weight), use.value(bias))
    out, mean, scale = torch.native_layer_norm(x, shape, w, b, eps)
    axes = tuple(range(x.dim() - len(shape), x.dim()))

    def pieces(gradient: Tensor, x: Tensor, mean: Tensor, scale: Tensor) -> tuple[Piece | None, Piece | None]:
        use.fits(gradient, weight if use.watches(weight) else bias)
        sums = zip((weight, bias), _affine_sums(gradient, x, mean, scale, axes), strict=True)
        of_weight, of_bias = (Dense(total) if use.watches(parameter) else None for parameter, total in sums)
        return of_weight, of_bias

    return use.tap(out, (weight, bias), pieces, x, mean.detach(), scale.detach())


def _widen(x: Tensor, *parameters: Tensor | None) -> tuple[Any, ...]:
    """The arguments in wide numbers under automatic mixed precision, and unchanged without it."""
    if not torch.is_autocast_enabled(x.device.type):
        return (x, *parameters)
    kind = wide(x.dtype)
    return tuple(None if tensor is None else tensor.to(kind) for tensor in (x, *parameters))


def _affine_sums(
    gradient: Tensor, x: Tensor, mean: Tensor, scale: Tensor, axes: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    """Σ_t g_t·x̂_t and Σ_t g_t of each record."""
    if axes == (2,) and kernels(x) and kernels(gradient) and mean.dtype == torch.float32:
        return affine_sums(gradient, x, mean, scale)
    kind = wide(x.dtype)
    normal = (x.to(kind) - mean.to(kind)).mul_(scale.to(kind))
    return _sum_over_positions(normal.mul_(gradient), axes), _sum_over_positions(gradient, axes)


def rms_norm(use: Use, x: Tensor, shape: Any, weight: Any = None, eps: float | None = None) -> Tensor:
    normal = partial(functional.rms_norm, normalized_shape=shape, eps=eps)
    axes = tuple(range(x.dim() - len(shape), x.dim()))
    return _tap_scale_and_shift(use, normal(x, weight=use.value(weight)), x, weight, None, normal, axes)


def group_norm(
    use: Use, x: Tensor, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    """Σ_t g_t·x̂_t is (Σ_t g_t·x_t - mean·Σ_t g_t)/deviation, so x̂ is never computed."""
    x, w, b = _widen(x, use.value(weight), use.value(bias))
    records, channels = x.shape[:2]
    sizes = records, channels, x.numel() // max(1, records * channels), groups
    out, mean, scale = torch.native_group_norm(x.contiguous(), w, b, *sizes, eps)

    def pieces(gradient: Tensor, x: Tensor, *statistics: Tensor) -> tuple[Piece | None, Piece | None]:
        use.fits(gradient, weight if use.watches(weight) else bias)
        sums = _sum_over_positions(gradient, (1,))
        of_bias = Dense(sums) if use.watches(bias) else None
        if not use.watches(weight):
            return None, of_bias
        kind = sums.dtype
        mean, scale = (statistic[..., None].to(kind) for statistic in statistics)
        group_sums = sums.view(records, groups, -1)
        products = _sum_over_positions(gradient.to(kind) * x.to(kind), (1,)).view_as(group_sums)
        gradients = torch.addcmul(products, mean, group_sums, value=-1).mul_(scale)
        return Dense(gradients.flatten(1)), of_bias

    return use.tap(out, (weight, bias), pieces, x, mean.detach(), scale.detach())


def instance_norm(
    use: Use,
    x: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    if running_mean is not None and use_input_stats:
        raise mixing_layer_error(
            use, weight, "instance_norm with running statistics", "track_running_stats=False"
        )

    settings: dict[str, Any] = {"momentum": momentum, "eps": eps, "use_input_stats": use_input_stats}
    normal = partial(functional.instance_norm, running_mean=running_mean, running_var=running_var, **settings)
    return _tap_channels(use, x, weight, bias, normal)


def batch_norm(
    use: Use,
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """With statistics that are constants it is a scale and a shift; with those of the batch it is
    refused.
    """
    if training or running_mean is None:
        raise mixing_layer_error(
            use, weight, "batch_norm", "torch.nn.GroupNorm(32, channels) in its place, or .eval()"
        )

    settings: dict[str, Any] = {"momentum": momentum, "eps": eps}
    normal = partial(functional.batch_norm, running_mean=running_mean, running_var=running_var, **settings)
    return _tap_channels(use, x, weight, bias, normal)


def prelu(use: Use, x: Tensor, weight: Any) -> Tensor:
    out = torch.prelu(x, use.value(weight))

    def pieces(gradient: Tensor, x: Tensor) -> tuple[Piece, None]:
        use.fits(gradient, weight)
        slopes = gradient * x.clamp(max=0)
        if weight.numel() == 1:
            return Dense(slopes.flatten(1).sum(1, dtype=wide(x.dtype))[:, None]), None
        return Dense(_sum_over_positions(slopes, (1,))), None

    return use.tap(out, (weight, None), pieces, x)


def _tap_channels(use: Use, x: Tensor, weight: Any, bias: Any, normal: Callable[..., Tensor]) -> Tensor:
    """Tap x̂·w + b with one scale and one shift for each channel."""
    out = normal(x, weight=use.value(weight), bias=use.value(bias))
    return _tap_scale_and_shift(use, out, x, weight, bias, normal, (1,))


def _tap_scale_and_shift(
    use: Use,
    out: Tensor,
    x: Tensor,
    weight: Any,
    bias: Any,
    normal: Callable[[Tensor], Tensor],
    axes: tuple[int, ...],
) -> Tensor:
    """Tap an output x̂·w + b, where `axes` are those of the parameters."""

    def pieces(gradient: Tensor, x: Tensor) -> tuple[Piece | None, Piece | None]:
        use.fits(gradient, weight if use.watches(weight) else bias)
        of_weight = Dense(_sum_over_positions(gradient * normal(x), axes)) if use.watches(weight) else None
        return of_weight, Dense(_sum_over_positions(gradient, axes)) if use.watches(bias) else None

    return use.tap(out, (weight, bias), pieces, x)


def _sum_over_positions(values: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The sum over all axes but the record and those named."""
    others = [axis for axis in range(1, values.dim()) if axis not in axes]
    kind = wide(values.dtype)
    return values.sum(others, dtype=kind) if others else values.to(kind)


def mixing_layer_error(use: Use, parameter: Any, what: str, instead: str) -> RefusedTraining:
    """The refusal of a layer that computes with several records at once."""
    return RefusedTraining(
        "DP922",
        f"{use.name(parameter)} belongs to {what}, which mixes records.",
        why="one record then changes the gradients of all others, so clipping each gradient bounds nothing.",
        fix=instead,
    )
