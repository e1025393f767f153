# SPDX-License-Identifier: Apache-2.0
"""Whole models in the precision that people train in, on a GPU where there is one, and large enough for its kernels."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from discreet.learn.torch.clip import Clipper
from tests.learn.torch.brute import clipped_by_hand, norm_of, record_gradients

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
RECORDS, BAD = 24, 3


class Text(nn.Module):
    """A block of a transformer, with 24 · 200 · 1024 numbers in its middle."""

    def __init__(self):
        super().__init__()
        self.tokens, self.norm = nn.Embedding(50, 256), nn.LayerNorm(256)
        self.wide, self.narrow, self.head = nn.Linear(256, 1024), nn.Linear(1024, 256), nn.Linear(256, 5)

    def forward(self, tokens):
        x = self.tokens(tokens)
        x = x + self.narrow(torch.tanh(self.wide(self.norm(x))))
        return self.head(x.mean(1))


def text():
    return Text(), torch.randint(50, (RECORDS, 200))


def pictures():
    model = nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1), nn.GroupNorm(8, 64), nn.Tanh(),
        nn.Conv2d(64, 64, 3, stride=2, padding=1, bias=False), nn.Tanh(), nn.Flatten(), nn.Linear(64 * 16 * 16, 5),
    )  # fmt: skip
    return model, torch.randn(RECORDS, 3, 32, 32)


def rows():
    model = nn.Sequential(nn.Linear(300, 512), nn.Tanh(), nn.LayerNorm(512), nn.Linear(512, 5))
    return model, torch.randn(RECORDS, 300)


def falling(model, x):
    """A loss that every output of every record takes part in."""
    out = model(x)
    return functional.softplus(out.float() if out.dtype == torch.bfloat16 else out).sum(1)


def made(what):
    torch.manual_seed(4)
    return tuple(each.to(DEVICE) for each in what())


def by_hand(model, x):
    """The gradients of all records, in doubles."""
    return record_gradients(
        copy.deepcopy(model).double(), x.double() if x.is_floating_point() else x, falling
    )


def check_near(model, found, wanted, tolerance):
    for (name, parameter), whole in zip(model.named_parameters(), wanted, strict=True):
        error = (found.gradients[parameter].double() - whole).norm() / whole.norm()
        assert float(error) < tolerance, name


@pytest.mark.parametrize("what", [text, pictures, rows])
@pytest.mark.parametrize("narrow", [False, True], ids=["float32", "bfloat16"])
def test_clipped_sums_are_those_of_brute_force(what, narrow):
    model, x = made(what)
    each = by_hand(model, x)
    norms = torch.stack([norm_of(row) for row in each])
    clip = float(norms.median())
    clipper = Clipper(model)
    with clipper.watch(), torch.autocast(DEVICE, torch.bfloat16, enabled=narrow):
        found = clipper.clipped_sum(falling(model, x), clip=clip)
    check_near(model, found, clipped_by_hand(each, clip), 0.03 if narrow else 0.005)
    ratio = found.norms.double() / norms
    assert float(ratio.min()) > (0.97 if narrow else 0.999)
    assert float(ratio.max()) < 1.1


@pytest.mark.parametrize("what", [pictures, rows])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_record_that_is_not_finite_adds_nothing_and_changes_nobody(what, value):
    model, x = made(what)
    others = torch.arange(RECORDS, device=DEVICE) != BAD
    wanted = clipped_by_hand(by_hand(model, x[others]), 1.0)
    x[BAD].view(-1)[7] = value
    clipper = Clipper(model)
    with clipper.watch():
        found = clipper.clipped_sum(falling(model, x), clip=1.0)
    assert float(found.factors[BAD]) == 0.0
    check_near(model, found, wanted, 0.005)
