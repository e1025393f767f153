# SPDX-License-Identifier: Apache-2.0
"""What pretrained models do with parameters: tables of positions, biases of attention, windows, experts, mask tokens.

Each model is small and does one of these things. The guards test it with two and three records, and then the clipped
sum of another number of records must be that of the oracle.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from discreet.errors import RefusedTraining
from discreet.learn.torch import guards, private
from discreet.learn.torch.clip import Clipper
from tests.learn.torch.brute import clipped_by_hand, norm_of, record_gradients, wavy

pytestmark = pytest.mark.usefixtures("doubles")


def check_tested(model: nn.Module, x: Tensor, loss=wavy) -> None:
    """After its test the model is clipped as by hand, at a clip that binds for some records."""
    clipper = Clipper(model)
    guards.check(clipper, guards.example(x[0]))
    rows = record_gradients(model, x, loss)
    norms = torch.stack([norm_of(row) for row in rows])
    clip = float(norms.median())
    with clipper.watch():
        found = clipper.clipped_sum(loss(model, x), clip=clip)
    for parameter, wanted in zip(clipper.parameters, clipped_by_hand(rows, clip), strict=True):
        torch.testing.assert_close(found.gradients[parameter], wanted, rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(found.norms, norms, rtol=1e-6, atol=1e-9)


class Positions(nn.Module):
    """Positions in a row of their own, moved to a device and a type before they are added."""

    def __init__(self):
        super().__init__()
        self.tokens, self.positions, self.head = nn.Embedding(7, 6), nn.Embedding(9, 6), nn.Linear(6, 3)

    def forward(self, ids):
        places = torch.arange(ids.shape[1])[None]
        rows = self.tokens(ids) + self.positions(places).to(ids.device).permute(0, 2, 1).mT
        return self.head(torch.tanh(rows))


class FlatNorm(nn.Module):
    """Norms and convolutions of records and positions in one axis."""

    def __init__(self):
        super().__init__()
        self.norm, self.scale = nn.LayerNorm(6), nn.Parameter(torch.randn(6))
        self.convolution, self.group = nn.Conv1d(2, 4, 3), nn.GroupNorm(2, 4)

    def forward(self, x):
        flat = self.norm(x.reshape(-1, 6)) * self.scale
        frames = self.group(self.convolution(flat.view(-1, 2, 6)))
        return frames.reshape(x.shape[0], -1)


class Windows(nn.Module):
    """Attention in windows, with a bias that is looked up in a table by a fixed index."""

    def __init__(self):
        super().__init__()
        self.table, self.project = nn.Parameter(torch.randn(7, 2)), nn.Linear(4, 12)
        self.register_buffer("index", torch.arange(16).view(4, 4) % 7)
        self.register_buffer("grid", torch.linspace(-1, 1, 16)[:, None])
        self.network = nn.Sequential(nn.Linear(1, 5), nn.ReLU(), nn.Linear(5, 2, bias=False))

    def forward(self, x):
        windows = x.reshape(-1, 4, 4)  # two windows of four places for each record
        q, k, v = self.project(windows).view(-1, 4, 3, 2, 2).permute(2, 0, 3, 1, 4)
        bias = self.table[self.index.view(-1)].view(4, 4, 2).permute(2, 0, 1).contiguous()
        learned = 16 * torch.sigmoid(self.network(self.grid).view(4, 4, 2).permute(2, 0, 1))
        weights = (q @ k.mT + bias[None] + learned.unsqueeze(0)).softmax(-1)
        return (weights @ v).reshape(x.shape[0], -1)


class FusedAttention(nn.Module):
    """A bias of relative positions, in one call of attention."""

    def __init__(self):
        super().__init__()
        self.relative, self.project = nn.Embedding(5, 2), nn.Linear(4, 12)

    def forward(self, x):
        places = torch.arange(4)
        distance = (places[None] - places[:, None]).clamp(-2, 2) + 2
        bias = self.relative(distance).permute(2, 0, 1).unsqueeze(0)
        q, k, v = self.project(x).view(-1, 4, 3, 2, 2).permute(2, 0, 3, 1, 4)
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=bias).flatten(1)


class Repeated(nn.Module):
    """Keys of relative positions, repeated for every record and head, in a product of batches."""

    def __init__(self):
        super().__init__()
        self.relative, self.key, self.project = nn.Embedding(6, 4), nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        keys = self.key(self.relative.weight).view(6, 2, 2).transpose(0, 1)
        queries = self.project(x).view(-1, 4, 2, 2).transpose(1, 2).reshape(-1, 4, 2)
        scores = torch.bmm(queries, keys.repeat(x.shape[0], 1, 1).transpose(-1, -2))
        return scores.reshape(x.shape[0], -1)


class Experts(nn.Module):
    """Experts by token, with records and positions in one axis: in batched products, or sorted by expert."""

    def __init__(self, implementation="batched_mm"):
        super().__init__()
        self.router, self.experts = nn.Linear(4, 3), nn.Parameter(torch.randn(3, 5, 4))
        self.set_experts_implementation(implementation)

    def set_experts_implementation(self, implementation):
        self.implementation = implementation

    def forward(self, x):
        tokens = x.reshape(-1, 4)
        weight, chosen = self.router(tokens).softmax(-1).topk(2)
        rows, chosen = tokens.repeat_interleave(2, 0), chosen.reshape(-1)
        if self.implementation == "batched_mm":
            out = torch.bmm(self.experts[chosen], rows[..., None])[..., 0]
        else:
            order = chosen.argsort(stable=True)
            parts = rows[order].split(chosen.bincount(minlength=3).tolist())
            products = [functional.linear(part, self.experts[i]) for i, part in enumerate(parts)]
            out = torch.cat(products)[order.argsort()]
        return (out * weight.reshape(-1)[:, None]).view(x.shape[0], -1)


class MaskToken(nn.Module):
    """A token that takes some places of each record."""

    def __init__(self):
        super().__init__()
        self.token, self.head = nn.Parameter(torch.randn(4)), nn.Linear(4, 3)

    def forward(self, x):
        hidden = torch.tanh(x) + 1
        hidden[x[..., 0] > 0] = self.token.to(hidden.dtype)
        return self.head(hidden)


IDS = torch.tensor([[0, 3, 6, 3], [1, 1, 1, 1], [5, 4, 0, 6], [2, 2, 6, 0], [6, 5, 4, 3]])


@pytest.mark.parametrize(
    ("model", "x"),
    [
        (Positions, IDS),
        (FlatNorm, torch.randn(5, 4, 6)),
        (Windows, torch.randn(5, 8, 4)),
        (FusedAttention, torch.randn(5, 4, 4)),
        (Repeated, torch.randn(5, 4, 4)),
        (Experts, torch.randn(5, 4, 4)),
        (MaskToken, torch.randn(5, 4, 4)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_parts_of_pretrained_models_are_clipped_as_by_hand(model, x):
    torch.manual_seed(0)
    model, x = model().double(), x.double() if x.is_floating_point() else x
    check_tested(model, x)
    check_tested(model, x[:4])  # as many records as positions
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = private(model, optimizer, x, noise=1.0, steps=2, batch=3, size=5)
    for batch in run:
        run.backward(wavy(model, batch))
        optimizer.step()
    run.close()
    assert run.tested


class Interleaved(nn.Module):
    """Positions of all records lie behind each other, not those of one record."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)

    def forward(self, x):
        return self.norm(x.transpose(0, 1).reshape(-1, 4)).view(-1, x.shape[0], 4).transpose(0, 1)


