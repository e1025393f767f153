# SPDX-License-Identifier: Apache-2.0
"""Small compositions against direct integrals in many digits: the truth lies between both ends of every bracket."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from mpmath import binomial, exp, expm1, fsum, log, log1p, mpf, ncdf, npdf, polyval, workdps

from discreet import privacy

#: Good to a few parts in 10^16.
_NODES = [(mpf(at), mpf(weight)) for at, weight in zip(*np.polynomial.legendre.leggauss(16), strict=True)]


def gaussian_profile(mu: mpf, epsilon: mpf) -> mpf:
    return ncdf(mu / 2 - epsilon / mu) - exp(epsilon) * ncdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("spare", [1e-1, 1e-4, 1e-7, 1e-9, 1e-11, 1e-13, 4e-16])
@pytest.mark.parametrize("revealed", [1e-6, 1e-3, 0.1])
@pytest.mark.parametrize("mu", [0.25, 1.0])
def test_brackets_hold_where_almost_all_of_delta_is_revealed_anyway(
    mu: float, revealed: float, spare: float
) -> None:
    """What is left of δ is then a difference, and rounding alone may be most of it."""
    delta = revealed * (1 + spare)
    with workdps(50):
        kept, odds = 1 - mpf(revealed), exp(mpf("0.5"))
        told, told_not = odds / (1 + odds), 1 / (1 + odds)

        def leaky(epsilon: mpf) -> mpf:
            return mpf(revealed) + kept * gaussian_profile(mpf(mu), epsilon)

        def approximate(epsilon: mpf) -> mpf:
            near, far = (gaussian_profile(mpf(mu), epsilon + side * mpf("0.5")) for side in (-1, 1))
            return mpf(revealed) + kept * (told * near + told_not * far)

        for part, true in (
            (privacy.leaky(revealed), leaky),
            (privacy.approximate(0.5, revealed), approximate),
        ):
            bound = (privacy.gaussian(1 / mu) + part).bound(delta=delta)
            assert bound.upper == float("inf") or true(mpf(bound.upper)) <= mpf(delta)
            assert bound.lower == 0 or true(mpf(bound.lower)) >= mpf(delta)


@pytest.mark.parametrize("spare", [1e-1, 1e-3, 1e-6, 1e-9, 1e-12, 1e-14])
@pytest.mark.parametrize("noise", [0.25, 1.0, 4.0, 128.0, 2.0**20, 2.0**24])
def test_brackets_hold_where_epsilon_is_next_to_nothing(noise: float, spare: float) -> None:
    """δ just below its value at ε = 0; each noise is a power of two, so that its inverse is exact."""
    with workdps(60):
        mu = 1 / mpf(noise)
        delta = float(gaussian_profile(mu, mpf(0))) * (1 - spare)
        bound = privacy.gaussian(noise).bound(delta=delta)
        assert gaussian_profile(mu, mpf(bound.upper)) <= mpf(delta)
        assert bound.lower == 0 or gaussian_profile(mu, mpf(bound.lower)) >= mpf(delta)
        at_zero = privacy.gaussian(noise).bound(epsilon=0.0)
        assert at_zero.lower <= gaussian_profile(mu, mpf(0)) <= at_zero.upper


@pytest.mark.parametrize("order", [1.5, 2.0, 10.0, 100.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("outcomes", [2, 10**6, 10**9, 10**12])
def test_the_curve_of_a_response_with_many_outcomes_is_never_too_low(
    outcomes: int, epsilon: float, order: float
) -> None:
    """Great losses that are rare: the mean is next to 1."""
    with workdps(60):
        odds, power = exp(mpf(epsilon)), mpf(order) - 1
        p, q = odds / (odds + outcomes - 1), 1 / (odds + outcomes - 1)
        true = log1p(p * (odds**power - 1) + q * (odds**-power - 1)) / power
        assert privacy.randomized_response(epsilon, outcomes=outcomes).renyi(order=order) >= true


@dataclass(frozen=True)
class Step:
    """Gaussian noise on a Poisson sample, for a group of `size` units."""

    noise: float
    rate: float
    size: int

    @property
    def guarantee(self) -> privacy.Guarantee:
        return privacy.gaussian(self.noise).sampled(self.rate).group(self.size)

    @property
    def mu(self) -> mpf:
        return 1 / mpf(self.noise)

    @property
    def weights(self) -> list[mpf]:
        rate, size = mpf(self.rate), self.size
        return [binomial(size, j) * rate**j * (1 - rate) ** (size - j) for j in range(size + 1)]

    def log_ratio(self, x: mpf) -> mpf:
        factors = [weight * exp(-((j * self.mu) ** 2) / 2) for j, weight in enumerate(self.weights)]
        return log(polyval(factors[::-1], exp(self.mu * x)))

    def point(self, loss: mpf) -> float:
        """About where log r is that. Doubles will do: a profile is greatest there, so it hardly depends on the point."""
        if loss <= self.floor:
            return -math.inf
        j, logs = np.arange(self.size + 1), [float(log(weight)) for weight in self.weights]
        fixed, slopes = np.array(logs) - (j / self.noise) ** 2 / 2, j / self.noise
        low, high = -60.0, 60.0 + self.size / self.noise
        for _ in range(60):
            middle = (low + high) / 2
            above = np.logaddexp.reduce(fixed + slopes * middle) > float(loss)
            low, high = (low, middle) if above else (middle, high)
        return (low + high) / 2

    @property
    def floor(self) -> mpf:
        return self.size * log1p(-mpf(self.rate))

    def masses_above(self, x: mpf) -> tuple[mpf, mpf]:
        return sum(p * ncdf(j * self.mu - x) for j, p in enumerate(self.weights)), ncdf(-x)

    def masses_below(self, x: mpf) -> tuple[mpf, mpf]:
        return sum(p * ncdf(x - j * self.mu) for j, p in enumerate(self.weights)), ncdf(x)

    def profile(self, epsilon: mpf, *, removed: bool) -> mpf:
        x = self.point(epsilon if removed else -epsilon)
        if math.isinf(x):
            return -expm1(epsilon) if removed else mpf(0)
        if removed:
            p, q = self.masses_above(x)
            return p - exp(epsilon) * q
        p, q = self.masses_below(x)
        return q - exp(epsilon) * p


def _integral(density: Callable[[mpf], mpf], start: float, end: float) -> mpf:
    """By Gauss and Legendre with 16 nodes."""
    half, middle = (mpf(end) - mpf(start)) / 2, (mpf(end) + mpf(start)) / 2
    return half * fsum(weight * density(middle + half * at) for at, weight in _NODES)


def two_steps(first: Step, second: Step, epsilon: mpf, *, removed: bool) -> mpf:
    """The first step's outcome is integrated over; given it, the second one has to make up the rest of the loss.

    The second one is that with greater losses: its profile has no sharp bend.
    """
    first, second = sorted((first, second), key=lambda step: step.size * step.rate / step.noise)

    def density(x: mpf) -> mpf:
        loss = first.log_ratio(x)
        if removed:
            return npdf(x) * exp(loss) * second.profile(epsilon - loss, removed=True)
        return npdf(x) * second.profile(epsilon + loss, removed=False)

    turning = first.point(epsilon - second.floor if removed else second.floor - epsilon)
    top = 10 + first.size / first.noise
    ends = [-10.0, *(float(end) for end in np.arange(-9.5, top, 0.5)), top]
    ends += [turning] if -10 < turning < top else []
    return fsum(piece for piece in map(partial(_integral, density), sorted(ends)[:-1], sorted(ends)[1:]))


def with_response(first: Step, second: Step, told: float, epsilon: float, *, removed: bool) -> mpf:
    """The same, and randomized response."""
    odds = exp(mpf(told))
    near, far = (
        two_steps(first, second, mpf(epsilon) + side * mpf(told), removed=removed) for side in (-1, 1)
    )
    return (odds * near + far) / (1 + odds)


def check_two_steps(draw: np.random.Generator) -> None:
    first, second = (
        Step(
            float(10 ** draw.uniform(-0.4, 1)), float(10 ** draw.uniform(-4, -0.1)), int(draw.integers(1, 4))
        )
        for _ in range(2)
    )
    told = float(draw.choice([0.0, 0.3]))
    run = first.guarantee + second.guarantee
    run = run + privacy.randomized_response(told) if told else run
    epsilon = run.epsilon(delta=float(10 ** draw.uniform(-9, -1.5)))
    if not epsilon:
        return
    bound = run.bound(epsilon=epsilon)
    with workdps(30):
        true = max(with_response(first, second, told, epsilon, removed=way) for way in (True, False))
    # the reference is good to about 14 digits
    slack = mpf(10) ** -13 * true
    assert bound.lower - slack <= true <= bound.upper + slack, (first, second, told, epsilon, bound, true)
    assert math.isfinite(bound.upper)


@pytest.mark.parametrize("seed", [1])
def test_the_truth_of_two_steps_lies_in_their_bracket(seed: int) -> None:
    check_two_steps(np.random.default_rng(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 22))
def test_the_truth_of_two_steps_of_many_kinds_lies_in_their_bracket(seed: int) -> None:
    check_two_steps(np.random.default_rng(seed))
