# SPDX-License-Identifier: Apache-2.0
"""Reports of a local randomiser that a shuffler mixes before anybody sees them.

    shuffled(pure(1.0, relation="replace"), n=10_000)                   # any ε₀-private randomiser
    shuffled(randomized_response(1.0, relation="replace"), n=10_000)    # less, where it is known

**Guarantee.** n people send one report each, through a shuffler that shows nothing but the list of
reports in random order; the answer of one of them is replaced. It holds whatever the others
answered, if all n follow the protocol: reports of people who do not count for nothing.

Why it holds: shuffling.proof.md. In short: with e = e^ε₀, every other report is with chance 1/e (or
more, where the randomiser is known) a *clone*: a fair draw from the two distributions between which
the report in question lies. So the view is post-processing of how many clones and reports there are
of either kind (Feldman, McMillan, Talwar 2021).

What would break it: fewer honest reports than n; a shuffler that leaves a trace (arrival times,
addresses, an order); reports that are only (ε₀, δ₀)-private, which is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import bdtr, bdtrc, gammaln

from discreet import check
from discreet.errors import BadParameter, UnsupportedGuarantee
from discreet.privacy import divergences
from discreet.privacy.guarantee import Guarantee, only_bag
from discreet.privacy.lattice import spread_cells
from discreet.privacy.logarithms import Array
from discreet.privacy.pairs import Pair, log_delta_of, swap
from discreet.privacy.primitives import Primitive, PureGuarantee, RandomizedResponseGuarantee
from discreet.privacy.roots import root
from discreet.privacy.unit import Unit

#: Standard deviations around the mean that are listed; beyond is less than 2·e^(-14²/2), 6e-43.
_REACH = 14.0
_BEYOND = 6e-43
#: Cells of the loss on either side of 0, and pairs of numbers that are listed at most.
_CELLS, _MOST_LISTED = 6000, 1_500_000
#: Relative error of binomial masses and tails of up to 10^10 trials, at most.
_CLOSE = 1e-7
_MOST_PEOPLE = 10_000_000_000
#: Beyond this loss a report is as good as the answer.
_FARTHEST = 500.0
#: The δ at which two rules are compared.
_TYPICAL = 1e-6


@dataclass(frozen=True, repr=False)
class ShuffledGuarantee(Primitive):
    """n reports of a local randomiser in random order."""

    inner: Guarantee
    n: int

    @property
    def assumes(self) -> frozenset[str]:
        honest = f"at least {self.n:,} people report as they should, and only their shuffled reports are seen"
        return self.inner.assumes | {honest}

    def worst_loss(self) -> float:
        """That of a report: the others may all be known."""
        return only_bag(self.inner).worst_loss

    def divergence(self, order: float) -> float:
        return min(super().divergence(order), divergences.of_pair(self.pairs()[0], order))

    def dominating(self) -> tuple[Pair, ...]:
        return (min((each.pair() for each in self._clones), key=_typical_epsilon),)

    def witness(self) -> tuple[Pair, ...]:
        """Randomized response of two answers is an ε₀-private randomiser. Of others it is not known
        that they reveal as much.
        """
        known = self.inner
        is_pure = isinstance(known, PureGuarantee)
        if is_pure or (isinstance(known, RandomizedResponseGuarantee) and known.outcomes == 2):
            pair = _alike(only_bag(known).worst_loss, self.n - 1)
            return pair, swap(pair)
        return (Pair(losses=np.zeros(1), p=np.ones(1), q=np.ones(1), symmetric=True),)

    @cached_property
    def _clones(self) -> list[Clones]:
        """Every rule for the number of clones that is proved for the randomiser."""
        worst, others = only_bag(self.inner).worst_loss, self.n - 1
        rules = [Clones(worst, others, math.exp(-worst), 1.0)]
        if isinstance(self.inner, RandomizedResponseGuarantee):
            odds, outcomes = math.exp(-worst), self.inner.outcomes
            total = 1 + (outcomes - 1) * odds
            rules.append(Clones(worst, others, 2 * odds / total, min(1.0, (1 + odds) / total * (1 + 1e-15))))
        return rules

    def parameters(self) -> dict[str, object]:
        return {"inner": self.inner, "n": self.n}

    def __repr__(self) -> str:
        return f"shuffled({self.inner!r}, n={self.n})"


@dataclass(frozen=True)
class Clones:
    """C ~ Bin(others, chance) clones, A ~ Bin(C, 1/2) of them of the first kind, and with
    probability `weight` the report in question, of the first kind with odds e^ε₀ (P) or e^-ε₀ (Q).
    """

    loss: float
    others: int
    chance: float
    weight: float

    def pair(self) -> Pair:
        """A pair that dominates that of both numbers: with fewer clones than there are."""
        counts, masses = self._blocks()
        reach = max(self._greatest(int(count)) for count in counts[1:] or counts) * (1 + 1e-12)
        p, q = np.zeros(2 * _CELLS), np.zeros(2 * _CELLS)
        lost = _BEYOND
        for count, mass in zip(counts, masses, strict=True):
            if self._greatest(count) > reach:
                lost += mass
                continue
            losses, report = self._outcomes(count)
            _add_to_cells(p, q, losses, mass * report, reach)
        knots = np.linspace(-reach, reach, 2 * _CELLS + 1)
        spread = spread_cells(p, q * (1 - 1e-14), knots) * self.weight * (1 + _CLOSE)
        lost *= 1 + _CLOSE
        # What is not listed gets the greatest loss that there is.
        losses = np.concatenate([knots, [0.0, self.loss, -self.loss]])
        at_loss = np.concatenate([spread, [1 - self.weight, lost, lost * math.exp(-self.loss)]])
        return Pair(losses=losses, p=at_loss, q=at_loss * np.exp(-losses), symmetric=True)

    def _blocks(self) -> tuple[list[int], list[float]]:
        """Numbers of clones, and the chance that there are so many or a few more."""
        mean, deviation = (
            self.others * self.chance,
            math.sqrt(self.others * self.chance * (1 - self.chance)),
        )
        low = max(0, math.floor(mean - _REACH * deviation - 1))
        high = min(self.others, math.ceil(mean + _REACH * deviation + 1))
        width = max(1.0, 2 * _REACH * math.sqrt(max(mean, 1.0) / 4))
        most = max(2, int(_MOST_LISTED / width))
        stride = -(-(high - low + 1) // most)
        starts = [0, *range(low, high + 1, stride)] if low else list(range(low, high + 1, stride))
        ends = [*(start - 1 for start in starts[1:]), self.others]
        chance = self.chance * (1 - 4e-16)
        masses = [
            max(0.0, _between(self.others, chance, start, end))
            for start, end in zip(starts, ends, strict=True)
        ]
        return starts, masses

    def _greatest(self, count: int) -> float:
        """The greatest loss that is listed for so many clones."""
        return float(self._losses(count, np.array([float(self._range(count)[1])]))[0])

    def _range(self, count: int) -> tuple[int, int]:
        """How many reports of the first kind are listed, among the clones and the one in question."""
        half = _REACH * math.sqrt(count) / 2
        return max(0, math.floor(count / 2 - half)), min(count + 1, math.ceil(count / 2 + half) + 1)

    def _losses(self, count: int, first: Array) -> Array:
        """The loss if so many of count + 1 reports are of the first kind."""
        second = count + 1 - first
        odds = math.exp(-self.loss)
        return np.asarray(np.log((first + odds * second) / (odds * first + second)))

    def _outcomes(self, count: int) -> tuple[Array, Array]:
        """Losses and P-masses given so many clones."""
        low, high = self._range(count)
        first = np.arange(low, high + 1, dtype=float)
        odds = math.exp(-self.loss)
        without, beside = _binomial(count, 0.5, first), _binomial(count, 0.5, first - 1)
        return self._losses(count, first), (beside + odds * without) / (1 + odds)


def _typical_epsilon(pair: Pair) -> float:
    """ε at a usual δ, by which one of several valid pairs is chosen."""
    return root(lambda epsilon: log_delta_of(pair, epsilon), math.log(_TYPICAL), pair.greatest)


def _between(trials: int, chance: float, start: int, end: int) -> float:
    """P(start ≤ Bin ≤ end), from the nearer tail."""
    if start > trials * chance:
        over = float(bdtrc(start - 1, trials, chance)) if start else 1.0
        return over - (float(bdtrc(end, trials, chance)) if end < trials else 0.0)
    under = float(bdtr(end, trials, chance)) if end < trials else 1.0
    return under - (float(bdtr(start - 1, trials, chance)) if start else 0.0)


def _binomial(trials: int, chance: float, heads: Array) -> Array:
    """P(Bin = heads), by Stirling's series, in which nothing large cancels."""
    masses = np.zeros(heads.size)
    some = (heads >= 0) & (heads <= trials)
    k = heads[some]
    logs = k * math.log(chance) + (trials - k) * math.log1p(-chance)
    inner = (k > 0) & (k < trials)
    if not inner.any():
        masses[some] = np.exp(logs)
        return masses
    up = (k[inner] - trials * chance) / (trials * chance)
    down = (trials * chance - k[inner]) / (trials * (1 - chance))
    divergence = chance * (1 + up) * np.log1p(up) + (1 - chance) * (1 + down) * np.log1p(down)
    rest = trials - k[inner]
    roots = np.log(trials / (2 * math.pi * k[inner] * rest)) / 2
    tails = _stirling(np.array([float(trials)]))[0] - _stirling(k[inner]) - _stirling(rest)
    logs[inner] = tails + roots - trials * divergence
    masses[some] = np.exp(logs)
    return masses


