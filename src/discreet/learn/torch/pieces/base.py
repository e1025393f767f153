# SPDX-License-Identifier: Apache-2.0
"""A piece: what every record adds to the gradient of one parameter, kept in the form that is
cheapest to add up.

A piece answers three questions without ever looping over records:

- `measure()`: the norm of each record's gradient, and a bound on what rounding can add to it;
- `total(share)`: the sum over records of factor times gradient;
- `dense()`: the gradients themselves, one row for each record, for those who need them whole.

**Guarantee.** `total` adds, for record i, a vector within `unit · mass_i · factor_i` of factor_i
times a vector whose norm is `norms_i` up to the accuracy of float32 sums; a record of factor 0 adds
exactly nothing, whatever its numbers are. The proof of what follows from that is clip.proof.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from torch import Tensor

from discreet.learn.torch.passes import clear, large, prepare_records, scale_records

__all__ = [
    "LOST",
    "Dense",
    "Measure",
    "Piece",
    "Share",
    "column",
    "exact_unit",
    "lengths",
    "matmul",
    "narrowest",
    "no_wider",
    "unit_of",
    "wide",
]

#: How far the product of rounded operands is from the product of the operands, relatively (clip.proof.md, Lemma 2).
_FLOAT64, _FLOAT32, _TF32, _HALF, _BF16 = 2.0**-52, 2.0**-23, 2.0**-9, 2.0**-10, 2.0**-7 + 2.0**-14

#: What a norm of up to 2**28 numbers may miss where their squares are below 2**-126 (clip.proof.md, Lemma 1).
LOST = 2.0**-40


def wide(dtype: torch.dtype) -> torch.dtype:
    """The type in which norms and sums over records are kept."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def narrowest(values: Sequence[Tensor]) -> torch.dtype:
    """The type for sums of these tensors: float64 if all have it, otherwise float32."""
    return torch.float64 if all(tensor.dtype == torch.float64 for tensor in values) else torch.float32


def no_wider(values: Tensor, kind: torch.dtype) -> Tensor:
    """The values, converted only if they are wider than `kind`."""
    return values.to(kind) if values.dtype == torch.float64 != kind else values


def unit_of(operand: Tensor) -> float:
    """How far, relatively, the product of rounded operands may be from the product of the operands.

    On a GPU products of float32 are taken to be made in TF32, whatever the settings say:
    environment variables can turn it on, and convolutions have it on by default.
    """
    if operand.dtype == torch.float32:
        return _TF32 if operand.is_cuda else _CPU.get(_cpu_products(), _FLOAT32)
    return {torch.float64: _FLOAT64, torch.bfloat16: _BF16, torch.float16: _HALF}[operand.dtype]


#: The unit of products of float32 on a CPU, by the precision that is set: new and old words of torch.
_CPU = {"tf32": _TF32, "high": _TF32, "bf16": _BF16, "medium": _BF16}


def _cpu_products() -> str:
    """The coarsest precision that is set for products and convolutions, in the words of torch."""
    settings = [
        str(getattr(getattr(torch.backends.mkldnn, name, None), "fp32_precision", ""))
        for name in ("matmul", "conv")
    ]
    return max(settings, key=lambda setting: _CPU.get(setting, 0.0)) or torch.get_float32_matmul_precision()


def exact_unit(dtype: torch.dtype) -> float:
    """The same for sums without products of matrices, where operands are rounded to their own type
    only.
    """
    return _FLOAT64 if dtype == torch.float64 else _FLOAT32


def matmul(left: Tensor, right: Tensor) -> Tensor:
    """A product of two (batches of) matrices whose result is never narrower than float32."""
    out = wide(left.dtype)
    if left.dtype == out:
        return left @ right
    if not left.is_cuda:
        return left.to(out) @ right.to(out)
    product = torch.bmm if left.dim() == 3 else torch.mm
    return product(left, right, out_dtype=out)


def lengths(values: Tensor, axis: int = -1) -> Tensor:
    """Norms along an axis, in wide numbers, to be multiplied by others. `LOST` covers squares that
    underflow.
    """
    kind = wide(values.dtype)
    norms: Tensor = torch.linalg.vector_norm(values, dim=axis, dtype=None if values.dtype == kind else kind)
    return norms.add_(LOST)


