# SPDX-License-Identifier: Apache-2.0
"""The requests to an engine: bounded sums of whole numbers, group by group.

    rows         Private, Filtered, Lookup, Paired: a relation in which every row belongs to one unit
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

from discreet.tables.data.expr import Expr, Read

GroupKey = tuple[Any, ...]

__all__ = [
    "BoundedSums",
    "Filtered",
    "GroupScheme",
    "Lookup",
    "MassScheme",
    "NormScheme",
    "OnceScheme",
    "Paired",
    "Private",
    "Relation",
    "RowScheme",
    "Scheme",
    "UnitSizes",
    "sorted_groups",
]


@dataclass(frozen=True)
class Private:
    """The rows of a private table."""

    table: str


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


@dataclass(frozen=True)
class Paired:
    """Every row with each row of another private relation that belongs to the same unit (and
    matches `on`).
    """

    rows: Relation
    other: Relation
    on: tuple[tuple[Expr, Expr], ...] = ()


Relation = Private | Filtered | Lookup | Paired


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
class GroupScheme:
    """Every unit counts once in each of its groups; in up to `full` groups with the weight one.

    With m groups w = fine if m ≤ full, else ⌊full · fine / m⌋ (norm 1) or ⌊√⌊full · fine² / m⌋⌋
    (norm 2); 0 if m > most. So its vector has norm full · fine (norm 1) or √full · fine (norm 2) at
    most. For norm 2, full · fine² < 2^52. Features do not count; an engine may prepare them, because the
    next request about these groups asks for them.
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


Scheme = RowScheme | NormScheme | MassScheme | GroupScheme | OnceScheme


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
    """

    rows: Relation
    keys: tuple[Expr, ...]
    features: tuple[Expr, ...]
    scheme: Scheme
    present: int = 0
    among: tuple[GroupKey, ...] = ()


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
