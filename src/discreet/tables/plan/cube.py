# SPDX-License-Identifier: Apache-2.0
"""CUBE, ROLLUP, GROUPING SETS: the noise of many tables at once, and their release in one step.

Each measured number of a row (its count, its value) is measured in the residuals of all tables, with
noise on whole numbers (`workloads/measurement.py`). All tables follow from these.

**Guarantee.** `CubeStage.guarantee` bounds what all tables of all measured numbers reveal together, for
every pair of data sets that differ in one unit. It is that of a Gaussian mechanism on one long vector, or
of discrete Laplace noise on a few of the tables.

Why it holds (compile.proof.md, §§ 11 and 12): rows of one unit have weights that add up to at most `rows`
(`RowScheme`), and the vector of a unit is longest where all of them lie in one cell, with the greatest
values. `squared_sensitivity` is computed in fractions from the numbers that are drawn.

What would break it: an engine that breaks the guarantee of `data/sums.py`; a key whose public values
were read off private rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np

from discreet import noise as noises
from discreet import privacy
from discreet.errors import BadParameter
from discreet.exact import exactly, float_above, float_below, widest
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.privacy.guarantee import Guarantee, compose
from discreet.tables.answer.answer import Answer
from discreet.tables.answer.cube import CubeAnswer, CubeTables, grouping_text, long_answer
from discreet.tables.answer.measured import Measured, MeasuredNumber, PooledNumber
from discreet.tables.answer.noisy import Noisy, Values
from discreet.tables.ask.question import Aggregate, Key, Question, Workload
from discreet.tables.ask.released import grouping_column
from discreet.tables.data.engine import Engine, guard_engine
from discreet.tables.data.sums import BoundedSums, ExactSums, RowScheme, sorted_groups
from discreet.tables.data.types import Value
from discreet.tables.plan.contribution import Contribution
from discreet.tables.plan.estimate import ColumnEstimate
from discreet.tables.plan.intervals import JointNoise, PooledNoise, TableNoise
from discreet.tables.plan.linear import (
    ColumnMoments,
    FeatureLayout,
    gaussian_layout,
    laplace_layout,
    requested_columns,
)
from discreet.tables.plan.stage import ColumnDescription, QueryScope
from discreet.tables.workloads.laplace import cell_coefficients, plan_shares
from discreet.tables.workloads.measurement import (
    Layout,
    Measurement,
    SparseTable,
    least_overlap,
    measurement_at,
)
from discreet.tables.workloads.objectives import plan_noise
from discreet.tables.workloads.residuals import KeySet, ResidualSystem

__all__ = ["CubeStage", "CubeStrategy", "cube_answer", "cube_layout", "key_values"]

#: Bits of the values of a column and of a weight, the finest first.
_FINENESS = ((20, 10), (16, 8), (12, 8), (10, 6))
#: Bits of the noise; fewer bits are drawn faster.
_NOISE_BITS = (36, 44)


def key_values(key: Key) -> tuple[Value, ...]:
    """The public values of a key, sorted, NULL last."""
    assert key.values is not None
    return tuple(value for (value,) in sorted_groups((value,) for value in dict.fromkeys(key.values)))


def cube_layout(question: Question) -> Layout:
    """The tables of a question, and the best noise for each residual at a cost of one sensitivity."""
    workload = question.workload
    assert workload is not None
    system = ResidualSystem(tuple(len(key_values(key)) for key in question.keys), workload.sets)
    objective = workload.objective if isinstance(workload.objective, str) else dict(workload.objective)
    return Layout((), system, plan_noise(system, objective).variances)


@dataclass(frozen=True)
class CubeStrategy:
    """All tables of a question, at any spend."""

    scope: QueryScope
    question: Question

    @property
    def weight(self) -> float:
        return 1.0

    @cached_property
    def layout(self) -> Layout:
        """The plan of the tables."""
        return cube_layout(self.question)

    def gaussian_guarantee(self, noise: float) -> Guarantee:
        return privacy.gaussian(noise, unit=self.scope.contribution.unit)

    def pure_stage(self, epsilon: Fraction) -> CubeStage:
        """The stage that is ε-differentially private: Laplace noise on the tables that are best measured."""
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
        raise BadParameter(
            "DP102",
            "the noise that this question needs is too large to be drawn exactly.",
            why="with so small an epsilon and so many rows of one unit, the answer would be noise only.",
            fix="fewer aggregates, or a greater epsilon",
        )

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
        """Every block of features gets the same part of ε, and every measured table its share of that.

        A row is in one cell of each table, so the l1 distances of tables add up (compile.proof.md, § 12).
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
    objective = workload.objective if isinstance(workload.objective, str) else dict(workload.objective)
    shares = {keys: exactly(share) for keys, share in plan_shares(system, objective).shares.items()}
    return {keys: share / max(1, sum(shares.values())) for keys, share in shares.items()}


