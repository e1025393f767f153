# SPDX-License-Identifier: Apache-2.0
"""The requests to an engine: bounded sums of whole numbers, group by group.

    rows         a relation in which every row belongs to one unit: see `Relation`
    BoundedSums  keys, features and a scheme that bounds what one unit adds
    UnitSizes    a histogram of the numbers of rows of units

**Guarantee.** Every operator here acts on the rows of one unit and on public tables alone. So
adding or removing a unit adds or removes its own rows of the relation, and changes no others. One
unit therefore changes the sums by its own weighted vector, and each scheme bounds the norm of that
vector. The result depends on no order of rows, no random number and no other unit's rows.

Rows whose unit is NULL (or NaN) belong to nobody. They are dropped where a private table is read.
Units are compared exactly: 'Ann' and 'ann ' are two units.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from discreet.tables.algebra.expr import Expr, Read

GroupKey = tuple[Any, ...]

__all__ = [
    "BoundedSums",
    "Filtered",
    "GroupScheme",
    "Linked",
    "Lookup",
    "Margin",
    "MarginScheme",
    "MassScheme",
    "NormScheme",
    "OnceScheme",
    "Paired",
    "PerUnit",
    "Private",
    "Relation",
    "RowScheme",
    "Scheme",
    "Stacked",
    "UnitAggregate",
    "UnitSizes",
    "WindowFunction",
    "Windowed",
    "inner_relations",
    "relation_expressions",
    "sorted_groups",
    "window_expressions",
]


@dataclass(frozen=True)
class Private:
    """The rows of a private table; `Read`s name its columns by `label`."""

    table: str
    name: str = ""

    @property
    def label(self) -> str:
        """The name by which its columns are read; the table's own, unless it is read twice."""
        return self.name or self.table


@dataclass(frozen=True)
class Linked:
    """The rows of a private table without a unit of its own: each row belongs to every unit of
    `owners` that has a row whose `key` equals its `column`; NULL equals nothing.

    A unit has each row once, however many of its owner rows have the key. A row that two units
    reach is a row of both, and neither sees the other: what a unit has depends on its own rows of
    `owners` and on rows of the table that it reaches.
    """

    table: str
    owners: Relation
    column: Read
    key: Read
    name: str = ""

    @property
    def label(self) -> str:
        """The name by which its columns are read."""
        return self.name or self.table


@dataclass(frozen=True)
class Filtered:
    """The rows for which a condition is TRUE."""

    rows: Relation
    condition: Expr


@dataclass(frozen=True)
class Lookup:
    """Every row with each row of a public table that it matches; all pairs of `on` must be equal,
    and NULL equals nothing.

    `keep` keeps a row without a match, once, with NULL for the public columns (a left join).
    """

    rows: Relation
    table: str
    on: tuple[tuple[Expr, Read], ...]
    keep: bool = False
    name: str = ""

    @property
    def label(self) -> str:
        """The name by which its columns are read."""
        return self.name or self.table


@dataclass(frozen=True)
class Paired:
    """Every row with each row of another private relation that belongs to the same unit, and
    matches `on` and `condition`.

    `kind` says what becomes of the others: "inner" drops them; "left" keeps those of `rows`, and
    "full" those of both, with NULL for the columns of the other side; "semi" keeps each of `rows`
    once if it has a match, "anti" if it has none, both without the columns of `other`.
    """

    rows: Relation
    other: Relation
    on: tuple[tuple[Expr, Expr], ...] = ()
    kind: str = "inner"
    condition: Expr | None = None


@dataclass(frozen=True)
class UnitAggregate:
    """count (rows), count_of, distinct (different values), sum, min or max of an expression over
    rows of one unit.

    NULL is skipped. sum, min and max of nothing are NULL, and their type says that they can be.
    """

    kind: str
    of: Expr | None = None


@dataclass(frozen=True)
class PerUnit:
    """One row for each unit and each combination of its keys: the keys, and aggregates over those
    of its rows.

    A `Read` of `name` clamps an aggregate to the bounds of its type; the places are those of the
    aggregate. NULL is a key of its own.
    """

    rows: Relation
    name: str
    keys: tuple[tuple[str, Expr], ...] = ()
    aggregates: tuple[tuple[str, UnitAggregate], ...] = ()


