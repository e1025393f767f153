# SPDX-License-Identifier: Apache-2.0
"""Every layer's clipped sum is that of brute force: one record at a time, by autograd, in float64."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from discreet.learn.torch.pieces import outer
from tests.learn.torch.brute import check_equal, clipped, record_gradients

RECORDS = 5
pytestmark = pytest.mark.usefixtures("doubles")


def numbers(*shape):
    return torch.randn(RECORDS, *shape)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (lambda: nn.Linear(4, 7), (4,)),
        (lambda: nn.Linear(4, 7, bias=False), (4,)),
        (lambda: nn.Linear(16, 18), (2, 3, 16)),  # Gram matrices
        (lambda: nn.Linear(4, 3), (6, 4)),  # the gradient itself
        (lambda: nn.LayerNorm(6), (3, 6)),
        (lambda: nn.LayerNorm((3, 6), bias=False), (2, 3, 6)),
        (lambda: nn.RMSNorm(6), (3, 6)),
        (lambda: nn.GroupNorm(2, 6), (6, 4, 3)),
        (lambda: nn.InstanceNorm2d(6, affine=True), (6, 4, 3)),
        (lambda: nn.BatchNorm1d(6).eval(), (6,)),
        (nn.PReLU, (6, 4)),
        (lambda: nn.PReLU(6), (6, 4)),
        (lambda: nn.ConvTranspose1d(4, 6, 3, dilation=2), (4, 5)),
        (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), (4, 5, 6)),
        (lambda: nn.Conv1d(4, 8, 3, stride=2, padding=1), (4, 9)),
        (lambda: nn.Conv3d(2, 4, (3, 2, 1), stride=2, padding=1), (2, 5, 6, 4)),
        (lambda: nn.Conv2d(16, 24, 3), (16, 4, 5)),  # Gram matrices
        (lambda: nn.Conv2d(32, 48, 3, groups=2, dilation=2, padding=1), (32, 5, 5)),
    ],
)
def test_a_layer_clips_as_by_hand(layer, shape):
    check_equal(nn.Sequential(nn.Linear(shape[-1], shape[-1]), layer(), nn.Tanh()), numbers(*shape))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2, "bias": False},
        {"padding": 1},
        {"dilation": 2},
        {"groups": 2},
        {"padding": "same", "dilation": 2},
        {"padding": "valid"},
        {"padding": 1, "padding_mode": "reflect"},
        {"padding": 2, "padding_mode": "circular"},
        {"groups": 4, "stride": (2, 1), "padding": (1, 2)},
    ],
)
def test_a_convolution_clips_as_by_hand(options):
    check_equal(nn.Sequential(nn.Conv2d(4, 8, 3, **options), nn.Tanh()), numbers(4, 7, 8))


@pytest.mark.parametrize("options", [{}, {"padding_idx": 0}, {"padding_idx": -1}])
def test_an_embedding_adds_up_repeated_ids(options):
    model = nn.Sequential(nn.Embedding(6, 4, **options), nn.Tanh(), nn.Linear(4, 3))
    check_equal(model, torch.randint(0, 6, (RECORDS, 7)))


class OneId(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(11, 4), nn.Linear(4, 2)

    def forward(self, ids):
        return self.out(self.table(ids[:, 0]))


def test_one_id_for_each_record():
    check_equal(OneId(), torch.randint(0, 11, (RECORDS, 1)))


class Sequence(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        first = self.layer.batch_first
        out = self.layer(x if first else x.transpose(0, 1))[0]
        return out if first else out.transpose(0, 1)


class Steps(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, x):
        state = None
        for place in range(x.shape[1]):
            state = self.cell(x[:, place], state)
        return state[0] if isinstance(state, tuple) else state


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize(
    "options",
    [{"batch_first": True}, {"num_layers": 2, "bidirectional": True}, {"bias": False, "batch_first": True}],
)
def test_recurrent_layers_are_the_same_and_clip_as_by_hand(kind, options):
    model, x = Sequence(kind(8, 3, **options)), numbers(6, 8)
    check_same_forward(model, x)
    check_equal(model, x)


@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_cells_clip_as_by_hand(kind):
    check_equal(Steps(kind(8, 3)), numbers(4, 8))


def test_relu_and_projection_in_recurrent_layers():
    check_equal(Sequence(nn.RNN(8, 3, nonlinearity="relu", batch_first=True)), numbers(4, 8))
    check_equal(Sequence(nn.LSTM(8, 4, proj_size=2, batch_first=True)), numbers(4, 8))


class Attending(nn.Module):
    def __init__(self, *, weights=True, crossed=False, batch_first=True, **options):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=batch_first, **options)
        self.weights, self.crossed = weights, crossed

    def forward(self, x):
        other, mask = x, None
        if self.crossed:
            other = (2 * x[:, :3, : self.attention.kdim]).tanh()
            mask = torch.zeros(len(x), 3, dtype=torch.bool)
            mask[:, 2] = True
        if not self.attention.batch_first:
            x, other = (
                (x.transpose(0, 1), other.transpose(0, 1)) if self.crossed else (x.transpose(0, 1),) * 2
            )
        out = self.attention(x, other, other, key_padding_mask=mask, need_weights=self.weights)[0]
        return out if self.attention.batch_first else out.transpose(0, 1)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weights": False},
        {"bias": False},
        {"add_bias_kv": True, "add_zero_attn": True},
        {"crossed": True},
        {"crossed": True, "batch_first": False},
        {"crossed": True, "kdim": 5, "vdim": 5},
        {"batch_first": False, "weights": False},
    ],
)
def test_attention_is_the_same_and_clips_as_by_hand(options):
    model, x = Attending(**options), numbers(6, 8)
    check_same_forward(model, x)
    check_equal(model, x)


def check_same_forward(model, x):
    from discreet.learn.torch.clip import Clipper

    plain = model(x)
    with Clipper(model).watch():
        watched = model(x)
    torch.testing.assert_close(watched, plain, rtol=1e-12, atol=1e-12)


class Bilinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Bilinear(8, 8, 3)

    def forward(self, x):
        return self.layer(x[:, 0], x[:, 1])


def test_a_function_without_a_rule_is_differentiated_record_by_record():
    check_equal(Bilinear(), numbers(2, 8), merged=True)


def test_the_oracle_sees_a_wrong_norm(monkeypatch):
    """Without the gradient of the bias the norm is too small, and the comparison fails."""
    from discreet.learn.torch import tape

    def without_biases(pieces):
        return tape_measured([piece for piece in pieces if isinstance(piece, tape.Outer)])

    tape_measured = tape.measure_together
    monkeypatch.setattr(tape, "measure_together", without_biases)
    with pytest.raises(AssertionError):
        check_equal(nn.Sequential(nn.Linear(4, 7), nn.Tanh()), numbers(4))


@pytest.mark.parametrize("frozen", [None, "weight", "bias"])
def test_layers_with_one_position_are_measured_together_as_they_are_one_by_one(frozen):
    pieces = []
    for width in (3, 5):
        signal = outer.Signal(numbers(width))
        weight, bias = outer.Outer(numbers(4), signal), outer.OuterBias(signal)
        pieces += [piece for piece, name in ((weight, "weight"), (bias, "bias")) if name != frozen]
    together = outer.measure_together(pieces)
    alone = torch.stack([piece.measure().rooted for piece in pieces]).norm(dim=0)
    torch.testing.assert_close(together.norms, alone)


def test_a_loss_that_uses_a_weight_itself():
    def penalised(model, x):
        return functional.softplus(model(x)).sum(1) + 0.1 * sum((p**2).sum() for p in model.parameters())

    check_equal(nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 2)), numbers(8), penalised)


def test_frozen_parameters_take_no_part():
    model = nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 2))
    model[0].weight.requires_grad_(False)
    model[2].bias.requires_grad_(False)
    x = numbers(8)
    found = clipped(model, x, 1.0)
    assert set(found.gradients) == {model[0].bias, model[2].weight}
    assert len(record_gradients(model, x)[0]) == 2
    assert not model[0].weight.requires_grad
