# SPDX-License-Identifier: Apache-2.0
"""From noisy sums to the numbers that were asked for, each with its interval.

**Guarantee.** Post-processing: only noisy sums and public parameters are read. An interval holds its number, of the
bounded rows, with the stated confidence on its own. It is cut to what the number can be, but never so far that the released
number is outside: a count of -5 ± 20 has the interval from -5 to 15. What is not linear in the noise (a mean, a variance) has no
unbiased estimate to keep, and is moved into its interval instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.mechanisms.distributions import GaussianDistribution
from discreet.tables.answer.answer import CONFIDENCE, Noisy
from discreet.tables.ask.question import Aggregate
from discreet.tables.plan.intervals import Floats, LinearForm, NoiseVector, combine_forms, ratio_interval
from discreet.tables.plan.linear import ColumnMoments
from discreet.tables.plan.stage import ColumnDescription

__all__ = ["ColumnEstimate"]

COUNTS = ("count", "count_of", "units")
_SIZES = (100, 1000, 10000)  # of groups, for which the error of a mean is foretold
_OUT, _IN = 1 + 1e-12, 1 - 1e-12


@dataclass(frozen=True)
class ColumnEstimate:
    """How one aggregate is read off the noisy sums."""

    asked: Aggregate
    moments: ColumnMoments
    noise: NoiseVector
    whole: bool  # whether counts are whole numbers even so, because no weight is below one

    def noisy(self, sums: Floats) -> Noisy:
        """The column, from one row of noisy sums for each group."""
        values, form = self.values(sums), self.form
        if form is None:
            values = np.clip(values, *self.ends(sums, 1 - CONFIDENCE))

        def interval(confidence: float) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
            low, high = self.ends(sums, 1 - confidence)
            return self._as_values(np.minimum(low, values)), self._as_values(np.maximum(high, values))

        low, high = interval(CONFIDENCE)
        return Noisy(
            values=self._as_values(values),
            lo=low,
            hi=high,
            text=self.asked.text,
            noise=self.how,
            deviation=None if form is None else self.noise.deviation(form),
            whole=self._of_things,
            nonnegative=self._floor == 0,
            interval=interval,
        )

    def describe(self, confidence: float = CONFIDENCE) -> ColumnDescription:
        """What is said of it before it is drawn."""
        off = self.half_width(confidence)
        if off is not None:
            return ColumnDescription(self.how, f"±{off:.4g}", self._rounding)
        sizes = " · ".join(f"±{self.half_width_for(rows, confidence):.3g} of {rows} rows" for rows in _SIZES)
        return ColumnDescription(self.how, f"about {sizes}", self._rounding)

    @property
    def _rounding(self) -> str:
        """That values are read in coarser steps than the column has, where they are."""
        of, step = self.asked.of, self.moments.step
        if self.asked.kind in COUNTS or of is None or step * 2**of.type.places <= 1:
            return ""
        return (
            f"{self.asked.text or self.asked.name} reads values to the nearest multiple of {float(step):.4g}."
        )

    @property
    def how(self) -> str:
        """The noise, in words."""
        gaussian = isinstance(self.noise.laws[0], GaussianDistribution)
        form = self.form
        if form is None:
            return f"{'Gaussian' if gaussian else 'Laplace'} noise on the sums that it is made of"
        spread = self.noise.deviation(form)
        return f"{'Gaussian' if gaussian else 'Laplace'} noise of standard deviation {spread:.4g}"

    @property
    def form(self) -> LinearForm | None:
        """The linear form that it is, if it is one."""
        moments = self.moments
        if self.asked.kind in COUNTS:
            return moments.count
        if self.asked.kind != "sum":
            return None
        assert moments.total is not None
        if not moments.middle:
            return moments.total
        assert moments.count is not None
        return combine_forms((1, moments.total), (moments.middle, moments.count))

    def half_width(self, confidence: float = CONFIDENCE) -> float | None:
        """How far it is off, at most; None for what depends on the size of a group."""
        return None if self.form is None else self.noise.half_width(self.form, 1 - confidence)

    def half_width_for(self, rows: float, confidence: float = CONFIDENCE) -> float:
        """About how far it is off for a group of that many rows whose values lie in the middle of the bounds."""
        if self.form is not None:
            return self.noise.half_width(self.form, 1 - confidence)
        moments = self.moments
        assert moments.total is not None
        if self.asked.kind == "mean":
            return min(self.noise.half_width(moments.total, 1 - confidence) / rows, 2 * float(moments.half))
        assert moments.squares is not None
        off = min(self.noise.half_width(moments.squares, 1 - confidence) / rows, float(moments.half) ** 2)
        return off if self.asked.kind == "variance" else min(math.sqrt(off), float(moments.half))

    def widest(self, beta: float) -> float:
        """What |S − θN| of the noises exceeds with probability β at most, whatever the mean θ is."""
        moments = self.moments
        assert moments.count is not None
        assert moments.total is not None
        ends = (combine_forms((1, moments.total), (sign * moments.half, moments.count)) for sign in (-1, 1))
        return max(self.noise.half_width(end, beta) for end in ends)

    def values(self, sums: Floats) -> Floats:
        """The point estimates."""
        if self.form is not None:
            return _apply(self.form, sums)
        moments = self.moments
        assert moments.count is not None
        assert moments.total is not None
        rows = np.maximum(_apply(moments.count, sums), 1.0)
        reach = float(moments.half)
        mean = np.clip(_apply(moments.total, sums) / rows, -reach, reach)
        if self.asked.kind == "mean":
            return mean + float(moments.middle)
        assert moments.squares is not None
        variance = np.clip(_apply(moments.squares, sums) / rows - mean**2, 0.0, reach**2)
        return variance if self.asked.kind == "variance" else np.sqrt(variance)

    def ends(self, sums: Floats, beta: float) -> tuple[Floats, Floats]:
        """The ends of the intervals that fail with probability β at most."""
        if self.form is not None:
            values, half = _apply(self.form, sums), self.noise.half_width(self.form, beta)
            low, high = values - half, values + half
            if self._whole:
                low, high = np.ceil(low * _in(low) - 1e-9), np.floor(high * _out(high) + 1e-9)
            return np.maximum(low, self._floor), np.maximum(high, self._floor)
        if self.asked.kind == "mean":
            low, high = self._mean(sums, beta)
            middle = float(self.moments.middle)
            return low + middle, high + middle
        low, high = self._variance(sums, beta)
        return (low, high) if self.asked.kind == "variance" else (np.sqrt(low), np.sqrt(high))

    def _mean(self, sums: Floats, beta: float) -> tuple[Floats, Floats]:
        moments = self.moments
        assert moments.count is not None
        assert moments.total is not None
        return _ratio(self.noise, (moments.total, moments.count), sums, float(moments.half), beta)

    def _variance(self, sums: Floats, beta: float) -> tuple[Floats, Floats]:
        """From intervals for both moments: m₂ − m₁², each with half of what may fail."""
        moments = self.moments
        assert moments.count is not None
        assert moments.squares is not None
        most = float(moments.half) ** 2
        centred = combine_forms((1, moments.squares), (-(moments.half**2) / 2, moments.count))
        low, high = _ratio(self.noise, (centred, moments.count), sums, most / 2, beta / 2)
        left, right = self._mean(sums, beta / 2)
        least = np.where((left <= 0) & (right >= 0), 0.0, np.minimum(left**2, right**2))
        greatest = np.maximum(left**2, right**2)
        return (
            np.clip(low + most / 2 - greatest, 0.0, most),
            np.clip(high + most / 2 - least, 0.0, most),
        )

    @property
    def _whole(self) -> bool:
        return self.whole and self.asked.kind in COUNTS

    @property
    def _of_things(self) -> bool:
        """Whether the number that was asked for is whole; down-weighted rows may make it a fraction."""
        of = self.asked.of
        return self.asked.kind in COUNTS or (
            self.asked.kind == "sum" and of is not None and not of.type.places
        )

    @property
    def _floor(self) -> float:
        """The least that it can be."""
        if self.asked.kind == "sum":
            assert self.asked.of is not None
            return 0.0 if self.asked.of.type.low >= 0 else -math.inf
        return 0.0 if self.asked.kind != "mean" else -math.inf

    def _as_values(self, numbers: Floats) -> tuple[Any, ...]:
        return tuple(round(x) for x in numbers.tolist()) if self._whole else tuple(numbers.tolist())


def _ratio(
    noise: NoiseVector, forms: tuple[LinearForm, LinearForm], sums: Floats, reach: float, beta: float
) -> tuple[Floats, Floats]:
    top, bottom = forms
    return ratio_interval(noise, forms, (_apply(top, sums), _apply(bottom, sums)), reach, beta)


def _apply(form: LinearForm, sums: Floats) -> Floats:
    found = np.zeros(sums.shape[0])
    for place, weight in form.items():
        found += float(weight) * sums[:, place]
    return found


def _in(ends: Floats) -> Floats:
    return np.where(ends > 0, _IN, _OUT)


def _out(ends: Floats) -> Floats:
    return np.where(ends > 0, _OUT, _IN)
