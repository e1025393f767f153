# SPDX-License-Identifier: Apache-2.0
"""The best of several private models, and what it costs to have looked for it.

    best = tune([LogisticRegression(norm=1, …), LogisticRegression(norm=2, …)], X, y, mean_runs=10)
    best.predict(X_new); best.guarantee_

**Guarantee.** `guarantee_` of the result covers the whole search: a secret, random number of trials, each of a candidate drawn by a
fair die, of which only the best is released (`mechanisms.select_best`).

Why it holds: in a trial every record falls, by a coin of its own, either to the fit or to the judging; a record is in one part
only, so a trial costs what the dearer part costs (parallel composition, add/remove). The judgement is one noisy sum in which
a record counts between -1 and 1. The price of keeping the best of the trials is privacy/selection.proof.md.

What would break it: an estimator whose prediction for one row depends on the rows beside it; showing how long it took.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import validate_data

from discreet import check, noise, privacy
from discreet.errors import BadParameter
from discreet.exact import exactly
from discreet.learn.arguments import checked_call
from discreet.learn.base import PrivateEstimator, check_session
from discreet.learn.budget import FitBudget
from discreet.learn.inputs import as_column, as_matrix, as_target, class_membership, target_interval
from discreet.mechanisms.combine import select_best
from discreet.mechanisms.mechanism import Mechanism
from discreet.privacy.guarantee import Guarantee

__all__ = ["tune"]

_CELLS = 1 << 20  # of what one record can count for


@checked_call
def tune(
    estimators: Sequence[PrivateEstimator],
    X: Any,
    y: Any,
    *,
    mean_runs: float = 10,
    held_out: float = 0.2,
    session: Any = None,
) -> Any:
    """The best of so many trials on average, fitted; each holds out a random part of the records to judge by.

    >>> from discreet.learn import LogisticRegression
    >>> X = np.linspace(-1, 1, 4000).reshape(-1, 1)
    >>> kept = {"epsilon": 0.5, "delta": 1e-6, "bounds": (-1, 1), "classes": [False, True]}
    >>> best = tune([LogisticRegression(**kept), LogisticRegression(**kept, norm=0.5)], X, X[:, 0] > 0, mean_runs=3)
    >>> bool(best.score(X, X[:, 0] > 0) > 0.9), best.guarantee_.epsilon(delta=1e-5) > 0.5
    (True, True)
    """
    matrix = as_matrix(X)
    column = as_column(y, matrix.shape[0])
    share = check.inner_probability(held_out=held_out)
    candidates = _check_candidates(estimators)
    payer = _payer(candidates, session)
    trials = [Trial.of(candidate, matrix.shape[1], share) for candidate in candidates]
    search = select_best(candidates=trials, score=lambda tried: tried.score, mean_runs=mean_runs)
    receipt = None if payer is None else payer.charge(search.guarantee, question="learn.tune")
    best = search.draw((matrix, column)).value.model
    best.guarantee_, best.receipt_, best.session = search.guarantee, receipt, payer
    best._search_ = (
        "It is the best of a secret number of trials, judged by records that it did not learn from.",
    )
    if hasattr(X, "columns"):  # the trials saw rows without names
        validate_data(best, X, reset=True, skip_check_array=True)
    return best


@dataclass(frozen=True)
class JudgedModel:
    """A model, and a noisy judgement of it."""

    model: Any
    score: float


@dataclass(frozen=True)
class Trial(Mechanism):
    """One fit on most of the records, and a noisy judgement on the rest."""

    estimator: PrivateEstimator
    fitting: Guarantee
    budget: FitBudget
    held_out: float

    @classmethod
    def of(cls, estimator: PrivateEstimator, features: int, held_out: float) -> Trial:
        """What a fit costs is known from a fit on no records: it does not depend on them."""
        alone = _silent_copy(estimator).fit(np.empty((0, features)), np.empty(0, object))
        budget = FitBudget.of(epsilon=alone.epsilon, delta=alone.delta, unit=alone.unit)
        return cls(estimator, alone.guarantee_, budget, held_out)

    @property
    def guarantee(self) -> Guarantee:
        return privacy.parallel(self.fitting, self.budget.gaussian(self.budget.noise))

    def draw(self, data: Any) -> JudgedModel:
        matrix, column = data
        judging = np.asarray(noise.bernoulli(self.held_out, size=len(column)), bool)
        model = _silent_copy(self.estimator).fit(matrix[~judging], column[~judging])
        gains = _gains(model, matrix[judging], column[judging]) if judging.any() else np.zeros(0)
        total = int(np.trunc(gains * _CELLS).astype(np.int64).sum())
        noisy = total + noise.rounded_gaussian(exactly(self.budget.noise * _CELLS))
        return JudgedModel(model, noisy / _CELLS)


def _silent_copy(estimator: PrivateEstimator) -> Any:
    """A copy whose fits nobody sees: the search pays for them, and a warning would tell how many there were."""
    copy: Any = clone(estimator).set_params(session=None, progress=None)
    copy._may_warn = False  # noqa: SLF001 - of a class of this package
    return copy


def _gains(model: Any, matrix: Any, column: Any) -> Any:
    """Between -1 and 1 for each record: right or wrong; or how small the squared error is within the target's bounds."""
    predicted = model.predict(matrix)
    if is_classifier(model):
        said, is_in = (
            class_membership(labels, model.classes_, len(column)) for labels in (predicted, column)
        )
        return np.where((said & is_in).any(axis=1), 1.0, -1.0)
    low, high = target_interval(model.target_bounds)
    with np.errstate(over="ignore", invalid="ignore"):
        targets = np.clip(as_target(column, len(column)), low, high)
        gain = 1 - 2 * ((predicted - targets) / (high / 2 - low / 2)) ** 2
    return np.clip(np.nan_to_num(gain, nan=-1.0), -1.0, 1.0)


def _check_candidates(estimators: Any) -> list[PrivateEstimator]:
    many = list(estimators) if isinstance(estimators, list | tuple) else []
    if many and all(
        isinstance(one, PrivateEstimator) and (is_classifier(one) or hasattr(one, "target_bounds"))
        for one in many
    ):
        if all(one.relation == "add-remove" for one in many):
            return many
        raise BadParameter(
            "DP105",
            'tuning needs relation="add-remove".',
            why="a replaced record may fall to the fit in one data set and to the judging in the other.",
            fix="leave out relation=, at epsilon / 2 and delta / (1 + exp(epsilon / 2)): who is replaced is one less and one more",
        )
    raise BadParameter(
        "DP104",
        "estimators must be a list of private classifiers or regressions.",
        why="a trial costs what its estimator promises, and others promise nothing.",
        fix="tune([LogisticRegression(epsilon=1, …), LogisticRegression(epsilon=1, norm=2, …)], X, y)",
    )


def _payer(candidates: list[PrivateEstimator], session: Any) -> Any:
    """The session that pays: the one that is named, or the one that all candidates have."""
    if session is not None:
        return check_session(session)
    sessions = {id(candidate.session): candidate.session for candidate in candidates}
    if len(sessions) == 1:
        return check_session(next(iter(sessions.values())))
    raise BadParameter(
        "DP107",
        "the candidates have different sessions.",
        why="one search is one charge, and it has to be clear who pays it.",
        fix="tune([…], X, y, session=session)",
    )
