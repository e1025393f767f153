# SPDX-License-Identifier: Apache-2.0
"""Rows of a table: the gradient of a record is Σ_t e_{id_t} g_tᵀ, a few rows of a large table.

The rows of one record are added up where its ids repeat (after sorting them), so the norm takes
memory for the positions, not for the table.
"""

from __future__ import annotations

import torch
from torch import Tensor

from discreet.learn.torch.pieces.base import Measure, Piece, Share, exact_unit, wide

__all__ = ["TableRows"]


class TableRows(Piece):
    """Rows g_t of each record, to be added to the rows id_t of a table."""

    def __init__(self, ids: Tensor, gradient: Tensor, height: int, padding: int | None = None) -> None:
        if padding is not None:
            gradient = torch.where((ids == padding)[..., None], 0, gradient)
        self.ids, self.gradient, self.height = ids, gradient, height

    @property
    def operands(self) -> tuple[Tensor, ...]:
        return (self.gradient,)

    def measure(self) -> Measure:
        gradient = self.gradient.to(wide(self.gradient.dtype))
        norms = torch.linalg.vector_norm(gradient, dim=-1)
        masses = norms.sum(1)
        if self.ids.shape[1] == 1:
            return Measure(masses, masses, exact_unit(gradient.dtype))
        ids, order = self.ids.sort(dim=1)
        starts = torch.ones_like(ids)
        starts[:, 1:] = ids[:, 1:] != ids[:, :-1]
        segment = torch.empty_like(order).scatter_(1, order, starts.cumsum_(1).sub_(1))
        records = torch.arange(ids.shape[0], device=ids.device)[:, None] * ids.shape[1]
        sums = torch.zeros_like(gradient).flatten(0, 1)
        sums.index_add_(0, (segment + records).flatten(), gradient.flatten(0, 1))
        norms = torch.linalg.vector_norm(sums.view(ids.shape[0], -1), dim=1)
        return Measure(norms, masses, exact_unit(gradient.dtype))

    def total(self, share: Share) -> Tensor:
        table = share.factors.new_zeros(self.height, self.gradient.shape[-1])
        return self.add_to(table, share)

    def add_to(self, table: Tensor, share: Share) -> Tensor:
        """The table, with what the records add to it."""
        scaled = share.scale(self.gradient.to(wide(self.gradient.dtype)))
        return table.index_add_(0, self.ids.flatten(), scaled.flatten(0, 1))

    def dense(self) -> Tensor:
        gradient = self.gradient.to(wide(self.gradient.dtype))
        table = gradient.new_zeros(gradient.shape[0], self.height, gradient.shape[-1])
        return table.scatter_add_(1, self.ids[..., None].expand_as(gradient), gradient)
