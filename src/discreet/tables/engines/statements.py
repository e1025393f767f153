# SPDX-License-Identifier: Apache-2.0
"""Bounded sums as SQL: pairs of unit and group, the weight of each unit, weighted sums by group.

    pairs       u, k0 …, n, v0 …     for each unit and group: its rows, and its sum of each feature
    measured    k0 …, n, v0 …, r, m  pairs with the rows and groups of their unit, which make its
                or w                 weight; under schemes that measure units the weight itself
    answer      k0 …, s0 …           Σ w · v over the units of a group

**Guarantee.** The weight of a unit is a function of its own pairs, and these of its own rows. All
numbers are whole; the one double is a square root, which IEEE 754 rounds the same everywhere. Where
every row is a unit, a pair is a row.
"""

from __future__ import annotations

from sqlglot import exp

from discreet.errors import RefusedQuestion
from discreet.tables.algebra.engine import ROW
from discreet.tables.algebra.expr import Constant
from discreet.tables.algebra.sums import (
    BoundedSums,
    GroupScheme,
    MarginScheme,
    MassScheme,
    NormScheme,
    OnceScheme,
    Relation,
    RowScheme,
    Scheme,
    UnitSizes,
)
from discreet.tables.algebra.types import TEXT, WIDEST
from discreet.tables.engines import terms as t
from discreet.tables.engines.dialect import Dialect
from discreet.tables.engines.margins import margin_weights
from discreet.tables.engines.pairs import Pairs
from discreet.tables.engines.relation import Relations, select
from discreet.tables.engines.results import cells_of, wanted_parts
from discreet.tables.engines.terms import UNIT, Term, name_term
from discreet.tables.engines.tree import reads_of, unit_of
from discreet.tables.engines.widths import HEAVIEST, STEPS, is_narrow_product, is_narrow_sum
from discreet.tables.engines.write import search_tree

__all__ = ["Statements"]

#: The schemes whose weights are made of more than the numbers of rows and groups of a unit.
_MEASURED = NormScheme | MassScheme | MarginScheme


