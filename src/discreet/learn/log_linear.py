# SPDX-License-Identifier: Apache-2.0
"""Regressions whose logarithm is linear in the features: counts (Poisson) and positive amounts
(gamma).

**Guarantee.** Three releases of 3 % of the budget each say where the targets lie, what their mean
is, and at what level the fit has to stand; the rest is the descent of `whitened.py`. Together they
are the Gaussian mechanism that the budget allows.

Why it holds: log_linear.proof.md. A record's gradient is clipped whatever its loss is, so the proof
of the descent applies unchanged.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score
from sklearn.utils import Tags

from discreet import noise as exact
from discreet.errors import BadParameter
from discreet.exact import exactly
from discreet.learn.arrays import Reals, RowTable
from discreet.learn.descent import CellRows, score_blocks
from discreet.learn.features import BITS, Box
from discreet.learn.glm import LinearModel
from discreet.learn.inputs import Bounds, Matrix, Target, as_target, target_interval
from discreet.learn.losses import Gamma, LogLinear, Loss, Poisson
from discreet.learn.ranges import count_shells, noisy_counts, outer_shell
from discreet.learn.solvers import WIDEST, FittedWeights, Problem, Solver, solver_for
from discreet.learn.whitened import WhitenedDescent
from discreet.privacy.guarantee import Guarantee

__all__ = ["GammaRegressor", "LogLinearDescent", "PoissonRegressor"]


# The share of each of the three releases beside the descent.
_SHARE = 0.03
_SHELLS = 20
#: Below this signal, only the mean is fitted.
_HIDDEN = 10.0
# The noise of the level, as a fraction of the sum of the targets.
_LEVEL_NOISE = 0.02
# How far beyond that cap a target may count for the level.
_ABOVE_CAP = 4.0
_CELLS = 1 << 20
_UP = 1 + 1e-12


@dataclass(frozen=True)
class _Sizes:
    """Released: a number that few targets exceed, and about what they add up to."""

    cap: float
    total: float


@dataclass(frozen=True)
class LogLinearDescent(Solver):
    """The whitened descent with a logarithmic link, for targets from 0 to `greatest`."""

    greatest: float
    name: str = "whitened"

    def guarantee_for(self, problem: Problem) -> Guarantee:
        beside = problem.budget.gaussian(problem.budget.noise_multipliers(_SHARE)[0])
        return 3 * beside + WhitenedDescent().guarantee_for(_rest(problem))

    def fit(self, problem: Problem) -> FittedWeights:
        targets = problem.targets[problem.keep, 0]
        cap, count = self._cap(problem, targets)
        mean = self._mean(problem, targets, cap, count)
        assert isinstance(problem.loss, LogLinear)
        loss = problem.loss.about(cap, mean)
        if count * problem.budget.mu / problem.box.width < _HIDDEN:
            weights = np.zeros((problem.box.width, 1))
            _raise_level(weights, problem.box, math.log(mean))
            note = f"About {count:.0f} records are too few for slopes at this budget, so only the mean was fitted."
            return FittedWeights(weights, count, is_too_noisy=count <= 1, notes=(note,))
        fit = WhitenedDescent().fit(replace(_rest(problem), loss=loss))
        weights = fit.weights.copy()
        _raise_level(weights, problem.box, self._level(problem, targets, weights, _Sizes(cap, count * mean)))
        return replace(fit, weights=weights)

    def explain(self, problem: Problem) -> list[str]:
        return [
            f"{3 * _SHARE:.0%} of the budget released the sizes of targets, their mean, and the level of the fit.",
            *WhitenedDescent().explain(problem),
        ]

    def _cap(self, problem: Problem, targets: Reals) -> tuple[float, float]:
        """A number that few targets exceed, and the number of records."""
        spread = _multiplier(problem) * (math.sqrt(2) if problem.budget.relation == "replace" else 1.0)
        counts = noisy_counts(count_shells(targets, self.greatest, _SHELLS), spread)
        known = problem.known_count
        total = max(float(counts.sum()), 1.0) if known is None else float(max(known, 1))
        return self.greatest * 2.0 ** -outer_shell(counts, spread), total

    def _mean(self, problem: Problem, targets: Reals, cap: float, count: float) -> float:
        """The mean of the targets, each counted up to `cap`."""
        spread = _multiplier(problem) * _CELLS * _UP
        cells = int(np.trunc(np.clip(targets / cap, 0.0, 1.0) * _CELLS).sum())
        noisy = (cells + int(exact.rounded_gaussian(exactly(spread)))) / _CELLS
        return cap * min(1.0, max(noisy, 2 * spread / _CELLS, 1e-3 * count) / count)

    def _level(self, problem: Problem, targets: Reals, weights: Reals, sizes: _Sizes) -> float:
        """The logarithm by which predictions are too low on average: clipped gradients see large
        targets too rarely.
        """
        multiplier = _multiplier(problem) * math.sqrt(2)
        largest = min(_ABOVE_CAP * sizes.cap, _LEVEL_NOISE * sizes.total / multiplier)
        cap = min(self.greatest, max(largest, 2.0**-40 * self.greatest))
        rows = CellRows.of(problem.cells(), size=2.0**-BITS, width=problem.box.width)
        log_cap = math.log(cap)
        predicted = 0
        for _, scores, _ in score_blocks(rows, weights):
            # a function of each row; what overflows counts as the cap
            predicted += int(np.trunc(np.exp(np.minimum(scores - log_cap, 0.0)) * _CELLS).sum())
        observed = int(np.trunc(np.clip(targets / cap, 0.0, 1.0) * _CELLS).sum())
        spread = multiplier * _CELLS * _UP
        noisy = np.array([observed, predicted]) + exact.rounded_gaussian(exactly(spread), 2)
        if noisy[1] <= 4 * spread:
            return 0.0
        return math.log(min(2.0, max(0.5, noisy[0] / noisy[1])))


def _rest(problem: Problem) -> Problem:
    return replace(problem, budget=problem.budget.part(1 - 3 * _SHARE))


def _multiplier(problem: Problem) -> float:
    return problem.budget.noise_multipliers(_SHARE)[0]


def _raise_level(weights: Reals, box: Box, by: float) -> None:
    """Add to the score of every row."""
    weights[-1] += by * box.length / box.constant


@dataclass(kw_only=True, repr=False, eq=False)
class LogLinearRegressor(RegressorMixin, LinearModel):  # type: ignore[misc]  # scikit-learn has no types
    """A positive number whose logarithm is one linear score."""

    solver: Literal["auto", "whitened"] = "auto"
    target_bounds: Bounds | None = None
    _solvers: ClassVar[tuple[str, ...]] = ("whitened",)
    _power: ClassVar[int]

    def fit(self, X: Matrix, y: Target) -> Self:
        """Charge the cost, then fit the model to rows `X` and targets `y`."""
        low, high = self._target_ends()
        matrix = self._matrix(X, reset=True)
        # A warning would reveal a value.
        with np.errstate(all="ignore"):
            targets = as_target(y, matrix.shape[0])
        targets[np.isnan(targets)] = low / 2 + high / 2
        targets = np.clip(targets, low, high)[:, None]
        keep = np.ones(len(targets), bool)
        slopes, intercept = self._learn(matrix, targets, keep, self._loss(), inference=False)
        self.coef_, self.intercept_ = slopes[0], float(intercept[0])
        self._half_ = 1.0
        return self

    def predict(self, X: Matrix) -> Reals:
        """The expected target of each row."""
        # far beyond any target
        return np.exp(np.minimum(self._scores(X), 700.0))

    def score(self, X: Matrix, y: Target, sample_weight: Reals | None = None) -> float:
        """The fraction of the deviance that is explained, as scikit-learn defines it; free where
        the rows are not private.
        """
        return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=self._power))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    @abstractmethod
    def _loss(self) -> Loss:
        """The loss, before anything is known of the targets."""

    @abstractmethod
    def _target_ends(self) -> tuple[float, float]:
        """The declared ends of the target."""

    def _solver_of(self, matrix: RowTable, box: Box) -> Solver:
        if box.width > WIDEST + 1:
            raise BadParameter(
                "DP102",
                f"{type(self).__name__} takes at most {WIDEST} features.",
                why="it releases the sums of products of all features, which would be mostly noise.",
                fix="choose fewer features without looking at the data, or use LinearRegression(solver='gradient')",
            )
        solver_for(self.solver, self._solvers, matrix, box)
        return LogLinearDescent(self._target_ends()[1])


class PoissonRegressor(LogLinearRegressor):
    """Counts whose expected logarithm is linear in the features.

    **Guarantee.** The guarantee of `LinearRegression`: `guarantee_` holds for the coefficients and
    for everything computed from them. Targets are clipped to `target_bounds`, and NaN counts as
    their middle.

    Why it holds: log_linear.proof.md.

    What would break it: bounds or an ε that were chosen by looking at the data.

    Parameters: those of `LinearRegression` without `inference`. `target_bounds` start at 0 or
    above; the upper end may be generous, because the sizes of the targets are released first.

    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 4000).reshape(-1, 1)
    >>> y = np.random.default_rng(0).poisson(np.exp(1 + X[:, 0]))
    >>> model = PoissonRegressor(epsilon=1, delta=1e-5, bounds=(-1, 1), target_bounds=(0, 50))
    >>> bool(abs(model.fit(X, y).coef_[0] - 1) < 0.4)
    True
    """

    _power: ClassVar[int] = 1

    def _loss(self) -> Loss:
        return Poisson()

    def _target_ends(self) -> tuple[float, float]:
        return _positive_ends(self.target_bounds, is_zero_allowed=True)


class GammaRegressor(LogLinearRegressor):
    """Positive amounts whose expected logarithm is linear in the features, and whose errors grow in
    proportion to them.

    **Guarantee.** The guarantee of `PoissonRegressor`.

    Why it holds: log_linear.proof.md.

    What would break it: bounds or an ε that were chosen by looking at the data.

    Parameters: those of `PoissonRegressor`; `target_bounds` start above 0.

    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 4000).reshape(-1, 1)
    >>> y = np.exp(1 + X[:, 0]) * np.random.default_rng(0).gamma(4, 0.25, 4000)
    >>> model = GammaRegressor(epsilon=1, delta=1e-5, bounds=(-1, 1), target_bounds=(0.01, 50))
    >>> bool(abs(model.fit(X, y).coef_[0] - 1) < 0.4)
    True
    """

    _power: ClassVar[int] = 2

    def _loss(self) -> Loss:
        return Gamma()

    def _target_ends(self) -> tuple[float, float]:
        return _positive_ends(self.target_bounds, is_zero_allowed=False)


def _positive_ends(target_bounds: Bounds | None, *, is_zero_allowed: bool) -> tuple[float, float]:
    low, high = target_interval(target_bounds)
    if low > 0 or (is_zero_allowed and low == 0):
        return low, high
    least = "at 0 or above" if is_zero_allowed else "above 0"
    raise BadParameter(
        "DP102",
        f"target_bounds must start {least}.",
        why="the expected target is an exponential, which is never negative.",
        fix=f"target_bounds=({0 if is_zero_allowed else high / 1000:g}, {high:g})"
        if high > 0
        else "use LinearRegression",
    )
