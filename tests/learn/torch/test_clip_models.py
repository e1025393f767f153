# SPDX-License-Identifier: Apache-2.0
"""Whole models: tied weights with their cross term, tokens and positions, shared modules, other people's blocks."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from discreet.errors import RefusedTraining
from discreet.learn.torch.clip import Clipper
from tests.learn.torch.brute import check_equal, clipped, wavy

RECORDS = 5
pytestmark = pytest.mark.usefixtures("doubles")


@pytest.mark.parametrize(
    "model",
    [
        lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
        lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=True),
        lambda: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), 2, enable_nested_tensor=False
        ),
    ],
)
@pytest.mark.parametrize("training", [True, False])
def test_encoders_of_torch_are_clipped_as_by_hand(model, training):
    check_equal(model().train(training), torch.randn(RECORDS, 6, 8))


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(4, dtype=x.dtype)
        return self.inner(x, x[:, :4] * 0.5, tgt_mask=mask, tgt_is_causal=True)


def test_an_encoder_and_its_decoder_are_clipped_as_by_hand():
    check_equal(Translator(), torch.randn(RECORDS, 6, 8))


class Language(nn.Module):
    def __init__(self, *, tied=True, places="row"):
        super().__init__()
        self.tokens, self.positions, self.norm = nn.Embedding(11, 8), nn.Embedding(9, 8), nn.LayerNorm(8)
        self.inwards, self.outwards = nn.Linear(8, 24), nn.Linear(8, 8)
        self.head = nn.Linear(8, 11, bias=False)
        self.flat, self.shift = nn.Parameter(torch.randn(8, 8)), nn.Parameter(torch.randn(8))
        self.places = places
        if tied:
            self.head.weight = self.tokens.weight

    def forward(self, ids):
        records, length = ids.shape
        places = torch.arange(length)
        where = {"row": places, "one": places[None], "all": places.expand(records, -1)}[self.places]
        x = self.tokens(ids) + self.positions(where)
        parts = self.inwards(self.norm(x)).chunk(3, -1)
        q, k, v = (part.view(records, length, 2, 4).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.outwards(mixed.transpose(1, 2).reshape(records, length, 8))
        x = x + torch.addmm(self.shift, x.view(-1, 8), self.flat).view(records, length, 8)
        return self.head(x)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("places", ["row", "one", "all"])
def test_a_language_model_with_tied_head_and_shared_positions(tied, places):
    check_equal(Language(tied=tied, places=places), torch.randint(0, 11, (RECORDS, 7)), merged=True)


def test_positions_in_the_first_axis_need_the_guards():
    ids = torch.randint(0, 11, (RECORDS, 7))
    with pytest.raises(RefusedTraining) as refusal:
        clipped(Language(), ids, 1.0)
    assert refusal.value.code == "DP921"
    assert "flat" in refusal.value.what


def test_the_cross_term_of_tied_weights_matters(monkeypatch):
    from discreet.learn.torch.pieces.rows import Tied

    monkeypatch.setattr(Tied, "_cross", lambda _: torch.zeros(RECORDS))
    monkeypatch.setattr(Tied, "_cross_with", lambda *_: torch.zeros(RECORDS))
    with pytest.raises(AssertionError):
        check_equal(Language(), torch.randint(0, 11, (RECORDS, 7)), merged=True)


class Vision(nn.Module):
    """Patches, a class token, positions, a layer scale, a temperature, a matrix and a product by hand."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, 4)
        self.token, self.positions = nn.Parameter(torch.randn(1, 1, 8)), nn.Parameter(torch.randn(1, 12, 8))
        self.block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.scale, self.heat = nn.Parameter(torch.rand(8)), nn.Parameter(torch.tensor(0.7))
        self.first, self.second = nn.Parameter(torch.randn(8, 4)), nn.Parameter(torch.randn(4, 3))

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1)
        x = x + self.positions[:, : x.shape[1]]
        x = (self.block(x) * self.scale).tanh() * self.heat.exp()
        return torch.einsum("btd,dk->btk", x @ self.first, self.second)


def test_bare_parameters_of_a_vision_transformer():
    check_equal(Vision(), torch.randn(RECORDS, 3, 8, 8))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
        self.second = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.norms = nn.ModuleList([nn.GroupNorm(2, 8), nn.GroupNorm(2, 8)])
        self.around, self.head = nn.Conv2d(3, 8, 1, stride=2), nn.Linear(8, 3)

    def forward(self, x):
        inside = self.norms[1](self.second(functional.relu(self.norms[0](self.first(x)))))
        return self.head(functional.relu_(inside + self.around(x)).mean((2, 3)))


def test_a_residual_block_is_clipped_as_by_hand():
    check_equal(Residual(), torch.randn(RECORDS, 3, 8, 8))


class Shared(nn.Module):
    """A module called twice, its weight used once more by a function, turned; a convolution called twice."""

    def __init__(self):
        super().__init__()
        self.layer, self.filter = nn.Linear(8, 8), nn.Conv1d(8, 8, 3, padding=1)

    def forward(self, x):
        x = self.layer(self.layer(x).tanh()).tanh() + functional.linear(x, self.layer.weight.T)
        return self.filter(self.filter(x.transpose(1, 2)).tanh())


def test_shared_modules_and_functional_use():
    check_equal(Shared(), torch.randn(RECORDS, 6, 8))


class Standardised(nn.Module):
    """A convolution whose weight is computed from a parameter."""

    def __init__(self):
        super().__init__()
        self.filter, self.gain = nn.Conv1d(8, 4, 3), nn.Parameter(torch.randn(4, 1, 1))

    def forward(self, x):
        weight = self.filter.weight
        weight = (weight - weight.mean((1, 2), keepdim=True)) / weight.std((1, 2), keepdim=True) * self.gain
        return functional.conv1d(x.transpose(1, 2), weight, self.filter.bias)


def test_weights_that_are_made_of_parameters():
    check_equal(Standardised(), torch.randn(RECORDS, 6, 8))
    check_equal(
        nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(8, 3))), torch.randn(RECORDS, 8)
    )


class Saving(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.second(checkpoint(lambda z: self.first(z).tanh(), x, use_reentrant=False))


def test_checkpointed_parts_and_changes_in_place():
    check_equal(Saving(), torch.randn(RECORDS, 8))
    layers = nn.Linear(8, 4), nn.ReLU(inplace=True), nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 2)
    check_equal(nn.Sequential(*layers), torch.randn(RECORDS, 3, 8))


def test_a_watched_model_is_still_a_model():
    model, x = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)), torch.randn(RECORDS, 4)
    plain = model(x)
    clipper = Clipper(model).open()
    wavy(model, x).sum().backward()
    assert all(p.grad is None for p in model.parameters())  # an ordinary backward pass gives nothing
    with torch.no_grad():
        torch.testing.assert_close(model(x), plain)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert all(type(p) is nn.Parameter and p.requires_grad for p in twin.parameters())
        torch.testing.assert_close(twin(x), plain)
    assert all(type(value) is torch.Tensor for value in model.state_dict().values())
    with clipper.pause():
        assert all(type(p) is nn.Parameter for p in model.parameters())
    assert model[0].weight.shape == (3, 4)
    clipper.close()
    wavy(model, x).sum().backward()
    assert all(p.grad is not None for p in model.parameters())
