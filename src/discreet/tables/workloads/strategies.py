# SPDX-License-Identifier: Apache-2.0
"""The optimal strategy for questions about an ordered key: all ranges, all prefixes, or the nodes
of a tree.

    optimal_strategy(gram_of("ranges", 74))

A strategy measures A h, for a histogram h and a matrix A whose columns are at most one long, and
answers each question by least squares. Its total variance is tr(G X⁻¹) with X = AᵀA and G = WᵀW,
where the rows of W are the questions.

**Guarantee.** `OptimalStrategy.lower_bound` is a total variance that no strategy can beat, and
`value` is that of this one. Privacy does not depend on either: the matrix that is measured is one
of whole numbers, and its sensitivity is computed from them.

Why it holds: for every probability vector d and every X with diag X ≤ 1, tr(G X⁻¹) ≥ (tr S)² with S
= (D^½ G D^½)^½, because tr S = ‖W D^½‖_* ≤ ‖W X^-½‖_F ‖X^½ D^½‖_F. Equality holds for X = D^-½ S
D^-½ / tr S if its diagonal is 1. The steps d ← d · diag X lead there; Denisov, McMahan, Rush, Smith
and Thakurta (2022) have them for prefixes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.tables.workloads.residuals import Floats

__all__ = [
    "MOST_LEAVES",
    "OptimalStrategy",
    "gram_of",
    "optimal_strategy",
    "queries_of",
    "worst_case_strategy",
]

#: Up to this many values the optimum is computed; its cost grows with the cube.
MOST_LEAVES = 1024
#: The search stops this near to what is proved to be the best.
_TOLERANCE = 1e-3
_MOST_STEPS = 2_000


@dataclass(frozen=True)
class OptimalStrategy:
    """A positive definite X with diag X ≤ 1, its total variance and what no strategy can beat."""

    gram: Floats
    value: float
    lower_bound: float

    @property
    def matrix(self) -> Floats:
        """An upper triangular A with AᵀA = X."""
        return np.ascontiguousarray(np.linalg.cholesky(self.gram).T, np.float64)


def queries_of(kind: str, leaves: int) -> Floats:
    """The questions of a kind, one in each row: "prefixes", "ranges", "cells" or "total"."""
    if kind == "total":
        return np.ones((1, leaves))
    if kind == "cells":
        return np.eye(leaves)
    if kind == "prefixes":
        return np.tril(np.ones((leaves, leaves)))
    starts, ends = np.triu_indices(leaves)
    places = np.arange(leaves)
    rows: Floats = ((starts[:, None] <= places) & (places <= ends[:, None])).astype(np.float64)
    return rows


def gram_of(weights: Mapping[str, float], leaves: int) -> Floats:
    """Σ weight · WᵀW / rows over kinds of questions: each kind counts by its weight, however many
    questions it has.
    """
    places = np.arange(leaves)
    low, high = np.minimum.outer(places, places), np.maximum.outer(places, places)
    grams = {
        "total": (np.ones((leaves, leaves)), 1),
        "cells": (np.eye(leaves), leaves),
        "prefixes": (leaves - high, leaves),
        "ranges": ((low + 1.0) * (leaves - high), leaves * (leaves + 1) // 2),
    }
    total: Floats = np.zeros((leaves, leaves))
    for kind, weight in weights.items():
        gram, rows = grams[kind]
        total += weight / rows * gram
    return total


def optimal_strategy(gram: Floats, tolerance: float = _TOLERANCE) -> OptimalStrategy:
    """The strategy with the least total variance, proved to be within `tolerance` of the best.

    The Gram matrix of the questions must be positive definite, as it is if they determine every
    value.

    >>> prefixes = optimal_strategy(4 * gram_of({"prefixes": 1.0}, 4))
    >>> bool(abs((prefixes.value / 4) ** 0.5 - 1.3109) < 1e-3)
    True
    """
    leaves = len(gram)
    shares = np.full(leaves, 1 / leaves)
    best: OptimalStrategy | None = None
    lower = 0.0
    for _ in range(_MOST_STEPS):
        roots = np.sqrt(shares)
        middle, trace = _square_root(roots[:, None] * gram * roots)
        found = middle / np.outer(roots, roots) / trace
        lower = max(lower, trace**2)
        peak = float(found.diagonal().max())
        # tr(G X⁻¹) of X = found / peak: D^½ G D^½ is the square of `middle`, so G found⁻¹ has the trace tr S · tr S.
        if best is None or peak * trace**2 < best.value:
            best = OptimalStrategy(found / peak, peak * trace**2, lower)
        if best.value <= lower * (1 + tolerance):
            break
        shares = shares * found.diagonal()
        shares /= shares.sum()
    assert best is not None
    return OptimalStrategy(best.gram, best.value, lower)


def worst_case_strategy(queries: Floats, tolerance: float = _TOLERANCE) -> OptimalStrategy:
    """The strategy with the least greatest variance of any question; `value` is that variance.

    Weights of the questions and shares of the values move together: with Λ and D that add up to one
    each, ‖Λ^½ W D^½‖_*² bounds the greatest variance of every strategy from below, by the same
    proof.
    """
    asked, leaves = queries.shape
    weights, shares = np.full(asked, 1 / asked), np.full(leaves, 1 / leaves)
    best: OptimalStrategy | None = None
    lower = 0.0
    for _ in range(_MOST_STEPS):
        roots = np.sqrt(shares)
        gram = queries.T @ (weights[:, None] * queries)
        middle, trace = _square_root(roots[:, None] * gram * roots)
        found = middle / np.outer(roots, roots) / trace
        lower = max(lower, trace**2)
        peak = float(found.diagonal().max())
        variances = np.einsum("qi,qi->q", queries, np.linalg.solve(found, queries.T).T)
        worst = peak * float(variances.max())
        if best is None or worst < best.value:
            best = OptimalStrategy(found / peak, worst, lower)
        if best.value <= lower * (1 + tolerance):
            break
        weights = weights * variances
        weights /= weights.sum()
        shares = shares * found.diagonal()
        shares /= shares.sum()
    assert best is not None
    return OptimalStrategy(best.gram, best.value, lower)


def _square_root(matrix: Floats) -> tuple[npt.NDArray[np.float64], float]:
    """The square root of a positive definite matrix, and its trace."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    roots = np.sqrt(np.maximum(values, 0.0))
    return (vectors * roots) @ vectors.T, float(roots.sum())
