# SPDX-License-Identifier: Apache-2.0
"""Scores that tell two samples of outputs apart: higher means more likely under the first input.

Each is learned from some outputs and then fixed; whether it is any good is measured on others. A
histogram of likelihood ratios serves one or two cells of any kind, the bare number serves the
tails, and a regularised logistic regression joins several cells.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from discreet.audit.bounds import Array
from discreet.audit.outputs import OutputColumn

__all__ = ["BareScore", "CrossScore", "JointScore", "Score", "ScoreHistogram", "number_words"]

Mask = npt.NDArray[np.bool_]

_BINS = 128
#: Bins of each of two cells that are taken together.
_COARSE = 24
#: Distinct numbers up to which each has a cell of its own.
_FEW = 512
#: Parts of an event that are put into words.
_SHOWN = 4
_RIDGE, _STEPS, _ROWS = 1e-3, 10, 20_000


class Score(Protocol):
    """A function from outputs to numbers, with words for the event that it passes a threshold."""

    def of(self, columns: dict[str, OutputColumn]) -> Array:
        """The score of every output."""
        ...

    def words(self, threshold: float, *, above: bool) -> str:
        """The event {score >= threshold}, or {score < threshold}."""
        ...


@dataclass(frozen=True, eq=False)
class ScoreHistogram:
    """The logarithm of the likelihood ratio, by counting: bins of equal mass, atoms and words
    apart.
    """

    name: str
    #: None for a word that did not occur.
    vocabulary: tuple[str | None, ...]
    edges: Array
    by_bin: Array
    by_word: Array
    #: The bins that are not empty.
    seen: Mask

    @staticmethod
    def fit(column: OutputColumn, first: Mask) -> ScoreHistogram:
        numbers = column.codes == 0
        edges = _edges(column.numbers[numbers])
        bins = np.searchsorted(edges, column.numbers[numbers], side="right")
        size = edges.size + 1
        by_bin = [np.bincount(bins[side], minlength=size) for side in (first[numbers], ~first[numbers])]
        words = len(column.words)
        by_word = [np.bincount(column.codes[side], minlength=words) for side in (first, ~first)]
        share = np.log((~first).sum() / first.sum())
        ratios = [
            np.where(p + q > 0, np.log((p + 0.5) / (q + 0.5)) + share, 0.0) for p, q in (by_bin, by_word)
        ]
        return ScoreHistogram(
            column.name,
            _words_seen(column.words, by_word),
            edges,
            ratios[0],
            ratios[1],
            by_bin[0] + by_bin[1] > 0,
        )

    def of(self, columns: dict[str, OutputColumn]) -> Array:
        column = columns[self.name]
        scores = self.by_word[column.codes]
        numbers = column.codes == 0
        scores[numbers] = self.by_bin[np.searchsorted(self.edges, column.numbers[numbers], side="right")]
        return scores

    def words(self, threshold: float, *, above: bool) -> str:
        ratios = np.concatenate([self.by_bin, self.by_word[1:]])
        inside = ratios >= threshold if above else ratios < threshold
        bins = self.edges.size + 1
        parts = [
            f"is {word}"
            for word, is_inside in zip(self.vocabulary[1:], inside[bins:], strict=True)
            if is_inside and word is not None
        ]
        parts += [_interval(self.edges, low, high) for low, high in _runs(inside[:bins] & self.seen)]
        more = f", or {len(parts) - _SHOWN} more" if len(parts) > _SHOWN else ""
        unseen = ~np.concatenate([self.seen, [word is not None for word in self.vocabulary[1:]]])
        rest = " or anything not seen while learning" if (inside & unseen).any() else ""
        return f"{self.name} " + " or ".join(parts[:_SHOWN]) + more + rest


@dataclass(frozen=True, eq=False)
class CrossScore:
    """The same for two cells at once, in coarser bins: for what only shows in both together."""

    names: tuple[str, str]
    edges: tuple[Array, Array]
    words_of: tuple[tuple[str, ...], tuple[str, ...]]
    ratios: Array
    masses: Array

    @staticmethod
    def fit(first_column: OutputColumn, second_column: OutputColumn, first: Mask) -> CrossScore:
        edges = tuple(
            _edges(c.numbers[c.codes == 0], _COARSE, _COARSE) for c in (first_column, second_column)
        )
        places = _place(first_column, edges[0]), _place(second_column, edges[1])
        shape = tuple(
            len(c.words) + e.size + 1 for c, e in zip((first_column, second_column), edges, strict=True)
        )
        counts = [np.zeros(shape), np.zeros(shape)]
        for table, side in zip(counts, (first, ~first), strict=True):
            np.add.at(table, (places[0][side], places[1][side]), 1)
        share = np.log((~first).sum() / first.sum())
        ratios = np.where(sum(counts) > 0, np.log((counts[0] + 0.5) / (counts[1] + 0.5)) + share, 0.0)
        names, words = (first_column.name, second_column.name), (first_column.words, second_column.words)
        return CrossScore(names, (edges[0], edges[1]), words, ratios, counts[0] + counts[1])

    @property
    def name(self) -> str:
        return f"{self.names[0]} with {self.names[1]}"

    def of(self, columns: dict[str, OutputColumn]) -> Array:
        return np.asarray(self.ratios[tuple(map(_place, (columns[n] for n in self.names), self.edges))])

    def words(self, threshold: float, *, above: bool) -> str:
        inside = self.ratios >= threshold if above else self.ratios < threshold
        masses = np.where(inside, self.masses, 0)
        best = np.argsort(-masses, axis=None)[:2]
        names = [self._cell(*np.unravel_index(index, masses.shape)) for index in best]
        more = int((masses > 0).sum()) - len(names)
        return " or ".join(names) + (f", or {more} more cells" if more > 0 else "")

    def _cell(self, *indices: np.intp) -> str:
        parts = []
        for name, words, edges, index in zip(self.names, self.words_of, self.edges, indices, strict=True):
            bin_ = int(index) - len(words)
            parts.append(f"{name} {_interval(edges, bin_, bin_) if bin_ >= 0 else f'is {words[int(index)]}'}")
        return f"({' and '.join(parts)})"


@dataclass(frozen=True, eq=False)
class BareScore:
    """The number itself, or its distance from a centre; what is no number scores lowest."""

    name: str
    centre: float | None
    sign: float

    def of(self, columns: dict[str, OutputColumn]) -> Array:
        column = columns[self.name]
        values = column.numbers if self.centre is None else np.abs(column.numbers - self.centre)
        return np.where(column.codes == 0, self.sign * values, -np.inf)

    def words(self, threshold: float, *, above: bool) -> str:
        what = self.name if self.centre is None else f"|{self.name} - {number_words(self.centre)}|"
        compared = {
            (True, True): "at least",
            (False, True): "below",
            (True, False): "at most",
            (False, False): "above",
        }
        return f"{what} {compared[above, self.sign > 0]} {number_words(self.sign * threshold)}"


@dataclass(frozen=True, eq=False)
class JointScore:
    """Logistic regression on the histograms' ratios and on the standardised numbers of several
    cells.
    """

    histograms: tuple[ScoreHistogram | CrossScore, ...]
    names: tuple[str, ...]
    centre: Array
    whitening: Array
    weights: Array

    @staticmethod
    def fit(
        columns: dict[str, OutputColumn],
        histograms: Iterable[ScoreHistogram | CrossScore],
        names: Iterable[str],
        first: Mask,
    ) -> JointScore:
        parts, plain = tuple(histograms), tuple(names)
        raw = _raw(columns, plain)
        centre = raw.mean(axis=0)
        spread = np.vstack([raw[side] - raw[side].mean(axis=0) for side in (first, ~first)])
        whitening = _whitening(spread)
        bare = JointScore(parts, plain, centre, whitening, np.zeros(0))
        return JointScore(parts, plain, centre, whitening, _logistic(bare.features(columns), first))

    def features(self, columns: dict[str, OutputColumn]) -> Array:
        raw = _times(_raw(columns, self.names) - self.centre, self.whitening)
        return np.column_stack(
            [*(part.of(columns) for part in self.histograms), np.clip(np.nan_to_num(raw), -50, 50)]
        )

    def of(self, columns: dict[str, OutputColumn]) -> Array:
        return _times(self.features(columns), self.weights[1:, None])[:, 0]

    def words(self, threshold: float, *, above: bool) -> str:
        named = ", ".join(dict.fromkeys([part.name for part in self.histograms] + list(self.names)))
        return (
            f"the logistic score of ({named}) is {'at least' if above else 'below'} {number_words(threshold)}"
        )


def _words_seen(words: tuple[str, ...], counts: list[npt.NDArray[np.int64]]) -> tuple[str | None, ...]:
    return tuple(word if counts[0][i] + counts[1][i] else None for i, word in enumerate(words))


def _place(column: OutputColumn, edges: Array) -> npt.NDArray[np.int64]:
    """The place of each output in a table: the words first, then the bins."""
    bins = np.searchsorted(edges, column.numbers, side="right") + len(column.words)
    return np.where(column.codes == 0, bins, column.codes)


def _edges(numbers: Array, few: int = _FEW, bins: int = _BINS) -> Array:
    """Where bins begin: at quantiles, and around each number that many outputs share."""
    if not numbers.size:
        return np.zeros(0)
    distinct, counts = np.unique(numbers, return_counts=True)
    if distinct.size <= few:
        return distinct
    many = distinct[counts >= max(20, numbers.size / (16 * bins))]
    atoms = np.concatenate([many, np.nextafter(many, np.inf)])
    tail = np.array([10, 30, 100, 300, 1000]) / numbers.size if bins == _BINS else np.zeros(0)
    shares = np.concatenate([np.linspace(0, 1, bins + 1)[1:-1], tail[tail < 0.1], 1 - tail[tail < 0.1]])
    return np.unique(np.concatenate([np.quantile(numbers, shares), atoms]))


def _raw(columns: dict[str, OutputColumn], names: tuple[str, ...]) -> Array:
    numbers = [np.where(columns[name].codes == 0, columns[name].numbers, 0.0) for name in names]
    return np.column_stack(numbers) if numbers else np.zeros((len(next(iter(columns.values()))), 0))


def _whitening(spread: Array) -> Array:
    """Axes in which the noise has unit spread: what hardly varies, such as a difference of equal
    noises, counts most.
    """
    if not spread.shape[1]:
        return np.zeros((0, 0))
    scale = np.maximum(spread.std(axis=0), 1e-300)
    scaled = np.nan_to_num(spread / scale)
    values, axes = np.linalg.eigh(_gram(scaled, scaled) / len(spread))
    return np.asarray((axes / np.sqrt(np.maximum(values, 1e-12))) / scale[:, None])


def _logistic(features: Array, first: Mask) -> Array:
    """Weights, the constant first, by Newton's method with a small ridge, on rows enough for a
    score.
    """
    rows = slice(None, None, -(-len(features) // _ROWS))
    features, first = features[rows], first[rows]
    inputs = np.column_stack([np.ones(len(features)), features])
    ridge = _RIDGE * len(inputs) * np.eye(inputs.shape[1])
    ridge[0, 0] = 0.0
    weights = np.zeros(inputs.shape[1])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(_times(inputs, weights[:, None])[:, 0], -30, 30)))
        slope = _gram(inputs, (first - chance)[:, None])[:, 0] - np.diag(ridge) * weights
        bend = _gram(inputs * (chance * (1 - chance))[:, None], inputs) + ridge
        weights = weights + np.linalg.solve(bend + 1e-9 * np.eye(len(bend)), slope)
    return np.asarray(weights)


def _times(rows: Array, matrix: Array) -> Array:
    """rows · matrix without BLAS, whose threads wait for each other longer than a thin matrix
    takes.
    """
    return np.asarray(np.einsum("ni,ij->nj", rows, matrix))


def _gram(left: Array, right: Array) -> Array:
    return np.asarray(np.einsum("ni,nj->ij", left, right))


def _runs(inside: Mask) -> list[tuple[int, int]]:
    """The stretches of True, as (first, last), the longest first."""
    steps = np.diff(np.concatenate([[0], inside.astype(int), [0]]))
    runs = zip(np.flatnonzero(steps == 1), np.flatnonzero(steps == -1) - 1, strict=True)
    return sorted(((int(a), int(b)) for a, b in runs), key=lambda run: run[0] - run[1])


def _interval(edges: Array, low: int, high: int) -> str:
    """Bins low … high in words; bin i holds what lies between edge i-1 (inclusive) and edge i."""
    if low == 0 and high == edges.size:
        return "is a number"
    if low == 0:
        return f"below {number_words(edges[high])}"
    if high == edges.size:
        return f"at least {number_words(edges[low - 1])}"
    start, end = edges[low - 1], edges[high]
    if end == np.nextafter(start, np.inf):
        return f"equal to {number_words(start)}"
    return f"in [{number_words(start)}, {number_words(end)})"


def number_words(value: float) -> str:
    """A number with all its digits: an event that is rounded is another event.

    >>> number_words(123456789.0), number_words(0.1), number_words(-0.0)
    ('123456789', '0.1', '-0')
    """
    return repr(float(value)).removesuffix(".0")
