# SPDX-License-Identifier: Apache-2.0
"""The best of several models, and what the search costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet import privacy, testing
from discreet.errors import BadParameter, OverBudget
from discreet.learn import LinearRegression, LogisticRegression, Ridge, tune
from discreet.learn import tuning as tuning_module
from discreet.learn.tuning import Trial

KEPT: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "bounds": (-1, 1), "classes": [0, 1]}
X = np.sin(np.arange(3000)[:, None] * np.sqrt([2.0, 3.0]))
Y = (X[:, 0] > 0).astype(int)


def test_the_better_candidate_wins() -> None:
    good, bad = LogisticRegression(**KEPT), LogisticRegression(**{**KEPT, "bounds": (500, 501)})
    with testing.seeded(1):  # the worse one may be drawn alone
        found = [tune([good, bad], X, Y, mean_runs=30).bounds for _ in range(3)]
    assert found.count((-1, 1)) >= 2


def test_a_regression_is_judged_by_its_error() -> None:
    kept: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "bounds": (-1, 1), "target_bounds": (-1, 1)}
    with testing.seeded(2):
        best = tune([LinearRegression(**kept), Ridge(**kept, alpha=1e6)], X, X[:, 0], mean_runs=30)
    assert best.score(X, X[:, 0]) > 0.5


def test_the_price_is_that_of_selection() -> None:
    model = LogisticRegression(**KEPT)
    best = tune([model], X, Y, mean_runs=5)
    trial = Trial.of(model, 2, 0.2)
    assert trial.guarantee.epsilon(delta=1e-6) <= 1.0
    assert best.guarantee_.epsilon(delta=1e-5) > trial.guarantee.epsilon(delta=1e-5)
    assert best.guarantee_.epsilon(delta=1e-5) == pytest.approx(
        privacy.selected(privacy.one_of(trial.guarantee), mean_runs=5).epsilon(delta=1e-5), rel=1e-3
    )


def test_every_record_is_learned_from_or_judged_by_but_not_both(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, set[float]] = {"learned": set(), "judged": set()}
    fit = LogisticRegression.fit

    def spy(self: Any, data: Any, labels: Any) -> Any:
        seen["learned"] |= set(data[:, 0].tolist())
        return fit(self, data, labels)

    gains = tuning_module._gains

    def judge(model: Any, matrix: Any, column: Any) -> Any:
        seen["judged"] |= set(matrix[:, 0].tolist())
        found = gains(model, matrix, column)
        assert np.abs(found).max() <= 1
        return found

    monkeypatch.setattr(LogisticRegression, "fit", spy)
    monkeypatch.setattr(tuning_module, "_gains", judge)
    Trial.of(LogisticRegression(**KEPT), 2, 0.3).draw((X, Y))
    assert not seen["learned"] & seen["judged"]
    assert len(seen["learned"]) + len(seen["judged"]) == len(X)
    assert len(seen["judged"]) > 600


def test_the_session_pays_for_the_search_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    class Empty:
        def charge(self, guarantee: Any, *, question: str) -> None:
            raise OverBudget("DP601", f"{question} {guarantee}", why="limit", fix="less")

    monkeypatch.setattr(Trial, "draw", lambda *_: pytest.fail("drawn before it was paid for"))
    with pytest.raises(OverBudget):
        tune([LogisticRegression(**KEPT)], X, Y, session=Empty())


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ([], "DP104"),
        ([7], "DP104"),
        (LogisticRegression(**KEPT), "DP104"),
        ([LogisticRegression(**KEPT, relation="replace")], "DP105"),
        ([LogisticRegression(**{**KEPT, "epsilon": None})], "DP107"),
    ],
)
def test_what_cannot_be_tuned_is_refused(given: Any, code: str) -> None:
    with pytest.raises(BadParameter) as refused:
        tune(given, X, Y)
    assert refused.value.code == code


@pytest.mark.parametrize("bad", [{"held_out": 0}, {"held_out": 1}, {"mean_runs": 0}, {"mean_runs": "5"}])
def test_bad_parameters_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(BadParameter):
        tune([LogisticRegression(**KEPT)], X, Y, **bad)


def test_no_records_are_no_error() -> None:
    assert tune([LogisticRegression(**KEPT)], np.empty((0, 2)), np.empty(0), mean_runs=2).coef_.shape == (
        1,
        2,
    )


def test_a_search_warns_of_nothing(recwarn) -> None:
    """A warning for each noisy trial would tell how many there were."""
    labels = np.full(50, "a")
    model = LogisticRegression(epsilon=0.1, delta=1e-5, bounds=(0, 1), classes=["a", "b"])
    tune([model], np.zeros((50, 1)), labels, mean_runs=4)
    assert not recwarn.list
