# SPDX-License-Identifier: Apache-2.0
"""What a fitted model says of itself is true of that model, whatever happened to it."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from discreet import testing
from discreet.errors import BadParameter, LedgerError
from discreet.learn import GaussianNB, KMeans, LinearRegression, LogisticRegression, tune
from tests.learn.accounts import Account

KEPT: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "bounds": (-1, 1)}
X = np.sin(np.arange(900)[:, None] * np.sqrt([2.0, 3.0]))
Y = (X[:, 0] > 0).astype(int)


def stops(_done: int, _total: int) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "model", [LogisticRegression(**KEPT, classes=[0, 1]), GaussianNB(**KEPT, classes=[0, 1])]
)
def test_a_fit_that_is_refused_leaves_no_model(model: Any) -> None:
    fitted = clone(model).fit(X, Y)
    with pytest.raises(BadParameter):
        fitted.set_params(epsilon=-1).fit(X, Y)
    with pytest.raises(NotFittedError):
        fitted.predict(X)
    assert not [name for name in vars(fitted) if name.endswith("_")]


def test_a_fit_that_is_broken_off_leaves_no_model() -> None:
    model = LogisticRegression(**{**KEPT, "epsilon": 10.0}, classes=[0, 1]).fit(X, Y)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(epsilon=0.1, progress=stops).fit(X, Y)
    assert not hasattr(model, "guarantee_")
    assert not hasattr(model, "coef_")


def test_explaining_speaks_of_the_fit_and_not_of_later_parameters() -> None:
    model = LogisticRegression(**KEPT, classes=[0, 1]).fit(X, Y)
    said = model.explain()
    assert "added or removed" in said
    assert model.set_params(relation="replace", delta=0.1).explain() == said


def test_a_repeatable_fit_says_that_it_is_not_private() -> None:
    with testing.seeded(1):
        seeded = LogisticRegression(**KEPT, classes=[0, 1]).fit(X, Y)
    assert "NOT PRIVATE" in seeded.explain()
    assert "NOT PRIVATE" not in LogisticRegression(**KEPT, classes=[0, 1]).fit(X, Y).explain()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_predicts_but_does_not_fit_without_paying(copied: Any) -> None:
    account = Account()
    model = LogisticRegression(**KEPT, classes=[0, 1], session=account).fit(X, Y)
    other = copied(model)
    assert (other.predict(X) == model.predict(X)).all()
    assert other.guarantee_ == model.guarantee_
    with pytest.raises(LedgerError) as refused:
        other.fit(X, Y)
    assert refused.value.code == "DP607"
    other.set_params(session=account).fit(X, Y)
    assert len(account.paid) == 2


def test_a_search_is_paid_by_the_session_of_its_candidates() -> None:
    account = Account()
    candidates = [
        LogisticRegression(**KEPT, classes=[0, 1], session=account, norm=norm) for norm in (0.5, 1.0)
    ]
    best = tune(candidates, X, Y, mean_runs=2)
    assert account.paid == [(best.guarantee_, "learn.tune")]
    assert best.session is account
    assert "secret number of trials" in best.explain()
    with pytest.raises(BadParameter, match="different sessions"):
        tune([candidates[0], clone(candidates[1]).set_params(session=Account())], X, Y)
    with pytest.raises(BadParameter, match="must be a Session"):
        tune([LogisticRegression(**KEPT, classes=[0, 1])], X, Y, session="here")


def test_a_search_does_not_show_how_many_trials_there_were() -> None:
    seen: list[Any] = []
    model = LogisticRegression(**KEPT, classes=[0, 1], progress=lambda *step: seen.append(step))
    tune([model], X, Y, mean_runs=3)
    assert seen == []


def test_a_search_judges_targets_as_a_fit_reads_them() -> None:
    target = X[:, 0].astype(object)
    target[3], target[4] = None, "?"
    best = tune([LinearRegression(**KEPT, target_bounds=(-1, 1))], X, target, mean_runs=2)
    assert best.coef_.shape == (2,)


def test_what_cannot_be_judged_is_not_searched() -> None:
    with pytest.raises(BadParameter, match="classifiers or regressions"):
        tune([KMeans(2, **KEPT)], X, Y)
