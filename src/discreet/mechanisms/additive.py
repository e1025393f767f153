# SPDX-License-Identifier: Apache-2.0
"""Noise added to numbers and vectors: Laplace, Gaussian, and both on whole numbers.

    Laplace(epsilon=1, sensitivity=1)(42).value
    Gaussian(epsilon=1, delta=1e-6, sensitivity=2.5)([3.1, 4.1, 5.9]).value
    Geometric(epsilon=0.1, sensitivity=1)(1_000).value

`sensitivity` bounds how far one protected unit moves the answer: the l1 norm of
the change for Laplace and Geometric, the l2 norm for the two Gaussians.

**Guarantee.** The released number is a function of (rounded value + noise) on a grid of dyadic
step, in exact integers. The step does not depend on the value; the guarantee is that of
whole-number noise at the enlarged whole-number sensitivity. So no low bit, no magnitude and no cast
reveals more than `guarantee` says.

Why it holds: `noise.Grid` rounds before noise is added, `mechanisms.distributions` states the
guarantee on whole numbers, and going back to floats is post-processing. What would break it: a
sensitivity that is not true.

A value that is not a finite number (NaN, an infinity, None, a text) counts as 0, because an error
would reveal it. True counts as 1. The sensitivity must hold for the values as they count. The
number of values and the declared type of an array are public; those that do not fit are refused.

The type of the answer depends on the mechanism and on the shape of the values alone: floats, or for
whole-number noise an int for one value and an array of int64 for several.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any, Self, cast, overload

import numpy as np
import numpy.typing as npt

from discreet import check, privacy
from discreet.errors import BadParameter
from discreet.exact import as_ratio, bisect, exactly, float_above, geometric_mean
from discreet.mechanisms.amount import APPROXIMATE, CONCENTRATED, PURE, SCALE, one_amount
from discreet.mechanisms.callbacks import call_quietly
from discreet.mechanisms.distributions import (
    DiscreteGaussianDistribution,
    GaussianDistribution,
    LaplaceDistribution,
    NoiseDistribution,
)
from discreet.mechanisms.exact import finite_numbers
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism
from discreet.noise.grid import Grid
from discreet.noise.scales import Number, is_many
from discreet.privacy.calibrate import calibrate
from discreet.privacy.guarantee import Guarantee

__all__ = ["Additive", "DiscreteGaussian", "Gaussian", "Geometric", "Laplace", "classic_gaussian_scale"]

_WHOLE = Grid(0)
_INT64 = np.iinfo(np.int64)
_MAX_ARRAY_CELL = 1 << 62  # a larger number in an array counts as this one
_MAX_WHOLE = 10**300  # a larger single number counts as this one; its margin of error is a float
_CHUNK = 1 << 15  # numbers that are rounded and released together
_NUDGE, _CLOSE = 2.0**-52, 1e-9


class Additive(Mechanism):
    """Noise of one distribution on every coordinate, on a grid. Base of the four mechanisms below.

    **Guarantee.** That of `NoiseDistribution.guarantee_for` at the whole-number sensitivity: it is
    computed for the noise that is drawn, after every rounding.

    Why it holds: values are rounded to a grid before noise is added, and the sensitivity grows by
    what rounding can add. What would break it: a `sensitivity` below the true one.

    >>> mechanism = Laplace(epsilon=1, sensitivity=1, dimension=2)
    >>> isinstance(mechanism, Additive), mechanism.draw([3.0, 4.0]).shape
    (True, (2,))
    """

    _distribution: type[NoiseDistribution]
    _norm: int  # of the sensitivity: 1 or 2
    _whole = False  # whether the values are whole numbers, so that nothing is rounded

    def __init__(
        self,
        amount: dict[str, float],
        sensitivity: Number | None,
        dimension: int | None,
        relation: str,
        unit: str,
    ) -> None:
        if sensitivity is None:
            raise _missing_sensitivity_error()
        self._amount = amount
        self.stated_delta = amount.get("delta")
        self.dimension = 1 if dimension is None else check.whole(dimension=dimension)
        self.sensitivity = check.moderate(sensitivity=sensitivity)
        rough_scale = amount.get("scale") or self.sensitivity * self._multiplier()
        fine_grid = Grid.for_noise(rough_scale, self.sensitivity, self.dimension, self._norm)
        self.grid = _WHOLE if self._whole else fine_grid
        self._cells = self._sensitivity_in_cells(sensitivity)
        self._words = {"relation": relation, "unit": unit}
        self.distribution = self._distribution(self._scale_in_cells())
        self._guarantee = self._guarantee_of(self.distribution)

    @property
    def guarantee(self) -> Guarantee:
        return self._guarantee

    @property
    def scale(self) -> float:
        """The scale of the noise (the standard deviation of a Gaussian), in the unit of the values."""
        return float(exactly(self.distribution.scale) * self.grid.step)

    @overload
    def draw(self, data: Number) -> float: ...
    @overload
    def draw(self, data: object) -> float | npt.NDArray[Any]: ...
    def draw(self, data: object) -> float | npt.NDArray[Any]:
        """Each number plus fresh noise; a vector has the length `dimension`."""
        values: Any = self.check_values(data)
        if not is_many(values) or values.size <= _CHUNK:
            return self._release_values(values)
        # a part at a time, so that what lies between the values and the answer stays in the
        # processor's cache
        flat, out = values.reshape(-1), np.empty(values.size, np.int64 if self._whole else np.float64)
        for start in range(0, flat.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            out[part] = self._release_values(flat[part])
        return out.reshape(values.shape)

    def draw_many(self, data: object, count: int) -> npt.NDArray[Any]:
        """`count` independent answers along the first axis, for audits and simulations.

        Whole numbers are int64: a value beyond ±2**62 counts as ±2**62, as in a vector.
        """
        cells: Any = self.cells_of(data)
        if not is_many(cells):
            if self._whole or abs(cells) < _MAX_ARRAY_CELL:
                cells = np.array(max(-_MAX_ARRAY_CELL, min(cells, _MAX_ARRAY_CELL)))
            else:
                cells = np.array(cells, object)
        noisy = _add(cells, self.distribution.draw((check.whole(count=count), *cells.shape)))
        return noisy if self._whole else np.asarray(self.grid.reals(noisy))

    def add_noise(self, cells: int | npt.NDArray[Any]) -> int | npt.NDArray[Any]:
        """Whole numbers of steps plus fresh noise, for exact sums that are on `grid` already."""
        if not is_many(cells):
            return int(cells) + int(self.distribution.draw())
        return _add(np.asarray(cells), self.distribution.draw(np.shape(cells)))

    def for_size_of(self, data: object) -> Self:
        size = np.size(_numbers(data)) if is_many(data) else 1
        has_dimension = self._call[1].get("dimension") is not None
        sized = self if has_dimension or size <= 1 else self.with_dimension(size)
        sized.check_values(data)
        return sized

    def with_dimension(self, dimension: int) -> Self:
        """The same mechanism for vectors of this length."""
        return type(self)(**{**self._call[1], "dimension": dimension})

    def tail(self, distance: float) -> float:
        """An upper bound on the probability that any error exceeds this distance."""
        steps = exactly(check.not_negative(distance=distance)) / self.grid.step - self._rounding
        first = math.floor(steps) + 1
        tail_of_one = self.distribution.tail(first) if first > 0 else 1.0
        if tail_of_one >= 1:
            return 1.0
        return min(1.0, -math.expm1(self.dimension * math.log1p(-tail_of_one)) * (1 + 1e-12))

    def error(self, confidence: float = CONFIDENCE) -> float:
        """The margin of error of all released numbers at once."""
        beta = -math.expm1(math.log(check.inner_probability(confidence=confidence)) / self.dimension)
        return float_above((self.distribution.tail_bound(beta) + self._rounding) * self.grid.step)

    def interval(self, value: object, confidence: float = CONFIDENCE) -> tuple[Any, Any]:
        """Confidence intervals for the exact numbers, all of them at once."""
        released: Any = value
        error = self.error(confidence)
        return released - error, released + error

    @classmethod
    def for_error(
        cls,
        error: float,
        *,
        sensitivity: Number,
        confidence: float = CONFIDENCE,
        dimension: int | None = None,
        relation: str = "add-remove",
        unit: str = "record",
    ) -> Self:
        """The mechanism with the most noise whose error, at this confidence, is still at most
        `error`.

        >>> planned = Laplace.for_error(10, sensitivity=1, confidence=0.95)
        >>> round(planned.guarantee.epsilon(delta=0), 3)
        0.3
        """
        with_scale: Any = partial(
            cls, sensitivity=sensitivity, dimension=dimension, relation=relation, unit=unit
        )
        target = check.positive(error=error)
        # The error is between 1/1000 and 1000 times the scale.
        low, high = target / 1e3, target * 1e3
        scale, _ = bisect(
            lambda scale: with_scale(scale=scale).error(confidence) <= target,
            yes=low,
            no=high,
            steps=60,
            middle=geometric_mean,
        )
        return cast(Self, with_scale(scale=scale))

    def cells_of(self, data: object) -> int | npt.NDArray[Any]:
        """The values as exact whole numbers of steps. Secret."""
        cells: int | npt.NDArray[Any] = self._cells_at(self.check_values(data))
        return cells

    def check_values(self, data: object) -> Number | npt.NDArray[Any]:
        """The values, if there are `dimension` of them."""
        if self._whole:
            _refuse_floats(data)
        values: Any = _numbers(data)
        if np.size(values) != self.dimension:
            raise _wrong_length_error(self.dimension, np.size(values))
        return cast(Number | npt.NDArray[Any], values)

    def _cells_at(self, values: Any) -> Any:
        return _integers(values) if self._whole else self.grid.cells(values, instead=0)

    def _release_values(self, values: Any) -> float | npt.NDArray[Any]:
        noisy = self.add_noise(self._cells_at(values))
        released: float | npt.NDArray[Any] = noisy if self._whole else self.grid.reals(noisy)
        return released

    @property
    def _rounding(self) -> Fraction:
        return Fraction(0) if self._whole else Fraction(1, 2)

    def _sensitivity_in_cells(self, sensitivity: Number) -> float:
        distance = as_ratio(sensitivity)
        if self.dimension == 1:
            return self.grid.sensitivity(distance)
        if self._whole:
            return float_above(distance)
        enlarged = self.grid.sensitivity_l1 if self._norm == 1 else self.grid.sensitivity_l2
        return enlarged(distance, self.dimension)

    def _scale_in_cells(self) -> float:
        """The stated scale, or the least scale whose guarantee is within the stated amount."""
        if "scale" in self._amount:
            return float(exactly(self._amount["scale"]) / self.grid.step)
        too_small, enough, nudge = 0.0, self._cells * self._multiplier(), _NUDGE
        # Rounding can leave the guarantee just above the amount; then the scale grows.
        while not self._is_within_amount(self._guarantee_of(self._distribution(enough))):
            too_small, enough, nudge = enough, enough * (1 + nudge), 2 * nudge
        while enough - too_small > _CLOSE * enough and too_small > 0:
            middle = (too_small + enough) / 2
            is_enough = self._is_within_amount(self._guarantee_of(self._distribution(middle)))
            too_small, enough = (too_small, middle) if is_enough else (middle, enough)
        return enough

    def _guarantee_of(self, distribution: NoiseDistribution) -> Guarantee:
        return distribution.guarantee_for(self._cells, self.dimension, **self._words)

    def _multiplier(self) -> float:
        """The scale that the stated amount needs, about, in units of the sensitivity."""
        if "rho" in self._amount:
            return 1 / math.sqrt(2 * self._amount["rho"])
        target = privacy.approximate(self._amount["epsilon"], self._amount["delta"])
        return calibrate(privacy.gaussian, to=target, tolerance=1e-9)

    def _is_within_amount(self, guarantee: Guarantee) -> bool:
        if "rho" in self._amount:
            return guarantee.concentrated() <= self._amount["rho"]
        return guarantee.delta(self._amount["epsilon"]) <= self._amount["delta"]


class Laplace(Additive):
    """Laplace noise on a number, or on a vector whose l1 distance is bounded.

    **Guarantee.** ε-differential privacy with ε = sensitivity / scale, at most the stated
    `epsilon`.

    Why it holds: Dwork, McSherry, Nissim, Smith 2006, on the whole numbers of a grid.

    >>> mechanism = Laplace(epsilon=1, sensitivity=1)
    >>> mechanism.guarantee.epsilon(delta=0)
    1.0
    >>> round(mechanism.error(confidence=0.95), 2)
    3.0
    >>> isinstance(mechanism(42).value, float)
    True
    """

    _distribution: type[NoiseDistribution] = LaplaceDistribution
    _norm = 1

    def __init__(
        self,
        *,
        sensitivity: Number | None = None,
        epsilon: float | None = None,
        scale: float | None = None,
        dimension: int | None = None,
        relation: str = "add-remove",
        unit: str = "record",
    ) -> None:
        amount = one_amount({"epsilon": epsilon, "scale": scale}, PURE, SCALE)
        super().__init__(amount, sensitivity, dimension, relation, unit)

    def _multiplier(self) -> float:
        return 1 / self._amount["epsilon"]

    def _is_within_amount(self, guarantee: Guarantee) -> bool:
        return guarantee.epsilon(delta=0) <= self._amount["epsilon"]


class Geometric(Laplace):
    """Laplace noise on whole numbers: P(noise = z) ∝ exp(-|z| / scale), also called the geometric
    mechanism.

    **Guarantee.** As `Laplace`, with whole numbers in and out; the best possible answer to a count
    for every loss function (Ghosh, Roughgarden, Sundararajan 2009). A fraction counts as the whole
    number below it, of which the sensitivity must be true, and a number beyond 10**300 (in a vector
    2**62) as that; sums do not wrap around. An array of floats is refused.

    >>> Geometric(epsilon=0.5, sensitivity=1).error(confidence=0.95)
    6.0
    """

    _whole = True


class Gaussian(Additive):
    """Gaussian noise on a number, or on a vector whose l2 distance is bounded.

    **Guarantee.** Exactly the guarantee of the Gaussian mechanism, for `rho` (zero-concentrated) or
    for (ε, δ) by the analytic calibration, never more than was asked for.

    Why it holds: rounding after the ideal noise is post-processing; Balle and Wang 2018 for the
    calibration.

    >>> mechanism = Gaussian(epsilon=1, delta=1e-6, sensitivity=1)
    >>> round(mechanism.scale, 3)
    4.225
    >>> Gaussian(rho=0.5, sensitivity=1).guarantee.concentrated() <= 0.5
    True
    """

    _distribution: type[NoiseDistribution] = GaussianDistribution
    _norm = 2

    def __init__(
        self,
        *,
        sensitivity: Number | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        scale: float | None = None,
        dimension: int | None = None,
        relation: str = "add-remove",
        unit: str = "record",
    ) -> None:
        amounts = {"epsilon": epsilon, "delta": delta, "rho": rho, "scale": scale}
        amount = one_amount(amounts, APPROXIMATE, CONCENTRATED, SCALE)
        super().__init__(amount, sensitivity, dimension, relation, unit)


class DiscreteGaussian(Gaussian):
    """Gaussian noise on whole numbers: P(noise = z) ∝ exp(-z² / 2 scale²).

    **Guarantee.** On one number the exact curve of this distribution, which is not that of the
    Gaussian; on a vector ρ-zero-concentrated privacy with ρ = sensitivity² / 2 scale² (Canonne,
    Kamath, Steinke 2020).

    >>> DiscreteGaussian(scale=3, sensitivity=1).guarantee
    discrete_gaussian(scale=3.0, sensitivity=1)
    """

    _distribution: type[NoiseDistribution] = DiscreteGaussianDistribution
    _whole = True

    def _is_within_amount(self, guarantee: Guarantee) -> bool:
        # One route is enough, and the fast one is nearly the best.
        if self.dimension > 1 and "epsilon" in self._amount:
            return guarantee.epsilon(self._amount["delta"], route="zcdp tight") <= self._amount["epsilon"]
        return super()._is_within_amount(guarantee)


@check.arguments
def classic_gaussian_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """σ = Δ·√(2 ln(1.25/δ))/ε, the textbook's formula: for comparison only, and only below ε = 1.

    From ε = 1 on its proof does not hold, and for large ε its claim is false: at ε = 10, δ = 0.1
    the true δ is 0.41. `Gaussian(epsilon=…, delta=…)` needs less noise and holds for every ε.

    >>> round(classic_gaussian_scale(0.5, 1e-6), 2)
    10.6
    >>> round(Gaussian(epsilon=0.5, delta=1e-6, sensitivity=1).scale, 2)
    8.06
    """
    epsilon, delta = check.positive(epsilon=epsilon), check.inner_probability(delta=delta)
    if epsilon >= 1:
        raise BadParameter(
            "DP102",
            f"the classic formula needs epsilon below 1, not {epsilon!r}.",
            why="its proof ends at 1; for larger epsilon the noise is too small.",
            fix=f"Gaussian(epsilon={epsilon!r}, delta={delta!r}, sensitivity=1)",
        )
    return check.positive(sensitivity=sensitivity) * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def _missing_sensitivity_error() -> BadParameter:
    return BadParameter(
        "DP107",
        "sensitivity is missing: how far can one protected unit move the value?",
        why="the noise is proportional to it; without it there is no guarantee.",
        fix="sensitivity=1   for a count; for a sum, the largest amount that one unit can add",
    )


def _numbers(data: Any) -> Any:
    """The data as `finite_numbers`; a plain array as it is, since `Grid.cells` counts NaN as 0."""
    is_plain = type(data) is np.ndarray and data.ndim and data.dtype.kind in "iuf"
    return data if is_plain and np.can_cast(data.dtype, np.float64) else finite_numbers(data)


def _refuse_floats(data: Any) -> None:
    """Refuse an array that is declared to hold floats: rounding could move them further apart."""
    declared = None if isinstance(data, list | tuple) or not is_many(data) else call_quietly(np.asarray, data)
    if declared is not None and declared.ndim and declared.dtype.kind == "f":
        raise BadParameter(
            "DP103",
            "this array is declared to hold floats, and the values must be whole numbers.",
            why="the noise is whole, so the fraction of a value would stay visible.",
            fix="round the values first, or use Laplace or Gaussian",
        )


def _integers(values: Any) -> Any:
    """The whole number below each value, clipped to a range; arrays are int64.

    For one value, both steps keep a distance within the whole number above it. In a list, rounding
    can move fractions further apart: the sensitivity must hold for the rounded values.
    """
    if not is_many(values):
        return max(-_MAX_WHOLE, min(math.floor(values), _MAX_WHOLE))
    if values.dtype.kind == "i":
        return np.clip(values.astype(np.int64), -_MAX_ARRAY_CELL, _MAX_ARRAY_CELL)
    whole = [
        max(-_MAX_ARRAY_CELL, min(math.floor(value), _MAX_ARRAY_CELL)) for value in values.ravel().tolist()
    ]
    return np.array(whole, np.int64).reshape(values.shape)


def _add(cells: npt.NDArray[Any], noise: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The exact sums. An int64 sum is clipped to its range, which is post-processing."""
    total: npt.NDArray[Any] = cells + noise
    if total.dtype != np.int64 or (_is_small(cells) and _is_small(noise)):
        return total
    wrapped = ((cells ^ total) & (noise ^ total)) < 0
    return np.where(wrapped, np.where(noise < 0, _INT64.min, _INT64.max), total) if wrapped.any() else total


def _is_small(numbers: Any) -> bool:
    """Whether the sum of two such arrays is within int64."""
    return bool(numbers.size == 0 or (numbers.max() < _MAX_ARRAY_CELL and numbers.min() > -_MAX_ARRAY_CELL))


def _wrong_length_error(dimension: int, size: int) -> BadParameter:
    return BadParameter(
        "DP107",
        f"this mechanism takes {dimension} number{'s' if dimension > 1 else ''}, not {size}.",
        why="the guarantee for a vector depends on its length.",
        fix=f"dimension={size}",
    )
