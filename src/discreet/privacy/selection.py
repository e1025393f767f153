# SPDX-License-Identifier: Apache-2.0
"""The best of a secret number of runs, and one of several mechanisms.

    selected(gaussian(noise=2.0), mean_runs=10)      # K runs, only the best one is shown
    one_of(laplace(scale=1), gaussian(noise=1))      # one of them, chosen without a look at the data

K has the truncated negative binomial distribution P(K = k) ∝ (1-γ)^k · Π_{0<l<k} (l+η)/(l+1), k ≥
1, with η > -1; for η = 0 that is (1-γ)^k / k. A lesser η costs less for the same mean, and runs
only once more often.

**Guarantee.** The views of `selected(q, …)` hold for the whole experiment: K is drawn, q is run K
times on the same data, and the run that comes first in some total order of q's *outputs* is
released.

Why it holds: selection.proof.md. In short: the winner's distribution is E[K]·(γ/u)^(1+η)·Q with
u(y) = γ + (1-γ)·Q(better than y). If u'(y) ≤ e^(c/(1+η))·u(y) for all neighbours, then δ(e + c) ≤
1 - E[(1 - δ_Q(e))^K] ≤ E[K]·δ_Q(e), the greatest loss grows by c, and D_λ by c + log E[K] / (λ-1),
which is Theorem 2 of Papernot and Steinke 2022.

What would break it: an order that looks at the data, showing K, the time that it took, or any run
but the best.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from discreet import check
from discreet.errors import BadParameter
from discreet.exact import bisect
from discreet.privacy import families
from discreet.privacy.bag import Bag, BagItem, pair_of_curve, pair_of_profile
from discreet.privacy.guarantee import Guarantee, alternatives
from discreet.privacy.logarithms import Array
from discreet.privacy.losses import Composition
from discreet.privacy.pairs import Pair, log_delta_of, symmetrise
from discreet.privacy.primitives import Primitive
from discreet.privacy.unit import Unit, same_unit

#: The formulas below lose a few units in the last place.
_UP = 1 + 1e-12
_KNOTS, _MOMENT_KNOTS = 800, 24
#: log δ up to which the curve of a composition is read by its moments.
_SMALL = -30.0
#: Losses from here on are as good as infinite.
_FAR = 690.0
#: Shapes that are compared, the greatest shape, and the least γ.
_SHAPES, _STEEPEST = (-0.75, -0.5, -0.25, 0.0, 0.5, 1.0), 1000.0
_LEAST_GAMMA = 1e-80
_ORDERS = 1 + np.geomspace(1e-2, 1e5, 120)


@dataclass(frozen=True, repr=False)
class SelectedGuarantee(Primitive):
    """The best of K runs, K ~ TNB(η, γ)."""

    inner: Guarantee
    gamma: float
    eta: float = 0.0

    @property
    def assumes(self) -> frozenset[str]:
        return self.inner.assumes

    @property
    def failure(self) -> float:
        """The probability that any run fails: 1 - E[(1-f)^K]."""
        lost = _failure(self.inner)
        if lost in (0.0, 1.0):
            return lost
        return min(math.nextafter(1.0, 0.0), float(self._any_run(np.array([lost]))[0]))

    def _any_run(self, chance: Array) -> Array:
        """1 - E[(1-x)^K], rounded up: the probability that something happens in any of the runs."""
        # log(γ/γ₀), also where γ₀ rounds to γ.
        fall, log_gamma = -np.log1p((1 - self.gamma) * chance / self.gamma), math.log(self.gamma)
        share = (
            fall / log_gamma
            if self.eta == 0
            else np.expm1(self.eta * fall) / math.expm1(self.eta * log_gamma)
        )
        return np.asarray(np.minimum(1.0, share * _UP))

    def worst_loss(self) -> float:
        worst = _worst_loss(self.inner)
        return (worst + self._clean_tilt) * (1 + 1e-15) if math.isfinite(worst) else math.inf

    def divergence(self, order: float) -> float:
        bound = _divergence(self.inner, order) + self._clean_tilt
        bound += math.log(mean_runs(self._clean_gamma, self.eta)) / (order - 1)
        return min(super().divergence(order), bound * _UP)

    def dominating(self) -> tuple[Pair, ...]:
        if self.failure >= 1:
            return (Pair(infinite=1.0, vanishing=1.0, symmetric=True),)
        worst = self.worst_loss()
        if _FAR <= worst < math.inf:
            return (families.randomized_response(worst, 2, self.failure),)
        shifts, lost = _curve(self.inner)
        knots, deltas = _tilt(self) + shifts, self._any_run(lost)
        if math.isfinite(worst):
            knots, deltas = np.append(knots, worst), np.append(deltas, self.failure)
        return (symmetrise(pair_of_profile(*_falling(knots, np.minimum(1.0, deltas)))),)

    def witness(self) -> tuple[Pair, ...]:
        """A run may come with a number of its own by which they are ordered, and then the winner is
        any one run.

        So `tight` is not claimed: other orders reveal more, though for none is the rule known to be
        attained.
        """
        parts = [part for bag in alternatives(self.inner) for part, _ in bag.entries]
        pairs = max((part.witness() for part in parts), key=lambda pairs: pairs[0].exceeds(0.0)[0])
        return tuple(replace(pair, infinite=pair.infinite * (1 - 1e-9)) for pair in pairs)

    def _group_of(self, size: int) -> Guarantee:
        """The rule needs nothing of the inner mechanism but its curve, so it may be that of a
        group.
        """
        return SelectedGuarantee(self.inner.group(size), self.gamma, self.eta, unit=self.unit)

    def _group_apart(self, size: int) -> Guarantee:
        return SelectedGuarantee(self.inner.at_distance(size), self.gamma, self.eta, unit=self.unit)

    @property
    def _clean_gamma(self) -> float:
        """Given that no run fails, K is TNB(η, γ₀) with 1 - γ₀ = (1-γ)(1-f)."""
        return self.gamma + (1 - self.gamma) * _failure(self.inner)

    @property
    def _clean_tilt(self) -> float:
        return _tilt(self) if _failure(self.inner) == 0 else _tilt_of_losses(self)

    def __repr__(self) -> str:
        more = f", eta={self.eta!r}" if self.eta else ""
        return f"selected({self.inner!r}, gamma={self.gamma!r}{more})"


@dataclass(frozen=True, repr=False)
class OneOfGuarantee(Guarantee):
    """One of several mechanisms, chosen by chance or by a rule that does not see the data; which
    one may be shown.

    Its curve is an average of theirs, hence nowhere above the greatest.
    """

    parts: frozenset[Guarantee]

    @property
    def unit(self) -> Unit:
        return same_unit([part.unit for part in self.parts])

    @property
    def assumes(self) -> frozenset[str]:
        return frozenset().union(*(part.assumes for part in self.parts))

    def bags(self) -> list[tuple[tuple[BagItem, int], ...]]:
        return [bag for part in sorted(self.parts, key=repr) for bag in part.bags()]

    def _group_of(self, size: int) -> Guarantee:
        return one_of(*(part.group(size) for part in self.parts))

    def _group_apart(self, size: int) -> Guarantee:
        return one_of(*(part.at_distance(size) for part in self.parts))

    def __repr__(self) -> str:
        return f"one_of({', '.join(sorted(map(repr, self.parts)))})"


@check.arguments
def selected(
    inner: Guarantee,
    mean_runs: float | None = None,
    *,
    gamma: float | None = None,
    eta: float | str = 0.0,
    delta: float = 1e-6,
    repeats: float = 0.5,
) -> Guarantee:
    """The guarantee of releasing the best of a random, secret number of runs of a mechanism.

    **Guarantee.** Holds if the number of runs K is drawn afresh, stays secret, and only the best
    run is released (Liu, Talwar 2019; Papernot, Steinke 2022). State either `mean_runs`, the mean
    of K, or `gamma`. For an ε-private mechanism and η = 0 the result is 2ε-private at most, however
    many runs there are on average.

    `eta` above -1 is the shape of the distribution of K. `eta="least"` takes the one with the least
    ε at `delta` among those whose chance of more than one run is at least `repeats`.

    >>> from discreet import privacy
    >>> best = privacy.selected(privacy.pure(0.5), mean_runs=100)
    >>> round(best.epsilon(delta=0), 3), privacy.selected(privacy.pure(0.5), gamma=1e-9).epsilon(delta=0)
    (0.999, 1.0)
    """
    if not isinstance(inner, Guarantee):
        raise _not_a_guarantee_error("selected(laplace(scale=1), mean_runs=10)")
    if (mean_runs is None) == (gamma is None):
        raise BadParameter(
            "DP107",
            "selected needs either mean_runs or gamma.",
            why="both say how often the mechanism is run, and two statements could contradict each other.",
            fix="selected(guarantee, mean_runs=10)",
        )
    if isinstance(eta, str):
        check.choice(("least",), eta=eta)
        return _least(inner, mean_runs, check.delta(delta=delta), repeats)
    eta = above_minus_one(eta)
    gamma = gamma_for(mean_runs, eta) if gamma is None else check.inner_probability(gamma=gamma)
    return SelectedGuarantee(inner, check.moderate(gamma=gamma), eta, unit=inner.unit)


def above_minus_one(eta: object) -> float:
    """A shape η of the distribution of K."""
    number = check.real(eta=eta)
    if -1 < number <= _STEEPEST:
        return number
    raise BadParameter(
        "DP102",
        f"eta must be above -1 and at most {_STEEPEST:g}, not {number:g}.",
        why="at -1 there is one run only, and a greater eta costs more for the same mean.",
        fix="eta=-0.5",
    )


def chance_of_one(gamma: float, eta: float) -> float:
    """P(K = 1) = f'(0)."""
    return min(1.0, mean_runs(gamma, eta) * math.pow(gamma, 1 + eta))