class Tiled(nn.Module):
    """A table that is repeated once for each record, and then cut so that records share copies."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(3, 4))

    def forward(self, x):
        rows = self.table.repeat(x.shape[0], 1).view(3, x.shape[0], 4).transpose(0, 1)
        return x * rows.roll(1, 1)


class TokenByPlace(nn.Module):
    """A token in places that are the same for all records."""

    def __init__(self):
        super().__init__()
        self.token = nn.Parameter(torch.randn(4))

    def forward(self, x):
        hidden = torch.tanh(x) + 1
        hidden[:, 0] = self.token
        return hidden


@pytest.mark.parametrize("model", [Interleaved, TokenByPlace])
def test_another_order_of_records_and_positions_is_refused(model):
    clipper = Clipper(model().double())
    with pytest.raises(RefusedTraining) as refused:
        guards.check(clipper, guards.example(torch.zeros(3, 4, dtype=torch.float64)))
    assert refused.value.code == "DP921"


def test_a_table_whose_copies_are_cut_into_other_records_is_refused():
    torch.manual_seed(0)
    with pytest.raises(RefusedTraining) as refused:
        check_tested(Tiled().double(), torch.randn(5, 3, 4).double())
    assert refused.value.code == "DP922"


def test_a_table_that_the_test_saw_by_position_is_refused_by_record():
    """The loop looks up rows by record in a table that the model uses by position only."""
    torch.manual_seed(0)
    model = Positions().double()
    clipper = Clipper(model)
    guards.check(clipper, guards.example(IDS[0]))

    def loss(model, ids):
        return (wavy(model, ids) + model.positions(ids[:, :1]).sum((1, 2))).sin()

    with pytest.raises(RefusedTraining):
        clipped_after_test(clipper, loss, IDS)


def clipped_after_test(clipper, loss, x):
    with clipper.watch():
        return clipper.clipped_sum(loss(clipper.model, x), clip=1.0)


def test_experts_that_sort_all_records_are_refused_with_a_way_out():
    torch.manual_seed(0)
    model, x = Experts("sorted").double(), torch.randn(5, 4, 4).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = private(model, optimizer, x, noise=1.0, steps=1, batch=3, size=5)
    with pytest.raises(RefusedTraining) as refused:
        wavy(model, next(iter(run)))
    run.close()
    assert refused.value.code == "DP921"
    assert refused.value.fix == 'model.set_experts_implementation("batched_mm")'
    model.set_experts_implementation("batched_mm")
    check_tested(model, x)
