# SPDX-License-Identifier: Apache-2.0
"""Weighted sums where few units are down-weighted: all rows at full weight, less what those few
lose.

    staged      u, c0 …            the rows, as packed cells
    totals      u, r, t0 …         for each unit: its rows, and its sums over all groups
    heavy       u, k0 …, n, v0 …   the pairs of units whose weight may be below `fine`
    by size     k0 …, n, v0 …, r   for each group, all units with r rows as one pair
    separated   k0 …, n, v0 …, w   for each group one pair of all units, with the weight `fine`, and
                                   the heavy pairs with the (negative) weight that they lose

**Guarantee.** The sums equal those of the pairs of all units. No feature is negative here, so a
unit's totals over all groups bound its norm: under `MassScheme` T = Σ t, and under `NormScheme`
√Q ≤ Σ ⌈|v| / cells⌉ ≤ Σ ⌈t / cells⌉ + r · features. A unit within `most` by that bound has the
weight `fine`; under `MarginScheme` one with at most `rows` rows. And Σ w · v = fine · Σ v − Σ (fine − w) · v, where only other units have a part in
the last sum.
"""

from __future__ import annotations

from sqlglot import exp

from discreet.tables.algebra.expr import Constant
from discreet.tables.algebra.sums import BoundedSums, MarginScheme, MassScheme, NormScheme
from discreet.tables.engines import terms as t
from discreet.tables.engines.pairs import Pairs
from discreet.tables.engines.relation import select
from discreet.tables.engines.statements import Statements
from discreet.tables.engines.terms import UNIT, Term, name_term
from discreet.tables.engines.widths import is_narrow_sum

__all__ = ["can_separate", "heavy_pairs", "pairs_by_size", "separated_pairs", "unit_totals"]


def can_separate(request: BoundedSums) -> bool:
    """Whether the totals of a unit can show that it is not down-weighted."""
    if isinstance(request.scheme, MarginScheme):
        return True
    return (
        isinstance(request.scheme, NormScheme | MassScheme)
        and not request.present
        and bool(request.features)
        and all(
            not isinstance(feature, Constant) and feature.type.low >= 0 and is_narrow_sum(feature)
            for feature in request.features
        )
    )


def unit_totals(statements: Statements, pairs: Pairs, rows: exp.Select) -> exp.Select:
    """The totals of each unit, from the rows with their features."""
    sums = [statements.total(pairs, place) for place in range(len(pairs.features))]
    columns = [t.column(UNIT), name_term(t.everyone(), "r")]
    columns += [name_term(t.cast(total, t.BIGINT), f"t{place}") for place, total in enumerate(sums)]
    return select(columns, rows).group_by(t.column(UNIT), copy=False)


def pairs_by_size(statements: Statements, pairs: Pairs, rows: exp.Select, units: exp.Table) -> exp.Select:
    """k0 …, n, v0 …, r, from the rows with their features and the units with their rows."""
    source = units.copy()
    source.set("alias", exp.TableAlias(this=exp.to_identifier("b")))
    same_unit = t.binary(exp.EQ, t.column(UNIT, "a"), t.column(UNIT, "b"))
    keys = [*map(t.column, pairs.key_names), t.column("r")]
    columns = [*keys, name_term(t.everyone(), "n"), *_sums(statements, pairs)]
    joined = select(columns, rows, "a").join(source, on=same_unit, join_type="INNER", copy=False)
    return joined.group_by(*(key.copy() for key in keys), copy=False)


def heavy_pairs(
    statements: Statements, request: BoundedSums, rows: exp.Select, units: exp.Table
) -> exp.Select:
    """The pairs of units that may be down-weighted."""
    names = [*Pairs.of(request).key_names, *Pairs.of(request).sum_names]
    chosen = select([t.column(name) for name in (UNIT, *names)], rows)
    return statements.pairs(
        Pairs.of(request), chosen.where(_may_be_down_weighted(request, units), copy=False)
    )


def separated_pairs(
    statements: Statements,
    request: BoundedSums,
    rows: exp.Select,
    heavy: exp.Table,
    weights: exp.Table | None,
) -> exp.Query:
    """One pair of all units at full weight for each group, and the heavy pairs with their loss.

    `weights` are those of their units, if they are stored.
    """
    pairs, scheme = Pairs.of(request), request.scheme
    assert isinstance(scheme, NormScheme | MassScheme | MarginScheme)
    keys = [t.column(name) for name in pairs.key_names]
    sums = [name_term(t.everyone(), "n"), *_sums(statements, pairs)]
    all_units = select([*keys, *sums, name_term(t.number(scheme.fine), "w")], rows)
    if keys:
        all_units = all_units.group_by(*(key.copy() for key in keys), copy=False)
    loss = name_term(t.binary(exp.Sub, t.column("w"), t.number(scheme.fine)), "w")
    names = [*pairs.key_names, "n", *pairs.sum_names]
    lost = select([*map(t.column, names), loss], statements.weighted_pairs(request, heavy, weights))
    return exp.union(all_units, lost, distinct=False, copy=False)


def _sums(statements: Statements, pairs: Pairs) -> list[Term]:
    """v0 …, over rows of many units: their types hold sums over 2^40 rows."""
    places = range(len(pairs.features))
    return [statements.as_sum(pairs, place, statements.total(pairs, place)) for place in places]


def _may_be_down_weighted(request: BoundedSums, units: exp.Table) -> Term:
    """Whether the unit of a row is not within `most` by its totals."""
    heavy = select([t.column(UNIT)], units).where(t.negate(_within(request)), copy=False)
    return exp.In(this=t.column(UNIT), query=heavy.subquery(copy=False))


def _within(request: BoundedSums) -> Term:
    """Whether a unit is within `most`, from r and its totals.

    A narrow sum and a number of cells have at most 62 bits, so their sum fits into 64; a sum of
    several of them is widened.
    """
    scheme, pairs = request.scheme, Pairs.of(request)
    if isinstance(scheme, MarginScheme):
        return t.binary(exp.LTE, t.column("r"), t.number(scheme.rows))
    assert isinstance(scheme, NormScheme | MassScheme)
    parts: list[Term] = [t.column(f"t{pairs.features.index(feature)}") for feature in request.features]
    if isinstance(scheme, NormScheme):
        parts = [
            t.call("DIVIDE", t.add(part, t.number(cells - 1)), t.number(cells))
            for part, cells in zip(parts, scheme.cells, strict=True)
        ]
        parts.append(t.times(t.column("r"), t.number(len(parts))))
    return t.binary(exp.LTE, t.add(*(t.cast(part, "HUGEINT") for part in parts)), t.number(scheme.most))
