# SPDX-License-Identifier: Apache-2.0
"""Scattering features of images: wavelets, absolute values, averages. Nothing is learned, and no image sees another.

Two scales and eight directions, as Mallat and Bruna made them popular (*Invariant Scattering Convolution Networks*,
2013): of each channel the average, 16 averaged wavelet moduli, and 64 averaged moduli of moduli, at a quarter of the
resolution. Tramèr and Boneh (*Differentially Private Learning Needs Better Features*, 2021) found that a linear
model on these beats private networks.
"""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

SCALES, DIRECTIONS = 2, 8
PATHS = 1 + SCALES * DIRECTIONS + DIRECTIONS**2
STRIDE = 2**SCALES
_WIDTH, _FREQUENCY, _SLANT = 0.8, 0.75 * math.pi, 4 / DIRECTIONS
_CHUNK = 250  # images at once: the largest array inside is 64 planes per channel of each


def features(images: Tensor, groups: int = 27) -> Tensor:
    """One row per image, from bytes: scattering, normalised in groups of planes within the image, a constant, norm about 1.

    Every operation is on one image alone, so that features cost no privacy.
    """
    rows = torch.cat([_normalise(scattering(chunk / 255), groups) for chunk in images.split(_CHUNK)])
    return functional.pad(rows, (0, 1), value=0.1)


def scattering(images: Tensor) -> Tensor:
    """(B, channels, side, side) → (B, channels · 81, side / 4, side / 4)."""
    batch, channels, side, _ = images.shape
    padded = ((side + STRIDE) // STRIDE + 1) * STRIDE
    before = (padded - side) // 2
    planes = functional.pad(images, (before, padded - side - before) * 2, mode="reflect")
    fine, coarse = (filters.to(images.device) for filters in wavelets(padded))
    means = {size: averages(size, side, padded).to(images.device) for size in (padded, padded // 2)}

    spectrum = torch.fft.fft2(planes).unsqueeze(2)
    first_fine = torch.fft.ifft2(spectrum * fine).abs()
    first_coarse = torch.fft.ifft2(_halve(spectrum * coarse)).abs()
    spectra = torch.fft.fft2(first_fine).unsqueeze(3)
    second = torch.fft.ifft2(_halve(spectra * coarse)).abs().flatten(2, 3)
    maps = [planes.unsqueeze(2), first_fine, first_coarse, second]
    averaged = [means[one.shape[-1]] @ one @ means[one.shape[-1]].T for one in maps]
    return torch.cat(averaged, dim=2).reshape(batch, channels * PATHS, side // STRIDE, side // STRIDE)


@cache
def wavelets(size: int) -> tuple[Tensor, Tensor]:
    """The transforms of the Morlet wavelets of both scales, one per direction: real, as the wavelets are Hermitian."""
    angles = [direction * math.pi / DIRECTIONS for direction in range(DIRECTIONS)]
    scales = [torch.stack([_morlet(size, scale, angle) for angle in angles]) for scale in range(SCALES)]
    return scales[0], scales[1]


@cache
def averages(size: int, side: int, padded: int) -> Tensor:
    """The matrix that averages a padded row of `size` samples with a Gaussian, at the side / 4 places kept."""
    step = padded // size  # pixels per sample
    width = _WIDTH * 2 ** (SCALES - 1) / step
    before = (padded - side) // 2
    centres = (before + STRIDE * torch.arange(side // STRIDE, dtype=torch.float64)) / step
    offsets = torch.arange(size, dtype=torch.float64) - centres[:, None]
    offsets = (offsets + size / 2) % size - size / 2
    weights = torch.exp(-(offsets**2) / (2 * width**2))
    return (weights / weights.sum(1, keepdim=True)).float()


def _morlet(size: int, scale: int, angle: float) -> Tensor:
    """A wave under a slanted Gaussian, less what makes its mean vanish; wrapped around the torus of the image."""
    width, frequency = _WIDTH * 2**scale, _FREQUENCY / 2**scale
    reach = torch.arange(-2 * size, 3 * size, dtype=torch.float64)
    x, y = torch.meshgrid(reach, reach, indexing="ij")
    along = x * math.cos(angle) + y * math.sin(angle)
    across = y * math.cos(angle) - x * math.sin(angle)
    bell = torch.exp(-(along**2 + (_SLANT * across) ** 2) / (2 * width**2))
    bell = bell * _SLANT / (2 * math.pi * width**2)
    wave = torch.polar(bell, frequency * along)
    wave, bell = (one.reshape(5, size, 5, size).sum((0, 2)) for one in (wave, bell.to(torch.complex128)))
    return torch.fft.fft2(wave - bell * (wave.sum() / bell.sum())).real.float()


def _halve(spectrum: Tensor) -> Tensor:
    """The transform of every second sample in both directions."""
    *front, size, _ = spectrum.shape
    return spectrum.reshape(*front, 2, size // 2, 2, size // 2).mean((-4, -2))


def _normalise(planes: Tensor, groups: int) -> Tensor:
    rows = functional.group_norm(planes, groups).flatten(1)
    return rows / rows.norm(dim=1, keepdim=True).clamp_min(1e-6)
