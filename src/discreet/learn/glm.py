# SPDX-License-Identifier: Apache-2.0
"""Linear models: what classifiers and regressions share whose score is linear in the features.

**Guarantee.** `fit` charges what its solver will reveal, and then draws it. The coefficients are a
function of that alone.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from sklearn.base import ClassifierMixin, RegressorMixin

from discreet import check
from discreet.learn.arrays import Bools, Reals, RealTable, RowTable, Values
from discreet.learn.base import PrivateEstimator, check_fitted
from discreet.learn.features import Box
from discreet.learn.inference import Intervals, check_inference, coefficient_covariance
from discreet.learn.inputs import (
    Bounds,
    Matrix,
    Target,
    as_floats,
    as_target,
    class_membership,
    declared_classes,
    feature_bounds,
    target_interval,
)
from discreet.learn.losses import Loss
from discreet.learn.solvers import (
    AUTO,
    CLASSIFIERS,
    REGRESSORS,
    ClassifierSolver,
    FittedWeights,
    Problem,
    Solver,
    solver_for,
)

__all__ = ["LinearClassifier", "LinearModel", "LinearRegressor"]

_TOO_NOISY = (
    "The released number of rows is no larger than its noise, so the fit is mostly noise. Check that the labels are among "
    "`classes`, or use more rows or a larger epsilon."
)


@dataclass(kw_only=True, repr=False, eq=False)
class LinearParameters(PrivateEstimator):
    """What every linear model takes beside the parameters of all estimators."""

    norm: float | None = None
    solver: str = AUTO


class LinearModel(LinearParameters):
    """Scores that are linear in the features."""

    coef_: Reals
    intercept_: Reals | float
    classes_: Values
    n_features_in_: int

    _solvers: ClassVar[tuple[str, ...]]
    # What answers depend on after a fit. The parameters may have been set to other values since.
    _sentences_: list[str]
    _fit_: FittedWeights
    _box_: Box
    _ends_: tuple[Reals, Reals] | None
    _half_: float

    def _learn(
        self,
        matrix: RowTable,
        targets: Reals,
        keep: Bools,
        loss: Loss,
        *,
        inference: bool,
        clipped_targets: Bools | None = None,
    ) -> tuple[Reals, Reals]:
        """Charge and fit: slopes and intercepts on the raw features, one row for each score."""
        box = Box.of(matrix.shape[1], bounds=self._bounds_pair(matrix.shape[1]), norm=self.norm)
        solver = self._solver_of(matrix, box)
        problem = Problem(
            box,
            matrix,
            targets,
            keep,
            loss,
            self._budget(),
            self._penalty(box),
            self._progress_callback(),
            inference=check.flag(inference=inference),
            clipped_targets=clipped_targets,
        )
        check_inference(problem, solver)
        self._charge(solver.guarantee_for(problem))
        self._fit_ = solver.fit(problem)
        if self._fit_.is_too_noisy and self._may_warn:
            # the count was released and paid for, so the warning may speak of it
            warnings.warn(_TOO_NOISY, stacklevel=5)
        self._sentences_ = self._fit_explanation(box, solver, problem)
        self._box_ = box
        pair = self._bounds_pair(matrix.shape[1])
        self._ends_ = None if pair is None else feature_bounds(pair, matrix.shape[1])
        return box.coefficients(self._fit_.weights.T)

    def _solver_of(self, matrix: RowTable, box: Box) -> Solver:
        return solver_for(self.solver, self._solvers, matrix, box)

    def _penalty(self, box: Box) -> Reals:
        return np.zeros(box.width)

    def _fit_explanation(self, box: Box, solver: Solver, problem: Problem) -> list[str]:
        clipping = "" if self.bounds is None else "Features were clipped to their declared bounds. "
        return [
            f"{clipping}Rows with a norm above {box.radius:.4g} were shortened to that norm.",
            *solver.explain(problem),
            *self._fit_.notes,
            *([_TOO_NOISY] if self._fit_.is_too_noisy else []),
        ]

    def _explanation(self) -> list[str]:
        return self._sentences_

    def _scores(self, X: Matrix) -> Reals:
        """The scores of new rows, clipped to the bounds of the fit. NaN is their middle, or 0
        without bounds.
        """
        check_fitted(self)
        matrix = self._matrix(X, reset=False)
        if self._ends_ is not None:
            low, high = self._ends_
            dense = as_floats(matrix)
            matrix = np.clip(np.where(np.isnan(dense), low / 2 + high / 2, dense), low, high)
        # an infinity without bounds is an infinite score, not a warning
        with np.errstate(all="ignore"):
            reals: RealTable = matrix.astype(np.float64)
            stored = reals if isinstance(reals, np.ndarray) else reals.data
            stored[np.isnan(stored)] = 0.0
            scores: Reals = np.asarray(reals @ self.coef_.T) + self.intercept_
        return np.nan_to_num(scores)

    def _intervals(self, confidence: float) -> Intervals:
        """Two-sided normal intervals of the coefficients and the intercept. After the fit they cost
        nothing.
        """
        level = check.inner_probability(confidence=confidence)
        check_fitted(self)
        covariance = coefficient_covariance(self._fit_, self._box_, half=self._half_)
        margin = float(ndtri(0.5 + level / 2)) * np.sqrt(np.diag(covariance))
        slopes, intercept = np.ravel(self.coef_), float(np.ravel(self.intercept_)[0])
        coefficients = np.column_stack([slopes - margin[:-1], slopes + margin[:-1]])
        return Intervals(coefficients, (intercept - float(margin[-1]), intercept + float(margin[-1])))


@dataclass(kw_only=True, repr=False, eq=False)
class LinearClassifier(ClassifierMixin, LinearModel):  # type: ignore[misc]  # scikit-learn has no types
    """Classes by the sign of one score, or by the greatest of several."""

    solver: ClassifierSolver = "auto"
    classes: npt.ArrayLike | None = None
    _solvers: ClassVar[tuple[str, ...]] = CLASSIFIERS

    def decision_function(self, X: Matrix) -> Reals:
        """The score of each class; of two classes only the score of the second."""
        scores = self._scores(X)
        return np.asarray(scores[:, 0]) if scores.shape[1] == 1 else scores

    def predict(self, X: Matrix) -> Values:
        """The most likely class of each row."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def _classify(self, X: Matrix, y: Target, loss: Loss, *, low: float, inference: bool = False) -> None:
        """Fit one score for two classes, or one score for each of more. Members have target 1,
        others `low`.
        """
        self.classes_ = declared_classes(self.classes)
        matrix = self._matrix(X, reset=True)
        is_member = class_membership(y, self.classes_, matrix.shape[0])
        columns = is_member[:, 1:] if len(self.classes_) == 2 else is_member
        targets = np.where(columns, 1.0, low)
        keep = np.asarray(is_member.any(axis=1))
        self.coef_, self.intercept_ = self._learn(matrix, targets, keep, loss, inference=inference)
        self._half_ = 1.0


