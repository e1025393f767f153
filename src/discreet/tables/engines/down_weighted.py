# SPDX-License-Identifier: Apache-2.0
"""Sums where few units are down-weighted: a group's sum of all rows, less what those lose, who are measured pair by pair.

    staged      u, c0 …                 the rows, as packed cells
    sized       u, r, t0 …              for each unit its rows, and its sum of each feature over all groups
    heavy       u, k0 …, n, v0 …        the pairs of units whose weight may be below `fine`
    by size     k0 …, n, v0 …, r        for each group, all units that have r rows as one pair: they weigh the same
    separated   k0 …, n, v0 …, w        for each group one pair of everybody, of weight `fine`, and what heavy pairs lose

**Guarantee.** The sums are those of the pairs of all units. No feature is below zero here, so what a unit has in all groups
bounds its norm: `MassScheme` has T = Σ t, and under `NormScheme` √Q ≤ Σ ⌈|v| / cells⌉ ≤ Σ ⌈t / cells⌉ + r · features. Who is within
`most` by that bound has the weight `fine`: Σ w · v = fine · Σ v − Σ (fine − w) · v, the last over all others.
"""

from __future__ import annotations

from sqlglot import exp

from discreet.tables.data.expr import Constant
from discreet.tables.data.sums import BoundedSums, MassScheme, NormScheme
from discreet.tables.engines import terms as t
from discreet.tables.engines.pairs import Pairs
from discreet.tables.engines.relation import UNIT, select
from discreet.tables.engines.statements import Statements
from discreet.tables.engines.terms import Term, name_term
from discreet.tables.engines.widths import is_narrow_sum

__all__ = ["can_separate", "heavy_pairs", "pairs_by_size", "separated_pairs", "unit_totals"]


def can_separate(asked: BoundedSums) -> bool:
    """Whether what a unit has in all groups says who is surely not down-weighted."""
    return (
        isinstance(asked.scheme, NormScheme | MassScheme)
        and not asked.present
        and bool(asked.features)
        and all(
            not isinstance(feature, Constant) and feature.type.low >= 0 and is_narrow_sum(feature)
            for feature in asked.features
        )
    )


def unit_totals(statements: Statements, pairs: Pairs, rows: exp.Select) -> exp.Select:
    """u, r, t0 …, from the rows with their features."""
    sums = [statements.total(pairs, place) for place in range(len(pairs.features))]
    columns = [t.column(UNIT), name_term(t.everyone(), "r")]
    columns += [name_term(t.cast(total, t.BIGINT), f"t{place}") for place, total in enumerate(sums)]
    return select(columns, rows).group_by(t.column(UNIT), copy=False)


def pairs_by_size(statements: Statements, pairs: Pairs, rows: exp.Select, units: exp.Table) -> exp.Select:
    """k0 …, n, v0 …, r, from the rows with their features and the units with their rows."""
    source = units.copy()
    source.set("alias", exp.TableAlias(this=exp.to_identifier("b")))
    mine = t.binary(exp.EQ, t.column(UNIT, "a"), t.column(UNIT, "b"))
    keys = [*map(t.column, pairs.key_names), t.column("r")]
    columns = [*keys, name_term(t.everyone(), "n"), *_sums(statements, pairs)]
    joined = select(columns, rows, "a").join(source, on=mine, join_type="INNER", copy=False)
    return joined.group_by(*(key.copy() for key in keys), copy=False)


def heavy_pairs(statements: Statements, asked: BoundedSums, rows: exp.Select, units: exp.Table) -> exp.Select:
    """u, k0 …, n, v0 … of everybody who may be down-weighted."""
    names = [*Pairs.of(asked).key_names, *Pairs.of(asked).sum_names]
    chosen = select([t.column(name) for name in (UNIT, *names)], rows)
    return statements.pairs(Pairs.of(asked), chosen.where(_among(asked, units), copy=False))


def separated_pairs(
    statements: Statements, asked: BoundedSums, rows: exp.Select, heavy: exp.Table
) -> exp.Query:
    """k0 …, n, v0 …, w: for each group one pair of everybody, and the heavy pairs, which lose what they are not to have."""
    pairs, scheme = Pairs.of(asked), asked.scheme
    assert isinstance(scheme, NormScheme | MassScheme)
    keys = [t.column(name) for name in pairs.key_names]
    sums = [name_term(t.everyone(), "n"), *_sums(statements, pairs)]
    everybody = select([*keys, *sums, name_term(t.number(scheme.fine), "w")], rows)
    if keys:
        everybody = everybody.group_by(*(key.copy() for key in keys), copy=False)
    less = name_term(t.binary(exp.Sub, t.column("w"), t.number(scheme.fine)), "w")
    names = [*pairs.key_names, "n", *pairs.sum_names]
    lost = select([*map(t.column, names), less], statements.weighted_pairs(asked, heavy))
    return exp.union(everybody, lost, distinct=False, copy=False)


def _sums(statements: Statements, pairs: Pairs) -> list[Term]:
    """v0 …, over rows of many units: their types hold sums over 2^40 rows."""
    places = range(len(pairs.features))
    return [statements.as_sum(pairs, place, statements.total(pairs, place)) for place in places]


def _among(asked: BoundedSums, units: exp.Table) -> Term:
    """Whether a row's unit may be down-weighted."""
    heavy = select([t.column(UNIT)], units).where(t.negate(_within(asked)), copy=False)
    return exp.In(this=t.column(UNIT), query=heavy.subquery(copy=False))


def _within(asked: BoundedSums) -> Term:
    """Whether a unit is within `most` by what it has in all groups, from r and the sums of a unit.

    A narrow sum and a number of cells have 62 bits at most, so that one and the other fit 64; sums of several do not.
    """
    scheme, pairs = asked.scheme, Pairs.of(asked)
    assert isinstance(scheme, NormScheme | MassScheme)
    parts: list[Term] = [t.column(f"t{pairs.features.index(feature)}") for feature in asked.features]
    if isinstance(scheme, NormScheme):
        parts = [
            t.call("DIVIDE", t.add(part, t.number(cells - 1)), t.number(cells))
            for part, cells in zip(parts, scheme.cells, strict=True)
        ]
        parts.append(t.times(t.column("r"), t.number(len(parts))))
    return t.binary(exp.LTE, t.add(*(t.cast(part, "HUGEINT") for part in parts)), t.number(scheme.most))
