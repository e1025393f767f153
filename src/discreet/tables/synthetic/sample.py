# SPDX-License-Identifier: Apache-2.0
"""Rows from a mixture, stratified: as few chance deviations from the model as possible.

Components get their numbers of rows by systematic rounding, and inside a component each column gets its values the same way, in
an order of its own. So the table of a column differs from that of the model by less than one row in each component.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from discreet.tables.synthetic.mixture import Mixture
from discreet.tables.synthetic.stream import SeededStream
from discreet.tables.workloads.residuals import Floats

__all__ = ["Codes", "condition_mixture", "sample_mixture"]

Codes = npt.NDArray[np.int32]


def sample_mixture(mixture: Mixture, rows: int, seed: int) -> Codes:
    """So many rows, as the numbers of their values; the order of the rows says nothing."""
    stream = SeededStream(seed, "rows")
    starts = _starts(mixture.weights, rows, stream)
    codes = np.empty((rows, len(mixture.factors)), np.int32)
    owners = np.repeat(np.arange(len(mixture.weights)), np.diff(starts))
    # The place of a row among those of its component, as a number in (0, 1).
    counts = np.diff(starts)[owners]
    for column, factor in enumerate(mixture.factors):
        order = np.lexsort((stream.uniform(rows), owners))
        ranks = np.empty(rows)
        ranks[order] = np.arange(rows) - starts[owners]
        levels = (ranks + stream.uniform(len(mixture.weights))[owners]) / np.maximum(counts, 1)
        edges = np.cumsum(factor, axis=1)
        edges[:, -1] = 1.0
        # One sorted list for all components: the edges of component k lie between k and k + 1.
        flat = (edges + np.arange(len(edges))[:, None]).ravel()
        found = np.searchsorted(flat, levels + owners, side="right") - owners * factor.shape[1]
        codes[:, column] = np.minimum(np.maximum(found, 0), factor.shape[1] - 1)
    return codes[np.argsort(stream.uniform(rows), kind="stable")]


def _starts(weights: Floats, rows: int, stream: SeededStream) -> npt.NDArray[np.int64]:
    """Where the rows of each component begin, and the end of the last."""
    edges = np.cumsum(weights) / weights.sum() * rows
    starts = np.floor(np.concatenate([[0.0], edges[:-1]]) + stream.uniform(1)).astype(np.int64)
    starts[0] = 0
    return np.append(np.minimum(starts, rows), rows)


def condition_mixture(
    mixture: Mixture, allowed: Mapping[int, npt.NDArray[np.bool_]]
) -> tuple[Mixture, float]:
    """The mixture of the rows whose values are allowed in some columns, and their share of all rows."""
    weights, factors = mixture.weights, list(mixture.factors)
    for column, mask in allowed.items():
        kept = factors[column] * mask
        mass = kept.sum(axis=1)
        weights = weights * mass
        even = mask / max(int(mask.sum()), 1)
        factors[column] = np.where(mass[:, None] > 0, kept / np.maximum(mass, 1e-300)[:, None], even)
    share = float(weights.sum())
    return Mixture(
        weights / share if share > 0 else weights, tuple(factors), mixture.misfit, mixture.steps
    ), share