def _add_to_cells(p: Array, q: Array, losses: Array, masses: Array, reach: float) -> None:
    """Add P-masses at these losses, and their Q-masses, to the cells of [-reach, reach]."""
    cell = np.clip(((losses + reach) * (_CELLS / reach)).astype(np.int64), 0, p.size - 1)
    p += np.bincount(cell, masses, p.size)
    q += np.bincount(cell, masses * np.exp(-losses), q.size)


def _alike(loss: float, others: int) -> Pair:
    """What randomized response of two answers reveals at least: if all others have one answer, how
    many reports name the other one.
    """
    lie = 1 / (1 + math.exp(loss))
    half = _REACH * math.sqrt(others * lie * (1 - lie)) + 1
    low, high = max(0, math.floor(others * lie - half)), min(others + 1, math.ceil(others * lie + half))
    named = np.arange(low, high + 1, dtype=float)
    fewer, same = _binomial(others, lie, named - 1), _binomial(others, lie, named)
    # P(named - 1) / P(named) without what both have in common; at the top it is infinite.
    odds = math.exp(-loss)
    losses = np.full(named.size, loss)
    inner = named <= others
    ratio = named[inner] / (others + 1 - named[inner]) / odds
    losses[inner] = np.log1p((ratio - 1) * (1 - odds) / (odds * ratio + 1))
    p, q = np.zeros((2, 2 * _CELLS))
    reach = float(np.abs(losses).max()) * (1 + 1e-12)
    _add_to_cells(p, q, losses, (fewer + odds * same) * (1 - lie) * (1 - _CLOSE), reach)
    some = (p > 0) & (q > 0)
    return Pair(losses=np.log(p[some]) - np.log(q[some]), p=p[some], q=q[some])


