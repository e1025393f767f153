# SPDX-License-Identifier: Apache-2.0
"""Outer products: the gradient of a record is Σ_t g_t a_tᵀ, and its norm needs no gradient.

‖Σ_t g_t a_tᵀ‖² = Σ_{s,t} (a_s·a_t)(g_s·g_t): two Gram matrices of the positions t instead of one gradient
(Goodfellow 2015 for one position, Li, Tramèr, Liang, Hashimoto 2022 for many). Whichever takes fewer multiplications
is used: T(d+p) against d·p. A gradient that was made for its norm is kept for the sum if it is small.
"""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from discreet.learn.torch.rules.piece import Dense, Measure, Piece, Share, finite, matmul, unit_of, wide

__all__ = ["KEEP", "Outer", "Signal", "bias_piece"]

#: Gradients of all records that take more than this many numbers are made again instead of being kept.
KEEP = 2**26


class Signal:
    """The gradient at the output of a layer, (records, positions, features), with what several pieces need of it."""

    def __init__(self, gradient: Tensor) -> None:
        self.gradient = gradient
        self._scaled: tuple[Share, Tensor] | None = None

    @cached_property
    def norms(self) -> Tensor:
        """‖g_t‖ for every record and position."""
        norms: Tensor = torch.linalg.vector_norm(self.gradient, dim=-1, dtype=wide(self.gradient.dtype))
        return norms

    def scaled(self, share: Share) -> Tensor:
        """The gradient times the factors; the last answer is remembered, for weight and bias ask in turn."""
        if self._scaled is None or self._scaled[0] is not share:
            self._scaled = share, share.scaled(self.gradient)
        return self._scaled[1]


class Outer(Piece):
    """Σ_t g_t a_tᵀ of each record, for a weight of shape (outputs, inputs), or its transpose."""

    def __init__(self, inputs: Tensor, signal: Signal, *, transposed: bool = False) -> None:
        self.inputs, self.signal, self.transposed = inputs, signal, transposed
        self._kept: Tensor | None = None

    def measure(self) -> Measure:
        inputs, gradient = self.inputs, self.signal.gradient
        _, positions, width = inputs.shape
        unit = unit_of(gradient)
        if positions == 1:
            masses = self._masses()
            return Measure(masses, masses, unit)
        if positions * (width + gradient.shape[2]) < width * gradient.shape[2]:
            size = max(1, KEEP // positions**2)  # records whose Gram matrices fit
            parts = zip(torch.split(inputs, size), torch.split(gradient, size), strict=True)
            squares = torch.cat([_ghost(*part) for part in parts])
            return Measure(squares, self._masses(), unit)
        gradients = self._gradients()
        squares = torch.linalg.vector_norm(gradients.flatten(1), dim=1).square_()
        if gradients.numel() > KEEP:
            return Measure(squares, self._masses(), unit)
        self._kept = gradients
        return Measure(squares, squares, unit_of(gradients))

    def _masses(self) -> Tensor:
        """(Σ_t ‖g_t‖‖a_t‖)²."""
        norms: Tensor = torch.linalg.vector_norm(self.inputs, dim=-1, dtype=wide(self.inputs.dtype))
        products = norms.mul_(self.signal.norms)
        return (products[:, 0] if products.shape[1] == 1 else products.sum(1)).square_()

    def _gradients(self) -> Tensor:
        return matmul(self.signal.gradient.mT, self.inputs)

    def total(self, share: Share) -> Tensor:
        if self._kept is not None:
            found = Dense(self._kept).total(share)
        else:
            gradient, inputs = self._weighed(share)
            found = matmul(gradient.flatten(0, 1).T, inputs.flatten(0, 1))
        return found.T if self.transposed else found

    def _weighed(self, share: Share) -> tuple[Tensor, Tensor]:
        """Signal and inputs, of which the narrower has the factors; a bias without positions shares the signal's."""
        gradient, inputs = self.signal.gradient, self.inputs
        if inputs.shape[1] == 1 or gradient.shape[2] <= inputs.shape[2]:
            return self.signal.scaled(share), finite(inputs)
        return finite(gradient), share.scaled(inputs)

    def dense(self) -> Tensor:
        gradients = self._gradients()
        return gradients.mT if self.transposed else gradients


def _ghost(inputs: Tensor, gradient: Tensor) -> Tensor:
    """Squared norms by two Gram matrices."""
    return matmul(inputs, inputs.mT).mul_(matmul(gradient, gradient.mT)).sum((1, 2)).clamp_(min=0)


class OuterBias(Piece):
    """g of each record, where there is one position; it shares the scaled signal with the weight."""

    def __init__(self, signal: Signal) -> None:
        self._signal = signal

    def measure(self) -> Measure:
        squares = self._signal.norms[:, 0].square()
        return Measure(squares, squares, unit_of(self._signal.gradient))

    def total(self, share: Share) -> Tensor:
        scaled = self._signal.scaled(share)
        return scaled.sum((0, 1), dtype=wide(scaled.dtype))

    def dense(self) -> Tensor:
        return self._signal.gradient[:, 0]


def bias_piece(signal: Signal) -> Piece:
    """Σ_t g_t of each record."""
    if signal.gradient.shape[1] == 1:
        return OuterBias(signal)
    return Dense(signal.gradient.sum(1, dtype=wide(signal.gradient.dtype)))
