# SPDX-License-Identifier: Apache-2.0
"""Numbers that only look random, and are the same on every machine: for models and rows made from
released numbers.

**Guarantee.** The numbers depend on the seed and on how many were taken before, on nothing else:
they are the output of SHAKE-256, so no version of a library changes them. They protect nobody. All
noise that protects people comes from `discreet.noise.source`.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

__all__ = ["SeededStream"]

Floats = npt.NDArray[np.float64]


class SeededStream:
    """A stream of numbers in (0, 1), by a seed and the name of what they are for.

    >>> SeededStream(7, "rows").uniform(2).round(6).tolist() == SeededStream(7, "rows").uniform(2).round(6).tolist()
    True
    """

    def __init__(self, seed: int, purpose: str) -> None:
        self._name = f"{purpose} {seed}".encode()
        self._blocks = 0

    def uniform(self, *shape: int) -> Floats:
        """Numbers in (0, 1), in an array of a shape."""
        count = math.prod(shape)
        digest = hashlib.shake_256(self._name + b" %d" % self._blocks).digest(8 * count)
        self._blocks += 1
        words = (np.frombuffer(digest, "<u8") >> np.uint64(11)).astype(np.float64)
        numbers: Floats = ((words + 0.5) * 2.0**-53).reshape(shape)
        return numbers

    def normal(self, *shape: int) -> Floats:
        """Standard normal numbers."""
        numbers: Floats = ndtri(self.uniform(*shape))
        return numbers
