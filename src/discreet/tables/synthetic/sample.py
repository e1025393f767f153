# SPDX-License-Identifier: Apache-2.0
"""Rows from a model, stratified: as few chance deviations from the model as possible.

Components get their numbers of rows by systematic rounding, and inside a component each column gets
its values the same way, in an order of its own. So the table of a column differs from that of the
model by less than one row in each component.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from discreet.tables.synthetic.mixture import Mixture
from discreet.tables.synthetic.stream import SeededStream
from discreet.tables.synthetic.tree import TreeModel
from discreet.tables.workloads.residuals import Floats

__all__ = ["Codes", "RowModel", "restrict_rows", "sample_rows"]

Codes = npt.NDArray[np.int32]
Places = npt.NDArray[np.int64]
#: A model that rows can be made from.
RowModel: TypeAlias = Mixture | TreeModel


def sample_rows(model: RowModel, rows: int, seed: int) -> Codes:
    """So many rows, as the numbers of their values; the order of the rows says nothing."""
    stream = SeededStream(seed, "rows")
    if isinstance(model, TreeModel):
        codes = _tree_rows(model, rows, stream)
    else:
        codes = _mixture_rows(model, rows, stream)
    return codes[np.argsort(stream.uniform(rows), kind="stable")]


def _mixture_rows(mixture: Mixture, rows: int, stream: SeededStream) -> Codes:
    starts = _starts(mixture.weights, rows, stream)
    owners = np.repeat(np.arange(len(mixture.weights)), np.diff(starts))
    columns = [_assign(owners, factor, stream) for factor in mixture.factors]
    return np.stack(columns, axis=1).astype(np.int32)


def _tree_rows(model: TreeModel, rows: int, stream: SeededStream) -> Codes:
    """Clique after clique: the values of a clique, given those that it shares with its parent."""
    tree, codes = model.tree, np.zeros((rows, len(model.sizes)), np.int32)
    for clique, shared, table in zip(tree.cliques, tree.separators, model.clique_tables, strict=True):
        new = tuple(key for key in clique if key not in shared)
        order = [clique.index(key) for key in (*shared, *new)]
        joint = np.transpose(table, order).reshape(-1, math.prod(tree.shape(new)))
        owners = np.zeros(rows, np.int64)
        for key in shared:
            owners = owners * model.sizes[key] + codes[:, key]
        found = np.unravel_index(_assign(owners, joint, stream), tree.shape(new))
        for key, values in zip(new, found, strict=True):
            codes[:, key] = values
    return codes


def _assign(owners: Places, shares: Floats, stream: SeededStream) -> Places:
    """A value for each row, by the shares of its owner, with as few deviations from them as
    possible.
    """
    counts = np.bincount(owners, minlength=len(shares))
    order = np.lexsort((stream.uniform(len(owners)), owners))
    starts = np.cumsum(counts) - counts
    ranks = np.empty(len(owners))
    ranks[order] = np.arange(len(owners)) - starts[owners[order]]
    levels = (ranks + stream.uniform(len(shares))[owners]) / np.maximum(counts, 1)[owners]
    edges = np.cumsum(shares, axis=1)
    edges /= np.maximum(edges[:, -1:], 1e-300)
    edges[:, -1] = 1.0
    # One sorted list for all owners: the edges of owner k lie between k and k + 1.
    flat = (edges + np.arange(len(edges))[:, None]).ravel()
    found = np.searchsorted(flat, levels + owners, side="right") - owners * shares.shape[1]
    assigned: Places = np.clip(found, 0, shares.shape[1] - 1)
    return assigned


def _starts(weights: Floats, rows: int, stream: SeededStream) -> npt.NDArray[np.int64]:
    """Where the rows of each component begin, and the end of the last."""
    edges = np.cumsum(weights) / weights.sum() * rows
    starts = np.floor(np.concatenate([[0.0], edges[:-1]]) + stream.uniform(1)).astype(np.int64)
    starts[0] = 0
    return np.append(np.minimum(starts, rows), rows)


def restrict_rows(model: RowModel, allowed: Mapping[int, Floats]) -> tuple[RowModel, float]:
    """The model of rows with allowed values in some columns, each with its share that is allowed;
    and their share of all.
    """
    if isinstance(model, TreeModel):
        return model.restrict(allowed)
    weights, factors = model.weights, list(model.factors)
    for column, shares in allowed.items():
        kept = factors[column] * shares
        mass = kept.sum(axis=1)
        weights = weights * mass
        even = (shares > 0) / max(int((shares > 0).sum()), 1)
        factors[column] = np.where(mass[:, None] > 0, kept / np.maximum(mass, 1e-300)[:, None], even)
    share = float(weights.sum())
    weights = weights / share if share > 0 else weights
    return Mixture(weights, tuple(factors), model.misfit, model.steps), share
