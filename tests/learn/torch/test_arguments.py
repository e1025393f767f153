# SPDX-License-Identifier: Apache-2.0
"""Every public entry point of `discreet.learn.torch`, called wrongly, and training loops that cannot be private: coded errors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import discreet.learn.torch as learn
from discreet.errors import DiscreetError, RefusedTraining
from discreet.learn.arguments import WrongArguments
from discreet.learn.torch import private
from tests.learn.accounts import Account

X = torch.zeros(40, 3)
PLAN = {"noise": 1.0, "steps": 2, "batch": 10, "size": 40}
STRANGE = [object(), "word", b"", -1, 0.5, float("nan"), 10**400, [], {}, (1,), X, lambda: None]


def pair(kind: Any = torch.optim.SGD, **more: Any) -> tuple[Any, Any]:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    return model, kind(model.parameters(), lr=0.1, **more)


def entry_points() -> Iterator[tuple[str, Callable[..., Any]]]:
    with private(*pair(), X, **PLAN) as run:
        instances = {"Run": run, "TrainingPlan": run.plan, "Adaptive": learn.Adaptive()}
        for name in learn.__all__:
            made = getattr(learn, name)
            yield name, made
            for word in vars(made) if isinstance(made, type) else ():
                if not word.startswith("_") and inspect.isfunction(vars(made)[word]) and name in instances:
                    yield f"{name}.{word}", getattr(instances[name], word)


ENTRIES = dict(entry_points())


@pytest.mark.parametrize("entry", ENTRIES)
def test_arguments_that_do_not_fit_are_refused_with_a_code(entry: str) -> None:
    call = ENTRIES[entry]
    with pytest.raises(WrongArguments, match="DP105"):
        call(no_such_parameter=1)
    with pytest.raises(WrongArguments, match="DP107"):
        call(*[None] * 40)
    if any(p.default is p.empty for p in inspect.signature(call).parameters.values()):
        with pytest.raises(WrongArguments, match="DP107"):
            call()


@pytest.mark.parametrize("word", list(inspect.signature(private).parameters))
def test_whatever_a_parameter_is_a_run_begins_or_is_refused_unpaid(word: str) -> None:
    for value in [one for one in STRANGE if not (word == "clipper" and callable(one))]:
        payer, (model, optimizer) = Account(), pair()
        given = {"model": model, "optimizer": optimizer, "data": X, "session": payer, **PLAN, word: value}
        try:
            private(**given).close()
        except DiscreetError:
            assert payer.paid == []


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("plan_of", {"size": 40, "batch": 10, "steps": 2, "noise": 1.0}),
        ("Adaptive", {}),
        ("CorrectedAdam", {"params": [torch.nn.Parameter(torch.zeros(2))]}),
        ("Training", {"plan": learn.plan_of(size=40, batch=10, steps=2, noise=1.0), "train": print}),
        ("Canaries", {"count": 4, "clip": 1.0, "device": torch.device("cpu")}),
        (
            "TrainingPlan",
            dict(
                zip(
                    ("sampling", "relation", "unit", "size", "batch", "steps", "per_epoch", "noise"),
                    ("poisson", "add-remove", "record", 40, 10, 2, 4, 1.0),
                    strict=True,
                )
            ),
        ),
    ],
)
def test_whatever_a_parameter_is_objects_are_made_or_refused_with_a_code(
    name: str, given: dict[str, Any]
) -> None:
    made = getattr(learn, name)
    refused = set()
    for word in inspect.signature(made).parameters:
        for value in STRANGE:
            try:
                made(**given | {word: value})
            except DiscreetError:
                refused.add(word)
    assert refused >= set(inspect.signature(made).parameters) - {"unit"}


def test_a_run_is_not_made_by_hand_and_follows_schedulers_only() -> None:
    with pytest.raises(DiscreetError, match="DP104"):
        learn.Run(3)  # type: ignore[arg-type]
    with private(*pair(), X, **PLAN) as run, pytest.raises(DiscreetError, match="DP104"):
        run.follow("scheduler")


def test_an_optimizer_that_needs_a_closure_is_refused_unpaid() -> None:
    payer = Account()
    with pytest.raises(RefusedTraining, match="LBFGS") as refused:
        private(*pair(torch.optim.LBFGS), X, **PLAN, session=payer)
    assert refused.value.code == "DP916"
    assert payer.paid == []


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("unscaled", [False, True])
def test_a_scaler_is_refused_before_a_step_and_the_optimizer_is_given_back(fused: Any, unscaled: Any) -> None:
    model, optimizer = pair(torch.optim.Adam, fused=fused)
    had = vars(optimizer).get("_step_supports_amp_scaling")
    before = [parameter.clone() for parameter in model.parameters()]
    scaler = torch.amp.GradScaler("cpu")
    with private(model, optimizer, X, **PLAN) as run:
        for x in run:
            run.backward(scaler.scale(model(x).square().sum(1)))
            if unscaled:
                scaler.unscale_(optimizer)
            with pytest.raises(RefusedTraining, match="GradScaler") as refused:
                scaler.step(optimizer)
            break
        assert run.steps == 0
    assert refused.value.code == "DP916"
    assert all((a == b).all() for a, b in zip(before, model.parameters(), strict=True))
    assert vars(optimizer).get("_step_supports_amp_scaling") is had


def test_a_scaler_that_is_switched_off_is_nothing() -> None:
    model, optimizer = pair()
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    with private(model, optimizer, X, **PLAN) as run:
        for x in run:
            run.backward(scaler.scale(model(x).square().sum(1)))
            scaler.step(optimizer)
            scaler.update()
    assert run.steps == 2


class Recomputed(torch.nn.Module):
    """Its middle layer is computed again in the backward pass."""

    def __init__(self, *, reentrant: bool) -> None:
        super().__init__()
        self.first, self.middle, self.last = (torch.nn.Linear(*size) for size in ((3, 4), (4, 4), (4, 1)))
        self.reentrant = reentrant

    def forward(self, x: torch.Tensor) -> Any:
        return self.last(checkpoint(self.middle, self.first(x).tanh(), use_reentrant=self.reentrant))


def test_a_reentrant_checkpoint_is_refused_and_the_fix_works() -> None:
    for reentrant in (True, False):
        model = Recomputed(reentrant=reentrant)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with private(model, optimizer, X + 1, **PLAN) as run:
            for x in run:
                losses = model(x).square().sum(1)
                if reentrant:
                    with pytest.raises(RefusedTraining, match="use_reentrant=False") as refused:
                        run.backward(losses)
                    assert refused.value.code == "DP921"
                    break
                run.backward(losses)
                optimizer.step()
            assert run.steps == (0 if reentrant else 2)


def train(data: Any) -> Any:
    """A training function with a name."""


@pytest.mark.parametrize(
    "thing",
    [
        learn.plan_of(size=100, batch=10, steps=2, noise=4.0),
        learn.Adaptive(quantile=0.3, noise=7.5),
        learn.Canaries(count=4, clip=0.7, device=torch.device("cpu")),
        learn.Training(learn.plan_of(size=100, batch=10, steps=2, noise=4.0), train),
    ],
    ids=lambda value: type(value).__name__,
)
def test_its_representation_is_the_expression_that_makes_it(thing: Any) -> None:
    twin = eval(repr(thing), {**vars(learn), "torch": torch, "train": train})
    assert type(twin) is type(thing)
    assert repr(twin) == repr(thing)
    for name in ("count", "clip", "plan", "guarantee"):
        assert getattr(twin, name, None) == getattr(thing, name, None)


def test_the_representation_of_a_run_counts_its_steps() -> None:
    model, optimizer = pair()
    with private(model, optimizer, X, **PLAN) as run:
        run.backward(model(next(iter(run))).square().sum(1))
        optimizer.step()
        assert repr(run) == f"<Run of Sequential: 1 of 2 steps, {run.plan!r}>"
