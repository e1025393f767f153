# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as they were written before names in the library changed: each of them opens, and training goes on.

`run.json` is `run.state_dict()` of three steps out of six. `training.pt` holds it beside the states of the model and
the optimizer. `open_model.pt` is a whole model that was stored while its run was open. `objects.pt` holds a plan, an
`Adaptive` and a whole optimizer.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch.nn.functional import mse_loss  # noqa: E402

from discreet.learn.torch import Adaptive, CorrectedAdam, private  # noqa: E402
from discreet.privacy import gaussian  # noqa: E402

FOLDER = Path(__file__).parent / "checkpoints"
X = torch.linspace(-1, 1, 40)[:, None]
SETTINGS = {"epsilon": 4, "delta": 1e-5, "steps": 6, "batch": 10, "size": 40, "adaptive": True}


def stored(name):
    return torch.load(FOLDER / name, weights_only=False)


def resumed(state, model, optimizer):
    with private(model, optimizer, (X, 2 * X), resume=state, **SETTINGS) as run:
        for x, y in run:
            run.backward(mse_loss(model(x), y, reduction="none").sum(1))
            optimizer.step()
    return run


def test_a_stored_run_goes_on_and_counts_what_was_run_before():
    state = json.loads((FOLDER / "run.json").read_text())
    assert state == stored("training.pt")["run"]
    model = torch.nn.Linear(1, 1)
    run = resumed(state, model, CorrectedAdam(model.parameters(), lr=0.05))
    assert (run.past.steps, run.steps, run.past.clip) == (3, 3, state["clip"])
    assert run.past.guarantee == 3 * gaussian(state["plan"]["noise"]).sampled(0.25)
    assert run.past.guarantee.epsilon(1e-5) < run.epsilon() <= 4


def test_a_state_that_is_stored_today_has_the_same_keys():
    state = json.loads((FOLDER / "run.json").read_text())
    model = torch.nn.Linear(1, 1)
    now = resumed(state, model, CorrectedAdam(model.parameters())).state_dict()
    assert now.keys() == state.keys()
    assert now["plan"].keys() == state["plan"].keys()
    assert now["discreet"] == state["discreet"]


def test_stored_states_of_model_and_optimizer_go_on():
    states = stored("training.pt")
    model = torch.nn.Linear(1, 1)
    optimizer = CorrectedAdam(model.parameters(), lr=0.05)
    model.load_state_dict(states["model"])
    optimizer.load_state_dict(states["optimizer"])
    before = {name: value.clone() for name, value in model.state_dict().items()}
    resumed(states["run"], model, optimizer)
    assert optimizer.param_groups[0]["taken"] == 6
    assert all(not torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_a_model_that_was_stored_while_its_run_was_open_is_an_ordinary_model():
    model = stored("open_model.pt")
    assert all(type(parameter) is torch.nn.Parameter for parameter in model.parameters())
    model(X).sum().backward()
    assert model.weight.grad is not None


def test_stored_objects_open():
    objects = stored("objects.pt")
    assert objects["adaptive"] == Adaptive(quantile=0.4)
    state = json.loads((FOLDER / "run.json").read_text())
    assert {name: getattr(objects["plan"], name) for name in state["plan"]} == state["plan"]
    assert objects["plan"].guarantee.epsilon(1e-5) <= 4
    assert type(objects["optimizer"]) is CorrectedAdam
    assert objects["optimizer"].param_groups[0]["taken"] == 3
