# SPDX-License-Identifier: Apache-2.0
"""Scores of two classes turned into probabilities, by counts of records with about the same score.

    link = Calibration.release(scores, targets, multiplier=…, relation="add-remove")
    link.log_odds(scores)

**Guarantee.** One Gaussian mechanism with the given multiplier. A record adds (1, y - ½) to one of
14 bins of public ends, and its score is a function of that record and of released numbers.

Why it holds: ‖(1, ½)‖² = 5/4, and a replaced record moves two bins at most, or its label in one:
5/2 in all (additive.proof.md, 4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares
from scipy.special import expit

from discreet import noise as exact
from discreet.exact import exactly
from discreet.learn.arrays import Reals

__all__ = ["Calibration"]


_ENDS = np.array([-4.0, -3.0, -2.2, -1.5, -0.9, -0.4, 0.0, 0.4, 0.9, 1.5, 2.2, 3.0, 4.0])
_MIDDLES = np.convolve(np.concatenate([[-5.0], _ENDS, [5.0]]), [0.5, 0.5], "valid")
# Beyond this score probabilities hardly change.
_FAR, _BEYOND = 4.5, 0.01
_LEAST_SLOPE = 0.05
_UP = 1 + 1e-12


@dataclass(frozen=True)
class Calibration:
    """log-odds = level + slope · score."""

    level: float = 0.0
    slope: float = 1.0

    @classmethod
    def release(cls, scores: Reals, targets: Reals, *, multiplier: float, relation: str) -> Calibration:
        """Draw it from scores and targets (0 or 1) of the records."""
        bins = np.searchsorted(_ENDS, scores)
        size = len(_ENDS) + 1
        twice = np.stack(
            [
                2 * np.bincount(bins, minlength=size),
                np.bincount(bins, np.where(targets > 0.5, 1, -1), size).astype(np.int64),
            ]
        )
        norm = math.sqrt(5 * (2 if relation == "replace" else 1))
        spread = multiplier * norm * _UP
        noisy = (twice + exact.rounded_gaussian(exactly(spread), twice.shape)) / 2
        return cls._fit(np.maximum(noisy[0], 0.0), noisy[1], spread / 2)

    @classmethod
    def _fit(cls, counts: Reals, excess: Reals, spread: float) -> Calibration:
        """The likeliest level and slope, near 0 and 1 where the counts say little."""

        def residuals(parameters: Reals) -> Reals:
            chances = expit(parameters[0] + parameters[1] * _MIDDLES)
            variances = counts * chances * (1 - chances) + spread**2 * (1 + (chances - 0.5) ** 2)
            misfit = (excess - counts * (chances - 0.5)) / np.sqrt(variances)
            return np.concatenate([misfit, [parameters[0], parameters[1] - 1]])

        best = least_squares(residuals, [0.0, 1.0], bounds=([-10, _LEAST_SLOPE], [10, 10])).x
        return cls(float(best[0]), float(best[1]))

    def log_odds(self, scores: Reals) -> Reals:
        """Calibrated scores: their sign is the likelier class."""
        near = np.clip(scores, -_FAR, _FAR)
        return np.asarray(self.level + self.slope * (near + _BEYOND * (scores - near)))
