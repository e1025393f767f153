# SPDX-License-Identifier: Apache-2.0
"""Noisy block Newton steps for sums of step functions, one function at a time.

    fit = ShapeFit.of(blocks, targets, loss, …)
    fit.pass_over(0, multiplier=…, …)     # a noisy pass over all blocks

A block partitions the records into bins: those of one feature, or the cells of two. A shape gives
each bin a number, and a score is the sum of one number of each block.

**Guarantee.** A pass over J blocks releases J tables of slopes. One record moves one bin of each
table by at most the clip c (twice that if it is replaced), and each table has Gaussian noise for
the sensitivity c√J with the given multiplier m: so each is one Gaussian mechanism of multiplier
m√J, and a pass is one of multiplier m (additive.proof.md, 2). Which blocks there are, the clip and
the smoothing may follow from what was released before.

Why it holds: shapes are whole numbers, so scores are exact, and a record's slope is a function of
that record and of released numbers. Slopes are truncated to whole numbers, whose size is checked.

Why it works: the noise of each bin is known, and so is how many records it has. What neighbouring
bins lend each other is chosen by the likelihood of the released tables: a shape that the noise
hides is drawn to zero, and a rough one is not smoothed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import block_diag, eigh, solve
from scipy.special import logsumexp
from sklearn.isotonic import isotonic_regression

from discreet import noise as exact
from discreet.exact import exactly
from discreet.learn.arrays import Ints, Reals
from discreet.learn.losses import Loss, Squared

__all__ = ["Block", "NoisyTable", "ShapeFit", "smoothers", "standardise", "table_sums"]


# Shapes and slopes are whole numbers of steps of this length.
_STEP: float = 2.0**-20
_UP = 1 + 1e-12
#: At which passes the smoothing is chosen anew, counted from 1.
_CHOICES = (1, 2, 4, 7, 11, 15)
#: How far a shape is moved after the first pass.
_LATER = 0.7
#: Prior standard deviations of a shape, relative to the scale of the scores.
_SIZES = np.geomspace(0.003, 6.0, 12)
_LEAST_CURVATURE = 1e-3
#: The longest step of a log-odds.
_LONGEST = 2.0


@dataclass(frozen=True)
class Block:
    """A partition of the records into bins, and how the shapes on it may be smoothed."""

    #: The bin of each record.
    bins: Ints
    #: About how many records lie in each bin; released.
    counts: Reals
    #: Covariances of a smooth shape of size 1, of which the likeliest is chosen.
    covariances: tuple[Reals, ...]
    #: 1 or -1 for a shape that may only rise or fall, and how many bins have an order.
    direction: int = 0
    ordered: int = 0

    @property
    def shares(self) -> Reals:
        """The share of the records in each bin."""
        return np.asarray(self.counts / self.counts.sum())


def smoothers(count: int, *, is_ordered: bool, shares: Reals) -> tuple[Reals, ...]:
    """Covariances of shapes on bins of which all but the last (what is missing) may have an order.

    A rough shape moves from bin to bin like a random walk, a smooth one like its running sum.
    """
    if not is_ordered or count < 3:
        return (standardise(np.eye(count), shares),)
    inner = count - 1
    first = np.diff(np.eye(inner), axis=0)
    second = np.diff(first, axis=0)
    rough = first.T @ first + 1e-3 * np.eye(inner)
    smooth = second.T @ second + 1e-4 * rough
    return tuple(
        standardise(block_diag(np.linalg.inv(precision) / _typical(precision), 1.0), shares)
        for precision in (rough, smooth)
    )


def _typical(precision: Reals) -> float:
    """The mean variance of a centred shape with this precision."""
    size = len(precision)
    centre = np.eye(size) - 1 / size
    return float(np.trace(centre @ np.linalg.inv(precision) @ centre) / size)


def standardise(covariance: Reals, shares: Reals) -> Reals:
    """The covariance of the centred shape, with a mean variance of 1 over the records."""
    centre = np.eye(len(shares)) - shares
    centred = centre @ covariance @ centre.T
    return np.asarray(centred / max(float(shares @ np.diag(centred)), 1e-12))


@dataclass(frozen=True)
class NoisyTable:
    """Sums of slopes in each bin, one column for each score, with their noise."""

    sums: Reals
    spread: float


def table_sums(
    slopes: Reals, bins: Ints, size: int, *, clip: float, multiplier: float, relation: str
) -> NoisyTable:
    """One release: Σ of clipped slopes in each bin, with noise of `multiplier` times the clip."""
    limit = math.floor(clip / _STEP)
    whole = _whole_slopes(slopes, limit)
    sums = np.stack([np.bincount(bins, column, size) for column in whole.T], axis=1).astype(np.int64)
    spread = limit * multiplier * (2.0 if relation == "replace" else 1.0) * _UP
    noisy = sums + exact.rounded_gaussian(exactly(spread), sums.shape)
    return NoisyTable(np.asarray(noisy, np.float64) * _STEP, spread * _STEP)


def _real(whole: Ints) -> Reals:
    """Whole steps as numbers."""
    return np.asarray(whole * _STEP, np.float64)


def _whole_slopes(slopes: Reals, limit: int) -> Reals:
    """Whole steps, no longer than `limit` for each record, exactly."""
    whole = slopes / _STEP
    whole[~np.isfinite(whole)] = 0.0
    if whole.shape[1] == 1:
        return np.trunc(np.clip(whole, -limit, limit))
    longest = np.sqrt((whole * whole).sum(axis=1))
    out: Reals = np.trunc(whole * np.minimum(1.0, limit * (1 - 2.0**-40) / np.maximum(longest, 1.0))[:, None])
    # squares of whole numbers below 2**24 add up exactly
    out[(out * out).sum(axis=1) > float(limit) ** 2] = 0.0
    return out


@dataclass
class _BlockState:
    """What a fit knows of one block."""

    block: Block
    shape: Ints
    covariance: Reals
    chosen_size: float = 0.0
    #: The sum over passes of what the tables say of a times the best shape.
    evidence: Reals = field(default_factory=lambda: np.zeros(0))
    passes: int = 0
    average: Reals = field(default_factory=lambda: np.zeros(0))
    averaged: int = 0

    @classmethod
    def start(cls, block: Block, scores: int) -> _BlockState:
        zeros = np.zeros((len(block.counts), scores))
        return cls(block, zeros.astype(np.int64), block.covariances[0], 1.0, zeros.copy(), 0, zeros.copy(), 0)


@dataclass
class ShapeFit:
    """Shapes that descend together. The first block has one bin: the level of all scores."""

    states: list[_BlockState]
    targets: Reals
    loss: Loss
    clip: float
    relation: str
    #: The variance of the residuals, for squared losses; 1 otherwise.
    variance: float
    scores: Ints
    #: Bins of made-up records, spread over released shares: one row for each block.
    draws: list[Ints]

    @classmethod
    def start(
        cls,
        blocks: Sequence[Block],
        draws: Sequence[Ints],
        targets: Reals,
        loss: Loss,
        *,
        clip: float,
        relation: str,
        variance: float = 1.0,
    ) -> ShapeFit:
        """All shapes at zero."""
        states = [_BlockState.start(block, targets.shape[1]) for block in blocks]
        scores = np.zeros(targets.shape, np.int64)
        return cls(states, targets, loss, clip, relation, variance, scores, list(draws))

    def slopes(self) -> Reals:
        """How each record pushes its scores: functions of that record and of released numbers."""
        return self.loss.slopes(self.record_scores(), self.targets)

    def pass_over(self, number: int, *, passes: int, multiplier: float, is_averaged: bool) -> None:
        """One noisy pass over all blocks, number `number` of `passes`."""
        for place in range(len(self.states)):
            self._step(place, number, passes, multiplier, is_averaged=is_averaged)

    def use_average(self) -> None:
        """Go on from the averaged shapes."""
        self.scores[:] = 0
        for state in self.states:
            state.shape = np.rint(self.average_shape(state) / _STEP).astype(np.int64)
            self.scores += state.shape[state.block.bins]
            state.average, state.averaged = np.zeros_like(state.average), 0

    def forget_tables(self) -> None:
        """Choose the smoothing by the tables to come alone."""
        for state in self.states:
            state.evidence, state.passes = np.zeros_like(state.evidence), 0

    def add(self, block: Block, draws: Ints) -> None:
        """One more block, with a shape of zero."""
        self.states.append(_BlockState.start(block, self.targets.shape[1]))
        self.draws.append(draws)

    def average_shape(self, state: _BlockState) -> Reals:
        """The average of the shapes of a block over the passes that count."""
        return state.average / state.averaged if state.averaged else _real(state.shape)

    def deviations(self, place: int, *, passes: int, multiplier: float) -> Reals:
        """Standard deviations of the averaged shape of a block, given its smoothing."""
        state = self.states[place]
        out = np.zeros(state.shape.shape)
        curvatures = self._curvatures(place)
        noise = self._spread(multiplier) ** 2 / passes * 4 / 3
        for score, curvature in enumerate(curvatures.T):
            weight = state.block.counts * curvature
            precision = weight * weight / (weight * self.variance + noise)
            posterior = _posterior(state.covariance * state.chosen_size**2, precision)
            out[:, score] = np.sqrt(np.maximum(np.diag(posterior), 0.0))
        return out

    def record_scores(self) -> Reals:
        """The score of each record: private."""
        return _real(self.scores)

    def slope_variances(self) -> Reals:
        """The variance of a record's slopes, one number for each score, by released shapes alone."""
        if isinstance(self.loss, Squared):
            return np.array([self.variance])
        chances = self.loss.slopes(
            self._drawn_scores(), np.zeros((len(self.draws[0]), self.targets.shape[1]))
        )
        return np.asarray((chances * (1 - chances)).mean(axis=0))

    def _spread(self, multiplier: float) -> float:
        two = 2.0 if self.relation == "replace" else 1.0
        return self.clip * multiplier * math.sqrt(len(self.states)) * two

    def _step(self, place: int, number: int, passes: int, multiplier: float, *, is_averaged: bool) -> None:
        state = self.states[place]
        block, size = state.block, len(state.block.counts)
        table = table_sums(
            self.slopes(),
            block.bins,
            size,
            clip=self.clip,
            multiplier=multiplier * math.sqrt(len(self.states)),
            relation=self.relation,
        )
        weights = block.counts[:, None] * self._curvatures(place)
        shape = _real(state.shape)
        state.evidence += weights * shape - table.sums
        state.passes += 1
        pace = 1.0 if number == 0 else _LATER
        if size == 1:
            moved = shape - pace * table.sums / weights
        else:
            if number + 1 in _CHOICES:
                self._choose_smoothing(state, weights, table.spread**2)
            moved = shape + pace * (self._likeliest(state, shape, table, weights, passes) - shape)
            moved -= block.shares @ moved
            if block.direction:
                moved = _monotone(moved, block)
        if not isinstance(self.loss, Squared):
            # where chances are tiny, the loss is far from quadratic
            moved = shape + np.clip(moved - shape, -_LONGEST, _LONGEST)
        # far beyond any score that matters, and sums of whole numbers stay exact
        whole = np.rint(np.clip(moved, -200.0, 200.0) / _STEP).astype(np.int64)
        self.scores += (whole - state.shape)[block.bins]
        state.shape = whole
        if is_averaged:
            state.average += _real(whole)
            state.averaged += 1

    def _likeliest(
        self, state: _BlockState, shape: Reals, table: NoisyTable, weights: Reals, passes: int
    ) -> Reals:
        """The likeliest smooth shape, if the loss were quadratic. Bins that the noise hides borrow
        from their neighbours.
        """
        prior = state.covariance * state.chosen_size**2
        share = weights / (weights * self.variance + table.spread**2 / passes)
        precisions, pulls = share * weights, share * (weights * shape - table.sums)
        return np.stack(
            [
                _posterior(prior, precision) @ pull
                for precision, pull in zip(precisions.T, pulls.T, strict=True)
            ],
            axis=1,
        )

    def _choose_smoothing(self, state: _BlockState, weights: Reals, noise: float) -> None:
        """The kind and the size of the prior by the likelihood of the tables so far."""
        sizes = _SIZES * self._scale()
        likelihoods = [
            sum(
                _log_likelihoods(
                    state.evidence[:, score] / state.passes,
                    weights[:, score],
                    weights[:, score] * self.variance + noise / state.passes,
                    covariance,
                    sizes,
                )
                for score in range(weights.shape[1])
            )
            for covariance in state.block.covariances
        ]
        best = int(np.argmax([logsumexp(values) for values in likelihoods]))
        chances = np.exp(likelihoods[best] - logsumexp(likelihoods[best]))
        state.covariance = state.block.covariances[best]
        state.chosen_size = float(np.exp(chances @ np.log(sizes)))

    def _scale(self) -> float:
        return math.sqrt(self.variance) if isinstance(self.loss, Squared) else 1.0

    def _curvatures(self, place: int) -> Reals:
        """The mean second derivative in each bin of a block, over made-up records.

        A bin that is flatter than the mean is taken to be steeper than it is: towards the mean the
        loss grows steeper, and a step by its own curvature would go too far.
        """
        classes = self.targets.shape[1]
        if isinstance(self.loss, Squared):
            return np.ones((1, 1))
        state, draws = self.states[place], self.draws[place]
        shape = _real(state.shape)
        # what all other blocks add, and then this block in each of its bins
        others = self._drawn_scores() - shape[draws]
        scores = (others[None] + shape[:, None]).reshape(-1, classes)
        chances = self.loss.slopes(scores, np.zeros_like(scores))
        local = (chances * (1 - chances)).reshape(len(shape), -1, classes).mean(axis=1)
        mean = self.slope_variances()
        # beside the curve of each score, those of all together
        joint = classes / (classes - 1) if classes > 1 else 1.0
        curvatures: Reals = joint * np.sqrt(local * np.maximum(local, mean))
        return np.maximum(curvatures, _LEAST_CURVATURE)

    def _drawn_scores(self) -> Reals:
        shapes = (state.shape[draws] for state, draws in zip(self.states, self.draws, strict=True))
        return _real(sum(shapes, start=np.zeros((len(self.draws[0]), self.targets.shape[1]), np.int64)))


