# SPDX-License-Identifier: Apache-2.0
"""Which groups may be named where nobody has stated the keys: those that enough units share.

A unit in m groups gives each of them the weight 1/√m (Gaussian noise) or 1/m (Laplace noise), in whole cells; the groups
whose noisy weight reaches a threshold are named, and everything else of the answer is about them only.

**Promise.** Save with probability δ no group is named that only one unit has; apart from that the names reveal what
Gaussian (Laplace) noise on vectors of length one does, in however many groups a unit is. Units in more than `most`
groups name none. A group without weight is never named.

Why it holds: compile.proof.md, § 4: given that none of a unit's lone groups is named, only shifts of the others by a vector
of norm `fine` remain. The idea of weights: Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin 2020.
What would break it: a threshold on rows, a strict for an inclusive comparison, a group that exists without a unit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from discreet import privacy
from discreet.mechanisms.laws import GaussianLaw, LaplaceLaw, Law, exactly, float_above, float_below, widest
from discreet.privacy.guarantee import Guarantee
from discreet.tables.contribution import ROOT_TWO
from discreet.tables.engine import Engine, guarded
from discreet.tables.groups import in_order
from discreet.tables.part import Scope
from discreet.tables.plan import GroupKey, Groups, Sums

__all__ = ["Selection", "gaussian_selection", "laplace_selection"]

_FINE = 4096
_USUAL = 1000  # groups of a unit that count, where nobody has stated how many matter
_EACH = 1024  # numbers of groups that are looked at one by one
_DOWN = 1 - 1e-12  # far more than the rounding of expm1 and log1p


@dataclass(frozen=True)
class Selection:
    """A threshold on noisy weights of groups."""

    sums: Sums
    law: Law
    threshold: int  # in cells; reached by those at it
    promise: Guarantee
    unit: str

    def draw(self, engine: Engine) -> list[GroupKey]:
        """The groups that may be named, sorted by their keys."""
        weights = guarded(lambda: engine.sums(self.sums))
        held = in_order(group for group, (weight,) in weights.items() if weight > 0)
        noises = self.law.draw(len(held)).tolist()
        pairs = zip(held, noises, strict=True)
        return [group for group, extra in pairs if weights[group][0] + extra >= self.threshold]

    def chance(self, units: int, groups: int = 1) -> float:
        """About how likely a group of so many units is named, each of whom is in so many groups."""
        missing = self.threshold - units * weight_in(self._scheme, groups)
        return self.law.tail(missing) / 2 if missing > 0 else 1 - self.law.tail(1 - missing) / 2

    def needed(self, groups: int = 1) -> int:
        """How many units a group needs to be named as often as not, each of whom is in so many groups."""
        return -(-self.threshold // max(1, weight_in(self._scheme, groups)))

    @property
    def most(self) -> int:
        """In how many groups a unit may be and still count."""
        return self._scheme.most

    @property
    def withheld(self) -> str:
        """What is said of groups that are not shown; never how many there are, nor whether there are any."""
        return (
            f"Groups are shown if about {self.needed()} {self.unit}s or more share them "
            f"(more, where one is in several groups); whether others exist is not said."
        )

    @property
    def _scheme(self) -> Groups:
        assert isinstance(self.sums.scheme, Groups)
        return self.sums.scheme


def gaussian_selection(scope: Scope, noise: float, delta: float) -> Selection:
    """Groups named with Gaussian noise of `noise` sensitivities, and a leak of δ."""
    who, scheme = scope.contribution, Groups(_most_groups(scope), _FINE, norm=2)
    stretch = ROOT_TWO if who.replaces else Fraction(1)
    law = GaussianLaw(float_above(widest(noise) * stretch * scheme.fine))
    promise = privacy.leaky(delta, **who.words) + privacy.gaussian(noise, **who.words)
    return _ready(scope, scheme, law, promise, delta)


def laplace_selection(scope: Scope, epsilon: Fraction, delta: float) -> Selection:
    """Groups named with Laplace noise that costs ε, and a leak of δ."""
    who, scheme = scope.contribution, Groups(min(_FINE, _most_groups(scope)), _FINE, norm=1)
    moved = who.stretch_l1() * scheme.fine
    law = LaplaceLaw(float_above(moved / exactly(float_below(epsilon))))
    promise = privacy.leaky(delta, **who.words) + privacy.discrete_laplace(law.scale, moved, **who.words)
    return _ready(scope, scheme, law, promise, delta)


def weight_in(scheme: Groups, groups: int) -> int:
    """The weight that a unit in so many groups gives to each."""
    if groups > scheme.most:
        return 0
    return scheme.fine // groups if scheme.norm == 1 else math.isqrt(scheme.fine**2 // groups)


def threshold_for(scheme: Groups, law: Law, delta: float) -> int:
    """The least number with 1 - (1 - P(noise >= it - w_m))^m <= δ for a unit in m groups, for every m; or a greater one."""
    return max(
        weight_in(scheme, few) + law.reach(2 * _for_each(delta, many)) + 1
        for few, many in _ranges(scheme.most)
    )


def _ranges(most: int) -> Iterator[tuple[int, int]]:
    """1, 2, 3, … one by one, then by doubling: the weight of the fewest and the chance of the most are both too much."""
    few = 1
    while few <= most:
        many = few if few <= _EACH else min(most, 2 * few)
        yield few, many
        few = many + 1


def _for_each(delta: float, groups: int) -> float:
    """The p with 1 - (1 - p)^groups <= δ, rounded down."""
    return -math.expm1(math.log1p(-delta) / groups) * _DOWN


def _most_groups(scope: Scope) -> int:
    who = scope.contribution
    if who.alone:
        return 1
    return who.stated_groups or max(who.rows, _USUAL)


def _ready(scope: Scope, scheme: Groups, law: Law, promise: Guarantee, delta: float) -> Selection:
    sums = Sums(scope.rows, scope.keys, (), scheme)
    return Selection(sums, law, threshold_for(scheme, law, delta), promise, scope.contribution.unit.protects)
