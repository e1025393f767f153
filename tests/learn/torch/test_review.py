# SPDX-License-Identifier: Apache-2.0
"""Loops that look harmless and are not: each must be refused, or do nothing that is not paid for."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

from discreet.errors import RefusedTraining
from discreet.learn.torch import private

X, Y = torch.randn(16, 4, generator=torch.Generator().manual_seed(1)), torch.arange(16) % 2


def begun(model=None, data=None, optimizer=None, **named):
    model = model or nn.Linear(4, 2)
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    settings = {"noise": 1.0, "steps": 3, "batch": 16, "size": 16, "sampling": "full"} | named
    return model, optimizer, private(model, optimizer, (X, Y) if data is None else data, **settings)


def losses(model, x, y):
    return cross_entropy(model(x), y, reduction="none")


def trained(model, optimizer, run, loss=losses):
    for x, y in run:
        run.backward(loss(model, x, y))
        optimizer.step()
    return run


def check_refused(code, model=None, loss=losses, **named):
    model, optimizer, run = begun(model, **named)
    with pytest.raises(RefusedTraining, match=code), run:
        trained(model, optimizer, run, loss)


class TableRows(nn.Module):
    """Sees records and positions as one axis, which is right."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(2, 5), nn.Linear(5, 2)

    def forward(self, x):
        return self.two(self.one(x.reshape(-1, 2)).tanh()).view(len(x), -1, 2).mean(1)


@pytest.mark.parametrize("model", [lambda: nn.Linear(4, 2), TableRows])
@pytest.mark.parametrize("views", [2, 4])
def test_views_that_are_joined_are_refused(model, views):
    def join_pieces(model, x, y):
        return (
            cross_entropy(model(torch.cat([x] * views)), torch.cat([y] * views), reduction="none")
            .view(views, -1)
            .mean(0)
        )

    check_refused("DP92", model(), join_pieces)


def test_views_that_are_joined_are_refused_by_their_rows_alone(monkeypatch):
    monkeypatch.setattr("discreet.learn.torch.clip.Clipper.probe", lambda *_: None)
    for model in (nn.Linear(4, 2), TableRows()):
        check_refused(
            "DP921",
            model,
            lambda m, x, y: losses(m, torch.cat([x, x]), torch.cat([y, y])).view(2, -1).mean(0),
        )


def test_positions_behind_their_record_are_allowed_also_with_canaries():
    for more in ({}, {"canaries": 5, "sampling": "poisson"}):
        run = trained(*begun(TableRows(), **more))
        assert (run.steps, run.tested) == (3, True)


def test_other_trainable_parameters_are_refused_and_get_nothing():
    model, optimizer, run = begun(steps=1)
    other = nn.Linear(2, 2)
    for x, y in run:
        with pytest.raises(RefusedTraining, match="DP921"):
            run.backward(cross_entropy(other(model(x)), y, reduction="none"))
        with pytest.raises(RefusedTraining, match="DP911"):
            optimizer.step()
        break
    model, optimizer, run = begun(steps=2)
    for x, y in run:
        out = model(x) if run.steps == 0 else other(model(x))
        run.backward(cross_entropy(out, y, reduction="none"))
        optimizer.step()
    assert all(parameter.grad is None for parameter in other.parameters())


def test_a_closed_run_does_not_train():
    model, optimizer, run = begun()
    run.close()
    with pytest.raises(RefusedTraining, match="this run is closed"):
        trained(model, optimizer, run)
    with pytest.raises(RefusedTraining, match="this run is closed"):
        run.backward(losses(model, X, Y))


class Centred(nn.Linear):
    def forward(self, x):
        return super().forward(x - x.mean(0, keepdim=True).detach())


def test_a_model_that_was_refused_is_refused_again():
    model, optimizer, run = begun(Centred(4, 2))
    for _ in range(2):
        with pytest.raises(RefusedTraining, match="DP922"):
            trained(model, optimizer, run)
    assert run.steps == 0


def test_a_released_gradient_stays_what_it_was():
    model, optimizer, run = begun(noise=1000.0)
    batches = iter(run)
    run.backward(losses(model, *next(batches)))
    optimizer.step()
    held = model.weight.grad
    kept = held.clone()
    optimizer.zero_grad()
    run.backward(losses(model, *next(batches)))
    assert torch.equal(held, kept)


