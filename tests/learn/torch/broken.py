# SPDX-License-Identifier: Apache-2.0
"""Training that goes wrong in ways that were seen elsewhere: the auditor must find each of them."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from discreet.learn.torch import noise, sums
from tests.learn.torch.reference import Reference


class Whole(Reference):
    """Gradients of the whole batch at once; subclasses say what is done to them."""

    def of(self, total, records, clip):
        raise AssertionError

    def clipped_sum(self, losses, *, clip, weights=None):
        kept = losses if weights is None else torch.where(weights > 0, losses, 0.0)
        found = torch.autograd.grad(kept.sum(), self.parameters, allow_unused=True)
        filled = [
            torch.zeros_like(p) if g is None else g for p, g in zip(self.parameters, found, strict=True)
        ]
        norm = torch.stack([g.norm() for g in filled]).norm()
        factor = self.of(norm, len(losses), clip)
        gradients = {p: g * factor for p, g in zip(self.parameters, filled, strict=True)}
        return SimpleNamespace(gradients=gradients, below=torch.tensor(0))


class ClippedAfterAveraging(Whole):
    """The mean is clipped, not the records: clip(mean) · records, to be divided again."""

    def of(self, total, records, clip):
        return min(1.0, clip / float(total / records))


class NotClipped(Whole):
    def of(self, total, records, clip):
        return 1.0


def without_noise(monkeypatch):
    monkeypatch.setattr(noise, "normals", lambda count, *_: torch.zeros(count, dtype=torch.float64))


def with_noise_for_the_mean(monkeypatch):
    """The noise of a mean, added to a sum: the divisor takes it away a second time."""
    real = sums.scales_for

    def wrong(*, noise, clip, dimension):
        right = real(noise=noise, clip=clip, dimension=dimension)
        return right._replace(spread=right.spread / 20)

    monkeypatch.setattr(sums, "scales_for", wrong)
