# SPDX-License-Identifier: Apache-2.0
"""Sums of outer products with patches: the gradient of a record at the weight of a convolution is
Σ_t g_t u_tᵀ.

u_t is the patch of the input under position t. Of a transposed convolution the patches are those of
the gradient, and the input takes the place of g.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from math import prod

import torch
from torch import Tensor
from torch.nn import functional

from discreet.learn.torch import windows
from discreet.learn.torch.pieces.base import Dense, Measure, Piece, Share, lengths, matmul, unit_of, wide

__all__ = ["PatchProducts", "PatchWindow"]

#: So many numbers of patches are made at a time.
_PATCHES = 2**25


class PatchWindow(windows.Window):
    """A window with what pieces need: patches, and the gradient at a weight."""

    def pad(self, x: Tensor) -> Tensor:
        pads = [side for pair in reversed(self.padding) for side in pair]
        return functional.pad(x, pads) if any(pads) else x

    def patches(self, x: Tensor) -> Tensor:
        """Of a padded input: (records · groups, numbers in a patch, positions)."""
        n = len(self.kernel)
        for axis, (size, step, gap) in enumerate(
            zip(self.kernel, self.stride, self.dilation, strict=True), 2
        ):
            x = x.unfold(axis, gap * (size - 1) + 1, step)[..., ::gap]
        order = (0, 1, *range(2 + n, 2 + 2 * n), *range(2, 2 + n))
        width = x.shape[1] // self.groups * prod(self.kernel)
        return x.permute(order).reshape(x.shape[0] * self.groups, width, -1)

    @property
    def covers(self) -> int:
        """The largest number of patches that contain one place of the input."""
        triples = zip(self.kernel, self.stride, self.dilation, strict=True)
        return prod(-(-size // step) if gap == 1 else size for size, step, gap in triples)

    def backward(self, source: Tensor, signal: Tensor, weight: Tensor, groups: int) -> Tensor:
        """The gradient at a weight of that shape."""
        zeros, sides = [0] * len(self.kernel), [left for left, _ in self.padding]
        if any(left != right for left, right in self.padding):
            source, sides = self.pad(source), zeros
        # Not transposed; of the gradients at input, weight and bias, the second alone.
        options = self.stride, sides, self.dilation, False, zeros, groups, [False, True, False]
        gradient: Tensor = torch.ops.aten.convolution_backward(signal, source, weight, None, *options)[1]
        return gradient


class PatchProducts(Piece):
    """Σ_t g_t u_tᵀ of each record, u_t the patches of `source`; a few records at a time, for
    patches are large.
    """

    def __init__(
        self, source: Tensor, signal: Tensor, window: PatchWindow, *, transposed: bool = False
    ) -> None:
        self._source, self._signal, self._window, self._transposed = source, signal, window, transposed
        self._shape = (signal.shape[1], source.shape[1] // window.groups, *window.kernel)
        self._positions = prod(signal.shape[2:])
        self._kept: Tensor | None = None

    @property
    def records(self) -> int:
        return self._signal.shape[0]

    @property
    def operands(self) -> tuple[Tensor, ...]:
        return (self._source, self._signal) if self._kept is None else (self._kept,)

    def measure(self) -> Measure:
        if self._by_grams:
            return Measure(self._squares(), self._masses(), self._unit, squared=True)
        gradients = self._gradients()
        norms = torch.linalg.vector_norm(gradients.flatten(1), dim=1)
        # Keeping the gradients frees memory if they are smaller than what they are made of.
        if gradients.numel() <= self._source.numel() + self._signal.numel():
            self._kept = gradients
            self._source = self._signal = gradients[:0]
            return Measure(norms, norms, unit_of(gradients))
        return Measure(norms, self._masses(), self._unit)

    @property
    def _by_grams(self) -> bool:
        """Whether Gram matrices take fewer multiplications than gradients."""
        width, outputs = prod(self._shape[1:]), self._shape[0] // self._window.groups
        return self._positions * (width + outputs) < width * outputs

    @property
    def _by_kernel(self) -> bool:
        """Whether our own kernels measure it; the sum then needs the same operands as they have."""
        few = not self._by_grams or self._positions <= windows.MOST_POSITIONS
        return few and not self._transposed and windows.fits(self._source, self._window)

    @property
    def _unit(self) -> float:
        unit = unit_of(self._signal)
        return windows.unit(self._signal, unit) if self._by_kernel else unit

    def _squares(self) -> Tensor:
        """Squared norms by Gram matrices; groups are different coordinates."""
        if self._by_kernel:
            return windows.squares(self._source, self._signal, self._window)
        squares = _concatenate([_squared_norms(patches, signal) for patches, signal in self._parts()])
        groups = self._window.groups
        return squares if groups == 1 else squares.view(-1, groups).sum(1)

    def _masses(self) -> Tensor:
        """No less than Σ_t ‖g_t‖‖u_t‖, by Cauchy and Schwarz: ‖g‖·√(Σ_t ‖u_t‖²), and every place is
        in few patches.
        """
        source, signal = (lengths(tensor.flatten(1)) for tensor in (self._source, self._signal))
        return source.mul_(signal).mul_(math.sqrt(self._window.covers))

    def total(self, share: Share) -> Tensor:
        if self._kept is not None:
            return Dense(self._kept).total(share)
        # The factors go into a copy of the activations, because somebody may still read them. Where a convolution is
        # transposed, no patch may cover some places of the gradient, and nothing has measured these.
        if self._transposed:
            source, signal = self._source.nan_to_num(0.0, 0.0, 0.0), share.scale(self._signal)
        else:
            short = self._by_kernel and self._signal.dtype == torch.float32
            source, signal = (
                share.scale(self._source, short=short),
                share.clear(self._signal, short=short),
            )
        kind, window = wide(signal.dtype), self._window
        weight = share.factors.new_empty((), dtype=kind).expand(self._shape)
        return window.backward(source.to(kind), signal.to(kind), weight, window.groups)

    def dense(self) -> Tensor:
        return self._gradients()

    def _gradients(self) -> Tensor:
        if self._by_kernel:
            return windows.gradients(self._source, self._signal, self._window)
        if not self._source.is_cuda and 2 * self._positions >= prod(self._shape[1:]):
            return self._gradients_by_groups()
        return _concatenate([matmul(signal, patches.mT) for patches, signal in self._parts()]).view(
            -1, *self._shape
        )

    def _gradients_by_groups(self) -> Tensor:
        """One convolution in which every record is a group: faster than patches on a CPU, if
        positions are many.
        """
        window, kind = self._window, wide(self._source.dtype)
        records, groups = self._source.shape[0], self._source.shape[0] * self._window.groups
        source, signal = self._source.to(kind), self._signal.to(kind)
        weight = source.new_empty(()).expand(records * self._shape[0], *self._shape[1:])
        gradients = window.backward(
            source.reshape(1, -1, *source.shape[2:]), signal.reshape(1, -1, *signal.shape[2:]), weight, groups
        )
        return gradients.view(records, *self._shape)

    def _parts(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Patches and signals, (records · groups, numbers, positions), of as many records at a time
        as fit.
        """
        size = max(1, _PATCHES // (self._positions * self._window.groups * prod(self._shape[1:])))
        padded = self._window.pad(self._source)
        for source, signal in zip(torch.split(padded, size), torch.split(self._signal, size), strict=True):
            groups = self._window.groups
            folded = signal.reshape(signal.shape[0] * groups, signal.shape[1] // groups, -1)
            yield self._window.patches(source), folded


def _concatenate(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


def _squared_norms(patches: Tensor, signal: Tensor) -> Tensor:
    """Squared norms by Gram matrices."""
    return matmul(patches.mT, patches).mul_(matmul(signal.mT, signal)).sum((1, 2))
