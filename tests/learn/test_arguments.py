# SPDX-License-Identifier: Apache-2.0
"""Every public entry point of `discreet.learn`, called wrongly: a coded error, never one of Python's or scikit-learn's own."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from discreet import learn
from discreet.errors import BadParameter, DiscreetError
from discreet.learn.arguments import WrongArguments
from discreet.learn.base import NotFitted

X = np.random.default_rng(0).uniform(0, 1, (60, 2))
Y = (X[:, 0] > 0.5).astype(int)
GIVEN = {"epsilon": 1.0, "delta": 1e-5, "bounds": (0, 1), "classes": [0, 1], "target_bounds": (0.01, 1)}
NAMES = [name for name in learn.__all__ if name != "tune"]
STRANGE = [
    object(),
    "word",
    b"",
    -1,
    0,
    0.5,
    float("nan"),
    float("inf"),
    10**400,
    [],
    {},
    (1,),
    np.zeros(3),
    True,
]


def made(name: str, **change: Any) -> Any:
    kind = getattr(learn, name)
    known = inspect.signature(kind).parameters
    return kind(**{word: value for word, value in GIVEN.items() if word in known} | change)


def fitted(name: str) -> Any:
    model = made(name)
    return model.fit(X) if name in ("KMeans", "PCA", "StandardScaler") else model.fit(X, Y)


def entry_points() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Functions, constructors, and public methods of fitted estimators, those of scikit-learn's mixins too."""
    yield "tune", learn.tune
    for name in NAMES:
        yield name, getattr(learn, name)
        model = fitted(name)
        for word in dir(model):
            if word.startswith("_") or isinstance(inspect.getattr_static(type(model), word, None), property):
                continue
            if callable(getattr(model, word, None)) and inspect.isfunction(
                inspect.getattr_static(type(model), word, None)
            ):
                yield f"{name}.{word}", getattr(model, word)


ENTRIES = dict(entry_points())


def is_coded(error: DiscreetError) -> bool:
    text = str(error)
    return all(word in text for word in (error.code, "Why", "Fix", "Spent")) and error.fix != ""


@pytest.mark.parametrize("entry", ENTRIES)
def test_arguments_that_do_not_fit_are_refused_with_a_code(entry: str) -> None:
    call = ENTRIES[entry]
    parameters = inspect.signature(call).parameters.values()
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    if not takes_any or entry.endswith("set_params"):
        with pytest.raises(WrongArguments, match="DP105") as unknown:
            call(no_such_parameter=1)
        assert is_coded(unknown.value)
        assert isinstance(unknown.value, TypeError)
    if not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        with pytest.raises(WrongArguments, match="DP107") as many:
            call(*[None] * 40)
        assert is_coded(many.value)
    if any(p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        with pytest.raises(WrongArguments, match="DP107") as few:
            call()
        assert is_coded(few.value)


@pytest.mark.parametrize("name", NAMES)
def test_whatever_a_parameter_is_a_fit_works_or_is_refused_with_a_code(name: str) -> None:
    refused: list[tuple[str, bool]] = []
    for word in inspect.signature(getattr(learn, name)).parameters:
        for value in STRANGE:
            model = made(name, **{word: value})
            try:
                model.fit(X) if name in ("KMeans", "PCA", "StandardScaler") else model.fit(X, Y)
            except DiscreetError as error:
                refused.append((word, is_coded(error) and not hasattr(model, "guarantee_")))
    assert {"epsilon", "delta", "bounds", "session"} <= {word for word, _ in refused}
    assert all(coded for _, coded in refused)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "word", ["predict", "transform", "score", "decision_function", "predict_proba", "explain"]
)
def test_a_model_without_a_fit_and_rows_of_another_width_are_refused(name: str, word: str) -> None:
    if not hasattr(getattr(learn, name), word):
        return
    rows = [] if word == "explain" else [X[:, :1], Y] if word == "score" else [X[:, :1]]
    with pytest.raises(NotFitted, match="DP107") as early:
        getattr(made(name), word)(*rows)
    assert isinstance(early.value, NotFittedError)
    if rows:
        with pytest.raises(BadParameter, match="DP104"):
            getattr(fitted(name), word)(*rows)


def test_what_other_libraries_have_is_refused_with_the_reason() -> None:
    with pytest.raises(WrongArguments) as seeded:
        learn.LogisticRegression(epsilon=1, random_state=0)
    assert "anybody can repeat" in seeded.value.why
    with pytest.raises(WrongArguments) as weighted:
        made("LogisticRegression").fit(X, Y, sample_weight=np.ones(60))
    assert "weight" in weighted.value.why


def test_a_misspelt_parameter_is_corrected() -> None:
    with pytest.raises(WrongArguments) as misspelt:
        learn.LogisticRegression(epsilonn=1)
    assert misspelt.value.fix == "write epsilon="


def test_a_call_that_does_not_fit_changes_nothing() -> None:
    model = fitted("LogisticRegression")
    before = model.coef_.copy()
    for call in (
        lambda: model.fit(X, Y, sample_weight=None),
        lambda: model.fit(X),
        lambda: model.set_params(epsilon=3.0, nothing=1),
    ):
        with pytest.raises(WrongArguments):
            call()
    assert (model.coef_ == before).all()
    assert model.epsilon == 1.0


class Own(learn.LogisticRegression):
    """An estimator of a user, with a parameter of its own that has no default."""

    def __init__(self, *, needed: Any, epsilon: Any = None) -> None:
        super().__init__(epsilon=epsilon)
        self.needed = needed


def test_estimators_of_users_are_checked_copied_and_stored_as_well() -> None:
    own = Own(needed=2, epsilon=1.0)
    assert clone(own).needed == pickle.loads(pickle.dumps(own)).needed == 2
    with pytest.raises(WrongArguments, match="need"):
        Own(need=2)