def _stirling(n: Array) -> Array:
    """log n! less √(2πn)·(n/e)^n."""
    square = n * n
    series = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * square)) / square) / square) / n
    exact = gammaln(n + 1) - (n + 0.5) * np.log(n) + n - math.log(2 * math.pi) / 2
    return np.asarray(np.where(n < 16, exact, series))


@check.arguments
def shuffled(local: Guarantee, n: int) -> Guarantee:
    """The guarantee of n reports of a local randomiser that are seen in random order only.

    **Guarantee.** Holds if at least n people follow the protocol and nothing else links a report to
    its sender. The relation is "replace": whether somebody takes part is not hidden. Of
    randomized response it is known how many reports are clones, of other randomisers only how many
    there are at least (Feldman, McMillan, Talwar 2021).

    >>> from discreet import privacy
    >>> local = privacy.randomized_response(1.0, relation="replace")
    >>> round(privacy.shuffled(local, n=10_000).epsilon(delta=1e-6), 4)
    0.0432
    """
    if not isinstance(local, Guarantee):
        raise BadParameter(
            "DP104",
            "shuffled needs the guarantee of one report.",
            why="the result is computed from what a report reveals, and from the number of reports.",
            fix='shuffled(randomized_response(1.0, relation="replace"), n=10_000)',
        )
    n = check.whole(n=n)
    if n > _MOST_PEOPLE:
        raise BadParameter(
            "DP102",
            f"n must be at most {_MOST_PEOPLE:,}.",
            why="more people do not live, and the error of rounding grows with n.",
            fix=f"n={_MOST_PEOPLE}",
        )
    if local.unit.relation != "replace":
        raise UnsupportedGuarantee(
            "DP202",
            f"reports of a {local.unit.relation} guarantee cannot be shuffled.",
            why="whoever takes part sends a report; what is hidden is the answer, which is replaced.",
            fix='state the randomiser with  relation="replace",  only if who takes part may be known.',
        )
    bags = local.bags()
    if len(bags) > 1 or only_bag(local).failure > 0 or not only_bag(local).worst_loss <= _FARTHEST:
        raise UnsupportedGuarantee(
            "DP202",
            "only reports with a greatest privacy loss can be shuffled.",
            why="the theorem hides a report among copies of it, which a report that may reveal everything has not.",
            fix='state an ε-private randomiser, for example  pure(1.0, relation="replace").',
        )
    return ShuffledGuarantee(local, n, unit=Unit(local.unit.protects, "replace"))
