# SPDX-License-Identifier: Apache-2.0
"""Guarantees: how they compose, and every number that follows from them.

    guarantee.py     Guarantee: +, *, sampled, group, and the views            ◄ read this first
    constructors.py  pure, approximate, concentrated, gaussian, laplace, …     one mechanism each
    primitives.py    what each of them knows of itself
    wrapped.py       parallel, group, pair                                     around others
    sampling.py      amplification, one function for each theorem
    allocation.py, averages.py                      records in random steps  (+ allocation.proof.md)
    shuffling.py     reports of a local randomiser, shuffled                       (+ shuffling.proof.md)
    mixtures.py      moves of chance: mixtures of Gaussians, truncated batches
    importers.py     what other accountants recorded
    selection.py     the best of a secret number of runs; one of several       (+ selection.proof.md)
    routes.py        every composition theorem, by name
    bag.py           where a count meets numerics
    pairs.py, families.py, comonotone.py            dominating pairs of mechanisms and of groups
    losses.py, lattice.py, coarse.py, tilted.py     certified distributions of a composition
    inversion.py, moments.py, quadrature.py,        the same without a lattice
    cells.py, jumps.py
    divergences.py, roots.py, truncated.py          Rényi curves, roots, truncated tails
    tradeoff.py, gdp.py, order.py, calibrate.py     views and order
    wire.py, show.py, svg.py, explain.py            storage and display

No random number is drawn here and no data are seen: this is mathematics about ε, δ and friends.
"""

from __future__ import annotations

from discreet.privacy.bound import Bound, Comparison
from discreet.privacy.calibrate import calibrate
from discreet.privacy.constructors import (
    approximate,
    approximate_concentrated,
    concentrated,
    discrete_gaussian,
    discrete_laplace,
    exponential,
    gaussian,
    laplace,
    leaky,
    leaky_randomized_response,
    pure,
    randomized_response,
    renyi_curve,
)
from discreet.privacy.constructors import renyi_point as renyi
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.importers import from_dp_accounting, from_opacus
from discreet.privacy.mixtures import gaussian_mixture, truncated_batches
from discreet.privacy.selection import one_of, selected
from discreet.privacy.shuffling import shuffled
from discreet.privacy.unit import Unit
from discreet.privacy.wire import from_json
from discreet.privacy.wrapped import pair, pair_of_densities, parallel, two_gaussians

__all__ = [
    "Bound",
    "Comparison",
    "Guarantee",
    "Unit",
    "approximate",
    "approximate_concentrated",
    "calibrate",
    "concentrated",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential",
    "from_dp_accounting",
    "from_json",
    "from_opacus",
    "gaussian",
    "gaussian_mixture",
    "laplace",
    "leaky",
    "leaky_randomized_response",
    "one_of",
    "pair",
    "pair_of_densities",
    "parallel",
    "pure",
    "randomized_response",
    "renyi",
    "renyi_curve",
    "selected",
    "shuffled",
    "truncated_batches",
    "two_gaussians",
]
