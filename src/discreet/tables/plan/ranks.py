# SPDX-License-Identifier: Apache-2.0
"""Quantiles, and what is answered for MIN and MAX: values at a rank, chosen among the bins of a public grid.

**Guarantee.** All groups together cost one exponential mechanism for each choice: a unit's weight is divided among the
groups and the bins, and what a choice reveals of a unit is proportional to its weight there. Three or more quantiles of
one column cost ⌈log₂(s + 1)⌉ choices: the middle one first, then those on either side (Kaplan, Schnapp, Stemmer 2022).

One more choice finds the intervals of all quantiles of a column together (`brackets`).

MIN and MAX of all rows would show one person's value, so a rank is answered instead: the value that about t rows lie
beyond, where t is public and so large that with 95 % confidence somebody is at it or beyond. So the extreme lies between
it and the bound of the column, and nothing narrower can be said: one person at the bound must not be seen.

Why it holds: compile.proof.md, § 7. How far a choice misses its rank is known before; how far that is in values
depends on the data.
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
from discreet.tables.answer.answer import Noisy
from discreet.tables.ask.question import Aggregate
from discreet.tables.data.engine import Engine, guarded
from discreet.tables.data.expr import Arithmetic, Constant, Expr, IsNull, Not, Quotient
from discreet.tables.data.sums import BoundedSums, Filtered, GroupKey, RowScheme
from discreet.tables.data.types import NUMBER, Type, python_value
from discreet.tables.plan.brackets import BinWeights, QuantileIntervals
from discreet.tables.plan.linear import whole
from discreet.tables.plan.stage import ColumnDescription, QueryScope

__all__ = ["RANKED", "RankStrategy", "Ranks"]

RANKED = ("quantile", "min", "max")
_BINS = 4096
_LOTS = 16  # finer points in a bin, over which its rows are spread evenly where a choice divides them
_FINEST = 10**6  # the largest denominator of a share
Ints = npt.NDArray[Any]
ChosenBins = tuple[int, int, int]  # a bin, and the first and the last bin of its interval


@dataclass(frozen=True)
class ValueBins:
    """A public grid: bin i holds the cells low + i·width, …, low + (i + 1)·width − 1."""

    kind: Type
    width: int
    count: int

    @classmethod
    def of(cls, kind: Type) -> ValueBins:
        """At most 4096 bins; whole numbers of a smaller range have one each."""
        span = kind.high - kind.low + 1
        width = -(-span // _BINS)
        return cls(kind, width, -(-span // width))

    def place(self, x: Expr) -> Expr:
        """In which bin a value is."""
        places = self.kind.places
        low = Constant(self.kind.low, Type(NUMBER, self.kind.low, self.kind.low, places, null=False))
        cell = Constant(self.width, Type(NUMBER, self.width, self.width, places, null=False))
        return Quotient(Arithmetic("-", x, low), cell)

    def value(self, place: int) -> Any:
        """The middle of a bin."""
        return self._cell_value(place * self.width + (self.width - 1) // 2)

    def ends(self, low: int, high: int) -> tuple[Any, Any]:
        """What the bins from one to another hold; a number that is no whole one was rounded down to its cell."""
        return self._cell_value(low * self.width), self._cell_value(
            (high + 1) * self.width - (not self.kind.places)
        )

    def _cell_value(self, cells: int) -> Any:
        return python_value(min(self.kind.low + cells, self.kind.high), self.kind)


@dataclass(frozen=True)
class RankStrategy:
    """The ranks that are asked of one column."""

    scope: QueryScope
    of: Expr
    asked: tuple[Aggregate, ...]

    def __post_init__(self) -> None:
        if self.of.type.kind != NUMBER:
            raise RefusedQuestion(
                "DP706",
                f"{self.asked[0].text or self.asked[0].kind} is asked of what is no number.",
                why="a rank is found among the cells of a public grid between two bounds.",
                fix="ask it of a number with bounds, or count groups:  GROUP BY",
            )

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """The quantiles, in order."""
        return tuple(sorted({_share(one) for one in self.asked if one.kind == "quantile"}))

    @property
    def choices(self) -> int:
        """How many exponential mechanisms are paid for: one of them is for the intervals of all quantiles."""
        many = len(self.shares)
        extremes = len({one.kind for one in self.asked} & {"min", "max"})
        return (many.bit_length() if many > 2 else many) + (many > 0) + extremes

    @property
    def weight(self) -> float:
        return float(self.choices)

    def pure_stage(self, epsilon: Fraction) -> Ranks:
        return self._stage(float_below(epsilon / self.choices))

    def gaussian_stage(self, noise: float) -> Ranks:
        return self._stage(self._epsilon(noise))

    def gaussian_guarantee(self, noise: float) -> Guarantee:
        return compose(
            [(privacy.exponential(self._epsilon(noise), unit=self.scope.contribution.unit), self.choices)]
        )

    def _epsilon(self, noise: float) -> float:
        """Of each choice, from Σ ε²/8 = 1 / 2 noise² (Cesar, Rogers 2021)."""
        return 2 / (noise * math.sqrt(self.choices))

    def _stage(self, epsilon: float) -> Ranks:
        bins, scope = ValueBins.of(self.of.type), self.scope
        rows = Filtered(scope.rows, Not(IsNull(self.of))) if self.of.type.null else scope.rows
        scheme = RowScheme(scope.contribution.rows, scope.fine)
        sums = BoundedSums(rows, (*scope.keys, bins.place(self.of)), (whole(1),), scheme)
        return Ranks(self, bins, sums, epsilon)


@dataclass(frozen=True)
class Ranks:
    """Values at the ranks that are asked of one column, ready to be drawn with ε for each choice."""

    strategy: RankStrategy
    bins: ValueBins
    sums: BoundedSums
    epsilon: float

    @property
    def guarantee(self) -> Guarantee:
        one = privacy.exponential(self.epsilon, unit=self.strategy.scope.contribution.unit)
        return compose([(one, self.strategy.choices)])

    def draw(self, engine: Engine, groups: Sequence[GroupKey]) -> dict[str, Noisy]:
        """The columns of these groups; a group without rows is answered too, with a value that means nothing."""
        counts = guarded(engine.sums, replace(self.sums, among=tuple(groups)))
        found: dict[GroupKey, list[tuple[int, int]]] = {group: [] for group in groups}
        for (*group, place), (weight,) in counts.items():
            held = found.get(tuple(group))
            if held is not None and place is not None and weight:
                held.append((place, weight))
        drawn = [self._choose_bins(sorted(found[group])) for group in groups]
        return {one.name: self._column(one, drawn) for one in self.strategy.asked}

    def errors(self, confidence: float = CONFIDENCE) -> dict[str, float | None]:
        """None: how far a rank is off in values depends on the data."""
        return dict.fromkeys((one.name for one in self.strategy.asked), None)

    def describe(self, confidence: float = CONFIDENCE) -> dict[str, ColumnDescription]:
        return {one.name: self._describe(one, confidence) for one in self.strategy.asked}

    def expected_errors(self) -> dict[str, float]:
        return dict.fromkeys((one.name for one in self.strategy.asked), float(self._scale(None, 1)))

    def rank_error(self, one: Aggregate, confidence: float = CONFIDENCE) -> float | None:
        """By how many (weighted) rows a choice misses its rank, at most; None where choices build on each other."""
        share = _share(one) if one.kind == "quantile" else None
        if share is not None and len(self.strategy.shares) > 2:
            return None
        odds = max(1.0, (self.bins.count - 1) * confidence / (1 - confidence))
        rows = self._scale(share, 1) / (share.denominator if share else 1)
        return float(rows) * math.log(odds) * (1 + 1e-12)

    @property
    def beyond(self) -> int:
        """How many rows lie beyond what is answered for MIN and MAX, about: so many that somebody does."""
        odds = max(1.0, (self.bins.count - 1) * CONFIDENCE / (1 - CONFIDENCE))
        return math.floor(float(self._scale(None, 1)) * math.log(odds) * (1 + 1e-12)) + 1

    @property
    def _fine(self) -> int:
        return self.sums.scheme.fine  # type: ignore[union-attr]

    def _widest_scale(self, fine: int) -> Fraction:
        """The scale of the scores of intervals, in units of 1/(common denominator) of a cell."""
        who, shares = self.strategy.scope.contribution, self.strategy.shares
        times = math.lcm(*(share.denominator for share in shares))
        apart = 2 * max(max(share, 1 - share) for share in shares) * times
        if who.replaces:
            apart = 2 * apart if self.strategy.scope.keys else Fraction(2 * times)
        return who.rows * fine * apart / exactly(self.epsilon)

    def _scale(self, share: Fraction | None, fine: int) -> Fraction:
        """The scale of the scores, in units of 1/denominator of a cell of a weight (compile.proof.md, § 7)."""
        who = self.strategy.scope.contribution
        apart = 2 if share is None else spread(share)
        if who.replaces:
            single = not self.strategy.scope.keys and len(self.strategy.shares) <= 2
            apart = 2 * (1 if share is None else share.denominator) if single else 2 * apart
        return who.rows * fine * apart / exactly(self.epsilon)

    def _choose_bins(self, held: list[tuple[int, int]]) -> dict[Any, ChosenBins]:
        """What is chosen for one group, by share or by the word min or max: a bin, and those where its interval ends."""
        last = self.bins.count - 1
        found: dict[Any, ChosenBins] = {}
        for word in {one.kind for one in self.strategy.asked} & {"min", "max"}:
            place = self._extreme(dict(held), word)
            found[word] = (place, 0, place) if word == "min" else (place, place, last)
        shares = self.strategy.shares
        if not shares:
            return found
        counts = BinWeights(*_columns(held), self._fine)
        drawn = self._draw_bins(counts)
        ends = QuantileIntervals(drawn, shares, last, self._widest_scale(self._fine), 1 - CONFIDENCE).draw(
            counts
        )
        return found | {share: (place, *both) for share, place, both in zip(shares, drawn, ends, strict=True)}

    def _draw_bins(self, counts: BinWeights) -> tuple[int, ...]:
        """The bins of all quantiles, in order."""
        shares, places, total = self.strategy.shares, counts.places, counts.sums[-1]
        if len(shares) > 2:
            fine_places = (places[:, None] * _LOTS + np.arange(_LOTS)).ravel()
            ends = (0, self.bins.count * _LOTS - 1)
            chosen = self._between(fine_places, np.repeat(counts.weights, _LOTS), ends, shares, (0, 1))
            return tuple(place // _LOTS for place in chosen)
        ends = (0, self.bins.count - 1)
        targets = ((share.numerator * total, share.denominator) for share in shares)
        each = zip(targets, shares, strict=True)
        return tuple(
            sorted(_choose(places, counts.weights, ends, t, self._scale(s, self._fine)) for t, s in each)
        )

    def _extreme(self, held: dict[int, int], word: str) -> int:
        """The bin that is answered for MIN or MAX.

        `beyond` public rows are added at the far end, so that a group with fewer rows than that is answered too, with
        the far bound; they lie beyond no other bin.
        """
        extra, last = self.beyond * self._fine, self.bins.count - 1
        far = last if word == "min" else 0
        places, weights = _columns(sorted({**held, far: held.get(far, 0) + extra}.items()))
        target = extra if word == "min" else int(sum(weights)) - extra
        return _choose(places, weights, (0, last), (target, 1), self._scale(None, self._fine))

    def _between(
        self, places: Ints, weights: Ints, ends: tuple[int, int], shares: Sequence[Fraction], within: Any
    ) -> Iterator[int]:
        """The quantiles `shares` of all rows, from those between two ends that are about at the shares `within`."""
        if not shares:
            return
        (low, high), (floor, ceiling) = ends, within
        middle = len(shares) // 2
        share = shares[middle]
        here = Fraction((share - floor) / (ceiling - floor)).limit_denominator(_FINEST)
        target = (here.numerator * int(sum(weights)), here.denominator)
        scale = self._scale(here, self._fine * _LOTS)
        found = _choose(places, weights, ends, target, scale)
        cut = int(np.searchsorted(places, found, side="right"))
        yield from self._between(places[:cut], weights[:cut], (low, found), shares[:middle], (floor, share))
        yield found
        right = (found, high), shares[middle + 1 :], (share, ceiling)
        yield from self._between(places[cut:], weights[cut:], *right)

    def _column(self, one: Aggregate, drawn: Sequence[dict[Any, ChosenBins]]) -> Noisy:
        chosen = [found[_share(one) if one.kind == "quantile" else one.kind] for found in drawn]
        values = tuple(self.bins.value(place) for place, _, _ in chosen)
        pairs = [self.bins.ends(low, high) for _, low, high in chosen]
        ends = tuple(low for low, _ in pairs), tuple(high for _, high in pairs)

        def interval(confidence: float) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
            """What was chosen holds at 95 %; more confidence than that was not paid for, and gives the bounds."""
            everything = self.bins.ends(0, self.bins.count - 1)
            return ends if confidence <= CONFIDENCE else tuple((end,) * len(chosen) for end in everything)  # type: ignore[return-value]

        together = ", ".join(other.name for other in self.strategy.asked if other.kind == "quantile")
        return Noisy(
            values,
            *ends,
            text=one.text,
            noise=self._describe(one).noise,
            interval=interval,
            together=together if one.kind == "quantile" else "",
        )

    def _describe(self, one: Aggregate, confidence: float = CONFIDENCE) -> ColumnDescription:
        word = one.text or one.name
        law = f"exponential mechanism at epsilon {self.epsilon:.4g} over {self.bins.count} values"
        if one.kind != "quantile":
            t, side = self.beyond, "above" if one.kind == "max" else "below"
            most = f"{t} rows are {side} it, about, and at most {2 * t} with {confidence:.0%} confidence"
            note = (
                f"{word} is not the extreme value, which would be one person's, but a value such that {most}. "
                "The extreme lies between it and the bound, as the interval says."
            )
            return ColumnDescription(law, f"{t} rows are {side} it, about", note)
        rows = self.rank_error(one, confidence)
        off = "" if rows is None else f"at most {rows:.4g} rows from its rank, "
        many = "s of all quantiles of it" if len(self.strategy.shares) > 1 else ""
        law += f", and the same cost again for the interval{many}"
        return ColumnDescription(law, f"{off}interval to about {self.rows_around:.4g} rows on either side")

    @property
    def rows_around(self) -> float:
        """About how many rows an interval reaches beyond the rank, on either side, where rows lie close together.

        The choice likes rungs that are too wide by about as much as the target is more than a row.
        """
        shares = self.strategy.shares
        brackets = QuantileIntervals((0,) * len(shares), shares, 0, self._widest_scale(1), 1 - CONFIDENCE)
        return 2 * brackets.target(1) / brackets.denominator - 1


def _columns(held: Sequence[tuple[int, int]]) -> tuple[Ints, Ints]:
    """Places and weights, each as an array."""
    places, weights = [place for place, _ in held], [weight for _, weight in held]
    return np.array(places, np.int64), np.array(weights, object)


def _choose(
    places: Ints, weights: Ints, ends: tuple[int, int], target: tuple[int, int], scale: Fraction
) -> int:
    """A place y in `ends` with a chance proportional to exp(-miss(y) / scale).

    With target = (T, b), miss(y) = max(0, b·L(y) − T, T − b·U(y)), L and U being the weights before y and up to y. Between
    two places that have a weight all y are alike: a stretch of them races with its length, and the point is uniform.
    """
    (low, high), (rank, times) = ends, target
    small = max(abs(rank), times * int(sum(weights))) < 1 << 61  # then 64 bits are enough
    edges = np.concatenate(([0], np.cumsum(weights))).astype(np.int64 if small else object).repeat(2) * times
    first = np.empty(2 * places.size + 1, np.int64)  # stretch, place, stretch, place, …, stretch
    first[0], first[1::2], first[2::2] = low, places, places + 1
    lengths = np.diff(first, append=high + 1)
    misses = np.maximum(0, np.maximum(edges[:-1] - rank, rank - edges[1:]))
    chosen = int(noise.largest(-misses, scale, weights=lengths)[0])
    return int(first[chosen]) + int(noise.uniform(int(lengths[chosen])))


def _share(one: Aggregate) -> Fraction:
    assert one.fraction is not None
    return Fraction(*one.fraction).limit_denominator(_FINEST)
