# SPDX-License-Identifier: Apache-2.0
"""δ(ε) of objective perturbation by brute force: densities of the exact minimiser, integrated over all weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from mpmath import mp, mpf, ncdf, quad, workdps
from scipy.special import expit, softmax

from discreet import privacy
from discreet.learn.budget import FitBudget
from discreet.learn.losses import Hinge, Huber, Logistic, Softmax
from discreet.learn.objective import (
    CornerCurve,
    Curve,
    LogisticCurve,
    _corners,
    _least_ridge,
    guarantee_from_curve,
)

Reals = npt.NDArray[np.float64]
#: slope and curvature of a loss at a margin, for a record of norm 1 with the label +1
Shape = Callable[[Reals], tuple[Reals, Reals]]


def _logistic(score: Reals) -> tuple[Reals, Reals]:
    return -expit(-score), expit(score) * expit(-score)


def _hinge(score: Reals) -> tuple[Reals, Reals]:
    return -np.clip(1.5 - score, 0.0, 1.0), (np.abs(1.0 - score) < 0.5).astype(float)


def _huber(score: Reals) -> tuple[Reals, Reals]:
    return np.clip(score, -1.0, 1.0), (np.abs(score) < 1.0).astype(float)


def _gap(p: Reals, q: Reals, epsilon: float, area: float) -> float:
    return float((np.maximum(p - math.exp(epsilon) * q, 0.0) * area).sum())


@dataclass(frozen=True)
class _Line:
    """The mechanism in one dimension, without error; a pull is what very many very short rows do, which bend nothing."""

    shape: Shape
    ridge: float
    sigma: float

    def density(self, rows: list[float], pull: float, w: Reals) -> Reals:
        push, bend = -self.ridge * w + pull, np.full_like(w, self.ridge)
        for x in rows:
            slope, curve = self.shape(x * w)
            push -= x * slope
            bend += x * x * curve
        return bend * np.exp(-push * push / (2 * self.sigma**2)) / (self.sigma * math.sqrt(2 * math.pi))

    def delta(self, one: list[float], other: list[float], pull: float) -> Callable[[float], float]:
        """The greater δ of both directions for one data set against another."""
        reach = (12 * self.sigma + abs(pull) + len(one) + 2) / self.ridge
        w = np.linspace(-reach, reach, 40_001)
        step = float(w[1] - w[0])
        p, q = self.density(one, pull, w), self.density(other, pull, w)
        assert abs(p.sum() * step - 1) < 1e-3
        return lambda epsilon: max(_gap(p, q, epsilon, step), _gap(q, p, epsilon, step))


_PULLS = (0.0, 1.0, 3.0, -2.0, 8.0, -8.0, 20.0)
_ROWS: tuple[list[float], ...] = ([], [0.5, -0.3], [1.0, 1.0, -1.0])


def _worst(line: _Line, curve: Curve, one: list[float], other: list[float]) -> float:
    """The greatest ratio of the true δ to the curve, over data sets that have one or the other, and over ε."""
    return max(
        truth(at) / curve.delta(at)
        for rows in _ROWS
        for truth in (line.delta(rows + one, rows + other, pull) for pull in _PULLS)
        for at in (0.0, 0.2, 0.7, 1.0, 1.5, 2.5)
    )


@pytest.mark.parametrize(("epsilon", "mu"), [(1.0, 0.5), (1.0, 1.0), (2.0, 1.0), (0.2, 0.4), (0.7, 1.5)])
def test_logistic_regression_is_never_above_its_curve_and_touches_it(epsilon: float, mu: float) -> None:
    """Rows come and go, in one dimension: the condition on the ridge makes δ(ε) that of the Gaussian mechanism."""
    kappa = epsilon + mu * mu / 2
    curve = LogisticCurve(mu, kappa - mu * mu / 2)
    line = _Line(_logistic, 1 / kappa, 1 / mu)
    worst = max(_worst(line, curve, [x], []) for x in (1.0, -1.0, 0.6))
    assert worst <= 1 + 1e-4
    far = line.delta([1.0], [], -30.0)
    assert far(epsilon) / curve.delta(epsilon) > 0.99
    assert curve.delta(epsilon) == pytest.approx(privacy.gaussian(noise=1 / mu).delta(epsilon), rel=1e-6)


def test_the_condition_on_the_ridge_is_needed() -> None:
    """With an eighth of the ridge the same noise reveals several times more than the Gaussian mechanism."""
    mu, epsilon = 0.5, 1.0
    kappa = 8 * (epsilon + mu * mu / 2)
    found = max(
        _Line(_logistic, 1 / kappa, 1 / mu).delta([1.0], [], pull)(epsilon) for pull in (-3.0, -2.0, 0.0)
    )
    assert found > 4 * privacy.gaussian(noise=1 / mu).delta(epsilon)
    assert found <= LogisticCurve(mu, kappa - mu * mu / 2).delta(epsilon)


@workdps(30)
def test_the_part_of_the_curve_below_its_bend_is_the_integral_that_it_stands_for() -> None:
    """E(1 - e^{ε - g(A)})₊ for A ~ N(μ²/2, μ²) and g(A) = max over s in [0, 1] of sA + s(1 - s)·bend."""
    for mu, bend in ((0.27, 1.0), (1.0, 2.0), (2.0, 0.5)):
        for epsilon in (0.0, 0.3 * bend, 0.9 * bend):

            def term(a: mpf, epsilon: float = epsilon, mu: float = mu, bend: float = bend) -> mpf:
                loss = a if a > bend else 0 if a < -bend else (a + bend) ** 2 / (4 * bend)
                density = mp.exp(-((a - mpf(mu) ** 2 / 2) ** 2) / (2 * mpf(mu) ** 2)) / (
                    mu * mp.sqrt(2 * mp.pi)
                )
                return density * max(mpf(0), 1 - mp.exp(epsilon - loss))

            start = 2 * math.sqrt(bend * epsilon) - bend
            truth = quad(term, [start, bend, bend + 4 * mu, bend + 30 * mu])
            assert LogisticCurve(mu, bend).delta(epsilon) == pytest.approx(float(truth), rel=3e-9)
            assert LogisticCurve(mu, bend).delta(epsilon) >= float(truth)


def test_two_dimensions_with_other_records_across() -> None:
    """The same in the plane, where other records bend the objective in other directions."""
    mu, epsilon = 1.0, 1.0
    kappa = epsilon + mu * mu / 2
    axis = np.linspace(-16, 16, 401)
    w = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    area = (axis[1] - axis[0]) ** 2
    curve = LogisticCurve(mu, kappa - mu * mu / 2)
    for rows, pull in (
        ([], (0.0, 0.0)),
        ([(0.6, 0.8), (-0.8, 0.6)], (1.0, -2.0)),
        ([(0.0, 1.0), (0.7, -0.7), (0.1, 0.1)], (-3.0, 0.0)),
    ):
        distributions = [_plane(w, [*rows, *new], pull, 1 / kappa, 1 / mu) for new in ([], [(1.0, 0.0)])]
        for at in (0.2, epsilon, 2.0):
            found = max(
                _gap(distributions[0], distributions[1], at, area),
                _gap(distributions[1], distributions[0], at, area),
            )
            assert found <= curve.delta(at) * (1 + 1e-3)


def _plane(
    w: Reals, rows: list[tuple[float, float]], pull: tuple[float, float], ridge: float, sigma: float
) -> Reals:
    push, bend = np.array(pull) - ridge * w, np.tile(ridge * np.eye(2), (len(w), 1, 1))
    for row in rows:
        x = np.array(row)
        slope, curve = _logistic(w @ x)
        push = push - slope[:, None] * x
        bend += curve[:, None, None] * np.outer(x, x)
    square = (push * push).sum(axis=1) / (2 * sigma * sigma)
    return np.asarray(np.linalg.det(bend) * np.exp(-square) / (2 * math.pi * sigma * sigma))


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize(("shape", "kind"), [(_logistic, Logistic), (_hinge, Hinge), (_huber, Huber)])
def test_other_losses_and_replaced_records_are_never_above_theirs(
    shape: Shape, kind: type, *, replaced: bool
) -> None:
    mu, shift = 0.7, 0.4
    ridge = _least_ridge(kind, 1, shift)
    corners = _corners(kind, 1.0, 1, replaced=replaced)
    curve = CornerCurve(tuple((count, length * mu) for count, length in corners), shift)
    for one in ([1.0], [-1.0], [0.5]):
        worst = _worst(_Line(shape, ridge, 1 / mu), curve, one, [-one[0] * 0.9] if replaced else [])
        assert 0.01 < worst <= 1 + 1e-4


@pytest.mark.parametrize("replaced", [False, True])
def test_the_softmax_of_three_classes_is_never_above_its_curve(*, replaced: bool) -> None:
    """One feature, three classes. The sum of the weights has the same distribution for all, so a plane is integrated."""
    mu, shift, classes = 0.5, 0.5, 3
    sigma, ridge = 1 / mu, _least_ridge(Softmax, classes, shift)
    axis = np.linspace(-26, 26, 241)
    v = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    basis = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) / np.sqrt([[2.0], [6.0]])

    def distribution(records: list[tuple[float, int]], pull: tuple[float, float]) -> Reals:
        push, bend = np.array(pull) - ridge * v, np.tile(ridge * np.eye(2), (len(v), 1, 1))
        for x, label in records:
            p = softmax(x * v @ basis, axis=1)
            push = push - x * (p - np.eye(classes)[label]) @ basis.T
            inner = np.einsum("nk,kl->nkl", p, np.eye(classes)) - np.einsum("nk,nl->nkl", p, p)
            bend += x * x * np.einsum("ak,nkl,bl->nab", basis, inner, basis)
        square = (push * push).sum(axis=1) / (2 * sigma * sigma)
        return np.asarray(np.linalg.det(bend) * np.exp(-square) / (2 * math.pi * sigma * sigma))

    corners = _corners(Softmax, 0.0, classes, replaced=replaced)
    curve = CornerCurve(tuple((count, length * mu) for count, length in corners), shift)
    area = (axis[1] - axis[0]) ** 2
    for rest in ([], [(1.0, 1), (-0.5, 2)]):
        for pull in ((0.0, 0.0), (3.0, -2.0)):
            one = distribution([*rest, (1.0, 0)], pull)
            other = distribution([*rest, (-1.0, 0)] if replaced else list(rest), pull)
            for at in (0.0, 0.5, 1.5):
                assert max(_gap(one, other, at, area), _gap(other, one, at, area)) <= curve.delta(at) * (
                    1 + 1e-3
                )


_CURVES: list[Curve] = [
    LogisticCurve(0.27, 1.0),
    LogisticCurve(1.2, 0.5),
    LogisticCurve(0.01, 0.02),
    CornerCurve(((1, 0.3),), 0.25),
    CornerCurve(((2, 0.4), (1, 0.8)), 0.5),
    CornerCurve(((9, 0.3),), 0.2),
]


@pytest.mark.parametrize("curve", _CURVES)
def test_the_guarantee_goes_through_its_point_and_stays_above_the_curve_beyond(curve: Curve) -> None:
    budget = FitBudget.of(epsilon=1.0, delta=1e-5)
    through = 1.0 if curve.delta(1.0) > 1e-9 else 0.05
    found = guarantee_from_curve(curve, through=through, down_to=1e-6, budget=budget)
    assert found.delta(through) == pytest.approx(curve.delta(through), rel=1e-6)
    for share in np.linspace(1.0, 3.0, 15):
        assert curve.delta(share * through) * (1 - 1e-9) <= found.delta(share * through)
        assert found.delta(share * through) <= 1.05 * curve.delta(share * through) + 1e-12


def test_the_guarantee_is_never_below_the_truth() -> None:
    """Also where the curve is too steep for any pair and was lowered to what (ε, δ) implies elsewhere."""
    mu, kappa = 0.5, 1.5
    curve, budget = LogisticCurve(mu, kappa - mu * mu / 2), FitBudget.of(epsilon=1.0, delta=1e-5)
    found = guarantee_from_curve(curve, through=1.0, down_to=1e-5, budget=budget)
    assert found.delta(0.0) < curve.delta(0.0) * (1 + 1e-9)
    for pull in _PULLS:
        truth = _Line(_logistic, 1 / kappa, 1 / mu).delta([1.0], [], pull)
        for at in (0.0, 0.05, 0.1, 0.3, 0.6, 1.0, 2.0):
            assert truth(at) <= found.delta(at) * (1 + 1e-4)


def test_the_guarantee_composes_like_the_gaussian_that_it_hides() -> None:
    """Ten fits: beyond the bend the curve is the Gaussian's, so ten of them cost about what ten Gaussians do."""
    budget = FitBudget.of(epsilon=1.0, delta=1e-5)
    mu = budget.mu
    one = guarantee_from_curve(LogisticCurve(mu, 1.0), through=1.0, down_to=1e-5, budget=budget)
    ten, gaussian = (10 * one).epsilon(delta=1e-5), (10 * privacy.gaussian(noise=1 / mu)).epsilon(delta=1e-5)
    assert gaussian < ten < 2 * gaussian
    assert ten < (10 * privacy.approximate(1.0, 1e-6)).epsilon(delta=1e-5)


def test_a_guarantee_from_a_curve_survives_storage() -> None:
    budget = FitBudget.of(epsilon=1.0, delta=1e-5, relation="replace", unit="patient")
    found = guarantee_from_curve(LogisticCurve(0.27, 1.0), through=1.0, down_to=1e-5, budget=budget)
    assert privacy.from_json(found.to_json()) == found
    assert (found.unit.relation, found.unit.protects) == ("replace", "patient")


@workdps(40)
def test_normal_tails_of_the_module_are_those_of_the_oracle() -> None:
    for mu, epsilon in ((0.3, 1.0), (1.0, 0.5), (0.05, 0.2)):
        truth = ncdf(-mpf(epsilon) / mu + mpf(mu) / 2) - mp.exp(epsilon) * ncdf(
            -mpf(epsilon) / mu - mpf(mu) / 2
        )
        found = CornerCurve(((1, mu),), 0.0).delta(epsilon)
        assert float(truth) <= found <= float(truth) * (1 + 2e-9)