def _least(inner: Guarantee, runs: float | None, delta: float, repeats: float) -> Guarantee:
    """The selection with the least ε at δ; a function of public numbers only."""
    repeats = check.probability(repeats=repeats)
    if runs is None:
        raise BadParameter(
            "DP107",
            "eta='least' needs mean_runs.",
            why="shapes are compared at the same mean number of runs.",
            fix="selected(guarantee, mean_runs=10, eta='least')",
        )
    candidates = [(gamma, eta) for eta in _SHAPES if (gamma := _gamma_or_none(runs, eta)) is not None]
    often = [(gamma, eta) for gamma, eta in candidates if 1 - chance_of_one(gamma, eta) >= repeats]
    if not often:
        most = max(1 - chance_of_one(gamma, eta) for gamma, eta in candidates)
        raise BadParameter(
            "DP102",
            f"no shape has more than one run with probability {repeats:g} at mean_runs={runs:g}.",
            why="with so few runs on average there is often one only.",
            fix=f"repeats={math.floor(100 * most) / 100:g}",
        )
    chosen = [SelectedGuarantee(inner, gamma, eta, unit=inner.unit) for gamma, eta in often]
    return min(chosen, key=lambda node: node.epsilon(delta))


def _gamma_or_none(runs: float, eta: float) -> float | None:
    """The γ of this mean, if this shape has it."""
    check.above_one(mean_runs=runs)
    most = mean_runs(_LEAST_GAMMA, eta)
    return gamma_for(runs, eta) if 1.00001 <= runs < most or eta == 0 else None


