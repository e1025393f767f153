# SPDX-License-Identifier: Apache-2.0
"""What is trained: a model, a batch of random records of its shape, and the loss of each record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import models
import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Task:
    """One row of the table."""

    name: str
    batch: int
    model: Callable[[], nn.Module]
    records: Callable[[int], tuple[Tensor, Tensor]]

    def build(self, device: str) -> nn.Module:
        """The model with the same weights every time."""
        torch.manual_seed(7)
        with torch.device(device):
            return self.model().train()

    def data(self, device: str) -> tuple[Tensor, Tensor]:
        torch.manual_seed(8)
        with torch.device(device):
            return self.records(self.batch)


class PerRecord(nn.Module):
    """The cross-entropy of each record; of a text, the mean over its places.

    It has the attribute `reduction` of torch's own criteria, which one of the libraries sets and reads.
    """

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        if outputs.dim() == 3:
            places = functional.cross_entropy(outputs.flatten(0, 1), targets.flatten(), reduction="none")
            losses = places.reshape(targets.shape).mean(1)
        else:
            losses = functional.cross_entropy(outputs, targets, reduction="none")
        return losses.mean() if self.reduction == "mean" else losses


def _pictures(channels: int, side: int, classes: int) -> Callable[[int], tuple[Tensor, Tensor]]:
    return lambda count: (torch.randn(count, channels, side, side), torch.randint(classes, (count,)))


def _rows(width: int) -> Callable[[int], tuple[Tensor, Tensor]]:
    return lambda count: (torch.randn(count, width), torch.randint(10, (count,)))


def _texts(vocabulary: int, length: int) -> Callable[[int], tuple[Tensor, Tensor]]:
    def records(count: int) -> tuple[Tensor, Tensor]:
        tokens = torch.randint(vocabulary, (count, length + 1))
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    return records


def _sentences(vocabulary: int, length: int) -> Callable[[int], tuple[Tensor, Tensor]]:
    return lambda count: (torch.randint(vocabulary, (count, length)), torch.randint(2, (count,)))


def _task(name: str, batch: int, model: Callable[..., nn.Module], records: Any, **sizes: int) -> Task:
    return Task(name, batch, lambda: model(**sizes), records)


LARGE = [
    _task("MLP 784-1024-1024-10, B=2048", 2048, models.mlp, _rows(784)),
    _task("ResNet-18 GroupNorm 32×32, B=256", 256, models.resnet18, _pictures(3, 32, 10)),
    _task("ViT-small/16 224, B=128", 128, models.Vision, _pictures(3, 224, 1000)),
    _task("GPT-2 small, T=256, B=32", 32, models.Language, _texts(50_257, 256)),
]
SMALL = [
    _task("MLP 784-1024-1024-10, B=256", 256, models.mlp, _rows(784)),
    _task("CNN of MNIST, B=128", 128, models.cnn, _pictures(1, 28, 10)),
    _task("encoder, 2 blocks of 128, T=64, B=32", 32, models.Encoder, _sentences(8192, 64)),
    _task(
        "ResNet-18 GroupNorm 32×32, width 16, B=32",
        32,
        models.resnet18,
        _pictures(3, 32, 10),
        width=16,
        groups=8,
    ),
]
TINY = [
    _task("MLP", 5, models.mlp, _rows(6), width=8, inputs=6),
    _task("CNN", 4, models.cnn, _pictures(1, 28, 10), width=2),
    _task(
        "encoder", 3, models.Encoder, _sentences(11, 6), vocabulary=11, width=8, heads=2, depth=1, length=6
    ),
    _task("ResNet", 3, models.resnet18, _pictures(3, 8, 10), width=4, groups=2),
    _task("ViT", 3, models.Vision, _pictures(3, 8, 5), width=8, heads=2, depth=1, patch=4, side=8, classes=5),
    _task("GPT", 3, models.Language, _texts(13, 5), vocabulary=13, width=8, heads=2, depth=1, length=8),
]