@dataclass(frozen=True)
class WindowFunction:
    """A value for each row from the rows of the same unit with equal `partition`.

    row_number; rank, dense_rank; lag and lead by `offset` (NULL beyond the ends); sum, count,
    count_of, min, max: over the whole partition if `order` is empty, else over the rows before and
    the row itself (`rows`), or those that are not after it in the order (not `rows`).

    `order` is a sequence of expressions, and whether each descends; NULL comes last. Rows that
    `order` leaves equal are ordered by the values of all columns that the question reads of them,
    so what is still equal cannot be told apart.
    """

    kind: str
    of: Expr | None = None
    partition: tuple[Expr, ...] = ()
    order: tuple[tuple[Expr, bool], ...] = ()
    offset: int = 1
    rows: bool = True


@dataclass(frozen=True)
class Windowed:
    """The same rows with more columns, which `Read`s of `name` clamp to the bounds of their type."""

    rows: Relation
    name: str
    columns: tuple[tuple[str, WindowFunction], ...]


@dataclass(frozen=True)
class Stacked:
    """The rows of several relations, one below the other (UNION ALL), with common columns.

    Each part has its expressions in the order of `columns`. Of one part it is a projection.
    """

    name: str
    columns: tuple[str, ...]
    parts: tuple[tuple[Relation, tuple[Expr, ...]], ...]


Relation = Private | Linked | Filtered | Lookup | Paired | PerUnit | Windowed | Stacked


def inner_relations(rows: Relation) -> tuple[Relation, ...]:
    """The relations that a relation is directly made of."""
    if isinstance(rows, Private):
        return ()
    if isinstance(rows, Linked):
        return (rows.owners,)
    if isinstance(rows, Stacked):
        return tuple(part for part, _ in rows.parts)
    return (rows.rows, rows.other) if isinstance(rows, Paired) else (rows.rows,)


def relation_expressions(rows: Relation) -> tuple[Expr, ...]:
    """The expressions that a relation itself evaluates, without those of the relations inside."""
    match rows:
        case Linked():
            return (rows.column, rows.key)
        case Filtered():
            return (rows.condition,)
        case Lookup() | Paired():
            sides = tuple(side for pair in rows.on for side in pair)
            more = rows.condition if isinstance(rows, Paired) else None
            return sides if more is None else (*sides, more)
        case PerUnit():
            operands = (aggregate.of for _, aggregate in rows.aggregates)
            return (*(key for _, key in rows.keys), *(of for of in operands if of is not None))
        case Windowed():
            return tuple(part for _, function in rows.columns for part in window_expressions(function))
        case Stacked():
            return tuple(of for _, values in rows.parts for of in values)
    return ()


def window_expressions(function: WindowFunction) -> tuple[Expr, ...]:
    """The expressions that a window function evaluates for each row."""
    operand = () if function.of is None else (function.of,)
    return (*operand, *function.partition, *(of for of, _ in function.order))


@dataclass(frozen=True)
class RowScheme:
    """Every row of a unit with n rows has the weight w/fine: w = fine if n ≤ most, else ⌊most ·
    fine / n⌋.

    The weights of a unit's rows add up to at most `most`: Σ w ≤ most · fine. n counts its rows in
    all groups.
    """

    most: int
    fine: int


@dataclass(frozen=True)
class NormScheme:
    """The answer of a unit, in all groups together, is scaled down to an l2 norm of at most `most`.

    v[g, j] is the unit's exact sum of feature j in group g, c[g, j] = ⌈|v[g, j]| / cells[j]⌉, T = Σ
    c, Q = Σ c². w = fine if Q ≤ most², 0 if T ≥ 2^31, else ⌊most · fine / r⌋ with r = ⌊√Q (in
    double)⌋ + 2. So Σ (w v / cells)² ≤ (most · fine)².
    """

    most: int
    fine: int
    # One for each feature, and then one for `present`, if it is requested.
    cells: tuple[int, ...]


@dataclass(frozen=True)
class MassScheme:
    """The answer of a unit, in all groups together, is scaled down to an l1 norm of at most `most`.

    v[g, j] is the unit's exact sum of feature j in group g, T = Σ |v|. w = fine if T ≤ most, 0 if T
    ≥ 2^62, else ⌊most · fine / T⌋. So Σ |w v| ≤ most · fine.
    """

    most: int
    fine: int


