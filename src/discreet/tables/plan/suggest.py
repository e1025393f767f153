# SPDX-License-Identifier: Apache-2.0
"""Bounds chosen privately, and how much the declared ones cut off.

    histogram = BoundsMechanism(dataset, "visits", "cost", epsilon=0.1)(dataset).value      # paid once
    suggestion = suggest_bounds(dataset, "visits", {"cost": histogram}, noise=10)
    suggestion.bounds["cost"], suggestion.clipped["cost"]

Released is how many units have so many rows; or, for a column, how many units have their greatest
value, and how many their least, between two public edges. Edges grow by a factor of √2 on either
side of 0, and the declared bounds are edges too.

**Guarantee.** ε-differential privacy, whatever is done with the histograms: which bounds are
chosen, and what is said about those that are declared.

Why it holds: a unit is in one bin of each histogram, so an added or removed unit moves it by one in
l1 and a replaced one by two. Each of the h histograms has discrete Laplace noise that costs ε/h;
the rest is post-processing (compile.proof.md, § 9). A unit's extremes are row functions of its own
rows (§ 1).

What would break it: edges that were read off the data.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from json import dumps as quoted
from typing import Any

from discreet import check, privacy
from discreet.errors import BadParameter, RefusedQuestion
from discreet.exact import exactly, float_above, float_below
from discreet.mechanisms.distributions import LaplaceDistribution
from discreet.mechanisms.mechanism import Mechanism
from discreet.privacy.guarantee import Guarantee, compose
from discreet.tables.algebra.bounds import stated_bound
from discreet.tables.algebra.engine import ROW, guard_engine
from discreet.tables.algebra.expr import Bucket, Read
from discreet.tables.algebra.sums import BoundedSums, PerUnit, RowScheme, UnitAggregate, UnitSizes
from discreet.tables.algebra.types import NUMBER, WIDEST, Type
from discreet.tables.ask.columns import column_of, rows_of, unbounded_column
from discreet.tables.ask.start import Dataset
from discreet.tables.data.dataset import Table
from discreet.tables.plan.cap import EDGES
from discreet.tables.plan.linear import whole

__all__ = ["BoundsMechanism", "BoundsSuggestion", "Histogram", "number_of", "private_table", "suggest_bounds"]

#: The probability that an empty bin of a histogram counts as occupied.
_BETA = 0.001
_NUMBERS = ("integer", "real", "decimal")
#: The name of the relation of the extremes of units.
_EXTREMES = "extremes"
#: What is released: the edges, the scale of the noise, and noisy numbers of units in each bin,
#: either of their "rows" or of their "min" and "max".
Histogram = Mapping[str, Any]


def value_edges(table: Table, column: str) -> tuple[int, ...]:
    """The public edges of a column, in cells: the powers of √2, 0, and the declared bounds."""
    kind = unbounded_column(table, column).type
    powers = {math.isqrt(2**j - 1) + 1 for j in range(2 * WIDEST.bit_length() - 2)}
    declared = column_of(table, column).bounds
    # A value beyond the upper bound is at least one cell above it.
    ends = () if declared is None else (_cells(declared[0], kind), _cells(declared[1], kind) + 1)
    return tuple(sorted({0, *powers, *(-edge for edge in powers), *ends}))


def _cells(value: Any, kind: Type) -> int:
    cells: int = math.floor(Fraction(str(value)) * 2**kind.places)
    return cells


class BoundsMechanism(Mechanism):
    """Noisy histograms of the numbers of rows of units; or of the greatest and of the least values
    of a column.

    **Guarantee.** As the module's.
    """

    def __init__(self, dataset: Dataset, table: str, column: str | None = None, *, epsilon: float) -> None:
        self.epsilon = check.moderate(epsilon=epsilon)
        self.table, self.column = private_table(dataset, table), column
        if column is not None:
            _check_number(self.table, column)
        elif dataset.protect.column is None:
            raise _nothing_to_suggest_error(self.table)
        self._rows = rows_of(self.table, dataset.tables)
        sensitivity = 2 if dataset.unit.relation == "replace" else 1
        count = 1 if column is None else 2
        share = exactly(float_below(exactly(self.epsilon) / count))
        self._distribution = LaplaceDistribution(float_above(sensitivity / share))
        one = privacy.discrete_laplace(self._distribution.scale, sensitivity, unit=dataset.unit)
        self._guarantee = compose([(one, count)])

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def check_schema(self, data: Dataset) -> None:
        """Refuse what the schema does not allow, before a charge."""
        if self.column is not None:
            data.engine.check(self._extremes(self.column, "max", value_edges(self.table, self.column)))

    def draw(self, data: Any) -> dict[str, Any]:
        """The noisy histograms; `data` is the data set."""
        exact: dict[str, list[int]] = {}
        if self.column is None:
            edges = EDGES
            exact["rows"] = list(guard_engine(data.engine.sizes, UnitSizes(self._rows, (), edges)))
        else:
            edges = value_edges(self.table, self.column)
            for kind in ("min", "max"):
                sums = guard_engine(data.engine.sums, self._extremes(self.column, kind, edges))
                exact[kind] = [sums.get((place,), (0,))[0] for place in range(len(edges) + 1)]
        noisy = {
            name: [count + noise for count, noise in zip(counts, self._noise(len(counts)), strict=True)]
            for name, counts in exact.items()
        }
        return {"edges": list(edges), "scale": self._distribution.scale, **noisy}

    def _noise(self, count: int) -> list[int]:
        drawn: list[int] = self._distribution.draw(count).tolist()
        return drawn

    def _extremes(self, column: str, kind: str, edges: tuple[int, ...]) -> BoundedSums:
        """How many units have their greatest, or least, value between two edges."""
        read = unbounded_column(self.table, column)
        if self.table.unit == ROW:
            # A row has one value.
            return BoundedSums(self._rows, (Bucket(read, edges),), (whole(1),), RowScheme(1, 1))
        aggregate = UnitAggregate(kind, Bucket(read, edges))
        rows = PerUnit(self._rows, _EXTREMES, (), ((kind, aggregate),))
        key = Read(_EXTREMES, kind, Type(NUMBER, 0, len(edges), 0, null=True))
        return BoundedSums(rows, (key,), (whole(1),), RowScheme(1, 1))


@dataclass(frozen=True, repr=False)
class BoundsSuggestion:
    """Bounds that about balance bias and noise, and what the declared ones cut off.

    `at_most` is None where rows are units. `bounds` are those of each column, None where too few
    units have values. `beyond` is the estimated share of rows beyond the declared `at_most`, and
    `clipped` the estimated share of units with a value outside the declared bounds of a column.
    """

    table: str
    protect: str
    at_most: int | None
    bounds: Mapping[str, tuple[float, float] | None]
    beyond: float | None = None
    clipped: Mapping[str, float] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)

    @property
    def code(self) -> str:
        """The arguments of `dp.open` that take the suggestion."""
        columns = ", ".join(
            f"{quoted(name)}: dp.column({quoted(self.kinds[name])}, bounds=({ends[0]:g}, {ends[1]:g}))"
            if self.kinds[name] != "integer"
            else f"{quoted(name)}: dp.column(bounds=({int(ends[0])}, {int(ends[1])}))"
            for name, ends in self.bounds.items()
            if ends is not None
        )
        return ", ".join(part for part in (self.protect, f"columns={{{columns}}}" if columns else "") if part)

    def notes(self, unit: str) -> tuple[str, ...]:
        """What the declared bounds cut off, in sentences."""
        sentences = []
        if self.beyond is not None:
            sentences.append(f"{_percent(self.beyond)} of the rows of {self.table} are beyond at_most.")
        for column, share in self.clipped.items():
            sentences.append(
                f"{_percent(share)} of the {unit}s have a value of {column} outside its bounds, which is clipped."
            )
        return tuple(f"{sentence} This is a private estimate." for sentence in sentences)

    def __str__(self) -> str:
        lines = [f"suggested for {self.table}: {self.code or 'nothing: too few units have values'}"]
        lines += [
            f"no bounds for {column}: too few units have values"
            for column, ends in self.bounds.items()
            if ends is None
        ]
        return "\n".join([*lines, *self.notes("unit")])

    def __repr__(self) -> str:
        return str(self)


def suggest_bounds(
    dataset: Dataset, table: str, histograms: Mapping[str | None, Histogram], *, noise: float
) -> BoundsSuggestion:
    """The bounds with the least sum of bias and noise; the histogram of rows stands under None.

    `noise` is the mean absolute noise of later answers for each unit of sensitivity: 1/ε for
    Laplace noise. A bound B leaves Σ (value - B) over units with greater values, and noise in
    proportion to B; where the sum is least, about `noise` units are beyond it.
    """
    described = private_table(dataset, table)
    at_most, beyond, code = None, None, ""
    if None in histograms:
        sizes = _count_units(histograms[None], "rows")
        at_most = _least_loss(sizes, (*EDGES, 2 * EDGES[-1]), noise)
        beyond = _rows_beyond(sizes, dataset, described)
        code = f"protect={replace(dataset.protect, at_most=_with_bound(dataset, table, at_most)).as_code()}"
    columns = {name: histogram for name, histogram in histograms.items() if name is not None}
    shares = {column: _share_outside(described, column, histogram) for column, histogram in columns.items()}
    return BoundsSuggestion(
        table,
        code,
        at_most,
        {column: _bounds_of(described, column, histogram, noise) for column, histogram in columns.items()},
        beyond,
        {column: share for column, share in shares.items() if share is not None},
        {column: column_of(described, column).kind for column in columns},
    )


def _with_bound(dataset: Dataset, table: str, at_most: int) -> int | Mapping[str, int]:
    stated = dataset.protect.at_most
    return {**stated, table: at_most} if isinstance(stated, Mapping) else at_most


def _count_units(histogram: Histogram, name: str) -> list[int]:
    """The counts, with 0 for bins that may well be empty."""
    counts: list[int] = histogram[name]
    floor = LaplaceDistribution(histogram["scale"]).tail_bound(2 * _BETA / len(counts)) + 1
    return [count if count >= floor else 0 for count in counts]


def _least_loss(units: Sequence[int], sizes: Sequence[int], noise: float) -> int:
    """The size with the least sum of what is cut off and of noise; bin j has sizes up to sizes[j]."""

    def loss(cap: int) -> float:
        return sum(many * max(0, size - cap) for many, size in zip(units, sizes, strict=True)) + noise * cap

    return min(sizes[:-1], key=loss)


def _rows_beyond(units: Sequence[int], dataset: Dataset, table: Table) -> float | None:
    """The share of rows beyond the declared at_most; a unit counts with the middle of its bin."""
    bound = stated_bound(dataset.protect.at_most, rows_of(table, dataset.tables))
    if bound is None or not any(units):
        return None
    lows = (1, *(edge + 1 for edge in EDGES))
    middles = [(low + high) / 2 for low, high in zip(lows, (*EDGES, 2 * EDGES[-1]), strict=True)]
    rows = sum(many * size for many, size in zip(units, middles, strict=True))
    return sum(many * max(0.0, size - bound) for many, size in zip(units, middles, strict=True)) / rows


def _bounds_of(table: Table, column: str, histogram: Histogram, noise: float) -> tuple[float, float] | None:
    """Bounds of a column between which it leaves out about `noise` units at either end."""
    least, greatest = _count_units(histogram, "min"), _count_units(histogram, "max")
    if not any(least) or not any(greatest):
        return None
    edges, kind = histogram["edges"], unbounded_column(table, column).type
    # Bin j has the values from edges[j - 1] up to below edges[j].
    high = _end(greatest, (*edges, 2 * edges[-1]), noise, upward=True) - (kind.places == 0)
    low = _end(least, (2 * edges[0], *edges), noise, upward=False)
    # Noise hides bins with few units at an end; up to 0 they cost little.
    low, high = (0 if 0 < 2 * low < high else low), (0 if low < 2 * high < 0 else high)
    low, high = max(low, -WIDEST), min(high, WIDEST)
    high = max(high, low + 1)
    scale = 2**kind.places
    return (low, high) if kind.places == 0 else (low / scale, high / scale)


def _end(units: Sequence[int], ends: Sequence[int], noise: float, *, upward: bool) -> int:
    """The end of an occupied bin with the least sum of clipping and noise.

    Noise grows with the distance of an end from 0, so an end on the other side of 0 has none.
    """
    sign = 1 if upward else -1
    candidates = [end for end, many in zip(ends, units, strict=True) if many]

    def loss(end: int) -> float:
        cut = sum(many * max(0, sign * (value - end)) for many, value in zip(units, ends, strict=True))
        return cut + noise * max(0, sign * end)

    return min(candidates, key=loss)


def _share_outside(table: Table, column: str, histogram: Histogram) -> float | None:
    """The estimated share of units with a value outside the declared bounds; None without bounds."""
    kind, declared = unbounded_column(table, column).type, column_of(table, column).bounds
    if declared is None:
        return None
    # Bounds that were declared later may lie within a bin, which counts as inside.
    edges, least, greatest = histogram["edges"], histogram["min"], histogram["max"]
    below: int = sum(least[: bisect_right(edges, _cells(declared[0], kind))])
    above: int = sum(greatest[bisect_left(edges, _cells(declared[1], kind) + 1) + 1 :])
    # Units with values on both sides count twice.
    return min(1.0, max(0, below + above) / max(1, int(sum(greatest))))


def _percent(share: float) -> str:
    return "Less than 0.1 %" if share < 0.001 else f"About {100 * share:.2g} %"


def private_table(dataset: Dataset, table: str) -> Table:
    private = [name for name, described in dataset.tables.items() if described.private]
    if table in private:
        return dataset.tables[table]
    raise BadParameter(
        "DP105",
        f"{table!r} is not a private table of this data set.",
        why="bounds are chosen for the rows of one private table.",
        fix=f"session.suggest_bounds({quoted(private[0])}, epsilon=0.1)",
    )


def _nothing_to_suggest_error(table: Table) -> BadParameter:
    return BadParameter(
        "DP104",
        "there is nothing to suggest: every row is a unit, and no column is named.",
        why="at_most is 1 where rows are units; bounds are chosen for named columns.",
        fix=f'session.suggest_bounds({quoted(table.name)}, ["{number_of(table)}"], epsilon=0.1)',
    )


def number_of(table: Table) -> str:
    """A column with numbers, or any."""
    numbers = [
        name for name, column in table.columns.items() if column.kind in _NUMBERS and name != table.unit
    ]
    return (numbers or list(table.columns))[0]


def _check_number(table: Table, column: str) -> None:
    if column_of(table, column).kind in _NUMBERS:
        return
    raise RefusedQuestion(
        "DP706",
        f"no bounds can be chosen for {column}: it is no number.",
        why="edges that grow by a factor are for numbers; the possible dates and texts are known without the data.",
        fix=f'declare what {column} can be:  bounds = [2020-01-01, 2030-01-01]   or  values = ["A", "B"]',
    )
