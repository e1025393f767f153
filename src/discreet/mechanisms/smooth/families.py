# SPDX-License-Identifier: Apache-2.0
"""Noise whose scale depends on the data: its guarantee if location and scale both change.

    family = SmoothLomax(4.5)
    family.most(0.05, SmoothBudget(epsilon=1.0))  # the largest s for a 0.05-smooth bound S
    family.loss(0.2, 0.05)  # ε for s = 0.2 and t = 0.05

Neighbours give f + (S / s) Z and f' + (S' / s) Z with |f - f'| <= min(S, S') and |ln S - ln S'| <=
t. In units of S / s that is Z against e^u Z + v with |u| <= t and |v| <= s min(1, e^u): a shift v
and a stretch u.

| family | guarantee | |
|---|---|---|
| `SmoothStudentT(degrees)`, `SmoothCauchy()` | pure ε | exact |
| `SmoothLomax(shape)` | pure ε | exact |
| `SmoothLaplace()`, `SmoothGaussian()` | (ε, δ) | the supremum, up to t / 32 in ε |
| `SmoothLaplaceLogNormal(sigma)`, `SmoothUniformLogNormal(sigma)`, `SmoothArsinhNormal(sigma)` | zCDP | proved, not exact |

**Guarantee.** `loss`, `delta` and `concentrated` are never too small, `most` never too large.
Proofs: smooth.proof.md, §§5-7.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri, stdtrit

from discreet import check, privacy
from discreet.errors import BadParameter
from discreet.exact import bisect, exactly
from discreet.mechanisms.smooth import hockey
from discreet.noise import heavy

__all__ = [
    "Family",
    "SmoothArsinhNormal",
    "SmoothBudget",
    "SmoothCauchy",
    "SmoothGaussian",
    "SmoothLaplace",
    "SmoothLaplaceLogNormal",
    "SmoothLomax",
    "SmoothStudentT",
    "SmoothUniformLogNormal",
    "is_admissible",
]

_UP, _DOWN = 1 + 1e-12, 1 - 1e-9
_MAX_EPSILON = 50.0  # a greater ε gives no less noise; so exp stays finite
_MAX_SIGMA = 10.0  # a spread of more than exp(10) is of no use
_PEAK = 0.66275  # max of a / cosh(a), rounded up
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclass(frozen=True)
class SmoothBudget:
    """The amount of noise: pure ε, approximate (ε, δ), or zero-concentrated ρ.

    **Guarantee.** None of its own. `SmoothMechanism` turns it into a guarantee, and spends at most
    this amount.

    >>> SmoothBudget(epsilon=1.0).pure, round(SmoothBudget(rho=0.5).pure, 3)
    (1.0, 1.044)
    """

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None) or (self.delta is not None and self.epsilon is None):
            raise BadParameter(
                "DP107",
                "the amount of noise must be stated in one way: epsilon, or epsilon and delta, or rho.",
                why="two amounts can contradict each other, and without an amount there is no noise.",
                fix="epsilon=1.0",
            )
        if self.epsilon is not None:
            check.moderate(epsilon=self.epsilon)
        if self.delta is not None:
            check.inner_probability(delta=self.delta)
        if self.rho is not None:
            check.moderate(rho=self.rho)

    @property
    def pure(self) -> float:
        """The greatest pure ε within the budget."""
        if self.epsilon is not None:
            return min(self.epsilon, _MAX_EPSILON)
        rho = self.rho or 0.0
        return largest(lambda e: e * math.tanh(e / 2) * _UP <= rho, 2 * math.sqrt(rho) + rho)

    @property
    def concentrated(self) -> float:
        """The ε whose ε²/2-zero-concentrated guarantee is ρ."""
        return math.sqrt(2 * self.rho) if self.rho is not None else 0.0


def largest(holds: Callable[[float], bool], limit: float, *, steps: int = 40) -> float:
    """The largest number up to `limit` at which a monotone condition holds; never too large."""
    return bisect(holds, yes=0.0, no=limit, steps=steps)[0]


class Family(ABC):
    """One noise distribution, with its parameter and its guarantee.

    **Guarantee.** What a subclass owes: `most` is never too large, and stated losses are never too
    small (smooth.proof.md, §§5-7).

    >>> family = SmoothLomax(4.0)
    >>> isinstance(family, Family), family.most(0.05, SmoothBudget(epsilon=1.0)) > 0
    (True, True)
    """

    @property
    @abstractmethod
    def noise(self) -> heavy.HeavyNoise:
        """The distribution of Z, drawn exactly."""

    @abstractmethod
    def most(self, t: float, budget: SmoothBudget) -> float:
        """The largest s within the budget for a t-smooth bound; 0 if there is none."""

    @abstractmethod
    def tail_bound(self, beta: float) -> float:
        """An estimate of the z with P(|Z| > z) = beta; for planning only."""

    @abstractmethod
    def slides(self, shift: float, epsilon: float, delta: float) -> bool:
        """Whether Z and Z + v are proved (ε, δ)-indistinguishable for all |v| <= shift."""

    @abstractmethod
    def dilates(self, stretch: float, epsilon: float, delta: float) -> bool:
        """Whether Z and e^u Z are proved (ε, δ)-indistinguishable for all |u| <= stretch."""


class PureFamily(Family):
    """Tails so heavy that a change of scale changes every density by a bounded factor."""

    @abstractmethod
    def loss(self, s: float, t: float) -> float:
        """The least ε for a shift s and a stretch t, rounded up."""

    @abstractmethod
    def _widest(self, t: float, epsilon: float) -> float: ...

    def most(self, t: float, budget: SmoothBudget) -> float:
        return max(0.0, self._widest(t, budget.pure) * _DOWN)

    def slides(self, shift: float, epsilon: float, delta: float) -> bool:
        return self.loss(shift, 0.0) <= epsilon * (1 + 1e-11)

    def dilates(self, stretch: float, epsilon: float, delta: float) -> bool:
        return self.loss(0.0, stretch) <= epsilon * (1 + 1e-11)


@dataclass(frozen=True)
class SmoothStudentT(PureFamily):
    """Student's t with a real number of degrees, one or more.

    **Guarantee.** Pure ε, by an exact formula for the loss; `degrees` of 1 or more.

    >>> SmoothStudentT(3.0).loss(0.3, 0.1) < 0.485
    True
    """

    degrees: float

    def __post_init__(self) -> None:
        if check.positive(degrees=self.degrees) < 1:
            raise _out_of_range_error("degrees", "at least 1", 3.0)
        self.noise  # noqa: B018 - refuses what the distribution does not know

    @property
    def noise(self) -> heavy.HeavyNoise:
        return heavy.StudentTNoise(exactly(self.degrees))

    def loss(self, s: float, t: float) -> float:
        d = float(self.degrees)

        def at(u: float) -> float:
            over = 2 * math.sinh(u / 2) ** 2 + s * s * math.exp(-u) / (2 * d)  # cosh(angle) - 1
            return (d - 1) * u / 2 + (d + 1) * math.asinh(math.sqrt(over / 2))

        return max(at(0.0), at(t)) * _UP

    def _widest(self, t: float, epsilon: float) -> float:
        d = float(self.degrees)
        angle = (2 * epsilon - (d - 1) * t) / (d + 1)
        if angle <= t:
            return 0.0
        apart = 2 * math.sinh((angle + t) / 2) * math.sinh((angle - t) / 2)
        return min(2 * math.sqrt(d) * math.sinh(epsilon / (d + 1)), math.sqrt(2 * d * math.exp(t) * apart))

    def tail_bound(self, beta: float) -> float:
        return -float(stdtrit(float(self.degrees), beta / 2))


class SmoothCauchy(SmoothStudentT):
    """Student's t with one degree: the tails of the first smooth-sensitivity mechanism.

    **Guarantee.** Pure ε, by an exact formula for the loss (Nissim, Raskhodnikova, Smith 2007, with
    a better constant).

    >>> SmoothCauchy().loss(1.0, 0.0) < 0.9625
    True
    """

    def __init__(self) -> None:
        super().__init__(1.0)


@dataclass(frozen=True)
class SmoothLomax(PureFamily):
    """The density (shape - 1)/2 · (1 + |z|)**-shape.

    **Guarantee.** Pure ε, by an exact formula for the loss; `shape` above 1.

    >>> SmoothLomax(4.0).loss(0.2, 0.05) < 1
    True
    """

    shape: float

    def __post_init__(self) -> None:
        if check.positive(shape=self.shape) <= 1:
            raise _out_of_range_error("shape", "above 1", 4.0)
        self.noise  # noqa: B018 - refuses what the distribution does not know

    @property
    def noise(self) -> heavy.HeavyNoise:
        return heavy.LomaxNoise(exactly(self.shape))

    def loss(self, s: float, t: float) -> float:
        a = float(self.shape)
        return max(a * math.log1p(s), t + a * math.log1p(s * math.exp(-t)), (a - 1) * t) * _UP

    def _widest(self, t: float, epsilon: float) -> float:
        a = float(self.shape)
        if (a - 1) * t >= epsilon or t >= epsilon:
            return 0.0
        return min(math.expm1(epsilon / a), math.exp(t) * math.expm1((epsilon - t) / a))

    def tail_bound(self, beta: float) -> float:
        return math.expm1(min(700.0, -math.log(beta) / (float(self.shape) - 1)))


class ApproximateFamily(Family):
    """Tails too light for pure privacy under a change of scale: (ε, δ) by the exact divergence."""

    divergence: hockey.Divergence  # of two members of this family

    def delta(self, epsilon: float, s: float, t: float) -> float:
        """The least δ at this ε for a shift s and a stretch t, rounded up."""
        return hockey.delta_bound(type(self).divergence, epsilon=epsilon, shift=s, stretch=t)

    def most(self, t: float, budget: SmoothBudget) -> float:
        if budget.delta is None or budget.epsilon is None or t >= budget.epsilon:
            return 0.0
        epsilon, delta = min(budget.epsilon, _MAX_EPSILON), budget.delta
        return largest(lambda s: self.delta(epsilon, s, t) <= delta, 2 * epsilon + 4, steps=20)

    def slides(self, shift: float, epsilon: float, delta: float) -> bool:
        return not shift or 0 < type(self).divergence(epsilon, 1.0, shift, 1.0) <= delta

    def dilates(self, stretch: float, epsilon: float, delta: float) -> bool:
        # With light tails no pure guarantee covers two scales.
        if not stretch or not delta:
            return not stretch
        return self.delta(epsilon, 0.0, stretch) <= delta


@dataclass(frozen=True)
class SmoothLaplace(ApproximateFamily):
    """exp(-|z|) / 2.

    **Guarantee.** (ε, δ): the least δ, bounded from above by `hockey.delta_bound`. The tails are
    too light for pure ε.

    >>> SmoothLaplace().most(0.01, SmoothBudget(epsilon=1.0, delta=1e-6)) > 0.9
    True
    """

    divergence = staticmethod(hockey.laplace)

    @property
    def noise(self) -> heavy.HeavyNoise:
        return heavy.LaplaceNoise()

    def tail_bound(self, beta: float) -> float:
        return -math.log(beta)

    def slides(self, shift: float, epsilon: float, delta: float) -> bool:
        return shift <= epsilon or super().slides(shift, epsilon, delta)


@dataclass(frozen=True)
class SmoothGaussian(ApproximateFamily):
    """The standard normal distribution.

    **Guarantee.** (ε, δ): the least δ, bounded from above by `hockey.delta_bound`. The tails are
    too light for pure ε.

    >>> SmoothGaussian().most(0.01, SmoothBudget(epsilon=1.0)) == 0
    True
    """

    divergence = staticmethod(hockey.gaussian)

    @property
    def noise(self) -> heavy.HeavyNoise:
        return heavy.GaussianNoise()

    def tail_bound(self, beta: float) -> float:
        return -float(ndtri(beta / 2))


@dataclass(frozen=True)
class ConcentratedFamily(Family):
    """zCDP: a shift costs at most `slope` nats per unit, a stretch is a shift of the logarithm."""

    sigma: float

    def __post_init__(self) -> None:
        if check.positive(sigma=self.sigma) > _MAX_SIGMA:
            raise _out_of_range_error("sigma", f"at most {_MAX_SIGMA:g}", 1.0)
        self.noise  # noqa: B018 - refuses what the distribution does not know

    @property
    @abstractmethod
    def slope(self) -> float:
        """sup |d/dz log density|, rounded up: a shift v costs at most slope · |v| of pure ε."""

    def stretch_cost(self, t: float) -> float:
        """The ε for which a stretch u with |u| <= t costs at most ρ = ε²/2, rounded up."""
        return t / float(self.sigma) * _UP

    def rho(self, s: float, t: float) -> float:
        """ρ for a shift s and a stretch t, rounded up."""
        return (self.stretch_cost(t) + self.slope * s) ** 2 / 2 * _UP

    def most(self, t: float, budget: SmoothBudget) -> float:
        return max(0.0, (budget.concentrated - self.stretch_cost(t)) / self.slope * _DOWN)

    def slides(self, shift: float, epsilon: float, delta: float) -> bool:
        return self.slope * shift <= epsilon

    def dilates(self, stretch: float, epsilon: float, delta: float) -> bool:
        # With such tails no pure guarantee covers two scales.
        if not stretch or not delta:
            return not stretch
        return privacy.concentrated(self.stretch_cost(stretch) ** 2 / 2).delta(epsilon) <= delta


class SmoothLaplaceLogNormal(ConcentratedFamily):
    """X exp(σY), X Laplace and Y standard normal (Bun, Steinke 2019, Proposition 3).

    **Guarantee.** Zero-concentrated ρ, proved, not exact.

    >>> SmoothLaplaceLogNormal(0.4).rho(0.1, 0.05) < 0.1
    True
    """

    @property
    def noise(self) -> heavy.HeavyNoise:
        return heavy.LaplaceLogNormalNoise(exactly(self.sigma))

    @property
    def slope(self) -> float:
        return math.exp(1.5 * float(self.sigma) ** 2) * _UP

    def tail_bound(self, beta: float) -> float:
        widths = np.exp(-float(self.sigma) * _NODES)
        return largest(lambda z: float(_WEIGHTS @ np.exp(-z * widths)) >= beta, 1e6)


class SmoothUniformLogNormal(ConcentratedFamily):
    """X exp(σY), X uniform on [-1, 1] and Y standard normal; the slope is the exact supremum.

    **Guarantee.** Zero-concentrated ρ, proved, not exact.

    >>> SmoothUniformLogNormal(0.5).rho(0.1, 0.05) < 0.2
    True
    """

    @property
    def noise(self) -> heavy.HeavyNoise:
        return heavy.UniformLogNormalNoise(exactly(self.sigma))

    @property
    def slope(self) -> float:
        sigma = float(self.sigma)

        # The derivative of a concave function: the logarithm of the slope at v.
        def derivative(v: float) -> float:
            return _hazard(v) - v - sigma

        v = largest(lambda x: derivative(x - sigma - 1) >= 0, 1 / sigma + sigma + 2) - sigma - 1
        log_slope = -sigma * v + math.log(_hazard(v))
        return math.exp(sigma**2 + log_slope + abs(derivative(v)) * 1e-6) / sigma * (1 + 1e-9)

    def tail_bound(self, beta: float) -> float:
        sigma = float(self.sigma)

        def tail(z: float) -> float:
            x = math.log(z) / sigma
            return float(ndtr(-x) - z * math.exp(sigma**2 / 2) * ndtr(-x - sigma))

        return largest(lambda z: tail(max(z, 1e-9)) >= beta, 1e6)


class SmoothArsinhNormal(ConcentratedFamily):
    """sinh(σY) / σ, Y standard normal; the constants are proved in smooth.proof.md, §7.

    **Guarantee.** Zero-concentrated ρ, proved, not exact.

    >>> SmoothArsinhNormal(0.5).rho(0.1, 0.05) < 0.3
    True
    """

    @property
    def noise(self) -> heavy.HeavyNoise:
        return heavy.ArsinhNormalNoise(exactly(self.sigma))

    @property
    def slope(self) -> float:
        return (_PEAK / float(self.sigma) + float(self.sigma) / 2) * _UP

    def stretch_cost(self, t: float) -> float:
        ratio = t / float(self.sigma)
        return math.sqrt(2 * max(t, ratio**2 / 2 + math.sqrt(2 / math.pi) * ratio)) * _UP

    def tail_bound(self, beta: float) -> float:
        sigma = float(self.sigma)
        return math.sinh(min(700.0, -sigma * float(ndtri(beta / 2)))) / sigma


@check.arguments
def is_admissible(noise: Family, alpha: float, beta: float, epsilon: float, delta: float = 0.0) -> bool:
    """Whether the noise is proved (α, β)-admissible at (ε, δ).

    The definition is 2.5 of Nissim, Raskhodnikova, Smith 2007.

    **Guarantee.** True only if a shift by up to α and a stretch by up to e^β both keep (ε/2, δ/2).
    For the pure families at δ = 0, and for Laplace and Gaussian up to the rounding of `hockey`,
    False means that the noise is not admissible. The lemma of that paper gives (ε, δ (1 +
    e^(ε/2))/2), not (ε, δ); `Family.most` is better in every respect.

    >>> is_admissible(SmoothCauchy(), 1 / 6, 1 / 6, epsilon=1.0)
    True
    >>> is_admissible(SmoothGaussian(), 0.1, 0.01, epsilon=1.0)
    False
    """
    check_family("noise", noise)
    shift, stretch = check.not_negative(alpha=alpha), check.not_negative(beta=beta)
    half_epsilon, half_delta = check.positive(epsilon=epsilon) / 2, check.delta(delta=delta) / 2
    return noise.slides(shift, half_epsilon, half_delta) and noise.dilates(stretch, half_epsilon, half_delta)


def check_family(name: str, value: object) -> None:
    """Validates that the value is a noise family."""
    if not isinstance(value, Family):
        raise BadParameter(
            "DP104",
            f"{name} must be a family of discreet.mechanisms.smooth, not {type(value).__name__}.",
            why="each family has its own theorem.",
            fix=f"{name}=smooth.SmoothStudentT(3.0)",
        )


def _hazard(v: float) -> float:
    """φ(v) / Φ(-v)."""
    return math.exp(-v * v / 2 - float(log_ndtr(-v))) / math.sqrt(2 * math.pi)


def _out_of_range_error(name: str, where: str, instead: float) -> BadParameter:
    return BadParameter(
        "DP102",
        f"{name} must be {where}.",
        why="the formula of the loss is proved only there.",
        fix=f"pass {name}={instead}",
    )
