# SPDX-License-Identifier: Apache-2.0
"""Guarantees around other guarantees: disjoint parts of the data, and the pairs that users bring
themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from discreet import check
from discreet.errors import BadParameter, UnsupportedGuarantee
from discreet.privacy import divergences, families
from discreet.privacy.bag import BagItem, greatest_of
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.pairs import Pair, atoms, swap
from discreet.privacy.primitives import Primitive
from discreet.privacy.unit import RELATIONS, Unit, same_unit, unit_of

#: Two tables lose the same if what they lose differs by less than half of this share of the
#: greatest loss.
_ALIKE = 4e-16


@dataclass(frozen=True, repr=False)
class OneDirectionGuarantee(Primitive):
    """A mechanism in one direction only: how it looks to a record that leaves (0) or enters (1) its
    part.
    """

    inner: Primitive
    direction: int

    @property
    def failure(self) -> float:
        return self.inner.failure

    def worst_loss(self) -> float:
        return self.inner.worst_loss()

    def divergence(self, order: float) -> float:
        return self.inner.divergence(order)

    def concentration(self) -> tuple[float, float]:
        return self.inner.concentration()

    def dominating(self) -> tuple[Pair, ...]:
        pairs = self.inner.pairs()
        return (pairs[self.direction % len(pairs)],) if pairs else ()

    def witness(self) -> tuple[Pair, ...]:
        pairs = self.inner.witness()
        return (pairs[self.direction % len(pairs)],)


@dataclass(frozen=True, repr=False)
class ParallelGuarantee(Guarantee):
    """Mechanisms on disjoint parts of the data, each record in the part that a public rule of that
    record names.

    A record that is added or removed touches one part, so the guarantee is the worst part. A
    replaced record may leave one part and enter another: then it is the worst two, or one part
    twice.
    """

    parts: frozenset[Guarantee]
    relation: str = "add-remove"

    @property
    def unit(self) -> Unit:
        return Unit(next(iter(self.parts)).unit.protects, self.relation)

    @property
    def assumes(self) -> frozenset[str]:
        return frozenset({"each record's part is a public function of that record"}).union(
            *(part.assumes for part in self.parts)
        )

    def bags(self) -> list[tuple[tuple[BagItem, int], ...]]:
        parts = sorted(self.parts, key=repr)
        if self.relation == "add-remove":
            return [bag for part in parts for bag in part.bags()]
        # A replaced record stays in its part (two neighbours apart), or leaves one part and enters
        # another. The two parts see disjoint data, so their losses add.
        twice = [bag for part in parts for bag in part.at_distance(2).bags()]
        leaves, enters = (
            [_facing(bag, direction) for part in parts for bag in part.bags()] for direction in (0, 1)
        )
        return twice + [left + entered for left in leaves for entered in enters]

    def _group_of(self, size: int) -> Guarantee:
        raise UnsupportedGuarantee(
            "DP203",
            "a group may lie in several parallel parts at once.",
            why="then the guarantee is that of all the parts it touches, not of one.",
            fix="compose the parts with + and group that.",
        )

    def __repr__(self) -> str:
        words = ", ".join(sorted(repr(part) for part in self.parts))
        return (
            f"parallel({words}{', relation=' + repr(self.relation) if self.relation != 'add-remove' else ''})"
        )


@check.arguments
def parallel(*parts: Guarantee, relation: str | None = None) -> Guarantee:
    """The guarantee of one mechanism for each of several disjoint parts of the data.

    **Guarantee.** A record that is added or removed touches one part, so the guarantee is that of
    the worst part (McSherry 2009, Theorem 4). The parts have add-remove guarantees. What would
    break it: a rule that assigns a record to a part by looking at other records.

    >>> from discreet import privacy
    >>> parallel(privacy.pure(1.0), privacy.pure(0.5)).epsilon(delta=0)
    1.0
    """
    if not parts or not all(isinstance(part, Guarantee) for part in parts):
        raise BadParameter(
            "DP104",
            "parallel needs one or more guarantees.",
            why="each part of the data has its own mechanism.",
            fix="parallel(laplace(scale=1), laplace(scale=2))",
        )
    unit = same_unit([part.unit for part in parts])
    if unit.relation != "add-remove":
        raise UnsupportedGuarantee(
            "DP203",
            "parallel needs add-remove guarantees of its parts.",
            why="a replaced record may leave one part and enter another, and a replace guarantee says nothing of that.",
            fix="state the parts under add-remove and ask for  parallel(…, relation='replace').",
        )
    relation = check.choice(RELATIONS, relation=relation if relation is not None else unit.relation)
    return ParallelGuarantee(frozenset(parts), relation)


def _facing(bag: tuple[tuple[BagItem, int], ...], direction: int) -> tuple[tuple[BagItem, int], ...]:
    return tuple(
        (OneDirectionGuarantee(part, direction, unit=part.unit), count)
        for part, count in bag
        if isinstance(part, Primitive)
    )


@dataclass(frozen=True, repr=False)
class PairGuarantee(Primitive):
    """Two probability tables on the same outcomes: the distributions of the answer for two
    neighbours.
    """

    p: tuple[float, ...]
    q: tuple[float, ...]
    taken: frozenset[str] = frozenset()

    #: A replaced record may have either of the two distributions first, and finitely many outcomes
    #: keep the maximum exact.
    tight = True

    @property
    def assumes(self) -> frozenset[str]:
        return self.taken

    @property
    def failure(self) -> float:
        return max(pair.infinite for pair in self.pairs())

    def worst_loss(self) -> float:
        return max(pair.greatest for pair in self.pairs()) * (1 + 1e-15)

    def divergence(self, order: float) -> float:
        """Of what is not lost, if both tables lose the same; else what the greatest loss proves."""
        worst = super().divergence(order)
        if not self._lose_alike:
            return worst
        # a difference of rounding between what they lose moves losses by as much
        return min(
            worst,
            max(divergences.of_unfailing(pair, order) + _ALIKE * pair.greatest for pair in self.pairs()),
        )

    def concentration(self) -> tuple[float, float]:
        """As for `divergence`."""
        xi, worst = super().concentration()
        return xi, min(worst, _concentration(self)) if self._lose_alike else worst

    @property
    def _lose_alike(self) -> bool:
        """Whether each table has as much mass where the other has none, but for rounding."""
        return all(
            pair.infinite <= 0.5 and abs(pair.infinite - pair.vanishing) <= _ALIKE / 2 * pair.greatest
            for pair in self.pairs()
        )

    def dominating(self) -> tuple[Pair, ...]:
        return self.witness() if self.unit.relation == "add-remove" else (greatest_of(self.witness()),)

    def witness(self) -> tuple[Pair, ...]:
        pair = atoms(np.array(self.p), np.array(self.q))
        return pair, swap(pair)

    def __repr__(self) -> str:
        is_short = len(self.p) <= 8
        tables = [str(list(self.p)), str(list(self.q))] if is_short else [f"<{len(self.p)} outcomes>"]
        return f"pair({', '.join([*tables, *self._unit_words()])})"


@lru_cache(maxsize=64)
def _concentration(tables: PairGuarantee) -> float:
    """The ρ of what is not lost, in both directions."""
    bounds = (divergences.concentrated_of_unfailing(pair) + _ALIKE * pair.greatest for pair in tables.pairs())
    return max(bounds)


@dataclass(frozen=True, repr=False)
class TwoGaussiansGuarantee(Primitive):
    """N(0, ratio²) against N(shift, 1): finite Rényi divergence only below some order."""

    shift: float
    ratio: float

    @property
    def tight(self) -> bool:
        """For a replaced record the greater of both directions is only read at some points."""
        return self.unit.relation == "add-remove"

    def divergence(self, order: float) -> float:
        forth = divergences.of_two_gaussians(self.shift, self.ratio, order)
        back = divergences.of_two_gaussians(self.shift / self.ratio, 1 / self.ratio, order)
        return max(forth, back) * (1 + 1e-12)

    def dominating(self) -> tuple[Pair, ...]:
        return self.witness() if self.unit.relation == "add-remove" else (greatest_of(self.witness()),)

    def witness(self) -> tuple[Pair, ...]:
        """Seen from the other side, and scaled back, the pair has shift/ratio and 1/ratio."""
        forth = families.two_gaussians(self.shift, self.ratio)
        return forth, families.two_gaussians(self.shift / self.ratio, 1 / self.ratio)


@check.arguments
def pair(
    p: Sequence[float], q: Sequence[float], *, unit: str | Unit = "record", relation: str | None = None
) -> Guarantee:
    """The guarantee of a mechanism whose answers have these two distributions, for two neighbours.

    `p` and `q` are tables of probabilities on the same outcomes.

    **Guarantee.** Covers every mechanism that the pair dominates, in both directions (Zhu, Dong,
    Wang 2022). What would break it: neighbours whose answers differ more than the pair does.

    >>> from discreet import privacy
    >>> round(privacy.pair([0.9, 0.1], [0.2, 0.8]).advantage(), 9)
    0.7
    """
    tables = [_table(name, values) for name, values in (("p", p), ("q", q))]
    if len(tables[0]) != len(tables[1]):
        raise BadParameter(
            "DP106",
            f"p has {len(tables[0])} outcomes and q has {len(tables[1])}.",
            why="the loss compares the probabilities of one and the same outcome.",
            fix="give both tables one entry for each outcome, zero where it cannot happen.",
        )
    return PairGuarantee(tables[0], tables[1], unit=unit_of(unit, relation))


@check.arguments
def pair_of_densities(
    p: Callable[[Any], Any],
    q: Callable[[Any], Any],
    support: tuple[float, float],
    *,
    pieces: int = 2000,
    unit: str | Unit = "record",
    relation: str | None = None,
) -> Guarantee:
    """The guarantee of a mechanism whose answers have these two densities on an interval, for two
    neighbours.

    **Guarantee.** That of `pair`, if the numerical integration of both densities is exact. The
    guarantee states this assumption in `assumes`.

    >>> from discreet import privacy
    >>> box = privacy.pair_of_densities(lambda x: 0 * x + 1, lambda x: 2 * x, support=(0.0, 1.0))
    >>> round(box.advantage(), 3)
    0.25
    """
    pieces = check.whole(pieces=pieces)
    low, high = (check.real(support=end) for end in support) if isinstance(support, tuple) else (0.0, 0.0)
    if not low < high:
        raise BadParameter(
            "DP107",
            "support must be (low, high) with low below high.",
            why="the densities are integrated over it.",
            fix="support=(-50, 50)",
        )
    nodes, weights = np.polynomial.legendre.leggauss(8)
    edges = np.linspace(low, high, pieces + 1)
    x = (edges[:-1, None] + (edges[1:] - edges[:-1])[:, None] * (nodes + 1) / 2).ravel()
    w = ((edges[1:] - edges[:-1])[:, None] * weights / 2).ravel()
    masses = [_density_masses(name, density, x, w) for name, density in (("p", p), ("q", q))]
    keep = (masses[0] > 0) | (masses[1] > 0)
    p_table, q_table = (tuple(float(m) for m in mass[keep] / mass.sum()) for mass in masses)
    assumed = frozenset({"the densities are integrated exactly by quadrature"})
    return PairGuarantee(p_table, q_table, assumed, unit=unit_of(unit, relation))


@check.arguments
def two_gaussians(
    shift: float, ratio: float, *, unit: str | Unit = "record", relation: str | None = None
) -> Guarantee:
    """The guarantee of Gaussian answers whose standard deviation depends on the data: N(0, ratio²)
    against N(shift, 1).

    **Guarantee.** The curve of that pair. Rényi divergences are finite only below some order (Gil,
    Alajaji, Linder 2013).

    >>> from discreet import privacy
    >>> privacy.two_gaussians(shift=0.5, ratio=1.1).epsilon(delta=1e-6) > 2
    True
    """
    shift, ratio = check.real(shift=shift), check.moderate(ratio=ratio)
    if shift == 0 and ratio == 1:
        raise BadParameter(
            "DP107",
            "shift 0 and ratio 1 describe two equal distributions.",
            why="such an answer does not depend on the data at all.",
            fix="two_gaussians(shift=0.5, ratio=1.1)",
        )
    return TwoGaussiansGuarantee(abs(shift), ratio, unit=unit_of(unit, relation))


def _density_masses(name: str, density: Callable[[Any], Any], x: np.ndarray, w: np.ndarray) -> np.ndarray:
    masses = np.asarray(density(x), float) * w if callable(density) else np.zeros(0)
    if (
        masses.shape != x.shape
        or not np.all(np.isfinite(masses))
        or np.any(masses < 0)
        or abs(masses.sum() - 1) > 1e-6
    ):
        raise BadParameter(
            "DP106",
            f"{name} is not a density on the given support.",
            why="it must be finite, not negative, and integrate to 1 (within 1e-6) over the support.",
            fix="pass a vectorised density and a wide enough support.",
        )
    return np.asarray(masses)


def _table(name: str, values: Sequence[float]) -> tuple[float, ...]:
    try:
        table = tuple(check.probability(**{f"{name}[{i}]": value}) for i, value in enumerate(values))
    except TypeError:
        table = ()
    if not table or abs(math.fsum(table) - 1) > 1e-9:
        raise BadParameter(
            "DP106",
            f"{name} must be a list of probabilities that add up to 1.",
            why="it is the distribution of an answer.",
            fix=f"{name}=[0.9, 0.1]",
        )
    return table