def test_two_loops_at_once_are_refused():
    model, optimizer, run = begun(physical=8)
    one, other = iter(run), iter(run)
    for batches in (one, other):
        run.backward(losses(model, *next(batches)))
        optimizer.step()
    with pytest.raises(RefusedTraining, match="DP911"):
        next(one)


class Weighed(nn.Module):
    """A function without a rule, and a constant that is as long as the batch may be."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2, 16))
        self.register_buffer("each", torch.linspace(-1, 1, 16))

    def forward(self, x):
        return torch.einsum("bd,d,od->bo", x, self.each, self.weight)


def test_a_constant_as_long_as_the_batch_is_no_record():
    sums = []
    for count in (16, 17):
        torch.manual_seed(0)
        model = Weighed()
        data = (torch.ones(count, 16), torch.zeros(count, dtype=torch.long))
        _, optimizer, run = begun(model, data, batch=1, noise=1e-6, steps=1, clip=1.0)
        trained(model, optimizer, run)
        sums.append(model.weight.grad.clone())
        assert run.tested
        run.close()
    assert float((sums[0] - sums[1]).norm()) <= 1.001


class Named(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(4, 4), norm), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.body(x["x"] if isinstance(x, dict) else x))


class Mean(nn.Module):
    def forward(self, x):
        return x - x.mean(0, keepdim=True).detach()


CALLS = {
    "by name": lambda m, x, y: cross_entropy(m(x=x), y, reduction="none"),
    "dictionary": lambda m, x, y: cross_entropy(m({"x": x}), y, reduction="none"),
    "in parts": lambda m, x, y: cross_entropy(m.head(m.body(x)), y, reduction="none"),
}


@pytest.mark.parametrize("call", CALLS)
def test_batch_statistics_are_refused_however_the_model_is_called(call):
    check_refused("DP922", Named(nn.BatchNorm1d(4, affine=False)), CALLS[call])
    if call != "in parts":
        check_refused("DP922", Named(Mean()), CALLS[call])


@pytest.mark.parametrize("call", ["by name", "dictionary"])
def test_a_model_that_is_called_by_name_is_tested(call):
    model, optimizer, run = begun(Named(nn.Tanh()))
    assert trained(model, optimizer, run, CALLS[call]).tested is True


def test_a_model_that_is_never_called_is_not_tested_and_says_so():
    model, optimizer, run = begun(Named(nn.Tanh()))
    with pytest.warns(UserWarning, match="assumes that it keeps records apart"):
        trained(model, optimizer, run, CALLS["in parts"])
    assert "assumes that it keeps records apart" in run.explain()


def test_a_model_is_tested_again_when_it_changes():
    model, optimizer, run = begun(
        nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4, affine=False), nn.Linear(4, 2))
    )
    model.eval()(X)
    model.train()
    with pytest.raises(RefusedTraining, match="DP922"):
        trained(model, optimizer, run)
    model, optimizer, run = begun(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)))
    batches = iter(run)
    run.backward(losses(model, *next(batches)))
    optimizer.step()
    model[0].register_forward_hook(lambda _layer, _given, out: out - out.mean(0).detach())
    x, y = next(batches)
    with pytest.raises(RefusedTraining, match="DP922"):
        losses(model, x, y)


def test_a_loader_that_gives_records_more_than_once_is_refused():
    data = TensorDataset(X, Y)
    optimizer = torch.optim.SGD((model := nn.Linear(4, 2)).parameters(), lr=0.1)
    for sampler in (
        RandomSampler(data, num_samples=160),
        RandomSampler(range(160)),
        type("Mine", (RandomSampler,), {})(data),
    ):
        with pytest.raises(RefusedTraining, match="DP913"):
            private(model, optimizer, DataLoader(data, 4, sampler=sampler), noise=1.0, epochs=1)


def test_a_guarantee_of_fewer_steps_says_when_it_holds():
    assert "fixed in advance" in begun()[2].explain()


@pytest.mark.parametrize(
    "loss",
    [
        lambda m, x, _: cross_entropy(m(x) @ m(x).T, torch.arange(len(x)), reduction="none"),
        lambda m, x, y: losses(m, x, y) + losses(m, x, y).mean(),
    ],
)
def test_losses_that_mix_records_are_refused(loss):
    check_refused("DP922", None, loss)


def test_records_that_are_not_numbers_are_no_mixing():
    x = X.clone()
    x[3], x[4] = torch.nan, torch.inf
    assert trained(*begun(data=(x, Y))).steps == 3
