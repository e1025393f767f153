# SPDX-License-Identifier: Apache-2.0
"""The weights of `MarginScheme` as SQL: by the rows of a unit, or by the norm of its tables.

    rows      u, r               the rows of each unit
    table     u, k0 …, v0 …      the sums of a unit with many rows in one of its tables
    norms     u, length, square  T and Q of a unit with many rows, over all tables
    weights   u, w

**Guarantee.** The weight of a unit is a function of its own pairs. Units with at most `rows` rows
have no norm: their weight is `fine`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.tables.algebra.sums import BoundedSums, Margin, MarginScheme
from discreet.tables.engines import terms as t
from discreet.tables.engines.pairs import Pairs
from discreet.tables.engines.relation import select
from discreet.tables.engines.terms import UNIT, Term, name_term
from discreet.tables.engines.widths import STEPS, is_narrow_sum

if TYPE_CHECKING:
    from discreet.tables.engines.statements import Statements

__all__ = ["margin_weights"]

#: The names of the tables of a unit, within one statement.
_TABLE = "margin"


def margin_weights(
    statements: Statements, request: BoundedSums, source: exp.Table, *, have_many: bool = False
) -> exp.Select:
    """u, w from a table of pairs; `have_many` says that all of its units have many rows."""
    assert isinstance(request.scheme, MarginScheme)
    units = select([t.column(UNIT), name_term(_rows(), "r")], source).group_by(t.column(UNIT), copy=False)
    same_unit = t.binary(exp.EQ, t.column(UNIT, "a"), t.column(UNIT, "b"))
    weight = name_term(_weight(statements, request.scheme), "w")
    chosen = select([t.column(UNIT, "a"), weight], units, "a")
    norms = _norms(statements, request, source if have_many else _pairs_of_many(request, source))
    return chosen.join(norms.subquery("b", copy=False), on=same_unit, join_type="LEFT", copy=False)


def _rows() -> Term:
    return t.cast(t.call("SUM", t.column("n")), t.BIGINT)


def _pairs_of_many(request: BoundedSums, source: exp.Table) -> exp.Select:
    """The pairs of units with many rows."""
    assert isinstance(request.scheme, MarginScheme)
    many = t.binary(exp.GT, t.call("SUM", t.column("n")), t.number(request.scheme.rows))
    units = select([t.column(UNIT)], source).group_by(t.column(UNIT), copy=False).having(many, copy=False)
    is_theirs = exp.In(this=t.column(UNIT), query=units.subquery(copy=False))
    return select([exp.Star()], source).where(is_theirs, copy=False)


def _norms(statements: Statements, request: BoundedSums, source: exp.Table | exp.Select) -> exp.Select:
    """u, length, square of the units with many rows; a table is summed from one that contains it."""
    assert isinstance(request.scheme, MarginScheme)
    everything = tuple(range(len(request.keys)))
    known = {everything: f"{_TABLE}_all"}
    tables = [(known[everything], select([exp.Star()], source))]
    parts: list[exp.Query] = []
    for margin in sorted(request.scheme.margins, key=lambda margin: len(margin.keys), reverse=True):
        if margin.keys not in known:
            wider = min((keys for keys in known if {*margin.keys} <= {*keys}), key=len)
            table = _table(statements, request, exp.table_(known[wider]), margin)
            known[margin.keys] = f"{_TABLE}_{'_'.join(map(str, margin.keys))}"
            tables.append((known[margin.keys], table))
        parts.append(_norm_of_table(statements, request, exp.table_(known[margin.keys]), margin))
    stacked = parts[0]
    for part in parts[1:]:
        stacked = exp.union(stacked, part, distinct=False, copy=False)
    totals = [name_term(t.call("SUM", t.column(name)), name) for name in ("length", "square")]
    norms = select([t.column(UNIT), *totals], stacked).group_by(t.column(UNIT), copy=False)
    for name, table in tables:
        norms = norms.with_(name, as_=table, copy=False)
    return norms


def _table(statements: Statements, request: BoundedSums, source: exp.Table, margin: Margin) -> exp.Select:
    """u, k0 …, n, v0 …: the sums of each unit in the cells of a table."""
    pairs = Pairs.of(request)
    keys = [t.column(UNIT), *(t.column(pairs.key_names[place]) for place in margin.keys)]
    sums = [
        statements.as_sum(pairs, place, t.call("SUM", t.column(name)))
        for place, name in enumerate(pairs.sum_names)
    ]
    cells = select([*keys, name_term(_rows(), "n"), *sums], source)
    return cells.group_by(*(key.copy() for key in keys), copy=False)


def _norm_of_table(
    statements: Statements, request: BoundedSums, source: exp.Table, margin: Margin
) -> exp.Select:
    """u, length, square: what one table adds to T and Q of each unit."""
    names = [f"c{place}" for place in range(len(request.features))]
    steps = [
        name_term(_steps(statements, request, place, cells), name)
        for name, (place, cells) in zip(names, enumerate(margin.cells), strict=True)
    ]
    stepped = select([t.column(UNIT), *steps], source)
    lengths = [statements.dialect.total(t.column(name)) for name in names]
    squares = [statements.dialect.total(t.times(t.column(name), t.column(name))) for name in names]
    measured = [
        name_term(t.add(*map(statements.dialect.widen, sums)), name)
        for sums, name in ((lengths, "length"), (squares, "square"))
    ]
    return select([t.column(UNIT), *measured], stepped).group_by(t.column(UNIT), copy=False)


def _steps(statements: Statements, request: BoundedSums, place: int, cells: int) -> Term:
    """⌈|v| · steps / cells⌉, or 2^31 and more where that is exceeded: then the norm counts nothing."""
    assert isinstance(request.scheme, MarginScheme)
    feature, steps = request.features[place], request.scheme.steps[place]
    kind = t.BIGINT if is_narrow_sum(feature) else statements.dialect.wide
    most = t.number(-(-cells * STEPS // steps), kind)
    size = t.call("ABS", statements.value(request, place, t.column("n")))
    size = t.cast(t.cases([(t.binary(exp.GT, size, most), most.copy())], size.copy()), t.BIGINT)
    up = t.add(t.times(size, t.number(steps)), t.number(cells - 1))
    return t.cast(statements.dialect.over(up, t.number(cells)), t.BIGINT)


def _weight(statements: Statements, scheme: MarginScheme) -> Term:
    """w, from r and the columns length and square, which are NULL for units with few rows."""
    dialect = statements.dialect
    few = t.binary(exp.LTE, t.column("r"), t.number(scheme.rows))
    by_rows = dialect.over(t.number(scheme.rows * scheme.fine), t.column("r"))
    length = t.call("COALESCE", t.column("length"), t.number(0, dialect.wide))
    squares = t.call("COALESCE", t.column("square"), t.number(0, dialect.wide))
    too_long = t.binary(exp.GTE, length, t.number(STEPS, dialect.wide))
    short = t.binary(exp.LTE, squares, t.number(scheme.most**2, dialect.wide))
    square = t.cast(t.cases([(too_long.copy(), t.number(1, dialect.wide))], squares.copy()), t.BIGINT)
    root = t.add(dialect.root(square), t.number(2))
    by_norm = t.cases(
        [(too_long.copy(), t.number(0))], dialect.over(t.number(scheme.most * scheme.fine), root)
    )
    return t.cases(
        [(few, t.number(scheme.fine)), (short, t.number(scheme.fine))],
        t.call("GREATEST", by_rows, by_norm),
    )
