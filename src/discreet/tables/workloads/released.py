# SPDX-License-Identifier: Apache-2.0
"""Released tables: every table of a workload for one measure, from the estimated residuals, with
variances and covariances.

**Guarantee.** Post-processing of released numbers. All tables agree: the sum of a table over a key
is the table without it. The variances and covariances are those of the noise, whatever the data
are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from discreet.tables.workloads.axes import Axis
from discreet.tables.workloads.residuals import Floats, KeySet, ResidualSystem, subsets

__all__ = ["ReleasedTables", "Span", "TableCell"]

#: Values of an axis that stand next to each other: the first, and the one after the last.
Span = tuple[int, int]


@dataclass(frozen=True)
class TableCell:
    """A sum of the whole table: a span of each axis, and the number of the value of some
    categories.
    """

    spans: tuple[Span, ...]
    values: Mapping[int, int]


@dataclass(frozen=True, eq=False)
class ReleasedTables:
    """The residuals of one measure, and the variance σ_S² of the noise on each of them.

    `variances` are those for what is measured along the axes, in whole numbers. `gaussian` says
    which noise it is.
    """

    axes: tuple[Axis, ...]
    system: ResidualSystem
    residuals: Mapping[KeySet, Floats]
    variances: Mapping[KeySet, float]
    # The l1 norm of what rounding the noise to whole numbers adds to each residual, at most.
    roundings: Mapping[KeySet, float]

    def scale(self, factor: float) -> Self:
        """The tables of the measure times a factor."""
        return replace(
            self,
            residuals={keys: factor * values for keys, values in self.residuals.items()},
            variances={keys: factor**2 * value for keys, value in self.variances.items()},
            roundings={keys: abs(factor) * value for keys, value in self.roundings.items()},
        )

    # --- values ----------------------------------------------------------------------------------------

    def table(self, keys: KeySet, spans: Sequence[Sequence[Span]] = ()) -> Floats:
        """The estimates of a table of categories, for some spans of each axis."""
        depth = len(self.axes)
        summed = {
            part: self._over_spans(self.residuals[part], spans)
            for part in subsets(self.system.free_keys(keys))
        }
        return self.system.table(summed, keys, depth)

    def _over_spans(self, values: Floats, spans: Sequence[Sequence[Span]]) -> Floats:
        for place, wanted in enumerate(spans):
            first = np.moveaxis(values, place, 0)
            sums = np.concatenate([np.zeros((1, *first.shape[1:])), np.cumsum(first, axis=0)])
            starts, ends = np.array(wanted).T
            values = np.moveaxis(sums[ends] - sums[starts], 0, place)
        return values

    # --- noise -----------------------------------------------------------------------------------------

    def table_variance(self, keys: KeySet, spans: Sequence[Span] = ()) -> float:
        """The variance of each cell of a table, for one span of each axis."""
        return self._table_variances[keys] * math.prod(
            self._axis_covariance(place, span, span) for place, span in enumerate(spans)
        )

    def table_rounding(self, keys: KeySet, spans: Sequence[Span] = ()) -> float:
        """How much rounding the noise to whole numbers moves a cell of a table, at most."""
        along = (float(np.abs(self._coefficients(place, span)).sum()) for place, span in enumerate(spans))
        return self.system.rounding(self.roundings, keys) * math.prod(along)

    @cached_property
    def _table_variances(self) -> dict[KeySet, float]:
        return self.system.variances(self.variances)

    def covariance(self, one: TableCell, other: TableCell) -> float:
        """The covariance of two cells."""
        along = (
            self._axis_covariance(place, *pair)
            for place, pair in enumerate(zip(one.spans, other.spans, strict=True))
        )
        return math.prod(along) * self.system.covariance(self.variances, one.values, other.values)

    def _axis_covariance(self, place: int, one: Span, other: Span) -> float:
        return float(self._coefficients(place, one) @ self._coefficients(place, other))

    def _coefficients(self, place: int, span: Span) -> Floats:
        """The coefficients of what is measured along an axis in the sum over a span."""
        known = self._known_coefficients[place]
        if span not in known:
            question = np.zeros((self.axes[place].leaves, 1))
            question[span[0] : span[1]] = 1.0
            known[span] = self.axes[place].coefficients(question)[:, 0]
        return known[span]

    @cached_property
    def _known_coefficients(self) -> tuple[dict[Span, Floats], ...]:
        return tuple({} for _ in self.axes)
