# SPDX-License-Identifier: Apache-2.0
"""Strategies that took seconds to compute, kept on disk: in `$DISCREET_CACHE`, or else in the
user's cache folder.

A file holds one matrix of whole numbers, named after the public parameters from which it was
computed. `DISCREET_CACHE=` (empty) turns the cache off.

**Guarantee.** A file that is missing, damaged or wrong costs time or accuracy, and never privacy:
the sensitivity is computed from the matrix that is measured, whichever it is. No parameter depends
on data.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt

__all__ = ["key_of", "recall"]

Integers = npt.NDArray[np.int64]
#: Smaller matrices are computed faster than they are read.
_WORTH = 192
#: Greater entries do not come from here; products of matrices with these fit 64 bits.
_GREATEST = 1 << 13
#: What the computation is; a new one has a new number.
_VERSION = 1


def key_of(kind: str, *parameters: object) -> str:
    """The name of a strategy, from everything that it is computed from."""
    text = json.dumps([_VERSION, kind, *parameters])
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def recall(key: str, compute: Callable[[], Integers], size: int) -> Integers:
    """The matrix of that name with so many rows, read or else computed and kept."""
    folder = _folder() if size >= _WORTH else None
    path = None if folder is None else folder / f"{key}.npy"
    if path is not None and (kept := _read(path, size)) is not None:
        return kept
    matrix = compute()
    if path is not None:
        _write(path, matrix)
    return matrix


def _folder() -> Path | None:
    stated = os.environ.get("DISCREET_CACHE")
    if stated is not None:
        return Path(stated) if stated else None
    with suppress(RuntimeError):
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "discreet"
    return None


def _read(path: Path, size: int) -> Integers | None:
    """A matrix that can be a strategy, or None."""
    try:
        matrix: Integers = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    is_sound = matrix.shape == (size, size) and matrix.dtype == np.int32
    if (
        not is_sound
        or np.abs(matrix).max() > _GREATEST
        or not matrix.diagonal().all()
        or np.tril(matrix, -1).any()
    ):
        return None
    return matrix.astype(np.int64)


def _write(path: Path, matrix: Integers) -> None:
    """Write the matrix; a reader sees all of it or nothing, and a folder that cannot be written is
    left alone.
    """
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                np.save(file, matrix.astype(np.int32))
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