@check.arguments
def one_of(*parts: Guarantee) -> Guarantee:
    """One of several mechanisms, whichever was chosen: the greatest of their curves at every point.

    **Guarantee.** Holds if the choice does not depend on the data (a fair die, the day of the
    week), and also covers saying which one it was. What would break it: choosing by a look at the
    data.

    >>> from discreet import privacy
    >>> privacy.one_of(privacy.pure(1.0), privacy.pure(0.5)).epsilon(delta=0)
    1.0
    """
    if not parts or not all(isinstance(part, Guarantee) for part in parts):
        raise _not_a_guarantee_error("one_of(laplace(scale=1), gaussian(noise=1))")
    same_unit([part.unit for part in parts])
    return parts[0] if len(set(parts)) == 1 else OneOfGuarantee(frozenset(parts))


def mean_runs(gamma: float, eta: float = 0.0) -> float:
    """E[K] = η(1-γ) / (γ(1-γ^η)), or (1/γ - 1) / log(1/γ) for η = 0; rounded up."""
    if gamma >= 1:
        return 1.0
    log_gamma = math.log(gamma)
    slope = -log_gamma if eta == 0 else -math.expm1(eta * log_gamma) / eta
    return max(1.0, (1 - gamma) / (gamma * slope) * _UP)


def gamma_for(runs: float | None, eta: float = 0.0) -> float:
    """The γ whose mean is about `runs`, in six digits."""
    wanted = check.above_one(mean_runs=runs)
    # the mean falls as γ grows
    log_gamma, _ = bisect(lambda at: mean_runs(math.exp(at), eta) > wanted, yes=-200.0, no=0.0, steps=200)
    gamma = float(f"{math.exp(log_gamma):.6g}")
    if _LEAST_GAMMA < gamma < 1:
        return gamma
    most = f"{mean_runs(_LEAST_GAMMA, eta) / 2:.0e}" if eta < 0 else "1e70"
    raise BadParameter(
        "DP102",
        f"mean_runs must lie between 1.00001 and {most}, not {wanted!r}.",
        why="fewer is a single run, and more cannot be run.",
        fix="mean_runs=10",
    )


