# SPDX-License-Identifier: Apache-2.0
"""The models that are trained: plain torch, the same for every library.

No parameter stands alone (position tables are embeddings, the class token is the first of them) and no weight is
used twice, because some of the libraries refuse either.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


def mlp(width: int = 1024, inputs: int = 784) -> nn.Module:
    return nn.Sequential(
        nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
    )


def cnn(width: int = 16) -> nn.Module:
    """The small network of MNIST tutorials."""
    return nn.Sequential(
        nn.Conv2d(1, width, 8, stride=2, padding=3),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(width, 2 * width, 4, stride=2),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(32 * width, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )


def linear(inputs: int) -> nn.Module:
    """Starts at zero, so that no run depends on where it started."""
    model = nn.Linear(inputs, 10, bias=False)
    nn.init.zeros_(model.weight)
    return model


def convolutional(inputs: int, side: int = 8) -> nn.Module:
    """For rows that are planes of one norm and one number more: two convolutions of 64 planes."""
    channels = (inputs - 1) // side**2
    return nn.Sequential(
        Planes(channels, side),
        nn.Conv2d(channels, 64, 3, padding=1),
        nn.Tanh(),
        nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3, padding=1),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(64 * (side // 2) ** 2, 10),
    )


class Planes(nn.Module):
    """Rows of norm 1 as planes whose numbers are about 1."""

    def __init__(self, channels: int, side: int) -> None:
        super().__init__()
        self.shape, self.scale = (channels, side, side), (channels * side**2) ** 0.5

    def forward(self, rows: Tensor) -> Tensor:
        return (rows[:, :-1] * self.scale).unflatten(1, self.shape)


def resnet18(width: int = 64, groups: int = 32) -> nn.Module:
    """ResNet-18 for 32 × 32 images, with GroupNorm: batch statistics would mix the records."""
    widths = [width, width, 2 * width, 4 * width, 8 * width]
    blocks = [
        block
        for depth in range(4)
        for block in (
            Residual(widths[depth], widths[depth + 1], 1 if depth == 0 else 2, groups),
            Residual(widths[depth + 1], widths[depth + 1], 1, groups),
        )
    ]
    stem = [nn.Conv2d(3, width, 3, padding=1, bias=False), nn.GroupNorm(groups, width), nn.ReLU()]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * width, 10))


class Residual(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, inputs: int, outputs: int, stride: int, groups: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.first_norm = nn.GroupNorm(groups, outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.second_norm = nn.GroupNorm(groups, outputs)
        self.around: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            convolution = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.around = nn.Sequential(convolution, nn.GroupNorm(groups, outputs))

    def forward(self, x: Tensor) -> Tensor:
        inside = functional.relu(self.first_norm(self.first(x)))
        return functional.relu(self.second_norm(self.second(inside)) + self.around(x))


class Attention(nn.Module):
    """Multi-head self-attention."""

    def __init__(self, width: int, heads: int, *, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.inwards = nn.Linear(width, 3 * width)
        self.outwards = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        heads = self.inwards(x).reshape(batch, length, 3, self.heads, width // self.heads)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        return self.outwards(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """A transformer block, normalised first."""

    def __init__(self, width: int, heads: int, *, causal: bool) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal=causal)
        self.norm = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.narrow(functional.gelu(self.wide(self.norm(x)), approximate="tanh"))


class Positions(nn.Module):
    """Adds a learned vector per place."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(length, width)

    def forward(self, x: Tensor) -> Tensor:
        places = torch.arange(x.shape[1], device=x.device).repeat(x.shape[0], 1)
        return x + self.table(places)


class Vision(nn.Module):
    """A vision transformer; the defaults are ViT-small/16 at 224 × 224."""

    def __init__(
        self,
        *,
        width: int = 384,
        heads: int = 6,
        depth: int = 12,
        patch: int = 16,
        side: int = 224,
        classes: int = 1000,
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.positions = Positions((side // patch) ** 2 + 1, width)
        self.blocks = nn.Sequential(*(Block(width, heads, causal=False) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        patches = self.patches(images).flatten(2).transpose(1, 2)
        with_class_token = functional.pad(patches, (0, 0, 1, 0))
        return self.head(self.norm(self.blocks(self.positions(with_class_token))[:, 0]))


class Language(nn.Module):
    """Says which token comes next; the defaults are GPT-2 small, except that the head is a matrix of its own."""

    def __init__(
        self, vocabulary: int = 50_257, width: int = 768, heads: int = 12, depth: int = 12, length: int = 1024
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = Positions(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads, causal=True) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.positions(self.tokens(tokens)))))


class Encoder(nn.Module):
    """A small text classifier."""

    def __init__(
        self, vocabulary: int = 8192, width: int = 128, heads: int = 4, depth: int = 2, length: int = 64
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = Positions(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads, causal=False) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.positions(self.tokens(tokens)))).mean(1))
