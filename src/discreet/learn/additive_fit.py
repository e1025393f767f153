# SPDX-License-Identifier: Apache-2.0
"""One fit of an additive model: bins, then noisy passes over them, or straight lines if bins are
hidden.

    fit = fit_additive(problem)
    fit.scores(columns)                 # the score of new rows
    fit.notes                           # which plan ran, and why

**Guarantee.** Bins cost 8 % of the budget. Whatever follows from them, the other 92 % are spent:
either on the passes (and on what prepares and completes them), or on a straight-line fit. So a fit
is the Gaussian mechanism that the whole budget allows, whichever plan runs.

Why it holds: additive.proof.md, 5. Which plan runs follows from the released number of records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.stats.qmc import Sobol

from discreet.learn.arrays import Bools, Ints, Reals
from discreet.learn.bins import Feature, FeatureBins, release_bins
from discreet.learn.budget import FitBudget
from discreet.learn.calibration import Calibration
from discreet.learn.features import Box
from discreet.learn.interactions import (
    GROUPS_KEPT,
    PairBins,
    noisy_pair_counts,
    strongest_pairs,
    worth_trying,
)
from discreet.learn.losses import Loss, Squared
from discreet.learn.ranges import core_range, count_bins, count_shells, noisy_counts
from discreet.learn.shapes import Block, ShapeFit, smoothers
from discreet.learn.solvers import Problem
from discreet.learn.whitened import WhitenedDescent

__all__ = ["AdditiveFit", "AdditiveProblem", "FittedTerm", "fit_additive"]


#: Shares of the budget.
_BINS, _TABLES, _PAIR_COUNTS, _CALIBRATION = 0.08, 0.10, 0.03, 0.03
_TARGET, _RESIDUALS = 0.025, 0.02
_PASSES, _FIRST_STAGE = 16, 6
#: After which passes the size of the residuals is measured.
_MEASURED = (1, 3, 6)
# Below this signal, bins are hidden by noise and straight lines are fitted.
_HIDDEN = 55.0
# Shells of squared residuals, from the greatest square; each next is half as large.
_SHELLS, _LONGEST = 20, 4.0
_DRAW_BITS = 9
# Where residuals are clipped, in their standard deviations, and how much later with many records.
_RESIDUAL_CLIP, _LATEST = 1.5, 3.0


@dataclass(frozen=True)
class AdditiveProblem:
    """What is to be fitted; `columns`, `targets` and `keep` are private, all else is public."""

    features: tuple[Feature, ...]
    #: Of each feature, the number of each record (NaN is missing), or the number of its value.
    columns: tuple[Reals | Ints, ...]
    targets: Reals
    keep: Bools
    loss: Loss
    budget: FitBudget
    #: Pairs that the user named, or None to look for them.
    pairs: tuple[tuple[int, int], ...] | None
    #: 1 or -1 for features whose shape may only rise or fall.
    directions: dict[int, int]
    bands: bool
    calibrates: bool
    progress: Callable[[int, int], None] | None = None

    @property
    def is_regression(self) -> bool:
        """Whether targets are numbers."""
        return isinstance(self.loss, Squared)

    @property
    def known_count(self) -> int | None:
        """The number of rows, where it is public."""
        return len(self.keep) if self.budget.relation == "replace" else None


@dataclass(frozen=True)
class FittedTerm:
    """One term of the sum: numbers for the bins of a feature or for the cells of two."""

    features: tuple[int, ...]
    #: One row for each bin or cell, one column for each score.
    values: Reals
    #: The released share of the records in each bin or cell.
    shares: Reals
    deviations: Reals | None = None
    pair: PairBins | None = None
    is_line: bool = False
    #: By how many standard deviations a pair that was looked for stood out.
    excess: float | None = None


@dataclass(frozen=True)
class AdditiveFit:
    """The released model. Everything in it is public."""

    features: tuple[Feature, ...]
    level: Reals
    terms: tuple[FittedTerm, ...]
    bins: tuple[FeatureBins, ...]
    count: float
    is_too_noisy: bool
    notes: tuple[str, ...]
    calibration: Calibration = field(default_factory=Calibration)
    #: The greatest slope of a record; None for straight lines of targets.
    clip: float | None = None
    is_lines: bool = False

    def rescale(self, middle: float, half: float) -> AdditiveFit:
        """The same model for targets that were scaled to [-1, 1]."""
        if (middle, half) == (0.0, 1.0):
            return self
        terms = tuple(
            replace(
                term,
                values=term.values * half,
                deviations=None if term.deviations is None else term.deviations * half,
            )
            for term in self.terms
        )
        return replace(self, level=self.level * half + middle, terms=terms)

    def scores(self, columns: Sequence[Reals | Ints]) -> Reals:
        """The score of each row, one column for each score."""
        rows = len(columns[0])
        out = np.tile(self.level, (rows, 1))
        bins = [self._bins(index, column) for index, column in enumerate(columns)]
        for term in self.terms:
            if term.is_line:
                out += self._line(term, columns[term.features[0]])
            elif term.pair is not None:
                out += term.values[term.pair.cells(bins[term.pair.first], bins[term.pair.second])]
            else:
                out += term.values[bins[term.features[0]]]
        return out

    def _bins(self, index: int, column: Reals | Ints) -> Ints:
        return self.bins[index].bin_of_cell[_cells(self.features[index], column)]

    def _line(self, term: FittedTerm, column: Reals | Ints) -> Reals:
        feature = self.features[term.features[0]]
        if not feature.is_numeric:
            return np.asarray(term.values[column.astype(np.int64)])
        middle = feature.low / 2 + feature.high / 2
        inside = np.clip(np.where(np.isnan(column), middle, column), feature.low, feature.high)
        with np.errstate(all="ignore"):
            position = (inside - feature.low) / (feature.high - feature.low)
        return np.asarray(term.values[0] + position[:, None] * (term.values[1] - term.values[0]))


def fit_additive(problem: AdditiveProblem) -> AdditiveFit:
    """Release the model. Its cost was charged before."""
    kept = tuple(column[problem.keep] for column in problem.columns)
    cells = [_cells(feature, column) for feature, column in zip(problem.features, kept, strict=True)]
    budget = problem.budget
    bins, count, deviation = release_bins(
        problem.features,
        cells,
        noise=budget.noise_multipliers(_BINS / len(problem.features))[0],
        relation=budget.relation,
        known_count=problem.known_count,
    )
    is_too_noisy = count <= max(2 * deviation, 1.0)
    terms = 1 + len(problem.features) + len(problem.pairs or ())
    scores = problem.targets.shape[1]
    signal = count * budget.mu / math.sqrt(terms * max(1.0, scores / 2))
    if signal < _HIDDEN:
        return _straight_lines(problem, bins, count, is_too_noisy=is_too_noisy)
    binned = [one.bin_of_cell[column] for one, column in zip(bins, cells, strict=True)]
    return _Passes(problem, bins, binned, count).fit()


@dataclass(frozen=True)
class _ScoredPair:
    """A pair that has a shape, and by how much its table stood out, if it was looked for."""

    pair: PairBins
    excess: float | None = None


@dataclass(frozen=True)
class _Plan:
    """What the passes spend; from public numbers and the released count."""

    looks_for_pairs: bool
    calibrates: bool
    #: The share of the budget for all passes.
    share: float


@dataclass
class _Passes:
    """The plan that has bins."""

    problem: AdditiveProblem
    bins: list[FeatureBins]
    binned: list[Ints]
    count: float
    _done: int = 0

    def fit(self) -> AdditiveFit:
        problem, budget = self.problem, self.problem.budget
        targets = problem.targets[problem.keep]
        middle, half, rms = 0.0, 1.0, 1.0
        if problem.is_regression:
            targets, middle, half, rms = self._narrow_targets(targets)
        plan = self._plan()
        multiplier = budget.noise_multipliers(plan.share / _PASSES)[0]
        shapes = ShapeFit.start(
            self._blocks(len(targets)),
            self._draws(),
            targets,
            problem.loss,
            clip=self._clip(plan.share, rms),
            relation=budget.relation,
            variance=rms**2 if problem.is_regression else 1.0,
        )
        pairs = [_ScoredPair(PairBins.of(*pair, self.bins, GROUPS_KEPT)) for pair in problem.pairs or ()]
        self._add_pairs(shapes, pairs)
        stage = range(_PASSES)
        if plan.looks_for_pairs:
            self._run(shapes, range(_FIRST_STAGE), _FIRST_STAGE, plan.share, multiplier)
            shapes.use_average()
            pairs = self._strongest(shapes)
            stage = range(_FIRST_STAGE, _PASSES)
            if pairs:
                shapes.forget_tables()
                self._add_pairs(shapes, pairs)
                stage = range(_PASSES - _FIRST_STAGE)
        self._run(shapes, stage, stage.stop, plan.share, multiplier)
        level = shapes.average_shape(shapes.states[0])[0] * half + middle
        terms = tuple(self._terms(shapes, pairs, half, passes=stage.stop, multiplier=multiplier))
        notes = tuple(self._notes(plan, shapes.clip, half, pairs))
        shapes.use_average()
        calibration = self._calibration(shapes, targets) if plan.calibrates else Calibration()
        return AdditiveFit(
            problem.features,
            level,
            terms,
            tuple(self.bins),
            self.count,
            False,
            notes,
            calibration,
            shapes.clip,
        )

    def _plan(self) -> _Plan:
        problem = self.problem
        rest = 1 - _BINS - (2 * _TARGET + len(_MEASURED) * _RESIDUALS if problem.is_regression else 0.0)
        rest -= _PAIR_COUNTS if problem.pairs else 0.0
        features = len(self.bins)
        candidates = features * (features - 1) // 2
        looks_for_pairs = False
        if problem.pairs is None and candidates:
            clip = self._clip(rest - _TABLES - _PAIR_COUNTS, 1.0) * self._two
            spread = clip * math.sqrt(candidates) * problem.budget.noise_multipliers(_TABLES)[0]
            looks_for_pairs = worth_trying(self.count, spread, 1.0 if problem.is_regression else 0.2)
        rest -= _TABLES + _PAIR_COUNTS if looks_for_pairs else 0.0
        calibrates = problem.calibrates and self._clip(rest, 1.0) < 1
        rest -= _CALIBRATION if calibrates else 0.0
        return _Plan(looks_for_pairs, calibrates, rest)

    def _clip(self, rest: float, rms: float) -> float:
        """Where slopes are clipped: more slowly than the noise falls, so that with many records
        hardly any is.
        """
        problem, terms = self.problem, 1 + len(self.bins) + len(self.problem.pairs or ())
        scores = problem.targets.shape[1]
        if problem.bands and not problem.is_regression:
            return math.sqrt(2) if scores > 1 else 1.0
        square = (problem.budget.mu / self._two) ** 2 * rest
        signal = 0.2 * self.count * square / (_PASSES * terms)
        relative = min(1.0, max(0.35, math.sqrt(0.125 * signal)))
        if problem.is_regression:
            return rms * _RESIDUAL_CLIP * max(1.0, min(_LATEST, math.sqrt(0.125 * signal)))
        return relative * (math.sqrt(2) if scores > 1 else 1.0)

    @property
    def _two(self) -> float:
        return 2.0 if self.problem.budget.relation == "replace" else 1.0

    def _narrow_targets(self, targets: Reals) -> tuple[Reals, float, float, float]:
        """Targets on the range where most of them lie, and their standard deviation there."""
        spread = self._counts_noise(_TARGET)
        low, high = -1.0, 1.0
        values = targets[:, 0]
        low, high = core_range(noisy_counts(count_bins(values, low, high), spread), spread, low, high)
        counts = noisy_counts(count_bins(values, low, high), spread)
        step = (high - low) / len(counts)
        middles = low + (np.arange(len(counts)) + 0.5) * step
        trusted = np.where(counts > 2 * spread, counts, 0.0)
        low, high = core_range(counts, spread, low, high)
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        rms = half
        if trusted.sum() > 0:
            mean = float(trusted @ middles / trusted.sum())
            rms = math.sqrt(float(trusted @ (middles - mean) ** 2 / trusted.sum()) + step**2 / 12)
        scaled = np.clip((targets - middle) / half, -1.0, 1.0)
        return scaled, middle, half, min(1.0, rms / half)

    def _counts_noise(self, share: float) -> float:
        root = math.sqrt(2) if self.problem.budget.relation == "replace" else 1.0
        return self.problem.budget.noise_multipliers(share)[0] * root

    def _run(self, shapes: ShapeFit, numbers: range, passes: int, share: float, multiplier: float) -> None:
        """Passes in a row; for targets the size of the residuals is measured on the way."""
        average_from = max(numbers.start, math.ceil(passes / 4))
        for number in numbers:
            shapes.pass_over(number, passes=passes, multiplier=multiplier, is_averaged=number >= average_from)
            self._done += 1
            if self.problem.progress is not None:
                self.problem.progress(self._done, _PASSES)
            if self.problem.is_regression and self._done in _MEASURED:
                self._measure(shapes, share)

    def _measure(self, shapes: ShapeFit, share: float) -> None:
        """Release a histogram of the sizes of residuals; the clip follows from it."""
        spread = self._counts_noise(_RESIDUALS)
        squares = shapes.slopes()[:, 0] ** 2
        counts = noisy_counts(count_shells(squares, _LONGEST, _SHELLS), spread)
        trusted = np.where(counts > 2 * spread, counts, 0.0)
        if trusted.sum() > 0:
            # the mean square in a shell whose ends differ by a factor of two
            means = 0.72 * _LONGEST * 2.0 ** -np.arange(_SHELLS)
            mean = min(1.0, float(trusted @ means / trusted.sum()))
            shapes.clip, shapes.variance = self._clip(share, math.sqrt(mean)), mean

    def _blocks(self, rows: int) -> list[Block]:
        level = Block(np.zeros(rows, np.int64), np.array([self.count]), (np.zeros((1, 1)),))
        blocks = [level]
        for index, (one, bins) in enumerate(zip(self.bins, self.binned, strict=True)):
            shares = _shares(one)
            size, is_ordered = len(shares), one.feature.is_numeric
            blocks.append(
                Block(
                    bins,
                    one.counts,
                    smoothers(size, is_ordered=is_ordered, shares=shares),
                    self.problem.directions.get(index, 0),
                    size - 1 if is_ordered else 0,
                )
            )
        return blocks

    def _draws(self) -> list[Ints]:
        """Bins of made-up records, spread evenly over the released shares: what they say of a fit
        is free.
        """
        points = Sobol(len(self.bins), scramble=False).random_base2(_DRAW_BITS)
        feature_draws = [
            np.minimum(np.searchsorted(np.cumsum(_shares(one)), column), len(one.counts) - 1)
            for one, column in zip(self.bins, points.T, strict=True)
        ]
        return [np.zeros(2**_DRAW_BITS, np.int64), *feature_draws]

    def _add_pairs(self, shapes: ShapeFit, pairs: Sequence[_ScoredPair]) -> None:
        if not pairs:
            return
        budget = self.problem.budget
        counts = noisy_pair_counts(
            [scored.pair for scored in pairs],
            self.binned,
            multiplier=budget.noise_multipliers(_PAIR_COUNTS)[0],
            relation=budget.relation,
        )
        for scored, noisy in zip(pairs, counts, strict=True):
            pair = scored.pair
            cells = pair.cells(self.binned[pair.first], self.binned[pair.second])
            draws = pair.cells(shapes.draws[1 + pair.first], shapes.draws[1 + pair.second])
            shapes.add(Block(cells, noisy, pair.covariances(noisy / noisy.sum())), draws)

    def _strongest(self, shapes: ShapeFit) -> list[_ScoredPair]:
        budget = self.problem.budget
        strongest = strongest_pairs(
            shapes.slopes(),
            self.binned,
            self.bins,
            clip=shapes.clip,
            multiplier=budget.noise_multipliers(_TABLES)[0],
            relation=budget.relation,
            variances=shapes.slope_variances(),
        )
        return [
            _ScoredPair(PairBins.of(first, second, self.bins, GROUPS_KEPT), excess)
            for first, second, excess in strongest
        ]

    def _calibration(self, shapes: ShapeFit, targets: Reals) -> Calibration:
        budget = self.problem.budget
        return Calibration.release(
            shapes.record_scores()[:, 0],
            targets[:, 0],
            multiplier=budget.noise_multipliers(_CALIBRATION)[0],
            relation=budget.relation,
        )

    def _terms(
        self, shapes: ShapeFit, pairs: Sequence[_ScoredPair], half: float, *, passes: int, multiplier: float
    ) -> Iterator[FittedTerm]:
        scored: list[_ScoredPair | None] = [*([None] * len(self.bins)), *pairs]
        for number, (state, pair) in enumerate(zip(shapes.states[1:], scored, strict=True)):
            deviations = None
            if self.problem.bands:
                deviations = half * shapes.deviations(1 + number, passes=passes, multiplier=multiplier)
            yield FittedTerm(
                (number,) if pair is None else (pair.pair.first, pair.pair.second),
                half * shapes.average_shape(state),
                state.block.shares,
                deviations,
                None if pair is None else pair.pair,
                excess=None if pair is None else pair.excess,
            )

    def _notes(self, plan: _Plan, clip: float, half: float, pairs: Sequence[_ScoredPair]) -> Iterator[str]:
        yield f"{_BINS:.0%} of the budget released how the records spread over each feature, from which bins follow."
        if self.problem.is_regression:
            share = 2 * _TARGET + len(_MEASURED) * _RESIDUALS
            yield f"{share:.0%} of the budget released histograms of targets and of residuals."
        if plan.looks_for_pairs:
            found = f"kept {len(pairs)} of them" if pairs else "showed no interaction"
            yield f"{_TABLES + _PAIR_COUNTS:.0%} of the budget paid for tables of all pairs of features, which {found}."
        elif self.problem.pairs:
            yield f"{_PAIR_COUNTS:.0%} of the budget counted the records in the cells of the declared pairs."
        else:
            yield "No interactions were looked for."
        yield f"{plan.share:.0%} of the budget paid for {_PASSES} passes over all shapes, whose slopes were clipped at {clip:.3g}."
        if plan.calibrates:
            yield f"{_CALIBRATION:.0%} of the budget calibrated the probabilities."


def _cells(feature: Feature, column: Reals | Ints) -> Ints:
    if feature.is_numeric:
        return feature.numeric_cells(np.asarray(column, np.float64))
    return column.astype(np.int64)


def _straight_lines(
    problem: AdditiveProblem, bins: list[FeatureBins], count: float, *, is_too_noisy: bool
) -> AdditiveFit:
    """Slopes for numbers, and a number for each value of a category, by the solver of linear
    models.
    """
    matrix, low, high, owners = _line_columns(problem)
    box = Box.of(len(low), bounds=(low, high))
    linear = Problem(
        box,
        matrix,
        problem.targets,
        problem.keep,
        problem.loss,
        problem.budget.part(1 - _BINS),
        np.zeros(box.width),
        problem.progress,
    )
    fitted = WhitenedDescent().fit(linear)
    slopes, level = box.coefficients(fitted.weights.T)
    level = np.array(level, np.float64)
    terms = []
    for index, feature in enumerate(problem.features):
        own = slopes[:, owners == index]
        if feature.is_numeric:
            level += own[:, 0] * (feature.low / 2 + feature.high / 2)
            values = _line(own[:, 0], feature, problem.directions.get(index, 0))
        else:
            values = np.concatenate([own.T, np.zeros((1, len(slopes)))])
        terms.append(FittedTerm((index,), values, _shares(bins[index]), is_line=True))
    notes = (
        f"{_BINS:.0%} of the budget released how the records spread over each feature.",
        f"About {count:.0f} records are too few for curves at this budget, so straight lines were fitted with the rest of it.",
    )
    return AdditiveFit(
        problem.features,
        level,
        tuple(terms),
        tuple(bins),
        count,
        is_too_noisy or fitted.is_too_noisy,
        notes,
        clip=fitted.slope,
        is_lines=True,
    )


def _line_columns(problem: AdditiveProblem) -> tuple[Reals, list[float], list[float], Ints]:
    """One column for each number and for each value of a category, with its bounds and its feature."""
    columns, low, high, owners = [], [], [], []
    for index, (feature, column) in enumerate(zip(problem.features, problem.columns, strict=True)):
        if feature.is_numeric:
            columns.append(np.asarray(column, np.float64))
            low.append(feature.low)
            high.append(feature.high)
            owners.append(index)
            continue
        for value in range(feature.cell_count - 1):
            columns.append((column == value).astype(np.float64))
            low.append(0.0)
            high.append(1.0)
            owners.append(index)
    return np.stack(columns, axis=1), low, high, np.array(owners, np.int64)


def _line(slopes: Reals, feature: Feature, direction: int) -> Reals:
    """The two ends of a line about the middle of the bounds; flat if it would run the wrong way."""
    allowed = np.maximum(slopes * direction, 0.0) * direction if direction else slopes
    half = feature.high / 2 - feature.low / 2
    return np.stack([-allowed * half, allowed * half])


def _shares(bins: FeatureBins) -> Reals:
    return np.asarray(bins.counts / bins.counts.sum())