@lru_cache(maxsize=256)
def _tilt(node: SelectedGuarantee) -> float:
    """The least c that is proved with u' ≤ e^(c/(1+η))·u: from the curve, the greatest loss or the
    divergences.
    """
    (at, lost), gamma = _curve(node.inner), node.gamma
    few = np.log1p((1 - gamma) / gamma * lost)
    many = _minus_log(gamma, 1 - gamma, lost * np.exp(-at) - np.expm1(-at))
    best = float(np.min(np.maximum(few, many)))
    if _failure(node.inner) == 0:
        best = min(best, _tilt_of_losses(node) / (1 + node.eta))
    return (1 + node.eta) * best * _UP


def _tilt_of_losses(node: SelectedGuarantee) -> float:
    """The same for the runs that do not fail, from the greatest loss or from D_λ (see
    selection.proof.md).
    """
    worst, gamma = _worst_loss(node.inner), node._clean_gamma  # noqa: SLF001 - the formulas belong to the node
    spare = (1 - node.gamma) * (1 - _failure(node.inner))
    best = float(_minus_log(gamma, spare, np.array([-math.expm1(-worst)]))[0])
    for order in _ORDERS.tolist():
        divergence = _divergence(node.inner, order)
        if math.isfinite(divergence):
            best = min(best, (1 - 1 / order) * divergence - math.log(gamma) / order)
    return (1 + node.eta) * best * _UP


def _minus_log(gamma: float, spare: float, missing: Array) -> Array:
    """-log(γ + (1-γ)(1-x)) with spare = 1-γ, without cancellation at either end."""
    far = -np.log(gamma + spare * np.maximum(1 - missing, 0.0))
    near = -np.log1p(-np.minimum(spare * missing, 0.5))
    return np.where(spare * missing < 0.5, near, far)


def _failure(inner: Guarantee) -> float:
    return max(bag.failure for bag in alternatives(inner))


def _worst_loss(inner: Guarantee) -> float:
    return max(bag.worst_loss for bag in alternatives(inner))


def _divergence(inner: Guarantee, order: float) -> float:
    return max(bag.renyi(order) for bag in alternatives(inner))


