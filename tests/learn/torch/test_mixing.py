# SPDX-License-Identifier: Apache-2.0
"""A catalogue of loops that people write: those whose losses are of one record each train, those that mix records are refused."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.functional import cross_entropy
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, TensorDataset, default_collate

from discreet.errors import RefusedTraining
from discreet.learn.torch import private
from tests.learn.torch.reference import data, loop, small, start_run

# --- losses -------------------------------------------------------------------------------------------------------------


def plain(model, x, y):
    return cross_entropy(model(x), y, reduction="none")


def counts_of_classes(model, x, y):
    return plain(model, x, y) / torch.bincount(y, minlength=2)[y]


def weights_by_class(model, x, y):
    weight = 1.0 / (torch.bincount(y, minlength=2) + 1.0)
    return cross_entropy(model(x), y, weight=weight, reduction="none")


def relative_to_the_mean(model, x, y):
    losses = plain(model, x, y)
    return losses / losses.detach().mean()


def below_the_median(model, x, y):
    losses = plain(model, x, y)
    return losses * (losses.detach() <= losses.detach().median())


def hardest_half(model, x, y):
    losses = plain(model, x, y)
    hard = torch.zeros_like(losses)
    hard[losses.detach().topk(len(losses) // 2).indices] = 1.0
    return losses * hard


def standardised_inputs(model, x, y):
    return plain(model, (x - x.mean(0)) / (x.std(0) + 1e-3), y)


def mixed_inputs(model, x, y):
    order = torch.randperm(len(x))
    return plain(model, 0.7 * x + 0.3 * x[order], y)


def other_rows(model, x, y):
    return plain(model, x.flip(0), y)


def detached_keys(model, x, y):
    queries, keys = model(x), model(x).detach()
    return cross_entropy(queries @ keys.T, torch.arange(len(x)), reduction="none")


def no_grad_statistics(model, x, y):
    with torch.no_grad():
        centre = model(x).mean(0)
    return (model(x) - centre).square().sum(1)


def through_data(model, x, y):
    losses = plain(model, x, y)
    return losses * losses.data.max()


def written_into_a_constant(model, x, y):
    table = torch.zeros(2, 3)
    table[0].copy_(x.sum(0))
    return plain(model, x + table[0], y)


def divided_by_the_size(model, x, y):
    return plain(model, x, y) / len(x)


def times_the_share(model, x, y):
    return plain(model, x, y) * (1 / x.shape[0])


MIXING = [
    counts_of_classes,
    weights_by_class,
    relative_to_the_mean,
    below_the_median,
    hardest_half,
    standardised_inputs,
    mixed_inputs,
    other_rows,
    detached_keys,
    no_grad_statistics,
    through_data,
    written_into_a_constant,
    divided_by_the_size,
    times_the_share,
]


@pytest.mark.parametrize("loss", MIXING, ids=lambda loss: loss.__name__)
def test_losses_that_mix_records_are_refused(loss):
    run, optimizer = start_run(steps=60, batch=20)
    with pytest.raises(RefusedTraining) as refusal:
        loop(run, optimizer, lambda x, y: loss(run.model, x, y))
    run.close()
    assert refusal.value.code == "DP922"
    assert run.steps < 60
    assert _get_current_dispatch_mode_stack() == []


def focal(model, x, y):
    losses = plain(model, x, y)
    return losses * (1 - (-losses.detach()).exp()) ** 2


def public_weights(model, x, y):
    return plain(model, x, y) * torch.tensor([1.0, 3.0])[y]


def noisy_inputs(model, x, y):
    return plain(model, functional.dropout(x + 0.1 * torch.randn_like(x), 0.2), y)


def augmented(model, x, y):
    flips = torch.rand(len(x), 1) < 0.5
    return plain(model, torch.where(flips, -x, x), y)


def two_views(model, x, y):
    views = torch.stack([x, -x], 1)
    return sum(cross_entropy(model(views[:, view]), y, reduction="none") for view in range(2)) / 2


def some_rows(model, x, y):
    """Rows that are chosen by their own values, and others that are not."""
    chosen = x[:, 0] > 0
    losses = plain(model, x, y)
    return torch.where(chosen, losses, 0.5 * losses)


def cut_rows(model, x, y):
    losses = x.new_zeros(len(x))
    return losses.index_add(0, torch.arange(len(x)), plain(model, x, y))


def soft_targets(model, x, y):
    target = functional.one_hot(y, 2).float() * 0.9 + 0.05
    return functional.binary_cross_entropy_with_logits(model(x), target, reduction="none").mean(1)


def logged(model, x, y):
    losses = plain(model, x, y)
    LOG.append(losses.mean().item())
    return losses


def normalised_by_record(model, x, y):
    return plain(model, (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-3), y)


def constants_like_sizes(model, x, y):
    return plain(model, x, y) * 20 / 20


LOG: list[float] = []
APART = [
    plain,
    focal,
    public_weights,
    noisy_inputs,
    augmented,
    two_views,
    some_rows,
    cut_rows,
    soft_targets,
    logged,
    normalised_by_record,
    constants_like_sizes,
]


@pytest.mark.parametrize("loss", APART, ids=lambda loss: loss.__name__)
@pytest.mark.parametrize("physical", [None, 7])
def test_losses_of_one_record_each_are_not(loss, physical):
    run, optimizer = start_run(steps=12, batch=20, physical=physical)
    loop(run, optimizer, lambda x, y: loss(run.model, x, y))
    assert run.steps == 12
    assert run.losses_tested


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, 3e38, 0.0])
def test_no_record_makes_a_loop_that_keeps_records_apart_fail(bad):
    x, y = data()
    x[::2] = bad
    run, optimizer = start_run(None, (x, y), steps=12, batch=20)
    loop(run, optimizer)
    assert run.losses_tested


def test_what_is_not_torch_is_not_tried_and_the_run_says_so():
    run, optimizer = start_run(steps=2)
    loop(run, optimizer, lambda x, y: plain(run.model, torch.tensor(x.tolist()), torch.tensor(y.tolist())))
    assert run.losses_tested is False
    assert "could not be tried" in run.explain()


def test_a_mode_of_the_loop_is_left_as_it_is():
    class Other(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    run, optimizer = start_run(steps=3)
    with Other():
        loop(run, optimizer)
    assert _get_current_dispatch_mode_stack() == []
    next(run.batches(0), None)
    other, _ = start_run(steps=3)
    batches = iter(other)
    next(batches)
    assert len(_get_current_dispatch_mode_stack()) == 2
    batches.close()
    assert _get_current_dispatch_mode_stack() == []


# --- models -------------------------------------------------------------------------------------------------------------


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Linear(3, 8), nn.Linear(4, 3)

    def forward(self, x):
        mean, log = self.encode(x).chunk(2, 1)
        return self.decode(mean + (0.5 * log).exp() * torch.randn_like(mean)), mean, log


class DropPath(nn.Module):
    """Stochastic depth: a coin for each record."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(3, 3), nn.Linear(3, 2)

    def forward(self, x):
        keep = torch.rand(len(x), 1) < 0.8
        return self.last(x + keep * self.first(x).tanh())


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        ids = (x.abs() * 4).long().clamp(0, 9)
        return self.head(self.layer(self.table(ids)).mean(1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.GRU(1, 4, 2, dropout=0.3, batch_first=True), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.layer(x[:, :, None])[0][:, -1])


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(1, 4, 2), nn.GroupNorm(2, 4), nn.ReLU(), nn.Dropout(0.3), nn.Flatten(), nn.Linear(8, 2)
        )

    def forward(self, x):
        return self.layers(x[:, None])


