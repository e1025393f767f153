# SPDX-License-Identifier: Apache-2.0
"""A statistic with noise in proportion to its smooth sensitivity.

    SmoothMechanism(OrderStatistic(bounds, q=0.5), SmoothBudget(epsilon=1.0), size=1000)(ages).value

The answer is floor(f / step + (S / (s · step)) Z + 1/2) · step, clipped to the public range: a
function of the ideal f + (S / s) Z, drawn in exact integers (`noise.heavy`). The smooth bound S is
secret, so the release has no error and no interval.

**Guarantee.** `guarantee` is that of the ideal mechanism: pure ε, (ε, δ) or zCDP, under the stated
relation, and never more than the budget. The noise family, s, the smoothing and the step are
functions of public parameters alone.

Why it holds: smooth.proof.md. What would break it: bounds, a `size` (under add-remove) or `public`
records that were read off the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from discreet import check, privacy
from discreet.errors import BadParameter, CannotCertify
from discreet.exact import exactly
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism
from discreet.mechanisms.sensitivity import LEAST_SMOOTHING, SLACK, SmoothBound, read_smoothing
from discreet.mechanisms.smooth.families import (
    Family,
    PureFamily,
    SmoothArsinhNormal,
    SmoothBudget,
    SmoothGaussian,
    SmoothLaplace,
    SmoothLaplaceLogNormal,
    SmoothLomax,
    SmoothStudentT,
    SmoothUniformLogNormal,
    check_family,
)
from discreet.mechanisms.smooth.statistics import Custom, Statistic
from discreet.noise import heavy
from discreet.noise.grid import Grid
from discreet.privacy.guarantee import Guarantee

__all__ = ["SmoothMechanism", "SmoothPlan"]

_STEP_BITS = 40  # the grid of the answers has more than 2**40 points in its range
_PLANNING_BETA = 1 - CONFIDENCE  # noise is chosen for the error at this confidence
_DEGREES = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0, 20.0, 40.0)
_SHAPES = (2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 14.0, 20.0, 28.0, 40.0, 60.0, 100.0, 200.0)
_SIGMAS = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0, 1.3)
# The smoothing parameters that planning tries, as shares of ε.
_SHARES = tuple(2.0 ** (-i / 2) for i in range(2, 18))
_DEFAULT_SHARE = 1 / 8  # if there are no public records for planning


@dataclass(frozen=True)
class SmoothPlan:
    """The noise family, its scale and the smoothing of the bound: all public.

    **Guarantee.** All fields are functions of public parameters.

    >>> statistic = Custom(len, SmoothBound(lambda _: 1.0, 0.1, 1.0), 0, 9)
    >>> plan = SmoothMechanism(statistic, SmoothBudget(epsilon=1.0)).plan
    >>> plan.smoothing, plan.shift > 0
    (0.1, True)
    """

    family: Family
    shift: float  # s: the noise is (S / s) Z
    smoothing: float  # t: S is t-smooth

    def error(self, bound: float, confidence: float) -> float:
        """An estimate of the margin of error if the smooth bound is `bound`; for planning only."""
        return bound / self.shift * self.family.tail_bound(1 - confidence)


class SmoothMechanism(Mechanism):
    """A statistic with noise in proportion to its smooth sensitivity.

    `size` is the number of records, which is public under "replace", and a public guess of it under
    "add-remove". Planning the noise uses the `public` records in place of the secret ones; the
    default spreads them over the middle tenth of the bounds. `family` and `smoothing` fix the noise
    and the smoothing instead.

    >>> from discreet.mechanisms.smooth.statistics import OrderStatistic
    >>> statistic = OrderStatistic((0, 100), q=0.5)
    >>> median = SmoothMechanism(statistic, SmoothBudget(epsilon=1.0), size=1000)
    >>> median.guarantee
    pure(epsilon=1.0, relation='replace')
    >>> median.error() is None and 0 <= median(range(1000)).value <= 100
    True
    """

    def __init__(
        self,
        statistic: Statistic,
        budget: SmoothBudget,
        *,
        size: int = 1000,
        public: object = None,
        family: Family | None = None,
        smoothing: float | None = None,
        relation: str | None = None,
        unit: str = "record",
    ) -> None:
        _check_kinds(statistic, budget)
        if family is not None:
            check_family("family", family)
        relation = statistic.relations[0] if relation is None else relation
        check.choice(statistic.relations, relation=relation)
        self.statistic, self._budget = statistic, budget
        self._size = check.whole(at_least=0, size=size)
        self._guarantee = _budget_guarantee(budget, relation, unit)
        self.plan = self._choose_plan(public, family, smoothing)
        self._guarantee = _family_guarantee(self.plan.family, budget, self._guarantee, relation, unit)
        low, high = statistic.range
        self.grid = Grid(math.frexp(float(high - low))[1] - 1 - _STEP_BITS)

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    def draw(self, data: object) -> float:
        value, bound = self.statistic.measure(data, self.plan.smoothing)
        scale = bound / exactly(self.plan.shift) / self.grid.step
        noisy = self.grid.step * heavy.rounded_noise(self.plan.family.noise, scale, value / self.grid.step)
        low, high = self.statistic.range
        return float(min(max(noisy, low), high))

    def error_on(self, public: object, confidence: float = CONFIDENCE) -> float:
        """An estimate of the margin of error on *public* records; on private ones it is secret."""
        confidence = check.inner_probability(confidence=confidence)
        bound = self.statistic.measure(public, self.plan.smoothing)[1]
        return self.plan.error(float(bound), confidence)

    def _choose_plan(self, public: object, family: Family | None, smoothing: float | None) -> SmoothPlan:
        typical = self.statistic.typical(self._size) if public is None else public
        best_plan, least_error = None, math.inf
        for t in self._smoothings(smoothing, has_typical=typical is not None):
            bound = 1.0 if typical is None else float(self.statistic.measure(typical, t)[1])
            for candidate in _families(self._budget) if family is None else [family]:
                shift = candidate.most(t + SLACK, self._budget)
                if shift <= 0:
                    continue
                plan = SmoothPlan(candidate, shift, t)
                error = plan.error(bound, 1 - _PLANNING_BETA)
                if error < least_error:
                    best_plan, least_error = plan, error
        if best_plan is None:
            raise _no_noise_error()
        return best_plan

    def _smoothings(self, smoothing: float | None, *, has_typical: bool) -> list[float]:
        if isinstance(self.statistic, Custom) and isinstance(self.statistic.sensitivity, SmoothBound):
            return [float(self.statistic.sensitivity.smoothing)]
        if smoothing is not None:
            return [read_smoothing(smoothing)]
        epsilon = min(self._budget.pure, 10.0)
        shares = _SHARES if has_typical else (_DEFAULT_SHARE,)
        return [t for share in shares if (t := epsilon * share) >= LEAST_SMOOTHING]


def _check_kinds(statistic: object, budget: object) -> None:
    if not isinstance(statistic, Statistic) or not isinstance(budget, SmoothBudget):
        raise BadParameter(
            "DP104",
            "a smooth mechanism is made of a Statistic and a SmoothBudget.",
            why="the statistic bounds how far a record moves the answer; the budget states the amount of noise.",
            fix="SmoothMechanism(OrderStatistic((0, 100), q=0.5), SmoothBudget(epsilon=1.0))",
        )


def _families(budget: SmoothBudget) -> Iterator[Family]:
    yield from map(SmoothStudentT, _DEGREES)
    yield from map(SmoothLomax, _SHAPES)
    if budget.delta is not None:
        yield from (SmoothLaplace(), SmoothGaussian())
    if budget.rho is not None:
        for kind in (SmoothLaplaceLogNormal, SmoothUniformLogNormal, SmoothArsinhNormal):
            yield from map(kind, _SIGMAS)


def _budget_guarantee(budget: SmoothBudget, relation: str, unit: str) -> Guarantee:
    if budget.rho is not None:
        return privacy.concentrated(budget.rho, relation=relation, unit=unit)
    return privacy.approximate(budget.epsilon or 0.0, budget.delta or 0.0, relation=relation, unit=unit)


def _family_guarantee(
    family: Family, budget: SmoothBudget, requested: Guarantee, relation: str, unit: str
) -> Guarantee:
    """The stated guarantee, or a stronger one: a pure family gives pure ε also for (ε, δ) or ρ."""
    if not isinstance(family, PureFamily) or (budget.rho is None and budget.delta is None):
        return requested
    return privacy.pure(budget.pure, relation=relation, unit=unit)


def _no_noise_error() -> CannotCertify:
    return CannotCertify(
        "DP302",
        "no noise fits this budget with this smoothing.",
        why="the change of scale by e^smoothing alone costs more than the budget.",
        fix="leave smoothing out, or state a smaller one, such as a tenth of epsilon",
    )
