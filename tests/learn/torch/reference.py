# SPDX-License-Identifier: Apache-2.0
"""Clipping as the textbook says it, record by record, and small things to train: what the tests compare with."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import torch
from torch.nn.functional import cross_entropy

from discreet.learn.torch import private


class Reference:
    """The gradient of every record by itself, clipped, and added up in double precision."""

    def __init__(self, model):
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]

    def open(self):
        return self

    def close(self):
        pass

    def pause(self):
        return nullcontext()

    def clipped_sum(self, losses, *, clip, weights=None):
        total = [torch.zeros_like(p, dtype=torch.float64) for p in self.parameters]
        below = 0
        for place, loss in enumerate(losses):
            found = torch.autograd.grad(loss, self.parameters, retain_graph=True, allow_unused=True)
            each = [
                torch.zeros_like(p).double() if g is None else g.double()
                for p, g in zip(self.parameters, found, strict=True)
            ]
            norm = torch.stack([g.norm() for g in each]).norm()
            weight = 1.0 if weights is None else float(weights[place])
            if torch.isfinite(norm) and weight > 0:
                factor = weight * min(1.0, float(clip) / max(float(norm), 1e-300))
                total = [t + factor * g for t, g in zip(total, each, strict=True)]
                below += int(norm <= clip)
        gradients = {p: t.to(p.dtype) for p, t in zip(self.parameters, total, strict=True)}
        return SimpleNamespace(gradients=gradients, below=torch.tensor(below))


def small(inputs=3, classes=2, width=4):
    return torch.nn.Sequential(
        torch.nn.Linear(inputs, width), torch.nn.Tanh(), torch.nn.Linear(width, classes)
    )


def data(count=60, inputs=3, classes=2):
    x = torch.linspace(-2, 2, count * inputs).reshape(count, inputs).sin()
    return x, torch.arange(count) % classes


def start_run(model=None, records=None, optimizer=None, **settings):
    """A run on small data; what is not said is plain."""
    model = small() if model is None else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1) if optimizer is None else optimizer
    plain = {"noise": 1.0, "steps": 3, "batch": 10, "size": 60}
    if settings.get("sampling") == "fixed":
        plain.pop("size")
    return private(model, optimizer, data() if records is None else records, **(plain | settings)), optimizer


def loop(run, optimizer, loss=None):
    """The loop of the manual."""
    for x, y in run:
        run.backward(cross_entropy(run.model(x), y, reduction="none") if loss is None else loss(x, y))
        optimizer.step()
        optimizer.zero_grad()
    return run
