# SPDX-License-Identifier: Apache-2.0
"""How wide the numbers of a plan can be, decided from types and schemes before any row is read.

**Guarantee.** With at most 2^40 rows, no sum, product or weight of an engine leaves the type that
is chosen here: 64 bits where that is proved, about 38 digits otherwise. A plan that could need more
is refused.
"""

from __future__ import annotations

from typing import Final

from discreet.errors import RefusedQuestion
from discreet.tables.algebra.expr import Expr
from discreet.tables.algebra.sums import (
    BoundedSums,
    GroupScheme,
    MarginScheme,
    MassScheme,
    NormScheme,
    RowScheme,
    UnitSizes,
)
from discreet.tables.algebra.types import WIDEST

__all__ = ["HEAVIEST", "STEPS", "check_sizes", "check_sums", "is_narrow_product", "is_narrow_sum"]

#: No relation has more rows than this.
MOST_ROWS: Final = 1 << 40
#: A unit whose answer has more steps than this is not counted under `NormScheme`.
STEPS: Final = 1 << 31
#: A unit whose values add up to this is not counted under `MassScheme`.
HEAVIEST: Final = 1 << 62
#: Wide whole numbers hold 38 digits on every engine.
_WIDE: Final = 10**37


def is_narrow_sum(feature: Expr) -> bool:
    """Whether the sum of a feature over all rows of a unit has 64 bits at most."""
    return feature.type.reach * MOST_ROWS <= WIDEST


def is_narrow_product(request: BoundedSums, place: int) -> bool:
    """Whether weight times sum, for one unit in one group, has 64 bits at most."""
    return is_narrow_sum(request.features[place]) and _most_of_one(request, place) <= WIDEST


def _most_of_one(request: BoundedSums, place: int) -> int:
    """What one unit adds to a coordinate, at most.

    RowScheme: w · n ≤ most · fine. NormScheme: w · ⌈|v| / cells⌉ ≤ most · fine, because one
    coordinate is no longer than all. MassScheme: w · |v| ≤ most · fine. MarginScheme: w ≤ fine, and
    |v| is what a unit's rows can add up to.
    """
    scheme = request.scheme
    if isinstance(scheme, RowScheme):
        return scheme.most * scheme.fine * max(request.features[place].type.reach, 1)
    if isinstance(scheme, MassScheme):
        return scheme.most * scheme.fine
    if isinstance(scheme, MarginScheme):
        return scheme.fine * max(request.features[place].type.reach, 1) * MOST_ROWS
    assert isinstance(scheme, NormScheme)
    return scheme.most * scheme.fine * scheme.cells[place]


def check_sums(request: BoundedSums) -> None:
    """Refuse a plan whose numbers could become too wide, and one that contradicts itself."""
    scheme = request.scheme
    assert all(feature.type.places == 0 for feature in request.features), "features are whole numbers"
    if isinstance(scheme, GroupScheme):
        assert scheme.norm in {1, 2}
        assert scheme.norm == 1 or scheme.full * scheme.fine**2 < 1 << 52, "its root is exact in double"
    assert not request.most_groups or (isinstance(scheme, RowScheme) and request.keys)
    if not isinstance(scheme, RowScheme | NormScheme | MassScheme | MarginScheme):
        return
    if isinstance(scheme, MarginScheme):
        _check_margins(request, scheme)
    if isinstance(scheme, MassScheme):
        assert not request.present, "it measures features alone"
        assert scheme.most < HEAVIEST, "a coordinate is counted up to 2^62"
    if isinstance(scheme, NormScheme):
        assert len(scheme.cells) == len(request.features) + bool(request.present), (
            "cells for every coordinate"
        )
        assert all(0 < cell <= WIDEST for cell in scheme.cells)
        assert scheme.most < STEPS, "a coordinate is counted up to 2^31 steps"
    most = max([_most_of_one(request, place) for place in range(len(request.features))], default=0)
    most = max(most, scheme.fine * request.present)
    sums = max([feature.type.reach for feature in request.features], default=0)
    # Under `MarginScheme` a row has the weight `fine` at most, whatever else its unit has.
    most = sums * scheme.fine if isinstance(scheme, MarginScheme) else most
    fits = scheme.most * scheme.fine <= WIDEST and max(most, sums) * MOST_ROWS <= _WIDE
    if not fits:
        raise RefusedQuestion(
            "DP705",
            "the sums could have more than 37 digits.",
            why="no engine adds up wider whole numbers, and one that wrapped round would give a wrong answer.",
            fix="narrow what is summed:  SUM(CLAMP(expression, 0, 1000000))",
        )


def _check_margins(request: BoundedSums, scheme: MarginScheme) -> None:
    assert not request.present, "it measures features alone"
    assert len(scheme.steps) == len(request.features), "steps for every feature"
    assert 0 < scheme.most < STEPS, "a coordinate is counted up to 2^31 steps"
    assert scheme.rows * scheme.fine <= WIDEST
    for margin in scheme.margins:
        assert len(margin.cells) == len(request.features), "cells for every feature"
        assert all(place < len(request.keys) for place in margin.keys)
        # So |v| · steps and cells · 2^31 have 62 bits where |v| is as large as is told apart.
        assert all(0 < cells < STEPS for cells in margin.cells)
    # (2^31 + 2^20)² has 63 bits.
    assert all(0 < steps <= 1 << 20 for steps in scheme.steps)


def check_sizes(request: UnitSizes) -> None:
    """The edges of a histogram of sizes are increasing numbers above zero."""
    assert request.norm in {1, 2}
    assert all(before < after for before, after in zip(request.edges, request.edges[1:], strict=False))
