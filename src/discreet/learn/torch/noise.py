# SPDX-License-Identifier: Apache-2.0
"""Gaussian noise for sums of gradients, on a grid, from a cryptographic source, on any device.

    noise = StepNoise()
    noise.add_(buffer, scales_for(noise=1.1, clip=1.0, dimension=buffer.numel()), divide=256.0)

**Guarantee.** A buffer S becomes (round(S/γ) + round(N))·γ/divide, N normal, where γ is a power of
two: the low bits of a released number are a function of a whole number of cells, so they reveal
nothing else about S. The noise is wider by what rounding can move S: its standard deviation is
noise·(clip + √d·γ) for d numbers. No word of noise is used twice, and neither `torch.manual_seed`
nor a checkpoint can repeat one.

Why it holds: rounding moves two neighbouring sums apart by γ in each coordinate at most, so by √d·γ
in all; a whole number plus a rounded normal is a function of that number plus the normal
(post-processing). On a CPU words come from `discreet.noise.source`; on a GPU from ChaCha20
(`chacha`) under a key that is drawn from there, made anew in a forked process, and never stored;
the counter is (turn, element), and the turn goes up with every buffer.

What would break it: normal numbers are computed in double precision, which is good to about fifteen
digits but not exact. So this is a guarantee in real arithmetic. That of `exact.py` is exact.
"""

from __future__ import annotations

import math
import os
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch

from discreet.learn.torch.chacha import Words32, add_noise, fresh_key
from discreet.noise.source import current

__all__ = ["GridScales", "StepNoise", "normals", "scales_for"]

Number = float | torch.Tensor

#: γ is the noise divided by 2**30, or a little less.
_FINE = 30
#: After this turn there is a new key.
_LAST_TURN = 2**31 - 1
#: Elements at a time on a CPU: the scratch arrays stay in the cache, and calls cost little.
_CHUNK = 1 << 16
_LEAST = torch.tensor(2.0**-128, dtype=torch.float64)


class GridScales(NamedTuple):
    """Cells per unit, the standard deviation in cells, and the cell; numbers, or tensors on the
    device of the sums.
    """

    per_cell: Number
    spread: Number
    cell: Number


def scales_for(*, noise: float, clip: Number, dimension: int) -> GridScales:
    """The grid for `noise` clipping norms on `dimension` numbers. It does not wait for the value of
    a tensor `clip`.
    """
    root = math.sqrt(dimension) * (1 + 1e-12)
    cell: Number
    if isinstance(clip, torch.Tensor):
        cell = torch.exp2(torch.frexp(clip.double() * noise)[1].double() - (_FINE + 1))
    else:
        cell = math.ldexp(1.0, math.frexp(clip * noise)[1] - (_FINE + 1))
    return GridScales(1 / cell, noise * (clip / cell + root), cell)


def normals(count: int, spread: Number = 1.0) -> torch.Tensor:
    """Independent normals in double precision from the library's own source, a pair from two words
    (Box and Muller).

    A word w is read with its sign. |w|·2**-63 is uniform on [0, 1]; what is added to its square
    keeps it from zero, and the greatest radius is 9.4 standard deviations.
    """
    half = (count + 1) // 2
    pairs = torch.from_numpy(current().words(2 * half).view(np.int64)).double().view(2, half)
    radius, angle = pairs
    torch.addcmul(_LEAST, radius, radius, value=2.0**-126, out=radius).log_().mul_(-spread * spread)
    np.sqrt(radius.numpy(), out=radius.numpy())
    cosine = torch.cos(angle.mul_(math.pi * 2.0**-63))
    angle.sin_().mul_(radius)
    radius.mul_(cosine)
    return pairs.view(-1)[:count]


class StepNoise:
    """The noise of one run: a key for each device, and counters that never go back."""

    def __init__(self) -> None:
        self._keys: dict[torch.device, torch.Tensor] = {}
        self._birth, self._turn = os.getpid(), 0

    def add_(self, buffer: torch.Tensor, scales: GridScales, *, divide: float, part: int = 0) -> None:
        """Add fresh noise to a flat buffer, in place. `part` numbers the part of the parameters;
        only correlated noise uses it.
        """
        if buffer.device.type == "cuda" and find_spec("triton") is not None:
            self._on_gpu(buffer, scales, divide)
        elif buffer.device.type == "cpu":
            _on_cpu(buffer, scales, divide)
        # No kernel for this kind of device: the noise is made on the CPU and sent there.
        else:
            copy = buffer.cpu()
            _on_cpu(copy, GridScales(*(_to_float(scale) for scale in scales)), divide)
            buffer.copy_(copy)

    def _on_gpu(self, buffer: torch.Tensor, scales: GridScales, divide: float) -> None:
        if self._birth != os.getpid() or self._turn == _LAST_TURN:
            self._keys, self._birth, self._turn = {}, os.getpid(), 0
        self._turn += 1
        key = self._keys.get(buffer.device)
        if key is None:
            key = self._keys[buffer.device] = _send_key(fresh_key(), buffer.device)
        add_noise(buffer, key, self._turn, _pack_scales(scales, divide, buffer.device))


def _on_cpu(buffer: torch.Tensor, scales: GridScales, divide: float) -> None:
    back = scales.cell / divide
    for part in torch.split(buffer, _CHUNK):
        cells = part.double().nan_to_num_(0.0, 0.0, 0.0).mul_(scales.per_cell).round_()
        cells += normals(part.numel(), scales.spread).round_()
        part.copy_(cells.mul_(back))


def _send_key(key: Words32, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(key.view(np.int32)).to(device)


def _pack_scales(scales: GridScales, divide: float, device: torch.device) -> torch.Tensor:
    """What the kernel reads: the three numbers in one tensor, without a wait if they are already on
    the device.
    """
    parts: tuple[Any, ...] = (scales.per_cell, scales.spread, scales.cell / divide)
    if isinstance(scales.cell, torch.Tensor):
        return torch.stack([torch.as_tensor(part, device=device).double().reshape(()) for part in parts])
    return _cached_scales(parts, device)


@lru_cache(maxsize=16)
def _cached_scales(parts: tuple[float, ...], device: torch.device) -> torch.Tensor:
    """Numbers on the device, sent there once."""
    return torch.tensor(parts, dtype=torch.float64).to(device)


def _to_float(scale: Number) -> float:
    return float(scale)
