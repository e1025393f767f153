# SPDX-License-Identifier: Apache-2.0
"""The oracle: each record alone through the ordinary model, its gradient by autograd, clipped, added up."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from torch import Tensor, nn

from discreet.learn.torch.clip import ClippedSum, Clipper


def wavy(model: nn.Module, x: Tensor) -> Tensor:
    """A loss for each record that depends on every number of the output, each in its own way."""
    out = model(x).flatten(1)
    return (out * torch.arange(1, 1 + out.shape[1])).sin().sum(1)


def record_gradients(model: nn.Module, x: Tensor, loss=wavy) -> list[list[Tensor]]:
    parameters = [p for p in model.parameters() if p.requires_grad]
    rows = []
    for i in range(len(x)):
        found = torch.autograd.grad(loss(model, x[i : i + 1]).sum(), parameters, allow_unused=True)
        rows.append([torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found, strict=True)])
    return rows


def norm_of(gradients: list[Tensor]) -> Tensor:
    return torch.stack([g.double().square().sum() for g in gradients]).sum().sqrt()


def clipped_by_hand(rows: list[list[Tensor]], clip: float) -> list[Tensor]:
    factors = [min(1.0, clip / float(norm_of(row))) for row in rows]
    return [sum(c * g for c, g in zip(factors, part, strict=True)) for part in zip(*rows, strict=True)]


def clipped(model: nn.Module, x: Tensor, clip: float, loss=wavy, *, merged=False, **named) -> ClippedSum:
    clipper = Clipper(model)
    with clipper.learn() if merged else nullcontext(), clipper.watch():
        return clipper.clipped_sum(loss(model, x), clip=clip, **named)


def check_equal(model: nn.Module, x: Tensor, loss=wavy, *, merged=False) -> None:
    """Sums and norms are those of the oracle, at a clip that binds for some records and not for others."""
    rows = record_gradients(model, x, loss)
    norms = torch.stack([norm_of(row) for row in rows])
    clip = float(norms.median())
    assert float(norms.min()) < clip < float(norms.max())
    found = clipped(model, x, clip, loss, merged=merged)
    parameters = [p for p in model.parameters() if p.requires_grad]
    for parameter, wanted in zip(parameters, clipped_by_hand(rows, clip), strict=True):
        torch.testing.assert_close(found.gradients[parameter], wanted, rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(found.norms, norms, rtol=1e-7, atol=0)
    assert int(found.below) <= len(x) // 2 + 1
    assert all(p.requires_grad and type(p) is nn.Parameter and p.grad is None for p in parameters)
