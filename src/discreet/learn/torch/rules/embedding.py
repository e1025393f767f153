# SPDX-License-Identifier: Apache-2.0
"""Embeddings, whose ids belong to records, or to positions that all records share."""

# ruff: noqa: PLR0917, FBT001, FBT002, ARG001 - the arguments of a rule are those of the function of torch

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.nn import functional

from discreet.learn.torch.pieces.base import Piece
from discreet.learn.torch.pieces.rows import TableRows
from discreet.learn.torch.rules.use import Use
from discreet.learn.torch.tape import Contributions, not_by_record_error
from discreet.learn.torch.watched import Derived

__all__ = ["EmbeddedRows", "embedding"]


def embedding(
    use: Use,
    ids: Tensor,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of a table, by id."""
    if max_norm is not None or scale_grad_by_freq or sparse:
        raise not_by_record_error(
            use.name(weight), "max_norm, scale_grad_by_freq and sparse gradients mix records"
        )
    if padding_idx is not None and padding_idx < 0:
        padding_idx += weight.shape[0]
    out = functional.embedding(ids, use.value(weight))
    if ids.dim() > 1 and ids.shape[0] > 1:
        return _tap(use, out, ids, weight, padding_idx)
    rows = out.as_subclass(EmbeddedRows)
    rows.tape, rows.dispatch, rows.value, rows.parameters = use.tape, weight.dispatch, out, [weight]
    rows.use, rows.ids, rows.padding = use, ids, padding_idx
    return rows


def _tap(use: Use, out: Tensor, ids: Tensor, weight: Any, padding: int | None) -> Tensor:
    def pieces(gradient: Tensor, ids: Tensor) -> tuple[Piece]:
        records = use.fits(gradient, weight)
        rows = gradient.reshape(records, -1, gradient.shape[-1])
        return (TableRows(ids.reshape(records, -1), rows, weight.shape[0], padding),)

    return use.tap(out, (weight,), pieces, ids)


class EmbeddedRows(Derived):
    """Rows looked up by ids that may be positions, the same for all records, or the ids of one
    record each.

    Which of the two shows when it meets another tensor: if it has to grow a first axis, that axis
    is the record.
    """

    use: Use
    ids: Tensor
    padding: int | None

    def contributions(self, gradients: Tensor) -> Contributions:
        records, (parameter,) = gradients.shape[0], self.parameters
        ids = self.ids.reshape(1, -1).expand(records, -1)
        rows = gradients.reshape(records, -1, gradients.shape[-1])
        return [(parameter, TableRows(ids, rows, parameter.shape[0], self.padding))]

    def grows(self, shape: Sequence[int]) -> bool:
        return len(shape) > self.value.dim() or shape[0] != self.value.shape[0]

    def as_records(self) -> Tensor:
        """Its first axis is the record after all."""
        return _tap(self.use, self.value.detach(), self.ids, self.parameters[0], self.padding)

    def add_record_axis(self) -> EmbeddedRows:
        """The same with one more axis in front."""
        rows = embedding(self.use, self.ids[None], self.parameters[0], self.padding)
        assert isinstance(rows, EmbeddedRows)
        return rows
