# SPDX-License-Identifier: Apache-2.0
"""From noisy sums to the numbers of the answer, each with its confidence interval.

**Guarantee.** Post-processing: it reads only noisy sums and public parameters. Each interval
contains the exact number, of the bounded rows, with the stated confidence, on its own. It is
clipped to the possible values of the number, but always contains the released number: a count of -5
± 20 has the interval from -5 to 15. A mean or a variance is not linear in the noise and has no
unbiased estimate to keep, so it is moved into its interval instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

from discreet.mechanisms.distributions import NoiseDistribution
from discreet.tables.answer.joint import ColumnSums
from discreet.tables.answer.linear import DrawnNoise
from discreet.tables.answer.noisy import CONFIDENCE, Noisy, Values
from discreet.tables.ask.question import Aggregate
from discreet.tables.plan.intervals import (
    Floats,
    JointNoise,
    LinearForm,
    NoiseVector,
    combine_forms,
    ratio_interval,
    variance_interval,
)
from discreet.tables.plan.linear import ColumnMoments
from discreet.tables.plan.stage import ColumnDescription

__all__ = ["ColumnEstimate"]

COUNTS = ("count", "count_of", "units", "distinct")
#: The sizes of groups for which a preview states the margin of error of a mean.
_SIZES = (100, 1000, 10000)
_OUT, _IN = 1 + 1e-12, 1 - 1e-12
#: The share of the probability to fail that the mean of a variance gets: an error of the mean
#: matters only by its square.
_MEAN_BETA = 0.1


@dataclass(frozen=True)
class ColumnEstimate:
    """How one aggregate is read off the noisy sums.

    `whole` says that counts are whole numbers, because no weight is below one. With
    `keeps_fractions` released counts are not rounded to whole numbers, so that the tables of a cube
    add up; the ends of their intervals are.
    """

    aggregate: Aggregate
    moments: ColumnMoments
    noise: JointNoise
    whole: bool
    keeps_fractions: bool = False

    def noisy(self, sums: Floats, draw: str = "") -> Noisy:
        """The noisy column, from one row of noisy sums for each group.

        `draw` names their noise. Without it the noise is not known to be symmetric, as that of
        counts which had to reach a threshold.
        """
        values, form = self.values(sums), self.form
        if form is None:
            values = np.clip(values, *self.ends(sums, 1 - CONFIDENCE))

        # Arithmetic asks for the interval of each row by itself.
        @cache
        def interval(confidence: float) -> tuple[Values, Values]:
            low, high = self.ends(sums, 1 - confidence)
            return self._as_values(np.minimum(low, values)), self._as_values(np.maximum(high, values))

        low, high = interval(CONFIDENCE)
        return Noisy(
            values=self._as_values(values),
            lo=low,
            hi=high,
            text=self.aggregate.text,
            noise=self.noise_text,
            deviation=None if form is None else self.noise.deviation(form),
            whole=self._is_whole_number,
            nonnegative=self._floor == 0,
            interval=interval,
            linear=None if form is None or not draw else self._linear_noise(form, len(sums), draw),
            sums=self._column_sums(sums, draw) if form is None and draw else None,
        )

    def _column_sums(self, sums: Floats, draw: str) -> ColumnSums | None:
        """The noisy sums of a mean or a variance, where their noises are known one by one."""
        moments = self.moments
        if not isinstance(self.noise, NoiseVector):
            return None
        forms = [form for form in (moments.count, moments.total, moments.squares) if form is not None]
        values = tuple(tuple(_apply(form, sums).tolist()) for form in forms)
        noises = tuple(self._linear_noise(form, len(sums), draw) for form in forms)
        return ColumnSums(float(moments.middle), values, noises)

    def _linear_noise(self, form: LinearForm, groups: int, draw: str) -> DrawnNoise:
        """The noise of a column that is linear in the sums."""
        terms = []
        for place, weight in form.items():
            assert isinstance(self.noise, NoiseVector), "the noises of a draw are known one by one"
            distribution = self.noise.distributions[place]
            assert isinstance(distribution, NoiseDistribution), (
                "a count that had to reach a threshold has no draw"
            )
            terms.append((place, float(weight), distribution))
        return DrawnNoise(draw, tuple(terms), tuple(range(groups)))

    def describe(self, confidence: float = CONFIDENCE) -> ColumnDescription:
        """The noise and the margin of error of the column before it is drawn."""
        margin = self.half_width(confidence)
        if margin is not None:
            return ColumnDescription(self.noise_text, f"±{margin:.4g}", self._rounding)
        sizes = " · ".join(f"±{self.half_width_for(rows, confidence):.3g} of {rows} rows" for rows in _SIZES)
        return ColumnDescription(self.noise_text, f"about {sizes}", self._rounding)

    @property
    def _rounding(self) -> str:
        """A note if values are rounded to a coarser grid than that of the column."""
        of, step = self.aggregate.of, self.moments.step
        if self.aggregate.kind in COUNTS or of is None or step * 2**of.type.places <= 1:
            return ""
        name = self.aggregate.text or self.aggregate.name
        return f"{name} rounds values to the nearest multiple of {float(step):.4g}."

    @property
    def noise_text(self) -> str:
        """The noise, in words."""
        form = self.form
        if form is None:
            return f"{self.noise.word} noise on the sums that it is computed from"
        return f"{self.noise.word} noise of standard deviation {self.noise.deviation(form):.4g}"

    @property
    def form(self) -> LinearForm | None:
        """Its linear form; None if it is not linear in the sums."""
        moments = self.moments
        if self.aggregate.kind in COUNTS:
            return moments.count
        if self.aggregate.kind != "sum":
            return None
        assert moments.total is not None
        if not moments.middle:
            return moments.total
        assert moments.count is not None
        return combine_forms((1, moments.total), (moments.middle, moments.count))

    def half_width(self, confidence: float = CONFIDENCE) -> float | None:
        """The margin of error; None where it depends on the size of a group."""
        return None if self.form is None else self.noise.half_width(self.form, 1 - confidence)

    def half_width_for(self, rows: float, confidence: float = CONFIDENCE) -> float:
        """The approximate margin of error for that many rows with values in mid-range."""
        if self.form is not None:
            return self.noise.half_width(self.form, 1 - confidence)
        moments = self.moments
        assert moments.total is not None
        if self.aggregate.kind == "mean":
            return min(self.noise.half_width(moments.total, 1 - confidence) / rows, 2 * float(moments.half))
        assert moments.squares is not None
        margin = min(self.noise.half_width(moments.squares, 1 - confidence) / rows, float(moments.half) ** 2)
        return margin if self.aggregate.kind == "variance" else min(math.sqrt(margin), float(moments.half))

    def widest(self, beta: float, reach: float | None = None) -> float:
        """A bound on |S − θN| of the noises that fails with probability at most β, for every θ, or
        for those up to `reach` from the middle.
        """
        moments = self.moments
        assert moments.count is not None
        assert moments.total is not None
        # The bound grows with each absolute weight, and these are greatest at an end.
        farthest = moments.half if reach is None else min(moments.half, Fraction(reach))
        ends = (combine_forms((1, moments.total), (sign * farthest, moments.count)) for sign in (-1, 1))
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
        if self.aggregate.kind == "mean":
            return mean + float(moments.middle)
        assert moments.squares is not None
        variance = np.clip(_apply(moments.squares, sums) / rows - mean**2, 0.0, reach**2)
        return variance if self.aggregate.kind == "variance" else np.sqrt(variance)

    def ends(self, sums: Floats, beta: float) -> tuple[Floats, Floats]:
        """The ends of the intervals that fail with probability at most β."""
        if self.form is not None:
            values, half = _apply(self.form, sums), self.noise.half_width(self.form, beta)
            low, high = values - half, values + half
            if self._whole:
                low, high = np.ceil(low * _in(low) - 1e-9), np.floor(high * _out(high) + 1e-9)
            return np.maximum(low, self._floor), np.maximum(high, self._floor)
        if self.aggregate.kind == "mean":
            low, high = self._mean(sums, beta)
            middle = float(self.moments.middle)
            return low + middle, high + middle
        low, high = self._variance(sums, beta)
        return (low, high) if self.aggregate.kind == "variance" else (np.sqrt(low), np.sqrt(high))

    def _mean(self, sums: Floats, beta: float) -> tuple[Floats, Floats]:
        moments = self.moments
        assert moments.count is not None
        assert moments.total is not None
        return _ratio(self.noise, (moments.total, moments.count), sums, float(moments.half), beta)

    def _variance(self, sums: Floats, beta: float) -> tuple[Floats, Floats]:
        """The ends for a variance; see `variance_interval`."""
        moments = self.moments
        assert moments.count is not None
        assert moments.total is not None
        assert moments.squares is not None
        means = self._mean(sums, beta * _MEAN_BETA)
        forms = (moments.count, moments.total, moments.squares)
        values = tuple(_apply(form, sums) for form in forms)
        half = float(moments.half)
        return variance_interval(self.noise, forms, values, means, half, beta * (1 - _MEAN_BETA))

    @property
    def _whole(self) -> bool:
        return self.whole and self.aggregate.kind in COUNTS

    @property
    def _is_whole_number(self) -> bool:
        """Whether the exact number is whole; with down-weighted rows the released one may not."""
        of = self.aggregate.of
        return self.aggregate.kind in COUNTS or (
            self.aggregate.kind == "sum" and of is not None and not of.type.places
        )

    @property
    def _floor(self) -> float:
        """Its least possible value."""
        if self.aggregate.kind == "sum":
            assert self.aggregate.of is not None
            return 0.0 if self.aggregate.of.type.low >= 0 else -math.inf
        return 0.0 if self.aggregate.kind != "mean" else -math.inf

    def _as_values(self, numbers: Floats) -> Values:
        rounds = self._whole and not self.keeps_fractions
        return tuple(round(x) for x in numbers.tolist()) if rounds else tuple(numbers.tolist())


def _ratio(
    noise: JointNoise, forms: tuple[LinearForm, LinearForm], sums: Floats, reach: float, beta: float
) -> tuple[Floats, Floats]:
    top, bottom = forms
    return ratio_interval(noise, forms, (_apply(top, sums), _apply(bottom, sums)), reach, beta)


def _apply(form: LinearForm, sums: Floats) -> Floats:
    values = np.zeros(sums.shape[0])
    for place, weight in form.items():
        values += float(weight) * sums[:, place]
    return values


def _in(ends: Floats) -> Floats:
    return np.where(ends > 0, _IN, _OUT)


def _out(ends: Floats) -> Floats:
    return np.where(ends > 0, _OUT, _IN)
