# SPDX-License-Identifier: Apache-2.0
"""CUBE, ROLLUP, GROUPING SETS: the noise of many tables at once, and their release in one step.

Each measured number of a row (its count, its value) is measured in the residuals of all tables,
with noise on whole numbers (`workloads/measurement.py`). All tables follow from these.

**Guarantee.** `CubeStage.guarantee` bounds what all tables of all measured numbers reveal together,
for every pair of data sets that differ in one unit. It is that of a Gaussian mechanism on one long
vector, or of discrete Laplace noise on a few of the tables.

Why it holds (compile.proof.md, §§ 11 and 12): rows of one unit have weights that add up to at most
`rows` (`RowScheme`), and the vector of a unit is longest where all of them lie in one cell, with
the greatest values. `squared_sensitivity` is computed in fractions from the numbers that are drawn.

What would break it: an engine that breaks the guarantee of `algebra/sums.py`; a key whose public
values were read off private rows.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from discreet import privacy
from discreet.errors import BadParameter
from discreet.exact import exactly, float_above, float_below, widest
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.privacy.guarantee import Guarantee, compose
from discreet.tables.algebra.engine import Engine, guard_engine
from discreet.tables.algebra.sums import BoundedSums, ExactSums, MarginScheme, RowScheme, sorted_groups
from discreet.tables.algebra.types import Value
from discreet.tables.answer.answer import Answer
from discreet.tables.answer.cube import CubeAnswer, CubeTables, long_answer
from discreet.tables.answer.cube_shape import AxisKeys, CubeShape, TableKeys
from discreet.tables.answer.measured import Measured
from discreet.tables.answer.noisy import Noisy, Values
from discreet.tables.ask.question import Aggregate, Key, Question, Workload, WorkloadAxis
from discreet.tables.ask.released import column_names, grouping_column
from discreet.tables.plan.contribution import Contribution
from discreet.tables.plan.cube_noise import GaussianTables, LaplaceTables, NoiseOfTables
from discreet.tables.plan.estimate import ColumnEstimate
from discreet.tables.plan.linear import (
    ColumnMoments,
    FeatureLayout,
    gaussian_layout,
    laplace_layout,
    requested_columns,
)
from discreet.tables.plan.margins import Moved, bounding_scheme
from discreet.tables.plan.stage import ColumnDescription, QueryScope
from discreet.tables.plan.totals import undrawable_noise_error
from discreet.tables.workloads.axes import Axis, interval_axis, tree_axis
from discreet.tables.workloads.laplace import plan_shares
from discreet.tables.workloads.measurement import (
    Layout,
    Measurement,
    SparseTable,
    least_overlap,
    measurement_at,
)
from discreet.tables.workloads.objectives import Objective, plan_noise
from discreet.tables.workloads.released import Span
from discreet.tables.workloads.residuals import KeySet, ResidualSystem
from discreet.tables.workloads.trees import Tree

__all__ = ["CubeStage", "CubeStrategy", "cube_answer", "cube_layout", "key_values"]

#: Bits of the values of a column and of a weight, the finest first.
_FINENESS = ((20, 10), (16, 8), (12, 8), (10, 6))
#: Bits of the noise; fewer bits are drawn faster.
_NOISE_BITS = (36, 44)
#: Previews list the margins of error of up to that many tables.
_LISTED = 16


def key_values(key: Key) -> tuple[Value, ...]:
    """The public values of a key, sorted, NULL last."""
    assert key.values is not None
    return tuple(value for (value,) in sorted_groups((value,) for value in dict.fromkeys(key.values)))


@lru_cache(maxsize=64)
def cube_layout(question: Question) -> tuple[CubeShape, Layout]:
    """The tables of a question, and the best noise for each residual at a cost of one sensitivity."""
    workload = question.workload
    assert workload is not None
    first = workload.first_category
    values = tuple(map(key_values, question.keys[first:]))
    sets = tuple(tuple(place - first for place in places) for places in workload.sets)
    system = ResidualSystem(tuple(map(len, values)), sets)
    objective = _objective(workload)
    axes = tuple(
        AxisKeys(axis.kind, axis.leaves, _axis(axis, is_worst=objective == "worst")) for axis in workload.axes
    )
    shape = CubeShape(tuple(key.name for key in question.keys), values, axes, system)
    return shape, Layout(tuple(each.axis for each in axes), system, plan_noise(system, objective).variances)


def _objective(workload: Workload) -> Objective:
    """The objective, by the numbers of the categories."""
    if isinstance(workload.objective, str):
        return workload.objective
    first = workload.first_category
    return {tuple(place - first for place in places): weight for places, weight in workload.objective}


def _axis(axis: WorkloadAxis, *, is_worst: bool) -> Axis:
    """What is measured along an axis."""
    if axis.kind == "tree":
        tree = Tree.of_paths(axis.leaves)
        return tree_axis(tree, [1.0] * len(tree.sizes))
    return interval_axis(len(axis.leaves), [(axis.kind, 1.0)], worst=is_worst)


@dataclass(frozen=True)
class CubeStrategy:
    """All tables of a question, at any spend."""

    scope: QueryScope
    question: Question

    @property
    def weight(self) -> float:
        return 1.0

    @property
    def shape(self) -> CubeShape:
        """The tables."""
        return cube_layout(self.question)[0]

    @property
    def layout(self) -> Layout:
        """The plan of their noise."""
        return cube_layout(self.question)[1]

    def gaussian_guarantee(self, noise: float) -> Guarantee:
        return privacy.gaussian(noise, unit=self.scope.contribution.unit)

    def pure_stage(self, epsilon: Fraction) -> CubeStage:
        """The stage that is ε-differentially private: Laplace noise on the tables that are best
        measured.
        """
        if self.layout.axes:
            raise BadParameter(
                "DP107",
                "ranges and hierarchies need a delta.",
                why="they are released with Gaussian noise, which has no pure ε.",
                fix="delta=1e-6",
            )
        return self._finest(
            lambda value_bits, fine: self._laplace_stage(epsilon, value_bits, fine), units=False
        )

    def gaussian_stage(self, noise: float) -> CubeStage:
        """The stage with the guarantee of Gaussian noise of `noise` sensitivities."""
        return self._finest(
            lambda value_bits, fine: self._gaussian_stage(noise, value_bits, fine), units=True
        )

    def _finest(self, stage_at: Callable[[int, int], CubeStage], *, units: bool) -> CubeStage:
        """The stage with the finest grid whose noise can be drawn fast, or else at all.

        With `units`, rows that are units have the weight one.
        """
        whole = units and self.scope.contribution.one_row_per_unit
        for noise_bits in _NOISE_BITS:
            for value_bits, weight_bits in _FINENESS:
                stage = stage_at(value_bits, 1 if whole else 1 << weight_bits)
                if stage.noise.greatest_scale <= 2.0**noise_bits:
                    return stage
        raise undrawable_noise_error()

    def _gaussian_stage(self, noise: float, value_bits: int, fine: int) -> CubeStage:
        features = gaussian_layout(requested_columns(self.question.aggregates), value_bits)
        moved = _distances(features, self.layout, self.scope.contribution, fine)
        measurements = _measurements(features, self.layout, moved, noise)
        return CubeStage(
            self,
            features,
            fine,
            self.gaussian_guarantee(noise),
            GaussianTables(measurements, Fraction(1, fine)),
        )

    def _laplace_stage(self, epsilon: Fraction, value_bits: int, fine: int) -> CubeStage:
        """Every block of features gets the same part of ε, and every measured table its share of
        that.

        A row is in one cell of each table, so the l1 distances of tables add up (compile.proof.md,
        § 12).
        """
        contribution = self.scope.contribution
        features = laplace_layout(requested_columns(self.question.aggregates), value_bits)
        shares = _pure_shares(self.layout.system, self.question.workload)
        scales: list[dict[KeySet, float]] = [{} for _ in features.features]
        guarantees = []
        for block in features.blocks:
            sensitivity = contribution.rows * fine * block.width * contribution.replacement_factor_l1()
            for keys, share in shares.items():
                part = epsilon / len(features.blocks) * share
                # Rounded up, so the ε that is paid is never above the one that is meant.
                scale = float_above(sensitivity / exactly(float_below(part)))
                guarantees.append(privacy.discrete_laplace(scale, sensitivity, unit=contribution.unit))
                for place in block.places:
                    scales[place][keys] = scale
        noise = LaplaceTables(self.layout.system, tuple(scales), Fraction(1, fine))
        return CubeStage(self, features, fine, compose([(each, 1) for each in guarantees]), noise)


@lru_cache(maxsize=64)
def _pure_shares(system: ResidualSystem, workload: Workload) -> dict[KeySet, Fraction]:
    """The part of ε of each measured table; together they are at most one."""
    shares = {
        keys: exactly(share) for keys, share in plan_shares(system, _objective(workload)).shares.items()
    }
    return {keys: share / max(1, sum(shares.values())) for keys, share in shares.items()}


def _distances(
    features: FeatureLayout, layout: Layout, contribution: Contribution, fine: int
) -> list[Fraction]:
    """Bounds on the squares of how far a unit moves each feature: in units of what a row of the
    value 1 adds.

    A unit is in the hull of nothing and of `rows` full rows in one cell. So a replaced unit moves
    from one end of the hull to another: two rows with the values a and b are a² + b² - 2ab ·
    overlap apart. In features that exclude each other the two rows may have two of them: then the
    squares add up.
    """
    if not contribution.replaces:
        return _squared_lengths(features, contribution, fine)
    overlaps = (Fraction(least_overlap(layout)), Fraction(1))
    alone = {place for places in features.exclusive if len(places) == 1 for place in places}
    distances = []
    for place, (feature, reach) in enumerate(zip(features.features, features.reach, strict=True)):
        square = Fraction(reach) ** 2
        ends = max(min(feature.type.low, 0), -reach), min(max(feature.type.high, 0), reach)
        apart = (a * a + b * b - 2 * a * b * o for a in (0, *ends) for b in ends for o in overlaps)
        square = max(*apart, square if place in alone else 2 * square)
        distances.append(square * (contribution.rows * fine) ** 2)
    return distances


def _squared_lengths(features: FeatureLayout, contribution: Contribution, fine: int) -> list[Fraction]:
    """The squares of what a unit with `rows` full rows in one cell adds to each feature."""
    return [Fraction(reach * contribution.rows * fine) ** 2 for reach in features.reach]


def _measurements(
    features: FeatureLayout, layout: Layout, distances: Sequence[Fraction], noise: float
) -> tuple[Measurement, ...]:
    """A measurement of each feature, with its share of the precision; all of them cost what is
    stated.
    """
    total = sum(max(features.shares[place] for place in places) for places in features.exclusive)
    lengths = [
        float(noise) * math.sqrt(distance) * math.sqrt(total / share)
        for distance, share in zip(distances, features.shares, strict=True)
    ]
    for _ in range(64):
        measurements = tuple(measurement_at(layout, float_above(Fraction(length))) for length in lengths)
        excess = squared_sensitivity(measurements, distances, features.exclusive) * widest(noise) ** 2
        if excess <= 1:
            return measurements
        grown = math.sqrt(float(excess)) * (1 + 1e-15)
        lengths = [math.nextafter(length * grown, math.inf) for length in lengths]
    raise AssertionError("the lengths grow in every turn")


def squared_sensitivity(
    measurements: Sequence[Measurement], distances: Sequence[Fraction], exclusive: Sequence[Sequence[int]]
) -> Fraction:
    """At least the greatest Σ ‖shift‖² / scale² that one unit causes, exactly."""
    squares = [
        distance * measurement.squared_length
        for measurement, distance in zip(measurements, distances, strict=True)
    ]
    return sum((max(squares[place] for place in places) for places in exclusive), Fraction(0))


@dataclass(frozen=True)
class CubeStage:
    """All tables with their noise, ready to be drawn."""

    strategy: CubeStrategy
    features: FeatureLayout
    fine: int
    guarantee: Guarantee
    noise: NoiseOfTables

    @cached_property
    def sums(self) -> BoundedSums:
        """The exact sums that an engine makes for it, over all keys at once."""
        scope = self.strategy.scope
        return BoundedSums(scope.rows, scope.keys, tuple(self.features.features), self._scheme())

    def _scheme(self) -> RowScheme | MarginScheme:
        """How the rows of a unit are weighed: by their number, and by its tables if that is more."""
        contribution = self.strategy.scope.contribution
        if not isinstance(self.noise, GaussianTables):
            return RowScheme(contribution.rows, self.fine)
        measurements = self.noise.measurements
        moved = _distances(self.features, self.strategy.layout, contribution, self.fine)
        alone = _squared_lengths(self.features, contribution, self.fine)
        return bounding_scheme(
            self.features,
            measurements,
            contribution,
            Moved(
                squared_sensitivity(measurements, moved, self.features.exclusive),
                squared_sensitivity(measurements, alone, self.features.exclusive),
            ),
            self.fine,
        )

    # --- drawing -----------------------------------------------------------------------------------

    def draw_tables(self, engine: Engine) -> CubeTables:
        """All tables, with noise."""
        question, shape = self.strategy.question, self.strategy.shape
        exact = guard_engine(engine.sums, self.sums)
        places, width = place_cells(shape, exact), len(shape.axes) + len(shape.values)
        measured = tuple(
            self.noise.draw(place, sparse_table(exact, places, place, width))
            for place in range(len(self.features.features))
        )
        parts = [part for table in shape.closure for part in self._columns(measured, table)]
        columns = {
            aggregate.name: _below([part[aggregate.name] for part in parts])
            for aggregate in question.aggregates
        }
        readings = {
            aggregate.name: tuple((form or {}).items())
            for aggregate in question.aggregates
            if (form := self._moments_form(aggregate)) is not None
        }
        counts = tuple(each.name for each in question.aggregates if each.kind in {"count", "count_of"})
        return CubeTables(secrets.token_hex(8), shape, measured, columns, readings, counts)

    def _columns(self, measured: Sequence[Measured], table: TableKeys) -> Iterator[dict[str, Noisy]]:
        """The noisy columns of one table, for each combination of rows along the axes."""
        shape, keys = self.strategy.shape, table.categories
        along = [[span for _, span in nodes] for nodes in shape.nodes(table)]
        cells = shape.system.cells(keys)
        numbers = [each.tables.table(keys, along).reshape(-1, cells) for each in measured]
        for row, spans in enumerate(shape.spans(table)):
            sums = np.stack([each[row] for each in numbers], axis=1)
            yield {name: estimate.noisy(sums) for name, estimate in self.estimates(keys, spans).items()}

    def estimates(self, keys: KeySet, spans: tuple[Span, ...] | None = None) -> dict[str, ColumnEstimate]:
        """How each aggregate is read off the numbers of one table, over all values of the axes or a
        span.
        """
        everything = tuple((0, axis.leaves) for axis in self.strategy.layout.axes)
        noise = self.noise.joint(keys, everything if spans is None else spans)
        rows = self.strategy.scope.contribution.one_row_per_unit
        return {
            aggregate.name: ColumnEstimate(aggregate, moments, noise, whole=rows, keeps_fractions=True)
            for aggregate, moments in self._moments
        }

    def shown_estimates(self) -> Iterator[dict[str, ColumnEstimate]]:
        """The same for every row of the axes in every table that was asked for."""
        for table in self.strategy.shape.shown:
            for spans in self.strategy.shape.spans(table):
                yield self.estimates(table.categories, spans)

    def _moments_form(self, aggregate: Aggregate) -> dict[int, Fraction] | None:
        estimate = self.estimates(()).get(aggregate.name)
        form = None if estimate is None else estimate.form
        return None if form is None else dict(form)

    @cached_property
    def _moments(self) -> list[tuple[Aggregate, ColumnMoments]]:
        return [
            (
                aggregate,
                ColumnMoments(count=self.features.rows)
                if aggregate.kind == "count"
                else self.features.moments[aggregate.of],
            )
            for aggregate in self.strategy.question.aggregates
        ]

    # --- describing --------------------------------------------------------------------------------

    def draw(self, engine: Engine, groups: Sequence[Any]) -> dict[str, Noisy]:
        """The noisy columns of all tables that were asked for, below each other."""
        tables = self.draw_tables(engine)
        rows = [row for table in tables.shape.shown for row in tables.rows(table)]
        return {name: column.take(rows) for name, column in tables.columns.items()}

    def errors(self, confidence: float = CONFIDENCE) -> dict[str, float | None]:
        """The greatest margin of error of each column in any table that was asked for."""
        greatest: dict[str, float | None] = {}
        for estimates in self.shown_estimates():
            for name, estimate in estimates.items():
                margin, before = estimate.half_width(confidence), greatest.get(name, 0.0)
                greatest[name] = None if margin is None or before is None else max(margin, before)
        return greatest

    def expected_errors(self) -> dict[str, float]:
        """The root mean square over all rows of the axes and tables of the margin of error of each
        column.
        """
        squares: dict[str, list[float]] = {}
        for estimates in self.shown_estimates():
            for name, estimate in estimates.items():
                squares.setdefault(name, []).append(estimate.half_width_for(1e9) ** 2)
        return {name: math.sqrt(sum(each) / len(each)) for name, each in squares.items()}

    def describe(self, confidence: float = CONFIDENCE) -> dict[str, ColumnDescription]:
        """The noise and the margins of error of each column."""
        return {
            aggregate.name: self._description(aggregate.name, confidence)
            for aggregate in self.strategy.question.aggregates
        }

    def _description(self, name: str, confidence: float) -> ColumnDescription:
        shape = self.strategy.shape
        listed = shape.shown if len(shape.shown) <= _LISTED else [shape.shown[0], shape.shown[-1]]
        parts = []
        for table in listed:
            # Along an axis the margins differ; the row in the middle stands for all of them.
            spans = shape.spans(table)
            estimate = self.estimates(table.categories, spans[len(spans) // 2])[name]
            parts.append(f"{estimate.describe(confidence).error} in {shape.title(table)}")
        note = self.estimates(shape.shown[-1].categories)[name].describe(confidence).note
        more = f" · … {len(shape.shown)} tables" if len(listed) < len(shape.shown) else ""
        return ColumnDescription(_noise_text(self.noise.word), " · ".join(parts) + more, note)


def _noise_text(word: str) -> str:
    return f"{word} noise, shared by all tables"


def cube_answer(tables: CubeTables, question: Question, answer: Answer) -> CubeAnswer:
    """The long table of all tables that were asked for; `answer` has the notes and the guarantee.

    Its columns are those that a question can name: the keys, the name of the table, GROUPING of
    each key.
    """
    workload = question.workload
    assert workload is not None
    fields = {name: getattr(answer, name) for name in Answer.__dataclass_fields__}
    shape = tables.shape
    # GROUPING of a key is a column only where the question reads it.
    read = _released_names(question)
    groupings = {
        place: column for place, name in enumerate(shape.names) if (column := grouping_column(name)) in read
    }
    fields["keys"] = (*shape.names, workload.grouping, *groupings.values())
    cube = long_answer(CubeAnswer(**fields, tables=tables))
    if not groupings:
        return cube
    bits = [
        tuple(int(place not in places) for place in groupings)
        for table in shape.shown
        for places in [shape.places(table)]
        for _ in range(shape.size(table))
    ]
    groups = tuple((*group, *more) for group, more in zip(cube.groups, bits, strict=True))
    return replace(cube, groups=groups)


def _released_names(question: Question) -> set[str]:
    """The released columns that a question reads."""
    read = [*(column.of for column in question.outputs), *(order.of for order in question.order)]
    read += [condition for condition in (question.having, question.qualify) if condition is not None]
    return set().union(*map(column_names, read))


def place_cells(shape: CubeShape, exact: ExactSums) -> list[tuple[int, ...] | None]:
    """For each group of an engine the number of its leaf on each axis and of the value of each
    category.

    None for a group that is in no table, such as a place that the hierarchy does not know.
    """
    numbers = [{leaf: at for at, leaf in enumerate(axis.leaves)} for axis in shape.axes]
    numbers += [{(value,): at for at, value in enumerate(values)} for values in shape.values]
    ends = [axis.depth for axis in shape.axes] + [1] * len(shape.values)
    slices, start = [], 0
    for length in ends:
        slices.append(slice(start, start + length))
        start += length
    placed: list[tuple[int, ...] | None] = []
    for group in exact:
        places = [known.get(group[part], -1) for known, part in zip(numbers, slices, strict=True)]
        placed.append(None if -1 in places else tuple(places))
    return placed


def sparse_table(
    exact: ExactSums, places: Sequence[tuple[int, ...] | None], feature: int, width: int
) -> SparseTable:
    """The sums of one feature over the cells that have rows; `width` is the number of axes and
    categories.
    """
    pairs = zip(places, exact.values(), strict=True)
    cells = [(place, sums[feature]) for place, sums in pairs if place is not None]
    totals = [total for _, total in cells]
    kind = np.int64 if sum(map(abs, totals)) < 1 << 62 else object
    located = np.array([place for place, _ in cells], np.int64).reshape(len(cells), width)
    return SparseTable(located, np.array(totals, kind))


def _below(parts: Sequence[Noisy]) -> Noisy:
    """The rows of the same column of several tables below each other."""

    def join(lists: Sequence[Values]) -> Values:
        return tuple(value for each in lists for value in each)

    def interval(confidence: float) -> tuple[Values, Values]:
        ends = [part.interval(confidence) for part in parts if part.interval is not None]
        return join([low for low, _ in ends]), join([high for _, high in ends])

    first = parts[-1]
    return Noisy(
        values=join([part.values for part in parts]),
        lo=join([part.lo for part in parts]),
        hi=join([part.hi for part in parts]),
        text=first.text,
        noise=_noise_text(first.noise.split()[0]),
        whole=first.whole,
        nonnegative=first.nonnegative,
        interval=interval,
    )