def _distances(
    features: FeatureLayout, layout: Layout, contribution: Contribution, fine: int
) -> list[Fraction]:
    """Bounds on the squares of how far a unit moves each feature: in units of what a row of the value 1 adds.

    A unit is in the hull of nothing and of `rows` full rows in one cell. So a replaced unit moves from
    one end of the hull to another: two rows with the values a and b are a² + b² - 2ab · overlap apart. In
    features that exclude each other the two rows may have two of them: then the squares add up.
    """
    overlaps = (Fraction(least_overlap(layout)), Fraction(1))
    alone = {place for places in features.exclusive if len(places) == 1 for place in places}
    distances = []
    for place, (feature, reach) in enumerate(zip(features.features, features.reach, strict=True)):
        square = Fraction(reach) ** 2
        if contribution.replaces:
            ends = max(min(feature.type.low, 0), -reach), min(max(feature.type.high, 0), reach)
            apart = (a * a + b * b - 2 * a * b * o for a in (0, *ends) for b in ends for o in overlaps)
            square = max(*apart, square if place in alone else 2 * square)
        distances.append(square * (contribution.rows * fine) ** 2)
    return distances


def _measurements(
    features: FeatureLayout, layout: Layout, distances: Sequence[Fraction], noise: float
) -> tuple[Measurement, ...]:
    """A measurement of each feature, with its share of the precision; all of them cost what is stated."""
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


class NoiseOfTables(Protocol):
    """The noise of all tables, for each measured feature."""

    @property
    def word(self) -> str:
        """What noise it is."""

    @property
    def greatest_scale(self) -> float:
        """The greatest scale of its noise."""

    def joint(self, keys: KeySet) -> JointNoise:
        """The noise of the features in a cell of one table."""

    def draw(self, place: int, cells: SparseTable) -> Measured:
        """What is released of one feature."""


@dataclass(frozen=True)
class GaussianTables:
    """Gaussian noise on the residuals of all tables."""

    measurements: tuple[Measurement, ...]
    unit: Fraction
    word: str = "Gaussian"

    @property
    def greatest_scale(self) -> float:
        """The greatest scale of its noise."""
        return max(scale for each in self.measurements for scale in each.scales.values())

    def joint(self, keys: KeySet) -> JointNoise:
        """The noise of the features in a cell of one table."""
        variances = tuple(each[keys] * float(self.unit) ** 2 for each in self._variances)
        roundings = tuple(
            each.layout.system.rounding(each.roundings(), keys) * float(self.unit)
            for each in self.measurements
        )
        return TableNoise(variances, roundings)

    @cached_property
    def _variances(self) -> list[dict[KeySet, float]]:
        return [each.layout.system.variances(each.variances()) for each in self.measurements]

    def draw(self, place: int, cells: SparseTable) -> Measured:
        """What is released of one feature."""
        measurement = self.measurements[place]
        return MeasuredNumber(measurement, measurement.draw(cells, _gaussian), self.unit)