@dataclass(frozen=True)
class Margin:
    """A table of some of the keys, by their places, and one number of cells for each feature."""

    keys: tuple[int, ...]
    cells: tuple[int, ...]


@dataclass(frozen=True)
class MarginScheme:
    """As `RowScheme`, or by the l2 norm of the unit's tables, whichever weighs its rows more.

    v[B, g, j] is the unit's exact sum of feature j in the cell g of table B, c[B, g, j] = ⌈|v| ·
    steps[j] / cells[B, j]⌉, T = Σ c, Q = Σ c² over all tables. With n rows w = fine if n ≤ rows,
    else the greater of ⌊rows · fine / n⌋ and of the weight by the norm: fine if Q ≤ most², 0 if T ≥
    2^31, else ⌊most · fine / r⌋ with r = ⌊√Q (in double)⌋ + 2. So n · w ≤ rows · fine, or
    Σ (w v steps / cells)² ≤ (most · fine)².
    """

    rows: int
    most: int
    fine: int
    margins: tuple[Margin, ...]
    # One for each feature.
    steps: tuple[int, ...]


@dataclass(frozen=True)
class GroupScheme:
    """Every unit counts once in each of its groups; in up to `full` groups with the weight one.

    With m groups w = fine if m ≤ full, else ⌊full · fine / m⌋ (norm 1) or ⌊√⌊full · fine² / m⌋⌋
    (norm 2); 0 if m > most. So its vector has norm full · fine (norm 1) or √full · fine (norm 2) at
    most. For norm 2, full · fine² < 2^52. Features do not count; an engine may prepare them,
    because the next request about these groups asks for them.
    """

    most: int
    fine: int
    norm: int
    full: int = 1


@dataclass(frozen=True)
class OnceScheme:
    """Every unit counts once (w = 1) in each of its groups, however many; its greatest coordinate
    is 1.
    """


Scheme = RowScheme | NormScheme | MassScheme | MarginScheme | GroupScheme | OnceScheme


@dataclass(frozen=True)
class BoundedSums:
    """For each group: Σ over units of w · (sum of each feature over the unit's rows in the group).

    A feature is a whole number on grid 0; NULL counts as 0. If `present` is not 0, there is one
    more coordinate: that number for every unit that has a row in the group. Under `GroupScheme` and
    `OnceScheme` the only coordinate is the weight. An engine answers {key: (int, …)}, with one
    entry for every group that has a row (without keys always one, ()); under `GroupScheme` only for
    groups whose sum is not 0. A key is a tuple of str, int, bool, datetime.date, datetime (UTC) or
    None; NULL is a key of its own.

    If `among` is not empty, it lists the requested groups by their first keys, and the answer may
    leave out others. It changes no number, because weights are computed from all groups. So a unit
    with a million groups does not delay a question about ten.

    If `most_groups` is not 0, the scheme is `RowScheme`, and a unit in more groups has the weight
    0. The answer then has only groups with a weight. The feature is 1.
    """

    rows: Relation
    keys: tuple[Expr, ...]
    features: tuple[Expr, ...]
    scheme: Scheme
    present: int = 0
    among: tuple[GroupKey, ...] = ()
    most_groups: int = 0


@dataclass(frozen=True)
class UnitSizes:
    """How many units have a size in (edges[j-1], edges[j]], with a last bin above all edges:
    len(edges) + 1 numbers.

    The size of a unit is its number of rows (norm 1), or r = ⌈√Σ n_g²⌉ over its groups (norm 2; ⌊√
    in double⌋ + 1 if the sum is not a square). A unit without rows has no size.
    """

    rows: Relation
    keys: tuple[Expr, ...]
    edges: tuple[int, ...]
    norm: int = 1


ExactSums = dict[GroupKey, tuple[int, ...]]


def sorted_groups(groups: Iterable[GroupKey]) -> list[GroupKey]:
    """Groups sorted by key, NULL last; the order depends only on the set of groups."""
    return sorted(
        groups, key=lambda group: tuple((part is None, 0 if part is None else part) for part in group)
    )
