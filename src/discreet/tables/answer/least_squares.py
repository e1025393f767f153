# SPDX-License-Identifier: Apache-2.0
"""Answers to overlapping questions, merged by generalised least squares: each number once, with its
interval.

    merged = session.combine(by_sex, by_sex_and_race)

Each released number is a sum over the cells of a table that nobody released, plus noise with known
covariances. The merged numbers are those that some table could have, and that are nearest to the
released ones in the metric of the noise: the best linear unbiased estimates (Aitken 1935).

**Guarantee.** Post-processing: only released numbers are read. Intervals contain the exact numbers
with probability 95 % over the noise, if all answers are about the same rows. A key may have rows
with values that an answer does not list: the table has a cell for them, unless the key is stated to
be complete.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.errors import BadParameter
from discreet.mechanisms.distributions import GaussianDistribution, NoiseDistribution
from discreet.mechanisms.noise_sums import tail_bound_of_sum
from discreet.tables.algebra.types import Value
from discreet.tables.answer.answer import Answer
from discreet.tables.answer.arithmetic import joint_answer
from discreet.tables.answer.cube import CubeAnswer
from discreet.tables.answer.cube_shape import grouping_text
from discreet.tables.answer.linear import CellNoise, Form
from discreet.tables.answer.noisy import CONFIDENCE, Noisy, Values
from discreet.tables.workloads.residuals import Floats

__all__ = ["combine_answers"]

#: Released numbers that are merged at once; the time grows with the cube of their number.
_MOST_NUMBERS = 600
#: Eigenvalues below this part of the greatest one are zero.
_RANK = 1e-9
_SAFE = 1 + 1e-9


@dataclass(frozen=True)
class _Number:
    """A released number: the values of its keys, and its place in a column."""

    group: tuple[tuple[str, Value], ...]
    column: Noisy
    row: int

    @property
    def form(self) -> Form:
        """Its noise."""
        assert self.column.linear is not None
        return self.column.linear.form(self.row)


def combine_answers(answers: Sequence[Answer], complete: Collection[str]) -> Answer:
    """The numbers of all answers, each once."""
    names = list(answers[0].columns)
    if any(list(answer.columns) != names for answer in answers):
        raise _unlike_error("their columns differ", "name the columns of the questions alike:  AS n")
    keys = list(dict.fromkeys(name for answer in answers for name in _keys(answer)))
    if unknown := [name for name in complete if name not in keys]:
        raise BadParameter(
            "DP105",
            f"{unknown[0]!r} is no key of these answers.",
            why="complete= names keys of which every row has one of the listed values.",
            fix=f"complete={tuple(keys)!r}" if keys else "leave complete= out",
        )
    columns: dict[str, Noisy] = {}
    groups: list[tuple[tuple[str, Value], ...]] = []
    for name in names:
        numbers = [number for answer in answers for number in _numbers(answer, name)]
        if len(numbers) > _MOST_NUMBERS:
            raise BadParameter(
                "DP107",
                f"these answers have {len(numbers)} numbers, and at most {_MOST_NUMBERS} are merged.",
                why="the time grows with the cube of their number.",
                fix="combine smaller tables",
            )
        groups = list(dict.fromkeys(number.group for number in numbers))
        columns[name] = _merged_column(numbers, groups, keys, complete, name)
    tables = {tuple(name for name, _ in group) for group in groups}
    shown = [tuple(dict(group).get(name) for name in keys) for group in groups]
    header = tuple(keys)
    if len(tables) > 1:
        header = (*keys, "grouping")
        shown = [
            (*values, grouping_text([name for name in keys if name in dict(group)]))
            for values, group in zip(shown, groups, strict=True)
        ]
    joint = joint_answer(answers, ("Numbers of several releases were merged by generalised least squares.",))
    fields = {name: getattr(joint, name) for name in Answer.__dataclass_fields__}
    return Answer(**(fields | {"keys": header, "groups": tuple(shown), "columns": columns}))


def _keys(answer: Answer) -> tuple[str, ...]:
    return answer.cube_tables.shape.names if isinstance(answer, CubeAnswer) else answer.keys


def _numbers(answer: Answer, name: str) -> list[_Number]:
    """The numbers of a column; of a cube those of its largest tables, from which all others follow."""
    tables: list[Answer] = [answer]
    if isinstance(answer, CubeAnswer):
        shape = answer.cube_tables.shape
        if shape.axes:
            raise _unlike_error(
                "one has an ordered key or a hierarchy", "combine its tables, such as  cube.total"
            )
        sets = shape.system.sets
        largest = [one for one in sets if not any({*one} < {*other} for other in sets)]
        tables = [answer.table(*(shape.names[key] for key in some)) for some in largest]
    if any(table.columns[name].linear is None for table in tables):
        raise BadParameter(
            "DP107",
            f"{name!r} cannot be merged.",
            why="only counts and sums as they were released have a noise whose covariances are known; those of a cube"
            " with Laplace noise are not.",
            fix="combine counts and sums with Gaussian noise: rho=… in the questions",
        )
    return [
        _Number(tuple(sorted(zip(table.keys, group, strict=True))), table.columns[name], row)
        for table in tables
        for row, group in enumerate(table.groups)
    ]


def _merged_column(
    numbers: Sequence[_Number],
    groups: Sequence[tuple[tuple[str, Value], ...]],
    keys: Sequence[str],
    complete: Collection[str],
    name: str,
) -> Noisy:
    """One column: the estimates of all groups."""
    covariance = _covariances(numbers)
    hat = _projection(covariance, _overlaps(numbers, keys, complete))
    first = {
        group: next(at for at, number in enumerate(numbers) if number.group == group) for group in groups
    }
    weights = hat[[first[group] for group in groups]]
    released = np.array([float(number.column.values[number.row]) for number in numbers])
    values = weights @ released
    noises = [_CombinedNumbers(row, numbers, covariance) for row in weights]
    column = numbers[0].column
    floor = 0.0 if all(number.column.nonnegative for number in numbers) else -math.inf

    def interval(confidence: float) -> tuple[Values, Values]:
        halves = [each.half_width(1 - confidence) for each in noises]
        pairs = list(zip(values.tolist(), halves, strict=True))
        lows = tuple(min(max(value - half, floor), value) for value, half in pairs)
        return lows, tuple(max(value + half, floor, value) for value, half in pairs)

    low, high = interval(CONFIDENCE)
    return Noisy(
        tuple(values.tolist()),
        low,
        high,
        column.text or name,
        "merged by generalised least squares",
        whole=column.whole,
        nonnegative=floor == 0.0,
        interval=interval,
    )


@dataclass(frozen=True, eq=False)
class _CombinedNumbers:
    """The noise of a weighted sum of released numbers."""

    weights: Floats
    numbers: Sequence[_Number]
    covariance: Floats

    def half_width(self, beta: float) -> float:
        """A number that its absolute value exceeds with probability at most β."""
        variance = max(float(self.weights @ self.covariance @ self.weights), 0.0)
        laplace: list[tuple[float, NoiseDistribution]] = []
        rounding = 0.0
        merged: dict[object, tuple[float, NoiseDistribution]] = {}
        for weight, number in zip(self.weights.tolist(), self.numbers, strict=True):
            for at, factor in number.form.items():
                if isinstance(at, CellNoise):
                    rounding += abs(weight * factor) * at.source.rounding(at.cell)
                elif isinstance(at.distribution, GaussianDistribution):
                    rounding += abs(weight * factor) / 2
                else:
                    before, _ = merged.get(at, (0.0, at.distribution))
                    merged[at] = before + weight * factor, at.distribution
        laplace = [(weight, distribution) for weight, distribution in merged.values() if weight]
        variance -= sum(2 * (weight * distribution.scale) ** 2 for weight, distribution in laplace)
        spread = math.sqrt(max(variance, 0.0)) * _SAFE
        if not laplace:
            return GaussianDistribution(1.0).guess(beta) * spread + rounding
        # Where nothing but Laplace noise is left, what remains of the difference of variances is rounding.
        gaussian = [(1.0, GaussianDistribution(spread))] if spread > 1e-6 else []
        return tail_bound_of_sum([*laplace, *gaussian], beta) + rounding


def _covariances(numbers: Sequence[_Number]) -> Floats:
    """The covariances of the noises of released numbers."""
    found: Floats = np.zeros((len(numbers), len(numbers)))
    forms = [number.form for number in numbers]
    draws = [{at.draw for at in form} for form in forms]
    for place, form in enumerate(forms):
        for beside in range(place + 1):
            if draws[place].isdisjoint(draws[beside]):
                continue
            total = 0.0
            for at, weight in form.items():
                for other, factor in forms[beside].items():
                    total += weight * factor * _covariance(at, other)
            found[place, beside] = found[beside, place] = total
    return found


def _covariance(one: object, other: object) -> float:
    if isinstance(one, CellNoise):
        same = isinstance(other, CellNoise) and one.draw == other.draw
        return one.source.covariance(one.cell, other.cell) if same and isinstance(other, CellNoise) else 0.0
    if one != other or isinstance(other, CellNoise):
        return 0.0
    distribution = one.distribution  # type: ignore[attr-defined]
    return float(distribution.scale**2 * (1 if isinstance(distribution, GaussianDistribution) else 2))


def _overlaps(numbers: Sequence[_Number], keys: Sequence[str], complete: Collection[str]) -> Floats:
    """How many cells of the table over all keys two numbers have in common."""
    total: Floats = np.ones((len(numbers), len(numbers)))
    for key in keys:
        has = np.array([key in dict(number.group) for number in numbers])
        listed = [dict(number.group).get(key) for number in numbers]
        values = {value: at for at, value in enumerate(dict.fromkeys(listed))}
        places = np.array([values[value] for value in listed])
        cells = len({value for value, is_key in zip(listed, has, strict=True) if is_key}) + (
            key not in complete
        )
        both = np.logical_and.outer(has, has)
        neither = np.logical_and.outer(~has, ~has)
        total = total * np.where(both, np.equal.outer(places, places), np.where(neither, float(cells), 1.0))
    return total


def _projection(covariance: Floats, overlaps: Floats) -> Floats:
    """The matrix of generalised least squares, on the numbers that some table can have."""
    sizes, vectors = np.linalg.eigh(overlaps)
    basis = vectors[:, sizes > sizes.max() * _RANK]
    spreads, axes = np.linalg.eigh(covariance)
    used = spreads > spreads.max() * _RANK
    precision = (axes[:, used] / spreads[used]) @ axes[:, used].T
    inner = basis.T @ precision @ basis
    found: Floats = basis @ np.linalg.pinv(inner, hermitian=True) @ basis.T @ precision
    return found


def _unlike_error(reason: str, fix: str) -> BadParameter:
    return BadParameter(
        "DP107",
        f"these answers cannot be merged: {reason}.",
        why="each number must be a sum over the same rows.",
        fix=fix,
    )
