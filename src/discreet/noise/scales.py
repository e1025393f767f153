# SPDX-License-Identifier: Apache-2.0
"""One scale for all elements or one for each, as fast floats and as exact ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import check
from discreet.errors import BadParameter
from discreet.exact import as_ratio

Floats = npt.NDArray[np.float64]
Shape = tuple[int, ...] | None
Size = int | Sequence[int] | None
Number = float | Fraction  # read exactly, to the last bit
Numbers = Number | npt.ArrayLike

# 45 times this is a whole number in float64, and the tail beyond stays inside int64.
LARGEST = 2**46
SMALLEST = 2.0**-46  # noise of a smaller scale is zero but with probability exp(-2**46)


class Scales:
    """Positive scales; a float stands for exactly its value."""

    __slots__ = ("_exact", "floats")

    def __init__(self, scale: Any) -> None:
        self.floats: float | Floats
        if is_many(scale):
            self.floats, self._exact = _positive_array(as_floats(scale)), None
            least, largest = float(self.floats.min(initial=1.0)), float(self.floats.max(initial=1.0))
        else:
            least = largest = self.floats = check.positive(scale=scale)
            self._exact = as_ratio(scale)
        if largest > LARGEST or least < SMALLEST:
            raise out_of_range_error("scale", largest if largest > LARGEST else least)

    def part(self, part: slice | npt.NDArray[np.intp]) -> float | Floats:
        """The scales of some elements, as floats."""
        return self.floats if isinstance(self.floats, float) else self.floats[part]

    def ratio(self, index: int) -> Fraction:
        """The scale of one element, exactly."""
        if self._exact is not None:
            return self._exact
        return Fraction(float(np.asarray(self.floats)[index]))


def is_many(value: Any) -> bool:
    """Whether the value is an array (or a list) and not one number."""
    return isinstance(value, np.ndarray | list | tuple) or (
        hasattr(value, "__array__") and not isinstance(value, np.generic)
    )


def as_floats(values: Any) -> Floats:
    """A flat array of floats; any other array is refused, not rounded."""
    array = np.asarray(values)
    if array.dtype.kind not in "iuf" or not np.can_cast(array.dtype, np.float64):
        raise BadParameter(
            "DP104",
            "an array of parameters must hold plain floats or integers.",
            why="other numbers would be rounded, and the noise would have another distribution.",
            fix="pass a numpy array of float64",
        )
    return array.astype(np.float64).ravel()


def shape_of(value: Any, size: Size) -> Shape:
    """The shape of the result: `size` if stated, else that of the value; None for one number."""
    if size is None:
        return np.shape(value) if is_many(value) else None
    if isinstance(size, Sequence):
        return tuple(check.whole(at_least=0, size=length) for length in size)
    return (check.whole(at_least=0, size=size),)


def broadcast(value: Any, shape: Shape) -> Any:
    """The value for each element of that shape; one number stays one number."""
    if not is_many(value):
        return value
    try:
        return np.broadcast_to(value, shape or ())
    except ValueError:
        raise BadParameter(
            "DP107",
            "an array of parameters does not fit the requested size.",
            why="each element of the answer needs exactly one parameter.",
            fix="leave size out, or pass a size that the array broadcasts to",
        ) from None


def in_shape(samples: npt.NDArray[Any], shape: Shape) -> Any:
    """The samples in that shape; a plain number if it is None."""
    return samples.item() if shape is None else samples.reshape(shape)


def count_of(shape: Shape) -> int:
    """The number of elements of that shape."""
    return 1 if shape is None else math.prod(shape)


def out_of_range_error(name: str, value: float) -> BadParameter:
    """Refuses a parameter whose samples do not fit into 64-bit integers, or are all zero."""
    return BadParameter(
        "DP108",
        f"{name} must lie between 2**-46 and 2**46, not {value:g}.",
        why="above it a sample is not an exact 64-bit integer; below it there is no noise.",
        fix="measure in another unit: a coarser or a finer grid brings the scale into this range",
    )


def _positive_array(scales: Floats) -> Floats:
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        raise BadParameter(
            "DP102",
            "every scale must be a finite number above zero.",
            why="an element without a positive scale would get no noise.",
            fix="pass positive scales, for example scale=numpy.full(n, 1.0)",
        )
    return scales
