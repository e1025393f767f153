# SPDX-License-Identifier: Apache-2.0
"""Quantiles, MIN and MAX: values near a rank, chosen among the bins of a public grid.

**Guarantee.** Each choice costs one exponential mechanism for all groups together: a unit's weight
is divided among the groups and the bins, and what a choice reveals about a unit is proportional to
its weight there. s ≥ 3 quantiles of one column cost ⌈log₂(s + 1)⌉ choices: the middle one first,
then those on either side (Kaplan, Schnapp, Stemmer 2022).

One more choice finds the intervals of all quantiles of a column together (`brackets`), with twice
the ε of each other one, because that makes intervals narrow (compile.proof.md, § 5).

The exact MIN or MAX would show one person's value. So the answer is a value that about t rows lie
beyond, where t is public, and so large that with 95 % confidence some row is at the value or beyond
it. The extreme therefore lies between this value and the bound of the column. No narrower interval
is possible, because a single person at the bound must stay hidden.

Why it holds: compile.proof.md, § 7. How far a choice misses its rank is known in advance; how far
that is in values depends on the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import noise, privacy
from discreet.errors import RefusedQuestion
from discreet.exact import exactly, float_below
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.mechanisms.quantile import spread
from discreet.privacy.guarantee import Guarantee, compose
from discreet.tables.algebra.engine import Engine, guard_engine
from discreet.tables.algebra.expr import Arithmetic, Constant, Expr, IsNull, Not, Quotient
from discreet.tables.algebra.sums import BoundedSums, Filtered, GroupKey, RowScheme
from discreet.tables.algebra.types import NUMBER, Type, Value, python_value
from discreet.tables.answer.noisy import Noisy, Values
from discreet.tables.ask.question import Aggregate
from discreet.tables.plan.brackets import BinWeights, QuantileIntervals
from discreet.tables.plan.linear import whole
from discreet.tables.plan.stage import ColumnDescription, QueryScope

__all__ = ["RANKED", "RankStrategy", "Ranks"]

RANKED = ("quantile", "min", "max")
_BINS = 4096
#: The finer points of a bin; its rows are spread evenly over them where a choice divides them.
_LOTS = 16
#: The ε of the choice of intervals, in those of each other choice.
_INTERVALS = 2
#: The greatest denominator of a share.
_FINEST = 10**6
Ints = npt.NDArray[Any]
#: A bin, and the first and the last bin of its interval.
ChosenBins = tuple[int, int, int]
#: The share of a quantile, or "min" or "max".
Rank = Fraction | str


@dataclass(frozen=True)
class ValueBins:
    """A public grid: bin i holds the cells low + i·width, …, low + (i + 1)·width − 1."""

    kind: Type
    width: int
    count: int

    @classmethod
    def of(cls, kind: Type) -> ValueBins:
        """A grid of at most 4096 bins; whole numbers of a smaller range have one bin each."""
        span = kind.high - kind.low + 1
        width = -(-span // _BINS)
        return cls(kind, width, -(-span // width))

    def place(self, x: Expr) -> Expr:
        """The bin of a value."""
        places = self.kind.places
        low = Constant(self.kind.low, Type(NUMBER, self.kind.low, self.kind.low, places, null=False))
        cell = Constant(self.width, Type(NUMBER, self.width, self.width, places, null=False))
        return Quotient(Arithmetic("-", x, low), cell)

    def value(self, place: int) -> Value:
        """The middle of a bin."""
        return self._cell_value(place * self.width + (self.width - 1) // 2)

    def ends(self, low: int, high: int) -> tuple[Value, Value]:
        """The least and the greatest value in a range of bins."""
        # Only whole numbers are their own cells; others were rounded down, so they may lie up to
        # the next cell.
        beyond = 1 if self.kind.places == 0 else 0
        return self._cell_value(low * self.width), self._cell_value((high + 1) * self.width - beyond)

    def _cell_value(self, cells: int) -> Value:
        value: Value = python_value(min(self.kind.low + cells, self.kind.high), self.kind)
        return value


@dataclass(frozen=True)
class RankStrategy:
    """The quantiles and extremes of one column, not yet with an ε."""

    scope: QueryScope
    of: Expr
    aggregates: tuple[Aggregate, ...]

    def __post_init__(self) -> None:
        if self.of.type.kind != NUMBER:
            first = self.aggregates[0]
            raise RefusedQuestion(
                "DP706",
                f"{first.text or first.kind} needs a number.",
                why="a rank is found among the cells of a public grid between two bounds.",
                fix="use a number with bounds, or count groups:  GROUP BY",
            )

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """The quantiles, in order."""
        return tuple(sorted({_share(rank) for rank in self.aggregates if rank.kind == "quantile"}))

    @property
    def extremes(self) -> set[str]:
        """The kinds of extremes: min, max, both or none."""
        return {aggregate.kind for aggregate in self.aggregates} & {"min", "max"}

    @property
    def choices(self) -> int:
        """The number of exponential mechanisms that find values."""
        quantiles = len(self.shares)
        return (quantiles.bit_length() if quantiles > 2 else quantiles) + len(self.extremes)

    @property
    def has_intervals(self) -> bool:
        """Whether one more mechanism finds the intervals of quantiles."""
        return bool(self.shares)

    @property
    def weight(self) -> float:
        return float(self.choices + self.has_intervals)

    def guarantee(self, epsilon: float) -> Guarantee:
        """The guarantee of all choices, where each that finds a value has this ε."""
        unit = self.scope.contribution.unit
        choices = [(privacy.exponential(epsilon, unit=unit), self.choices)]
        if self.has_intervals:
            choices.append((privacy.exponential(intervals_epsilon(epsilon), unit=unit), 1))
        return compose(choices)

    def pure_stage(self, epsilon: Fraction) -> Ranks:
        return self._stage(float_below(epsilon / (self.choices + self.has_intervals * _INTERVALS)))

    def gaussian_stage(self, noise: float) -> Ranks:
        return self._stage(self._epsilon(noise))

    def gaussian_guarantee(self, noise: float) -> Guarantee:
        return self.guarantee(self._epsilon(noise))

    def _epsilon(self, noise: float) -> float:
        """The ε of each value, from Σ ε²/8 = 1 / 2 noise² (Cesar, Rogers 2021)."""
        return 2 / (noise * math.sqrt(self.choices + self.has_intervals * _INTERVALS**2))

    def _stage(self, epsilon: float) -> Ranks:
        bins, scope = ValueBins.of(self.of.type), self.scope
        rows = Filtered(scope.rows, Not(IsNull(self.of))) if self.of.type.null else scope.rows
        scheme = RowScheme(scope.contribution.rows, scope.fine)
        sums = BoundedSums(rows, (*scope.keys, bins.place(self.of)), (whole(1),), scheme)
        return Ranks(self, bins, sums, epsilon)


@dataclass(frozen=True)
class Ranks:
    """The quantiles and extremes of one column, ready to be drawn with ε for each value."""

    strategy: RankStrategy
    bins: ValueBins
    sums: BoundedSums
    epsilon: float

    @property
    def guarantee(self) -> Guarantee:
        return self.strategy.guarantee(self.epsilon)

    def draw(self, engine: Engine, groups: Sequence[GroupKey]) -> dict[str, Noisy]:
        """The columns of these groups; a group without rows gets a value too, which means nothing."""
        counts = guard_engine(engine.sums, replace(self.sums, among=tuple(groups)))
        bins_by_group: dict[GroupKey, list[tuple[int, int]]] = {group: [] for group in groups}
        for (*group, place), (weight,) in counts.items():
            bins = bins_by_group.get(tuple(group))
            if bins is not None and place is not None and weight:
                bins.append((place, weight))
        chosen = [self._choose_bins(sorted(bins_by_group[group])) for group in groups]
        return {aggregate.name: self._column(aggregate, chosen) for aggregate in self.strategy.aggregates}

    def errors(self, confidence: float = CONFIDENCE) -> dict[str, float | None]:
        """None for each column: a margin of error in values depends on the data."""
        return dict.fromkeys((aggregate.name for aggregate in self.strategy.aggregates), None)

    def describe(self, confidence: float = CONFIDENCE) -> dict[str, ColumnDescription]:
        return {
            aggregate.name: self._describe(aggregate, confidence) for aggregate in self.strategy.aggregates
        }

    def expected_errors(self) -> dict[str, float]:
        scale = float(self._scale(None, 1))
        return dict.fromkeys((aggregate.name for aggregate in self.strategy.aggregates), scale)

    def rank_error(self, aggregate: Aggregate, confidence: float = CONFIDENCE) -> float | None:
        """The greatest miss of a rank, in weighted rows; None where choices depend on others."""
        share = _share(aggregate) if aggregate.kind == "quantile" else None
        if share is not None and len(self.strategy.shares) > 2:
            return None
        return self._miss(share, confidence)

    @property
    def beyond(self) -> int:
        """About how many rows lie beyond the answer to MIN or MAX: more than a choice misses by."""
        return math.floor(self._miss(None, CONFIDENCE)) + 1

    def _miss(self, share: Fraction | None, confidence: float) -> float:
        """The number of rows by which a choice misses its rank at most, at this confidence."""
        odds = max(1.0, (self.bins.count - 1) * confidence / (1 - confidence))
        rows = self._scale(share, 1) / (share.denominator if share else 1)
        return float(rows) * math.log(odds) * (1 + 1e-12)

    @property
    def _fine(self) -> int:
        return self.sums.scheme.fine  # type: ignore[union-attr]

    def _widest_scale(self, fine: int) -> Fraction:
        """The scale of the scores of intervals, in units of 1/(common denominator) of a cell."""
        contribution, shares = self.strategy.scope.contribution, self.strategy.shares
        denominator = math.lcm(*(share.denominator for share in shares))
        distance = 2 * max(max(share, 1 - share) for share in shares) * denominator
        if contribution.replaces:
            distance = 2 * distance if self.strategy.scope.keys else Fraction(2 * denominator)
        return contribution.rows * fine * distance / exactly(intervals_epsilon(self.epsilon))

    def _scale(self, share: Fraction | None, fine: int) -> Fraction:
        """The scale of the scores, in 1/denominator of a cell (compile.proof.md, § 7)."""
        contribution = self.strategy.scope.contribution
        distance = 2 if share is None else spread(share)
        if contribution.replaces:
            single = not self.strategy.scope.keys and len(self.strategy.shares) <= 2
            distance = 2 * (1 if share is None else share.denominator) if single else 2 * distance
        return contribution.rows * fine * distance / exactly(self.epsilon)

    def _choose_bins(self, bins: list[tuple[int, int]]) -> dict[Rank, ChosenBins]:
        """The chosen bins of a group with `bins` (place, weight), by share or "min" or "max"."""
        last = self.bins.count - 1
        chosen: dict[Rank, ChosenBins] = {}
        for extreme in self.strategy.extremes:
            place = self._choose_extreme(dict(bins), extreme)
            chosen[extreme] = (place, 0, place) if extreme == "min" else (place, place, last)
        shares = self.strategy.shares
        if not shares:
            return chosen
        counts = BinWeights(*_columns(bins), self._fine)
        places = self._draw_bins(counts)
        brackets = QuantileIntervals(places, shares, last, self._widest_scale(self._fine), 1 - CONFIDENCE)
        intervals = brackets.draw(counts)
        return chosen | {
            share: (place, *ends) for share, place, ends in zip(shares, places, intervals, strict=True)
        }

    def _draw_bins(self, counts: BinWeights) -> tuple[int, ...]:
        """The bins of all quantiles, in order."""
        shares, places, total = self.strategy.shares, counts.places, counts.sums[-1]
        if len(shares) > 2:
            fine_places = (places[:, None] * _LOTS + np.arange(_LOTS)).ravel()
            ends = (0, self.bins.count * _LOTS - 1)
            chosen = self._between(
                fine_places, np.repeat(counts.weights, _LOTS), ends, shares, (Fraction(0), Fraction(1))
            )
            return tuple(place // _LOTS for place in chosen)
        ends = (0, self.bins.count - 1)
        targets = ((share.numerator * total, share.denominator) for share in shares)
        drawn = (
            _choose(places, counts.weights, ends, target, self._scale(share, self._fine))
            for target, share in zip(targets, shares, strict=True)
        )
        return tuple(sorted(drawn))

    def _choose_extreme(self, weights_by_place: dict[int, int], extreme: str) -> int:
        """The bin for MIN or MAX."""
        extra, last = self.beyond * self._fine, self.bins.count - 1
        # `beyond` public rows are added at the far end. They lie beyond no other bin, and a group
        # with fewer rows than that gets the far bound.
        far = last if extreme == "min" else 0
        extended = {**weights_by_place, far: weights_by_place.get(far, 0) + extra}
        places, weights = _columns(sorted(extended.items()))
        target = extra if extreme == "min" else int(sum(weights)) - extra
        return _choose(places, weights, (0, last), (target, 1), self._scale(None, self._fine))

    def _between(
        self,
        places: Ints,
        weights: Ints,
        ends: tuple[int, int],
        shares: Sequence[Fraction],
        within: tuple[Fraction, Fraction],
    ) -> Iterator[int]:
        """The quantiles `shares` of all rows, from those between two ends of shares `within`."""
        if not shares:
            return
        (low, high), (floor, ceiling) = ends, within
        middle = len(shares) // 2
        share = shares[middle]
        share_within = ((share - floor) / (ceiling - floor)).limit_denominator(_FINEST)
        target = (share_within.numerator * int(sum(weights)), share_within.denominator)
        scale = self._scale(share_within, self._fine * _LOTS)
        chosen = _choose(places, weights, ends, target, scale)
        cut = int(np.searchsorted(places, chosen, side="right"))
        yield from self._between(places[:cut], weights[:cut], (low, chosen), shares[:middle], (floor, share))
        yield chosen
        right = (chosen, high), shares[middle + 1 :], (share, ceiling)
        yield from self._between(places[cut:], weights[cut:], *right)

    def _column(self, aggregate: Aggregate, chosen_by_group: Sequence[dict[Rank, ChosenBins]]) -> Noisy:
        is_quantile = aggregate.kind == "quantile"
        rank = _share(aggregate) if is_quantile else aggregate.kind
        chosen = [chosen_bins[rank] for chosen_bins in chosen_by_group]
        values = tuple(self.bins.value(place) for place, _, _ in chosen)
        pairs = [self.bins.ends(low, high) for _, low, high in chosen]
        ends = tuple(low for low, _ in pairs), tuple(high for _, high in pairs)

        def interval(confidence: float) -> tuple[Values, Values]:
            """The chosen intervals hold at 95 %; a higher confidence gives the bounds."""
            low, high = self.bins.ends(0, self.bins.count - 1)
            return ends if confidence <= CONFIDENCE else ((low,) * len(chosen), (high,) * len(chosen))

        together = ", ".join(other.name for other in self.strategy.aggregates if other.kind == "quantile")
        return Noisy(
            values,
            *ends,
            text=aggregate.text,
            noise=self._describe(aggregate).noise,
            interval=interval,
            together=together if is_quantile else "",
        )

    def _describe(self, aggregate: Aggregate, confidence: float = CONFIDENCE) -> ColumnDescription:
        noise_text = f"exponential mechanism at epsilon {self.epsilon:.4g} over {self.bins.count} values"
        if aggregate.kind != "quantile":
            rows, side = self.beyond, "above" if aggregate.kind == "max" else "below"
            note = (
                f"{aggregate.text or aggregate.name} is not the extreme value, which would be one person's. About {rows} rows "
                f"are {side} it, and at most {2 * rows} with {confidence:.0%} confidence. The extreme lies between it and "
                "the bound, as the interval says."
            )
            return ColumnDescription(noise_text, f"about {rows} rows are {side} it", note)
        miss = self.rank_error(aggregate, confidence)
        error = "" if miss is None else f"at most {miss:.4g} rows from its rank, "
        error += f"interval to about {self.rows_around:.4g} rows on either side"
        intervals = "intervals of all its quantiles" if len(self.strategy.shares) > 1 else "interval"
        epsilon = f"{intervals_epsilon(self.epsilon):.4g}"
        return ColumnDescription(f"{noise_text}, and epsilon {epsilon} for the {intervals}", error)

    @property
    def rows_around(self) -> float:
        """About how many rows an interval reaches beyond its rank where rows lie close together."""
        # The choice favours rungs that are too wide by about as much as the target exceeds one row.
        shares = self.strategy.shares
        brackets = QuantileIntervals((0,) * len(shares), shares, 0, self._widest_scale(1), 1 - CONFIDENCE)
        return 2 * brackets.target(1) / brackets.denominator - 1


def intervals_epsilon(epsilon: float) -> float:
    """The ε of the choice of intervals, where each value has this ε; rounded down."""
    return float_below(exactly(epsilon) * _INTERVALS)


def _columns(bins: Sequence[tuple[int, int]]) -> tuple[Ints, Ints]:
    """Places and weights, each as an array."""
    places, weights = [place for place, _ in bins], [weight for _, weight in bins]
    return np.array(places, np.int64), np.array(weights, object)


def _choose(
    places: Ints, weights: Ints, ends: tuple[int, int], target: tuple[int, int], scale: Fraction
) -> int:
    """A place y in `ends`, chosen with probability proportional to exp(-miss(y) / scale).

    With target = (T, b), miss(y) = max(0, b·L(y) − T, T − b·U(y)), where L and U are the weights
    before y and up to y. All places of a stretch between two places with a weight have the same
    miss. So a stretch is chosen with a weight proportional to its length, and then a place in it
    uniformly.
    """
    (low, high), (rank, times) = ends, target
    # Below this, 64 bits are enough.
    small = max(abs(rank), times * int(sum(weights))) < 1 << 61
    edges = np.concatenate(([0], np.cumsum(weights))).astype(np.int64 if small else object).repeat(2) * times
    # The first places of stretch, place, stretch, place, …, stretch.
    first = np.empty(2 * places.size + 1, np.int64)
    first[0], first[1::2], first[2::2] = low, places, places + 1
    lengths = np.diff(first, append=high + 1)
    misses = np.maximum(0, np.maximum(edges[:-1] - rank, rank - edges[1:]))
    chosen = int(noise.largest(-misses, scale, weights=lengths)[0])
    return int(first[chosen]) + int(noise.uniform(int(lengths[chosen])))


def _share(quantile: Aggregate) -> Fraction:
    assert quantile.fraction is not None
    return Fraction(*quantile.fraction).limit_denominator(_FINEST)
