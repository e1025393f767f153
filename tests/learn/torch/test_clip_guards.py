# SPDX-License-Identifier: Apache-2.0
"""What mixes records or hides a parameter is found by tests on made-up records, not by a list of names."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from discreet.errors import BadParameter, RefusedTraining
from discreet.learn.torch import guards
from discreet.learn.torch.clip import Clipper

pytestmark = pytest.mark.usefixtures("seeded")


class Product(torch.autograd.Function):
    """A product that hides its weight from everybody but autograd."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.T

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        return gradient @ weight, gradient.T @ x


class Odd(nn.Module):
    """A model with one peculiarity."""

    def __init__(self, kind):
        super().__init__()
        self.first, self.last, self.kind = nn.Linear(4, 4), nn.Linear(4, 2), kind
        self.register_buffer("seen", torch.zeros(4))
        self.register_buffer("passes", torch.zeros(()))

    def forward(self, x):
        inside = self.first(x)
        if self.kind == "mean":
            inside = inside - inside.mean(0)
        elif self.kind == "detached mean":
            inside = inside - 1e-6 * inside.detach().mean(0)  # no gradient, and hardly any effect
        elif self.kind == "softmax over records":
            inside = inside.softmax(0)
        elif self.kind == "sorted":
            inside = inside.sort(0).values
        elif self.kind == "neighbour":
            inside = inside + inside.roll(1, 0)
        elif self.kind == "new buffer":
            self.seen = 0.9 * self.seen + 0.1 * x.detach().mean(0)
        elif self.kind == "buffer":
            self.seen.add_(x.detach().sum(0))
        elif self.kind == "counter":
            self.passes += 1
        elif self.kind == "hidden":
            return Product.apply(inside, self.last.weight)
        return self.last(inside)


def refusal_of(model, *inputs, **named):
    with pytest.raises(RefusedTraining) as refusal:
        guards.check(Clipper(model), inputs, **named)
    return refusal.value


@pytest.mark.parametrize(
    "kind", ["mean", "detached mean", "softmax over records", "sorted", "neighbour", "new buffer", "buffer"]
)
def test_a_model_that_mixes_records_is_refused(kind):
    assert refusal_of(Odd(kind), torch.randn(3, 4)).code == "DP922"


@pytest.mark.parametrize(
    "layer",
    [
        nn.BatchNorm1d(4),
        nn.BatchNorm1d(4, affine=False),
        nn.BatchNorm1d(4, track_running_stats=False),
        nn.BatchNorm1d(4, affine=False, track_running_stats=False),
    ],
)
def test_batch_norm_is_refused_in_every_form(layer):
    assert refusal_of(nn.Sequential(nn.Linear(4, 4), layer), torch.randn(3, 4)).code == "DP922"


def test_batch_norm_is_refused_without_a_test_too():
    model = nn.BatchNorm1d(4)
    with Clipper(model).watch(), pytest.raises(RefusedTraining) as refusal:
        model(torch.randn(3, 4))
    assert refusal.value.code == "DP922"


@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        (Odd("nothing"), torch.randn(3, 4)),
        (Odd("counter"), torch.randn(3, 4)),
        (nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).eval(), torch.randn(3, 4)),
        (nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 2)), torch.randn(3, 4)),
        (nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), torch.randn(3, 5, 4)),
        (nn.LSTM(4, 3, 2, dropout=0.5, batch_first=True), torch.randn(3, 5, 4)),
        (nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 2)), torch.randint(0, 2, (3, 4))),
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.Flatten()), torch.randn(3, 3, 5, 5)),
    ],
)
def test_a_model_that_keeps_records_apart_passes_and_is_left_as_it_was(model, inputs):
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.random.get_rng_state()
    guards.check(Clipper(model), (inputs,))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(p.grad is None and p.requires_grad for p in model.parameters())


class Merged(nn.Module):
    """Rows of a matrix: records with their positions behind them, or the other way round."""

    def __init__(self, *, positions_first):
        super().__init__()
        self.first, self.last, self.positions_first = nn.Linear(4, 5), nn.Linear(5, 2), positions_first

    def forward(self, x):
        records, length, width = x.shape
        if self.positions_first:
            out = self.last(self.first(x.transpose(0, 1).reshape(-1, width)).tanh())
            return out.view(length, records, -1).transpose(0, 1)
        return self.last(self.first(x.reshape(-1, width)).tanh()).view(records, length, -1)


def test_positions_behind_their_record_pass_and_records_behind_positions_do_not():
    x = torch.randn(3, 6, 4)
    clipper = Clipper(Merged(positions_first=False))
    guards.check(clipper, (x,))
    with clipper.watch():
        clipper.clipped_sum(clipper.model(x).sum((1, 2)), clip=1.0)
    assert refusal_of(Merged(positions_first=True), x).code == "DP921"


@pytest.mark.parametrize("length", [3, 5, 6])
def test_a_model_whose_first_axis_is_time_is_refused_even_if_it_looks_right(length):
    assert refusal_of(nn.TransformerEncoderLayer(4, 2, 8), torch.randn(length, 3, 4)).code == "DP922"
    assert refusal_of(nn.LSTM(4, 3), torch.randn(length, 3, 4)).code in {"DP921", "DP922"}


def test_a_hidden_use_is_refused_by_name():
    refusal = refusal_of(Odd("hidden"), torch.randn(3, 4))
    assert refusal.code == "DP921"
    assert "last.weight" in refusal.what
    assert "last.weight" in refusal.fix


def test_a_loss_is_tested_with_the_model():
    x = torch.randn(3, 4)
    assert refusal_of(nn.Linear(4, 2), x, loss=lambda m, x: m(x).mean()).code == "DP912"
    assert refusal_of(nn.Linear(4, 2), x, loss=lambda m, x: m(x).sum(1) - m(x).mean()).code == "DP922"
    guards.check(Clipper(nn.Linear(4, 2)), (x,), lambda m, x: m(x).square().sum(1))


@pytest.mark.parametrize("inputs", [(), (torch.zeros(2, 4),), (torch.zeros(()),), ("x",)])
def test_an_example_must_have_three_records(inputs):
    with pytest.raises(BadParameter) as refusal:
        guards.check(Clipper(nn.Linear(4, 2)), inputs)
    assert refusal.value.code == "DP104"


def test_a_made_up_example_has_the_shape_of_a_record():
    images, labels = guards.example(torch.zeros(1, 8, 8), torch.zeros((), dtype=torch.long), count=4)
    assert images.shape == (4, 1, 8, 8)
    assert set(labels.tolist()) <= {0, 1}
    assert torch.equal(images, guards.example(torch.zeros(1, 8, 8), count=4)[0])


@pytest.mark.parametrize("options", [{"max_norm": 1.0}, {"scale_grad_by_freq": True}, {"sparse": True}])
def test_embeddings_that_mix_records_are_refused(options):
    model = nn.Embedding(5, 3, **options)
    with Clipper(model).watch(), pytest.raises(RefusedTraining) as refusal:
        model(torch.zeros(2, 4, dtype=torch.long))
    assert refusal.value.code == "DP921"


def test_packed_sequences_are_refused_by_name():
    model = nn.LSTM(4, 3, batch_first=True)
    packed = nn.utils.rnn.pack_padded_sequence(
        torch.randn(3, 5, 4), torch.tensor([5, 4, 2]), batch_first=True
    )
    with Clipper(model).watch(), pytest.raises(RefusedTraining) as refusal:
        model(packed)
    assert refusal.value.code == "DP921"
    assert "weight_ih_l0" in refusal.value.what
