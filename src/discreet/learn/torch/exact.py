# SPDX-License-Identifier: Apache-2.0
"""Level A: every record's gradient as whole numbers, summed as whole numbers, with exactly rounded
Gaussian noise.

**Guarantee.** What is released is a function of (a sum of integer vectors + round(N(0, s²)) in each
coordinate), where one record adds a vector whose norm is at most clip/γ *as checked in integers*,
and s = noise·clip/γ exactly. Nothing depends on how well floating point clipped, and low bits
reveal nothing.

Why it holds: |trunc(x)| ≤ |x|, so truncation makes no vector longer. A vector that int64 arithmetic
still finds too long is shortened once by 2⁻⁸. If it is still too long after that, it counts as
zero. That rule looks at one record alone. An integer plus a rounded normal is a rounding of the
integer plus the normal, so every theorem about Gaussian noise applies, under sampling too. A record
whose gradient is not finite counts as zero.

No overflow: |coordinate| ≤ clip/γ ≤ 2³¹, so squares add up below 2⁶³ once their float sum is below
2⁶²·⁵, and fewer than 2³¹ records can be summed in int64.

Records pass through the model one at a time. In a common pass 0·NaN = NaN carries values that are
not finite from one record's row into all others. One record could then change what all of them
contribute.

What would break it: a source of bits that is not uniform. Side channels (time, memory) are not
covered.

One pass for each record is slow: this is for small models.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from fractions import Fraction

import torch
from torch import Tensor
from torch.nn import Module, Parameter

from discreet.errors import BadParameter, RefusedTraining
from discreet.learn.torch import guards, internals
from discreet.learn.torch.clip import Clipper
from discreet.learn.torch.noise import Number
from discreet.learn.torch.refusals import refuse_ordinary_gradients
from discreet.noise.grid import log_two_floor
from discreet.noise.integer import rounded_gaussian

__all__ = ["ExactSums", "check_grid", "whole_cells"]

#: γ is the noise divided by 2**20, or a little less.
_FINE = 20
_LONGEST = 2**31
_SHORTER = 1 - 2.0**-8


class ExactSums:
    """Sums in int64 on the CPU, of records that come one at a time."""

    level = "A"

    def __init__(self, parameters: Iterable[Parameter], *, noise: float) -> None:
        self._parameters, self._noise = list(parameters), noise
        self._total = torch.zeros(sum(p.numel() for p in self._parameters), dtype=torch.int64)
        if any(map(internals.has_gradient_hooks, self._parameters)):
            raise RefusedTraining(
                "DP916",
                "the parameters belong to a run that is still open, or have hooks for gradients of their own.",
                why="only one of the two runs would count a step.",
                fix="run.close()   (or with private(…) as run: …)",
            )
        self._handles = refuse_ordinary_gradients(self._parameters)

    def begin(self) -> None:
        self._total.zero_()
        for parameter in self._parameters:
            parameter.grad = None

    def add(self, losses: Tensor, *, clip: Number, weights: Tensor | None) -> Callable[[], Tensor]:
        gradient = _gradient(losses, self._parameters)
        finite = torch.isfinite(gradient).all()
        counts = finite if weights is None else finite & (weights.cpu() > 0).all()
        gradient = torch.where(counts, gradient, 0.0)
        norm, bound = gradient.norm(), float(clip)
        shrunk = gradient * (bound / torch.clamp(norm, min=bound))
        self._total += whole_cells(shrunk, _longest(clip, self._noise))
        below: Tensor = counts & (norm <= bound)
        return below.sum

    def release(self, *, noise: float, clip: Number, divide: float) -> None:
        cell, bound = _cell(clip, self._noise), Fraction(float(clip))
        # In place, so that no sum without noise outlives the release.
        total, self._total = self._total, torch.zeros_like(self._total)
        total += torch.from_numpy(rounded_gaussian(Fraction(noise) * bound / cell, total.numel()))
        released = total.double() * (float(cell) / divide)
        parts = torch.split(released, [p.numel() for p in self._parameters])
        for parameter, part in zip(self._parameters, parts, strict=True):
            parameter.grad = part.view(parameter.shape).to(parameter.device, parameter.dtype)

    def test(self, model: Module, inputs: tuple[Tensor, ...]) -> guards.Writes:
        return guards.check(Clipper(model), inputs)

    def pause(self) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        self._total.zero_()
        for handle in self._handles:
            handle.remove()


def whole_cells(gradient: Tensor, longest: tuple[float, int]) -> Tensor:
    """In whole cells, cut towards zero, of a norm within the bound: `longest` has cells per unit,
    and its square.
    """
    per_cell, square = longest
    cells = (gradient * per_cell).trunc()
    for candidate in (cells, (cells * _SHORTER).trunc()):
        # Below this the exact sum of squares does not overflow.
        is_small = candidate.square().sum() < 2.0**62.5
        if is_small and int(candidate.to(torch.int64).square().sum()) <= square:
            return candidate.to(torch.int64)
    return torch.zeros_like(cells, dtype=torch.int64)


def _gradient(losses: Tensor, parameters: Sequence[Parameter]) -> Tensor:
    """The gradient of one record, as doubles on the CPU."""
    gradients = torch.autograd.grad(losses.sum(), parameters, allow_unused=True)
    flat = [torch.zeros_like(p) if g is None else g for g, p in zip(gradients, parameters, strict=True)]
    return torch.cat([part.detach().flatten().cpu().double() for part in flat])


def _cell(clip: Number, noise: float) -> Fraction:
    """γ, a power of two."""
    return Fraction(2) ** (log_two_floor(Fraction(noise) * Fraction(float(clip))) - _FINE)


def _longest(clip: Number, noise: float) -> tuple[float, int]:
    """Cells per unit, and the square of the clipping norm in cells, rounded down."""
    cells = Fraction(float(clip)) / _cell(clip, noise)
    return float(1 / _cell(clip, noise)), math.floor(cells * cells)


def check_grid(clip: float, noise: float) -> None:
    """Refuse noise so small that a gradient in units of its grid does not fit into 32 bits."""
    if Fraction(clip) / _cell(clip, noise) > _LONGEST:
        raise BadParameter(
            "DP108",
            f"with noise of {noise:g} clipping norms a gradient does not fit exactly into 64 bits.",
            why="so little noise needs a grid so fine that sums could overflow.",
            fix="noise=0.01 or more, or exact=False",
        )
