# SPDX-License-Identifier: Apache-2.0
"""Rows of a table, and parameters that are used several times.

The gradient of a record at a table is Σ_t e_{id_t} g_tᵀ, a few rows of a large table. The rows of
one record are added up where its ids repeat (after sorting them), so the norm takes memory for the
positions, not for the table.

The gradients of several uses of one parameter add up before the norm is taken. Leaving out the
cross terms would make the norm wrong in either direction, so a record could add more than the clip.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from discreet.learn.torch.pieces.base import Dense, Measure, Piece, Share, exact_unit, wide
from discreet.learn.torch.pieces.outer import Outer, Signal

__all__ = ["TableRows", "Tied", "join_pieces"]


class TableRows(Piece):
    """Rows g_t of each record, to be added to the rows id_t of a table."""

    def __init__(self, ids: Tensor, gradient: Tensor, height: int, padding: int | None = None) -> None:
        if padding is not None:
            gradient = torch.where((ids == padding)[..., None], 0, gradient)
        self.ids, self.gradient, self.height = ids, gradient, height

    @property
    def records(self) -> int:
        return self.ids.shape[0]

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

    def _merge(self, records: int) -> TableRows:
        gradient = self.gradient.reshape(records, -1, self.gradient.shape[-1])
        return TableRows(self.ids.reshape(records, -1), gradient, self.height)

    def dense(self) -> Tensor:
        gradient = self.gradient.to(wide(self.gradient.dtype))
        table = gradient.new_zeros(gradient.shape[0], self.height, gradient.shape[-1])
        return table.scatter_add_(1, self.ids[..., None].expand_as(gradient), gradient)


def join_pieces(pieces: Sequence[Piece]) -> Piece:
    """One piece that stands for the sum of all."""
    if len(pieces) == 1:
        return pieces[0]
    outers = [piece.with_positions() for piece in pieces if isinstance(piece, Outer) and not piece.transposed]
    rows = [piece for piece in pieces if isinstance(piece, TableRows)]
    if len(outers) + len(rows) < len(pieces):
        whole = pieces[0].dense()
        for piece in pieces[1:]:
            whole = whole + piece.dense()
        return Dense(whole)
    if not rows:
        return _join_outers(outers)
    return Tied(_join_rows(rows), _join_outers(outers)) if outers else _join_rows(rows)


def _join_outers(outers: Sequence[Outer]) -> Outer:
    """The uses as if they were positions of one use: all cross terms are those between positions."""
    if len(outers) == 1:
        return outers[0]
    inputs = torch.cat([outer.inputs for outer in outers], 1)
    return Outer(inputs, Signal(torch.cat([outer.signal.gradient for outer in outers], 1)))


def _join_rows(rows: Sequence[TableRows]) -> TableRows:
    if len(rows) == 1:
        return rows[0]
    ids = torch.cat([piece.ids for piece in rows], 1)
    return TableRows(ids, torch.cat([piece.gradient for piece in rows], 1), rows[0].height)


class Tied(Piece):
    """An embedding table E that is also the weight of a linear layer H: ‖E + H‖² = ‖E‖² + ‖H‖² +
    2⟨E, H⟩.
    """

    def __init__(self, rows: TableRows, outer: Outer) -> None:
        self._rows, self._outer = rows, outer

    @property
    def records(self) -> int:
        return self._rows.records

    @property
    def operands(self) -> tuple[Tensor, ...]:
        return (*self._rows.operands, *self._outer.operands)

    def measure(self) -> Measure:
        rows, outer = self._rows.measure(), self._outer.measure()
        cross = self._cross() if self._outer.kept is None else self._cross_with(self._outer.kept)
        lengths = outer.rooted
        squares = torch.addcmul(rows.norms.square(), lengths, lengths)
        squares = squares.add_(cross, alpha=2).clamp_(min=0)
        # H is measured as rounded and ⟨E, H⟩ is not, so they differ by at most unit · mass of H · ‖E‖, twice.
        squares = squares.addcmul_(outer.masses, rows.norms, value=2 * outer.unit)
        return Measure(squares.sqrt_(), outer.masses + rows.masses, max(rows.unit, outer.unit))

    def _cross(self) -> Tensor:
        """⟨E, H⟩ = Σ_{s,t} (g_s · a_t) h_t[id_s], in float64, for its terms may cancel."""
        ids, inputs, signal = self._rows.ids, self._outer.inputs, self._outer.signal.gradient
        products = self._rows.gradient.double() @ inputs.double().mT
        places = ids[:, None, :].expand(-1, signal.shape[1], -1)
        return (
            products.mul_(signal.gather(2, places).mT)
            .sum((1, 2))
            .to(torch.promote_types(signal.dtype, torch.float32))
        )

    def _cross_with(self, gradients: Tensor) -> Tensor:
        """⟨E, H⟩ = Σ_s g_s · H[id_s], of the H that is added."""
        places = self._rows.ids[..., None].expand(-1, -1, gradients.shape[2])
        products = self._rows.gradient.double() * gradients.gather(1, places)
        return products.sum((1, 2)).to(gradients.dtype)

    def total(self, share: Share) -> Tensor:
        return self._rows.add_to(self._outer.total(share), share)

    def dense(self) -> Tensor:
        return self._rows.dense() + self._outer.dense()
