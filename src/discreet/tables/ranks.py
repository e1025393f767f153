# SPDX-License-Identifier: Apache-2.0
"""Quantiles, and what is answered for MIN and MAX: values at a rank, chosen among the bins of a public grid.

**Promise.** All groups together cost one exponential mechanism for each choice: a unit's weight is divided among the
groups and the bins, and what a choice reveals of a unit is proportional to its weight there. Three or more quantiles of
one column cost ⌈log₂(s + 1)⌉ choices: the middle one first, then those on either side (Kaplan, Schnapp, Stemmer 2022).

MIN and MAX of all rows would show one person's value, so a rank is answered instead: the value that about t rows lie
beyond, where t is public and so large that with 95 % confidence somebody is at it or beyond.

Why it holds: compile.proof.md, § 7. How far a choice misses its rank is known before; how far that is in values
depends on the data, so there is no interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import noise, privacy
from discreet.errors import RefusedQuestion
from discreet.mechanisms.laws import exactly, float_below
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.mechanisms.quantile import spread
from discreet.privacy.guarantee import Guarantee, compose
from discreet.tables.answer import Noisy
from discreet.tables.engine import Engine, guarded
from discreet.tables.expr import Arithmetic, Constant, Expr, IsNull, Not, Quotient
from discreet.tables.linear import whole
from discreet.tables.part import Scope, Stated
from discreet.tables.plan import Filtered, GroupKey, Rows, Sums
from discreet.tables.question import Aggregate
from discreet.tables.types import NUMBER, Type, read_back

__all__ = ["RANKED", "RankRecipe", "Ranks"]

RANKED = ("quantile", "min", "max")
_BINS = 4096
_LOTS = 16  # finer points in a bin, over which its rows are spread evenly where a choice divides them
_FINEST = 10**6  # the largest denominator of a share
Ints = npt.NDArray[Any]


@dataclass(frozen=True)
class Bins:
    """A public grid: bin i holds the cells low + i·width, …, low + (i + 1)·width − 1."""

    kind: Type
    width: int
    count: int

    @classmethod
    def of(cls, kind: Type) -> Bins:
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
        cells = self.kind.low + place * self.width + (self.width - 1) // 2
        return read_back(min(cells, self.kind.high), self.kind)


@dataclass(frozen=True)
class RankRecipe:
    """The ranks that are asked of one column."""

    scope: Scope
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
        """How many exponential mechanisms are paid for."""
        many = len(self.shares)
        extremes = len({one.kind for one in self.asked} & {"min", "max"})
        return (many.bit_length() if many > 2 else many) + extremes

    @property
    def weight(self) -> float:
        return float(self.choices)

    def pure(self, epsilon: Fraction) -> Ranks:
        return self._ready(float_below(epsilon / self.choices))

    def gaussian(self, noise: float) -> Ranks:
        return self._ready(self._epsilon(noise))

    def promised(self, noise: float) -> Guarantee:
        return compose(
            [(privacy.exponential(self._epsilon(noise), **self.scope.contribution.words), self.choices)]
        )

    def _epsilon(self, noise: float) -> float:
        """Of each choice, from Σ ε²/8 = 1 / 2 noise² (Cesar, Rogers 2021)."""
        return 2 / (noise * math.sqrt(self.choices))

    def _ready(self, epsilon: float) -> Ranks:
        bins, scope = Bins.of(self.of.type), self.scope
        rows = Filtered(scope.rows, Not(IsNull(self.of))) if self.of.type.null else scope.rows
        scheme = Rows(scope.contribution.rows, scope.fine)
        sums = Sums(rows, (*scope.keys, bins.place(self.of)), (whole(1),), scheme)
        return Ranks(self, bins, sums, epsilon)


@dataclass(frozen=True)
class Ranks:
    """Values at the ranks that are asked of one column, ready to be drawn with ε for each choice."""

    recipe: RankRecipe
    bins: Bins
    sums: Sums
    epsilon: float

    @property
    def promise(self) -> Guarantee:
        one = privacy.exponential(self.epsilon, **self.recipe.scope.contribution.words)
        return compose([(one, self.recipe.choices)])

    def draw(self, engine: Engine, groups: Sequence[GroupKey]) -> dict[str, Noisy]:
        """The columns of these groups; a group without rows is answered too, with a value that means nothing."""
        counts = guarded(lambda: engine.sums(self.sums))
        found: dict[GroupKey, list[tuple[int, int]]] = {group: [] for group in groups}
        for (*group, place), (weight,) in counts.items():
            held = found.get(tuple(group))
            if held is not None and place is not None and weight:
                held.append((place, weight))
        drawn = [self._one(sorted(found[group])) for group in groups]
        return {one.name: self._column(one, drawn) for one in self.recipe.asked}

    def errors(self, confidence: float = CONFIDENCE) -> dict[str, float | None]:
        """None: how far a rank is off in values depends on the data."""
        return dict.fromkeys((one.name for one in self.recipe.asked), None)

    def stated(self, confidence: float = CONFIDENCE) -> dict[str, Stated]:
        return {one.name: self._stated(one, confidence) for one in self.recipe.asked}

    def expected(self) -> dict[str, float]:
        return dict.fromkeys((one.name for one in self.recipe.asked), float(self._scale(None, 1)))

    def rank_error(self, one: Aggregate, confidence: float = CONFIDENCE) -> float | None:
        """By how many (weighted) rows a choice misses its rank, at most; None where choices build on each other."""
        share = _share(one) if one.kind == "quantile" else None
        if share is not None and len(self.recipe.shares) > 2:
            return None
        odds = max(1.0, (self.bins.count - 1) * confidence / (1 - confidence))
        rows = self._scale(share, 1) / (share.denominator if share else 1)
        return float(rows) * math.log(odds) * (1 + 1e-12)

    @property
    def beyond(self) -> int:
        """How many rows lie beyond what is answered for MIN and MAX, about: so many that somebody does."""
        odds = max(1.0, (self.bins.count - 1) * CONFIDENCE / (1 - CONFIDENCE))
        return math.floor(float(self._scale(None, 1)) * math.log(odds) * (1 + 1e-12)) + 1

    def _scale(self, share: Fraction | None, fine: int) -> Fraction:
        """The scale of the scores, in units of 1/denominator of a cell of a weight (compile.proof.md, § 7)."""
        who = self.recipe.scope.contribution
        apart = 2 if share is None else spread(share)
        if who.replaces:
            single = not self.recipe.scope.keys and len(self.recipe.shares) <= 2
            apart = 2 * (1 if share is None else share.denominator) if single else 2 * apart
        return who.rows * fine * apart / exactly(self.epsilon)

    def _one(self, held: list[tuple[int, int]]) -> dict[Any, int]:
        """The bins that are chosen for one group, by share or by the word min or max."""
        places = np.array([place for place, _ in held], np.int64)
        weights = np.array([weight for _, weight in held], object)
        fine, last = self.sums.scheme.fine, self.bins.count - 1  # type: ignore[union-attr]
        total, found = int(sum(weights)), {}
        for word in {one.kind for one in self.recipe.asked} & {"min", "max"}:
            target = self.beyond * fine if word == "min" else total - self.beyond * fine
            found[word] = _choose(places, weights, (0, last), (target, 1), self._scale(None, fine))
        shares = self.recipe.shares
        if len(shares) > 2:
            fine_places = (places[:, None] * _LOTS + np.arange(_LOTS)).ravel()
            chosen = self._between(
                fine_places, np.repeat(weights, _LOTS), (0, self.bins.count * _LOTS - 1), shares, (0, 1)
            )
            return found | {share: place // _LOTS for share, place in zip(shares, chosen, strict=True)}
        drawn = sorted(
            _choose(places, weights, (0, last), (s.numerator * total, s.denominator), self._scale(s, fine))
            for s in shares
        )
        return found | dict(zip(shares, drawn, strict=True))

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
        scale = self._scale(here, self.sums.scheme.fine * _LOTS)  # type: ignore[union-attr]
        found = _choose(places, weights, ends, target, scale)
        cut = int(np.searchsorted(places, found, side="right"))
        yield from self._between(places[:cut], weights[:cut], (low, found), shares[:middle], (floor, share))
        yield found
        right = (found, high), shares[middle + 1 :], (share, ceiling)
        yield from self._between(places[cut:], weights[cut:], *right)

    def _column(self, one: Aggregate, drawn: Sequence[dict[Any, int]]) -> Noisy:
        which = _share(one) if one.kind == "quantile" else one.kind
        nothing = (None,) * len(drawn)
        values = tuple(self.bins.value(chosen[which]) for chosen in drawn)
        return Noisy(values=values, lo=nothing, hi=nothing, text=one.text, noise=self._stated(one).noise)

    def _stated(self, one: Aggregate, confidence: float = CONFIDENCE) -> Stated:
        word = one.text or one.name
        law = f"exponential mechanism at epsilon {self.epsilon:.4g} over {self.bins.count} values"
        if one.kind != "quantile":
            t, side = self.beyond, "above" if one.kind == "max" else "below"
            most = f"{t} rows are {side} it, about, and at most {2 * t} with {confidence:.0%} confidence"
            note = (
                f"{word} is not the extreme value, which would be one person's, but a value such that {most}."
            )
            return Stated(law, f"{t} rows are {side} it, about", note)
        rows = self.rank_error(one, confidence)
        off = "not stated in advance" if rows is None else f"at most {rows:.4g} rows from its rank"
        note = f"{word} has no interval: how far a rank is off in values depends on the data ({off})."
        return Stated(law, off, note)


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