MODELS = {
    "words": Words,
    "recurrent": Recurrent,
    "images": Images,
    "stochastic depth": DropPath,
    "plain": small,
}


@pytest.mark.parametrize("exact", [False, True], ids=["float", "exact"])
@pytest.mark.parametrize("kind", MODELS)
def test_models_that_keep_records_apart_train(kind, exact):
    run, optimizer = start_run(MODELS[kind](), steps=3, exact=exact)
    loop(run, optimizer)
    assert run.steps == 3
    assert run.tested


def test_an_autoencoder_with_chance_in_its_middle_trains():
    run, optimizer = start_run(Autoencoder(), steps=3)

    def loss(x, _):
        again, mean, log = run.model(x)
        return (again - x).square().sum(1) - 0.5 * (1 + log - mean.square() - log.exp()).sum(1)

    loop(run, optimizer, loss)
    assert run.tested
    assert run.losses_tested


# --- batches ---------------------------------------------------------------------------------------------------------


class TableRows(Dataset):
    """Records of different lengths."""

    def __init__(self, count=12):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, place):
        return torch.full((1 + place % 3,), 1.0 + place), place % 2


def padded(side):
    def collate(records):
        longest = max(len(x) for x, _ in records)
        pads = [(longest - len(x), 0) if side == "left" else (0, longest - len(x)) for x, _ in records]
        rows = [functional.pad(x, pad) for (x, _), pad in zip(records, pads, strict=True)]
        return torch.stack(rows), torch.tensor([y for _, y in records])

    return collate