@dataclass(kw_only=True, repr=False, eq=False)
class LinearRegressor(RegressorMixin, LinearModel):  # type: ignore[misc]  # scikit-learn has no types
    """A number by one linear score. Targets are clipped to declared bounds, and NaN counts as their
    middle.
    """

    target_bounds: Bounds | None = None
    _solvers: ClassVar[tuple[str, ...]] = REGRESSORS

    def predict(self, X: Matrix) -> Reals:
        """The expected target of each row."""
        return self._scores(X)

    def _regress(self, X: Matrix, y: Target, loss: Loss, *, inference: bool = False) -> None:
        low, high = target_interval(self.target_bounds)
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        matrix = self._matrix(X, reset=True)
        # A warning would reveal a value.
        with np.errstate(all="ignore"):
            scaled = (as_target(y, matrix.shape[0]) - middle) / half
        # NaN is among the clipped ones
        clipped = ~(np.abs(scaled) <= 1)
        scaled[np.isnan(scaled)] = 0.0
        targets = np.clip(scaled, -1.0, 1.0)[:, None]
        slopes, intercept = self._learn(
            matrix,
            targets,
            np.ones(len(targets), bool),
            loss,
            inference=inference,
            clipped_targets=clipped,
        )
        self.coef_, self.intercept_ = slopes[0] * half, float(intercept[0] * half + middle)
        self._half_ = half