@lru_cache(maxsize=64)
def column(numbers: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Numbers on the device: remembered, because bringing them there would wait for it."""
    return torch.tensor(numbers, dtype=dtype, device=device)[:, None]


@dataclass(frozen=True)
class Measure:
    """The norm of each record, its mass, and the rounding unit of the sum.

    `norms` may be `squared`, as a Gram matrix gives them, and then a little below zero: roots are
    taken of all at once.
    """

    norms: Tensor
    masses: Tensor
    unit: float
    squared: bool = False

    @property
    def rooted(self) -> Tensor:
        """The norms, whether they are stored squared or not."""
        return self.norms.clamp(min=0).sqrt_() if self.squared else self.norms


@dataclass(frozen=True)
class Share:
    """What each record may add: its factor, between 0 and 1, and 0 if any of its numbers is not
    finite.
    """

    factors: Tensor

    @cached_property
    def _live(self) -> Tensor:
        """1 for a record that takes part, and 0 for others."""
        return (self.factors > 0).to(self.factors.dtype)

    def scale(self, values: Tensor, *, short: bool = False) -> Tensor:
        """Factor times value, by record. Only records of factor 0 have NaN here (0 · NaN), and NaN
        becomes 0.

        With `short` the results are cut to TF32, which only a kernel does.
        """
        if short or large(values):
            return scale_records(values, self.factors, short=short)
        factors = self.factors if self.factors.dtype == values.dtype else self.factors.to(values.dtype)
        shape = (-1,) + (1,) * (values.dim() - 1)
        return (values * factors.view(shape)).nan_to_num_(0.0, 0.0, 0.0)

    def clear(self, values: Tensor, *, short: bool = False) -> Tensor:
        """The values (with `short`, cut to TF32), with 0 for what is not finite. They may be
        overwritten.

        Every one of them must have been measured: then only records of factor 0 have any that is
        not finite, and it is enough to look at the factors.
        """
        # In a copy: the same values may have been measured uncut for another parameter.
        if short:
            return scale_records(values, self._live, short=True)
        if large(values):
            clear(values, self.factors)
            return values
        return values.nan_to_num(0.0, 0.0, 0.0)

    def prepare(self, inputs: Tensor, signal: Tensor, *, short: bool = False) -> tuple[Tensor, Tensor]:
        """The inputs `scaled` and the signal `cleared`, in one pass where there is a kernel for
        both.
        """
        if large(inputs) and large(signal):
            return prepare_records(inputs, signal, self.factors, short=short)
        return self.scale(inputs, short=short), self.clear(signal, short=short)


class Piece(ABC):
    """The gradient of one parameter for every record, not yet added up."""

    @property
    @abstractmethod
    def records(self) -> int:
        """How many records it has gradients of."""

    @abstractmethod
    def measure(self) -> Measure:
        """Norm and mass of every record. May drop what `total` does not need."""

    @property
    @abstractmethod
    def operands(self) -> tuple[Tensor, ...]:
        """What `total` is made of; nobody may change it between the two."""

    @abstractmethod
    def total(self, share: Share) -> Tensor:
        """The sum over records of factor · gradient, in the parameter's shape and in wide numbers."""

    @abstractmethod
    def dense(self) -> Tensor:
        """The gradient of every record: (records, *shape of the parameter)."""

    def merge(self, records: int) -> Piece:
        """The same for fewer records, each of which has several that follow each other here."""
        return self if self.records == records else self._merge(records)

    def _merge(self, records: int) -> Piece:
        rows = self.dense()
        return Dense(rows.reshape(records, -1, *rows.shape[1:]).sum(1, dtype=wide(rows.dtype)))


class Dense(Piece):
    """Gradients that are small enough to be kept whole: biases, scales, tokens, and all that has no
    better form.
    """

    def __init__(self, gradients: Tensor) -> None:
        self._shape = gradients.shape[1:]
        kind = wide(gradients.dtype)
        gradients = gradients if gradients.dtype == kind else gradients.to(kind)
        self.rows = gradients if gradients.dim() == 2 else gradients.reshape(gradients.shape[0], -1)

    @classmethod
    def bundle(cls, pieces: Sequence[Dense]) -> Dense:
        """All of them as one, in the narrowest of their types: the margins are those of its
        arithmetic.
        """
        kind = narrowest([piece.rows for piece in pieces])
        return cls(torch.cat([no_wider(piece.rows, kind) for piece in pieces], 1))

    @property
    def records(self) -> int:
        return self.rows.shape[0]

    @property
    def operands(self) -> tuple[Tensor, ...]:
        return (self.rows,)

    @property
    def width(self) -> int:
        """Numbers for each record."""
        return self.rows.shape[1]

    @property
    def shape(self) -> torch.Size:
        """Of the parameter."""
        return self._shape

    def measure(self) -> Measure:
        norms = torch.linalg.vector_norm(self.rows, dim=1)
        return Measure(norms, norms, unit_of(self.rows))

    def total(self, share: Share) -> Tensor:
        return (share.factors.to(self.rows.dtype) @ share.clear(self.rows)).view(self._shape)

    def dense(self) -> Tensor:
        return self.rows.view(-1, *self._shape)