class Statements:
    """Writes statements for one engine."""

    def __init__(self, relations: Relations) -> None:
        self.relations = relations
        self.dialect: Dialect = relations.dialect

    def is_single(self, rows: Relation) -> bool:
        """Whether every row is a unit of its own."""
        return unit_of(self.relations.tables, rows) == ROW

    def rows(self, pairs: Pairs) -> exp.Select:
        """u, k0 …, v0 … for each row; NULL counts as 0."""
        source = self.relations.rows(pairs.rows, reads_of([*pairs.keys, *pairs.features]))
        return self.pair_values(pairs, source, [] if self.is_single(pairs.rows) else [t.column(UNIT)])

    def pair_values(self, pairs: Pairs, source: exp.Select, first: list[Term]) -> exp.Select:
        """Keys and features of rows whose columns have been read, after some columns that are there
        already.
        """
        write = self.relations.writer().write
        columns = list(first)
        columns += [
            name_term(write(key), name) for key, name in zip(pairs.keys, pairs.key_names, strict=True)
        ]
        for feature, name in zip(pairs.features, pairs.sum_names, strict=True):
            columns.append(name_term(t.call("COALESCE", write(feature), t.number(0)), name))
        return select(columns or [name_term(t.number(1), "one")], source)

    def pairs(self, pairs: Pairs, rows: exp.Select | None = None) -> exp.Select:
        """u, k0 …, n, v0 … for each unit and group."""
        rows = rows or self.rows(pairs)
        keys = [t.column(name) for name in pairs.key_names]
        if self.is_single(pairs.rows):
            sums = [self.as_sum(pairs, place, t.column(name)) for place, name in enumerate(pairs.sum_names)]
            return select([*keys, name_term(t.number(1), "n"), *sums], rows)
        keys = [t.column(UNIT), *keys]
        sums = [self.as_sum(pairs, place, self.total(pairs, place)) for place in range(len(pairs.features))]
        chosen = select([*(key.copy() for key in keys), name_term(t.everyone(), "n"), *sums], rows)
        return chosen.group_by(*keys, copy=False)

    def total(self, pairs: Pairs, place: int) -> Term:
        """The exact sum of a feature, over rows with their features."""
        value, narrow = t.column(pairs.sum_names[place]), is_narrow_sum(pairs.features[place])
        return t.call("SUM", self.dialect.summand(value) if narrow else self.dialect.widen(value))

    def as_sum(self, pairs: Pairs, place: int, value: Term) -> Term:
        """A sum of a feature, in the type and under the name that it has in a table of pairs."""
        kind = t.BIGINT if is_narrow_sum(pairs.features[place]) else self.dialect.wide
        return name_term(t.cast(value, kind), pairs.sum_names[place])

    def value(self, request: BoundedSums, place: int, rows: Term) -> Term:
        """A unit's sum of a feature in a group; of a constant it is known from the number of rows
        there.
        """
        feature = request.features[place]
        if not isinstance(feature, Constant):
            return t.column(Pairs.of(request).name_of(feature))
        kind = t.BIGINT if is_narrow_sum(feature) else self.dialect.wide
        return t.times(t.cast(rows, kind), t.number(feature.value or 0, kind))

    # --- weights ---------------------------------------------------------------------------------

    def weighted_pairs(
        self, request: BoundedSums, source: exp.Table, units: exp.Table | None = None
    ) -> exp.Select:
        """A table of pairs, each with what the weight of its unit is made from; `units` has that,
        if it is stored.
        """
        pairs = Pairs.of(request)
        names = [*pairs.key_names, "n", *pairs.sum_names]
        if self.is_single(request.rows):
            return self._lone(request, source, names)
        names += ["w"] if isinstance(request.scheme, _MEASURED) else ["r", "m"]
        table = source.copy()
        table.set("alias", exp.TableAlias(this=exp.to_identifier("a")))
        known = self.units(request, source) if units is None else select([exp.Star()], units)
        same_unit = t.binary(exp.EQ, t.column(UNIT, "a"), t.column(UNIT, "b"))
        chosen = select([t.column(name) for name in names], table)
        return chosen.join(known.subquery("b", copy=False), on=same_unit, join_type="INNER", copy=False)

    def units(self, request: BoundedSums, source: exp.Table) -> exp.Select:
        """u, w of the schemes that measure units, or u, r, m: rows and groups of each unit, from a
        table of pairs.
        """
        if isinstance(request.scheme, MarginScheme):
            return margin_weights(self, request, source)
        if isinstance(request.scheme, NormScheme | MassScheme):
            made = self._norms if isinstance(request.scheme, NormScheme) else self._masses
            weight = name_term(self._made_weight(request.scheme), "w")
            return select([t.column(UNIT), weight], made(request, source))
        rows = name_term(t.cast(t.call("SUM", t.column("n")), t.BIGINT), "r")
        measured = [t.column(UNIT), rows, name_term(t.everyone(), "m")]
        return select(measured, source).group_by(t.column(UNIT), copy=False)

    def _lone(self, request: BoundedSums, source: exp.Table, names: list[str]) -> exp.Select:
        """The same where every row is a unit: r = m = 1, and T and Q are those of the row."""
        kept = [t.column(name) for name in names]
        if isinstance(request.scheme, MarginScheme):
            return select([*kept, name_term(t.number(request.scheme.fine), "w")], source)
        if not isinstance(request.scheme, NormScheme | MassScheme):
            return select([*kept, name_term(t.number(1), "r"), name_term(t.number(1), "m")], source)
        if isinstance(request.scheme, MassScheme):
            made = [self._mass(request)]
        else:
            steps = [self._steps(request, place) for place in range(len(request.features))]
            squares = [t.times(step.copy(), step.copy()) for step in steps]
            made = self._weighted_pairs(request, steps, squares, t.number(1))
        inner = select([*kept, *made], source)
        return select(
            [*(part.copy() for part in kept), name_term(self._made_weight(request.scheme), "w")], inner
        )

    def _masses(self, request: BoundedSums, source: exp.Table) -> exp.Select:
        """u, mass: T of `MassScheme` for each unit."""
        mass = name_term(t.call("SUM", t.column("mass")), "mass")
        pairs = select([t.column(UNIT), self._mass(request)], source)
        return select([t.column(UNIT), mass], pairs).group_by(t.column(UNIT), copy=False)

    def _mass(self, request: BoundedSums) -> Term:
        """Σ |v| of a pair, each |v| 2^62 at most: with that the unit is not counted anyway."""
        sizes: list[Term] = []
        for place, feature in enumerate(request.features):
            size = t.call("ABS", self.value(request, place, t.column("n")))
            if not is_narrow_sum(feature):
                most = t.number(HEAVIEST, self.dialect.wide)
                size = t.cases([(t.binary(exp.GT, size, most), most.copy())], size.copy())
            sizes.append(self.dialect.widen(size))
        return name_term(t.add(*sizes or [t.number(0, self.dialect.wide)]), "mass")

    def _norms(self, request: BoundedSums, source: exp.Table) -> exp.Select:
        """u, length, square: T and Q of `NormScheme` for each unit."""
        names = [f"c{place}" for place in range(len(request.features))]
        steps = [name_term(self._steps(request, place), name) for place, name in enumerate(names)]
        stepped = select([t.column(UNIT), *steps], source)
        lengths = [t.call("SUM", t.column(name)) for name in names]
        squares = [self.dialect.total(t.times(t.column(name), t.column(name))) for name in names]
        measured = self._weighted_pairs(request, lengths, squares, t.everyone())
        return select([t.column(UNIT), *measured], stepped).group_by(t.column(UNIT), copy=False)

    def weight(self, scheme: Scheme) -> Term:
        """w, from the column r (rows of the unit), m (groups) or w."""
        over = self.dialect.over
        if isinstance(scheme, _MEASURED):
            return t.column("w")
        if isinstance(scheme, RowScheme):
            few = t.binary(exp.LTE, t.column("r"), t.number(scheme.most))
            # r is above zero in every row, and over is harmless where its value is not used.
            return t.cases(
                [(few, t.number(scheme.fine))], over(t.number(scheme.most * scheme.fine), t.column("r"))
            )
        assert isinstance(scheme, GroupScheme)
        many = t.binary(exp.GT, t.column("m"), t.number(scheme.most))
        few = t.binary(exp.LTE, t.column("m"), t.number(scheme.full))
        known = [(many, t.number(0)), (few, t.number(scheme.fine))]
        if scheme.norm == 1:
            return t.cases(known, over(t.number(scheme.full * scheme.fine), t.column("m")))
        shared = over(t.number(scheme.full * scheme.fine**2), t.column("m"))
        return t.cases(known, self.dialect.root(shared))

    def _made_weight(self, scheme: NormScheme | MassScheme) -> Term:
        """w, from the column mass, or the columns length and square."""
        wide = self.dialect.wide
        if isinstance(scheme, MassScheme):
            light = t.binary(exp.LTE, t.column("mass"), t.number(scheme.most, wide))
            heavy = t.binary(exp.GTE, t.column("mass"), t.number(HEAVIEST, wide))
            mass = t.cast(t.cases([(heavy.copy(), t.number(1, wide))], t.column("mass")), t.BIGINT)
            # The mass may be 0 where this value is not used.
            share = self.dialect.over(
                t.number(scheme.most * scheme.fine), t.call("GREATEST", mass, t.number(1))
            )
            return t.cases([(light, t.number(scheme.fine)), (heavy, t.number(0))], share)
        too_long = t.binary(exp.GTE, t.column("length"), t.number(STEPS, wide))
        square = t.cast(t.cases([(too_long.copy(), t.number(1, wide))], t.column("square")), t.BIGINT)
        short = t.binary(exp.LTE, t.column("square"), t.number(scheme.most**2, wide))
        root = t.add(self.dialect.root(square), t.number(2))
        shorter = self.dialect.over(t.number(scheme.most * scheme.fine), root)
        return t.cases([(short, t.number(scheme.fine)), (too_long, t.number(0))], shorter)

    def _weighted_pairs(
        self, request: BoundedSums, lengths: list[Term], squares: list[Term], groups: Term
    ) -> list[Term]:
        """T and Q from their parts, with what `present` adds to them."""
        wide = self.dialect.widen
        if request.present:
            assert isinstance(request.scheme, NormScheme)
            step = min(-(-request.present // request.scheme.cells[-1]), STEPS)
            lengths = [*lengths, t.times(groups, t.number(step))]
            squares = [*squares, t.times(wide(groups.copy()), t.number(step * step, self.dialect.wide))]
        nothing = [t.number(0)]
        return [
            name_term(t.add(*(wide(part) for part in parts or nothing)), name)
            for parts, name in ((lengths, "length"), (squares, "square"))
        ]

    def _steps(self, request: BoundedSums, place: int) -> Term:
        """⌈|v| / cells⌉, or 2^31 where it is more: then the unit is not counted anyway."""
        assert isinstance(request.scheme, NormScheme)
        cells, narrow = request.scheme.cells[place], is_narrow_sum(request.features[place])
        kind = t.BIGINT if narrow else self.dialect.wide
        size = t.call("ABS", self.value(request, place, t.column("n")))
        if not narrow or cells * STEPS <= WIDEST:
            most = t.number(cells * STEPS, kind)
            size = t.cases([(t.binary(exp.GT, size, most), most.copy())], size.copy())
        if cells == 1:
            return t.cast(size, t.BIGINT)
        up = t.add(size, t.number(cells - 1, kind))
        return t.cast(self.dialect.over(up, t.number(cells, kind), wide=not narrow), t.BIGINT)

    # --- answers ---------------------------------------------------------------------------------

    def answer(self, request: BoundedSums, source: exp.Table) -> exp.Select:
        """k0 …, s0 …: the weighted sums of a table of pairs."""
        if isinstance(request.scheme, OnceScheme):
            keys = [t.column(name) for name in Pairs.of(request).key_names]
            return _group_by(
                _keep_wanted(self.relations, request, select([*keys, name_term(t.everyone(), "s0")], source)),
                keys,
            )
        return self.weighted_sums(request, self.weighted_pairs(request, source), t.column("n"))

    def weighted_sums(
        self,
        request: BoundedSums,
        measured: exp.Select | exp.Table,
        rows: Term,
        *,
        several_units: bool = False,
    ) -> exp.Select:
        """k0 …, s0 …: the weighted sums of pairs that were measured, each of which stands for some
        rows.

        `several_units` says that a pair may stand for several units.
        """
        keys = [t.column(name) for name in Pairs.of(request).key_names]
        weight = self.weight(request.scheme)
        if request.most_groups:
            many = t.binary(exp.GT, t.column("m"), t.number(request.most_groups))
            weight = t.cases([(many, t.number(0))], weight)
        if isinstance(request.scheme, GroupScheme):
            total = self.dialect.total(weight)
            chosen = _keep_wanted(self.relations, request, select([*keys, name_term(total, "s0")], measured))
            some = t.binary(exp.GT, total.copy(), t.number(0))
            return _group_by(chosen, keys).having(some, copy=False) if keys else chosen
        sums = []
        for place in range(len(request.features)):
            narrow = is_narrow_product(request, place) and not several_units
            sums.append(self._product(weight.copy(), self.value(request, place, rows.copy()), narrow=narrow))
        if request.present:
            total = self.dialect.widen(self.dialect.total(weight.copy()))
            sums.append(t.times(total, t.number(request.present, self.dialect.wide)))
        columns = [*keys, *(name_term(total, f"s{place}") for place, total in enumerate(sums))]
        chosen = _group_by(_keep_wanted(self.relations, request, select(columns, measured)), keys)
        if request.most_groups:
            return chosen.having(t.binary(exp.GT, sums[0].copy(), t.number(0)), copy=False)
        return chosen

    def _product(self, weight: Term, value: Term, *, narrow: bool) -> Term:
        """Σ w · v, in 64 bits for each unit where that is enough."""
        if narrow:
            return self.dialect.total(t.times(weight, value))
        return t.call("SUM", t.times(self.dialect.widen(weight), self.dialect.widen(value)))

    # --- sizes -----------------------------------------------------------------------------------

    def sizes(self, request: UnitSizes, source: exp.Table) -> exp.Select:
        """bin, s0: how many units have a size in each bin, from a table of pairs."""
        if request.norm == 1:
            measured = t.cast(t.call("SUM", t.column("n")), t.BIGINT)
        else:
            measured = t.cast(self.dialect.total(t.times(t.column("n"), t.column("n"))), t.BIGINT)
        if self.is_single(request.rows):
            units = select([name_term(t.number(1), "size")], source)
        else:
            units = select([name_term(measured, "size")], source).group_by(t.column(UNIT), copy=False)
        size: Term = t.column("size")
        if request.norm == 2:
            root = self.dialect.root(t.column("size"))
            exact = t.binary(exp.EQ, t.times(root.copy(), root.copy()), t.column("size"))
            size = t.cases([(exact, root)], t.add(root.copy(), t.number(1)))
        sized = select([name_term(size, "size")], units)
        # A size is above an edge if it is at least one more.
        above = [edge + 1 for edge in request.edges]
        binned = select([name_term(search_tree(t.column("size"), above, 0, len(above)), "bin")], sized)
        return select([t.column("bin"), name_term(t.everyone(), "s0")], binned).group_by(
            t.column("bin"), copy=False
        )


def _group_by(chosen: exp.Select, keys: list[Term]) -> exp.Select:
    return chosen.group_by(*(key.copy() for key in keys), copy=False) if keys else chosen


def _keep_wanted(relations: Relations, request: BoundedSums, chosen: exp.Select) -> exp.Select:
    """Pairs of groups that are wanted, and perhaps of others: each key is one of those that they
    have.
    """
    for name, key, values in wanted_parts(request):
        try:
            cells = [cells_of(value) for value in values if value is not None]
            known = relations.writer().members(cells, key.type)
        except RefusedQuestion:
            # A text that this engine cannot store: Python drops the groups that are not requested.
            continue
        place = t.cast(t.column(name), "TEXT") if key.type.kind == TEXT else t.column(name)
        tests: list[Term] = [exp.In(this=exp.Paren(this=place), expressions=known)] if known else []
        tests += [t.is_null(t.column(name))] if None in values else []
        chosen = chosen.where(t.both(tests, exp.Or), copy=False)
    return chosen