@dataclass(frozen=True)
class LaplaceTables:
    """Laplace noise on some of the tables; the others are least-squares estimates."""

    system: ResidualSystem
    scales: tuple[dict[KeySet, float], ...]
    unit: Fraction
    word: str = "Laplace"

    @property
    def greatest_scale(self) -> float:
        """The greatest scale of its noise."""
        return max(scale for each in self.scales for scale in each.values())

    def joint(self, keys: KeySet) -> JointNoise:
        """The noise of the features in a cell of one table."""
        return PooledNoise(tuple(self._terms(scales, keys) for scales in self.scales))

    def _terms(self, scales: dict[KeySet, float], keys: KeySet) -> tuple[tuple[float, float, int], ...]:
        variances, unit = {table: 2 * scale**2 for table, scale in scales.items()}, float(self.unit)
        return tuple(
            (scales[table] * value * unit, value * unit, count)
            for table, value, count in cell_coefficients(self.system, variances, keys)
        )

    def draw(self, place: int, cells: SparseTable) -> Measured:
        """What is released of one feature."""
        scales = self.scales[place]
        noisy = {}
        for keys, scale in scales.items():
            exact = cells.totals(keys, self.system.shape(keys))
            noisy[keys] = exact + noises.discrete_laplace(exactly(scale), exact.size).reshape(exact.shape)
        return PooledNumber(self.system, scales, noisy, self.unit)


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
        scheme = RowScheme(scope.contribution.rows, self.fine)
        return BoundedSums(scope.rows, scope.keys, tuple(self.features.features), scheme)

    # --- drawing -----------------------------------------------------------------------------------

    def draw_tables(self, engine: Engine) -> CubeTables:
        """All tables, with noise."""
        question, system = self.strategy.question, self.strategy.layout.system
        values = tuple(map(key_values, question.keys))
        exact = guard_engine(engine.sums, self.sums)
        measured = tuple(
            self.noise.draw(place, _sparse(exact, values, place))
            for place in range(len(self.features.features))
        )
        names = tuple(key.name for key in question.keys)
        parts = {keys: self._columns(measured, keys) for keys in system.closure}
        columns = {
            aggregate.name: _below([part[aggregate.name] for part in parts.values()])
            for aggregate in question.aggregates
        }
        readings = {
            aggregate.name: tuple((form or {}).items())
            for aggregate in question.aggregates
            if (form := self._moments_form(aggregate)) is not None
        }
        return CubeTables(names, values, system, measured, columns, readings)

    def _columns(self, measured: Sequence[Measured], keys: KeySet) -> dict[str, Noisy]:
        """The noisy columns of one table."""
        sums = np.stack([number.tables.table(keys).ravel() for number in measured], axis=1)
        return {name: estimate.noisy(sums) for name, estimate in self.estimates(keys).items()}

    def estimates(self, keys: KeySet) -> dict[str, ColumnEstimate]:
        """How each aggregate is read off the numbers of one table."""
        noise = self.noise.joint(keys)
        rows = self.strategy.scope.contribution.one_row_per_unit
        return {
            aggregate.name: ColumnEstimate(aggregate, moments, noise, whole=rows, keeps_fractions=True)
            for aggregate, moments in self._moments
        }

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
        rows = [row for keys in tables.system.sets for row in tables.rows(keys)]
        return {name: column.take(rows) for name, column in tables.columns.items()}

    def errors(self, confidence: float = CONFIDENCE) -> dict[str, float | None]:
        """The greatest margin of error of each column in any table that was asked for."""
        greatest: dict[str, float | None] = {}
        for keys in self.strategy.layout.system.sets:
            for name, estimate in self.estimates(keys).items():
                margin, before = estimate.half_width(confidence), greatest.get(name, 0.0)
                greatest[name] = None if margin is None or before is None else max(margin, before)
        return greatest

    def expected_errors(self) -> dict[str, float]:
        """The root mean square over the tables of the margin of error of each column."""
        sums: dict[str, float] = {}
        sets = self.strategy.layout.system.sets
        for keys in sets:
            for name, estimate in self.estimates(keys).items():
                sums[name] = sums.get(name, 0.0) + estimate.half_width_for(1e9) ** 2
        return {name: math.sqrt(total / len(sets)) for name, total in sums.items()}

    def describe(self, confidence: float = CONFIDENCE) -> dict[str, ColumnDescription]:
        """The noise and the margins of error of each column."""
        return {
            aggregate.name: self._description(aggregate.name, confidence)
            for aggregate in self.strategy.question.aggregates
        }

    def _description(self, name: str, confidence: float) -> ColumnDescription:
        system, keys = self.strategy.layout.system, self.strategy.question.keys
        listed = system.sets if len(system.sets) <= _LISTED else (system.sets[0], system.sets[-1])
        parts = [
            f"{self.estimates(places)[name].describe(confidence).error} in "
            f"{grouping_text([keys[place].name for place in places])}"
            for places in listed
        ]
        first = self.estimates(system.sets[-1])[name].describe(confidence)
        more = f" · … {len(system.sets)} tables" if len(listed) < len(system.sets) else ""
        return ColumnDescription(_noise_text(self.noise.word), " · ".join(parts) + more, first.note)


def _noise_text(word: str) -> str:
    return f"{word} noise, shared by all tables"


def cube_answer(tables: CubeTables, question: Question, answer: Answer) -> CubeAnswer:
    """The long table of all tables that were asked for; `answer` has the notes and the guarantee.

    Its columns are those that a question can name: the keys, the name of the table, GROUPING of each key.
    """
    workload = question.workload
    assert workload is not None
    fields = {name: getattr(answer, name) for name in Answer.__dataclass_fields__}
    groupings = tuple(grouping_column(name) for name in tables.names)
    fields["keys"] = (*tables.names, workload.grouping, *groupings)
    cube = long_answer(CubeAnswer(**fields, tables=tables))
    bits = [
        tuple(int(place not in keys) for place in range(len(tables.names)))
        for keys in tables.system.sets
        for _ in range(tables.system.cells(keys))
    ]
    groups = tuple((*group, *more) for group, more in zip(cube.groups, bits, strict=True))
    return replace(cube, groups=groups)


#: Previews list the margins of error of up to that many tables.
_LISTED = 16


def _gaussian(scale: float, size: int) -> Any:
    return noises.rounded_gaussian(exactly(scale), size)


def _sparse(exact: ExactSums, values: Sequence[Sequence[Value]], place: int) -> SparseTable:
    """The sums of one feature over the cells that have rows."""
    numbers = [{value: at for at, value in enumerate(each)} for each in values]
    cells = [
        (places, sums[place])
        for group, sums in exact.items()
        if None not in (places := [known.get(part) for known, part in zip(numbers, group, strict=True)])
    ]
    totals = [total for _, total in cells]
    kind = np.int64 if sum(map(abs, totals)) < 1 << 62 else object
    located = np.array([places for places, _ in cells], np.int64).reshape(len(cells), len(values))
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