def centred(records):
    x, y = default_collate([(x[:1], y) for x, y in records])
    return x - x.mean(0), y


def start_with(collate, *, loader):
    model = nn.Linear(1, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    records, settings = TableRows(), {"steps": 3, "batch": 6, "size": 12, "collate": collate}
    if loader:
        records, settings = DataLoader(records, batch_size=6, collate_fn=collate), {"epochs": 1}
    return private(model, optimizer, records, noise=1.0, **settings), optimizer


@pytest.mark.parametrize("loader", [False, True], ids=["drawn", "loader"])
def test_a_function_that_makes_batches_must_keep_records_apart(loader):
    run, _ = start_with(centred, loader=loader)
    with pytest.raises(RefusedTraining) as refusal:
        [next(iter(run)) for _ in range(20)]
    assert refusal.value.code == "DP922"


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("loader", [False, True], ids=["drawn", "loader"])
def test_padding_is_not_mixing(loader, side):
    run, optimizer = start_with(padded(side), loader=loader)
    with warnings.catch_warnings(action="ignore"):
        loop(
            run, optimizer, lambda x, y: cross_entropy(run.model(x.sum(1, keepdim=True)), y, reduction="none")
        )
    assert run.steps == run.plan.steps


TWICE = {
    "concatenated": lambda one: ConcatDataset([one, one]),
    "within": lambda one: ConcatDataset([one, ConcatDataset([TableRows(), one])]),
    "bootstrap": lambda one: Subset(one, [0, 1, 1, 2]),
    "overlap": lambda one: ConcatDataset([Subset(one, [0, 1, 2]), Subset(one, [2, 3])]),
    "whole and part": lambda one: ConcatDataset([Subset(one, [0, 1, 2]), one]),
}


@pytest.mark.parametrize("loader", [False, True], ids=["drawn", "loader"])
@pytest.mark.parametrize("kind", TWICE)
def test_data_that_have_a_record_twice_are_refused(kind, loader):
    model, records = small(), TWICE[kind](TensorDataset(*data(12)))
    settings = {"epochs": 1} if loader else {"steps": 1, "batch": 2}
    records = DataLoader(records, batch_size=2) if loader else records
    with pytest.raises(RefusedTraining) as refusal:
        private(model, torch.optim.SGD(model.parameters(), lr=0.1), records, noise=1.0, **settings)
    assert refusal.value.code == "DP913"


def test_parts_that_share_no_record_may_be_put_together():
    one = TensorDataset(*data(12))
    records = ConcatDataset([Subset(one, [0, 1, 2]), Subset(one, [3, 4, 5, 6]), TensorDataset(*data(4))])
    run, optimizer = start_run(None, records, size=11, batch=5)
    loop(run, optimizer)
    assert run.steps == 3