def _posterior(prior: Reals, precision: Reals) -> Reals:
    """The covariance of a shape with this prior after measurements of these precisions."""
    root = np.sqrt(precision)
    inner = np.eye(len(root)) + root[:, None] * prior * root
    gain = solve(inner, root[:, None] * prior, assume_a="pos")
    return np.asarray(prior - (prior * root) @ gain)


def _log_likelihoods(
    evidence: Reals, weights: Reals, variances: Reals, covariance: Reals, sizes: Reals
) -> Reals:
    """log P(evidence) for each size of the shape; the level of the shape is left open."""
    scale = 1 / np.sqrt(variances)
    level = scale * weights
    level = level / max(float(np.linalg.norm(level)), 1e-300)
    observed = scale * evidence
    observed = observed - level * (level @ observed)
    design = (scale * weights)[:, None] * covariance * (scale * weights)
    design = design - np.outer(level, level @ design)
    design = design - np.outer(design @ level, level)
    values, vectors = eigh((design + design.T) / 2)
    values = np.maximum(values, 0.0)
    turned = (vectors.T @ observed) ** 2
    spread = 1 + sizes[:, None] ** 2 * values
    return np.asarray(-0.5 * (np.log(spread) + turned / spread).sum(axis=1))


def _monotone(shape: Reals, block: Block) -> Reals:
    """The nearest shape that only rises (or falls), with the bins weighed by their counts."""
    out = shape.copy()
    ordered = slice(0, block.ordered)
    for score in range(shape.shape[1]):
        out[ordered, score] = isotonic_regression(
            shape[ordered, score], sample_weight=block.counts[ordered], increasing=block.direction > 0
        )
    return out
