# SPDX-License-Identifier: Apache-2.0
"""Outer products: the gradient of a record is Σ_t g_t a_tᵀ, and its norm needs no gradient.

‖Σ_t g_t a_tᵀ‖² = Σ_{s,t} (a_s·a_t)(g_s·g_t): two Gram matrices of the positions t instead of one
gradient (Goodfellow 2015 for one position, Li, Tramèr, Liang, Hashimoto 2022 for many). Whichever
takes fewer multiplications is used: T(d+p) against d·p. A gradient that was made for its norm is
kept for the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from discreet.learn.torch import grams
from discreet.learn.torch.pieces.base import (
    LOST,
    Dense,
    Measure,
    Piece,
    Share,
    column,
    lengths,
    matmul,
    narrowest,
    no_wider,
    unit_of,
    wide,
)

__all__ = ["Outer", "OuterBias", "Signal", "bias_piece", "measure_together"]

#: So many numbers of Gram matrices are made at a time.
_GRAM = 2**26


class Signal:
    """The gradient at the output of a layer, (records, positions, features) or (records, features)."""

    def __init__(self, gradient: Tensor) -> None:
        self.gradient = gradient
        self._cleared: Tensor | None = None

    @cached_property
    def norms(self) -> Tensor:
        """‖g_t‖ for every record and position."""
        return lengths(self.gradient)

    def clear(self, share: Share) -> Tensor:
        """The signal with 0 for what is not finite. It is kept, because weight and bias both ask
        for it.
        """
        if self._cleared is None:
            self._cleared = share.clear(self.gradient)
        return self._cleared


class Outer(Piece):
    """Σ_t g_t a_tᵀ of each record, for a weight of shape (outputs, inputs), or its transpose.

    Inputs and signal have an axis of positions t, or both have none: then there is one position.
    """

    def __init__(self, inputs: Tensor, signal: Signal, *, transposed: bool = False) -> None:
        self.inputs, self.signal, self.transposed = inputs, signal, transposed
        self._kept: Tensor | None = None
        self._by_kernel = False

    @property
    def lone(self) -> bool:
        """Whether there is one position."""
        return self.inputs.dim() == 2

    @property
    def records(self) -> int:
        return self.signal.gradient.shape[0]

    @property
    def operands(self) -> tuple[Tensor, ...]:
        return (self.inputs, self.signal.gradient) if self._kept is None else (self._kept,)

    @property
    def kept(self) -> Tensor | None:
        """The gradients, if they were made for their norms."""
        return self._kept

    def measure(self) -> Measure:
        inputs, gradient = self.inputs, self.signal.gradient
        unit = unit_of(gradient)
        if self.lone:
            norms = lengths(inputs).mul_(self.signal.norms)
            return Measure(norms, norms, unit)
        _, positions, width = inputs.shape
        if positions * (width + gradient.shape[2]) < width * gradient.shape[2]:
            if grams.fits(inputs, gradient):
                self._by_kernel = True
                squares, masses = grams.squares_and_masses(inputs, gradient)
                return Measure(squares, masses, grams.unit(gradient, unit), squared=True)
            return Measure(_squared_norms(inputs, gradient), self._masses(), unit, squared=True)
        gradients = self._gradients()
        norms = torch.linalg.vector_norm(gradients.flatten(1), dim=1)
        # The gradients take no more memory than what is dropped.
        self._kept = gradients
        self.inputs, self.signal = gradients[:0], Signal(gradients[:0])
        return Measure(norms, norms, unit_of(gradients))

    def _masses(self) -> Tensor:
        """Σ_t ‖g_t‖‖a_t‖."""
        return lengths(self.inputs).mul_(self.signal.norms).sum(1)

    def _gradients(self) -> Tensor:
        whole = self.with_positions()
        return matmul(whole.signal.gradient.mT, whole.inputs)

    def with_positions(self) -> Outer:
        """The same, with an axis of positions."""
        if self.inputs.dim() == 3:
            return self
        return Outer(self.inputs[:, None], Signal(self.signal.gradient[:, None]), transposed=self.transposed)

    def _merge(self, records: int) -> Outer:
        inputs, gradient = (
            values.reshape(records, -1, values.shape[-1]) for values in (self.inputs, self.signal.gradient)
        )
        return Outer(inputs, Signal(gradient), transposed=self.transposed)

    def total(self, share: Share) -> Tensor:
        # The factors go into a copy of the inputs, because somebody may still read them. Nobody else reads the signal.
        if self._kept is not None:
            total = Dense(self._kept).total(share)
        elif self.lone:
            total = matmul(self.signal.clear(share).T, share.scale(self.inputs))
        else:
            short = self._by_kernel and self.inputs.dtype == torch.float32
            inputs, signal = share.prepare(self.inputs, self.signal.gradient, short=short)
            total = matmul(signal.flatten(0, 1).T, inputs.flatten(0, 1))
        return total.T if self.transposed else total

    def dense(self) -> Tensor:
        gradients = self._gradients()
        return gradients.mT if self.transposed else gradients


def _squared_norms(inputs: Tensor, gradient: Tensor) -> Tensor:
    """Squared norms, of as many records at a time as their Gram matrices fit."""
    records, positions, _ = inputs.shape
    size = max(1, _GRAM // max(1, positions) ** 2)
    if records <= size:
        return _squared_norms_at_once(inputs, gradient)
    parts = zip(torch.split(inputs, size), torch.split(gradient, size), strict=True)
    return torch.cat([_squared_norms_at_once(*part) for part in parts])


def _squared_norms_at_once(inputs: Tensor, gradient: Tensor) -> Tensor:
    """Squared norms by two Gram matrices."""
    return matmul(inputs, inputs.mT).mul_(matmul(gradient, gradient.mT)).sum((1, 2))


class OuterBias(Piece):
    """g of each record, where there is one position; it shares the signal with the weight."""

    lone = True

    def __init__(self, signal: Signal) -> None:
        self.signal = signal

    @property
    def records(self) -> int:
        return self.signal.gradient.shape[0]

    @property
    def operands(self) -> tuple[Tensor, ...]:
        return (self.signal.gradient,)

    def measure(self) -> Measure:
        norms = self.signal.norms
        return Measure(norms, norms, unit_of(self.signal.gradient))

    def total(self, share: Share) -> Tensor:
        rows = self.signal.clear(share)
        return share.factors @ (rows if rows.dtype == share.factors.dtype else rows.to(share.factors.dtype))

    def dense(self) -> Tensor:
        return self.signal.gradient


def measure_together(pieces: Sequence[Outer | OuterBias]) -> Measure:
    """One measure of all pieces that have one position. A layer with a bias has the norm ‖g‖·√(‖a‖²
    + 1).

    A dozen short kernels for all layers take less time than several for each layer.
    """
    biases = {id(piece.signal): piece.signal for piece in pieces if isinstance(piece, OuterBias)}
    layers: list[tuple[Signal, Tensor | None, float]] = [
        (piece.signal, piece.inputs, 0.0 if biases.pop(id(piece.signal), None) is None else 1.0)
        for piece in pieces
        if isinstance(piece, Outer)
    ]
    # Biases whose weights are frozen.
    layers += [(signal, None, 1.0) for signal in biases.values()]
    gradients = [signal.gradient for signal, _, _ in layers]
    kind = narrowest(gradients)
    table = gradients[0].new_zeros((2, len(layers), gradients[0].shape[0]), dtype=kind)
    for (signal, inputs, _), g, a in zip(layers, table[0].unbind(), table[1].unbind(), strict=True):
        for values, out in ((signal.gradient, g), (inputs, a)):
            if values is not None:
                torch.linalg.vector_norm(no_wider(values, kind), dim=1, dtype=kind, out=out)
    table.add_(LOST)
    biases_or_zeros = column(tuple(bias for _, _, bias in layers), kind, table.device)
    norms = torch.linalg.vector_norm(torch.hypot(table[1], biases_or_zeros).mul_(table[0]), dim=0)
    return Measure(norms, norms, max(map(unit_of, gradients)))


def bias_piece(signal: Signal) -> Piece:
    """Σ_t g_t of each record."""
    if signal.gradient.dim() == 2:
        return OuterBias(signal)
    return Dense(signal.gradient.sum(1, dtype=wide(signal.gradient.dtype)))