@lru_cache(maxsize=64)
def _curve(inner: Guarantee) -> tuple[Array, Array]:
    """Points (ε, δ) of the greatest curve over all alternatives and both directions, rounded up by
    more than what a quadrature loses.

    A composition is read twice: as one pair, whose rounding is absolute, and by its moments, which
    keep all digits of a small δ but cost more.
    """
    bags = alternatives(inner)
    pairs = tuple(pair for bag in bags for pair in _pairs_of(bag))
    knots = np.append(0.0, _knots(pairs))
    deltas = np.array([max(log_delta_of(pair, float(at)) for pair in pairs) for at in knots])
    composed = [each for bag in bags if _is_composed(bag) for each in bag.compositions]
    if composed and all(each.spectrum is not None for each in composed) and len(bags) == 1:
        fewer = _knots_of_moments(composed)
        read = np.interp(fewer, knots, deltas)
        exact = [
            _log_delta_of_moments(composed, *at) for at in zip(fewer.tolist(), read.tolist(), strict=True)
        ]
        knots, deltas = np.append(knots, fewer), np.append(deltas, exact)
    order = np.lexsort((deltas, knots))
    knots, deltas = knots[order], np.minimum.accumulate(deltas[order])
    return knots, np.asarray(np.minimum(1.0, np.exp(deltas) * (1 + 2e-9)))


def _log_delta_of_moments(composed: list[Composition], epsilon: float, known: float) -> float:
    """The greatest log δ over the directions, computed where what is known is worse than a cheap
    bound.
    """
    cheap = [each.chernoff_log_delta(epsilon) for each in composed]
    if known <= max(cheap):
        return max(cheap)
    greatest = -math.inf
    for each, bound in sorted(zip(composed, cheap, strict=True), key=lambda entry: -entry[1]):
        if bound > greatest:
            greatest = max(greatest, min(bound, each.upper_log_delta(epsilon)))
    return greatest


def _is_composed(bag: Bag) -> bool:
    return bag.gaussian is None and bag.alone is None


def _pairs_of(bag: Bag) -> tuple[Pair, ...]:
    if bag.gaussian is not None:
        return (families.gaussian(bag.gaussian * (1 + 1e-13)),)
    if bag.alone is not None:
        return bag.alone.pairs() or (pair_of_curve(bag),)
    return tuple(composition.as_pair() for composition in bag.compositions)


def _knots_of_moments(composed: list[Composition]) -> Array:
    """From 0 to where a cheap bound says that δ is small."""

    def is_small(epsilon: float) -> bool:
        return all(each.chernoff_log_delta(epsilon) < _SMALL for each in composed)

    top = 1.0
    while not is_small(top) and top < _FAR:
        top *= 3
    while top > 1e-6 and is_small(top / 3):
        top /= 3
    top, _ = bisect(is_small, yes=top, no=top / 3, steps=3)
    return np.linspace(top / _MOMENT_KNOTS, top, _MOMENT_KNOTS)


def _knots(pairs: tuple[Pair, ...]) -> Array:
    """Where the curve is read: between these, and at the kinks of distributions with few outcomes."""
    top = min(max(1e-6, *(pair.greatest for pair in pairs)), _FAR)
    kinks = [pair.losses[(pair.losses > 0) & (pair.losses <= _FAR)] for pair in pairs]
    few = [losses for losses in kinks if losses.size <= _KNOTS]
    return np.unique(np.concatenate([np.geomspace(top * 1e-5, top, _KNOTS), *few]))


def _falling(knots: Array, deltas: Array) -> tuple[Array, Array]:
    """Points of a curve in order, each ε once, from ε = 0 on; what lies beyond doubles counts as
    revealed.
    """
    order = np.lexsort((deltas, knots))
    knots, first = np.unique(knots[order], return_index=True)
    knots, deltas = knots[knots < _FAR], deltas[order][first][knots < _FAR]
    # (ε, δ) in both directions bounds the total variation by (e^ε - 1 + 2δ) / (e^ε + 1)
    still = np.tanh(knots / 2) + 2 * deltas / (np.exp(knots) + 1)
    start = min(1.0, float(np.min(still, initial=1.0)) * _UP)
    later = knots > 0
    return np.append(0.0, knots[later]), np.minimum.accumulate(np.append(start, deltas[later]))


def _not_a_guarantee_error(example: str) -> BadParameter:
    return BadParameter(
        "DP104",
        "every argument must be a guarantee.",
        why="the result is computed from the guarantee of each mechanism.",
        fix=example,
    )
