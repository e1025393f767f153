# SPDX-License-Identifier: Apache-2.0
"""The best of several private models, and what the search for it costs.

    best = tune([LogisticRegression(norm=1, …), LogisticRegression(norm=2, …)], X, y, mean_runs=10)
    best.predict(X_new); best.guarantee_

**Guarantee.** `guarantee_` of the result covers the whole search: a secret, random number of
trials, each with a candidate that is chosen uniformly at random. Only the best trial is released
(`mechanisms.select_best`).

Why it holds: in each trial every record is assigned at random either to the fit or to the judging.
A record is in one part only, so a trial costs as much as its more expensive part (parallel
composition, add/remove). The judgement is one noisy sum in which a record counts between -1 and 1.
The cost of releasing the best of the trials is proved in privacy/selection.proof.md.

What would break it: an estimator whose prediction for one row depends on the other rows; publishing
how long the search took.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, TypeVar, cast

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import validate_data

from discreet import check, noise, privacy
from discreet.errors import BadParameter
from discreet.exact import exactly
from discreet.learn.arguments import checked_call
from discreet.learn.arrays import Reals, RowTable, Values
from discreet.learn.base import PrivateEstimator
from discreet.learn.budget import FitBudget, Payer, check_session
from discreet.learn.inputs import (
    Bounds,
    Matrix,
    Target,
    as_column,
    as_matrix,
    as_target,
    class_membership,
    target_interval,
)
from discreet.mechanisms.combine import Chosen, select_best
from discreet.mechanisms.mechanism import Mechanism
from discreet.privacy.guarantee import Guarantee

__all__ = ["tune"]

E = TypeVar("E", bound=PrivateEstimator)

# Steps of the gain of one record.
_CELLS = 1 << 20


@checked_call
def tune(
    estimators: Sequence[E],
    X: Matrix,
    y: Target,
    *,
    mean_runs: float = 10,
    held_out: float = 0.2,
    session: Payer | None = None,
) -> E:
    """Fit candidates to random parts of the records, judge each fit by the rest, and return the
    best one, fitted.

    **Guarantee.** `guarantee_` of the result covers the whole search, not only the fit that is
    returned. How many trials were made, and all other fits, stay secret.

    Why it holds: `mechanisms.select_best` and its proof, privacy/selection.proof.md.

    What would break it: candidates that were chosen by looking at the data; publishing how long the
    search took.

    Parameters: `estimators` are private classifiers or regressions that are not fitted, with
    `relation="add-remove"`; `mean_runs` is the mean number of trials; `held_out` is the fraction of
    the records by which a trial is judged; `session` is charged before the data are read (by
    default the session that all candidates share).

    >>> from discreet.learn import LogisticRegression
    >>> X = np.linspace(-1, 1, 4000).reshape(-1, 1)
    >>> shared = {"epsilon": 0.5, "delta": 1e-6, "bounds": (-1, 1), "classes": [False, True]}
    >>> best = tune([LogisticRegression(**shared), LogisticRegression(**shared, norm=0.5)], X, X[:, 0] > 0, mean_runs=3)
    >>> bool(best.score(X, X[:, 0] > 0) > 0.9), best.guarantee_.epsilon(delta=1e-5) > 0.5
    (True, True)
    """
    matrix = as_matrix(X)
    column = as_column(y, matrix.shape[0])
    fraction = check.inner_probability(held_out=held_out)
    candidates = _check_candidates(estimators)
    payer = _payer(candidates, session)
    trials = [Trial.of(candidate, matrix.shape[1], fraction) for candidate in candidates]
    search = select_best(candidates=trials, score=lambda judged: judged.score, mean_runs=mean_runs)
    receipt = None if payer is None else payer.charge(search.guarantee, question="learn.tune")
    best: E = cast(Chosen, search.draw((matrix, column))).value.model
    best.guarantee_, best.receipt_, best.session = search.guarantee, receipt, payer
    best._search_ = (
        "The model is the best of a secret number of trials, each judged by records that it was not fitted to.",
    )
    # The trials saw rows without column names.
    if hasattr(X, "columns"):
        validate_data(best, X, reset=True, skip_check_array=True)
    return best


class Predictor(PrivateEstimator):
    """What a candidate has beside a guarantee: `classes_` if it is a classifier, `target_bounds`
    otherwise.
    """

    classes_: Values
    target_bounds: Bounds

    @abstractmethod
    def fit(self, X: Matrix, y: Target) -> Self:
        """Fit."""

    @abstractmethod
    def predict(self, X: Matrix) -> Values:
        """Answer."""


@dataclass(frozen=True)
class JudgedModel:
    """A model with its noisy score."""

    model: PrivateEstimator
    score: float


@dataclass(frozen=True)
class Trial(Mechanism):
    """One fit to most of the records, and a noisy score of it by the rest."""

    estimator: PrivateEstimator
    fitting: Guarantee
    budget: FitBudget
    held_out: float

    @classmethod
    def of(cls, estimator: PrivateEstimator, features: int, held_out: float) -> Trial:
        """The cost of a fit is read from a fit to no records, because it does not depend on them."""
        empty_fit = _silent_copy(estimator).fit(np.empty((0, features)), np.empty(0, object))
        budget = FitBudget.of(epsilon=empty_fit.epsilon, delta=empty_fit.delta, unit=empty_fit.unit)
        return cls(estimator, empty_fit.guarantee_, budget, held_out)

    @property
    def guarantee(self) -> Guarantee:
        return privacy.parallel(self.fitting, self.budget.gaussian(self.budget.noise))

    def draw(self, data: object) -> JudgedModel:
        matrix, column = cast(tuple[RowTable, Values], data)
        judging = np.asarray(noise.bernoulli(self.held_out, size=len(column)), bool)
        model = _silent_copy(self.estimator).fit(matrix[~judging], column[~judging])
        gains = _gains(model, matrix[judging], column[judging]) if judging.any() else np.zeros(0)
        total = int(np.trunc(gains * _CELLS).astype(np.int64).sum())
        noisy = total + noise.rounded_gaussian(exactly(self.budget.noise * _CELLS))
        return JudgedModel(model, noisy / _CELLS)


def _silent_copy(estimator: PrivateEstimator) -> Predictor:
    """A copy that neither charges nor warns: the search pays, and a warning would reveal how many
    fits there were.
    """
    copy = cast(PrivateEstimator, clone(estimator)).set_params(session=None, progress=None)
    copy._may_warn = False  # noqa: SLF001 - a class of this package
    return cast(Predictor, copy)


def _gains(model: Predictor, matrix: RowTable, column: Values) -> Reals:
    """A gain between -1 and 1 for each record: right or wrong, or how small the squared error is
    within the bounds.
    """
    predicted = model.predict(matrix)
    if is_classifier(model):
        is_predicted, is_true = (
            class_membership(labels, model.classes_, len(column)) for labels in (predicted, column)
        )
        return np.where((is_predicted & is_true).any(axis=1), 1.0, -1.0)
    low, high = target_interval(model.target_bounds)
    with np.errstate(over="ignore", invalid="ignore"):
        targets = np.clip(as_target(column, len(column)), low, high)
        errors = (as_target(predicted, len(column)) - targets) / (high / 2 - low / 2)
        gain: Reals = 1 - 2 * errors**2
    return np.clip(np.nan_to_num(gain, nan=-1.0), -1.0, 1.0)


def _check_candidates(estimators: Sequence[E]) -> list[E]:
    candidates = list(estimators) if isinstance(estimators, list | tuple) else []
    if candidates and all(
        isinstance(candidate, PrivateEstimator)
        and (is_classifier(candidate) or hasattr(candidate, "target_bounds"))
        for candidate in candidates
    ):
        if all(candidate.relation == "add-remove" for candidate in candidates):
            return candidates
        raise BadParameter(
            "DP105",
            'tuning needs relation="add-remove".',
            why="a replaced record may be used for the fit in one data set and for the judging in the other.",
            fix="leave out relation=, with epsilon / 2 and delta / (1 + exp(epsilon / 2)): one replaced record is one removed and one added",
        )
    raise BadParameter(
        "DP104",
        "estimators must be a list of private classifiers or regressions.",
        why="a trial costs the guarantee of its estimator, and other estimators have none.",
        fix="tune([LogisticRegression(epsilon=1, …), LogisticRegression(epsilon=1, norm=2, …)], X, y)",
    )


def _payer(candidates: Sequence[PrivateEstimator], session: Payer | None) -> Payer | None:
    """The session that pays: the one that was passed, or the one that all candidates share."""
    if session is not None:
        return check_session(session)
    sessions = {id(candidate.session): candidate.session for candidate in candidates}
    if len(sessions) == 1:
        return check_session(next(iter(sessions.values())))
    raise BadParameter(
        "DP107",
        "the candidates have different sessions.",
        why="one search is one charge, so one session has to pay it.",
        fix="tune([…], X, y, session=session)",
    )
